"""What a reader sees of a figure: its visible texts with their boxes, in pixels."""

import itertools

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox


def texts(figure: Figure) -> list[tuple[str, Bbox]]:
    """Return every text that is drawn, with its box; an annotation's arrow does not count."""
    figure.draw_without_rendering()
    found = list(figure.texts)
    for axes in figure.axes:
        found += [text for text in axes.texts if text.get_visible()]
        if axes.axison:
            found += [axes.xaxis.label, axes.yaxis.label, axes.title, *_ticks(axes.xaxis), *_ticks(axes.yaxis)]
    return [(text.get_text(), Text.get_window_extent(text)) for text in found if text.get_text().strip()]


def _ticks(axis: Axis) -> list[Text]:
    low, high = sorted(axis.get_view_interval())
    return [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high and tick.label1.get_visible()]


def faults(figure: Figure) -> dict[str, list[object]]:
    """Return the texts that reach beyond the edge of the figure, and the pairs that overlap by more than a pixel."""
    found = texts(figure)
    width, height = figure.bbox.width + 0.5, figure.bbox.height + 0.5
    cut = [text for text, box in found if min(box.x0, box.y0) < -0.5 or box.x1 > width or box.y1 > height]
    pairs = []
    for (first, a), (second, b) in itertools.combinations(found, 2):
        if min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1:
            pairs.append((first, second))
    return {name: list(items) for name, items in (("cut off", cut), ("overlapping", pairs)) if items}


def panels(figure: Figure) -> list[Axes]:
    """Return the axes that show something."""
    return [axes for axes in figure.axes if axes.axison]


def lines(axes: Axes) -> dict[str, np.ndarray]:
    """Return the labelled lines of a panel as (n, 2) arrays."""
    named = {str(line.get_label()): np.asarray(line.get_xydata()) for line in axes.lines}
    return {name: points for name, points in named.items() if not name.startswith("_")}


def all_text(figure: Figure) -> str:
    """Return all texts of a figure as one line."""
    return " ".join(text.replace("\n", " ") for text, _ in texts(figure))
