"""Synthesis: links stated by a model are validated, and the probability is computed from them."""

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

from foretell import grow_tree
from foretell.api import show_tree
from foretell.cli.commands import operation_command
from foretell.forecasters.tree.arithmetic.evaluation import evaluate
from foretell.forecasters.tree.arithmetic.scaling import bayes_net_faults
from foretell.forecasters.tree.edits import SetLink
from foretell.forecasters.tree.exports import to_problog, tree_failures
from foretell.forecasters.tree.grow.prompting import ClaimSurroundings
from foretell.forecasters.tree.grow.synthesize import Synthesizer, rule_named
from foretell.forecasters.tree.links import (
    AverageLink,
    FormulaAssumption,
    FormulaLink,
    InhibitedNoisyOrLink,
    JudgedLink,
    LinearLink,
    NoisyOrLink,
    ProductLogicLink,
)
from foretell.forecasters.tree.proposition import Grounding, Proposition, Tree
from foretell.forecasters.tree.settings import TreeSettings
from foretell.forecasters.tree.text import InvalidTree
from foretell.forecasters.tree.tree_file import read_tree
from foretell.forecasters.tree.what_if import resynthesize, what_if
from foretell.models.model import BudgetExceeded, ModelError
from foretell.models.providers.function import model_name
from foretell.models.providers.scripted import ScriptedModel
from foretell.plugins import names
from foretell.questions.errors import InputError
from foretell.runs.settings import Settings

PARENT = Proposition(id="P0", claim="The bridge opens.", children=("P1", "P2"), causality="Both are needed.")
BELOW = {
    "P1": Proposition(id="P1", claim="It is repaired.", p=0.5, grounding=Grounding(grounder="x", report="Crews work.")),
    "P2": Proposition(id="P2", claim="It is paid for.", p=0.8, grounding=Grounding(grounder="x", key_factor="Taxes.")),
}


def reply(**values: Any) -> str:
    return json.dumps({"report": "Weighed.", "key_factor": "Money.", **values})


def weighted(intercept: float = 0.0, /, **weights: float) -> dict[str, Any]:
    """Return a linear answer; children that hinder have negative weights."""
    return {"intercept": intercept, "weights": weights}


def synthesize(
    script: Any, rule: str = "analytica-linear", below: dict[str, Proposition] | None = None, **settings: Any
) -> tuple[Proposition, TreeSetup]:
    setup = TreeSetup(model=ScriptedModel(script))
    own = {name: settings.pop(name) for name in ("missing", "seed") if name in settings}
    how = TreeSettings(rule=rule, **settings)
    synthesizer = Synthesizer(about=setup.tree_question, context=setup.context, settings=how, **own)
    return asyncio.run(synthesizer.synthesize(PARENT, ClaimSurroundings(path=("Above.",)), below or BELOW)), setup


def test_the_probability_is_computed_from_linear_weights():
    node, _ = synthesize([reply(**weighted(0.05, P1=0.5, P2=0.25))])
    assert node.link == LinearLink(intercept=0.05, weights={"P1": 0.5, "P2": 0.25})
    assert node.p == pytest.approx(0.05 + 0.25 + 0.2)
    assert (node.report, node.key_factor, node.notes) == ("Weighed.", "Money.", ())


def test_a_probability_stated_by_the_model_is_not_used():
    node, _ = synthesize([reply(**weighted(P1=0.5, P2=0.5), p=0.99, p_true=0.99)])
    assert node.p == pytest.approx(0.65)


def test_logic_is_exact_for_repeated_children():
    formula = "(P1 AND P2) OR (P1 AND PA)"
    node, _ = synthesize([reply(formula=formula, assumption={"text": "Calm.", "p": 0.5})], "logic")
    assert isinstance(node.link, FormulaLink)
    assert node.p == pytest.approx(0.5 * (1 - 0.2 * 0.5))


