"""Studies of noise in the leaves of trees: what it does to the answer, and what error bars from trials are worth."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import fmean

import numpy as np

from foretell.forecasters.tree.arithmetic.circuit import run_many, slopes
from foretell.forecasters.tree.arithmetic.compiler import compile_tree
from foretell.forecasters.tree.arithmetic.error_bar import LEVEL, bar_ends, leaf_spread, next_trials
from foretell.forecasters.tree.grow.analyze import ROOT
from foretell.forecasters.tree.links import JudgedLink
from foretell.forecasters.tree.proposition import Tree, leaves
from foretell.forecasters.tree.stored_trees import relink
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval, Resampling, bootstrap_score, bootstrap_sums
from foretell.metrics.comparison import Comparison, compare_paired
from foretell.questions.errors import InputError
from foretell.report.charts.groups import score_by_group
from foretell.report.charts.svg import Chart
from foretell.report.numbers import bracket, number, plural
from foretell.report.study import CellValue, StudyChart, StudyResult, StudyTable, column, table
from foretell.studies.inputs import DataInputs, StudyData, StudyProgress, TreeStudyOptions, ignore_progress
from foretell.studies.scores import step_scores
from foretell.studies.stored_runs import require_simulation
from foretell.studies.tree_world import (
    LINK_KINDS,
    SIMULATED_RULES,
    LinkKind,
    SimulatedSynthesizer,
    Simulation,
    TreeWorld,
    TreeWorldSettings,
    draw_questions,
    draw_world,
)

# What does noise in the leaves do to the answer? Three kinds of noise, in simulated worlds or on real trees.
#
# After Analytica (2026), section 5.3. The measure is `spoilt`, which no rule can have less of than a linear one.


# Three kinds of noise on leaves, and how to measure what they do.

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


# Simulated worlds.

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
    simulation: Simulation, rules: Sequence[str] = SIMULATED_RULES, progress: StudyProgress = ignore_progress
) -> NoiseEffects:
    """What each kind and ratio of noise does to each rule, world by world; all rules see the same disturbed leaves."""
    found: NoiseEffects = {}
    for place in range(simulation.worlds):
        for key, effect in _in_world(simulation, place, rules):
            found.setdefault(key, []).append(effect)
        progress(place + 1, simulation.worlds)
    return found


def _in_world(
    simulation: Simulation, place: int, rules: Sequence[str]
) -> Iterator[tuple[tuple[str, str, float], NoiseEffect]]:
    _, solver, asked = simulation.stage(place)
    sure = SimulatedSynthesizer(noise=0.0)
    streams = {rule: np.random.default_rng([simulation.seed, place, 2, i]) for i, rule in enumerate(rules)}
    numbers = {rule: solver.numbers(rule, sure, asked, streams[rule]) for rule in rules}
    before = {rule: solver.sketch(rule).run(asked.leaf, numbers[rule]) for rule in rules}
    for rule in rules:
        right = float(np.mean((before[rule] > 0.5) == asked.outcome))
        yield (rule, "", 0.0), NoiseEffect(spoilt=0.0, moved=0.0, accuracy=right)
    for kind, (noise, disturb) in enumerate(DISTURBANCES.items()):
        for step, ratio in enumerate(RATIOS):
            leaf = disturb(asked.leaf, ratio, np.random.default_rng([simulation.seed, place, 3, kind, step]))
            for rule in rules:
                after = solver.sketch(rule).run(leaf, numbers[rule])
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
NOISE_NOTES = (
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


def noise_study(inputs: DataInputs, options: TreeStudyOptions) -> StudyResult:
    """What does noise in the leaves do to a tree's answer?

    All rules under all kinds of noise; on real trees where some are given.
    """
    data = inputs.data(options)
    if data.trees:
        return noise_in_trees(data)
    simulation = replace(require_simulation(data, "tree-noise", trees=True), questions=400)
    found: dict[LinkKind, NoiseEffects] = {
        kind: noise_effects(replace(simulation, kinds=(kind,)), progress=data.progress) for kind in LINK_KINDS
    }
    both: NoiseEffects = {key: [*found["linear"][key], *found["logic"][key]] for key in found["linear"]}
    how = data.resampling
    grids = [_curves(name, both, how) for name in DISTURBANCES]
    grids += [_gaps(found, how), _sizes(simulation, how)]
    grids += [*(_accuracy(name, found, how) for name in DISTURBANCES), _moved(found, how)]
    return StudyResult(
        name="tree-noise",
        title="What noise in the leaves does to the answer",
        sentences=(_sentence(both, how),),
        tables=tuple(grids),
        charts=tuple(
            StudyChart(name=name, title=f"Spoilt by {name} noise", chart=_figure(name, both, how))
            for name in DISTURBANCES
        ),
        notes=NOISE_NOTES,
        settings=simulation.description,
    )


RATIO_COLUMNS = tuple(column(f"{ratio:g}", f"noise ratio {ratio:g}") for ratio in RATIOS)


def _spoilt_at(found: NoiseEffects, rule: str, noise: str, ratio: float) -> Floats:
    """By world, in per cent."""
    return np.array([100 * effect.spoilt for effect in found[rule, noise, ratio]])


def _curves(noise: str, found: NoiseEffects, how: Resampling) -> StudyTable:
    rows = {
        rule: [mean_effect(found[rule, noise, ratio], "spoilt", how) for ratio in RATIOS] for rule in SIMULATED_RULES
    }
    title = f"Spoilt by {noise} noise, %"
    return table(title, "Rule", RATIO_COLUMNS, rows, styles={"linear": "reference"})


def _gaps(found: Mapping[LinkKind, NoiseEffects], how: Resampling) -> StudyTable:
    """Logic minus linear, world by world."""

    def gap(one: NoiseEffects, rule: str, noise: str, ratio: float) -> Comparison:
        logic, linear = (_spoilt_at(one, name, noise, ratio) for name in ("logic", rule))
        return compare_paired(logic, linear, resampling=how)

    rows = {
        f"{noise}, {kind} worlds, − {rule}": [gap(one, rule, noise, ratio) for ratio in RATIOS]
        for noise in DISTURBANCES
        for kind, one in found.items()
        for rule in ("linear", "bayes-net")
    }
    caption = "Positive: the logic rule is spoilt more. Worlds resampled."
    return table("Logic minus linear, % spoilt", "Noise", RATIO_COLUMNS, rows, caption=caption)


def _sizes(simulation: Simulation, how: Resampling) -> StudyTable:
    """Larger trees, worlds of formulas, uncertain noise at one ratio."""
    rules = ("bayes-net", "linear", "logic")
    rows: dict[str, list[Interval]] = {}
    for size in SIZES:
        worlds, settings = min(24, simulation.worlds), replace(simulation.settings, leaves=size)
        found = noise_effects(replace(simulation, worlds=worlds, kinds=("logic",), settings=settings), rules)
        rows[f"{size} leaves"] = [mean_effect(found[rule, "uncertain", AT], "spoilt", how) for rule in rules]
    title = f"By size of the tree: spoilt by uncertain noise of {AT:g}, logic worlds, %"
    return table(title, "At least", map(column, rules), rows)


def _accuracy(noise: str, found: Mapping[LinkKind, NoiseEffects], how: Resampling) -> StudyTable:
    """As the paper has it: accuracy against the noise ratio."""
    steps = [("", 0.0), *((noise, ratio) for ratio in RATIOS)]
    rows = {
        f"{kind} worlds: {rule}": [mean_effect(one[rule, *step], "accuracy", how) for step in steps]
        for kind, one in found.items()
        for rule in SIMULATED_RULES
    }
    columns = (column("without"), *RATIO_COLUMNS)
    return table(f"Accuracy at one half under {noise} noise, %", "Rule", columns, rows)


def _moved(found: Mapping[LinkKind, NoiseEffects], how: Resampling) -> StudyTable:
    rows = {
        f"{kind} worlds: {rule}": [mean_effect(one[rule, noise, 0.5], "moved", how) for noise in DISTURBANCES]
        for kind, one in found.items()
        for rule in SIMULATED_RULES
    }
    columns = [column(f"{noise} 0.5") for noise in DISTURBANCES]
    return table("Moved, percentage points", "Rule", columns, rows)


def _figure(noise: str, found: NoiseEffects, how: Resampling) -> Chart:
    scores = {rule: tuple(mean_effect(found[rule, noise, ratio], "spoilt", how) for ratio in RATIOS) for rule in DRAWN}
    n = [len(found[DRAWN[0], noise, ratio]) for ratio in RATIOS]
    groups = [f"{ratio:g}" for ratio in RATIOS]
    return score_by_group(step_scores("noise_ratio", groups, scores, n), label=f"% spoilt by {noise} noise")


def _sentence(found: NoiseEffects, how: Resampling) -> str:
    gaps: list[str] = []
    more = 0
    for noise in DISTURBANCES:
        logic, linear = (_spoilt_at(found, rule, noise, AT) for rule in ("logic", "linear"))
        gap = compare_paired(logic, linear, resampling=how)
        more += gap.low > 0
        means = " − ".join(number(float(np.nanmean(one)), 0) for one in (logic, linear))
        gaps.append(f"{noise} {means} = {number(gap.diff, 1)} {bracket(gap.low, gap.high, 1)}")
    return (
        f"At a noise ratio of {AT:g} the logic rule is spoilt clearly more than the linear one by {more} of "
        f"{plural(len(DISTURBANCES), 'kind')} of noise (% spoilt): {'; '.join(gaps)}."
    )


# Finished trees, with their own links and with means or random weights instead.

DRAWS = 200
"""Disturbed copies of every tree."""
REAL_TREE_NOTES = (
    "Spoilt is 1 − r² between the roots without and with noise, over the trees; trees are resampled. It takes trees "
    "whose roots differ.",
    "Leaves are disturbed, assumptions and judgements are not: a judged claim would have to be asked for again.",
)


def _joins(seed: int) -> Mapping[str, Callable[[Tree], Tree]]:
    rng = Random(seed)
    return {
        "as they are": lambda tree: tree,
        "average": lambda tree: relink(tree, "average", rng),
        "random": lambda tree: relink(tree, "random", rng),
    }


def noise_in_trees(data: StudyData) -> StudyResult:
    """Every group of trees under every kind of noise."""
    grids = [_noise_table(noise, disturb, data) for noise, disturb in DISTURBANCES.items()]
    trees = [tree for group in data.trees.values() for tree in group]
    judged = sum(isinstance(tree.nodes[tree.root].link, JudgedLink) for tree in trees)
    notes = [f"{plural(judged, 'root')} of {len(trees)} are judged: no noise reaches them."] if judged else []
    first = grids[0].rows[0].name
    at = {noise: grid.numbers(f"{AT:g}").get(first) for noise, grid in zip(DISTURBANCES, grids, strict=True)}
    spoilt = [f"{noise} {number(value, 0)}" for noise, value in at.items() if value is not None]
    sentence = f"{plural(len(trees), 'tree')}: all roots are the same, so that noise has nothing to spoil."
    if spoilt:
        sentence = f"{plural(len(trees), 'tree')}; % spoilt of {first} at a ratio of {AT:g}: {', '.join(spoilt)}."
    return StudyResult(
        name="tree-noise",
        title="What noise in the leaves of real trees does to their roots",
        sentences=(sentence,),
        tables=tuple(grids),
        notes=(*REAL_TREE_NOTES, *notes),
        settings={"seed": data.resampling.seed, "disturbed copies": DRAWS},
    )


def _noise_table(noise: str, disturb: Disturbance, data: StudyData) -> StudyTable:
    rows: dict[str, list[Interval | None]] = {}
    for name, trees in data.trees.items():
        if len(trees) < 2:
            raise InputError(f"{name} has {plural(len(trees), 'tree')}", hint="give at least two")
        for rule, join in _joins(data.resampling.seed).items():
            joined = [join(tree) for tree in trees]
            rows[f"{name}, {rule}"] = [variance_lost_among(joined, disturb, ratio, data) for ratio in RATIOS]
    return table(f"Spoilt by {noise} noise, %", "Trees", RATIO_COLUMNS, rows)


def variance_lost_among(trees: Sequence[Tree], disturb: Disturbance, ratio: float, data: StudyData) -> Interval | None:
    """1 − r² over the roots of the trees, in per cent; None where all roots are the same."""
    sums = np.stack([_sums(tree, disturb, ratio, [data.resampling.seed, i]) for i, tree in enumerate(trees)])
    found = bootstrap_sums(sums, _spoilt_from_sums, data.resampling)
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


# Study: does a tree's error bar cover the truth as often as it says, and is money well spent by slope² × variance?


QUESTIONS = 25
"""Of every world."""
SD, UNEQUAL = 0.1, 0.5
"""Between trials of a leaf: the typical standard deviation, and by which power of e leaves differ in it."""
MOST_WORLDS = 40
START, MORE = 2, 3
"""Trials of every leaf at first, and for each leaf as many more as there is money for."""
UNCERTAINTY_NOTES = (
    "A grounder says chance + lasting error + passing error, held within [0, 1]. Passing errors differ between the "
    "trials of a leaf and may go together between leaves; leaves differ in how large theirs are. Lasting errors are "
    "the same in every trial.",
    "No repetition shows a lasting error: bars that do not know of it cover too rarely. How large it is has to be "
    "known from claims that came out; the last rows have it.",
    "Chances near 0 and 1 cannot be missed on both sides, so that even the mean of many trials is off there. Bars from "
    "many trials are narrow enough to feel it.",
    "Smart spending gives every next trial to the leaf with the largest slope² × variance / (n·(n + 1)), by what its "
    "trials so far show; equal spending has as many trials for every leaf.",
)


@dataclass(frozen=True, kw_only=True)
class RepeatedGrounder:
    """A grounder that is asked several times."""

    sd: float = SD
    correlation: float = 0.0
    """Between the passing errors of two leaves in the same trial."""
    slant: float = 0.0
    """Standard deviation of the lasting error."""

    def ask(self, chance: Floats, trials: int, rng: np.random.Generator) -> Floats:
        """Leaves × trials."""
        size = len(chance)
        own = np.exp(UNEQUAL * rng.standard_normal((size, 1)))
        own *= self.sd / np.sqrt(np.mean(own**2))
        shared, apart = rng.standard_normal((1, trials)), rng.standard_normal((size, trials))
        passing = np.sqrt(self.correlation) * shared + np.sqrt(1 - self.correlation) * apart
        lasting = self.slant * rng.standard_normal((size, 1))
        return np.clip(chance[:, None] + lasting + own * passing, 0.0, 1.0)


def root_and_slopes(world: TreeWorld, numbers: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    """The root at these numbers of the leaves, and how it moves with each."""
    circuit = world.circuit
    values = circuit.run(numbers)
    place = circuit.claims[ROOT]
    slope = slopes(circuit.ops, values, place)
    return values[place], {id: slope[circuit.input_places[id]] if id in circuit.input_places else 0.0 for id in numbers}


def _means(trials: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {id: fmean(one) for id, one in trials.items()}


def covered(
    world: TreeWorld, grounder: RepeatedGrounder, trials: int, rng: np.random.Generator, *, lasting: float = 0.0
) -> tuple[Floats, Floats]:
    """For each of some questions of a world, whether the bar holds the true chance, and how wide it is."""
    asked = draw_questions(world, QUESTIONS, rng)
    found: list[tuple[bool, float]] = []
    for leaf, truth in zip(asked.leaf, asked.truth, strict=True):
        said = dict(zip(world.leaves, grounder.ask(leaf, trials, rng).tolist(), strict=True))
        p, slope = root_and_slopes(world, _means(said))
        spread = leaf_spread(slope, said, lasting=lasting)
        low, high = bar_ends(p, float(np.sqrt(spread.variance)), spread.freedom, LEVEL)
        found.append((bool(low - 1e-9 <= truth <= high + 1e-9), high - low))
    held, width = np.array(found).T
    return held, width


def spent(world: TreeWorld, grounder: RepeatedGrounder, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Squared errors of the root, for each of some questions, with equal and with smart spending of as many trials."""
    asked = draw_questions(world, QUESTIONS, rng)
    errors: list[tuple[float, float]] = []
    for leaf, truth in zip(asked.leaf, asked.truth, strict=True):
        size = len(world.leaves)
        drawn = dict(zip(world.leaves, grounder.ask(leaf, START + MORE * size, rng).tolist(), strict=True))
        equal = {id: one[: START + MORE] for id, one in drawn.items()}
        smart = {id: one[:START] for id, one in drawn.items()}
        means = _means(smart)
        for _ in range(MORE * size):
            _, slope = root_and_slopes(world, means)
            id = max(next_trials(slope, smart, 1).items(), key=lambda one: one[1])[0]
            smart[id] = drawn[id][: len(smart[id]) + 1]
            means[id] = fmean(smart[id])
        roots = [root_and_slopes(world, got)[0] for got in (_means(equal), means)]
        errors.append(((roots[0] - truth) ** 2, (roots[1] - truth) ** 2))
    both = np.array(errors).T
    return both[0], both[1]


