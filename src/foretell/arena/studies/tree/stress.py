"""Noise on the leaves of made-up worlds, and what it does to the answers of every rule."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from foretell.arena.studies.tree.disturbance import DISTURBANCES, moved, spoilt
from foretell.arena.studies.tree.play import Scene
from foretell.arena.studies.tree.players import RULES, SimulatedSynthesizer
from foretell.arena.study import Progress, quietly
from foretell.evaluate.bootstrap import Resampling, bootstrap_score
from foretell.evaluate.intervals import Interval

RATIOS = (0.1, 0.25, 0.5, 0.75, 1.0)
AT = 0.25
"""The ratio that findings are about."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What noise did in one world."""

    spoilt: float
    moved: float
    accuracy: float


Effects = dict[tuple[str, str, float], list[Effect]]
"""By rule, noise and ratio, one for each world; noise "" and ratio 0 is without."""


def effects(scene: Scene, rules: Sequence[str] = RULES, progress: Progress = quietly) -> Effects:
    """What each kind and ratio of noise does to each rule, world by world; all rules see the same disturbed leaves."""
    found: Effects = {}
    for place in range(scene.worlds):
        for key, effect in _in_world(scene, place, rules):
            found.setdefault(key, []).append(effect)
        progress(place + 1, scene.worlds)
    return found


def _in_world(scene: Scene, place: int, rules: Sequence[str]) -> Iterator[tuple[tuple[str, str, float], Effect]]:
    _, troupe, asked = scene.stage(place)
    sure = SimulatedSynthesizer(noise=0.0)
    streams = {rule: np.random.default_rng([scene.seed, place, 2, i]) for i, rule in enumerate(rules)}
    numbers = {rule: troupe.numbers(rule, sure, asked, streams[rule]) for rule in rules}
    before = {rule: troupe.sketch(rule).run(asked.leaf, numbers[rule]) for rule in rules}
    for rule in rules:
        right = float(np.mean((before[rule] > 0.5) == asked.outcome))
        yield (rule, "", 0.0), Effect(spoilt=0.0, moved=0.0, accuracy=right)
    for kind, (noise, disturb) in enumerate(DISTURBANCES.items()):
        for step, ratio in enumerate(RATIOS):
            leaf = disturb(asked.leaf, ratio, np.random.default_rng([scene.seed, place, 3, kind, step]))
            for rule in rules:
                after = troupe.sketch(rule).run(leaf, numbers[rule])
                right = float(np.mean((after > 0.5) == asked.outcome))
                effect = Effect(spoilt=spoilt(before[rule], after), moved=moved(before[rule], after), accuracy=right)
                yield (rule, noise, ratio), effect


def mean_of(found: Sequence[Effect], what: str, how: Resampling) -> Interval:
    """Mean over worlds in per cent, worlds resampled; one in which a rule always says the same has nothing to spoil."""
    values = np.array([100 * getattr(one, what) for one in found])
    return bootstrap_score(values[np.isfinite(values)], resampling=how)
