"""The figure of places inside a block: a line per tap, layer 0 in the residual stream alone."""

import numpy as np
import pandas as pd
import pytest
from layerwise.figures import taps
from layerwise.figures.report import subject
from looking import all_text, faults, lines, panels


def table(places: tuple[str, ...] = tuple(taps.PLACES), models: int = 2) -> pd.DataFrame:
    rows = []
    for model in range(models):
        for metric, kind, name in (
            ("prompt_entropy", "recipe", "raw"),
            ("prompt_entropy", "recipe", "centre_unit_skip_first"),
            ("dataset_entropy", "readout", "mean_normed"),
        ):
            for place, tap in enumerate(places):
                for layer in range(int(tap != "residual"), 5):
                    rows.append(
                        {"model": f"model-{model}", "dataset": "wiki", "task": "", "metric": metric, "variant": "paper"}
                        | {"readout": "", "recipe": "", "parameters": "{}", "tap": tap, "unit": "nats", "undefined": ""}
                        | {"layer": layer, "depth": layer / 4, "value": 5 * place + layer, "normalized": 0.1 * place + 0.01}
                        | {"null_value": 20, "null_normalized": 0.9, "null_broken_pairs": "", "se": 0.1, "n": 30}
                        | {"n_excluded": 0, "split_half": 0.9, "saturated": False, kind: name}
                    )
    return pd.DataFrame(rows)


def test_a_line_per_place() -> None:
    figure = taps.draw({"metrics": table()}, dataset="wiki")
    assert faults(figure) == {}
    assert len(panels(figure)) == 6
    drawn = lines(panels(figure)[0])
    assert [name for name in drawn if name != "null"] == [words for words, _ in taps.PLACES.values()]
    np.testing.assert_allclose(drawn["after the block"][:, 0], np.arange(5) / 4)
    np.testing.assert_allclose(drawn["MLP output"][:, 0], np.arange(1, 5) / 4)
    for word in ("model-1: layers 0 to 4, n = 30", "raw", "On wiki", "Where in a block do the metrics change?"):
        assert word in all_text(figure)


@pytest.mark.parametrize("frame", [pd.DataFrame(), table(("residual",)), table().assign(value=np.nan)])
def test_no_tap_is_a_sentence(frame: pd.DataFrame) -> None:
    figure = taps.draw({"metrics": frame}, dataset="wiki")
    assert panels(figure) == []
    assert "no dataset was read inside the blocks" in all_text(figure)


def test_one_tap_and_another_corpus() -> None:
    figure = taps.draw({"metrics": table(("residual", "mlp"), models=1)}, dataset="elsewhere")
    assert faults(figure) == {}
    assert set(lines(panels(figure)[0])) == {"after the block", "MLP output", "null"}


def test_the_report_names_it() -> None:
    assert subject("taps", {"metrics": table()}, {"dataset": "wiki"}) == "metrics inside the blocks, n = 30 samples"
