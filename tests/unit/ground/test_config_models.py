"""Sources of models in the config: the hub, adapters, and one entry for many checkpoints."""

from typing import Any

import pytest
from layerwise.config import Study, load_study
from layerwise.errors import ConfigError

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def study(*models: dict[str, Any]) -> dict[str, Any]:
    return {"models": list(models), "datasets": [{"name": "d", "source": {"table": {"path": "a.csv"}}}]}


def load(source: dict[str, Any], **more: Any) -> Study:
    return load_study(study({"name": "m", "source": source, **more}))


def refused(config: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_study(config)
    message = str(caught.value)
    assert message.startswith("config: ")
    assert sentence in message
    assert "\n" not in message


@pytest.mark.parametrize("revision", [COMMIT, "main", "v1.0", "step1000", "refs/pr/1", "feature/x_y-z", "a+b"])
def test_a_hub_source_passes_with_any_revision(revision: str) -> None:
    source = load({"hub": "org/name-1.5_b", "revision": revision}).models[0].source
    assert source.model_dump(exclude_none=True) == {"hub": "org/name-1.5_b", "revision": revision}
    assert load({"hub": "org/name"}).models[0].source.revision is None


NO_MODELS = ["name", "a/b/c", "../x", "org/..", "org/a..b", "org/a--b", "/org/name", "org/", "-x/name", "org/name.git"]
NO_MODELS += ["https://huggingface.co/org/name", "org/na me", "org/name\n", "örg/name", "org/" + "x" * 100, ""]


@pytest.mark.parametrize("hub", NO_MODELS)
def test_what_is_no_model_of_the_hub_is_refused(hub: str) -> None:
    refused(
        study({"name": "m", "source": {"hub": hub}}), f"{hub!r} is no repository of the hub; write ORG/NAME as in https://"
    )


@pytest.mark.parametrize(
    "revision",
    ["../x", "a/../b", "-x", "--flag", "/etc", "a b", "a\n", "", "a//b", "x/", ".hidden", "a;b", "$(x)", "x.lock"],
)
def test_what_is_no_revision_is_refused(revision: str) -> None:
    source = {"hub": "org/name", "revision": revision}
    refused(study({"name": "m", "source": source}), f"{revision!r} is no revision; write a commit of 40 hexadecimal digits")


SOURCES: dict[str, tuple[dict[str, Any], str]] = {
    "two kinds": ({"hub": "a/b", "path": "c"}, "write exactly one of 'path: FOLDER', 'hub: ORG/NAME', 'package: NAME' and"),
    "revision a number": ({"hub": "a/b", "revision": 1000}, "revision: Input should be a valid string (found 1000)"),
    "revision of a path": ({"path": "c", "revision": "main"}, "'revision' belongs to a hub source; of a 'path', name"),
    "file of the hub": ({"hub": "a/b", "file": "c.gguf"}, "'file' and 'folder' belong to a package source"),
    "adapters of a package": (
        {"package": "a", "file": "b", "adapters": [{"path": "c"}]},
        "'adapters' belong to a 'hub' or 'path' source",
    ),
    "adapter of nothing": ({"hub": "a/b", "adapters": [{}]}, "an adapter needs one of 'hub: ORG/NAME' and 'path: FOLDER'"),
    "adapter of both": ({"hub": "a/b", "adapters": [{"hub": "a/c", "path": "d"}]}, "an adapter needs one of"),
    "adapter path at a revision": (
        {"hub": "a/b", "adapters": [{"path": "d", "revision": "x"}]},
        "'revision' belongs to 'hub'",
    ),
    "adapter no hub": ({"hub": "a/b", "adapters": [{"hub": "c"}]}, "adapters: 0: hub: 'c' is no repository of the hub"),
    "adapter no list": ({"hub": "a/b", "adapters": {"hub": "c/d"}}, "adapters: Input should be a valid list"),
    "adapter key": ({"hub": "a/b", "adapters": [{"hubb": "c/d"}]}, "hubb is an unknown key; did you mean 'hub'?"),
}


@pytest.mark.parametrize("case", SOURCES)
def test_a_wrong_source_is_named_in_one_sentence(case: str) -> None:
    source, sentence = SOURCES[case]
    refused(study({"name": "m", "source": source}), sentence)


def test_adapters_keep_their_order() -> None:
    adapters = [{"hub": "org/mntp", "revision": COMMIT}, {"path": "folder"}, {"hub": "org/supervised"}]
    source = load({"hub": "org/base", "adapters": adapters}).models[0].source
    assert source.model_dump(exclude_none=True)["adapters"] == adapters


def test_one_entry_expands_to_its_checkpoints() -> None:
    entry = {"name": "pythia", "source": {"hub": "org/pythia"}, "revisions": ["step0", "step1000"], "max_tokens": 64}
    twin = {"name": "twin", "source": {"random": {"like": "pythia@step1000"}}}
    made = load_study(study(entry, {"name": "n", "source": {"path": "x"}}, twin))
    assert [model.name for model in made.models] == ["pythia@step0", "pythia@step1000", "n", "twin"]
    assert [model.source.revision for model in made.models[:2]] == ["step0", "step1000"]
    assert {model.max_tokens for model in made.models[:2]} == {64}
    assert made.models[0].revisions is None
    assert entry["revisions"] == ["step0", "step1000"]  # what Snakemake read stays as it was


def test_the_revision_is_written_into_a_path() -> None:
    made = load({"path": "/runs/{revision}/model-{revision}"}, revisions=["a", "b"])
    assert [model.source.path for model in made.models] == ["/runs/a/model-a", "/runs/b/model-b"]


REVISIONS: dict[str, tuple[dict[str, Any], Any, str]] = {
    "twice": ({"hub": "a/b"}, ["x", "x"], "models: 0 ('m'): revisions: 'x' occurs twice; write each once."),
    "one file": ({"hub": "a/b"}, ["x", "X"], "'m@X' and 'm@x' would share one file"),
    "both": ({"hub": "a/b", "revision": "main"}, ["x"], "write one of 'revision' and 'revisions'"),
    "no place": ({"path": "folder"}, ["x"], "the path 'folder' holds no '{revision}'; write it where the revision belongs"),
    "a package": ({"package": "p", "file": "f"}, ["x"], "only a 'hub' or 'path' source has revisions"),
    "untrained": ({"random": {"like": "n"}}, ["x"], "only a 'hub' or 'path' source has revisions"),
    "no name": ({"hub": "a/b"}, ["refs/pr/1"], "'m@refs/pr/1' is not a usable name; use letters, digits"),
    "no revision": ({"hub": "a/b"}, ["-x"], "'-x' is no revision; write a commit"),
    "out of the path": ({"path": "runs/{revision}"}, ["../../etc"], "'../../etc' is no revision"),
    "a number": ({"hub": "a/b"}, ["x", 1000], "revisions: 1: Input should be a valid string (found 1000)"),
    "empty": ({"hub": "a/b"}, [], "revisions: List should have at least 1 item"),
    "no list": ({"hub": "a/b"}, "main", "revisions: Input should be a valid list"),
}


@pytest.mark.parametrize("case", REVISIONS)
def test_wrong_revisions_are_named_in_one_sentence(case: str) -> None:
    source, revisions, sentence = REVISIONS[case]
    refused(study({"name": "m", "source": source, "revisions": revisions}), sentence)


def test_the_unexpanded_name_is_not_there() -> None:
    entry = {"name": "p", "source": {"hub": "a/b"}, "revisions": ["x"]}
    refused(study(entry, {"name": "t", "source": {"random": {"like": "p"}}}), "'p', which is not in the config; known: p@x")
