"""Taking a claim apart: the analyzer adds children to the tree until it says so, or until there are enough leaves.

Algorithm 1 of Analytica (2026). One analysis sees the claim it starts from, what lies above and beside it, and what it
has added itself; it never sees more of a large tree.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from foretell.forecasters.tree.grow.claims import (
    ClaimOverlap,
    claim_faults,
    claim_likeness,
    correlated_claims,
    similar_claims,
    tidy,
)
from foretell.forecasters.tree.grow.prompting import (
    TEXT,
    ClaimSurroundings,
    NoStructuredAnswer,
    PromptText,
    StructuredClient,
    StructuredRequest,
    TreeQuestion,
    UnfitAnswer,
    fill_prompts,
    object_schema,
    sections,
)
from foretell.forecasters.tree.proposition import Proposition
from foretell.models.model import ModelError

ROOT = "P0"
MOST_CHILDREN = 8
LONGEST_CAUSALITY = 1_000


def child_id(parent: str, number: int) -> str:
    """The id of a parent's n-th child.

    >>> child_id("P0", 2), child_id("P2", 1)
    ('P2', 'P2.1')
    """
    return f"P{number}" if parent == ROOT else f"{parent}.{number}"


def depth_of(id: str) -> int:
    """How deep a claim lies, by its id.

    >>> depth_of("P0"), depth_of("P3"), depth_of("P3.1")
    (0, 1, 2)
    """
    return 0 if id == ROOT else id.count(".") + 1


@dataclass(frozen=True, kw_only=True)
class AnalysisLimits:
    """How much one analysis may add."""

    leaves: int = 10
    """Enough leaves. Looked at after every answer, so that a tree may end with a few more."""
    nodes: int | None = None
    """Most claims that may be added."""
    depth: int | None = None
    """Deepest level there may be; the root of the whole tree is at 0."""

    def __post_init__(self) -> None:
        if self.leaves < 2:
            raise ValueError(f"leaves = {self.leaves}: a claim has at least two parts or none")


@dataclass(frozen=True, kw_only=True)
class CheckedExpansion:
    """Children for one parent, checked. Parent and children are named as the answer names them."""

    parent: str
    causality: str
    children: tuple[tuple[str, str], ...]
    """Name and claim; the name may be empty."""


class AnalysisDraft:
    """The claims of one analysis: additions are checked, get our ids, and are taken over or refused with a reason."""

    def __init__(self, root: Proposition, place: ClaimSurroundings, limits: AnalysisLimits) -> None:
        self.root = root.id
        self.place = place
        self.limits = limits
        self.nodes: dict[str, Proposition] = {root.id: root}
        """The claim it started from, with its children, and every claim that was added, parents before children."""
        self.notes: list[str] = []
        """Overlaps, what was left out and what went wrong: for whoever reads the tree."""
        self._parents: dict[str, list[str]] = {root.id: []}

    @property
    def leaves(self) -> tuple[str, ...]:
        """Claims without children, in the order of the tree."""
        return tuple(id for id, node in self.nodes.items() if not node.children)

    @property
    def count(self) -> int:
        """Leaves so far."""
        return len(self.leaves)

    @property
    def wanted(self) -> int:
        """Leaves there is still room for."""
        return max(0, self.limits.leaves - self.count)

    @property
    def full(self) -> bool:
        """Whether there are enough leaves, or as many claims as there may be."""
        full = self.limits.nodes is not None and len(self.nodes) - 1 > self.limits.nodes - 2
        return full or self.count >= self.limits.leaves

    def outline(self) -> str:
        """The claims as an indented list."""
        lines: dict[str, None] = {}
        stack = [(self.root, 0)]
        while stack:
            id, level = stack.pop()
            lines[f"{'  ' * level}{id}: {self.nodes[id].claim}"] = None
            stack.extend((child, level + 1) for child in reversed(self.nodes[id].children))
        return "\n".join(lines)

    def read(self, expansions: Sequence[Mapping[str, Any]]) -> tuple[list[CheckedExpansion], list[str]]:
        """The usable part of an answer, and what is wrong with the rest, in words for the model."""
        trial = _AnswerReader(self)
        for expansion in expansions:
            trial.add(expansion)
        return trial.additions, trial.problems

    def apply(self, additions: Sequence[CheckedExpansion]) -> None:
        """Take over what was read: ids are ours, and what there is no room for is left out with a note."""
        names: dict[str, str] = {}
        for place, addition in enumerate(additions):
            parent = addition.parent if addition.parent in self.nodes else names.get(addition.parent)
            if parent is None:
                continue
            added = sum(self._known(claim) is None for _, claim in addition.children)
            over = self.limits.nodes is not None and len(self.nodes) - 1 + added > self.limits.nodes
            if over or (place and self.count >= self.limits.leaves):
                self.notes.append(f"no room was left for {len(addition.children)} more children of {parent}")
                continue
            for name, claim in addition.children:
                id = self._join(parent, claim)
                if name and name not in self.nodes:
                    names.setdefault(name, id)
            self._explain(parent, addition.causality)

    def above(self, id: str) -> set[str]:
        """All claims of this analysis above one."""
        found: set[str] = set()
        ahead = list(self._parents[id])
        while ahead:
            parent = ahead.pop()
            if parent not in found:
                found.add(parent)
                ahead.extend(self._parents[parent])
        return found

    def _known(self, claim: str) -> str | None:
        return next((id for id, node in self.nodes.items() if claim_likeness(node.claim, claim) == "same"), None)

    def _join(self, parent: str, claim: str) -> str:
        """Put a claim below a parent. One that is there already is the same claim, not another one."""
        id = self._known(claim)
        if id is None:
            own = child_id(parent, 1).rpartition("1")[0]
            taken = [int(child.removeprefix(own)) for child in self.nodes if child.removeprefix(own).isdigit()]
            id = child_id(parent, max(taken, default=0) + 1)
            self.nodes[id] = Proposition(id=id, claim=claim)
            self._parents[id] = []
        elif id == parent or id in self.above(parent) or parent in self._parents[id]:
            return id
        else:
            self.notes.append(f"{id} bears on {parent} as well: it is one claim with several parents")
        node = self.nodes[parent]
        self.nodes[parent] = replace(node, children=(*node.children, id))
        self._parents[id].append(parent)
        return id

    def _explain(self, parent: str, causality: str) -> None:
        node = self.nodes[parent]
        joined = " ".join(filter(None, (node.causality, causality)))
        self.nodes[parent] = replace(node, causality=joined[:LONGEST_CAUSALITY])


class _AnswerReader:
    """Reads one answer against a draft, without changing it."""

    def __init__(self, draft: AnalysisDraft) -> None:
        self.draft = draft
        self.additions: list[CheckedExpansion] = []
        self.problems: list[str] = []
        self._depths: dict[str, int] = {id: depth_of(id) for id in draft.nodes}
        self._above: dict[str, tuple[str, ...]] = {}
        """Claims above each new name, the nearest last."""

    def add(self, expansion: Mapping[str, Any]) -> None:
        parent = str(expansion["parent"]).strip()
        if parent not in self._depths:
            self.problems.append(f"there is no claim {parent[:40]!r} to add children to")
            return
        if self.draft.limits.depth is not None and self._depths[parent] >= self.draft.limits.depth:
            self.problems.append(f"{parent} is as deep as claims may be: leave it as it is")
            return
        children = self._children(parent, expansion["children"])
        already = len(self.draft.nodes[parent].children) if parent in self.draft.nodes else 0
        if len(children) + already < 2:
            self.problems.append(f"{parent} needs at least two children of its own, or none")
            return
        for name, claim in children:
            if name and name not in self._depths:
                self._depths[name] = self._depths[parent] + 1
                self._above[name] = (*self._over(parent), claim)
        causality = " ".join(str(expansion["causality"]).split())
        self.additions.append(CheckedExpansion(parent=parent, causality=causality, children=tuple(children)))

    def _children(self, parent: str, given: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
        room = MOST_CHILDREN - (len(self.draft.nodes[parent].children) if parent in self.draft.nodes else 0)
        if len(given) > room:
            self.problems.append(f"{parent} may have at most {MOST_CHILDREN} children: keep the most important")
        fine: list[tuple[str, str]] = []
        beside = self._beside(parent)
        for child in given[: max(room, 0)]:
            claim = tidy(str(child["claim"]))
            wrong = claim_faults(claim) or self._repeats(claim, parent, [*beside, *(one for _, one in fine)])
            if wrong:
                self.problems.append(f'the claim "{claim[:120]}" cannot be used: {", ".join(wrong)}')
            else:
                fine.append((str(child.get("id") or "").strip(), claim))
        return fine

    def _over(self, parent: str) -> tuple[str, ...]:
        """The claims from the root of everything down to a parent."""
        if parent in self._above:
            return self._above[parent]
        nodes = self.draft.nodes
        above = [nodes[id].claim for id in nodes if id in self.draft.above(parent)]
        return (*self.draft.place.path, *above, nodes[parent].claim)

    def _beside(self, parent: str) -> list[str]:
        """Claims that are children of the parent already, or stand beside the claim that is taken apart."""
        node = self.draft.nodes.get(parent)
        own = [self.draft.nodes[id].claim for id in node.children] if node else []
        return [*own, *self.draft.place.siblings]

    def _repeats(self, claim: str, parent: str, beside: Sequence[str]) -> list[str]:
        for what, claims in (("a claim above it", self._over(parent)), ("one beside it", beside)):
            for other in claims:
                how = claim_likeness(claim, other)
                if how == "same":
                    return [f'it repeats {what} ("{other[:80]}")']
                if how == "opposite":
                    return [f'it is the opposite of {what} ("{other[:80]}"), which adds nothing']
        return []


CHILD = object_schema({"id": TEXT, "claim": TEXT}, optional=("id",))
EXPANSION = object_schema(
    {"parent": TEXT, "causality": TEXT, "children": {"type": "array", "items": CHILD, "minItems": 1}}
)
SCHEMA = object_schema(
    {"plan": TEXT, "expansions": {"type": "array", "items": EXPANSION}, "complete": {"type": "boolean"}}
)


@dataclass(frozen=True, kw_only=True)
class AnalyzeSettings:
    """How far one analysis goes."""

    steps: int = 5
    """Answers of the analyzer that are taken over."""
    correlations: bool = False
    """Ask a model which siblings move together; one call for every parent."""
    hint: PromptText = "hint_linear"
    """The text that tells the analyzer how the children will be put together."""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps = {self.steps}: an analysis needs at least one")


@dataclass(frozen=True, kw_only=True)
class Analyzer:
    """The analyzer of one tree."""

    client: StructuredClient
    tree_question: TreeQuestion
    settings: AnalyzeSettings

    async def analyze(self, root: Proposition, place: ClaimSurroundings, limits: AnalysisLimits) -> AnalysisDraft:
        """Grow children below one claim. Whatever the model does, it ends in an analysis; a note says what failed."""
        draft = AnalysisDraft(root, place, limits)
        for step in range(1, self.settings.steps + 1):
            if draft.full:
                break
            try:
                if await self._step(draft, step):
                    break
            except ModelError as error:
                draft.notes.append(f"the analysis of {root.id} ended early: {error}")
                break
        draft.notes += [str(overlap) for overlap in await self._overlaps(draft)]
        return draft

    async def _step(self, draft: AnalysisDraft, number: int) -> bool:
        """One answer, taken over as far as it can be; whether the tree is complete with it."""
        wanted = StructuredRequest(
            role="analyzer",
            slot_suffix=f"{draft.root}/analysis {number}",
            system=fill_prompts("analyze", hint=fill_prompts(self.settings.hint))
            + "\n\n"
            + fill_prompts("rules", today=self.tree_question.today),
            user=self._task(draft),
            schema=SCHEMA,
        )
        answers: list[Mapping[str, Any]] = []

        def read(answer: Mapping[str, Any]) -> bool:
            answers.append(answer)
            additions, problems = draft.read(answer["expansions"])
            if not answer["expansions"] and not answer["complete"]:
                problems.append("it adds nothing and does not say that the tree is complete")
            if problems:
                raise UnfitAnswer("; ".join(problems[:8]))
            draft.apply(additions)
            return bool(answer["complete"])

        try:
            return await self.client.ask(wanted, read)
        except NoStructuredAnswer:
            if not answers:
                raise
            return self._salvage(draft, answers[-1])

    def _salvage(self, draft: AnalysisDraft, answer: Mapping[str, Any]) -> bool:
        """What was usable in the last answer; with nothing in it the analysis ends here."""
        additions, problems = draft.read(answer["expansions"])
        draft.apply(additions)
        draft.notes.append(f"of an answer on {draft.root} some claims were left out: {'; '.join(problems[:4])}")
        return bool(answer["complete"]) or not additions

    def _task(self, draft: AnalysisDraft) -> str:
        leaves = f"{draft.count} leaves" if draft.count > 1 else "one leaf"
        many = f"The tree has {leaves}; there is room for about {draft.wanted} more."
        deepest = f" Claims may be at most {draft.limits.depth} levels deep." if draft.limits.depth else ""
        return sections(
            *self.tree_question.sections(),
            draft.place.above(),
            draft.place.beside(),
            ("The tree so far", draft.outline()),
            ("Your task", f"Take {draft.root} apart further. {many}{deepest}"),
        )

    async def _overlaps(self, draft: AnalysisDraft) -> list[ClaimOverlap]:
        claims = {id: node.claim for id, node in draft.nodes.items() if id != draft.root}
        found = similar_claims(claims)
        if not self.settings.correlations:
            return found
        parents = [(id, node.children) for id, node in draft.nodes.items() if len(node.children) > 1]
        judgements = [self._judged(draft, id, children) for id, children in parents]
        return found + [overlap for pairs in await asyncio.gather(*judgements) for overlap in pairs]

    async def _judged(self, draft: AnalysisDraft, parent: str, children: tuple[str, ...]) -> list[ClaimOverlap]:
        try:
            return await correlated_claims(self.client, parent, {id: draft.nodes[id].claim for id in children})
        except ModelError as error:
            draft.notes.append(f"whether the children of {parent} are independent was not judged: {error}")
            return []
