"""Combine children: a model states how they bear on the claim, the link is validated, and the result computed."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log
from random import Random
from typing import Any, cast

from foretell.forecasters.agent.answer_format import AnswerFormat
from foretell.forecasters.forecaster import Context, EventLog
from foretell.forecasters.tree.arithmetic.evaluation import evaluate, stale_claims
from foretell.forecasters.tree.arithmetic.scaling import bayes_net_faults, scaled
from foretell.forecasters.tree.case_links import SplitLink
from foretell.forecasters.tree.edits import Edit, SetLink, SetReport
from foretell.forecasters.tree.formula import ASSUMPTION, FormulaError, mentions
from foretell.forecasters.tree.grow.prompting import (
    ATTEMPTS,
    CHANCE,
    NUMBER,
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
from foretell.forecasters.tree.proposition import MISSING, Proposition, Tree, cited_evidence, parents_of, pre_order
from foretell.forecasters.tree.settings import TreeSettings
from foretell.forecasters.tree.text import InvalidTree
from foretell.forecasters.tree.what_if import resynthesize
from foretell.frozen import frozen
from foretell.models.model import ModelError
from foretell.models.structured_output import UnusableReply, closed_object
from foretell.plugins import load
from foretell.questions.errors import InputError
from foretell.questions.thresholds import read_thresholds

# Synthesis rules: what a model is asked about a claim's children, and how its answer becomes a link.
#
# For every rule except `vanilla`, the model states parameters, and the probability is computed from them.
#
# Rules are plug-ins of the kind "synthesis_rules" (see `foretell.plugins`): a name maps to a `SynthesisRule` or a
# `ModelFreeRule`. A package that adds one defines the rule in a single file. If no built-in link suits it, the file
# also defines a subclass of `foretell.forecasters.tree.links.Link` with fields, validation, arithmetic and description.
# The arithmetic may be anything that the gates of a tree can express: a weighted sum of the children, or AND, OR and
# NOT over children, independent events with a fixed probability and assumptions. Exact values, what-if, the web page,
# tree files and exports then work without changes. Other arithmetic (such as a logistic function) is not possible,
# because Python and JavaScript must compute results that are equal bit for bit.


Children = Sequence[str]
Answer = Mapping[str, Any]


@dataclass(kw_only=True)
class ReplyChecks:
    """What a rule may check a reply against. One object serves all replies to a request, and counts them."""

    p: Mapping[str, float]
    """Probability of each child."""
    evidence: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    """Ids of the evidence that each child cites."""
    sent: dict[str, int] = field(default_factory=dict[str, int])
    """How often a reply was sent back because of each check."""
    replies: int = 0

    @property
    def last(self) -> bool:
        """Whether no reply can be sent back any more."""
        return self.replies >= ATTEMPTS


CheckedLink = tuple[Link, tuple[str, ...]]
"""A link that was accepted, and notes on it."""


@frozen
class SynthesisRule:
    """A synthesis rule that asks a model for its parameters."""

    name: str
    link: type[Link]
    """The class of the links that it makes."""
    prompts: tuple[PromptText, ...]
    """Prompt texts for the synthesizer, with placeholders `$children` and `$limit`."""
    rules: PromptText = "rules"
    """Prompt text with the rules that every request on a tree has."""
    hint: PromptText
    """Prompt text that tells the analyzer what kind of children suit the rule."""
    fields: Callable[[Children], dict[str, Any]]
    """Returns the JSON schemas of the answer's fields besides report and key factor."""
    read: Callable[[Answer], Link]
    """Reads the link from an answer that matches the schema."""
    judge: Callable[[Answer, ReplyChecks], CheckedLink] | None = None
    """Used in place of `read` by rules that check the answer against the children; raises `UnusableReply`."""
    for_options: "Callable[[Sequence[str]], SynthesisRule] | None" = None
    """Returns the rule for a claim that answers several options, if it has such a form."""
    for_number: "Callable[[AnswerFormat], SynthesisRule] | None" = None
    """Returns the rule for a claim that answers with a number or a date, if it has such a form."""

    def schema(self, children: Children) -> dict[str, Any]:
        """Return the schema of the whole answer."""
        return closed_object({"report": TEXT, "key_factor": TEXT, **self.fields(children)})


@frozen
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
    """Return the schema of a number per child, all optional; completeness is checked with the link."""
    return closed_object({child: CHANCE for child in children}, optional=tuple(children))


def _numbers(by_child: Answer) -> dict[str, float]:
    return {child: float(number) for child, number in by_child.items()}


def _formula_fields(_: Children) -> dict[str, Any]:
    assumption = {"anyOf": [closed_object({"text": TEXT, "p": CHANCE}), {"type": "null"}]}
    return {"formula": TEXT, "assumption": assumption}


