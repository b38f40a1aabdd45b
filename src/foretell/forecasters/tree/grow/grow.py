"""Grow a tree, starting every job as soon as possible.

Implements Analyticaⁿ (2026) as a frontier loop. A claim is broken down. Its leaves are broken down again, as many times
as the settings say, or grounded as soon as it is certain that they stay leaves. A claim is synthesised as soon as all
its children have results. No stage waits for another to end, so a tree takes about as long as its longest chain of
calls.

What a model is asked depends on the position in the tree and on earlier answers, never on the order in which answers
arrive: a tree that is grown again from the journal makes exactly the same requests.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from foretell.forecasters.forecaster import Context, EventLog
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.grow.analyze import AnalysisDraft, AnalysisLimits, analyze
from foretell.forecasters.tree.grow.ground import (
    FOR_LEAVES,
    GroundingPool,
    GroundingResult,
    Leaf,
    LeafBudget,
    SubtreeBudget,
    cost_of_leaf,
)
from foretell.forecasters.tree.grow.prompting import ClaimSurroundings, TreeQuestion
from foretell.forecasters.tree.grow.synthesize import Synthesizer
from foretell.forecasters.tree.proposition import ROOT, Proposition, Tree, leaves, post_order, pre_order
from foretell.forecasters.tree.settings import TreeSettings
from foretell.forecasters.tree.tree_file import to_dict
from foretell.forecasters.tree.wording import repeated_claims
from foretell.questions.trace import NodeAnalyzed, NodeSynthesized

T = TypeVar("T")
TreeJob = tuple[str, str]
"""A stage ("analysis", "grounding" or "synthesis") and the claim."""


def tree_job_order(tree: Tree) -> list[TreeJob]:
    """Return the order of jobs: analyses from the root down, then leaves, then syntheses from the leaves up."""
    down, up = list(tree.nodes), post_order(tree)
    stages = (("analysis", down), ("grounding", down), ("synthesis", up))
    return [(stage, node) for stage, nodes in stages for node in nodes]


@dataclass(kw_only=True)
class TreeGrowth:
    """A growing tree. Only the loop in `run` changes it; jobs return results."""

    about: TreeQuestion
    context: Context
    pool: GroundingPool
    log: EventLog[TreeJob]
    settings: TreeSettings = field(default_factory=TreeSettings)
    dollars: float | None = None
    """Budget of this tree in dollars; None for no limit."""
    seed: int = 0
    """Seed for random weights."""
    root: str = ROOT
    """Id of the claim from which the tree grows."""
    above: ClaimSurroundings = field(default_factory=ClaimSurroundings)
    """Ancestors and siblings of that claim, if it is part of a larger tree."""

    def __post_init__(self) -> None:
        self._nodes = {self.root: Proposition(id=self.root, claim=self.about.claim)}
        self._notes: dict[str, tuple[str, ...]] = {}
        """Notes of each analysed claim."""
        self._parents: dict[str, list[str]] = {self.root: []}
        self._waiting: dict[str, int] = {}
        """Number of children without a result yet, by claim."""
        self._finished: asyncio.Queue[Callable[[], None]] = asyncio.Queue()
        self._jobs: set[asyncio.Task[None]] = set()
        self._under_way = 0

    async def run(self) -> Tree:
        """Grow the tree and compute its probabilities. Failed leaves and the claims that depend on them are marked.

        Starts at the root and accepts results until no job is in flight.
        """
        whole = SubtreeBudget(
            rounds=self.settings.rounds,
            nodes=self.settings.nodes - 1,
            leaves=self.settings.max_leaves,
            dollars=None if self.dollars is None else FOR_LEAVES * self.dollars,
            each=cost_of_leaf(self.context) * self.settings.trials,
        )
        try:
            self._open(self.root, whole)
            while self._under_way:
                accept = await self._finished.get()
                self._under_way -= 1
                accept()
        finally:
            for job in self._jobs:
                job.cancel()
            await asyncio.gather(*self._jobs, return_exceptions=True)
        return self._tree()

    def _start(self, work: Callable[[], Awaitable[T]], accept: Callable[[T], None]) -> None:
        async def run_job() -> None:
            try:
                result = await work()
            except Exception as error:  # raised by the loop in `run`
                self._finished.put_nowait(partial(_fail, error))
            else:
                self._finished.put_nowait(partial(accept, result))

        self._under_way += 1
        job = asyncio.create_task(run_job())
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)

    def _open(self, id: str, budget: SubtreeBudget) -> None:
        """Break down a new leaf if the budget allows, otherwise ground it."""
        limits = budget.analysis_limits(self.settings, id)
        if limits is None:
            self._start(partial(self._ground, id, budget), partial(self._grounded, id))
        else:
            self._start(partial(self._analyze, id, limits), partial(self._analyzed, budget))

    async def _analyze(self, id: str, limits: AnalysisLimits) -> AnalysisDraft:
        context = replace(self.context, emit=self.log.job(("analysis", id)))
        draft = AnalysisDraft(self._nodes[id], self._surroundings(id), limits)
        await analyze(self.about, context, self.settings, draft)
        added = {other: node.claim for other, node in draft.nodes.items() if other != id}
        tree, notes = self.about.target, tuple(draft.notes)
        context.emit(NodeAnalyzed(node=id, tree=tree, added=tuple(added), claims=added, notes=notes))
        return draft

    def _analyzed(self, budget: SubtreeBudget, draft: AnalysisDraft) -> None:
        self._nodes |= draft.nodes
        self._notes[draft.root] = tuple(draft.notes)
        for id, node in draft.nodes.items():
            for child in node.children:
                self._parents.setdefault(child, []).append(id)
            if node.children:
                self._waiting[id] = len(node.children)
        share = budget.per_leaf(added=len(draft.nodes) - 1, among=len(draft.leaves))
        if draft.leaves == (draft.root,):
            share = replace(share, rounds=0)
        for leaf in draft.leaves:
            self._open(leaf, share)

    async def _ground(self, id: str, budget: SubtreeBudget) -> GroundingResult:
        context = replace(self.context, emit=self.log.job(("grounding", id)))
        leaf = Leaf(
            id=id,
            claim=self._nodes[id].claim,
            tree_question=self.about,
            surroundings=self._surroundings(id),
            slot=f"{self.about.slot}/{id}/grounding",
            budget=LeafBudget(budget.dollars),
        )
        return await self.pool.ground(leaf, context)

    def _grounded(self, id: str, result: GroundingResult) -> None:
        self._settle(replace(self._nodes[id], p=result.p, grounding=result.grounding))

    def _settle(self, node: Proposition) -> None:
        """Record a claim's result, and start the synthesis of parents that were waiting only for it."""
        self._nodes[node.id] = node
        for parent in self._parents[node.id]:
            self._waiting[parent] -= 1
            if not self._waiting[parent]:
                self._start(partial(self._synthesize, parent), self._settle)

    async def _synthesize(self, id: str) -> Proposition:
        context = replace(self.context, emit=self.log.job(("synthesis", id)))
        synthesizer = Synthesizer(about=self.about, context=context, settings=self.settings, seed=self.seed)
        done = await synthesizer.synthesize(self._nodes[id], self._surroundings(id), self._below(id))
        link = to_dict(done.link) if done.link is not None else {}
        notes = (*done.notes, *((f"synthesis failed: {done.failed}",) if done.failed else ()))
        context.emit(NodeSynthesized(node=id, tree=self.about.target, p=done.p, link=link, notes=notes))
        return done

    def _below(self, id: str) -> dict[str, Proposition]:
        """Return the claims that a synthesis needs: the children, or the whole subtree if parts of it are shared."""
        below = [other for other in pre_order(self._nodes, id) if other != id]
        if any(len(self._parents[other]) > 1 for other in below):
            return {other: self._nodes[other] for other in below}
        return {child: replace(self._nodes[child], children=(), link=None) for child in self._nodes[id].children}

    def _surroundings(self, id: str) -> ClaimSurroundings:
        if id == self.root:
            return self.above
        place = ClaimSurroundings.of(self._nodes, self._parents, id)
        return replace(place, path=(*self.above.path, *place.path))

    def _tree(self) -> Tree:
        ordered = {id: self._nodes[id] for id in pre_order(self._nodes, self.root)}
        notes = [note for id in ordered for note in self._notes.get(id, ())]
        claims = {id: node.claim for id, node in ordered.items()}
        notes += [f"{' and '.join(ids)} say the same" for ids in repeated_claims(claims)]
        tree = Tree(
            root=self.root,
            nodes=ordered,
            as_of=self.context.as_of,
            intercept_limit=self.settings.intercept_limit,
        )
        failed = [id for id in leaves(tree) if ordered[id].p is None]
        unjoined = [id for id, node in ordered.items() if node.failed]
        if unjoined:
            notes.append(f"synthesis failed, and the mean of the children is used, at {', '.join(unjoined)}")
        if failed:
            notes.append(f"{tree.missing:g} is used for leaves that could not be grounded: {', '.join(failed)}")
        return evaluated(replace(tree, notes=tuple(dict.fromkeys(notes))))


def _fail(error: Exception) -> None:
    raise error
