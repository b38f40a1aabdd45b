"""What the agent leans on besides the question: models, a fenced toolbox, a listener."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from foretell.forecasters.forecaster import RunContext
from foretell.forecasters.priors import Rates
from foretell.llm.canonical import request_key
from foretell.llm.message import Reply, Request
from foretell.llm.model import Model
from foretell.llm.prices import Prices
from foretell.llm.roles import Models, Role
from foretell.questions.event import Emit, Event, ModelCalled, ignore
from foretell.questions.forecast import Usage
from foretell.questions.question import Question
from foretell.tools.fence import Fenced


@dataclass(frozen=True, kw_only=True)
class AgentContext(RunContext):
    """A run context with everything that costs money or comes from outside."""

    models: Models
    """Which model has which role."""
    model: Model
    """Answers requests to any of them, behind journal, limits and budget."""
    toolbox: Callable[[Question, "AgentContext"], Fenced]
    """A new fenced toolbox for every trial: its shelf and its events are the trial's own."""
    emit: Emit = ignore
    trial: int = 0
    seed: int | None = None
    """Sent to the model, different in each trial; None leaves sampling to the provider."""
    prices: Prices | None = None
    rates: Rates | None = None
    """Base rates for variants that are told the prior."""

    def for_trial(self, trial: int, emit: Emit | None = None) -> "AgentContext":
        """The same context for another trial, which is asked, journalled and seeded on its own."""
        return replace(self, trial=trial, emit=emit or self.emit)


class Tally:
    """Passes events on and adds up what the models cost."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.usage = Usage()

    def __call__(self, event: Event) -> None:
        """Count, then tell."""
        if isinstance(event, ModelCalled):
            self.usage = Usage(
                dollars=self.usage.dollars + (event.dollars or 0.0),
                input_tokens=self.usage.input_tokens + event.input_tokens,
                output_tokens=self.usage.output_tokens + event.output_tokens,
                calls=self.usage.calls + 1,
            )
        self._emit(event)


class Watched:
    """A model whose every answer is an event."""

    def __init__(self, inner: Model, emit: Emit, role: Role, prices: Prices | None = None) -> None:
        self._inner = inner
        self._emit = emit
        self._role = role
        self._prices = prices

    async def complete(self, request: Request) -> Reply:
        """The reply, told to the listener first."""
        reply = await self._inner.complete(request)
        tokens = reply.tokens
        self._emit(
            ModelCalled(
                role=self._role,
                model=request.model,
                key=request_key(request),
                input_tokens=tokens.input,
                output_tokens=tokens.output,
                dollars=self._prices.dollars(request.model, tokens) if self._prices else None,
            )
        )
        return reply
