"""Putting children together: a model says how they bear on the claim, the tree says whether that fits, we compute."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from random import Random
from typing import Any, cast

from foretell.forecasters.tree.arithmetic.evaluation import evaluate, stale_claims
from foretell.forecasters.tree.arithmetic.scaling import SCALINGS, bayes_net_faults
from foretell.forecasters.tree.edits import SetLink, SetReport
from foretell.forecasters.tree.grow.prompting import (
    CHANCE,
    NUMBER,
    TEXT,
    ClaimSurroundings,
    StructuredClient,
    StructuredRequest,
    TreeQuestion,
    UnfitAnswer,
    fill_prompts,
    object_schema,
    read_report,
    sections,
)
from foretell.forecasters.tree.proposition import (
    AverageLink,
    FormulaAssumption,
    FormulaLink,
    InhibitedNoisyOrLink,
    JudgedLink,
    LinearLink,
    Link,
    NoisyOrLink,
    Proposition,
    Tree,
    parents,
)
from foretell.forecasters.tree.validation import InvalidTree
from foretell.forecasters.tree.what_if import resynthesize
from foretell.models.model import ModelError
from foretell.questions.errors import InputError

# The synthesis rules as data: what a model is asked for, and the link that is made of its answer.
#
# For every rule but `vanilla` the model gives parameters and we compute; a number it may have in mind is never used.

Children = Sequence[str]
Numbers = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class SynthesisRule:
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
        return object_schema({"report": TEXT, "key_factor": TEXT, **self.fields(children)})


@dataclass(frozen=True, kw_only=True)
class ModelFreeRule:
    """A rule that needs no model."""

    name: str
    hint: str
    make: Callable[[Children, Random], Link]


def _each(children: Children, kind: Mapping[str, Any]) -> dict[str, Any]:
    return object_schema({child: kind for child in children})


def _some(children: Children) -> dict[str, Any]:
    """Numbers for any of the children; whether each has one is seen when the link is checked."""
    return object_schema({child: CHANCE for child in children}, optional=tuple(children))


def _numbers(given: Numbers) -> dict[str, float]:
    return {child: float(number) for child, number in given.items()}


def _formula(found: Numbers) -> FormulaLink:
    given = cast("Numbers | None", found.get("assumption"))
    assumption = FormulaAssumption(text=str(given["text"]).strip()[:1000], p=float(given["p"])) if given else None
    # Without PA in the formula the assumption says nothing: it is left away, not argued about.
    used = "PA" in str(found["formula"]).replace("(", " ").replace(")", " ").split()
    return FormulaLink(expression=str(found["formula"]).strip(), assumption=assumption if used else None)


def _formula_fields(children: Children) -> dict[str, Any]:
    told = {"anyOf": [object_schema({"text": TEXT, "p": CHANCE}), {"type": "null"}]}
    return {"formula": TEXT, "assumption": told}


def random_weights(children: Children, rng: Random) -> LinearLink:
    """Weights that are equally likely to be any that sum to one (Dirichlet with parameter 1), and no intercept.

    >>> link = random_weights(("P1", "P2", "P3"), Random(1))
    >>> round(sum(link.weights.values()), 12), link.intercept
    (1.0, 0.0)
    """
    drawn = [-log(1.0 - rng.random()) for _ in children]
    return LinearLink(weights={child: one / sum(drawn) for child, one in zip(children, drawn, strict=True)})


LINEAR = SynthesisRule(
    name="linear",
    wording=("synthesize_role", "synthesize_linear"),
    hint="hint_linear",
    fields=lambda children: {"intercept": NUMBER, "weights": _each(children, NUMBER)},
    read=lambda found: LinearLink(weights=_numbers(found["weights"]), intercept=float(found["intercept"])),
)
LOGIC = SynthesisRule(
    name="logic",
    wording=("synthesize_role", "synthesize_logic"),
    hint="hint_logic",
    fields=_formula_fields,
    read=_formula,
)
NOISY_OR = SynthesisRule(
    name="noisy-or",
    wording=("synthesize_role", "synthesize_noisy_or"),
    hint="hint_noisy_or",
    fields=lambda children: {"leak": CHANCE, "strengths": _each(children, CHANCE)},
    read=lambda found: NoisyOrLink(strengths=_numbers(found["strengths"]), leak=float(found["leak"])),
)
INHIBITED = SynthesisRule(
    name="inhibited-noisy-or",
    wording=("synthesize_role", "synthesize_inhibited"),
    hint="hint_inhibited",
    fields=lambda children: {"leak": CHANCE, "strengths": _some(children), "inhibitors": _some(children)},
    read=lambda found: InhibitedNoisyOrLink(
        strengths=_numbers(found["strengths"]),
        inhibitors=_numbers(found["inhibitors"]),
        leak=float(found["leak"]),
    ),
)
VANILLA = SynthesisRule(
    name="vanilla",
    wording=("synthesize_judged",),
    hint="hint_judged",
    fields=lambda children: {"p": CHANCE},
    read=lambda found: JudgedLink(p=float(found["p"])),
)
AVERAGE = ModelFreeRule(name="average", hint="hint_linear", make=lambda children, rng: AverageLink())
RANDOM = ModelFreeRule(name="random", hint="hint_linear", make=random_weights)

RULES: dict[str, SynthesisRule | ModelFreeRule] = {
    rule.name: rule for rule in (LINEAR, LOGIC, VANILLA, AVERAGE, RANDOM, NOISY_OR, INHIBITED)
}


def rule_named(name: str) -> SynthesisRule | ModelFreeRule:
    """A rule by its name."""
    if name not in RULES:
        raise InputError(f"there is no synthesis rule {name!r}", hint=f"rules are {', '.join(RULES)}")
    return RULES[name]


LONGEST_REPORTS = 24_000
"""Characters of all children's reports together, shared out equally."""
CONDITION = (
    "- The intercept and all weights must be 0 or larger, and together at most 1. Word obstacles into the report."
)


