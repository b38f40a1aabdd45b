import random

import pytest
from tests.forecasters.tree.random_trees import claim, random_tree, tree_of

from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.edits import Scenario, SetP
from foretell.forecasters.tree.exports import link_in_numbers, link_in_words, outline, to_dot
from foretell.forecasters.tree.links import (
    AverageLink,
    FormulaAssumption,
    FormulaLink,
    InhibitedNoisyOrLink,
    JudgedLink,
    LinearLink,
    Link,
    NoisyOrLink,
)
from foretell.forecasters.tree.proposition import Grounding, Tree
from foretell.forecasters.tree.what_if import compare_scenarios
from foretell.report.markup import quoted_markdown
from foretell.report.tree_report import tree_report

ODD = 'Prices "rise" <b>&</b> | fall\n# a {b} [c](d) #1;'


def two(link: Link, **fields: object) -> Tree:
    top = claim("P0", children=("P1", "P2"), link=link, **fields)
    return evaluated(tree_of(top, claim("P1", p=0.3), claim("P2", p=0.8)))


@pytest.mark.parametrize(
    ("link", "words", "numbers"),
    [
        (
            LinearLink(weights={"P1": -0.25, "P2": 0.5}, intercept=0.05),
            "0.05 whatever happens, less 0.25 times the chance of P1, and 0.5 times the chance of P2.",
            "0.05 − 0.25 × 0.300 + 0.5 × 0.800 = 0.375",
        ),
        (
            LinearLink(weights={"P1": 0.25, "P2": 0.5}),
            "0.25 times the chance of P1 and 0.5 times the chance of P2.",
            "0.25 × 0.300 + 0.5 × 0.800 = 0.475",
        ),
        (AverageLink(), "The mean of P1 and P2.", "(0.300 + 0.800) / 2 = 0.550"),
        (
            FormulaLink(expression="P1 AND NOT P2 OR PA", assumption=FormulaAssumption(text="Luck.", p=0.1)),
            "True exactly when (P1 and not P2) or PA. PA, 0.1 likely: Luck.",
            "P((0.300 AND NOT 0.800) OR 0.1) = 0.154",
        ),
        (
            NoisyOrLink(strengths={"P1": 0.5, "P2": 0.25}, leak=0.1),
            "Each of these can bring it about by itself: P1 with a chance of 50 %, P2 with a chance of 25 %, and "
            "anything else with a chance of 10 %.",
            "1 − (1 − 0.1) × (1 − 0.5 × 0.300) × (1 − 0.25 × 0.800) = 0.388",
        ),
        (
            InhibitedNoisyOrLink(strengths={"P1": 0.5}, inhibitors={"P2": 0.25}),
            "Each of these can bring it about by itself: P1 with a chance of 50 %; it is prevented by P2 with a chance "
            "of 25 %.",
            "[1 − (1 − 0.5 × 0.300)] × (1 − 0.25 × 0.800) = 0.120",
        ),
        (
            JudgedLink(p=0.4, stale=True),
            "Judged as a whole from the reports on P1 and P2. Something below it has changed since.",
            "",
        ),
    ],
)
def test_links_are_described_in_words_and_numbers(link: Link, words: str, numbers: str):
    tree = two(link)
    assert link_in_words(tree.nodes["P0"]) == words
    assert link_in_numbers(tree, tree.nodes["P0"]) == numbers


def test_an_overridden_claim_shows_the_result_of_its_rule():
    tree = two(AverageLink(), pinned=0.9)
    assert link_in_words(tree.nodes["P0"]) == "Overridden by 90 %; its rule: The mean of P1 and P2."
    assert link_in_numbers(tree, tree.nodes["P0"]) == "(0.300 + 0.800) / 2 = 0.550"


def test_outline_shows_a_shared_claim_once_in_full():
    tree = random_tree(random.Random(3), 4, 5)
    lines = list(outline(tree))
    assert [line.node.id for line in lines if not line.again] == list(dict.fromkeys(line.node.id for line in lines))
    assert {line.node.id for line in lines} == set(tree.nodes)


def odd_tree() -> Tree:
    leaf = Grounding(grounder=ODD, report=f"## Proof\n\n{ODD}\n<script>x</script>", sources=(ODD, "https://a.org/?q=1"))
    failed = claim("P2", grounding=Grounding(grounder="g", error=ODD))
    top = claim(
        "P0", children=("P1", "P2"), link=AverageLink(), report=ODD, key_factor=ODD, causality=ODD, notes=(ODD,)
    )
    nodes = (top, claim("P1", p=0.5, grounding=leaf), failed)
    return evaluated(Tree(root="P0", nodes={n.id: type(n)(**{**vars(n), "claim": ODD}) for n in nodes}, notes=(ODD,)))


def test_markdown_reports_escape_markup_in_texts():
    tree = odd_tree()
    outcomes = compare_scenarios(tree, [Scenario(name=ODD, edits=(SetP(id="P1", p=0.0),))])
    text = tree_report(tree, outcomes).to_markdown()
    assert "<script>" not in text
    assert "<b>" not in text.replace(r"\<b\>", "")
    assert "Without a number of their own: P2. 50 % stands in for them." in text
    assert "> ## Proof" in text
    assert "Grounding failed" in text
    for heading in ("## The tree", "## What it hangs on", "## Scenarios", "## Every claim", "### P0: 50.0 %", "### P1"):
        assert heading in text
    assert quoted_markdown("a <b>\n\nc") == "> a &lt;b>\n>\n> c"


def test_dot_exports_quote_special_characters():
    tree = odd_tree()
    dot = to_dot(tree)
    assert dot.count("->") == 2
    assert r"Prices \"rise\"" in dot
    assert all(line.replace(r"\"", "").count('"') % 2 == 0 for line in dot.splitlines())
    link = LinearLink(weights={"P1": 0.25, "P2": 0.5})
    assert '[label="0.25"]' in to_dot(two(link))
    assert "against: 0.25" in to_dot(two(InhibitedNoisyOrLink(strengths={"P1": 0.5}, inhibitors={"P2": 0.25})))
    assert "dashed" in to_dot(two(link, pinned=0.1))
