"""A proposition tree as one web page: the answer, what it hangs on, and every claim with its link and its proof."""

import re
from collections.abc import Iterator, Sequence
from functools import partial

from foretell.forecasters.tree.arithmetic.error_bar import error_bar
from foretell.forecasters.tree.arithmetic.sensitivity import ranges, sensitivities, tornado
from foretell.forecasters.tree.description import (
    claim_marks,
    link_in_numbers,
    link_in_words,
    outline,
    stale_parts,
    tree_failures,
)
from foretell.forecasters.tree.markdown import READING
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.text import format_probability
from foretell.forecasters.tree.what_if import WhatIfResult
from foretell.report.charts.ranking import TornadoRow, tornado_plot
from foretell.report.html import HtmlBlock, render_page
from foretell.report.markup import clean
from foretell.report.study import StudyColumn, StudyRow, StudyTable

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
        alarms=[*(f"Failed: {one}" for one in tree_failures(tree)), *(f"Stale: {one}" for one in stale_parts(tree))],
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
    text = f"Probability {format_probability(top.p)}"
    text += f", as of {tree.as_of}." if tree.as_of is not None else "."
    if (bar := error_bar(tree)) is not None:
        text += f" The answer lies {bar}."
    if top.incomplete:
        found = ranges(tree)
        between = ""
        if found:
            low, high = found[tree.root]
            between = (
                f"; whatever they are, the answer lies between {format_probability(low)} and {format_probability(high)}"
            )
        names = ", ".join(top.incomplete)
        text += (
            f" Without a number of their own: {names}. {format_probability(tree.missing)} stands in for them{between}."
        )
    return text


def _inputs(tree: Tree) -> list[HtmlBlock]:
    rows = sensitivities(tree)
    if not rows:
        return []
    bars = [TornadoRow(name=f"{one.id} {one.claim}", at_low=one.at_low, at_high=one.at_high) for one in tornado(tree)]
    chart = tornado_plot(bars[:BARS], tree.nodes[tree.root].p or 0.0)
    entries = [
        StudyRow(name=row.id, values=(row.p, f"{row.slope:+.3f}", f"{row.share:.0%}", row.claim)) for row in rows
    ]
    table = _table("Inputs of the tree", ("input", "p", "slope", "share", "claim"), entries)
    return [HtmlBlock(charts=[chart]), table, HtmlBlock(text=READING, style="quiet")]


def _scenarios(tree: Tree, outcomes: Sequence[WhatIfResult]) -> HtmlBlock:
    base = tree.nodes[tree.root].p or 0.0
    entries = [
        StudyRow(name=one.name, values=(one.p, f"{one.p - base:+.3f}", ", ".join(change.id for change in one.changes)))
        for one in outcomes
    ]
    return _table("What the answer would be", ("scenario", "answer", "change", "claims changed"), entries)


def _table(title: str, labels: Sequence[str], rows: Sequence[StudyRow]) -> HtmlBlock:
    """A table whose last column holds long text."""
    columns = [StudyColumn(label=label, decimals=3) for label in labels[1:-1]]
    columns.append(StudyColumn(label=labels[-1], numeric=False))
    return HtmlBlock(table=StudyTable(title=title, row_header=labels[0], columns=tuple(columns), rows=tuple(rows)))


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
    if grounding is not None and grounding.route:
        yield "how it was examined", "; ".join(grounding.route)
    if grounding is not None and len(grounding.trials) > 1:
        yield "trials", ", ".join(format_probability(p) for p in grounding.trials)
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
