"""Polymarket: recorded answers of its three services; parameters as its own client sends them."""

import json
from dataclasses import replace
from typing import Any

import pytest

from conformance.reading import ONCE, body_of
from conformance.recordings import Check, answer, names, recording, replay
from fakes.answers import respond
from fakes.market_reader import NOW, asked
from fakes.samples import SamplePolymarketEvent, SamplePolymarketMarket, polymarket_event_body, polymarket_tokens
from foretell.data.http import AsyncHttpClient
from foretell.data.markets.listing import ListingFilter, ListingReport, UnsupportedEvent
from foretell.data.markets.market import PART, MarketRef
from foretell.data.markets.polymarket import (
    PolymarketClient,
    PolymarketEvents,
    PolymarketHosts,
    PolymarketPrices,
    clob_price,
    data_price,
    data_rows,
    market_states,
)
from foretell.data.payload import Payload
from foretell.data.settlements.polymarket import PolymarketSettlements, book_pays, resolution_pays
from foretell.data.settlements.settlement import SettledOutcome, SettlementTarget
from foretell.outgoing.client import Answer, FunctionTransport, HttpRequest
from foretell.practice.markets.polymarket import PolymarketCatalogue, PracticePolymarket
from foretell.practice.server import ServerRequest
from foretell.practice.services import POLYMARKET_ID, data_services
from foretell.questions.as_of import AsOf, instant

HOST = "https://polymarket.example"
HOSTS = PolymarketHosts(gamma=f"{HOST}/gamma", data=f"{HOST}/data", clob=f"{HOST}/clob")
KEYSET = {"limit", "after_cursor", "order", "ascending", "closed"}
PARAMETERS = {
    "/gamma/events/keyset": KEYSET | {"end_date_min", "end_date_max", "start_date_min", "slug", "id", "tag_id"},
    "/gamma/markets/keyset": KEYSET | {"condition_ids", "clob_token_ids", "slug", "id", "uma_resolution_status"},
    "/gamma/markets": {"condition_ids", "slug", "closed", "limit", "offset"},
    "/data/v2/prices-history": {"token_id", "interval", "start", "end", "as_of", "bucket_seconds", "cursor"},
    "/data/v2/resolutions": {"condition_id", "question_id", "event_id"},
    "/clob/prices-history": {"market", "startTs", "endTs", "interval", "fidelity"},
}
"""Names that the official client (0.14.0) sends, or that the order book documents."""


def _client(transport: FunctionTransport) -> PolymarketClient:
    return PolymarketClient(http=AsyncHttpClient(limits=ONCE, transport=transport), hosts=HOSTS)


def _settled(market: Payload) -> dict[str, SettledOutcome | None]:
    """The verdict on each side of a market."""
    condition = market.need("conditionId").text()
    question = asked(f"polymarket/{condition}")
    reader = PolymarketSettlements(_client(replay({})))
    sides = [item.text() for item in market.need("outcomes").embedded().items()]
    refs = {side: MarketRef(platform="polymarket", id=f"{condition}{PART}{side}") for side in sides}
    return {
        side: reader.outcome(market, SettlementTarget(question=question, target=question.targets[0], ref=ref))
        for side, ref in refs.items()
    }


async def _event(row: Payload) -> Any:
    return await PolymarketEvents(_client(replay({}))).read(row, NOW, ListingReport())


async def _augmented() -> None:
    client = _client(replay({"/events": answer("polymarket", "gamma_events_fedchair_26jan")}))
    # Requested with offsets, because this server does not support cursors.
    listing = PolymarketEvents(client).events(ListingFilter(as_of=NOW))
    (fed,) = await listing.all()
    targets = {target.label: target.snapshot for target in fed.question.targets}
    assert (fed.question.text, fed.question.id) == ("Who will Trump nominate as Fed Chair?", "polymarket/35908")
    # 39 markets, of which 14 are placeholders, archived copies, or "Other".
    assert (len(targets), "Other" in targets, "Individual T" in targets) == (25, False, False)
    assert fed.question.exclusivity == "at most one"
    warsh, pulte = targets["Kevin Warsh"], targets["Bill Pulte"]
    assert warsh is not None
    assert pulte is not None
    assert (warsh.yes_bid, warsh.yes_ask, warsh.last_price, warsh.volume) == (0.44, 0.45, 0.45, 8895766.064146)
    assert (pulte.yes_bid, pulte.yes_ask, pulte.last_price) == (None, 0.001, 0.001)
    # The first tag is "Jerome Powell": tags are not ordered, and there is no category.
    assert (fed.category, fed.tags[0], len(fed.tags)) == ("Politics", "Jerome Powell", 6)
    assert (fed.volume, fed.liquidity, fed.closes_at) == (244821858.203088, 7401351.26394, instant("2026-12-31"))


