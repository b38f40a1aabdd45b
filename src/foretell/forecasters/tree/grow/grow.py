"""Growing a tree: whatever can be done is under way, and what becomes possible by it is started at once.

Analyticaⁿ (2026) as a frontier loop. A claim is taken apart; its leaves are taken apart again, as often as the settings
say, or grounded the moment it is sure that they stay leaves; a claim is put together as soon as all its children have
their numbers. No stage waits for another one to end, so a tree takes about as long as its longest chain of calls.

What a model is asked depends on its place in the tree and on earlier answers, never on the order in which answers
arrive: a tree that is grown again from the journal asks the very same questions.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.grow.analyze import ROOT, AnalysisLimits, Analyzer, AnalyzeSettings, ClaimAnalysis
from foretell.forecasters.tree.grow.budget import FOR_LEAVES, LeafBudget, SubtreeBudget, TreeSizeSettings, cost_of_leaf
from foretell.forecasters.tree.grow.claims import repeated_claims
from foretell.forecasters.tree.grow.event_log import TreeEventLog
from foretell.forecasters.tree.grow.ground import GroundingPool, GroundingResult, Leaf
from foretell.forecasters.tree.grow.prompting import ClaimSurroundings, StructuredClient, TreeQuestion
from foretell.forecasters.tree.grow.synthesize import SynthesisResult, Synthesizer, SynthesizeSettings
from foretell.forecasters.tree.proposition import Proposition, Tree, leaves
from foretell.forecasters.tree.tree_json import link_to_dict
from foretell.questions.trace import NodeAnalyzed, NodeGrounded, NodeSynthesized

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class GrowthPlan:
    """Everything one tree is grown with."""

    matter: TreeQuestion
    claim: str
    """The root."""
    context: Context
    crew: GroundingPool
    record: TreeEventLog
    size: TreeSizeSettings = field(default_factory=TreeSizeSettings)
    analyze: AnalyzeSettings = field(default_factory=AnalyzeSettings)
    synthesize: SynthesizeSettings = field(default_factory=SynthesizeSettings)
    attempts: int = 3
    """How often an answer that cannot be used is asked for."""

    @property
    def slot(self) -> str:
        """Tells this tree from others of the same question and trial."""
        return f"{self.matter.question.id}/trial {self.context.trial}/tree {self.matter.target}"


async def grow(plan: GrowthPlan) -> Tree:
    """The finished tree, every number worked out. Leaves that failed are marked, and so is all that leans on them."""
    return await TreeGrowth(plan).run()


class TreeGrowth:
    """A tree while it grows. Only the loop in `run` changes it; jobs bring results."""

    def __init__(self, plan: GrowthPlan) -> None:
        self.plan = plan
        self.nodes: dict[str, Proposition] = {ROOT: Proposition(id=ROOT, claim=plan.claim)}
        self.notes: dict[str, tuple[str, ...]] = {}
        """By the claim that was taken apart."""
        self._parents: dict[str, list[str]] = {ROOT: []}
        self._waiting: dict[str, int] = {}
        """Children of a claim that have no result yet."""
        self._finished: asyncio.Queue[Callable[[], None]] = asyncio.Queue()
        self._jobs: set[asyncio.Task[None]] = set()
        self._under_way = 0

    async def run(self) -> Tree:
        """Start at the root, take in what comes, until nothing is under way."""
        dollars = self.plan.size.dollars
        whole = SubtreeBudget(
            rounds=self.plan.size.rounds,
            nodes=self.plan.size.nodes - 1,
            leaves=self.plan.size.most_leaves,
            dollars=None if dollars is None else FOR_LEAVES * dollars,
            each=cost_of_leaf(self.plan.context),
        )
        try:
            self._open(ROOT, whole)
            while self._under_way:
                take_in = await self._finished.get()
                self._under_way -= 1
                take_in()
        finally:
            for job in self._jobs:
                job.cancel()
            await asyncio.gather(*self._jobs, return_exceptions=True)
        return self._tree()

    def _start(self, work: Callable[[], Awaitable[T]], take_in: Callable[[T], None]) -> None:
        async def carry_out() -> None:
            try:
                found = await work()
            except Exception as error:  # carried to the loop, which raises it there
                self._finished.put_nowait(partial(_fail, error))
            else:
                self._finished.put_nowait(partial(take_in, found))

        self._under_way += 1
        job = asyncio.create_task(carry_out())
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)

    def _open(self, id: str, allotted: SubtreeBudget) -> None:
        """A claim without children: take it apart if there is room, else ground it."""
        room = allotted.room(self.plan.size, id)
        if room is None:
            self._start(partial(self._ground, id, allotted), partial(self._grounded, id))
        else:
            self._start(partial(self._analyze, id, room), partial(self._analyzed, allotted))

    async def _analyze(self, id: str, room: AnalysisLimits) -> ClaimAnalysis:
        emit = self.plan.record.of("analysis", id)
        asker = self._asker(replace(self.plan.context, emit=emit))
        analyzer = Analyzer(asker=asker, matter=self.plan.matter, settings=self.plan.analyze)
        found = await analyzer.analyze(self.nodes[id], self.place(id), room)
        added = {other: node.claim for other, node in found.nodes.items() if other != id}
        tree = self.plan.matter.target
        emit(NodeAnalyzed(node=id, tree=tree, added=tuple(added), claims=added, notes=found.notes))
        return found

    def _analyzed(self, allotted: SubtreeBudget, found: ClaimAnalysis) -> None:
        self.nodes |= found.nodes
        self.notes[found.root] = found.notes
        for id, node in found.nodes.items():
            for child in node.children:
                self._parents.setdefault(child, []).append(id)
            if node.children:
                self._waiting[id] = len(node.children)
        share = allotted.share(added=len(found.nodes) - 1, among=len(found.leaves))
        if found.leaves == (found.root,):
            share = replace(share, rounds=0)
        for leaf in found.leaves:
            self._open(leaf, share)

    async def _ground(self, id: str, allotted: SubtreeBudget) -> GroundingResult:
        emit = self.plan.record.of("grounding", id)
        leaf = Leaf(
            id=id,
            claim=self.nodes[id].claim,
            matter=self.plan.matter,
            place=self.place(id),
            slot=f"{self.plan.slot}/{id}/grounding",
            purse=LeafBudget(id, allotted.dollars),
        )
        found = await self.plan.crew.ground(leaf, replace(self.plan.context, emit=emit))
        told = found.grounding
        emit(
            NodeGrounded(
                node=id,
                tree=self.plan.matter.target,
                p=found.p,
                grounder=told.grounder,
                attempts=found.attempts,
                error=told.error,
            )
        )
        return found

    def _grounded(self, id: str, found: GroundingResult) -> None:
        self.nodes[id] = replace(self.nodes[id], p=found.p, grounding=found.grounding)
        self._settle(id)

    def _settle(self, id: str) -> None:
        """A claim has its result: parents that waited only for it can be put together."""
        for parent in self._parents[id]:
            self._waiting[parent] -= 1
            if not self._waiting[parent]:
                self._start(partial(self._synthesize, parent), partial(self._synthesized, parent))

    async def _synthesize(self, id: str) -> SynthesisResult:
        emit = self.plan.record.of("synthesis", id)
        asker = self._asker(replace(self.plan.context, emit=emit))
        synthesizer = Synthesizer(asker=asker, matter=self.plan.matter, settings=self.plan.synthesize)
        found = await synthesizer.synthesize(self.nodes[id], self.place(id), self._below(id))
        link = link_to_dict(found.link) if found.link is not None else {}
        emit(NodeSynthesized(node=id, tree=self.plan.matter.target, p=found.p, link=link, notes=found.notes))
        return found

    def _synthesized(self, id: str, found: SynthesisResult) -> None:
        self.nodes[id] = replace(
            self.nodes[id],
            link=found.link,
            p=found.p,
            report=found.report,
            key_factor=found.key_factor,
            notes=found.notes,
        )
        self._settle(id)

    def _below(self, id: str) -> dict[str, Proposition]:
        """What a synthesis computes with: the children alone, or all that lies below where some of it is shared."""
        found: dict[str, Proposition] = {}
        ahead = list(self.nodes[id].children)
        while ahead:
            below = ahead.pop()
            if below not in found:
                found[below] = self.nodes[below]
                ahead.extend(self.nodes[below].children)
        if any(len(self._parents[below]) > 1 for below in found):
            return found
        children = self.nodes[id].children
        return {child: replace(found[child], children=(), link=None) for child in children}

    def place(self, id: str) -> ClaimSurroundings:
        """The claims above a node and beside it."""
        path: list[str] = []
        above = self._parents[id][:1]
        beside = [child for parent in above for child in self.nodes[parent].children if child != id]
        while above:
            path.append(self.nodes[above[0]].claim)
            above = self._parents[above[0]][:1]
        return ClaimSurroundings(
            path=tuple(reversed(path)), siblings=tuple(self.nodes[other].claim for other in beside)
        )

    def _asker(self, context: Context) -> StructuredClient:
        return StructuredClient(context=context, slot=self.plan.slot, attempts=self.plan.attempts)

    def _tree(self) -> Tree:
        settings = self.plan.synthesize
        grown = Tree(root=ROOT, nodes=self.nodes, as_of=self.plan.context.as_of)
        ordered = {id: self.nodes[id] for id in _down(grown)}
        notes = [note for id in ordered for note in self.notes.get(id, ())]
        claims = {id: node.claim for id, node in ordered.items()}
        notes += [f"{' and '.join(ids)} say the same" for ids in repeated_claims(claims)]
        failed = [id for id in leaves(grown) if self.nodes[id].p is None]
        if failed:
            notes.append(f"{settings.missing:g} stands in for leaves that could not be grounded: {', '.join(failed)}")
        tree = replace(
            grown,
            nodes=ordered,
            notes=tuple(dict.fromkeys(notes)),
            intercept_limit=settings.intercept_limit,
            missing=settings.missing,
        )
        return evaluated(tree)


def _fail(error: Exception) -> None:
    raise error


def _down(tree: Tree) -> list[str]:
    """Every claim, parents before children, branch by branch."""
    order: dict[str, None] = {}
    stack = [tree.root]
    while stack:
        id = stack.pop()
        if id not in order:
            order[id] = None
            stack.extend(reversed(tree.nodes[id].children))
    return list(order)
