"""Direct labels: at the ends of curves, on levels and beside points, placed so that they do not overlap."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Text

from layerwise.figures.style import CHARACTER, INK, LARGE, LINE, MARGIN, SMALL, WIDTH, shorten, size_of

AROUND = ((0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1), (1, 0), (-1, 0))
LEADER = {"arrowstyle": "-", "linewidth": 0.4, "shrinkA": 0.5, "shrinkB": 1.5, "relpos": (0, 0.5)}


def spread(positions: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move positions as little as possible so that neighbours are ``gap`` apart and all lie in [low, high].

    Where they cannot all fit, they share the room equally. The order of the positions is kept.
    """
    count = len(positions)
    if count and (count - 1) * gap > high - low:
        gap = (high - low) / max(count - 1, 1)
    order = sorted(range(count), key=positions.__getitem__)
    blocks: list[tuple[float, int]] = []
    for rank, index in enumerate(order):
        mean, members = positions[index] - rank * gap, 1
        while blocks and blocks[-1][0] > mean:
            other, size = blocks.pop()
            mean, members = (mean * members + other * size) / (members + size), members + size
        blocks.append((mean, members))
    result = [0.0] * count
    starts = [mean for mean, members in blocks for _ in range(members)]
    for rank, index in enumerate(order):
        result[index] = min(max(starts[rank], low), high - (count - 1) * gap) + rank * gap
    return result


def end_labels(axes: Axes, labels: Sequence[tuple[str, str, float]], inches: float) -> None:
    """Write (text, colour, y of the curve's end) right of a panel, spread apart, each cut to ``inches``."""
    entries = [(text, shade, y) for text, shade, y in labels if math.isfinite(y)]
    width, height = size_of(axes)
    places = spread([_fraction(axes, y) for _, _, y in entries], LINE / height, -0.1, 1.05)
    for (text, shade, y), high in zip(entries, places, strict=True):
        axes.annotate(
            shorten(text, inches - 0.14),
            (1, y),
            (1 + 0.1 / width, high),
            textcoords="axes fraction",
            size=SMALL,
            color=shade,
            va="center",
            annotation_clip=False,
            arrowprops=LEADER | {"color": shade},
        )


def beside(axes: Axes, y: float, text: str) -> None:
    """Write ``text`` right of a panel at the height of the row ``y``."""
    axes.annotate(
        text,
        (1, y),
        (5, 0),
        xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        size=SMALL,
        va="center",
        annotation_clip=False,
    )


def column_head(axes: Axes, text: str) -> None:
    """Write the head of the column that ``beside`` fills."""
    axes.annotate(text, (1, 1), (5, 4), xycoords="axes fraction", textcoords="offset points", size=SMALL, color="#555555")


def key(figure: Figure, entries: Sequence[tuple[str, str]]) -> None:
    """Write (text, colour) side by side under the title, as the key to marks that no label can sit beside."""
    x, y = MARGIN, 1 - (MARGIN + LARGE * 1.25 / 72 + 0.03) / figure.get_figheight()
    for text, shade in entries:
        figure.text(x / WIDTH, y, text, size=SMALL, color=shade, va="top")
        x += CHARACTER * (len(text) + 4)


def room_for(labels: Sequence[str], most: float = 1.7) -> float:
    """Return the inches that end labels need right of a panel, at most ``most``."""
    return min(most, 0.34 + CHARACTER * max((len(label) for label in labels), default=0))


def _fraction(axes: Axes, y: float) -> float:
    return float((axes.transData + axes.transAxes.inverted()).transform((0, y))[1])


def place(axes: Axes, text: str, anchors: Sequence[tuple[float, float]], shade: str = INK) -> Text:
    """Write ``text`` beside the anchor (data coordinates) where it covers no label and the least of the curves."""
    label = axes.text(*anchors[0], text, size=SMALL, color=shade, ha="center", va="center")
    label.set_path_effects([withStroke(linewidth=1.6, foreground="white")])
    box = label.get_window_extent()
    half = np.array([box.width / 2, box.height / 2])
    frame = np.array(axes.get_window_extent().get_points())
    taken = [other.get_window_extent().get_points() for other in axes.texts if other is not label]
    points = _inked(axes)
    best, lowest = axes.transData.transform(anchors[0]), math.inf
    for anchor in anchors:
        for step in AROUND:
            centre = axes.transData.transform(anchor) + np.array(step) * (half + 4)
            low, high = centre - half - 2, centre + half + 2
            cost = float(np.sum(np.all((points > low) & (points < high), axis=1)))
            cost += 1000 * sum(bool(np.all(low < other[1]) and np.all(other[0] < high)) for other in taken)
            beyond = float(np.sum(np.maximum(frame[0] - low, 0)) + np.sum(np.maximum(high - frame[1], 0)))
            cost += min(500.0, 60 * beyond)
            cost += 1000 * float(low[0] < frame[0][0])  # over the ticks, or over the panel on the left
            if cost < lowest:
                best, lowest = centre, cost
    x, y = axes.transData.inverted().transform(best)
    label.set_position((float(x), float(y)))
    return label


def _inked(axes: Axes) -> np.ndarray:
    """Return points every few pixels along all lines of a panel, in pixels."""
    pieces = [np.empty((0, 2))]
    for drawn in axes.lines:
        path = drawn.get_transform().transform(np.asarray(drawn.get_xydata(), dtype=float))
        for start, stop in itertools.pairwise(path):
            if np.all(np.isfinite([start, stop])):
                count = max(2, int(np.hypot(*(stop - start)) / 3))
                pieces.append(np.linspace(start, stop, count))
    return np.concatenate(pieces)


def levels(axes: Axes, lines: Sequence[tuple[float, str, str, str]]) -> None:
    """Draw horizontal lines (y, label, colour, dash) for nulls, baselines or zero, then write their labels.

    Lines that lie on each other get one label with all their names.
    """
    finite = sorted((entry for entry in lines if math.isfinite(entry[0])), key=_height)
    groups: list[tuple[float, list[str], str]] = []
    for y, text, shade, dash in finite:
        axes.axhline(y, color=shade, linewidth=0.7, linestyle=dash, zorder=1.5, label=text)
        high = _fraction(axes, y)
        if groups and high - _fraction(axes, groups[-1][0]) < 0.02:
            groups[-1][1].append(text)
        else:
            groups.append((y, [text], shade))
    for y, names, shade in groups:
        place(axes, ", ".join(dict.fromkeys(names)), [(x, y) for x in (0.5, 0.3, 0.7, 0.15, 0.85)], shade)


def _height(line: tuple[float, str, str, str]) -> float:
    return line[0]
