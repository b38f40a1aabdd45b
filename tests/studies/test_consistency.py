"""Chains and exclusive sets: declared, read from the wording or found by a judge; scores match hand computations."""

import asyncio
import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forecasters.context.doubles import CUP, SNOW, VISITS

from foretell.metrics import Resampling
from foretell.models.model import ModelError, Reply
from foretell.models.providers.scripted import ScriptedModel
from foretell.models.structured_output import UnusableReply
from foretell.questions.question import Question, Target
from foretell.report.document import markdown_study, study_page
from foretell.studies.cases import StatedForecast
from foretell.studies.consistency import (
    ChainLink,
    OutcomeStructure,
    consistency_score,
    consistency_study,
    is_circular,
    judge_structures,
    maximal_paths,
    plain_structure,
    read_structure,
)

QUICK = Resampling(draws=200)


def ladder(*strikes: str, **more: Any) -> Question:
    targets = tuple(Target(id=strike, label=strike) for strike in strikes)
    return Question(id="gas", source="kalshi", text="Gas price on Friday?", due="2026-01-10", targets=targets, **more)


GAS = ladder("Above 3.10", "Above 3.20", "Above 3.15")


def names(structure: OutcomeStructure) -> list[list[str]]:
    return [[link.target for link in chain] for chain in structure.chains]


def test_declared_sets_and_worded_ladders_need_no_model() -> None:
    assert plain_structure(CUP) == OutcomeStructure(exclusive=("Red Team", "Blue Team"))
    assert names(plain_structure(GAS)) == [["Above 3.20", "Above 3.15", "Above 3.10"]]
    assert plain_structure(VISITS) == OutcomeStructure()
    assert plain_structure(SNOW) == OutcomeStructure()


def test_the_other_side_of_a_value_counts_as_its_complement() -> None:
    (chain,) = plain_structure(ladder("Above 3.10", "3.15 or below", "Above 3.20")).chains
    assert chain == (
        ChainLink(target="Above 3.20"),
        ChainLink(target="3.15 or below", negated=True),
        ChainLink(target="Above 3.10"),
    )
    assert chain[1].chance({"3.15 or below": 0.7}) == pytest.approx(0.3)


def test_strikes_on_different_days_are_not_compared() -> None:
    days = tuple(
        replace(target, resolves_at=day)
        for target, day in zip(GAS.targets, ("2026-02-01", "2026-03-01", "2026-04-01"), strict=True)
    )
    assert plain_structure(replace(GAS, targets=days)).chains == ()


pairs = st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=12)


@given(pairs)
@settings(max_examples=150)
def test_maximal_chains_are_chains_and_maximal(implications: list[tuple[str, str]]) -> None:
    paths = maximal_paths(implications)
    assert len(paths) == len(set(paths))
    if is_circular(implications):
        return
    reach = {(a, b) for a, b in implications if a != b}
    while more := {(a, d) for a, b in reach for c, d in reach if b == c} - reach:
        reach |= more
    for path in paths:
        assert len(path) > 1
        assert all(pair in reach for pair in pairwise(path))
        assert not any(b == path[0] for _, b in reach)
        assert not any(a == path[-1] for a, _ in reach)
    assert {claim for path in paths for claim in path} == {claim for pair in reach for claim in pair}


def answer(chains: Any, exclusive: Any) -> str:
    return json.dumps({"reason": "r", "chains": chains, "exclusive": exclusive})


def judged(script: Any, question: Question) -> tuple[OutcomeStructure, ScriptedModel]:
    model = ScriptedModel(script)
    (structure,) = asyncio.run(judge_structures([question], model, "scripted:judge"))
    return structure, model


def test_judge_finds_structure_that_no_rule_finds() -> None:
    structure, model = judged([answer([], ["x", "Ms Y"])], VISITS)
    assert structure.exclusive == ("x", "y")
    assert (structure.exclusive_by, structure.chains) == ("judge", ())
    (request,) = model.requests
    assert request.settings.temperature == 0
    text = request.messages[1].text
    assert "`x`: Mr X" in text
    assert "none, some or all" not in text, "the judge does not see what the question declares"


def test_a_judge_is_not_asked_about_what_is_declared_or_single() -> None:
    for question in (CUP, SNOW):
        structure, model = judged([], question)
        assert structure == plain_structure(question)
        assert model.requests == []


