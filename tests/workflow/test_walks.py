"""The walks of docs/, as a reader types them: config blocks into the files they name, commands and Python in order."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, PreTrainedTokenizerFast

from tests.hub_server import Hub, serve
from tests.workflow import tiny
from tests.workflow.conftest import REPOSITORY, Workspace

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
_FILE = re.compile(r"`([\w./-]+\.(?:yaml|py))`")
TIMEOUT = 300


def blocks(walk: str) -> Iterator[tuple[str, str, str]]:
    """Yield (language, code, file that the text named last before it) of every block."""
    text = (REPOSITORY / "docs" / walk).read_text("utf-8")
    for block in _BLOCK.finditer(text):
        named = _FILE.findall(text[: block.start()])
        yield block.group(1), block.group(2), named[-1] if named else ""


def follow(workspace: Workspace, walk: str, **settings: str) -> str:
    """Do what a walk says; return what its commands printed. The first one that fails ends the test."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    cache = {"HF_HOME": str(workspace.path("cache")), "PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1"}
    own = str(workspace.path("workflow_scripts"))  # a reader's checkout is the one that is installed
    environment = {**os.environ, **cache, "PATH": path, "PYTHONPATH": own, **settings}
    said = ""
    for language, code, file in blocks(walk):
        if language == "yaml" or (language == "python" and file.startswith("workflow_scripts/") and code.startswith('"""')):
            workspace.path(file).write_text(code, "utf-8")
            continue
        commands = {"bash": code.splitlines(), "python": [f"python -c {shlex.quote(code)}"], "text": []}[language]
        for command in commands:
            done = subprocess.run(
                command, shell=True, cwd=workspace.folder, capture_output=True, text=True, env=environment, timeout=TIMEOUT
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"[-6000:]
            said += done.stdout + done.stderr
    return said


@pytest.fixture
def clone(workspace: Workspace) -> Workspace:
    """A workspace with the configuration of the repository, which a walk's file is laid over."""
    workspace.path("config.yaml").write_text((REPOSITORY / "config.yaml").read_text("utf-8"), "utf-8")
    return workspace


def save_neox(folder: Path, seed: int = 0, spread: float = 0.2) -> None:
    """Save a tiny GPT-NeoX with random weights and a tokenizer of bytes."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: i + 1 for i, letter in enumerate(alphabet)} | {"<|endoftext|>": 0}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    names = dict.fromkeys(("pad_token", "eos_token", "bos_token", "unk_token"), "<|endoftext|>")
    torch.manual_seed(seed)
    sizes = tiny.SIZES | {"vocab_size": 257}
    config = GPTNeoXConfig(**sizes, max_position_embeddings=512, initializer_range=spread, bos_token_id=0, eos_token_id=0)
    GPTNeoXForCausalLM(config).save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)


def scores(workspace: Workspace) -> pd.DataFrame:
    rows = pd.read_csv(workspace.path("results/tables/scores.csv"))
    return rows[rows["baseline"].isna()]


def walk_hub_model(clone: Workspace) -> None:
    save_neox(clone.path("published"))
    hub = Hub()
    commit = hub.add("EleutherAI/pythia-14m", clone.path("published"), "main")
    with serve(hub):
        said = follow(clone, "my-hub-model.md", HF_ENDPOINT=hub.url, HF_HUB_OFFLINE="0")
    manifest = json.loads(clone.path("results/models/pythia-14m/manifest.json").read_text("utf-8"))
    assert manifest["revision"] == commit
    found = scores(clone)
    assert set(found["task"]) == {"plain", "prompted"}
    assert set(found["readout"]) == {"mean_normed", "last_normed"}
    last = found[found["readout"] == "last_normed"].pivot_table(index="layer", columns="task", values="score")
    assert len(last) == 4
    assert (last["plain"] != last["prompted"]).all()
    with h5py.File(clone.path("results/activations/pythia-14m/prompted.h5")) as file:
        longer = file["n_tokens"][:]
    with h5py.File(clone.path("results/activations/pythia-14m/plain.h5")) as file:
        # a token is a byte here, and longer texts are cut at 256
        assert (longer == np.minimum(256, file["n_tokens"][:] + len('This text: "" means in one word:'))).all()
    assert re.search(r"^pythia-14m +prompted +\d/3", said, re.M)


def walk_checkpoint(clone: Workspace) -> None:
    for step, spread in ((100, 0.05), (200, 0.2)):
        save_neox(clone.path(f"runs/mine/step{step}"), spread=spread)
    follow(clone, "my-checkpoint.md")
    assert clone.path("results/figures/dynamics~mine.png").stat().st_size > 10_000
    table = pd.read_csv(clone.path("results/tables/training_dynamics.csv"))
    assert set(table["step"]) == {100, 200}
    assert np.allclose(table[table["step"] == 200]["stability"].dropna(), 1.0)
    assert table[table["step"] == 100]["stability"].min() < 0.99


def walk_csv(clone: Workspace) -> None:
    rng = np.random.default_rng(0)
    urgent = ("the server burns", "nothing works since this morning", "please call me now", "water runs out of it")
    calm = ("thank you for the quick answer", "a small question", "the colour is nice", "no hurry at all")
    rows = []
    for i in range(120):
        texts = urgent if i % 2 else calm
        body = f"{rng.choice(texts)}, room {rng.integers(100)}, {rng.choice(texts)}"
        rows.append({"body": body, "urgent": "yes" if i % 2 else "no", "customer": f"c{i % 12:02d}"})
    pd.DataFrame(rows).to_csv(clone.path("tickets.csv"), index=False)
    said = follow(clone, "my-csv.md")
    found = scores(clone)
    assert set(found["layer"]) == set(range(7))
    best = found[(found["readout"] == "mean_normed") & (found["protocol"] == "standardised")]["score"].max()
    assert best > 0.9
    assert re.search(r"^minilm-l6 +urgency +\d/6 +\d", said, re.M)
    picks = pd.read_csv(clone.path("results/tables/layer_selection.csv"))
    assert {"dataset_entropy", "curvature"} <= set(picks["metric"].dropna())


def walk_images(clone: Workspace) -> None:
    rng = np.random.default_rng(0)
    for label, shade in (("cat", (200, 60, 60)), ("dog", (60, 60, 200))):
        clone.path(f"photos/{label}").mkdir(parents=True)
        for i in range(32):
            noise = rng.integers(-40, 40, (48, 64, 3))
            picture = Image.fromarray(np.clip(np.array(shade) + noise, 0, 255).astype("uint8"))
            picture.save(clone.path(f"photos/{label}/{i}.png"))
    said = follow(clone, "my-images.md")
    assert set(scores(clone)["layer"]) == set(range(13))
    manifest = json.loads(clone.path("results/export/dinov2-s/manifest.json").read_text("utf-8"))
    assert f"{manifest['blocks']} of 12 blocks are left" in said
    assert re.search(r"^dinov2-s +classes +\d+/12", said, re.M)


def walk_metric(clone: Workspace) -> None:
    before = set(clone.path("workflow_scripts").rglob("*.py"))
    follow(clone, "my-metric.md")
    assert {path.name for path in set(clone.path("workflow_scripts").rglob("*.py")) - before} == {"participation_ratio.py"}
    record = json.loads(clone.path("results/metrics/minilm-l6/lee/participation_ratio.json").read_text("utf-8"))
    (found,) = (each for each in record["records"] if each["readout"] == "mean")
    for entry in found["layers"]:
        with h5py.File(clone.path("results/activations/minilm-l6/lee.h5")) as file:
            vectors = file[f"readout/mean/{entry['layer']:03d}"][:].astype(float)
        vectors -= vectors.mean(axis=0)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        eigenvalues = np.linalg.svd(vectors, compute_uv=False) ** 2
        assert entry["value"] == pytest.approx(eigenvalues.sum() ** 2 / np.square(eigenvalues).sum(), rel=1e-9)
        assert 0 < entry["normalized"] < 1
        assert entry["standard_error"] > 0
    assert found["null_value"] > entry["value"]
    report = clone.path("my-report.html").read_text("utf-8")
    assert "participation ratio, n = 50 samples" in report
    assert clone.pending("--configfile", "metric.yaml") == {}


WALKS: dict[str, Callable[[Workspace], None]] = {
    "my-hub-model": walk_hub_model,
    "my-checkpoint": walk_checkpoint,
    "my-csv": walk_csv,
    "my-images": walk_images,
    "my-metric": walk_metric,
}


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_does_what_it_says(walk: str, clone: Workspace) -> None:
    WALKS[walk](clone)


def test_every_walk_is_walked() -> None:
    assert {path.stem for path in (REPOSITORY / "docs").glob("my-*.md")} == set(WALKS)
