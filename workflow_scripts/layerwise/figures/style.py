"""How every figure looks: size, colours, panels, axes, and files with the same bytes."""

import math
import os
import textwrap
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullLocator

from layerwise.atomic import atomic_path

WIDTH = 7.0
SMALL = 7.0
LARGE = 9.5
LINE = SMALL * 1.3 / 72
CHARACTER = 0.053
MARGIN = 0.08
GREY = "#9A9A9A"
INK = "#222222"
MINUS, RHO, NOTHING = "\u2212", "\u03c1", "\u2013"
DEPTH_MAP = "viridis"
DARKEST, PALEST = 0.05, 0.86  # of the colour map; its yellow end is not seen on white
HEADLINE_READOUT = "mean_normed"
HEADLINE_RECIPE = "centre_unit_skip_first"
COLOURS = {
    "mean": "#D55E00",
    "mean_normed": "#0072B2",
    "mean_skip_first": "#009E73",
    "weighted_mean": "#AA4499",
    "raw": "#B37400",
    "centre_unit": "#882255",
    "centre_unit_skip_first": "#332288",
    "unit": "#44AA99",
    "unit_skip_first": "#117733",
    "paper": "#222222",
    "released": "#CC3311",
}
REST = ("#3C8DBC", "#7A7A1E", "#661100", "#4477AA", "#5D8A3A", "#994455", "#6F4E9C", "#1B7F7F")
DASHES = ("-", (0, (4, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.2, 1.2, 1.2)))


@dataclass(frozen=True)
class Sheet:
    """A figure with its panels as rows of axes; sizes are inches, so that fonts keep their size in every figure."""

    figure: Figure
    axes: list[list[Axes]]


@dataclass(frozen=True)
class Room:
    """Space in inches left of, right of, between (x, y), above and below the panels, without title and notes."""

    left: float = 0.52
    right: float = 0.12
    between: tuple[float, float] = (0.34, 0.62)
    above: float = 0.36
    below: float = 0.36


def colour(name: str) -> str:
    """Return the one colour of a readout, recipe or variant; an unknown name always gets the same one of ``REST``."""
    name = base(name)
    return COLOURS.get(name, REST[zlib.crc32(name.encode()) % len(REST)])


def shades(count: int) -> list[str]:
    """Return ``count`` colours of one scale, pale to dark, for lines that follow each other in an order."""
    colours = mpl.colormaps[DEPTH_MAP]
    return [to_hex(colours(share)) for share in np.linspace(PALEST, DARKEST, count)]


def base(name: str) -> str:
    """Return the first name of a line that stands for several: "mean" of "mean = mean_normed"."""
    return name.split(" = ")[0]