async def _open() -> None:
    (hormuz,) = body_of("polymarket", "gamma_market_26aug").items()
    (state,) = market_states(hormuz, NOW.at, alone=True)
    assert state.target.snapshot is not None
    assert (state.status, state.target.label) == ("open", "August 31")
    assert (state.target.snapshot.last_price, state.target.snapshot.volume) == (0.06, 10590001.951022005)
    body = body_of("polymarket", "n_gamma_market")
    (coin,) = body.items() if isinstance(body.value, list) else [body]
    up, down = market_states(coin, NOW.at, alone=True)
    assert (up.target.label, down.target.label, up.status) == ("Up", "Down", "open")
    assert up.target.snapshot is not None
    assert down.target.snapshot is not None
    assert (up.target.snapshot.yes_bid, up.target.snapshot.yes_ask, up.target.snapshot.last_price) == (0.5, 0.51, 0.51)
    assert (down.target.snapshot.yes_bid, down.target.snapshot.yes_ask) == (0.49, 0.5)
    (row,) = body_of("polymarket", "n_search_response").rows("events")
    bitcoin = await _event(row)
    assert (bitcoin.category, bitcoin.recurrence) == ("Crypto", "btc-multi-strikes-weekly")
    assert [target.label for target in bitcoin.question.targets] == ["64,000"]


def _results() -> None:
    no = SettledOutcome(outcome=0, at=instant("2026-06-10T13:13:13Z"))
    batch = [_settled(row) for row in body_of("polymarket", "gamma_markets_closed_batch_26jun").items()]
    assert (len(batch), batch[0]["Yes"]) == (2, no)
    assert [(market["Yes"].outcome, market["No"].outcome) for market in batch if market["Yes"] and market["No"]] == [
        (0, 1)
    ] * 2
    katana = _settled(body_of("polymarket", "n_gamma_market_closed_binary_accepting_false"))
    # It is still marked as accepting orders and not as resolved, but its shares are worth 1 and 0.
    ceasefire = _settled(body_of("polymarket", "n_gamma_market_closed_binary_accepting_true"))
    game = _settled(body_of("polymarket", "n_gamma_market_sports_market_map_handicap"))
    outcomes = [
        {name: side and side.outcome for name, side in verdict.items()} for verdict in (katana, ceasefire, game)
    ]
    assert outcomes == [{"Yes": 0, "No": 1}, {"Yes": 1, "No": 0}, {"FaZe": 1, "illwill": 0}]


def _legacy() -> None:
    unknown = SettledOutcome(outcome=None, payoff=None, at=instant("2020-11-02T16:31:01Z"))
    biden = _settled(body_of("polymarket", "n_gamma_market_closed_zero_zero_legacy"))
    assert biden == {"Yes": unknown, "No": unknown}
    locked = _settled(body_of("polymarket", "n_gamma_market_closed_nonbinary_legacy"))
    paid = {name: (side.outcome, side.payoff) for name, side in locked.items() if side is not None}
    assert paid == {"Long": (None, pytest.approx(0.58433116690777)), "Short": (None, pytest.approx(0.41566883309223))}


def _books() -> None:
    assert book_pays(body_of("polymarket", "n_clob_market_closed_binary_accepting_false")) == [0.0, 1.0]
    assert book_pays(body_of("polymarket", "n_clob_market_closed_binary_accepting_true")) == [1.0, 0.0]


def _data() -> None:
    points = [data_price(row) for row in data_rows(body_of("polymarket", "data_v2_prices_history"))]
    # The timestamp is the start of a minute; the price is known at its end.
    assert [(point.at, point.p) for point in points] == [
        (instant("2026-09-07T17:05:00Z"), 0.955),
        (instant("2026-09-07T17:06:00Z"), 0.955),
    ]
    decided, posed = data_rows(body_of("polymarket", "data_v2_resolutions"))
    # 69 means that the oracle has no price yet.
    assert (resolution_pays(decided), resolution_pays(posed)) == ([0.0, 1.0], None)
    halves = Payload(url="", value={**decided.value, "payouts": ["500000", "500000"]})
    assert resolution_pays(halves) == [0.5, 0.5]


A, B, C = ("0x" + digit * 64 for digit in "abc")
START = int(instant("2026-10-01").timestamp())