def uncertainty_study(inputs: DataInputs, options: TreeStudyOptions) -> StudyResult:
    """Does a tree's error bar cover the truth as it says?

    And where is the next dollar best spent?

    Worlds of both kinds, with independent, correlated and lasting errors of the grounder.
    """
    data = inputs.data(options)
    simulation = require_simulation(data, "tree-uncertainty")
    seed, worlds = simulation.seed, min(max(4, simulation.worlds), MOST_WORLDS)
    coverage = coverage_table(seed, worlds, data.resampling, data.progress)
    spending, gains = spending_table(seed, worlds, data.resampling)
    return StudyResult(
        name="tree-uncertainty",
        title="Whether error bars of trees hold, and what smart spending brings",
        sentences=(_coverage_sentence(coverage), _spending_sentence(gains)),
        tables=(coverage, spending),
        notes=UNCERTAINTY_NOTES,
        settings={"seed": seed, "worlds": worlds, "questions of each": QUESTIONS, "nominal coverage": LEVEL},
    )


CASES: Mapping[str, tuple[RepeatedGrounder, int, float]] = {
    "3 trials": (RepeatedGrounder(), 3, 0.0),
    "5 trials": (RepeatedGrounder(), 5, 0.0),
    "10 trials": (RepeatedGrounder(), 10, 0.0),
    "3 trials, correlated": (RepeatedGrounder(correlation=0.5), 3, 0.0),
    "5 trials, correlated": (RepeatedGrounder(correlation=0.5), 5, 0.0),
    "10 trials, correlated": (RepeatedGrounder(correlation=0.5), 10, 0.0),
    "5 trials, lasting errors unknown": (RepeatedGrounder(slant=0.1), 5, 0.0),
    "5 trials, lasting errors known": (RepeatedGrounder(slant=0.1), 5, 0.1),
}


