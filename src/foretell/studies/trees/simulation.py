"""Simulated analyzers, grounders and synthesizers at work on the trees of simulated worlds.

How good they are is set: a simulation shows how errors travel through a tree, not which real model makes them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from foretell.forecasters.combine.rows import Examples, TrialRows
from foretell.metrics.arrays import Floats, Ints
from foretell.studies.inputs import StudyProgress, ignore_progress
from foretell.studies.trees.world import (
    BAYES_NET,
    LINK_KINDS,
    LinkKind,
    ParametricTree,
    SimulatedQuestions,
    TreeWorld,
    TreeWorldSettings,
    TrueChances,
    draw_questions,
    draw_world,
    fitted_tree,
    parametric_tree,
)


@dataclass(frozen=True, kw_only=True)
class NoiseStreams:
    """Random number streams: what stays the same in every run of a question, what is new, and the synthesizer's own."""

    lasting: np.random.Generator
    passing: np.random.Generator
    other: np.random.Generator

    @classmethod
    def of(cls, seed: int, place: int, run: int, again: int = 0) -> "NoiseStreams":
        """Of one run in one world, and of one of several answers in it."""
        return cls(
            lasting=np.random.default_rng([seed, place, 0]),
            passing=np.random.default_rng([seed, place, 1, run, again]),
            other=np.random.default_rng([seed, place, 2, run, again]),
        )


RULES = ("linear", BAYES_NET, "vanilla", "logic", "noisy-or", "average", "random")
DIRECT = "direct"


