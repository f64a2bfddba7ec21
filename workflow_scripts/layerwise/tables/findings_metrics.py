"""Findings about curves: the compression valley, the first token, the untrained twin, training."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from layerwise.tables.dependence import constant, spearman
from layerwise.tables.finding import Options, Unwritten, listed, points, rows_of_model
from layerwise.tables.frames import RESIDUAL

Tables = Mapping[str, pd.DataFrame]
RECIPES = ("raw", "centre_unit", "centre_unit_skip_first")
HEADLINE_RECIPE = "centre_unit_skip_first"
VALLEY = 0.1  # of the maximum: how far the lowest layer has to lie below both ends
MIN_LAYERS = 4  # below, any rank correlation is arbitrary
ALIKE = 0.8  # Spearman over layers from which a curve is called its twin's


def valley(tables: Tables, options: Options) -> str:
    """Say where prompt entropy dips between the first and the last layer, in each recipe.

    Args:
        tables: ``metrics`` is used.
        options: what the config says of models and headlines.

    Raises:
        Unwritten: no model has prompt entropy.
    """
    parts = []
    for model, rows in _corpus(tables, options, "prompt_entropy"):
        dips, others = [], []
        for recipe in RECIPES:
            values = _curve(rows[rows["recipe"] == recipe], "normalized")
            if len(values) < 3:
                continue
            first, inner, last = values.iloc[0], values.iloc[1:-1], values.iloc[-1]
            if min(first, last) - inner.min() >= VALLEY:
                dips.append(f"`{recipe}` ({first:.2f}, {inner.min():.2f} at layer {inner.idxmin():.0f}, {last:.2f})")
            else:
                others.append(f"`{recipe}`")
        if dips or others:
            found = [f"a valley in {' and '.join(dips)}"] if dips else []
            found += [f"none in {', '.join(others)}"] if others else []
            parts.append(f"`{model}` {', '.join(found)} (n = {rows['n'].max():.0f})")
    if not parts:
        raise Unwritten("no model has prompt entropy at three layers or more.")
    text = f"Prompt entropy, as a share of its maximum, dips {VALLEY} or more below the first and the last layer: "
    return f"{text}{listed(parts, 'metrics.csv')}."


def first_token(tables: Tables, options: Options) -> str:
    """Say where the first token is longest, and how much of the sum of squared norms it holds there.

    Args:
        tables: ``metrics`` is used.
        options: what the config says of models and headlines.

    Raises:
        Unwritten: no model has the metric.
    """
    shares = dict(_corpus(tables, options, "sink_variance_share", optional=True))
    parts = []
    for model, rows in _corpus(tables, options, "sink_norm_ratio"):
        ratio = _curve(rows, "value")
        if ratio.empty:
            continue
        at = ratio.idxmax()
        text = f"`{model}` {ratio.max():.3g} times the median of the others at layer {at:.0f} of {ratio.index.max():.0f}"
        share = _curve(shares[model], "value").get(at) if model in shares else None
        text += f", with {100 * share:.1f} % of the squared norms" if share is not None else ""
        parts.append(f"{text} (n = {rows['n'].max():.0f})")
    if not parts:
        raise Unwritten("no model has the norms of its first token.")
    return f"The first token is longest: {listed(parts, 'metrics.csv')}."


def twin(tables: Tables, options: Options) -> str:
    """Say which curves over depth the untrained twin shares, which then say nothing about training.

    Args:
        tables: ``metrics`` is used, on what trained model and twin share.
        options: what the config says of models and headlines.

    Raises:
        Unwritten: no model has a twin, or no curve of it.
    """
    if not options.twins:
        raise Unwritten("no model of the study has an untrained twin.")
    everything = pd.concat([rows for _, rows in rows_of_model(tables, "metrics", _with_twins(options))])
    curves = _headline(everything[everything["tap"].isin(["", RESIDUAL])], options)
    key = ["dataset", "metric", "readout", "recipe"]
    parts = []
    for model, other in options.twins.items():
        own, bare = (
            {cell: _curve(rows, "value") for cell, rows in curves[curves["model"] == name].groupby(key, sort=False)}
            for name in (model, other)
        )
        both = {cell: _spearman(own[cell], bare[cell]) for cell in own if cell in bare}
        both = {cell: value for cell, value in both.items() if np.isfinite(value)}
        if both:
            alike = [f"`{c[1]}`{' of tokens' * bool(c[3])} {value:+.2f}" for c, value in both.items() if value >= ALIKE]
            n = curves[curves["model"] == model]["n"]
            counts = f"{n.min():.0f} to {n.max():.0f}" if n.min() < n.max() else f"{n.max():.0f}"
            text = f"{len(alike)} of {len(both)} metrics of `{model}`, n = {counts}"
            parts.append(text + (f" ({listed(alike, 'metrics.csv')})" if alike else ""))
    if not parts:
        raise Unwritten("no metric was computed on both a model and its untrained twin.")
    text = f"What the untrained twin shares (Spearman over layers {ALIKE} or more) says nothing about training: "
    return f"{text}{listed(parts, 'metrics.csv')}."


def training(tables: Tables, _options: Options) -> str:
    """Say what the loss and the score did over a training run, and which layer ended farthest from where it began.

    Args:
        tables: ``training_dynamics`` is used.

    Raises:
        Unwritten: no training run was followed.
    """
    if "training_dynamics" not in tables:
        raise Unwritten("no training run was followed.")
    parts = []
    for run, rows in tables["training_dynamics"].dropna(subset=["step"]).groupby("model", sort=False):
        first, last = (rows[rows["step"] == step] for step in (rows["step"].min(), rows["step"].max()))
        facts = []
        losses = [part["heldout_loss"].mean() for part in (first, last)]
        scores = [part["score"].max() for part in (first, last)]
        if np.isfinite(losses).all():
            facts.append(f"held-out loss {losses[0]:.2f} to {losses[1]:.2f}")
        if np.isfinite(scores).all():
            facts.append(f"score of the best layer {points(scores[0])} to {points(scores[1])}")
        similar = first.dropna(subset=["stability"]).groupby("layer")["stability"].mean()
        if len(similar):
            facts.append(f"least like its end is layer {similar.idxmin():.0f} (linear CKA {similar.min():.2f})")
            facts.append(f"most layer {similar.idxmax():.0f} ({similar.max():.2f})")
        if facts:
            steps = f"steps {rows['step'].min():.0f} to {rows['step'].max():.0f}, n = {rows['n'].max():.0f}"
            parts.append(f"`{run}` ({steps}): {', '.join(facts)}")
    if not parts:
        raise Unwritten("nothing of a training run is defined.")
    return f"{listed(parts, 'training_dynamics.csv')}."


def levels(tables: Tables, options: Options) -> str:
    """Say what repeated tokens, random tokens, longer prompts or prefixes do to prompt entropy.

    Args:
        tables: ``levels`` is used.
        options: what the config says of models and headlines.

    Raises:
        Unwritten: no dataset has changed tokens, or nothing of it is defined.
    """
    if "levels" not in tables or tables["levels"].empty:
        raise Unwritten("no dataset has changed tokens.")
    rows = tables["levels"]
    rows = rows[(rows["variant"] == "paper") & rows["tap"].isin(["", RESIDUAL]) & rows["value"].notna()]
    parts = []
    for dataset, own in rows.groupby("dataset", sort=False):
        metric = "prompt_entropy" if (own["metric"] == "prompt_entropy").any() else own["metric"].iloc[0]
        one = own[own["metric"] == metric].assign(kind=own["recipe"] + own["readout"])
        kinds = list(dict.fromkeys(one["kind"]))
        kind = next((name for name in (HEADLINE_RECIPE, options.readout) if name in kinds), kinds[0])
        part = one[one["kind"] == kind]
        column = "normalized" if part["normalized"].notna().all() else "value"
        means = part.groupby(["model", "level"])[column].mean().unstack()
        low, high = means.columns.min(), means.columns.max()
        changes = [f"`{model}` {row[low]:.2f} to {row[high]:.2f}" for model, row in means.iterrows()]
        parts.append(
            f"{part['transform'].iloc[0].replace('_', ' ')} from {low:g} to {high:g} (`{dataset}`, n = "
            f"{part['n'].max():.0f}): `{metric}` ({kind}) {listed(changes, 'levels.csv')}"
        )
    if not parts:
        raise Unwritten("nothing on changed tokens is defined.")
    return f"Means over layers and draws. {listed(parts, 'levels.csv')}."


def _corpus(tables: Tables, options: Options, metric: str, optional: bool = False) -> list[tuple[str, pd.DataFrame]]:
    """The defined rows of ``metric`` of every model that has it, on the headline corpus or the first other one."""
    found = []
    for model, own in rows_of_model(tables, "metrics", options):
        kept = (own["metric"] == metric) & (own["variant"] == "paper") & own["tap"].isin(["", RESIDUAL])
        rows = own[kept & (own["task"] == "") & own["value"].notna()]
        if len(rows):
            names = list(dict.fromkeys(rows["dataset"]))
            rows = rows[rows["dataset"] == (options.dataset if options.dataset in names else names[0])]
            found.append((model, rows[rows["parameters"] == rows["parameters"].iloc[0]]))
    if not found and not optional:
        raise Unwritten(f"`{metric}` was not computed on a corpus.")
    return found


def _headline(rows: pd.DataFrame, options: Options) -> pd.DataFrame:
    """The paper's variant on corpora, at the headline readout, or recipe where the metric has one."""
    rows = rows[(rows["variant"] == "paper") & (rows["task"] == "")]
    recipes = {HEADLINE_RECIPE, "raw"}  # sinks are of raw tokens
    token = rows["recipe"] != ""
    has = (rows["recipe"] == HEADLINE_RECIPE).groupby([rows["model"], rows["dataset"], rows["metric"]]).transform("any")
    wanted = rows["recipe"].isin(recipes) & (~has | (rows["recipe"] == HEADLINE_RECIPE))
    return rows[(token & wanted) | (~token & (rows["readout"] == options.readout))]


def _curve(rows: pd.DataFrame, column: str) -> pd.Series:
    """The defined values by layer; empty where two curves are mixed, which would be no curve."""
    values = rows.dropna(subset=[column]).set_index("layer")[column].sort_index()
    return values if values.index.is_unique else values.iloc[:0]


def _spearman(first: pd.Series, second: pd.Series) -> float:
    both = pd.concat([first, second], axis=1, join="inner").to_numpy().T
    if both.shape[1] < MIN_LAYERS or constant(both).any():
        return float("nan")
    return float(spearman(*both))


def _with_twins(options: Options) -> Options:
    return Options([*options.twins, *options.twins.values()], options.twins, options.readout, options.dataset)
