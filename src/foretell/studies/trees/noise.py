"""Study: what does noise in the leaves do to the answer? Three kinds of noise, all rules, made-up worlds or real trees.

After Analytica (2026), section 5.3. The measure is `spoilt`, which no rule can have less of than a linear one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from foretell.forecasters.tree.arithmetic.circuit import run_many
from foretell.forecasters.tree.arithmetic.compiler import compile_tree
from foretell.forecasters.tree.links import JudgedLink
from foretell.forecasters.tree.proposition import Tree, leaves
from foretell.forecasters.tree.stored_trees import relink
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval, Resampling, bootstrap_score, bootstrap_sums
from foretell.metrics.comparison import compare_paired
from foretell.questions.errors import InputError
from foretell.report.charts.groups import score_by_group
from foretell.report.charts.svg import Chart
from foretell.report.numbers import bracket, number, plural
from foretell.report.study import (
    CellValue,
    StudyChart,
    StudyColumn,
    StudyInput,
    StudyProgress,
    StudyResult,
    StudyRow,
    StudyTable,
    ignore_progress,
)
from foretell.scoring.breakdown import Breakdown
from foretell.studies.trees.inputs import TreeStudyInput, require_simulation
from foretell.studies.trees.simulation import RULES, SimulatedSynthesizer, Simulation
from foretell.studies.trees.world import LINK_KINDS, LinkKind

# Three kinds of noise on what a grounder says (Analytica 2026, section 5.3), and what noise does to an answer.

Disturbance = Callable[[Floats, float, np.random.Generator], Floats]


def add_uniform_noise(p: Floats, ratio: float, rng: np.random.Generator) -> Floats:
    """The chance plus U(0, ratio), at most 1: the paper's "normal" noise, which is not normal and only ever adds."""
    return np.minimum(p + rng.uniform(0, ratio, p.shape), 1.0)


def replace_by_chance(p: Floats, ratio: float, rng: np.random.Generator) -> Floats:
    """With chance `ratio` any number, U(0, 1), in place of p."""
    hit = rng.random(p.shape) < ratio
    return np.where(hit, rng.random(p.shape), p)


def reverse_by_chance(p: Floats, ratio: float, rng: np.random.Generator) -> Floats:
    """With chance `ratio` the opposite, 1 − p."""
    return np.where(rng.random(p.shape) < ratio, 1 - p, p)


DISTURBANCES: Mapping[str, Disturbance] = {
    "normal": add_uniform_noise,
    "uncertain": replace_by_chance,
    "reverse": reverse_by_chance,
}


def variance_lost(before: Floats, after: Floats) -> float:
    """Share of the variance of the answers that noise has spoilt: 1 − r², r the correlation of before and after.

    It is what is left of the squared error after the best recalibration a + b·after, so that neither an answer that
    hardly moves because it hardly ever moves, nor one that is merely shifted, is taken for robust. NaN where all
    answers are the same.

    For any rule of ours the answer is linear in each leaf by itself. If leaves are independent, and so are their
    disturbances, with one correlation ρ between a leaf before and after, then |r| ≤ |ρ|, and a weighted sum of the
    leaves has r = ρ: no rule is spoilt less than a linear one. Proof: write the answer as Σ c_S·Π_{i∈S}(x_i − μ_i).
    The terms are uncorrelated, each keeps ρ^|S| of its correlation, and |ρ|^|S| ≤ |ρ|; the rest is Cauchy–Schwarz.

    >>> x = np.array([0.1, 0.4, 0.7, 0.8])
    >>> round(variance_lost(x, 0.5 * x + 0.3), 9), round(variance_lost(x, 1 - x), 9)
    (0.0, 0.0)
    """
    a, b = before - before.mean(), after - after.mean()
    size = float(a @ a) * float(b @ b)
    return 1 - float(a @ b) ** 2 / size if size > 0 else float("nan")


def rms_shift(before: Floats, after: Floats) -> float:
    """Root mean square of how far the answers were moved."""
    return float(np.sqrt(np.mean((after - before) ** 2)))


# Noise on the leaves of made-up worlds, and what it does to the answers of every rule.

