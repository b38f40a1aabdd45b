"""A tree as a picture in words: Graphviz and Mermaid."""

from foretell.forecasters.tree.export.names import Names, one_line
from foretell.forecasters.tree.links import InhibitedNoisyOr, Linear, NoisyOr
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.walk import post_order

WIDTH = 60
"""Letters of a claim that are shown."""


def to_dot(tree: Tree) -> str:
    """For Graphviz: `dot -Tsvg`. Pinned claims are dashed, incomplete ones drawn in red."""
    names = Names()
    lines = ["digraph tree {", "  rankdir=TB;", '  node [shape=box, style=rounded, fontname="sans-serif"];']
    for claim in reversed(post_order(tree)):
        node = tree.nodes[claim]
        style = ', style="rounded,dashed"' if node.pinned is not None else ""
        colour = ", color=red" if node.incomplete else ""
        label = _quoted(f"{_head(node)}\n{_shown(node.claim)}")
        lines.append(f'  {names.of(claim)} [label="{label}"{style}{colour}];')
    for claim in reversed(post_order(tree)):
        node = tree.nodes[claim]
        for child in node.children:
            label = _edge(node, child)
            told = f' [label="{_quoted(label)}"]' if label else ""
            lines.append(f"  {names.of(claim)} -> {names.of(child)}{told};")
    return "\n".join([*lines, "}"]) + "\n"


def to_mermaid(tree: Tree) -> str:
    """For Mermaid, as GitHub and many editors draw it."""
    names = Names()
    lines = ["flowchart TD"]
    for claim in reversed(post_order(tree)):
        node = tree.nodes[claim]
        lines.append(f'  n_{names.of(claim)}["{_entities(_head(node))}<br/>{_entities(_shown(node.claim))}"]')
    for claim in reversed(post_order(tree)):
        node = tree.nodes[claim]
        for child in node.children:
            label = _edge(node, child)
            arrow = f'-- "{_entities(label)}" -->' if label else "-->"
            lines.append(f"  n_{names.of(claim)} {arrow} n_{names.of(child)}")
    return "\n".join(lines) + "\n"


def _head(node: Proposition) -> str:
    number = "no number" if node.p is None else f"{node.p:.3f}"
    return f"{node.id}: {number}" + (" (pinned)" if node.pinned is not None else "")


def _shown(text: str) -> str:
    flat = one_line(text)
    return flat if len(flat) <= WIDTH else flat[: WIDTH - 1] + "…"


def _edge(node: Proposition, child: str) -> str:
    """The number a link gives to this child."""
    link = node.link
    if node.pinned is not None:
        return ""
    if isinstance(link, Linear):
        return f"{link.weights[child]:g}"
    if isinstance(link, NoisyOr | InhibitedNoisyOr) and child in link.strengths:
        return f"{link.strengths[child]:g}"
    if isinstance(link, InhibitedNoisyOr):
        return f"against: {link.inhibitors[child]:g}"
    return ""


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _entities(text: str) -> str:
    for sign, entity in (("#", "#35;"), ("&", "#amp;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(sign, entity)
    return text
