"""Study: what noise in the leaves of trees does to the answer, and what error bars from trials are worth."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from statistics import fmean
from typing import Literal

import numpy as np

from foretell.forecasters.tree.arithmetic.circuit import run_many, slopes
from foretell.forecasters.tree.arithmetic.compiler import compile_tree
from foretell.forecasters.tree.arithmetic.error_bar import LEVEL, bar_ends, leaf_spread, next_trials
from foretell.forecasters.tree.forecaster import relink
from foretell.forecasters.tree.grow.analyze import ROOT
from foretell.forecasters.tree.links import JudgedLink
from foretell.forecasters.tree.proposition import Tree, leaves
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval, Resampling, bootstrap_score, bootstrap_sums
from foretell.metrics.comparison import compare_paired
from foretell.metrics.metric import mean_metric
from foretell.metrics.scores import right_side
from foretell.questions.errors import InputError
from foretell.report.charts.groups import score_by_group
from foretell.report.charts.svg import Chart
from foretell.report.numbers import number, plural, value_text
from foretell.report.study import CellValue, StudyChart, StudyResult, StudyTable, column, table
from foretell.scoring.verdict import Verdict
from foretell.studies.inputs import (
    DataInputs,
    StudyData,
    StudyProgress,
    TreeStudyOptions,
    ignore_progress,
)
from foretell.studies.scores import step_scores
from foretell.studies.sections import SECTION, run_sections
from foretell.studies.tree_world import (
    WORLD_RULES,
    SimulatedQuestions,
    Simulation,
    TreeWorld,
    WorldRule,
    draw_questions,
    draw_world,
)

# Three kinds of noise on leaves (Analytica 2026, section 5.3), and how to measure what they do.

Disturbance = Callable[[Floats, float, np.random.Generator], Floats]


def add_uniform_noise(p: Floats, ratio: float, rng: np.random.Generator) -> Floats:
    """Add U(0, ratio), with a maximum of 1: the paper's "normal" noise, which is not normal and only ever adds."""
    return np.minimum(p + rng.uniform(0, ratio, p.shape), 1.0)


def replace_by_chance(p: Floats, ratio: float, rng: np.random.Generator) -> Floats:
    """Replace p by a draw from U(0, 1) with probability `ratio`."""
    hit = rng.random(p.shape) < ratio
    return np.where(hit, rng.random(p.shape), p)


def reverse_by_chance(p: Floats, ratio: float, rng: np.random.Generator) -> Floats:
    """Replace p by its opposite, 1 − p, with probability `ratio`."""
    return np.where(rng.random(p.shape) < ratio, 1 - p, p)


DISTURBANCES: Mapping[str, Disturbance] = {
    "normal": add_uniform_noise,
    "uncertain": replace_by_chance,
    "reverse": reverse_by_chance,
}


def variance_lost(before: Floats, after: Floats) -> float:
    """Return the share of the answers' variance lost to noise: 1 − r², with r the correlation of before and after.

    It is what is left of the squared error after the best recalibration a + b·after. So an answer that hardly moves
    under noise because it hardly ever moves is not taken for robust, nor one that is merely shifted for spoilt. NaN if
    all answers are the same.

    For any rule of ours the answer is linear in each leaf by itself. If leaves are independent, and so are their
    disturbances, with one correlation ρ between a leaf before and after, then |r| ≤ |ρ|, and a weighted sum of the
    leaves has r = ρ: no rule is spoilt less than a linear one. Proof: write the answer as Σ c_S·Π_{i∈S}(x_i − μ_i). The
    terms are uncorrelated, each keeps ρ^|S| of its correlation, and |ρ|^|S| ≤ |ρ|; the rest is Cauchy–Schwarz.

    >>> x = np.array([0.1, 0.4, 0.7, 0.8])
    >>> round(variance_lost(x, 0.5 * x + 0.3), 9), round(variance_lost(x, 1 - x), 9)
    (0.0, 0.0)
    """
    a, b = before - before.mean(), after - after.mean()
    size = float(a @ a) * float(b @ b)
    return 1 - float(a @ b) ** 2 / size if size > 0 else float("nan")


# Noise in simulated worlds.

