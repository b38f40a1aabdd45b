"""When an event is asked about: halfway to its close, again and again, until there is no room left."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NEXT_FIRST, CLOSED_FIRST, WAITED = "the next moment was due first", "the event closed first", "it took too long"
"""Why a forecast is too late."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How often events are asked about."""

    minimum_gap_hours: float = 6.0
    """δ: no moment is planned closer to the close of its event."""
    most: int | None = None
    """Moments per event."""
    patience_hours: float | None = None
    """A forecast must be there so long after its moment; None: before the next moment, or the close."""

    def __post_init__(self) -> None:
        if not self.minimum_gap_hours > 0:
            raise ValueError(f"minimum_gap_hours = {self.minimum_gap_hours:g}: it must be above 0, or it never ends")
        if self.most is not None and self.most < 1:
            raise ValueError(f"most = {self.most}: at least one moment is needed")
        if self.patience_hours is not None and not self.patience_hours > 0:
            raise ValueError(f"patience_hours = {self.patience_hours:g}: it must be above 0")

    @property
    def gap(self) -> timedelta:
        """δ as a time."""
        return timedelta(hours=self.minimum_gap_hours)

    def following(self, number: int, planned: datetime, closes: datetime) -> datetime | None:
        """The moment after the one with that number, if there is to be one."""
        if self.most is not None and number + 1 >= self.most:
            return None
        return next_moment(planned, closes, self.gap)

    def deadline(self, number: int, planned: datetime, closes: datetime) -> tuple[datetime, str]:
        """Until when a moment can be answered, and what ends it."""
        ends = [(closes, CLOSED_FIRST)]
        following = self.following(number, planned, closes)
        if following is not None:
            ends.append((following, NEXT_FIRST))
        if self.patience_hours is not None:
            ends.append((planned + timedelta(hours=self.patience_hours), WAITED))
        return min(ends)


def next_moment(now: datetime, closes_at: datetime, minimum_gap: timedelta) -> datetime | None:
    """Halfway to the close, if what is left then is at least the gap (Prophet Arena 2025, appendix B.2).

    With Δ = close − t₀ the moments are t_k = close − 2⁻ᵏ·Δ.

    >>> day = datetime(2026, 1, 1, tzinfo=UTC)
    >>> next_moment(day, day + timedelta(hours=48), timedelta(hours=6)).isoformat()
    '2026-01-02T00:00:00+00:00'
    >>> next_moment(day, day + timedelta(hours=10), timedelta(hours=6)) is None
    True
    """
    half = (closes_at - now) / 2
    return now + half if half >= minimum_gap else None


def slot(now: datetime, hours: float) -> datetime:
    """The start of the stretch of so many hours that now lies in; a day begins at midnight UTC.

    >>> slot(datetime(2026, 1, 1, 15, 30, tzinfo=UTC), 24).isoformat()
    '2026-01-01T00:00:00+00:00'
    """
    length = timedelta(hours=hours)
    return EPOCH + ((now - EPOCH) // length) * length


def question_date(now: datetime) -> datetime:
    """The moment as a question's date. Midnight sharp would stand for the whole day, so it is a microsecond later."""
    return now + timedelta(microseconds=1) if now == now.replace(hour=0, minute=0, second=0, microsecond=0) else now
