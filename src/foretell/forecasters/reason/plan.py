"""Plan a tree on what the scout found: for each parent a kind and its children, each answered or open."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from foretell.forecasters.forecaster import Context, prompt_template
from foretell.forecasters.tree.cases import KINDS
from foretell.forecasters.tree.grow.analyze import ROOT, child_id, depth_of
from foretell.forecasters.tree.grow.prompting import TEXT, StructuredRequest, TreeQuestion, fill_prompts, sections
from foretell.forecasters.tree.wording import claim_faults, claim_similarity, is_contained, tidy
from foretell.frozen import frozen
from foretell.models.structured_output import UnusableReply, closed_object

SPLIT = "split"
PLAN_KINDS = (*KINDS, SPLIT)
FEWEST = 2
DEEPEST = 2
"""Maximum depth of a planned claim; the root has depth 0."""
ANSWERED, OPEN = "answered", "open"
LONGEST_WHY = 1_000
_CHILD = closed_object(
    {
        "id": TEXT,
        "claim": TEXT,
        "state": {"type": "string", "enum": [ANSWERED, OPEN]},
        "evidence": {"type": "array", "items": TEXT},
    }
)
_PARENT = closed_object(
    {
        "parent": TEXT,
        "kind": {"type": "string", "enum": list(PLAN_KINDS)},
        "why": TEXT,
        "children": {"type": "array", "items": _CHILD},
    }
)
PLAN_SCHEMA = closed_object({"parents": {"type": "array", "items": _PARENT}})


@frozen
class PlannedClaim:
    """A claim of the plan; a leaf if it has no children."""

    id: str
    claim: str
    evidence: tuple[str, ...] = ()
    """Ids of the evidence that answers it; empty if it is open."""
    kind: str = ""
    """How its children bear on it, if it has some."""
    why: str = ""
    children: tuple[str, ...] = ()

    @property
    def answered(self) -> bool:
        """Whether the evidence answers it."""
        return bool(self.evidence)


ClaimPlan = Mapping[str, PlannedClaim]
"""Planned claims by id, parents before children."""


@frozen
class PlanReader:
    """Reads plans, and refuses those that cannot be used."""

    claim: str
    evidence: frozenset[str]
    """Ids of the evidence that exists."""
    most: int
    """Maximum number of children of a claim."""
    options: bool = False
    """Whether the question has several options or asks for a number, so that its parts are scenarios."""
    deepest: int = DEEPEST
    """Maximum depth of a planned claim."""

    def read(self, answer: Mapping[str, Any]) -> ClaimPlan:
        """Return the plan. Raises `UnusableReply` with everything that is wrong."""
        claims = {ROOT: PlannedClaim(id=ROOT, claim=self.claim)}
        ids = {ROOT: ROOT}
        problems: list[str] = []
        for parent in answer["parents"]:
            own = ids.get(str(parent["parent"]))
            if own is None or claims[own].children:
                problems.append(f"{str(parent['parent'])[:40]!r} is no claim that can be taken apart")
                continue
            children = [self._child(own, n, child, ids) for n, child in enumerate(parent["children"], start=1)]
            problems += self._problems(claims[own], str(parent["kind"]), children)
            why = str(parent["why"]).strip()[:LONGEST_WHY]
            kind, below = str(parent["kind"]), tuple(child.id for child in children)
            planned = claims[own]
            claims[own] = PlannedClaim(id=own, claim=planned.claim, kind=kind, why=why, children=below)
            claims |= {child.id: child for child in children}
        if not claims[ROOT].children:
            problems.append(f"{ROOT} has no children")
        if problems:
            raise UnusableReply("; ".join(problems[:8]))
        return claims

    def _child(self, parent: str, number: int, child: Mapping[str, Any], ids: dict[str, str]) -> PlannedClaim:
        id = child_id(parent, number)
        ids[str(child["id"])] = id
        cited = tuple(name for name in map(str, child["evidence"]) if name in self.evidence)
        return PlannedClaim(
            id=id, claim=tidy(str(child["claim"])), evidence=cited if child["state"] == ANSWERED else ()
        )

    def _problems(self, parent: PlannedClaim, kind: str, children: Sequence[PlannedClaim]) -> list[str]:
        problems = [f"“{child.claim[:80]}”: {fault}" for child in children for fault in claim_faults(child.claim)]
        if not FEWEST <= len(children) <= self.most:
            problems.append(f"{parent.id} has {len(children)} children; it needs {FEWEST} to {self.most}")
        if parent.id == ROOT and self.options and kind != SPLIT:
            problems.append(f"the kind of {ROOT} must be {SPLIT}, with scenarios as children")
        if depth_of(parent.id) >= self.deepest:
            problems.append(f"{parent.id} is as deep as a tree may be")
        for child in children:
            if claim_similarity(child.claim, parent.claim) in ("same", "opposite"):
                problems.append(f"“{child.claim[:80]}” is its parent in other words")
        for one, other in combinations(children, 2):
            if claim_similarity(one.claim, other.claim) in ("same", "opposite"):
                problems.append(f"“{one.claim[:80]}” and “{other.claim[:80]}” say the same or the opposite")
            elif kind != "all" and (is_contained(one.claim, other.claim) or is_contained(other.claim, one.claim)):
                problems.append(f"“{one.claim[:80]}” and “{other.claim[:80]}”: one contains the other")
        return problems


async def plan_tree(
    about: TreeQuestion, context: Context, reader: PlanReader, known: Sequence[tuple[str, str]]
) -> ClaimPlan:
    """Ask for a plan. `known` are headings with texts: the evidence, open questions and the structure."""
    request = StructuredRequest(
        role="analyzer",
        slot=f"{about.slot}/plan",
        system=fill_prompts(
            prompt_template("reason/prompts", "plan"), "rules", most=reader.most, root=ROOT, **about.rule_values
        ),
        user=sections(*about.sections(), (f"The claim, {ROOT}", reader.claim), *known),
        schema=PLAN_SCHEMA,
    )
    return await request.ask(context, reader.read)
