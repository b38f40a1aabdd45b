"""Putting children together: a model says how they bear on the claim, the tree checks whether that fits, we compute."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from foretell.forecasters.tree.arithmetic.evaluation import evaluate
from foretell.forecasters.tree.arithmetic.scaling import SCALINGS, bayes_net_faults
from foretell.forecasters.tree.grow.prompting import (
    ClaimSurroundings,
    StructuredClient,
    StructuredRequest,
    TreeQuestion,
    UnfitAnswer,
    fill_prompts,
    read_report,
    sections,
)
from foretell.forecasters.tree.grow.rules import LINEAR, ModelFreeRule, Rule, SynthesisRule
from foretell.forecasters.tree.links import INTERCEPT_LIMIT, AverageLink, Link
from foretell.forecasters.tree.problems import InvalidTree
from foretell.forecasters.tree.proposition import MISSING, Proposition, Tree
from foretell.models.model import ModelError
from foretell.questions.errors import InputError

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

    client: StructuredClient
    tree_question: TreeQuestion
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
            link = rule.make(node.children, Random(f"{self.settings.seed}/{self.client.slot}/{node.id}"))
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
        values = {"children": ", ".join(node.children), "limit": f"{self.settings.intercept_limit:g}"}
        condition = CONDITION if self.settings.bayes_net or self.settings.scaling else ""
        today = self.tree_question.today
        wanted = StructuredRequest(
            role="synthesizer",
            slot_suffix=f"{node.id}/synthesis",
            system=fill_prompts(*rule.prompts, "rules", condition=condition, today=today, **values),
            user=self._task(node, place, [below[id] for id in node.children]),
            schema=rule.schema(node.children),
        )

        def read(answer: Mapping[str, Any]) -> Proposition:
            link, notes = self._fitted(rule.read(answer), node.children)
            report, key_factor = read_report(answer)
            try:
                p = self._value(node, link, below)
            except InvalidTree as error:
                raise UnfitAnswer(error.reasons) from None
            except InputError as error:
                raise UnfitAnswer(str(error)) from None
            return replace(node, link=link, p=p, report=report, key_factor=key_factor, notes=notes)

        return await self.client.ask(wanted, read)

    def _fitted(self, link: Link, children: Sequence[str]) -> tuple[Link, tuple[str, ...]]:
        """The link, scaled to that of a Bayes net where the settings want one, and what was done to it."""
        wanted = self.settings.bayes_net or self.settings.scaling is not None
        form = link.linear_form(children) if wanted else None
        faults = bayes_net_faults(form) if form is not None else []
        if form is None or not faults:
            return link, ()
        if self.settings.scaling is None:
            raise UnfitAnswer("; ".join(faults))
        scaled = SCALINGS[self.settings.scaling](form)
        return scaled.link, (scaled.note,)

    def _value(self, node: Proposition, link: Link, below: Mapping[str, Proposition]) -> float:
        """What a link gives, exactly, whatever the branches below share; `InvalidTree` where it cannot be used."""
        top = replace(node, link=link, p=None, pinned=None)
        limit, missing = self.settings.intercept_limit, self.settings.missing
        tree = Tree(root=node.id, nodes={node.id: top, **below}, intercept_limit=limit, missing=missing)
        return evaluate(tree).p

    def _task(self, node: Proposition, place: ClaimSurroundings, children: Sequence[Proposition]) -> str:
        length = LONGEST_REPORTS // len(children)
        return sections(
            *self.tree_question.sections(),
            place.above(),
            (f"The claim, {node.id}", node.claim),
            ("How its children were meant to bear on it", node.causality),
            *((f"Child {child.id}", self._child(child, length)) for child in children),
        )

    def _child(self, child: Proposition, length: int) -> str:
        source = child.grounding
        report, factor = (source.report, source.key_factor) if source else (child.report, child.key_factor)
        known = f"Probability: {child.p:.3f}." if child.p is not None else ""
        if child.p is None:
            why = source.error if source else "nothing below it could be examined"
            known = f"It could not be examined ({why}); {self.settings.missing:g} stands in for its probability."
        lines = [child.claim, known, f"What decided it: {factor}" if factor else "", report[:length]]
        return "\n\n".join(filter(None, lines))
