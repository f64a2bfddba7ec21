"""Does a metric track the score? Metric against score, one point per layer, in the order of the layers."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from layerwise.figures import reading, style
from layerwise.figures.labels import place

QUESTION = "Do the metrics track the scores?"
COLUMNS = 4
ROWS = 6


@dataclass(frozen=True)
class Pair:
    """One panel: a metric and the mean score at each layer, and the row of ``correlations`` that belongs to them."""

    title: str
    text: str
    unit: str
    points: pd.DataFrame
    n_tasks: int
    correlation: pd.Series | None


def draw(
    tables: Mapping[str, pd.DataFrame],
    *,
    headline_readout: str = style.HEADLINE_READOUT,
    headline_recipe: str = style.HEADLINE_RECIPE,
) -> Figure:
    """Draw each metric, on the tasks' own texts or else on one corpus, against the mean score of the same tasks.

    Args:
        tables: the result tables by name; ``metrics``, ``scores`` and ``correlations`` are used.
        headline_readout: the readout of the scores and of the pooled metrics.
        headline_recipe: the recipe of the token-level metrics.
    """
    metrics, scores, correlations = (reading.table(tables, name) for name in ("metrics", "scores", "correlations"))
    scores = reading.one_protocol(scores[scores["baseline"] == ""].dropna(subset=["layer"]), ("task",))
    headline = reading.first(scores["readout"], headline_readout)
    scores = scores[(scores["readout"] == headline) & scores["tap"].isin(["", "residual"])]
    models, left_out = reading.limit(reading.trained(scores["model"]), ROWS, "models")
    groups = {}
    for model in models:
        levels = _levels(metrics[metrics["model"] == model], headline, headline_recipe)
        found = [_pair(rows, scores[scores["model"] == model], correlations, level) for level, rows in levels]
        if pairs := [pair for pair in found if pair is not None]:
            groups[model] = pairs
    if not groups:
        missing = "scores" if scores.empty else "metric of a model that has scores"
        return style.sentence(QUESTION, f"There is nothing to compare: the tables hold no {missing}.")
    counts = [len(pairs) for pairs in groups.values()]
    room = style.Room(left=0.48, right=0.42, above=0.56, between=(0.42, 0.86), below=0.7)
    notes = [*_notes(headline, headline_recipe), left_out]
    made = style.sheet(QUESTION, notes, style.rows_for(counts, COLUMNS), COLUMNS, 1.05, room)
    for axes, (model, pairs) in zip(style.flow(made, counts), groups.items(), strict=True):
        of_model = scores[scores["model"] == model]
        style.heading(axes[0], f"{model}: {reading.layers_of(of_model)}, {_tasks(pairs)}", lines=2)
        for panel, pair in zip(axes, pairs, strict=True):
            _panel(panel, pair, panel in axes[::COLUMNS])
    _depth_key(made)
    return made.figure


def _levels(metrics: pd.DataFrame, headline: str, recipe: str) -> list[tuple[str, pd.DataFrame]]:
    levels = []
    for metric in reading.unique(metrics["metric"]):
        rows = reading.metric_rows(metrics, metric)
        pooled = rows[rows["readout"] == headline]
        tokens = rows[(rows["recipe"] != "") & (rows["recipe"] == reading.first(rows["recipe"], recipe))]
        levels += [(name, part) for name, part in (("pooled", pooled), ("tokens", tokens)) if part["y"].notna().any()]
    return levels


def _pair(rows: pd.DataFrame, scores: pd.DataFrame, correlations: pd.DataFrame, level: str) -> Pair | None:
    own = rows[rows["task"].isin(scores["task"].unique())]
    text = "own" if own["y"].notna().any() else reading.first(rows[rows["task"] == ""]["dataset"])
    how = reading.measure(rows["metric"].iloc[0])
    if text == "own":
        tasks = sorted(set(reading.over_tasks(own, "y")[1]) & set(reading.over_tasks(scores, "score")[1]))
        curve = reading.over_tasks(own[own["task"].isin(tasks)], "y")[0]
    else:
        tasks = reading.over_tasks(scores, "score")[1]
        curve = rows[rows["dataset"] == text]
    mean = reading.over_tasks(scores[scores["task"].isin(tasks)], "score")[0]
    points = curve[["layer", "y"]].merge(mean[["layer", "depth", "score"]], on="layer").dropna()
    if len(points) < 2:
        return None
    shown = "the tasks' own texts" if text == "own" else text
    title = f"token {how.title}" if level == "tokens" and rows["metric"].iloc[0] == "effective_rank" else how.title
    unit = reading.first(rows["y_unit"])
    return Pair(
        title,
        shown,
        unit,
        points,
        len(tasks),
        _correlation(correlations, rows.iloc[0], text, scores["readout"].iloc[0]),
    )


def _correlation(correlations: pd.DataFrame, row: pd.Series, text: str, readout: str) -> pd.Series | None:
    same = correlations["pairing"].isin(["matched", "recipe"]) & (correlations["layers"] == "all")
    same &= correlations["score_readout"] == readout
    for key in ("model", "metric", "recipe", "variant"):
        same &= correlations[key] == row[key]
    same &= (correlations["metric_readout"] == row["readout"]) & correlations["metric_text"].isin([text, text.split("~")[0]])
    same &= correlations["parameters"].isin(["", row["parameters"]])
    found = correlations[same]
    found = found[found["protocol"] == reading.first(found["protocol"], *reading.PROTOCOLS)]
    return found.iloc[0] if len(found) else None


def _panel(axes: Axes, pair: Pair, outer: bool) -> None:
    points = pair.points.sort_values("layer")
    x, y = points["y"].to_numpy(float), 100 * points["score"].to_numpy(float)
    axes.plot(x, y, color=style.GREY, linewidth=0.6, zorder=1, label="order of layers")
    axes.scatter(x, y, c=points["depth"], cmap=style.DEPTH_MAP, vmin=0, vmax=1, s=9, zorder=2, linewidths=0)
    axes.margins(0.14)
    axes.xaxis.set_major_locator(MaxNLocator(3, min_n_ticks=2))
    axes.yaxis.set_major_locator(MaxNLocator(4, min_n_ticks=2))
    axes.set_xlabel(style.shorten(pair.unit, style.size_of(axes)[0] + 0.3), size=style.SMALL, labelpad=1.5)
    axes.set_ylabel("mean score (points)" if outer else "", size=style.SMALL, labelpad=2)
    style.panel_title(axes, f"{pair.title}, n = {len(points)}", _written(pair.correlation), extra=0.38)
    for at in (0, -1):
        place(axes, f"{points['layer'].iloc[at]:.0f}", [(x[at], y[at])])


def _written(row: pd.Series | None) -> str:
    if row is None:
        return "Spearman not computed"
    if np.isnan(row["spearman"]):
        return f"{style.RHO} undefined: {row['undefined']}".rstrip(": ")
    beyond = f"{row['residual_spearman']:+.2f}" if np.isfinite(row["residual_spearman"]) else style.NOTHING
    beyond = f"({beyond})" if "fewer than" in row["flag"] else beyond
    return f"{style.RHO} {row['spearman']:+.2f}, beyond depth {beyond}".replace("-", style.MINUS)


def _tasks(pairs: list[Pair]) -> str:
    counts = sorted({pair.n_tasks for pair in pairs})
    texts = " or ".join(dict.fromkeys(pair.text for pair in pairs))
    return f"{' or '.join(map(str, counts))} tasks; metric on {texts}"


def _depth_key(made: style.Sheet) -> None:
    figure = made.figure
    low = min(axes.get_position().y0 for line in made.axes for axes in line) * figure.get_figheight() - 0.52
    box = figure.add_axes((0.4, low / figure.get_figheight(), 0.2, 0.07 / figure.get_figheight()))
    key = figure.colorbar(ScalarMappable(Normalize(0, 1), style.DEPTH_MAP), cax=box, orientation="horizontal")
    key.outline.set_visible(False)
    style.depth_axis(box, label=False)
    box.set_xlim(0, 1)
    box.tick_params(labelsize=style.SMALL, length=2, width=0.6, pad=1.5)
    box.set_title("depth", size=style.SMALL, pad=2)


def _notes(headline: str, recipe: str) -> list[str]:
    return [
        "One point per layer (n layers), joined in their order; the numbers are the first and the last layer.",
        f"Score: mean over the tasks, readout {headline}, classification standardised.",
        f"Pooled metrics: the same readout; token metrics: recipe {recipe}; variant paper.",
        f"{style.RHO}: Spearman over layers, which are not independent of each other;",
        "beyond depth: the same of what a quadratic in depth leaves of both (brackets: fewer than 8 layers).",
    ]
