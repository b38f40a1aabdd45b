"""When a standing question is looked at: halfway to its close, in between at an interval, and daily after the close."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from foretell.arena.select import next_forecast_time
from foretell.questions.clock_jump import TOLERANCE
from foretell.standing.confirm import last_day
from foretell.standing.record import StandingQuestion
from foretell.standing.settings import watch_keys

AFTER_CLOSE = timedelta(days=1)
"""Shortest time between looks at a question that has closed and waits for its outcome."""


def scheduled_times(standing: StandingQuestion) -> Iterator[datetime]:
    """Yield the scheduled looks of a question: each halfway from the one before to the close, then the close itself."""
    closes = last_day(standing.question)
    if closes is None:
        return
    gap = timedelta(hours=watch_keys(standing.settings).minimum_gap_hours)
    at = standing.opened_at
    while (following := next_forecast_time(at, closes, gap)) is not None:
        at = following
        yield at
    yield closes


def is_scheduled(standing: StandingQuestion, last: datetime, now: datetime) -> bool:
    """Whether a scheduled look has come since the last one; several that are overdue are one."""
    return any(last < at <= now for at in scheduled_times(standing))


def interval(standing: StandingQuestion, now: datetime) -> timedelta:
    """Return the longest time to the next look."""
    every = timedelta(hours=watch_keys(standing.settings).every_hours)
    closes = last_day(standing.question)
    return every if closes is None or now < closes else max(every, AFTER_CLOSE)


def next_look(standing: StandingQuestion, now: datetime) -> datetime:
    """Return when to look again."""
    return min([now + interval(standing, now), *(at for at in scheduled_times(standing) if at > now)])


def set_back(standing: StandingQuestion, planned: datetime, now: datetime) -> bool:
    """Whether a look is planned later than any look is ever planned, because the clock was set back since."""
    return planned - now > interval(standing, now) + timedelta(seconds=TOLERANCE)
