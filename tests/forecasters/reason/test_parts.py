"""The parts of the forecaster `reason`: when a question is taken apart, which plans are refused, and reconciliation."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from math import log
from typing import Any

import numpy as np
import pytest
from tests.forecasters.tree.scripted_tree import SEARCH as CANNED_SEARCH
from tests.forecasters.tree.scripted_tree import FixedGrounder, TreeSetup, playing, question
from tests.forecasters.tree.stated import NEEDED, needed, tree_by_cases

from foretell.data.series.series import Series
from foretell.forecasters.agent.actions import read_reply
from foretell.forecasters.agent.answer_format import AnswerFormat
from foretell.forecasters.combine.distributions import combined_distribution
from foretell.forecasters.forecaster import Context, MatchingSource, NoSeries, attempt
from foretell.forecasters.reason.evidence import BlindEstimate, EvidenceItem, evidence_list
from foretell.forecasters.reason.forecaster import ReasonForecaster, Reasoning
from foretell.forecasters.reason.outside import known_before_research
from foretell.forecasters.reason.plan import PlannedClaim, PlanReader
from foretell.forecasters.reason.reconcile import Reconciler
from foretell.forecasters.reason.scout import SCOUT, ScoutReport, ScoutToolset
from foretell.forecasters.reason.settings import ReasonSettings
from foretell.forecasters.reason.take_apart import conditions, uncertainty
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.case_links import number_in_words
from foretell.forecasters.tree.closing import closing_values, root_value
from foretell.forecasters.tree.edits import SetP
from foretell.forecasters.tree.parts import reasoning_lines
from foretell.forecasters.tree.tree_file import tree_from_dict
from foretell.forecasters.tree.what_if import resynthesize, what_if
from foretell.models.canonical import quick_json
from foretell.models.model import Reply, Request, ToolCall
from foretell.models.structured_output import UnusableReply
from foretell.questions.as_of import AsOf, instant
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast, Numeric, Reconciliation
from foretell.questions.question import LastValue, NumericRange, Question, SeriesRef, Snapshot, Target, scaled
from foretell.questions.thresholds import LEVELS, seconds_of
from foretell.questions.trace import EvidenceFound, NodeGrounded, TreeGrown
from foretell.runs.combine import combined_answers

SETTINGS = ReasonSettings()
REPORT = ScoutReport(estimate=BlindEstimate(p={"yes": 0.3}), structure="all", parts=3, name="reason")


def against(
    report: ScoutReport = REPORT, take_apart: str = "auto", trial: int = 0, trials: int = 1, **fields: Any
) -> list[str]:
    setup = TreeSetup(question=question(**fields))
    context = replace(setup.context, trial=trial, trials=trials)
    settings = replace(SETTINGS, take_apart=take_apart)
    known = [*conditions(report, setup.question, context, settings, None), *uncertainty(report, settings)]
    return [condition.text for condition in known if not condition.holds]


def test_a_question_is_taken_apart_only_where_it_helps():
    assert against() == []
    assert against(replace(REPORT, structure="single")) == ["one thing decides it"]
    assert against(replace(REPORT, parts=1)) == ["fewer than two parts are easier to look up than the whole"]
    assert against(replace(REPORT, estimate=BlindEstimate(p={"yes": 0.02}))) == [
        "the direct estimate is within 3 % of certain"
    ]
    fresh, old = (Snapshot(at=instant(day), last_price=0.4) for day in ("2025-10-25", "2025-10-20"))
    assert against(targets=(Target(id="yes", snapshot=fresh),)) == ["there is a fresh market price"]
    assert against(targets=(Target(id="yes", snapshot=old),)) == []
    assert against(series=SeriesRef(provider="fred", id="X")) == ["a series decides it"]
    assert against(take_apart="never") == ["the settings say so"]
    assert against(replace(REPORT, structure="single"), take_apart="always") == []
    assert against(trials=2) == ["the tree is grown in the last trial, from the evidence of all"]
    assert against(trial=1, trials=2) == []
    number = replace(REPORT, structure="number")
    assert against(number) == ["it is about a number that no scenario decides"]
    assert against(number, take_apart="always") == []
    assert against(replace(number, by_series=True), take_apart="always") == ["a series decides it"]


def test_settings_are_checked():
    wrongs: tuple[dict[str, Any], ...] = (
        {"take_apart": "often"},
        {"tree_weight": 1.5},
        {"children": 1},
        {"scout_replies": 0},
    )
    for wrong in wrongs:
        with pytest.raises(InputError):
            ReasonSettings(**wrong)


def planned(*claims: str, kind: str = "weigh", options: bool = False, **fields: Any) -> Any:
    children = [
        {"id": f"c{n}", "claim": claim, "state": "answered", "evidence": ["E1", "E9"], **fields}
        for n, claim in enumerate(claims)
    ]
    reader = PlanReader(claim="The bridge opens by 31 May 2026.", evidence=frozenset({"E1"}), most=6, options=options)
    return reader.read({"parents": [{"parent": "P0", "kind": kind, "why": "so", "children": children}]})


VOTE, PERMIT = "The council votes by 31 March 2026.", "The ministry grants a permit by 30 April 2026."


def test_a_plan_names_kinds_children_and_their_evidence():
    plan = planned(VOTE, PERMIT)
    assert list(plan) == ["P0", "P1", "P2"]
    assert plan["P0"].kind == "weigh"
    assert plan["P1"].evidence == ("E1",), "evidence that does not exist is left out"
    assert not planned(VOTE, PERMIT, state="open")["P1"].answered


@pytest.mark.parametrize(
    ("claims", "options", "problem"),
    [
        ((VOTE,), {}, "it needs 2 to 6"),
        ((VOTE, "It passes next year."), {}, "write the date or period out"),
        ((VOTE, "The council votes for the bridge by 31 March 2026."), {}, "one contains the other"),
        ((VOTE, VOTE), {}, "say the same or the opposite"),
        ((VOTE, "The bridge opens by 31 May 2026."), {}, "its parent in other words"),
        ((VOTE, PERMIT), {"options": True}, "must be split"),
    ],
)
def test_plans_that_cannot_be_used_are_refused(claims: tuple[str, ...], options: Any, problem: str):
    with pytest.raises(UnusableReply, match=problem):
        planned(*claims, **options)


def test_things_that_happen_one_after_the_other_may_contain_each_other():
    assert len(planned(VOTE, "The council votes for the bridge by 31 March 2026.", kind="all")) == 3


def test_evidence_is_cut_at_its_limit():
    items = [EvidenceItem(id=f"E{n}", fact="x" * 40, direction="for") for n in range(100)]
    assert len(evidence_list(items, 100)) <= 400


# Reconciliation of the four conditions, whose tree gives 0.197.


def reconcile(**reply: Any) -> Any:
    answer = {"report": "r", "changes": [], "add": None, "direct": None, "direct_reason": "", **reply}

    def override(request: Request) -> Reply | None:
        return Reply(text=json.dumps(answer)) if "reconciliation" in request.slot else None

    setup = TreeSetup(model=playing(override))
    about = replace(setup.tree_question, claim="The bridge opens.")
    evidence = (EvidenceItem(id="E1", fact="The court adjourned.", direction="against"),)
    reconciler = Reconciler(about=about, context=setup.context, settings=SETTINGS, evidence=evidence)
    tree = evaluated(tree_by_cases(needed(), NEEDED))
    return asyncio.run(reconciler.reconcile(tree, BlindEstimate(p={"yes": 0.05}), "yes")), setup


def change(what: str, child: str, value: float, reason: str = "as reported") -> dict[str, Any]:
    return {"what": what, "child": child, "value": value, "reason": reason, "evidence": ["E1"]}


def test_a_leaf_or_a_case_can_be_changed_with_its_reason():
    result, _ = reconcile(changes=[change("leaf", "P3", 0.0)])
    assert root_value(result.tree) == pytest.approx(0.0, abs=1e-6)
    assert result.changes == ("P3 30 % → 0 % (as reported, E1)",)
    result, _ = reconcile(changes=[change("all", "", 0.5)])
    assert root_value(result.tree) < 0.12


def test_changes_that_fail_a_check_are_sent_back():
    result, setup = reconcile(changes=[change("none", "", 0.99)])
    assert len(setup.requests) == 3
    assert result.changes[0].startswith("nothing was changed")
    assert root_value(result.tree) == pytest.approx(0.197, abs=5e-4)


def test_a_child_can_be_added_and_the_estimate_restated():
    added = {"claim": PERMIT, "p": 0.5, "direction": "helps", "only": 0.0, "but": 0.0, "reason": "it was left out"}
    result, _ = reconcile(add=added, direct=0.08, direct_reason="the court was overlooked")
    assert root_value(result.tree) == pytest.approx(0.197 / 2, abs=0.005)
    assert result.direct == {"yes": 0.08}
    assert [text[:5] for text in result.changes] == ["added", "direc"]


def test_the_values_that_alone_would_close_the_gap_are_named():
    tree = evaluated(tree_by_cases(needed(), NEEDED))
    values = closing_values(tree, 0.098)
    assert "- leaf P3 is 0.300; 0.1" in "\n".join(map(str, values))
    assert any(str(value).startswith("- all is 0.970; 0.") for value in values)
    assert any("no value would" in str(value) for value in values)
    names = {"leaf": "{}", "none": "P0:none", "all": "P0:all", "only": "P0:only:{}", "but": "P0:but:{}"}
    for value in values:
        if value.needed is not None:
            edit = SetP(id=names[value.what].format(value.child), p=value.needed)
            assert root_value(resynthesize(tree, [edit])) == pytest.approx(0.098, abs=1e-6), value.name


def test_options_are_combined_to_a_valid_sum():
    both = Reconciliation(tree={"a": 0.6, "b": 0.4}, direct={"a": 0.3, "b": 0.7}, gap=1.0)
    p = scaled(both.combined(), "exactly one")
    assert sum(p.values()) == pytest.approx(1.0)


def test_a_scout_runs_only_so_many_calls_of_a_reply():
    setup = TreeSetup(name="scripted:gatherer")
    settings = replace(SETTINGS, take_apart="never", scout_calls=2)
    forecast = asyncio.run(attempt(ReasonForecaster(settings=settings), setup.question, setup.context))
    assert isinstance(forecast, Forecast)
    assert len(setup.search.queries) == 4, "the script makes three searches in each of two replies"


# What is known before research.


class Rate:
    """A series that ends with 4.2."""

    async def fetch(self, ref: SeriesRef, as_of: AsOf) -> Series:
        days = np.arange("2025-08-01", "2025-10-25", dtype="M8[D]")
        return Series(id=ref.id, days=days, values=np.where(np.arange(len(days)) % 5 == 4, 4.2, 4.0))


def known(**fields: Any) -> str:
    setup = TreeSetup(question=question(**fields))
    return asyncio.run(known_before_research(setup.question, replace(setup.context, series=Rate())))


def test_the_status_quo_and_the_deadline_are_read_from_the_wording():
    target = (Target(id="yes"),)
    text = known(text="Will the bridge open by 31 December 2025?", targets=target)
    assert "sets a deadline: 2025-12-31, in 66 days" in text
    assert "If nothing does, the answer is NO." in text
    text = known(text="Will the ban remain in force until 31 December 2025?", targets=target)
    assert "If nothing changes, the answer is YES." in text
    day = instant("2025-12-31")
    assert "deadline" not in known(
        text="Will it open by 31 December 2025?", targets=(Target(id="yes", resolves_at=day),)
    )


@pytest.mark.parametrize(("comparison", "answer"), [("above", "NO"), ("below", "YES")])
def test_the_status_quo_of_a_series_is_its_last_value(comparison: Any, answer: str):
    ref = SeriesRef(provider="fred", id="X", threshold=4.3, comparison=comparison)
    text = known(series=ref, targets=(Target(id="yes", resolves_at=instant("2025-11-02")),))
    assert "Last value of the series: 4.2, of 2025-10-24." in text
    assert f"if it stays there, the answer is {answer}" in text
    assert "Past changes over 7 days, from 78 starting days: 5% below -0.2" in text
    assert "A change of +0.1 or more, as the threshold needs, was there at the end of 20.5%" in text


@pytest.mark.parametrize(
    ("series", "words"),
    [
        (Rate(), "value of 2 days ago (4.2 on 2025-10-24)"),
        (NoSeries(), "value of 10 days ago (4 on 2025-10-16; no newer one because "),
    ],
)
def test_the_age_of_the_value_that_an_answer_stands_on_is_stored(series: Any, words: str):
    ref = SeriesRef(provider="fred", id="X", threshold=4.3, comparison="above")
    last = LastValue(value=4.0, at=instant("2025-10-16"))
    asked = question(series=ref, last_value=last, targets=(Target(id="yes"),))
    setup, settings = TreeSetup(question=asked, name="scripted:gatherer"), replace(SETTINGS, take_apart="never")
    context = replace(setup.context, series=series)
    forecast = asyncio.run(attempt(ReasonForecaster(settings=settings), asked, context))
    assert isinstance(forecast, Forecast)
    assert forecast.value is not None
    assert forecast.value.in_words.startswith(words)


def test_several_calls_of_a_reply_state_the_belief_once():
    form = AnswerFormat.of(question())
    toolset = ScoutToolset(form=form, variant=SCOUT, research=(CANNED_SEARCH,))
    belief = {"reason": "r", "p": 0.3}
    calls = [
        ToolCall(id=str(n), name="web_search", arguments=json.dumps({"updated_belief": stated, "query": f"q{n}"}))
        for n, stated in enumerate([{}, belief])
    ]
    turn = read_reply(Reply(calls=tuple(calls)), toolset, ["web_search", "submit"])
    assert len(turn.actions) == 2
    assert turn.statement is not None
    assert turn.statement.stated.p == {"yes": 0.3}


def test_one_tree_names_all_targets_under_keys_that_every_provider_accepts():
    """Targets that do not exclude each other too; the synthesizer sees the evidence as every later request."""
    rows = {"target_1": 0.6, "target_2": 0.3}
    split = {"report": "r", "key_factor": "k", "then": dict.fromkeys(("P1", "P2"), rows), "otherwise": rows}
    children = [
        {"id": id, "claim": claim, "state": "open", "evidence": []} for id, claim in (("a", VOTE), ("b", PERMIT))
    ]
    belief = {
        "reason": "r",
        "p": rows,
        "confidence": "medium",
        "open_questions": [],
        "evidence_against": [],
        "retract": [],
    }
    belief["evidence_for"] = [{"claim": "It is warm.", "source_id": "question"}]

    def override(request: Request) -> Reply | None:
        if any(tool.name == "submit" for tool in request.tools):
            submitted = {"updated_belief": belief, "structure": "split", "parts": 2}
            return Reply(calls=(ToolCall(id="1", name="submit", arguments=json.dumps(submitted)),))
        plan = {"parents": [{"parent": "P0", "kind": "split", "why": "so", "children": children}]}
        answer = plan if "/plan/" in request.slot else split if "/synthesis/" in request.slot else None
        return None if answer is None else Reply(text=json.dumps(answer))

    cities = (Target(id="São Paulo", label="São Paulo"), Target(id="Oslo", label="Oslo"))
    setup = TreeSetup(
        question=question(text="Which of these cities set a record?", targets=cities), model=playing(override)
    )
    forecaster = ReasonForecaster(settings=SETTINGS, grounder=FixedGrounder(lambda leaf: 0.4))
    forecast = asyncio.run(attempt(forecaster, setup.question, setup.context))
    assert isinstance(forecast, Forecast), forecast
    assert forecast.p == pytest.approx({"São Paulo": 0.6, "Oslo": 0.3})
    texts = {
        slot: request.messages[1].text
        for slot in ("/plan/", "/synthesis/")
        for request in setup.requests
        if slot in request.slot
    }
    for text in texts.values():
        assert "Each of these may come true or not:\n- São Paulo\n- Oslo" in text
        assert "E1 for: It is warm." in text


# Questions about a number or a date: scenarios with a distribution each.

LEVEL_NAMES = ("q05", "q10", "q25", "q50", "q75", "q90", "q95")
DIRECT = (60, 64, 70, 75, 81, 88, 93)
HIGHER = (80, 84, 90, 95, 101, 108, 113)
STORM, STRIKE = "A storm closes the port by 30 November 2025.", "A strike closes the port by 30 November 2025."


def spread(values: Any, **more: Any) -> dict[str, Any]:
    return {**dict(zip(LEVEL_NAMES, values, strict=True)), **more}


def reason_about_a_number(
    then: Any,
    asked: Question,
    stated: Any = DIRECT,
    otherwise: Any = None,
    take_apart: str = "auto",
    others: Sequence[EvidenceFound] = (),
    **reply: Any,
) -> tuple[Forecast, TreeSetup]:
    """Run the last trial: the scout states `stated`, other trials left `others`, two scenarios have 0.5 and 0.3."""
    usual = spread(stated) if isinstance(stated, tuple) else stated
    belief = {"reason": "r", "quantiles": usual, "confidence": "medium", "open_questions": []}
    belief |= {"evidence_for": [], "evidence_against": [], "retract": []}
    submitted = {"updated_belief": belief, "structure": "split", "parts": 2, **reply.pop("submit", {})}
    plan = [{"id": id, "claim": claim, "state": "open", "evidence": []} for id, claim in (("a", STORM), ("b", STRIKE))]
    split = {"report": "r", "key_factor": "k", "then": then, "otherwise": otherwise or usual}
    reconciled = {"report": "Ships come anyway.", "changes": [], "add": None, "direct": None, "direct_reason": ""}

    def override(request: Request) -> Reply | None:
        if any(tool.name == "submit" for tool in request.tools):
            return Reply(calls=(ToolCall(id="1", name="submit", arguments=json.dumps(submitted)),))
        for slot, answer in (
            ("/plan/", {"parents": [{"parent": "P0", "kind": "split", "why": "so", "children": plan}]}),
            ("/synthesis/", split),
            ("/reconciliation/", {**reconciled, **reply}),
        ):
            if slot in request.slot:
                return Reply(text=json.dumps(answer))
        return None

    setup = TreeSetup(question=asked, model=playing(override))
    grounder = FixedGrounder(lambda leaf: {"P1": 0.5, "P2": 0.3}[leaf.id])
    forecaster = ReasonForecaster(settings=replace(SETTINGS, take_apart=take_apart), grounder=grounder)

    async def left(question: Question) -> list[dict[str, Any]]:
        return json.loads(quick_json([vars(other) for other in others]))

    context = replace(setup.context, trial=len(others), trials=1 + len(others), evidence_of_others=left)
    forecast = asyncio.run(attempt(forecaster, setup.question, context))
    assert isinstance(forecast, Forecast), forecast
    return forecast, setup


SHIPS = question(subtype="numeric", text="How many ships call?", targets=(Target(id=">80"), Target(id="<=75")))


def log_odds(p: float) -> float:
    return log(p / (1 - p))


def test_a_number_is_split_into_scenarios_with_a_distribution_each():
    forecast, setup = reason_about_a_number({"P1": spread(HIGHER), "P2": spread(DIRECT)}, SHIPS)
    both, answer = forecast.reconciliation, forecast.distribution
    assert both is not None
    assert isinstance(answer, Numeric)
    tree, direct = both.tree_distribution, both.direct_distribution
    assert tree is not None
    assert direct is not None
    high, low = (Numeric.from_quantiles(dict(zip(LEVELS.values(), row, strict=True))) for row in (HIGHER, DIRECT))
    for value in (62.0, 75.0, 80.0, 90.0, 112.0):
        assert tree.below(value) == pytest.approx(0.5 * high.below(value) + 0.5 * low.below(value), abs=1e-3)
        pooled = 0.25 * log_odds(tree.below(value)) + 0.75 * log_odds(direct.below(value))
        assert log_odds(answer.below(value)) == pytest.approx(pooled, abs=0.05)
    assert forecast.p == {">80": pytest.approx(answer.above(80)), "<=75": pytest.approx(answer.below(75))}
    assert both.asked, "at the median of the direct estimate the tree has 0.27"
    assert both.apart
    (asked,) = [r.messages[1].text for r in setup.requests if "/reconciliation/" in r.slot]
    assert "Direct estimate: 75 (80 %: 64 to 88), chance of <=75 0.500." in asked
    plan = next(r.messages[1].text for r in setup.requests if "/plan/" in r.slot)
    assert "split into scenarios" in plan
    grown = evaluated(tree_from_dict(next(e.document for e in setup.events if isinstance(e, TreeGrown))).tree)
    assert what_if(grown, {"P1": 1.0}).row[">80"] == pytest.approx(high.above(80))
    heading = "two scenarios: tree 85.85 (80 %: 67.73 to 103.9), direct 75 (80 %: 64 to 88) (stay apart)"
    assert reasoning_lines(grown)[0] == heading
    link = grown.nodes["P0"].link
    assert link is not None
    assert "if P1 happens, 95 (80 %: 84 to 108)" in link.describe(("P1", "P2"))
    (combined,) = combined_answers([forecast, replace(forecast, trial=1)], [SHIPS])
    assert combined.forecast.p == pytest.approx(forecast.p, abs=1e-6), "the tree enters once"


@pytest.mark.parametrize("restated", [None, spread((50, 54, 60, 65, 71, 78, 83))])
def test_a_number_is_reconciled_with_the_distributions_of_all_trials(restated: Any):
    then = {"P1": spread([value + 40 for value in HIGHER]), "P2": spread(HIGHER)}
    other, _ = reason_about_a_number(then, SHIPS, HIGHER, take_apart="never")
    assert isinstance(other.distribution, Numeric)
    left = ScoutReport(estimate=BlindEstimate(p=other.p, distribution=other.distribution), name="scout").found
    own = Numeric.from_quantiles(dict(zip(LEVELS.values(), DIRECT, strict=True)))
    forecast, setup = reason_about_a_number(
        then, SHIPS, others=[left], take_apart="always", direct=restated, direct_reason="few ships came"
    )
    (asked,) = [r.messages[1].text for r in setup.requests if "/reconciliation/" in r.slot]
    direct = combined_distribution([own, other.distribution])
    assert f"Direct estimate: {number_in_words(direct, dates=False)}" in asked
    both = forecast.reconciliation
    assert both is not None
    assert both.own_distribution == own
    if restated is not None:
        direct = Numeric.from_quantiles({LEVELS[name]: value for name, value in restated.items()})
    (answer,) = combined_answers([other, forecast], [SHIPS])
    for each in (both, answer.reconciliation):
        assert each is not None
        assert each.direct_distribution is not None
        for value in (70.0, 80.0, 95.0):
            assert each.direct_distribution.below(value) == pytest.approx(direct.below(value), abs=1e-6)
        assert each.direct[">80"] == pytest.approx(direct.above(80))
        assert each.gap == pytest.approx(both.gap)


def test_a_date_keeps_its_chance_of_never_and_can_be_restated():
    days = [f"2026-0{n}-01" for n in range(1, 8)]
    later = [f"2027-0{n}-01" for n in range(1, 8)]
    span = NumericRange(minimum=seconds_of("2025-11-01"), maximum=seconds_of("2027-12-31"), open_upper=True, dates=True)
    asked = question(text="When does it open?", range=span, targets=(Target(id=">2026-06-30"),))
    then = {"P1": spread(later, never=0.5), "P2": spread(days, never=0.0)}
    restated: dict[str, Any] = {"direct": spread(later, never=0.3), "direct_reason": "the ramp is late"}
    direct = spread(days, never=0.1)
    forecast, _ = reason_about_a_number(
        then, asked, direct, take_apart="always", submit={"structure": "number"}, **restated
    )
    both = forecast.reconciliation
    assert both is not None
    assert both.tree_distribution is not None
    assert both.tree_distribution.never == pytest.approx(0.5 * 0.5 + 0.2 * 0.1, abs=0.01)
    assert both.direct_distribution is not None
    assert both.direct_distribution.never == pytest.approx(0.3)
    change = "direct estimate 2026-04-01 (80 %: 2026-02-01 to 2026-06-01, never 10 %) → 2027-04-01 (80 %: 2027-02-01"
    assert both.changes[0].startswith(change)
    assert both.changes[0].endswith("(the ramp is late)")


def test_quantiles_out_of_order_are_sent_back_and_then_leave_the_direct_estimate():
    forecast, setup = reason_about_a_number({"P1": spread(HIGHER[::-1]), "P2": spread(DIRECT)}, SHIPS)
    assert len([r for r in setup.requests if "/synthesis/" in r.slot]) == 3
    assert "then of P1: each quantile must be larger" in setup.requests[-1].messages[-1].text
    assert forecast.fallback
    assert isinstance(forecast.distribution, Numeric)
    assert forecast.distribution.quantile(0.5) == pytest.approx(75)


def test_leaves_with_a_market_of_their_own_start_from_its_price():
    known, researched, answered = {"P1": 0.80, "P2": 0.80, "P3": None}, {"P1": 0.2, "P3": 0.2}, {"P2": 0.8}
    claims = {"P1": "It rains.", "P2": "It snows.", "P3": "It hails."}

    async def matching(question: Question, context: Context) -> list[MatchingSource]:
        (id,) = [id for id, claim in claims.items() if claim == question.text]
        return [MatchingSource(text=f"a market on {id}", price=known[id])]

    def override(request: Request) -> Reply | None:
        leaf = {"report": "As E1 says.", "key_factor": "E1.", "evidence": ["E1"], "p": answered["P2"]}
        return Reply(text=json.dumps({"leaves": {"P2": leaf}})) if "/answered" in request.slot else None

    setup = TreeSetup(question=question(), model=playing(override))
    context = replace(setup.context, matching_sources=matching)
    forecaster = ReasonForecaster(settings=SETTINGS, grounder=FixedGrounder(lambda leaf: researched[leaf.id]))
    reasoning = Reasoning(forecaster=forecaster, question=setup.question, context=context, report=REPORT)
    plan = {"P0": PlannedClaim(id="P0", claim="It is wet.", children=tuple(claims), kind="any")}
    plan |= {id: PlannedClaim(id=id, claim=claim, evidence=("E1",) * (id in answered)) for id, claim in claims.items()}
    results = asyncio.run(reasoning.judge(reasoning.about()).judge(plan))
    p = {id: result.p for id, result in results.items()}
    assert p == pytest.approx({"P1": 0.75, "P2": 0.8, "P3": 0.2}, abs=1e-3)
    assert "price 80 % → research 20 % → leaf 75 %" in results["P1"].notes[0]
    assert results["P3"].notes == ()
    emitted = {event.node: event.p for event in setup.events if isinstance(event, NodeGrounded)}
    assert emitted == p


def test_submit_states_the_answer_once():
    form = AnswerFormat.of(question())
    toolset = ScoutToolset(form=form, variant=SCOUT)
    assert list(toolset.by_name["submit"].parameters["properties"]) == ["updated_belief", "structure", "parts"]
    stated = {"updated_belief": {"reason": "It rained.", "p": 0.3}, "structure": "all", "parts": 2}
    reply = Reply(calls=(ToolCall(id="1", name="submit", arguments=json.dumps(stated)),))
    turn = read_reply(reply, toolset, ["submit"])
    assert turn.final is not None
    assert (turn.final.p, turn.reason) == ({"yes": 0.3}, "It rained.")
