"""Events of Prophet Arena, which have no trading figures: title, criteria, outcomes and the market probabilities.

There are two tracks. Live events are listed as they open; the weekly track is one release of questions per week, with a
single deadline. Forecasts are submitted in the same way on both.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from urllib.parse import quote

from foretell.data.http import AsyncHttpClient, NotFound
from foretell.data.markets.listing import (
    CataloguePage,
    ListedEvent,
    ListingFilter,
    ListingReport,
    MarketEvents,
    MarketStatus,
    UnsupportedEvent,
    recurrence_template,
)
from foretell.data.markets.market import Market
from foretell.data.payload import Payload
from foretell.data.service import JsonService, ServiceConfig
from foretell.frozen import frozen
from foretell.questions.as_of import AsOf
from foretell.questions.question import Exclusivity, Question, Snapshot, Target

HOST = "https://api.prophetarena.co/api/v1"
PLATFORM = "prophet_arena"
PAGE = 100
CURRENT = "current"
"""Name for the week of the newest release."""
FILTERS: Mapping[MarketStatus, str] = {"unopened": "open", "open": "open", "closed": "closed", "resolved": "resolved"}
STATES: Mapping[str, MarketStatus] = {"open": "open", "closed": "closed", "resolved": "resolved", "void": "resolved"}
PENDING = "pending"
RELEASE = "of_release"
"""A field that the arena does not send: the release that a question belongs to, without its questions."""


class ProphetArenaClient(JsonService):
    """Client for reading from the arena."""

    def __init__(self, *, http: AsyncHttpClient, key: str, host: str = HOST) -> None:
        config = ServiceConfig(http=http, key=key, address=host)
        # Events, releases and samples are public.
        super().__init__(config, HOST, headers={"Authorization": f"Bearer {key}"} if key else {})

    async def event(self, slug: str) -> Payload:
        """Return one event as sent."""
        return await self.read(f"/events/{quote(slug, safe='')}")

    async def release(self, week: str = CURRENT) -> Payload:
        """Return one week of the weekly track as sent; a week is named by its Sunday."""
        return await self.read(f"/releases/{quote(week, safe='')}")

    async def open_windows(self, agent: str = "") -> list[Payload]:
        """Return the rounds that accept forecasts now, as sent; with an agent, only those it has not answered yet."""
        return (await self.read("/windows/open", {"agent": agent} if agent else {})).items()

    async def own_forecasts(self, agent: str, event: str) -> list[Payload]:
        """Return an agent's forecasts of an event as sent; the key must be that of its owner."""
        return (await self.read("/forecasts", {"agent": agent, "event": event})).items()

    async def weekly_agent(self) -> str:
        """Return the agent that enters the weekly track for the owner of the key; empty if none is registered."""
        try:
            return (await self.read("/weekly/entrants/me")).need("agent").text()
        except NotFound:
            return ""

    async def public_key(self) -> str:
        """Return the key with which the arena signs receipts; empty if it publishes none."""
        answer = await self.read("/verify/key")
        return answer.words("public_key") or answer.words("key")

    async def artifact(self, slug: str, version: str) -> tuple[bytes, str]:
        """Return a version of a data set as packed bytes, and the checksum of its content; empty if none is sent."""
        path = f"/datasets/{quote(slug, safe='')}/versions/{quote(version, safe='')}/download"
        answer = await self.http.get(f"{self.host}{path}", headers=self._headers)
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return answer.body, headers.get("x-content-hash", "").strip()

    async def newest_version(self, slug: str) -> str:
        """Return the newest version of a data set."""
        versions = (await self.read(f"/datasets/{quote(slug, safe='')}")).rows("versions")
        named = [
            version.name() if isinstance(version.value, str) else version.need("version").name() for version in versions
        ]
        if not named:
            raise NotFound(f"Prophet Arena lists no version of the data set {slug}", url=self.host)
        return named[0]


