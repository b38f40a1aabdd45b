"""Manifold markets as events: a yes-or-no market is one target, a multiple choice one target per answer.

The list tells neither the rules nor the answers, so each market that fits is read once more by itself.
"""

from collections.abc import Mapping
from datetime import datetime

from foretell.questions.clock import AsOf
from foretell.questions.question import Question, Target
from foretell.questions.snapshot import Snapshot
from foretell.sources.http import SourceError
from foretell.sources.listing import Ledger, ListedEvent, Listing, Status, Unit, Wanted, live
from foretell.sources.markets.catalogue import Page, Unsupported, about, listed
from foretell.sources.markets.fields import amount, flag, is_set, text, words
from foretell.sources.markets.known_fields import MANIFOLD_ANSWER, MANIFOLD_MARKET
from foretell.sources.markets.manifold import MILLI, ManifoldClient
from foretell.sources.markets.recurrence import template
from foretell.sources.markets.standing import Standing, standing
from foretell.sources.payload import Payload

PAGE = 500
BINARY, CHOICE = "BINARY", "MULTIPLE_CHOICE"
UNITS: Mapping[str, Unit] = {"MANA": "MANA", "CASH": "USD"}
FILTERS: Mapping[Status, str] = {"unopened": "all", "open": "open", "closed": "closed", "resolved": "resolved"}


class ManifoldEvents:
    """Markets by contract id or `slug:…`; the targets of a multiple choice are its answer ids."""

    platform = "manifold"
    key = "id"

    def __init__(self, client: ManifoldClient) -> None:
        self._client = client

    def events(self, wanted: Wanted) -> Listing:
        """Markets, the most popular first, or the next to close where a window is asked for."""
        return listed(self, wanted)

    async def event(self, id: str, as_of: AsOf) -> ListedEvent:
        """One market."""
        live(as_of)
        with about(f"manifold event {id}"):
            row = await self._client.contract(id)
            try:
                return _event(row, as_of, Ledger())
            except Unsupported as error:
                raise SourceError(f"manifold event {id} cannot be asked: {error}", url=row.url) from None

    async def page(self, wanted: Wanted, cursor: str) -> Page:
        """One page of the search for anything."""
        passed = int(cursor or "0")
        window = wanted.closes_after or wanted.closes_before
        query = {
            "term": "",
            "sort": "close-date" if window else "most-popular",
            "filter": FILTERS[wanted.status],
            "contractType": "ALL",
            "limit": str(PAGE),
            "offset": str(passed),
        }
        rows = (await self._client.read("/search-markets", query)).items()
        return Page(rows=rows, following=str(passed + PAGE) if len(rows) == PAGE else None)

    async def parsed(self, row: Payload, wanted: Wanted, ledger: Ledger) -> ListedEvent | None:
        """An entry, read whole if what the list tells of it fits the wish."""
        _kind(row)
        if reason := _unfit(row, wanted):
            ledger.left_out[reason] += 1
            return None
        return _event(await self._client.contract(row.need("id").text()), wanted.as_of, ledger)


def answers_of(row: Payload) -> list[Payload]:
    """The answers of a multiple choice."""
    return row.need("answers").items()


def _kind(row: Payload) -> str:
    kind = row.need("outcomeType").text()
    if kind not in (BINARY, CHOICE):
        raise Unsupported(f"a market of type {kind} has no yes-or-no targets")
    return kind


def _unfit(row: Payload, wanted: Wanted) -> str | None:
    """Why a market cannot be wanted, as far as the list tells; saves reading it whole."""
    closes, volume = _closes(row), row.need("volume").number()
    if closes is not None and wanted.closes_before is not None and closes > wanted.closes_before:
        return "closes after the window"
    if closes is not None and wanted.closes_after is not None and closes < wanted.closes_after:
        return "closes before the window"
    return "volume below the minimum" if volume < wanted.minimum_volume else None


def _event(row: Payload, as_of: AsOf, ledger: Ledger) -> ListedEvent:
    ledger.know(row.value, MANIFOLD_MARKET, "market")
    kind, status = _kind(row), _status(row, as_of.at)
    parts = [_yes(row, as_of.at, status)] if kind == BINARY else _answers(row, as_of.at, status, ledger)
    event = standing(parts, exclusive=kind == CHOICE and flag(row.need("shouldAnswersSumToOne")))
    if not event.asked:
        raise Unsupported("it has no answer")
    title, topics = row.need("question").text().strip(), row.get("groupSlugs")
    tags = tuple(topic.text() for topic in topics.items()) if topics is not None else ()
    return ListedEvent(
        question=Question(
            id=f"manifold/{row.need('id').text()}",
            source=ManifoldEvents.platform,
            text=title,
            due=as_of.at,
            targets=tuple(one.target for one in event.asked),
            category=tags[0] if tags else "",
            criteria=text(row, "textDescription"),
            exclusive=event.exclusive,
            opens_at=row.need("createdTime").moment(per_second=MILLI),
            closes_at=_closes(row),
            url=words(row, "url"),
        ),
        status=event.status,
        recurrence=template(title),
        volume=row.need("volume").number(),
        volume_24h=amount(row, "volume24Hours"),
        liquidity=amount(row, "totalLiquidity"),
        unit=UNITS.get(words(row, "token"), "MANA"),
        traders=_people(row),
        tags=tags,
        finished=event.finished,
    )


def _closes(row: Payload) -> datetime | None:
    told = row.get("closeTime")
    return None if told is None else told.moment(per_second=MILLI)


def _people(row: Payload) -> int | None:
    told = amount(row, "uniqueBettorCount")
    return None if told is None else int(told)


def _status(row: Payload, at: datetime) -> Status:
    if flag(row.need("isResolved")):
        return "resolved"
    closes = _closes(row)
    return "closed" if closes is not None and closes <= at else "open"


def _yes(row: Payload, at: datetime, status: Status) -> Standing:
    snapshot = Snapshot(at=at, last_price=row.need("probability").probability(), volume=amount(row, "volume"))
    target = Target(id="yes", label="Yes", resolves_at=_closes(row), snapshot=snapshot)
    return Standing(row=row, target=target, status=status, lost=words(row, "resolution") == "NO")


def _answers(row: Payload, at: datetime, status: Status, ledger: Ledger) -> list[Standing]:
    """One target per answer; an answer may come out before the rest does."""
    found: list[Standing] = []
    for answer in answers_of(row):
        ledger.know(answer.value, MANIFOLD_ANSWER, "answer")
        told = words(answer, "resolution")
        chance = answer.need("probability").probability()
        label = "Other" if is_set(answer, "isOther") and not words(answer, "text") else answer.need("text").text()
        target = Target(
            id=answer.need("id").name(),
            label=label.strip(),
            resolves_at=_closes(row),
            snapshot=Snapshot(at=at, last_price=chance, volume=amount(answer, "volume")),
        )
        found.append(Standing(row=answer, target=target, status="resolved" if told else status, lost=told == "NO"))
    return found
