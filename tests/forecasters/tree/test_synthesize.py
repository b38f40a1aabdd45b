"""Putting children together: what a model says is checked by the tree and applied by us."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forecasters.tree.scripted_tree import TreeSetup, playing

from foretell.cli import operation_command
from foretell.forecasters.tree import (
    AverageLink,
    ClaimSurroundings,
    FormulaAssumption,
    FormulaLink,
    Grounding,
    InhibitedNoisyOrLink,
    InvalidTree,
    JudgedLink,
    LinearLink,
    NoisyOrLink,
    ProductLogicLink,
    Proposition,
    SetLink,
    Synthesizer,
    Tree,
    TreeSettings,
    bayes_net_faults,
    evaluate,
    read_tree,
    resynthesize,
    rule_named,
    to_problog,
    tree_failures,
)
from foretell.forecasters.tree.what_if import what_if
from foretell.models import BudgetExceeded, ModelError
from foretell.models.providers import ScriptedModel, model_name
from foretell.operations import grow_tree, show_tree
from foretell.plugins import names
from foretell.questions import InputError
from foretell.runs import Settings

PARENT = Proposition(id="P0", claim="The bridge opens.", children=("P1", "P2"), causality="Both are needed.")
BELOW = {
    "P1": Proposition(id="P1", claim="It is repaired.", p=0.5, grounding=Grounding(grounder="x", report="Crews work.")),
    "P2": Proposition(id="P2", claim="It is paid for.", p=0.8, grounding=Grounding(grounder="x", key_factor="Taxes.")),
}


def said(**values: Any) -> str:
    return json.dumps({"report": "Weighed.", "key_factor": "Money.", **values})


def effects(base: float = 0.0, /, **weights: float) -> dict[str, Any]:
    """A linear answer: children that help by their weights, those that hinder by negative ones."""
    stated = {id: {"effect": "helps" if w >= 0 else "hinders", "weight": abs(w)} for id, w in weights.items()}
    return {"base": base, "effects": stated}


def synthesize(
    script: Any, rule: str = "linear", below: dict[str, Proposition] | None = None, **settings: Any
) -> tuple[Proposition, TreeSetup]:
    setup = TreeSetup(model=ScriptedModel(script))
    own = {name: settings.pop(name) for name in ("missing", "seed") if name in settings}
    how = TreeSettings(rule=rule, **settings)
    synthesizer = Synthesizer(about=setup.tree_question, context=setup.context, settings=how, **own)
    return asyncio.run(synthesizer.synthesize(PARENT, ClaimSurroundings(path=("Above.",)), below or BELOW)), setup


def test_linear_weights_are_applied_by_us():
    found, _ = synthesize([said(**effects(0.05, P1=0.5, P2=0.25))])
    assert found.link == LinearLink(intercept=0.05, weights={"P1": 0.5, "P2": 0.25})
    assert found.p == pytest.approx(0.05 + 0.25 + 0.2)
    assert (found.report, found.key_factor, found.notes) == ("Weighed.", "Money.", ())


def test_a_number_of_the_models_own_is_never_used():
    found, _ = synthesize([said(**effects(P1=0.5, P2=0.5), p=0.99, p_true=0.99)])
    assert found.p == pytest.approx(0.65)


def test_logic_is_exact_for_repeated_children():
    formula = "(P1 AND P2) OR (P1 AND PA)"
    found, _ = synthesize([said(formula=formula, assumption={"text": "Calm.", "p": 0.5})], "logic")
    assert isinstance(found.link, FormulaLink)
    assert found.p == pytest.approx(0.5 * (1 - 0.2 * 0.5))


def test_an_assumption_that_does_not_occur_is_left_away():
    found, _ = synthesize([said(formula="P1 OR P2", assumption={"text": "Calm.", "p": 0.5})], "logic")
    assert found.link == FormulaLink(expression="P1 OR P2")


@pytest.mark.parametrize(
    ("formula", "p"),
    [("P1&P2&PA", 0.5 * 0.8 * 0.9), ("~PA&P1&P2", 0.5 * 0.8 * 0.1), ("¬PA ∧ P1 ∧ P2", 0.04), ("P1&&P2||PA", 0.94)],
)
def test_an_assumption_is_found_however_it_is_written(formula: str, p: float):
    found, setup = synthesize([said(formula=formula, assumption={"text": "Calm.", "p": 0.9})], "logic")
    assert len(setup.requests) == 1
    assert isinstance(found.link, FormulaLink)
    assert found.link.assumption is not None
    assert found.p == pytest.approx(p)


def test_a_strong_obstacle_is_stated_as_one():
    found, setup = synthesize([said(**effects(0.02, P1=0.08, P2=-0.9))])
    assert len(setup.requests) == 1
    assert found.link == LinearLink(intercept=0.92, weights={"P1": 0.08, "P2": -0.9})
    assert found.p == pytest.approx(0.02 + 0.04 + 0.9 * 0.2)
    assert isinstance(found.link, LinearLink)
    assert "0.9 times the chance that P2 is false" in found.link.describe(("P1", "P2"))
    assert not list(found.link.problems("P0", ("P1", "P2"), intercept_limit=0.1))
    paper = LinearLink(intercept=0.1, weights={"P1": 0.5, "P2": -0.3})
    assert not list(paper.problems("P0", ("P1", "P2"), intercept_limit=0.1)), "the paper's form"


def test_who_repeats_a_judgement_is_taken_at_their_word():
    high = said(**effects(0.3, P1=0.2, P2=-0.3))
    found, setup = synthesize([high, high])
    assert isinstance(found.link, LinearLink)
    assert (found.link.base, found.failed) == (pytest.approx(0.3), "")
    assert found.p == pytest.approx(0.3 + 0.1 + 0.06)
    assert "confirmed: a base of 0.3" in found.notes[0]
    assert "If you stand by it, give the same answer again" in setup.requests[1].messages[-1].text
    over = said(**effects(0, P1=1, P2=-1))
    found, _ = synthesize([over, over])
    assert found.link == LinearLink(intercept=0.5, weights={"P1": 0.5, "P2": -0.5}), "proportions are kept"
    different = [said(**effects(0, P1=1, P2=w)) for w in (0.7, 0.8, 0.9)]
    found, setup = synthesize(different)
    assert len(setup.requests) == 3
    assert isinstance(found.link, LinearLink)
    assert found.link.weights["P2"] / found.link.weights["P1"] == pytest.approx(0.9)


def test_the_product_t_norm_is_the_papers():
    leaves = {id: Proposition(id=id, claim=id, p=p) for id, p in (("P1", 0.5), ("P2", 0.9), ("P3", 0.9))}
    top = Proposition(id="P0", claim="c", children=("P1", "P2", "P3"))
    text = "(P1 AND P2) OR (P1 AND P3)"
    p: dict[str, float] = {}
    for link in (ProductLogicLink(expression=text), FormulaLink(expression=text)):
        tree = Tree(root="P0", nodes={"P0": replace(top, link=link), **leaves})
        p[link.kind] = evaluate(tree).p
        if isinstance(link, ProductLogicLink):
            assert what_if(tree, {"P1": 1.0}).p == pytest.approx(0.99)
            with pytest.raises(InvalidTree, match="product t-norm"):
                to_problog(evaluate(tree).tree)
    assert p == {"product_logic": pytest.approx(0.6975), "formula": pytest.approx(0.495)}
    # Table 14 of the paper, with every claim at 0.6.
    for formula, assumed, expected in (
        ("(P1) OR (P2 AND P3) OR (P2 AND PA)", 0.65, 1 - 0.4 * (1 - 0.36) * (1 - 0.39)),
        ("(P1 AND P2 AND P3) OR PA", 0.05, 1 - (1 - 0.216) * 0.95),
        ("(P1 AND P2 AND NOT P3) OR PA", 0.7, 1 - (1 - 0.144) * 0.3),
        ("P1 AND P3 AND (P2 OR PA)", 0.75, 0.36 * 0.9),
    ):
        link = ProductLogicLink(expression=formula, assumption=FormulaAssumption(p=assumed))
        equal = {id: replace(leaf, p=0.6) for id, leaf in leaves.items()}
        assert evaluate(Tree(root="P0", nodes={"P0": replace(top, link=link), **equal})).p == pytest.approx(expected)


def test_noisy_or_and_inhibited_noisy_or():
    found, _ = synthesize([said(leak=0.1, strengths={"P1": 0.8, "P2": 0.5})], "noisy-or")
    assert isinstance(found.link, NoisyOrLink)
    assert found.p == pytest.approx(1 - 0.9 * 0.6 * 0.6)
    found, _ = synthesize([said(leak=0.1, strengths={"P1": 0.8}, inhibitors={"P2": 0.5})], "inhibited-noisy-or")
    assert isinstance(found.link, InhibitedNoisyOrLink)
    assert found.p == pytest.approx((1 - 0.9 * 0.6) * 0.6)


def test_vanilla_takes_the_judgement():
    found, setup = synthesize([said(p=0.42)], "vanilla")
    assert found.link == JudgedLink(p=0.42)
    assert found.p == 0.42
    assert "weight" not in str(setup.requests[0].schema)


def test_average_and_random_weights_ask_nobody():
    found, setup = synthesize([], "average")
    assert (found.link, found.p) == (AverageLink(), pytest.approx(0.65))
    assert not setup.requests
    drawn = [synthesize([], "random", seed=seed)[0] for seed in (1, 1, 2)]
    assert drawn[0].link == drawn[1].link != drawn[2].link
    assert isinstance(drawn[0].link, LinearLink)
    assert sum(drawn[0].link.weights.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("rule", "wrong", "reason"),
    [
        ("linear", effects(0.3, P1=0.2, P2=0.2), "this chance even with every child against it"),
        ("linear", effects(0, P1=1, P2=1), "a chance of 2 with every child in its favour"),
        ("linear", effects(0, P1=1.5, P2=0.1), "above 1"),
        ("linear", effects(0, P1=0.5), "P2 is missing"),
        ("linear", effects(0, P1=0.5, P2=0.1, P9=0.1), "P9 is unknown"),
        ("product-logic", {"formula": "P1 AND P3", "assumption": None}, "P3 is not a child"),
        ("logic", {"formula": "P1 AND (", "assumption": None}, "character 9"),
        ("logic", {"formula": "P1 AND P3", "assumption": None}, "P3 is not a child"),
        ("logic", {"formula": "P1", "assumption": None}, "P2 is a child but does not occur"),
        ("logic", {"formula": "P1 AND P2 AND PA", "assumption": None}, "nothing says what it is"),
        ("noisy-or", {"leak": 0.1, "strengths": {"P1": 1.2, "P2": 0.1}}, "above 1"),
        ("inhibited-noisy-or", {"leak": 0.1, "strengths": {"P1": 0.2}, "inhibitors": {}}, "P2 is a child"),
        (
            "inhibited-noisy-or",
            {"leak": 0.1, "strengths": {"P1": 0.2, "P2": 0.1}, "inhibitors": {"P2": 0.1}},
            "cannot both",
        ),
        ("vanilla", {"p": 1.2}, "above 1"),
    ],
)
def test_what_does_not_fit_is_asked_for_again_with_the_reason(rule: str, wrong: dict[str, Any], reason: str):
    setup = TreeSetup(model=playing(lambda request: None if len(request.messages) > 2 else said(**wrong)))
    synthesizer = Synthesizer(about=setup.tree_question, context=setup.context, settings=TreeSettings(rule=rule))
    found = asyncio.run(synthesizer.synthesize(PARENT, ClaimSurroundings(), BELOW))
    assert reason in setup.requests[1].messages[-1].text
    assert len(setup.requests) == 2
    assert found.link is not None
    assert not isinstance(found.link, AverageLink)


@pytest.mark.parametrize("error", [ModelError("down"), BudgetExceeded("no money")])
def test_without_an_answer_the_mean_stands_in_and_a_note_says_so(error: Exception):
    found, _ = synthesize([error])
    assert (found.link, found.p) == (AverageLink(), pytest.approx(0.65))
    assert "the mean of the children stands in for the rule linear" in found.failed
    assert found.rule == "linear"


def test_a_stubborn_model_is_asked_three_times():
    setup = TreeSetup(model=playing(), name="scripted:stubborn")
    synthesizer = Synthesizer(about=setup.tree_question, context=setup.context, settings=TreeSettings())
    found = asyncio.run(synthesizer.synthesize(PARENT, ClaimSurroundings(), BELOW))
    assert len(setup.requests) == 3
    assert found.link == AverageLink()


def test_a_child_without_a_number_is_told_and_stood_in_for():
    failed = Proposition(id="P2", claim="It is paid for.", grounding=Grounding(grounder="x", error="no tools"))
    script = [said(**effects(P1=0.5, P2=0.5))]
    found, setup = synthesize(script, below={**BELOW, "P2": failed}, missing=0.4)
    assert found.p == pytest.approx(0.45)
    assert found.notes == ("0.4 stands in for P2",)
    assert "could not be examined (no tools); 0.4 stands in" in setup.requests[0].messages[1].text


def test_no_child_with_a_number_means_no_question_and_no_link():
    nothing = {id: Proposition(id=id, claim=id) for id in ("P1", "P2")}
    found, setup = synthesize([], below=nothing)
    assert (found.link, found.p) == (None, None)
    assert not setup.requests


def test_weights_of_a_bayes_net_are_insisted_on_or_made():
    wrong = said(**effects(0.05, P1=0.9, P2=-0.2))
    right = said(**effects(0.05, P1=0.5, P2=-0.4))
    found, setup = synthesize([wrong, right], bayes_net=True)
    assert "a chance of 1.15 with every child in its favour" in setup.requests[1].messages[-1].text
    assert isinstance(found.link, LinearLink)
    assert bayes_net_faults(found.link) == []
    for scaling in ("min-max", "softmax"):
        found, setup = synthesize([wrong], scaling=scaling)
        assert isinstance(found.link, LinearLink)
        assert min(found.link.weights.values()) >= 0
        assert found.link.intercept + sum(found.link.weights.values()) <= 1 + 1e-9
        assert f"scaled by {scaling}" in found.notes[0]
    with pytest.raises(InputError, match="no scaling"):
        TreeSettings(scaling="other")


def test_shared_claims_below_are_one_variable():
    below = {
        "P1": Proposition(id="P1", claim="a", children=("P3", "P4"), link=FormulaLink(expression="P3 AND P4"), p=0.25),
        "P2": Proposition(id="P2", claim="b", children=("P3", "P5"), link=FormulaLink(expression="P3 AND P5"), p=0.25),
        **{id: Proposition(id=id, claim=id, p=0.5) for id in ("P3", "P4", "P5")},
    }
    found, _ = synthesize([said(formula="P1 OR P2", assumption=None)], "logic", below=below)
    assert found.p == pytest.approx(0.5 * 0.75)
    whole = Tree(root="P0", nodes={"P0": replace(PARENT, link=found.link), **below})
    assert evaluate(whole).p == found.p


def test_the_prompt_shows_reports_and_numbers_and_does_not_ask_for_a_gut_number():
    _, setup = synthesize([said(**effects(P1=0.5, P2=0.5))])
    system, user = (message.text for message in setup.requests[0].messages)
    for words in ("Crews work.", "Taxes.", "0.500", "0.800", "Both are needed.", "Above.", "port authority"):
        assert words in user
    assert "your own estimate of the claim is neither asked for nor used" in system
    assert "with every child against it" in system
    assert "whether it helps the claim or hinders it" in system


def test_reports_are_cut_to_a_common_length():
    long = {id: Proposition(id=id, claim=id, p=0.5, report="x" * 100_000) for id in ("P1", "P2")}
    _, setup = synthesize([said(**effects(P1=0.5, P2=0.5))], below=long)
    assert len(setup.requests[0].messages[1].text) < 26_000


def test_every_rule_has_a_name_and_others_are_refused():
    built_in = {"linear", "logic", "product-logic", "vanilla", "average", "random", "noisy-or", "inhibited-noisy-or"}
    assert built_in <= set(names("synthesis_rules"))
    with pytest.raises(InputError, match="no synthesis rule"):
        rule_named("magic")


NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-3, 3) | st.floats(-1.2, 1.2)
ANSWERS = {
    "linear": st.fixed_dictionaries(
        {
            "base": NUMBERS,
            "effects": st.fixed_dictionaries(
                {
                    id: st.fixed_dictionaries({"effect": st.sampled_from(["helps", "hinders"]), "weight": NUMBERS})
                    for id in ("P1", "P2")
                }
            ),
        }
    ),
    "logic": st.fixed_dictionaries(
        {
            "formula": st.text(alphabet="P12A()NOTRD. &|!", max_size=24),
            "assumption": st.none() | st.fixed_dictionaries({"text": st.text(max_size=5), "p": NUMBERS}),
        }
    ),
    "noisy-or": st.fixed_dictionaries(
        {"leak": NUMBERS, "strengths": st.dictionaries(st.sampled_from(["P1", "P2", "P3"]), NUMBERS)}
    ),
    "vanilla": st.fixed_dictionaries({"p": NUMBERS | st.text(max_size=4)}),
}


@settings(max_examples=40, deadline=None)
@given(st.data(), st.sampled_from(list(ANSWERS)))
def test_whatever_is_said_a_probability_comes_out(data: st.DataObject, rule: str):
    answer = said(**data.draw(ANSWERS[rule]))
    found, setup = synthesize(lambda _: answer, rule)  # pyright: ignore[reportUnknownLambdaType]
    assert found.p is not None
    assert 0 <= found.p <= 1
    assert found.link is not None
    assert len(setup.requests) in (1, 2, 3)


def test_a_failed_synthesis_is_seen_everywhere(tmp_path: Path):
    refusing = playing(lambda request: "no" if "P0/synthesis" in request.slot else None)
    grown = grow_tree(
        "The harbour bridge opens by 31 December 2026.",
        model=model_name(refusing),
        grounder="plain",
        settings=Settings(home=tmp_path / "home"),
    )
    assert grown.exit_code == 3
    assert grown.failures[0].startswith("P0: synthesis failed, the mean of its children stands in")
    assert grown.failures[0] in grown.warnings
    assert "synthesis failed" in str(grown)
    tree = read_tree(grown.path)
    assert (tree.nodes["P0"].rule, tree.nodes["P0"].link) == ("linear", AverageLink())
    for text in (grown.to_html(), show_tree(grown).to_markdown()):
        assert "synthesis failed" in text
    checked = CliRunner().invoke(operation_command("tree show"), [str(grown.path)])
    assert checked.exit_code == 3
    assert "synthesis failed" in checked.output
    again = resynthesize(tree, [SetLink(id="P0", link=AverageLink())])
    assert tree_failures(again) == [], "who sets the rule has judged"
