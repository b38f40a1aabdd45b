"""Local sandbox markets with faults, which plant a text wherever a real response would reveal the future."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Self, cast

from fakes.faults import InboxFaults, MarketFaults
from fakes.samples import (
    SampleMetaculusQuestion,
    SamplePolymarketEvent,
    SamplePolymarketMarket,
    metaculus_post_body,
    polymarket_event_body,
)
from foretell.practice.markets.kalshi import PracticeKalshi
from foretell.practice.markets.manifold import PracticeManifold, SampleManifoldBet
from foretell.practice.markets.metaculus import MetaculusCatalogue, MetaculusInbox, PracticeMetaculus
from foretell.practice.markets.polymarket import PolymarketCatalogue, PracticePolymarket, TokenTrades
from foretell.practice.markets.prophet_arena import PracticeProphetArena
from foretell.practice.series import PracticeFred
from foretell.practice.server import (
    Handler,
    Middleware,
    PracticeServer,
    PracticeService,
    ServerRequest,
    ServerResponse,
    json_response,
)

TWO_DAYS = 2 * 86_400


class FaultyMarket(PracticeService):
    """Mixin for a practice market that applies faults between its server and its responses."""

    future: ClassVar[frozenset[str]] = frozenset()
    """Fields that would reveal the future, as `parent.field`; the canary is planted there."""

    def __init__(self, *values: Any, canary: str = "", careless: bool = False, **options: Any) -> None:
        """`careless` servers return more than requested."""
        super().__init__(*values, **options)
        self.canary = canary
        self.careless = careless
        self.faults = MarketFaults()
        self.inbox_faults = InboxFaults()

    def having(self, catalogue: Any, faults: MarketFaults | None = None) -> Self:
        """Return the same server with another catalogue and faults."""
        cast("Any", self).catalogue = catalogue
        self.faults = faults or self.faults
        return self

    def server(self, middleware: Middleware | None = None) -> PracticeServer:
        return super().server(middleware or self._meddle)

    def asked(self, request: ServerRequest) -> ServerRequest:
        """Return the request as a careless server reads it."""
        return request

    def _meddle(self, request: ServerRequest, handler: Handler) -> ServerResponse:
        if request.method == "POST":
            return self.inbox_faults(request, handler)
        return self.faults(request, lambda changed: self._planted(changed, handler))

    def _planted(self, request: ServerRequest, handler: Handler) -> ServerResponse:
        response = cast("ServerResponse", handler(self.asked(request) if self.careless else request))
        if not self.canary or response.status != 200:
            return response
        body = json.loads(response.body)
        self._plant(body, "")
        return json_response(body)

    def _plant(self, body: Any, parent: str) -> None:
        if isinstance(body, list):
            for item in body:
                self._plant(item, parent)
        elif isinstance(body, dict):
            for name, value in body.items():
                if f"{parent}.{name}" in self.future:
                    body[name] = self.canary
                else:
                    self._plant(value, name)


def fields(parents: str, names: str, units: tuple[str, ...] = ("",)) -> frozenset[str]:
    """Return every field of these names below each of these parents."""
    return frozenset(
        f"{parent}.{name}{unit}" for parent in parents.split(" ") for name in names.split() for unit in units
    )


def without(request: ServerRequest, *names: str) -> ServerRequest:
    """Return a request without some parameters."""
    return replace(request, query={name: value for name, value in request.query.items() if name not in names})


class FakeKalshi(FaultyMarket, PracticeKalshi):
    """A careless server returns two days more than requested."""

    future = (
        fields("markets", "status result close_time")
        | fields("yes_bid yes_ask", "open", ("", "_dollars"))
        | fields("price", "close previous", ("", "_dollars"))
        | fields("candlesticks", "volume open_interest", ("", "_fp"))
    )

    def asked(self, request: ServerRequest) -> ServerRequest:
        if "end_ts" not in request.query:
            return request
        return replace(request, query={**request.query, "end_ts": str(int(request.query["end_ts"]) + TWO_DAYS)})


class FakeManifold(FaultyMarket, PracticeManifold):
    """A careless server ignores the requested time."""

    future = fields("", "isResolved resolution closeTime volume userName")

    def __init__(
        self,
        bets: Mapping[str, tuple[SampleManifoldBet, ...]],
        *,
        slugs: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        """`slugs` maps slugs to the ids of markets."""
        super().__init__(bets, **options)
        self.slugs = slugs or {}

    def asked(self, request: ServerRequest) -> ServerRequest:
        return without(request, "beforeTime")

    def get(self, request: ServerRequest) -> tuple[int, Any]:
        if (id := self.slugs.get(request.query.get("contractSlug", ""))) is not None:
            request = replace(request, query={**request.query, "contractId": id})
        return super().get(request)


@dataclass(frozen=True, kw_only=True)
class PolymarketListing:
    """A market; trades of each token as (Unix second, price), oldest first."""

    slug: str
    outcomes: tuple[str, ...]
    tokens: tuple[str, ...]
    trades: Mapping[str, TokenTrades]
    closed: bool = False


class FakePolymarket(FaultyMarket, PracticePolymarket):
    """A careless server returns two days more than requested."""

    future = fields("data", "status") | fields(
        "", "closed active closedTime umaResolutionStatus volume liquidity lastTradePrice outcomePrices"
    )

    def __init__(
        self,
        listings: Mapping[str, PolymarketListing],
        *,
        data_service: bool = True,
        nested: bool = True,
        cursors: bool = True,
        **options: Any,
    ) -> None:
        """Keys of `listings` are condition ids.

        Args:
            listings: The markets.
            data_service: Whether the newer price service exists.
            nested: Whether lists are JSON inside strings, as in the old format.
            cursors: False for an old server, with offsets.
            options: As for any market.
        """
        events = [_event(condition, listing) for condition, listing in listings.items()]
        trades = {token: trades for listing in listings.values() for token, trades in listing.trades.items()}
        super().__init__(PolymarketCatalogue(events), trades, **options)
        self.data_service = data_service
        self.nested = nested
        self.cursors = cursors

    def get(self, request: ServerRequest) -> tuple[int, Any]:
        if request.path.endswith("/v2/prices-history") and not self.data_service:
            return 404, {"error": "not found"}
        if request.path.endswith("/keyset") and not self.cursors:
            return 404, {"error": "not found"}
        status, body = super().get(request)
        if not self.nested and request.path.endswith("/markets"):
            lists = ("outcomes", "clobTokenIds")
            body = [{**row, **{name: json.loads(row[name]) for name in lists}} for row in body]
        return status, body

    def _samples(self, query: Mapping[str, str]) -> list[dict[str, Any]]:
        samples = super()._samples(query)
        if not self.careless:
            return samples
        late = {**query, "startTs": query["endTs"], "endTs": str(int(query["endTs"]) + TWO_DAYS)}
        return [*samples, *super()._samples(late)]

    def _data(self, query: Mapping[str, str]) -> tuple[int, Any]:
        if self.careless and "as_of" in query:
            query = {**query, "as_of": str(int(query["as_of"]) + TWO_DAYS)}
        status, body = super()._data(query)
        if self.careless and status == 200 and "end" in query:
            late = {**query, "start": query["end"], "end": str(int(query["end"]) + TWO_DAYS)}
            body["data"] += super()._data(late)[1]["data"]
        return status, body


def _event(condition: str, listing: PolymarketListing) -> dict[str, Any]:
    market = SamplePolymarketMarket(
        condition=condition, question="?", outcomes=listing.outcomes, tokens=listing.tokens, closed=listing.closed
    )
    body = polymarket_event_body(SamplePolymarketEvent(id=listing.slug, title="?", markets=(market,)))
    body["markets"][0]["slug"] = listing.slug
    return body


class FakeMetaculus(FaultyMarket, PracticeMetaculus):
    """Posts by their numbers, each with its questions."""

    future = (
        fields("", "status resolved actual_close_time nr_forecasters")
        | fields("question questions", "status resolution actual_close_time actual_resolve_time my_forecasts")
        | fields("history", "forecaster_count")
        | fields("recency_weighted", "latest")
    )

    def __init__(
        self,
        posts: Mapping[str, tuple[SampleMetaculusQuestion, ...]] | None = None,
        *,
        forbidden: frozenset[str] = frozenset(),
        takes_ids: bool = True,
        **options: Any,
    ) -> None:
        """`forbidden` posts are refused; a list that does not take ids ignores the requested ones."""
        bodies = [metaculus_post_body(int(id), "?", *questions) for id, questions in (posts or {}).items()]
        super().__init__(MetaculusCatalogue(bodies), **options)
        self.forbidden = forbidden
        self.takes_ids = takes_ids

    def taking(self, inbox: MetaculusInbox) -> Self:
        """Return the same server with an inbox for posts of the catalogue."""
        self.inbox = inbox
        return self

    def get(self, request: ServerRequest) -> tuple[int, Any]:
        if request.path.strip("/").rpartition("/")[2] in self.forbidden:
            return 403, {"detail": "You do not have permission to perform this action."}
        return super().get(request if self.takes_ids else without(request, "ids"))


class FakeProphetArena(FaultyMarket, PracticeProphetArena):
    """A server with a fixed clock."""

    def __init__(self, *values: Any, **options: Any) -> None:
        super().__init__(*values, **{"now": lambda: datetime(2026, 11, 1, 12, tzinfo=UTC), **options})


class FakeFred(FaultyMarket, PracticeFred):
    """A careless server ignores the requested vintage and last day, like unknown parameters."""

    def get(self, request: ServerRequest) -> tuple[int, Any]:
        response = super().get(request)
        late = without(request, "realtime_start", "realtime_end", "observation_end")
        return super().get(late) if self.careless and response[0] == 200 else response
