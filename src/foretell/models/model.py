"""The port every model stands behind, and the errors told apart by who must act."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, get_args, runtime_checkable

from foretell.questions.errors import InputError
from foretell.questions.quick_init import quick_init

# What is said to a model and what it says back: a closed set of values, the same for every provider.

FinishReason = Literal["stop", "tool", "length", "refusal", "paused", "malformed"]
"""`paused`: the provider wants the turn back to go on. `malformed`: it ended in a fault, such as a call that could not
be written, or for a reason that we do not know. `Reply.detail` holds the provider's word for it."""
ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[ReasoningEffort, ...] = get_args(ReasoningEffort)
ServiceTier = Literal["standard", "flex", "batch", "priority", "ultrafast"]
"""`flex` costs half and may take minutes, `batch` half and up to a day, `priority` double, `ultrafast` six times."""


@quick_init
@dataclass(frozen=True, kw_only=True)
class SystemMessage:
    """The standing instruction; first in every conversation."""

    text: str


@quick_init
@dataclass(frozen=True, kw_only=True)
class UserMessage:
    """What we say."""

    text: str
    cached: bool = False
    """Ends a prefix that stays the same over many requests: providers that need a cache mark get one here."""


@quick_init
@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A call the model asks for. The arguments are its own text: they may be no JSON at all."""

    id: str
    name: str
    arguments: str


@quick_init
@dataclass(frozen=True, kw_only=True)
class AssistantMessage:
    """What the model said in an earlier turn."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    sealed: str = ""
    """The turn in the provider's own form, thoughts and signatures included: handed back as it came."""


@quick_init
@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """What a call returned, or why it failed."""

    call_id: str
    name: str
    text: str


Message = SystemMessage | UserMessage | AssistantMessage | ToolResult


@dataclass(frozen=True, kw_only=True)
class ToolSpec:
    """A tool on offer."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of the arguments."""

    @cached_property
    def parameters_json(self) -> str:
        """The schema as it is sent, its order kept. The same tools go with every step: they are written out once."""
        return json.dumps(self.parameters, separators=(",", ":"))


@quick_init
@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """How to sample. None leaves the provider's default."""

    temperature: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    effort: ReasoningEffort | None = None
    """How long to think. A model that lacks a level takes the nearest below it at which it thinks, else its lowest."""
    tier: ServiceTier | None = None


class LosableReservation(Protocol):
    """Money that is set aside for a call."""

    @property
    def run(self) -> str:
        """The run that pays, or nothing."""
        ...

    @property
    def dollars(self) -> float:
        """How much is set aside: the most that one attempt may cost."""
        ...

    def found(self, paid_by: str) -> None:
        """The reply is stored: a run has paid for it before."""
        ...

    async def lose(self) -> int:
        """An attempt may have been billed: reserve the next, or raise `BudgetExceeded`. Returns its most tokens."""
        ...

    async def reprice(self, factor: float) -> int:
        """The call costs another multiple of the usual price: reserve that. Returns the most tokens of its reply."""
        ...


@quick_init
@dataclass(frozen=True, kw_only=True)
class Request:
    """One question to one model."""

    model: str
    """`provider:name`."""
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    force: str | None = None
    """A tool the model must call; "*" for any of them."""
    schema: Mapping[str, Any] | None = None
    """JSON schema the text of the reply must satisfy, for models that are asked without tools."""
    settings: ModelSettings = ModelSettings()
    slot: str = ""
    """Tells repeated requests with equal words apart (trial, attempt): each is paid for and journalled once."""
    cap: int | None = field(default=None, compare=False)
    """Tokens of the longest reply there is money for. No part of what is asked: the journal's key leaves it out."""
    reservations: tuple["LosableReservation", ...] = field(default=(), compare=False, repr=False)
    """What was set aside for the call; whoever sends it again says that a reply was lost."""

    def paid_from(self, reservation: "LosableReservation", cap: int | None) -> "Request":
        """The same request with money set aside for it; what is remembered of it, such as its key, stays."""
        paid = object.__new__(Request)
        vars(paid).update(vars(self), cap=cap, reservations=(*self.reservations, reservation))
        return paid

    def capped(self, cap: int) -> "Request":
        """The same request where the money has become less; one without a cap is paid from no limited budget."""
        if self.cap is None or cap >= self.cap:
            return self
        capped = object.__new__(Request)
        vars(capped).update(vars(self), cap=cap)
        return capped

    @property
    def max_tokens(self) -> int | None:
        """Tokens the reply may have: by the settings, and by the money left."""
        limits = [limit for limit in (self.settings.max_tokens, self.cap) if limit is not None]
        return min(limits) if limits else None


