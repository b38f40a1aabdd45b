"""Stated cases are checked: what is sent back, in which words, and what happens if that does not help."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.forecasters.tree.stated import NEEDED, OPTIONS, by_child, leaves_under, needed, stated

from foretell.forecasters.tree.arithmetic.evaluation import evaluate
from foretell.forecasters.tree.case_checks import CasesVerdict, check_results, judge_cases, scaled_scenarios
from foretell.forecasters.tree.case_links import CasesLink, WeighLink, cases_link
from foretell.forecasters.tree.cases import StatedCases
from foretell.forecasters.tree.links import LinearLink

FIVE = (0.38, 0.30, 0.50, 0.60, 0.20)


def answers(*replies: StatedCases, p: tuple[float, ...], **more: Any) -> list[CasesVerdict]:
    """Judge replies one after the other, as a synthesizer that counts what it has sent back."""
    sent: Counter[str] = Counter()
    verdicts: list[CasesVerdict] = []
    for reply in replies:
        verdicts.append(judge_cases(reply, by_child(p), sent=sent, **more))
        sent.update({problem.check for problem in verdicts[-1].problems})
    return verdicts


def value_link(cases: StatedCases) -> CasesLink:
    return cases_link(cases, by_child(NEEDED))


def value(verdict: CasesVerdict, p: tuple[float, ...]) -> float:
    assert verdict.link is not None
    return evaluate(leaves_under(verdict.link, p)).p


def checks(cases: StatedCases, p: tuple[float, ...] = (), **more: Any) -> list[str]:
    verdict = judge_cases(cases, by_child(p or [0.5] * len(cases.children)), **more)
    assert (verdict.link is None) == bool(verdict.problems)
    return [problem.check for problem in verdict.problems]


def test_good_cases_are_accepted_without_a_word():
    (verdict,) = answers(needed(), p=NEEDED)
    assert (verdict.notes, verdict.reconcile) == ((), False)
    assert value(verdict, NEEDED) == pytest.approx(0.197, abs=5e-4)


def test_without_given_the_children_are_noted_as_independent():
    (verdict,) = answers(needed(given=()), p=NEEDED)
    assert verdict.notes == ("the children are taken as independent",)


def test_an_impossible_chance_given_others_is_sent_back_with_its_bounds_and_then_moved():
    wrong = needed(given=[0.65, 0.95, 0.50, 0.90])
    first, second = answers(wrong, wrong, p=NEEDED)
    assert [problem.check for problem in first.problems] == ["given"]
    assert "P2 cannot be favourable with 0.95 if P1 is favourable" in first.text
    assert "between 0.15 and 0.69" in first.text
    assert second.notes == ("given the earlier children, the nearest possible chance is used: P2 0.69 instead of 0.95",)
    assert value(second, NEEDED) == pytest.approx(0.198, abs=5e-4)


def test_bounds_hold_for_any_and_for_the_first_child():
    any_of = stated("any", none=0.01, all=0.99, only=[0.99] * 3, but=[0.99] * 3, given=[0.35, 0.9, 0.2])
    text = judge_cases(any_of, by_child([0.35, 0.25, 0.30])).text
    assert "P2 cannot be favourable with 0.90 if P1 is not favourable" in text
    assert "between 0.00 and 0.38" in text
    first = judge_cases(replace(any_of, given={"P1": 0.6}), by_child([0.35, 0.25, 0.30]))
    assert first.text.startswith("P1 comes first, so its `given` is its own chance of being favourable, 0.35, not 0.60")
    near = replace(any_of, given=by_child([0.36, 0.39, 0.2]))
    assert judge_cases(near, by_child([0.35, 0.25, 0.30])).link is not None, "0.02 outside is accepted"


def test_a_kind_that_does_not_fit_is_sent_back_twice_and_then_weighed():
    wrong = stated("any", none=0.0, all=1.0, only=[0.0] * 5, but=[0.0] * 5)
    first, second, third = answers(wrong, wrong, wrong, p=FIVE)
    for verdict in (first, second):
        assert [problem.check for problem in verdict.problems] == ["kind"]
        assert "If all five come true the claim has 100 %; if only P1, P2, P3, P4 or P5 fails, 0 %" in verdict.text
    assert isinstance(third.link, WeighLink)
    assert third.reconcile
    assert third.notes[0].startswith("any does not fit the stated cases")
    assert value(third, FIVE) == pytest.approx(0.009, abs=5e-4)


def test_weighing_accepts_vetoes():
    cases = stated("weigh", none=0.0, all=0.9, only=[0.0, 0.0, 0.0], but=[0.0, 0.7, 0.8])
    assert checks(cases) == []


def test_a_case_above_all_is_sent_back_with_both_cases():
    cases = stated("weigh", none=0.05, all=0.4, only=[0.5, 0.1, 0.1], but=[0.3] * 3, outside="Luck.")
    (verdict,) = answers(cases, p=(0.5, 0.5, 0.5))
    assert [problem.check for problem in verdict.problems] == ["monotone"]
    assert "If only P1 comes true you give the claim 50 %, but if all three come true only 40 %" in verdict.text
    below = stated("weigh", none=0.2, all=0.9, only=[0.1, 0.3, 0.3], but=[0.5] * 3)
    assert (
        "If none comes true you give the claim 20 %, but if only P1 comes true only 10 %"
        in answers(below, p=(0.5, 0.5, 0.5))[0].text
    )


def test_children_that_do_not_decide_are_sent_back():
    assert checks(stated("weigh", none=0.25, all=0.3, only=[0.26, 0.27], outside="The court.")) == ["decisive"]


@pytest.mark.parametrize(("none", "all"), [(0.05, 0.4), (0.35, 0.9)])
def test_what_else_decides_must_be_said(none: float, all: float):
    cases = stated("weigh", none=none, all=all, only=[(none + all) / 2] * 2)
    assert checks(cases) == ["outside"]
    assert checks(replace(cases, outside="The court.")) == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"all": None}, "The case `all` is missing: the chance of the claim if all three come true."),
        ({"only": {"P1": 0.1, "P2": 0.1}}, "The case `only` is missing for P3"),
        ({"only": {"P1": 0.1, "P2": 0.1, "P3": 1.2}}, "The case only of P3 is 1.2"),
        ({"kind": "most"}, "none of all, any, at_least, weigh"),
        ({"kind": "at_least"}, "Say as k"),
        ({"order": ("P1", "P1", "P2")}, "The order must name each of P1, P2, P3 once"),
        ({"given": {"P9": 0.5}}, "P9 in given is not a child"),
        ({"direction": {"P1": "helps", "P2": "blocks", "P3": "helps"}}, "Say whether P2 helps or hinders"),
    ],
)
def test_incomplete_replies_are_sent_back(change: dict[str, object], text: str):
    cases = stated("weigh", none=0.05, all=0.9, only=[0.1] * 3, but=[0.8] * 3)
    (verdict,) = answers(replace(cases, **change), p=(0.5, 0.5, 0.5))
    assert {problem.check for problem in verdict.problems} == {"complete"}
    assert text in verdict.text


def test_the_same_situation_of_two_children_must_have_one_chance():
    cases = replace(stated("weigh", none=0.05, all=0.9, only=[0.3, 0.5]), but={"P1": 0.5, "P2": 0.6})
    assert "if only P1 comes true is stated twice: 30 % as only, 60 % as but" in answers(cases, p=(0.5, 0.5))[0].text


def test_shared_evidence_is_asked_about_once():
    cases, evidence = needed(given=()), {"P1": ["E1"], "P3": ["E2", "E1"]}
    first, second = answers(cases, cases, p=NEEDED, evidence=evidence)
    assert "P1 and P3 cite the same evidence (E1): does one event move both?" in first.text
    assert second.notes == ("children that cite the same evidence are taken as independent",)
    assert checks(needed(), NEEDED, evidence=evidence) == []


def test_a_child_that_moves_nothing_is_noted():
    cases = stated("weigh", none=0.1, all=0.9, only=[0.1, 0.5, 0.6], but=[0.9, 0.6, 0.5])
    table = replace(cases, kind="weigh")
    (verdict,) = answers(table, p=(0.5, 0.5, 0.5))
    assert verdict.link is not None
    idle = stated("weigh", none=0.1, all=0.9, only=[0.9, 0.1])
    assert answers(idle, p=(0.5, 0.5))[0].notes == ("P2 moves the claim by less than 2 %",)


def test_children_are_called_by_their_names():
    wrong = stated("weigh", none=0.05, all=0.4, only=[0.5, 0.1], outside="Luck.")
    assert "If only the court comes true" in judge_cases(wrong, by_child([0.5, 0.5]), names={"P1": "the court"}).text


@given(st.sampled_from(["all", "any", "at_least"]), st.lists(st.floats(0, 1), min_size=8, max_size=8))
def test_every_reply_is_accepted_or_sent_back_in_words_without_the_value(kind: str, numbers: list[float]):
    none, all_true, *rest = numbers
    cases = stated(kind, none=none, all=all_true, only=rest[:3], but=rest[3:], k=2)
    verdict = judge_cases(cases, by_child([0.3, 0.5, 0.7]))
    assert (verdict.link is None) == bool(verdict.problems)
    assert all(problem.text.endswith((".", "again.")) for problem in verdict.problems)


def test_scenarios_that_add_up_to_more_than_one_are_scaled():
    assert scaled_scenarios(by_child([0.5, 0.35, 0.15])) == (by_child([0.5, 0.35, 0.15]), "")
    p, note = scaled_scenarios(by_child([0.6, 0.4, 0.2]))
    assert p == pytest.approx(by_child([0.5, 1 / 3, 1 / 6]))
    assert note == "the scenarios added up to 1.20 and were scaled to 1"
    assert scaled_scenarios(by_child([0.5, 0.36, 0.15]))[1] == ""


def test_every_check_is_listed_with_what_it_found():
    link = value_link(needed())
    shared = {"P1": {"E1"}, "P2": {"E1"}}
    passed = check_results(link, by_child(NEEDED), shared)
    assert [result.problems for result in passed] == [()] * 8
    changed = link.with_case("given", "P2", 0.95, by_child(NEEDED))
    assert changed is not None
    moved = check_results(changed, by_child(NEEDED), shared)
    assert [result.check for result in moved if result.problems] == ["the chances in sequence are possible"]
    assert "between 0.15 and 0.69" in moved[3].problems[0]
    (scenarios,) = check_results(OPTIONS, by_child([0.6, 0.4, 0.2]), {})
    assert scenarios.problems == ("the scenarios added up to 1.20 and must be scaled to 1",)
    assert check_results(LinearLink(weights={"P1": 0.5}), {"P1": 0.5}, {}) == []


def test_the_strict_linear_rule():
    p = by_child([0.90, 0.90, 0.92])
    weights = by_child([0.40, 0.35, 0.25])
    assert LinearLink(intercept=0.11, weights=weights).strict_problems(p) == [
        "the intercept is 0.11, outside [-0.1, 0.1]"
    ]
    link = LinearLink(intercept=-0.05, weights=weights)
    assert link.strict_problems(p) == []
    assert evaluate(leaves_under(link, tuple(p.values()))).p == pytest.approx(0.855)
    assert LinearLink(weights={**weights, "P1": -1.1}).strict_problems(p) == [
        "the weight of P1 is -1.1, outside [-1, 1]"
    ]
    assert LinearLink(weights=by_child([0.9, 0.9, 0.9])).strict_problems(p) == [
        "the weighted sum is 2.448, outside [0, 1]"
    ]
    assert LinearLink(weights={"P1": 0.5}).strict_problems(p) == [
        "P2 is a child but has no number here",
        "P3 is a child but has no number here",
    ]
