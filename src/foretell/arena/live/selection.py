"""Which events an arena takes up: known before any forecast, by rules, each rejection with its reason."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from foretell.sources.listing import ListedEvent

Refusal = str
ANY = "other"
"""Stands for all categories that are not named."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What makes an event worth asking about (Prophet Arena 2025, appendix B.1). Nothing is left to chance."""

    closes_after_hours: float = 24.0
    closes_within_days: float = 60.0
    volume: float = 0.0
    """Smallest volume, in the platform's own unit; like all figures, one that is not told reaches no minimum."""
    volume_24h: float = 0.0
    liquidity: float = 0.0
    open_interest: float = 0.0
    traders: int = 0
    volatility: float = 0.0
    """Smallest standard deviation of daily price changes of its liveliest market."""
    most_outcomes: int = 20
    exclude: tuple[str, ...] = ()
    """Words or phrases; an event that has one in its title, category, tags or outcomes is left out."""
    only: tuple[str, ...] = ()
    """Categories; none named: all."""
    per_day: int = 20
    categories: Mapping[str, int] = field(default_factory=dict[str, int])
    """Most events of a category a day; `other` stands for every category that is not named."""
    same_format_days: float = 7.0
    """An event that repeats a format is left out while another of that format was taken up within so many days."""

    def __post_init__(self) -> None:
        for name in ("volume", "volume_24h", "liquidity", "open_interest", "traders", "volatility"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} = {getattr(self, name)}: a minimum cannot be below 0")
        if self.most_outcomes < 1 or self.per_day < 1:
            raise ValueError("most_outcomes and per_day must be at least 1")
        if self.closes_after_hours / 24 >= self.closes_within_days:
            raise ValueError("closes_within_days ends before closes_after_hours begins")
        if wrong := [name for name, most in self.categories.items() if most < 0]:
            raise ValueError(f"categories.{wrong[0]}: a number of events cannot be below 0")


@dataclass(frozen=True, kw_only=True)
class Taken:
    """An event that was taken up before."""

    event: str
    category: str
    format: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Every event is either chosen or rejected."""

    chosen: tuple[ListedEvent, ...]
    rejected: tuple[tuple[ListedEvent, Refusal], ...]

    @property
    def counts(self) -> Mapping[Refusal, int]:
        """Rejections by reason, the commonest first."""
        return dict(Counter(reason for _, reason in self.rejected).most_common())


def format_of(event: ListedEvent) -> str:
    """The same for events of one platform that repeat a format."""
    return f"{event.platform}:{event.recurrence}"


def select(
    listed: Iterable[ListedEvent],
    rules: Rules,
    taken: Iterable[Taken],
    now: datetime,
    *,
    volatility: Mapping[str, float] | None = None,
) -> Selection:
    """Choose among events that are not taken up yet; the same events in any order give the same choice.

    Those traded most come first. Where the volatility of an event is not told, it reaches no minimum.
    """
    before = list(taken)
    known = {one.event for one in before}
    fresh = sorted((one for one in listed if one.question.id not in known), key=_most_traded_first)
    places = _Places(rules, before, now)
    chosen: list[ListedEvent] = []
    rejected: list[tuple[ListedEvent, Refusal]] = []
    for event in fresh:
        reason = refusal(event, rules, now) or _too_calm(event, rules, volatility or {}) or places.refusal(event)
        if reason is None:
            places.take(event)
            chosen.append(event)
        else:
            rejected.append((event, reason))
    return Selection(chosen=tuple(chosen), rejected=tuple(rejected))


def refusal(event: ListedEvent, rules: Rules, now: datetime) -> Refusal | None:
    """Why an event is not worth asking about, whatever else is; None if it is."""
    return next(filter(None, (rule(event, rules, now) for rule in EACH)), None)


def _most_traded_first(event: ListedEvent) -> tuple[float, float, str]:
    return -(event.volume or 0.0), -(event.volume_24h or 0.0), event.question.id


def _open(event: ListedEvent, rules: Rules, now: datetime) -> Refusal | None:
    return None if event.status == "open" else f"it is {event.status}"


def _window(event: ListedEvent, rules: Rules, now: datetime) -> Refusal | None:
    if event.closes_at is None:
        return "no close date is told"
    if event.closes_at < now + timedelta(hours=rules.closes_after_hours):
        return "it closes too soon"
    return "it closes too late" if event.closes_at > now + timedelta(days=rules.closes_within_days) else None


def _figures(event: ListedEvent, rules: Rules, now: datetime) -> Refusal | None:
    for name in ("volume", "volume_24h", "liquidity", "open_interest", "traders"):
        least, told = getattr(rules, name), getattr(event, name)
        if least > 0 and (told is None or told < least):
            words = name.replace("_", " ")
            return f"no {words} is told" if told is None else f"{words} below the minimum"
    return None


def _outcomes(event: ListedEvent, rules: Rules, now: datetime) -> Refusal | None:
    return "too many outcomes" if len(event.question.targets) > rules.most_outcomes else None


def _topic(event: ListedEvent, rules: Rules, now: datetime) -> Refusal | None:
    filed = {name.casefold() for name in (event.category, *event.tags)}
    if rules.only and not filed & {name.casefold() for name in rules.only}:
        return "another category"
    labels = [target.label or target.id for target in event.question.targets]
    text = " \n ".join((event.question.text, event.category, *event.tags, *labels)).casefold()
    found = next((word for word in rules.exclude if _mentions(text, word)), None)
    return None if found is None else f"excluded by the word {found!r}"


def _mentions(text: str, word: str) -> bool:
    """As a word or words of its own.

    >>> _mentions("who wins the warsaw derby?", "war"), _mentions("war in europe", "War")
    (False, True)
    """
    return re.search(rf"(?<!\w){re.escape(word.strip().casefold())}(?!\w)", text) is not None


Rule = Callable[[ListedEvent, Rules, datetime], Refusal | None]
EACH: Sequence[Rule] = (_open, _window, _outcomes, _topic, _figures)
"""Rules that look at one event alone."""


def _too_calm(event: ListedEvent, rules: Rules, volatility: Mapping[str, float]) -> Refusal | None:
    if rules.volatility <= 0:
        return None
    told = volatility.get(event.question.id)
    if told is None:
        return "no price history is told"
    return "volatility below the minimum" if told < rules.volatility else None


class _Places:
    """How many places a day has, by category, and which formats are taken."""

    def __init__(self, rules: Rules, taken: Sequence[Taken], now: datetime) -> None:
        self._rules = rules
        today = [one for one in taken if one.at.date() == now.date()]
        self._left = rules.per_day - len(today)
        self._by_category = Counter(one.category.casefold() for one in today)
        since = now - timedelta(days=rules.same_format_days)
        self._formats = {one.format for one in taken if one.at > since}
        self._most = {name.casefold(): most for name, most in rules.categories.items()}

    def refusal(self, event: ListedEvent) -> Refusal | None:
        if self._rules.same_format_days > 0 and format_of(event) in self._formats:
            return "its format was taken up recently"
        category = event.category.casefold()
        most = self._most.get(category, self._most.get(ANY))
        if most is not None and self._by_category[category] >= most:
            return f"the day's places for {event.category or 'events without a category'} are taken"
        return "the day's places are taken" if self._left <= 0 else None

    def take(self, event: ListedEvent) -> None:
        self._left -= 1
        self._by_category[event.category.casefold()] += 1
        self._formats.add(format_of(event))
