from itertools import permutations

import numpy as np
import pytest
from tests.scoring.made_standings import arena

from foretell.metrics import Resampling, compare_paired
from foretell.scoring import CROWD, ScoredArena, divergence, entry_verdicts, lead_time_curve, verdicts_against


def event_scores(standings, p, common):
    """Brier score by event on the markets in the mask, written as loops; NaN for none."""
    out = np.full(len(standings.events), np.nan)
    for e in range(len(standings.events)):
        moments = []
        for m in np.flatnonzero(standings.moments.event == e):
            rows = [i for i in np.flatnonzero(standings.markets.moment == m) if common[i]]
            if rows:
                moments.append(np.mean([(p[i] - standings.markets.outcome[i]) ** 2 for i in rows]))
        if moments:
            out[e] = np.mean(moments)
    return out


@pytest.mark.parametrize(("drop", "quoted"), [(0.0, 1.0), (0.2, 1.0), (0.2, 0.7)])
def test_pairs_are_compared_on_what_both_answered(drop, quoted):
    scored = ScoredArena.of(arena(events=60, drop=drop, quoted=quoted), resampling=Resampling(draws=400))
    s = scored.arena
    found = entry_verdicts(scored, list(permutations(range(len(s.names)), 2)))
    for (i, j), verdict in found.items():
        a, b = s.names[i], s.names[j]
        common = np.isfinite(s.row(a)) & np.isfinite(s.row(b))
        plain = compare_paired(event_scores(s, s.row(a), common), event_scores(s, s.row(b), common))
        assert verdict.diff == pytest.approx(plain.diff, abs=1e-12)
        assert verdict.first_score.estimate == pytest.approx(plain.first.estimate, abs=1e-12)
        assert verdict.n == plain.n
        assert verdict.se == pytest.approx(plain.se, rel=0.2, abs=1e-6)
        assert verdict.diff == -found[j, i].diff


def test_the_better_entry_is_seen_to_be_better():
    found = verdicts_against(ScoredArena.of(arena(events=120)), CROWD)
    assert found["good"].diff < found["bad"].diff
    assert found["always 0.5"].says == "worse"


def test_lead_times_compare_the_same_markets():
    scored = ScoredArena.of(arena(events=60, moments=3, drop=0.1, quoted=0.8))
    curve = lead_time_curve(scored)
    assert [point.lead_time for point in curve.points] == ["1–3 d", "12–24 h"]
    s = scored.arena
    whole = np.all([np.isfinite(s.row(name)) for name in curve.entries], axis=0)
    for point in curve.points:
        low, high = {"1–3 d": (24, 72), "12–24 h": (12, 24)}[point.lead_time]
        within = (s.moments.hours > low) & (s.moments.hours <= high)
        rows = whole & within[s.markets.moment]
        # A moment counts only if everybody answered something in it; markets without a price count for nobody.
        assert point.scores["good"].estimate == pytest.approx(np.nanmean(event_scores(s, s.row("good"), rows)))
        crowd = np.nanmean(event_scores(s, s.row(CROWD), rows))
        assert point.versus_crowd["good"].diff == pytest.approx(point.scores["good"].estimate - crowd)


def test_one_who_joined_late_does_not_shrink_the_curve():
    standings = arena(events=60, moments=2)
    standings.p[1, : len(standings.markets) // 2] = np.nan
    curve = lead_time_curve(ScoredArena.of(standings))
    assert curve.left_out == ("bad",)
    assert sum(point.moments for point in curve.points) == 120


def test_distances_by_hand():
    scored = ScoredArena.of(arena(events=30, moments=2, drop=0.1))
    s, found = scored.arena, divergence(scored)
    a, b = s.row("good"), s.row("bad")
    means = []
    for e in range(len(s.events)):
        apart = []
        for m in np.flatnonzero(s.moments.event == e):
            rows = np.flatnonzero((s.markets.moment == m) & np.isfinite(a) & np.isfinite(b))
            if len(rows):
                apart.append(np.sqrt(sum((a[i] - b[i]) ** 2 for i in rows)))
        if apart:
            means.append(np.mean(apart))
    i, j = found.names.index("good"), found.names.index("bad")
    assert found.distance[i, j] == pytest.approx(np.mean(means))
    assert found.n[i, j] == len(means)
    assert found.distance[i, i] == 0
