"""Break down a claim: the analyzer adds children until it is done or there are enough leaves.

Algorithm 1 of Analytica (2026). One analysis sees the claim it starts from, the claims above and beside it, and those
it has added itself; it never sees more of a large tree.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.grow.correlations import JudgedPairs, correlated_claims
from foretell.forecasters.tree.grow.prompting import (
    TEXT,
    ClaimSurroundings,
    StructuredRequest,
    TreeQuestion,
    fill_prompts,
    sections,
)
from foretell.forecasters.tree.proposition import ROOT, Proposition
from foretell.forecasters.tree.settings import TreeSettings
from foretell.forecasters.tree.wording import claim_faults, claim_similarity, similar_claims, tidy
from foretell.frozen import frozen
from foretell.models.model import ModelError
from foretell.models.structured_output import NoUsableAnswer, UnusableReply, closed_object
from foretell.plugins import load

MOST_CHILDREN = 8
LONGEST_CAUSALITY = 1_000


def child_id(parent: str, number: int) -> str:
    """Return the id of a parent's n-th child.

    >>> child_id("P0", 2), child_id("P2", 1)
    ('P2', 'P2.1')
    """
    return f"P{number}" if parent == ROOT else f"{parent}.{number}"


def depth_of(id: str) -> int:
    """Return the depth of a claim, read from its id.

    >>> depth_of("P0"), depth_of("P3"), depth_of("P3.1")
    (0, 1, 2)
    """
    return 0 if id == ROOT else id.count(".") + 1


@frozen
class AnalysisLimits:
    """Limits on what one analysis may add."""

    leaves: int = 10
    """Target number of leaves. Checked after every reply, so it may be exceeded by a few."""
    nodes: int | None = None
    """Maximum number of added claims."""
    depth: int | None = None
    """Maximum depth; the root of the whole tree has depth 0."""

    def __post_init__(self) -> None:
        if self.leaves < 2:
            raise ValueError(f"leaves = {self.leaves}: a claim has at least two parts or none")


class Expansion(NamedTuple):
    """Validated children for one parent, with the names used in the reply."""

    parent: str
    causality: str
    children: list[tuple[str, str]]
    """Name and claim of each child; the name may be empty."""


class AnalysisDraft:
    """The claims of one analysis. Additions are validated, get ids, and are accepted or rejected with a reason."""

    def __init__(self, root: Proposition, place: ClaimSurroundings, limits: AnalysisLimits) -> None:
        self.root = root.id
        self.place = place
        self.limits = limits
        self.nodes: dict[str, Proposition] = {root.id: root}
        """The claim it started from, with its children, and every added claim, parents before children."""
        self.notes: list[str] = []
        """Notes for readers of the tree: overlaps, omissions and errors."""
        self._parents: dict[str, list[str]] = {root.id: []}

    @property
    def leaves(self) -> tuple[str, ...]:
        """Claims without children, in the order of the tree."""
        return tuple(id for id, node in self.nodes.items() if not node.children)

    @property
    def full(self) -> bool:
        """Whether a limit on leaves or claims is reached."""
        full = self.limits.nodes is not None and len(self.nodes) - 1 > self.limits.nodes - 2
        return full or len(self.leaves) >= self.limits.leaves

    def outline(self) -> str:
        """Format the claims as an indented list."""
        lines: dict[str, None] = {}
        stack = [(self.root, 0)]
        while stack:
            id, level = stack.pop()
            lines[f"{'  ' * level}{id}: {self.nodes[id].claim}"] = None
            stack.extend((child, level + 1) for child in reversed(self.nodes[id].children))
        return "\n".join(lines)

    def read(self, expansions: Sequence[Mapping[str, Any]]) -> tuple[list[Expansion], list[str]]:
        """Return the usable part of a reply, and messages to the model about the rest."""
        usable: list[Expansion] = []
        problems: list[str] = []
        depths = {id: depth_of(id) for id in self.nodes}
        new_paths: dict[str, tuple[str, ...]] = {}
        for expansion in expansions:
            parent = str(expansion["parent"]).strip()
            if parent not in depths:
                problems.append(f"there is no claim {parent[:40]!r} to add children to")
                continue
            if self.limits.depth is not None and depths[parent] >= self.limits.depth:
                problems.append(f"{parent} is as deep as claims may be: leave it as it is")
                continue
            above = new_paths.get(parent) or self._path(parent)
            siblings = [self.nodes[id].claim for id in self.nodes[parent].children] if parent in self.nodes else []
            children, wrong = self._usable_children(parent, expansion["children"], above, siblings)
            problems += wrong
            if len(children) + len(siblings) < 2:
                problems.append(f"{parent} needs at least two children of its own, or none")
                continue
            for name, claim in children:
                if name and name not in depths:
                    depths[name] = depths[parent] + 1
                    new_paths[name] = (*above, claim)
            usable.append(Expansion(parent, " ".join(str(expansion["causality"]).split()), children))
        return usable, problems

    def _path(self, id: str) -> tuple[str, ...]:
        """Return the claims from the root of the whole tree down to this one."""
        above = self._above(id)
        own = [node.claim for other, node in self.nodes.items() if other in above]
        return (*self.place.path, *own, self.nodes[id].claim)

    def _usable_children(
        self, parent: str, proposed: Sequence[Mapping[str, Any]], above: Sequence[str], siblings: Sequence[str]
    ) -> tuple[list[tuple[str, str]], list[str]]:
        """Return the children that can be added, and the problems of the others."""
        usable: list[tuple[str, str]] = []
        problems: list[str] = []
        room = MOST_CHILDREN - len(siblings)
        if len(proposed) > room:
            problems.append(f"{parent} may have at most {MOST_CHILDREN} children: keep the most important")
        for child in proposed[: max(room, 0)]:
            claim = tidy(str(child["claim"]))
            beside = [*siblings, *self.place.siblings, *(other for _, other in usable)]
            wrong = claim_faults(claim) or _repetitions(claim, above, beside)
            if wrong:
                problems.append(f'the claim "{claim[:120]}" cannot be used: {", ".join(wrong)}')
            else:
                usable.append((str(child.get("id") or "").strip(), claim))
        return usable, problems

    def apply(self, additions: Sequence[Expansion]) -> None:
        """Add the children under new ids. Those that exceed the limits are left out, with a note."""
        names: dict[str, str] = {}
        for place, addition in enumerate(additions):
            parent = addition.parent if addition.parent in self.nodes else names.get(addition.parent)
            if parent is None:
                continue
            known = [self._known(claim) for _, claim in addition.children]
            taken = {parent, *self._above(parent), *self.nodes[parent].children}
            if len(self.nodes[parent].children) + sum(id not in taken for id in known) < 2:
                self.notes.append(f"the proposed children of {parent} are already above or below it")
                continue
            over = self.limits.nodes is not None and len(self.nodes) - 1 + known.count(None) > self.limits.nodes
            if over or (place and len(self.leaves) >= self.limits.leaves):
                self.notes.append(f"no room was left for {len(addition.children)} more children of {parent}")
                continue
            for name, claim in addition.children:
                id = self._join(parent, claim)
                if name and name not in self.nodes:
                    names.setdefault(name, id)
            node = self.nodes[parent]
            causality = " ".join(filter(None, (node.causality, addition.causality)))
            self.nodes[parent] = replace(node, causality=causality[:LONGEST_CAUSALITY])

    def _above(self, id: str) -> set[str]:
        """Return the ids of all ancestors of a claim within this analysis."""
        above: set[str] = set()
        ahead = list(self._parents[id])
        while ahead:
            parent = ahead.pop()
            if parent not in above:
                above.add(parent)
                ahead.extend(self._parents[parent])
        return above

    def _known(self, claim: str) -> str | None:
        return next((id for id, node in self.nodes.items() if claim_similarity(node.claim, claim) == "same"), None)

    def _join(self, parent: str, claim: str) -> str:
        """Add a claim under a parent and return its id; an existing claim is shared instead of duplicated."""
        id = self._known(claim)
        if id is None:
            own = child_id(parent, 1).rpartition("1")[0]
            taken = [int(child.removeprefix(own)) for child in self.nodes if child.removeprefix(own).isdigit()]
            id = child_id(parent, max(taken, default=0) + 1)
            self.nodes[id] = Proposition(id=id, claim=claim)
            self._parents[id] = []
        elif id == parent or id in self._above(parent) or parent in self._parents[id]:
            return id
        else:
            self.notes.append(f"{id} bears on {parent} as well: it is one claim with several parents")
        node = self.nodes[parent]
        self.nodes[parent] = replace(node, children=(*node.children, id))
        self._parents[id].append(parent)
        return id


def _repetitions(claim: str, above: Sequence[str], beside: Sequence[str]) -> list[str]:
    """Return the first ancestor or sibling that says the same or the opposite, as a reason for rejecting the claim."""
    for what, claims in (("a claim above it", above), ("one beside it", beside)):
        for other in claims:
            how = claim_similarity(claim, other)
            if how == "same":
                return [f'it repeats {what} ("{other[:80]}")']
            if how == "opposite":
                return [f'it is the opposite of {what} ("{other[:80]}"), which adds nothing']
    return []


CHILD = closed_object({"id": TEXT, "claim": TEXT}, optional=("id",))
EXPANSION = closed_object(
    {"parent": TEXT, "causality": TEXT, "children": {"type": "array", "items": CHILD, "minItems": 1}}
)
SCHEMA = closed_object(
    {"plan": TEXT, "expansions": {"type": "array", "items": EXPANSION}, "complete": {"type": "boolean"}}
)


async def analyze(about: TreeQuestion, context: Context, settings: TreeSettings, draft: AnalysisDraft) -> None:
    """Add children below the draft's claim. Always terminates; if a model fails, it ends early with a note."""
    hint = fill_prompts(load("synthesis_rules", settings.rule).hint)
    system = fill_prompts("analyze", hint=hint) + "\n\n" + fill_prompts("rules", **about.rule_values)
    for step in range(1, settings.steps + 1):
        if draft.full:
            break
        request = StructuredRequest(
            role="analyzer",
            slot=f"{about.slot}/{draft.root}/analysis {step}",
            system=system,
            user=_task(about, draft),
            schema=SCHEMA,
        )
        try:
            if await _extend(draft, request, context):
                break
        except ModelError as error:
            draft.notes.append(f"the analysis of {draft.root} ended early: {error}")
            break
    draft.notes += similar_claims({id: node.claim for id, node in draft.nodes.items() if id != draft.root})
    if settings.correlations:
        parents = [id for id, node in draft.nodes.items() if len(node.children) > 1]
        judged = await asyncio.gather(*(_correlations(about, context, draft, parent) for parent in parents))
        for parent, pairs in zip(parents, judged, strict=True):
            draft.nodes[parent] = replace(draft.nodes[parent], together=pairs.together)
            draft.notes += pairs.notes


