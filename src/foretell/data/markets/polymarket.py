"""Polymarket prices of one outcome token.

The catalogue (Gamma) leads from a condition id to the token. Prices come from the data service, in windows of at most
15 days and then for the cutoff itself, and where it has none, from the older order-book service, which for resolved
markets only answers coarsely.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote

from foretell.data.http import AsyncHttpClient, NotFound, SourceError
from foretell.data.markets.listing import (
    CataloguePage,
    EventState,
    ListedEvent,
    ListingFilter,
    ListingReport,
    MarketEvents,
    MarketState,
    MarketStatus,
    OnSkipped,
    UnsupportedEvent,
    event_state,
    log_skipped,
    readable,
    recurrence_template,
    total,
)
from foretell.data.markets.market import EventQuery, Market, read_open
from foretell.data.markets.prices import (
    PART,
    SLUG,
    MarketRef,
    PricePoint,
    PricesUnavailable,
    daily_history,
    slug_in_address,
    split_part,
    window_start,
)
from foretell.data.payload import MalformedPayload, Payload
from foretell.data.service import JsonService, ServiceConfig
from foretell.questions.as_of import AsOf
from foretell.questions.question import Exclusivity, Question, Snapshot, Target, read_exclusivity, with_some_left_out

GAMMA = "https://gamma-api.polymarket.com"
DATA = "https://data-api.polymarket.com"
CLOB = "https://clob.polymarket.com"
DAY_SECONDS = 86_400
DATA_WINDOW = 15 * DAY_SECONDS
BUCKET = 10_800
"""Three hours: the finest grain that the data service keeps for good."""
CLOB_WINDOW = 14 * DAY_SECONDS
CLOB_MINUTES = 720
"""Half days: anything finer comes back empty for resolved markets."""
MAX_PAGES = 100


@dataclass(frozen=True, kw_only=True)
class PolymarketHosts:
    """Where the three services are."""

    gamma: str = GAMMA
    data: str = DATA
    clob: str = CLOB


class PolymarketClient:
    """The public reading end of the three services."""

    def __init__(self, *, http: AsyncHttpClient, hosts: PolymarketHosts | None = None) -> None:
        hosts = hosts or PolymarketHosts()
        self.gamma, self._data, self._clob = (
            JsonService(ServiceConfig(http=http, address=host), public)
            for host, public in ((hosts.gamma, GAMMA), (hosts.data, DATA), (hosts.clob, CLOB))
        )

    async def token(self, market: str, outcome: str) -> str:
        """The token of an outcome, whatever its case and place, of a market by condition id or `slug:…`."""
        by = {"slug": market.removeprefix(SLUG)} if market.startswith(SLUG) else {"condition_ids": market}
        # The catalogue hides closed markets unless asked for them.
        for closed in ("false", "true"):
            rows = _rows(await self.gamma.read("/markets", {**by, "closed": closed}), "markets")
            if len(rows) == 1:
                tokens = _tokens(rows[0])
                if outcome.casefold() in tokens:
                    return tokens[outcome.casefold()]
                raise PricesUnavailable(
                    f"polymarket {market} has no outcome {outcome!r}; name one with {market}#<outcome>"
                )
        raise PricesUnavailable(f"polymarket lists no market {market}")

    async def history(self, token: str, start: int, end: int) -> list[Payload]:
        """Bucketed prices of a window of at most 15 days, from the data service. `end` is not included."""
        query = {"token_id": token, "start": str(start), "end": str(end), "bucket_seconds": str(BUCKET)}
        found: list[Payload] = []
        for _ in range(MAX_PAGES):
            answer = await self._data.read("/v2/prices-history", query)
            found += data_rows(answer)
            cursor = answer.get("pagination", "next_cursor")
            if cursor is None:
                break
            query["cursor"] = cursor.text()
        return found

    async def price_at(self, token: str, second: int) -> list[Payload]:
        """The newest observation at or before a moment, from the data service; empty where there is none."""
        return data_rows(await self._data.read("/v2/prices-history", {"token_id": token, "as_of": str(second)}))

    async def sampled(self, token: str, start: int, end: int) -> list[Payload]:
        """Prices by half days from the order-book service, which wants windows of at most two weeks."""
        query = {"market": token, "startTs": str(start), "endTs": str(end), "fidelity": str(CLOB_MINUTES)}
        return (await self._clob.read("/prices-history", query)).need("history").items()

    async def resolutions(self, conditions: Sequence[str]) -> list[Payload]:
        """How far the resolution of at most 20 markets has come, from the data service."""
        return data_rows(await self._data.read("/v2/resolutions", {"condition_id": ",".join(conditions)}))

    async def book(self, condition: str) -> Payload:
        """A market as the order-book service shows it: its tokens, and which of them won."""
        return await self._clob.read(f"/markets/{quote(condition, safe='')}")


class PolymarketPrices:
    """Price histories by condition id, of yes unless another outcome is named (`<id>#<outcome>`)."""

    platform = "polymarket"

    def __init__(self, client: PolymarketClient, *, tell: OnSkipped = log_skipped) -> None:
        self._client = client
        self._tell = tell

    async def prices(self, ref: MarketRef, as_of: AsOf, days: int = 60) -> list[PricePoint]:
        """One price a day, the last one as it stood at the cutoff."""
        start, end = window_start(as_of, days), int(as_of.at.timestamp()) + 1
        market, outcome = split_part(ref)
        token = await self._client.token(market, outcome or "yes")
        points = await self._from_data(ref, token, as_of, start, end)
        if not points:
            windows = _chunks(start, end, CLOB_WINDOW)
            rows = [row for since, until in windows for row in await self._client.sampled(token, since, until)]
            points = readable(rows, clob_price, self.platform, ref.id, self._tell)
        return daily_history(ref, points, as_of, days)

    async def _from_data(self, ref: MarketRef, token: str, as_of: AsOf, start: int, end: int) -> list[PricePoint]:
        """Known points; none where the service is down or not there, because there is a second one to ask."""
        try:
            windows = _chunks(start, end, DATA_WINDOW)
            rows = [row for since, until in windows for row in await self._client.history(token, since, until)]
            points = self._known(ref, rows, as_of)
            # Asked for a moment, the service answers with what stood then; a bucket still open then is not known yet.
            second = int(as_of.at.timestamp())
            points += self._known(ref, await self._client.price_at(token, second), as_of)
            return points or self._known(ref, await self._client.price_at(token, second - BUCKET), as_of)
        except MalformedPayload:
            raise
        except SourceError:
            return []

    def _known(self, ref: MarketRef, rows: list[Payload], as_of: AsOf) -> list[PricePoint]:
        points = readable(rows, data_price, self.platform, ref.id, self._tell)
        return [point for point in points if as_of.admits(point.at)]


def _chunks(start: int, end: int, size: int) -> Iterable[tuple[int, int]]:
    for since in range(start, end, size):
        yield since, min(since + size, end)


def _rows(answer: Payload, what: str) -> list[Payload]:
    """A list that comes bare or in a field."""
    return (answer.need(what) if isinstance(answer.value, dict) else answer).items()


def _tokens(row: Payload) -> dict[str, str]:
    """The token of each outcome by its name in small letters; both lists come as JSON inside a text."""
    names = [item.text().casefold() for item in row.need("outcomes").embedded().items()]
    tokens = [item.name() for item in row.need("clobTokenIds").embedded().items()]
    if len(names) != len(tokens):
        row.need("clobTokenIds").wrong("as long as outcomes")
    return dict(zip(reversed(names), reversed(tokens), strict=True))


def data_rows(answer: Payload) -> list[Payload]:
    """Entries of the data service. A miss is `data: null`; a single entry may come without a list."""
    data = answer.present("data")
    if data is None:
        return []
    return [data] if isinstance(data.value, dict) else data.items()


def data_price(row: Payload) -> PricePoint:
    """A price of the data service, known when its bucket is over, whichever end the bucket is stamped with."""
    width = row.get("resolution_seconds")
    seconds = min(max(width.number(), 0.0), float(DAY_SECONDS)) if width is not None else float(BUCKET)
    return PricePoint(at=row.need("timestamp").moment() + timedelta(seconds=seconds), p=row.need("price").probability())


def clob_price(row: Payload) -> PricePoint:
    """A price of the order-book service."""
    return PricePoint(at=row.need("t").moment(), p=row.need("p").probability())


# Polymarket events from its catalogue (Gamma).
#
# A market has two outcomes with a token each. Of a yes-or-no market the target is yes, wherever it stands in the list.
# Where the outcomes have names (two teams), an event with one market has both as targets, of which one comes true.

PAGE = 50
OFFSET = "offset:"
"""Cursors of servers that count instead: how many entries to pass over."""
YES = "yes"
OVER: tuple[str, ...] = ("resolved", "settled")
UNDER_WAY = frozenset(
    {"requested", "initialized", "inactive", "active", "posed", "proposed", "reproposed", "challenged", "disputed"}
    | {"arbitration"}
)
"""Words for a market whose result is still to come, as the official client 0.14.0 lists them."""
CATEGORIES = (
    *("Politics", "Sports", "Crypto", "Finance", "Economy", "Business", "Tech", "Science", "Culture", "Pop Culture"),
    *("Geopolitics", "World", "Elections", "Esports", "Weather", "Health", "Mentions"),
)
"""How the platform's own pages are divided. An event has several of these tags: the first here is its category."""
CLOSED: Mapping[MarketStatus, str] = {"unopened": "false", "open": "false", "closed": "true", "resolved": "true"}