def _formula(answer: Answer, kind: type[FormulaLink] = FormulaLink) -> FormulaLink:
    stated = cast("Answer | None", answer.get("assumption"))
    assumption = FormulaAssumption(text=str(stated["text"]).strip()[:1000], p=float(stated["p"])) if stated else None
    expression = str(answer["formula"]).strip()
    try:
        used = ASSUMPTION in {name for name, _ in mentions(expression)}
    except FormulaError:
        used = True  # The validation of the link reports the parse error.
    # Without PA in the formula the assumption has no effect, so it is dropped.
    return kind(expression=expression, assumption=assumption if used else None)


def random_weights(children: Children, rng: Random) -> LinearLink:
    """Draw weights from a flat Dirichlet distribution, without an intercept.

    >>> link = random_weights(("P1", "P2", "P3"), Random(1))
    >>> round(sum(link.weights.values()), 12), link.intercept
    (1.0, 0.0)
    """
    drawn = [-log(1.0 - rng.random()) for _ in children]
    return LinearLink(weights={child: weight / sum(drawn) for child, weight in zip(children, drawn, strict=True)})


def _weighted(answer: Answer) -> LinearLink:
    return LinearLink(intercept=float(answer["intercept"]), weights=_numbers(answer["weights"]))


def _strict(answer: Answer, checks: ReplyChecks) -> CheckedLink:
    """Return the link if it is within the paper's limits; nothing is confirmed or scaled."""
    link = _weighted(answer)
    if problems := link.strict_problems(checks.p):
        raise UnusableReply("; ".join(problems))
    return link, ()


