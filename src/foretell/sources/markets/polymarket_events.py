"""Polymarket events from its catalogue (Gamma).

A market has two outcomes with a token each. Of a yes-or-no market the target is yes, wherever it stands in the list.
Where the outcomes have names (two teams), an event with one market has both as targets, of which one comes true.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from urllib.parse import quote

from foretell.questions.clock import AsOf
from foretell.questions.question import Question, Target
from foretell.questions.snapshot import Snapshot
from foretell.sources.http import SourceError
from foretell.sources.listing import Ledger, ListedEvent, Listing, Status, Wanted, live
from foretell.sources.markets.catalogue import Page, Unsupported, about, listed
from foretell.sources.markets.fields import amount, flag, is_set, moment, text, total, words
from foretell.sources.markets.known_fields import POLYMARKET_EVENT, POLYMARKET_MARKET
from foretell.sources.markets.polymarket import PolymarketClient
from foretell.sources.markets.recurrence import template
from foretell.sources.markets.reference import PART, SLUG
from foretell.sources.markets.standing import EventStanding, Standing, standing
from foretell.sources.payload import Payload

PAGE = 50
OFFSET = "offset:"
"""Cursors of servers that count instead: how many entries to pass over."""
YES = "yes"
OVER: tuple[str, ...] = ("resolved", "settled")
CLOSED: Mapping[Status, str] = {"unopened": "false", "open": "false", "closed": "true", "resolved": "true"}


class PolymarketEvents:
    """Events by number or `slug:…`; targets are condition ids, `<condition id>#<outcome>` where outcomes have names."""

    platform = "polymarket"
    key = "id"

    def __init__(self, client: PolymarketClient) -> None:
        self._client = client

    def events(self, wanted: Wanted) -> Listing:
        """Events with their markets, those traded most today first."""
        return listed(self, wanted)

    async def event(self, id: str, as_of: AsOf) -> ListedEvent:
        """One event."""
        live(as_of)
        path = f"slug/{quote(id.removeprefix(SLUG), safe='')}" if id.startswith(SLUG) else quote(id, safe="")
        with about(f"polymarket event {id}"):
            row = await self._client.read(f"/events/{path}")
            try:
                return _event(row, as_of, Ledger())
            except Unsupported as error:
                raise SourceError(f"polymarket event {id} cannot be asked: {error}", url=row.url) from None

    async def page(self, wanted: Wanted, cursor: str) -> Page:
        """One page. The list hides closed events unless asked for them."""
        query = [("closed", CLOSED[wanted.status]), ("order", "volume24hr"), ("ascending", "false")]
        for name, at in (("end_date_min", wanted.closes_after), ("end_date_max", wanted.closes_before)):
            query += [(name, f"{at:%Y-%m-%dT%H:%M:%SZ}")] if at is not None else []
        return await page_of(self._client, "events", query, cursor, size=PAGE)

    async def parsed(self, row: Payload, wanted: Wanted, ledger: Ledger) -> ListedEvent:
        """An entry with its markets."""
        return _event(row, wanted.as_of, ledger)


async def page_of(
    client: PolymarketClient, what: str, query: Iterable[tuple[str, str]], cursor: str, *, size: int
) -> Page:
    """One page of events or markets, from the list with cursors or, on servers without it, the one with offsets."""
    asked = [*query, ("limit", str(size))]
    if not cursor.startswith(OFFSET):
        try:
            answer = await client.read(f"/{what}/keyset", [*asked, *([("after_cursor", cursor)] if cursor else [])])
        except SourceError as error:
            if error.status != HTTPStatus.NOT_FOUND or cursor:
                raise
            cursor = f"{OFFSET}0"
        else:
            more = answer.get("next_cursor")
            return Page(rows=answer.need(what).items(), following=more.text() or None if more is not None else None)
    passed = int(cursor.removeprefix(OFFSET))
    answer = await client.read(f"/{what}", [*asked, ("offset", str(passed))])
    rows = (answer.need(what) if isinstance(answer.value, dict) else answer).items()
    return Page(rows=rows, following=f"{OFFSET}{passed + size}" if len(rows) == size else None)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One side of a market."""

    name: str
    place: int
    price: float | None
    """As the catalogue shows it: the middle of the book, and after the end what a share was worth."""


def outcomes(row: Payload) -> tuple[Outcome, Outcome]:
    """The two sides of a market; both lists come as JSON inside a text."""
    names = [item.text() for item in row.need("outcomes").embedded().items()]
    told = row.get("outcomePrices")
    prices = [item.probability() for item in told.embedded().items()] if told is not None else [None] * len(names)
    if len(prices) != len(names):
        row.need("outcomePrices").wrong("as long as outcomes")
    if len(names) != 2:
        raise Unsupported(f"a market has {len(names)} outcomes, not two")
    first, second = (Outcome(name=name, place=i, price=prices[i]) for i, name in enumerate(names))
    return first, second


def yes_of(sides: tuple[Outcome, Outcome]) -> Outcome | None:
    """The side called yes."""
    return next((side for side in sides if side.name.casefold() == YES), None)