@quick_init
@dataclass(frozen=True, kw_only=True)
class TokenCount:
    """What was read and written."""

    input: int = 0
    output: int = 0
    cached: int = 0
    """Part of the input that was billed at the cache price."""
    stored: int = 0
    """Part of the input that was billed at the price of writing the cache."""
    reasoning: int = 0
    """Part of the output that was thought and not said."""
    estimated: bool = False
    """Whether the provider did not count, or not all, and we did."""


@quick_init
@dataclass(frozen=True, kw_only=True)
class Reply:
    """What came back."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: FinishReason = "stop"
    tokens: TokenCount = TokenCount()
    model: str = ""
    """As the provider named it."""
    sealed: str = ""
    """See `AssistantMessage.sealed`."""
    thinking: str = ""
    """What it thought, as far as the provider shows it."""
    dollars: float | None = None
    """What the call cost, where the provider says so itself."""
    tier: ServiceTier | None = None
    """In which service tier it was answered, where that is known to be another than was asked for."""
    detail: str = ""
    """The provider's own word for an unusual ending, such as the category of a refusal."""
    cap: int | None = None
    """The limit in tokens that the budget had set, where the reply was cut off there; None for any other reply."""
    key: str = field(default="", compare=False)
    """Where the journal keeps it, if that is not under the request as it was made."""
    cut_off: tuple["Reply", ...] = field(default=(), compare=False)
    """Earlier replies to the same request that a smaller budget had cut off. They were paid for too."""

    def as_message(self) -> AssistantMessage:
        """The turn to append to the conversation."""
        return AssistantMessage(text=self.text, calls=self.calls, sealed=self.sealed)


class ModelError(Exception):
    """A call to a model failed for good: retries are used up, or retrying makes no sense."""


class ModelBusy(ModelError):
    """The provider is overloaded or limits us; `wait` is what it asked for, in seconds."""

    def __init__(self, problem: str, *, wait: float | None = None) -> None:
        super().__init__(problem)
        self.wait = wait


class ModelRefused(ModelError):
    """The provider does not accept us or the request: wrong key, unknown model, malformed request."""


class KeyRefused(ModelRefused):
    """The provider does not accept the key."""


class ContextTooLong(ModelRefused):
    """The conversation is longer than the model can read."""


class ReplyTooLong(ModelError):
    """The reply is larger than we keep. It was billed, and asking again would bring the same."""


class OutOfCredit(ModelRefused):
    """The account has no credit left or has reached its spend limit: asking again makes no sense."""


class SettingRefused(ModelRefused):
    """The model does not take one of the settings; the request may go through without it."""

    def __init__(self, problem: str, *, setting: str) -> None:
        super().__init__(problem)
        self.setting = setting
        """One of those in `SETTINGS` of `providers.wire`."""


class BudgetExceeded(ModelError):
    """The hard budget of the question or the run would be exceeded; the standing belief is the answer."""


@runtime_checkable
class Model(Protocol):
    """Answers requests. Wrappers add one concern each: journal, limits, budget, retries, time."""

    async def complete(self, request: Request) -> Reply:
        """The model's reply, or a `ModelError`."""
        ...


# Failures the journal must tell from the rest: a reply lost, a question never asked, one that another is asking.


class ReplyLost(ModelBusy):
    """The request reached the provider and no usable reply came back: it may have been billed."""


class NotInJournal(InputError):
    """A replay asks for something that the recorded run never asked."""


class RequestInFlight(Exception):
    """Another process that shares the journal is asking this at the moment; its answer will do."""
