"""A window's results: filled batch by batch in any order, in the order of the dataset's rows."""

import numpy as np
from layerwise.activations.window import Window


def test_results_land_at_their_rows() -> None:
    kept = np.array([9, 9, 1, 3, 2, 9])
    window = Window(range(2, 5), kept)
    window.put("readout/a/000", [4, 2], np.array([[4.0, 40.0], [2.0, 20.0]]))
    window.put("readout/a/000", [3], np.array([[3.0, 30.0]]))
    window.put("tokens/raw/spectrum/000", [3, 4], np.array([[31.0, 32.0, 33.0, 0.0], [41.0, 42.0, 0.0, 0.0]]))
    window.put("tokens/raw/spectrum/000", [2], np.array([[np.nan, np.nan]]))
    assert window.start == 2
    assert window.arrays["readout/a/000"].tolist() == [[2, 20], [3, 30], [4, 40]]
    np.testing.assert_array_equal(window.arrays["tokens/raw/spectrum/000"], [np.nan, 31, 32, 33, 41, 42])
    assert {values.dtype for values in window.arrays.values()} == {np.dtype("f4")}
