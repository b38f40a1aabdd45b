"""Who works on a tree in a made-up world, and how well: all three parts are set, nothing is found out about them."""

from dataclasses import dataclass, field

import numpy as np

from foretell.arena.studies.tree.fitting import BAYES_NET, Known, fitted_tree
from foretell.arena.studies.tree.sketch import Sketch, sketch
from foretell.arena.studies.tree.world import Asked, World
from foretell.evaluate.arrays import Floats


@dataclass(frozen=True, kw_only=True)
class Chances:
    """Where luck comes from: what stays the same in every run of a question, what is new, and the synthesizer's own."""

    lasting: np.random.Generator
    passing: np.random.Generator
    other: np.random.Generator

    @classmethod
    def of(cls, seed: int, place: int, run: int, again: int = 0) -> "Chances":
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

    def say(self, chance: Floats, chances: Chances, *, factor: float | Floats = 1.0) -> Floats:
        """What it says of questions × claims, its errors larger by the factor."""
        lasting, passing = (self._drawn(chance.shape, rng) for rng in (chances.lasting, chances.passing))
        return np.clip(chance + factor * (self.bias + self.slant * lasting + self.sd * passing), 0.0, 1.0)

    def _drawn(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        shared, own = rng.standard_normal((shape[0], 1)), rng.standard_normal(shape)
        return np.sqrt(self.correlation) * shared + np.sqrt(1 - self.correlation) * own


@dataclass(frozen=True, kw_only=True)
class SimulatedSynthesizer:
    """Gives the numbers of links that fit the world best, each off by `noise` (see `Sketch.shaken`)."""

    noise: float = 0.3
    judgement: float = 0.15
    """Error of a judge (rule `vanilla`) who reads reports: the standard deviation of what is said of each claim."""
    numbers: float = 0.2
    """How far such a judge goes by the children's numbers instead."""


@dataclass(frozen=True, kw_only=True)
class Method:
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


class Troupe:
    """The sketches of one world, each made when first asked for."""

    def __init__(self, world: World, known: Known) -> None:
        self.world = world
        self._known = known
        self._sketches: dict[str, Sketch] = {}

    def sketch(self, rule: str) -> Sketch:
        """The world's tree as that rule has it."""
        if rule not in self._sketches:
            self._sketches[rule] = sketch(fitted_tree(self.world, rule, self._known))
        return self._sketches[rule]

    def answer(self, method: Method, asked: Asked, *, seed: int, place: int, run: int) -> Floats:
        """What the method says of every question, once.

        Two methods with equal grounders hear the same errors: they differ in what they make of them.
        """
        said = [self._once(method, asked, Chances.of(seed, place, run, again)) for again in range(method.repeats)]
        return np.mean(said, axis=0)

    def _once(self, method: Method, asked: Asked, chances: Chances) -> Floats:
        if method.rule == DIRECT:
            return method.grounder.say(asked.truth[:, None], chances, factor=method.grounder.harder)[:, 0]
        leaf = method.grounder.say(asked.leaf, chances)
        if method.seen < 1:
            leaf = np.where(chances.other.random(leaf.shape) < method.seen, leaf, self.world.settings.level)
        numbers = self.numbers(method.rule, method.synthesizer, asked, chances.other)
        return self.sketch(method.rule).run(leaf, numbers)

    def numbers(
        self, rule: str, how: SimulatedSynthesizer, asked: Asked, rng: np.random.Generator
    ) -> dict[str, Floats]:
        """The numbers of the rule's links as the synthesizer gives them, anew for every question."""
        made, count = self.sketch(rule), len(asked.leaf)
        if rule == "random":
            return made.drawn(count, rng)
        numbers = made.shaken(how.noise, count, rng)
        return _judged(made, numbers, asked, how, rng) if rule == "vanilla" else numbers


def _judged(
    made: Sketch, numbers: dict[str, Floats], asked: Asked, how: SimulatedSynthesizer, rng: np.random.Generator
) -> dict[str, Floats]:
    """A claim as a judge has it: mostly its true chance with an error of the judge's own, partly the weighted sum."""
    found = {name: how.numbers * value for name, value in numbers.items()}
    for number in made.numbers:
        if number.role == "intercept":
            said = asked.chances[number.node] + how.judgement * rng.standard_normal(len(asked.leaf))
            found[number.input] = found[number.input] + (1 - how.numbers) * np.clip(said, 0.0, 1.0)
    return found