def test_contradictions_are_left_out_and_noted() -> None:
    structure, _ = judged([answer([["x", "y"]], ["x", "y", "z"])], VISITS)
    assert structure.chains == ()
    assert structure.exclusive == ("x", "y", "z")
    assert "exclude each other" in structure.notes[0]
    structure, _ = judged([answer([["x", "y"], ["y", "x"]], [])], VISITS)
    assert structure.chains == ()
    assert "circle" in structure.notes[0]
    structure, _ = judged([answer([["x", "y", "z"], ["x", "z"]], ["z"])], VISITS)
    assert names(structure) == [["x", "y", "z"]]
    assert structure.exclusive == ()


@pytest.mark.parametrize(
    "bad",
    [
        "<html>" * 100_000,
        answer("x", []),
        answer(["xy"], []),
        answer([["nobody"]], []),
        answer([], {"a": 1}),
        answer([[["x"]]], []),
        "{}",
        ModelError("down"),
        Reply(finish="refusal", text="no"),
    ],
)
def test_wording_is_used_if_the_judge_fails(bad: Any) -> None:
    structure, _ = judged([bad] * 3, GAS)
    assert names(structure) == [["Above 3.20", "Above 3.15", "Above 3.10"]]
    assert structure.notes[0].startswith("by wording alone")


@given(st.recursive(st.none() | st.integers() | st.text(max_size=3), lambda x: st.lists(x, max_size=3), max_leaves=8))
@settings(max_examples=60)
def test_every_reply_is_parsed_or_refused(value: Any) -> None:
    from contextlib import suppress

    with suppress(UnusableReply):
        read_structure({"chains": value, "exclusive": value}, VISITS)


def test_consistency_scores_match_hand_computation() -> None:
    p = {"Above 3.10": 0.5, "Above 3.15": 0.6, "Above 3.20": 0.2}
    score = consistency_score(StatedForecast(forecaster="f", question=GAS, p=p), plain_structure(GAS))
    assert score.logic == 0.5
    assert score.fall == pytest.approx(0.1)
    assert score.excess is None
    assert not score.fits()
    cup = consistency_score(
        StatedForecast(forecaster="f", question=CUP, p={"Red Team": 0.7, "Blue Team": 0.32}), plain_structure(CUP)
    )
    assert (cup.logic, cup.fall) == (None, None)
    assert cup.excess == pytest.approx(0.02)
    assert cup.fits()
    assert not cup.fits(0.01)


def test_missing_probabilities_shorten_chains_and_drop_exclusive_sets() -> None:
    score = consistency_score(
        StatedForecast(forecaster="f", question=GAS, p={"Above 3.10": 0.5, "Above 3.20": 0.6}), plain_structure(GAS)
    )
    assert score.logic == 0
    assert (
        consistency_score(
            StatedForecast(forecaster="f", question=GAS, p={"Above 3.10": 0.5}), plain_structure(GAS)
        ).logic
        is None
    )
    assert (
        consistency_score(
            StatedForecast(forecaster="f", question=CUP, p={"Red Team": 1.0}), plain_structure(CUP)
        ).excess
        is None
    )


def test_consistency_study_by_forecaster() -> None:
    gas = [replace(GAS, id=f"gas{n}", cluster=f"gas{n}") for n in range(4)]
    cups = [replace(CUP, id=f"cup{n}", cluster=f"cup{n}") for n in range(4)]
    logical = {"Above 3.10": 0.5, "Above 3.15": 0.4, "Above 3.20": 0.3}
    statements = [StatedForecast(forecaster="good", question=q, p=logical) for q in gas]
    statements += [StatedForecast(forecaster="bad", question=q, p={**logical, "Above 3.20": 0.9}) for q in gas]
    statements += [StatedForecast(forecaster="good", question=q, p={"Red Team": 0.5, "Blue Team": 0.5}) for q in cups]
    statements += [StatedForecast(forecaster="bad", question=q, p={"Red Team": 0.9, "Blue Team": 0.5}) for q in cups]
    statements += [StatedForecast(forecaster="bad", question=SNOW, p={"yes": 0.5})]
    structures = {q.id: plain_structure(q) for q in (*gas, *cups)}
    study = consistency_study(statements, structures, resampling=QUICK)
    rows = {entry.name: entry.values for entry in study.table("Consistency by forecaster").rows}
    assert (rows["good"][0], rows["good"][1].estimate, rows["good"][3], rows["good"][4].estimate) == (4, 1.0, 4, 1.0)
    assert rows["bad"][1].estimate == 0.5
    assert rows["bad"][2].estimate == pytest.approx(0.5)
    assert rows["bad"][4].estimate == 0.0
    assert rows["bad"][4].high > 0.3, "four events prove little"
    assert rows["bad"][5].estimate == pytest.approx(0.4)
    origins = {entry.name: entry.values for entry in study.table("Where the structure comes from").rows}
    assert origins == {"declared": (0, 4), "wording": (4, 0), "judge": (0, 0)}
    assert study.notes == ("1 statements on questions of unknown structure left out",)
    assert study.text.startswith("Over 8 forecasts with chains the logical-chain score is 0.750; 4 of 8")
    assert "| good | 4 | 1.000" in markdown_study(study)
    assert "logical-chain" in study_page(study)


