"""Which events an arena selects, by rules fixed before any forecast, and when it asks about each of them."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import stdev

from foretell.data.http import SourceError
from foretell.data.markets.listing import ListedEvent
from foretell.data.markets.market import PricePoint, PriceSource, PricesUnavailable, market_ref
from foretell.frozen import frozen
from foretell.questions.as_of import AsOf
from foretell.questions.field_checks import check_least
from foretell.questions.question import Target

RejectReason = str
OTHER_CATEGORY = "other"
"""Name for all categories that are not listed."""


@frozen
class SelectionRules:
    """Rules for the events worth asking about (Prophet Arena 2025, appendix B.1). They are deterministic."""

    closes_after_hours: float = 24.0
    closes_within_days: float = 60.0
    volume: float = 0.0
    """Minimum volume, in the platform's own unit. For all minima, a figure that the platform does not give fails."""
    volume_24h: float = 0.0
    liquidity: float = 0.0
    open_interest: float = 0.0
    traders: int = 0
    volatility: float = 0.0
    """Minimum standard deviation of the daily price changes of an event's most volatile market."""
    most_outcomes: int = 20
    exclude: tuple[str, ...] = ()
    """Words or phrases; an event with one of them in its title, category, tags or outcomes is rejected."""
    only: tuple[str, ...] = ()
    """Categories or tags to accept; empty accepts all."""
    per_day: int = 20
    categories: Mapping[str, int] = field(default_factory=dict[str, int])
    """Maximum number of events per category and day; `other` applies to every category that is not named."""
    same_format_days: float = 7.0
    """Days for which an event is rejected after another event of the same recurring format was selected."""

    def __post_init__(self) -> None:
        for name in ("volume", "volume_24h", "liquidity", "open_interest", "traders", "volatility"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} = {getattr(self, name)}: a minimum cannot be below 0")
        check_least(self, most_outcomes=1, per_day=1)
        if self.closes_after_hours / 24 >= self.closes_within_days:
            raise ValueError("closes_within_days ends before closes_after_hours begins")
        if wrong := [name for name, most in self.categories.items() if most < 0]:
            raise ValueError(f"categories.{wrong[0]}: a number of events cannot be below 0")


@frozen
class PastSelection:
    """An event that was selected before."""

    event: str
    category: str
    format: str
    at: datetime


@frozen
class Selection:
    """The result of a selection: every new event is either chosen or rejected."""

    chosen: tuple[ListedEvent, ...]
    rejected: tuple[tuple[ListedEvent, RejectReason], ...]

    @property
    def counts(self) -> Mapping[RejectReason, int]:
        """Number of rejections by reason, most frequent first."""
        return dict(Counter(reason for _, reason in self.rejected).most_common())


def format_of(event: ListedEvent) -> str:
    """Return a name for the event's recurring format, shared by all events of the platform that repeat it."""
    return f"{event.platform}:{event.recurrence}"


def select(
    listed: Iterable[ListedEvent],
    rules: SelectionRules,
    taken: Iterable[PastSelection],
    now: datetime,
    *,
    volatility: Mapping[str, float] | None = None,
) -> Selection:
    """Choose among the events that are not selected yet. The order of `listed` does not matter.

    Events with the highest volume come first. An event whose volatility is unknown fails any minimum volatility.
    """
    before = list(taken)
    known = {selection.event for selection in before}
    places = _Places(rules, before, now)
    chosen: list[ListedEvent] = []
    rejected: list[tuple[ListedEvent, RejectReason]] = []
    for event in sorted(listed, key=_by_volume):
        if event.question.id in known:
            continue
        reason = reject_reason(event, rules, now) or _too_calm(event, rules, volatility or {}) or places.refusal(event)
        if reason is None:
            places.take(event)
            chosen.append(event)
        else:
            rejected.append((event, reason))
    return Selection(chosen=tuple(chosen), rejected=tuple(rejected))


def _by_volume(event: ListedEvent) -> tuple[float, float, str]:
    return (-(event.volume or 0.0), -(event.volume_24h or 0.0), event.question.id)


def reject_reason(event: ListedEvent, rules: SelectionRules, now: datetime) -> RejectReason | None:
    """Return why an event is not worth asking about, regardless of other events; None if it is."""
    if event.status != "open":
        return f"it is {event.status}"
    if event.closes_at is None:
        return "no close date is stated"
    if event.closes_at < now + timedelta(hours=rules.closes_after_hours):
        return "it closes too soon"
    if event.closes_at > now + timedelta(days=rules.closes_within_days):
        return "it closes too late"
    if len(event.question.targets) > rules.most_outcomes:
        return "too many outcomes"
    return _topic(event, rules) or _figures(event, rules)


