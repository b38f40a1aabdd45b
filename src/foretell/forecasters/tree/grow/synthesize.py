"""Combine children: a model states how they bear on the claim, the link is validated, and the result computed."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log
from random import Random
from typing import Any, cast

from foretell.forecasters.forecaster import Context, EventLog
from foretell.forecasters.tree.arithmetic.evaluation import evaluate, stale_claims
from foretell.forecasters.tree.arithmetic.scaling import bayes_net_faults, scaled
from foretell.forecasters.tree.edits import Edit, SetLink, SetReport
from foretell.forecasters.tree.formula import ASSUMPTION, FormulaError, mentions
from foretell.forecasters.tree.grow.prompting import (
    ATTEMPTS,
    CHANCE,
    TEXT,
    ClaimSurroundings,
    PromptText,
    StructuredRequest,
    TreeQuestion,
    fill_prompts,
    read_report,
    sections,
)
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
from foretell.forecasters.tree.proposition import MISSING, Proposition, Tree, parents_of, pre_order
from foretell.forecasters.tree.settings import TreeSettings
from foretell.forecasters.tree.text import InvalidTree
from foretell.forecasters.tree.what_if import resynthesize
from foretell.models.model import ModelError
from foretell.models.structured_output import UnusableReply, closed_object
from foretell.plugins import load
from foretell.questions.errors import InputError

# The synthesis rules: what a model is asked about a claim's children, and the link that is made of its answer.
#
# For every rule but `vanilla` the model gives parameters and we compute; a number it may have in mind is never used.
#
# Rules are plug-ins of the kind "synthesis_rules" (see `foretell.plugins`): a name leads to a `SynthesisRule` or a
# `ModelFreeRule`. A package that adds one writes, in a single file, the rule and, if no built-in link suits it, a class
# derived from `foretell.forecasters.tree.links.Link` with its fields, check, arithmetic and words. The arithmetic may
# be whatever the gates of a tree can express: a weighted sum of the children, or AND, OR and NOT over children,
# independent events with a fixed chance and assumptions. Exact values, what-if, the web page, tree files and exports
# then work with it as they are. Arithmetic of any other form (a logistic function, say) is not possible: only
# operations that Python and JavaScript carry out to the same last bit keep the numbers of a page and a file equal.


Children = Sequence[str]
Answer = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class SynthesisRule:
    """A synthesis rule that asks a model for its parameters."""

    name: str
    link: type[Link]
    """The class of the links that it makes."""
    prompts: tuple[PromptText, ...]
    """Prompt texts for the synthesizer, with placeholders `$children` and `$limit`."""
    hint: PromptText
    """Prompt text that tells the analyzer what kind of children suit the rule."""
    fields: Callable[[Children], dict[str, Any]]
    """Returns the JSON schemas of the answer's fields besides report and key factor."""
    read: Callable[[Answer], Link]
    """Reads the link from an answer that matches the schema."""

    def schema(self, children: Children) -> dict[str, Any]:
        """Return the schema of the whole answer."""
        return closed_object({"report": TEXT, "key_factor": TEXT, **self.fields(children)})


@dataclass(frozen=True, kw_only=True)
class ModelFreeRule:
    """A synthesis rule that needs no model."""

    name: str
    link: type[Link]
    """The class of the links that it makes."""
    make: Callable[[Children, Random], Link]
    hint: PromptText = "hint_linear"
    """Prompt text that tells the analyzer what kind of children suit the rule."""


Rule = SynthesisRule | ModelFreeRule


def rule_named(name: str) -> Rule:
    """Return a rule by name. Raises an `InputError` with the known names if there is none."""
    return load("synthesis_rules", name)


def _each(children: Children, kind: Mapping[str, Any]) -> dict[str, Any]:
    return closed_object({child: kind for child in children})


def _some(children: Children) -> dict[str, Any]:
    """Schema of a number per child, all optional; completeness is checked with the link."""
    return closed_object({child: CHANCE for child in children}, optional=tuple(children))


def _numbers(given: Answer) -> dict[str, float]:
    return {child: float(number) for child, number in given.items()}


def _formula_fields(_: Children) -> dict[str, Any]:
    assumption = {"anyOf": [closed_object({"text": TEXT, "p": CHANCE}), {"type": "null"}]}
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
    """Random weights from a flat Dirichlet distribution, without an intercept.

    >>> link = random_weights(("P1", "P2", "P3"), Random(1))
    >>> round(sum(link.weights.values()), 12), link.intercept
    (1.0, 0.0)
    """
    drawn = [-log(1.0 - rng.random()) for _ in children]
    return LinearLink(weights={child: one / sum(drawn) for child, one in zip(children, drawn, strict=True)})


EFFECT = closed_object({"effect": {"type": "string", "enum": ["helps", "hinders"]}, "weight": CHANCE})
"""Schema of one child's effect on the claim in a linear rule."""


def _effects(answer: Answer) -> LinearLink:
    """Build a link from the stated effects; obstacles get negative weights and raise the intercept."""
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


LONGEST_REPORTS = 24_000
"""Maximum length of all children's reports together, in characters; it is split equally."""


