"""Transforms of tokens, traces and labels in the config: what fits and what is refused with a sentence."""

from typing import Any

import pytest
from layerwise.config import load_study
from layerwise.errors import ConfigError
from layerwise.plan import dataset_plans


def study(derive: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    entry = {"name": "d", "source": {"table": {"path": "a.csv"}}} | ({"derive": [{"name": "v", **derive}]} if derive else {})
    return {"models": [{"name": "m", "source": {"path": "folder"}}], "datasets": [entry]} | changes


def test_every_level_and_draw_is_a_condition_of_one_dataset() -> None:
    plans = dataset_plans(load_study(study({"transform": "repeat_tokens", "levels": [0, 0.5], "draws": 2})))
    assert plans["d~v"].conditions == [{"level": level, "draw": draw} for level in (0.0, 0.5) for draw in (0, 1)]
    assert plans["d~v"].views == 1
    assert plans["d~v"].collect == ("readouts", "tokens")
    assert plans["d"].conditions == []


def test_what_is_collected_can_be_said() -> None:
    plans = dataset_plans(load_study(study({"transform": "prefixes", "levels": [0.5], "collect": ["tokens"]})))
    assert plans["d~v"].collect == ("tokens",)


@pytest.mark.parametrize(
    ("derive", "words"),
    [
        ({"transform": "repeat_tokens"}, "needs 'levels', each of them once"),
        ({"transform": "repeat_tokens", "levels": [0.1, 0.1]}, "each of them once"),
        ({"transform": "repeat_tokens", "levels": [0.1, 1.5]}, "probabilities from 0 to 1; found 1.5"),
        ({"transform": "random_tokens", "levels": [-0.1]}, "probabilities from 0 to 1; found -0.1"),
        ({"transform": "random_tokens", "levels": [float("nan")]}, "levels"),
        ({"transform": "random_prompts", "levels": [64, 1]}, "whole numbers of tokens, 2 or more"),
        ({"transform": "random_prompts", "levels": [64.5]}, "whole numbers of tokens"),
        ({"transform": "prefixes", "levels": [0.5, 64]}, "shares of the text, above 0 up to 1, or all numbers of tokens"),
        ({"transform": "prefixes", "levels": [0]}, "shares of the text"),
        ({"transform": "prefixes", "levels": [0.5], "draws": 2}, "nothing is drawn"),
        ({"transform": "prefixes", "levels": [0.5], "views": 4}, "'views' and 'columns' do not belong"),
        ({"transform": "surface_noise", "levels": [0.5]}, "'levels' and 'draws' belong to repeat_tokens"),
    ],
)
def test_levels_that_mean_nothing_are_refused(derive: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        load_study(study(derive))
    assert str(caught.value).count("\n") == 0


def test_pictures_have_no_tokens() -> None:
    datasets = [{"name": "d", "source": {"digits": {}}, "derive": [{"name": "v", "transform": "prefixes", "levels": [0.5]}]}]
    with pytest.raises(ConfigError, match="transform 'prefixes' does not fit image dataset 'd'"):
        dataset_plans(load_study(study(datasets=datasets)))


def test_task_views_are_views() -> None:
    views = {"name": "views", "transform": "prefixes", "levels": [0.5]}
    with pytest.raises(ConfigError, match="'task_views'"):
        load_study(study(task_views=views))


def traces(**changes: Any) -> dict[str, Any]:
    whole = {"dataset": "d", "model": "m"} | changes
    return study(
        datasets=[{"name": "d", "source": {"table": {"path": "a.csv"}}}, {"name": "t", "source": {"traces": whole}}]
    )


def test_traces_are_a_text_dataset_with_a_parent() -> None:
    plan = dataset_plans(load_study(traces()))["t"]
    assert (plan.parent, plan.modality, plan.views) == ("d", "text", 1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dataset": "x"}, "'source: traces: dataset' names 'x'"),
        ({"model": "x"}, "'source: traces: model' names 'x'"),
        ({"dataset": "t"}, "t is drawn from t"),
        ({"prompt": "say"}, "'prompt' must hold {text} once"),
        ({"prompt": "{text}{text}"}, "'prompt' must hold {text} once"),
        ({"max_new_tokens": 0}, "max_new_tokens"),
    ],
)
def test_traces_that_cannot_be_written_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load_study(traces(**changes))


def test_pictures_are_not_continued() -> None:
    config = traces()
    config["datasets"][0] = {"name": "d", "source": {"digits": {}}}
    with pytest.raises(ConfigError, match="dataset 't' continues 'd', which holds no text"):
        dataset_plans(load_study(config))


def test_labels_are_words_or_numbers() -> None:
    models = [{"name": "m", "source": {"path": "f"}, "labels": {"size": "14M", "seed": 3}}]
    assert load_study(study(models=models)).models[0].labels == {"size": "14M", "seed": 3}
    models[0]["labels"] = {"a/b": 1}
    with pytest.raises(ConfigError, match="labels"):
        load_study(study(models=models))
