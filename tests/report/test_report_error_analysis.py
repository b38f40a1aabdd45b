import math
from collections.abc import Callable

import numpy as np
import pytest

from foretell.scoring.breakdown import error_analysis, overall, representativeness, standardised_difference
from foretell.scoring.score import ScoringOptions
from foretell.scoring.table import ForecastTable


def test_easiest_and_hardest_match_a_hand_computation(build_table: Callable[..., ForecastTable]) -> None:
    table = build_table(
        {"a": np.array([0.9, 0.2, 0.6, np.nan]), "b": np.array([0.5, 0.5, 0.5, 0.5])},
        np.array([1, 1, 0, 1]),
        title=["one", "two", "three", "four"],
    )
    analysis = error_analysis(table, "a")
    assert [c.brier for c in analysis.hardest] == pytest.approx([0.64, 0.36, 0.01])
    worst = analysis.hardest[0]
    assert (worst.question, worst.target, worst.title, worst.p, worst.outcome) == ("q0", "t1", "two", 0.2, 1)
    assert worst.field == pytest.approx((0.64 + 0.25) / 2)
    assert math.isnan(worst.price)
    assert analysis.easiest[0].title == "one"
    assert np.isnan(analysis.brier[3])


def test_breakdowns_cover_every_readable_column(table: ForecastTable) -> None:
    analysis = error_analysis(table, "good", "half")
    assert [b.column for b in analysis.breakdowns] == ["source", "horizon", "due", "volume"]
    assert len(analysis.breakdowns[-1].groups) == 5
    assert all(b.n and max(b.n) <= 60 for b in analysis.differences)
    assert error_analysis(table, "good").differences == ()


def test_overall_is_the_mean_over_kinds(build_table: Callable[..., ForecastTable]) -> None:
    outcome = np.zeros(40)
    p = np.where(np.arange(40) < 10, 0.1, 0.3)
    table = build_table({"a": p}, outcome, kind=["market"] * 10 + ["dataset"] * 30)
    interval = overall(table, "a", ScoringOptions(metric="brier_index"))
    assert interval is not None
    assert interval.estimate == pytest.approx(80.0)


def test_shares_of_worst_bins_add_up_to_the_calibration_error(table: ForecastTable) -> None:
    bins = error_analysis(table, "good").worst_bins
    assert sum(b.share_of_error for b in bins) == pytest.approx(1)
    assert [b.share_of_error for b in bins] == sorted((b.share_of_error for b in bins), reverse=True)
    assert sum(b.count for b in bins) == 120


def test_standardised_difference_matches_a_hand_computation() -> None:
    assert standardised_difference(0.5, 0.25) == pytest.approx(0.25 / math.sqrt((0.25 + 0.1875) / 2))
    assert standardised_difference(0.2, 0.2) == 0
    assert standardised_difference(1.0, 0.0) == math.inf


def test_default_sample_is_the_answered_targets(table: ForecastTable) -> None:
    shares = {(s.column, s.group): s for s in error_analysis(table, "half").shares}
    early = shares["due", "2025-01-01"]
    assert (early.in_sample, early.in_whole) == (1.0, 0.5)
    assert shares["source", "alpha"].difference == pytest.approx(0)


def test_an_empty_sample_has_no_shares(table: ForecastTable) -> None:
    assert representativeness(table, np.zeros(120, dtype=np.bool_)) == ()