RATIOS = (0.1, 0.25, 0.5, 0.75, 1.0)
AT = 0.25
"""The ratio that findings are about."""


@dataclass(frozen=True, kw_only=True)
class NoiseEffect:
    """What noise did in one world."""

    spoilt: float
    moved: float
    accuracy: float


NoiseEffects = dict[tuple[str, str, float], list[NoiseEffect]]
"""By rule, noise and ratio, one for each world; noise "" and ratio 0 is without."""


def noise_effects(
    scene: Simulation, rules: Sequence[str] = RULES, progress: StudyProgress = ignore_progress
) -> NoiseEffects:
    """What each kind and ratio of noise does to each rule, world by world; all rules see the same disturbed leaves."""
    found: NoiseEffects = {}
    for place in range(scene.worlds):
        for key, effect in _in_world(scene, place, rules):
            found.setdefault(key, []).append(effect)
        progress(place + 1, scene.worlds)
    return found


def _in_world(
    scene: Simulation, place: int, rules: Sequence[str]
) -> Iterator[tuple[tuple[str, str, float], NoiseEffect]]:
    _, troupe, asked = scene.stage(place)
    sure = SimulatedSynthesizer(noise=0.0)
    streams = {rule: np.random.default_rng([scene.seed, place, 2, i]) for i, rule in enumerate(rules)}
    numbers = {rule: troupe.numbers(rule, sure, asked, streams[rule]) for rule in rules}
    before = {rule: troupe.sketch(rule).run(asked.leaf, numbers[rule]) for rule in rules}
    for rule in rules:
        right = float(np.mean((before[rule] > 0.5) == asked.outcome))
        yield (rule, "", 0.0), NoiseEffect(spoilt=0.0, moved=0.0, accuracy=right)
    for kind, (noise, disturb) in enumerate(DISTURBANCES.items()):
        for step, ratio in enumerate(RATIOS):
            leaf = disturb(asked.leaf, ratio, np.random.default_rng([scene.seed, place, 3, kind, step]))
            for rule in rules:
                after = troupe.sketch(rule).run(leaf, numbers[rule])
                right = float(np.mean((after > 0.5) == asked.outcome))
                effect = NoiseEffect(
                    spoilt=variance_lost(before[rule], after), moved=rms_shift(before[rule], after), accuracy=right
                )
                yield (rule, noise, ratio), effect


def mean_effect(found: Sequence[NoiseEffect], what: str, how: Resampling) -> Interval:
    """Mean over worlds in per cent, worlds resampled; one in which a rule always says the same has nothing to spoil."""
    values = np.array([100 * getattr(one, what) for one in found])
    return bootstrap_score(values[np.isfinite(values)], resampling=how)


SIZES = (4, 10, 30, 100)
DRAWN = ("linear", "logic", "noisy-or", "average", "vanilla")
NOTES = (
    "Spoilt is 1 − r² between the answers without and with noise, over the questions of a world: the part of what the "
    "rule had to say that no recalibration brings back. Every rule is linear in each leaf, and of all such rules a "
    "weighted sum is spoilt least: the leaves' own 1 − ρ², whatever the weights.",
    "bayes-net is linear with weights that are conditional chances. Free weights (linear) may carry an answer beyond 0 "
    "or 1, where it is held: that edge is a bend, and a rule with a bend is no weighted sum any more.",
    "vanilla goes by the numbers for a fifth only, and by reports that no noise reaches for the rest. That is set, not "
    "found.",
    "Moved is how far answers go, and says as much about how far they ever go as about noise. Accuracy holds noise and "
    "misfit together: a rule can be right more often with noise than another without.",
)


