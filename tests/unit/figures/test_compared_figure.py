"""The figure that compares models by a label: colours by value, a panel for corpora that only some models read."""

import numpy as np
import pandas as pd
import pytest
from layerwise.figures import compared
from layerwise.figures.registry import resolve
from layerwise.figures.report import subject
from looking import all_text, faults, lines, panels

SIZES = {"small": "14M", "middle": "410M", "large": "1.4B"}


def metrics(models: dict[str, str], dataset: str = "wiki", layers: int = 5) -> pd.DataFrame:
    rows = []
    for place, model in enumerate(models):
        for metric, kind, name in (
            ("prompt_entropy", "recipe", "raw"),
            ("prompt_entropy", "recipe", "centre_unit_skip_first"),
            ("dime", "readout", "mean_normed"),
        ):
            for layer in range(layers + place):
                rows.append(
                    {"model": model, "dataset": dataset, "task": "", "metric": metric, "variant": "paper", "readout": ""}
                    | {"recipe": "", "parameters": "{}", "tap": "residual", "unit": "nats", "undefined": "", "layer": layer}
                    | {"depth": layer / (layers + place - 1), "value": place + 0.1 * layer, "normalized": 0.1 * place + 0.01}
                    | {"null_value": 2.0, "null_normalized": 0.9, "null_broken_pairs": "", "se": 0.1, "n": 40}
                    | {"n_excluded": 0, "split_half": 0.9, "saturated": False, kind: name}
                )
    return pd.DataFrame(rows)


def test_sizes_go_from_pale_to_dark_whatever_their_order() -> None:
    shades = compared.colours(["1.4B", "14M", "410M"])
    assert list(shades) == ["14M", "410M", "1.4B"]
    assert compared.colours(["7", "70", "8"]) != compared.colours(["a", "b"])
    assert [compared.amount(value) for value in ("14M", "1.4B", "12", "x", "1.2.3")] == [14e6, 1.4e9, 12.0, None, None]


def test_a_panel_per_metric_and_a_line_per_model() -> None:
    figure = compared.draw({"metrics": metrics(SIZES)}, label="size", values=SIZES, dataset="wiki")
    assert faults(figure) == {}
    assert len(panels(figure)) == 3
    last = lines(panels(figure)[2])
    assert set(last) == {"small", "middle", "large", "null"}
    np.testing.assert_allclose(last["middle"][:, 1], 1 + 0.1 * np.arange(6))
    for word in ("How do the layers differ by size?", "14M", "1.4B", "n = 40", "raw, wiki"):
        assert word in all_text(figure)


def test_models_of_one_value_share_its_colour_and_label() -> None:
    values = {"a": "causal", "b": "masked", "c": "causal"}
    figure = compared.draw({"metrics": metrics(values)}, label="objective", values=values)
    colours = {str(line.get_label()): line.get_color() for line in panels(figure)[0].lines}
    assert colours["a"] == colours["c"] != colours["b"]
    assert "causal: 2 models" in all_text(figure)


def test_models_that_read_another_corpus_have_panels_of_their_own() -> None:
    values = {"a": "causal", "b": "masked", "v": "causal", "w": "masked"}
    both = pd.concat([metrics({"a": "", "b": ""}), metrics({"v": "", "w": ""}, "pictures")], ignore_index=True)
    figure = compared.draw({"metrics": both}, label="objective", values=values, dataset="wiki")
    assert len(panels(figure)) == 6
    assert "mean_normed, pictures" in all_text(figure)
    assert faults(figure) == {}


@pytest.mark.parametrize("values", [{}, {"small": "14M"}, {"small": "14M", "middle": "14M"}, {"unknown": "1", "other": "2"}])
def test_fewer_than_two_values_are_a_sentence(values: dict[str, str]) -> None:
    figure = compared.draw({"metrics": metrics(SIZES)}, label="size", values=values)
    assert panels(figure) == []
    assert "There is nothing to compare" in all_text(figure)


def test_the_report_names_it() -> None:
    assert resolve("compared~size") == ("compared", {"label": "size"})
    assert subject("compared~size", {"metrics": metrics(SIZES)}, {"values": SIZES}) == "layers by size, n = 40 samples"
