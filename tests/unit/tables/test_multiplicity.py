"""q-values against scipy, and families that do not see each other."""

import numpy as np
import pandas as pd
from layerwise.tables.multiplicity import benjamini_hochberg, q_values
from scipy import stats


def test_q_values_equal_scipys() -> None:
    rng = np.random.default_rng(0)
    for p in (rng.random(40) ** 3, np.round(rng.random(30), 1), np.ones(3), np.array([0.2])):
        np.testing.assert_allclose(benjamini_hochberg(p), stats.false_discovery_control(p))


def test_what_is_no_test_is_not_counted() -> None:
    q = benjamini_hochberg([0.01, np.nan, 0.04, np.nan])
    np.testing.assert_allclose(q, [0.02, np.nan, 0.04, np.nan])
    assert benjamini_hochberg([]).tolist() == []
    assert np.isnan(benjamini_hochberg([np.nan, np.nan])).all()


def test_listing_every_test_twice_changes_nothing() -> None:
    p = np.random.default_rng(1).random(12)
    np.testing.assert_allclose(benjamini_hochberg(np.concatenate([p, p]))[:12], benjamini_hochberg(p))


def test_a_family_does_not_see_another() -> None:
    table = pd.DataFrame({"model": ["a", "b", "a", "b", "b"], "p": [0.01, 0.5, 0.02, 0.03, None]})
    np.testing.assert_allclose(q_values(table, "p", ["model"]), [0.02, 0.5, 0.02, 0.06, np.nan])
    assert q_values(table.iloc[:0], "p", ["model"]).empty


def test_independent_tests_without_effect_are_rarely_called_found() -> None:
    p = np.random.default_rng(2).random((2000, 20))
    found = np.mean([(benjamini_hochberg(row) <= 0.05).any() for row in p])
    assert 0.03 < found < 0.07