@dataclass(frozen=True, kw_only=True)
class SimulatedGrounder:
    """Says a chance that is off: p + bias + slant·s + sd·z, held within [0, 1].

    s is the same whenever it is asked about the same claim, z is new each time. Both are correlated between the claims
    of one question as given.
    """

    bias: float = 0.03
    """The same for all claims."""
    slant: float = 0.1
    """Standard deviation of what it gets wrong about a claim every time."""
    sd: float = 0.1
    """Standard deviation between runs."""
    correlation: float = 0.0
    harder: float = 1.5
    """How much larger all errors are where a whole claim is judged in one go: the paper's hypothesis, set here."""

    def __post_init__(self) -> None:
        if min(self.sd, self.slant, self.harder) < 0 or not 0 <= self.correlation <= 1:
            raise ValueError("a grounder needs sd, slant and harder ≥ 0 and a correlation within [0, 1]")

    def estimate(self, chance: Floats, chances: NoiseStreams, *, factor: float | Floats = 1.0) -> Floats:
        """What it says of questions × claims, its errors larger by the factor."""
        lasting, passing = (self._drawn(chance.shape, rng) for rng in (chances.lasting, chances.passing))
        return np.clip(chance + factor * (self.bias + self.slant * lasting + self.sd * passing), 0.0, 1.0)

    def _drawn(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        shared, own = rng.standard_normal((shape[0], 1)), rng.standard_normal(shape)
        return np.sqrt(self.correlation) * shared + np.sqrt(1 - self.correlation) * own


@dataclass(frozen=True, kw_only=True)
class SimulatedSynthesizer:
    """Gives the numbers of links that fit the world best, each off by `noise` (see `ParametricTree.shaken`)."""

    noise: float = 0.3
    judgement: float = 0.15
    """Error of a judge (rule `vanilla`) who reads reports: the standard deviation of what is said of each claim."""
    numbers: float = 0.2
    """How far such a judge goes by the children's numbers instead."""


@dataclass(frozen=True, kw_only=True)
class SimulatedMethod:
    """One way to answer a question."""

    name: str
    rule: str = "linear"
    """`direct` has the grounder judge the root itself."""
    seen: float = 1.0
    """Share of the leaves that the analyzer thought of; for the others their mean chance stands in."""
    grounder: SimulatedGrounder = field(default_factory=SimulatedGrounder)
    synthesizer: SimulatedSynthesizer = field(default_factory=SimulatedSynthesizer)
    repeats: int = 1
    """Answers that are averaged into one."""

    def __post_init__(self) -> None:
        if self.rule not in (*RULES, DIRECT):
            raise ValueError(f"there is no rule {self.rule!r}; rules are {', '.join((*RULES, DIRECT))}")


class WorldSolver:
    """Answers the questions of one world by any method; the fitted links are computed when first needed."""

    def __init__(self, world: TreeWorld, known: TrueChances) -> None:
        self.world = world
        self._known = known
        self._sketches: dict[str, ParametricTree] = {}

    def sketch(self, rule: str) -> ParametricTree:
        """The world's tree as that rule has it."""
        if rule not in self._sketches:
            self._sketches[rule] = parametric_tree(fitted_tree(self.world, rule, self._known))
        return self._sketches[rule]

    def answer(self, method: SimulatedMethod, asked: SimulatedQuestions, *, seed: int, place: int, run: int) -> Floats:
        """What the method says of every question, once.

        Two methods with equal grounders hear the same errors: they differ in what they make of them.
        """
        said = [self._once(method, asked, NoiseStreams.of(seed, place, run, again)) for again in range(method.repeats)]
        return np.mean(said, axis=0)

    def _once(self, method: SimulatedMethod, asked: SimulatedQuestions, chances: NoiseStreams) -> Floats:
        if method.rule == DIRECT:
            return method.grounder.estimate(asked.truth[:, None], chances, factor=method.grounder.harder)[:, 0]
        leaf = method.grounder.estimate(asked.leaf, chances)
        if method.seen < 1:
            leaf = np.where(chances.other.random(leaf.shape) < method.seen, leaf, self.world.settings.level)
        numbers = self.numbers(method.rule, method.synthesizer, asked, chances.other)
        return self.sketch(method.rule).run(leaf, numbers)

    def numbers(
        self, rule: str, how: SimulatedSynthesizer, asked: SimulatedQuestions, rng: np.random.Generator
    ) -> dict[str, Floats]:
        """The numbers of the rule's links as the synthesizer gives them, anew for every question."""
        made, count = self.sketch(rule), len(asked.leaf)
        if rule == "random":
            return made.drawn(count, rng)
        numbers = made.shaken(how.noise, count, rng)
        return _judge_claims(made, numbers, asked, how, rng) if rule == "vanilla" else numbers


def _judge_claims(
    made: ParametricTree,
    numbers: dict[str, Floats],
    asked: SimulatedQuestions,
    how: SimulatedSynthesizer,
    rng: np.random.Generator,
) -> dict[str, Floats]:
    """A claim as a judge has it: mostly its true chance with an error of the judge's own, partly the weighted sum."""
    found = {name: how.numbers * value for name, value in numbers.items()}
    for number in made.numbers:
        if number.role == "intercept":
            said = asked.chances[number.node] + how.judgement * rng.standard_normal(len(asked.leaf))
            found[number.input] = found[number.input] + (1 - how.numbers) * np.clip(said, 0.0, 1.0)
    return found


REPEATS = 10


def default_methods(grounder: SimulatedGrounder | None = None) -> list[SimulatedMethod]:
    """The grounder alone, the same asked ten times, and trees under every rule, all with the same grounder."""
    alone = SimulatedMethod(name="grounder alone", rule=DIRECT, grounder=grounder or SimulatedGrounder())
    trees = [replace(alone, name=f"tree, {rule}", rule=rule) for rule in RULES]
    return [alone, replace(alone, name=f"mean of {REPEATS}", repeats=REPEATS), *trees]


FITTED_ON = 256
"""Questions on which links are fitted, apart from those that are asked."""
DUE, KNOWN = np.datetime64("2000-01-01", "D"), np.datetime64("2000-12-31", "D")


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """How many worlds, questions and runs are simulated."""

    worlds: int = 60
    questions: int = 100
    """In each world."""
    runs: int = 5
    kinds: tuple[LinkKind, ...] = LINK_KINDS
    """Of the worlds, in turn."""
    settings: TreeWorldSettings = field(default_factory=TreeWorldSettings)
    seed: int = 0

    def stage(self, place: int) -> tuple[TreeWorld, WorldSolver, SimulatedQuestions]:
        """One world with its fitted links and its questions; the same for the same seed and place."""
        rng = np.random.default_rng([self.seed, place])
        world = draw_world(replace(self.settings, kind=self.kinds[place % len(self.kinds)]), rng)
        solver = WorldSolver(world, draw_questions(world, FITTED_ON, rng).chances)
        return world, solver, draw_questions(world, self.questions, rng)

    @property
    def description(self) -> dict[str, object]:
        """What it takes to run it again."""
        return {
            "worlds": self.worlds,
            "questions per world": self.questions,
            "runs": self.runs,
            "kinds": list(self.kinds),
            "leaves": self.settings.leaves,
            "seed": self.seed,
        }


@dataclass(frozen=True, kw_only=True)
class SimulationResult:
    """The forecasts of all methods beside the truth."""

    forecasts: Mapping[str, Floats]
    """By method, runs × questions of all worlds."""
    truth: Floats
    outcome: Floats
    world: Ints

    @property
    def tables(self) -> dict[str, Examples]:
        """As what studies read: a run is a trial, and questions of one world hang together."""
        n = len(self.outcome)
        world = np.char.add("w", self.world.astype(str))
        rows = TrialRows(
            trials=np.full((1, n), np.nan),
            question=np.char.add(np.char.add(world, "-"), np.arange(n).astype(str)),
            due=np.full(n, DUE),
            target=np.full(n, "yes"),
            source=np.full(n, "made-up"),
            subtype=np.full(n, ""),
            kind=np.full(n, "dataset"),
            horizon=np.full(n, np.nan),
            price=np.full(n, np.nan),
            prior=np.full(n, np.nan),
            cluster=world,
        )
        known, weight = np.full(n, KNOWN), np.ones(n)
        return {
            name: Examples(rows=rows.with_trials(p), outcome=self.outcome, known_on=known, weight=weight)
            for name, p in self.forecasts.items()
        }


def simulate(
    simulation: Simulation, methods: Sequence[SimulatedMethod], progress: StudyProgress = ignore_progress
) -> SimulationResult:
    """Every method on every question, in every run; deterministic in the simulation."""
    forecasts: dict[str, list[Floats]] = {method.name: [] for method in methods}
    questions_asked: list[SimulatedQuestions] = []
    for place in range(simulation.worlds):
        _, solver, questions = simulation.stage(place)
        for method in methods:
            runs = [
                solver.answer(method, questions, seed=simulation.seed, place=place, run=r)
                for r in range(simulation.runs)
            ]
            forecasts[method.name].append(np.stack(runs))
        questions_asked.append(questions)
        progress(place + 1, simulation.worlds)
    return SimulationResult(
        forecasts={name: np.concatenate(parts, axis=1) for name, parts in forecasts.items()},
        truth=np.concatenate([one.truth for one in questions_asked]),
        outcome=np.concatenate([one.outcome for one in questions_asked]),
        world=np.repeat(np.arange(simulation.worlds), simulation.questions),
    )