RATIOS = (0.1, 0.25, 0.5, 0.75, 1.0)
AT = 0.25
"""Noise ratio that the summary sentence reports."""
WITHOUT = ("", 0.0)
RATIO_COLUMNS = tuple(column(f"{ratio:g}", f"noise ratio {ratio:g}") for ratio in RATIOS)
NOISE_NOTES = (
    "Every rule is tried in worlds whose claims really follow that rule; all rules get the same trees and the same "
    "leaves, disturbed in the same way.",
    "Spoilt is 1 − r² between the answers without and with noise, over the questions of a world: the part of the "
    "information that no recalibration can bring back. Of all rules that are linear in each leaf, a weighted sum of "
    "independent leaves is spoilt least: by the leaves' own 1 − ρ², whatever the weights.",
    "Accuracy mixes noise with how much a rule had to say: compare its fall, not its level.",
)


@dataclass(frozen=True, kw_only=True)
class NoiseEffect:
    """The effect of noise in one world."""

    spoilt: float
    accuracy: float


NoiseEffects = dict[tuple[WorldRule, str, float], list[NoiseEffect]]
"""Effects by rule, kind of noise and ratio, one for each world; `WITHOUT` stands for no noise."""


def noise_effects(simulation: Simulation, progress: StudyProgress = ignore_progress) -> NoiseEffects:
    """Return the effect of each kind and ratio of noise on each rule, world by world."""
    found: NoiseEffects = {}
    for place in range(simulation.worlds):
        for rule in WORLD_RULES:
            world, asked = simulation.world(rule, place)
            found.setdefault((rule, *WITHOUT), []).append(_effect(asked, asked.truth))
            for kind, (noise, disturb) in enumerate(DISTURBANCES.items()):
                for step, ratio in enumerate(RATIOS):
                    leaf = disturb(asked.leaf, ratio, np.random.default_rng([simulation.seed, place, 2, kind, step]))
                    found.setdefault((rule, noise, ratio), []).append(_effect(asked, world.chances(leaf)[ROOT]))
        progress(place + 1, simulation.worlds)
    return found


def _effect(asked: SimulatedQuestions, answer: Floats) -> NoiseEffect:
    right = float(np.mean(right_side(answer, asked.outcome)))
    return NoiseEffect(spoilt=variance_lost(asked.truth, answer), accuracy=right)


class TreeNoiseOptions(TreeStudyOptions):
    """Trees, or the size of the simulated worlds."""

    section: Literal["noise", "error-bars"] | None = SECTION


def study(inputs: DataInputs, options: TreeNoiseOptions) -> StudyResult:
    """What does noise in the leaves do to a tree's answer?

    noise: every rule under three kinds of noise, in simulated worlds or in your own trees. error-bars: whether a tree's
    error bars cover the truth as they claim, and whether extra trials help more on the leaves that the answer depends
    on most; simulated with independent, correlated and systematic errors of the grounder.

      foretell study tree-noise

      foretell study tree-noise RUN --section noise
    """
    data = inputs.data(options)
    sections = {
        "noise": partial(noise_section, data, options),
        "error-bars": partial(error_bars_section, data, options),
    }
    return run_sections("tree-noise", "Noise in the leaves of trees", sections, options.section)


def noise_section(data: StudyData, options: TreeNoiseOptions) -> StudyResult:
    """Disturb the leaves of the given trees, or of trees in simulated worlds."""
    if data.trees:
        return noise_in_trees(data)
    simulation = Simulation(worlds=options.worlds, leaves=options.leaves, seed=data.resampling.seed)
    found, how = noise_effects(simulation, data.progress), data.resampling
    return StudyResult(
        name="tree-noise",
        title="What noise in the leaves does to the answer",
        sentences=(_sentence(found, how),),
        tables=(
            *(_effects_table(f"Spoilt by {noise} noise, %", found, "spoilt", noise, how) for noise in DISTURBANCES),
            _gaps_table(found, how),
            *(
                _effects_table(f"Accuracy under {noise} noise, %", found, "accuracy", noise, how)
                for noise in DISTURBANCES
            ),
        ),
        charts=tuple(
            StudyChart(name=noise, title=f"Spoilt by {noise} noise", chart=_curves(noise, found, how))
            for noise in DISTURBANCES
        ),
        notes=NOISE_NOTES,
        settings={
            "worlds": simulation.worlds,
            "questions per world": simulation.questions,
            "leaves": simulation.leaves,
            "seed": simulation.seed,
        },
    )