def study(material: StudyInput) -> StudyResult:
    """All rules under all kinds of noise; on real trees where some are given."""
    if isinstance(material, TreeStudyInput) and material.trees:
        return noise_in_trees(material)
    scene = replace(require_simulation(material, "tree-noise", trees=True), questions=400)
    found: dict[LinkKind, NoiseEffects] = {
        kind: noise_effects(replace(scene, kinds=(kind,)), progress=material.progress) for kind in LINK_KINDS
    }
    both: NoiseEffects = {key: [*found["linear"][key], *found["logic"][key]] for key in found["linear"]}
    how = material.resampling
    grids = [_curves(name, both, how) for name in DISTURBANCES]
    grids += [_gaps(found, how), _sizes(scene, how)]
    grids += [*(_accuracy(name, found, how) for name in DISTURBANCES), _moved(found, how)]
    return StudyResult(
        name="tree-noise",
        title="What noise in the leaves does to the answer",
        finding=_finding(both, how),
        grids=tuple(grids),
        pictures=tuple(
            StudyChart(name=name, title=f"Spoilt by {name} noise", figure=_figure(name, both, how))
            for name in DISTURBANCES
        ),
        notes=NOTES,
        settings=scene.told,
    )


def _curves(noise: str, found: NoiseEffects, how: Resampling) -> StudyTable:
    entries = [
        StudyRow(
            name=rule,
            values=tuple(mean_effect(found[rule, noise, ratio], "spoilt", how) for ratio in RATIOS),
            style="reference" if rule == "linear" else "",
        )
        for rule in RULES
    ]
    columns = tuple(StudyColumn(label=f"{ratio:g}", tip=f"noise ratio {ratio:g}") for ratio in RATIOS)
    return StudyTable(title=f"Spoilt by {noise} noise, %", head="Rule", columns=columns, entries=tuple(entries))


def _gaps(found: Mapping[LinkKind, NoiseEffects], how: Resampling) -> StudyTable:
    """Logic minus linear, world by world."""
    entries: list[StudyRow] = []
    for noise in DISTURBANCES:
        for kind, one in found.items():
            for rule in ("linear", "bayes-net"):
                values: list[CellValue] = []
                for ratio in RATIOS:
                    logic, linear = (
                        np.array([100 * effect.spoilt for effect in one[name, noise, ratio]])
                        for name in ("logic", rule)
                    )
                    values.append(compare_paired(logic, linear, resampling=how))
                entries.append(StudyRow(name=f"{noise}, {kind} worlds, − {rule}", values=tuple(values)))
    columns = tuple(StudyColumn(label=f"{ratio:g}") for ratio in RATIOS)
    caption = "Positive: the logic rule is spoilt more. Worlds resampled."
    title = "Logic minus linear, % spoilt"
    return StudyTable(title=title, head="Noise", columns=columns, entries=tuple(entries), caption=caption)


def _sizes(scene: Simulation, how: Resampling) -> StudyTable:
    """Larger trees, worlds of formulas, uncertain noise at one ratio."""
    entries: list[StudyRow] = []
    rules = ("bayes-net", "linear", "logic")
    for size in SIZES:
        small = replace(
            scene, worlds=min(24, scene.worlds), kinds=("logic",), settings=replace(scene.settings, leaves=size)
        )
        found = noise_effects(small, rules)
        values = [mean_effect(found[rule, "uncertain", AT], "spoilt", how) for rule in rules]
        entries.append(StudyRow(name=plural(size, "leaf").replace("leafs", "leaves"), values=tuple(values)))
    columns = tuple(StudyColumn(label=rule) for rule in rules)
    title = f"By size of the tree: spoilt by uncertain noise of {AT:g}, logic worlds, %"
    return StudyTable(title=title, head="At least", columns=columns, entries=tuple(entries))


def _accuracy(noise: str, found: Mapping[LinkKind, NoiseEffects], how: Resampling) -> StudyTable:
    """As the paper has it: accuracy against the noise ratio."""
    entries = [
        StudyRow(
            name=f"{kind} worlds: {rule}",
            values=(
                mean_effect(one[rule, "", 0.0], "accuracy", how),
                *(mean_effect(one[rule, noise, ratio], "accuracy", how) for ratio in RATIOS),
            ),
        )
        for kind, one in found.items()
        for rule in RULES
    ]
    columns = (StudyColumn(label="without"), *(StudyColumn(label=f"{ratio:g}") for ratio in RATIOS))
    title = f"Accuracy at one half under {noise} noise, %"
    return StudyTable(title=title, head="Rule", columns=columns, entries=tuple(entries))


