"""Manifold: recorded bets of October 2022; parameters as its own source of August 2026 declares them."""

import pytest

from conformance.reading import ONCE, body_of
from conformance.recordings import Check, answer, names, recording, replay
from fakes.answers import respond
from fakes.market_reader import NOW, asked
from fakes.samples import SampleManifoldAnswer, SampleManifoldMarket, manifold_market_body
from foretell.data.http import AsyncHttpClient
from foretell.data.markets.listing import ListingFilter, ListingReport, UnsupportedEvent
from foretell.data.markets.manifold import ManifoldClient, ManifoldEvents, ManifoldPrices, read_bet
from foretell.data.markets.market import MarketRef
from foretell.data.payload import Payload
from foretell.data.settlements.manifold import ManifoldSettlements
from foretell.outgoing.client import Answer, FunctionTransport, HttpRequest
from foretell.practice.markets.manifold import ManifoldCatalogue, PracticeManifold, SampleManifoldBet
from foretell.practice.server import ServerRequest
from foretell.questions.as_of import AsOf, instant

HOST = "https://manifold.example/v0"
BETS = {"id", "userId", "username", "contractId", "contractSlug", "answerId", "limit", "before", "after", "beforeTime"}
PARAMETERS = {
    "bets": BETS | {"afterTime", "order", "kinds", "filterRedemptions", "commentRepliesOnly", "count", "points"},
    "search-markets": {"term", "filter", "sort", "contractType", "offset", "limit", "topicSlug", "creatorId", "token"},
}
"""Other parameters are refused."""
WORDS = {
    "filter": {"open", "closing-this-month", "closing-next-month", "closed", "resolved", "all"},
    "sort": {"newest", "score", "most-popular", "liquidity", "last-updated", "close-date", "resolve-date", "random"},
    "contractType": {"ALL", "BINARY", "MULTIPLE_CHOICE", "FREE_RESPONSE", "PSEUDO_NUMERIC", "POLL", "NUMBER"},
    "order": {"asc", "desc"},
}


def _client(transport: FunctionTransport) -> ManifoldClient:
    return ManifoldClient(http=AsyncHttpClient(limits=ONCE, transport=transport), host=HOST)


async def _history() -> None:
    prices = ManifoldPrices(_client(replay({"/bets": answer("manifold", "2022_bets_market")})))
    ref = MarketRef(platform="manifold", id="rIR6mWqaO9xKLifr6cLL")
    points = await prices.prices(ref, AsOf(at=instant("2022-06-15T23:59:00Z")), 60)
    assert (points[-1].at, points[-1].p) == (instant("2022-06-15T13:15:29.711Z"), pytest.approx(0.9911535861392651))
    assert (points[0].at.date().isoformat(), points[0].p) == ("2022-05-10", pytest.approx(0.46020045104189666))
    early = await prices.prices(ref, AsOf(at=instant("2022-05-10T05:21:00Z")), 60)
    # The first bet, at 05:20:52.
    assert [(point.at, point.p) for point in early] == [
        (instant("2022-05-10T05:20:52.796Z"), pytest.approx(0.29516966614915474))
    ]


def _bets() -> None:
    all_bets = [read_bet(row) for row in body_of("manifold", "2022_bets_none").items()]
    bets = {bet.id: bet for bet in all_bets}
    # A bet and its sale share an id.
    assert (len(all_bets), len(bets)) == (45, 44)
    newest = bets["HE7RNOyhIYndGatXkRKB"]
    assert (newest.after, newest.answer) == (pytest.approx(0.30990456750677153), None)
    # A limit order at 0.7 that was cancelled unfilled, and one at 0.28 that was partly filled.
    assert bets["OwRdCima5kUa4T8ZDbrk"].after is None
    assert bets["N5XYWFPTbOPWNfqoOgzo"].after == pytest.approx(0.28)
    # Four bets are on one of several answers, which had numbers as ids in 2022.
    assert sorted(bet.answer for bet in all_bets if bet.answer is not None) == ["4", "5", "5", "5"]
    own = [read_bet(row) for row in body_of("manifold", "2022_bets_username").items()]
    assert (len(own), sum(bet.answer is not None for bet in own), sum(bet.after is None for bet in own)) == (45, 23, 3)


