"""What does changing the tokens of a prompt do to the layers? Metrics over depth, a line per level of the change."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from layerwise.figures import reading, style
from layerwise.figures.labels import end_labels, room_for

QUESTION = "What do changed tokens do to the layers?"
QUESTIONS = {
    "repeat_tokens": "What does repeating one token do to the layers?",
    "random_tokens": "What do random tokens do to the layers?",
    "random_prompts": "How do the layers of random prompts change with their length?",
    "prefixes": "How do the layers change while a text goes on?",
}
AXIS = {
    "repeat_tokens": "p of repetition",
    "random_tokens": "p of a random token",
    "random_prompts": "tokens",
    "prefixes": "prefix",
}
COLUMNS = 3
LEVELS, MODELS, TICKS = 8, 4, 7
IN_EVERY_RECIPE = "prompt_entropy"  # the valley is an account of recipes
HEIGHT = 1.3


@dataclass(frozen=True)
class Part:
    """One panel of a model: a metric at one readout or recipe."""

    metric: str
    kind: str
    name: str

    def of(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return its rows, with ``y``, ``null`` and ``band`` as ``reading.drawn`` gives them."""
        rows = frame[(frame["metric"] == self.metric) & (frame[self.kind] == self.name)]
        how = reading.measure(self.metric)
        if (rows["transform"] == "random_prompts").any():  # lengths differ: a share of the maximum would hide it
            how = reading.Measure(how.title, unit=reading.first(rows["unit"]), scale=how.scale)
        return reading.drawn(rows[rows["parameters"] == reading.usual(rows["parameters"])], how)


def draw(
    tables: Mapping[str, pd.DataFrame],
    *,
    dataset: str,
    headline_readout: str = style.HEADLINE_READOUT,
    headline_recipe: str = style.HEADLINE_RECIPE,
) -> Figure:
    """Draw means over layers against the level, a line per model; below, for each model, every metric over depth.

    Args:
        tables: the result tables by name; ``levels`` is used.
        dataset: whose tokens a transform changed.
        headline_readout: of pooled vectors.
        headline_recipe: of token metrics but prompt entropy, which is drawn in every recipe.
    """
    frame = reading.table(tables, "levels")
    frame = frame[(frame["dataset"] == dataset) & (frame["variant"] == "paper") & frame["tap"].isin(["", "residual"])]
    transform = reading.first(frame["transform"])
    title = f"{QUESTIONS.get(transform, QUESTION)} ({dataset})"
    if frame["value"].notna().sum() == 0:
        return style.sentence(title, f"There is nothing to draw: levels.csv holds no defined value on {dataset!r}.")
    models, left_out = reading.limit(reading.trained(frame["model"]), MODELS, "models")
    parts = _parts(frame, headline_readout, headline_recipe)
    levels = _evenly(sorted(frame["level"].unique()))
    names = {level: name_of(level, transform) for level in levels}
    room = style.Room(left=0.56, right=room_for([*names.values(), *models]), between=(0.5, 0.84), above=0.5)
    counts = [len(parts)] * (1 + len(models))
    made = style.sheet(
        title, [*_notes(frame, transform, levels), left_out], style.rows_for(counts, COLUMNS), COLUMNS, HEIGHT, room
    )
    first, *rest = style.flow(made, counts)
    style.heading(first[0], "mean over layers 1 to L, against the level", 2)
    for index, (panel, part) in enumerate(zip(first, parts, strict=True)):
        ends = _against_level(panel, part, frame, models, transform)
        if _last_of_row(index, len(parts)):
            end_labels(panel, ends, room.right)
    shades = dict(zip(levels, style.shades(len(levels)), strict=True))
    for panels, model in zip(rest, models, strict=True):
        own = frame[frame["model"] == model]
        style.heading(panels[0], f"{model}: {reading.layers_of(own)}, n = {own['n'].max():.0f}", 2)
        for index, (panel, part) in enumerate(zip(panels, parts, strict=True)):
            ends = _over_depth(panel, part, own, shades, names)
            if _last_of_row(index, len(parts)):
                end_labels(panel, ends, room.right)
    return made.figure


def _last_of_row(index: int, count: int) -> bool:
    return index % COLUMNS == COLUMNS - 1 or index == count - 1


def _parts(frame: pd.DataFrame, headline_readout: str, headline_recipe: str) -> list[Part]:
    """Panels in the order of ``reading.MEASURES``; a metric without any value has none."""
    defined = frame[frame["value"].notna()]
    found = []
    for metric in reading.ordered(defined["metric"]):
        rows = defined[defined["metric"] == metric]
        for kind, headline in (("recipe", headline_recipe), ("readout", headline_readout)):
            names = reading.unique(rows[kind])
            if names and metric != IN_EVERY_RECIPE:
                names = [reading.first(names, headline)]
            found += [Part(metric, kind, name) for name in names]
    return list(dict.fromkeys(found))


def _evenly(levels: list[float]) -> list[float]:
    """At most ``LEVELS`` of them, with the first and the last."""
    if len(levels) <= LEVELS:
        return levels
    return [levels[round(at)] for at in np.linspace(0, len(levels) - 1, LEVELS)]


