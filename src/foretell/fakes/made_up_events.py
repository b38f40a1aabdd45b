"""What the made-up markets list: a few open events of every sort, closing in days and weeks from now."""

from datetime import UTC, datetime, timedelta

from foretell.fakes.markets import (
    FakeAnswer,
    FakeAsked,
    FakeBinary,
    FakeContract,
    FakeEvent,
    FakeGroup,
    FakeMarket,
    KalshiCatalogue,
    ManifoldCatalogue,
    MetaculusCatalogue,
    PolymarketCatalogue,
    arena_body,
    contract_body,
    event_body,
    group_body,
    post_body,
)

__all__ = ["arena_events", "kalshi_events", "manifold_events", "metaculus_events", "polymarket_events"]
SPREAD = 0.03


def _in(now: datetime, days: float) -> str:
    return (now + timedelta(days=days)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _market(ticker: str, label: str, p: float, closes: str, volume: float) -> FakeMarket:
    return FakeMarket(
        ticker=ticker,
        label=label,
        bid=round(p - SPREAD / 2, 2),
        ask=round(p + SPREAD / 2, 2),
        last=p,
        volume=volume,
        volume_24h=volume / 20,
        open_interest=volume / 2,
        closes=closes,
        rules=f"Resolves to yes if it is {label}.",
    )


def kalshi_events(now: datetime) -> KalshiCatalogue:
    """One of which exactly one market comes true, a ladder, and a single market."""
    soon, later, last = _in(now, 3), _in(now, 12), _in(now, 30)
    rate = [("CUT", "Cut", 0.41), ("HOLD", "Hold", 0.55), ("HIKE", "Hike", 0.04)]
    snow = [("5", "Above 5 cm", 0.7), ("10", "Above 10 cm", 0.45), ("20", "Above 20 cm", 0.2)]
    events = [
        FakeEvent(
            ticker="KXNORGES-NEXT",
            series="KXNORGES",
            title="What does Norges Bank do with its rate?",
            exclusive=True,
            category="Economics",
            markets=tuple(_market(f"KXNORGES-NEXT-{id}", label, p, later, 4000) for id, label, p in rate),
        ),
        FakeEvent(
            ticker="KXSNOWOSLO-NEXT",
            series="KXSNOWOSLO",
            title="How much snow falls in Oslo this week?",
            category="Climate and Weather",
            markets=tuple(_market(f"KXSNOWOSLO-NEXT-{id}", label, p, soon, 900) for id, label, p in snow),
        ),
        FakeEvent(
            ticker="KXLAUNCH-NEXT",
            series="KXLAUNCH",
            title="Does the rocket launch this month?",
            category="Science and Technology",
            markets=(_market("KXLAUNCH-NEXT-YES", "It launches", 0.35, last, 2500),),
        ),
    ]
    return KalshiCatalogue([event_body(event) for event in events])


def polymarket_events(now: datetime) -> PolymarketCatalogue:
    """A race with two candidates, of whom one wins."""
    ends = _in(now, 20)
    names = (("Ada Berg", 0.52), ("Bo Lind", 0.47))
    markets = tuple(
        FakeBinary(
            condition="0x" + f"{n:x}" * 64,
            question=f"Does {name} win the race?",
            label=name,
            bid=p - 0.01,
            ask=p + 0.01,
            last=p,
            prices=(f"{p:g}", f"{1 - p:g}"),
            volume=8000,
            ends=ends,
        )
        for n, (name, p) in enumerate(names, start=1)
    )
    figures = {"volume": 16000, "volume24hr": 900, "liquidity": 3000, "openInterest": 5000}
    group = FakeGroup(
        id="701", title="Who wins the race?", markets=markets, negative_risk=True, tags=("Politics",), figures=figures
    )
    return PolymarketCatalogue([group_body(group) | {"endDate": ends}])


def manifold_events(now: datetime) -> ManifoldCatalogue:
    """A yes-or-no market and one with answers."""
    closes = int((now + timedelta(days=9)).timestamp() * 1000)
    answers = tuple(FakeAnswer(id=f"ans{n}abcdefgh", text=f"Team {n}", p=p) for n, p in enumerate((0.5, 0.3, 0.2)))
    return ManifoldCatalogue(
        [
            contract_body(
                FakeContract(
                    id="madeUpModel1", question="A new AI model by then?", p=0.63, volume=2000, closes_ms=closes
                )
            ),
            contract_body(
                FakeContract(
                    id="madeUpLeague",
                    question="Who leads the league then?",
                    answers=answers,
                    kind="MULTIPLE_CHOICE",
                    volume=1500,
                    closes_ms=closes,
                )
            ),
        ]
    )


def metaculus_events(now: datetime) -> MetaculusCatalogue:
    """A binary question with a community prediction."""
    asked = FakeAsked(
        id=9101,
        title="Is the treaty signed this month?",
        centers=(0.28,),
        opens=_in(now, -30),
        closes=_in(now, 25),
        resolves=_in(now, 26),
    )
    return MetaculusCatalogue([post_body(9001, "Is the treaty signed this month?", asked)])


def arena_events(now: datetime) -> list[dict[str, object]]:
    """One event with a crowd."""
    window = {"taken_at": _in(now, -1), "crowd": {"Red": 0.6, "Blue": 0.4}}
    told = {"close_at": _in(now, 6), "windows": [window], "category": "Sports"}
    return [arena_body("cup-final", "Who wins the cup?", {"Red": None, "Blue": None}, **told)]
