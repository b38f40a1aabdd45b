"""Noise on the leaves of finished trees: as their links stand, and joined by means and by random weights."""

from collections.abc import Callable, Mapping, Sequence
from random import Random

import numpy as np

from foretell.arena.report.wording import bracket, number, plural
from foretell.arena.studies.tree.disturbance import DISTURBANCES, Disturb
from foretell.arena.studies.tree.material import TreeMaterial
from foretell.arena.studies.tree.stress import AT, RATIOS
from foretell.arena.study import Column, Entry, Grid, Study
from foretell.evaluate.arrays import Floats
from foretell.evaluate.bootstrap import bootstrap_score, bootstrap_sums
from foretell.evaluate.intervals import Interval
from foretell.forecasters.tree.arithmetic.circuit import run_many
from foretell.forecasters.tree.arithmetic.compile import compile_tree
from foretell.forecasters.tree.links import Judged
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.relinked import relinked
from foretell.forecasters.tree.walk import leaves
from foretell.questions.problems import InputError

DRAWS = 200
"""Disturbed copies of every tree."""
NOTES = (
    "Spoilt is 1 − r² between the roots without and with noise, over the trees; trees are resampled. It takes trees "
    "whose roots differ.",
    "Leaves are disturbed, assumptions and judgements are not: a judged claim would have to be asked for again.",
)
REJOINED = (
    "Whether links bring answers nearer to what happens needs outcomes: `foretell backtest QUESTIONS -F "
    "tree-file:folder=TREES -F tree-file:folder=TREES,rule=average -F tree-file:folder=TREES,rule=random`.",
)
Join = Callable[[Tree], Tree]


def study_of_trees(material: TreeMaterial) -> Study:
    """Every group of trees under every kind of noise."""
    grids = [_grid(noise, disturb, material) for noise, disturb in DISTURBANCES.items()]
    count = sum(map(len, material.trees.values()))
    judged = sum(isinstance(one.nodes[one.root].link, Judged) for trees in material.trees.values() for one in trees)
    notes = [f"{plural(judged, 'root')} of {count} are judged: no noise reaches them."] if judged else []
    return Study(
        name="tree-noise",
        title="What noise in the leaves of real trees does to their roots",
        finding=_finding(count, grids),
        grids=tuple(grids),
        notes=(*NOTES, *notes),
        settings={"seed": material.resampling.seed, "disturbed copies": DRAWS},
    )


def weights_of_trees(material: TreeMaterial) -> Study:
    """How far the roots go when the same leaves are joined by means and by random weights."""
    grids = tuple(_rejoined(name, trees, material) for name, trees in material.trees.items())
    count = sum(map(len, material.trees.values()))
    moved = grids[0].entries[1].values[1]
    told = f"{number(moved.estimate, 1)} {bracket(moved.low, moved.high, 1)}" if isinstance(moved, Interval) else "–"
    return Study(
        name="tree-weights",
        title="What the links of real trees do to their roots",
        finding=f"{plural(count, 'tree')}: joined by means instead, the first ones' roots move by {told} points.",
        grids=grids,
        notes=REJOINED,
        settings={"seed": material.resampling.seed, "draws": material.resampling.draws},
    )


def _rejoined(name: str, trees: Sequence[Tree], material: TreeMaterial) -> Grid:
    roots = {rule: _roots([join(tree) for tree in trees]) for rule, join in _joins(material.resampling.seed).items()}
    stored = next(iter(roots.values()))
    entries: list[Entry] = []
    for rule, p in roots.items():
        moved = bootstrap_score(100 * np.abs(p - stored), resampling=material.resampling)
        turned = bootstrap_score(100.0 * ((p > 0.5) != (stored > 0.5)), resampling=material.resampling)
        first = p is stored
        values = (100 * float(p.mean()), None if first else moved, None if first else turned, len(trees))
        entries.append(Entry(name=rule, values=values, style="reference" if first else ""))
    columns = (
        Column(label="mean root", tip="%"),
        Column(label="moved", tip="mean distance to the root as it was, in points"),
        Column(label="turned", tip="% of roots that came to lie on the other side of one half"),
        Column(label="trees"),
    )
    return Grid(title=name, head="Links", columns=columns, entries=tuple(entries))


