"""A tree as a report in Markdown: the answer, the tree, what it hangs on, and every claim with its proof."""

import re
from collections.abc import Iterable, Iterator

from foretell.forecasters.tree.arithmetic.error_bar import error_bar
from foretell.forecasters.tree.arithmetic.sensitivity import ranges, sensitivities
from foretell.forecasters.tree.description import (
    claim_marks,
    link_in_numbers,
    link_in_words,
    outline,
    stale_parts,
    tree_failures,
)
from foretell.forecasters.tree.proposition import Grounding, Proposition, Tree
from foretell.forecasters.tree.text import format_probability, one_line
from foretell.forecasters.tree.what_if import WhatIfResult

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&$#]|:(?=//)|@(?=\w))")
READING = (
    "Slope: by how much the answer rises if the claim goes from surely false to surely true. Share: its part in how "
    "far the answer can be expected to move once the truth of the inputs is known."
)
INPUTS = 15
"""How many inputs the table of sensitivities names."""


def escape_markdown(text: str) -> str:
    r"""Text on one line that Markdown shows as it stands.

    >>> escape_markdown("a|b <script>")
    'a\\|b \\<script\\>'
    """
    return _SPECIAL.sub(r"\\\1", one_line(text))


def to_markdown(tree: Tree, outcomes: Iterable[WhatIfResult] = ()) -> str:
    """The report. Numbers must be worked out; outcomes of scenarios are compared where given."""
    top = tree.nodes[tree.root]
    as_of = f" as of {tree.as_of}" if tree.as_of is not None else ""
    parts = [f"# {escape_markdown(top.claim)}", f"**Probability {format_probability(top.p)}**{as_of}"]
    if (bar := error_bar(tree)) is not None:
        parts.append(f"The answer lies {bar}.")
    parts += _warnings(tree)
    parts += [escape_markdown(note) for note in tree.notes]
    parts += ["## The tree", "\n".join(_outline(tree))]
    parts += _sensitivities(tree)
    parts += _scenarios(tree, list(outcomes))
    parts += ["## Every claim"]
    parts += [part for line in outline(tree) if not line.again for part in _claim(tree, line.node)]
    return "\n\n".join(parts) + "\n"


def _warnings(tree: Tree) -> Iterator[str]:
    top = tree.nodes[tree.root]
    if top.incomplete:
        found = ranges(tree)
        low, high = map(format_probability, found[tree.root]) if found else ("", "")
        between = f"; whatever they are, it lies between {low} and {high}" if found else ""
        names = ", ".join(top.incomplete)
        yield f"Without a number of their own: {names}. {format_probability(tree.missing)} stands in for them{between}."
    for failure in tree_failures(tree):
        yield f"**Failed:** {escape_markdown(failure)}"
    for part in stale_parts(tree):
        yield f"**Stale:** {escape_markdown(part)}"


def _outline(tree: Tree) -> Iterator[str]:
    for line in outline(tree):
        marks = "; ".join(["see above"] if line.again else claim_marks(line.node))
        tail = f" *({escape_markdown(marks)})*" if marks else ""
        node = line.node
        p = format_probability(node.p)
        yield f"{'  ' * line.depth}- **{node.id}** {p} {escape_markdown(node.claim)}{tail}"


def _sensitivities(tree: Tree) -> Iterator[str]:
    rows = sensitivities(tree)
    if not rows:
        return
    yield "## What it hangs on"
    head = ["| input | p | slope | share | claim |", "|---|---:|---:|---:|---|"]
    body = [
        f"| {r.id} | {format_probability(r.p)} | {r.slope:+.3f} | {r.share:.0%} | {escape_markdown(r.claim)} |"
        for r in rows[:INPUTS]
    ]
    yield "\n".join(head + body)
    yield READING


def _scenarios(tree: Tree, outcomes: list[WhatIfResult]) -> Iterator[str]:
    if not outcomes:
        return
    yield "## Scenarios"
    lines = ["| scenario | answer | change | claims changed |", "|---|---:|---:|---:|"]
    base = tree.nodes[tree.root].p or 0.0
    lines += [
        f"| {escape_markdown(o.name)} | {format_probability(o.p)} | {o.p - base:+.3f} | {len(o.changes)} |"
        for o in outcomes
    ]
    yield "\n".join(lines)


def _claim(tree: Tree, node: Proposition) -> Iterator[str]:
    marks = "; ".join(claim_marks(node))
    yield f"### {node.id}: {format_probability(node.p)}" + (f" ({escape_markdown(marks)})" if marks else "")
    yield escape_markdown(node.claim)
    if node.children:
        sum_ = link_in_numbers(tree, node)
        yield f"How: {escape_markdown(link_in_words(node))}" + (f"\n\n`{sum_}`" if sum_ else "")
    if node.causality:
        yield f"Why: {escape_markdown(node.causality)}"
    grounding = node.grounding
    key_factor = node.key_factor or (grounding.key_factor if grounding is not None else "")
    if key_factor:
        yield f"Key factor: {escape_markdown(key_factor)}"
    if node.report:
        yield block_quote(node.report)
    if grounding is not None:
        yield from _grounding(grounding)
    yield from (f"Note: {escape_markdown(note)}" for note in (*_failure(node), *node.notes))


def _failure(node: Proposition) -> Iterator[str]:
    if node.failed:
        yield f"synthesis failed: {node.failed}"


def _grounding(grounding: Grounding) -> Iterator[str]:
    if grounding.error:
        yield f"Grounding failed: {escape_markdown(grounding.error)}"
    if grounding.report:
        yield block_quote(grounding.report)
    by = f"Grounded by {escape_markdown(grounding.grounder)}." if grounding.grounder else ""
    notebook = f" Notebook: {escape_markdown(grounding.notebook)}." if grounding.notebook else ""
    if by or notebook:
        yield (by + notebook).strip()
    if grounding.route:
        yield f"How it was examined: {escape_markdown('; '.join(grounding.route))}"
    if grounding.sources:
        yield "\n".join(["Sources:", "", *(f"- {escape_markdown(source)}" for source in grounding.sources)])


def block_quote(text: str) -> str:
    """A report as a quotation: its own Markdown works within it, raw HTML does not."""
    safe = text.replace("&", "&amp;").replace("<", "&lt;")
    return "\n".join(f"> {line}".rstrip() for line in safe.strip().splitlines())
