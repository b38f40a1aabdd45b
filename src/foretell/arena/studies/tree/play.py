"""Methods at work in made-up worlds, and what they said as tables, so that studies of real results read them too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from foretell.arena.studies.tree.players import Method, Troupe
from foretell.arena.studies.tree.world import KINDS, Asked, Kind, World, WorldSettings, ask, draw_world
from foretell.arena.study import Progress, quietly
from foretell.evaluate.arrays import Floats, Ints
from foretell.forecasters.combine.rows import Examples, Rows

FITTED_ON = 256
"""Questions on which links are fitted, apart from those that are asked."""
DUE, KNOWN = np.datetime64("2000-01-01", "D"), np.datetime64("2000-12-31", "D")


@dataclass(frozen=True, kw_only=True)
class Scene:
    """How much is played, and where."""

    worlds: int = 60
    questions: int = 100
    """In each world."""
    runs: int = 5
    kinds: tuple[Kind, ...] = KINDS
    """Of the worlds, in turn."""
    settings: WorldSettings = field(default_factory=WorldSettings)
    seed: int = 0

    def stage(self, place: int) -> tuple[World, Troupe, Asked]:
        """One world with its fitted links and its questions; the same for the same seed and place."""
        rng = np.random.default_rng([self.seed, place])
        world = draw_world(replace(self.settings, kind=self.kinds[place % len(self.kinds)]), rng)
        troupe = Troupe(world, ask(world, FITTED_ON, rng).chances)
        return world, troupe, ask(world, self.questions, rng)

    @property
    def told(self) -> dict[str, object]:
        """What it takes to play it again."""
        return {
            "worlds": self.worlds,
            "questions per world": self.questions,
            "runs": self.runs,
            "kinds": list(self.kinds),
            "leaves": self.settings.leaves,
            "seed": self.seed,
        }


@dataclass(frozen=True, kw_only=True)
class Played:
    """What came of it."""

    said: Mapping[str, Floats]
    """By method, runs × questions of all worlds."""
    truth: Floats
    outcome: Floats
    world: Ints

    @property
    def tables(self) -> dict[str, Examples]:
        """As what studies read: a run is a trial, and questions of one world hang together."""
        n = len(self.outcome)
        world = np.char.add("w", self.world.astype(str))
        rows = Rows(
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
            name: Examples(rows=rows.with_trials(said), outcome=self.outcome, known_on=known, weight=weight)
            for name, said in self.said.items()
        }


def play(scene: Scene, methods: Sequence[Method], progress: Progress = quietly) -> Played:
    """Every method on every question, in every run; deterministic in the scene."""
    said: dict[str, list[Floats]] = {method.name: [] for method in methods}
    asked: list[Asked] = []
    for place in range(scene.worlds):
        _, troupe, questions = scene.stage(place)
        for method in methods:
            runs = [troupe.answer(method, questions, seed=scene.seed, place=place, run=r) for r in range(scene.runs)]
            said[method.name].append(np.stack(runs))
        asked.append(questions)
        progress(place + 1, scene.worlds)
    return Played(
        said={name: np.concatenate(parts, axis=1) for name, parts in said.items()},
        truth=np.concatenate([one.truth for one in asked]),
        outcome=np.concatenate([one.outcome for one in asked]),
        world=np.repeat(np.arange(scene.worlds), scene.questions),
    )
