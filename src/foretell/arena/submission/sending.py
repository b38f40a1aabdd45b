"""From a plan to a platform and back: the intention is on disk before anything leaves, the receipt after it.

A process that dies in between leaves an intention without an answer. The next one reads back from the platform what
became of it, notes that, and only then decides whether to send.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from foretell.arena.ledger.accounts import Accounts, Key
from foretell.arena.ledger.entry import Draft, Entry, Kind
from foretell.arena.ledger.file import Ledger
from foretell.arena.ledger.lock import Taken
from foretell.arena.submission.submission import Item, Outcome, Part, Submission, Submitter
from foretell.questions.problems import InputError
from foretell.sources.http import SourceError

PARTS: tuple[Part, ...] = ("forecast", "file", "comment")
"""In the order of sending."""
Fate = Literal["sent", "found", "already", "refused", "failed", "unknown", "held back"]
GOOD: tuple[Fate, ...] = ("sent", "found", "already")
Clock = Callable[[], datetime]


@dataclass(frozen=True, kw_only=True)
class Handed:
    """What became of an item."""

    item: Item
    fate: Fate
    reason: str = ""

    def __str__(self) -> str:
        """For people."""
        told = f"{self.item.question} {self.item.part}: {self.fate}"
        return f"{told} ({self.reason})" if self.reason else told


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How hard to try."""

    turns: int = 3
    """How often a thing is sent whose answers are lost, each time only after it was not found there."""
    pause: float = 5.0
    """Seconds before reading back: what was lost may still be on its way."""
    again: bool = False
    """Send also what was sent before."""


