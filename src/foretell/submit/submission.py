"""What would be sent, to the letter, and why some of it cannot be."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from foretell.data.datasets.rows import Row, jsonl_rows, read_text, record
from foretell.questions.as_of import AsOf
from foretell.questions.codec import from_dict
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast, Numeric
from foretell.questions.question import Question
from foretell.submit.ledger import digest_of

ItemPart = Literal["forecast", "comment", "file", "upload"]
SendState = Literal["taken", "refused", "lost"]


@dataclass(frozen=True, kw_only=True)
class SubmissionItem:
    """One forecast, comment, file or upload of a file."""

    question: str
    """Our name of what it is about, such as `metaculus/20925`."""
    part: ItemPart
    content: Mapping[str, Any]
    """What is sent, to the letter; empty where nothing could be made."""
    title: str = ""
    problems: tuple[str, ...] = ()
    """Why it is not sent."""
    notes: tuple[str, ...] = ()
    """What was done to the forecast, and what else one should know."""
    standing: bool = False
    """The platform shows exactly this already."""
    follows: tuple[str, ...] = ()
    """Questions whose forecasts must stand before this is sent."""
    record: Mapping[str, Any] | None = None
    """What the ledger keeps, where the content is too long for it."""

    @property
    def kept(self) -> Mapping[str, Any]:
        """What the ledger keeps of it."""
        return self.content if self.record is None else self.record

    @property
    def digest(self) -> str:
        """SHA-256 of what the ledger keeps."""
        return digest_of(self.kept)


@dataclass(frozen=True, kw_only=True)
class OutgoingRequest:
    """One request as it will leave this machine, without its key; or one file as it will be written."""

    method: Literal["POST", "WRITE"]
    address: str
    body: Any


@dataclass(frozen=True, kw_only=True)
class SubmissionPlan:
    """Everything that would be handed in to one platform under one name."""

    platform: str
    account: str
    items: tuple[SubmissionItem, ...]
    problems: tuple[str, ...] = ()
    """What stands in the way of the whole."""

    @property
    def ready(self) -> tuple[SubmissionItem, ...]:
        """What can be sent."""
        return () if self.problems else tuple(item for item in self.items if not item.problems)

    @property
    def refused(self) -> tuple[SubmissionItem, ...]:
        """What cannot."""
        return tuple(item for item in self.items if item.problems)


@dataclass(frozen=True, kw_only=True)
class SendResult:
    """What became of an item that was sent."""

    item: SubmissionItem
    state: SendState
    reason: str = ""
    answer: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the platform said in return."""


class Submitter(Protocol):
    """One platform. It has been told what the platform asks; planning reads nothing more."""

    @property
    def platform(self) -> str:
        """Its name."""
        ...

    def plan(self, forecasts: Sequence[Forecast], questions: Sequence[Question]) -> SubmissionPlan:
        """Exactly what would be sent, with the problems of each item; the same input gives the same plan."""
        ...

    def requests(self, items: Sequence[SubmissionItem]) -> list[OutgoingRequest]:
        """The requests that would carry these items, in order."""
        ...

    async def stands(self, items: Sequence[SubmissionItem]) -> list[bool]:
        """Whether each is there already: read back from the platform, before something is sent a second time."""
        ...

    async def send(self, items: Sequence[SubmissionItem]) -> list[SendResult]:
        """Send each of them once, and say what is known of it. All are of the same part."""
        ...


def split_id(question: str) -> tuple[str, str]:
    """Platform and the platform's own id of a question.

    >>> split_id("metaculus/20925"), split_id("kalshi:KXFED-26DEC"), split_id("prophet_arena/who-wins:2026")
    (('metaculus', '20925'), ('kalshi', 'KXFED-26DEC'), ('prophet_arena', 'who-wins:2026'))
    """
    marks = [place for mark in "/:" if (place := question.find(mark)) >= 0]
    first = min(marks, default=len(question))
    return question[:first], question[first + 1 :]


# What every platform asks of a forecast before any of its own rules.

OLD_AGE = timedelta(days=7)


def newest_forecasts(forecasts: Iterable[Forecast]) -> list[Forecast]:
    """The last forecast of each question, in the order in which questions first came up."""
    found: dict[str, Forecast] = {}
    for forecast in forecasts:
        known = found.get(forecast.question_id)
        if known is None or forecast.as_of.at >= known.as_of.at:
            found[forecast.question_id] = forecast
    return list(found.values())


def backtest_problems(forecast: Forecast) -> tuple[str, ...]:
    """Why a forecast is none of the present."""
    if forecast.as_of.mode == "backtest":
        return (f"it was made as of {forecast.as_of.at.date()} in a backtest, not live",)
    return ()


def age_notes(forecast: Forecast, now: datetime) -> tuple[str, ...]:
    """A word about a forecast that may have been overtaken by events."""
    days = (now - forecast.as_of.at) / timedelta(days=1)
    return (f"it was made {days:.0f} days ago",) if now - forecast.as_of.at > OLD_AGE else ()


UNANSWERED = "it has no forecast"


def unanswered_items(forecasts: Sequence[Forecast], questions: Iterable[Question]) -> list[SubmissionItem]:
    """What was asked and has no forecast."""
    answered = {forecast.question_id for forecast in forecasts}
    silent = {question.id: question.text for question in questions if question.id not in answered}
    return [
        SubmissionItem(question=id, part="forecast", content={}, title=title, problems=(UNANSWERED,))
        for id, title in silent.items()
    ]


