import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from tests.forecasters.tree.random_trees import claim

from foretell.api import show_tree
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.edits import SetClaim, SetP
from foretell.forecasters.tree.history import TreeAuthor, commit_edits
from foretell.forecasters.tree.links import AverageLink
from foretell.forecasters.tree.proposition import Grounding, Proposition, Tree, TreeOrigin
from foretell.forecasters.tree.tree_file import read_tree_file, write_tree
from foretell.forecasters.tree.what_if import compare_scenarios, resynthesize
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost
from foretell.report.charts.ranking import TornadoRow, tornado_plot
from foretell.report.document import write_outputs
from foretell.report.tree_report import MOST_DRAWN, picture_of, tree_report

EXAMPLES = Path(__file__).parents[2] / "examples" / "trees"
ODD = '<script>alert(1)</script> & "q"\n\nsecond'


def parsed(html: str) -> ET.Element:
    return ET.fromstring(html[html.index("<html") :])


def test_every_claim_formula_and_scenario_is_on_the_page():
    tree_file = read_tree_file(EXAMPLES / "central_bank.json")
    html = tree_report(tree_file.tree, compare_scenarios(tree_file.tree, tree_file.scenarios.values())).to_html()
    page = parsed(html)
    ids = {element.get("id") for element in page.iter()}
    assert {f"claim-{id}" for id in tree_file.tree.nodes} <= ids
    text = " ".join(page.itertext())
    assert "Probability 53.8 %" in text
    assert "True exactly when (P1 and P2) or (P2 and P3) or (P1 and P3 and PA)." in text
    assert "1 − (1 − 0.1) × (1 − 0.6 × 0.400) × (1 − 0.5 × 0.450) = 0.470" in text
    assert "hard landing" in text
    assert all(node.claim in text for node in tree_file.tree.nodes.values())
    links = {a.get("href") for a in page.iter("a")}
    assert {f"#claim-{id}" for id in tree_file.tree.nodes} <= links


def test_untrusted_texts_are_escaped():
    grounding = Grounding(
        grounder=ODD, report=ODD, error=ODD, sources=(ODD, "javascript:alert(1)", "https://a.org/x?y=1")
    )
    top = Proposition(id="P0", claim=ODD, grounding=grounding, report=ODD, key_factor=ODD, causality=ODD, notes=(ODD,))
    html = tree_report(evaluated(Tree(root="P0", nodes={"P0": top}, notes=(ODD,)))).to_html()
    page = parsed(html)
    assert len(list(page.iter("script"))) == 1
    hrefs = [a.get("href") for a in page.iter("a")]
    assert "https://a.org/x?y=1" in hrefs
    assert not any("javascript" in (href or "") for href in hrefs)


def test_an_incomplete_answer_is_reported():
    tree = read_tree_file(EXAMPLES / "nvda.json").tree
    lost = replace(tree.nodes["P2.1"], p=None, grounding=Grounding(grounder="g", error="no results"))
    report = tree_report(evaluated(replace(tree, nodes={**tree.nodes, "P2.1": lost})))
    text = " ".join(parsed(report.to_html()).itertext())
    assert "Without a number of their own: P2.1" in text
    assert "Grounding failed: no results" in text


def test_tornado_chart_without_inputs_has_a_message():
    assert "Nothing moves it" in tornado_plot([], 0.5).svg
    assert tornado_plot([TornadoRow(name="a", at_low=0.2, at_high=0.9)], 0.5).svg.count("<rect") == 2


