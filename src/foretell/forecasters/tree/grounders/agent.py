"""The belief agent as a grounder: it researches one claim step by step and keeps a belief all the way."""

from dataclasses import dataclass, field, replace

from foretell.forecasters.agent.agent import BeliefAgent, without_numbers
from foretell.forecasters.agent.settings import FULL, AgentSettings, Clamp
from foretell.forecasters.forecaster import Context, attempt
from foretell.forecasters.tree.grow.ground import CannotGround, GroundingResult, Leaf
from foretell.forecasters.tree.grow.prompting import LONGEST_REPORT, LONGEST_SENTENCE
from foretell.forecasters.tree.proposition import Grounding
from foretell.models.model import BudgetExceeded
from foretell.questions.forecast import Failure
from foretell.questions.question import Question
from foretell.questions.trace import Failed, ForecastMade, TraceEvent
from foretell.tools.fence import FencedTools

SOURCES = "Sources:\n"


def _agent() -> BeliefAgent:
    """Without price and base rate, which are the question's and not the claim's, and without clamping a part."""
    return BeliefAgent(variant=FULL, settings=AgentSettings(clamp=Clamp(low=0.0, high=1.0)))


@dataclass(frozen=True, kw_only=True)
class AgentGrounder:
    """Runs the agent on the claim as a question of its own."""

    agent: BeliefAgent = field(default_factory=_agent)
    name: str = "agent"

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        """The agent's forecast; its rationale is the report."""

        def tools(_: Question, inner: Context) -> FencedTools:
            return context.tools(leaf.fenced, inner)

        def emit(event: TraceEvent) -> None:
            # A leaf's number is no forecast: who reads events must not take it for the question's.
            if not isinstance(event, ForecastMade | Failed):
                context.emit(event)

        question = replace(leaf.question, id=leaf.slot)
        models = context.models.with_model("agent", context.models.name("grounder"))
        found = await attempt(self.agent, question, replace(context, tools=tools, emit=emit, models=models))
        if isinstance(found, Failure):
            if "budget" in found.error:
                raise BudgetExceeded(found.error)
            raise CannotGround(found.error)
        report, _, listed = without_numbers(found.rationale).partition(SOURCES)
        clairvoyant = "+clairvoyant" if found.forecaster.endswith("+clairvoyant") else ""
        grounding = Grounding(
            grounder=self.name + clairvoyant,
            report=report.strip()[:LONGEST_REPORT],
            key_factor=report.strip().partition("\n")[0][:LONGEST_SENTENCE],
            sources=tuple(listed.strip().splitlines()),
        )
        return GroundingResult(p=found.p["yes"], grounding=grounding)
