"""The figure of the first token: causes before effects, one model after the other, on the residual stream of one corpus."""

import numpy as np
import pandas as pd
import pytest
import synthetic
from layerwise.figures import sink
from looking import all_text, faults, panels

MODELS = {"smollm2-135m": 31, "smollm2-135m-untrained": 31, "minilm-l6": 7}
TITLES = ["first token's norm / median", "its share of squared norms", "prompt entropy (of maximum)"]


def tables(models: dict[str, int] = MODELS) -> dict[str, pd.DataFrame]:
    return synthetic.build(models, {})


def further(frame: pd.DataFrame) -> pd.DataFrame:
    """The sink metrics, and those on request made from the entropy's rows."""
    rows = frame[(frame["metric"] == "prompt_entropy") & (frame["variant"] == "paper")].assign(parameters="{}")
    rows = rows.assign(value=rows["value"] / 5, unit="share", null_value=0.02)
    cosines = rows[rows["recipe"] == "raw"]
    parts = [rows.assign(metric="top_eigenvalue_share")]
    parts += [cosines.assign(metric="anisotropy", recipe=name) for name in sink.UNIT]
    return pd.concat([frame, *parts], ignore_index=True)


def lines(axes: object) -> dict[str, np.ndarray]:
    return {str(line.get_label()): np.asarray(line.get_ydata(), dtype=float) for line in axes.lines}


def test_three_panels_a_model_from_what_the_default_study_computes() -> None:
    made = tables()
    figure = sink.draw(made)
    axes = panels(figure)
    assert len(axes) == 3 * 2  # the twin is grey beside its model, not a row
    assert [text for text in TITLES if text in all_text(figure)] == TITLES
    ratio, share, entropy = axes[:3]
    assert ratio.get_yscale() == "log"
    rows = made["metrics"].query("model == 'smollm2-135m' and dataset == 'lee' and variant == 'paper' and recipe == 'raw'")
    for panel, metric in ((ratio, "sink_norm_ratio"), (share, "sink_variance_share")):
        drawn, expected = lines(panel), rows[rows["metric"] == metric]["value"].to_numpy()
        np.testing.assert_allclose(drawn["raw"], expected)
        assert set(drawn) == {"raw", "untrained", "null", "peak"}
        assert drawn["peak"].tolist() == [expected.max()]
    assert set(lines(entropy)) == {*synthetic.RECIPES, "untrained", "null"}
    assert f"layer {rows[rows['metric'] == 'sink_norm_ratio']['value'].to_numpy().argmax()}:" in all_text(figure)


def test_further_metrics_get_panels_where_they_exist() -> None:
    made = tables()
    figure = sink.draw({"metrics": further(made["metrics"])})
    assert len(panels(figure)) == 5 * 2
    assert "mean cosine of tokens" in all_text(figure)
    assert "largest eigenvalue's share" in all_text(figure)
    assert faults(figure) == {}


def test_another_tap_is_not_drawn() -> None:
    made = tables()
    rows = made["metrics"]
    other = rows[(rows["metric"] == "sink_norm_ratio") & (rows["layer"] > 0)].assign(tap="mlp", value=1e6)
    both = {"metrics": pd.concat([other, rows], ignore_index=True)}
    first, second = (lines(panels(sink.draw(given))[0]) for given in (made, both))
    np.testing.assert_allclose(first["raw"], second["raw"])


@pytest.mark.parametrize("wanted", ["verses", "no-such-corpus"])
def test_the_corpus_is_the_one_asked_for_or_the_first(wanted: str) -> None:
    made = tables()
    found = all_text(sink.draw(made, dataset=wanted))
    assert f"On {'verses' if wanted == 'verses' else 'lee'}, means over n documents" in found


def test_one_metric_alone_and_a_layer_without_a_value() -> None:
    rows = tables({"minilm-l6": 7})["metrics"]
    rows = rows[rows["metric"] == "sink_variance_share"].copy()
    rows.loc[rows["layer"] == 2, "value"] = np.nan
    figure = sink.draw({"metrics": rows})
    assert len(panels(figure)) == 1
    assert np.isnan(lines(panels(figure)[0])["raw"][2])
    assert faults(figure) == {}


def test_entropy_alone_is_no_account() -> None:
    rows = tables()["metrics"]
    figure = sink.draw({"metrics": rows[rows["metric"] == "prompt_entropy"]})
    assert panels(figure) == []
    assert "metrics.csv has neither of sink_norm_ratio, sink_variance_share" in " ".join(
        text.get_text().replace("\n", " ") for axes in figure.axes for text in axes.texts
    )
