"""The metrics, their facts, and the config's parameters."""

import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from layerwise.errors import ConfigError
from layerwise.metrics import registry
from layerwise.metrics.cases import plan
from layerwise.metrics.recipes import RECIPES, check_recipe, sizes
from layerwise.metrics.registry import METRICS, load_metric
from layerwise.metrics.spec import Case

POOLED = ("summarise", "evaluate")
TOKENS = ("sample_values", "sample_ceiling", "sample_null")


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_its_facts_and_hooks(name):
    module = load_metric(name)
    spec = module.SPEC
    assert spec.name == name
    assert callable(getattr(module, name))
    assert spec.variants[0] == "paper"
    assert set(spec.needs) <= {"pooled", "views", "tokens"}
    hooks = (POOLED if {"pooled", "views"} & set(spec.needs) else ()) + (TOKENS if "tokens" in spec.needs else ())
    assert all(callable(getattr(module, hook)) for hook in hooks)
    assert spec.minimum_views == (2 if "views" in spec.needs else 1)
    assert plan(spec, {}).cases


def test_the_study_picks_the_end_it_published():
    ends = {name: load_metric(name).SPEC.directions()["paper"]["study"] for name in METRICS}
    assert load_metric("curvature").SPEC.directions()["released"]["study"] == "max"  # on the absolute cosine
    unpicked = {"effective_rank", "sink_norm_ratio", "sink_variance_share", "top_eigenvalue_share", "anisotropy"}
    assert {ends.pop(name) for name in (*unpicked, "intrinsic_dimension")} == {None}
    assert set(ends.values()) == {"min"}


def test_unknown_names_get_a_suggestion():
    with pytest.raises(ConfigError, match=r"did you mean dime.*dataset_entropy, dime"):
        load_metric("DIEM")
    with pytest.raises(ConfigError, match="Known metrics"):
        load_metric("../../etc/passwd")


def test_cases_are_variants_times_values():
    spec = load_metric("dataset_entropy").SPEC
    made = plan(spec, {"name": "dataset_entropy", "variants": ["paper", "released"], "alpha": [1, 2.0]})
    assert made.cases == tuple(Case(v, {"alpha": a}) for v in ("paper", "released") for a in (1.0, 2.0))
    assert (made.null_draws, made.subsamples) == (20, 10)
    assert plan(spec, {"variants": "released", "alpha": 0.5}).cases == (Case("released", {"alpha": 0.5}),)


def test_the_two_ridges_of_lidar_are_alternatives():
    spec = load_metric("lidar").SPEC
    assert [case.parameters for case in plan(spec, {}).cases] == [{"delta": 1e-4}, {"delta_relative": 1e-2}]
    only = plan(spec, {"delta": [1e-4, 1e-3], "delta_relative": None})
    assert [case.parameters for case in only.cases] == [{"delta": 1e-4}, {"delta": 1e-3}]


@pytest.mark.parametrize(
    ("metric", "parameters", "message"),
    [
        (
            "dime",
            {"permutation": 10},
            "permutation.*allowed are variants, null_draws, subsamples, max_samples, permutations",
        ),
        ("dime", {"permutations": 0}, "permutations"),
        ("dime", {"permutations": 2.5}, "permutations"),
        ("dime", {"permutations": True}, "permutations"),
        ("dime", {"variants": ["paper", "relased"]}, "relased.*paper, released"),
        ("dime", {"variants": []}, "nothing to compute"),
        ("prompt_entropy", {"alpha": -1}, "alpha"),
        ("prompt_entropy", {"alpha": math.nan}, "alpha"),
        ("prompt_entropy", {"alpha": "1e-4"}, "alpha"),
        ("prompt_entropy", {"alpha": []}, "nothing to compute"),
        ("infonce", {"temperature": 0}, "temperature"),
        ("lidar", {"delta": None, "delta_relative": None}, "nothing to compute"),
        ("curvature", {"null_draws": -1}, "null_draws"),
        ("curvature", {"alpha": 1.0}, "allowed"),
        ("effective_rank", {"variants": ["released"]}, "paper"),
    ],
)
def test_bad_parameters_are_refused_with_what_is_allowed(metric, parameters, message):
    with pytest.raises(ConfigError, match=message):
        plan(load_metric(metric).SPEC, parameters)


def test_recipes():
    assert sizes("raw", [1, 2, 9]).tolist() == [1, 2, 9]
    assert sizes("unit_skip_first", [0, 1, 2, 9]).tolist() == [0, 1, 1, 8]  # a lone token stays
    for recipe in RECIPES:
        check_recipe(recipe)
    with pytest.raises(ConfigError, match="centre_unit_skip_first"):
        check_recipe("center_unit")


def test_a_metric_is_a_file_with_facts_and_nothing_else_is(tmp_path):
    package = Path(registry.__file__).parent
    files = {file.stem for file in package.glob("*.py") if re.search(r"^SPEC", file.read_text("utf-8"), re.M)}
    assert set(METRICS) == files
    assert not {"registry", "spec", "nulls", "pooled_curves", "linear_cka"} & set(METRICS)
    shutil.copytree(package.parent, tmp_path / "layerwise", ignore=shutil.ignore_patterns("__pycache__"))
    wrong = (package / "anisotropy.py").read_text("utf-8")
    (tmp_path / "layerwise/metrics/mine.py").write_text(wrong, "utf-8")
    code = "from layerwise.metrics.registry import load_metric; load_metric('mine')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "ConfigError: metric 'mine': SPEC of layerwise/metrics/mine.py has the name 'anisotropy'" in done.stderr