def _mean(found: Sequence[NoiseEffect], what: str, how: Resampling) -> Interval:
    """Return the mean over worlds in per cent, with worlds resampled.

    Worlds in which a rule always says the same are left out, because there is nothing to spoil.
    """
    values = np.array([100 * getattr(one, what) for one in found])
    return bootstrap_score(values[np.isfinite(values)], resampling=how)


def _effects_table(title: str, found: NoiseEffects, what: str, noise: str, how: Resampling) -> StudyTable:
    steps = [WITHOUT, *((noise, ratio) for ratio in RATIOS)]
    rows = {rule: [_mean(found[rule, *step], what, how) for step in steps] for rule in WORLD_RULES}
    return table(title, "Rule", (column("without"), *RATIO_COLUMNS), rows, styles={"linear": "reference"})


SPOILT, SQUARED_ERROR = (
    mean_metric(name, lambda rows: rows.p, "low", meaning=name) for name in ("% of answers spoilt", "squared error")
)


def _logic_minus_linear(found: NoiseEffects, noise: str, ratio: float, how: Resampling) -> Verdict:
    logic, linear = (np.array([100 * one.spoilt for one in found[rule, noise, ratio]]) for rule in ("logic", "linear"))
    compared = compare_paired(logic, linear, resampling=how)
    return Verdict.of(compared, ("logic", "linear"), SPOILT, level=how.level, unit="world")


def _gaps_table(found: NoiseEffects, how: Resampling) -> StudyTable:
    rows = {noise: [_logic_minus_linear(found, noise, ratio, how) for ratio in RATIOS] for noise in DISTURBANCES}
    caption = "Positive: the logic rule is spoilt more. Worlds resampled."
    return table("Logic minus linear, % spoilt", "Noise", RATIO_COLUMNS, rows, caption=caption)


def _curves(noise: str, found: NoiseEffects, how: Resampling) -> Chart:
    scores: dict[str, tuple[Interval, ...]] = {
        rule: tuple(_mean(found[rule, noise, ratio], "spoilt", how) for ratio in RATIOS) for rule in WORLD_RULES
    }
    n = [len(found["linear", noise, ratio]) for ratio in RATIOS]
    groups = [f"{ratio:g}" for ratio in RATIOS]
    return score_by_group(step_scores("noise_ratio", groups, scores, n), label=f"% spoilt by {noise} noise")


def _sentence(found: NoiseEffects, how: Resampling) -> str:
    gaps = {noise: _logic_minus_linear(found, noise, AT, how) for noise in DISTURBANCES}
    more = sum(gap.says == "worse" for gap in gaps.values())
    parts = [f"{noise} {value_text(gap, 1)}" for noise, gap in gaps.items()]
    return (
        f"At a noise ratio of {AT:g} the logic rule is spoilt more than the linear one, by more than chance, by {more} "
        f"of {plural(len(DISTURBANCES), 'kind')} of noise (points of % spoilt): {'; '.join(parts)}."
    )


# Noise on finished trees: with their own links, and with means or random weights instead.

DRAWS = 200
"""Number of disturbed copies of every tree."""
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
    """Study every group of trees under every kind of noise."""
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
    """Return 1 − r² over the roots of the trees, in per cent; None if all roots are the same."""
    sums = np.stack([_sums(tree, disturb, ratio, [data.resampling.seed, i]) for i, tree in enumerate(trees)])
    found = bootstrap_sums(sums, _spoilt_from_sums, data.resampling)
    return found if np.isfinite(found.estimate) else None


def _sums(tree: Tree, disturb: Disturbance, ratio: float, seed: list[int]) -> Floats:
    """Return sums over the copies of one tree: n, Σx, Σy, Σx², Σy², Σxy of the root before and after noise."""
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


# Does a tree's error bar cover the truth as often as it says, and where should more trials go?

