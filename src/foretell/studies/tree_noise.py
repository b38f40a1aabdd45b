"""Study: what noise in the leaves of trees does to the answer, coverage of error bars from trials, and links."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import ClassVar, Literal

import numpy as np

from foretell.forecasters.tree.arithmetic.circuit import slopes
from foretell.forecasters.tree.arithmetic.error_bar import LEVEL, bar_ends, leaf_spread, next_trials
from foretell.forecasters.tree.proposition import ROOT
from foretell.frozen import frozen
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval, Resampling, bootstrap_score
from foretell.metrics.comparison import compare_paired
from foretell.metrics.metric import mean_metric
from foretell.metrics.scores import right_side
from foretell.number_text import number, percent, plural
from foretell.questions.errors import InputError
from foretell.report.numbers import CellValue, value_text
from foretell.report.study import StudyChart, StudyTable, column, table, with_cost
from foretell.report.study_result import StudyResult
from foretell.request import setting
from foretell.scoring.verdict import Verdict
from foretell.studies.inputs import (
    BUDGET,
    StudyData,
    StudyProgress,
    StudyServices,
    TreeStudyOptions,
    ignore_progress,
)
from foretell.studies.leaf_noise import AT, DISTURBANCES, RATIO_COLUMNS, RATIOS, noise_curves, variance_lost
from foretell.studies.noisy_trees import AskedAgain, judge_again, noise_in_trees
from foretell.studies.sections import SECTION, run_sections
from foretell.studies.tree_links import links_section
from foretell.studies.tree_world import (
    WORLD_RULES,
    SimulatedQuestions,
    Simulation,
    TreeWorld,
    WorldRule,
    draw_questions,
    draw_world,
)

# Noise in simulated worlds.

WITHOUT = ("", 0.0)
NOISE_NOTES = (
    "Every rule is tried in worlds whose claims really follow that rule; all rules get the same trees and the same "
    "leaves, disturbed in the same way.",
    "Spoilt is 1 − r² between the answers without and with noise, over the questions of a world: the part of the "
    "information that no recalibration can bring back. Of all rules that are linear in each leaf, a weighted sum of "
    "independent leaves is spoilt least: by the leaves' own 1 − ρ², whatever the weights.",
    "Accuracy also depends on how informative a rule is without noise: compare its decrease, not its level.",
)


@frozen
class NoiseEffect:
    """The effect of noise in one world."""

    spoilt: float
    accuracy: float


NoiseEffects = dict[tuple[WorldRule, str, float], list[NoiseEffect]]
"""Effects by rule, kind of noise and ratio, one for each world; `WITHOUT` means no noise."""


def noise_effects(simulation: Simulation, progress: StudyProgress = ignore_progress) -> NoiseEffects:
    """Return the effect of each kind and ratio of noise on each rule, world by world."""
    effects: NoiseEffects = {}
    for place in range(simulation.worlds):
        for rule in WORLD_RULES:
            world, questions = simulation.world(rule, place)
            effects.setdefault((rule, *WITHOUT), []).append(_effect(questions, questions.truth))
            for kind, (noise, disturb) in enumerate(DISTURBANCES.items()):
                for step, ratio in enumerate(RATIOS):
                    leaf = disturb(
                        questions.leaf, ratio, np.random.default_rng([simulation.seed, place, 2, kind, step])
                    )
                    effects.setdefault((rule, noise, ratio), []).append(_effect(questions, world.chances(leaf)[ROOT]))
        progress(place + 1, simulation.worlds)
    return effects


def _effect(questions: SimulatedQuestions, answer: Floats) -> NoiseEffect:
    right = float(np.mean(right_side(answer, questions.outcome)))
    return NoiseEffect(spoilt=variance_lost(questions.truth, answer), accuracy=right)


class TreeNoiseOptions(TreeStudyOptions):
    """Trees, or the size of the simulated worlds."""

    ONLY_WITH: ClassVar[Mapping[str, str]] = {"model": "budget"}
    section: Literal["noise", "error-bars", "links"] | None = SECTION
    model: str | None = setting(
        None, "Model that judges claims again for each noise; without it, no noise reaches judged claims.",
        metavar="MODEL",
    )  # fmt: skip
    budget: float | None = BUDGET


async def study(inputs: StudyServices, options: TreeNoiseOptions) -> StudyResult:
    """What does noise in the leaves do to a tree's answer?

    noise: every rule under three kinds of noise, in simulated worlds or in your own trees; for trees of runs whose
    questions are decided, the accuracy too. error-bars: whether a tree's error bars cover the truth as they claim, and
    whether extra trials help more on the leaves that the answer depends on most; simulated. links: the weights and
    other numbers that models stated in your own trees.

      foretell study tree-noise

      foretell study tree-noise RUN1 RUN2 --section noise --model openai:NAME
    """
    data = inputs.data(options)
    asked, cost = AskedAgain(), None
    if options.model is not None:
        asked, cost = await judge_again(inputs, data, options.model, options.budget)
    sections = {
        "noise": partial(noise_section, data, options, asked),
        "error-bars": partial(error_bars_section, data, options),
        "links": partial(links_section, data),
    }
    result = run_sections("tree-noise", "Noise in the leaves of trees", sections, options.section)
    return result if cost is None else with_cost(result, cost, model=options.model)


def noise_section(data: StudyData, options: TreeNoiseOptions, asked: AskedAgain) -> StudyResult:
    """Disturb the leaves of the given trees, or of trees in simulated worlds."""
    if data.trees:
        return noise_in_trees(data, asked)
    simulation = Simulation(worlds=options.worlds, leaves=options.leaves, seed=data.resampling.seed)
    effects, how = noise_effects(simulation, data.progress), data.resampling
    return StudyResult(
        name="tree-noise",
        title="What noise in the leaves does to the answer",
        sentences=(_sentence(effects, how),),
        tables=(
            *(_effects_table(f"Spoilt by {noise} noise, %", effects, "spoilt", noise, how) for noise in DISTURBANCES),
            _gaps_table(effects, how),
            *(
                _effects_table(f"Accuracy under {noise} noise, %", effects, "accuracy", noise, how)
                for noise in DISTURBANCES
            ),
        ),
        charts=tuple(_charts(effects, how)),
        notes=NOISE_NOTES,
        settings={
            "worlds": simulation.worlds,
            "questions per world": simulation.questions,
            "leaves": simulation.leaves,
            "seed": simulation.seed,
        },
    )


def _mean(effects: Sequence[NoiseEffect], what: str, how: Resampling) -> Interval:
    """Return the mean over worlds in per cent, with worlds resampled.

    Worlds in which a rule always says the same are left out, because there is no variance to lose.
    """
    values = np.array([100 * getattr(effect, what) for effect in effects])
    return bootstrap_score(values[np.isfinite(values)], resampling=how)


def _effects_table(title: str, effects: NoiseEffects, what: str, noise: str, how: Resampling) -> StudyTable:
    steps = [WITHOUT, *((noise, ratio) for ratio in RATIOS)]
    rows = {rule: [_mean(effects[rule, *step], what, how) for step in steps] for rule in WORLD_RULES}
    return table(title, "Rule", (column("without"), *RATIO_COLUMNS), rows, styles={"linear": "reference"})


SPOILT, SQUARED_ERROR = (
    mean_metric(name, lambda rows: rows.p, "low", meaning=name) for name in ("% of answers spoilt", "squared error")
)


def _logic_minus_linear(effects: NoiseEffects, noise: str, ratio: float, how: Resampling) -> Verdict:
    logic, linear = (
        np.array([100 * effect.spoilt for effect in effects[rule, noise, ratio]]) for rule in ("logic", "linear")
    )
    compared = compare_paired(logic, linear, resampling=how)
    return Verdict.of(compared, ("logic", "linear"), SPOILT, level=how.level, unit="world")


def _gaps_table(effects: NoiseEffects, how: Resampling) -> StudyTable:
    rows = {noise: [_logic_minus_linear(effects, noise, ratio, how) for ratio in RATIOS] for noise in DISTURBANCES}
    caption = "Positive: the logic rule is spoilt more. Worlds resampled."
    return table("Logic minus linear, % spoilt", "Noise", RATIO_COLUMNS, rows, caption=caption)


def _charts(effects: NoiseEffects, how: Resampling) -> Iterator[StudyChart]:
    """Yield for every kind of noise a chart of what is spoilt and one of the accuracy."""
    for what, label in (("spoilt", "% spoilt by {} noise"), ("accuracy", "Accuracy in % under {} noise")):
        for noise in DISTURBANCES:
            steps = [(noise, ratio) for ratio in RATIOS]
            steps = [WITHOUT, *steps] if what == "accuracy" else steps
            lines = {rule: [_mean(effects[rule, *step], what, how) for step in steps] for rule in WORLD_RULES}
            n, named = len(effects["linear", *WITHOUT]), label.format(noise)
            chart = noise_curves(lines, [ratio for _, ratio in steps], n, named)
            yield StudyChart(name=noise if what == "spoilt" else f"accuracy-{noise}", title=named, chart=chart)


def _sentence(effects: NoiseEffects, how: Resampling) -> str:
    gaps = {noise: _logic_minus_linear(effects, noise, AT, how) for noise in DISTURBANCES}
    more = sum(gap.says == "worse" for gap in gaps.values())
    parts = [f"{noise} {value_text(gap, 1)}" for noise, gap in gaps.items()]
    return (
        f"At a noise ratio of {AT:g} the logic rule is spoilt more than the linear one, by more than chance, by {more} "
        f"of {plural(len(DISTURBANCES), 'kind')} of noise (points of % spoilt): {'; '.join(parts)}."
    )


# Coverage of the error bars of trees, and allocation of further trials.

QUESTIONS = 25
"""Number of questions in every world."""
SD, UNEQUAL = 0.1, 0.5
"""Typical standard deviation between trials of a leaf, and how much leaves differ in it on the log scale."""
BAR_RULES: tuple[WorldRule, ...] = ("linear", "logic")
START, MORE = 2, 3
"""Number of trials of every leaf at first, and how many more per leaf the budget allows."""
UNCERTAINTY_NOTES = (
    "A grounder answers probability + systematic error + random error, clipped to [0, 1]. Random errors differ between "
    "the trials of a leaf and may be correlated between leaves; their size differs between leaves. Systematic errors "
    "are the same in every trial.",
    "Repetition does not reveal a systematic error, so bars that ignore it cover too rarely. Its size must be known "
    "from resolved claims, as in the last row.",
    "Errors near 0 and 1 are one-sided because of the clipping, so even the mean of many trials is biased there. This "
    "lowers the coverage of narrow bars from many trials.",
    "Smart spending gives each further trial to the leaf with the largest slope² × variance / (n·(n + 1)), estimated "
    "from its trials so far; equal spending gives every leaf the same number of trials.",
)


@frozen
class RepeatedGrounder:
    """A grounder that is asked several times."""

    sd: float = SD
    correlation: float = 0.0
    """Correlation between the random errors of two leaves in the same trial."""
    bias_sd: float = 0.0
    """Standard deviation of the systematic error."""

    def ask(self, chance: Floats, trials: int, rng: np.random.Generator) -> Floats:
        """Return the answers, leaves × trials."""
        size = len(chance)
        own = np.exp(UNEQUAL * rng.standard_normal((size, 1)))
        own *= self.sd / np.sqrt(np.mean(own**2))
        shared, apart = rng.standard_normal((1, trials)), rng.standard_normal((size, trials))
        random_error = np.sqrt(self.correlation) * shared + np.sqrt(1 - self.correlation) * apart
        systematic_error = self.bias_sd * rng.standard_normal((size, 1))
        return np.clip(chance[:, None] + systematic_error + own * random_error, 0.0, 1.0)


def root_and_slopes(world: TreeWorld, numbers: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    """Return the root's probability at these leaf values, and its slope with respect to each leaf."""
    circuit = world.circuit
    values = circuit.run(numbers)
    place = circuit.claims[ROOT]
    slope = slopes(circuit.ops, values, place)
    return values[place], {id: slope[circuit.input_places[id]] if id in circuit.input_places else 0.0 for id in numbers}