@dataclass(frozen=True, kw_only=True)
class SynthesizeSettings:
    """How claims are put together."""

    rule: SynthesisRule | ModelFreeRule = LINEAR
    intercept_limit: float = 0.1
    missing: float = 0.5
    """What stands in for a child without a number of its own."""
    bayes_net: bool = False
    """Ask for linear weights that are those of a Bayes net: none negative, together at most one."""
    scaling: str | None = None
    """Weights that are not are scaled so (min-max, softmax, clip) instead of being asked for again."""
    seed: int = 0
    """For random weights."""

    def __post_init__(self) -> None:
        if self.scaling is not None and self.scaling not in SCALINGS:
            raise InputError(f"there is no scaling {self.scaling!r}", hint=f"scalings are {', '.join(SCALINGS)}")


@dataclass(frozen=True, kw_only=True)
class SynthesisResult:
    """What came of putting one claim's children together."""

    link: Link | None
    """None where no child has a number: there is nothing to put together."""
    p: float | None
    report: str = ""
    key_factor: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Synthesizer:
    """The synthesizer of one tree."""

    asker: StructuredClient
    matter: TreeQuestion
    settings: SynthesizeSettings

    async def synthesize(
        self, node: Proposition, place: ClaimSurroundings, below: Mapping[str, Proposition]
    ) -> SynthesisResult:
        """The link of a claim, with what it gives. An answer that does not fit is asked for again with the reason.

        When that fails for good, the mean of the children stands in, and a note says so: no answer of a model can
        leave a hole in the tree.
        """
        lacking = [id for id in node.children if below[id].p is None]
        if len(lacking) == len(node.children):
            return SynthesisResult(link=None, p=None, notes=("none of its children has a probability",))
        notes = (f"{self.settings.missing:g} stands in for {', '.join(lacking)}",) if lacking else ()
        rule = self.settings.rule
        if isinstance(rule, ModelFreeRule):
            link = rule.make(node.children, Random(f"{self.settings.seed}/{self.asker.slot}/{node.id}"))
            return SynthesisResult(link=link, p=self._value(node, link, below), notes=notes)
        try:
            found = await self._asked(node, place, below, rule)
        except ModelError as error:
            note = f"the mean of the children stands in for the rule {rule.name}: {error}"
            return SynthesisResult(link=AverageLink(), p=self._value(node, AverageLink(), below), notes=(*notes, note))
        return replace(found, notes=(*notes, *found.notes))

    async def _asked(
        self, node: Proposition, place: ClaimSurroundings, below: Mapping[str, Proposition], rule: SynthesisRule
    ) -> SynthesisResult:
        values = {"children": ", ".join(node.children), "limit": f"{self.settings.intercept_limit:g}"}
        condition = CONDITION if self.settings.bayes_net or self.settings.scaling else ""
        wanted = StructuredRequest(
            role="synthesizer",
            place=f"{node.id}/synthesis",
            system=fill_prompts(*rule.wording, "rules", condition=condition, today=self.matter.today, **values),
            user=self._task(node, place, [below[id] for id in node.children]),
            schema=rule.schema(node.children),
        )

        def read(found: Mapping[str, Any]) -> SynthesisResult:
            link, notes = self._fitted(rule.read(found))
            report, key_factor = read_report(found)
            try:
                p = self._value(node, link, below)
            except InvalidTree as error:
                raise UnfitAnswer(error.reasons) from None
            except InputError as error:
                raise UnfitAnswer(str(error)) from None
            return SynthesisResult(link=link, p=p, report=report, key_factor=key_factor, notes=notes)

        return await self.asker.ask(wanted, read)

    def _fitted(self, link: Link) -> tuple[Link, tuple[str, ...]]:
        """The link, scaled to that of a Bayes net where the settings want one, and what was done to it."""
        wanted = self.settings.bayes_net or self.settings.scaling is not None
        faults = bayes_net_faults(link) if wanted and isinstance(link, LinearLink) else []
        if not faults or not isinstance(link, LinearLink):
            return link, ()
        if self.settings.scaling is None:
            raise UnfitAnswer("; ".join(faults))
        scaled = SCALINGS[self.settings.scaling](link)
        return scaled.link, (scaled.note,)

    def _value(self, node: Proposition, link: Link, below: Mapping[str, Proposition]) -> float:
        """What a link gives, exactly, whatever the branches below share; `InvalidTree` where it cannot be used."""
        top = replace(node, link=link, p=None, pinned=None)
        limit, missing = self.settings.intercept_limit, self.settings.missing
        tree = Tree(root=node.id, nodes={node.id: top, **below}, intercept_limit=limit, missing=missing)
        return evaluate(tree).p

    def _task(self, node: Proposition, place: ClaimSurroundings, children: Sequence[Proposition]) -> str:
        room = LONGEST_REPORTS // len(children)
        return sections(
            *self.matter.sections(),
            place.above(),
            (f"The claim, {node.id}", node.claim),
            ("How its children were meant to bear on it", node.causality),
            *((f"Child {child.id}", self._child(child, room)) for child in children),
        )

    def _child(self, child: Proposition, room: int) -> str:
        known = f"Probability: {child.p:.3f}." if child.p is not None else self._unknown(child)
        source = child.grounding
        report = (source.report if source is not None else child.report)[:room]
        factor = source.key_factor if source is not None else child.key_factor
        lines = [child.claim, known, f"What decided it: {factor}" if factor else "", report]
        return "\n\n".join(filter(None, lines))

    def _unknown(self, child: Proposition) -> str:
        why = child.grounding.error if child.grounding is not None else "nothing below it could be examined"
        return f"It could not be examined ({why}); {self.settings.missing:g} stands in for its probability."


