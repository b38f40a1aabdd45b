"""Study: does taking a claim apart further help? The same claims, cut off at fewer or more leaves.

After Analytica (2026), sections 4.2 and 5.3. In a linear world the answer's error follows from the leaves' by the
products β′ᵢ of the weights on the way from the root to each leaf:

    bias = Σ β′ᵢ·biasᵢ        variance = Σᵢⱼ β′ᵢβ′ⱼ·covᵢⱼ

so that independent errors average out and what leaves have in common does not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.arithmetic.sensitivity import beta_paths
from foretell.forecasters.tree.grow.analyze import ROOT
from foretell.forecasters.tree.proposition import Tree, leaves, post_order
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval, Resampling, bootstrap_score
from foretell.report.numbers import number
from foretell.report.study import StudyResult, StudyTable
from foretell.studies.inputs import DataInputs, WorldOptions
from foretell.studies.layout import column, table
from foretell.studies.trees.inputs import require_simulation
from foretell.studies.trees.simulation import NoiseStreams, SimulatedGrounder
from foretell.studies.trees.world import SimulatedQuestions, TreeWorld, parametric_tree

SIZES = (1, 3, 10, 30, 100)
WHOLE = 100
"""Leaves of the worlds."""
CORRELATIONS = (0.0, 0.3)
RUNS = 10
GROUNDER = SimulatedGrounder(bias=0.04, slant=0.08, sd=0.08, harder=2.0)
NOTES = (
    "Every world has at least 100 leaves. With fewer, the tree is cut off: claims that would have been taken apart are "
    "judged as they are, with errors between the leaves' own and the root's, by how much lies below them.",
    "That claims further down are easier to judge is set, not found; that errors average out is arithmetic.",
    "Predicted is the spread between runs from the weights on the ways to the leaves. It leaves out that no answer "
    "goes beyond 0 and 1, which takes a little off.",
)


@dataclass(frozen=True, kw_only=True)
class CutScore:
    """What came of trees of one size in one world."""

    nodes: float
    bias: float
    spread: float
    predicted: float
    error: float
    """Mean squared distance to the true chance."""
    accuracy: float


def study(inputs: DataInputs, options: WorldOptions) -> StudyResult:
    """Does taking a claim apart further help?

    Linear worlds, cut off at several sizes, with independent and with correlated errors.
    """
    data = inputs.data(options)
    simulation = require_simulation(data, "tree-scale")
    settings = replace(simulation.settings, leaves=WHOLE, size=4.0)
    simulation = replace(simulation, kinds=("linear",), settings=settings, worlds=min(simulation.worlds, 40))
    found: dict[float, dict[int, list[CutScore]]] = {}
    for part, correlation in enumerate(CORRELATIONS):
        grounder = replace(GROUNDER, correlation=correlation)
        found[correlation] = {size: [] for size in SIZES}
        for place in range(simulation.worlds):
            world, _, asked = simulation.stage(place)
            for size in SIZES:
                runs = [NoiseStreams.of(simulation.seed, place, run) for run in range(RUNS)]
                found[correlation][size].append(score_cut(world, asked, size, grounder, runs))
            data.progress(part * simulation.worlds + place + 1, len(CORRELATIONS) * simulation.worlds)
    grids = tuple(_grid(correlation, sizes, data.resampling) for correlation, sizes in found.items())
    return StudyResult(
        name="tree-scale",
        title="What more leaves bring",
        sentences=(_sentence(grids),),
        tables=grids,
        notes=NOTES,
        settings={**simulation.description, "grounder": repr(GROUNDER)},
    )


def cut_tree(tree: Tree, size: int) -> Tree:
    """The tree taken apart only until it has so many leaves, from the top down, shallow claims first."""
    kept, ends = {ROOT}, [ROOT]
    while len(ends) < size:
        parent = next((claim for claim in ends if tree.nodes[claim].children), None)
        if parent is None:
            break
        ends.remove(parent)
        ends += tree.nodes[parent].children
        kept.update(tree.nodes[parent].children)
    nodes = {
        claim: replace(node, children=(), link=None, p=tree.missing) if claim in ends else node
        for claim, node in tree.nodes.items()
        if claim in kept
    }
    return replace(tree, nodes=nodes)


def score_cut(
    world: TreeWorld, asked: SimulatedQuestions, size: int, grounder: SimulatedGrounder, runs: Sequence[NoiseStreams]
) -> CutScore:
    """One world at one size, several runs of every question."""
    tree = cut_tree(world.tree, size)
    ends = leaves(tree)
    below = _heights(world.tree)
    factor = np.array([1 + (grounder.harder - 1) * below[end] / below[ROOT] for end in ends])
    truth = np.column_stack([asked.chances[end] for end in ends])
    made = parametric_tree(tree) if len(tree.nodes) > 1 else None
    said: list[Floats] = []
    for chances in runs:
        leaf = grounder.estimate(truth, chances, factor=factor)
        said.append(leaf[:, 0] if made is None else made.run(leaf))
    p = np.stack(said)
    return CutScore(
        nodes=len(tree.nodes),
        bias=float(np.mean(p - asked.truth)),
        spread=float(np.sqrt(np.mean(np.var(p, axis=0, ddof=1)))),
        predicted=_predicted(tree, dict(zip(ends, factor.tolist(), strict=True)), grounder),
        error=float(np.mean((p - asked.truth) ** 2)),
        accuracy=float(np.mean((p > 0.5) == asked.outcome)),
    )


def _heights(tree: Tree) -> dict[str, int]:
    """Levels below each claim."""
    found: dict[str, int] = {}
    for claim in post_order(tree):
        children = tree.nodes[claim].children
        found[claim] = 1 + max(found[child] for child in children) if children else 0
    return found


def _predicted(tree: Tree, factor: Mapping[str, float], grounder: SimulatedGrounder) -> float:
    """Spread between runs by the beta paths."""
    if len(tree.nodes) == 1:
        return grounder.sd * factor[ROOT]
    parts = np.array([path.product * factor[path.claims[-1]] for path in beta_paths(evaluated(tree))])
    own, common = float(parts @ parts), float(parts.sum()) ** 2
    return grounder.sd * ((1 - grounder.correlation) * own + grounder.correlation * common) ** 0.5


def _grid(correlation: float, sizes: Mapping[int, list[CutScore]], how: Resampling) -> StudyTable:
    def mean(found: list[CutScore], what: str) -> Interval:
        return bootstrap_score([100 * getattr(one, what) for one in found], resampling=how)

    columns = (
        column("claims", "mean number of claims"),
        column("bias", "mean of answer minus true chance, in points"),
        column("spread", "standard deviation between runs, in points"),
        column("predicted", "the same from the weights on the ways to the leaves"),
        column("MSE", "mean squared distance to the true chance, ×100", 2),
        column("accuracy", "at one half, %"),
    )
    rows = {
        "the root alone" if size == 1 else f"{size} leaves": (
            float(np.mean([one.nodes for one in found])),
            mean(found, "bias"),
            mean(found, "spread"),
            100 * float(np.mean([one.predicted for one in found])),
            mean(found, "error"),
            mean(found, "accuracy"),
        )
        for size, found in sizes.items()
    }
    title = "Independent errors" if correlation == 0 else f"Errors of leaves correlated by {correlation:g}"
    return table(title, "Tree", columns, rows)


def _sentence(tables: tuple[StudyTable, ...]) -> str:
    falls: list[str] = []
    for one in tables:
        spread = list(one.numbers("spread").values())
        falls.append(f"{number(spread[0], 1)} to {number(spread[-1], 1)} points ({one.title.lower()})")
    return f"From the root alone to {SIZES[-1]} leaves the spread between runs falls from {', and from '.join(falls)}."
