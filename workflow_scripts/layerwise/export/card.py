"""README.md of an exported folder: what it is, how good, how fast, under which licence, and how to use it."""

import json
import re
from typing import Any

from layerwise.export.form import Form

_TAGS = {"sentence-transformers": "sentence-similarity", "transformers": "image-feature-extraction"}
_TAGS |= {"timm": "image-feature-extraction"}


def card(facts: dict[str, Any], form: Form, library: str, code: list[str], note: str) -> str:
    """Return the card in Markdown.

    Args:
        facts: the manifest of the export.
        form: what was kept.
        library: whose folder it is.
        code: lines of Python that use it.
        note: what must be known about them, or "".
    """
    base, seconds, size, count = (facts[key] for key in ("base_model", "seconds", "bytes", "parameters"))
    depth = form.layer / form.n_layers
    return "\n".join(
        [
            *_front(facts, library),
            f"# {facts['name']}: layer {form.layer} of {form.n_layers} of {base['name']}",
            "",
            f"{base['name']}, cut after layer {form.layer} (depth {depth:.2f}); one vector of {facts['width']} numbers per "
            f"{facts['unit']}, by readout `{form.name}` ({_words(form)}). The layer is {facts['chosen']}.",
            "",
            *_fenced(code, note),
            "| | whole model | this folder |",
            "|---|---|---|",
            f"| blocks | {form.n_layers} | {form.kept} |",
            f"| parameters | {count['before']:,} | {count['after']:,} |",
            f"| weight files, MB | {size['before'] / 1e6:.1f} | {size['after'] / 1e6:.1f} |",
            f"| seconds for {facts['timed']} {facts['unit']}s, in turns, on the CPU | {seconds['before']:.3f} | "
            f"{seconds['after']:.3f} |",
            "",
            *_scores(facts, form),
            f"Checked when it was written: on {facts['verified']['samples']} samples of dataset "
            f"`{facts['verified']['dataset']}` the vectors differ from the stored ones by at most "
            f"{facts['verified']['difference']:.1e} of the largest number (allowed: {facts['verified']['allowed']:.0e}), "
            f"in {facts['dtype']}.",
            "",
            f"Base model: {base['name']}, from {json.dumps(base['source'], sort_keys=True)}, revision "
            f"{base['revision'] or 'none'}, digest {base['digest'][:16]}. Licence of the base model: "
            f"{base['licence'] or 'not stated; ask its makers'}. Written by layerwise.",
            "",
        ]
    )


def _front(facts: dict[str, Any], library: str) -> list[str]:
    licence = str(facts["base_model"]["licence"] or "")
    known = [f"license: {licence}"] if re.fullmatch(r"[a-z0-9.-]+", licence) else ["license: other"]
    return ["---", *known, f"library_name: {library}", f"pipeline_tag: {_TAGS[library]}", "---", ""]


def _words(form: Form) -> str:
    norm = "the model's final norm on every token, then " if form.readout["norm"] == "final" else ""
    tokens = {"all": "all tokens", "content": "all content tokens", "skip_first": "all tokens but the first"}
    pools = {"mean": "the mean over", "weighted_mean": "the position-weighted mean over", "last": "the last of",
             "first": "the first of"}  # fmt: skip
    return f"{norm}{pools[form.readout['pool']]} {tokens[form.readout['tokens']]}"


def _fenced(code: list[str], note: str) -> list[str]:
    return ["```python", *code, "```", "", *([note, ""] if note else [])]


def _scores(facts: dict[str, Any], form: Form) -> list[str]:
    if not facts["scores"]:
        return ["No task of the study scored this model by this readout.", ""]
    rows = [
        f"| {task} | {100 * found['layer']:.1f} | {100 * found['last']:.1f} |" for task, found in facts["scores"].items()
    ]
    head = [f"| task, points | layer {form.layer} | last layer |", "|---|---|---|"]
    return [
        *head,
        *rows,
        "",
        "Both by the same readout; the best of many layers is optimistic on the items it was chosen on.",
        "",
    ]
