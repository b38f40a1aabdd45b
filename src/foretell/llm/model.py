"""The port every model stands behind, and the errors told apart by who must act."""

from typing import Protocol

from foretell.llm.message import Reply, Request


class ModelError(Exception):
    """A call to a model failed for good: retries are used up, or retrying makes no sense."""


class ModelBusy(ModelError):
    """The provider is overloaded or limits us; `wait` is what it asked for, in seconds."""

    def __init__(self, problem: str, *, wait: float | None = None) -> None:
        super().__init__(problem)
        self.wait = wait


class ModelRefused(ModelError):
    """The provider does not accept us or the request: wrong key, unknown model, malformed request."""


class BudgetSpent(ModelError):
    """The hard budget of the question or the run would be exceeded; the standing belief is the answer."""


class Model(Protocol):
    """Answers requests. Wrappers add one concern each: journal, limits, budget, retries, time."""

    async def complete(self, request: Request) -> Reply:
        """The model's reply, or a `ModelError`."""
        ...
