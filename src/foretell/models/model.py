"""The interface of models: requests, replies and errors."""

import json
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, Literal, Protocol, get_args, runtime_checkable

from foretell.frozen import frozen
from foretell.models.reservation import LosableReservation
from foretell.questions.errors import InputError
from foretell.questions.field_checks import check_fields

# Messages, requests and replies: a closed set of types, the same for every provider.

FinishReason = Literal["stop", "tool", "length", "refusal", "paused", "malformed"]
"""Why a reply ended. `paused`: the provider wants to continue the turn. `malformed`: a fault; see `Reply.detail`."""
ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[ReasoningEffort, ...] = get_args(ReasoningEffort)
ServiceTier = Literal["standard", "flex", "batch", "priority", "ultrafast"]
"""`flex` costs half and may take minutes, `batch` half and up to a day, `priority` double, `ultrafast` six times."""


@frozen
class SystemMessage:
    """The system prompt; first in every conversation."""

    text: str


@frozen
class UserMessage:
    """A message to the model."""

    text: str
    cached: bool = False
    """Whether a prefix shared by many requests ends here. Providers that need a cache mark get one."""


@frozen
class ToolCall:
    """A tool call by the model. The arguments are its own text and may not be valid JSON."""

    id: str
    name: str
    arguments: str


@frozen
class AssistantMessage:
    """An earlier turn of the model."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    sealed: str = ""
    """The turn in the provider's own form, with reasoning and signatures; sent back unchanged."""


@frozen
class ToolResult:
    """The result of a tool call, or why it failed."""

    call_id: str
    name: str
    text: str


Message = SystemMessage | UserMessage | AssistantMessage | ToolResult


@frozen
class ToolSpec:
    """A tool offered to the model."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of the arguments."""

    @cached_property
    def parameters_json(self) -> str:
        """The schema as sent, in its original order. Cached, because every step sends the same tools."""
        return json.dumps(self.parameters, separators=(",", ":"))


@frozen
class ModelSettings:
    """Sampling settings. None leaves the provider's default."""

    temperature: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    effort: ReasoningEffort | None = None
    """How long to think. A model without this level uses the nearest lower one at which it thinks, else its lowest."""
    tier: ServiceTier | None = None


@frozen
class Request:
    """One request to one model."""

    model: str
    """`provider:name`."""
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    force: str | None = None
    """A tool the model must call; "*" for any of them."""
    schema: Mapping[str, Any] | None = None
    """JSON schema of the reply's text, for models that are asked without tools."""
    settings: ModelSettings = ModelSettings()
    slot: str = ""
    """Distinguishes repeated requests with the same text (trial, attempt). Each is paid for and journalled once."""
    cap: int | None = field(default=None, compare=False)
    """Maximum output tokens the budget can pay for. Not part of the journal key."""
    reservations: tuple[LosableReservation, ...] = field(default=(), compare=False, repr=False)
    """Money reserved for the call. Lost replies are reported here before a retry."""

    def paid_from(self, reservation: LosableReservation, cap: int | None) -> "Request":
        """The same request with money reserved for it; cached values, such as its key, are kept."""
        paid = object.__new__(Request)
        vars(paid).update(vars(self), cap=cap, reservations=(*self.reservations, reservation))
        return paid

    def capped(self, cap: int) -> "Request":
        """The same request with a lower cap. A request without a cap is not paid from a limited budget."""
        if self.cap is None or cap >= self.cap:
            return self
        capped = object.__new__(Request)
        vars(capped).update(vars(self), cap=cap)
        return capped

    @property
    def max_tokens(self) -> int | None:
        """Maximum output tokens, by the settings and by the budget."""
        limits = [limit for limit in (self.settings.max_tokens, self.cap) if limit is not None]
        return min(limits) if limits else None


@frozen
class TokenCount:
    """Tokens read and written."""

    input: int = 0
    output: int = 0
    cached: int = 0
    """Input tokens billed at the cache price."""
    stored: int = 0
    """Input tokens billed at the price of writing to the cache."""
    reasoning: int = 0
    """Output tokens spent on reasoning."""
    estimated: bool = False
    """Whether some counts are estimated because those of the provider are missing or cannot be right."""


@frozen
class Reply:
    """A model's reply."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: FinishReason = "stop"
    tokens: TokenCount = TokenCount()
    model: str = ""
    """The model's name as reported by the provider."""
    sealed: str = ""
    """See `AssistantMessage.sealed`."""
    thinking: str = ""
    """The reasoning, as far as the provider shows it."""
    dollars: float | None = None
    """The cost of the call, if the provider states it; never 0."""
    tier: ServiceTier | None = None
    """The service tier that was used, if known to differ from the requested one."""
    detail: str = ""
    """The provider's own word for an unusual ending, such as the category of a refusal."""
    cap: int | None = None
    """The token limit set by the budget, if the reply was cut off there; None otherwise."""
    key: str = field(default="", compare=False)
    """Its journal key, if not that of the original request."""
    cut_off: tuple["Reply", ...] = field(default=(), compare=False)
    """Earlier replies to the same request that a smaller budget cut off. They were paid for too."""
    charged: float | None = field(default=None, compare=False)
    """What the ledger charged for it, now or when it was stored; None if its price is not known."""
    reused: bool = field(default=False, compare=False)
    """Whether it came from the journal and another run had paid for it."""

    def __post_init__(self) -> None:
        check_fields(self)

    def as_message(self) -> AssistantMessage:
        """The turn to append to the conversation."""
        return AssistantMessage(text=self.text, calls=self.calls, sealed=self.sealed)


class ModelError(Exception):
    """A call failed for good: retries are used up or make no sense."""


class ModelBusy(ModelError):
    """The provider is overloaded or limits us; `wait` is the pause it asked for, in seconds."""

    def __init__(self, problem: str, *, wait: float | None = None) -> None:
        super().__init__(problem)
        self.wait = wait


class ModelRefused(ModelError):
    """The provider rejects the key or the request: wrong key, unknown model, malformed request."""


class KeyRefused(ModelRefused):
    """The provider rejects the key."""


class ContextTooLong(ModelRefused):
    """The conversation is longer than the model can read."""


class ReplyTooLong(ModelError):
    """The reply is too large to store. It was billed, and a retry would give the same result."""


class OutOfCredit(ModelRefused):
    """The account has no credit left or has reached its spend limit: retrying makes no sense."""


class SettingRefused(ModelRefused):
    """The model rejects one of the settings; the request may succeed without it."""

    def __init__(self, problem: str, *, setting: str) -> None:
        super().__init__(problem)
        self.setting = setting
        """A key of `SETTINGS` in `providers.api_format`."""


class BudgetExceeded(ModelError):
    """The call would exceed the budget of the question or the run."""


@runtime_checkable
class Model(Protocol):
    """Answers requests. Wrappers add one concern each: journal, limits, budget, retries, time."""

    async def complete(self, request: Request) -> Reply:
        """The model's reply, or a `ModelError`."""
        ...


# Failures that the journal distinguishes: a lost reply, a request that was never sent, one that is in flight.


class ReplyLost(ModelBusy):
    """The request reached the provider and no usable reply was received. It may have been billed."""


class BatchDeferred(ModelBusy):
    """The provider had no room for a batch or did not process it in time. It is not billed and is submitted again.

    The batch waits in the batch queue, so that its requests stay together.
    """


class NotInJournal(InputError):
    """A replay needs an answer that is not in the journal."""


class ReservationReleased(Exception):
    """The money for a request was released while this process was suspended, so it must not be sent."""


class RequestInFlight(Exception):
    """Another process that shares the journal is sending this request, and its answer will be used."""
