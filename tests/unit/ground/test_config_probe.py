"""Tasks of type attention_probe in the config: their defaults, and one sentence for each wrong entry."""

from typing import Any

import pytest
from layerwise.config import Study, load_study
from layerwise.config_probe import DEFAULTS
from layerwise.errors import ConfigError
from layerwise.plan import dataset_plans, looked_up

PROBE = {"name": "seen", "type": "attention_probe", "dataset": "glyphs", "label": "letter", "train": 40}


def study(*tasks: dict[str, Any], **changes: Any) -> Study:
    models = [{"name": "seer", "source": {"path": "y"}, "loader": "vision"}]
    datasets = [{"name": "lee", "source": {"lee": {}}}, {"name": "glyphs", "source": {"glyphs": {}}, "collect": []}]
    return load_study({"models": models, "datasets": datasets, "tasks": list(tasks)} | changes)


def test_the_defaults_are_the_studys() -> None:
    entry = study(PROBE).tasks[0]
    assert {key: getattr(entry, key) for key in DEFAULTS} == DEFAULTS
    assert DEFAULTS == {
        "epochs": 1, "seeds": [0], "batch": 128, "learning_rate": 0.001, "weight_decay": 0.0001, "heads": 8,
    }  # fmt: skip


def test_every_key_can_be_written() -> None:
    written = {"epochs": 5, "seeds": [1, 2], "batch": 16, "learning_rate": 0.01, "weight_decay": 0.0, "heads": 4}
    entry = study(PROBE | written).tasks[0]
    assert {key: getattr(entry, key) for key in DEFAULTS} == written


def test_other_tasks_have_none_of_its_keys() -> None:
    entry = study(PROBE | {"type": "image_classification"}).tasks[0]
    assert {getattr(entry, key) for key in DEFAULTS} == {None}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"type": "image_classification", "epochs": 2}, "'epochs' belongs to tasks of type attention_probe; leave it out"),
        ({"type": "clustering", "heads": 2}, "'heads' belongs to tasks of type attention_probe"),
        ({"folds": 5}, "an attention_probe task takes no 'folds'; leave it out"),
        ({"classes": 5}, "an attention_probe task takes no 'classes'"),
        ({"pairs": "same"}, "attention_probe task takes no 'pairs'"),
        ({"seeds": [1, 2, 1]}, r"'seeds' \[1, 2, 1\] names one twice"),
        ({"seeds": []}, r"seeds: .* at least 1 item.*\(found \[\]\)"),
        ({"seeds": 3}, r"seeds: .*list.*\(found 3\)"),
        ({"seeds": None}, r"'seeds' is empty; leave it out for \[0\]"),
        ({"epochs": 0}, r"epochs: .*\(found 0\)"),
        ({"epochs": 1.5}, r"epochs: .*\(found 1.5\)"),
        ({"batch": 1}, r"batch: .*greater than or equal to 2 \(found 1\)"),
        ({"heads": 0}, r"heads: .*\(found 0\)"),
        ({"learning_rate": 0}, r"learning_rate: .*greater than 0 \(found 0\)"),
        ({"learning_rate": float("nan")}, r"learning_rate: .*\(found nan\)"),
        ({"weight_decay": -1}, r"weight_decay: .*\(found -1\)"),
        ({"epoch": 3}, "epoch is an unknown key; did you mean 'epochs'"),
        ({"label": None}, "an attention_probe task needs 'label'"),
        ({"train": None}, "attention_probe task needs 'train'"),
    ],
)
def test_a_wrong_entry_gets_one_sentence(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        study(PROBE | changes)
    assert "tasks: 0 ('seen')" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_texts_have_no_attention_probe() -> None:
    made = study(PROBE | {"dataset": "lee"})
    with pytest.raises(ConfigError, match="task 'seen' of type attention_probe cannot use text dataset 'lee'"):
        dataset_plans(made)


def test_it_owns_no_dataset_and_reads_that_of_its_images() -> None:
    made = study(PROBE)
    assert set(dataset_plans(made)) == {"lee", "glyphs"}
    assert looked_up(made.tasks[0]) == "glyphs"


def test_a_model_is_not_kept_to_it() -> None:
    models = [{"name": "seer", "source": {"path": "y"}, "loader": "vision", "datasets": ["seen"]}]
    with pytest.raises(ConfigError, match=r"'datasets' names 'seen'.*'glyphs'"):
        study(PROBE, models=models)


def test_its_scores_share_their_name_with_no_readout() -> None:
    readouts = [{"name": "mean_normed"}, {"name": "attention", "pool": "last"}]
    assert study(readouts=readouts).readouts[1].name == "attention"
    with pytest.raises(ConfigError, match="readout 'attention' has the name that the scores of task 'seen' go by; rename"):
        study(PROBE, readouts=readouts)
