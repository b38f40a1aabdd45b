"""The synthesis rules as data: what a model is asked for, and the link that is made of its answer.

For every rule but `vanilla` the model gives parameters and we compute; a number it may have in mind is never used.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from random import Random
from typing import Any, cast

from foretell.forecasters.tree.growing.asking import CHANCE, NUMBER, TEXT, shape
from foretell.forecasters.tree.links import (
    Assumption,
    Average,
    Formula,
    InhibitedNoisyOr,
    Judged,
    Linear,
    Link,
    NoisyOr,
)
from foretell.questions.problems import InputError

Children = Sequence[str]
Numbers = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One way to put children together."""

    name: str
    wording: tuple[str, ...]
    """Texts that explain it to the synthesizer."""
    hint: str
    """The text that tells the analyzer what kind of children suit it."""
    fields: Callable[[Children], dict[str, Any]]
    """What the answer holds besides report and key factor, as a schema."""
    read: Callable[[Numbers], Link]

    def schema(self, children: Children) -> dict[str, Any]:
        """The whole answer."""
        return shape({"report": TEXT, "key_factor": TEXT, **self.fields(children)})


@dataclass(frozen=True, kw_only=True)
class Unasked:
    """A rule that needs no model."""

    name: str
    hint: str
    make: Callable[[Children, Random], Link]


def _each(children: Children, kind: Mapping[str, Any]) -> dict[str, Any]:
    return shape({child: kind for child in children})


def _some(children: Children) -> dict[str, Any]:
    """Numbers for any of the children; whether each has one is seen when the link is checked."""
    return shape({child: CHANCE for child in children}, optional=tuple(children))


def _numbers(given: Numbers) -> dict[str, float]:
    return {child: float(number) for child, number in given.items()}


def _formula(found: Numbers) -> Formula:
    given = cast("Numbers | None", found.get("assumption"))
    assumption = Assumption(text=str(given["text"]).strip()[:1000], p=float(given["p"])) if given else None
    # Without PA in the formula the assumption says nothing: it is left away, not argued about.
    used = "PA" in str(found["formula"]).replace("(", " ").replace(")", " ").split()
    return Formula(expression=str(found["formula"]).strip(), assumption=assumption if used else None)


def _formula_fields(children: Children) -> dict[str, Any]:
    told = {"anyOf": [shape({"text": TEXT, "p": CHANCE}), {"type": "null"}]}
    return {"formula": TEXT, "assumption": told}


def random_weights(children: Children, rng: Random) -> Linear:
    """Weights that are equally likely to be any that sum to one (Dirichlet with parameter 1), and no intercept.

    >>> link = random_weights(("P1", "P2", "P3"), Random(1))
    >>> round(sum(link.weights.values()), 12), link.intercept
    (1.0, 0.0)
    """
    drawn = [-log(1.0 - rng.random()) for _ in children]
    return Linear(weights={child: one / sum(drawn) for child, one in zip(children, drawn, strict=True)})


LINEAR = Rule(
    name="linear",
    wording=("synthesize_role", "synthesize_linear"),
    hint="hint_linear",
    fields=lambda children: {"intercept": NUMBER, "weights": _each(children, NUMBER)},
    read=lambda found: Linear(weights=_numbers(found["weights"]), intercept=float(found["intercept"])),
)
LOGIC = Rule(
    name="logic",
    wording=("synthesize_role", "synthesize_logic"),
    hint="hint_logic",
    fields=_formula_fields,
    read=_formula,
)
NOISY_OR = Rule(
    name="noisy-or",
    wording=("synthesize_role", "synthesize_noisy_or"),
    hint="hint_noisy_or",
    fields=lambda children: {"leak": CHANCE, "strengths": _each(children, CHANCE)},
    read=lambda found: NoisyOr(strengths=_numbers(found["strengths"]), leak=float(found["leak"])),
)
INHIBITED = Rule(
    name="inhibited-noisy-or",
    wording=("synthesize_role", "synthesize_inhibited"),
    hint="hint_inhibited",
    fields=lambda children: {"leak": CHANCE, "strengths": _some(children), "inhibitors": _some(children)},
    read=lambda found: InhibitedNoisyOr(
        strengths=_numbers(found["strengths"]),
        inhibitors=_numbers(found["inhibitors"]),
        leak=float(found["leak"]),
    ),
)
VANILLA = Rule(
    name="vanilla",
    wording=("synthesize_judged",),
    hint="hint_judged",
    fields=lambda children: {"p": CHANCE},
    read=lambda found: Judged(p=float(found["p"])),
)
AVERAGE = Unasked(name="average", hint="hint_linear", make=lambda children, rng: Average())
RANDOM = Unasked(name="random", hint="hint_linear", make=random_weights)

RULES: dict[str, Rule | Unasked] = {
    rule.name: rule for rule in (LINEAR, LOGIC, VANILLA, AVERAGE, RANDOM, NOISY_OR, INHIBITED)
}


def rule_named(name: str) -> Rule | Unasked:
    """A rule by its name."""
    if name not in RULES:
        raise InputError(f"there is no synthesis rule {name!r}", hint=f"rules are {', '.join(RULES)}")
    return RULES[name]
