"""Study: does a tree's error bar cover the truth as often as it says, and is money well spent by slope² × variance?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from foretell.forecasters.tree.arithmetic.circuit import slopes
from foretell.forecasters.tree.arithmetic.error_bar import LEVEL, bar_ends, leaf_spread, next_trials
from foretell.forecasters.tree.grow.analyze import ROOT
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Resampling, bootstrap_score
from foretell.metrics.comparison import Comparison, compare_paired
from foretell.report.numbers import bracket, number
from foretell.report.study import CellValue, StudyResult, StudyTable
from foretell.studies.inputs import DataInputs, StudyProgress, TreeStudyOptions, ignore_progress
from foretell.studies.layout import column, table
from foretell.studies.trees.inputs import require_simulation
from foretell.studies.trees.world import LINK_KINDS, LinkKind, TreeWorld, TreeWorldSettings, draw_questions, draw_world

QUESTIONS = 25
"""Of every world."""
SD, UNEQUAL = 0.1, 0.5
"""Between trials of a leaf: the typical standard deviation, and by which power of e leaves differ in it."""
MOST_WORLDS = 40
START, MORE = 2, 3
"""Trials of every leaf at first, and for each leaf as many more as there is money for."""
NOTES = (
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


def study(inputs: DataInputs, options: TreeStudyOptions) -> StudyResult:
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
        notes=NOTES,
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
