"""What a model remembers: asked directly, compared with outcomes, and with forecasts with and without sources."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from tests.forecasters.context.doubles import CUP, SNOW, VISITS, run_context, shared, words

from foretell.forecasters.prompt.elicitation import OutcomeNames
from foretell.metrics import Resampling
from foretell.models.model import ModelError, Reply, Request
from foretell.models.providers.scripted import ScriptedModel
from foretell.models.structured_output import UnusableReply
from foretell.questions.question import Question
from foretell.report.document import markdown_study, study_page
from foretell.studies.memorization import (
    PastEvent,
    RecallResult,
    Recollection,
    memorization_study,
    read_recollection,
    recall_events,
)

QUICK = Resampling(draws=200)
NAMES = OutcomeNames.of(CUP)
WON = PastEvent(context=shared(), truth={"Red Team": 1, "Blue Team": 0})


def recollection_reply(recognised: Any, recalled: Any = None, p: Any = None, **more: Any) -> dict[str, Any]:
    usual = {"facts": ["2 to 1", "in Oslo"], "rationale": "r"}
    probabilities = {"target_1": 0.9, "target_2": 0.1} if p is None else p
    return {"recognised": recognised, "recalled": recalled, "probabilities": probabilities, **usual, **more}


@pytest.mark.parametrize(
    ("recognised", "recalled", "expected"),
    [
        (True, {"target_1": "yes", "target_2": "no"}, "right"),
        (True, {"target_1": "yes"}, "right"),
        (True, {"target_2": "yes", "target_1": "no"}, "wrong"),
        (True, {"target_1": "yes", "target_2": "yes"}, "wrong"),
        (True, {"target_1": "unknown"}, "vague"),
        ("true", None, "vague"),
        (True, {"somebody": "yes"}, "vague"),
        (False, {"target_1": "yes"}, "none"),
        ("no", {}, "none"),
    ],
)
def test_memories_are_compared_with_outcomes(recognised: Any, recalled: Any, expected: str) -> None:
    assert read_recollection(recollection_reply(recognised, recalled), NAMES).compared_with(WON.truth) == expected


@pytest.mark.parametrize(
    "bad",
    [
        recollection_reply(None),
        recollection_reply("perhaps"),
        recollection_reply(3),
        {"recognised": True},
        recollection_reply(True, p={"target_1": 2.5, "target_2": 0}),
        recollection_reply(True, p="<b>"),
        recollection_reply(True, p={"target_1": 0.5}),
    ],
)
def test_unusable_replies_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(UnusableReply):
        read_recollection(bad, NAMES)


def test_odd_parts_of_a_usable_reply_are_ignored() -> None:
    odd = recollection_reply(True, ["yes"], facts=[1, None, "x" * 5000, {"a": 1}, " "], rationale={"a": 1})
    recollection = read_recollection(odd, NAMES)
    assert recollection.recalled == {}
    assert [len(fact) for fact in recollection.facts] == [300]
    assert read_recollection(recollection_reply(False, {"target_1": "yes"}, facts="none"), NAMES).facts == ()


def test_event_without_a_known_outcome_is_refused() -> None:
    for truth in ({}, {"Green": 1}):
        with pytest.raises(ValueError, match="no known outcome"):
            PastEvent(context=shared(), truth=truth)


def remember(script: Any, events: list[PastEvent]) -> tuple[list[RecallResult], ScriptedModel]:
    model = ScriptedModel(script)
    return asyncio.run(recall_events(events, lambda question: run_context(model))), model


def speak(request: Request) -> Any:
    fields = request.schema["properties"]
    if "recognised" in fields:
        recalled = {key: "yes" if n == 0 else "no" for n, key in enumerate(fields["probabilities"]["properties"])}
        p = {key: 0.9 if n == 0 else 0.05 for n, key in enumerate(recalled)}
        return Reply(text=json.dumps(recollection_reply(True, recalled, p)))
    sources = "news.example" in words(request)
    p = {
        key: (0.8 if sources else 0.6) if n == 0 else 0.3 for n, key in enumerate(fields["probabilities"]["properties"])
    }
    return Reply(text=json.dumps({"rationale": "r", "probabilities": p}))


def test_each_event_is_asked_three_ways_and_never_with_the_market() -> None:
    (result,), model = remember(speak, [WON])
    assert result.memory == "right"
    assert result.without is not None
    assert result.with_sources is not None
    assert result.with_sources.p["Red Team"] > result.without.p["Red Team"]
    assert len(model.requests) == 3
    assert all("0.613" not in words(request) for request in model.requests)
    (request,) = [words(request) for request in model.requests if "recognised" in request.schema["properties"]]
    for wanted in ("Who wins the cup?", "Sports", "It ended at 2026-01-20 20:00 UTC", "named by the association"):
        assert wanted in request


@pytest.mark.parametrize("bad", ["<html>" * 100_000, "{}", ModelError("down")])
def test_unusable_answers_are_counted(bad: Any) -> None:
    results, _ = remember(lambda request: bad, [WON])
    assert results[0].memory is None
    assert len(results[0].problems) == 3
    study = memorization_study({"scripted:x": results}, QUICK)
    assert study.table("Recall by model").rows[0].values[:2] == (0, None)
    assert any("were not usable" in note for note in study.notes)


def recall_result(question: Question, memory: str, n: int, *, p: float = 0.5) -> RecallResult:
    question = replace(question, id=f"{question.id}{n}", cluster=f"{question.id}{n}")
    context = shared(question)
    truth = {target.id: int(place == 0) for place, target in enumerate(question.targets)}
    recalled = {"right": truth, "wrong": {t: 1 - o for t, o in truth.items()}, "vague": {}, "none": {}}[memory]
    recollection = Recollection(
        recognised=memory != "none", recalled=recalled, facts=("one",) * (memory != "none"), p={t: p for t in truth}
    )
    return RecallResult(
        past=PastEvent(context=context, truth=truth), recollection=recollection, without=None, with_sources=None
    )


def test_report_by_model_and_category() -> None:
    group = [
        *(recall_result(CUP, "right", n) for n in range(6)),
        *(recall_result(CUP, "none", n) for n in range(6, 8)),
        *(recall_result(replace(VISITS, category="Politics"), "wrong", n) for n in range(3)),
        recall_result(replace(VISITS, category="Politics"), "right", 3),
        recall_result(SNOW, "vague", 1),
    ]
    study = memorization_study({"openai:gpt-5.4": group, "scripted:other": group[:1]}, QUICK)
    first = study.table("Recall by model").rows[0].values
    assert first[0] == 13
    assert [round(interval.estimate, 4) for interval in first[1:6]] == [
        round(x, 4) for x in (11 / 13, 7 / 13, 3 / 13, 1 / 13, 3 / 10)
    ]
    assert first[6] == 1.0
    categories = {entry.name: entry.values for entry in study.table("Recall by category").rows}
    assert set(categories) == {
        "no category · openai:gpt-5.4",
        "Politics · openai:gpt-5.4",
        "Sports · openai:gpt-5.4",
        "Sports · scripted:other",
    }
    politics = categories["Politics · openai:gpt-5.4"]
    assert politics[0] == 4
    assert politics[5].estimate == 0.75
    assert politics[5].low < 0.75 < politics[5].high < 1
    scores = {entry.name: entry.values for entry in study.table("Brier score by way of asking").rows}
    assert scores["openai:gpt-5.4 · all events"][1].estimate == pytest.approx(0.25)
    assert scores["openai:gpt-5.4 · recalled right"][0] == 7
    assert scores["openai:gpt-5.4 · all events"][4] is None
    notes = " ".join(study.notes)
    assert "11 claims to remember come with fewer than 2 details" in notes
    assert "13 events ended after its knowledge cutoff, 2025-08-31" in notes
    assert "knowledge cutoff is not known" in notes
    assert "Recall by category" in markdown_study(study)
    assert "mis-recall" in study_page(study)


def test_the_gain_from_sources_is_paired() -> None:
    questions = [replace(CUP, id=f"c{n}", cluster=f"c{n}") for n in range(12)]
    results, _ = remember(
        speak, [PastEvent(context=shared(q), truth={"Red Team": 1, "Blue Team": 0}) for q in questions]
    )
    study = memorization_study({"scripted:x": results}, QUICK)
    row = study.table("Brier score by way of asking").rows[0].values
    without, with_sources, gain = row[2].estimate, row[3].estimate, row[4]
    assert gain.diff == pytest.approx(without - with_sources)
    assert gain.diff > 0
    assert row[1].estimate == pytest.approx((0.1**2 + 0.05**2) / 2)


def test_events_are_recalled_over_http(tmp_path) -> None:
    from fakes.models import FakeModels
    from foretell.models.router import ModelRouter
    from foretell.practice.models.scripts import arena_script

    async def run(name: str) -> list[RecallResult]:
        async with FakeModels(arena_script) as fake:
            addresses = {"openai": f"{fake.url}/v1"}
            async with ModelRouter({"OPENAI_API_KEY": "k"}, addresses=addresses) as exchange:
                context = run_context(exchange)
                context = replace(context, models=context.models.with_model("agent", name))
                return await recall_events([WON], lambda question: context)

    (scholar,) = asyncio.run(run("openai:scholar"))
    assert scholar.memory == "right"
    assert len(scholar.recollection.facts) == 2
    (clumsy,) = asyncio.run(run("openai:clumsy"))
    assert clumsy.memory is not None
    (stubborn,) = asyncio.run(run("openai:stubborn"))
    assert stubborn.memory is None
