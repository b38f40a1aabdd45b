"""Plan a submission exactly, send it once, and record it in the ledger."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, cast

from foretell.data.datasets.rows import Row, jsonl_rows, read_json, record
from foretell.data.http import AsyncHttpClient, HttpLimits, HttpResponse, ServerBusy, SourceError
from foretell.data.payload import MalformedPayload, Payload
from foretell.frozen import frozen
from foretell.questions.as_of import AsOf, Clock
from foretell.questions.codec import from_dict
from foretell.questions.errors import InputError, said
from foretell.questions.file_lock import LockHeld
from foretell.questions.forecast import Forecast, Numeric
from foretell.questions.question import Question
from foretell.tournaments.ledger import (
    EntryKind,
    ItemKey,
    LedgerDraft,
    LedgerEntry,
    SubmissionHistory,
    SubmissionLedger,
    digest_of,
)

ItemPart = Literal["forecast", "comment", "file", "upload"]
PARTS: tuple[ItemPart, ...] = ("forecast", "file", "upload", "comment")
"""The parts in the order in which they are sent."""
ItemStatus = Literal["sent", "found", "already", "refused", "failed", "unknown", "held back"]
DONE_STATUSES: tuple[ItemStatus, ...] = ("sent", "found", "already")


@frozen
class SubmissionItem:
    """One thing to send: a forecast, a comment, a file or the upload of a file."""

    question: str
    """The id in foretell of the question it is about, such as `metaculus/20925`."""
    part: ItemPart
    content: Mapping[str, Any]
    """The exact content to send; empty if there is none."""
    title: str = ""
    problems: tuple[str, ...] = ()
    """Why it cannot be sent; empty if it can."""
    notes: tuple[str, ...] = ()
    """Changes made to the forecast, and other remarks."""
    standing: bool = False
    """Whether the platform already has exactly this content."""
    follows: tuple[str, ...] = ()
    """Questions of which at least one forecast must be accepted before this is sent."""
    later: bool = False
    """Whether the problem may be temporary, because the platform's page could not be read just now."""
    record: Mapping[str, Any] | None = None
    """What the ledger records instead of the content, if that is too long."""

    @property
    def kept(self) -> Mapping[str, Any]:
        """What the ledger records of the item."""
        return self.content if self.record is None else self.record

    @property
    def digest(self) -> str:
        """SHA-256 of what the ledger records."""
        return digest_of(self.kept)


@frozen
class OutgoingRequest:
    """A request as it will be sent, without its key, or a file as it will be written."""

    method: Literal["POST", "WRITE"]
    address: str
    body: Any


@frozen
class SubmissionPlan:
    """Everything to submit to one platform under one account."""

    platform: str
    account: str
    items: tuple[SubmissionItem, ...]

    @property
    def ready(self) -> tuple[SubmissionItem, ...]:
        """The items that can be sent."""
        return tuple(item for item in self.items if not item.problems)

    @property
    def refused(self) -> tuple[SubmissionItem, ...]:
        """The items that cannot be sent."""
        return tuple(item for item in self.items if item.problems)


@frozen
class ItemResult:
    """The result of sending an item."""

    item: SubmissionItem
    fate: ItemStatus
    """A submitter returns `sent`, `refused`, or `unknown` if there was no answer."""
    reason: str = ""
    answer: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The platform's reply."""

    def __str__(self) -> str:
        """Describe the result in one line."""
        text = f"{self.item.question} {self.item.part}: {self.fate}"
        return f"{text} ({self.reason})" if self.reason else text


class Submitter(Protocol):
    """Submits to one platform. Planning makes no further requests."""

    @property
    def platform(self) -> str:
        """The platform's name."""
        ...

    def plan(self, forecasts: Sequence[Forecast], questions: Sequence[Question]) -> SubmissionPlan:
        """Plan exactly what would be sent, with the problems of each item; the same input gives the same plan."""
        ...

    def requests(self, items: Sequence[SubmissionItem]) -> list[OutgoingRequest]:
        """Return the requests that would carry these items, in order."""
        ...

    async def stands(self, items: Sequence[SubmissionItem]) -> list[bool]:
        """Return whether the platform already has each item. Called before sending again."""
        ...

    async def send(self, items: Sequence[SubmissionItem]) -> list[ItemResult]:
        """Send each item once and return the results. All items must be of the same part."""
        ...


