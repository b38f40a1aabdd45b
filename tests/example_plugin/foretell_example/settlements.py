"""Outcomes of the market's questions. They are in a module of their own, so that forecasters never load them."""

from collections.abc import Sequence
from dataclasses import dataclass

from foretell.questions.question import Question
from foretell.questions.resolution import Resolution
from foretell_example.market import Client


@dataclass(frozen=True)
class Settlements:
    """Final results."""

    client: Client
    platform = "example_market"

    async def settlements(self, questions: Sequence[Question]) -> list[Resolution]:
        """Return the known outcomes."""
        results = {row.need("id").text(): row.need("result").text() for row in await self.client.rows()}
        return [
            Resolution(
                question_id=question.id,
                due=question.due,
                target_id="yes",
                outcome=int(results[question.id.partition("/")[2]] == "yes"),
            )
            for question in questions
        ]
