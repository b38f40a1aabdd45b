"""The synthesis rules: what a model is asked about a claim's children, and the link that is made of its answer.

For every rule but `vanilla` the model gives parameters and we compute; a number it may have in mind is never used.

Rules are plug-ins of the kind "synthesis_rules" (see `foretell.plugins`): a name leads to a `SynthesisRule` or a
`ModelFreeRule`. A package that adds one writes, in a single file, the rule and, if no built-in link suits it, a class
derived from `foretell.forecasters.tree.links.Link` with its fields, check, arithmetic and words. The arithmetic may be
whatever the gates of a tree can express: a weighted sum of the children, or AND, OR and NOT over children, independent
events with a fixed chance and assumptions. Exact values, what-if, the web page, tree files and exports then work with
it as they are. Arithmetic of any other form (a logistic function, say) is not possible: only operations that Python and
JavaScript carry out to the same last bit keep the numbers of a page and a file equal.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from random import Random
from typing import Any, cast

from foretell.forecasters.tree.formula import ASSUMPTION, FormulaError, mentions
from foretell.forecasters.tree.grow.prompting import CHANCE, TEXT, PromptText, object_schema
from foretell.forecasters.tree.links import (
    AverageLink,
    FormulaAssumption,
    FormulaLink,
    InhibitedNoisyOrLink,
    JudgedLink,
    LinearLink,
    Link,
    NoisyOrLink,
    ProductLogicLink,
)
from foretell.plugins import load

Children = Sequence[str]
Answer = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class SynthesisRule:
    """One way to put children together that asks a model for parameters."""

    name: str
    link: type[Link]
    """The kind of link it makes."""
    prompts: tuple[PromptText, ...]
    """Texts that explain it to the synthesizer; blanks are `$children` and `$limit`."""
    hint: PromptText
    """The text that tells the analyzer what kind of children suit it."""
    fields: Callable[[Children], dict[str, Any]]
    """JSON schema of what the answer holds besides report and key factor, by field."""
    read: Callable[[Answer], Link]
    """The link in an answer that fits the schema."""

    def schema(self, children: Children) -> dict[str, Any]:
        """The schema of the whole answer."""
        return object_schema({"report": TEXT, "key_factor": TEXT, **self.fields(children)})


@dataclass(frozen=True, kw_only=True)
class ModelFreeRule:
    """A rule that needs no model."""

    name: str
    link: type[Link]
    """The kind of link it makes."""
    make: Callable[[Children, Random], Link]
    hint: PromptText = "hint_linear"
    """The text that tells the analyzer what kind of children suit it."""


Rule = SynthesisRule | ModelFreeRule


def rule_named(name: str) -> Rule:
    """A rule by its name; an unknown name is an `InputError` that says which there are."""
    return load("synthesis_rules", name)


def _each(children: Children, kind: Mapping[str, Any]) -> dict[str, Any]:
    return object_schema({child: kind for child in children})


def _some(children: Children) -> dict[str, Any]:
    """Numbers for any of the children; whether each has one is seen when the link is checked."""
    return object_schema({child: CHANCE for child in children}, optional=tuple(children))


def _numbers(given: Answer) -> dict[str, float]:
    return {child: float(number) for child, number in given.items()}


def _formula_fields(_: Children) -> dict[str, Any]:
    assumption = {"anyOf": [object_schema({"text": TEXT, "p": CHANCE}), {"type": "null"}]}
    return {"formula": TEXT, "assumption": assumption}


def _formula(answer: Answer, kind: type[FormulaLink] = FormulaLink) -> FormulaLink:
    given = cast("Answer | None", answer.get("assumption"))
    assumption = FormulaAssumption(text=str(given["text"]).strip()[:1000], p=float(given["p"])) if given else None
    expression = str(answer["formula"]).strip()
    try:
        used = ASSUMPTION in {name for name, _ in mentions(expression)}
    except FormulaError:
        used = True  # What cannot be read is objected to for that alone.
    # Without PA in the formula the assumption has no effect: it is left out, not objected to.
    return kind(expression=expression, assumption=assumption if used else None)


def random_weights(children: Children, rng: Random) -> LinearLink:
    """Weights that are equally likely to be any that sum to one (Dirichlet with parameter 1), and no intercept.

    >>> link = random_weights(("P1", "P2", "P3"), Random(1))
    >>> round(sum(link.weights.values()), 12), link.intercept
    (1.0, 0.0)
    """
    drawn = [-log(1.0 - rng.random()) for _ in children]
    return LinearLink(weights={child: one / sum(drawn) for child, one in zip(children, drawn, strict=True)})


EFFECT = object_schema({"effect": {"type": "string", "enum": ["helps", "hinders"]}, "weight": CHANCE})
"""How one child bears on the claim in a linear rule."""


def _effects(answer: Answer) -> LinearLink:
    """Weights by effect: obstacles are stated as what they are, and the intercept follows from them."""
    given = cast("Mapping[str, Answer]", answer["effects"])
    helps, hinders = (
        {child: float(one["weight"]) for child, one in given.items() if one["effect"] == effect}
        for effect in ("helps", "hinders")
    )
    link = LinearLink.from_effects(float(answer["base"]), helps, hinders)
    return LinearLink(intercept=link.intercept, weights={child: link.weights[child] for child in given})


LINEAR = SynthesisRule(
    name="linear",
    link=LinearLink,
    prompts=("synthesize_role", "synthesize_linear"),
    hint="hint_linear",
    fields=lambda children: {"base": CHANCE, "effects": _each(children, EFFECT)},
    read=_effects,
)
LOGIC = SynthesisRule(
    name="logic",
    link=FormulaLink,
    prompts=("synthesize_role", "synthesize_logic"),
    hint="hint_logic",
    fields=_formula_fields,
    read=_formula,
)
PRODUCT_LOGIC = SynthesisRule(
    name="product-logic",
    link=ProductLogicLink,
    prompts=("synthesize_role", "synthesize_product_logic"),
    hint="hint_logic",
    fields=_formula_fields,
    read=lambda answer: _formula(answer, ProductLogicLink),
)
NOISY_OR = SynthesisRule(
    name="noisy-or",
    link=NoisyOrLink,
    prompts=("synthesize_role", "synthesize_noisy_or"),
    hint="hint_noisy_or",
    fields=lambda children: {"leak": CHANCE, "strengths": _each(children, CHANCE)},
    read=lambda answer: NoisyOrLink(strengths=_numbers(answer["strengths"]), leak=float(answer["leak"])),
)
INHIBITED = SynthesisRule(
    name="inhibited-noisy-or",
    link=InhibitedNoisyOrLink,
    prompts=("synthesize_role", "synthesize_inhibited"),
    hint="hint_inhibited",
    fields=lambda children: {"leak": CHANCE, "strengths": _some(children), "inhibitors": _some(children)},
    read=lambda answer: InhibitedNoisyOrLink(
        strengths=_numbers(answer["strengths"]),
        inhibitors=_numbers(answer["inhibitors"]),
        leak=float(answer["leak"]),
    ),
)
VANILLA = SynthesisRule(
    name="vanilla",
    link=JudgedLink,
    prompts=("synthesize_judged",),
    hint="hint_judged",
    fields=lambda _: {"p": CHANCE},
    read=lambda answer: JudgedLink(p=float(answer["p"])),
)
AVERAGE = ModelFreeRule(name="average", link=AverageLink, make=lambda children, rng: AverageLink())
RANDOM = ModelFreeRule(name="random", link=LinearLink, make=random_weights)