def split_id(question: str) -> tuple[str, str]:
    """Split a question id into the platform and the platform's own id.

    >>> split_id("metaculus/20925"), split_id("kalshi:KXFED-26DEC"), split_id("prophet_arena/who-wins:2026")
    (('metaculus', '20925'), ('kalshi', 'KXFED-26DEC'), ('prophet_arena', 'who-wins:2026'))
    """
    places = [at for mark in "/:" if (at := question.find(mark)) >= 0]
    first = min(places, default=len(question))
    return question[:first], question[first + 1 :]


# Checks that apply to every platform.

OLD_AGE = timedelta(days=7)


def newest_forecasts(forecasts: Iterable[Forecast]) -> list[Forecast]:
    """Return the latest forecast of each question, in order of first appearance."""
    newest: dict[str, Forecast] = {}
    for forecast in forecasts:
        known = newest.get(forecast.question_id)
        if known is None or forecast.as_of.at >= known.as_of.at:
            newest[forecast.question_id] = forecast
    return list(newest.values())


def backtest_problems(forecast: Forecast) -> tuple[str, ...]:
    """Return a problem if the forecast was made in a backtest, not live."""
    if forecast.as_of.mode == "backtest":
        return (f"it was made as of {forecast.as_of.at.date()} in a backtest, not live",)
    return ()


def age_notes(forecast: Forecast, now: datetime) -> tuple[str, ...]:
    """Return a note if the forecast may be outdated."""
    days = (now - forecast.as_of.at) / timedelta(days=1)
    return (f"it was made {days:.0f} days ago",) if now - forecast.as_of.at > OLD_AGE else ()


UNANSWERED = "it has no forecast"


def unanswered_items(forecasts: Sequence[Forecast], questions: Iterable[Question]) -> list[SubmissionItem]:
    """Return items for the questions without a forecast."""
    answered = {forecast.question_id for forecast in forecasts}
    silent = {question.id: question.text for question in questions if question.id not in answered}
    return [
        SubmissionItem(question=id, part="forecast", content={}, title=title, problems=(UNANSWERED,))
        for id, title in silent.items()
    ]


Seen = TypeVar("Seen")


async def read_each(names: Iterable[str], read: Callable[[str], Awaitable[Seen]]) -> dict[str, Seen | SourceError]:
    """Read each name from a platform; an error for one name does not stop the others."""
    results: dict[str, Seen | SourceError] = {}
    unreachable: SourceError | None = None
    for name in dict.fromkeys(names):
        try:
            results[name] = await read(name) if unreachable is None else unreachable
        except SourceError as error:
            results[name] = error
            # Without any answer the platform is unreachable, and the next request would fail after the same wait.
            unreachable = None if error.status or isinstance(error, MalformedPayload) else error
    return results


def unreadable_item(question: str, title: str, why: str | SourceError) -> SubmissionItem:
    """Return an item that cannot be sent, because the question does not exist or could not be read just now."""
    later = isinstance(why, SourceError)
    problem = f"it could not be read: {why.problem}" if isinstance(why, SourceError) else why
    return SubmissionItem(question=question, part="forecast", content={}, title=title, problems=(problem,), later=later)


# Probabilities within a platform's limits.

SUM_TOLERANCE = 1e-6
"""Largest deviation of a sum of options from one that counts as rounding."""
DIGITS = 10


@frozen
class ProbabilityLimits:
    """The lowest and highest probability that a platform accepts."""

    low: float
    high: float

    def clipped(self, p: float) -> float:
        """Return the nearest accepted probability."""
        return round(min(max(p, self.low), self.high), DIGITS)

    def complaint(self, p: float, what: str = "") -> str:
        """Return what is wrong with a probability and what would be sent instead; empty if it is accepted.

        >>> ProbabilityLimits(low=0.001, high=0.999).complaint(0.0002)
        '0.0002 is outside 0.001 to 0.999, clipped it would be 0.001'
        """
        if self.low <= p <= self.high:
            return ""
        problem = f"{p:g} is outside {self.low:g} to {self.high:g}, clipped it would be {self.clipped(p):g}"
        return f"{what}: {problem}" if what else problem


def fit_to_limits(p: Mapping[str, float], limits: ProbabilityLimits) -> dict[str, float]:
    """Scale options to sum to one within limits; options that would fall outside are set to the limit.

    >>> fit_to_limits({"a": 0.7995, "b": 0.2, "c": 0.0005}, ProbabilityLimits(low=0.001, high=0.999))
    {'a': 0.79910005, 'b': 0.19989995, 'c': 0.001}
    """
    if not limits.low * len(p) <= 1 <= limits.high * len(p):
        raise ValueError(f"{len(p)} options cannot sum to one between {limits.low} and {limits.high}")
    # Divided by the largest first, so that the factor can be found for very small numbers.
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
    """Distribute rounding errors and leftover mass within the limits."""
    rest = 1 - sum(p.values())
    for option in sorted(p, key=lambda name: -p[name]):
        moved = min(max(p[option] + rest, limits.low), limits.high) - p[option]
        p[option] = round(p[option] + moved, DIGITS)
        rest -= moved
        if abs(rest) < 10.0 ** -(DIGITS + 1):
            break
    return p


