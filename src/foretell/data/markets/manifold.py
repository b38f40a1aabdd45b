"""Manifold prices from its public bets: each bet says what the probability was after it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from urllib.parse import quote

from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.markets.catalogue import (
    MANIFOLD_ANSWER,
    MANIFOLD_MARKET,
    CataloguePage,
    UnsupportedEvent,
    amount,
    error_context,
    flag,
    is_set,
    list_events,
    text,
    words,
)
from foretell.data.markets.listing import (
    EventListing,
    ListedEvent,
    ListingFilter,
    ListingReport,
    MarketState,
    MarketStatus,
    VolumeUnit,
    event_state,
    recurrence_template,
    require_live,
)
from foretell.data.markets.market import Market
from foretell.data.markets.prices import (
    SLUG,
    MarketRef,
    PricePoint,
    PricesUnavailable,
    daily_history,
    slug_in_address,
    split_part,
    window_start,
)
from foretell.data.payload import Payload, Strings, fetch_payload
from foretell.data.service import ServiceConfig
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, Snapshot, Target

HOST = "https://api.manifold.markets/v0"
BETS_PAGE = 1000
MAX_PAGES = 50
MILLI = 1000


@dataclass(frozen=True, kw_only=True)
class ManifoldBet:
    """What a bet tells about the price, and nothing else."""

    id: str
    at: datetime
    answer: str | None
    after: float
    """The probability right after it."""


class ManifoldClient:
    """The public reading end, typed."""

    def __init__(self, *, http: AsyncHttpClient, host: str = HOST, per_second: float = 8.0) -> None:
        self._http = http
        self._host = host
        http.pace(host, per_second=per_second, burst=20)

    async def read(self, path: str, params: Strings | None = None) -> Payload:
        """What stands at a path, as sent."""
        return await fetch_payload(self._http, f"{self._host}{path}", params=params)

    async def contract(self, market: str) -> Payload:
        """A whole market by its id or `slug:…`, as sent."""
        slug = market.startswith(SLUG)
        return await self.read(f"/{'slug' if slug else 'market'}/{quote(market.removeprefix(SLUG), safe='')}")

    async def bets(self, market: str, answer: str | None, before_ms: int) -> tuple[list[ManifoldBet], int, int]:
        """A page of bets made before a moment, newest first; how many rows it had, and the time of its oldest."""
        by = {"contractSlug": market.removeprefix(SLUG)} if market.startswith(SLUG) else {"contractId": market}
        query = {**by, "beforeTime": str(before_ms), "limit": str(BETS_PAGE), "order": "desc"}
        if answer is not None:
            query["answerId"] = answer
        rows = (await self.read("/bets", query)).items()
        oldest = min((int(row.need("createdTime").number()) for row in rows), default=0)
        return [bet for row in rows if (bet := _bet(row)) is not None], len(rows), oldest


class ManifoldPrices:
    """Price histories by contract id (or `slug:…`); of one answer by `<id>#<answer id>`."""

    platform = "manifold"

    def __init__(self, client: ManifoldClient) -> None:
        self._client = client

    async def prices(self, ref: MarketRef, as_of: AsOf, days: int = 60) -> list[PricePoint]:
        """The price after the last bet of each day."""
        market, answer = split_part(ref)
        since = window_start(as_of, days) * MILLI
        try:
            bets = await self._bets(market, answer, as_of, since)
        except SourceError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                raise PricesUnavailable(f"manifold has no market {market}") from None
            raise
        if answer is None and any(bet.answer is not None for bet in bets):
            raise PricesUnavailable(f"manifold {market} has several answers; name one with {market}#<answer id>")
        ordered = sorted((bet for bet in bets if bet.answer == answer), key=lambda bet: bet.at)
        return daily_history(ref, (PricePoint(at=bet.at, p=bet.after) for bet in ordered), as_of, days)

    async def _bets(self, market: str, answer: str | None, as_of: AsOf, since_ms: int) -> Iterable[ManifoldBet]:
        """Bets from the cutoff back to the start of the window, or to the first before it."""
        before = int(as_of.at.timestamp() * MILLI) + 1
        found: dict[str, ManifoldBet] = {}
        for _ in range(MAX_PAGES):
            page, size, oldest = await self._client.bets(market, answer, before)
            # Reversed, so that of two bets of one millisecond the newer is met last.
            found = {**{bet.id: bet for bet in reversed(page)}, **found}
            ambiguous = answer is None and any(bet.answer is not None for bet in page)
            reached = oldest < since_ms and any(bet.answer == answer for bet in found.values())
            if size < BETS_PAGE or reached or ambiguous:
                break
            # One more millisecond keeps bets of the same moment; unless the whole page is of that moment.
            before = oldest + 1 if oldest + 1 < before else oldest
        return found.values()


def _bet(row: Payload) -> ManifoldBet | None:
    """A bet, or None for an order in the book that nobody has taken: it moved no price."""
    amount = row.need("amount").number()
    if amount == 0 and row.get("limitProb") is not None:
        return None
    answer = row.get("answerId")
    return ManifoldBet(
        id=row.need("id").name(),
        at=row.need("createdTime").moment(per_second=MILLI),
        answer=None if answer is None or answer.value in ("", "undefined") else answer.name(),
        after=row.need("probAfter").probability(),
    )


# Manifold markets as events: a yes-or-no market is one target, a multiple choice one target per answer.
#
# The list tells neither the rules nor the answers, so each market that fits is read once more by itself.

EVENTS_PAGE = 500
BINARY, CHOICE = "BINARY", "MULTIPLE_CHOICE"
UNITS: Mapping[str, VolumeUnit] = {"MANA": "MANA", "CASH": "USD"}
FILTERS: Mapping[MarketStatus, str] = {"unopened": "all", "open": "open", "closed": "closed", "resolved": "resolved"}


class ManifoldEvents:
    """Markets by contract id or `slug:…`; the targets of a multiple choice are its answer ids."""

    platform = "manifold"
    key = "id"

    def __init__(self, client: ManifoldClient) -> None:
        self._client = client

    def events(self, wanted: ListingFilter) -> EventListing:
        """Markets, the most popular first, or the next to close where a window is asked for."""
        return list_events(self, wanted)

    async def event(self, id: str, as_of: AsOf) -> ListedEvent:
        """One market."""
        require_live(as_of)
        with error_context(f"manifold event {id}"):
            row = await self._client.contract(id)
            try:
                return _event(row, as_of, ListingReport())
            except UnsupportedEvent as error:
                raise SourceError(f"manifold event {id} cannot be asked: {error}", url=row.url) from None

    async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
        """One page of the search for anything."""
        passed = int(cursor or "0")
        window = wanted.closes_after or wanted.closes_before
        query = {
            "term": "",
            "sort": "close-date" if window else "most-popular",
            "filter": FILTERS[wanted.status],
            "contractType": "ALL",
            "limit": str(EVENTS_PAGE),
            "offset": str(passed),
        }
        rows = (await self._client.read("/search-markets", query)).items()
        return CataloguePage(rows=rows, following=str(passed + EVENTS_PAGE) if len(rows) == EVENTS_PAGE else None)

    async def parsed(self, row: Payload, wanted: ListingFilter, ledger: ListingReport) -> ListedEvent | None:
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
        raise UnsupportedEvent(f"a market of type {kind} has no yes-or-no targets")
    return kind


def _unfit(row: Payload, wanted: ListingFilter) -> str | None:
    """Why a market cannot be wanted, as far as the list tells; saves reading it whole."""
    closes, volume = _closes(row), row.need("volume").number()
    if closes is not None and wanted.closes_before is not None and closes > wanted.closes_before:
        return "closes after the window"
    if closes is not None and wanted.closes_after is not None and closes < wanted.closes_after:
        return "closes before the window"
    return "volume below the minimum" if volume < wanted.minimum_volume else None


def _event(row: Payload, as_of: AsOf, ledger: ListingReport) -> ListedEvent:
    ledger.know(row.value, MANIFOLD_MARKET, "market")
    kind, status = _kind(row), _status(row, as_of.at)
    parts = [_yes(row, as_of.at, status)] if kind == BINARY else _answers(row, as_of.at, status, ledger)
    event = event_state(parts, exclusive=kind == CHOICE and flag(row.need("shouldAnswersSumToOne")))
    if not event.asked:
        raise UnsupportedEvent("it has no answer")
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
        recurrence=recurrence_template(title),
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


def _status(row: Payload, at: datetime) -> MarketStatus:
    if flag(row.need("isResolved")):
        return "resolved"
    closes = _closes(row)
    return "closed" if closes is not None and closes <= at else "open"


def _yes(row: Payload, at: datetime, status: MarketStatus) -> MarketState:
    snapshot = Snapshot(at=at, last_price=row.need("probability").probability(), volume=amount(row, "volume"))
    target = Target(id="yes", label="Yes", resolves_at=_closes(row), snapshot=snapshot)
    return MarketState(row=row, target=target, status=status, lost=words(row, "resolution") == "NO")


def _answers(row: Payload, at: datetime, status: MarketStatus, ledger: ListingReport) -> list[MarketState]:
    """One target per answer; an answer may come out before the rest does."""
    found: list[MarketState] = []
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
        found.append(MarketState(row=answer, target=target, status="resolved" if told else status, lost=told == "NO"))
    return found


def _open_client(config: ServiceConfig) -> ManifoldClient:
    return ManifoldClient(http=config.http, host=config.address or HOST)


MARKET = Market(
    hosts=("manifold.markets",),
    client=_open_client,
    events=ManifoldEvents,
    prices=ManifoldPrices,
    settlements="foretell.data.settlements.manifold:ManifoldSettlements",
    own_id=re.compile(r"[A-Za-z0-9]{8,32}"),
    id_in_address=slug_in_address,
)
