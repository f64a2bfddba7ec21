"""How many tokens samples have to a model: counted by its tokenizer where it is there, else estimated from characters."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from layerwise.costs.estimates import Tokens

_COUNTED = 400  # texts that are tokenised; the others are taken to be like them
_CHARACTERS = 4.2  # of English prose to a token of a vocabulary of 30,000 to 50,000


def text_tokens(
    texts: Sequence[str],
    maximum: int,
    width: int,
    tokenizer: Path | None,
    changed: tuple[str, Sequence[float]] | None = None,
) -> Tokens:
    """Return the lengths of ``texts`` to a model.

    Args:
        texts: all of a dataset.
        maximum: longer ones are cut.
        width: of the model.
        tokenizer: a tokenizer.json, or None.
        changed: a transform of tokens and the level of every text under it.
    """
    # drawn, not every so manieth: the levels of a transform recur at a fixed distance
    chosen = np.sort(np.random.default_rng(0).permutation(len(texts))[:_COUNTED])
    sample = [texts[row] for row in chosen]
    lengths = np.clip(_counted(sample, tokenizer) if tokenizer else _guessed(sample), 1, maximum)
    if changed is not None:
        lengths = _under(changed[0], np.array(changed[1])[chosen], lengths)
    return _scaled(lengths, len(texts), width)


def _under(transform: str, levels: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the lengths under a transform of tokens: that of the prompt or prefix; the others keep it."""
    if transform == "random_prompts":
        return levels.astype(np.int64)
    if transform == "prefixes":
        return np.where(levels <= 1, np.maximum(1, np.round(levels * lengths)), np.minimum(levels, lengths)).astype(np.int64)
    return lengths


def image_tokens(rows: int, tokens: int, width: int) -> Tokens:
    """Return the lengths of ``rows`` images of ``tokens`` tokens each."""
    return _scaled(np.full(1, tokens), rows, width)


def _scaled(lengths: np.ndarray, rows: int, width: int) -> Tokens:
    share = rows / len(lengths)
    kept = np.minimum(lengths, width).sum()
    squares = (lengths.astype(np.int64) ** 2).sum()
    return Tokens(rows, round(share * lengths.sum()), round(share * squares), int(lengths.max()), round(share * kept))


def _counted(texts: list[str], tokenizer: Path) -> np.ndarray:
    from tokenizers import Tokenizer

    opened = Tokenizer.from_file(str(tokenizer))
    opened.no_truncation()
    opened.no_padding()
    return np.array([len(encoded.ids) for encoded in opened.encode_batch(texts)])


def _guessed(texts: list[str]) -> np.ndarray:
    return np.array([round(len(text) / _CHARACTERS) for text in texts])
