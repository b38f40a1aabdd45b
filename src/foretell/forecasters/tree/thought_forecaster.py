"""Thoughts as a forecaster: a question becomes a claim, thoughts about it are looked into, and one is concluded."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from foretell.forecasters.forecaster import CannotForecast, Context
from foretell.forecasters.tree.forecaster import claim_of_target, target_probabilities, targets_to_analyze
from foretell.forecasters.tree.grounders.search import SearchGrounder
from foretell.forecasters.tree.grow.budget import FOR_LEAVES, BudgetWaitingModel
from foretell.forecasters.tree.grow.event_log import ThoughtEventLog
from foretell.forecasters.tree.grow.ground import Grounder, GroundingPool
from foretell.forecasters.tree.grow.prompting import TreeQuestion
from foretell.forecasters.tree.thought_search import (
    NothingGrounded,
    Thinker,
    Thought,
    ThoughtConclusion,
    ThoughtSettings,
    gather_or_cancel,
    think,
)
from foretell.models.model import ModelError
from foretell.questions.forecast import Categorical, Cost, Failure, Forecast
from foretell.questions.question import Question, Target
from foretell.questions.trace import EmitEvent, Failed, ForecastMade, ignore_event

ThoughtResult = tuple[float, list[ThoughtConclusion]]


@dataclass(frozen=True, kw_only=True)
class ThoughtsForecaster:
    """Chain, tree, graph or forest of thoughts over a grounder."""

    grounder: Grounder = field(default_factory=SearchGrounder)
    settings: ThoughtSettings = field(default_factory=ThoughtSettings)
    watch: EmitEvent = ignore_event
    """Hears everything at once; the context's own listener hears it in a fixed order, at the end."""
    label: str = ""

    @property
    def name(self) -> str:
        """As shown in tables."""
        return self.label or f"{self.settings.name} {self.grounder.name}"

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """One probability for every target, or `CannotForecast` where nothing could be looked into."""
        answer = await self.attempt(question, context)
        if isinstance(answer, Failure):
            raise CannotForecast(answer.error)
        return answer

    async def attempt(self, question: Question, context: Context) -> Forecast | Failure:
        """One trial. It ends in one of the two unless the settings themselves cannot work."""
        began = asyncio.get_running_loop().time()
        targets = targets_to_analyze(question, shortcut=self.settings.shortcut)
        minutes = {target.id: ThoughtEventLog(self.watch) for target in targets}
        thinkers = self._thinkers(question, context.with_model(BudgetWaitingModel), targets, minutes)
        ends = await gather_or_cancel(_ended(one, self.settings) for one in thinkers)
        for one in minutes.values():
            for event in one.events():
                context.emit(event)
        answer = self._answer(question, context, dict(zip(minutes, ends, strict=True)))
        if isinstance(answer, Failure):
            return answer
        spent = Cost.side_by_side(one.usage() for one in minutes.values())
        return replace(answer, usage=replace(spent, seconds=asyncio.get_running_loop().time() - began))

    def _thinkers(
        self,
        question: Question,
        context: Context,
        targets: Sequence[Target],
        minutes: Mapping[str, ThoughtEventLog],
    ) -> list[Thinker]:
        """One for each target; all share the crew, and every thought has an equal part of the money."""
        settings = self.settings
        crew = GroundingPool(self.grounder, settings.ground)
        dollars = settings.dollars
        share = None if dollars is None else FOR_LEAVES * dollars / (settings.most * len(targets))
        return [
            Thinker(
                claim=claim_of_target(question, target),
                matter=TreeQuestion(question=question, as_of=context.as_of, target=target.id),
                context=context,
                crew=crew,
                minutes=minutes[target.id],
                slot=f"{question.id}/trial {context.trial}/thoughts {target.id}",
                attempts=settings.attempts,
                share=share,
            )
            for target in targets
        ]

    def _answer(
        self, question: Question, context: Context, ends: Mapping[str, ThoughtResult | str]
    ) -> Forecast | Failure:
        marked = context.tools_for(question).clairvoyant
        name = f"{self.name}+clairvoyant" if marked else self.name
        found: dict[str, ThoughtResult] = {}
        for target, end in ends.items():
            if isinstance(end, str):
                error = f"thinking about {target} came to nothing: {end}"
                context.emit(Failed(error=error))
                return Failure(
                    question_id=question.id, forecaster=name, as_of=context.as_of, error=error, trial=context.trial
                )
            found[target] = end
        several = question.exclusive and len(question.targets) > 1
        said = target_probabilities(question, {target: p for target, (p, _) in found.items()})
        p = self.settings.clamp.apply(said, exclusive=several)
        context.emit(ForecastMade(p=p, how=f"concluded from a {self.settings.name}"))
        return Forecast(
            question_id=question.id,
            forecaster=name,
            as_of=context.as_of,
            p=p,
            trial=context.trial,
            rationale="\n\n".join(_reasons(target, ended) for target, (_, ended) in found.items()),
            distribution=Categorical(p=p, normalise=True) if several else None,
        )


async def _ended(thinker: Thinker, settings: ThoughtSettings) -> ThoughtResult | str:
    """What thinking about one target comes to, or why to nothing."""
    try:
        return await think(thinker, settings)
    except (NothingGrounded, ModelError) as error:
        return str(error) or type(error).__name__


def _reasons(target: str, ended: Sequence[ThoughtConclusion]) -> str:
    """Every conclusion with what it rests on."""
    parts: list[str] = []
    for one in ended:
        thoughts = "\n".join(map(_listed, one.line.thoughts))
        sources = [f"{thought.id} {source}" for thought in one.line.thoughts for source in thought.sources]
        listed = "\n".join(["Sources:", *sources[:20]]) if sources else ""
        head = f"{target} {one.p:.3f}: {one.key_factor}".rstrip(": ")
        parts.append("\n\n".join(filter(None, [head, one.report, f"Looked into:\n{thoughts}", listed])))
    return "\n\n".join(parts)


def _listed(thought: Thought) -> str:
    if thought.p is None:
        return f"- {thought.id} no number ({thought.error}): {thought.claim}"
    factor = f" [{thought.key_factor}]" if thought.key_factor else ""
    return f"- {thought.id} {thought.p:.3f}: {thought.claim}{factor}"
