"""A proposition tree as one web page: the answer, what it hangs on, and every claim with its link and its proof."""

import re
from collections.abc import Iterator, Sequence

from foretell.forecasters.tree.arithmetic.sensitivity import ranges, sensitivities, tornado
from foretell.forecasters.tree.description import OutlineLine, claim_marks, link_in_numbers, link_in_words, outline
from foretell.forecasters.tree.markdown import READING
from foretell.forecasters.tree.proposition import Grounding, Proposition, Tree
from foretell.forecasters.tree.text import format_probability
from foretell.forecasters.tree.what_if import WhatIfResult
from foretell.report.charts.ranking import TornadoRow, tornado_plot
from foretell.report.html import (
    HtmlCell,
    HtmlColumn,
    HtmlRow,
    contents,
    definitions,
    number_cell,
    page,
    paragraph,
    section,
    shown,
    table,
)
from foretell.report.markup import Markup, clean, element, join

BARS = 20


def tree_page(tree: Tree, outcomes: Sequence[WhatIfResult] = ()) -> str:
    """A whole HTML document. Numbers must be worked out; outcomes of scenarios are compared where given."""
    top = tree.nodes[tree.root]
    parts = [
        ("tree", "The tree", _outline(tree)),
        ("inputs", "What it hangs on", _inputs(tree)),
        ("scenarios", "Scenarios", _scenarios(tree, outcomes) if outcomes else None),
        ("claims", "Every claim", join(*(_claim(tree, one.node) for one in outline(tree) if not one.again))),
    ]
    kept = [(anchor, title, body) for anchor, title, body in parts if body is not None]
    return page(
        clean(top.claim),
        paragraph(_lead(tree), "lead"),
        *(paragraph(note, "quiet") for note in tree.notes),
        contents([(anchor, title) for anchor, title, _ in kept]),
        *(section(title, body, anchor=anchor) for anchor, title, body in kept),
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


def _anchor(id: str) -> str:
    return f"claim-{id}"


def _outline(tree: Tree) -> Markup:
    """Nested lists, as deep as the tree."""
    levels: list[list[Markup]] = [[]]
    for one in reversed(list(outline(tree))):
        while len(levels) <= one.depth + 1:
            levels.append([])
        inner, levels[one.depth + 1] = levels[one.depth + 1], []
        item = element("li", _entry(one), element("ul", *reversed(inner)) if inner else None)
        levels[one.depth].append(item)
    return element("ul", *reversed(levels[0]))


def _entry(one: OutlineLine) -> Markup:
    told = ["see above"] if one.again else claim_marks(one.node)
    return join(
        element("a", one.node.id, href=f"#{_anchor(one.node.id)}"),
        " ",
        element("strong", format_probability(one.node.p)),
        " ",
        one.node.claim,
        *(element("span", mark, class_="tag") for mark in told),
    )


def _inputs(tree: Tree) -> Markup | None:
    rows = sensitivities(tree)
    if not rows:
        return None
    bars = tornado(tree)[:BARS]
    base = tree.nodes[tree.root].p or 0.0
    chart = tornado_plot(
        [TornadoRow(name=f"{bar.id} {bar.claim}", at_low=bar.at_low, at_high=bar.at_high) for bar in bars], base
    )
    heads = [HtmlColumn(label="input"), HtmlColumn(label="p", numeric=True), HtmlColumn(label="slope", numeric=True)]
    heads += [HtmlColumn(label="share", numeric=True), HtmlColumn(label="claim")]
    lines = [
        HtmlRow(
            cells=[
                HtmlCell(shown=row.id),
                number_cell(format_probability(row.p), row.p),
                number_cell(f"{row.slope:+.3f}", row.slope),
                number_cell(f"{row.share:.0%}", row.share),
                HtmlCell(shown=row.claim, style="long"),
            ]
        )
        for row in rows
    ]
    return join(shown(chart), table(heads, lines, "Inputs of the tree"), paragraph(READING, "quiet"))


def _scenarios(tree: Tree, outcomes: Sequence[WhatIfResult]) -> Markup:
    base = tree.nodes[tree.root].p or 0.0
    heads = [
        HtmlColumn(label="scenario"),
        HtmlColumn(label="answer", numeric=True),
        HtmlColumn(label="change", numeric=True),
    ]
    heads += [HtmlColumn(label="claims changed")]
    lines = [
        HtmlRow(
            cells=[
                HtmlCell(shown=one.name, style="name"),
                number_cell(format_probability(one.p), one.p),
                number_cell(f"{one.p - base:+.3f}", one.p - base),
                HtmlCell(shown=", ".join(change.id for change in one.changes), style="long"),
            ]
        )
        for one in outcomes
    ]
    return table(heads, lines, "What the answer would be")


def _claim(tree: Tree, node: Proposition) -> Markup:
    told = [element("span", mark, class_="tag") for mark in claim_marks(node)]
    return element(
        "section",
        element("h3", f"{node.id}: {format_probability(node.p)}", *told),
        paragraph(node.claim),
        definitions(list(_facts(tree, node))),
        *_prose(node.report),
        *(_grounding(node.grounding) if node.grounding is not None else ()),
        *(paragraph(f"Note: {note}", "quiet") for note in node.notes),
        id=_anchor(node.id),
    )


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


def _grounding(grounding: Grounding) -> Iterator[Markup]:
    if grounding.error:
        yield paragraph(f"Grounding failed: {grounding.error}", "bad")
    yield from _prose(grounding.report)
    if grounding.sources:
        yield paragraph("Sources", "quiet")
        yield element("ul", *(element("li", _source(source)) for source in grounding.sources))


def _source(source: str) -> Markup:
    """A link where the source is a web address, else its text."""
    address = clean(source)
    if re.fullmatch(r"https?://[^\s\"'<>]+", address):
        return element("a", address, href=address, rel="noreferrer noopener")
    return join(source)


def _prose(text: str) -> Iterator[Markup]:
    """A report, paragraph by paragraph and line by line, as plain text."""
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = [part for part in block.splitlines() if part.strip()]
        if lines:
            parts: list[str | Markup] = [lines[0]]
            for one in lines[1:]:
                parts += [element("br"), one]
            yield element("p", *parts)
