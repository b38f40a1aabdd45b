"""A forecaster that asks a model."""

from typing import Any

from foretell.questions.forecast import Forecast
from foretell.questions.question import Question


class ExampleForecaster:
    """Asks the model of the run for a probability, and uses it for every target."""

    name = "example_forecaster"
    asks_models = True

    async def forecast(self, question: Question, context: Any) -> Forecast:
        """Ask once, and read the reply as a number."""
        reply = await context.ask(f"How likely is it? {question.text} Answer with a number from 0 to 1.")
        p = float(reply.text)
        return Forecast(
            question_id=question.id,
            forecaster=self.name,
            as_of=context.as_of,
            p={target.id: p for target in question.targets},
            trial=context.trial,
        )
