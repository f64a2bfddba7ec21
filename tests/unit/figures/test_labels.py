"""Labels: spread apart as little as needed, placed where they cover least; names cut; one colour per name."""

import numpy as np
import pytest
from layerwise.figures import style
from layerwise.figures.labels import end_labels, levels, place, spread
from looking import faults, texts


def test_spread_leaves_free_positions_alone() -> None:
    assert spread([0.9, 0.1, 0.5], 0.1, 0, 1) == pytest.approx([0.9, 0.1, 0.5])


def test_spread_moves_a_crowd_evenly_and_keeps_its_order() -> None:
    moved = spread([0.5, 0.5, 0.51], 0.1, 0, 1)
    assert moved == pytest.approx([0.40333, 0.50333, 0.60333], abs=1e-4)


@pytest.mark.parametrize("seed", range(20))
def test_spread_keeps_gap_range_and_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    positions = list(rng.uniform(-0.3, 1.3, rng.integers(1, 9)))
    moved = np.array(spread(positions, 0.12, 0, 1))
    assert np.all(np.diff(np.sort(moved)) >= 0.12 - 1e-9)
    assert moved.min() >= -1e-9
    assert moved.max() <= 1 + 1e-9
    assert list(np.argsort(moved, kind="stable")) == list(np.argsort(positions, kind="stable"))


def test_spread_shares_too_little_room() -> None:
    assert spread([0.5] * 11, 0.2, 0, 1) == pytest.approx(list(np.linspace(0, 1, 11)))
    assert spread([], 0.1, 0, 1) == []


def test_faults_are_seen() -> None:
    made = style.sheet("Q?", [], 1, 1, 1.0)
    axes = made.axes[0][0]
    style.depth_axis(axes)
    axes.text(0.5, 0.5, "one label")
    axes.text(0.51, 0.52, "another label")
    axes.text(1.0, 0.9, "a label that leaves the page")
    assert faults(made.figure) == {
        "cut off": ["a label that leaves the page"],
        "overlapping": [("one label", "another label")],
    }


def test_end_labels_of_equal_ends_do_not_overlap() -> None:
    made = style.sheet("Q?", [], 1, 1, 1.0, style.Room(right=1.2))
    axes = made.axes[0][0]
    style.depth_axis(axes)
    style.value_axis(axes, [0, 1])
    end_labels(axes, [(name, style.colour(name), 0.5) for name in ("mean", "weighted_mean", "raw", "unit")], 1.2)
    assert faults(made.figure) == {}
    end_labels(axes, [("nowhere", "red", float("nan"))], 1.2)
    assert "nowhere" not in dict(texts(made.figure))


def test_place_avoids_the_curve() -> None:
    made = style.sheet("Q?", [], 1, 1, 1.0)
    axes = made.axes[0][0]
    style.depth_axis(axes)
    style.value_axis(axes, [0, 1])
    depth = np.linspace(0, 1, 30)
    style.line(axes, depth, 0.5 + 0.4 * (depth > 0.5), "mean")
    label = place(axes, "here", [(0.2, 0.5), (0.9, 0.5)])
    box = label.get_window_extent()
    curve = axes.transData.transform(np.column_stack([depth, 0.5 + 0.4 * (depth > 0.5)]))
    assert not np.any((curve > [box.x0, box.y0]).all(axis=1) & (curve < [box.x1, box.y1]).all(axis=1))


def test_levels_that_coincide_share_a_label() -> None:
    made = style.sheet("Q?", [], 1, 1, 1.0)
    axes = made.axes[0][0]
    style.value_axis(axes, [0, 1])
    levels(
        axes,
        [(0.5, "null", "k", "--"), (0.505, "broken pairs", "k", ":"), (0.9, "tfidf", "k", ":"), (np.nan, "x", "k", ":")],
    )
    assert [text.get_text() for text in axes.texts] == ["null, broken pairs", "tfidf"]
    assert [line.get_ydata()[0] for line in axes.lines] == [0.5, 0.505, 0.9]


def test_colours_are_fixed_and_known_names_differ() -> None:
    assert style.colour("mean_normed") == "#0072B2"
    assert style.colour("mean = mean_normed") == style.colour("mean")
    assert style.colour("rms_last") == style.colour("rms_last")
    assert style.colour("rms_last") in style.REST
    assert len(set(style.COLOURS.values())) >= len(style.COLOURS) - 1
    assert style.dashes("mean") == "-"


def test_shorten() -> None:
    assert style.shorten("short", 2) == "short"
    assert len(style.shorten("x" * 200, 1.0)) == int(1.0 / style.CHARACTER)
    assert style.shorten("the start and the end", 0.6).endswith("end")
    assert style.shorten("the start and the end", 0.6, middle=False).startswith("the start")


def test_log_axis_has_ticks_inside() -> None:
    made = style.sheet("Q?", [], 1, 1, 1.0)
    axes = made.axes[0][0]
    style.value_axis(axes, [0.0, 3, 400, float("nan")], "directions", "log")
    low, high = axes.get_ylim()
    assert 0 < low < 3 < 400 < high
    assert 2 <= len(axes.get_yticks()) <= 5
    assert all(low <= tick <= high for tick in axes.get_yticks())
