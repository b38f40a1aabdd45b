"""Manifold: its markets, and prices from its public bets, each of which states the probability after it."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from foretell.data.http import AsyncHttpClient, NotFound
from foretell.data.markets.listing import (
    CataloguePage,
    ListedEvent,
    ListingFilter,
    ListingReport,
    MarketEvents,
    MarketState,
    MarketStatus,
    UnsupportedEvent,
    VolumeUnit,
    event_state,
    readable,
    recurrence_template,
)
from foretell.data.markets.market import (
    SLUG,
    EventQuery,
    Market,
    MarketRef,
    PricePoint,
    PricesUnavailable,
    daily_history,
    read_open,
    slug_in_address,
    split_part,
    window_start,
)
from foretell.data.payload import Payload
from foretell.data.service import JsonService, ServiceConfig
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, Snapshot, Target, read_exclusivity

HOST = "https://api.manifold.markets/v0"
BETS_PAGE = 1000
MAX_PAGES = 50
MILLI = 1000
SIDES = ("YES", "NO")


@frozen
class ManifoldBet:
    """What a bet says about the price, and nothing else."""

    id: str
    at: datetime
    answer: str | None
    after: float | None
    """Probability right after the bet; None for an unfilled limit order, which moved no price."""


class ManifoldClient(JsonService):
    """Client for the public data."""

    def __init__(self, *, http: AsyncHttpClient, host: str = HOST) -> None:
        super().__init__(ServiceConfig(http=http, address=host), HOST)

    async def contract(self, market: str) -> Payload:
        """Return a complete market by its id or `slug:…`, as sent."""
        slug = market.startswith(SLUG)
        return await self.read(f"/{'slug' if slug else 'market'}/{quote(market.removeprefix(SLUG), safe='')}")

    async def bets(self, market: str, answer: str | None, before_ms: int) -> list[Payload]:
        """Return a page of bets made before a time, newest first."""
        by = {"contractSlug": market.removeprefix(SLUG)} if market.startswith(SLUG) else {"contractId": market}
        query = {**by, "beforeTime": str(before_ms), "limit": str(BETS_PAGE), "order": "desc"}
        if answer is not None:
            query["answerId"] = answer
        return (await self.read("/bets", query)).items()


class ManifoldPrices:
    """Price histories by contract id (or `slug:…`); of one answer by `<id>#<answer id>`."""

    platform = "manifold"

    def __init__(self, client: ManifoldClient) -> None:
        self._client = client

    async def prices(self, ref: MarketRef, as_of: AsOf, days: int = 60) -> list[PricePoint]:
        """Return the price after the last bet of each day."""
        market, answer = split_part(ref)
        since = datetime.fromtimestamp(window_start(as_of, days), UTC)
        try:
            bets = await self._bets(market, answer, as_of, since)
        except NotFound:
            raise PricesUnavailable(f"manifold has no market {market}") from None
        if answer is None and _several_answers(bets):
            raise PricesUnavailable(f"manifold {market} has several answers; name one with {market}#<answer id>")
        own = sorted((bet for bet in bets if bet.answer == answer), key=lambda bet: bet.at)
        points = [PricePoint(at=bet.at, p=bet.after) for bet in own if bet.after is not None]
        return daily_history(ref, points, as_of, days)

    async def _bets(self, market: str, answer: str | None, as_of: AsOf, since: datetime) -> Collection[ManifoldBet]:
        """Return the bets from the cutoff back to the start of the window, or to the first one before it."""
        before = int(as_of.at.timestamp() * MILLI) + 1
        # In data of 2022, a bet and its sale share an id.
        bets: dict[tuple[str, datetime], ManifoldBet] = {}
        for _ in range(MAX_PAGES):
            rows = await self._client.bets(market, answer, before)
            page = readable(rows, read_bet, self.platform, market)
            # Reversed, so that of two bets of one millisecond the newer comes last.
            bets = {**{(bet.id, bet.at): bet for bet in reversed(page)}, **bets}
            oldest = min((bet.at for bet in page), default=since)
            ambiguous = answer is None and _several_answers(page)
            reached = oldest < since and any(bet.answer == answer and bet.after is not None for bet in bets.values())
            if len(rows) < BETS_PAGE or not page or reached or ambiguous:
                break
            # One more millisecond includes bets of the same time, unless the whole page has that time.
            last = round(oldest.timestamp() * MILLI)
            before = last + 1 if last + 1 < before else last
        return bets.values()


def _several_answers(bets: Collection[ManifoldBet]) -> bool:
    return bool(bets) and all(bet.answer is not None for bet in bets)


def read_bet(row: Payload) -> ManifoldBet:
    """Parse a bet. Bets of 2022 on one of several answers give the answer's number as their outcome."""
    answer, outcome = row.get("answerId"), row.get("outcome")
    if answer is None and outcome is not None and outcome.name() not in SIDES:
        answer = outcome if outcome.name().isdecimal() else outcome.wrong("YES, NO or a number")
    taken = row.need("amount").number() != 0 or row.get("limitProb") is None
    return ManifoldBet(
        id=row.need("id").name(),
        at=row.need("createdTime").unix_time(per_second=MILLI),
        answer=None if answer is None or answer.value in ("", "undefined") else answer.name(),
        after=row.need("probAfter").probability() if taken else None,
    )