# Forecasts from a file, as `foretell ask --json` and `foretell show --json` print them, or in plain fields: `question`,
# either `p` (a number, or a number for each option) or `quantiles` (a value for each level), and optionally `rationale`
# and `forecaster`.

FIELDS = ("question", "p", "quantiles", "rationale", "forecaster")


def read_forecasts(path: Path, now: datetime) -> tuple[list[Forecast], list[Question]]:
    """Read forecasts and, if present, questions from a file; plain rows are treated as forecasts made now."""
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
        raise InputError(
            "contains no forecast", path=path, hint="rows such as {'question': 'metaculus/123', 'p': 0.63}"
        )
    return forecasts, questions


def _rows(path: Path) -> Iterator[Row]:
    """Yield the objects of a JSON file or of a JSON Lines file."""
    try:
        document = read_json(path)
    except InputError as error:
        if path.suffix == ".json" and "Extra data" not in error.problem:  # A second line after a complete object.
            raise
        yield from jsonl_rows(path)
        return
    for number, entry in enumerate(cast("list[Any]", document) if isinstance(document, list) else [document], start=1):
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
        column = "p" if "p" in row else "quantiles"
        raise InputError(said(error, column), column=column) from None


# Sending. The intention is on disk before anything is sent, and the receipt is written after it.
#
# A process that dies in between leaves an intention without an answer. The next one reads the result from the platform,
# records it, and then decides whether to send.


@frozen
class SendOptions:
    """How often to send an item, and which items to repeat."""

    turns: int = 3
    """Maximum number of attempts for an item whose answer was lost. It is resent if the platform does not show it."""
    pause: float = 5.0
    """Seconds to wait before reading back, because a request may still be in transit."""
    resend: bool = False
    """Whether to also send items that were sent before."""


