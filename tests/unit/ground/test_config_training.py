"""The ``train`` source: one entry for every checkpoint, a closed schema, and names of checkpoints."""

from typing import Any

import pytest
from layerwise import checkpoints
from layerwise.config import Study, load_study
from layerwise.config_training import OBJECTIVES, log_spaced, training_runs
from layerwise.errors import ConfigError
from layerwise.plan import dataset_plans

TEXT = {"name": "texts", "source": {"table": {"path": "a.csv"}}}
IMAGES = {"name": "pictures", "source": {"digits": {}}}


def config(train: Any, source: dict[str, Any] | None = None, **entry: Any) -> dict[str, Any]:
    made = {"name": "mini", "source": {"train": train, **(source or {})}, **entry}
    return {"models": [made], "datasets": [TEXT, IMAGES]}


def load(objective: str, dataset: str = "texts", **keys: Any) -> Study:
    return load_study(config({"objective": objective, "dataset": dataset, **keys}))


def needed(objective: str) -> dict[str, Any]:
    return {"supervised": {"label": "digit"}, "clip": {"caption": ["digit"]}}.get(objective, {})


def refused(made: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        study = load_study(made)
        training_runs(study.models, dataset_plans(study))
    message = str(caught.value)
    assert message.startswith("config: ")
    assert sentence in message
    assert "\n" not in message


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_expands_to_its_checkpoints(objective: str) -> None:
    modality, loader = OBJECTIVES[objective]
    made = load(objective, "texts" if modality == "text" else "pictures", steps=5, **needed(objective))
    assert [model.name for model in made.models] == [f"mini@step{step}" for step in (0, 1, 2, 4, 5)]
    assert {(model.loader, model.modality) for model in made.models} == {(loader, modality)}
    assert [model.source.step for model in made.models] == [0, 1, 2, 4, 5]
    runs = training_runs(made.models, dataset_plans(made))
    assert list(runs) == ["mini"]
    assert runs["mini"].checkpoints == [0, 1, 2, 4, 5]
    assert all(model.max_tokens == (48 if modality == "text" else 256) for model in made.models)


def test_keys_of_the_entry_are_kept() -> None:
    train = {"objective": "mae", "dataset": "pictures", "steps": 3, "checkpoints": [0, 3]}
    made = load_study(config(train, threads=2, datasets=["pictures"], loader="vision"))
    assert [(m.name, m.threads, m.datasets) for m in made.models] == [
        ("mini@step0", 2, ["pictures"]),
        ("mini@step3", 2, ["pictures"]),
    ]


@pytest.mark.parametrize(("steps", "expected"), [(1, [0, 1]), (2, [0, 1, 2]), (9, [0, 1, 2, 4, 8, 9])])
def test_checkpoints_are_log_spaced(steps: int, expected: list[int]) -> None:
    assert log_spaced(steps) == expected


CAUSAL = {"objective": "causal_lm", "dataset": "texts"}
WRONG: dict[str, tuple[Any, str]] = {
    "objective": (CAUSAL | {"objective": "diffusion"}, "objective: Input should be 'causal_lm', 'masked_lm'"),
    "no dataset": ({"objective": "causal_lm"}, "dataset is missing"),
    "typo": (CAUSAL | {"step": 3}, "step is an unknown key; did you mean 'steps'?"),
    "steps": (CAUSAL | {"steps": 0}, "steps: Input should be greater than or equal to 1 (found 0)"),
    "text steps": (CAUSAL | {"steps": "many"}, "steps: Input should be a valid integer (found 'many')"),
    "rate": (CAUSAL | {"learning_rate": float("nan")}, "learning_rate: Input should be"),
    "patch of texts": (CAUSAL | {"patch": 4}, "'patch' does not belong to causal_lm, but to supervised, mae, clip, aim"),
    "label of texts": (CAUSAL | {"label": "x"}, "'label' does not belong to causal_lm, but to supervised"),
    "heads of mamba": (CAUSAL | {"objective": "state_space", "heads": 2}, "'heads' does not belong to state_space"),
    "no label": ({"objective": "supervised", "dataset": "pictures"}, "objective supervised needs 'label', a column of"),
    "no caption": ({"objective": "clip", "dataset": "pictures"}, "objective clip needs 'caption', a list of columns"),
    "width": (CAUSAL | {"width": 72}, "'width: 72' is no multiple of 4 x 'heads: 4'"),
    "cut patch": ({"objective": "mae", "dataset": "pictures", "patch": 5}, "'image_size: 32' is no multiple"),
    "one patch": ({"objective": "mae", "dataset": "pictures", "patch": 32}, "twice or more, of 'patch: 32'"),
    "no start": (CAUSAL | {"steps": 4, "checkpoints": [1, 4]}, "'checkpoints' must rise from 0 to 'steps' (4), both"),
    "no end": (CAUSAL | {"steps": 4, "checkpoints": [0, 3]}, "'checkpoints' must rise from 0 to 'steps' (4), both"),
    "falling": (CAUSAL | {"steps": 4, "checkpoints": [0, 3, 2, 4]}, "'checkpoints' must rise"),
    "no checkpoints": (CAUSAL | {"checkpoints": []}, "'checkpoints' must rise"),
    "no mapping": ("causal_lm", "train: Input should be a valid dictionary"),
    "dataset": (CAUSAL | {"dataset": "text"}, "dataset names 'text', which is not in the config; known: texts, pictures."),
    "modality": (
        CAUSAL | {"dataset": "pictures"},
        "model 'mini': source: train: dataset names 'pictures', which holds image; objective causal_lm learns from text.",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_entry_is_named_in_one_sentence(case: str) -> None:
    train, sentence = WRONG[case]
    refused(config(train), sentence)


def test_what_belongs_elsewhere_is_refused() -> None:
    refused(config(CAUSAL, {"step": 3}), "step is set for each checkpoint; write 'checkpoints' inside 'train'")
    refused(config(CAUSAL, {"path": "x"}), "or 'train: {objective: NAME, dataset: NAME}'")
    refused(config(CAUSAL, loader="timm"), "loader: a model trained as causal_lm is read by 'text'; leave it out")
    refused(config(CAUSAL, revisions=["a"]), "only a 'hub' or 'path' source has revisions")
    alone = {"models": [{"name": "m", "source": {"path": "x", "step": 3}}], "datasets": [TEXT]}
    refused(alone, "'step' is set for each checkpoint of a 'train' source")


def test_two_runs_of_one_name_are_refused() -> None:
    made = config(CAUSAL)
    made["models"] *= 2
    refused(made, "'mini@step0' and 'mini@step0' would share one file")


def test_the_name_of_a_model_says_its_run_and_step() -> None:
    assert checkpoints.checkpoint("pythia-410m@step1000") == ("pythia-410m", 1000)
    assert checkpoints.checkpoint(checkpoints.checkpoint_name("a@step1", 2)) == ("a@step1", 2)
    for name in ("pythia", "pythia@main", "@step1", "a@step", "a@step-1", "a@step1x"):
        assert checkpoints.checkpoint(name) is None
    with pytest.raises(ConfigError, match=r"NAME@stepN"):
        checkpoints.run_of("pythia")


def test_runs_have_two_checkpoints_or_more_and_a_last_one() -> None:
    names = ["a@step8", "b@step1", "a@step10", "c", "a@step0"]
    assert checkpoints.runs(names) == {"a": {0: "a@step0", 8: "a@step8", 10: "a@step10"}}
    assert checkpoints.finals(names) == dict.fromkeys(["a@step0", "a@step8", "a@step10"], "a@step10")
    assert checkpoints.earlier(names) == {"a@step0", "a@step8"}
