"""The tree as a forecaster: a question becomes a claim, the claim a tree, and the root's probability the forecast."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from foretell.forecasters.agent.context import AgentContext
from foretell.forecasters.agent.submit import Clamp
from foretell.forecasters.forecaster import CannotForecast, RunContext
from foretell.forecasters.tree.files.tree_file import tree_to_dict
from foretell.forecasters.tree.grounders.searching import Searching
from foretell.forecasters.tree.growing.allotment import GrowSettings
from foretell.forecasters.tree.growing.analyze import AnalyzeSettings
from foretell.forecasters.tree.growing.ground import Crew, Grounder, GroundSettings
from foretell.forecasters.tree.growing.grow import Plan, grow
from foretell.forecasters.tree.growing.matter import Matter
from foretell.forecasters.tree.growing.record import Record
from foretell.forecasters.tree.growing.spending import Patient
from foretell.forecasters.tree.growing.summary import summary
from foretell.forecasters.tree.growing.synthesize import SynthesizeSettings
from foretell.forecasters.tree.growing.targets import analysed, probabilities
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.walk import leaves
from foretell.questions.distribution import Categorical
from foretell.questions.event import Emit, Failed, ForecastMade, TreeGrown, ignore
from foretell.questions.forecast import Failure, Forecast, Usage
from foretell.questions.question import Question, Target

CLAIM = "claim"
"""The subtype of a question whose text is a claim already."""
Keep = Callable[[Question, int, str, Tree], None]
"""Stores a finished tree: question, trial, target, tree."""


@dataclass(frozen=True, kw_only=True)
class TreeSettings:
    """How trees are grown."""

    size: GrowSettings = field(default_factory=GrowSettings)
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

    grounder: Grounder = field(default_factory=Searching)
    settings: TreeSettings = field(default_factory=TreeSettings)
    keep: Keep | None = None
    """Called with every finished tree, beside the event that holds it."""
    watch: Emit = ignore
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
        targets = analysed(question, shortcut=self.settings.shortcut)
        plans = self._plans(question, replace(context, model=Patient(context.model)), targets)
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
        spent = Usage.side_by_side(plan.record.usage() for plan in plans.values())
        return replace(answer, usage=replace(spent, seconds=asyncio.get_running_loop().time() - began))

    def _plans(self, question: Question, context: AgentContext, targets: tuple[Target, ...]) -> dict[str, Plan]:
        """One plan per target; all of them share the crew, and each has an equal part of the money."""
        settings = self.settings
        dollars = settings.size.dollars
        crew = Crew(self.grounder, settings.ground)
        return {
            target.id: Plan(
                matter=Matter(question=question, as_of=context.as_of, target=target.id),
                claim=claim_of(question, target),
                context=context,
                crew=crew,
                record=Record(self.watch),
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
        p = self.settings.clamp.apply(probabilities(question, roots), exclusive=several)
        context.emit(ForecastMade(p=p, how=self._how(trees)))
        return Forecast(
            question_id=question.id,
            forecaster=name,
            as_of=context.as_of,
            p=p,
            trial=context.trial,
            rationale="\n\n".join(summary(tree, target if len(trees) > 1 else "") for target, tree in trees.items()),
            distribution=Categorical(p=p, normalise=True) if several else None,
        )

    def _how(self, trees: Mapping[str, Tree]) -> str:
        lacking = sum(len(tree.nodes[tree.root].incomplete) for tree in trees.values())
        return f"root of a tree, {lacking} claims without a number of their own" if lacking else "root of a tree"


async def _all_grown(plans: Mapping[str, Plan]) -> dict[str, Tree]:
    """Every tree, side by side; where one cannot be grown at all, the others are given up."""
    growing = {target: asyncio.create_task(grow(plan)) for target, plan in plans.items()}
    try:
        return {target: await task for target, task in growing.items()}
    finally:
        for task in growing.values():
            task.cancel()
        await asyncio.gather(*growing.values(), return_exceptions=True)


def claim_of(question: Question, target: Target) -> str:
    """The question as a statement about one target.

    >>> q = Question(id="q", source="own", text="Will it snow?", due="2025-10-26", targets=(Target(id="yes"),))
    >>> claim_of(q, q.targets[0])
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
