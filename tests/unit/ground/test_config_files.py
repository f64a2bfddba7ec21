"""Config files: plain YAML, each key once, no code."""

from pathlib import Path

import pytest
from layerwise.config_reading import check_files
from layerwise.errors import ConfigError

ROOT = Path(__file__).parents[3]


@pytest.fixture
def config(tmp_path: Path):
    def write(content: str | bytes) -> list[Path]:
        path = tmp_path / "config.yaml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return [path]

    return write


def test_the_shipped_files_pass() -> None:
    files = [ROOT / "config.yaml", *(ROOT / "configs").glob("*.yaml")]
    check_files(files)


def test_anchors_and_merges_pass(config) -> None:
    """Defaults by anchor are everyday YAML, and a key that overrides a merged one does not occur twice."""
    check_files(
        config("base: &base {dtype: float32, threads: 1}\nmodels:\n  - {<<: *base, name: a, threads: 2}\n  - *base\n")
    )


def test_an_anchor_bomb_is_read_in_a_moment(config) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"] + [
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)
    ]
    check_files(config("\n".join(lines)))


CANARY = "!!python/object/apply:os.system ['touch canary']"
BAD = {
    "yte": ("__use_yte__: true\nmodels: []\n", "uses YTE ('__use_yte__'), which runs code; write plain YAML instead."),
    "yte in quotes": ('"__use_yte__": true\n', "uses YTE"),
    "key twice": ("seed: 0\nmodels: []\nseed: 1\n", "key 'seed' occurs twice, line 1 and below"),
    "key twice inside": ("models:\n  - name: a\n    dtype: x\n    name: b\n", "key 'name' occurs twice, line 2 and below"),
    "key twice in braces": ("a: {b: 1, b: 1}\n", "key 'b' occurs twice"),
    "key twice, two types": ("1: a\ntrue: b\n", "key True occurs twice"),
    "object": (f"models: {CANARY}\n", "is not plain YAML"),
    "object as a key": (f"? {CANARY}\n: 1\n", "is not plain YAML"),
    "tuple": ("models: !!python/tuple [a]\n", "is not plain YAML"),
    "tab": ("models:\n\t- name: a\n", "is not plain YAML"),
    "two documents": ("a: 1\n---\nb: 2\n", "is not plain YAML"),
    "half": ("models: [{name: a\n", "is not plain YAML"),
    "unknown anchor": ("models: *nothing\n", "is not plain YAML"),
    "nul": ("models: \x00\n", "is not plain YAML"),
    "list as a key": ("? [a, b]\n: 1\n", "is not plain YAML"),
    "latin": (b"title: caf\xe9\n", "is not plain YAML"),
}


@pytest.mark.parametrize("case", BAD)
def test_anything_else_is_refused_in_one_sentence(
    config, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, sentence = BAD[case]
    monkeypatch.chdir(tmp_path)
    paths = config(content)
    with pytest.raises(ConfigError) as caught:
        check_files(paths)
    assert str(caught.value).startswith(f"config: {paths[0]} ")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "canary").exists()