def _moved(found: Mapping[LinkKind, NoiseEffects], how: Resampling) -> StudyTable:
    entries = [
        StudyRow(
            name=f"{kind} worlds: {rule}",
            values=tuple(mean_effect(one[rule, noise, 0.5], "moved", how) for noise in DISTURBANCES),
        )
        for kind, one in found.items()
        for rule in RULES
    ]
    columns = tuple(StudyColumn(label=f"{noise} 0.5") for noise in DISTURBANCES)
    title = "Moved, percentage points"
    return StudyTable(title=title, head="Rule", columns=columns, entries=tuple(entries))


def _figure(noise: str, found: NoiseEffects, how: Resampling) -> Chart:
    scores = {rule: tuple(mean_effect(found[rule, noise, ratio], "spoilt", how) for ratio in RATIOS) for rule in DRAWN}
    n = tuple(len(found[DRAWN[0], noise, ratio]) for ratio in RATIOS)
    lines = Breakdown(
        column="noise_ratio",
        ordered=True,
        groups=tuple(f"{ratio:g}" for ratio in RATIOS),
        n=n,
        base_rate=tuple(float("nan") for _ in RATIOS),
        scores=scores,
        answered={rule: n for rule in DRAWN},
    )
    return score_by_group(lines, label=f"% spoilt by {noise} noise")


def _finding(found: NoiseEffects, how: Resampling) -> str:
    told: list[str] = []
    more = 0
    for noise in DISTURBANCES:
        logic, linear = (np.array([100 * one.spoilt for one in found[rule, noise, AT]]) for rule in ("logic", "linear"))
        gap = compare_paired(logic, linear, resampling=how)
        more += gap.low > 0
        ends = bracket(gap.low, gap.high, 1)
        means = " − ".join(number(float(np.nanmean(one)), 0) for one in (logic, linear))
        told.append(f"{noise} {means} = {number(gap.diff, 1)} {ends}")
    return (
        f"At a noise ratio of {AT:g} the logic rule is spoilt clearly more than the linear one by {more} of "
        f"{plural(len(DISTURBANCES), 'kind')} of noise (% spoilt): {'; '.join(told)}."
    )


# Noise on the leaves of finished trees: as their links stand, and joined by means and by random weights.

DRAWS = 200
"""Disturbed copies of every tree."""
REAL_TREE_NOTES = (
    "Spoilt is 1 − r² between the roots without and with noise, over the trees; trees are resampled. It takes trees "
    "whose roots differ.",
    "Leaves are disturbed, assumptions and judgements are not: a judged claim would have to be asked for again.",
)
REJOINED = (
    "Whether links bring answers nearer to what happens needs outcomes: `foretell backtest QUESTIONS -F "
    "tree-file:folder=TREES -F tree-file:folder=TREES,rule=average -F tree-file:folder=TREES,rule=random`.",
)
Join = Callable[[Tree], Tree]


def noise_in_trees(material: TreeStudyInput) -> StudyResult:
    """Every group of trees under every kind of noise."""
    grids = [_grid(noise, disturb, material) for noise, disturb in DISTURBANCES.items()]
    count = sum(map(len, material.trees.values()))
    judged = sum(isinstance(one.nodes[one.root].link, JudgedLink) for trees in material.trees.values() for one in trees)
    notes = [f"{plural(judged, 'root')} of {count} are judged: no noise reaches them."] if judged else []
    return StudyResult(
        name="tree-noise",
        title="What noise in the leaves of real trees does to their roots",
        finding=_finding_of_trees(count, grids),
        grids=tuple(grids),
        notes=(*REAL_TREE_NOTES, *notes),
        settings={"seed": material.resampling.seed, "disturbed copies": DRAWS},
    )