def _event(row: Payload, as_of: AsOf, ledger: Ledger) -> ListedEvent:
    ledger.know(row.value, POLYMARKET_EVENT, "event")
    markets = _named(row)
    for market in markets:
        ledger.know(market.value, POLYMARKET_MARKET, "market")
    found = [_market(market, as_of.at, alone=len(markets) == 1) for market in markets]
    pair = len(markets) == 1 and len(found[0]) == 2
    event = standing([one for sides in found for one in sides], exclusive=pair or _exclusive(row, markets))
    if not event.asked:
        raise Unsupported("it has no market")
    series = _series(row)
    title = row.need("title").text().strip()
    tags = _tags(row)
    return ListedEvent(
        question=Question(
            id=f"polymarket/{row.need('id').name()}",
            source=PolymarketEvents.platform,
            text=title,
            due=as_of.at,
            targets=tuple(one.target for one in event.asked),
            subtype=series,
            category=words(row, "category") or (tags[0] if tags else ""),
            criteria=_criteria(row, event),
            exclusive=event.exclusive,
            opens_at=moment(row, "startDate"),
            closes_at=max(
                (at for one in event.asked if (at := one.target.resolves_at)), default=moment(row, "endDate")
            ),
            url=f"https://polymarket.com/event/{row.need('slug').text()}",
        ),
        status=event.status,
        recurrence=series or template(title),
        volume=_of_all(row, markets, "volume", "volumeNum"),
        volume_24h=_of_all(row, markets, "volume24hr"),
        liquidity=_of_all(row, markets, "liquidity", "liquidityNum"),
        open_interest=amount(row, "openInterest"),
        tags=tags,
        finished=event.finished,
    )


def _named(row: Payload) -> list[Payload]:
    """The event's markets. Some events keep empty places for names yet to come, which their "other" stands for."""
    markets = row.need("markets").items()
    if not is_set(row, "negRiskAugmented"):
        return markets
    return [market for market in markets if is_set(market, "active") or is_set(market, "closed")]


def _market(row: Payload, at: datetime, *, alone: bool) -> list[Standing]:
    """A market's targets: yes; or of two named sides both where it is alone, else the first."""
    sides, condition = outcomes(row), row.need("conditionId").text()
    yes, status, title = yes_of(sides), _status(row), row.need("question").text().strip()
    short = words(row, "groupItemTitle")
    if yes is not None:
        named = [(yes, condition, short or title)]
    else:
        prefix = "" if alone else f"{short or title}: "
        named = [
            (side, f"{condition}{PART}{side.name}", prefix + side.name) for side in (sides if alone else sides[:1])
        ]
    ends = moment(row, "endDate")
    return [
        Standing(
            row=row,
            target=Target(id=id, label=label, resolves_at=ends, snapshot=_snapshot(row, side, at)),
            status=status,
            lost=status == "resolved" and side.price == 0.0,
        )
        for side, id, label in named
    ]


def _status(row: Payload) -> Status:
    """What takes no orders any more, or not yet, is not open even if nobody has closed it."""
    if flag(row.need("closed")) or is_set(row, "archived"):
        told = words(row, "umaResolutionStatus").casefold()
        return "resolved" if told in OVER or (not told and _worth_all(row)) else "closed"
    if row.get("active") is not None and not is_set(row, "active"):
        return "unopened"
    return "open" if row.get("acceptingOrders") is None or is_set(row, "acceptingOrders") else "closed"


def _worth_all(row: Payload) -> bool:
    return {side.price for side in outcomes(row)} == {0.0, 1.0}


def _snapshot(row: Payload, side: Outcome, at: datetime) -> Snapshot:
    """Quotes are told for the first outcome; those of the second are what is left of a dollar."""
    if not any(row.has(name) for name in ("bestBid", "bestAsk", "lastTradePrice", "outcomePrices")):
        row.need("outcomePrices")
    bid, ask, last = (_quote(row, name) for name in ("bestBid", "bestAsk", "lastTradePrice"))
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
        volume=amount(row, "volumeNum", "volume"),
    )


def _quote(row: Payload, name: str) -> float | None:
    told = row.get(name)
    return None if told is None else told.probability()


def _rest(price: float | None) -> float | None:
    return None if price is None else round(1.0 - price, 6)


def _exclusive(row: Payload, markets: list[Payload]) -> bool:
    """Whether exactly one of several markets comes true: what the platform calls negative risk."""
    told = next((told for one in (row, *markets) if (told := one.get("negRisk")) is not None), None)
    if told is None:
        return len(markets) > 1 and flag(row.need("negRisk"))
    return flag(told)


def _of_all(row: Payload, markets: list[Payload], name: str, other: str = "") -> float | None:
    told = amount(row, name)
    return told if told is not None else total(amount(market, *filter(None, (other, name))) for market in markets)


def _series(row: Payload) -> str:
    series = row.get("series")
    first = series.items()[:1] if series is not None else []
    return words(row, "seriesSlug") or (words(first[0], "slug") if first else "")


def _tags(row: Payload) -> tuple[str, ...]:
    tags = row.get("tags")
    named = [words(tag, "label") or words(tag, "slug") for tag in tags.items()] if tags is not None else []
    return tuple(name for name in dict.fromkeys(named) if name and name != "All")


def _criteria(row: Payload, event: EventStanding) -> str:
    """The rules of each market, or once where all share them."""
    rules = [(one.target.label, text(one.row, "description")) for one in event.asked]
    if len({rule for _, rule in rules}) == 1:
        return rules[0][1] or words(row, "description")
    return "\n".join(f"{label}: {rule}" for label, rule in rules if rule)