def _means(trials: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {id: fmean(values) for id, values in trials.items()}


def covered(
    world: TreeWorld,
    grounder: RepeatedGrounder,
    trials: int,
    rng: np.random.Generator,
    *,
    systematic_error: float = 0.0,
) -> tuple[Floats, Floats]:
    """Return whether the error bar covers the true probability, and its width, for several questions of a world."""
    questions = draw_questions(world, QUESTIONS, rng)
    bars: list[tuple[bool, float]] = []
    for leaf, truth in zip(questions.leaf, questions.truth, strict=True):
        answers = dict(zip(world.leaves, grounder.ask(leaf, trials, rng).tolist(), strict=True))
        p, slope = root_and_slopes(world, _means(answers))
        spread = leaf_spread(slope, answers, systematic_error=systematic_error)
        low, high = bar_ends(p, float(np.sqrt(spread.variance)), spread.freedom, LEVEL)
        bars.append((bool(low - 1e-9 <= truth <= high + 1e-9), high - low))
    covers, width = np.array(bars).T
    return covers, width


def spent(world: TreeWorld, grounder: RepeatedGrounder, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the squared errors of the root with equal and with smart spending of the same number of trials."""
    questions = draw_questions(world, QUESTIONS, rng)
    errors: list[tuple[float, float]] = []
    for leaf, truth in zip(questions.leaf, questions.truth, strict=True):
        size = len(world.leaves)
        drawn = dict(zip(world.leaves, grounder.ask(leaf, START + MORE * size, rng).tolist(), strict=True))
        equal = {id: values[: START + MORE] for id, values in drawn.items()}
        smart = {id: values[:START] for id, values in drawn.items()}
        means = _means(smart)
        for _ in range(MORE * size):
            _, slope = root_and_slopes(world, means)
            id = max(next_trials(slope, smart, 1).items(), key=lambda item: item[1])[0]
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
        title="Coverage of error bars of trees, and the gain from smart spending",
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
    "5 trials, systematic errors unknown": (RepeatedGrounder(bias_sd=0.1), 5, 0.0),
    "5 trials, systematic errors known": (RepeatedGrounder(bias_sd=0.1), 5, 0.1),
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
            covers, width = zip(
                *(covered(w, grounder, trials, rng, systematic_error=systematic_error) for w, rng in worlds),
                strict=True,
            )
            share = bootstrap_score(100 * np.concatenate(covers), cluster, resampling=how)
            rows[name] += [share, float(np.mean(width))]
    columns = [
        heading
        for kind in BAR_RULES
        for heading in (
            column(
                f"{kind}: covered", f"% of bars of {percent(LEVEL)} that contain the true probability, worlds resampled"
            ),
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
        comparison = compare_paired(equal, smart, cluster, resampling=how)
        gains[rule] = Verdict.of(comparison, ("equal", "smart"), SQUARED_ERROR, level=how.level, unit="world")
        rows[f"{rule} worlds"] = (float(equal.mean()), float(smart.mean()), gains[rule])
    columns = (
        column("equal", "mean squared error of the root, ×10,000", 2),
        column("smart", "the same by slope² × variance", 2),
        column("gain", "equal minus smart, worlds resampled", 2),
    )
    return table("Spending the same number of trials", "Worlds", columns, rows), gains


def _coverage_sentence(grid: StudyTable) -> str:
    measured = [name for name in CASES if "systematic" not in name]
    values = [
        value for kind in BAR_RULES for name, value in grid.numbers(f"{kind}: covered").items() if name in measured
    ]
    unknown = grid.numbers("linear: covered")["5 trials, systematic errors unknown"]
    return (
        f"Bars of {percent(LEVEL)} from repeated leaves cover the truth in {number(min(values), 1)} to "
        f"{number(max(values), 1)} % of questions; with an unknown systematic error of the grounder, in "
        f"{number(unknown, 0)} %."
    )


def _spending_sentence(gains: Mapping[str, Verdict]) -> str:
    parts = [f"{kind} {value_text(gain, 2)}" for kind, gain in gains.items()]
    return f"Smart spending of the same number of trials reduces the squared error (×10,000) by: {', '.join(parts)}."