def test_a_report_has_everything_needed_to_sign_it(tmp_path: Path):
    file = tmp_path / "bank.json"
    tree = read_tree_file(EXAMPLES / "central_bank.json").tree
    source = "[s1] Minutes (2026-05-01) https://bank.example/minutes"
    proof = Grounding(
        grounder="search",
        report="## Why\n\n**Three** months <img src=x> ![p](https://t.example/p.png) [bad](javascript:x)",
        sources=(source, "https://b.example/undated", "a book without a date"),
        trials=(0.6, 0.8, 0.7),
        route=("notebook failed: no kernel", "search: took over"),
    )
    origin = TreeOrigin(
        question="Does the bank cut?",
        criteria="As the bank **announces** it.",
        closes="2026-12-31",
        run="abc123",
        rule="linear",
        models=("grounder=openai:x",),
        cost=Cost(dollars=0.25, calls=7, input_tokens=100, output_tokens=20),
    )
    leaf = replace(tree.nodes["P1.1"], grounding=proof, notes=("looked at twice",))
    write_tree(file, replace(tree, origin=origin, nodes={**tree.nodes, "P1.1": leaf}))
    assert read_tree_file(file).tree.origin == origin
    spent = TreeAuthor(name="Ann", message="Vote", models=("synthesizer=openai:y",), cost=Cost(dollars=0.5, calls=2))
    commit_edits(file, [SetP(id="P2.2", p=0.6), SetClaim(id="P1.3", claim="Oil stays below 80 dollars.")], spent)

    result = show_tree(file)
    markdown, page = result.to_markdown(), parsed(result.to_html())
    text = " ".join(page.itertext())
    for shown in (text, markdown.replace("\\", "")):
        for words in (
            "it will be known by 2026-12-31",
            "Most for it: P1.1 at 70.0 %",
            "The answer would be 50 % with",
            "The answer lies between",
            "Drivers up",
            "Drivers down",
            "Stale: P1",
            "P1.1: notebook failed: no kernel; search: took over.",
            "grounder=openai:x, synthesizer=openai:y",
            "$0.75 billed, 9 calls, 120 tokens",
            "foretell replay abc123",
            "foretell tree show bank.json --inputs",
            "prepared by",
            "no date",
            "Ann",
        ):
            assert words in shown, words
    assert r"[\[s1\] Minutes](<https://bank.example/minutes>) 2026-05-01" in markdown
    assert "As the bank **announces** it." in markdown
    links = {a.get("href") for a in page.iter("a")}
    assert {"https://bank.example/minutes", "https://b.example/undated"} <= links
    assert not list(page.iter("img"))
    assert [element.text for element in page.iter("strong") if element.text == "Three"]
    pictures = [element.get("aria-label") or "" for element in page.iter("{http://www.w3.org/2000/svg}svg")]
    assert "Tree of 12 claims" in pictures
    assert len(pictures) > 1, "the tornado too"
    body = result.to_dict()
    up = next(element for element in body["drivers"] if element["id"] == "P1.1")
    turned = resynthesize(result.tree, [SetP(id="P1.1", p=up["turns_at"])])
    assert turned.nodes["P0"].p == pytest.approx(0.5)
    assert up["if_true"] == pytest.approx(resynthesize(result.tree, [SetP(id="P1.1", p=1.0)]).nodes["P0"].p)


def test_a_large_tree_is_drawn_in_part_and_shared_claims_once():
    nodes = {f"P{n}": claim(f"P{n}", p=0.5) for n in range(1, 80)}
    for n in range(1, 9):
        below = tuple(f"P{k}" for k in range(9 * n, min(9 * n + 10, 80)))
        nodes[f"P{n}"] = claim(f"P{n}", children=below, link=AverageLink())
    top = claim("P0", children=tuple(f"P{n}" for n in range(1, 9)), link=AverageLink())
    chart = picture_of(evaluated(Tree(root="P0", nodes={"P0": top, **nodes})))
    drawn = [box for box in ET.fromstring(str(chart.svg)).iter("{http://www.w3.org/2000/svg}rect")]
    assert 20 < len(drawn) <= MOST_DRAWN
    places = {(box.get("x"), box.get("y")) for box in drawn}
    assert len(places) == len(drawn), "no two boxes lie upon each other"
    assert "(+" in str(chart.svg)


def test_pdf_is_refused_with_a_list_of_supported_suffixes(tmp_path: Path):
    with pytest.raises(InputError, match="cannot write this kind of file") as refused:
        write_outputs(show_tree(EXAMPLES / "nvda.json"), [tmp_path / "report.pdf"])
    assert ".html" in (refused.value.hint or "")
    assert not (tmp_path / "report.pdf").exists()
