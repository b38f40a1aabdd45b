"""A proposition tree as one web page: the answer, what it hangs on, and every claim with its link and its proof."""

import re
from collections.abc import Iterator, Sequence
from functools import partial

from foretell.forecasters.tree.arithmetic.sensitivity import ranges, sensitivities, tornado
from foretell.forecasters.tree.description import claim_marks, link_in_numbers, link_in_words, outline
from foretell.forecasters.tree.markdown import READING
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.text import format_probability
from foretell.forecasters.tree.what_if import WhatIfResult
from foretell.report.charts.ranking import TornadoRow, tornado_plot
from foretell.report.html import HtmlBlock, HtmlCell, HtmlRow, columns_of, number_cell, render_page, table_block
from foretell.report.markup import clean

BARS = 20


def tree_page(tree: Tree, outcomes: Sequence[WhatIfResult] = ()) -> str:
    """A whole HTML document. Numbers must be worked out; outcomes of scenarios are compared where given."""
    lines = list(outline(tree))
    sections = [("inputs", "What it hangs on", _inputs(tree))]
    sections += [("scenarios", "Scenarios", [_scenarios(tree, outcomes)])] if outcomes else []
    return render_page(
        "report/tree.html",
        title=tree.nodes[tree.root].claim,
        lead=_lead(tree),
        notes=tree.notes,
        sections=[section for section in sections if section[2]],
        lines=lines,
        marks=claim_marks,
        probability=format_probability,
        facts=partial(_facts, tree),
        paragraphs=_paragraphs,
        web_address=_web_address,
    )


def _lead(tree: Tree) -> str:
    top = tree.nodes[tree.root]
    told = f"Probability {format_probability(top.p)}"
    told += f", as of {tree.as_of}." if tree.as_of is not None else "."
    if top.incomplete:
        found = ranges(tree)
        between = ""
        if found:
            low, high = found[tree.root]
            between = (
                f"; whatever they are, the answer lies between {format_probability(low)} and {format_probability(high)}"
            )
        names = ", ".join(top.incomplete)
        told += (
            f" Without a number of their own: {names}. {format_probability(tree.missing)} stands in for them{between}."
        )
    return told


def _inputs(tree: Tree) -> list[HtmlBlock]:
    rows = sensitivities(tree)
    if not rows:
        return []
    bars = [TornadoRow(name=f"{one.id} {one.claim}", at_low=one.at_low, at_high=one.at_high) for one in tornado(tree)]
    chart = tornado_plot(bars[:BARS], tree.nodes[tree.root].p or 0.0)
    cells = [
        [
            HtmlCell(text=row.id),
            number_cell(format_probability(row.p), row.p),
            number_cell(f"{row.slope:+.3f}", row.slope),
            number_cell(f"{row.share:.0%}", row.share),
            HtmlCell(text=row.claim, style="long"),
        ]
        for row in rows
    ]
    columns = (*columns_of(["input", "p", "slope", "share"]), *columns_of(["claim"]))
    table = table_block(columns, [HtmlRow(cells=one) for one in cells], "Inputs of the tree")
    return [HtmlBlock(charts=[chart]), table, HtmlBlock(text=READING, style="quiet")]


def _scenarios(tree: Tree, outcomes: Sequence[WhatIfResult]) -> HtmlBlock:
    base = tree.nodes[tree.root].p or 0.0
    cells = [
        [
            HtmlCell(text=one.name, style="name"),
            number_cell(format_probability(one.p), one.p),
            number_cell(f"{one.p - base:+.3f}", one.p - base),
            HtmlCell(text=", ".join(change.id for change in one.changes), style="long"),
        ]
        for one in outcomes
    ]
    columns = (*columns_of(["scenario", "answer", "change"]), *columns_of(["claims changed"]))
    return table_block(columns, [HtmlRow(cells=one) for one in cells], "What the answer would be")


def _facts(tree: Tree, node: Proposition) -> Iterator[tuple[str, str]]:
    if node.children:
        yield "how", link_in_words(node)
        numbers = link_in_numbers(tree, node)
        if numbers:
            yield "in numbers", numbers
    if node.causality:
        yield "why", node.causality
    grounding = node.grounding
    key_factor = node.key_factor or (grounding.key_factor if grounding is not None else "")
    if key_factor:
        yield "key factor", key_factor
    if grounding is not None and grounding.grounder:
        yield "grounded by", grounding.grounder
    if grounding is not None and grounding.notebook:
        yield "notebook", grounding.notebook


def _web_address(source: str) -> str | None:
    """The source where it is a web address that may become a link."""
    address = clean(source)
    return address if re.fullmatch(r"https?://[^\s\"'<>]+", address) else None


def _paragraphs(text: str) -> list[list[str]]:
    """A report, paragraph by paragraph and line by line, as plain text."""
    blocks = [[line for line in block.splitlines() if line.strip()] for block in re.split(r"\n\s*\n", text.strip())]
    return [block for block in blocks if block]