# Manifold markets as events: a yes-or-no market is one target, a multiple choice one target per answer.
#
# The list has neither rules nor answers, so each matching market is requested separately.

EVENTS_PAGE = 500
BINARY, CHOICE = "BINARY", "MULTIPLE_CHOICE"
UNITS: Mapping[str, VolumeUnit] = {"MANA": "MANA", "CASH": "USD"}
FILTERS: Mapping[MarketStatus, str] = {"unopened": "all", "open": "open", "closed": "closed", "resolved": "resolved"}


class ManifoldEvents(MarketEvents):
    """Markets by contract id or `slug:…`; the targets of a multiple choice are its answer ids.

    The most popular come first, or the next to close if a closing window is requested.
    """

    platform = "manifold"

    def __init__(self, client: ManifoldClient, *, topic: str = "") -> None:
        """`topic` limits the list to one topic, by its slug."""
        self._client = client
        self._only = {"topicSlug": topic} if topic else {}

    async def fetch(self, id: str) -> Payload:
        """Return one market as sent."""
        return await self._client.contract(id)

    async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
        """Return one page of a search without keywords."""
        passed = int(cursor or "0")
        query = {
            "term": "",
            "sort": "close-date" if wanted.closes_after or wanted.closes_before else "most-popular",
            "filter": FILTERS[wanted.status],
            "contractType": "ALL",
            "limit": str(EVENTS_PAGE),
            "offset": str(passed),
            **self._only,
        }
        rows = (await self._client.read("/search-markets", query)).items()
        return CataloguePage(rows=rows, following=str(passed + EVENTS_PAGE) if len(rows) == EVENTS_PAGE else None)

    async def read_listed(self, row: Payload, wanted: ListingFilter, report: ListingReport) -> ListedEvent | None:
        """Parse an entry, reading it in full only if what the list says about it matches the filter."""
        _kind(row)
        if reason := wanted.outside(_closes(row), row.need("volume").number()):
            report.left_out[reason] += 1
            return None
        return await self.read(await self._client.contract(row.need("id").text()), wanted.as_of, report)

    async def read(self, row: Payload, as_of: AsOf, report: ListingReport) -> ListedEvent:
        """Parse a complete market."""
        kind, status = _kind(row), _status(row, as_of.at)
        parts = [_yes(row, as_of.at, status)] if kind == BINARY else _answers(row, as_of.at, status)
        event = event_state(parts, exclusivity=read_exclusivity(kind == CHOICE and sums_to_one(row)))
        if not event.markets:
            raise UnsupportedEvent("it has no answer")
        title, tags = row.need("question").text().strip(), row.texts("groupSlugs")
        return ListedEvent(
            question=Question(
                id=f"manifold/{row.need('id').text()}",
                source=self.platform,
                text=title,
                due=as_of.at,
                targets=tuple(market.target for market in event.markets),
                category=tags[0] if tags else "",
                criteria=_rules(row),
                exclusivity=event.exclusivity,
                opens_at=row.need("createdTime").unix_time(per_second=MILLI),
                closes_at=_closes(row),
                url=row.words("url"),
            ),
            status=event.status,
            recurrence=recurrence_template(title),
            volume=row.need("volume").number(),
            volume_24h=row.amount("volume24Hours"),
            liquidity=row.amount("totalLiquidity"),
            unit=UNITS.get(row.words("token"), "MANA"),
            traders=row.count("uniqueBettorCount"),
            tags=tags,
            finished=event.finished,
        )


