from itertools import permutations

import numpy as np
import pytest
from tests.scoring.made_standings import arena

from foretell.metrics import Resampling, compare_paired
from foretell.scoring.arena_leaderboard import (
    LEAD_TIMES,
    ScoredArena,
    arena_leaderboard,
    divergence,
    entry_verdicts,
    lead_time_of,
    point_scores,
    verdicts_against_market,
)
from foretell.scoring.arena_view import lead_time_curve
from foretell.scoring.baselines import MARKET_PRICE


def event_scores(standings, p, common):
    """Brier score by event on the markets in the mask, written as loops; NaN for none."""
    out = np.full(len(standings.events), np.nan)
    for e in range(len(standings.events)):
        scores = []
        for m in np.flatnonzero(standings.forecast_times.event == e):
            rows = [i for i in np.flatnonzero(standings.markets.forecast_time == m) if common[i]]
            if rows:
                scores.append(np.mean([(p[i] - standings.markets.outcome[i]) ** 2 for i in rows]))
        if scores:
            out[e] = np.mean(scores)
    return out


@pytest.mark.parametrize(("drop", "quoted"), [(0.0, 1.0), (0.2, 1.0), (0.2, 0.7)])
def test_pairs_are_compared_on_what_both_answered(drop, quoted):
    scored = ScoredArena.of(arena(events=60, drop=drop, quoted=quoted), resampling=Resampling(draws=400))
    s = scored.arena
    verdicts = entry_verdicts(scored, list(permutations(range(len(s.names)), 2)))
    for (i, j), verdict in verdicts.items():
        a, b = s.names[i], s.names[j]
        common = np.isfinite(s.row(a)) & np.isfinite(s.row(b))
        plain = compare_paired(event_scores(s, s.row(a), common), event_scores(s, s.row(b), common))
        assert verdict.diff == pytest.approx(plain.diff, abs=1e-12)
        assert verdict.first_score.estimate == pytest.approx(plain.first.estimate, abs=1e-12)
        assert verdict.n == plain.n
        assert verdict.se == pytest.approx(plain.se, rel=0.2, abs=1e-6)
        assert verdict.diff == -verdicts[j, i].diff


@pytest.mark.parametrize(("drop", "quoted"), [(0.2, 1.0), (0.0, 0.7), (0.2, 0.7)])
def test_scores_beside_the_market_differ_by_the_difference_shown(drop, quoted):
    scored = ScoredArena.of(arena(events=60, drop=drop, quoted=quoted), resampling=Resampling(draws=400))
    verdicts = verdicts_against_market(scored)
    market = next(row.fair for row in arena_leaderboard(scored) if row.entry.name == MARKET_PRICE)
    points = {row.entry.name: row.fair for row in point_scores(scored.arena)}
    for row in arena_leaderboard(scored):
        if row.entry.name != MARKET_PRICE:
            assert row.fair.estimate - market.estimate == pytest.approx(verdicts[row.entry.name].diff, abs=1e-12)
        assert row.fair.low <= row.fair.estimate <= row.fair.high
        assert points[row.entry.name].estimate == pytest.approx(row.fair.estimate)
        index = row.fair_index
        assert index.estimate == pytest.approx(100 * (1 - row.fair.estimate**0.5))
        assert index.low <= index.estimate <= index.high


def test_the_better_entry_has_the_lower_difference_to_the_market():
    verdicts = verdicts_against_market(ScoredArena.of(arena(events=120)))
    assert verdicts["good"].diff < verdicts["bad"].diff
    assert verdicts["always 0.5"].says == "worse"


def test_lead_times_compare_the_same_markets():
    scored = ScoredArena.of(arena(events=60, forecast_times=3, drop=0.1, quoted=0.8))
    curve = lead_time_curve(scored)
    assert [point.lead_time for point in curve.points] == ["1–3 d", "12–24 h"]
    s = scored.arena
    whole = np.all([np.isfinite(s.row(name)) for name in curve.entries], axis=0)
    for point in curve.points:
        low, high = {"1–3 d": (24, 72), "12–24 h": (12, 24)}[point.lead_time]
        within = (s.forecast_times.hours > low) & (s.forecast_times.hours <= high)
        rows = whole & within[s.markets.forecast_time]
        # A forecast time counts only if every entry answered something; markets without a price do not count.
        assert point.scores["good"].estimate == pytest.approx(np.nanmean(event_scores(s, s.row("good"), rows)))
        market = np.nanmean(event_scores(s, s.row(MARKET_PRICE), rows))
        assert point.versus_market["good"].diff == pytest.approx(point.scores["good"].estimate - market)


def test_an_entry_that_joined_late_does_not_shrink_the_lead_time_curve():
    standings = arena(events=60, forecast_times=2)
    standings.p[1, : len(standings.markets) // 2] = np.nan
    curve = lead_time_curve(ScoredArena.of(standings))
    assert curve.left_out == ("bad",)
    assert sum(point.forecast_times for point in curve.points) == 120


def test_a_lead_time_includes_its_longer_end_and_nothing_beyond():
    ends = np.array([3.0, 6.0, 12.0, 24.0, 3 * 24, 7 * 24, 30 * 24])
    assert lead_time_of(ends).tolist() == list(range(7))
    assert lead_time_of(ends + 0.01).tolist() == list(range(1, 8))
    assert LEAD_TIMES[-1].name == "over 30 d"


def test_an_event_asked_once_counts_for_the_distances():
    distances = divergence(ScoredArena.of(arena(events=30, forecast_times=1)), ["good", "bad"])
    assert distances.n.tolist() == [[30, 30], [30, 30]]


def test_distances_match_a_hand_computation():
    scored = ScoredArena.of(arena(events=30, forecast_times=2, drop=0.1))
    s, distances = scored.arena, divergence(scored)
    a, b = s.row("good"), s.row("bad")
    means = []
    for e in range(len(s.events)):
        apart = []
        for m in np.flatnonzero(s.forecast_times.event == e):
            rows = np.flatnonzero((s.markets.forecast_time == m) & np.isfinite(a) & np.isfinite(b))
            if len(rows):
                apart.append(np.sqrt(sum((a[i] - b[i]) ** 2 for i in rows)))
        if apart:
            means.append(np.mean(apart))
    i, j = distances.names.index("good"), distances.names.index("bad")
    assert distances.distance[i, j] == pytest.approx(np.mean(means))
    assert distances.n[i, j] == len(means)
    assert distances.distance[i, i] == 0
