"""Ground leaves concurrently within their budgets; a failed leaf does not fail the tree.

Implements the leaves of algorithm 2 of Analytica (2026).
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Protocol, TypeVar

from foretell.data.untrusted import for_log
from foretell.forecasters.combine.default import moved_price
from foretell.forecasters.forecaster import Context, JobEvents
from foretell.forecasters.tree.grow.analyze import AnalysisLimits, depth_of
from foretell.forecasters.tree.grow.prompting import ClaimSurroundings, TreeQuestion
from foretell.forecasters.tree.proposition import Grounding
from foretell.forecasters.tree.settings import GroundSettings, TreeSettings
from foretell.forecasters.tree.text import one_line
from foretell.frozen import frozen
from foretell.metrics.transforms import logit, sigmoid
from foretell.models.ledger import charged_reply
from foretell.models.model import BudgetExceeded, Model, Reply, Request, TokenCount
from foretell.models.prices import PriceList
from foretell.models.waiting import WorkClock
from foretell.number_text import brief_percent
from foretell.patterns import pattern
from foretell.questions.errors import InputError
from foretell.questions.question import Question, Target
from foretell.questions.trace import NodeGrounded, ToolUsed, TraceEvent, ignore_event


@frozen
class SubtreeBudget:
    """Budget of a subtree, split equally among its parts."""

    rounds: int
    """Remaining levels of analysis."""
    nodes: int
    """Maximum number of claims that may be added."""
    leaves: int | None = None
    dollars: float | None = None
    """Budget for grounding all its leaves, in dollars; None for no limit."""
    each: float = 0.0
    """Usual cost of a leaf in dollars, which limits the number of leaves."""

    def analysis_limits(self, settings: TreeSettings, node: str) -> AnalysisLimits | None:
        """Limits for an analysis of the node; None if it must stay a leaf.

        >>> SubtreeBudget(rounds=1, nodes=30, leaves=6).analysis_limits(TreeSettings(), "P0")
        AnalysisLimits(leaves=6, nodes=30, depth=None)
        >>> SubtreeBudget(rounds=0, nodes=30).analysis_limits(TreeSettings(), "P0") is None
        True
        >>> SubtreeBudget(rounds=1, nodes=30, dollars=0.05, each=0.01).analysis_limits(TreeSettings(), "P0").leaves
        5
        """
        leaves = settings.leaves if self.leaves is None else min(settings.leaves, self.leaves)
        if self.dollars is not None and self.each > 0:
            leaves = min(leaves, int(self.dollars / self.each + 1e-9))
        deep = settings.depth is not None and depth_of(node) >= settings.depth
        if self.rounds < 1 or self.nodes < 2 or leaves < 2 or deep:
            return None
        return AnalysisLimits(leaves=leaves, nodes=self.nodes, depth=settings.depth)

    def per_leaf(self, *, added: int, among: int) -> "SubtreeBudget":
        """Return the share of each leaf after an analysis has added claims.

        >>> SubtreeBudget(rounds=2, nodes=100, leaves=40, dollars=1.0).per_leaf(added=20, among=10)
        SubtreeBudget(rounds=1, nodes=8, leaves=4, dollars=0.1, each=0.0)
        """
        return replace(
            self,
            rounds=self.rounds - 1,
            nodes=max(0, self.nodes - added) // among,
            leaves=None if self.leaves is None else self.leaves // among,
            dollars=None if self.dollars is None else self.dollars / among,
        )


FOR_LEAVES = 0.75
"""Share of a tree's budget for grounding; the rest is for analysis and synthesis."""
USUAL_LEAF = TokenCount(input=6_000, output=2_000)
"""Minimum tokens to ground a leaf, used to limit a tree's size to its budget."""
USUAL_TOKENS: Mapping[str, tuple[int, TokenCount]] = {
    "plain": (1, TokenCount(input=1_500, output=1_000)),
    "search": (4, TokenCount(input=20_000, output=3_000)),
    "agent": (8, TokenCount(input=60_000, output=6_000)),
    "notebook": (8, TokenCount(input=60_000, output=10_000)),
    "deep": (1, TokenCount(input=150_000, output=20_000)),
    "auto": (5, TokenCount(input=30_000, output=5_000)),
}
"""Approximate number of calls and tokens per leaf, by grounder; used only for plans."""
LOW = 0.5
"""Fraction of a leaf's budget after which it must conclude, because the conclusion costs something too."""