async def _extend(draft: AnalysisDraft, request: StructuredRequest, context: Context) -> bool:
    """Ask for one reply and apply it; return whether the analysis is complete."""
    answers: list[Mapping[str, Any]] = []

    def read(answer: Mapping[str, Any]) -> bool:
        answers.append(answer)
        additions, problems = draft.read(answer["expansions"])
        if not answer["expansions"] and not answer["complete"]:
            problems.append("it adds nothing and does not say that the tree is complete")
        if problems:
            raise UnusableReply("; ".join(problems[:8]))
        draft.apply(additions)
        return bool(answer["complete"])

    try:
        return await request.ask(context, read)
    except NoUsableAnswer:
        if not answers:
            raise
    # Apply the usable part of the last answer; if there is none, the analysis ends.
    additions, problems = draft.read(answers[-1]["expansions"])
    draft.apply(additions)
    draft.notes.append(f"some claims of an answer on {draft.root} were left out: {'; '.join(problems[:4])}")
    return bool(answers[-1]["complete"]) or not additions


def _task(about: TreeQuestion, draft: AnalysisDraft) -> str:
    count = len(draft.leaves)
    leaves = f"{count} leaves" if count > 1 else "one leaf"
    many = f"The tree has {leaves}; there is room for about {max(0, draft.limits.leaves - count)} more."
    deepest = f" Claims may be at most {draft.limits.depth} levels deep." if draft.limits.depth else ""
    return sections(
        *about.sections(),
        draft.place.above(),
        draft.place.beside(),
        ("The tree so far", draft.outline()),
        ("Your task", f"Take {draft.root} apart further. {many}{deepest}"),
    )


async def _correlations(about: TreeQuestion, context: Context, draft: AnalysisDraft, parent: str) -> JudgedPairs:
    children = {id: draft.nodes[id].claim for id in draft.nodes[parent].children}
    try:
        return await correlated_claims(about, context, parent, children)
    except ModelError as error:
        return JudgedPairs({}, [f"the correlations of the children of {parent} were not judged: {error}"])