class SubmissionSender:
    """Sends the ready items of a submission and records them in the ledger."""

    def __init__(
        self, submitter: Submitter, ledger: SubmissionLedger, clock: Clock, patience: SendOptions | None = None
    ) -> None:
        self._submitter = submitter
        self._ledger = ledger
        self._clock = clock
        self._patience = patience or SendOptions()

    async def hand_in(self, submission: SubmissionPlan) -> list[ItemResult]:
        """Send every ready item that was not sent before. Only one process at a time sends to each platform."""
        try:
            with self._ledger.sending(submission.platform):
                return await self._all(submission)
        except LockHeld:
            problem = f"another process is sending to {submission.platform} right now"
            raise InputError(problem, hint="wait for it, then start this again") from None

    def preview(self, submission: SubmissionPlan) -> tuple[list[SubmissionItem], list[ItemResult]]:
        """Return what would be sent now and what was sent before; makes no request."""
        history = SubmissionHistory.of(self._ledger.entries())
        fresh: list[SubmissionItem] = []
        known: list[ItemResult] = []
        for item in sorted(submission.ready, key=lambda item: PARTS.index(item.part)):
            done = {result.item.question for result in known if result.fate in DONE_STATUSES}
            good = {other.question for other in fresh} | done
            before = self._before(item, submission, history, good)
            fresh += [item] if before is None else []
            known += [before] if before is not None else []
        return fresh, known

    async def _all(self, submission: SubmissionPlan) -> list[ItemResult]:
        await self._settle(submission)
        history = SubmissionHistory.of(self._ledger.entries())
        results: list[ItemResult] = []
        for part in PARTS:
            items = [item for item in submission.ready if item.part == part]
            good = {result.item.question for result in results if result.fate in DONE_STATUSES}
            known = [self._before(item, submission, history, good) for item in items]
            results += [result for result in known if result is not None]
            fresh = [item for item, result in zip(items, known, strict=True) if result is None]
            results += await self._send(fresh, submission) if fresh else []
        return results

    def _before(
        self, item: SubmissionItem, submission: SubmissionPlan, history: SubmissionHistory, good: set[str]
    ) -> ItemResult | None:
        """Return the result of an item that need not be sent; None if it must be sent."""
        if item.follows and not good.intersection(item.follows):
            return ItemResult(item=item, fate="held back", reason="its forecast was not accepted")
        if self._patience.resend:
            return None
        if item.standing:
            return ItemResult(item=item, fate="already", reason=f"{submission.platform} shows it")
        sent = history.taken.get(_key(item, submission), [])
        # All comments stay, but only the last forecast counts, so that an older one would be a change.
        same = [entry for entry in (sent if item.part == "comment" else sent[-1:]) if entry.digest == item.digest]
        return ItemResult(item=item, fate="already", reason=f"entry {same[-1].number} of the ledger") if same else None

    async def _settle(self, submission: SubmissionPlan) -> None:
        """Read back and record the result of intentions that have none in the ledger."""
        history = SubmissionHistory.of(self._ledger.entries())
        open_ = [entry for item in submission.ready for entry in history.open.get(_key(item, submission), [])]
        open_ = list({entry.number: entry for entry in open_}.values())
        if not open_:
            return
        shown = await self._submitter.stands([_item(entry) for entry in open_])
        self._note(
            _answer(entry, "receipt" if is_there else "absence", "read back after an interruption")
            for entry, is_there in zip(open_, shown, strict=True)
        )

    async def _send(self, items: Sequence[SubmissionItem], submission: SubmissionPlan) -> list[ItemResult]:
        drafts = [
            LedgerDraft(
                kind="intention",
                platform=submission.platform,
                account=submission.account,
                question=item.question,
                part=item.part,
                content=item.kept,
            )
            for item in items
        ]
        intentions = dict(zip(map(id, items), self._ledger.append(drafts, self._clock()), strict=True))
        done: list[ItemResult] = []
        pending = list(items)
        for turn in range(1, self._patience.turns + 1):
            results = await self._submitter.send(pending)
            lost = [result for result in results if result.fate == "unknown"]
            answered = [result for result in results if result.fate != "unknown"]
            self._note(_outcome(result, intentions[id(result.item)]) for result in answered)
            done += answered
            if not lost:
                break
            known, pending = await self._read_back(lost, intentions, last=turn == self._patience.turns)
            done += known
            if not pending:
                break
        return done

    async def _read_back(
        self, lost: Sequence[ItemResult], intentions: Mapping[int, LedgerEntry], *, last: bool
    ) -> tuple[list[ItemResult], list[SubmissionItem]]:
        """Read back items without an answer; return the results that are known and the items to send again."""
        await asyncio.sleep(self._patience.pause)
        try:
            shown = await self._submitter.stands([result.item for result in lost])
        except SourceError as error:
            reason = f"no answer, and reading back failed: {error.problem}; the next start reads back again"
            return [ItemResult(item=result.item, fate="unknown", reason=reason) for result in lost], []
        known: list[ItemResult] = []
        notes: list[LedgerDraft] = []
        again: list[SubmissionItem] = []
        for result, is_there in zip(lost, shown, strict=True):
            if is_there:
                notes.append(_answer(intentions[id(result.item)], "receipt", "read back, its answer was lost"))
                known.append(ItemResult(item=result.item, fate="found", reason="its answer was lost; read back"))
            elif last:
                notes.append(_answer(intentions[id(result.item)], "absence", result.reason))
                known.append(ItemResult(item=result.item, fate="failed", reason=result.reason))
            else:
                again.append(result.item)
        self._note(notes)
        return known, again

    def _note(self, drafts: Iterable[LedgerDraft]) -> None:
        self._ledger.append(list(drafts), self._clock())


def _key(item: SubmissionItem, submission: SubmissionPlan) -> ItemKey:
    return submission.platform, submission.account, item.question, item.part


def _item(entry: LedgerEntry) -> SubmissionItem:
    """Rebuild the item of an intention, as far as needed to find it on the platform."""
    part: ItemPart = next(part for part in PARTS if part == entry.part)
    return SubmissionItem(question=entry.question, part=part, content=entry.content)


def _outcome(result: ItemResult, intention: LedgerEntry) -> LedgerDraft:
    kind = "receipt" if result.fate == "sent" else "refusal"
    return _answer(intention, kind, result.reason or "answered", result.answer)


def _answer(entry: LedgerEntry, kind: EntryKind, how: str, reply: object = None) -> LedgerDraft:
    content = {"intention": entry.number, "sent": entry.digest, "how": how}
    return LedgerDraft(
        kind=kind,
        platform=entry.platform,
        account=entry.account,
        question=entry.question,
        part=entry.part,
        content=content | ({"answer": reply} if reply else {}),
    )


