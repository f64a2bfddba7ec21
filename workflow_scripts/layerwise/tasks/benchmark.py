"""From the files of a task to a fresh mteb task object, whose evaluator gives the scores."""

from pathlib import Path
from typing import Any

from mteb.abstasks import AbsTask, AbsTaskClassification, AbsTaskClustering, AbsTaskPairClassification, AbsTaskSTS
from mteb.abstasks.task_metadata import TaskMetadata
from sklearn.metrics import accuracy_score

from layerwise.errors import FileError
from layerwise.records import read_record
from layerwise.tasks.files import read_rows
from layerwise.tasks.mteb_plain import Rows


class _Classification(AbsTaskClassification):
    """mteb's task, which of its nine measures computes the one that is reported: they take half as long as the fits."""

    def _calculate_scores(self, y_test: Any, y_pred: Any) -> Any:  # noqa: ANN401 - mteb's own types are wider
        return {"accuracy": accuracy_score(y_test, y_pred)}


# Type in the config: mteb's base class, its name for the type, its category, and the score the study reports.
_TYPES: dict[str, tuple[type[AbsTask], str, str, str]] = {
    "classification": (_Classification, "Classification", "t2c", "accuracy"),
    "clustering": (AbsTaskClustering, "Clustering", "t2c", "v_measure"),
    "pair_classification": (AbsTaskPairClassification, "PairClassification", "t2t", "max_ap"),
    "sts": (AbsTaskSTS, "STS", "t2t", "cosine_spearman"),
}


class TaskFiles:
    """The files of one task in results/data/{task}/task, read once; ``fresh`` makes a new mteb task from them.

    A task object that is reused across layers is not reproducible (its random state advances), so every evaluation gets
    its own; the loaded rows are shared.
    """

    def __init__(self, folder: Path) -> None:
        """Read spec.json and the rows.

        Raises:
            FileError: a file is missing or damaged.
        """
        self.spec = read_record(folder / "spec.json", "name", "options", "splits", "digest")
        self.name: str = self.spec["name"]
        self.options: dict[str, Any] = self.spec["options"]
        self.type: str = self.options["type"]
        self.main_score = _TYPES[self.type][3]
        try:
            self.dataset = {split: Rows.from_rows(read_rows(folder / f"{split}.jsonl")) for split in self.spec["splits"]}
        except (OSError, ValueError) as error:
            raise FileError(f"{folder} cannot be read as a task ({error}); delete it and run again.") from error

    def fresh(self) -> AbsTask:
        """Return a new mteb task object over the loaded rows, seeded by the config."""
        base, kind, category, main_score = _TYPES[self.type]
        metadata = TaskMetadata(
            name=self.name.replace("-", "").replace("_", "").replace(".", "") or "Task",
            description=f"Local task {self.name}.",
            dataset={"path": "local", "revision": self.spec["digest"][:40]},
            type=kind,
            category=category,
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            main_score=main_score,
        )
        task_class = type("LocalTask", (base,), {"metadata": metadata})
        task: AbsTask = task_class(seed=self.options["seed"])
        task.dataset, task.data_loaded = {"default": self.dataset}, True
        for attribute, value in self._settings().items():
            setattr(task, attribute, value)
        return task

    def pairs(self) -> tuple[list[str], list[str], list[Any]]:
        """Return the texts of the pairs of an sts or pair_classification task, and their scores or labels."""
        rows = self.dataset["test"]
        return rows["sentence1"], rows["sentence2"], rows["score" if self.type == "sts" else "labels"]

    def _settings(self) -> dict[str, Any]:
        if self.type == "classification":
            return {key: self.options[key] for key in ("n_experiments", "samples_per_label")}
        if self.type == "clustering":
            return {
                "max_fraction_of_documents_to_embed": None,
                "max_documents_per_cluster": len(self.dataset["test"]),
                "n_clusters": self.options["n_experiments"],
            }
        return {}