# Asking again: judged claims that something beneath has changed under, from the leaves up, on demand only.


async def rejudge_stale(tree: Tree, synthesizer: Synthesizer) -> tuple[Tree, tuple[str, ...]]:
    """The tree with every stale judgement made anew, and the claims for which that failed: their old number stands.

    The synthesizer's rule must be `vanilla`. A claim is judged after those beneath it, and once.
    """
    failed: list[str] = []
    done: set[str] = set()
    while todo := [id for id in stale_claims(tree) if id not in done]:
        id = todo[0]
        done.add(id)
        found = await synthesizer.synthesize(tree.nodes[id], surroundings_of(tree, id), claims_below(tree, id))
        if not isinstance(found.link, JudgedLink):
            failed.append(id)
            continue
        report = SetReport(id=id, report=found.report, key_factor=found.key_factor)
        tree = resynthesize(tree, [SetLink(id=id, link=found.link), report])
    return tree, tuple(failed)


def claims_below(tree: Tree, id: str) -> dict[str, Proposition]:
    """Every claim beneath one."""
    found: dict[str, Proposition] = {}
    ahead = list(tree.nodes[id].children)
    while ahead:
        child = ahead.pop()
        if child not in found:
            found[child] = tree.nodes[child]
            ahead.extend(tree.nodes[child].children)
    return found


def surroundings_of(tree: Tree, id: str) -> ClaimSurroundings:
    """The claims above one, along its first parents, and beside it."""
    up = parents(tree)
    above = up[id][:1]
    beside = [child for parent in above for child in tree.nodes[parent].children if child != id]
    path: list[str] = []
    while above:
        path.append(tree.nodes[above[0]].claim)
        above = up[above[0]][:1]
    return ClaimSurroundings(path=tuple(reversed(path)), siblings=tuple(tree.nodes[other].claim for other in beside))