# Probabilities within a platform's limits: what must be clipped, and to what.

SUM_TOLERANCE = 1e-6
"""How far a sum of options may be off before it is a mistake rather than rounding."""
DIGITS = 10


@dataclass(frozen=True, kw_only=True)
class ProbabilityLimits:
    """The least and the greatest probability a platform takes."""

    low: float
    high: float

    def clipped(self, p: float) -> float:
        """The nearest probability that is taken."""
        return round(min(max(p, self.low), self.high), DIGITS)

    def complaint(self, p: float, what: str = "") -> str:
        """What is wrong with a probability, and what would be sent instead; empty if nothing is.

        >>> ProbabilityLimits(low=0.001, high=0.999).complaint(0.0002)
        '0.0002 is outside 0.001 to 0.999, clipped it would be 0.001'
        """
        if self.low <= p <= self.high:
            return ""
        told = f"{p:g} is outside {self.low:g} to {self.high:g}, clipped it would be {self.clipped(p):g}"
        return f"{what}: {told}" if what else told


def fit_to_limits(p: Mapping[str, float], limits: ProbabilityLimits) -> dict[str, float]:
    """Options within limits that sum to one: all scaled by one factor, and those that would be outside put on the edge.

    >>> fit_to_limits({"a": 0.7995, "b": 0.2, "c": 0.0005}, ProbabilityLimits(low=0.001, high=0.999))
    {'a': 0.79910005, 'b': 0.19989995, 'c': 0.001}
    """
    if not limits.low * len(p) <= 1 <= limits.high * len(p):
        raise ValueError(f"{len(p)} options cannot sum to one between {limits.low} and {limits.high}")
    # Scaled to the largest first, so that the factor can be found however small the numbers are.
    largest = max(p.values()) or 1.0
    p = {option: value / largest for option, value in p.items()}

    def scaled(factor: float) -> dict[str, float]:
        return {option: min(max(value * factor, limits.low), limits.high) for option, value in p.items()}

    low, high = 0.0, 1.0
    while sum(scaled(high).values()) < 1 and high < 1e300:
        high *= 2
    for _ in range(2000):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if sum(scaled(middle).values()) < 1 else (low, middle)
    return _exact({option: round(value, DIGITS) for option, value in scaled(high).items()}, limits)


def _exact(p: dict[str, float], limits: ProbabilityLimits) -> dict[str, float]:
    """Rounding, and mass that nobody claimed, go where there is room for it."""
    rest = 1 - sum(p.values())
    for option in sorted(p, key=lambda name: -p[name]):
        moved = min(max(p[option] + rest, limits.low), limits.high) - p[option]
        p[option] = round(p[option] + moved, DIGITS)
        rest -= moved
        if abs(rest) < 10.0 ** -(DIGITS + 1):
            break
    return p


# Forecasts from a file: as `foretell ask --json` and `foretell show --json` print them, or in plain fields.
# Plain fields are `question`, one of `p` (a number, or a number for each option) and `quantiles` (a value for each
# level), and perhaps `rationale` and `forecaster`.


FIELDS = ("question", "p", "quantiles", "rationale", "forecaster")


def read_forecasts(path: Path, now: datetime) -> tuple[list[Forecast], list[Question]]:
    """Forecasts, and questions where the file holds some; plain rows are forecasts of now."""
    forecasts: list[Forecast] = []
    questions: list[Question] = []
    for record_ in _rows(path):
        row = dict(record_.fields)
        try:
            kind = row.get("type", "")
            if kind == "Question":
                questions.append(from_dict(row, Question))
            elif kind == "Forecast" or "question_id" in row:
                forecasts.append(from_dict(row, Forecast))
            elif not kind and "event" not in row:
                forecasts.append(_plain(row, now))
        except InputError as error:
            raise error.at(path=path, row=record_.number) from None
    if not forecasts:
        raise InputError("holds no forecast", path=path, hint="rows such as {'question': 'metaculus/123', 'p': 0.63}")
    return forecasts, questions


def _rows(path: Path) -> Iterator[Row]:
    """The objects of a JSON file, or of JSON lines."""
    try:
        whole = json.loads(read_text(path))
    except ValueError:
        yield from jsonl_rows(path)
        return
    for number, entry in enumerate(cast("list[Any]", whole) if isinstance(whole, list) else [whole], start=1):
        yield record(path, number, entry)


def _plain(row: Mapping[str, Any], now: datetime) -> Forecast:
    for name in row:
        if name not in FIELDS:
            raise InputError("is not a field of a forecast", column=name, hint=f"fields are {', '.join(FIELDS)}")
    if not isinstance(row.get("question"), str) or ("p" in row) == ("quantiles" in row):
        raise InputError("a forecast needs a question, and either p or quantiles")
    p = row.get("p", {})
    try:
        return Forecast(
            question_id=row["question"],
            forecaster=str(row.get("forecaster", "file")),
            as_of=AsOf(at=now, mode="live"),
            p=p if isinstance(p, dict) else {"yes": p},
            rationale=str(row.get("rationale", "")),
            distribution=Numeric.from_quantiles({float(level): float(x) for level, x in row["quantiles"].items()})
            if "quantiles" in row
            else None,
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(str(error), column="p" if "p" in row else "quantiles") from None
