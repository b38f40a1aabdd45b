"""Any forecaster under the same rules: the shared context as its opening material, its tools on or off."""

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.agent.context import AgentContext
from foretell.forecasters.context.context import Context
from foretell.forecasters.context.contexts import Contexts
from foretell.forecasters.context.own_sources import only_sources
from foretell.forecasters.context.rendering import BOTH, View, material, read_view
from foretell.forecasters.forecaster import CannotForecast, Forecaster, RunContext
from foretell.questions.event import Failed
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.tools.fence import Fenced

CLAIRVOYANT = "+clairvoyant"
GATHERED = "The following was gathered for this question beforehand. Evidence from it counts as part of the question."


@runtime_checkable
class Attempts(Protocol):
    """A forecaster that ends every trial in a value."""

    async def attempt(self, question: Question, context: RunContext) -> Forecast | Failure:
        """A forecast, or why there is none."""
        ...


@dataclass(frozen=True, kw_only=True)
class OnContext:
    """Another forecaster, shown what all the others are shown.

    The material is the same text, byte for byte, that a single prompt holds; it comes first in the question's
    background. Where the market is hidden, the question carries no quotes and no tool for prices is offered.
    """

    forecaster: Forecaster
    contexts: Contexts
    view: View | str = BOTH
    tools: bool = True
    """Whether it may go on searching by itself; if not, its parts can search the context's own sources."""
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "view", read_view(self.view))

    @property
    def name(self) -> str:
        """As shown in tables."""
        tools = "with tools" if self.tools else "without tools"
        return self.label or f"{self.forecaster.name} on context {self.shown.name} {tools}"

    @property
    def shown(self) -> View:
        """The view as a value."""
        return read_view(self.view)

    async def forecast(self, question: Question, context: RunContext) -> Forecast:
        """What the other forecaster says, under this name."""
        answer = await self.attempt(question, context)
        if isinstance(answer, Failure):
            raise CannotForecast(answer.error)
        return answer

    async def attempt(self, question: Question, context: RunContext) -> Forecast | Failure:
        """One trial."""
        try:
            shared = await self.contexts.of(question, context.as_of)
            made = await _attempted(self._inner(), self._told(shared), self._surroundings(shared, question, context))
        except CannotForecast as reason:
            if isinstance(context, AgentContext):
                context.emit(Failed(error=str(reason)))
            return Failure(question_id=question.id, forecaster=self.name, as_of=context.as_of, error=str(reason))
        named = self.name + CLAIRVOYANT * made.forecaster.endswith(CLAIRVOYANT)
        if isinstance(made, Failure):
            return replace(made, forecaster=named)
        return replace(made, forecaster=named, trace=made.trace or f"context {shared.digest}")

    def _inner(self) -> Forecaster:
        """The belief agent is told in its instructions, too, that there is nothing to look up."""
        if isinstance(self.forecaster, BeliefAgent) and not self.tools:
            return replace(self.forecaster, variant=replace(self.forecaster.variant, tools=False, steps=1))
        return self.forecaster

    def _told(self, shared: Context) -> Question:
        question = shared.question
        if not self.shown.market:
            question = replace(question, targets=tuple(replace(target, snapshot=None) for target in question.targets))
        shown = material(shared, self.shown)
        parts = [GATHERED, shown, question.background] if shown else [question.background]
        return replace(question, background="\n\n".join(filter(None, parts)))

    def _surroundings(self, shared: Context, question: Question, context: RunContext) -> RunContext:
        """The same context with another toolbox.

        Tools see the question as it was asked: the addresses of its sources, now in its background, would else count
        as pages that decide it, and be closed.
        """
        if not isinstance(context, AgentContext):
            return context
        if not self.tools:

            def sources(_: Question, run: AgentContext) -> Fenced:
                return only_sources(shared, run.emit, searchable=self.shown.sources)

            return replace(context, toolbox=sources)
        make = context.toolbox
        # Only markets have a tool for prices.
        seen = question if self.shown.market else replace(question, kind="dataset")

        def toolbox(_: Question, run: AgentContext) -> Fenced:
            return make(seen, run)

        return replace(context, toolbox=toolbox)


async def _attempted(forecaster: Forecaster, question: Question, context: RunContext) -> Forecast | Failure:
    if isinstance(forecaster, Attempts):
        return await forecaster.attempt(question, context)
    return await forecaster.forecast(question, context)
