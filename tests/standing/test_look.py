"""What a look reads of an exchange, a series and a corpus, within the settings of a machine."""

import asyncio
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.practice.exchange.test_exchange import SETTINGS, WORLD

from foretell.data.corpus import Corpus, CorpusDocument
from foretell.practice.exchange.server import KALSHI, SimulatedExchange
from foretell.questions.question import Question, SeriesRef, Target
from foretell.runs.settings import Settings
from foretell.standing.look import PublicLook, Sighting, new_value
from foretell.standing.record import StandingQuestion

NOW = SETTINGS.start + timedelta(days=4, hours=10, minutes=30)


def seen(home: Path, question: Question, addresses: dict[str, str] | None = None, **settings: Any) -> Sighting:
    standing = StandingQuestion(id="watched", question=question, opened_at=NOW, settings=settings)
    look = PublicLook(settings=Settings(home=home, addresses=addresses or {}, network=False))
    return asyncio.run(look.read(standing, NOW))


def test_the_prices_of_a_question_s_own_market_are_read(tmp_path: Path) -> None:
    event = next(
        event
        for event in WORLD.events
        if event.life.opens + 3 * 86_400 < NOW.timestamp() < event.life.ends - 86_400 and not event.thin
    )
    targets = tuple(Target(id=ticker) for ticker in event.tickers)
    question = Question(
        id=f"kalshi/{event.ticker}", source="kalshi", kind="market", text="Which?", due=NOW, targets=targets
    )

    async def main() -> Sighting:
        exchange = SimulatedExchange(WORLD, lambda: NOW)
        async with exchange.server() as server:
            settings = Settings(home=tmp_path, addresses={"kalshi": f"{server.url}{KALSHI}"}, network=False)
            standing = StandingQuestion(id="watched", question=question, opened_at=NOW)
            return await PublicLook(settings=settings).read(standing, NOW)

    sighting = asyncio.run(main())
    assert sighting.problems == ()
    assert sighting.prices.keys() == {target.id for target in targets}
    assert all(0 < price < 1 for price in sighting.prices.values())
    assert {past.target for past in sighting.history} == sighting.prices.keys()
    assert max(past.at for past in sighting.history) <= NOW


def test_the_newest_value_of_the_deciding_series_is_read(tmp_path: Path) -> None:
    (tmp_path / "series").mkdir()
    day = (NOW - timedelta(days=1)).date()
    rows = [f"{day - timedelta(days=back)},{10 - back}" for back in range(5)]
    (tmp_path / "series" / "index.csv").write_text("\n".join(["date,value", *rows]), encoding="utf-8")
    question = Question(
        id="own/1",
        source="own",
        text="Will the index be above 12?",
        due=NOW,
        series=SeriesRef(provider="csv", id="index"),
        targets=(Target(id="yes"),),
    )
    sighting = seen(tmp_path, question)
    assert (sighting.value, sighting.value_day) == (10.0, day.isoformat())
    assert new_value(sighting).text.startswith(f"csv/index was at 10 on {day}")


def test_saved_searches_read_the_corpus_up_to_now(tmp_path: Path) -> None:
    with closing(Corpus(tmp_path / "corpus.db")) as corpus:
        corpus.add(
            CorpusDocument(
                url=f"https://a.example/{n}", title="Tram", text=f"The tram number {n} is late.", published=at
            )
            for n, at in enumerate((NOW - timedelta(days=2), NOW + timedelta(days=2)))
        )
    question = Question(id="own/1", source="own", text="Will it rain?", due=NOW, targets=(Target(id="yes"),))
    assert seen(tmp_path, question).documents == ()
    sighting = seen(tmp_path, question, watch={"searches": ["tram late"]})
    assert [item.url for item in sighting.documents] == ["https://a.example/0"]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    question = Question(
        id="kalshi/KXNONE-26",
        source="kalshi",
        kind="market",
        text="Which?",
        due=NOW,
        targets=(Target(id="KXNONE-26-A"),),
    )
    sighting = seen(tmp_path, question, {"kalshi": "http://127.0.0.1:9/trade-api/v2"})
    assert sighting.prices == {}
    assert sighting.problems[0].startswith("kalshi: ")
