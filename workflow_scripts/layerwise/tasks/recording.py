"""Which texts a task asks for."""

from pathlib import Path

import pandas as pd

from layerwise.tasks.encoder import Recorder, text_key


def recorded_texts(folder: Path) -> pd.DataFrame:
    """Return the samples a task looks up: every text its evaluator asks for, once, found by letting it run.

    Returns:
        See ``frame_of``.
    """
    from layerwise.tasks.benchmark import TaskFiles

    recorder = Recorder()
    files = TaskFiles(folder)
    files.fresh().evaluate(recorder, "test", encode_kwargs={"batch_size": 1024, "show_progress_bar": False})
    for split in files.dataset:  # the probe sees every train row, mteb's evaluator only the rows it draws
        for column in ("text", "sentences", "sentence1", "sentence2"):
            if column in files.dataset[split].column_names:
                recorder.add(list(files.dataset[split][column]), str(split))
    return frame_of(recorder)


def frame_of(recorder: Recorder) -> pd.DataFrame:
    """Return the recorded texts in their order.

    Returns:
        id (hash of the text), split, text, and occurrences: how often the evaluator asked for it. It has one vector. Texts
        of the evaluated split are marked "test", even if train asks for them too.
    """
    texts = list(recorder.splits)
    return pd.DataFrame(
        {
            "id": [text_key(text) for text in texts],
            "split": list(recorder.splits.values()),
            "text": texts,
            "occurrences": [recorder.occurrences[text] for text in texts],
        }
    )