QUESTIONS = 25
"""Number of questions in every world."""
SD, UNEQUAL = 0.1, 0.5
"""Typical standard deviation between trials of a leaf, and how much leaves differ in it on the log scale."""
BAR_RULES: tuple[WorldRule, ...] = ("linear", "logic")
START, MORE = 2, 3
"""Number of trials of every leaf at first, and how many more per leaf the budget allows."""
UNCERTAINTY_NOTES = (
    "A grounder says chance + systematic error + passing error, held within [0, 1]. Passing errors differ between the "
    "trials of a leaf and may go together between leaves; leaves differ in how large theirs are. Lasting errors are "
    "the same in every trial.",
    "No repetition shows a systematic error: bars that do not know of it cover too rarely. How large it is has to be "
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
    """Correlation between the passing errors of two leaves in the same trial."""
    slant: float = 0.0
    """Standard deviation of the systematic error."""

    def ask(self, chance: Floats, trials: int, rng: np.random.Generator) -> Floats:
        """Return the answers, leaves × trials."""
        size = len(chance)
        own = np.exp(UNEQUAL * rng.standard_normal((size, 1)))
        own *= self.sd / np.sqrt(np.mean(own**2))
        shared, apart = rng.standard_normal((1, trials)), rng.standard_normal((size, trials))
        passing = np.sqrt(self.correlation) * shared + np.sqrt(1 - self.correlation) * apart
        systematic_error = self.slant * rng.standard_normal((size, 1))
        return np.clip(chance[:, None] + systematic_error + own * passing, 0.0, 1.0)


def root_and_slopes(world: TreeWorld, numbers: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    """Return the root's probability at these leaf values, and its slope with respect to each leaf."""
    circuit = world.circuit
    values = circuit.run(numbers)
    place = circuit.claims[ROOT]
    slope = slopes(circuit.ops, values, place)
    return values[place], {id: slope[circuit.input_places[id]] if id in circuit.input_places else 0.0 for id in numbers}


def _means(trials: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {id: fmean(one) for id, one in trials.items()}


def covered(
    world: TreeWorld,
    grounder: RepeatedGrounder,
    trials: int,
    rng: np.random.Generator,
    *,
    systematic_error: float = 0.0,
) -> tuple[Floats, Floats]:
    """Return whether the error bar covers the true probability, and its width, for several questions of a world."""
    asked = draw_questions(world, QUESTIONS, rng)
    found: list[tuple[bool, float]] = []
    for leaf, truth in zip(asked.leaf, asked.truth, strict=True):
        said = dict(zip(world.leaves, grounder.ask(leaf, trials, rng).tolist(), strict=True))
        p, slope = root_and_slopes(world, _means(said))
        spread = leaf_spread(slope, said, systematic_error=systematic_error)
        low, high = bar_ends(p, float(np.sqrt(spread.variance)), spread.freedom, LEVEL)
        found.append((bool(low - 1e-9 <= truth <= high + 1e-9), high - low))
    held, width = np.array(found).T
    return held, width


def spent(world: TreeWorld, grounder: RepeatedGrounder, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the squared errors of the root with equal and with smart spending of the same number of trials."""
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


def error_bars_section(data: StudyData, options: TreeNoiseOptions) -> StudyResult:
    """Count how often error bars cover the truth in simulated worlds, and compare ways to spend trials."""
    if data.trees:
        raise InputError("the truth of given trees is not known", hint="leave them out to simulate worlds")
    coverage = coverage_table(options, data.resampling)
    data.progress(1, 2)
    spending, gains = spending_table(options, data.resampling)
    return StudyResult(
        name="tree-noise",
        title="Whether error bars of trees hold, and what smart spending brings",
        sentences=(_coverage_sentence(coverage), _spending_sentence(gains)),
        tables=(coverage, spending),
        notes=UNCERTAINTY_NOTES,
        settings={
            "seed": options.bootstrap.seed,
            "worlds": options.worlds,
            "questions of each": QUESTIONS,
            "nominal coverage": LEVEL,
        },
    )


CASES: Mapping[str, tuple[RepeatedGrounder, int, float]] = {
    "3 trials": (RepeatedGrounder(), 3, 0.0),
    "5 trials": (RepeatedGrounder(), 5, 0.0),
    "10 trials": (RepeatedGrounder(), 10, 0.0),
    "3 trials, correlated": (RepeatedGrounder(correlation=0.5), 3, 0.0),
    "5 trials, correlated": (RepeatedGrounder(correlation=0.5), 5, 0.0),
    "10 trials, correlated": (RepeatedGrounder(correlation=0.5), 10, 0.0),
    "5 trials, systematic errors unknown": (RepeatedGrounder(slant=0.1), 5, 0.0),
    "5 trials, systematic errors known": (RepeatedGrounder(slant=0.1), 5, 0.1),
}


def _worlds(rule: WorldRule, options: TreeStudyOptions) -> list[tuple[TreeWorld, np.random.Generator]]:
    """The simulated worlds of a rule, each with a generator for its questions."""
    generators = [np.random.default_rng([options.bootstrap.seed, place]) for place in range(options.worlds)]
    return [(draw_world(rule, options.leaves, rng), rng) for rng in generators]


def coverage_table(options: TreeStudyOptions, how: Resampling) -> StudyTable:
    """How often the bar covers the truth, and how wide it is, by kind of world and grounder."""
    cluster = np.repeat(np.arange(options.worlds), QUESTIONS)
    rows: dict[str, list[CellValue]] = {}
    for name, (grounder, trials, systematic_error) in CASES.items():
        rows[name] = []
        for rule in BAR_RULES:
            worlds = _worlds(rule, options)
            held, width = zip(
                *(covered(w, grounder, trials, rng, systematic_error=systematic_error) for w, rng in worlds),
                strict=True,
            )
            share = bootstrap_score(100 * np.concatenate(held), cluster, resampling=how)
            rows[name] += [share, float(np.mean(width))]
    columns = [
        one
        for kind in BAR_RULES
        for one in (
            column(f"{kind}: covered", f"% of bars of {LEVEL:.0%} that hold the true chance, worlds resampled"),
            column(f"{kind}: width", "mean width of the bar", 3),
        )
    ]
    return table("Coverage of the error bar", "Grounder", columns, rows)


def spending_table(options: TreeStudyOptions, how: Resampling) -> tuple[StudyTable, dict[str, Verdict]]:
    """Squared error of the root with equal and with smart spending of the same number of trials."""
    cluster = np.repeat(np.arange(options.worlds), QUESTIONS)
    rows: dict[str, tuple[CellValue, ...]] = {}
    gains: dict[str, Verdict] = {}
    for rule in BAR_RULES:
        errors = [spent(world, RepeatedGrounder(), rng) for world, rng in _worlds(rule, options)]
        equal, smart = (10_000 * np.concatenate(some) for some in zip(*errors, strict=True))
        found = compare_paired(equal, smart, cluster, resampling=how)
        gains[rule] = Verdict.of(found, ("equal", "smart"), SQUARED_ERROR, level=how.level, unit="world")
        rows[f"{rule} worlds"] = (float(equal.mean()), float(smart.mean()), gains[rule])
    columns = (
        column("equal", "mean squared error of the root, ×10,000", 2),
        column("smart", "the same by slope² × variance", 2),
        column("gain", "equal minus smart, worlds resampled", 2),
    )
    return table("Spending the same number of trials", "Worlds", columns, rows), gains


def _coverage_sentence(grid: StudyTable) -> str:
    measured = [name for name in CASES if "systematic" not in name]
    found = [
        value for kind in BAR_RULES for name, value in grid.numbers(f"{kind}: covered").items() if name in measured
    ]
    unknown = grid.numbers("linear: covered")["5 trials, systematic errors unknown"]
    return (
        f"Bars of {LEVEL:.0%} from repeated leaves cover the truth in {number(min(found), 1)} to "
        f"{number(max(found), 1)} % of questions; where a grounder errs the same way every time and nobody knows, in "
        f"{number(unknown, 0)} %."
    )


def _spending_sentence(gains: Mapping[str, Verdict]) -> str:
    parts = [f"{kind} {value_text(one, 2)}" for kind, one in gains.items()]
    return f"Smart spending of the same trials takes this much off the squared error (×10,000): {', '.join(parts)}."
