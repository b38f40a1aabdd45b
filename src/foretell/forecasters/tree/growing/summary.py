"""A finished tree in words: what came out, what it rests on, and what is missing."""

from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.walk import leaves

MOST_SOURCES = 20


def summary(tree: Tree, target: str = "") -> str:
    """The reasons behind a root's probability: its report, every leaf with its number, open ends, sources."""
    root = tree.nodes[tree.root]
    heading = f"Tree for {target}: " if target else ""
    told = "" if root.p is None else f"{heading}{root.p:.3f} for: {root.claim}"
    found = [tree.nodes[id] for id in leaves(tree)]
    parts = [
        told,
        root.key_factor,
        root.report,
        "\n".join(["Leaves:", *map(_leaf, found)]),
        "\n".join(["Notes:", *(f"- {note}" for note in tree.notes)]) if tree.notes else "",
        _sources(found),
    ]
    return "\n\n".join(part for part in parts if part)


def _leaf(node: Proposition) -> str:
    source = node.grounding
    if node.p is None:
        return f"- {node.id} no number ({source.error if source else 'not grounded'}): {node.claim}"
    factor = f" [{source.key_factor}]" if source and source.key_factor else ""
    return f"- {node.id} {node.p:.3f}: {node.claim}{factor}"


def _sources(found: list[Proposition]) -> str:
    """Ids of results are counted leaf by leaf: each is told with its leaf."""
    cited = [(node.id, source) for node in found if node.grounding for source in node.grounding.sources]
    lines = [f"{id} {source}" for id, source in cited[:MOST_SOURCES]]
    more = [f"and {len(cited) - MOST_SOURCES} more"] if len(cited) > MOST_SOURCES else []
    return "\n".join(["Sources:", *lines, *more]) if lines else ""