class Sending:
    """Hands in what is ready of a submission."""

    def __init__(self, submitter: Submitter, ledger: Ledger, clock: Clock, patience: Patience | None = None) -> None:
        self._submitter = submitter
        self._ledger = ledger
        self._clock = clock
        self._patience = patience or Patience()

    async def hand_in(self, submission: Submission) -> list[Handed]:
        """Send every item that is ready and was not sent before; one process at a time for each platform."""
        try:
            with self._ledger.sending(submission.platform):
                return await self._all(submission)
        except Taken:
            problem = f"another process is sending to {submission.platform} right now"
            raise InputError(problem, hint="wait for it, then start this again") from None

    def preview(self, submission: Submission) -> tuple[list[Item], list[Handed]]:
        """What would be sent now, and what would not because it was sent before. Asks nobody."""
        accounts = Accounts.of(self._ledger.entries())
        fresh: list[Item] = []
        known: list[Handed] = []
        for item in sorted(submission.ready, key=lambda item: PARTS.index(item.part)):
            good = {one.question for one in fresh} | {one.item.question for one in known if one.fate in GOOD}
            before = self._before(item, submission, accounts, good)
            fresh += [item] if before is None else []
            known += [before] if before is not None else []
        return fresh, known

    async def _all(self, submission: Submission) -> list[Handed]:
        await self._settle(submission)
        accounts = Accounts.of(self._ledger.entries())
        handed: list[Handed] = []
        for part in PARTS:
            items = [item for item in submission.ready if item.part == part]
            good = {one.item.question for one in handed if one.fate in GOOD}
            known = [self._before(item, submission, accounts, good) for item in items]
            handed += [one for one in known if one is not None]
            fresh = [item for item, one in zip(items, known, strict=True) if one is None]
            handed += await self._send(fresh, submission) if fresh else []
        return handed

    def _before(self, item: Item, submission: Submission, accounts: Accounts, good: set[str]) -> Handed | None:
        """What is to be said of an item without sending it; None where it is to be sent."""
        if not set(item.follows) <= good:
            return Handed(item=item, fate="held back", reason="its forecast does not stand")
        if self._patience.again:
            return None
        if item.standing:
            return Handed(item=item, fate="already", reason=f"{submission.platform} shows it")
        sent = accounts.taken.get(_key(item, submission), [])
        # A comment stays; of forecasts only the last one counts, and an older one would be a change.
        same = [entry for entry in (sent if item.part == "comment" else sent[-1:]) if entry.digest == item.digest]
        return Handed(item=item, fate="already", reason=f"entry {same[-1].number} of the ledger") if same else None

    async def _settle(self, submission: Submission) -> None:
        """Find out what became of intentions that nobody noted the end of."""
        accounts = Accounts.of(self._ledger.entries())
        open_ = [entry for item in submission.ready for entry in accounts.open.get(_key(item, submission), [])]
        open_ = list({entry.number: entry for entry in open_}.values())
        if not open_:
            return
        there = await self._submitter.stands([_item(entry) for entry in open_])
        self._note(
            _answer(entry, "receipt" if found else "absence", how="read back after an interruption")
            for entry, found in zip(open_, there, strict=True)
        )

    async def _send(self, items: Sequence[Item], submission: Submission) -> list[Handed]:
        drafts = [_draft(item, submission) for item in items]
        meant = dict(zip(map(id, items), self._ledger.append(drafts, self._clock()), strict=True))
        done: list[Handed] = []
        pending = list(items)
        for turn in range(1, self._patience.turns + 1):
            outcomes = await self._submitter.send(pending)
            done += self._told(outcomes, meant)
            lost = [outcome for outcome in outcomes if outcome.state == "lost"]
            if not lost:
                break
            handed, pending = await self._read_back(lost, meant, last=turn == self._patience.turns)
            done += handed
            if not pending:
                break
        return done

    def _told(self, outcomes: Sequence[Outcome], meant: dict[int, Entry]) -> list[Handed]:
        """Note what the platform said."""
        said = [outcome for outcome in outcomes if outcome.state != "lost"]
        self._note(
            _answer(
                meant[id(one.item)],
                "receipt" if one.state == "taken" else "refusal",
                how=one.reason or "answered",
                said=one.answer,
            )
            for one in said
        )
        return [
            Handed(item=one.item, fate="sent" if one.state == "taken" else "refused", reason=one.reason) for one in said
        ]

    async def _read_back(
        self, lost: Sequence[Outcome], meant: dict[int, Entry], *, last: bool
    ) -> tuple[list[Handed], list[Item]]:
        """What is known of items without an answer, and which of them to send again."""
        await asyncio.sleep(self._patience.pause)
        try:
            there = await self._submitter.stands([outcome.item for outcome in lost])
        except SourceError as error:
            reason = f"no answer, and reading back failed: {error.problem}; the next start reads back again"
            return [Handed(item=outcome.item, fate="unknown", reason=reason) for outcome in lost], []
        found = [outcome for outcome, stands in zip(lost, there, strict=True) if stands]
        self._note(_answer(meant[id(one.item)], "receipt", how="read back, its answer was lost") for one in found)
        handed = [Handed(item=one.item, fate="found", reason="its answer was lost; read back") for one in found]
        gone = [outcome for outcome, stands in zip(lost, there, strict=True) if not stands]
        if not last:
            return handed, [outcome.item for outcome in gone]
        self._note(_answer(meant[id(one.item)], "absence", how=one.reason) for one in gone)
        return handed + [Handed(item=one.item, fate="failed", reason=one.reason) for one in gone], []

    def _note(self, drafts: Iterable[Draft]) -> None:
        self._ledger.append(list(drafts), self._clock())


def _key(item: Item, submission: Submission) -> Key:
    return submission.platform, submission.account, item.question, item.part


def _draft(item: Item, submission: Submission) -> Draft:
    return Draft(
        kind="intention",
        platform=submission.platform,
        account=submission.account,
        question=item.question,
        part=item.part,
        content=item.kept,
    )


def _item(entry: Entry) -> Item:
    """What an intention meant to send, as far as it is needed to find it again."""
    part: Part = next(part for part in PARTS if part == entry.part)
    return Item(question=entry.question, part=part, content=entry.content)


def _answer(entry: Entry, kind: Kind, *, how: str, said: object = None) -> Draft:
    content = {"intention": entry.number, "sent": entry.digest, "how": how}
    return Draft(
        kind=kind,
        platform=entry.platform,
        account=entry.account,
        question=entry.question,
        part=entry.part,
        content=content | ({"answer": said} if said else {}),
    )
