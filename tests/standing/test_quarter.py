"""A small simulated quarter: nothing is missed, nothing happens twice, and the budgets hold, whatever is killed."""

import asyncio
from datetime import timedelta
from pathlib import Path

from tests.standing.quarter import DAY, GAP_HOURS, HOUR, Quarter, mean_brier, verdict, watched_events


def test_a_quarter_with_kills_failures_and_a_clock_that_jumps(tmp_path: Path) -> None:
    events = watched_events(10, seed=3, days=60)
    jumps = ((12 * DAY, 8 * HOUR, 6 * DAY), (25 * DAY, 12 * HOUR, -3 * DAY))
    quarter = Quarter(home=tmp_path, events=events, kills=0.01, failures=0.02, jumps=jumps, day_budget=0.2, budget=0.5)
    asyncio.run(quarter.run())
    result = quarter.results()
    assert result.killed > 3
    assert result.records == 10
    assert result.informative > 50
    assert (result.missed, result.twice) == ((), 0)
    assert result.latest <= timedelta(hours=GAP_HOURS)
    assert (result.days_over, result.questions_over) == (0, 0)
    assert 0 < result.billed <= 10 * 0.5
    once = [mean_brier(event, quarter.standing_path(event)[:1]) for event in events]
    standing = [mean_brier(event, quarter.standing_path(event)) for event in events]
    assert verdict(standing, once, ("standing", "once")).diff < 0