def weights_of_trees(material: TreeStudyInput) -> StudyResult:
    """How far the roots go when the same leaves are joined by means and by random weights."""
    grids = tuple(_rejoined(name, trees, material) for name, trees in material.trees.items())
    count = sum(map(len, material.trees.values()))
    moved = grids[0].entries[1].values[1]
    told = f"{number(moved.estimate, 1)} {bracket(moved.low, moved.high, 1)}" if isinstance(moved, Interval) else "–"
    return StudyResult(
        name="tree-weights",
        title="What the links of real trees do to their roots",
        finding=f"{plural(count, 'tree')}: joined by means instead, the first ones' roots move by {told} points.",
        grids=grids,
        notes=REJOINED,
        settings={"seed": material.resampling.seed, "draws": material.resampling.draws},
    )


def _rejoined(name: str, trees: Sequence[Tree], material: TreeStudyInput) -> StudyTable:
    roots = {rule: _roots([join(tree) for tree in trees]) for rule, join in _joins(material.resampling.seed).items()}
    stored = next(iter(roots.values()))
    entries: list[StudyRow] = []
    for rule, p in roots.items():
        moved = bootstrap_score(100 * np.abs(p - stored), resampling=material.resampling)
        turned = bootstrap_score(100.0 * ((p > 0.5) != (stored > 0.5)), resampling=material.resampling)
        first = p is stored
        values = (100 * float(p.mean()), None if first else moved, None if first else turned, len(trees))
        entries.append(StudyRow(name=rule, values=values, style="reference" if first else ""))
    columns = (
        StudyColumn(label="mean root", tip="%"),
        StudyColumn(label="moved", tip="mean distance to the root as it was, in points"),
        StudyColumn(label="turned", tip="% of roots that came to lie on the other side of one half"),
        StudyColumn(label="trees"),
    )
    return StudyTable(title=name, head="Links", columns=columns, entries=tuple(entries))


def _roots(trees: Sequence[Tree]) -> Floats:
    """What each tree's numbers come to."""
    return np.array([circuit.run()[circuit.claims[circuit.root]] for circuit in map(compile_tree, trees)])


def _finding_of_trees(count: int, grids: Sequence[StudyTable]) -> str:
    place = RATIOS.index(AT)
    found = {noise: grid.entries[0].values[place] for noise, grid in zip(DISTURBANCES, grids, strict=True)}
    told = [f"{noise} {number(one.estimate, 0)}" for noise, one in found.items() if isinstance(one, Interval)]
    if not told:
        return f"{plural(count, 'tree')}: all roots are the same, so that noise has nothing to spoil."
    return f"{plural(count, 'tree')}; % spoilt of {grids[0].entries[0].name} at a ratio of {AT:g}: {', '.join(told)}."


def _grid(noise: str, disturb: Disturbance, material: TreeStudyInput) -> StudyTable:
    entries: list[StudyRow] = []
    for name, trees in material.trees.items():
        if len(trees) < 2:
            raise InputError(f"{name} has {plural(len(trees), 'tree')}", hint="give at least two")
        for rule, join in _joins(material.resampling.seed).items():
            joined = [join(tree) for tree in trees]
            values = tuple(variance_lost_among(joined, disturb, ratio, material) for ratio in RATIOS)
            entries.append(StudyRow(name=f"{name}, {rule}", values=values))
    columns = tuple(StudyColumn(label=f"{ratio:g}") for ratio in RATIOS)
    return StudyTable(title=f"Spoilt by {noise} noise, %", head="Trees", columns=columns, entries=tuple(entries))


def _joins(seed: int) -> Mapping[str, Join]:
    rng = Random(seed)
    return {
        "as they are": lambda tree: tree,
        "average": lambda tree: relink(tree, "average", rng),
        "random": lambda tree: relink(tree, "random", rng),
    }


def variance_lost_among(
    trees: Sequence[Tree], disturb: Disturbance, ratio: float, material: TreeStudyInput
) -> Interval | None:
    """1 − r² over the roots of the trees, in per cent; None where all roots are the same."""
    sums = np.stack([_sums(tree, disturb, ratio, [material.resampling.seed, i]) for i, tree in enumerate(trees)])
    found = bootstrap_sums(sums, _spoilt_from_sums, material.resampling)
    return found if np.isfinite(found.estimate) else None


def _sums(tree: Tree, disturb: Disturbance, ratio: float, seed: list[int]) -> Floats:
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