class PolymarketEvents(MarketEvents):
    """Events by number or `slug:…`, those traded most today first.

    Targets are condition ids, `<condition id>#<outcome>` where outcomes have names.
    """

    platform = "polymarket"

    def __init__(self, client: PolymarketClient, *, tag: str = "") -> None:
        """`tag` limits the list to what is tagged so, by the tag's slug."""
        self._client = client
        self._only = [("tag_slug", tag)] if tag else []

    async def fetch(self, id: str) -> Payload:
        """One event."""
        path = f"slug/{quote(id.removeprefix(SLUG), safe='')}" if id.startswith(SLUG) else quote(id, safe="")
        return await self._client.gamma.read(f"/events/{path}")

    async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
        """One page. The list hides closed events unless asked for them."""
        query = [("closed", CLOSED[wanted.status]), ("order", "volume24hr"), ("ascending", "false"), *self._only]
        for name, at in (("end_date_min", wanted.closes_after), ("end_date_max", wanted.closes_before)):
            query += [(name, f"{at:%Y-%m-%dT%H:%M:%SZ}")] if at is not None else []
        return await page_of(self._client, "events", query, cursor, size=PAGE)

    async def read(self, row: Payload, as_of: AsOf, report: ListingReport) -> ListedEvent:
        """An event with its markets."""
        markets = _named(row)
        sides = [market_states(market, as_of.at, alone=len(markets) == 1) for market in markets]
        pair = len(markets) == 1 and len(sides[0]) == 2
        event = event_state(
            [one for both in sides for one in both],
            exclusivity="exactly one" if pair else _exclusivity(row, markets, report),
        )
        if not event.asked:
            raise UnsupportedEvent("it has no market")
        title, tags = row.need("title").text().strip(), _tags(row)
        series = row.words("seriesSlug") or "".join(one.words("slug") for one in row.rows("series")[:1])
        ends = [one.target.resolves_at for one in event.asked if one.target.resolves_at]
        return ListedEvent(
            question=Question(
                id=f"polymarket/{row.need('id').name()}",
                source=self.platform,
                text=title,
                due=as_of.at,
                targets=tuple(one.target for one in event.asked),
                subtype=series,
                category=row.words("category") or _category(tags),
                criteria=_criteria(row, event),
                exclusivity=event.exclusivity,
                opens_at=row.optional_time("startDate"),
                closes_at=max(ends) if ends else row.optional_time("endDate"),
                url=f"https://polymarket.com/event/{row.need('slug').text()}",
            ),
            status=event.status,
            recurrence=series or recurrence_template(title),
            volume=_of_all(row, markets, "volume", "volumeNum"),
            volume_24h=_of_all(row, markets, "volume24hr"),
            liquidity=_of_all(row, markets, "liquidity", "liquidityNum"),
            open_interest=row.amount("openInterest"),
            tags=tags,
            finished=event.finished,
        )


