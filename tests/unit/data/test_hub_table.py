"""Tables of hub datasets, over HTTP from a hub on a local port."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import close_session, constants
from layerwise.config import load_study
from layerwise.data import hub_table
from layerwise.errors import ConfigError, DataError

from tests.hub_server import Hub, closed_port, point_at, serve

WIKI = b"text,source\n= Heading =,a\n,b\nshort,c\nA sentence that is long enough.,d\nAnother one of the same kind.,e\n"
MORE = b"text,source\nA third sentence in a second file.,f\n"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with one dataset of two files; the cache of this process is empty."""
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda _seconds: None)
    with serve(Hub()) as served:
        served.add("org/wiki", {"a/one.csv": WIKI, "a/two.csv": MORE})
        point_at(monkeypatch, served.url)
        yield served
    close_session()


def commit(hub: Hub) -> str:
    return next(iter(hub.commits))[1]


def test_rows_of_all_files_are_read_and_cleaned(hub: Hub) -> None:
    source = hub_table.read("org/wiki", commit(hub), ["a/one.csv", "a/two.csv"], minimum_characters=10, drop_headings=True)
    assert source.samples["source"].tolist() == ["d", "e", "f"]
    assert source.samples["id"].tolist() == ["row-3", "row-4", "row-5"]  # of the file, so that a row is found again
    assert source.origin == f"org/wiki {commit(hub)}"
    first = hub_table.read("org/wiki", commit(hub), ["a/one.csv"], first=4, minimum_characters=10, drop_headings=True)
    assert first.samples["source"].tolist() == ["d"]
    assert hub_table.read("org/wiki", commit(hub), ["a/one.csv"]).samples["source"].tolist() == ["a", "c", "d", "e"]


def test_what_the_cache_holds_is_read_without_a_request(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub_table.read("org/wiki", commit(hub), ["a/two.csv"])
    asked = len(hub.asked)
    point_at(monkeypatch, f"http://127.0.0.1:{closed_port()}")
    assert len(hub_table.read("org/wiki", commit(hub), ["a/two.csv"]).samples) == 1
    assert len(hub.asked) == asked > 0
    with pytest.raises(DataError, match=r"a/one\.csv of datasets/org/wiki did not arrive"):
        hub_table.read("org/wiki", commit(hub), ["a/one.csv"])


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (401, "GatedRepo", "gated: accept its conditions at https://huggingface.co/datasets/org/wiki and set HF_TOKEN"),
        (403, "GatedRepo", "gated: accept its conditions at https://huggingface.co/datasets/org/wiki and set HF_TOKEN"),
        (
            401,
            "",
            "refused datasets/org/wiki .status 401.: .* see https://huggingface.co/datasets/org/wiki, and set HF_TOKEN",
        ),
        (
            403,
            "",
            "refused datasets/org/wiki .status 403.: .* see https://huggingface.co/datasets/org/wiki, and set HF_TOKEN",
        ),
        (404, "RepoNotFound", "was not found"),
        (404, "RevisionNotFound", "has no revision"),
    ],
)
def test_a_refusal_is_one_sentence(hub: Hub, status: int, code: str, message: str) -> None:
    hub.fail.append(("resolve", status, code))
    with pytest.raises(DataError, match=message) as caught:
        hub_table.read("org/wiki", commit(hub), ["a/one.csv"])
    assert "\n" not in str(caught.value)


def test_a_commit_and_a_file_that_the_dataset_does_not_have_are_named(hub: Hub) -> None:
    with pytest.raises(DataError, match=r"datasets/org/wiki has no revision '0000.*/datasets/org/wiki/commits/main lists"):
        hub_table.read("org/wiki", "0" * 40, ["a/one.csv"])
    with pytest.raises(DataError, match=r"datasets/org/wiki .*'a/six\.csv'"):
        hub_table.read("org/wiki", commit(hub), ["a/six.csv"])


def test_a_token_reaches_the_hub_and_no_message(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_markerMARKER")
    hub.fail.append(("resolve", 403, "GatedRepo"))
    with pytest.raises(DataError) as caught:
        hub_table.read("org/wiki", commit(hub), ["a/one.csv"])
    assert "MARKER" not in str(caught.value)
    assert any("MARKER" in headers.get("authorization", "") for _, _, headers in hub.asked)


def test_a_file_altered_in_the_cache_is_refused(hub: Hub) -> None:
    hub_table.read("org/wiki", commit(hub), ["a/two.csv"])
    blob = next(path for path in (Path(constants.HF_HUB_CACHE)).rglob("blobs/*") if path.is_file())
    assert blob.name == hashlib.sha1(b"blob %d\0" % len(MORE) + MORE).hexdigest()
    blob.write_bytes(MORE.replace(b"third", b"fifth"))
    with pytest.raises(DataError, match=r"two\.csv of dataset org/wiki is altered in the cache; delete .*blobs"):
        hub_table.read("org/wiki", commit(hub), ["a/two.csv"])


def test_nothing_left_and_a_wrong_column_are_said(hub: Hub) -> None:
    with pytest.raises(DataError, match=r"no row of a/one\.csv is left; lower 'minimum_characters'"):
        hub_table.read("org/wiki", commit(hub), ["a/one.csv"], minimum_characters=1000)
    with pytest.raises(DataError, match="has no column 'body'"):
        hub_table.read("org/wiki", commit(hub), ["a/one.csv"], text="body")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"revision": "main"}, "hub_table: revision"),
        ({"repository": "wiki"}, "is no repository of the hub|ORG/NAME"),
        ({"files": []}, "files"),
        ({"splits": "train"}, "splits"),
    ],
)
def test_the_entry_is_checked(changes: dict, message: str) -> None:
    entry = {"repository": "org/wiki", "revision": "0" * 40, "files": ["one.csv"]} | changes
    config = {
        "models": [{"name": "m", "source": {"path": "x"}}],
        "datasets": [{"name": "wiki", "source": {"hub_table": entry}}],
    }
    with pytest.raises(ConfigError, match=message):
        load_study(config)