def _topic(event: ListedEvent, rules: SelectionRules) -> RejectReason | None:
    filed = {name.casefold() for name in (event.category, *event.tags)}
    if rules.only and not filed & {name.casefold() for name in rules.only}:
        return "another category"
    labels = [target.label or target.id for target in event.question.targets]
    text = " \n ".join((event.question.text, event.category, *event.tags, *labels)).casefold()
    excluded = next((word for word in rules.exclude if _mentions(text, word)), None)
    return None if excluded is None else f"excluded by the word {excluded!r}"


def _mentions(text: str, word: str) -> bool:
    """Return whether `word` occurs in `text` as whole words.

    >>> _mentions("who wins the warsaw derby?", "war"), _mentions("war in europe", "War")
    (False, True)
    """
    return re.search(rf"(?<!\w){re.escape(word.strip().casefold())}(?!\w)", text) is not None


def _figures(event: ListedEvent, rules: SelectionRules) -> RejectReason | None:
    for name in ("volume", "volume_24h", "liquidity", "open_interest", "traders"):
        least, figure = getattr(rules, name), getattr(event, name)
        if least > 0 and (figure is None or figure < least):
            words = name.replace("_", " ")
            return f"no {words} is stated" if figure is None else f"{words} below the minimum"
    return None


def _too_calm(event: ListedEvent, rules: SelectionRules, volatility: Mapping[str, float]) -> RejectReason | None:
    if rules.volatility <= 0:
        return None
    moves = volatility.get(event.question.id)
    if moves is None:
        return "it has no price history"
    return "volatility below the minimum" if moves < rules.volatility else None


class _Places:
    """Tracks how many places are left today, overall and by category, and which formats were selected recently."""

    def __init__(self, rules: SelectionRules, taken: Sequence[PastSelection], now: datetime) -> None:
        self._rules = rules
        today = [selection for selection in taken if selection.at.date() == now.date()]
        self._left = rules.per_day - len(today)
        self._by_category = Counter(selection.category.casefold() for selection in today)
        since = now - timedelta(days=rules.same_format_days)
        self._formats = {selection.format for selection in taken if selection.at > since}
        self._most = {name.casefold(): most for name, most in rules.categories.items()}

    def refusal(self, event: ListedEvent) -> RejectReason | None:
        if self._rules.same_format_days > 0 and format_of(event) in self._formats:
            return "an event of the same format was selected recently"
        category = event.category.casefold()
        most = self._most.get(category, self._most.get(OTHER_CATEGORY))
        if most is not None and self._by_category[category] >= most:
            return f"enough events of {event.category or 'no category'} were selected today"
        return "enough events were selected today" if self._left <= 0 else None

    def take(self, event: ListedEvent) -> None:
        self._left -= 1
        self._by_category[event.category.casefold()] += 1
        self._formats.add(format_of(event))


# The volatility of an event's prices, for rules that have a minimum.

DAYS = 14
FEWEST = 3
"""Minimum number of daily changes for a standard deviation."""
AT_ONCE = 4
LOOKED_AT = 4
"""Number of markets per event whose history is read: those with the highest volume."""


async def volatilities(
    events: Sequence[ListedEvent], rules: SelectionRules, prices: Mapping[str, PriceSource], now: datetime
) -> dict[str, float]:
    """Return the volatility by event id, for events that pass all other rules and have a price history."""
    slots = asyncio.Semaphore(AT_ONCE)
    as_of = AsOf(at=now, mode="live")

    async def with_id(event: ListedEvent) -> tuple[str, float | None]:
        async with slots:
            return event.question.id, await _liveliest(event, prices[event.platform], as_of)

    fitting = [event for event in events if event.platform in prices and reject_reason(event, rules, now) is None]
    results = await asyncio.gather(*map(with_id, fitting))
    return {id: value for id, value in results if value is not None}