def _world(kind: LinkKind, seed: int, place: int) -> tuple[TreeWorld, np.random.Generator]:
    rng = np.random.default_rng([seed, place])
    return draw_world(TreeWorldSettings(kind=kind, size=2.0), rng), rng


def coverage_table(seed: int, worlds: int, how: Resampling, progress: StudyProgress = ignore_progress) -> StudyTable:
    """How often the bar holds the truth, and how wide it is, by kind of world and grounder."""
    rows: dict[str, tuple[CellValue, ...]] = {}
    for name, (grounder, trials, lasting) in CASES.items():
        cells: list[CellValue] = []
        for kind in LINK_KINDS:
            made = [_world(kind, seed, place) for place in range(worlds)]
            held = [covered(world, grounder, trials, rng, lasting=lasting) for world, rng in made]
            of = np.repeat(np.arange(worlds), QUESTIONS)
            cells += [
                bootstrap_score(100 * np.concatenate([one for one, _ in held]), of, resampling=how),
                float(np.mean([np.mean(width) for _, width in held])),
            ]
        rows[name] = tuple(cells)
    columns = [
        one
        for kind in LINK_KINDS
        for one in (
            column(f"{kind}: covered", f"% of bars of {LEVEL:.0%} that hold the true chance, worlds resampled"),
            column(f"{kind}: width", "mean width of the bar", 3),
        )
    ]
    return table("Coverage of the error bar", "Grounder", columns, rows)


