"""What the config says of an attention probe, beside what every task says."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, model_validator

from layerwise.config_models import Seed
from layerwise.config_reading import CLOSED

ATTENTION_PROBE = "attention_probe"
# The study's.
DEFAULTS: dict[str, Any] = {
    "epochs": 1,
    "seeds": [0],
    "batch": 128,
    "learning_rate": 1e-3,
    "weight_decay": 1e-4,
    "heads": 8,
}
_UNUSED = ("classes", "pairs", "pool", "folds")


class ProbeKeys(BaseModel):
    """Keys of tasks of type ``attention_probe``, which have defaults there; None and refused in tasks of other types.

    Attributes:
        epochs: passes of the frozen model over the train images.
        seeds: of the initial weights; scores are means over them.
        batch: images per step. They run through the model together.
        heads: of the one query.
    """

    model_config = CLOSED
    epochs: Annotated[int, Field(ge=1, strict=True)] | None = None
    seeds: Annotated[list[Seed], Field(min_length=1, max_length=100)] | None = None
    batch: Annotated[int, Field(ge=2, strict=True)] | None = None
    learning_rate: Annotated[float, Field(gt=0, le=10)] | None = None
    weight_decay: Annotated[float, Field(ge=0, le=10)] | None = None
    heads: Annotated[int, Field(ge=1, le=256, strict=True)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, entry: Any) -> Any:  # noqa: ANN401 - nothing is checked yet
        return DEFAULTS | entry if isinstance(entry, dict) and entry.get("type") == ATTENTION_PROBE else entry

    @model_validator(mode="after")
    def _belong(self) -> Self:
        kind = getattr(self, "type", None)
        if kind != ATTENTION_PROBE:
            written = next((key for key in DEFAULTS if getattr(self, key) is not None), None)
            if written is not None:
                raise ValueError(f"{written!r} belongs to tasks of type {ATTENTION_PROBE}; leave it out")
            return self
        empty = next((key for key in DEFAULTS if getattr(self, key) is None), None)
        if empty is not None:
            raise ValueError(f"{empty!r} is empty; leave it out for {DEFAULTS[empty]}")
        if self.seeds is not None and len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"'seeds' {self.seeds} names one twice; write each once")
        unused = next((key for key in _UNUSED if getattr(self, key, None) is not None), None)
        if unused is not None:
            raise ValueError(f"an {ATTENTION_PROBE} task takes no {unused!r}; leave it out")
        return self
