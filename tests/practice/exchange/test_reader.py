"""Scripted models read what they are shown: reports on the matter, the price, and nothing else."""

import json
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from foretell.forecasters import CannotForecast, Context
from foretell.forecasters.prompt import BOTH, SOURCES, ContextView, PredictionContext, RankedSource, ranked, render
from foretell.practice.exchange import OracleForecaster, SimulatedEvent, SimulatedWorld, SimulationSettings, news_reader
from foretell.practice.models import ModelQuery
from foretell.questions import AsOf, Question, Snapshot, Target

WORLD = SimulatedWorld(SimulationSettings(seed=2, days=4, warm_up=6, events_per_day=10))


def question_of(event: SimulatedEvent, second: float) -> Question:
    book = WORLD.book(event)
    at = event.place(second)
    moment = AsOf(at=WORLD.settings.begins, mode="live").at + timedelta(
        seconds=second - WORLD.settings.begins.timestamp()
    )
    shots = [
        Snapshot(at=moment, yes_bid=book.bid[row, at], yes_ask=book.ask[row, at], no_ask=1 - book.bid[row, at])
        for row in range(len(event.tickers))
    ]
    return Question(
        id=f"kalshi/{event.ticker}",
        source="kalshi",
        text=event.words.title,
        due=moment,
        criteria="\n".join(event.rules),
        exclusivity="at most one" if event.exclusive else "independent",
        targets=tuple(
            Target(id=ticker, label=label, snapshot=shot)
            for ticker, label, shot in zip(event.tickers, event.labels, shots, strict=True)
        ),
    )


def asked(
    model: str, event: SimulatedEvent, second: float, view: ContextView, about: SimulatedEvent | None = None
) -> np.ndarray:
    question = question_of(event, second)
    as_of = AsOf(at=question.due, mode="live")
    out = [item for item in WORLD.news if item.event == (about or event).ticker and item.published <= question.due]
    found = [
        RankedSource(
            url=f"https://news.example{item.path}", title=item.title, summary=item.text, published=item.published
        )
        for item in reversed(out)
    ]
    context = PredictionContext(question=question, as_of=as_of, sources=ranked(found[:9]))
    schema = {"properties": {"rationale": {}, "probabilities": {"properties": {key: {} for key in event.tickers}}}}
    text = render(context, view)
    heard = ModelQuery(format="openai", hash="h", json={}, model=model, words=text, last=text, schema=schema)
    return np.array(list(json.loads(news_reader(heard).text)["probabilities"].values()))


def score(model: str, view: ContextView = BOTH) -> float:
    """Mean squared distance from the truth, two thirds on the way of every event."""
    gaps = []
    for event in WORLD.events:
        second = event.life.opens + (event.life.ends - event.life.opens) * 2 // 3
        gaps.append(np.mean((asked(model, event, second, view) - event.p[:, event.place(second)]) ** 2))
    return float(np.mean(gaps))


def half() -> float:
    seconds = [e.life.opens + (e.life.ends - e.life.opens) * 2 // 3 for e in WORLD.events]
    return float(
        np.mean([np.mean((0.5 - e.p[:, e.place(s)]) ** 2) for e, s in zip(WORLD.events, seconds, strict=True)])
    )


def test_reading_helps_prices_help_more_and_bad_habits_hurt():
    both, sources = score("reader-1"), score("reader-1", SOURCES)
    assert both < sources < 0.6 * half()
    assert both < score("hasty-1")
    assert both < score("bold-1")


def test_an_equal_request_has_an_equal_answer():
    event = WORLD.events[0]
    first, again = (asked("hasty-1", event, event.life.opens + 7200, BOTH) for _ in range(2))
    assert (first == again).all()


@pytest.mark.parametrize("kind", ["yes-no", "race", "ladder"])
def test_reports_on_another_matter_are_not_believed(kind: str):
    event, other = [one for one in WORLD.events if one.kind == kind][:2]
    second = event.life.ends - 3600.0
    told = asked("reader-1", event, second, SOURCES)
    strange = asked("reader-1", event, second, SOURCES, about=other)
    assert not np.allclose(told, strange)
    assert len(set(strange.tolist())) == 1


def test_parts_other_than_forecasts_are_played_by_the_usual_fake():
    schema = {"properties": {"queries": {"type": "array"}}}
    heard = ModelQuery(
        format="openai", hash="h", json={}, model="reader", words="# Question\n\nSnow?", last="x", schema=schema
    )
    assert json.loads(news_reader(heard).text)["queries"]


async def _oracle(question: Question) -> dict[str, float]:
    as_of = AsOf(at=question.due, mode="live")
    return dict((await OracleForecaster(world=WORLD).forecast(question, Context(as_of=as_of))).p)


def test_the_oracle_says_the_truth_and_knows_no_other_world():
    import asyncio

    event = WORLD.events[0]
    question = question_of(event, event.life.opens + 7200.0)
    p = asyncio.run(_oracle(question))
    assert list(p.values()) == event.p[:, 2].tolist()
    with pytest.raises(CannotForecast, match="not of this world"):
        asyncio.run(_oracle(replace(question, targets=(Target(id="elsewhere"),))))