def _practice(seen: list[tuple[HttpRequest, Any]]) -> FunctionTransport:
    markets = (
        SamplePolymarketMarket(condition=A, question="Ann?", label="Ann", bid=0.4, ask=0.5),
        SamplePolymarketMarket(condition=B, question="Bob?", label="Bob", closed=True, prices=("0.6", "0.4")),
        SamplePolymarketMarket(condition=C, question="Cat?", label="Cat", bid=0.2, ask=0.3),
    )
    group = SamplePolymarketEvent(id="1", title="Who?", markets=markets, negative_risk=True, tags=("Politics",))
    trades = {polymarket_tokens(A)[0]: ((START, 0.4), (START + 864_000, 0.5))}
    catalogue = PolymarketCatalogue([polymarket_event_body(group)])
    service = PracticePolymarket(catalogue, trades, verdicts={B: (0.5, 0.5)})

    def handle(request: HttpRequest) -> Answer:
        pairs: dict[str, str] = {}
        for name, value in request.url.query.items():
            pairs[name] = f"{pairs[name]},{value}" if name in pairs else value
        path = request.url.path
        status, body = service.get(ServerRequest(method="GET", path=path, target=path, query=pairs, headers={}))
        seen.append((request, body if status == 200 else None))
        return respond(status, json=body)

    return FunctionTransport(handle)


async def _exchanges() -> list[tuple[HttpRequest, Any]]:
    seen: list[tuple[HttpRequest, Any]] = []
    client = _client(_practice(seen))
    window = ListingFilter(as_of=NOW, closes_after=instant("2026-11-02"), closes_before=instant("2028-01-01"))
    (listed,) = await PolymarketEvents(client).events(window).all()
    assert listed.question.exclusivity == "at most one"
    (settled,) = await PolymarketSettlements(client).settlements([asked("polymarket/1", A, B)])
    assert (settled.target_id, settled.outcome, settled.payoff) == (B, None, 0.5)
    prices = PolymarketPrices(client)
    points = await prices.prices(MarketRef(platform="polymarket", id=A), AsOf(at=NOW.at), 60)
    assert [point.p for point in points] == [0.4, 0.5]
    with pytest.raises(Exception, match="shows no price"):
        await prices.prices(MarketRef(platform="polymarket", id=f"{A}#no"), AsOf(at=NOW.at), 60)
    return seen


async def _requests() -> None:
    met: set[str] = set()
    for request, _ in await _exchanges():
        path, sent = request.url.path, dict(request.url.query)
        assert set(sent) <= PARAMETERS[path], (path, sent)
        met.add(path)
        if path == "/data/v2/prices-history":
            assert len(sent.keys() & {"interval", "start", "as_of"}) == 1
            assert not ("as_of" in sent and "bucket_seconds" in sent)
            assert int(sent.get("end", "0")) - int(sent.get("start", "0")) <= 15 * 86_400
            assert 60 <= int(sent.get("bucket_seconds", "60")) <= 86_400
        if path == "/data/v2/resolutions":
            assert len(sent["condition_id"].split(",")) <= 20
    assert met == set(PARAMETERS)


async def _envelopes() -> None:
    """Check the fields that the official client requires of an answer."""
    for request, body in await _exchanges():
        path = request.url.path
        if path.startswith("/data"):
            assert isinstance(body["data"], list)
            page = body["pagination"]
            assert page["has_more"] == (page["next_cursor"] is not None)
            needed = {"timestamp", "price", "resolution_seconds"} if "prices" in path else {"status", "price"}
            assert all(needed <= row.keys() for row in body["data"])
        if path.endswith("/keyset"):
            assert isinstance(body[path.split("/")[-2]], list)
            assert body.get("next_cursor") != ""
        for event in body.get("events", []) if isinstance(body, dict) else []:
            assert all(isinstance(json.loads(market["outcomes"]), list) for market in event["markets"])


def _official(url: str) -> Any:
    """The official client, connected only to this address."""
    from polymarket import AsyncPublicClient, environments

    public: Any = environments
    addresses = {name: f"{url}/unused" for name in public.PRODUCTION._config.__slots__ if name.endswith("_url")}
    addresses |= {"gamma_url": f"{url}/gamma", "data_url": f"{url}/data", "clob_url": f"{url}/clob"}
    config = replace(public.PRODUCTION._config, **addresses)
    return AsyncPublicClient(public._create_environment(name="practice", config=config))


async def _all_items(pages: Any) -> list[Any]:
    return [item async for page in pages for item in page.items]


