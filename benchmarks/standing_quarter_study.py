"""A simulated quarter of watched questions: what must hold, and whether watching beats asking once and asking daily.

Two hundred questions of a simulated world are watched for about ninety days: news and prices on an exchange, a budget
per day and per question, processes that are killed at random points, model calls that fail, and a clock that jumps.
Half of the questions have a market. A model that knows only its prompts answers. Asking daily has the same money: it
reads as many of the newest reports as that pays for, and asks less often if it must.

    PYTHONPATH=. python benchmarks/standing_quarter_study.py [--questions 200] [--days 90] [--seed 1]
"""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.standing.quarter import (
    DAY,
    GAP_HOURS,
    HOUR,
    Quarter,
    WatchedEvent,
    daily_at_cost,
    mean_brier,
    verdict,
    watched_events,
)

JUMPS = (
    (0.2, 8 * HOUR, 6 * DAY),
    (0.4, 12 * HOUR, -3 * DAY),
    (0.6, 24 * HOUR, -20 * DAY),
    (0.8, 8 * HOUR, 40 * DAY),
)
"""At which share of the quarter, for how long and by how much the clock is wrong."""


def main() -> None:
    """Print what must hold and the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--days", type=int, default=90)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=float, default=0.002, help="chance of a kill at each point")
    parser.add_argument("--day-budget", type=float, default=None, help="dollars (default: 0.004 per question)")
    given = parser.parse_args()
    events = watched_events(given.questions, given.seed, given.days)
    jumps = tuple((share * given.days * DAY, lasts, by) for share, lasts, by in JUMPS)
    day_budget = given.day_budget or 0.004 * given.questions
    with TemporaryDirectory() as folder:
        quarter = Quarter(
            home=Path(folder),
            events=events,
            seed=given.seed,
            kills=given.kills,
            failures=0.01,
            jumps=jumps,
            day_budget=day_budget,
            budget=0.6,
        )
        asyncio.run(quarter.run())
        result = quarter.results()
    print(f"{result.records} questions over {given.days} days, {result.looks:,} looks, {result.beliefs:,} beliefs")
    print(f"{result.killed} kills, {len(jumps)} jumps of the clock, {result.calls:,} model calls")
    print(f"reports with a figure: {result.informative:,}; missed {len(result.missed)}; counted twice {result.twice}")
    for missed in result.missed:
        print(f"  missed {missed}")
    print(f"longest time from a report to its look: {result.latest / HOUR:.1f} h (gap {GAP_HOURS:g} h)")
    money = f"${result.billed:.2f} billed, ${result.unknown:.2f} unknown (replies lost in kills)"
    print(f"{money}; looks state ${result.stated:.2f}")
    print(
        f"days over the budget of ${day_budget:.2f}: {result.days_over} (fullest ${result.fullest_day:.3f}); ", end=""
    )
    print(f"questions over theirs: {result.questions_over}")
    paths, spent, every, reports = daily_at_cost(events, result.billed, quarter.model)
    print(f"asking every {every} days with the {reports} newest reports costs ${spent:.2f}\n")
    for name, group in (
        ("all", events),
        ("with a market", [event for event in events if event.priced]),
        ("without a market", [event for event in events if not event.priced]),
    ):
        table(name, quarter, group, paths)


def table(name: str, quarter: Quarter, events: Sequence[WatchedEvent], daily: dict[str, object]) -> None:
    """Print the mean Brier score of the three ways to ask, and the verdicts on watching."""
    standing = [mean_brier(event, quarter.standing_path(event)) for event in events]
    once = [mean_brier(event, quarter.standing_path(event)[:1]) for event in events]
    truth = [mean_brier(event, event.truth()) for event in events]
    asked = [mean_brier(event, daily[event.question.id]) for event in events]  # type: ignore[arg-type]
    means = ", ".join(
        f"{label} {sum(scores) / len(scores):.4f}"
        for label, scores in (
            ("standing", standing),
            ("once", once),
            ("daily at equal cost", asked),
            ("the truth", truth),
        )
    )
    print(f"{name} ({len(events)} questions), mean Brier score: {means}")
    for other, scores in (("once", once), ("daily", asked)):
        print(f"  {verdict(standing, scores, ('standing', other)).sentence}")


if __name__ == "__main__":
    main()