def test_an_assumption_that_does_not_occur_is_dropped():
    node, _ = synthesize([reply(formula="P1 OR P2", assumption={"text": "Calm.", "p": 0.5})], "logic")
    assert node.link == FormulaLink(expression="P1 OR P2")


@pytest.mark.parametrize(
    ("formula", "p"),
    [("P1&P2&PA", 0.5 * 0.8 * 0.9), ("~PA&P1&P2", 0.5 * 0.8 * 0.1), ("¬PA ∧ P1 ∧ P2", 0.04), ("P1&&P2||PA", 0.94)],
)
def test_an_assumption_is_recognised_with_any_operators(formula: str, p: float):
    node, setup = synthesize([reply(formula=formula, assumption={"text": "Calm.", "p": 0.9})], "logic")
    assert len(setup.requests) == 1
    assert isinstance(node.link, FormulaLink)
    assert node.link.assumption is not None
    assert node.p == pytest.approx(p)


def test_a_strong_obstacle_gets_a_negative_weight():
    node, setup = synthesize([reply(**weighted(0.1, P1=0.9, P2=-0.5))])
    assert len(setup.requests) == 1
    assert node.link == LinearLink(intercept=0.1, weights={"P1": 0.9, "P2": -0.5})
    assert node.p == pytest.approx(0.1 + 0.45 - 0.4)
    earlier = LinearLink(intercept=0.92, weights={"P1": 0.08, "P2": -0.9})
    assert "0.9 times the chance that P2 is false" in earlier.describe(("P1", "P2"))
    assert not list(earlier.problems("P0", ("P1", "P2"), intercept_limit=0.1)), "trees of earlier versions stay valid"
    paper = LinearLink(intercept=0.1, weights={"P1": 0.5, "P2": -0.3})
    assert not list(paper.problems("P0", ("P1", "P2"), intercept_limit=0.1)), "the form of the paper is valid"


def test_an_extreme_judgement_is_refused_however_often_it_is_repeated():
    for answer in (weighted(0.11, P1=0.2, P2=0.3), weighted(0, P1=-1, P2=0.1), weighted(0, P1=1.01, P2=0.1)):
        node, setup = synthesize(lambda _, answer=answer: reply(**answer))
        assert len(setup.requests) == 3
        assert node.link == AverageLink()
        assert "If you stand by it" not in setup.requests[1].messages[-1].text


def test_the_product_t_norm_gives_the_values_of_the_paper():
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


def test_noisy_or_rules_compute_the_probability():
    node, _ = synthesize([reply(leak=0.1, strengths={"P1": 0.8, "P2": 0.5})], "noisy-or")
    assert isinstance(node.link, NoisyOrLink)
    assert node.p == pytest.approx(1 - 0.9 * 0.6 * 0.6)
    node, _ = synthesize([reply(leak=0.1, strengths={"P1": 0.8}, inhibitors={"P2": 0.5})], "inhibited-noisy-or")
    assert isinstance(node.link, InhibitedNoisyOrLink)
    assert node.p == pytest.approx((1 - 0.9 * 0.6) * 0.6)


def test_vanilla_uses_the_stated_probability():
    node, setup = synthesize([reply(p=0.42)], "vanilla")
    assert node.link == JudgedLink(p=0.42)
    assert node.p == 0.42
    assert "weight" not in str(setup.requests[0].schema)


