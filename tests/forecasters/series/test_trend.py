import numpy as np
import pytest
from scipy.stats import norm

from foretell.forecasters.series import AskedSeries, SeriesChances
from foretell.forecasters.series.forecasters import hybrid, linear, safe

DAYS = np.arange("2024-01-01", "2024-01-05", dtype="M8[D]")
VALUES = np.array([1.0, 3.0, 2.0, 4.0])
DUE = np.datetime64("2024-01-04")


def test_line_by_hand() -> None:
    # x = 0..3: slope 0.8, mean 2.5 at 1.5; residuals −0.3, 0.9, −0.9, 0.3; σ̂² = 1.8 / 2; at x = 5 the line is 5.3.
    chances = linear(AskedSeries(DAYS, VALUES, DUE, np.array(["2024-01-06"], "M8[D]")))
    assert chances.above[0] == pytest.approx(norm.sf((4 - 5.3) / np.sqrt(0.9)))
    assert chances.above[0] + chances.below[0] == pytest.approx(1.0)


def test_only_the_last_window_counts() -> None:
    early = np.concatenate([np.full(50, 1000.0), VALUES])
    when = DUE - np.arange(len(early))[::-1].astype("m8[D]")
    ahead = np.array(["2024-01-06"], "M8[D]")
    assert linear(AskedSeries(when, early, DUE, ahead), window=4).above == pytest.approx(
        linear(AskedSeries(DAYS, VALUES, DUE, ahead)).above
    )


def test_a_constant_has_no_spread_and_does_not_exceed_itself() -> None:
    chances = linear(AskedSeries(DAYS, np.full(4, 2.0), DUE, np.array(["2024-02-01"], "M8[D]")))
    assert (chances.above[0], chances.below[0], chances.atom[0]) == (0.0, 0.0, 1.0)


def test_safe_mixes_with_one_half() -> None:
    mixed = safe(SeriesChances(above=np.array([0.9]), below=np.array([0.1])), 0.1)
    assert mixed.above[0] == pytest.approx(0.1 * 0.9 + 0.9 * 0.5)


def test_hybrid_without_prior_years_is_safe_linear() -> None:
    ahead = np.array(["2024-06-01"], "M8[D]")
    expected = safe(linear(AskedSeries(DAYS, VALUES, DUE, ahead), window=30), 0.5).above
    assert hybrid(AskedSeries(DAYS, VALUES, DUE, ahead)).above == pytest.approx(expected)


def test_hybrid_with_prior_years_is_half_of_each() -> None:
    when = np.concatenate([np.array(["2023-06-01"], "M8[D]"), DAYS])
    values = np.concatenate([[9.0], VALUES])
    ahead = np.array(["2024-06-01"], "M8[D]")
    line = safe(linear(AskedSeries(when, values, DUE, ahead), window=4), 0.5).above[0]
    got = hybrid(AskedSeries(when, values, DUE, ahead), *(4, 0.5, 0.5)).above[0]
    assert got == pytest.approx(0.5 * line + 0.5 * (1 + 1) / (1 + 2))
