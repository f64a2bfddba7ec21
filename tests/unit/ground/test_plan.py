"""The plan: which datasets a study makes, which metrics fit where, and why the others are absent."""

import dataclasses
from typing import Any

import pytest
from layerwise.config import Study, load_study
from layerwise.errors import ConfigError
from layerwise.plan import DatasetPlan, dataset_plans, metric_cells


@dataclasses.dataclass(frozen=True)
class Needs:
    """The part of a metric's SPEC that the plan reads."""

    needs: tuple[str, ...]
    minimum_views: int = 1
    token_order: bool = False


SPECS = {
    "tokens": Needs(("tokens",)),
    "pooled": Needs(("pooled",)),
    "both": Needs(("pooled", "tokens")),
    "two": Needs(("views",), 2),
    "many": Needs(("views",), 8),
}


def study(**changes: Any) -> Study:
    datasets = [
        {"name": "pool", "source": {"lee": {}}, "collect": []},
        {
            "name": "verses",
            "source": {"dataset": "pool"},
            "derive": [
                {"name": "views", "transform": "surface_noise", "views": 8},
                {"name": "pair", "transform": "columns", "columns": ["text", "other"], "metrics": ["two"]},
            ],
        },
    ]
    tasks = [{"name": "genre", "type": "clustering", "dataset": "pool", "label": "l"}]
    base = {"models": [{"name": "m", "source": {"path": "x"}}], "datasets": datasets, "tasks": tasks}
    return load_study(base | {"metrics": [{"name": name} for name in SPECS]} | changes)


def cells(made: Study) -> tuple[set[tuple[str, str]], dict[tuple[str, str], str]]:
    pairs, absent = metric_cells(made, dataset_plans(made), SPECS)
    assert len(pairs) == len(set(pairs))
    return set(pairs), {(cell.dataset, cell.metric): cell.reason for cell in absent}


def test_every_dataset_is_planned_with_where_it_comes_from() -> None:
    views = {"name": "views", "transform": "surface_noise", "views": 2}
    plans = dataset_plans(study(task_metrics=["pooled"], task_views=views))
    assert {name: (plan.parent, plan.task, plan.views, plan.collect) for name, plan in plans.items()} == {
        "pool": (None, "", 1, ()),
        "verses": ("pool", "", 1, ("readouts", "tokens")),
        "verses~views": ("verses", "", 8, ("readouts",)),
        "verses~pair": ("verses", "", 2, ("readouts",)),
        "genre": (None, "genre", 1, ("readouts",)),
        "genre~sample": ("genre", "genre", 1, ("readouts", "tokens")),
        "genre~sample~views": ("genre~sample", "genre", 2, ("readouts",)),
    }
    assert all(isinstance(plan, DatasetPlan) and plan.name == name for name, plan in plans.items())


def test_taps_are_read_where_they_are_asked_for_and_nowhere_else() -> None:
    """In the order of the block, the residual stream first; what tasks look up and what is derived has it alone."""
    given = study().model_dump()
    given["datasets"][1]["taps"] = ["mlp", "attention", "mlp"]
    given["datasets"][1]["derive"][0]["taps"] = ["attention"]
    plans = dataset_plans(load_study(given))
    taps = {name: plan.taps for name, plan in plans.items() if plan.taps != ["residual"]}
    assert taps == {"verses": ["residual", "attention", "mlp"], "verses~views": ["residual", "attention"]}


def test_a_task_without_metrics_or_without_a_sample_makes_one_dataset() -> None:
    tasks = [{"name": "genre", "type": "clustering", "dataset": "pool", "label": "l", "sample": 0}]
    assert "genre~sample" not in dataset_plans(study())
    assert "genre~sample" not in dataset_plans(study(tasks=tasks, task_metrics=["pooled"]))


def test_metrics_go_where_their_needs_are_met() -> None:
    found, absent = cells(study())
    assert found == {
        *(("verses", metric) for metric in ("tokens", "pooled", "both")),
        *(("verses~views", metric) for metric in ("two", "many")),
        ("verses~pair", "two"),
    }
    assert absent == {}


def test_a_metric_that_nothing_can_serve_is_absent_with_its_reason() -> None:
    alone = [{"name": "lone", "source": {"lee": {}}, "collect": ["readouts"]}]
    found, absent = cells(study(datasets=alone, tasks=[]))
    assert found == {("lone", "pooled"), ("lone", "both")}
    assert absent == {
        ("lone", "tokens"): "dataset 'lone' collects readouts, tokens needs tokens",
        ("lone", "two"): "dataset 'lone' has 1 view, two needs 2",
        ("lone", "many"): "dataset 'lone' has 1 view, many needs 8",
    }


def test_a_metric_asked_for_in_vain_is_absent_with_its_reason() -> None:
    asked = [
        {"name": "silent", "source": {"lee": {}}, "collect": [], "metrics": ["pooled"]},
        {
            "name": "few",
            "source": {"lee": {}},
            "metrics": ["many"],
            "derive": [{"name": "v", "transform": "surface_noise", "metrics": ["many"]}],
        },
    ]
    found, absent = cells(study(datasets=asked, tasks=[]))
    assert found == set()
    assert absent == {
        ("silent", "pooled"): "nothing is collected on dataset 'silent'",
        ("few", "many"): "dataset 'few' has 1 view, many needs 8",
        ("few~v", "many"): "dataset 'few~v' has 2 view, many needs 8",
    }


def test_task_metrics_are_computed_on_the_tasks_own_texts() -> None:
    views = {"name": "views", "transform": "surface_noise", "views": 2}
    found, absent = cells(study(task_metrics=["tokens", "two", "many"], task_views=views))
    assert {cell for cell in found if cell[0].startswith("genre")} == {
        ("genre~sample", "tokens"),
        ("genre~sample~views", "two"),
    }
    assert absent[("genre~sample~views", "many")] == "dataset 'genre~sample~views' has 2 view, many needs 8"
    assert not [cell for cell in (*found, *absent) if cell[0] == "genre"]  # its vectors are for scores


def test_absent_cells_name_their_task() -> None:
    made = study(task_metrics=["many"])
    absent = metric_cells(made, dataset_plans(made), SPECS)[1]
    assert [(cell.dataset, cell.task) for cell in absent if cell.metric == "many" and cell.task] == [
        ("genre~sample", "genre")
    ]


@pytest.mark.parametrize("second", ["views", "Views"])
def test_two_derivations_of_one_file_are_refused(second: str) -> None:
    derive = [{"name": name, "transform": "surface_noise"} for name in ("views", second)]
    made = study(datasets=[{"name": "pool", "source": {"lee": {}}, "derive": derive}])
    with pytest.raises(
        ConfigError, match=f"config: two entries make the dataset 'pool~{second}'; rename one 'derive' entry"
    ):
        dataset_plans(made)


def test_the_headline_dataset_must_be_one() -> None:
    for known in ("", "verses", "verses~views", "genre"):
        dataset_plans(study(headline_dataset=known))
    with pytest.raises(ConfigError, match="'headline_dataset' names 'verse', no dataset; known: pool, verses, verses~views"):
        dataset_plans(study(headline_dataset="verse"))
