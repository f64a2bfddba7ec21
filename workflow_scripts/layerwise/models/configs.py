"""The JSON files of a model: read as mappings, and refused where they name code to run."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from layerwise.errors import ModelError

_CODE = ("auto_map", "_attn_implementation_internal", "custom_pipelines")
# The classes an adapter was trained on, which merging never imports; LLM2Vec's own adapters name the last two.
_PARENTS = ("transformers", "transformers_modules", "llm2vec")


def read_mapping(path: Path) -> dict[str, Any]:
    """Return the mapping that a JSON file holds.

    Raises:
        ModelError: it is absent, not JSON, or not a mapping.
    """
    content = _read(path)
    if not isinstance(content, dict):
        raise ModelError(f"{path} holds a {type(content).__name__}, not a mapping; a Hugging Face folder is needed.")
    return content


def _read(path: Path) -> Any:  # noqa: ANN401 - whatever JSON holds
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise ModelError(
            f"{path.parent} holds no readable {path.name} ({reason}); a Hugging Face folder is needed."
        ) from error


def refuse_code(paths: Iterable[Path]) -> None:
    """Refuse a model whose configurations (of model, tokenizer, processor, adapter) name code to run.

    Args:
        paths: of its files; those that are named like a configuration are read.

    Raises:
        ModelError: ``auto_map``, ``custom_pipelines`` or ``_attn_implementation_internal`` is anywhere in one, an attention
            kernel is to be fetched from a hub, or an adapter was trained on a class of an unknown package.
    """
    for path in (path for path in paths if "config" in path.name and path.suffix == ".json"):
        for key, value in _entries(_read(path)):
            fetched = "attn_implementation" in key and "/" in str(value)
            foreign = key == "parent_library" and str(value).split(".")[0] not in _PARENTS
            if key in _CODE or fetched or foreign:
                raise ModelError(f"{path} asks to run code of its own ({key!r}); layerwise never does that.")


def _entries(content: Any) -> list[tuple[str, Any]]:  # noqa: ANN401
    """Every key of ``content`` with its value, at any depth."""
    found: list[tuple[str, Any]] = []
    waiting: list[Any] = [content]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            found += part.items()
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return found