class ProphetArenaListing(MarketEvents):
    """Live events by slug; targets are outcome names, as submissions need them."""

    platform = PLATFORM
    key = "slug"

    def __init__(self, client: ProphetArenaClient) -> None:
        self._client = client

    async def fetch(self, id: str) -> Payload:
        """Return one event as sent."""
        return await self._client.event(id)

    async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
        """Return one page of the list."""
        query = {"status": FILTERS[wanted.status], "limit": str(PAGE)}
        query |= {"category": wanted.category} if wanted.category else {}
        answer = await self._client.read("/events", query | ({"cursor": cursor} if cursor else {}))
        more = answer.get("next_cursor")
        return CataloguePage(rows=answer.need("data").items(), following=None if more is None else more.name() or None)

    async def read(self, row: Payload, as_of: AsOf, report: ListingReport) -> ListedEvent:
        """Parse an event."""
        outcomes, closes, market_prices = _outcomes(row), row.need("close_at").time(), row.get("crowd")
        prices = {} if market_prices is None else market_prices.members()
        names = [outcome.need("name").text() for outcome in outcomes]
        state, over = STATES.get(row.words("state").casefold()), as_of.at >= closes
        return _listed(
            row,
            as_of,
            targets=[_target(name, closes, as_of.at, prices.get(name)) for name in names],
            criteria=_rules(row, outcomes),
            closes=closes,
            status="closed" if state in (None, "open") and over else state or "open",
        )


@frozen
class WeeklyDeadline:
    """The deadline of a weekly release."""

    week: str
    closes_at: datetime
    published: bool
    """Whether it accepts forecasts at all: a closed or finalized release does not."""

    @classmethod
    def of(cls, release: Payload) -> "WeeklyDeadline":
        """Read the deadline from a release."""
        return cls(
            week=release.need("week").text(),
            closes_at=release.need("closes_at").time(),
            published=release.need("status").text() == "published",
        )


class ProphetArenaWeekly(MarketEvents):
    """The questions of one release of the weekly track; they close at the deadline of the release."""

    platform = PLATFORM
    key = "event"
    noun = "weekly question"

    def __init__(self, client: ProphetArenaClient, week: str = CURRENT) -> None:
        self._client = client
        self._week = week

    async def fetch(self, id: str) -> Payload:
        """Return one question of the release, by its slug or its ticker."""
        for row in _with_deadline(await self._client.release(self._week)):
            if id.casefold() in (row.words("event").casefold(), row.words("ticker").casefold()):
                return row
        raise NotFound(f"the release has no question {id}", url=self._client.host)

    async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
        """Return the whole release as one page."""
        return CataloguePage(rows=_with_deadline(await self._client.release(self._week)))

    async def read(self, row: Payload, as_of: AsOf, report: ListingReport) -> ListedEvent:
        """Parse a question of the release."""
        outcomes, deadline = _outcomes(row), WeeklyDeadline.of(row.need(RELEASE))
        resolves = row.need("close_at").time()
        taken = deadline.published and as_of.at < deadline.closes_at
        pending = all(outcome.words("resolution") in ("", PENDING) for outcome in outcomes)
        return _listed(
            row,
            as_of,
            targets=[_target(outcome.need("name").text(), resolves, as_of.at) for outcome in outcomes],
            criteria=_rules(row, outcomes),
            closes=min(deadline.closes_at, resolves),
            status=("open" if taken else "closed") if pending else "resolved",
        )


class ProphetArenaWindows(MarketEvents):
    """Live events with a round that accepts forecasts now; with an agent, only those it has not answered yet."""

    platform = PLATFORM
    key = "event"

    def __init__(self, client: ProphetArenaClient, agent: str = "") -> None:
        self._client = client
        self._agent = agent

    async def fetch(self, id: str) -> Payload:
        """Return the open round of one event."""
        for row in await self._client.open_windows(self._agent):
            if row.words("event") == id:
                return await self._with_rules(row)
        raise NotFound(f"no round of {id} is open", url=self._client.host)

    async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
        """Return all open rounds as one page."""
        return CataloguePage(rows=await self._client.open_windows(self._agent))

    async def read_listed(self, row: Payload, wanted: ListingFilter, report: ListingReport) -> ListedEvent | None:
        """Parse a round, adding the rules of its event, which the list leaves out."""
        return await self.read(await self._with_rules(row), wanted.as_of, report)

    async def read(self, row: Payload, as_of: AsOf, report: ListingReport) -> ListedEvent:
        """Parse a round; it closes before its event does."""
        names, closes = row.texts("outcomes"), row.need("closes_at").time()
        if not names:
            raise UnsupportedEvent("it has no outcome")
        resolves, market_prices = row.optional_time("event_close_at") or closes, row.get("crowd")
        prices = {} if market_prices is None else market_prices.members()
        return _listed(
            row,
            as_of,
            targets=[_target(name, resolves, as_of.at, prices.get(name)) for name in names],
            criteria=row.words("criteria"),
            closes=closes,
            status="open" if as_of.at < closes else "closed",
        )

    async def _with_rules(self, row: Payload) -> Payload:
        event = await self._client.event(row.need("event").text())
        rules = _rules(event, _outcomes(event))
        return Payload(url=row.url, path=row.path, value={**row.value, "criteria": rules})


