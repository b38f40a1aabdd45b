"""A model that reads the reasons of several trials, but not their numbers, and answers for all of them.

BLF 2026 found this worse than a plain mean; it is kept so that anyone can check that on other models.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.agent.rationale import without_numbers
from foretell.forecasters.agent.variants import ZERO_SHOT
from foretell.forecasters.forecaster import RunContext
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question

LONGEST = 8000
"""Characters of one trial's reasons."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Hands the trials' reasons to an agent as part of the question. With tools it may settle disagreements itself."""

    agent: BeliefAgent = field(default_factory=lambda: BeliefAgent(variant=ZERO_SHOT, label="panel"))

    async def judge(self, question: Question, forecasts: Sequence[Forecast], context: RunContext) -> Forecast:
        """The agent's forecast after reading what the others found."""
        reports = [f"## Report {n}\n\n{_reasons(one)}" for n, one in enumerate(forecasts, start=1)]
        heading = (
            "# What others found\n\n"
            "Analysts worked on this question apart from each other. Their reports follow, without their numbers. "
            "Where they agree on a fact, it may still come from one source; where they disagree, decide who has the "
            "better evidence."
        )
        extra = "\n\n".join([heading, *reports])
        return await replace(self.agent, extra=extra).forecast(question, context)


def _reasons(forecast: Forecast) -> str:
    return without_numbers(forecast.rationale)[:LONGEST] or "(no reasons given)"
