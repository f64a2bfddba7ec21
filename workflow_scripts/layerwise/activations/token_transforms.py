"""Transforms of tokens: what the study did to prompts after tokenisation, and prefixes.

Every row of the dataset is one sample under one condition (``level`` and ``draw``). The random numbers of a sample depend on
the seed, its id and the draw, not on the level: a token that is replaced at p = .1 is replaced by the same one at p = .5, so
that curves over levels differ by the level alone. Special tokens are never replaced.
"""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from layerwise.errors import DataError

Ids = NDArray[np.int64]
Tokens = tuple[list[int], list[int]]  # ids, and 1 where a token is special
Rule = Callable[[Ids, float, Ids, np.random.Generator], Ids]


def transformed(
    ids: list[list[int]],
    special: list[list[int]],
    samples: pd.DataFrame,
    transform: dict[str, Any],
    vocabulary: Ids,
    longest: int,
) -> list[Tokens]:
    """Return ids and special-token flags of every row under its condition.

    Args:
        ids: token ids of every row's text as tokenised.
        special: 1 where a token is special, of the same lengths.
        samples: rows of samples.parquet: ``id``, ``source_id`` and ``view``, the number of the condition.
        transform: ``transform`` (its name), ``seed``, ``conditions`` (``level`` and ``draw`` by number) and ``dataset``.
        vocabulary: the ids that a random token is drawn from.
        longest: tokens the model reads at most.

    Raises:
        DataError: a prefix of more tokens than a text has, a random prompt longer than the model reads, or no ordinary token
            to draw from.
    """
    name, conditions = transform["transform"], transform["conditions"]
    if not len(vocabulary):
        raise DataError(f"dataset {transform['dataset']!r}: the tokenizer has no ordinary token to draw from.")
    if name == "random_prompts" and max(c["level"] for c in conditions) > longest:
        most = max(c["level"] for c in conditions)
        raise DataError(
            f"dataset {transform['dataset']!r}: prompts of {most:g} tokens are asked for, the model reads {longest}; write "
            f"'max_tokens: {most:g}' for the model, or smaller 'levels'."
        )
    made = []
    for row, (identifier, source, view) in enumerate(zip(samples["id"], samples["source_id"], samples["view"], strict=True)):
        condition = conditions[int(view)]
        tokens = ids[row], special[row]
        if name == "prefixes":
            try:
                made.append(prefix(*tokens, condition["level"]))
            except ValueError as error:
                raise DataError(f"dataset {transform['dataset']!r}: sample {identifier!r} {error}") from None
        elif name == "random_prompts":
            rng = generator(transform["seed"], source, condition["draw"])
            drawn = rng.choice(vocabulary, size=longest)[: int(condition["level"])].tolist()
            made.append((drawn, [0] * len(drawn)))
        else:
            rng = generator(transform["seed"], source, condition["draw"])
            made.append(replaced(*tokens, RULES[name], condition["level"], vocabulary, rng))
    return made


def generator(seed: int, source: str, draw: int) -> np.random.Generator:
    """Return the random numbers of one sample and draw."""
    key = hashlib.sha256(f"{seed}\x1f{source}\x1f{int(draw)}".encode()).digest()
    return np.random.default_rng(np.frombuffer(key, dtype=np.uint32))


def replaced(ids: list[int], special: list[int], rule: Rule, p: float, vocabulary: Ids, rng: np.random.Generator) -> Tokens:
    """Return the ids with ``rule`` applied to those that are not special; their number stays."""
    changed = np.array(ids, dtype=np.int64)
    ordinary = np.flatnonzero(np.array(special) == 0)
    if len(ordinary):
        changed[ordinary] = rule(changed[ordinary], p, vocabulary, rng)
    return changed.tolist(), special


def repeat_tokens(ids: Ids, p: float, _vocabulary: Ids, rng: np.random.Generator) -> Ids:
    """Return ``ids`` (T,) with one random token of the prompt in place of each token with probability ``p``."""
    repeated = ids[rng.integers(len(ids))]
    return np.where(rng.random(len(ids)) < p, repeated, ids)


def random_tokens(ids: Ids, p: float, vocabulary: Ids, rng: np.random.Generator) -> Ids:
    """Return ``ids`` (T,) with a uniformly random token in place of each token with probability ``p``."""
    return np.where(rng.random(len(ids)) < p, rng.choice(vocabulary, size=len(ids)), ids)


RULES: dict[str, Rule] = {"repeat_tokens": repeat_tokens, "random_tokens": random_tokens}


def prefix(ids: list[int], special: list[int], level: float) -> Tokens:
    """Return the first tokens of a text, between the special tokens that open and close it.

    Args:
        ids: of the text. special: 1 where special.
        level: a share of the ordinary tokens in (0, 1], at least one of them; or the number of all tokens, 2 or more.

    Raises:
        ValueError: the text has fewer tokens than ``level``, or no ordinary token fits.
    """
    flags = np.array(special, dtype=bool)
    ordinary = np.flatnonzero(~flags)
    first, last = (int(ordinary[0]), int(ordinary[-1])) if len(ordinary) else (len(ids), len(ids) - 1)
    head, body, tail = first, last + 1 - first, len(ids) - 1 - last
    if level > len(ids):
        raise ValueError(
            f"has {len(ids)} tokens, fewer than the prefix of {level:g} that is asked for; write smaller 'levels', or "
            "'minimum_tokens' where a model writes the texts."
        )
    kept = min(max(1, round(level * body)), body) if level <= 1 else int(level) - head - tail
    if level > 1 and kept < 1:
        raise ValueError(f"has {head + tail} special tokens, so that a prefix of {level:g} tokens holds none of its own.")
    places = [*range(head + kept), *range(len(ids) - tail, len(ids))]
    return [ids[at] for at in places], [special[at] for at in places]