def _roots(trees: Sequence[Tree]) -> Floats:
    """What each tree's numbers come to."""
    return np.array([circuit.run()[circuit.claims[circuit.root]] for circuit in map(compile_tree, trees)])


def _finding(count: int, grids: Sequence[Grid]) -> str:
    place = RATIOS.index(AT)
    found = {noise: grid.entries[0].values[place] for noise, grid in zip(DISTURBANCES, grids, strict=True)}
    told = [f"{noise} {number(one.estimate, 0)}" for noise, one in found.items() if isinstance(one, Interval)]
    if not told:
        return f"{plural(count, 'tree')}: all roots are the same, so that noise has nothing to spoil."
    return f"{plural(count, 'tree')}; % spoilt of {grids[0].entries[0].name} at a ratio of {AT:g}: {', '.join(told)}."


def _grid(noise: str, disturb: Disturb, material: TreeMaterial) -> Grid:
    entries: list[Entry] = []
    for name, trees in material.trees.items():
        if len(trees) < 2:
            raise InputError(f"{name} has {plural(len(trees), 'tree')}", hint="give at least two")
        for rule, join in _joins(material.resampling.seed).items():
            joined = [join(tree) for tree in trees]
            values = tuple(spoilt_among(joined, disturb, ratio, material) for ratio in RATIOS)
            entries.append(Entry(name=f"{name}, {rule}", values=values))
    columns = tuple(Column(label=f"{ratio:g}") for ratio in RATIOS)
    return Grid(title=f"Spoilt by {noise} noise, %", head="Trees", columns=columns, entries=tuple(entries))


def _joins(seed: int) -> Mapping[str, Join]:
    rng = Random(seed)
    return {
        "as they are": lambda tree: tree,
        "average": lambda tree: relinked(tree, "average", rng),
        "random": lambda tree: relinked(tree, "random", rng),
    }


def spoilt_among(trees: Sequence[Tree], disturb: Disturb, ratio: float, material: TreeMaterial) -> Interval | None:
    """1 − r² over the roots of the trees, in per cent; None where all roots are the same."""
    sums = np.stack([_sums(tree, disturb, ratio, [material.resampling.seed, i]) for i, tree in enumerate(trees)])
    found = bootstrap_sums(sums, _spoilt_from_sums, material.resampling)
    return found if np.isfinite(found.estimate) else None


def _sums(tree: Tree, disturb: Disturb, ratio: float, seed: list[int]) -> Floats:
    """Of the copies of one tree: how many, Σx, Σy, Σx², Σy², Σxy of the root before and after."""
    circuit = compile_tree(tree)
    names = leaves(tree)
    now = np.array([[circuit.inputs.get(name, tree.missing) for name in names]])
    said = disturb(np.repeat(now, DRAWS, axis=0), ratio, np.random.default_rng(seed))
    place = circuit.claims[tree.root]
    x = np.full(DRAWS, circuit.run()[place])
    y = run_many(circuit, {name: said[:, i] for i, name in enumerate(names)}, DRAWS)[place]
    return np.array([DRAWS, x.sum(), y.sum(), x @ x, y @ y, x @ y])


def _spoilt_from_sums(sums: Floats) -> Floats:
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    both, first, second = xy - x * y / n, xx - x**2 / n, yy - y**2 / n
    # Roots that are the same up to rounding have nothing to spoil.
    differ = np.minimum(first, second) > 1e-12 * n
    return 100 * (1 - np.divide(both**2, first * second, out=np.full(np.shape(n), np.nan), where=differ))