@dataclass(frozen=True, kw_only=True)
class Synthesizer:
    """Combines the claims of one tree."""

    about: TreeQuestion
    context: Context
    settings: TreeSettings
    missing: float = MISSING
    """Probability used for children that have none."""
    seed: int = 0
    """Seed for random weights."""

    async def synthesize(
        self, node: Proposition, place: ClaimSurroundings, below: Mapping[str, Proposition]
    ) -> Proposition:
        """Return the claim with its link, probability and report. An invalid answer is requested again with the reason.

        If that finally fails, the mean of the children is used, and `failed` says why, so that no answer of a model can
        leave a hole in the tree. If no child has a probability, there is nothing to combine, and the claim gets no
        link.
        """
        rule = rule_named(self.settings.rule)
        node = replace(node, link=None, p=None, report="", key_factor="", notes=(), rule=rule.name, failed="", stale="")
        lacking = [id for id in node.children if below[id].p is None]
        if len(lacking) == len(node.children):
            return replace(node, notes=("none of its children has a probability",))
        notes = (f"{self.missing:g} stands in for {', '.join(lacking)}",) if lacking else ()
        if isinstance(rule, ModelFreeRule):
            link = rule.make(node.children, Random(f"{self.seed}/{self.about.slot}/{node.id}"))
            return replace(node, link=link, p=self._value(node, link, below), notes=notes)
        try:
            done = await self._ask(node, place, below, rule)
        except ModelError as error:
            reason = f"the mean of the children stands in for the rule {rule.name}: {error}"
            link = AverageLink()
            return replace(node, link=link, p=self._value(node, link, below), notes=notes, failed=reason)
        return replace(done, notes=(*notes, *done.notes))

    async def _ask(
        self, node: Proposition, place: ClaimSurroundings, below: Mapping[str, Proposition], rule: SynthesisRule
    ) -> Proposition:
        blanks = {
            "children": ", ".join(node.children),
            "limit": f"{self.settings.intercept_limit:g}",
            "today": self.about.today,
        }
        length = LONGEST_REPORTS // len(node.children)
        request = StructuredRequest(
            role="synthesizer",
            slot=f"{self.about.slot}/{node.id}/synthesis",
            system=fill_prompts(*rule.prompts, "rules", **blanks),
            user=sections(
                *self.about.sections(),
                place.above(),
                (f"The claim, {node.id}", node.claim),
                ("How its children were meant to bear on it", node.causality),
                *((f"Child {id}", self._child(below[id], length)) for id in node.children),
            ),
            schema=rule.schema(node.children),
        )

        doubted: list[Link] = []

        def read(answer: Mapping[str, Any]) -> Proposition:
            link, notes = self._fitted(rule.read(answer), node.children)
            report, key_factor = read_report(answer)
            doubts = [] if notes else self._doubts(link)  # Scaled weights are ours, and not to be doubted.
            if doubts and link not in doubted and len(doubted) < ATTEMPTS - 1:
                doubted.append(link)
                raise UnusableReply(f"{'; '.join(doubts)}. If you stand by it, give the same answer again")
            if doubts and isinstance(link, LinearLink):
                link, notes = _within_one(link), (*notes, *(f"confirmed: {doubt}" for doubt in doubts))
            try:
                p = self._value(node, link, below)
            except InvalidTree as error:
                raise UnusableReply(error.reasons) from None
            except InputError as error:
                raise UnusableReply(str(error)) from None
            return replace(node, link=link, p=p, report=report, key_factor=key_factor, notes=notes)

        return await request.ask(self.context, read)

    def _child(self, child: Proposition, length: int) -> str:
        """Prompt text about a child, with at most this many characters of its report."""
        source = child.grounding
        report, factor = (source.report, source.key_factor) if source else (child.report, child.key_factor)
        if child.p is not None:
            known = f"Probability: {child.p:.3f}."
        else:
            why = source.error if source else "nothing below it could be examined"
            known = f"It could not be examined ({why}); {self.missing:g} stands in for its probability."
        lines = [child.claim, known, f"What decided it: {factor}" if factor else "", report[:length]]
        return "\n\n".join(filter(None, lines))

    def _doubts(self, link: Link) -> list[str]:
        """Implications of a linear link in extreme cases, if these go further than its author may have meant.

        The model need not change its judgement: if it repeats its answer, that answer is accepted.
        """
        if not isinstance(link, LinearLink) or any(not 0 <= abs(weight) <= 1 for weight in link.weights.values()):
            return []
        found: list[str] = []
        if link.base > self.settings.intercept_limit + 1e-9:
            found.append(
                f"a base of {link.base:.3g} means that the claim has this chance even with every child against it; "
                "the report should name what would then bring it about"
            )
        most = link.base + sum(map(abs, link.weights.values()))
        if most > 1 + 1e-9:
            found.append(
                f"base and weights together give the claim a chance of {most:.3g} with every child in its favour; "
                "weights that cannot all count in full overlap, and only their proportions are kept then"
            )
        return found

    def _fitted(self, link: Link, children: Sequence[str]) -> tuple[Link, tuple[str, ...]]:
        """Return the link, scaled to a Bayes net if the settings ask for it, and a note on the change."""
        wanted = self.settings.bayes_net or self.settings.scaling is not None
        form = link.linear_form(children) if wanted else None
        faults = bayes_net_faults(form) if form is not None else []
        if form is None or not faults:
            return link, ()
        if self.settings.scaling is None:
            if isinstance(link, LinearLink) and link.base >= -1e-9:
                return link, ()  # Its weights only overlap: a doubt, see `_doubts`.
            raise UnusableReply("; ".join(faults))
        new, note = scaled(form, self.settings.scaling)
        return new, (note,)

    def _value(self, node: Proposition, link: Link, below: Mapping[str, Proposition]) -> float:
        """Compute the exact result of a link, even if branches share claims. Raises `InvalidTree`."""
        top = replace(node, link=link, p=None, pinned=None)
        nodes = {node.id: top, **below}
        # A base that was confirmed may lie beyond the usual limit.
        limit = wide_enough(nodes, self.settings.intercept_limit)
        tree = Tree(root=node.id, nodes=nodes, intercept_limit=limit, missing=self.missing)
        return evaluate(tree).p


