"""The forecaster that knows the hidden truth: the upper bound of a simulation, and no competitor."""

from dataclasses import dataclass

from foretell.fakes.exchange.world import World
from foretell.forecasters.forecaster import CannotForecast, RunContext
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question

NAME = "oracle"


@dataclass(frozen=True, kw_only=True)
class Oracle:
    """Says the ideal probability of every market at the moment it is asked."""

    world: World
    name: str = NAME

    async def forecast(self, question: Question, context: RunContext) -> Forecast:
        """Straight from the world, over no wire."""
        event = self.world.by_ticker.get(question.targets[0].id)
        if event is None:
            raise CannotForecast(f"question {question.id} is not of this world")
        p = {target.id: self.world.truth(event.ticker, target.id, context.as_of.at) for target in question.targets}
        told = "The hidden truth of the simulation."
        return Forecast(question_id=question.id, forecaster=self.name, as_of=context.as_of, p=p, rationale=told)
