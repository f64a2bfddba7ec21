"""Dequantise a GGUF file once into a Hugging Face safetensors folder."""

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from layerwise.errors import ModelError

_MAGIC = b"GGUF"


def convert(file: Path, folder: Path) -> dict[str, Any]:
    """Write config, tokenizer and float32 safetensors of the model in ``file`` to ``folder``.

    float32 holds every dequantised weight exactly, so that the config's ``dtype`` alone decides the precision.

    Returns:
        Facts for the manifest: format, quantisation, digest of the source file, stored dtype, licence.

    Raises:
        ModelError: not GGUF, damaged, or an architecture transformers cannot read from GGUF.
    """
    if not file.is_file():
        raise ModelError(f"{file} is not a file; give a .gguf, or a folder of safetensors with 'folder:'.")
    with file.open("rb") as opened:
        if opened.read(4) != _MAGIC:
            raise ModelError(f"{file} is not a GGUF file; give a .gguf, or a folder of safetensors with 'folder:'.")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from layerwise.packages import file_digest

    try:
        with _parsed_once() as reader_of:
            reader = reader_of(str(file))
            kinds = sorted({tensor.tensor_type.name for tensor in reader.tensors})
            licence = reader.get_field("general.license")
            options: dict[str, Any] = {"gguf_file": file.name, "local_files_only": True, "trust_remote_code": False}
            tokenizer = AutoTokenizer.from_pretrained(file.parent, **options)
            quantised = AutoModelForCausalLM.from_pretrained(file.parent, dtype=torch.float32, **options)
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(f"{file} cannot be dequantised ({type(error).__name__}: {reason}).") from error
    # A model that came from GGUF refuses to be saved; the same weights in a fresh model of its class do not.
    ignored = ("quantization_config", "_name_or_path")
    config = type(quantised.config).from_dict({k: v for k, v in quantised.config.to_dict().items() if k not in ignored})
    with torch.device("meta"):
        model = type(quantised)(config)
    model.load_state_dict(quantised.state_dict(), assign=True)
    model.tie_weights()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return {
        "from": "gguf",
        "file": file.name,
        "sha256": file_digest(file),
        "quantisation": kinds,
        "stored_dtype": "float32",
        "licence": str(licence.contents()) if licence else None,
    }


@contextlib.contextmanager
def _parsed_once() -> Iterator[Any]:
    """Give gguf's reader, which parses a file once: transformers asks for the same file three times, seconds each."""
    import gguf

    own = gguf.GGUFReader
    gguf.GGUFReader = functools.cache(own)
    try:
        yield gguf.GGUFReader
    finally:
        gguf.GGUFReader = own