def spending_table(seed: int, worlds: int, how: Resampling) -> tuple[StudyTable, dict[str, Comparison]]:
    """Squared error of the root with equal and with smart spending of the same number of trials."""
    rows: dict[str, tuple[CellValue, ...]] = {}
    gains: dict[str, Comparison] = {}
    for kind in LINK_KINDS:
        made = [_world(kind, seed, place) for place in range(worlds)]
        found = [spent(world, RepeatedGrounder(), rng) for world, rng in made]
        equal, smart = (10_000 * np.concatenate([one[i] for one in found]) for i in (0, 1))
        of = np.repeat(np.arange(worlds), QUESTIONS)
        gains[kind] = compare_paired(equal, smart, of, resampling=how)
        rows[f"{kind} worlds"] = (float(equal.mean()), float(smart.mean()), gains[kind])
    columns = (
        column("equal", "mean squared error of the root, ×10,000", 2),
        column("smart", "the same by slope² × variance", 2),
        column("gain", "equal minus smart, worlds resampled", 2),
    )
    return table("Spending the same number of trials", "Worlds", columns, rows), gains


def _coverage_sentence(grid: StudyTable) -> str:
    measured = [name for name in CASES if "lasting" not in name]
    found = [
        value for kind in LINK_KINDS for name, value in grid.numbers(f"{kind}: covered").items() if name in measured
    ]
    unknown = grid.numbers("linear: covered")["5 trials, lasting errors unknown"]
    return (
        f"Bars of {LEVEL:.0%} from repeated leaves cover the truth in {number(min(found), 1)} to "
        f"{number(max(found), 1)} % of questions; where a grounder errs the same way every time and nobody knows, in "
        f"{number(unknown, 0)} %."
    )


def _spending_sentence(gains: Mapping[str, Comparison]) -> str:
    parts = [f"{kind} {number(one.diff, 2)} {bracket(one.low, one.high, 2)}" for kind, one in gains.items()]
    return f"Smart spending of the same trials takes this much off the squared error (×10,000): {', '.join(parts)}."