async def _liveliest(event: ListedEvent, source: PriceSource, as_of: AsOf) -> float | None:
    """Return the volatility of the event's most volatile market, among those with the highest volume."""

    def traded(target: Target) -> float:
        return -(target.snapshot.volume or 0.0) if target.snapshot is not None else 0.0

    values: list[float] = []
    for target in sorted(event.question.targets, key=traded)[:LOOKED_AT]:
        if (ref := market_ref(event.question, target)) is None:
            continue
        with suppress(PricesUnavailable, SourceError):
            if (value := volatility(await source.prices(ref, as_of, DAYS))) is not None:
                values.append(value)
    return max(values, default=None)


def volatility(points: Sequence[PricePoint]) -> float | None:
    """Return the standard deviation of the changes from one day's last price to the next; None if there are too few.

    >>> from foretell.questions.as_of import instant
    >>> days = [PricePoint(at=instant(f"2026-01-0{n}"), p=p) for n, p in enumerate((0.5, 0.6, 0.5, 0.6), 1)]
    >>> round(volatility(days), 4)
    0.1155
    """
    by_day = {point.at.date(): point.p for point in points}
    values = [by_day[day] for day in sorted(by_day)]
    changes = [after - before for before, after in pairwise(values)]
    return stdev(changes) if len(changes) >= FEWEST else None


# When an event is asked about: repeatedly halfway to its close, until less than the minimum gap is left.

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NEXT_FIRST, CLOSED_FIRST, WAITED = "the next forecast was due first", "the event closed first", "it took too long"
"""Reasons why a forecast is too late."""


@frozen
class Schedule:
    """How often the arena asks about an event."""

    minimum_gap_hours: float = 6.0
    """δ in hours: no forecast time is planned closer than this to the close of its event."""
    most: int | None = None
    """Maximum number of forecast times per event; None means no limit."""
    patience_hours: float | None = None
    """Hours within which a forecast must be made; None means until the next forecast time or the close."""

    def __post_init__(self) -> None:
        if not self.minimum_gap_hours > 0:
            raise ValueError(f"minimum_gap_hours = {self.minimum_gap_hours:g}: it must be above 0")
        if self.most is not None and self.most < 1:
            raise ValueError(f"most = {self.most}: at least one forecast time is needed")
        if self.patience_hours is not None and not self.patience_hours > 0:
            raise ValueError(f"patience_hours = {self.patience_hours:g}: it must be above 0")

    @property
    def gap(self) -> timedelta:
        """δ as a timedelta."""
        return timedelta(hours=self.minimum_gap_hours)

    def following(self, number: int, planned: datetime, closes: datetime) -> datetime | None:
        """Return the forecast time after number `number`, or None if there is none."""
        if self.most is not None and number + 1 >= self.most:
            return None
        return next_forecast_time(planned, closes, self.gap)

    def deadline(self, number: int, planned: datetime, closes: datetime) -> tuple[datetime, str]:
        """Return the deadline for forecasts at a forecast time, and the reason for that deadline."""
        ends = [(closes, CLOSED_FIRST)]
        following = self.following(number, planned, closes)
        if following is not None:
            ends.append((following, NEXT_FIRST))
        if self.patience_hours is not None:
            ends.append((planned + timedelta(hours=self.patience_hours), WAITED))
        return min(ends)


def next_forecast_time(now: datetime, closes_at: datetime, minimum_gap: timedelta) -> datetime | None:
    """Return the time halfway to the close if at least the gap is left then (Prophet Arena 2025, appendix B.2).

    With Δ = close − t₀ the forecast times are t_k = close − 2⁻ᵏ·Δ.

    >>> day = datetime(2026, 1, 1, tzinfo=UTC)
    >>> next_forecast_time(day, day + timedelta(hours=48), timedelta(hours=6)).isoformat()
    '2026-01-02T00:00:00+00:00'
    >>> next_forecast_time(day, day + timedelta(hours=10), timedelta(hours=6)) is None
    True
    """
    half = (closes_at - now) / 2
    return now + half if half >= minimum_gap else None


def slot(now: datetime, hours: float) -> datetime:
    """Return the start of the time slot of `hours` hours that contains `now`; a day begins at midnight UTC.

    >>> slot(datetime(2026, 1, 1, 15, 30, tzinfo=UTC), 24).isoformat()
    '2026-01-01T00:00:00+00:00'
    """
    length = timedelta(hours=hours)
    return EPOCH + ((now - EPOCH) // length) * length


def question_date(now: datetime) -> datetime:
    """Return `now` as a question's date. Midnight is moved by a microsecond, since it would mean the whole day."""
    return now + timedelta(microseconds=1) if now == now.replace(hour=0, minute=0, second=0, microsecond=0) else now
