"""`foretell ask` without a model: public markets and series first, the wording last, and notes on what is unknown."""

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from rich.console import Console

from fakes.samples import (
    SampleManifoldMarket,
    SamplePolymarketEvent,
    SamplePolymarketMarket,
    manifold_market_body,
    polymarket_event_body,
)
from foretell import ask
from foretell.data.markets.listing import ListedEvent
from foretell.data.markets.polymarket import PolymarketEvents
from foretell.forecasters.base_rates.same_question import compare, sense
from foretell.forecasters.series.typed_question import (
    TOUCH,
    price_answer,
    price_question,
    weather_answer,
    weather_question,
)
from foretell.operations.ask import AskResult
from foretell.practice.markets.manifold import ManifoldCatalogue, PracticeManifold
from foretell.practice.markets.polymarket import PolymarketCatalogue, PracticePolymarket
from foretell.practice.services import KEY, data_services
from foretell.questions.errors import InputError
from foretell.questions.question import Question, Snapshot, Target
from foretell.runs.public_sources import AMBIGUOUS, matches_of
from foretell.runs.settings import Settings
from foretell.web.app import create_app

NOW = datetime.now(UTC).replace(microsecond=0)
YEAR = NOW.year + 1


def market(id: str, title: str, p: float, ends: str) -> dict[str, Any]:
    polymarket_market = SamplePolymarketMarket(
        condition="0x" + id * 64, question=title, bid=p - 0.01, ask=p + 0.01, last=p, prices=(f"{p}", f"{1 - p}"),
        ends=ends, volume=9000,
    )  # fmt: skip
    return polymarket_event_body(SamplePolymarketEvent(id=id, title=title, markets=(polymarket_market,))) | {
        "endDate": ends
    }


@pytest.fixture(scope="module")
def addresses() -> Iterator[dict[str, str]]:
    """Polymarket and Manifold with the same question and with similar ones."""
    end = f"{YEAR}-12-31T23:59:00Z"
    poly = [
        market("1", f"Norway out of the EEA in {YEAR}?", 0.08, end),
        market("2", f"Norway out of the EEA in {YEAR + 1}?", 0.13, f"{YEAR + 1}-12-31T23:59:00Z"),
        market("3", f"Iceland out of the EEA in {YEAR}?", 0.05, end),
    ]
    closes = int(datetime(YEAR, 12, 31, tzinfo=UTC).timestamp() * 1000)
    mani = SampleManifoldMarket(
        id="norwayEea1", question=f"Will Norway leave the EEA by the end of {YEAR}?", p=0.2, closes_ms=closes
    )
    services: dict[str, Any] = data_services(NOW, KEY)
    services |= {
        "polymarket": PracticePolymarket(PolymarketCatalogue(poly)),
        "manifold": PracticeManifold({}, catalogue=ManifoldCatalogue([manifold_market_body(mani)])),
    }
    chosen = {name: services[name] for name in ("polymarket", "manifold", "kalshi", "yahoo", "open_meteo")}
    urls: dict[str, str] = {}
    ready, loop = threading.Event(), asyncio.new_event_loop()

    async def serve() -> None:
        from contextlib import AsyncExitStack

        async with AsyncExitStack() as stack:
            for name, service in chosen.items():
                urls[name] = (await stack.enter_async_context(service.server())).url
            ready.set()
            await stop.wait()

    stop = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(30)
    yield urls
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()


