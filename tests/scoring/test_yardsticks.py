import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scoring.made_standings import DAY, START, Answer, arena, one_asking, several, table_of

from foretell import score
from foretell.metrics import METRICS
from foretell.scoring.arena_leaderboard import (
    ScoredArena,
    adjusted_scores,
    arena_leaderboard,
    past_rate,
    with_arena_baselines,
)
from foretell.scoring.arena_table import ArenaTable
from foretell.scoring.baselines import BASELINES, MARKET_PRICE


def test_base_rate_matches_a_hand_computation():
    standings = several(
        one_asking("old", p=(0.5, 0.5), outcome=(1, 1)),
        one_asking("also", p=(0.5,), outcome=(0,)),
        one_asking("asked", at=START + 2 * DAY, p=(0.5,), outcome=(1,)),
    )
    # Two events resolved a day after the start: one all yes, one no; two pseudo-events at one half.
    assert past_rate(standings).tolist() == pytest.approx([0.5, 0.5, 0.5, (1 + 0 + 1) / (2 + 2)])


def test_outcomes_known_exactly_at_the_forecast_time_do_not_count():
    standings = several(one_asking("old", outcome=(1,)), one_asking("now", at=START + DAY, outcome=(0,)))
    assert past_rate(standings).tolist() == [0.5, 0.5]
    later = several(one_asking("old", outcome=(1,)), one_asking("now", at=START + DAY + DAY / 24, outcome=(0,)))
    assert past_rate(later).tolist() == pytest.approx([0.5, 2 / 3])


def test_categories_have_their_own_rate():
    standings = several(
        one_asking("old", outcome=(1,), category="Sports"),
        one_asking("a", at=START + 3 * DAY, category="Sports"),
        one_asking("b", at=START + 3 * DAY, category="Politics"),
    )
    assert past_rate(standings).tolist() == pytest.approx([0.5, 2 / 3, 0.5])


def altered(standings: ArenaTable, later: np.ndarray, seed: int) -> ArenaTable:
    from dataclasses import replace

    outcome = standings.markets.outcome.copy()
    outcome[later] = np.random.default_rng(seed).integers(0, 2, int(later.sum()))
    return replace(standings, markets=replace(standings.markets, outcome=outcome))


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), day=st.integers(0, 20))
def test_later_outcomes_do_not_change_the_base_rate(seed, day):
    standings = arena(events=30, seed=seed % 7)
    cut = np.datetime64((START + day * DAY).replace(tzinfo=None), "s")
    asked_by_then = (standings.forecast_times.taken_at <= cut)[standings.markets.forecast_time]
    other = altered(standings, standings.markets.known_at >= cut, seed)
    assert past_rate(other)[asked_by_then].tolist() == past_rate(standings)[asked_by_then].tolist()


def test_baselines_are_on_every_leaderboard():
    names = {line.entry.name for line in arena_leaderboard(ScoredArena.of(arena(events=20))) if line.entry.baseline}
    assert names == set(BASELINES)


def test_an_entry_with_the_name_of_a_baseline_replaces_it():
    asking, known, _ = one_asking(quotes=[0.4, np.nan, np.nan, np.nan])
    answer = Answer(entry=MARKET_PRICE, event="e", taken_at=START, p={"t0": 0.7})
    standings = with_arena_baselines(table_of("x", [asking], known, [answer]))
    assert standings.names.count(MARKET_PRICE) == 1
    assert standings.row(MARKET_PRICE).tolist() == [0.7]
    assert standings.entries[0].baseline


def test_a_forecaster_that_repeats_a_baseline_has_the_same_scores():
    """0.5 for everything, or the price where there is one: the same metrics, intervals, n and completion."""
    rng = np.random.default_rng(0)
    outcomes: list[dict[str, object]] = []
    forecasts: list[dict[str, object]] = []
    for i in range(60):
        price = None if i % 4 == 0 else round(float(rng.uniform(0.05, 0.95)), 3)
        happened = int(rng.random() < (price or 0.5))
        for target in ("x", "y")[: 1 + i % 2]:
            key = {"question": f"q{i}", "target": target}
            outcomes.append({**key, "outcome": happened if target == "x" else 1 - happened, "price": price})
            forecast = {"half": 0.5, "copy": price, "own": round(float(rng.uniform(0.05, 0.95)), 3)}
            forecasts += [{**key, "forecaster": who, "p": p} for who, p in forecast.items() if p is not None]
    # A peer score compares with the others, and a copy is one of them.
    names = tuple(name for name in METRICS if name != "peer")
    rows = {row.forecaster: row for row in score(forecasts, outcomes, metrics=names).scores}
    for own, baseline in (("half", "always 0.5"), ("copy", "market price")):
        mine, other = rows[own], rows[baseline]
        assert (mine.n, mine.completion) == (other.n, other.completion)
        assert mine.metrics == other.metrics


def test_interval_of_an_adjusted_brier_score_does_not_go_below_zero():
    scores = [
        score
        for seed in range(8)
        for row in adjusted_scores(ScoredArena.of(arena(events=6, forecast_times=1, seed=seed, drop=0.5))).values()
        for score in row.values()
    ]
    assert len(scores) > 8
    assert [score for score in scores if score.low < min(0.0, score.estimate)] == []