async def _official_reads() -> None:
    """Check that the official client and foretell's read the same values from practice."""
    now = NOW.at
    async with (
        data_services(now, "practice")["polymarket"].server() as server,
        _official(server.url) as client,
        AsyncHttpClient(limits=ONCE) as http,
    ):
        hosts = PolymarketHosts(gamma=f"{server.url}/gamma", data=f"{server.url}/data", clob=f"{server.url}/clob")
        ours = PolymarketClient(http=http, hosts=hosts)
        listed = await PolymarketEvents(ours).events(ListingFilter(as_of=NOW)).all()
        theirs = await _all_items(client.list_events(closed=False))
        assert {f"polymarket/{their.id}": their.title for their in theirs} == {
            event.question.id: event.question.text for event in listed
        }
        race = next(their for their in theirs if their.trading.neg_risk)
        assert (await client.get_event(id=race.id)) == race == (await client.get_event(slug=race.slug))
        (event,) = [item for item in listed if item.question.id == f"polymarket/{race.id}"]
        assert [market.condition_id for market in race.markets] == [target.id for target in event.question.targets]
        for market, target in zip(race.markets, event.question.targets, strict=True):
            assert target.snapshot is not None
            assert (float(market.prices.best_bid), float(market.prices.best_ask)) == pytest.approx(
                (target.snapshot.yes_bid, target.snapshot.yes_ask)
            )
            assert (await client.get_market(id=market.id)).condition_id == market.condition_id
        (priced,) = await _all_items(client.list_markets(condition_ids=[POLYMARKET_ID]))
        token = priced.outcomes.yes.token_id
        end = int(now.timestamp())
        points = await _all_items(client.list_price_history(asset_id=token, start=end - 14 * 86_400, end=end))
        (last,) = await _all_items(client.list_price_history(asset_id=token, as_of=end))
        known = await PolymarketPrices(ours).prices(
            MarketRef(platform="polymarket", id=POLYMARKET_ID), AsOf(at=now), 14
        )
        assert points
        assert {round(point.p, 6) for point in known} >= {round(float(point.price), 6) for point in points}
        assert float(last.price) == known[-1].p
        (resolution,) = await client.get_resolutions(condition_ids=[POLYMARKET_ID])
        assert (resolution.condition_id, resolution.price) == (POLYMARKET_ID, None), "69 is not a price"


async def _read(body: Payload) -> list[object]:
    """Read an answer with the adapter, by its shape; empty if the adapter never requests it."""
    if isinstance(body.value, list):
        return [value for row in body.items() for value in await _read(row)]
    if not isinstance(body.value, dict):
        return []
    if body.has("data"):
        rows = [row for row in data_rows(body) if isinstance(row.value, dict)]
        prices = [data_price(row) for row in rows if row.has("timestamp") and row.has("resolution_seconds")]
        return [*prices, *(resolution_pays(row) for row in rows if row.has("reproposed_price") or row.has("payouts"))]
    if body.has("history"):
        return [clob_price(row) for row in body.rows("history")]
    for name in ("events", "markets"):
        if body.get(name) is not None and not body.has("title") and not body.has("conditionId"):
            return [value for row in body.rows(name) for value in await _read(row)]
    if body.has("tokens") and body.has("condition_id"):
        return [book_pays(body)]
    try:
        if body.has("conditionId") and body.get("outcomes") is not None:
            return [*market_states(body, NOW.at, alone=True), _settled(body)]
        return [await _event(body)] if body.has("title") and body.get("markets") is not None else []
    except UnsupportedEvent as reason:
        return [str(reason)]


async def _sweep() -> None:
    for name in names("polymarket"):
        if (recording("polymarket", name)["status"] or 200) < 400:
            await _read(body_of("polymarket", name))


CHECKS = [
    Check(
        service="polymarket",
        what="an event whose list of names still grows: inactive places and Other are accounted for",
        recordings=("gamma_events_fedchair_26jan",),
        function=_augmented,
    ),
    Check(
        service="polymarket",
        what="open markets, also with named sides, and events found by search",
        recordings=("gamma_market_26aug", "n_gamma_market", "n_search_response"),
        function=_open,
    ),
    Check(
        service="polymarket",
        what="results of closed markets",
        recordings=("gamma_markets_closed_batch_26jun", "n_gamma_market_closed_binary*", "n_gamma_market_sports*"),
        function=_results,
    ),
    Check(
        service="polymarket",
        what="old markets: nothing for both sides is unknown, fractions are what was paid",
        recordings=("n_gamma_market_closed_*_legacy",),
        function=_legacy,
    ),
    Check(service="polymarket", what="winners by the order book", recordings=("n_clob_market_*",), function=_books),
    Check(
        service="polymarket",
        what="prices and resolutions of the data service, of which 69 is none",
        recordings=("data_v2_*",),
        function=_data,
    ),
    Check(service="polymarket", what="every request has the official client's parameters", function=_requests),
    Check(service="polymarket", what="practice answers have the envelopes it demands", function=_envelopes),
    Check(
        service="polymarket",
        what="the official client reads events, markets, prices and resolutions of our practice server, as we do",
        function=_official_reads,
        module="polymarket",
    ),
    Check(service="polymarket", what="whatever is recorded is read", recordings=("*",), function=_sweep),
]
