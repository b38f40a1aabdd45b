"""The same rows through the table and through the arena's sums by event give the same numbers."""

from dataclasses import replace

import numpy as np
import pytest
from tests.scoring.made_standings import arena

from foretell.metrics import METRICS, Bettor, Resampling
from foretell.scoring.arena_leaderboard import (
    ARENA_METRICS,
    ScoredArena,
    arena_leaderboard,
    arena_leaderboard_groups,
    verdicts_against_market,
    with_arena_baselines,
)
from foretell.scoring.arena_table import arena_as_table
from foretell.scoring.baselines import MARKET_PRICE
from foretell.scoring.score import ScoringOptions, score_table

RESAMPLING = Resampling(draws=400)
OPTIONS = ScoringOptions(
    metric="brier",
    metrics=tuple(METRICS),
    baselines=False,
    reference=MARKET_PRICE,
    cluster=("cluster",),
    resampling=RESAMPLING,
)
WHOLE = {"forecast_times": 2, "drop": 0.0, "quoted": 1.0}
PARTIAL = {"forecast_times": 3, "drop": 0.3, "quoted": 0.7}


def both(form, gamma=0.0):
    """The leaderboards of one arena, scored as an arena and as a table, with baselines."""
    standings = with_arena_baselines(arena(events=80, entries=("good", "bad"), **form))
    standings.p[0, ::7] = np.nan  # Events answered in part.
    scored = ScoredArena.of(standings, resampling=RESAMPLING)
    return scored, score_table(arena_as_table(standings), replace(OPTIONS, bettor=Bettor(gamma=gamma)))


@pytest.mark.parametrize("form", [WHOLE, PARTIAL], ids=["whole", "partial"])
@pytest.mark.parametrize("metric", [name for name in ARENA_METRICS if name != "sharpe"])
def test_arena_and_table_have_the_same_estimates_and_intervals(form, metric):
    name, _, gamma = metric.partition("_gamma")
    scored, board = both(form, float(gamma or 0))
    lines = {line.entry.name: line for line in arena_leaderboard(scored)}
    for row in board.group(kind="overall"):
        here, there = row.metrics.get(name), lines[row.forecaster].scores.get(metric)
        if here is None or there is None:  # The market price never buys No at its own price.
            assert here is there
            continue
        assert here.estimate == pytest.approx(there.estimate, rel=1e-12), row.forecaster
        # One set of draws: intervals differ by rounding to single precision only.
        assert (here.low, here.high, here.se) == pytest.approx((there.low, there.high, there.se), rel=1e-4, abs=1e-6)
        assert here.n_clusters == there.n_clusters


@pytest.mark.parametrize("form", [WHOLE, PARTIAL], ids=["whole", "partial"])
def test_verdicts_of_a_table_and_of_an_arena_are_the_same(form):
    scored, board = both(form)
    verdicts = verdicts_against_market(scored)
    gaps = {verdict.first: verdict for verdict in board.verdicts}
    assert gaps.keys() == verdicts.keys()
    for name, verdict in verdicts.items():
        assert gaps[name].diff == pytest.approx(verdict.diff, rel=1e-9, abs=1e-12)
        assert (gaps[name].low, gaps[name].high) == pytest.approx((verdict.low, verdict.high), rel=1e-3, abs=1e-6)
        assert gaps[name].p == pytest.approx(verdict.p, abs=0.01)
        assert gaps[name].says == verdict.says


def test_arena_and_table_have_the_same_groups():
    scored, _ = both(WHOLE)
    board = score_table(arena_as_table(scored.arena), ScoringOptions(**{**vars(OPTIONS), "by": ("category",)}))
    for group in arena_leaderboard_groups(scored, "category"):
        rows = {row.forecaster: row for row in board.group(category=group.name)}
        for line in group.lines:
            there = rows[line.entry.name].metrics["brier"].estimate
            assert there == pytest.approx(line.scores["brier"].estimate, rel=1e-12)


def test_sharpe_ratio_of_an_arena_counts_an_event_as_one_bet():
    """By market it is that of the table with every row counting once; by event the unit of a return is the event."""
    scored, _ = both({"forecast_times": 1, "drop": 0.0, "quoted": 1.0})
    table = arena_as_table(scored.arena)
    plain = type(table)(**{**vars_of(table), "weighing": "given", "targets": equal_weights(table.targets)})
    board = score_table(plain, OPTIONS)
    lines = {line.entry.name: line for line in arena_leaderboard(scored)}
    for row in board.group(kind="overall"):
        there = lines[row.forecaster].by_market["sharpe"].estimate
        if row.metrics["brier"].n_clusters == 80 and row.completion == 1:
            assert row.metrics["sharpe"].estimate == pytest.approx(there, rel=1e-9)


def vars_of(table):
    return {name: getattr(table, name) for name in type(table).__dataclass_fields__}


def equal_weights(targets):
    return type(targets)(**{**vars_of(targets), "weight": np.ones(len(targets))})