SEARCHED = 20
"""Events of one search."""


class PolymarketSearch:
    """Open events by words, from the search that the platform's own pages use."""

    def __init__(self, client: PolymarketClient) -> None:
        self._client = client

    async def search(self, query: EventQuery) -> list[ListedEvent]:
        """The open events whose titles are nearest."""
        rows: dict[str, Payload] = {}
        for phrase in query.phrases:
            asked = {"q": phrase, "limit_per_type": str(SEARCHED), "events_status": "active"}
            answer = await self._client.gamma.read("/public-search", asked)
            # Nothing found is told by an empty list, or by none.
            rows |= {row.need("id").name(): row for row in answer.rows("events")}
        return await read_open(PolymarketEvents(self._client), query.nearest(rows.values(), "title"), query.as_of)


async def page_of(
    client: PolymarketClient, what: str, query: Iterable[tuple[str, str]], cursor: str, *, size: int
) -> CataloguePage:
    """One page of events or markets, from the list with cursors or, on servers without it, the one with offsets."""
    asked = [*query, ("limit", str(size))]
    if not cursor.startswith(OFFSET):
        try:
            answer = await client.gamma.read(
                f"/{what}/keyset", [*asked, *([("after_cursor", cursor)] if cursor else [])]
            )
            return CataloguePage(rows=answer.need(what).items(), following=answer.optional_text("next_cursor") or None)
        except NotFound:
            if cursor:
                raise
            cursor = f"{OFFSET}0"
    passed = int(cursor.removeprefix(OFFSET))
    rows = _rows(await client.gamma.read(f"/{what}", [*asked, ("offset", str(passed))]), what)
    return CataloguePage(rows=rows, following=f"{OFFSET}{passed + size}" if len(rows) == size else None)


