"""Scripted models use only the reports on the event and its price."""

import json
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from foretell.forecasters.forecaster import CannotForecast, Context
from foretell.forecasters.prompt.prediction_context import PredictionContext, RankedSource, ranked
from foretell.forecasters.prompt.rendering import BOTH, SOURCES, ContextView, render
from foretell.practice.exchange.events import SimulatedEvent, SimulationSettings
from foretell.practice.exchange.forecasters import OracleForecaster, news_reader
from foretell.practice.exchange.world import SimulatedWorld
from foretell.practice.models.formats import ModelQuery
from foretell.practice.models.scripts import arena_script
from foretell.practice.models.server import Script
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, Snapshot, Target

WORLD = SimulatedWorld(SimulationSettings(seed=2, days=4, warm_up=6, events_per_day=10))


def question_of(event: SimulatedEvent, second: float) -> Question:
    book = WORLD.book(event)
    at = event.place(second)
    time = AsOf(at=WORLD.settings.begins, mode="live").at + timedelta(
        seconds=second - WORLD.settings.begins.timestamp()
    )
    shots = [
        Snapshot(at=time, yes_bid=book.bid[row, at], yes_ask=book.ask[row, at], no_ask=1 - book.bid[row, at])
        for row in range(len(event.tickers))
    ]
    return Question(
        id=f"kalshi/{event.ticker}",
        source="kalshi",
        text=event.words.title,
        due=time,
        criteria="\n".join(event.rules),
        exclusivity="at most one" if event.exclusive else "independent",
        targets=tuple(
            Target(id=ticker, label=label, snapshot=shot)
            for ticker, label, shot in zip(event.tickers, event.labels, shots, strict=True)
        ),
    )


def forecast(
    model: str, event: SimulatedEvent, second: float, view: ContextView, about: SimulatedEvent | None = None
) -> np.ndarray:
    question = question_of(event, second)
    as_of = AsOf(at=question.due, mode="live")
    out = [item for item in WORLD.news if item.event == (about or event).ticker and item.published <= question.due]
    ranked_sources = [
        RankedSource(
            url=f"https://news.example{item.path}", title=item.title, summary=item.text, published=item.published
        )
        for item in reversed(out)
    ]
    context = PredictionContext(question=question, as_of=as_of, sources=ranked(ranked_sources[:9]))
    schema = {"properties": {"rationale": {}, "probabilities": {"properties": {key: {} for key in event.tickers}}}}
    text = render(context, view)
    query = ModelQuery(format="openai", hash="h", json={}, model=model, words=text, last=text, schema=schema)
    return np.array(list(json.loads(news_reader(query).text)["probabilities"].values()))


def score(model: str, view: ContextView = BOTH) -> float:
    """Return the mean squared distance from the truth after two thirds of each event."""
    gaps = []
    for event in WORLD.events:
        second = event.life.opens + (event.life.ends - event.life.opens) * 2 // 3
        gaps.append(np.mean((forecast(model, event, second, view) - event.p[:, event.place(second)]) ** 2))
    return float(np.mean(gaps))


def score_of_one_half() -> float:
    seconds = [e.life.opens + (e.life.ends - e.life.opens) * 2 // 3 for e in WORLD.events]
    return float(
        np.mean([np.mean((0.5 - e.p[:, e.place(s)]) ** 2) for e, s in zip(WORLD.events, seconds, strict=True)])
    )


def test_sources_and_prices_improve_scores_and_bad_habits_worsen_them():
    both, sources = score("reader-1"), score("reader-1", SOURCES)
    assert both < sources < 0.6 * score_of_one_half()
    assert both < score("hasty-1")
    assert both < score("bold-1")


def test_equal_requests_get_equal_answers():
    event = WORLD.events[0]
    first, again = (forecast("hasty-1", event, event.life.opens + 7200, BOTH) for _ in range(2))
    assert (first == again).all()


@pytest.mark.parametrize("kind", ["yes-no", "race", "ladder"])
def test_reports_on_another_event_have_no_effect(kind: str):
    event, other = [event for event in WORLD.events if event.kind == kind][:2]
    second = event.life.ends - 3600.0
    own = forecast("reader-1", event, second, SOURCES)
    unrelated = forecast("reader-1", event, second, SOURCES, about=other)
    assert not np.allclose(own, unrelated)
    assert len(set(unrelated.tolist())) == 1


def test_requests_other_than_forecasts_use_the_arena_script():
    schema = {"properties": {"queries": {"type": "array"}}}
    query = ModelQuery(
        format="openai", hash="h", json={}, model="reader", words="# Question\n\nSnow?", last="x", schema=schema
    )
    assert json.loads(news_reader(query).text)["queries"]


async def _oracle(question: Question) -> dict[str, float]:
    as_of = AsOf(at=question.due, mode="live")
    return dict((await OracleForecaster(world=WORLD).forecast(question, Context(as_of=as_of))).p)


def test_the_oracle_forecasts_the_truth_and_rejects_unknown_questions():
    import asyncio

    event = WORLD.events[0]
    question = question_of(event, event.life.opens + 7200.0)
    p = asyncio.run(_oracle(question))
    assert list(p.values()) == event.p[:, 2].tolist()
    with pytest.raises(CannotForecast, match="not in the simulated world"):
        asyncio.run(_oracle(replace(question, targets=(Target(id="elsewhere"),))))


@pytest.mark.parametrize("script", [news_reader, arena_script])
@pytest.mark.parametrize("model", ["hasty-1", "bold-1"])
def test_replies_do_not_depend_on_the_ports_of_local_servers(script: Script, model: str):
    schema = {"properties": {"rationale": {}, "probabilities": {"properties": {"A": {}}}}}

    def reply(port: int) -> float:
        source = f"[1] News (2026-11-01; http://localhost:{port}/courier/7)\nThe paper says nothing."
        text = f"It is 2026-11-02.\n- `A`: A\n- `A`: implied probability 0.4\n# Sources\n{source}"
        query = ModelQuery(format="openai", hash="h", json={}, model=model, words=text, last=text, schema=schema)
        return json.loads(script(query).text)["probabilities"]["A"]

    assert reply(8123) == reply(40123) == reply(50321)
