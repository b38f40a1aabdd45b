"""Manifold bets, page by page."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.faults import ServerFault, busy, failing
from fakes.markets import FakeManifold
from foretell.data.http import SourceError
from foretell.data.markets import manifold
from foretell.data.markets.manifold import ManifoldClient, ManifoldPrices
from foretell.data.markets.prices import PriceSource, PricesUnavailable
from foretell.practice.markets.manifold import SampleManifoldBet
from foretell.practice.server import json_response
from foretell.questions.as_of import AsOf, instant

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


def make(http: Any, url: str) -> PriceSource:
    return ManifoldPrices(ManifoldClient(http=http, host=f"{url}/v0", per_second=1e4))


def fake(bets: tuple[SampleManifoldBet, ...] = BETS, **options: Any) -> FakeManifold:
    return FakeManifold({CONTRACT: bets}, **options)


def test_the_price_after_the_last_bet_of_each_day(ask: Any, canary: str) -> None:
    points = ask(fake(canary=canary).server(), make, CONTRACT, CUTOFF)
    assert [(p.at, p.p) for p in points] == [
        (instant("2026-02-01T20:00:00Z"), 0.35),
        (instant("2026-02-10T18:30:00Z"), 0.4),
    ]
    (request,) = ask.server.requests
    assert request.query == {
        "contractId": CONTRACT,
        "beforeTime": str(ms("2026-02-10T18:30:00Z") + 1),
        "limit": "1000",
        "order": "desc",
    }


def test_a_server_that_ignores_the_time_tells_nothing_more(ask: Any) -> None:
    assert ask(fake(careless=True).server(), make, CONTRACT, CUTOFF)[-1].p == 0.4


def test_untaken_orders_move_no_price(ask: Any) -> None:
    only = tuple(bet for bet in BETS if bet.id in "af")
    assert [p.p for p in ask(fake(only).server(), make, CONTRACT, CUTOFF)] == [0.1]


def test_pages_are_walked_back_to_the_window(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifold, "BETS_PAGE", 10)
    day = 86_400_000
    bets = tuple(SampleManifoldBet(id=str(i), at_ms=ms("2025-10-01") + i * day // 2, after=i / 400) for i in range(300))
    points = ask(fake(bets).server(), make, CONTRACT, CUTOFF, days=30)
    assert len(points) == 30
    # 60 bets in 30 days by pages of ten that overlap by one, and not the 265 there are.
    assert 6 <= len(ask.server.requests) <= 8


def test_a_page_full_of_one_moment_is_passed(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifold, "BETS_PAGE", 3)
    same = tuple(SampleManifoldBet(id=f"s{i}", at_ms=ms("2026-02-05"), after=0.5) for i in range(5))
    early = (SampleManifoldBet(id="early", at_ms=ms("2026-02-04"), after=0.2),)
    points = ask(fake((*early, *same)).server(), make, CONTRACT, CUTOFF)
    assert [p.p for p in points] == [0.2, 0.5]


def test_answers_and_slugs(ask: Any, canary: str) -> None:
    bets = tuple(
        SampleManifoldBet(id=f"{name}{i}", at_ms=ms("2026-02-01") + i, after=p + i / 100, answer=name)
        for i in range(3)
        for name, p in (("ann", 0.2), ("bob", 0.7))
    )
    server = fake(bets, canary=canary, slugs={"who-wins": CONTRACT})
    assert ask(server.server(), make, f"{CONTRACT}#ann", CUTOFF)[-1].p == pytest.approx(0.22)
    assert ask(server.server(), make, "slug:who-wins#bob", CUTOFF)[-1].p == pytest.approx(0.72)
    assert ask.server.requests[0].query["answerId"] == "bob"
    with pytest.raises(PricesUnavailable, match=r"several answers; name one with .*#<answer id>"):
        ask(server.server(), make, CONTRACT, CUTOFF)


def test_unknown_markets_and_no_bets_yet(ask: Any) -> None:
    with pytest.raises(PricesUnavailable, match="no market nope"):
        ask(fake().server(), make, "nope", CUTOFF)
    with pytest.raises(PricesUnavailable, match="shows no price"):
        ask(fake().server(), make, CONTRACT, AsOf.day("2025-09-01"))


def test_a_busy_server_and_a_dead_one(ask: Any) -> None:
    assert ask(fake().server(), make, CONTRACT, CUTOFF, faults=[busy(), failing(503)])[-1].p == 0.4
    with pytest.raises(SourceError, match="500"):
        ask(fake().server(), make, CONTRACT, CUTOFF, faults=[failing()] * 3)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda body: body[0].pop("probAfter"), r"\[0\]\.probAfter is missing"),
        (lambda body: body[0].pop("createdTime"), r"\[0\]\.createdTime is missing"),
        (lambda body: body[0].pop("id"), r"\[0\]\.id is missing"),
        (lambda body: body[0].pop("amount"), r"\[0\]\.amount is missing"),
        (lambda body: body[0].update(probAfter=7), r"\[0\]\.probAfter is not a probability"),
        (lambda body: body[0].update(createdTime="never"), r"\[0\]\.createdTime is not a finite number"),
    ],
)
def test_a_changed_answer_names_the_field(
    ask: Any, canary: str, edited: Callable[..., ServerFault], change: Callable[[Any], None], field: str
) -> None:
    with pytest.raises(SourceError, match=field) as caught:
        ask(fake(canary=canary).server(), make, CONTRACT, CUTOFF, faults=[edited(change)])
    assert canary not in str(caught.value)


def test_something_else_than_a_list_is_told(ask: Any) -> None:
    server = fake().server()
    server.route("GET", "/v0/bets", lambda _: json_response({"message": "moved"}))
    with pytest.raises(SourceError, match=r"the whole answer.* is not a list"):
        ask(server, make, CONTRACT, CUTOFF)


@settings(deadline=None, max_examples=20)
@given(moments=st.lists(st.integers(0, 90 * 24), max_size=30), hours=st.integers(0, 90 * 24), careless=st.booleans())
def test_the_future_changes_nothing(ask: Any, moments: list[int], hours: int, careless: bool) -> None:
    start = ms("2026-01-01")
    bets = tuple(
        SampleManifoldBet(id=str(i), at_ms=start + 3_600_000 * at, after=(i + 1) / 40)
        for i, at in enumerate(sorted(moments))
    )
    end = start + 3_600_000 * hours + 1
    cutoff = AsOf(at=datetime.fromtimestamp(end / 1000, UTC))
    answers = []
    for known in (bets, tuple(bet for bet in bets if bet.at_ms <= end)):
        try:
            answers.append(ask(fake(known, careless=careless).server(), make, CONTRACT, cutoff))
        except PricesUnavailable:
            answers.append([])
    assert answers[0] == answers[1]
    assert bool(answers[0]) == any(bet.at_ms <= end for bet in bets)