def dashes(name: str) -> str | tuple[int, tuple[float, ...]]:
    """Return the line style: solid for known names, told apart by dashes for the rest."""
    name = base(name)
    return "-" if name in COLOURS else DASHES[zlib.crc32(name.encode()) // len(REST) % len(DASHES)]


def shorten(text: str, inches: float, middle: bool = True) -> str:
    """Cut ``text`` in its middle or at its end so that it fits ``inches`` at the small font size."""
    room = max(5, int(inches / CHARACTER))
    if len(text) <= room:
        return text
    head = (room - 1) * 2 // 3 if middle else room - 1
    return text[:head] + "…" + text[len(text) - (room - 1 - head) :]


@dataclass(frozen=True)
class Density:
    """How dense rows of curves over depth are: panel height, gap between rows, title lines, a depth label per row."""

    height: float
    gap: float
    lines: int
    every_label: bool


def density(rows: int) -> Density:
    """Return the density for so many rows: beyond six they shrink, and only the last row says what x is."""
    return Density(1.05, 0.72, 2, True) if rows <= 6 else Density(0.68, 0.5, 1, False)


def sheet(title: str, notes: Iterable[str], rows: int, columns: int, height: float, room: Room = Room()) -> Sheet:
    """Make a figure of ``rows`` x ``columns`` panels, each ``height`` inches, with a title and notes below."""
    foot = textwrap.wrap(" ".join(note for note in notes if note), int((WIDTH - 2 * MARGIN) / CHARACTER))
    head = textwrap.wrap(title, int((WIDTH - 2 * MARGIN) / (CHARACTER * LARGE / SMALL * 1.12)))
    top = MARGIN + len(head) * LARGE * 1.25 / 72
    bottom = MARGIN + len(foot) * LINE
    total = top + room.above + rows * height + (rows - 1) * room.between[1] + room.below + bottom
    width = (WIDTH - room.left - room.right - (columns - 1) * room.between[0]) / columns
    figure = Figure(figsize=(WIDTH, total), facecolor="white")
    FigureCanvasAgg(figure)
    figure.text(MARGIN / WIDTH, 1 - MARGIN / total, "\n".join(head), size=LARGE, weight="bold", va="top", linespacing=1.2)
    figure.text(MARGIN / WIDTH, MARGIN / total, "\n".join(foot), size=SMALL, va="bottom", color="#444444")
    axes = []
    for row in range(rows):
        low = total - top - room.above - (row + 1) * height - row * room.between[1]
        lefts = [room.left + column * (width + room.between[0]) for column in range(columns)]
        axes.append([_panel(figure, (left / WIDTH, low / total, width / WIDTH, height / total)) for left in lefts])
    return Sheet(figure, axes)


def _panel(figure: Figure, box: tuple[float, float, float, float]) -> Axes:
    axes = figure.add_axes(box)
    axes.tick_params(labelsize=SMALL, length=2, width=0.6, pad=1.5, color=GREY, labelcolor=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(linewidth=0.6, color=GREY)
    axes.margins(x=0.03)
    return axes


def rows_for(counts: Iterable[int], columns: int) -> int:
    """Return how many rows the groups of so many panels take when each starts a row of its own."""
    return sum(max(1, math.ceil(count / columns)) for count in counts)


def flow(made: Sheet, counts: Iterable[int]) -> list[list[Axes]]:
    """Share the panels of a sheet of ``rows_for`` rows out to the groups, and hide the ones left over."""
    columns, row, groups = len(made.axes[0]), 0, []
    for count in counts:
        taken = max(1, math.ceil(count / columns))
        panels = [axes for line_of in made.axes[row : row + taken] for axes in line_of]
        for axes in panels[count:]:
            axes.set_axis_off()
        groups.append(panels[:count])
        row += taken
    return groups


def size_of(axes: Axes) -> tuple[float, float]:
    """Return width and height of a panel in inches."""
    box = axes.get_window_extent()
    return box.width / axes.figure.dpi, box.height / axes.figure.dpi


def sentence(title: str, text: str) -> Figure:
    """Make a figure that says in one sentence what is missing."""
    made = sheet(title, [], 1, 1, 0.6, Room(above=0.1, below=0.1))
    axes = made.axes[0][0]
    axes.set_axis_off()
    axes.text(0, 0.5, textwrap.fill(text, 105), size=SMALL + 1, color=INK, va="center", transform=axes.transAxes)
    return made.figure


def heading(axes: Axes, text: str, lines: int = 1, inches: float = 0) -> None:
    """Write the bold heading of a row over panel titles of ``lines`` lines, cut to ``inches`` or to the page."""
    inches = inches or WIDTH - MARGIN - axes.get_window_extent().x0 / axes.figure.dpi
    _above(axes, shorten(text, inches / 1.2), 6 + lines * LINE * 72, SMALL + 0.5, "bold")


def panel_title(axes: Axes, *lines: str, extra: float = 0.25) -> None:
    """Write the lines over a panel, each cut to the width of the panel and ``extra`` inches."""
    for above, text in enumerate(reversed(lines)):
        _above(axes, shorten(text, size_of(axes)[0] + extra), 4 + above * LINE * 72, SMALL, "normal")


def _above(axes: Axes, text: str, points: float, size: float, weight: str) -> None:
    axes.annotate(
        text, (0, 1), (0, points), xycoords="axes fraction", textcoords="offset points", size=size, weight=weight,
        color=INK, annotation_clip=False,
    )  # fmt: skip


def depth_axis(axes: Axes, label: bool = True) -> None:
    """Make x the depth from 0 to 1 with quarters as ticks."""
    axes.set_xlim(-0.04, 1.04)
    axes.xaxis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
    names = ["0", ".25", ".5", ".75", "1"] if size_of(axes)[0] > 0.68 else ["0", "", ".5", "", "1"]
    axes.xaxis.set_major_formatter(FixedFormatter(names))
    if label:
        axes.set_xlabel("depth", size=SMALL, labelpad=1.5)


def value_axis(
    axes: Axes, values: Iterable[float], label: str = "", scale: str = "linear", free: tuple[float, float] = (0.1, 0.1)
) -> None:
    """Set the y range to hold all finite ``values``, with shares of it ``free`` below and above."""
    finite = np.array([value for value in values if math.isfinite(value) and (scale == "linear" or value > 0)])
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    if scale == "log" and len(finite):
        span = high / low
        low, high = low / max(1.25, span ** free[0]), high * max(1.4, span ** free[1])
        axes.set_yscale("log", nonpositive="mask")
        steps = [digit * 10.0**power for power in range(-6, 9) for digit in range(1, 10)]
        every = [tick for tick in steps if low <= tick <= high]
        inside = [tick for tick in every if f"{tick:e}"[0] in "125"]
        inside = inside if len(inside) > 1 else every
        while len(inside) > 5:
            inside = inside[::2]
        axes.yaxis.set_major_locator(FixedLocator(inside))
        axes.yaxis.set_major_formatter(FixedFormatter([f"{tick:g}" for tick in inside]))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        span = (high - low) or abs(high) or 1.0
        low, high = low - free[0] * span, high + free[1] * span
        axes.yaxis.set_major_locator(MaxNLocator(4, min_n_ticks=2))
    axes.set_ylim(low, high)
    axes.set_ylabel(label, size=SMALL, labelpad=2)


def line(axes: Axes, depth: np.ndarray, values: np.ndarray, name: str, **look: object) -> Line2D:
    """Draw one curve over depth, a dot at every layer; a gap stays a gap."""
    chosen: dict[str, object] = {
        "color": colour(name),
        "linestyle": dashes(name),
        "linewidth": 1.1,
        "marker": "o",
        "markersize": 1.2,
    }
    return axes.plot(depth, values, label=name, **(chosen | look))[0]  # type: ignore[arg-type]


def save(figure: Figure, pdf_path: str | os.PathLike[str], png_path: str | os.PathLike[str]) -> None:
    """Write the figure as PDF and as PNG at 200 dpi, each whole or absent; equal figures give equal bytes.

    Raises:
        FileError: the disk is full.
    """
    with mpl.rc_context({"pdf.fonttype": 42, "svg.hashsalt": "layerwise"}):
        with atomic_path(pdf_path) as temporary:
            figure.savefig(temporary, format="pdf", metadata={"CreationDate": None, "Producer": None, "Creator": None})
        with atomic_path(png_path) as temporary:
            figure.savefig(temporary, format="png", dpi=200, metadata={"Software": None})
