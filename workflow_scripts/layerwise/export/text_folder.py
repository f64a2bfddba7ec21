"""A text model as a sentence-transformers folder: one transformer, one pooling, no code."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from layerwise.errors import ModelError
from layerwise.export.cut import cut
from layerwise.export.form import POOLINGS, Form

LIBRARY = "sentence-transformers"


def write(folder: Path, loaded: Any, form: Form, _source: Path) -> dict[str, Any]:  # noqa: ANN401 - a TextModel
    """Cut ``loaded`` and write it with its tokenizer; the chat template stays behind, since ``encode`` would apply it.

    Args:
        folder: empty.
        loaded: module, stack, tokenizer, max_tokens, bidirectional.
        form: what is kept, and how it is read.
        _source: the folder the model was loaded from.

    Returns:
        Nothing that the code on the card must know.
    """
    cut(loaded.module, loaded.stack, form.kept)
    if loaded.bidirectional:
        loaded.module.config.is_causal = False
    loaded.module.save_pretrained(folder)
    tokenizer = loaded.tokenizer
    tokenizer.chat_template, tokenizer.padding_side, tokenizer.truncation_side = None, "right", "right"
    tokenizer.model_max_length = loaded.max_tokens
    if tokenizer.pad_token is None:  # padded positions are masked, so any known token serves
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)
    tokenizer.save_pretrained(folder)
    _check_tokenizer(folder, tokenizer)
    place = _place(loaded, form) if form.raw else None
    for name, content in _described(form, loaded.max_tokens, int(loaded.width), place).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    return {}


def _check_tokenizer(folder: Path, tokenizer: Any) -> None:  # noqa: ANN401 - any tokenizer
    """Refuse a tokenizer that transformers replaces by the one that belongs to the type of the model.

    Raises:
        ModelError: what the folder is opened with splits a text otherwise.
    """
    from transformers import AutoTokenizer

    opened = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    probe = ["The quick brown fox, 12 über-fast dogs.", " ".join(sorted(tokenizer.get_vocab())[:200])]
    if opened(probe, truncation=True)["input_ids"] != tokenizer(probe, truncation=True)["input_ids"]:
        raise ModelError(
            f"transformers opens the tokenizer in this folder as a {type(opened).__name__}, which splits texts otherwise "
            f"than the {type(tokenizer).__name__} of the study; sentence-transformers would too, so it cannot be exported."
        )


def _place(loaded: Any, form: Form) -> int:  # noqa: ANN401 - a TextModel
    """Where in the library's own list of hidden states the layer is: mostly at its number, in Mamba one before.

    Raises:
        ModelError: nowhere.
    """
    probe = pd.DataFrame({"text": [loaded.tokenizer.decode([3, 5, 7, 9])]})
    batch = loaded.prepare(probe).batch([0])
    states: dict[int, torch.Tensor] = {}
    loaded.run(batch, states.__setitem__)
    with torch.inference_mode():
        found = loaded.module(**batch.inputs, output_hidden_states=True).hidden_states
    for place, candidate in enumerate(found):
        if candidate.shape == states[form.layer].shape and torch.allclose(
            candidate, states[form.layer], rtol=1e-5, atol=1e-6
        ):
            return place
    raise ModelError(
        f"{type(loaded.module).__name__} does not give its layer {form.layer} without its final norm; write a readout with "
        "'norm: final', such as 'mean_normed'."
    )


def _described(form: Form, max_tokens: int, width: int, place: int | None) -> dict[str, Any]:
    """The library's own JSON files; in the form that its older versions read too, where that form has the words."""
    modules = [("Transformer", ""), ("Pooling", "1_Pooling")]
    transformer: dict[str, Any] = {"max_seq_length": max_tokens, "do_lower_case": False}
    if place is not None:
        output = {"method": "forward", "method_output_name": ["hidden_states", place]}
        transformer |= {"modality_config": {"text": output}, "module_output_name": "token_embeddings"}
    pooling = {f"pooling_mode_{mode}": False for mode in ("cls_token", "mean_tokens", "weightedmean_tokens", "lasttoken")}
    mode = POOLINGS[form.readout["pool"]]
    pooling[next(key for key in pooling if key.removeprefix("pooling_mode_").removesuffix("_tokens").startswith(mode))] = (
        True
    )
    return {
        "modules.json": [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (kind, path) in enumerate(modules)
        ],
        "sentence_bert_config.json": transformer,
        "1_Pooling/config.json": {"word_embedding_dimension": width, **pooling, "include_prompt": True},
        "config_sentence_transformers.json": {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"},
    }


def vectors(
    folder: Path, samples: pd.DataFrame, _where: Path, _form: Form, _facts: dict[str, Any]
) -> tuple[NDArray[np.float64], str]:
    """Return (N, D) of column ``text`` as a user gets them, on the CPU, and the dtype that the folder loads in."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    encoded = model.encode(samples["text"].tolist(), convert_to_tensor=True, show_progress_bar=False)
    dtype = str(next(model.parameters()).dtype).removeprefix("torch.")
    return encoded.to(torch.float64).numpy(), dtype


def usage(name: str, form: Form, _facts: dict[str, Any]) -> tuple[list[str], str]:
    """Return lines of Python for the card, and what is to be known about them."""
    lines = [
        "from sentence_transformers import SentenceTransformer",
        f'model = SentenceTransformer("{name}")',
        'vectors = model.encode(["a text", "another text"])',
    ]
    if not form.raw:
        return lines, ""
    return lines, (
        f"The folder holds {form.kept} blocks and the state before the last of them is read, because the model's final norm "
        "would change it. sentence-transformers 6 or newer is needed: older versions read the normed state instead."
    )
