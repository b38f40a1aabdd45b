"""What one trial is given before it starts."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from foretell.forecasters.agent.belief import Belief
from foretell.forecasters.agent.offer import Offer
from foretell.forecasters.agent.settings import AgentSettings
from foretell.llm.message import Request
from foretell.llm.model import Model
from foretell.questions.event import Emit
from foretell.tools.fence import Fenced


def all_tools(step: int) -> None:
    """A policy that narrows nothing."""


@dataclass(frozen=True, kw_only=True)
class Push:
    """An experiment: after the model stated its belief at a step, its probabilities are replaced.

    Not for numeric questions, where quantiles are stated.
    """

    step: int
    p: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Job:
    """Everything one trial needs."""

    request: Request
    """Model, sampling and slot; the messages are the opening of the conversation."""
    offer: Offer
    belief: Belief
    model: Model
    toolbox: Fenced
    emit: Emit
    settings: AgentSettings = field(default_factory=AgentSettings)
    allowed: Callable[[int], Collection[str] | None] = all_tools
    """Tools by step, where the policy narrows them; None for all."""
    push: Push | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.toolbox, Fenced):  # pyright: ignore[reportUnnecessaryIsInstance] - the rule of the house
            raise TypeError(f"the loop accepts only a fenced toolbox, not {type(self.toolbox).__name__}")

    @property
    def steps(self) -> int:
        """Generations in all: the variant's own number, within the limit."""
        return min(self.settings.steps, self.offer.variant.steps or self.settings.steps)

    @property
    def reserve(self) -> float:
        """Seconds kept for the answer, at most a fifth of the whole time."""
        return min(self.settings.reserve, self.settings.seconds / 5)
