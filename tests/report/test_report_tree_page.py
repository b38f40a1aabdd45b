import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.proposition import Grounding, Proposition, Tree
from foretell.forecasters.tree.tree_file import read_tree_file
from foretell.forecasters.tree.what_if import compare_scenarios
from foretell.report.charts.ranking import TornadoRow, tornado_plot
from foretell.report.tree_page import tree_page

EXAMPLES = Path(__file__).parents[2] / "examples" / "trees"
ODD = '<script>alert(1)</script> & "q"\n\nsecond'


def parsed(html: str) -> ET.Element:
    return ET.fromstring(html[html.index("<html") :])


def test_every_claim_formula_and_scenario_is_on_the_page():
    found = read_tree_file(EXAMPLES / "central_bank.json")
    html = tree_page(found.tree, compare_scenarios(found.tree, found.scenarios.values()))
    page = parsed(html)
    ids = {element.get("id") for element in page.iter()}
    assert {f"claim-{id}" for id in found.tree.nodes} <= ids
    text = " ".join(page.itertext())
    assert "Probability 0.538" in text
    assert "True exactly when (P1 and P2) or (P2 and P3) or (P1 and P3 and PA)." in text
    assert "1 − (1 − 0.1) × (1 − 0.6 × 0.400) × (1 − 0.5 × 0.450) = 0.470" in text
    assert "hard landing" in text
    assert all(node.claim in text for node in found.tree.nodes.values())
    links = {a.get("href") for a in page.iter("a")}
    assert {f"#claim-{id}" for id in found.tree.nodes} <= links


def test_texts_of_strangers_stay_texts():
    grounding = Grounding(
        grounder=ODD, report=ODD, error=ODD, sources=(ODD, "javascript:alert(1)", "https://a.org/x?y=1")
    )
    top = Proposition(id="P0", claim=ODD, grounding=grounding, report=ODD, key_factor=ODD, causality=ODD, notes=(ODD,))
    html = tree_page(evaluated(Tree(root="P0", nodes={"P0": top}, notes=(ODD,))))
    page = parsed(html)
    assert len(list(page.iter("script"))) == 1
    hrefs = [a.get("href") for a in page.iter("a")]
    assert "https://a.org/x?y=1" in hrefs
    assert not any("javascript" in (href or "") for href in hrefs)


def test_an_incomplete_answer_says_so():
    tree = read_tree_file(EXAMPLES / "nvda.json").tree
    lost = replace(tree.nodes["P2.1"], p=None, grounding=Grounding(grounder="g", error="no results"))
    text = " ".join(parsed(tree_page(evaluated(replace(tree, nodes={**tree.nodes, "P2.1": lost})))).itertext())
    assert "Without a number of their own: P2.1" in text
    assert "the answer lies between" in text
    assert "Grounding failed: no results" in text


def test_tornado_without_bars():
    assert "Nothing moves it" in tornado_plot([], 0.5).svg
    assert tornado_plot([TornadoRow(name="a", at_low=0.2, at_high=0.9)], 0.5).svg.count("<rect") == 2
