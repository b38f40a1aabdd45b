"""Thoughts as a forecaster: a question becomes a claim, thoughts about it are looked into, and one is concluded."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from foretell.forecasters.agent.context import AgentContext
from foretell.forecasters.forecaster import CannotForecast, RunContext
from foretell.forecasters.tree.forecaster import claim_of
from foretell.forecasters.tree.grounders.searching import Searching
from foretell.forecasters.tree.growing.ground import Crew, Grounder
from foretell.forecasters.tree.growing.matter import Matter
from foretell.forecasters.tree.growing.spending import FOR_LEAVES, Patient
from foretell.forecasters.tree.growing.targets import analysed, probabilities
from foretell.forecasters.tree.thoughts.line import Conclusion, Thought
from foretell.forecasters.tree.thoughts.minutes import Minutes
from foretell.forecasters.tree.thoughts.search import NothingFound, think
from foretell.forecasters.tree.thoughts.settings import ThoughtSettings
from foretell.forecasters.tree.thoughts.side_by_side import side_by_side
from foretell.forecasters.tree.thoughts.thinker import Thinker
from foretell.llm.model import ModelError
from foretell.questions.distribution import Categorical
from foretell.questions.event import Emit, Failed, ForecastMade, ignore
from foretell.questions.forecast import Failure, Forecast, Usage
from foretell.questions.question import Question, Target

Thinking = tuple[float, list[Conclusion]]


@dataclass(frozen=True, kw_only=True)
class ThoughtsForecaster:
    """Chain, tree, graph or forest of thoughts over a grounder."""

    grounder: Grounder = field(default_factory=Searching)
    settings: ThoughtSettings = field(default_factory=ThoughtSettings)
    watch: Emit = ignore
    """Hears everything at once; the context's own listener hears it in a fixed order, at the end."""
    label: str = ""

    @property
    def name(self) -> str:
        """As shown in tables."""
        return self.label or f"{self.settings.name} {self.grounder.name}"

    async def forecast(self, question: Question, context: RunContext) -> Forecast:
        """One probability for every target, or `CannotForecast` where nothing could be looked into."""
        answer = await self.attempt(question, context)
        if isinstance(answer, Failure):
            raise CannotForecast(answer.error)
        return answer

    async def attempt(self, question: Question, context: RunContext) -> Forecast | Failure:
        """One trial. It ends in one of the two unless the settings themselves cannot work."""
        if not isinstance(context, AgentContext):
            raise TypeError("thoughts need models and tools: give them an AgentContext")
        began = asyncio.get_running_loop().time()
        targets = analysed(question, shortcut=self.settings.shortcut)
        minutes = {target.id: Minutes(self.watch) for target in targets}
        thinkers = self._thinkers(question, replace(context, model=Patient(context.model)), targets, minutes)
        ends = await side_by_side(_ended(one, self.settings) for one in thinkers)
        for one in minutes.values():
            for event in one.events():
                context.emit(event)
        answer = self._answer(question, context, dict(zip(minutes, ends, strict=True)))
        if isinstance(answer, Failure):
            return answer
        spent = Usage.side_by_side(one.usage() for one in minutes.values())
        return replace(answer, usage=replace(spent, seconds=asyncio.get_running_loop().time() - began))

    def _thinkers(
        self, question: Question, context: AgentContext, targets: Sequence[Target], minutes: Mapping[str, Minutes]
    ) -> list[Thinker]:
        """One for each target; all share the crew, and every thought has an equal part of the money."""
        settings = self.settings
        crew = Crew(self.grounder, settings.ground)
        dollars = settings.dollars
        share = None if dollars is None else FOR_LEAVES * dollars / (settings.most * len(targets))
        return [
            Thinker(
                claim=claim_of(question, target),
                matter=Matter(question=question, as_of=context.as_of, target=target.id),
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
        self, question: Question, context: AgentContext, ends: Mapping[str, Thinking | str]
    ) -> Forecast | Failure:
        marked = context.toolbox(question, context).clairvoyant
        name = f"{self.name}+clairvoyant" if marked else self.name
        found: dict[str, Thinking] = {}
        for target, end in ends.items():
            if isinstance(end, str):
                error = f"thinking about {target} came to nothing: {end}"
                context.emit(Failed(error=error))
                return Failure(
                    question_id=question.id, forecaster=name, as_of=context.as_of, error=error, trial=context.trial
                )
            found[target] = end
        several = question.exclusive and len(question.targets) > 1
        said = probabilities(question, {target: p for target, (p, _) in found.items()})
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


async def _ended(thinker: Thinker, settings: ThoughtSettings) -> Thinking | str:
    """What thinking about one target comes to, or why to nothing."""
    try:
        return await think(thinker, settings)
    except (NothingFound, ModelError) as error:
        return str(error) or type(error).__name__


def _reasons(target: str, ended: Sequence[Conclusion]) -> str:
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
