"""Polymarket prices of one outcome token.

The catalogue (Gamma) maps a condition id to the token. Prices come from the data service, in windows of at most 15 days
and then for the cutoff itself. If it has none, they come from the older order-book service, which only returns coarse
prices for resolved markets.
"""

from collections.abc import Iterable, Mapping, Sequence
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
    UnsupportedEvent,
    event_state,
    readable,
    recurrence_template,
    total,
)
from foretell.data.markets.market import (
    PART,
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
from foretell.data.payload import MalformedPayload, Payload
from foretell.data.service import JsonService, ServiceConfig
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.questions.question import Exclusivity, Question, Snapshot, Target, read_exclusivity, with_some_left_out

GAMMA = "https://gamma-api.polymarket.com"
DATA = "https://data-api.polymarket.com"
CLOB = "https://clob.polymarket.com"
DAY_SECONDS = 86_400
DATA_WINDOW = 15 * DAY_SECONDS
BUCKET = 10_800
"""Bucket width in seconds (three hours): the finest resolution that the data service keeps permanently."""
CLOB_WINDOW = 14 * DAY_SECONDS
CLOB_MINUTES = 720
"""Sampling interval in minutes (half a day): anything finer comes back empty for resolved markets."""
MAX_PAGES = 100


@frozen
class PolymarketHosts:
    """Addresses of the three services."""

    gamma: str = GAMMA
    data: str = DATA
    clob: str = CLOB


class PolymarketClient:
    """Client for the public data of the three services."""

    def __init__(self, *, http: AsyncHttpClient, hosts: PolymarketHosts | None = None) -> None:
        hosts = hosts or PolymarketHosts()
        self.gamma, self._data, self._clob = (
            JsonService(ServiceConfig(http=http, address=host), public)
            for host, public in ((hosts.gamma, GAMMA), (hosts.data, DATA), (hosts.clob, CLOB))
        )

    async def token(self, market: str, outcome: str) -> str:
        """Return the token of an outcome, matched by name ignoring case, of a market by condition id or `slug:…`."""
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
        """Return bucketed prices of a window of at most 15 days from the data service. `end` is exclusive."""
        query = {"token_id": token, "start": str(start), "end": str(end), "bucket_seconds": str(BUCKET)}
        payloads: list[Payload] = []
        for _ in range(MAX_PAGES):
            answer = await self._data.read("/v2/prices-history", query)
            payloads += data_rows(answer)
            cursor = answer.get("pagination", "next_cursor")
            if cursor is None:
                break
            query["cursor"] = cursor.text()
        return payloads

    async def price_at(self, token: str, second: int) -> list[Payload]:
        """Return the newest observation at or before a time from the data service; empty if there is none."""
        return data_rows(await self._data.read("/v2/prices-history", {"token_id": token, "as_of": str(second)}))

    async def sampled(self, token: str, start: int, end: int) -> list[Payload]:
        """Return half-daily prices from the order-book service, which requires windows of at most two weeks."""
        query = {"market": token, "startTs": str(start), "endTs": str(end), "fidelity": str(CLOB_MINUTES)}
        return (await self._clob.read("/prices-history", query)).need("history").items()

    async def resolutions(self, conditions: Sequence[str]) -> list[Payload]:
        """Return the resolution state of at most 20 markets from the data service."""
        return data_rows(await self._data.read("/v2/resolutions", {"condition_id": ",".join(conditions)}))

    async def book(self, condition: str) -> Payload:
        """Return a market as the order-book service shows it: its tokens, and which of them won."""
        return await self._clob.read(f"/markets/{quote(condition, safe='')}")


class PolymarketPrices:
    """Price histories by condition id, of yes unless another outcome is named (`<id>#<outcome>`)."""

    platform = "polymarket"

    def __init__(self, client: PolymarketClient) -> None:
        self._client = client

    async def prices(self, ref: MarketRef, as_of: AsOf, days: int = 60) -> list[PricePoint]:
        """Return one price per day, the last one as of the cutoff."""
        start, end = window_start(as_of, days), int(as_of.at.timestamp()) + 1
        market, outcome = split_part(ref)
        token = await self._client.token(market, outcome or "yes")
        points = await self._from_data(ref, token, as_of, start, end)
        if not points:
            windows = _chunks(start, end, CLOB_WINDOW)
            rows = [row for since, until in windows for row in await self._client.sampled(token, since, until)]
            points = readable(rows, clob_price, self.platform, ref.id)
        return daily_history(ref, points, as_of, days)

    async def _from_data(self, ref: MarketRef, token: str, as_of: AsOf, start: int, end: int) -> list[PricePoint]:
        """Return known points; empty if the service is down or missing, because there is a second one."""
        try:
            windows = _chunks(start, end, DATA_WINDOW)
            rows = [row for since, until in windows for row in await self._client.history(token, since, until)]
            points = self._known(ref, rows, as_of)
            # For a given time, the service returns the price then; a bucket still open then is not known yet.
            second = int(as_of.at.timestamp())
            points += self._known(ref, await self._client.price_at(token, second), as_of)
            return points or self._known(ref, await self._client.price_at(token, second - BUCKET), as_of)
        except MalformedPayload:
            raise
        except SourceError:
            return []

    def _known(self, ref: MarketRef, rows: list[Payload], as_of: AsOf) -> list[PricePoint]:
        points = readable(rows, data_price, self.platform, ref.id)
        return [point for point in points if as_of.admits(point.at)]


def _chunks(start: int, end: int, size: int) -> Iterable[tuple[int, int]]:
    for since in range(start, end, size):
        yield since, min(since + size, end)


def _rows(answer: Payload, what: str) -> list[Payload]:
    """Return a list that is sent either bare or in a field."""
    return (answer.need(what) if isinstance(answer.value, dict) else answer).items()


def _tokens(row: Payload) -> dict[str, str]:
    """Map each outcome's lower-case name to its token; both lists are sent as JSON inside a string."""
    names = [item.text().casefold() for item in row.need("outcomes").embedded().items()]
    tokens = [item.name() for item in row.need("clobTokenIds").embedded().items()]
    if len(names) != len(tokens):
        row.need("clobTokenIds").wrong("as long as outcomes")
    return dict(zip(reversed(names), reversed(tokens), strict=True))


def data_rows(answer: Payload) -> list[Payload]:
    """Return the entries of the data service. `data: null` means none; a single entry may be sent without a list."""
    data = answer.present("data")
    if data is None:
        return []
    return [data] if isinstance(data.value, dict) else data.items()


def data_price(row: Payload) -> PricePoint:
    """Parse a price of the data service; it is known once its bucket has ended, whichever end the timestamp marks."""
    width = row.get("resolution_seconds")
    seconds = min(max(width.number(), 0.0), float(DAY_SECONDS)) if width is not None else float(BUCKET)
    return PricePoint(
        at=row.need("timestamp").unix_time() + timedelta(seconds=seconds), p=row.need("price").probability()
    )


def clob_price(row: Payload) -> PricePoint:
    """Parse a price of the order-book service."""
    return PricePoint(at=row.need("t").unix_time(), p=row.need("p").probability())


# Polymarket events from its catalogue (Gamma).
#
# A market has two outcomes with a token each. The target of a yes-or-no market is yes, at any position in the list. If
# the outcomes have names (two teams), an event with one market has both as targets, exactly one of which comes true.

PAGE = 50
OFFSET = "offset:"
"""Prefix of cursors for servers that use offsets: the number of entries to skip."""
YES = "yes"
OVER: tuple[str, ...] = ("resolved", "settled")
UNDER_WAY = frozenset(
    {"requested", "initialized", "inactive", "active", "posed", "proposed", "reproposed", "challenged", "disputed"}
    | {"arbitration"}
)
"""Stages of a market that is not yet resolved, as listed by the official client 0.14.0."""
CATEGORIES = (
    *("Politics", "Sports", "Crypto", "Finance", "Economy", "Business", "Tech", "Science", "Culture", "Pop Culture"),
    *("Geopolitics", "World", "Elections", "Esports", "Weather", "Health", "Mentions"),
)
"""Sections of the platform's own pages. An event has several of these tags: the first in this order is its category."""
CLOSED: Mapping[MarketStatus, str] = {"unopened": "false", "open": "false", "closed": "true", "resolved": "true"}


class PolymarketEvents(MarketEvents):
    """Events by number or `slug:…`, the most traded today first.

    Targets are condition ids, or `<condition id>#<outcome>` if outcomes have names.
    """

    platform = "polymarket"

    def __init__(self, client: PolymarketClient, *, tag: str = "") -> None:
        """`tag` limits the list to events with that tag, given by its slug."""
        self._client = client
        self._only = [("tag_slug", tag)] if tag else []

    async def fetch(self, id: str) -> Payload:
        """Return one event as sent."""
        path = f"slug/{quote(id.removeprefix(SLUG), safe='')}" if id.startswith(SLUG) else quote(id, safe="")
        return await self._client.gamma.read(f"/events/{path}")

    async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
        """Return one page. The list hides closed events unless they are requested."""
        query = [("closed", CLOSED[wanted.status]), ("order", "volume24hr"), ("ascending", "false"), *self._only]
        for name, at in (("end_date_min", wanted.closes_after), ("end_date_max", wanted.closes_before)):
            query += [(name, f"{at:%Y-%m-%dT%H:%M:%SZ}")] if at is not None else []
        return await page_of(self._client, "events", query, cursor, size=PAGE)

    async def read(self, row: Payload, as_of: AsOf, report: ListingReport) -> ListedEvent:
        """Parse an event with its markets."""
        markets = _named(row)
        sides = [market_states(market, as_of.at, alone=len(markets) == 1) for market in markets]
        pair = len(markets) == 1 and len(sides[0]) == 2
        event = event_state(
            [side for both in sides for side in both],
            exclusivity="exactly one" if pair else _exclusivity(row, markets, report),
        )
        if not event.markets:
            raise UnsupportedEvent("it has no market")
        title, tags = row.need("title").text().strip(), _tags(row)
        series = row.words("seriesSlug") or "".join(series_row.words("slug") for series_row in row.rows("series")[:1])
        ends = [market.target.resolves_at for market in event.markets if market.target.resolves_at]
        return ListedEvent(
            question=Question(
                id=f"polymarket/{row.need('id').name()}",
                source=self.platform,
                text=title,
                due=as_of.at,
                targets=tuple(market.target for market in event.markets),
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
"""Number of events requested per search."""


async def _search(client: PolymarketClient, config: ServiceConfig, query: EventQuery) -> list[ListedEvent]:
    """Return the open events with the closest titles, by the search that the platform's own pages use."""
    rows: dict[str, Payload] = {}
    for phrase in query.phrases:
        params = {"q": phrase, "limit_per_type": str(SEARCHED), "events_status": "active"}
        answer = await client.gamma.read("/public-search", params)
        # Without results, the list is empty or missing.
        rows |= {row.need("id").name(): row for row in answer.rows("events")}
    return await read_open(PolymarketEvents(client), query.nearest(rows.values(), "title"), query.as_of)


async def page_of(
    client: PolymarketClient, what: str, query: Iterable[tuple[str, str]], cursor: str, *, size: int
) -> CataloguePage:
    """Return one page of events or markets, by cursor or, on servers without cursors, by offset."""
    params = [*query, ("limit", str(size))]
    if not cursor.startswith(OFFSET):
        try:
            answer = await client.gamma.read(
                f"/{what}/keyset", [*params, *([("after_cursor", cursor)] if cursor else [])]
            )
            return CataloguePage(rows=answer.need(what).items(), following=answer.optional_text("next_cursor") or None)
        except NotFound:
            if cursor:
                raise
            cursor = f"{OFFSET}0"
    passed = int(cursor.removeprefix(OFFSET))
    rows = _rows(await client.gamma.read(f"/{what}", [*params, ("offset", str(passed))]), what)
    return CataloguePage(rows=rows, following=f"{OFFSET}{passed + size}" if len(rows) == size else None)


@frozen
class PolymarketOutcome:
    """One side of a market."""

    name: str
    place: int
    price: float | None
    """Price in the catalogue: the mid price, and after the end what a share was worth."""


def outcomes(row: Payload) -> tuple[PolymarketOutcome, PolymarketOutcome]:
    """Return the two sides of a market; both lists are sent as JSON inside a string."""
    names = [item.text() for item in row.need("outcomes").embedded().items()]
    listed_prices = row.get("outcomePrices")
    prices = (
        [item.probability() for item in listed_prices.embedded().items()]
        if listed_prices is not None
        else [None] * len(names)
    )
    if len(prices) != len(names):
        row.need("outcomePrices").wrong("as long as outcomes")
    if not any(prices):
        # Old markets show 0 for both sides: their worth is unknown.
        prices = [None] * len(names)
    if len(names) != 2:
        raise UnsupportedEvent(f"a market has {len(names)} outcomes, not two")
    first, second = (PolymarketOutcome(name=name, place=i, price=prices[i]) for i, name in enumerate(names))
    return first, second


def yes_of(sides: tuple[PolymarketOutcome, PolymarketOutcome]) -> PolymarketOutcome | None:
    """Return the side named yes, if any."""
    return next((side for side in sides if side.name.casefold() == YES), None)


def resolution_stage(row: Payload) -> str:
    """Return the resolution stage of a market, as the oracle or, for newer markets, the platform names it."""
    return (row.words("umaResolutionStatus") or row.words("resolutionStatus")).casefold()


def paid_in_full(sides: tuple[PolymarketOutcome, PolymarketOutcome]) -> bool:
    """Whether one side was worth a dollar and the other nothing."""
    return {side.price for side in sides} == {0.0, 1.0}


def _named(row: Payload) -> list[Payload]:
    """Return the event's markets, without the empty placeholders that some events have for names to come.

    Their market "other" covers these names.
    """
    markets = row.need("markets").items()
    if not row.is_set("negRiskAugmented"):
        return markets
    return [market for market in markets if market.is_set("active") or market.is_set("closed")]


def market_states(row: Payload, at: datetime, *, alone: bool) -> list[MarketState]:
    """Return a market's targets: yes; or of two named sides both if it is the only market, else the first."""
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
    """Return the status. A market that does not accept orders, or not yet, is not open even if it was not closed."""
    if row.need("closed").flag() or row.is_set("archived"):
        stage = resolution_stage(row)
        settled = stage in OVER or (not stage and paid_in_full(outcomes(row)))
        return "resolved" if settled else "closed"
    if row.get("active") is not None and not row.is_set("active"):
        return "unopened"
    return "open" if row.get("acceptingOrders") is None or row.is_set("acceptingOrders") else "closed"


def _snapshot(row: Payload, side: PolymarketOutcome, at: datetime) -> Snapshot:
    """Return the quotes of a side. They are sent for the first outcome; the second's are one dollar minus those."""
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
    """Return "exactly one" if the platform marks negative risk, unless some markets may not be listed yet."""
    flag = next((flag for part in (row, *markets) if (flag := part.get("negRisk")) is not None), None)
    if flag is None and len(markets) > 1:
        report.noted["event of several markets that does not say whether they exclude each other"] += 1
    exclusivity = read_exclusivity(flag is not None and flag.flag())
    # A list of names that may grow is complete only with a market for all names to come.
    other = any(market.is_set("negRiskOther") for market in markets)
    whole = len(markets) == len(row.need("markets").items()) and (other or not row.is_set("negRiskAugmented"))
    return exclusivity if whole else with_some_left_out(exclusivity)


def _of_all(row: Payload, markets: list[Payload], name: str, other: str = "") -> float | None:
    amount = row.amount(name)
    return amount if amount is not None else total(market.amount(*filter(None, (other, name))) for market in markets)


def _tags(row: Payload) -> tuple[str, ...]:
    named = [tag.words("label") or tag.words("slug") for tag in row.rows("tags")]
    return tuple(name for name in dict.fromkeys(named) if name and name != "All")


def _category(tags: Sequence[str]) -> str:
    """Return the broadest of an event's tags, which have no order of their own; else the first alphabetically."""
    return next((name for name in CATEGORIES if name in tags), min(tags, default=""))


def _criteria(row: Payload, event: EventState) -> str:
    """Return the rules of each market, or only once if all share them."""
    rules = [(market.target.label, market.row.stated_text("description").strip()) for market in event.markets]
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
    search=_search,
    prices=PolymarketPrices,
    settlements="foretell.data.settlements.polymarket:PolymarketSettlements",
    facts="polymarket-client 0.14.0, autumn 2026; recorded responses of January to August 2026",
    own_id=pattern(r"0x[0-9a-fA-F]{64}"),
    target_is_market=True,
    id_in_address=slug_in_address,
)