SEARCHED = 50
"""Number of markets requested per search; only the closest of them are read in full."""


async def _search(client: ManifoldClient, config: ServiceConfig, query: EventQuery) -> list[ListedEvent]:
    """Return the open markets with the closest questions."""
    rows: dict[str, Payload] = {}
    for phrase in query.phrases:
        params = {"term": phrase, "filter": "open", "contractType": "ALL", "limit": str(SEARCHED)}
        items = (await client.read("/search-markets", params)).items()
        rows |= {row.need("id").name(): row for row in items if row.words("outcomeType") in (BINARY, CHOICE)}
    whole = [await client.contract(row.need("id").name()) for row in query.nearest(rows.values(), "question")]
    return await read_open(ManifoldEvents(client), whole, query.as_of)


def _kind(row: Payload) -> str:
    kind = row.need("outcomeType").text()
    if kind not in (BINARY, CHOICE):
        raise UnsupportedEvent(f"a market of type {kind} has no yes-or-no targets")
    return kind


def _rules(row: Payload) -> str:
    """Return the description as plain text; servers of 2022 send only rich text, or plain text under that name."""
    description = row.get("description")
    if row.has("textDescription") or description is None or not description.value:
        return row.stated_text("textDescription").strip()
    if isinstance(description.value, str):
        return description.text().strip()
    words: list[str] = []
    left: list[Any] = [description.value]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            words += [node["text"]] if isinstance(node.get("text"), str) else []
            left += reversed(node["content"]) if isinstance(node.get("content"), list) else []
    return " ".join(words) or row.need("textDescription").text()


def sums_to_one(row: Payload) -> bool:
    """Whether exactly one answer resolves to yes; always so before answers could be bet on one by one."""
    old = not row.has("shouldAnswersSumToOne") and row.words("mechanism") not in ("", "cpmm-multi-1")
    return old or row.need("shouldAnswersSumToOne").flag()


def _closes(row: Payload) -> datetime | None:
    closes = row.get("closeTime")
    return None if closes is None else closes.unix_time(per_second=MILLI)


def _status(row: Payload, at: datetime) -> MarketStatus:
    if row.need("isResolved").flag():
        return "resolved"
    closes = _closes(row)
    return "closed" if closes is not None and closes <= at else "open"


def _yes(row: Payload, at: datetime, status: MarketStatus) -> MarketState:
    snapshot = Snapshot(at=at, last_price=row.need("probability").probability(), volume=row.amount("volume"))
    target = Target(id="yes", label="Yes", resolves_at=_closes(row), snapshot=snapshot)
    return MarketState(row=row, target=target, status=status, lost=row.words("resolution") == "NO")


def _answers(row: Payload, at: datetime, status: MarketStatus) -> list[MarketState]:
    """Return one target per answer; an answer may resolve before the others."""
    market_states: list[MarketState] = []
    for answer in row.need("answers").items():
        result, chance = answer.words("resolution"), answer.need("probability").probability()
        label = "Other" if answer.is_set("isOther") and not answer.words("text") else answer.need("text").text()
        target = Target(
            id=answer.need("id").name(),
            label=label.strip(),
            resolves_at=_closes(row),
            snapshot=Snapshot(at=at, last_price=chance, volume=answer.amount("volume")),
        )
        state: MarketStatus = "resolved" if result else status
        market_states.append(MarketState(row=answer, target=target, status=state, lost=result == "NO"))
    return market_states


MARKET = Market(
    hosts=("manifold.markets",),
    client=lambda config: ManifoldClient(http=config.http, host=config.address or HOST),
    events=ManifoldEvents,
    part=lambda client, name: ManifoldEvents(client, topic=name),
    search=_search,
    prices=ManifoldPrices,
    settlements="foretell.data.settlements.manifold:ManifoldSettlements",
    facts="Manifold source, 21 August 2026; recorded bets of October 2022",
    own_id=pattern(r"[A-Za-z0-9]{8,32}"),
    id_in_address=slug_in_address,
)
