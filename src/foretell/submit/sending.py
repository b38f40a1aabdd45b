"""From a plan to a platform and back: the intention is on disk before anything leaves, the receipt after it.

A process that dies in between leaves an intention without an answer. The next one reads back from the platform what
became of it, notes that, and only then decides whether to send.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal

from foretell.data.files import LockHeld
from foretell.data.http import AsyncHttpClient, HttpLimits, HttpResponse, ServerBusy, SourceError
from foretell.data.payload import Payload
from foretell.questions.as_of import Clock
from foretell.questions.errors import InputError
from foretell.submit.ledger import (
    EntryKind,
    ItemKey,
    LedgerDraft,
    LedgerEntry,
    SubmissionHistory,
    SubmissionLedger,
)
from foretell.submit.submission import ItemPart, SendResult, SubmissionItem, SubmissionPlan, Submitter

PARTS: tuple[ItemPart, ...] = ("forecast", "file", "upload", "comment")
"""In the order of sending."""
ItemStatus = Literal["sent", "found", "already", "refused", "failed", "unknown", "held back"]
DONE_STATUSES: tuple[ItemStatus, ...] = ("sent", "found", "already")


@dataclass(frozen=True, kw_only=True)
class ItemResult:
    """What became of an item."""

    item: SubmissionItem
    fate: ItemStatus
    reason: str = ""

    def __str__(self) -> str:
        """For people."""
        told = f"{self.item.question} {self.item.part}: {self.fate}"
        return f"{told} ({self.reason})" if self.reason else told


@dataclass(frozen=True, kw_only=True)
class SendOptions:
    """How hard to try."""

    turns: int = 3
    """How often a thing is sent whose answers are lost, each time only after it was not found there."""
    pause: float = 5.0
    """Seconds before reading back: what was lost may still be on its way."""
    again: bool = False
    """Send also what was sent before."""


class SubmissionSender:
    """Hands in what is ready of a submission."""

    def __init__(
        self, submitter: Submitter, ledger: SubmissionLedger, clock: Clock, patience: SendOptions | None = None
    ) -> None:
        self._submitter = submitter
        self._ledger = ledger
        self._clock = clock
        self._patience = patience or SendOptions()

    async def hand_in(self, submission: SubmissionPlan) -> list[ItemResult]:
        """Send every item that is ready and was not sent before; one process at a time for each platform."""
        try:
            with self._ledger.sending(submission.platform):
                return await self._all(submission)
        except LockHeld:
            problem = f"another process is sending to {submission.platform} right now"
            raise InputError(problem, hint="wait for it, then start this again") from None

    def preview(self, submission: SubmissionPlan) -> tuple[list[SubmissionItem], list[ItemResult]]:
        """What would be sent now, and what would not because it was sent before. Asks nobody."""
        accounts = SubmissionHistory.of(self._ledger.entries())
        fresh: list[SubmissionItem] = []
        known: list[ItemResult] = []
        for item in sorted(submission.ready, key=lambda item: PARTS.index(item.part)):
            good = {one.question for one in fresh} | {one.item.question for one in known if one.fate in DONE_STATUSES}
            before = self._before(item, submission, accounts, good)
            fresh += [item] if before is None else []
            known += [before] if before is not None else []
        return fresh, known

    async def _all(self, submission: SubmissionPlan) -> list[ItemResult]:
        await self._settle(submission)
        accounts = SubmissionHistory.of(self._ledger.entries())
        handed: list[ItemResult] = []
        for part in PARTS:
            items = [item for item in submission.ready if item.part == part]
            good = {one.item.question for one in handed if one.fate in DONE_STATUSES}
            known = [self._before(item, submission, accounts, good) for item in items]
            handed += [one for one in known if one is not None]
            fresh = [item for item, one in zip(items, known, strict=True) if one is None]
            handed += await self._send(fresh, submission) if fresh else []
        return handed

    def _before(
        self, item: SubmissionItem, submission: SubmissionPlan, accounts: SubmissionHistory, good: set[str]
    ) -> ItemResult | None:
        """What is to be said of an item without sending it; None where it is to be sent."""
        if not set(item.follows) <= good:
            return ItemResult(item=item, fate="held back", reason="its forecast does not stand")
        if self._patience.again:
            return None
        if item.standing:
            return ItemResult(item=item, fate="already", reason=f"{submission.platform} shows it")
        sent = accounts.taken.get(_key(item, submission), [])
        # A comment stays; of forecasts only the last one counts, and an older one would be a change.
        same = [entry for entry in (sent if item.part == "comment" else sent[-1:]) if entry.digest == item.digest]
        return ItemResult(item=item, fate="already", reason=f"entry {same[-1].number} of the ledger") if same else None

    async def _settle(self, submission: SubmissionPlan) -> None:
        """Find out what became of intentions that nobody noted the end of."""
        accounts = SubmissionHistory.of(self._ledger.entries())
        open_ = [entry for item in submission.ready for entry in accounts.open.get(_key(item, submission), [])]
        open_ = list({entry.number: entry for entry in open_}.values())
        if not open_:
            return
        there = await self._submitter.stands([_item(entry) for entry in open_])
        self._note(
            _answer(entry, "receipt" if found else "absence", "read back after an interruption")
            for entry, found in zip(open_, there, strict=True)
        )

    async def _send(self, items: Sequence[SubmissionItem], submission: SubmissionPlan) -> list[ItemResult]:
        drafts = [_draft(item, submission) for item in items]
        intentions = dict(zip(map(id, items), self._ledger.append(drafts, self._clock()), strict=True))
        done: list[ItemResult] = []
        pending = list(items)
        for turn in range(1, self._patience.turns + 1):
            results = await self._submitter.send(pending)
            lost = [result for result in results if result.state == "lost"]
            answered = [result for result in results if result.state != "lost"]
            self._note(
                _answer(
                    intentions[id(one.item)],
                    "receipt" if one.state == "taken" else "refusal",
                    one.reason or "answered",
                    one.answer,
                )
                for one in answered
            )
            done += [
                ItemResult(item=one.item, fate="sent" if one.state == "taken" else "refused", reason=one.reason)
                for one in answered
            ]
            if not lost:
                break
            known, pending = await self._read_back(lost, intentions, last=turn == self._patience.turns)
            done += known
            if not pending:
                break
        return done

    async def _read_back(
        self, lost: Sequence[SendResult], intentions: Mapping[int, LedgerEntry], *, last: bool
    ) -> tuple[list[ItemResult], list[SubmissionItem]]:
        """What is known of items without an answer, and which of them to send again."""
        await asyncio.sleep(self._patience.pause)
        try:
            there = await self._submitter.stands([one.item for one in lost])
        except SourceError as error:
            reason = f"no answer, and reading back failed: {error.problem}; the next start reads back again"
            return [ItemResult(item=one.item, fate="unknown", reason=reason) for one in lost], []
        known: list[ItemResult] = []
        notes: list[LedgerDraft] = []
        again: list[SubmissionItem] = []
        for one, stands in zip(lost, there, strict=True):
            if stands:
                notes.append(_answer(intentions[id(one.item)], "receipt", "read back, its answer was lost"))
                known.append(ItemResult(item=one.item, fate="found", reason="its answer was lost; read back"))
            elif last:
                notes.append(_answer(intentions[id(one.item)], "absence", one.reason))
                known.append(ItemResult(item=one.item, fate="failed", reason=one.reason))
            else:
                again.append(one.item)
        self._note(notes)
        return known, again

    def _note(self, drafts: Iterable[LedgerDraft]) -> None:
        self._ledger.append(list(drafts), self._clock())


def _key(item: SubmissionItem, submission: SubmissionPlan) -> ItemKey:
    return submission.platform, submission.account, item.question, item.part


def _draft(item: SubmissionItem, submission: SubmissionPlan) -> LedgerDraft:
    return LedgerDraft(
        kind="intention",
        platform=submission.platform,
        account=submission.account,
        question=item.question,
        part=item.part,
        content=item.kept,
    )


def _item(entry: LedgerEntry) -> SubmissionItem:
    """What an intention meant to send, as far as it is needed to find it again."""
    part: ItemPart = next(part for part in PARTS if part == entry.part)
    return SubmissionItem(question=entry.question, part=part, content=entry.content)


def _answer(entry: LedgerEntry, kind: EntryKind, how: str, said: object = None) -> LedgerDraft:
    content = {"intention": entry.number, "sent": entry.digest, "how": how}
    return LedgerDraft(
        kind=kind,
        platform=entry.platform,
        account=entry.account,
        question=entry.question,
        part=entry.part,
        content=content | ({"answer": said} if said else {}),
    )


# One thing sent to a server, and the plain truth about what became of it: taken, refused, or nobody knows.

SEND_ONCE = HttpLimits(total_seconds=60.0, max_bytes=5_000_000, attempts=1)
"""For a client that sends: it must not repeat by itself what may have arrived."""
FIRST_SERVER_ERROR = 500
QUOTA_EXCEEDED = "quota_exceeded"
"""What a server says when it takes no more on this day: coming back sooner is of no use."""


class SubmissionRefused(SourceError):
    """The server said no, so nothing has changed there."""


class SubmissionUnconfirmed(SourceError):
    """No answer came that says whether it was taken: read back before sending it again."""


class Poster:
    """Sends with a key in a header, which is never shown.

    What a server turns away at the door (429, and a first 403, which busy outer layers give to good keys) never
    arrived and is sent again after a wait. Everything else is sent once.
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
        """`http` must not repeat requests (see `SEND_ONCE`); `turns` is how often to come back to a closed door."""
        if http.limits.attempts != 1:
            raise ValueError("a client that repeats requests by itself may send a forecast twice; give it ONCE")
        self._http = http
        self._headers = dict(headers)
        self._turns = turns
        self._wait_seconds = wait_seconds
        http.keep_secret(secret)

    def __repr__(self) -> str:
        return "Poster(…)"

    async def post(self, url: str, body: Any = None, *, content: bytes | None = None) -> HttpResponse:
        """Any 2xx to a body in JSON, or to bytes as they are; or `SubmissionRefused`, or `SubmissionUnconfirmed`."""
        forbidden = 0
        for turn in range(1, self._turns + 1):
            try:
                return await self._http.post(url, json=body, content=content, headers=self._headers)
            except SourceError as error:
                forbidden += error.status == HTTPStatus.FORBIDDEN
                told = error.wait if isinstance(error, ServerBusy) else None
                wait = self._wait_seconds * turn if told is None else told
                turned_away = error.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.FORBIDDEN)
                patient = turn < self._turns and forbidden < 2 and wait <= self._http.limits.max_wait_seconds
                patient = patient and QUOTA_EXCEEDED not in error.problem
                failure = None if turned_away and patient else _failure(error)
            if failure is not None:
                raise failure
            await asyncio.sleep(wait)
        raise AssertionError("the last turn returns or raises")

    async def post_for_reply(self, url: str, body: Any) -> Payload:
        """The JSON of the answer; where it cannot be read nobody knows what was taken: `SubmissionUnconfirmed`."""
        answer = await self.post(url, body)
        try:
            return Payload.of(answer)
        except SourceError as error:
            raise SubmissionUnconfirmed(error.problem, url=error.url, status=answer.status) from None


def _failure(error: SourceError) -> SourceError:
    status = error.status
    unknown = status is None or status >= FIRST_SERVER_ERROR or status == HTTPStatus.REQUEST_TIMEOUT
    return (SubmissionUnconfirmed if unknown else SubmissionRefused)(error.problem, url=error.url, status=status)


async def send_one(item: SubmissionItem, sending: Awaitable[Mapping[str, Any]]) -> SendResult:
    """What became of an item; the awaited value is what the platform said in return."""
    try:
        return SendResult(item=item, state="taken", answer=await sending)
    except SubmissionUnconfirmed as error:
        return SendResult(item=item, state="lost", reason=error.problem)
    except SubmissionRefused as error:
        return SendResult(item=item, state="refused", reason=error.problem)
