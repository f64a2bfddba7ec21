"""Which texts a task asks for."""

from pathlib import Path

import pandas as pd

from layerwise.tasks.encoder import Recorder, text_key


def recorded_texts(folder: Path) -> pd.DataFrame:
    """Return the samples a task looks up: every text its evaluator asks for, once, found by letting it run.

    Returns:
        id (hash of the text), split and text; texts of the test split are marked so, even if train asks for them too.
    """
    from layerwise.tasks.benchmark import TaskFiles

    recorder = Recorder()
    files = TaskFiles(folder)
    files.fresh().evaluate(recorder, "test", encode_kwargs={"batch_size": 1024, "show_progress_bar": False})
    for split in files.dataset:  # the probe sees every train row, mteb's evaluator only the rows it draws
        for column in ("text", "sentences", "sentence1", "sentence2"):
            if column in files.dataset[split].column_names:
                recorder.encode([{"text": list(files.dataset[split][column])}], hf_split=str(split))
    texts = list(recorder.splits)
    return pd.DataFrame({"id": [text_key(t) for t in texts], "split": list(recorder.splits.values()), "text": texts})
