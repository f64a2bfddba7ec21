"""Plain rows where mteb makes a Dataset and a DataLoader, which it does anew at every layer, importing torch for them."""

from collections.abc import Callable, Mapping
from typing import Any

from mteb._evaluators import any_sts_evaluator, clustering_evaluator, pair_classification_evaluator
from mteb.abstasks import classification, clustering, clustering_legacy
from mteb.models import search_wrappers

from layerwise.tasks.plain_rows import PlainRows


class Rows(PlainRows):
    """Rows that mteb also makes itself."""

    @classmethod
    def from_dict(cls, columns: Mapping[str, list[Any]]) -> "Rows":
        """Keep the columns; they are not copied."""
        return cls(columns)


def _plain_first(original: Callable[..., Any]) -> Callable[..., Any]:
    def load(rows: Any, **options: Any) -> Any:  # noqa: ANN401 - plain rows or a Dataset
        """Hand plain rows over as one batch; they are texts as a model reads them."""
        if isinstance(rows, PlainRows):
            return [{"text": rows[options.get("input_column") or "text"]}]
        return original(rows, **options)

    return load


# An mteb that keeps the function elsewhere falls back on it.
for _module in (
    any_sts_evaluator,
    classification,
    clustering,
    clustering_evaluator,
    pair_classification_evaluator,
    search_wrappers,
):
    if hasattr(_module, "create_dataloader"):
        vars(_module)["create_dataloader"] = _plain_first(_module.create_dataloader)
vars(clustering_legacy)["Dataset"] = Rows
