"""A task of mteb with its data: from the hub, pinned, or from a folder. The only step of a task that uses the network."""

import difflib
import warnings
from pathlib import Path
from typing import Any

import mteb
from mteb.abstasks import AbsTask, AbsTaskRetrieval
from mteb.abstasks.text.bitext_mining import AbsTaskBitextMining

from layerwise.errors import DataError
from layerwise.tasks.study_tasks import STUDY_SUBSETS

# mteb's types whose evaluation asks for texts and nothing else, and the word of the tables for each.
TYPES = {
    "BitextMining": "bitext_mining",
    "Classification": "classification",
    "Clustering": "clustering",
    "InstructionReranking": "reranking",
    "InstructionRetrieval": "retrieval",
    "PairClassification": "pair_classification",
    "Reranking": "reranking",
    "Retrieval": "retrieval",
    "STS": "sts",
    "Summarization": "summarization",
}
_ENGLISH = "eng-Latn"


def registered(name: str) -> AbsTask:
    """Return a fresh object of mteb's task ``name``.

    Raises:
        DataError: mteb has no task of this name.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # superseded tasks are recorded, not announced
        try:
            task: AbsTask = mteb.get_task(name)
        except KeyError:
            close = difflib.get_close_matches(name, [task.metadata.name for task in mteb.get_tasks()], 1)
            hint = f"did you mean {close[0]!r}?" if close else "mteb.get_tasks() lists those it has."
            raise DataError(f"mteb has no task {name!r}; {hint}") from None
    return task


def loaded(name: str, options: dict[str, Any]) -> AbsTask:
    """Return mteb's task with the data of the subsets and the split that are evaluated.

    Args:
        name: of the task in the config, which is mteb's name where ``task`` is not written.
        options: the config's entry: ``task``, ``revision``, ``subset``, ``subsets``, ``path``.

    Raises:
        DataError: no such task, subset or folder, a type that does not look texts up, or data that cannot be loaded.
    """
    task = registered(options["task"] or name)
    facts = task.metadata
    if facts.modalities != ["text"] or facts.type not in TYPES or getattr(task, "parallel_subsets", False):
        raise DataError(
            f"task {name!r}: mteb's {facts.name} is of type {facts.type} on {' and '.join(facts.modalities)}, which cannot "
            f"be scored from stored vectors of texts; its types {', '.join(sorted(TYPES))} can."
        )
    restrict(task, chosen_subsets(name, options, task), evaluated_split(task), dataset_of(task, options))
    try:
        if options["path"] is not None and not Path(options["path"]).expanduser().is_dir():
            raise DataError(f"task {name!r}: 'path' {options['path']!r} is no folder; write one with a copy of the dataset.")
        task.load_data()
        if isinstance(task, AbsTaskRetrieval):
            task.convert_v1_dataset_format_to_v2(num_proc=None)
    except DataError:
        raise
    except Exception as error:
        raise DataError(_sentence(name, options, task, error)) from error
    return task


def restrict(task: AbsTask, subsets: list[str], split: str, dataset: dict[str, Any]) -> None:
    """Make ``task`` evaluate these subsets and this split of ``dataset`` (path and revision)."""
    task.hf_subsets = subsets
    task.filter_eval_splits([split])
    task.metadata = task.metadata.model_copy(update={"dataset": dataset})


def dataset_of(task: AbsTask, options: dict[str, Any]) -> dict[str, Any]:
    """Return where the data comes from: mteb's pin, another revision, or a folder (whose revision is what the user says)."""
    dataset = {key: value for key, value in task.metadata.dataset.items() if key != "trust_remote_code"}
    if options["path"] is None:
        return dataset | ({"revision": options["revision"]} if options["revision"] else {})
    folder = Path(options["path"]).expanduser()
    if not (folder / "README.md").is_file():  # which names the configurations of a dataset repository
        dataset.pop("name", None)
    return dataset | {"path": str(folder.resolve()), "revision": options["revision"] or "local"}


def evaluated_split(task: AbsTask) -> str:
    """Return "test" where the task has it, else its first split."""
    splits = list(task.metadata.eval_splits)
    return "test" if "test" in splits else str(splits[0])


def chosen_subsets(name: str, options: dict[str, Any], task: AbsTask) -> list[str]:
    """Return the subsets to evaluate, the main one first.

    Those of the config; else, for the tasks of the study, its main subset and what else its benchmark had: subsets with
    English; else all of them, the first listed being the main one.

    Raises:
        DataError: a subset that the task does not have.
    """
    listed = list(task.hf_subsets)
    study = STUDY_SUBSETS.get(task.metadata.name)
    languages = task.metadata.hf_subsets_to_langscripts
    usual = listed if study is None else [subset for subset in listed if _ENGLISH in languages[subset]]
    wanted = options["subsets"] or usual
    main = options["subset"] or (study if study in wanted else wanted[0])
    for subset in (main, *wanted):
        if subset not in listed:
            close = difflib.get_close_matches(subset, listed, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(listed)}."
            raise DataError(f"task {name!r}: mteb's {task.metadata.name} has no subset {subset!r}; {hint}")
    return [main, *(subset for subset in wanted if subset != main)]


def train_split(task: AbsTask) -> str | None:
    """Return the split that classifiers are fitted on, if the task has one beside the evaluated split."""
    split = getattr(task, "train_split", None)
    return None if split is None or getattr(task, "is_cross_validation", False) else str(split)


def is_bitext(task: AbsTask) -> bool:
    """Whether the task matches sentences of two languages."""
    return isinstance(task, AbsTaskBitextMining)


def _sentence(name: str, options: dict[str, Any], task: AbsTask, error: Exception) -> str:
    dataset, first = task.metadata.dataset, (str(error).splitlines() or [""])[0]
    if options["path"] is not None:
        return (
            f"task {name!r}: 'path' {options['path']!r} cannot be read as the dataset of mteb's {task.metadata.name} "
            f"({type(error).__name__}: {first}); it must be a copy of the repository {registered_path(task)}."
        )
    return (
        f"task {name!r}: dataset {dataset['path']} at {dataset.get('revision')} of mteb's {task.metadata.name} cannot be "
        f"loaded ({type(error).__name__}); run again with a network, or write 'path: FOLDER' with a copy of that repository."
    )


def registered_path(task: AbsTask) -> str:
    """Return the dataset repository that mteb names for the task."""
    return str(type(task).metadata.dataset["path"])