def test_average_and_random_weights_need_no_model():
    node, setup = synthesize([], "average")
    assert (node.link, node.p) == (AverageLink(), pytest.approx(0.65))
    assert not setup.requests
    drawn = [synthesize([], "random", seed=seed)[0] for seed in (1, 1, 2)]
    assert drawn[0].link == drawn[1].link != drawn[2].link
    assert isinstance(drawn[0].link, LinearLink)
    assert sum(drawn[0].link.weights.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("rule", "wrong", "reason"),
    [
        ("analytica-linear", weighted(0.3, P1=0.2, P2=0.2), "the intercept is 0.3, outside [-0.1, 0.1]"),
        ("analytica-linear", weighted(0, P1=1, P2=1), "the weighted sum is 1.3, outside [0, 1]"),
        ("linear", weighted(0, P1=1.5, P2=0.1), "the weight of P1 is 1.5, outside [-1, 1]"),
        ("analytica-linear", weighted(0, P1=0.5), "P2 is missing"),
        ("analytica-linear", weighted(0, P1=0.5, P2=0.1, P9=0.1), "P9 is unknown"),
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
def test_invalid_links_are_requested_again_with_the_reason(rule: str, wrong: dict[str, Any], reason: str):
    setup = TreeSetup(model=playing(lambda request: None if len(request.messages) > 2 else reply(**wrong)))
    synthesizer = Synthesizer(about=setup.tree_question, context=setup.context, settings=TreeSettings(rule=rule))
    node = asyncio.run(synthesizer.synthesize(PARENT, ClaimSurroundings(), BELOW))
    assert reason in setup.requests[1].messages[-1].text
    assert len(setup.requests) == 2
    assert node.link is not None
    assert not isinstance(node.link, AverageLink)


@pytest.mark.parametrize("error", [ModelError("down"), BudgetExceeded("no money")])
def test_the_mean_is_used_if_the_model_fails(error: Exception):
    node, _ = synthesize([error])
    assert (node.link, node.p) == (AverageLink(), pytest.approx(0.65))
    assert "the mean of the children is used instead of the rule analytica-linear" in node.failed
    assert node.rule == "analytica-linear"


def test_an_invalid_link_is_requested_at_most_three_times():
    setup = TreeSetup(model=playing(), name="scripted:stubborn")
    synthesizer = Synthesizer(about=setup.tree_question, context=setup.context, settings=TreeSettings())
    node = asyncio.run(synthesizer.synthesize(PARENT, ClaimSurroundings(), BELOW))
    assert len(setup.requests) == 3
    assert node.link == AverageLink()


def test_missing_probabilities_of_children_are_replaced_and_noted():
    failed = Proposition(id="P2", claim="It is paid for.", grounding=Grounding(grounder="x", error="no tools"))
    script = [reply(**weighted(P1=0.5, P2=0.5))]
    node, setup = synthesize(script, below={**BELOW, "P2": failed}, missing=0.4)
    assert node.p == pytest.approx(0.45)
    assert node.notes == ("0.4 is used for P2",)
    assert "could not be examined (no tools); 0.4 stands in" in setup.requests[0].messages[1].text


def test_no_link_is_requested_if_no_child_has_a_probability():
    nothing = {id: Proposition(id=id, claim=id) for id in ("P1", "P2")}
    node, setup = synthesize([], below=nothing)
    assert (node.link, node.p) == (None, None)
    assert not setup.requests


def test_bayes_net_weights_are_requested_again_or_scaled():
    wrong = reply(**weighted(0.05, P1=0.9, P2=-0.2))
    right = reply(**weighted(0.05, P1=0.5, P2=0.4))
    node, setup = synthesize([wrong, right], bayes_net=True)
    assert "P2" in setup.requests[1].messages[-1].text
    assert isinstance(node.link, LinearLink)
    assert bayes_net_faults(node.link) == []
    for scaling in ("min-max", "softmax"):
        node, setup = synthesize([wrong], scaling=scaling)
        assert isinstance(node.link, LinearLink)
        assert min(node.link.weights.values()) >= 0
        assert node.link.intercept + sum(node.link.weights.values()) <= 1 + 1e-9
        assert f"scaled by {scaling}" in node.notes[0]
    with pytest.raises(InputError, match="no scaling"):
        TreeSettings(scaling="other")


def test_shared_claims_below_are_one_variable():
    below = {
        "P1": Proposition(id="P1", claim="a", children=("P3", "P4"), link=FormulaLink(expression="P3 AND P4"), p=0.25),
        "P2": Proposition(id="P2", claim="b", children=("P3", "P5"), link=FormulaLink(expression="P3 AND P5"), p=0.25),
        **{id: Proposition(id=id, claim=id, p=0.5) for id in ("P3", "P4", "P5")},
    }
    node, _ = synthesize([reply(formula="P1 OR P2", assumption=None)], "logic", below=below)
    assert node.p == pytest.approx(0.5 * 0.75)
    whole = Tree(root="P0", nodes={"P0": replace(PARENT, link=node.link), **below})
    assert evaluate(whole).p == node.p


def test_the_prompt_shows_reports_and_numbers_and_asks_for_no_estimate():
    _, setup = synthesize([reply(**weighted(P1=0.5, P2=0.5))])
    system, user = (message.text for message in setup.requests[0].messages)
    for words in ("Crews work.", "Taxes.", "0.500", "0.800", "Both are needed.", "Above.", "port authority"):
        assert words in user
    assert "your own estimate of the claim is neither asked for nor used" in system
    assert "A child that hinders the claim has a negative weight" in system


def test_reports_are_truncated_to_a_common_length():
    long = {id: Proposition(id=id, claim=id, p=0.5, report="x" * 100_000) for id in ("P1", "P2")}
    _, setup = synthesize([reply(**weighted(P1=0.5, P2=0.5))], below=long)
    assert len(setup.requests[0].messages[1].text) < 26_000


def test_unknown_rule_names_are_rejected():
    built_in = {
        "analytica-linear",
        "logic",
        "product-logic",
        "vanilla",
        "average",
        "random",
        "noisy-or",
        "inhibited-noisy-or",
    }
    assert built_in <= set(names("synthesis_rules"))
    assert rule_named("linear") == rule_named("analytica-linear"), "its former name"
    with pytest.raises(InputError, match="no synthesis rule"):
        rule_named("magic")


NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-3, 3) | st.floats(-1.2, 1.2)
ANSWERS = {
    "analytica-linear": st.fixed_dictionaries(
        {"intercept": NUMBERS, "weights": st.fixed_dictionaries({id: NUMBERS for id in ("P1", "P2")})}
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


@settings(max_examples=40)
@given(st.data(), st.sampled_from(list(ANSWERS)))
def test_any_answer_leads_to_a_valid_probability(data: st.DataObject, rule: str):
    answer = reply(**data.draw(ANSWERS[rule]))
    node, setup = synthesize(lambda _: answer, rule)  # pyright: ignore[reportUnknownLambdaType]
    assert node.p is not None
    assert 0 <= node.p <= 1
    assert node.link is not None
    assert len(setup.requests) in (1, 2, 3)


def test_a_failed_synthesis_is_reported_in_all_outputs(tmp_path: Path):
    refusing = playing(lambda request: "no" if "P0/synthesis" in request.slot else None)
    grown = grow_tree(
        "The harbour bridge opens by 31 December 2026.",
        model=model_name(refusing),
        grounder="plain",
        set={"forecaster": "tree"},
        settings=Settings(home=tmp_path / "home"),
    )
    assert grown.exit_code == 3
    assert grown.failures[0].startswith("P0: synthesis failed, the mean of its children is used")
    assert grown.failures[0] in grown.warnings
    assert "synthesis failed" in str(grown)
    tree = read_tree(grown.path)
    assert (tree.nodes["P0"].rule, tree.nodes["P0"].link) == ("analytica-linear", AverageLink())
    for text in (grown.to_html(), show_tree(grown).to_markdown()):
        assert "synthesis failed" in text
    checked = CliRunner().invoke(operation_command("tree show"), [str(grown.path)])
    assert checked.exit_code == 3
    assert "synthesis failed" in checked.output
    again = resynthesize(tree, [SetLink(id="P0", link=AverageLink())])
    assert tree_failures(again) == [], "setting the link clears the failure"
