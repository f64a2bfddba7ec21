"""Prompt templates: what a model reads around every text of a dataset or task, such as ``Classify: {text}``.

Samples, their ids, labels, views and baselines stay those of the text itself; only extraction fills the template in. So a
changed template re-runs the forward passes of its dataset and what follows, and nothing that is drawn from the same texts.
"""

import hashlib

import pandas as pd

PLACE = "{text}"


def checked(template: str) -> str:
    """Return a template that holds ``{text}`` exactly once; all other characters, braces too, stand for themselves.

    Raises:
        ValueError: it holds ``{text}`` never or several times.
    """
    if template.count(PLACE) != 1:
        raise ValueError(
            f"{template!r} holds {PLACE} {template.count(PLACE)} times; write it once, where the text goes, as in "
            '\'This sentence: "{text}" means in one word:"\''
        )
    return template


def filled(samples: pd.DataFrame, template: str) -> pd.DataFrame:
    """Return ``samples`` with every ``text`` put into ``template``; unchanged where that is empty."""
    if not template:
        return samples
    before, after = template.split(PLACE)
    return samples.assign(text=[before + text + after for text in samples["text"]])


def seen_digest(digest: str, template: str) -> str:
    """Return the digest of what a model sees: that of the samples, or with a template that of both."""
    return hashlib.sha256(f"{digest}\x1f{template}".encode()).hexdigest() if template else digest
