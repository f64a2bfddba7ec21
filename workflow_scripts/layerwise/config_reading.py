"""Reading configuration files: what is refused before anything is made of them, and errors as one sentence."""

import difflib
import reprlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from layerwise.errors import ConfigError

CLOSED = ConfigDict(extra="forbid", frozen=True)  # a mapping that admits only the keys it names


class Closed(BaseModel):
    """A mapping that admits only the keys it names."""

    model_config = CLOSED


def check_files(paths: Iterable[str | Path]) -> None:
    """Refuse config files that run code or say a key twice, before anything is made of them.

    Snakemake has evaluated YTE by the time this runs (a config file is trusted code), but no job has started.

    Raises:
        ConfigError: ``__use_yte__`` occurs, a key occurs twice in one mapping, or the file is not plain YAML.
    """
    for path in paths:
        try:
            text = Path(path).read_text("utf-8")
        except UnicodeDecodeError as error:
            raise ConfigError(f"config: {path} is not plain YAML ({error}); save it as UTF-8.") from None
        if "__use_yte__" in text:
            raise ConfigError(f"config: {path} uses YTE ('__use_yte__'), which runs code; write plain YAML instead.")
        try:
            yaml.load(text, Loader=_PlainLoader)  # noqa: S506 - a subclass of SafeLoader
        except yaml.YAMLError as error:
            raise ConfigError(f"config: {path} is not plain YAML ({' '.join(str(error).split())}).") from None


class _PlainLoader(yaml.SafeLoader):
    """YAML without tags that build objects, and without keys that silently replace each other."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        merge = "tag:yaml.org,2002:merge"  # '<<: *anchor', which super() resolves
        keys = [self.construct_object(key, deep=True) for key, _ in node.value if key.tag != merge]
        repeated = next((key for i, key in enumerate(keys) if key in keys[:i]), None)
        if repeated is not None:
            raise yaml.YAMLError(f"key {repeated!r} occurs twice, line {node.start_mark.line + 1} and below")
        return super().construct_mapping(node, deep)


def sentence(error: ValidationError, config: dict[str, Any], schema: type[BaseModel]) -> str:
    """Return the first thing that is wrong: where, which value, and what to write instead.

    Args:
        error: raised by ``schema`` for ``config``.
        config: what was read.
        schema: the model of the whole configuration.
    """
    first = error.errors(include_url=False)[0]
    place: list[str] = []
    path: Any = config
    for key in first["loc"]:
        path = _inside(path, key)
        named = path.get("name") if isinstance(path, dict) else None
        place.append(f"{key} ({named!r})" if named else str(key))
    where = ": ".join(place)
    others = len(error.errors()) - 1
    more = f" ({others} further problem{'s' * (others > 1)})" if others else ""
    if first["type"] == "extra_forbidden":
        key = str(first["loc"][-1])
        close = difflib.get_close_matches(key, _keys(schema, first["loc"]), 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(_keys(schema, first['loc']))}."
        return f"config: {where} is an unknown key; {hint}{more}"
    if first["type"] == "missing":
        return f"config: {where} is missing.{more}"
    message = first["msg"].removeprefix("Value error, ")
    value = "" if first["type"] == "value_error" else f" (found {_shown(first['input'])})"
    return f"config: {where + ': ' if where else ''}{message}{value}.{more}"


def _shown(value: Any) -> str:  # noqa: ANN401
    """The value as written; nested ones cut short, since YAML's anchors can make them larger than memory."""
    return repr(value) if isinstance(value, str | int | float | None) else f"{reprlib.repr(value):.200}"


def _inside(container: Any, key: int | str) -> Any:  # noqa: ANN401
    try:
        return container[key]
    except (KeyError, IndexError, TypeError):
        return None


def _keys(schema: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Names of the keys allowed beside the last key of ``location``."""
    model = schema
    for key in location[:-1]:
        if isinstance(key, int):
            continue
        model = _model_in(model.model_fields[key].annotation) or model
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401
    """The pydantic model inside an annotation such as ``list[ModelEntry]`` or ``Sampling | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _model_in(inner))), None)