@pytest.fixture
def online(addresses: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    return Settings(home=tmp_path, addresses=addresses, network=True)


EEA = f"Will Norway leave the EEA by the end of {YEAR}?"


def test_the_same_question_answers_and_related_ones_are_only_shown(online: Settings):
    result = ask(EEA, model="none", settings=online)
    assert isinstance(result, AskResult)
    assert result.basis == "markets"
    used = {match.platform: match.price for match in result.matches if match.used}
    assert used == {"polymarket": pytest.approx(0.08, abs=0.01), "manifold": 0.2}
    low, high = result.ranges["yes"]
    assert low <= 0.088 < result.p["yes"] < 0.2 <= high
    why = {match.text: " ".join(match.differs) for match in result.matches if not match.same}
    assert "another year" in why[f"Norway out of the EEA in {YEAR + 1}?"]
    assert "Iceland" in why[f"Iceland out of the EEA in {YEAR}?"]
    shown = StringIO()
    result.print(Console(file=shown, width=200))
    assert "similarity 1.00, the same" in shown.getvalue()
    assert "only related" in str(result)
    data = result.to_dict()
    assert data["basis"] == "markets"
    assert json.loads(json.dumps(data))["matches"][0]["same"]
    # Neither price answers the negated question.
    other = ask(f"Will Norway remain in the EEA until the end of {YEAR}?", model="none", settings=online)
    assert other.basis == "wording"
    assert not any(match.used for match in other.matches)
    assert any("has the same question" in note for note in other.notes)


def test_weather_and_prices_come_from_their_series(online: Settings):
    snow = ask("Will it snow in Oslo before Christmas?", model="none", settings=online)
    assert snow.basis == "series"
    assert "Oslo, Norway" in snow.notes[0]
    low, high = snow.ranges["yes"]
    assert low <= snow.p["yes"] <= high
    nowhere = ask("Will it snow in Nowhere before Christmas?", model="none", settings=online)
    assert nowhere.basis == "wording"
    assert any("no place called Nowhere" in note for note in nowhere.notes)
    with pytest.raises(InputError, match="the number needs a model"):
        ask("How high is the tower?", range=(1, 9), model="none", settings=online)


def test_a_higher_price_of_an_earlier_day_is_pointed_out(online: Settings):
    closes = str((NOW + timedelta(days=90)).date())
    result = ask("Will Norges Bank cut its rate?", closes=closes, model="none", settings=online)
    assert result.basis == "wording"
    (floor,) = [note for note in result.notes if "cannot be lower" in note]
    assert "already says 41 %" in floor
    stays = ask("Will Norges Bank not cut its rate?", closes=closes, model="none", settings=online)
    assert not any("cannot be lower" in note for note in stays.notes)


def test_two_outcomes_of_one_event_are_never_both_the_answer():
    targets = tuple(Target(id=team, label=team, snapshot=Snapshot(at=NOW, last_price=0.5)) for team in ("Ada", "Bo"))
    event = ListedEvent(
        question=Question(id="k/1", source="kalshi", text="Ada vs Bo winner?", due=NOW, targets=targets),
        status="open",
        recurrence="",
    )
    matches = matches_of({"yes": sense("Will Ada win vs Bo?", NOW.date())}, [event], NOW.date())
    assert [match.same for match in matches] == [False, False]
    assert matches[0].differs == (AMBIGUOUS,)


def test_every_interface_shows_the_matches(online: Settings):
    with TestClient(create_app(online, token="t"), base_url="http://127.0.0.1") as client:
        data = client.get("/api/ask", params={"question": EEA}).json()
        page = client.get("/ask", params={"question": EEA}).text
    offline = create_app(replace(online, network=False), token="t")
    with TestClient(offline, base_url="http://127.0.0.1") as client:
        alone = client.get("/api/ask", params={"question": EEA}).json()
    assert data["p"] == pytest.approx(dict(ask(EEA, model="none", settings=online).p))
    assert 'id="matches"' in page
    assert "only related, not used" in page
    assert alone["basis"] == "wording"
    assert "the network is switched off" in " ".join(alone["notes"])


def test_without_a_network_notes_say_so_and_the_wording_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    services = "polymarket manifold kalshi open_meteo yahoo"
    unreachable: dict[str, str] = dict.fromkeys(services.split(), "http://127.0.0.1:1")
    result = ask(
        "Will it snow in Oslo before Christmas?",
        model="none",
        settings=Settings(home=tmp_path, addresses=unreachable, network=True),
    )
    assert result.basis == "wording"
    (unreached,) = (note for note in result.notes if note.startswith("No answer from "))
    assert "kalshi, manifold, polymarket, the series" in unreached
    assert "before" not in result.rationale
    assert "past market questions" in result.rationale
    # Past questions are uninformative about the weather, so the range is wide.
    low, high = result.ranges["yes"]
    assert low < 0.05
    assert high > 0.6
    assert any("a guess" in note for note in result.notes)


WEATHER = [
    ("Will it snow in Oslo before Christmas?", "snowfall_sum", 0.1, True, False, 39),
    ("Will it not snow in Oslo before Christmas?", "snowfall_sum", 0.1, True, True, 39),
    ("Will less than 5 cm of snow fall in Oslo in January 2027?", "snowfall_sum", 5, True, True, 31),
    ("Will 20 mm of rain fall in Bergen between 3 December 2026 and 9 December 2026?", "precipitation_sum", 20, True,
     False, 7),
    ("Will there be frost in Miami in January 2027?", "temperature_2m_min", 0, False, False, 31),
    ("Will the temperature in Yakutsk fall below -40 °C in January 2027?", "temperature_2m_min", -40, False, False, 31),
    ("Will the temperature in Yakutsk drop below minus 40 °C on 5 January 2027?", "temperature_2m_min", -40, False,
     False, 1),
    ("Will the high in Phoenix be below 50 °F on 5 January 2027?", "temperature_2m_max", 10, True, True, 1),
    ("Will the temperature in Madrid exceed 40 °C on 15 July 2027?", "temperature_2m_max", 40, True, False, 1),
]  # fmt: skip


@pytest.mark.parametrize(("text", "variable", "threshold", "above", "negated", "days"), WEATHER)
def test_weather_questions_are_parsed(
    text: str, variable: str, threshold: float, above: bool, negated: bool, days: int
):
    question = weather_question(text, date(2026, 11, 16), None)
    assert question is not None
    assert (question.variable, question.above, question.negated, question.span.days) == (variable, above, negated, days)
    assert question.threshold == pytest.approx(threshold)


@pytest.mark.parametrize(
    "text",
    [
        "Will the temperature in Oslo stay above 0 °C in January 2027?",
        "Will it rain in Paris every day of January 2027?",
        "Will it rain but not snow in Oslo on 5 January 2027?",
        "Will the average temperature in Oslo exceed 3 °C in January 2027?",
        "Will it snow 3 times and 5 cm deep in Oslo in January 2027?",
        "Will Snow White gross over $100 million in France by 2027?",
        "Will Jon Snow return in London in January 2027?",
        "Will there be less than 3 days of rain in Paris in December 2026?",
        "Will the temperature anomaly in Europe exceed 2 degrees in December 2026?",
        "Will it rain in London on 3 December 2026 or 4 December 2026?",
    ],
)
def test_ambiguous_weather_questions_are_not_parsed(text: str):
    assert weather_question(text, date(2026, 11, 16), None) is None


def test_a_negated_weather_question_has_the_complementary_probability():
    question = weather_question("Will it not snow in Oslo in January 2027?", date(2026, 11, 16), None)
    assert question is not None
    past = {year: [1.0] * 31 if year % 3 else [0.0] * 31 for year in range(2011, 2026)}
    no, yes = (weather_answer(replace(question, negated=flag), past, {}, date(2026, 11, 16)) for flag in (True, False))
    assert no.p == pytest.approx(1 - yes.p)
    assert no.interval == pytest.approx((1 - yes.interval[1], 1 - yes.interval[0]))
    warm = weather_question("Will it reach 95 degrees in Boston on 4 July 2027?", date(2026, 11, 16), None)
    assert warm is not None
    assert warm.scale_unstated
    assert warm.in_fahrenheit().threshold == pytest.approx(35)


def test_weather_numbers_have_quantiles(online: Settings):
    day = (NOW + timedelta(days=60)).date()
    text = f"What will the maximum temperature in Oslo be on {day}?"
    result = ask(text, range=(-40, 40, "°C"), model="none", settings=online)
    assert result.basis == "series"
    assert result.quantiles is not None
    assert result.quantiles["q05"] < result.quantiles["q50"] < result.quantiles["q95"]
    american = ask(text, range=(-40, 104, "°F"), model="none", settings=online)
    assert american.quantiles is not None
    assert american.quantiles["q50"] == pytest.approx(result.quantiles["q50"] * 1.8 + 32, abs=1e-3)
    snow = f"How much snow will fall in Oslo on {day}?"
    fallen = ask(snow, range=(0, 100, "cm"), model="none", settings=online).quantiles
    assert fallen is not None
    assert fallen["q05"] >= 0


@pytest.mark.parametrize(
    "text", ["asdf qwer zxcv", "Wird es in Berlin vor Weihnachten schneien?", "明日、東京で雨が降りますか?"]
)
def test_unknown_words_give_a_wide_range(text: str, tmp_path: Path):
    result = ask(text, model="none", settings=Settings(home=tmp_path, network=False))
    low, high = result.ranges["yes"]
    assert high - low > 0.5
    assert any("even the range is a guess" in note for note in result.notes)


def test_a_question_without_words_is_refused_and_several_outcomes_have_their_own_reason(tmp_path: Path):
    home = Settings(home=tmp_path, network=False)
    with pytest.raises(InputError, match="no words"):
        ask("???", model="none", settings=home)
    undated = ask("Will it snow in Oslo?", model="none", settings=home)
    assert any("say when it closes" in note for note in undated.notes)
    result = ask("Who wins?", model="none", options=("Ann", "Bob", "Cy"), settings=home)
    assert "exactly one comes true" in result.rationale
    assert "this one" not in result.rationale


def test_recorded_search_responses_can_be_read(shared_data: Path):
    from foretell.data.markets.market import read_open
    from foretell.data.payload import Payload
    from foretell.questions.as_of import AsOf

    recorded = json.loads((shared_data / "wire/services/polymarket/n_search_response.json").read_text())
    rows = Payload(url="x", path="", value=recorded["body"]).rows("events")
    as_of = AsOf(at=datetime(2026, 3, 10, tzinfo=UTC), mode="live")
    reader: Any = PolymarketEvents(None)  # pyright: ignore[reportArgumentType]
    events = asyncio.run(read_open(reader, rows, as_of))
    assert events
    assert all(target.snapshot is not None for event in events for target in event.question.targets)


DUE = date(2026, 11, 1)
SAME = [
    ("US recession in 2027?", "Will there be a recession in the United States by the end of 2027?"),
    ("Will Bitcoin hit $150k by 31 December 2026?", "Bitcoin above $150,000 in 2026?"),
    ("Will the Fed cut rates in December 2026?", "Federal Reserve to lower rates in December 2026?"),
    ("Musk out as Tesla CEO in 2027?", "Will Elon Musk cease to be CEO of Tesla before 2028?"),
]
OTHERS = [
    ("Will Bitcoin hit $150k by 31 December 2026?", "Will Bitcoin hit $140k by 31 December 2026?"),
    ("Will Bitcoin hit $150k by 31 December 2026?", "Will Bitcoin be above $150k on 31 December 2026?"),
    ("Will Bitcoin hit $150k by 31 December 2026?", "Will Bitcoin hit $150k by 31 December 2027?"),
    ("Will the Fed cut rates in December 2026?", "Will the Fed raise rates in December 2026?"),
    ("Will the Fed cut rates in December 2026?", "Will the ECB cut rates in December 2026?"),
    ("Will India invade Pakistan before July 2027?", "Will Pakistan invade India before July 2027?"),
    ("Will Real Madrid win La Liga in 2027?", "Will Real Betis win La Liga in 2027?"),
    ("Will A win the most seats in 2027?", "Will A win the second most seats in 2027?"),
    ("Will Ada Berg win in 2027?", "Will Eva Berg win in 2027?"),
    ("Will it win in the week of 3 May 2027?", "Will it win in the week of 26 April 2027?"),
    ("Will Arthur Fery win the Fery vs Lindt match?", "Will Yan Lindt win the Fery vs Lindt match?"),
    ("Will Ada win the 2026-27 league?", "Will Ada win the 2027-28 league?"),
    ("Will it happen in 2027?", "Will it not happen in 2027?"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_paraphrases_are_the_same_question(one: str, other: str):
    a, b = sense(one, DUE), sense(other, DUE)
    assert compare(a, b, DUE).same, compare(a, b, DUE)
    assert compare(b, a, DUE).same


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_similar_wording_with_another_meaning_is_another_question(one: str, other: str):
    a, b = sense(one, DUE), sense(other, DUE)
    assert not compare(a, b, DUE).same
    assert compare(a, b, DUE).differs
    assert not compare(b, a, DUE).same


def test_long_and_strange_texts_are_parsed_fast():
    for text in ("A" * 200_000, "1," * 100_000, "Will " * 50_000, "‹date›" * 1000, "$" * 5000, "A b " * 50_000):
        meaning = sense(text, DUE)
        assert compare(meaning, meaning, DUE).similarity in (0.0, 1.0)
        assert weather_question(text, DUE, None) is None
        assert price_question(text, DUE, None) is None


def test_prices_follow_a_random_walk():
    chance = np.random.default_rng(1)
    values = 100 * np.exp(np.cumsum(chance.normal(0, 0.02, 600)))
    values *= 100 / values[-1]

    def p(text: str) -> float:
        question = price_question(text, DUE, None)
        assert question is not None, text
        return price_answer(replace(question, symbol="BTC-USD"), values, DUE).p

    ends = [p(f"Will Bitcoin be above ${level} on 31 December 2026?") for level in (60, 90, 100, 110, 160)]
    assert ends == sorted(ends, reverse=True)
    assert ends[2] == pytest.approx(0.5, abs=0.01)
    assert p("Will Bitcoin hit $120 by 31 December 2026?") == pytest.approx(
        TOUCH * p("Will Bitcoin be above $120 on 31 December 2026?")
    )
    question = price_question("Will the euro be above $1.01 on 31 December 2026?", DUE, None)
    assert question is not None
    assert price_answer(question, np.ones(600), DUE).p < 0.2  # Even a constant price may move.
    for text, symbol in (("the S&P 500", "^GSPC"), ("the S&P 500 (SPY)", "SPY"), ("NVDA", "NVDA"), ("Nvidia", "NVDA")):
        question = price_question(f"Will {text} close above 7,000 on 31 December 2026?", DUE, None)
        assert question is not None, text
        assert (question.symbol, question.threshold) == (symbol, 7000)
    euro = price_question("Will the euro be worth more than 1.20 dollars at the end of 2026?", DUE, None)
    assert euro is not None
    assert (euro.symbol, euro.threshold, euro.touch) == ("EURUSD=X", 1.2, False)
    assert price_question("Will a spy close above 700 on 31 December 2026?", DUE, None) is None
    assert price_question("Will Bitcoin hit $1m before GTA VI?", DUE, date(2026, 12, 1)) is None
    assert price_question("Will MicroStrategy hold 600k BTC by 31 December 2026?", DUE, None) is None


@pytest.mark.parametrize(
    "text", ["Who will win the cup?", "how many goals will fall?", "What is the next pope's name?"]
)
def test_questions_without_a_yes_or_no_answer_are_refused_with_a_hint(text: str, tmp_path: Path):
    with pytest.raises(InputError, match="has no probability of yes") as refused:
        ask(text, model="none", settings=Settings(home=tmp_path, network=False))
    assert "`options`" in str(refused.value)
    assert ask(text, model="none", options=("A", "B"), settings=Settings(home=tmp_path, network=False)).p.keys() == {
        "A",
        "B",
    }


@pytest.mark.parametrize(
    "text",
    [
        "Will it rain in Paris tomorrow?",
        "Will the temperature in Berlin exceed 20 degrees on 1 December 2027?",
        "How likely is it that Norway leaves the EEA by 2030?",
        "What are the odds that gold is above $5000 on 15 January 2030?",
    ],
)
def test_reasons_agree_with_the_direction_of_the_answer(text: str, tmp_path: Path):
    result = ask(text, model="none", settings=Settings(home=tmp_path, network=False))
    usual = re.search(r"resolve yes (\d+) %", result.rationale)
    assert usual is not None
    above = result.p["yes"] > int(usual[1]) / 100
    assert ("lowers" if above else "raises") not in result.rationale
    assert " 1 days" not in result.rationale
