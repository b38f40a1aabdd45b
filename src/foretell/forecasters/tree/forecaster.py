"""The tree as a forecaster: a question becomes a claim, the claim a tree, and the root's probability the forecast."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from foretell.forecasters.agent.settings import Clamp
from foretell.forecasters.forecaster import AgentContext, CannotForecast, RunContext
from foretell.forecasters.tree.grounders.search import SearchGrounder
from foretell.forecasters.tree.grow.analyze import AnalyzeSettings
from foretell.forecasters.tree.grow.budget import BudgetWaitingModel, TreeSizeSettings
from foretell.forecasters.tree.grow.event_log import TreeEventLog
from foretell.forecasters.tree.grow.ground import Grounder, GroundingPool, GroundSettings
from foretell.forecasters.tree.grow.grow import GrowthPlan, grow
from foretell.forecasters.tree.grow.prompting import TreeQuestion
from foretell.forecasters.tree.grow.synthesize import SynthesizeSettings
from foretell.forecasters.tree.proposition import Proposition, Tree, leaves
from foretell.forecasters.tree.tree_file import tree_to_dict
from foretell.questions.forecast import Categorical, Cost, Failure, Forecast
from foretell.questions.question import Question, Target
from foretell.questions.trace import EmitEvent, Failed, ForecastMade, TreeGrown, ignore_event

# A finished tree in words: what came out, what it rests on, and what is missing.

MOST_SOURCES = 20


def tree_summary(tree: Tree, target: str = "") -> str:
    """The reasons behind a root's probability: its report, every leaf with its number, open ends, sources."""
    root = tree.nodes[tree.root]
    heading = f"Tree for {target}: " if target else ""
    told = "" if root.p is None else f"{heading}{root.p:.3f} for: {root.claim}"
    found = [tree.nodes[id] for id in leaves(tree)]
    parts = [
        told,
        root.key_factor,
        root.report,
        "\n".join(["Leaves:", *map(_leaf, found)]),
        "\n".join(["Notes:", *(f"- {note}" for note in tree.notes)]) if tree.notes else "",
        _sources(found),
    ]
    return "\n\n".join(part for part in parts if part)


def _leaf(node: Proposition) -> str:
    source = node.grounding
    if node.p is None:
        return f"- {node.id} no number ({source.error if source else 'not grounded'}): {node.claim}"
    factor = f" [{source.key_factor}]" if source and source.key_factor else ""
    return f"- {node.id} {node.p:.3f}: {node.claim}{factor}"


def _sources(found: list[Proposition]) -> str:
    """Ids of results are counted leaf by leaf: each is told with its leaf."""
    cited = [(node.id, source) for node in found if node.grounding for source in node.grounding.sources]
    lines = [f"{id} {source}" for id, source in cited[:MOST_SOURCES]]
    more = [f"and {len(cited) - MOST_SOURCES} more"] if len(cited) > MOST_SOURCES else []
    return "\n".join(["Sources:", *lines, *more]) if lines else ""


# Which targets of a question are analysed, and what that makes of the others.


def targets_to_analyze(question: Question, *, shortcut: bool) -> tuple[Target, ...]:
    """The targets to analyse: of two exclusive ones only the first, with the shortcut."""
    two = question.exclusive and len(question.targets) == 2
    return question.targets[:1] if two and shortcut else question.targets


def target_probabilities(question: Question, found: Mapping[str, float]) -> dict[str, float]:
    """By target: as found, options of which exactly one comes true divided by their sum.

    >>> from foretell.questions.question import Target
    >>> q = Question(id="q", source="own", text="Who wins?", due="2025-10-26", exclusive=True,
    ...              targets=(Target(id="a"), Target(id="b")))
    >>> target_probabilities(q, {"a": 0.75}), target_probabilities(q, {"a": 0.75, "b": 0.75})
    ({'a': 0.75, 'b': 0.25}, {'a': 0.5, 'b': 0.5})
    """
    if not question.exclusive or len(question.targets) < 2:
        return dict(found)
    if len(found) == 1:
        first, other = (target.id for target in question.targets)
        return {first: found[first], other: 1.0 - found[first]}
    total = sum(found.values())
    return {target: value / total if total else 1.0 / len(found) for target, value in found.items()}


CLAIM = "claim"
"""The subtype of a question whose text is a claim already."""
StoreTree = Callable[[Question, int, str, Tree], None]
"""Stores a finished tree: question, trial, target, tree."""


@dataclass(frozen=True, kw_only=True)
class TreeSettings:
    """How trees are grown."""

    size: TreeSizeSettings = field(default_factory=TreeSizeSettings)
    analyze: AnalyzeSettings = field(default_factory=AnalyzeSettings)
    ground: GroundSettings = field(default_factory=GroundSettings)
    synthesize: SynthesizeSettings = field(default_factory=SynthesizeSettings)
    attempts: int = 3
    """How often an answer that cannot be used is asked for."""
    clamp: Clamp = field(default_factory=Clamp)
    """Of the forecast, not of the tree's own numbers."""
    shortcut: bool = True
    """Of two exclusive options only the first gets a tree; the other has what is left."""

    @property
    def name(self) -> str:
        """What tells one way of growing from another in tables."""
        rounds = f"^{self.size.rounds}" if self.size.rounds > 1 else ""
        return f"tree{rounds} {self.synthesize.rule.name}"


