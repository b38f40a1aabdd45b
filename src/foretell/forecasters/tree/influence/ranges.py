"""Between which numbers a claim lies, whatever the leaves without a number turn out to be."""

from collections.abc import Mapping

from foretell.forecasters.tree.arithmetic.circuit import run_many
from foretell.forecasters.tree.influence.sensitivity import worked_out
from foretell.forecasters.tree.proposition import Tree

MOST = 12
"""Missing numbers up to which all combinations are gone through."""


def ranges(tree: Tree) -> Mapping[str, tuple[float, float]] | None:
    """For each incomplete claim the least and the greatest probability it can have; None for more than 12 unknowns.

    A probability is linear in each input by itself, so its ends lie where every unknown is surely true or false.
    """
    import numpy as np

    circuit, values = worked_out(tree)
    incomplete = [id for id, node in tree.nodes.items() if node.incomplete]
    unknown = sorted({lack for id in incomplete for lack in tree.nodes[id].incomplete if lack in circuit.where})
    if len(unknown) > MOST:
        return None
    count = 2 ** len(unknown)
    worlds = np.arange(count)
    inputs = {name: np.full(count, values[at]) for name, at in circuit.where.items()}
    inputs.update({name: (worlds >> i & 1).astype(float) for i, name in enumerate(unknown)})
    found = run_many(circuit, inputs, count)
    ends = {id: found[circuit.claims[id]] for id in incomplete}
    return {id: (float(np.min(end)), float(np.max(end))) for id, end in ends.items()}