def wide_enough(nodes: Mapping[str, Proposition], limit: float) -> float:
    """Return the tree's intercept limit, raised to the largest base that the synthesizer insisted on."""
    own = (node.link for node in nodes.values())
    return max([limit, *(link.base for link in own if isinstance(link, LinearLink))])


def _within_one(link: LinearLink) -> LinearLink:
    """Shrink weights proportionally until the claim is at most 1 with all children in its favour."""
    base, total = min(max(link.base, 0.0), 1.0), sum(map(abs, link.weights.values()))
    shrink = min(1.0, (1 - base) / total) if total > 0 else 1.0
    numbers = {child: weight * shrink for child, weight in link.weights.items()}
    return LinearLink(intercept=base - sum(w for w in numbers.values() if w < 0), weights=numbers)


RULE_OF_LINK = {
    rule.link.kind: rule.name for rule in (LINEAR, LOGIC, PRODUCT_LOGIC, NOISY_OR, INHIBITED, VANILLA, AVERAGE)
}
"""Rule that makes each kind of link. Links of other packages need the node's own `rule`."""


def rule_of(node: Proposition) -> str:
    """Return the rule for judging a parent again: its own, or the one that makes its kind of link."""
    return node.rule or (RULE_OF_LINK.get(node.link.kind, "linear") if node.link is not None else "linear")


@dataclass(frozen=True, kw_only=True)
class Rejudged:
    """The result of judging stale links again."""

    tree: Tree
    edits: tuple[Edit, ...] = ()
    """The edits that were applied, in order."""
    failed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Reason why the old judgement was kept, by claim."""


async def rejudge(  # noqa: PLR0913 - one parameter for each limit on what is judged
    tree: Tree,
    about: TreeQuestion,
    context: Context,
    *,
    also: Collection[str] = (),
    only: Collection[str] | None = None,
    rule: str | None = None,
    log: EventLog[tuple[str, str]] | None = None,
) -> Rejudged:
    """Have a model judge every stale link again, and those of the claims in `also`, each once, children first.

    With `only`, stale links of other claims stay as they are.

    Claims that do not wait for others are judged concurrently. Everything else above an edit is arithmetic. If a
    judgement fails, the old one is kept, and the claim remains stale. With `rule`, claims are combined by this rule
    instead of their previous one.
    """
    log = log or EventLog()

    async def judged_anew(tree: Tree, id: str, beneath: Collection[str]) -> Proposition:
        node = tree.nodes[id]
        settings = TreeSettings(rule=rule or rule_of(node), intercept_limit=tree.intercept_limit)
        own = replace(context, emit=log.job(("synthesis", id)))
        place = ClaimSurroundings.of(tree.nodes, parents_of(tree.nodes), id)
        below = {other: tree.nodes[other] for other in beneath}
        synthesizer = Synthesizer(about=about, context=own, settings=settings, missing=tree.missing)
        return await synthesizer.synthesize(node, place, below)

    edits: list[Edit] = []
    failed: dict[str, str] = {}
    done: set[str] = set()

    def stale(tree: Tree) -> list[str]:
        return [id for id in stale_claims(tree) if only is None or id in only]

    while waiting := [id for id in dict.fromkeys([*stale(tree), *also]) if id not in done]:
        beneath = {id: set(pre_order(tree.nodes, id)) - {id} for id in waiting}
        ready = [id for id in waiting if not beneath[id] & set(waiting)]
        asked = [judged_anew(tree, id, beneath[id]) for id in ready]
        for id, result in zip(ready, await asyncio.gather(*asked), strict=True):
            done.add(id)
            if result.failed or result.link is None:
                failed[id] = result.failed or "none of its children has a probability"
                continue
            new = [
                SetLink(id=id, link=result.link, rule=result.rule),
                SetReport(id=id, report=result.report, key_factor=result.key_factor),
            ]
            tree = resynthesize(tree, new)
            edits += new
    return Rejudged(tree=tree, edits=tuple(edits), failed=failed)