@dataclass(frozen=True, kw_only=True)
class PolymarketOutcome:
    """One side of a market."""

    name: str
    place: int
    price: float | None
    """As the catalogue shows it: the middle of the book, and after the end what a share was worth."""


def outcomes(row: Payload) -> tuple[PolymarketOutcome, PolymarketOutcome]:
    """The two sides of a market; both lists come as JSON inside a text."""
    names = [item.text() for item in row.need("outcomes").embedded().items()]
    told = row.get("outcomePrices")
    prices = [item.probability() for item in told.embedded().items()] if told is not None else [None] * len(names)
    if len(prices) != len(names):
        row.need("outcomePrices").wrong("as long as outcomes")
    if not any(prices):
        # Old markets show nothing for both sides: what they were worth is not told.
        prices = [None] * len(names)
    if len(names) != 2:
        raise UnsupportedEvent(f"a market has {len(names)} outcomes, not two")
    first, second = (PolymarketOutcome(name=name, place=i, price=prices[i]) for i, name in enumerate(names))
    return first, second


def yes_of(sides: tuple[PolymarketOutcome, PolymarketOutcome]) -> PolymarketOutcome | None:
    """The side called yes."""
    return next((side for side in sides if side.name.casefold() == YES), None)


def resolution_stage(row: Payload) -> str:
    """How far the resolution of a market has come, in the oracle's word or, of newer markets, in the platform's own."""
    return (row.words("umaResolutionStatus") or row.words("resolutionStatus")).casefold()


def paid_in_full(sides: tuple[PolymarketOutcome, PolymarketOutcome]) -> bool:
    """Whether one side was worth a dollar and the other nothing."""
    return {side.price for side in sides} == {0.0, 1.0}


def _named(row: Payload) -> list[Payload]:
    """The event's markets. Some events keep empty places for names yet to come, which their "other" stands for."""
    markets = row.need("markets").items()
    if not row.is_set("negRiskAugmented"):
        return markets
    return [market for market in markets if market.is_set("active") or market.is_set("closed")]


def market_states(row: Payload, at: datetime, *, alone: bool) -> list[MarketState]:
    """A market's targets: yes; or of two named sides both where it is alone, else the first."""
    sides, condition = outcomes(row), row.need("conditionId").text()
    yes, status, title = yes_of(sides), _status(row), row.need("question").text().strip()
    short = row.words("groupItemTitle")
    if yes is not None:
        named = [(yes, condition, short or title)]
    else:
        prefix = "" if alone else f"{short or title}: "
        named = [
            (side, f"{condition}{PART}{side.name}", prefix + side.name) for side in (sides if alone else sides[:1])
        ]
    ends = row.optional_time("endDate")
    return [
        MarketState(
            row=row,
            target=Target(id=id, label=label, resolves_at=ends, snapshot=_snapshot(row, side, at)),
            status=status,
            lost=status == "resolved" and side.price == 0.0 and paid_in_full(sides),
        )
        for side, id, label in named
    ]