ANALYTICA_LINEAR = SynthesisRule(
    name="analytica-linear",
    link=LinearLink,
    prompts=("synthesize_role", "synthesize_analytica_linear"),
    hint="hint_linear",
    fields=lambda children: {"intercept": NUMBER, "weights": _each(children, NUMBER)},
    read=_weighted,
    judge=_strict,
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


@frozen
class Synthesizer:
    """Combines the claims of one tree."""

    about: TreeQuestion
    context: Context
    settings: TreeSettings
    missing: float = MISSING
    """Probability used for children that have none."""
    seed: int = 0
    """Seed for random weights."""
    options: tuple[str, ...] = ()
    """Options that the claim answers, if there are several."""
    number: AnswerFormat | None = None
    """Form of the answer, if the claim answers with a number or a date."""
    known: tuple[tuple[str, str], ...] = ()
    """What was found before, as headings with texts."""

    async def synthesize(
        self, node: Proposition, place: ClaimSurroundings, below: Mapping[str, Proposition]
    ) -> Proposition:
        """Return the claim with its link, probability and report. An invalid answer is requested again with the reason.

        If the last attempt fails too, the mean of the children is used, and `failed` holds the reason. If no child has
        a probability, there is nothing to combine, and the claim gets no link.
        """
        rule = rule_named(self.settings.rule)
        node = replace(node, link=None, p=None, report="", key_factor="", notes=(), rule=rule.name, failed="", stale="")
        lacking = [id for id in node.children if below[id].p is None]
        if len(lacking) == len(node.children):
            return replace(node, notes=("none of its children has a probability",))
        notes = (f"{self.missing:g} is used for {', '.join(lacking)}",) if lacking else ()
        if isinstance(rule, ModelFreeRule):
            link = rule.make(node.children, Random(f"{self.seed}/{self.about.slot}/{node.id}"))
            return replace(node, link=link, p=self._value(node, link, below), notes=notes)
        if self.number is not None and rule.for_number is not None:
            rule = rule.for_number(self.number)
        elif self.options and rule.for_options is not None:
            rule = rule.for_options(self.options)
        try:
            done = await self._ask(node, place, below, rule)
        except ModelError as error:
            reason = f"the mean of the children is used instead of the rule {rule.name}: {error}"
            link = AverageLink()
            return replace(node, link=link, p=self._value(node, link, below), notes=notes, failed=reason)
        return replace(done, notes=(*notes, *done.notes))

    async def _ask(
        self, node: Proposition, place: ClaimSurroundings, below: Mapping[str, Proposition], rule: SynthesisRule
    ) -> Proposition:
        blanks = {
            "children": ", ".join(node.children),
            "limit": f"{self.settings.intercept_limit:g}",
            **self.about.rule_values,
        }
        length = LONGEST_REPORTS // len(node.children)
        request = StructuredRequest(
            role="synthesizer",
            slot=f"{self.about.slot}/{node.id}/synthesis",
            system=fill_prompts(*rule.prompts, rule.rules, **blanks),
            user=sections(
                *self.about.sections(),
                place.above(),
                (f"The claim, {node.id}", node.claim),
                ("How its children were meant to bear on it", node.causality),
                *self.known,
                *((f"Child {id}", self._child(below[id], length)) for id in node.children),
            ),
            schema=rule.schema(node.children),
        )

        checks = ReplyChecks(
            p={id: self.missing if (p := below[id].p) is None else p for id in node.children},
            evidence={id: cited_evidence(below[id]) for id in node.children},
        )

        def read(answer: Mapping[str, Any]) -> Proposition:
            checks.replies += 1
            stated = (rule.read(answer), ()) if rule.judge is None else rule.judge(answer, checks)
            link, notes = self._fitted(stated[0], node.children)
            notes = (*stated[1], *notes)
            report, key_factor = read_report(answer)
            try:
                p = self._value(node, link, below)
            except InvalidTree as error:
                raise UnusableReply(error.reasons) from None
            except InputError as error:
                raise UnusableReply(str(error)) from None
            return replace(node, link=link, p=p, report=report, key_factor=key_factor, notes=notes)

        return await request.ask(self.context, read)

    def _child(self, child: Proposition, length: int) -> str:
        """Return the prompt text about a child, with at most this many characters of its report."""
        source = child.grounding
        report, factor = (source.report, source.key_factor) if source else (child.report, child.key_factor)
        if child.p is not None:
            known = f"Probability: {child.p:.3f}."
        else:
            why = source.error if source else "nothing below it could be examined"
            known = f"It could not be examined ({why}); {self.missing:g} stands in for its probability."
        lines = [child.claim, known, f"What decided it: {factor}" if factor else "", report[:length]]
        return "\n\n".join(filter(None, lines))

    def _fitted(self, link: Link, children: Sequence[str]) -> tuple[Link, tuple[str, ...]]:
        """Return the link, scaled to a Bayes net if the settings ask for it, and a note on the change."""
        wanted = self.settings.bayes_net or self.settings.scaling is not None
        form = link.linear_form(children) if wanted else None
        faults = bayes_net_faults(form) if form is not None else []
        if form is None or not faults:
            return link, ()
        if self.settings.scaling is None:
            raise UnusableReply("; ".join(faults))
        new, note = scaled(form, self.settings.scaling)
        return new, (note,)

    def _value(self, node: Proposition, link: Link, below: Mapping[str, Proposition]) -> float:
        """Compute the exact result of a link, even if branches share claims. Raises `InvalidTree`."""
        top = replace(node, link=link, p=None, pinned=None)
        nodes = {node.id: top, **below}
        tree = Tree(root=node.id, nodes=nodes, intercept_limit=self.settings.intercept_limit, missing=self.missing)
        return evaluate(tree).p


RULE_OF_LINK = {
    **{
        rule.link.kind: rule.name
        for rule in (ANALYTICA_LINEAR, LOGIC, PRODUCT_LOGIC, NOISY_OR, INHIBITED, VANILLA, AVERAGE)
    },
    **dict.fromkeys(("all", "any", "at_least", "weigh"), "cases"),
    "split": "split",
}
"""Rule that makes each kind of link. Links of other packages need the node's own `rule`."""
USUAL_RULE = "cases"
"""Rule of claims that have none yet."""


def rule_of(node: Proposition) -> str:
    """Return the rule for judging a parent again: its own, or the one that makes its kind of link."""
    return node.rule or (RULE_OF_LINK.get(node.link.kind, USUAL_RULE) if node.link is not None else USUAL_RULE)


def _number_form(link: SplitLink) -> AnswerFormat:
    """Return the form in which the number behind scenarios was stated."""
    return AnswerFormat(
        targets={id: id for id in link.options},
        thresholds=read_thresholds(link.options) or {},
        dates=link.dates,
        never=link.dates and any(spread[-1] for spread in (*link.spreads.values(), link.spread_otherwise)),
    )


@frozen
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
        options = node.link.options if isinstance(node.link, SplitLink) else ()
        number = _number_form(node.link) if isinstance(node.link, SplitLink) and node.link.spreads else None
        synthesizer = Synthesizer(
            about=about, context=own, settings=settings, missing=tree.missing, options=options, number=number
        )
        return await synthesizer.synthesize(node, place, below)

    edits: list[Edit] = []
    failed: dict[str, str] = {}
    done: set[str] = set()

    def stale(tree: Tree) -> list[str]:
        return [id for id in stale_claims(tree) if only is None or id in only]

    while waiting := [id for id in dict.fromkeys([*stale(tree), *also]) if id not in done]:
        beneath = {id: set(pre_order(tree.nodes, id)) - {id} for id in waiting}
        ready = [id for id in waiting if not beneath[id] & set(waiting)]
        jobs = [judged_anew(tree, id, beneath[id]) for id in ready]
        for id, result in zip(ready, await asyncio.gather(*jobs), strict=True):
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
