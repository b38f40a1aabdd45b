"""The numbers of the loop, in one place."""

from dataclasses import dataclass, field
from typing import Literal

from foretell.forecasters.agent.submit import Clamp
from foretell.llm.message import Settings

Asking = Literal["tools", "schema"]


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """How long an agent may work and how it is asked."""

    steps: int = 10
    """Generations in all; at the last one only `submit` is left."""
    seconds: float = 600.0
    reserve: float = 60.0
    """With less time than this left, the next step is the last: an answer beats one more search."""
    again: int = 2
    """How often a reply that cannot be used is asked for again, within one step."""
    clamp: Clamp = field(default_factory=Clamp)
    asking: Asking = "tools"
    """`schema` for models that cannot call tools: the same action and belief as one JSON answer."""
    sampling: Settings | None = None
    """None: what the run says for the agent's role."""
    fixed: bool = True
    """Obey sources whose tools are laid down step by step."""
    closing_time: bool = False
    """Show in a backtest when the market closes. Some sources report when it really closed, which tells the outcome."""

    def __post_init__(self) -> None:
        if self.steps < 1 or self.again < 0 or self.seconds <= 0:
            raise ValueError("an agent needs at least one step, some time, and a count of repetitions >= 0")