@dataclass(frozen=True, kw_only=True)
class TreeForecaster:
    """Takes a question apart, has the parts examined, and puts them together again."""

    grounder: Grounder = field(default_factory=SearchGrounder)
    settings: TreeSettings = field(default_factory=TreeSettings)
    keep: StoreTree | None = None
    """Called with every finished tree, beside the event that holds it."""
    watch: EmitEvent = ignore_event
    """Hears everything at once; the context's own listener hears it in the order of the tree, when it is finished."""
    label: str = ""

    @property
    def name(self) -> str:
        """As shown in tables."""
        return self.label or f"{self.settings.name} {self.grounder.name}"

    async def forecast(self, question: Question, context: RunContext) -> Forecast:
        """One probability for every target, or `CannotForecast` where no leaf of a tree could be grounded."""
        answer = await self.attempt(question, context)
        if isinstance(answer, Failure):
            raise CannotForecast(answer.error)
        return answer

    async def attempt(self, question: Question, context: RunContext) -> Forecast | Failure:
        """One trial. It ends in one of the two unless the settings themselves cannot work."""
        if not isinstance(context, AgentContext):
            raise TypeError("a tree needs models and tools: give it an AgentContext")
        began = asyncio.get_running_loop().time()
        targets = targets_to_analyze(question, shortcut=self.settings.shortcut)
        plans = self._plans(question, replace(context, model=BudgetWaitingModel(context.model)), targets)
        trees = await _all_grown(plans)
        for target, tree in trees.items():
            for event in plans[target].record.events(tree):
                context.emit(event)
            context.emit(TreeGrown(tree=target, document=tree_to_dict(tree)))
            if self.keep is not None:
                self.keep(question, context.trial, target, tree)
        answer = self._answer(question, context, trees)
        if isinstance(answer, Failure):
            return answer
        spent = Cost.side_by_side(plan.record.usage() for plan in plans.values())
        return replace(answer, usage=replace(spent, seconds=asyncio.get_running_loop().time() - began))

    def _plans(self, question: Question, context: AgentContext, targets: tuple[Target, ...]) -> dict[str, GrowthPlan]:
        """One plan per target; all of them share the crew, and each has an equal part of the money."""
        settings = self.settings
        dollars = settings.size.dollars
        crew = GroundingPool(self.grounder, settings.ground)
        return {
            target.id: GrowthPlan(
                matter=TreeQuestion(question=question, as_of=context.as_of, target=target.id),
                claim=claim_of_target(question, target),
                context=context,
                crew=crew,
                record=TreeEventLog(self.watch),
                size=replace(settings.size, dollars=None if dollars is None else dollars / len(targets)),
                analyze=replace(settings.analyze, hint=settings.synthesize.rule.hint),
                synthesize=settings.synthesize,
                attempts=settings.attempts,
            )
            for target in targets
        }

    def _answer(self, question: Question, context: AgentContext, trees: Mapping[str, Tree]) -> Forecast | Failure:
        marked = context.toolbox(question, context).clairvoyant
        name = f"{self.name}+clairvoyant" if marked else self.name
        for target, tree in trees.items():
            if all(tree.nodes[leaf].p is None for leaf in leaves(tree)):
                first = tree.nodes[leaves(tree)[0]].grounding
                error = (
                    f"no leaf of the tree for {target} could be grounded: {first.error if first else 'none was tried'}"
                )
                context.emit(Failed(error=error))
                return Failure(
                    question_id=question.id, forecaster=name, as_of=context.as_of, error=error, trial=context.trial
                )
        several = question.exclusive and len(question.targets) > 1
        roots = {target: tree.nodes[tree.root].p or 0.0 for target, tree in trees.items()}
        p = self.settings.clamp.apply(target_probabilities(question, roots), exclusive=several)
        context.emit(ForecastMade(p=p, how=self._how(trees)))
        return Forecast(
            question_id=question.id,
            forecaster=name,
            as_of=context.as_of,
            p=p,
            trial=context.trial,
            rationale="\n\n".join(
                tree_summary(tree, target if len(trees) > 1 else "") for target, tree in trees.items()
            ),
            distribution=Categorical(p=p, normalise=True) if several else None,
        )

    def _how(self, trees: Mapping[str, Tree]) -> str:
        lacking = sum(len(tree.nodes[tree.root].incomplete) for tree in trees.values())
        return f"root of a tree, {lacking} claims without a number of their own" if lacking else "root of a tree"


async def _all_grown(plans: Mapping[str, GrowthPlan]) -> dict[str, Tree]:
    """Every tree, side by side; where one cannot be grown at all, the others are given up."""
    growing = {target: asyncio.create_task(grow(plan)) for target, plan in plans.items()}
    try:
        return {target: await task for target, task in growing.items()}
    finally:
        for task in growing.values():
            task.cancel()
        await asyncio.gather(*growing.values(), return_exceptions=True)


def claim_of_target(question: Question, target: Target) -> str:
    """The question as a statement about one target.

    >>> q = Question(id="q", source="own", text="Will it snow?", due="2025-10-26", targets=(Target(id="yes"),))
    >>> claim_of_target(q, q.targets[0])
    'The answer to the question "Will it snow?" is yes.'
    """
    if question.subtype == CLAIM:
        return question.text
    day = f", as decided on {target.resolves_at.date().isoformat()}" if target.resolves_at else ""
    if len(question.targets) == 1:
        return f'The answer to the question "{question.text}" is yes{day}.'
    label = target.label or target.id
    if question.exclusive:
        return f'The answer to the question "{question.text}" is "{label}"{day}.'
    return f'The answer to the question "{question.text}" is yes for "{label}"{day}.'
