"""A configuration is checked before any job: every wrong entry gets one sentence that names it."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from layerwise.config import DEFAULT_READOUTS, load_study
from layerwise.errors import ConfigError

ROOT = Path(__file__).parents[3]
SMALL: dict[str, Any] = {
    "models": [{"name": "m", "source": {"path": "folder"}}],
    "datasets": [{"name": "d", "source": {"table": {"path": "a.csv"}}}],
}


def study(**changes: Any) -> dict[str, Any]:
    return copy.deepcopy(SMALL) | changes


def model(**changes: Any) -> dict[str, Any]:
    return study(models=[SMALL["models"][0] | changes])


def dataset(**changes: Any) -> dict[str, Any]:
    return study(datasets=[SMALL["datasets"][0] | changes])


def task(**changes: Any) -> dict[str, Any]:
    whole = {"name": "t", "type": "classification", "dataset": "d", "label": "l", "train": 50} | changes
    return study(tasks=[{key: value for key, value in whole.items() if value is not ...}])


def derived(**changes: Any) -> dict[str, Any]:
    return dataset(derive=[{"name": "v", "transform": "surface_noise"} | changes])


def test_the_smallest_study_has_its_defaults() -> None:
    made = load_study(study())
    assert made.readouts == DEFAULT_READOUTS
    assert [r.name for r in made.readouts] == ["mean", "mean_normed", "mean_skip_first", "weighted_mean"]
    assert (made.models[0].dtype, made.models[0].max_tokens, made.seed, made.storage) == ("float32", 256, 0, "float32")
    assert made.recipes == ["raw", "centre_unit", "centre_unit_skip_first"]
    assert made.datasets[0].source.kind == "table"


def test_the_default_config_is_a_study() -> None:
    made = load_study(yaml.safe_load((ROOT / "config.yaml").read_text("utf-8")))
    assert len(made.models) >= 2
    assert made.headline_readout in [r.name for r in made.readouts]


def test_metric_parameters_are_kept_as_written() -> None:
    made = load_study(study(metrics=[{"name": "dime", "variants": ["paper"], "permutations": 3}]))
    assert made.metrics[0].parameters == {"variants": ["paper"], "permutations": 3}


BAD_NAMES = [
    "../../x", "/etc/passwd", "a/b/c", "a\\b", "--flag", ".git", "", "x" * 101, "x" * 300, "a..b",
    "mod\u00e9le", "\uff4dodel", "\u0430",
    "con", "NUL", "com1.txt", "a b", "a~b", "a;b", "$(x)", "`x`", "a\n", "a'b", 'a"b', "a\x00b", "~", "@a", "a:b", "a*",
]  # fmt: skip


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize("kind", ["models", "datasets", "tasks", "readouts", "metrics"])
def test_a_name_that_is_no_file_name_is_refused(kind: str, name: str) -> None:
    entries = {
        "models": SMALL["models"][0] | {"name": name},
        "datasets": SMALL["datasets"][0] | {"name": name},
        "tasks": {"name": name, "type": "clustering", "dataset": "d", "label": "l"},
        "readouts": {"name": name},
        "metrics": {"name": name},
    }
    kept = SMALL["datasets"] if kind == "datasets" else []
    with pytest.raises(ConfigError, match=rf"^config: {kind}: .* is not a usable name; use letters, digits") as caught:
        load_study(study(**{kind: [*kept, entries[kind]]}))
    assert repr(name) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a", "9", "Pythia-410m@step1000", "a.b_c-d", "x" * 100, "console", "nullable"])
def test_good_names_pass(name: str) -> None:
    assert load_study(model(name=name)).models[0].name == name


BAD = {
    "unknown key": (study(modles=[]), "modles is an unknown key; did you mean 'models'?"),
    "unknown key inside": (model(dtyp="float32"), "models: 0 ('m'): dtyp is an unknown key; did you mean 'dtype'?"),
    "unknown key deep inside": (
        dataset(source={"table": {"path": "a", "txt": "b"}}),
        "datasets: 0 ('d'): source: table: txt is an unknown key; did you mean 'text'?",
    ),
    "unknown key of a derivation": (derived(view=3), "derive: 0 ('v'): view is an unknown key; did you mean 'views'?"),
    "unknown key like no other": (model(qqqq=1), "qqqq is an unknown key; known keys: name, source, loader, "),
    "no models": (study(models=[]), "models: List should have at least 1 item"),
    "models absent": ({"datasets": []}, "models is missing."),
    "models a mapping": (study(models={"name": "m"}), "models ('m'): Input should be a valid list (found {'name': 'm'})"),
    "a list": ([], "Input should be a valid dictionary"),
    "name absent": (study(models=[{"source": {"path": "x"}}]), "models: 0: name is missing."),
    "name a number": (model(name=5), "name: Input should be a valid string (found 5)"),
    "name a truth": (model(name=True), "name: Input should be a valid string (found True)"),
    "two sources": (
        model(source={"path": "a", "package": "b"}),
        "write exactly one of 'path: FOLDER', 'hub: ORG/NAME', 'package: NAME' and 'random: {like: MODEL, seed: 0}'",
    ),
    "no source": (
        model(source={}),
        "write exactly one of 'path: FOLDER', 'hub: ORG/NAME', 'package: NAME' and 'random: {like: MODEL, seed: 0}'",
    ),
    "empty path": (model(source={"path": ""}), "source: path: String should have at least 1 character"),
    "path with a file": (model(source={"path": "a", "file": "b.gguf"}), "'file' and 'folder' belong to a package source"),
    "package alone": (model(source={"package": "b"}), "a package source needs one of 'file: PATH' and 'folder: PATH'"),
    "package with both": (model(source={"package": "b", "file": "c", "folder": "d"}), "a package source needs one of"),
    "dtype": (model(dtype="float8"), "dtype: Input should be 'float32', 'bfloat16' or 'float16' (found 'float8')"),
    "device": (model(device="cuda; rm -rf"), "device: String should match pattern"),
    "tokens 1": (model(max_tokens=1), "max_tokens: Input should be greater than or equal to 2 (found 1)"),
    "tokens in words": (model(max_tokens="256"), "max_tokens: Input should be a valid integer (found '256')"),
    "tokens 1e3": (model(max_tokens=1e3), "max_tokens: Input should be a valid integer (found 1000.0)"),
    "threads yes": (model(threads=True), "threads: Input should be a valid integer (found True)"),
    "seed negative": (study(seed=-1), "seed: Input should be greater than or equal to 0 (found -1)"),
    "seed too large": (study(seed=2**32), "seed: Input should be less than 4294967296"),
    "seed of a sample": (dataset(sample={"n": 5, "seed": -1}), "sample: seed: Input should be greater than or equal to 0"),
    "sample of none": (dataset(sample={"n": 0}), "sample: n: Input should be greater than or equal to 1 (found 0)"),
    "balance no": (dataset(sample={"n": 5, "balance": False}), "balance: Input should be a valid string (found False)"),
    "two kinds": (
        dataset(source={"lee": {}, "table": {"path": "a"}}),
        "write exactly one of table, hub_table, bible, lee, reviews",
    ),
    "no kind": (
        dataset(source={"lee": None}),
        "write exactly one of table, hub_table, bible, lee, reviews, digits, glyphs, image_folder, traces, dataset; found",
    ),
    "digest": (dataset(source={"reviews": {"archive": "a", "sha256": "xyz"}}), "sha256: String should match pattern"),
    "tap": (
        dataset(taps=["mlps"]),
        "taps: 0: Input should be 'residual', 'attention_norm', 'attention', 'attention_residual' ",
    ),
    "collect": (dataset(collect=["pixels"]), "collect: 0: Input should be 'readouts' or 'tokens' (found 'pixels')"),
    "unknown dataset": (
        dataset(source={"dataset": "e"}),
        "'source: dataset' names 'e', which is not in the config; known: d",
    ),
    "its own origin": (dataset(source={"dataset": "d"}), "datasets: d is drawn from d; one of them needs a source"),
    "unknown metric of a dataset": (
        dataset(metrics=["dime"]),
        "'metrics' names 'dime', which is not in the config; known: none",
    ),
    "unknown metric of a view": (derived(metrics=["dime"]), "dataset 'd': 'metrics' names 'dime', which is not in"),
    "unknown metric of tasks": (study(task_metrics=["dime"]), "'task_metrics' names 'dime', which is not in the config"),
    "unknown dataset of a task": (task(dataset="e"), "task 't': 'dataset' names 'e', which is not in the config; known: d"),
    "unknown headline": (
        study(headline_readout="last"),
        "'headline_readout' names 'last', which is not in the config; known: mean,",
    ),
    "transform": (
        derived(transform="translate"),
        "transform: Input should be 'surface_noise', 'columns', 'simclr', 'repeat_tokens'",
    ),
    "one view": (derived(views=1), "views: Input should be greater than or equal to 2"),
    "too many views": (derived(views=65), "views: Input should be less than or equal to 64"),
    "name of a view": (derived(name="a/b"), "name: String should match pattern"),
    "type": (task(type="ranking"), "type: Input should be 'classification', 'clustering', "),
    "no label": (task(label=...), "a classification task needs 'label'"),
    "no label, no train": (task(label=..., train=...), "a classification task needs 'label' and 'train'"),
    "pairs of another type": (task(type="sts", pairs="next"), "a sts task takes 'pairs: scored'"),
    "scored pairs to classify": (
        task(type="pair_classification", pairs="scored", group="g"),
        "takes 'pairs: next' or 'pairs: same'",
    ),
    "same pairs of no label": (
        task(type="pair_classification", pairs="same", group="g", label=...),
        "'pairs: same' needs 'label'",
    ),
    "pairs to cluster": (task(type="clustering", pairs="next"), "a clustering task takes no pairs"),
    "one fold": (task(folds=1), "folds: Input should be greater than or equal to 2"),
    "readouts": (
        study(readouts=[{"name": "a", "pool": "max"}]),
        "pool: Input should be 'mean', 'weighted_mean', 'last' or 'first'",
    ),
    "recipes": (study(recipes=["centred"]), "recipes: 0: Input should be 'raw', 'centre_unit'"),
    "no recipes": (study(recipes=[]), "recipes: List should have at least 1 item"),
    "storage": (study(storage="float64"), "storage: Input should be 'float32' or 'float16'"),
    "a task named like a dataset": (task(name="D"), "'d' names a dataset and a task, which share one folder; rename one"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_entry_is_named_in_one_sentence(case: str) -> None:
    config, sentence = BAD[case]
    with pytest.raises(ConfigError) as caught:
        load_study(config)
    message = str(caught.value)
    assert message.startswith("config: ")
    assert sentence in message
    assert "\n" not in message
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("kind", ["models", "datasets", "readouts"])
@pytest.mark.parametrize("names", [("a", "a"), ("a", "A"), ("straße", "x"), ("x1", "X1")])
def test_two_names_of_one_file_are_refused(kind: str, names: tuple[str, str]) -> None:
    entry = {"models": SMALL["models"][0], "datasets": SMALL["datasets"][0], "readouts": {}}[kind]
    with pytest.raises(ConfigError, match=r"would share one file; rename one|is not a usable name"):
        load_study(study(**{kind: [entry | {"name": name} for name in names]}))


def test_a_ring_of_datasets_is_refused() -> None:
    ring = [{"name": a, "source": {"dataset": b}} for a, b in ("ab", "bc", "ca")]
    with pytest.raises(ConfigError, match="a is drawn from b is drawn from c is drawn from a"):
        load_study(study(datasets=ring))
    chain = [*ring[:2], {"name": "c", "source": {"lee": {}}}]
    assert len(load_study(study(datasets=chain)).datasets) == 3


def test_the_number_of_further_problems_is_said() -> None:
    with pytest.raises(ConfigError, match=r"\(2 further problems\)"):
        load_study(study(models=[{"name": "m", "source": {"path": "x"}, "a1": 1, "b2": 2, "c3": 3}]))


def test_a_value_larger_than_memory_is_not_printed() -> None:
    bomb: list = ["x"] * 9
    for _ in range(12):
        bomb = [bomb] * 9  # 9^13 strings, as nine anchors in YAML make them
    with pytest.raises(ConfigError, match="title: Input should be a valid string") as caught:
        load_study(study(title=bomb))
    assert len(str(caught.value)) < 400


def test_shell_characters_in_values_are_values() -> None:
    odd = "; $(touch x) ` \" ' \n"
    assert load_study(model(source={"path": odd})).models[0].source.path == odd


def test_the_digest_of_a_table_follows_its_content(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    made = load_study(dataset(source={"table": {"path": str(file)}})).datasets[0].source
    assert made.file_digest == "absent"
    file.write_text("text\nx\n")
    first = made.file_digest
    file.write_text("text\ny\n")
    assert len({first, made.file_digest, "absent"}) == 3
    assert load_study(dataset(source={"lee": {}})).datasets[0].source.file_digest is None