def cost_of_leaf(context: Context) -> float:
    """Minimum cost of a leaf in dollars; 0 if prices are unknown."""
    price = context.models.price("grounder")
    return price.dollars(USUAL_LEAF) if price is not None else 0.0


class LeafBudget:
    """Soft budget of one leaf: it ends research in time but blocks no call.

    A hard limit reserves the maximum cost of a call before it is made, and for a small share that exceeds the whole
    budget. The budgets of the question and the run are hard.
    """

    def __init__(self, dollars: float | None = None) -> None:
        self.dollars = dollars
        """The budget in dollars; None for no limit."""
        self.spent = 0.0
        """Cost of its replies in dollars, whether or not they were paid for in this run."""

    @property
    def nearly_spent(self) -> bool:
        """Whether so much is spent that the leaf must conclude."""
        return self.dollars is not None and self.spent >= LOW * self.dollars

    def metered(self, context: Context) -> Context:
        """Return the context with a model whose cost is counted, if there is a budget and prices are known."""
        prices = context.models.prices
        if self.dollars is None or prices is None:
            return context
        return context.with_model(lambda model: _MeteredModel(model, prices, self))


class _MeteredModel:
    """Counts what replies cost towards the budget of a leaf."""

    def __init__(self, inner: Model, prices: PriceList, budget: LeafBudget) -> None:
        self._inner = inner
        self._prices = prices
        self._budget = budget

    async def complete(self, request: Request) -> Reply:
        """Complete the request and add its cost to the budget."""
        reply = await self._inner.complete(request)
        for part in (*reply.cut_off, reply):
            self._budget.spent += charged_reply(part, request, self._prices).charged or 0.0
        return reply


T = TypeVar("T")

REPLIES_OF_LEAF = 10
"""Number of replies that one attempt at a leaf has time for if the model is slow."""
MORE_SECONDS = "no answer within {:g} s; --set options.leaf_seconds=SECONDS allows more"
MOST_SOURCES = 30
"""Maximum number of sources kept from several trials."""
LONGEST_REASON = 300
QUERY_PATTERN = pattern(r"(https?://[^\s?]+)\?\S*?(?=[:,;.)]*(?:\s|$))")
BETWEEN_TRIALS = 1000
"""Offset between the trial numbers of a leaf's trials, so that they do not collide with trials of the question."""

CRITERIA = "It is decided by whether the claim, as it is worded, is true."

log = logging.getLogger(__name__)


class CannotGround(Exception):
    """Raised if a grounder fails; a retry may succeed."""


@frozen
class Leaf:
    """A claim to ground, with everything a grounder may know about it."""

    id: str
    claim: str
    tree_question: TreeQuestion
    surroundings: ClaimSurroundings = field(default_factory=ClaimSurroundings)
    slot: str = ""
    """Question, trial, tree, leaf and attempt. Distinguishes otherwise equal requests; the same in every run."""
    budget: LeafBudget = field(default_factory=LeafBudget)
    material: str = ""
    """What is known already, with headings: criteria, evidence and the like; empty in trees planned before research."""
    prices: tuple[float, ...] = ()
    """Fresh prices of markets on the same claim."""

    @property
    def tool_question(self) -> Question:
        """The tree's question with the claim as its text, for which a toolbox is created.

        It keeps the original question's cutoff, series and id, so that results fetched for one leaf
        are not fetched again for another.
        """
        whole = self.tree_question.question
        words = f"The claim is a part of the analysis of: {whole.text}\n\n{whole.criteria}\n\n{whole.background}"
        return replace(whole, text=self.claim, criteria=CRITERIA, background=words.strip())

    @property
    def question(self) -> Question:
        """The claim as a separate binary question."""
        whole = self.tree_question.question
        target = next((other for other in whole.targets if other.id == self.tree_question.target), whole.targets[0])
        own = Target(id="yes", resolves_at=target.resolves_at)
        alone = replace(self.tool_question, id=f"{whole.id}#{self.tree_question.target}#{self.id}", targets=(own,))
        return replace(alone, exclusivity="independent", subtype="", series=None, last_value=None)