CHOICE = SampleManifoldMarket(
    id="choice0001",
    question="Who?",
    kind="MULTIPLE_CHOICE",
    answers=tuple(SampleManifoldAnswer(id=f"{name}answer1", text=name, p=0.5) for name in ("ann", "bob")),
)
SHARED = SampleManifoldMarket(
    id="shared0001",
    question="Who?",
    kind="MULTIPLE_CHOICE",
    answers=CHOICE.answers,
    resolution="CHOOSE_MULTIPLE",
    resolved_ms=1_790_000_000_000,
)


async def _exchanges() -> list[tuple[HttpRequest, int]]:
    seen: list[tuple[HttpRequest, int]] = []
    catalogue = ManifoldCatalogue(map(manifold_market_body, (CHOICE, SHARED)))
    at = int(instant("2026-10-01").timestamp() * 1000)
    bets = {"choice0001": (SampleManifoldBet(id="b", at_ms=at, after=0.4, answer="annanswer1"),)}
    service = PracticeManifold(bets, catalogue=catalogue)

    def handle(request: HttpRequest) -> Answer:
        path, query = request.url.path, dict(request.url.query)
        status, body = service.get(ServerRequest(method="GET", path=path, target=path, query=query, headers={}))
        seen.append((request, status))
        return respond(status, json=body)

    client = _client(FunctionTransport(handle))
    for status in ("unopened", "open", "closed", "resolved"):
        for window in ({}, {"closes_after": instant("2026-11-02")}):
            await ManifoldEvents(client).events(ListingFilter(as_of=NOW, status=status, **window)).all()
    ref = MarketRef(platform="manifold", id="choice0001#annanswer1")
    assert (await ManifoldPrices(client).prices(ref, AsOf(at=NOW.at)))[-1].p == 0.4
    settlements = await ManifoldSettlements(client).settlements(
        [asked("manifold/shared0001", "annanswer1", "bobanswer1")]
    )
    # The API does not have the shares of the answers: that is a value, not an error.
    assert [(settlement.outcome, settlement.payoff) for settlement in settlements] == [(None, None)] * 2
    return seen


async def _requests() -> None:
    for request, status in await _exchanges():
        name, sent = request.url.path.rpartition("/")[2], dict(request.url.query)
        assert status == 200
        assert set(sent) <= PARAMETERS.get(name, set()), (name, sent)
        assert all(value in WORDS[key] for key, value in sent.items() if key in WORDS)
        assert int(sent.get("limit", "0")) <= (50_000 if name == "bets" else 1000)


async def _read(body: Payload) -> list[object]:
    """Read an answer with the adapter, by its shape; empty if the adapter never requests it."""
    rows = body.items() if isinstance(body.value, list) else []
    if any(isinstance(row.value, dict) and row.has("outcomeType") for row in rows):
        return await _listed(body)
    if rows:
        return [value for row in rows for value in await _read(row)]
    if not isinstance(body.value, dict):
        return []
    if body.has("probAfter") and body.has("contractId"):
        return [read_bet(body)]
    if not body.has("outcomeType") or not body.has("isResolved"):
        return []
    try:
        return [await ManifoldEvents(_client(replay({}))).read(body, NOW, ListingReport())]
    except UnsupportedEvent as reason:
        return [str(reason)]


async def _listed(body: Payload) -> list[object]:
    """Read a list of markets; the adapter would request each in full, which has no recording here."""
    transport = replay({"/search-markets": respond(200, json=body.value)})
    listing = ManifoldEvents(_client(transport)).events(ListingFilter(as_of=NOW, status="resolved", pages=1))
    markets = await listing.all()
    assert [entry.reason for entry in listing.ledger.skipped if entry.kind == "malformed"] == []
    return [*markets, *listing.ledger.skipped]


async def _sweep() -> None:
    for name in names("manifold"):
        if (recording("manifold", name)["status"] or 200) < 400:
            await _read(body_of("manifold", name))


CHECKS = [
    Check(
        service="manifold",
        what="a price history from the bets on a market",
        recordings=("2022_bets_market",),
        function=_history,
    ),
    Check(
        service="manifold",
        what="bets on answers, orders nobody took, orders taken in part",
        recordings=("2022_bets_none", "2022_bets_username"),
        function=_bets,
    ),
    Check(service="manifold", what="every request has only parameters that the server knows", function=_requests),
    Check(service="manifold", what="whatever is recorded is read", recordings=("*",), function=_sweep),
]
