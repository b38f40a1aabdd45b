"""Manifold: prices from bets, markets as events, and results."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.faults import FieldDrift, MarketFaults, busy, cut_off, failing
from fakes.market_reader import CANARY, NOW, Reader, asked, edited
from fakes.markets import FakeManifold
from fakes.samples import SampleManifoldAnswer, SampleManifoldMarket, manifold_market_body
from foretell.data.http import SourceError
from foretell.data.markets import manifold
from foretell.data.markets.listing import LiveOnly
from foretell.data.markets.market import MarketRef, PricesUnavailable, market_ref
from foretell.data.payload import MalformedPayload
from foretell.practice.markets.manifold import ManifoldCatalogue, PracticeManifold, SampleManifoldBet
from foretell.practice.server import ServerRequest, json_response
from foretell.questions.as_of import AsOf, instant

manifold_ = Reader("manifold")


CONTRACT = "OT9THV4AtcSgnFQPHh1c"
CUTOFF = AsOf(at="2026-02-10T18:30:00Z")


def ms(text: str) -> int:
    return int(instant(text).timestamp() * 1000)


BETS = (
    SampleManifoldBet(id="a", at_ms=ms("2025-10-01"), after=0.1),
    SampleManifoldBet(id="b", at_ms=ms("2026-02-01T08:00:00Z"), after=0.3),
    SampleManifoldBet(id="c", at_ms=ms("2026-02-01T20:00:00Z"), after=0.35),
    SampleManifoldBet(id="d", at_ms=ms("2026-02-10T18:30:00Z"), after=0.4),
    SampleManifoldBet(id="e", at_ms=ms("2026-02-10T18:30:00Z") + 1, after=0.9),
    SampleManifoldBet(id="f", at_ms=ms("2026-02-10T18:00:00Z"), after=0.77, untaken=True),
)


def fake(bets: tuple[SampleManifoldBet, ...] = BETS, **options: Any) -> FakeManifold:
    return FakeManifold({CONTRACT: bets}, **options)


def test_a_price_is_that_after_the_last_bet_of_each_day() -> None:
    points = manifold_.prices(fake(canary=CANARY), CONTRACT, CUTOFF)
    assert [(p.at, p.p) for p in points] == [
        (instant("2026-02-01T20:00:00Z"), 0.35),
        (instant("2026-02-10T18:30:00Z"), 0.4),
    ]
    (request,) = manifold_.server.requests
    assert request.query == {
        "contractId": CONTRACT,
        "beforeTime": str(ms("2026-02-10T18:30:00Z") + 1),
        "limit": "1000",
        "order": "desc",
    }


def test_bets_after_the_cutoff_are_dropped_if_the_server_ignores_the_time() -> None:
    assert manifold_.prices(fake(careless=True), CONTRACT, CUTOFF)[-1].p == 0.4


def test_unfilled_orders_do_not_move_the_price() -> None:
    only = tuple(bet for bet in BETS if bet.id in "af")
    assert [p.p for p in manifold_.prices(fake(only), CONTRACT, CUTOFF)] == [0.1]


def test_pages_are_read_back_to_the_start_of_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifold, "BETS_PAGE", 10)
    day = 86_400_000
    bets = tuple(SampleManifoldBet(id=str(i), at_ms=ms("2025-10-01") + i * day // 2, after=i / 400) for i in range(300))
    points = manifold_.prices(fake(bets), CONTRACT, CUTOFF, days=30)
    assert len(points) == 30
    # 60 of the 265 bets, of 30 days, in pages of ten that overlap by one.
    assert 6 <= len(manifold_.server.requests) <= 8


def test_a_page_of_bets_with_the_same_time_does_not_stop_paging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifold, "BETS_PAGE", 3)
    same = tuple(SampleManifoldBet(id=f"s{i}", at_ms=ms("2026-02-05"), after=0.5) for i in range(5))
    early = (SampleManifoldBet(id="early", at_ms=ms("2026-02-04"), after=0.2),)
    points = manifold_.prices(fake((*early, *same)), CONTRACT, CUTOFF)
    assert [p.p for p in points] == [0.2, 0.5]


def test_prices_are_found_by_answer_and_by_slug() -> None:
    bets = tuple(
        SampleManifoldBet(id=f"{name}{i}", at_ms=ms("2026-02-01") + i, after=p + i / 100, answer=name)
        for i in range(3)
        for name, p in (("ann", 0.2), ("bob", 0.7))
    )
    server = fake(bets, canary=CANARY, slugs={"who-wins": CONTRACT})
    assert manifold_.prices(server, f"{CONTRACT}#ann", CUTOFF)[-1].p == pytest.approx(0.22)
    assert manifold_.prices(server, "slug:who-wins#bob", CUTOFF)[-1].p == pytest.approx(0.72)
    assert manifold_.server.requests[0].query["answerId"] == "bob"
    with pytest.raises(PricesUnavailable, match=r"several answers; name one with .*#<answer id>"):
        manifold_.prices(server, CONTRACT, CUTOFF)


def test_an_unknown_market_or_one_without_bets_has_no_prices() -> None:
    with pytest.raises(PricesUnavailable, match="no market nope"):
        manifold_.prices(fake(), "nope", CUTOFF)
    with pytest.raises(PricesUnavailable, match="shows no price"):
        manifold_.prices(fake(), CONTRACT, AsOf.day("2025-09-01"))


def test_a_busy_server_is_retried_and_one_that_keeps_failing_raises() -> None:
    assert manifold_.prices(fake(), CONTRACT, CUTOFF, faults=[busy(), failing(503)])[-1].p == 0.4
    with pytest.raises(SourceError, match="500"):
        manifold_.prices(fake(), CONTRACT, CUTOFF, faults=[failing()] * 3)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda bet: bet.pop("probAfter"), "[0].probAfter is missing"),
        (lambda bet: bet.pop("createdTime"), "[0].createdTime is missing"),
        (lambda bet: bet.pop("id"), "[0].id is missing"),
        (lambda bet: bet.pop("amount"), "[0].amount is missing"),
        (lambda bet: bet.update(probAfter=7), "[0].probAfter is not a probability"),
        (lambda bet: bet.update(createdTime="never"), "[0].createdTime is not a finite number"),
    ],
)
def test_one_unreadable_bet_is_reported_and_the_rest_is_read(change: Callable[[Any], None], field: str) -> None:
    spoil = edited(lambda body: change(body[0]))
    points = manifold_.prices(fake(canary=CANARY), CONTRACT, CUTOFF, faults=[spoil])
    assert [point.p for point in points] == [0.35]
    (skipped,) = manifold_.skipped
    assert skipped.reason == f"1 of 5 entries could not be read; manifold {CONTRACT}: field {field}"


def test_only_unreadable_bets_raise() -> None:
    def spoil(body: Any) -> None:
        for bet in body:
            bet["after"] = bet.pop("probAfter")

    with pytest.raises(MalformedPayload, match="4 of 4 entries could not be read"):
        manifold_.prices(fake(BETS[:5]), CONTRACT, CUTOFF, faults=[edited(spoil)])


def test_bets_of_2022_name_their_answer_by_its_number() -> None:
    def old(body: Any) -> None:
        for bet in body:
            bet["outcome"] = bet.pop("answerId")

    bets = tuple(
        SampleManifoldBet(id=f"{name}{i}", at_ms=ms("2026-02-01") + i, after=p, answer=name)
        for i in range(3)
        for name, p in (("1", 0.2), ("2", 0.7))
    )
    assert manifold_.prices(fake(bets), f"{CONTRACT}#2", CUTOFF, faults=[edited(old)])[-1].p == 0.7
    with pytest.raises(PricesUnavailable, match="several answers"):
        manifold_.prices(fake(bets), CONTRACT, CUTOFF, faults=[edited(old)])


def test_the_fake_server_refuses_unknown_parameters() -> None:
    service = PracticeManifold({CONTRACT: BETS})
    good = {"contractId": CONTRACT, "beforeTime": "9e12", "limit": "10", "order": "desc"}

    def status(path: str, **query: str) -> int:
        return service.get(ServerRequest(method="GET", path=path, target=path, query=query, headers={}))[0]

    assert status("/v0/bets", **good) == 200
    assert status("/v0/bets", **good, market="x") == 400
    assert status("/v0/bets", **good | {"limit": "50001"}) == 400
    assert status("/v0/search-markets", term="", filter="open") == 200
    assert status("/v0/search-markets", term="", status="open") == 400
    assert status("/v0/search-markets", filter="settled") == 400


def test_a_response_that_is_not_a_list_raises() -> None:
    server = fake().server()
    server.route("GET", "/v0/bets", lambda _: json_response({"message": "moved"}))
    with pytest.raises(SourceError, match=r"the whole response.* is not a list"):
        manifold_.prices(server, CONTRACT, CUTOFF)


@settings(max_examples=20)
@given(
    hours_of_bets=st.lists(st.integers(0, 90 * 24), max_size=30), hours=st.integers(0, 90 * 24), careless=st.booleans()
)
def test_bets_after_the_cutoff_do_not_change_prices(hours_of_bets: list[int], hours: int, careless: bool) -> None:
    start = ms("2026-01-01")
    bets = tuple(
        SampleManifoldBet(id=str(i), at_ms=start + 3_600_000 * at, after=(i + 1) / 40)
        for i, at in enumerate(sorted(hours_of_bets))
    )
    end = start + 3_600_000 * hours + 1
    cutoff = AsOf(at=datetime.fromtimestamp(end / 1000, UTC))
    answers = []
    for known in (bets, tuple(bet for bet in bets if bet.at_ms <= end)):
        try:
            answers.append(manifold_.prices(fake(known, careless=careless), CONTRACT, cutoff))
        except PricesUnavailable:
            answers.append([])
    assert answers[0] == answers[1]
    assert bool(answers[0]) == any(bet.at_ms <= end for bet in bets)


RAIN = SampleManifoldMarket(
    id="rain000001", question="Will it rain on Nov 5?", p=0.62, topics=("weather", "fun"), volume=250
)
RACE = SampleManifoldMarket(
    id="race000001",
    question="Who wins?",
    kind="MULTIPLE_CHOICE",
    answers=(
        SampleManifoldAnswer(id="annanswer1", text="Ann", p=0.7),
        SampleManifoldAnswer(id="bobanswer1", text="Bob", p=0.3),
    ),
    token="CASH",
)


def server(*contracts: SampleManifoldMarket, trouble: MarketFaults | None = None) -> Any:
    catalogue = ManifoldCatalogue(manifold_market_body(contract) for contract in contracts or (RAIN, RACE))
    return FakeManifold({}).having(catalogue, trouble).server()


def test_a_yes_or_no_market_becomes_an_event_with_one_target() -> None:
    (rain, _), ledger = manifold_.listing(server())
    question = rain.question
    assert (question.id, question.text, question.exclusivity) == (
        "manifold/rain000001",
        "Will it rain on Nov 5?",
        "independent",
    )
    (yes,) = question.targets
    assert yes.snapshot is not None
    assert (yes.id, yes.snapshot.last_price, yes.snapshot.price, yes.snapshot.yes_ask) == ("yes", 0.62, 0.62, None)
    assert (question.criteria, question.opens_at) == ("Resolves yes if it happens.", instant("2026-01-01"))
    assert (rain.closes_at, rain.unit, rain.traders) == (instant("2027-01-01"), "MANA", 12)
    assert (rain.volume, rain.volume_24h, rain.liquidity, rain.open_interest) == (250, 25, 1000, None)
    assert (rain.category, rain.tags, rain.recurrence) == ("weather", ("weather", "fun"), "will it rain on #?")
    assert market_ref(question) == MarketRef(platform="manifold", id="rain000001")
    assert ledger.notes() == ()


def test_a_multiple_choice_is_exclusive_only_if_answers_sum_to_one() -> None:
    free = SampleManifoldMarket(
        id="free000001",
        question="Which of these?",
        kind="MULTIPLE_CHOICE",
        sums_to_one=False,
        answers=(*RACE.answers, SampleManifoldAnswer(id="catanswer1", text="Cat", p=0.9, resolution="YES")),
    )
    (race, several), _ = manifold_.listing(server(RACE, free))
    assert [(target.id, target.label) for target in race.question.targets] == [
        ("annanswer1", "Ann"),
        ("bobanswer1", "Bob"),
    ]
    assert (race.question.exclusivity, race.unit) == ("exactly one", "USD")
    assert (several.question.exclusivity, several.finished) == ("independent", ("catanswer1",))
    assert market_ref(race.question, race.question.targets[1]) == MarketRef(
        platform="manifold", id="race000001#bobanswer1"
    )


def test_descriptions_of_2022_are_read() -> None:
    text = {"type": "paragraph", "content": [{"type": "text", "text": "It must"}, {"type": "text", "text": "rain."}]}
    for description in ("It must rain.", {"type": "doc", "content": [text, {"type": "image"}]}):
        body = {**manifold_market_body(RAIN), "description": description}
        del body["textDescription"]
        (old,), _ = manifold_.listing(FakeManifold({}).having(ManifoldCatalogue([body])).server())
        assert old.question.criteria == "It must rain."


def test_a_multiple_choice_of_2022_always_has_exactly_one_answer() -> None:
    body = {**manifold_market_body(RACE), "mechanism": "dpm-2"}
    del body["shouldAnswersSumToOne"]
    (old,), _ = manifold_.listing(FakeManifold({}).having(ManifoldCatalogue([body])).server())
    assert old.question.exclusivity == "exactly one"


def test_the_last_open_answer_still_refers_to_its_own_price() -> None:
    answers = (RACE.answers[0], SampleManifoldAnswer(id="bobanswer1", text="Bob", p=0.0, resolution="NO"))
    last = SampleManifoldMarket(
        id="last000001", question="?", kind="MULTIPLE_CHOICE", sums_to_one=False, answers=answers
    )
    (listed,), _ = manifold_.listing(server(last))
    assert market_ref(listed.question) == MarketRef(platform="manifold", id="last000001#annanswer1")


def test_markets_that_the_list_already_rules_out_are_not_read() -> None:
    far = SampleManifoldMarket(id="far0000001", question="?", p=0.5, closes_ms=4_000_000_000_000)
    small = SampleManifoldMarket(id="small00001", question="?", p=0.5, volume=1)
    poll = SampleManifoldMarket(id="poll000001", question="?", kind="POLL")
    window = {"closes_after": "2026-11-02", "closes_before": "2027-06-01", "minimum_volume": 50}
    listed, ledger = manifold_.listing(server(far, small, poll, RAIN), **window)
    assert [event.question.id for event in listed] == ["manifold/rain000001"]
    assert dict(ledger.left_out) == {"closes after the window": 1, "volume below the minimum": 1}
    assert [(skipped.id, skipped.reason) for skipped in ledger.skipped] == [
        ("poll000001", "a market of type POLL has no yes-or-no targets")
    ]
    paths = [request.path for request in manifold_.server.requests]
    assert paths == ["/v0/search-markets", "/v0/market/rain000001"]
    query = manifold_.server.requests[0].query
    assert (query["sort"], query["filter"], query["contractType"]) == ("close-date", "open", "ALL")
    manifold_.listing(server())
    assert manifold_.server.requests[0].query["sort"] == "most-popular"


def test_pages_are_read_until_one_is_short() -> None:
    many = [SampleManifoldMarket(id=f"m{n:09}", question=f"{n}?", p=0.5) for n in range(520)]
    listed, ledger = manifold_.listing(server(*many), limit=1000, minimum_volume=1e6)
    assert (listed, ledger.pages, ledger.left_out["volume below the minimum"]) == ([], 2, 520)
    assert manifold_.listing(server(), category="none such")[1].left_out["another category"] == 2
    manifold_.listing(server(*many), minimum_volume=1e6)
    assert [r.query["offset"] for r in manifold_.server.requests if r.path.endswith("search-markets")] == ["0", "500"]


def test_one_market_is_read_by_id_or_slug() -> None:
    assert manifold_.event(server(), "rain000001") == manifold_.event(server(), "slug:slug-rain000001")
    assert manifold_.server.requests[0].path == "/v0/slug/slug-rain000001"
    done = SampleManifoldMarket(id="done000001", question="?", p=0.99, resolution="YES", resolved_ms=1_790_000_000_000)
    shut = SampleManifoldMarket(id="shut000001", question="?", p=0.5, closes_ms=1_790_000_000_000)
    assert manifold_.event(server(done), "done000001").status == "resolved"
    assert manifold_.event(server(shut), "shut000001").status == "closed"
    with pytest.raises(SourceError, match="manifold event nope does not exist"):
        manifold_.event(server(), "nope")
    with pytest.raises(SourceError, match="manifold event poll cannot be used: a market of type POLL"):
        manifold_.event(server(SampleManifoldMarket(id="poll", question="?", kind="POLL")), "poll")
    with pytest.raises(LiveOnly):
        manifold_.event(server(), "rain000001", AsOf(at=NOW.at))


def test_a_market_that_disappears_while_listing_is_skipped() -> None:
    fake = FakeManifold({}).having(ManifoldCatalogue([manifold_market_body(RAIN), manifold_market_body(RACE)]))
    whole = fake.catalogue.answer
    fake.catalogue.answer = lambda path, query: None if path.endswith("rain000001") else whole(path, query)
    listed, ledger = manifold_.listing(fake.server())
    assert [event.question.id for event in listed] == ["manifold/race000001"]
    assert [(skipped.id, skipped.kind) for skipped in ledger.skipped] == [("rain000001", "unknown")]


def test_a_market_that_the_server_refuses_is_skipped() -> None:
    fake = FakeManifold({}).having(ManifoldCatalogue([manifold_market_body(RAIN), manifold_market_body(RACE)]))
    whole = fake.catalogue.answer
    refused = 410, {"message": "This market was removed"}
    fake.catalogue.answer = lambda path, query: refused if path.endswith("rain000001") else whole(path, query)
    listed, ledger = manifold_.listing(fake.server())
    assert [event.question.id for event in listed] == ["manifold/race000001"]
    assert "This market was removed" in ledger.skipped[0].reason
    questions = [asked("manifold/rain000001"), asked("manifold/race000001", "annanswer1")]
    assert manifold_.settle(fake, questions) == {}
    assert "This market was removed" in manifold_.reasons["rain000001"]


@pytest.mark.parametrize(
    ("path", "change", "reason"),
    [
        ("0.outcomeType", "drop", "field [0].outcomeType is missing"),
        ("0.volume", "retype", "field [0].volume is not a number"),
        ("question", "drop", "field question is missing"),
        ("probability", "drop", "field probability is missing"),
        ("textDescription", "rename", "field textDescription is missing"),
        ("isResolved", "retype", "field isResolved is not true or false"),
        ("createdTime", "drop", "field createdTime is missing"),
    ],
)
def test_an_error_about_a_changed_field_names_platform_event_and_field(path: str, change: Any, reason: str) -> None:
    other = SampleManifoldMarket(id="poll000001", question="?", kind="POLL")
    listed, ledger = manifold_.listing(
        server(RAIN, other, trouble=MarketFaults(drifts=(FieldDrift(path=path, change=change),)))
    )
    assert listed == []
    assert (ledger.skipped[0].kind, ledger.skipped[0].reason) == ("malformed", f"manifold event rain000001: {reason}")


def test_changed_answers_are_skipped_and_new_fields_ignored() -> None:
    for path, reason in (
        ("answers.1.id", "answers[1].id is missing"),
        ("answers.1.probability", "answers[1].probability is missing"),
        ("answers.1.text", "answers[1].text is missing"),
        ("shouldAnswersSumToOne", "shouldAnswersSumToOne is missing"),
        ("answers", "answers is missing"),
    ):
        listed, ledger = manifold_.listing(server(trouble=MarketFaults(drifts=(FieldDrift(path=path),))))
        assert [event.question.id for event in listed] == ["manifold/rain000001"]
        assert reason in ledger.skipped[0].reason
    new = MarketFaults(drifts=(FieldDrift(path="answers.*.mood", change="add"),))
    assert manifold_.listing(server(trouble=new))[1].notes() == ()


def test_malformed_pages_and_outages_raise() -> None:
    with pytest.raises(SourceError, match=r"/market/rain000001.*503"):
        manifold_.listing(server(trouble=MarketFaults(down=("/market/",))))
    assert len(manifold_.listing(server(), faults=[busy(), cut_off()])[0]) == 2
    fake = FakeManifold({}).having(ManifoldCatalogue())
    fake.catalogue.answer = lambda path, query: (200, {"markets": []})
    with pytest.raises(MalformedPayload, match=r"manifold list: field \(the whole response\) is not a list"):
        manifold_.listing(fake.server())


AT = int(instant("2026-12-11").timestamp() * 1000)


def settled_server(*contracts: SampleManifoldMarket, trouble: MarketFaults | None = None) -> Any:
    return FakeManifold({}).having(ManifoldCatalogue(map(manifold_market_body, contracts)), trouble).server()


def plain(resolution: str | None, **fields: Any) -> SampleManifoldMarket:
    return SampleManifoldMarket(id="plain00001", question="?", p=0.9, resolution=resolution, resolved_ms=AT, **fields)


def choice(
    resolution: str | None, *, own: tuple[str | None, ...] = (None, None), **fields: Any
) -> SampleManifoldMarket:
    answers = tuple(
        SampleManifoldAnswer(id=id, text=id, p=0.5, resolution=resolution, resolved_ms=AT if resolution else None)
        for id, resolution in zip(("annanswer1", "bobanswer1"), own, strict=True)
    )
    options: dict[str, Any] = {"id": "choice0001", "question": "?", "kind": "MULTIPLE_CHOICE", "answers": answers}
    return SampleManifoldMarket(**options, resolution=resolution, resolved_ms=AT if resolution else None, **fields)


@pytest.mark.parametrize(
    ("contract", "outcome", "payoff"),
    [
        (plain("YES"), 1, None),
        (plain("NO"), 0, None),
        (plain("MKT", resolved_p=0.7), None, 0.7),
        (plain("MKT"), None, None),
        (plain("CANCEL"), None, None),
    ],
)
def test_a_yes_or_no_market_resolves_by_its_resolution(
    contract: SampleManifoldMarket, outcome: Any, payoff: Any
) -> None:
    settled = manifold_.settle(settled_server(contract), [asked("manifold/plain00001")])["yes"]
    assert (settled.outcome, settled.payoff, settled.resolved_at) == (outcome, payoff, instant("2026-12-11"))
    assert manifold_.settle(settled_server(plain(None)), [asked("manifold/plain00001")]) == {}


@pytest.mark.parametrize(
    ("contract", "verdicts"),
    [
        (choice("annanswer1"), [(1, None), (0, None)]),
        (choice("CANCEL"), [(None, None), (None, None)]),
        (choice("MKT", shares={"annanswer1": 75, "bobanswer1": 25}), [(None, 0.75), (None, 0.25)]),
        (choice("CHOOSE_MULTIPLE", shares={"annanswer1": 100}), [(1, None), (0, None)]),
        (choice("MKT"), [(None, None), (None, None)]),
        (choice(None), []),
        (choice(None, sums_to_one=False, own=("YES", "NO")), [(1, None), (0, None)]),
        (choice(None, sums_to_one=False, own=("CANCEL", None)), [(None, None)]),
        (choice("CANCEL", sums_to_one=False), [(None, None), (None, None)]),
        (choice("MKT", sums_to_one=False, own=("NO", None)), [(0, None)]),
    ],
)
def test_answers_resolve_by_their_own_or_the_markets_resolution(contract: SampleManifoldMarket, verdicts: Any) -> None:
    question = asked("manifold/choice0001", "annanswer1", "bobanswer1")
    resolutions = manifold_.settle(settled_server(contract), [question])
    assert [(resolution.outcome, resolution.payoff) for resolution in resolutions.values()] == verdicts
    assert not manifold_.skipped
    assert len(manifold_.server.requests) == 1


def test_unreadable_results_are_reported() -> None:
    question = asked("manifold/choice0001", "annanswer1", "catanswer1")
    assert list(manifold_.settle(settled_server(choice("annanswer1")), [question])) == ["annanswer1"]
    assert manifold_.reasons == {"choice0001#catanswer1": "the market has no answer 'catanswer1' any more"}
    cases = (
        (plain("PERHAPS"), "field resolution is not YES, NO, MKT or CANCEL"),
        (plain("MKT", resolved_p=7.0), "field resolutionProbability is not a probability"),
        (plain("YES", kind="PSEUDO_NUMERIC"), "a market of type PSEUDO_NUMERIC has no such target"),
    )
    for contract, reason in cases:
        assert manifold_.settle(settled_server(contract), [asked("manifold/plain00001")]) == {}
        assert reason in manifold_.reasons["plain00001"]
    assert manifold_.settle(settled_server(choice("stranger")), [question]) == {}
    assert "field resolution is not an answer" in manifold_.reasons["choice0001#annanswer1"]


def test_missing_and_changed_results_are_reported_and_outages_raise() -> None:
    questions = [asked("manifold/goneaway01"), asked("manifold/plain00001")]
    assert manifold_.settle(settled_server(plain("YES")), questions)["yes"].outcome == 1
    assert manifold_.reasons == {"goneaway01": "the platform has no such market"}
    trouble = MarketFaults(drifts=(FieldDrift(path="isResolved", change="rename"),))
    assert manifold_.settle(settled_server(plain("YES"), trouble=trouble), questions[1:]) == {}
    assert manifold_.reasons == {"plain00001": "manifold market plain00001: field isResolved is missing"}
    assert manifold_.settle(settled_server(plain("NO")), questions[1:], faults=[busy(), cut_off()])["yes"].outcome == 0
    with pytest.raises(SourceError, match="503"):
        manifold_.settle(settled_server(plain("NO"), trouble=MarketFaults(down=("/market",))), questions[1:])