@frozen
class GroundingResult:
    """The result of grounding a leaf."""

    p: float | None
    """The probability; None if all attempts failed."""
    grounding: Grounding
    attempts: int = 1
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.p is not None and not 0 <= self.p <= 1:
            raise ValueError(f"p = {self.p} is not a probability")

    def after_prices(self, prices: Sequence[float]) -> "GroundingResult":
        """Return the mean price of the same claim moved by this result, as the answer to a question starts from one."""
        if self.p is None or not prices:
            return self
        price = float(sigmoid(logit(prices).mean()))
        p = moved_price(price, self.p)
        steps = f"price {brief_percent(price)} → research {brief_percent(self.p)} → leaf {brief_percent(p)}"
        return replace(self, p=p, notes=(*self.notes, f"it starts from a market on the same claim: {steps}"))


class Grounder(Protocol):
    """Estimates the probability of a claim."""

    @property
    def name(self) -> str:
        """Name recorded in the tree."""
        ...

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        """Return probability, report and sources. Raises `CannotGround` if it fails."""
        ...


async def gather_or_cancel(jobs: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run the jobs concurrently and return their results in order; if one raises, cancel the others."""
    tasks = [asyncio.create_task(job) for job in jobs]
    try:
        return [await task for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _researched(grounder: Grounder, leaf: Leaf, context: Context) -> GroundingResult:
    """Ground the leaf, and say in the grounding if none of the tools that were used worked."""
    used: list[ToolUsed] = []

    def emit(event: TraceEvent) -> None:
        if isinstance(event, ToolUsed):
            used.append(event)
        context.emit(event)

    result = await grounder.ground(leaf, replace(context, emit=emit))
    if not used or not all(event.failed for event in used):
        return result
    caveat = f"no search or other request for evidence worked ({_reason(used[0].result)})"
    return replace(result, grounding=replace(result.grounding, caveat=result.grounding.caveat or caveat))


def _reason(failure: str) -> str:
    """Return why a tool failed in few words; addresses lose their queries, which repeat what was asked.

    >>> _reason("The search failed: http://a.example/search?q=rate+cut&n=10: Cannot connect.")
    'The search failed: http://a.example/search: Cannot connect'
    """
    text = QUERY_PATTERN.sub(r"\1", one_line(failure)).strip(" .")
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON].rstrip()}…"


def combined_results(results: Sequence[GroundingResult], earlier: Sequence[float] = ()) -> GroundingResult:
    """Combine several trials of a leaf: their mean, the report closest to it, and all sources and probabilities."""
    succeeded = [(result.p, result.grounding) for result in results if result.p is not None]
    if not succeeded:
        return results[0]
    numbers = (*earlier, *(p for p, _ in succeeded))
    p = sum(numbers) / len(numbers)
    closest: Grounding = min(succeeded, key=lambda trial: abs(trial[0] - p))[1]
    sources = dict.fromkeys(source for _, grounding in succeeded for source in grounding.sources)
    lost = len(results) - len(succeeded)
    error = next((result.grounding.error for result in results if result.p is None), "")
    route = (*closest.route, *((f"{lost} of {len(results)} trials failed: {error}",) if lost else ()))
    shown = closest.sources if len(succeeded) == 1 else tuple(sources)[:MOST_SOURCES]
    trials = numbers if len(numbers) > 1 else ()
    grounding = replace(closest, sources=shown, trials=trials, route=route)
    return GroundingResult(p=p, grounding=grounding, attempts=sum(result.attempts for result in results))


class GroundingPool:
    """Grounds leaves concurrently, up to the limit in the settings. Belongs to one event loop."""

    def __init__(
        self,
        grounder: Grounder,
        settings: GroundSettings,
        fall_backs: Sequence[Grounder] = (),
    ) -> None:
        self.grounder = grounder
        self.settings = settings
        self.fall_backs = fall_backs
        """Grounders to try, in order, after the main one has failed."""
        self._places = asyncio.Semaphore(settings.concurrency)

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        """Ground the leaf; after the last attempt, the result holds the error instead of a probability."""
        if self.settings.trials == 1:
            result = await self._examined(leaf, context)
        else:
            trials = await gather_or_cancel(self._trial(leaf, context, n) for n in range(self.settings.trials))
            result = combined_results([trial for trial, _ in trials])
            # In the order of the trials, not of their completion.
            for event in (event for _, events in trials for event in events):
                context.emit(event)
        result = result.after_prices(leaf.prices)
        context.emit(
            NodeGrounded(
                node=leaf.id,
                tree=leaf.tree_question.target,
                p=result.p,
                grounder=result.grounding.grounder,
                attempts=result.attempts,
                error=result.grounding.error,
            )
        )
        return result

    async def _trial(self, leaf: Leaf, context: Context, trial: int) -> tuple[GroundingResult, list[TraceEvent]]:
        """Run one trial and return its result and events."""
        events, share = JobEvents(ignore_event), leaf.budget.dollars
        budget = LeafBudget(None if share is None else share / self.settings.trials)
        # The first trial makes the same requests as a leaf with a single trial.
        slot = f"{leaf.slot} {trial}" if trial else leaf.slot
        own = replace(context, trial=context.trial + BETWEEN_TRIALS * trial, emit=events)
        return await self._examined(replace(leaf, slot=slot, budget=budget), own), events.events()

    async def _examined(self, leaf: Leaf, context: Context) -> GroundingResult:
        async with self._places:
            result = await self._ground(leaf, context)
            return result if result.p is not None else await self._instead(leaf, context, result)

    def _clock(self) -> WorkClock:
        return WorkClock(self.settings.leaf_seconds, replies=REPLIES_OF_LEAF)

    async def _instead(self, leaf: Leaf, context: Context, failed: GroundingResult) -> GroundingResult:
        """Try the fallback grounders in order, and record in the route why each was used."""
        failures = [f"{failed.grounding.grounder} failed: {one_line(failed.grounding.error)[:LONGEST_REASON]}"]
        for other in self.fall_backs:
            tried = replace(leaf, slot=f"{leaf.slot}/instead by {other.name}")
            try:
                async with self._clock():
                    result = await _researched(other, tried, leaf.budget.metered(context))
            except BudgetExceeded as error:
                failures.append(f"{other.name} failed: {one_line(str(error))[:LONGEST_REASON]}")
                break
            except Exception as error:  # as in `_ground`; the error of the main grounder is kept
                failures.append(f"{other.name} failed: {one_line(str(error) or type(error).__name__)[:LONGEST_REASON]}")
            else:
                route = (*failures, f"{other.name} took over", *result.grounding.route)
                return replace(result, grounding=replace(result.grounding, route=route), attempts=failed.attempts + 1)
        return replace(failed, grounding=replace(failed.grounding, route=tuple(failures[1:])))

    async def _ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        problem = ""
        attempt = 0
        for attempt in range(1, self.settings.retries + 2):
            tried, clock = replace(leaf, slot=f"{leaf.slot}/attempt {attempt}"), self._clock()
            try:
                async with clock:
                    result = await _researched(self.grounder, tried, leaf.budget.metered(context))
                return replace(result, attempts=attempt)
            except InputError:
                raise  # The user has to act; every other leaf would fail in the same way.
            except BudgetExceeded as error:
                problem = str(error)
                break
            except TimeoutError:
                problem = MORE_SECONDS.format(clock.seconds) if clock.expired else "it ran out of time"
            except Exception as error:  # a failed leaf must not fail the tree
                log.info("leaf %s, attempt %d: %s", for_log(leaf.id), attempt, for_log(error))
                problem = str(error) or type(error).__name__
        error = f"{problem} ({attempt} attempts)" if attempt > 1 else problem
        return GroundingResult(p=None, grounding=Grounding(grounder=self.grounder.name, error=error), attempts=attempt)