def test_at_most_one_sets_are_inconsistent_only_above_one() -> None:
    cups = [replace(CUP, id=f"cup{n}", cluster=f"cup{n}", exclusivity="at most one") for n in range(4)]
    low, high = {"Red Team": 0.3, "Blue Team": 0.2}, {"Red Team": 0.9, "Blue Team": 0.5}
    structures = {q.id: plain_structure(q) for q in cups}
    assert structures["cup0"].exclusivity == "at most one"
    statements = [StatedForecast(forecaster="good", question=q, p=low) for q in cups]
    statements += [StatedForecast(forecaster="bad", question=q, p=high) for q in cups]
    study = consistency_study(statements, structures, resampling=QUICK)
    rows = {entry.name: entry.values for entry in study.table("Consistency by forecaster").rows}
    # No event counts for the published score, which uses sets of which exactly one comes true.
    assert {name: row[3:6] for name, row in rows.items()} == {name: (0, None, None) for name in rows}
    assert {name: (row[6], row[7].estimate) for name, row in rows.items()} == {"good": (4, 1.0), "bad": (4, 0.0)}
    assert study.text == "4 of 8 forecasts of outcomes of which at most one comes true sum to no more than one."
    stated_forecast = StatedForecast(forecaster="f", question=cups[0], p={"Red Team": 0.3})
    assert consistency_score(stated_forecast, structures["cup0"]).excess is None


def test_study_without_structure_has_a_sentence() -> None:
    study = consistency_study([], {}, resampling=QUICK)
    assert study.text == "No question has chains or outcomes that exclude each other."
    study_page(study)


@pytest.mark.shared_data
def test_the_market_baseline_on_the_published_subset(shared_data: Any) -> None:
    """Prices of ladders are mostly consistent, except in thin markets; this checks chains on real events."""
    from foretell.data.datasets.prophet_arena import read_events_csv

    (path,) = sorted((shared_data / "prophet_arena").glob("*.csv"))[:1]
    questions = read_events_csv(path).questions
    structures = {q.id: plain_structure(q) for q in questions}
    statements = [
        StatedForecast(forecaster="market", question=q, p=p)
        for q in questions
        if (p := {t.id: t.snapshot.price for t in q.targets if t.snapshot and t.snapshot.price is not None})
    ]
    study = consistency_study(statements, structures, resampling=QUICK)
    n, logic, fall, *_ = study.table("Consistency by forecaster").rows[0].values
    assert n >= 5
    assert logic.estimate > 0.8
    assert fall.estimate < 0.2


def test_structures_are_judged_over_http() -> None:
    from fakes.models import FakeModels
    from foretell.models.router import ModelRouter
    from foretell.practice.models.scripts import arena_script

    async def run(name: str) -> list[OutcomeStructure]:
        async with FakeModels(arena_script) as fake:
            addresses = {"openai": f"{fake.url}/v1"}
            async with ModelRouter({"OPENAI_API_KEY": "k"}, addresses=addresses) as exchange:
                return await judge_structures([GAS, VISITS, CUP], exchange, name)

    gas, visits, cup = asyncio.run(run("openai:judge"))
    assert names(gas) == [["Above 3.20", "Above 3.15", "Above 3.10"]]
    assert gas.chains_by == "judge"
    assert visits.exclusive == ("x", "y", "z")
    assert cup.exclusive_by == "declared"
    gas, *_ = asyncio.run(run("openai:wild"))
    assert gas.chains_by == "wording"