def _with_deadline(release: Payload) -> list[Payload]:
    facts = {name: value for name, value in release.value.items() if name != "events"}
    rows = release.need("events").items()
    return [Payload(url=row.url, path=row.path, value={**row.value, RELEASE: facts}) for row in rows]


def _outcomes(row: Payload) -> list[Payload]:
    outcomes = row.need("outcomes").items()
    for outcome in outcomes:
        outcome.need("name").text()
    if not outcomes:
        raise UnsupportedEvent("it has no outcome")
    return outcomes


def _target(name: str, resolves: datetime, at: datetime, price: Payload | None = None) -> Target:
    """Return the target for an outcome, with the market probability."""
    snapshot = None if price is None or price.value is None else Snapshot(at=at, last_price=price.probability())
    return Target(id=name, label=name, resolves_at=resolves, snapshot=snapshot)


def _rules(event: Payload, outcomes: Sequence[Payload]) -> str:
    """Return the rules of an event, then those of each outcome on its own line, or only once if all share them."""
    rules = {outcome.need("name").text(): outcome.words("criteria") for outcome in outcomes}
    same = len(set(rules.values())) == 1
    shown = [*rules.values()][:1] if same else [f"{name}: {rule}" for name, rule in rules.items() if rule]
    return "\n".join(filter(None, [event.words("criteria"), *shown]))


def outcomes_exclude(names: Sequence[str], *, stated: bool) -> Exclusivity:
    """Return how outcomes exclude each other; the arena relies on the exchange, which promises at most one.

    >>> outcomes_exclude(["Yes", "No"], stated=False), outcomes_exclude(["Ann", "Bob"], stated=True)
    ('exactly one', 'at most one')
    """
    if sorted(name.casefold() for name in names) == ["no", "yes"]:
        return "exactly one"
    return "at most one" if stated and len(names) > 1 else "independent"


def _listed(
    row: Payload,
    as_of: AsOf,
    *,
    targets: Sequence[Target],
    criteria: str,
    closes: datetime,
    status: MarketStatus,
) -> ListedEvent:
    title, slug = row.need("title").text().strip(), row.need("event" if row.has("event") else "slug").text()
    return ListedEvent(
        question=Question(
            id=f"{PLATFORM}/{slug}",
            source=PLATFORM,
            text=title,
            due=as_of.at,
            targets=tuple(targets),
            category=row.words("category"),
            criteria=criteria,
            exclusivity=outcomes_exclude([target.id for target in targets], stated=row.is_set("mutually_exclusive")),
            closes_at=closes,
            url=f"https://www.prophetarena.co/events/{slug}",
        ),
        status=status,
        recurrence=recurrence_template(title),
    )


def arena_track(client: ProphetArenaClient, name: str) -> MarketEvents | None:
    """Return the listing of a name: `weekly`, `weekly/2026-11-15`, `windows` or `windows/AGENT`; None for any other."""
    track, _, which = name.partition("/")
    if track == "weekly":
        return ProphetArenaWeekly(client, which or CURRENT)
    return ProphetArenaWindows(client, which) if track == "windows" else None


MARKET = Market(
    hosts=("prophetarena.co", "prophetarena.ai"),
    client=lambda config: ProphetArenaClient(http=config.http, key=config.key, host=config.address or HOST),
    events=ProphetArenaListing,
    part=arena_track,
    settlements="foretell.data.settlements.prophet_arena:ProphetArenaSettlements",
    key_variables=("ARENA_API_KEY",),
    facts="prophet-arena 0.6.0 (the arena's own client), September 2026",
)