def name_of(level: float, transform: str) -> str:
    """Return "p = 0.25", "256 tokens" or "50 % of the text"."""
    if transform in ("repeat_tokens", "random_tokens"):
        return f"p = {level:g}"
    return f"{100 * level:.3g} % of text" if transform == "prefixes" and level <= 1 else f"{level:,.0f} tokens"


def over_draws(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return ``y``, ``low`` and ``high`` (mean, least and greatest over draws) and the mean ``null`` by ``keys``."""
    groups = rows.groupby(keys, as_index=False)
    return groups.agg(y=("y", "mean"), low=("y", "min"), high=("y", "max"), null=("null", "mean"), depth=("depth", "first"))


def _title(panel: Axes, part: Part) -> None:
    style.panel_title(panel, reading.measure(part.metric).title, part.name, extra=0.4)


def _against_level(
    panel: Axes, part: Part, frame: pd.DataFrame, models: list[str], transform: str
) -> list[tuple[str, str, float]]:
    rows = part.of(frame[frame["model"].isin(models) & (frame["layer"] > 0)])
    means = rows.groupby(["model", "level", "draw"], as_index=False)[["y", "null", "depth"]].mean()
    found = over_draws(means, ["model", "level"])
    how = reading.measure(part.metric)
    values = pd.concat([found["low"], found["high"], found["null"]])
    style.value_axis(panel, values, reading.first(rows["y_unit"]), how.scale, (0.08, 0.1))
    _title(panel, part)
    levels = sorted(found["level"].unique())
    # evenly: levels crowd at one end in any scale; up to 1, where the end labels begin
    places = {level: place / max(len(levels) - 1, 1) for place, level in enumerate(levels)}
    panel.set_xlim(-0.06, 1.06)
    panel.xaxis.set_major_locator(FixedLocator(list(places.values())))
    every = -(-len(levels) // TICKS)
    panel.xaxis.set_major_formatter(FixedFormatter(["" if at % every else _tick(x) for at, x in enumerate(levels)]))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_xlabel(AXIS.get(transform, "level"), size=style.SMALL, labelpad=1.5)
    ends = []
    for model in models:
        own = found[found["model"] == model].sort_values("level")
        if len(own):
            x = own["level"].map(places).to_numpy(float)
            style.line(panel, x, own["y"].to_numpy(), model, marker="o", markersize=2.2)
            panel.fill_between(x, own["low"], own["high"], color=style.colour(model), alpha=0.15, linewidth=0)
            style.line(panel, x, own["null"].to_numpy(), "null", color=style.GREY, linestyle="--", marker="", linewidth=0.7)
            ends.append((model, style.colour(model), float(own["y"].iloc[-1])))
    return ends


def _tick(level: float) -> str:
    return f"{level:g}".replace("0.", ".") if level < 1 else f"{level:g}"


def _over_depth(
    panel: Axes, part: Part, own: pd.DataFrame, shades: Mapping[float, str], names: Mapping[float, str]
) -> list[tuple[str, str, float]]:
    rows = part.of(own[own["level"].isin(list(shades))])
    found = over_draws(rows, ["model", "level", "layer"])
    values = pd.concat([found["low"], found["high"], found["null"]])
    style.value_axis(panel, values, reading.first(rows["y_unit"]), reading.measure(part.metric).scale, (0.08, 0.1))
    _title(panel, part)
    style.depth_axis(panel)
    ends = []
    for level, shade in shades.items():
        line = found[found["level"] == level]
        depth, values = reading.curve(line, "y")
        if not len(values):
            continue
        low, high = (reading.curve(line, edge)[1] for edge in ("low", "high"))
        style.line(panel, depth, values, names[level], color=shade, linestyle="-")
        panel.fill_between(depth, low, high, color=shade, alpha=0.2, linewidth=0)
        panel.axhline(line["null"].mean(), color=shade, linestyle="--", linewidth=0.6, zorder=1)
        ends.append((names[level], shade, float(values[-1])))
    return ends


def _notes(frame: pd.DataFrame, transform: str, levels: list[float]) -> list[str]:
    every, draws = frame["level"].nunique(), frame["draw"].nunique()
    what = {
        "repeat_tokens": "One random token of the prompt in place of each token with probability p.",
        "random_tokens": "A uniformly random token in place of each token with probability p.",
        "random_prompts": "Prompts of uniformly random tokens, none special; entropy in nats, not as a share.",
        "prefixes": "The first tokens of every text; a causal model reads them all in one pass.",
    }
    return [
        what.get(transform, ""),
        f"Pale to dark: {name_of(levels[0], transform)} to {name_of(levels[-1], transform)}.",
        f"Drawn over depth: {len(levels)} of {every} levels." if every > len(levels) else "",
        f"Band: least to greatest of {draws} draws." if draws > 1 else "",
        "Dashed: the null of the same shapes, in the shade of its level.",
        "n: samples. Variant paper. Depth is layer / last layer.",
    ]