# Sending one item to a server: it is accepted, refused, or the result is unknown.

SEND_ONCE = HttpLimits(total_seconds=60.0, max_bytes=5_000_000, attempts=1)
"""HTTP limits for a client that sends: it must not retry requests by itself."""
FIRST_SERVER_ERROR = 500
QUOTA_EXCEEDED = "quota_exceeded"
"""The error of a server whose daily quota is used up, so that retrying does not help."""
TURNED_AWAY = ("the server answered 401", "the server answered 429")
"""Refusals that do not depend on the forecast: the key is not accepted, or too much was sent."""


class SubmissionRefused(SourceError):
    """The server refused the request; nothing has changed there."""


class SubmissionUnconfirmed(SourceError):
    """It is unknown whether the server accepted the request; read back before sending again."""


Reply = TypeVar("Reply")


class Poster:
    """Sends requests with a key in a header. The key is never shown.

    A request that a server rejects before processing it (429, and a first 403, which overloaded gateways return for
    valid keys) is retried after a wait. Everything else is sent once.
    """

    def __init__(
        self,
        *,
        http: AsyncHttpClient,
        headers: Mapping[str, str],
        secret: str,
        turns: int = 5,
        wait_seconds: float = 4.0,
    ) -> None:
        """`http` must not retry requests (see `SEND_ONCE`); `turns` limits attempts if a server answers 429 or 403."""
        if http.limits.attempts != 1:
            raise ValueError("a client that retries requests may send a forecast twice; use the limits SEND_ONCE")
        self._http = http
        self._headers = dict(headers)
        self._turns = turns
        self._wait_seconds = wait_seconds
        http.keep_secret(secret)

    def __repr__(self) -> str:
        return "Poster(…)"

    async def post(self, url: str, body: Any = None, *, content: bytes | None = None) -> HttpResponse:
        """Post JSON or bytes and return a 2xx response; raises `SubmissionRefused` or `SubmissionUnconfirmed`."""
        forbidden = 0
        for turn in range(1, self._turns + 1):
            try:
                return await self._http.post(url, json=body, content=content, headers=self._headers)
            except SourceError as error:
                forbidden += error.status == HTTPStatus.FORBIDDEN
                server_wait = error.wait if isinstance(error, ServerBusy) else None
                wait = self._wait_seconds * turn if server_wait is None else server_wait
                turned_away = error.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.FORBIDDEN)
                patient = turn < self._turns and forbidden < 2 and wait <= self._http.limits.max_wait_seconds
                patient = patient and QUOTA_EXCEEDED not in error.problem
                failure = None if turned_away and patient else _failure(error)
            if failure is not None:
                raise failure
            await asyncio.sleep(wait)
        raise AssertionError("the last turn returns or raises")

    async def post_for_reply(self, url: str, body: Any, read: Callable[[Payload], Reply]) -> Reply:
        """Post and return the reply parsed by `read`; raises `SubmissionUnconfirmed` if it cannot be parsed."""
        answer = await self.post(url, body)
        try:
            return read(Payload.of(answer))
        except SourceError as error:
            raise SubmissionUnconfirmed(error.problem, url=error.url, status=answer.status) from None


def _failure(error: SourceError) -> SourceError:
    status = error.status
    unknown = status is None or status >= FIRST_SERVER_ERROR or status == HTTPStatus.REQUEST_TIMEOUT
    return (SubmissionUnconfirmed if unknown else SubmissionRefused)(error.problem, url=error.url, status=status)


async def send_one(item: SubmissionItem, sending: Awaitable[Mapping[str, Any]]) -> ItemResult:
    """Await the sending of an item and return its result; the awaited value is the platform's reply."""
    try:
        return ItemResult(item=item, fate="sent", answer=await sending)
    except SubmissionUnconfirmed as error:
        return ItemResult(item=item, fate="unknown", reason=error.problem)
    except SubmissionRefused as error:
        return ItemResult(item=item, fate="refused", reason=error.problem)


class PlatformWriter:
    """Sends requests to a platform with a key, through a client that never retries a request by itself."""

    def __init__(
        self,
        *,
        http: AsyncHttpClient,
        host: str,
        scheme: str,
        key: str,
        wait_seconds: float,
    ) -> None:
        self._host = host
        headers = {"Authorization": f"{scheme} {key}"}
        self._poster = Poster(http=http, headers=headers, secret=key, wait_seconds=wait_seconds)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(host={self._host!r})"

    def address(self, path: str) -> str:
        """Return the full address of a path on this platform."""
        return f"{self._host}{path}"
