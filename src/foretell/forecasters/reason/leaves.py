"""Judge the leaves: answered ones of a parent in one call without tools, open ones by research."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from foretell.data.untrusted import listed_for_prompt
from foretell.forecasters.agent.answer_format import as_probability
from foretell.forecasters.agent.prompts import PRICE_RULE
from foretell.forecasters.forecaster import Context, MatchingSource, prompt_template
from foretell.forecasters.reason.evidence import EvidenceItem, cited_items, evidence_list
from foretell.forecasters.reason.outside import outside_text
from foretell.forecasters.reason.plan import ClaimPlan, PlannedClaim
from foretell.forecasters.tree.grow.ground import GroundingPool, GroundingResult, Leaf, LeafBudget, gather_or_cancel
from foretell.forecasters.tree.grow.prompting import (
    CHANCE,
    TEXT,
    ClaimSurroundings,
    StructuredRequest,
    TreeQuestion,
    fill_prompts,
    read_report,
    sections,
)
from foretell.forecasters.tree.proposition import EVIDENCE_ID, Grounding
from foretell.frozen import frozen
from foretell.models.model import BudgetExceeded, ModelError
from foretell.models.structured_output import UnusableReply, closed_object
from foretell.questions.question import Question
from foretell.questions.trace import NodeGrounded

CITED_BY_ID = "Earlier research on the whole question found this. Cite it by its id in your report."
FROM_EVIDENCE = "evidence"
"""Name of the grounder of answered leaves."""
START_FROM_PRICE = f"Start from what these say; several markets on one claim count as one. {PRICE_RULE}"
ANSWERED_ROUTE = f"{FROM_EVIDENCE}: what was found before answers it"
_LEAF = closed_object({"report": TEXT, "key_factor": TEXT, "evidence": {"type": "array", "items": TEXT}, "p": CHANCE})


@frozen
class LeafJudge:
    """Judges the leaves of one plan."""

    about: TreeQuestion
    context: Context
    pool: GroundingPool
    evidence: Sequence[EvidenceItem]
    evidence_tokens: int
    dollars: float | None = None
    """Budget of all leaves together; None for no limit."""

    async def judge(self, plan: ClaimPlan) -> dict[str, GroundingResult]:
        """Return the result of each leaf. An answered leaf that could not be judged is researched."""
        leaves = {id: claim for id, claim in plan.items() if not claim.children}
        groups = [
            [leaves[id] for id in parent.children if id in leaves and leaves[id].answered] for parent in plan.values()
        ]
        batches = await gather_or_cancel(
            self.answered(parent, group) for parent, group in zip(plan.values(), groups, strict=True) if group
        )
        results = {id: result for batch in batches for id, result in batch.items()}
        open_leaves = [claim for id, claim in leaves.items() if id not in results]
        share = None if self.dollars is None or not open_leaves else self.dollars / len(open_leaves)
        researched = await gather_or_cancel(self.research(plan, claim, share) for claim in open_leaves)
        results |= {claim.id: result for claim, result in zip(open_leaves, researched, strict=True)}
        return {id: results[id] for id in leaves}

    async def answered(self, parent: PlannedClaim, leaves: Sequence[PlannedClaim]) -> dict[str, GroundingResult]:
        """Judge answered leaves in one call; empty if no usable answer came."""
        ids = [leaf.id for leaf in leaves]
        known = await gather_or_cancel(self._known(self._question(leaf)) for leaf in leaves)
        request = StructuredRequest(
            role="grounder",
            slot=f"{self.about.slot}/{parent.id}/answered",
            system=fill_prompts(
                prompt_template("reason/prompts", "leaves"), "rules", children=", ".join(ids), **self.about.rule_values
            ),
            user=sections(
                *self.about.sections(),
                (f"What they are parts of, {parent.id}", parent.claim),
                self._evidence(),
                *(
                    (f"Claim {leaf.id}", "\n\n".join(filter(None, [leaf.claim, outside, _listed(matching)])))
                    for leaf, (outside, matching) in zip(leaves, known, strict=True)
                ),
            ),
            schema=closed_object({"leaves": closed_object({id: _LEAF for id in ids})}),
        )
        try:
            results = await request.ask(self.context, self._read)
        except BudgetExceeded:
            raise
        except ModelError:
            return {}
        for id, (_, matching) in zip(ids, known, strict=True):
            results[id] = results[id].after_prices(_prices(matching))
        for id, result in results.items():
            self.context.emit(
                NodeGrounded(node=id, tree=self.about.target, p=result.p, grounder=result.grounding.grounder)
            )
        return results

    def _read(self, answer: Mapping[str, Any]) -> dict[str, GroundingResult]:
        results: dict[str, GroundingResult] = {}
        for id, leaf in cast("Mapping[str, Mapping[str, Any]]", answer["leaves"]).items():
            report, key_factor = read_report(leaf)
            if not report:
                raise UnusableReply(f"the report of {id} is empty: write down what its probability rests on")
            cited = cited_items([str(name) for name in leaf["evidence"]], self.evidence)
            grounding = Grounding(
                grounder=FROM_EVIDENCE, report=report, key_factor=key_factor, sources=cited, route=(ANSWERED_ROUTE,)
            )
            results[id] = GroundingResult(p=as_probability(leaf["p"]), grounding=grounding)
        return results

    async def research(self, plan: ClaimPlan, claim: PlannedClaim, dollars: float | None = None) -> GroundingResult:
        """Research one leaf with tools, knowing what was found before."""
        leaf = Leaf(
            id=claim.id,
            claim=claim.claim,
            tree_question=self.about,
            surroundings=_surroundings(plan, claim.id),
            slot=f"{self.about.slot}/{claim.id}/grounding",
            budget=LeafBudget(dollars),
        )
        question = self.about.question
        outside, matching = await self._known(leaf.question)
        material = sections(
            ("Resolution criteria of the whole", question.criteria),
            ("Background", question.background),
            self._evidence(),
            ("Outside view", outside),
            ("Markets and series on the same claim", _listed(matching)),
        )
        result = await self.pool.ground(replace(leaf, material=material, prices=_prices(matching)), self.context)
        cited = cited_items(EVIDENCE_ID.findall(result.grounding.report), self.evidence)
        grounding = replace(result.grounding, sources=(*result.grounding.sources, *cited))
        return replace(result, grounding=grounding)

    def _evidence(self) -> tuple[str, str]:
        listed = evidence_list(self.evidence, self.evidence_tokens)
        return "Evidence found so far", f"{CITED_BY_ID}\n\n{listed}" if listed else ""

    def _question(self, leaf: PlannedClaim) -> Question:
        """Return a leaf as a question of its own."""
        return Leaf(id=leaf.id, claim=leaf.claim, tree_question=self.about).question

    async def _known(self, question: Question) -> tuple[str, Sequence[MatchingSource]]:
        """Return the outside view of a leaf, and the markets and series that ask the same."""
        return outside_text(question, self.context), await self.context.matching_sources(question, self.context)


def _listed(matching: Sequence[MatchingSource]) -> str:
    """Return the markets and series for a prompt; empty if there are none."""
    listed = "\n".join(f"- {listed_for_prompt(' '.join(source.text.split()))}" for source in matching)
    return f"{START_FROM_PRICE}\n{listed}" if listed else ""


def _prices(matching: Sequence[MatchingSource]) -> tuple[float, ...]:
    return tuple(source.price for source in matching if source.price is not None)


def _surroundings(plan: ClaimPlan, id: str) -> ClaimSurroundings:
    """Return the claims above and beside a planned claim."""
    above = {child: parent.id for parent in plan.values() for child in parent.children}
    path: list[str] = []
    place = id
    while place in above:
        place = above[place]
        path.insert(0, plan[place].claim)
    beside = [plan[other].claim for other in plan[above[id]].children if other != id] if id in above else []
    return ClaimSurroundings(path=tuple(path), siblings=tuple(beside))