def _status(row: Payload) -> MarketStatus:
    """What takes no orders any more, or not yet, is not open even if nobody has closed it."""
    if row.need("closed").flag() or row.is_set("archived"):
        stage = resolution_stage(row)
        settled = stage in OVER or (not stage and paid_in_full(outcomes(row)))
        return "resolved" if settled else "closed"
    if row.get("active") is not None and not row.is_set("active"):
        return "unopened"
    return "open" if row.get("acceptingOrders") is None or row.is_set("acceptingOrders") else "closed"


def _snapshot(row: Payload, side: PolymarketOutcome, at: datetime) -> Snapshot:
    """Quotes are told for the first outcome; those of the second are what is left of a dollar."""
    if not any(row.has(name) for name in ("bestBid", "bestAsk", "lastTradePrice", "outcomePrices")):
        row.need("outcomePrices")
    quotes = [row.get(name) for name in ("bestBid", "bestAsk", "lastTradePrice")]
    bid, ask, last = (None if quote is None else quote.probability() for quote in quotes)
    if (bid or 0.0) == 0.0 and (ask or 1.0) == 1.0:
        bid = ask = None
    if side.place == 1:
        bid, ask, last = _rest(ask), _rest(bid), _rest(last or None)
    return Snapshot(
        at=at,
        last_price=last or side.price,
        yes_bid=bid,
        yes_ask=ask,
        no_ask=_rest(bid),
        volume=row.amount("volumeNum", "volume"),
    )


def _rest(price: float | None) -> float | None:
    return None if price is None else round(1.0 - price, 6)


def _exclusivity(row: Payload, markets: list[Payload], report: ListingReport) -> Exclusivity:
    """Exactly one of all markets comes true where the platform speaks of negative risk; some may not be listed yet."""
    told = next((told for one in (row, *markets) if (told := one.get("negRisk")) is not None), None)
    if told is None and len(markets) > 1:
        report.noted["event of several markets that does not say whether they exclude each other"] += 1
    found = read_exclusivity(told is not None and told.flag())
    # A list of names that grows is whole only with the market that stands for all names to come.
    other = any(market.is_set("negRiskOther") for market in markets)
    whole = len(markets) == len(row.need("markets").items()) and (other or not row.is_set("negRiskAugmented"))
    return found if whole else with_some_left_out(found)


def _of_all(row: Payload, markets: list[Payload], name: str, other: str = "") -> float | None:
    told = row.amount(name)
    return told if told is not None else total(market.amount(*filter(None, (other, name))) for market in markets)


def _tags(row: Payload) -> tuple[str, ...]:
    named = [tag.words("label") or tag.words("slug") for tag in row.rows("tags")]
    return tuple(name for name in dict.fromkeys(named) if name and name != "All")


def _category(tags: Sequence[str]) -> str:
    """The broadest of an event's tags, which have no order of their own; else the first by name."""
    return next((name for name in CATEGORIES if name in tags), min(tags, default=""))


def _criteria(row: Payload, event: EventState) -> str:
    """The rules of each market, or once where all share them."""
    rules = [(one.target.label, one.row.stated_text("description").strip()) for one in event.asked]
    if len({rule for _, rule in rules}) == 1:
        return rules[0][1] or row.words("description")
    return "\n".join(f"{label}: {rule}" for label, rule in rules if rule)


def _open_client(config: ServiceConfig) -> PolymarketClient:
    own = config.address
    hosts = PolymarketHosts(gamma=own, clob=own, data=own) if own else PolymarketHosts()
    return PolymarketClient(http=config.http, hosts=hosts)


MARKET = Market(
    hosts=("polymarket.com",),
    client=_open_client,
    events=PolymarketEvents,
    part=lambda client, name: None if name.isdigit() else PolymarketEvents(client, tag=name),
    search=lambda client, _: PolymarketSearch(client),
    prices=PolymarketPrices,
    settlements="foretell.data.settlements.polymarket:PolymarketSettlements",
    facts="polymarket-client 0.14.0, autumn 2026; recorded answers of January to August 2026",
    own_id=re.compile(r"0x[0-9a-fA-F]{64}"),
    target_is_market=True,
    id_in_address=slug_in_address,
)
