"""Putting children together: a model says how they bear on the claim, the tree checks whether that fits, we compute."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.arithmetic.evaluation import evaluate, stale_claims
from foretell.forecasters.tree.arithmetic.scaling import SCALINGS, bayes_net_faults, scaled
from foretell.forecasters.tree.edits import SetLink, SetReport
from foretell.forecasters.tree.grow.prompting import (
    ClaimSurroundings,
    StructuredRequest,
    TreeQuestion,
    fill_prompts,
    read_report,
    sections,
)
from foretell.forecasters.tree.grow.rules import LINEAR, VANILLA, ModelFreeRule, Rule, SynthesisRule
from foretell.forecasters.tree.links import INTERCEPT_LIMIT, AverageLink, JudgedLink, Link
from foretell.forecasters.tree.problems import InvalidTree
from foretell.forecasters.tree.proposition import MISSING, Proposition, Tree, parents_of, pre_order
from foretell.forecasters.tree.what_if import resynthesize
from foretell.models.model import ModelError
from foretell.models.structured_output import UnusableReply
from foretell.questions.errors import InputError
from foretell.questions.question import Question

LONGEST_REPORTS = 24_000
"""Characters of all children's reports together, shared out equally."""
CONDITION = (
    "- The intercept and all weights must be 0 or larger, and together at most 1. Word obstacles into the report."
)


@dataclass(frozen=True, kw_only=True)
class SynthesizeSettings:
    """How claims are put together."""

    rule: Rule = LINEAR
    intercept_limit: float = INTERCEPT_LIMIT
    missing: float = MISSING
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
class Synthesizer:
    """The synthesizer of one tree."""

    about: TreeQuestion
    context: Context
    settings: SynthesizeSettings

    async def synthesize(
        self, node: Proposition, place: ClaimSurroundings, below: Mapping[str, Proposition]
    ) -> Proposition:
        """The claim with its link, its probability and the report. An unfit answer is asked for again with the reason.

        When that fails for good, the mean of the children stands in, and a note says so: no answer of a model can
        leave a hole in the tree. Where no child has a number there is nothing to put together, and no link.
        """
        node = replace(node, link=None, p=None, report="", key_factor="", notes=())
        lacking = [id for id in node.children if below[id].p is None]
        if len(lacking) == len(node.children):
            return replace(node, notes=("none of its children has a probability",))
        notes = (f"{self.settings.missing:g} stands in for {', '.join(lacking)}",) if lacking else ()
        rule = self.settings.rule
        if isinstance(rule, ModelFreeRule):
            link = rule.make(node.children, Random(f"{self.settings.seed}/{self.about.slot}/{node.id}"))
            return replace(node, link=link, p=self._value(node, link, below), notes=notes)
        try:
            done = await self._ask(node, place, below, rule)
        except ModelError as error:
            note = f"the mean of the children stands in for the rule {rule.name}: {error}"
            link = AverageLink()
            return replace(node, link=link, p=self._value(node, link, below), notes=(*notes, note))
        return replace(done, notes=(*notes, *done.notes))

    async def _ask(
        self, node: Proposition, place: ClaimSurroundings, below: Mapping[str, Proposition], rule: SynthesisRule
    ) -> Proposition:
        blanks = {
            "children": ", ".join(node.children),
            "limit": f"{self.settings.intercept_limit:g}",
            "condition": CONDITION if self.settings.bayes_net or self.settings.scaling else "",
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
            attempts=self.about.attempts,
        )

        def read(answer: Mapping[str, Any]) -> Proposition:
            link, notes = self._fitted(rule.read(answer), node.children)
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
        """A child as the synthesizer reads it, with so many characters of its report."""
        source = child.grounding
        report, factor = (source.report, source.key_factor) if source else (child.report, child.key_factor)
        if child.p is not None:
            known = f"Probability: {child.p:.3f}."
        else:
            why = source.error if source else "nothing below it could be examined"
            known = f"It could not be examined ({why}); {self.settings.missing:g} stands in for its probability."
        lines = [child.claim, known, f"What decided it: {factor}" if factor else "", report[:length]]
        return "\n\n".join(filter(None, lines))

    def _fitted(self, link: Link, children: Sequence[str]) -> tuple[Link, tuple[str, ...]]:
        """The link, scaled to that of a Bayes net where the settings want one, and what was done to it."""
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
        """What a link gives, exactly, whatever the branches below share; `InvalidTree` where it cannot be used."""
        top = replace(node, link=link, p=None, pinned=None)
        limit, missing = self.settings.intercept_limit, self.settings.missing
        tree = Tree(root=node.id, nodes={node.id: top, **below}, intercept_limit=limit, missing=missing)
        return evaluate(tree).p


async def rejudge(tree: Tree, question: Question, context: Context) -> Tree:
    """The tree with every stale judgement made anew, a claim after those beneath it, and once.

    Where that fails, the old number stands, and the claim is stale still.
    """
    slot = f"{question.id}/trial {context.trial}/rejudge"
    about = TreeQuestion(question=question, as_of=context.as_of, target=question.targets[0].id, slot=slot)
    settings = SynthesizeSettings(rule=VANILLA, intercept_limit=tree.intercept_limit, missing=tree.missing)
    synthesizer = Synthesizer(about=about, context=context, settings=settings)
    done: set[str] = set()
    while waiting := [id for id in stale_claims(tree) if id not in done]:
        id = waiting[0]
        done.add(id)
        place = ClaimSurroundings.of(tree.nodes, parents_of(tree.nodes), id)
        below = {other: tree.nodes[other] for other in pre_order(tree.nodes, id) if other != id}
        result = await synthesizer.synthesize(tree.nodes[id], place, below)
        if isinstance(result.link, JudgedLink):
            report = SetReport(id=id, report=result.report, key_factor=result.key_factor)
            tree = resynthesize(tree, [SetLink(id=id, link=result.link), report])
    return tree
