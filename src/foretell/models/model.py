"""The interface of models and of their providers: requests and replies, errors by who must act, the registry entry."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, get_args, runtime_checkable

from foretell.plugins import load
from foretell.questions.errors import InputError
from foretell.questions.quick_init import quick_init

if TYPE_CHECKING:
    from foretell.models.journal import Journal
    from foretell.models.ledger import Grant, Ledger
    from foretell.models.names import ModelName
    from foretell.models.prices import TokenPrice

# What is said to a model and what it says back: a closed set of values, the same for every provider.

FinishReason = Literal["stop", "tool", "length", "refusal", "paused", "malformed"]
"""Why a reply ended. `paused`: the provider wants the turn back. `malformed`: a fault, named in `Reply.detail`."""
ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[ReasoningEffort, ...] = get_args(ReasoningEffort)
ServiceTier = Literal["standard", "flex", "batch", "priority", "ultrafast"]
"""`flex` costs half and may take minutes, `batch` half and up to a day, `priority` double, `ultrafast` six times."""


@quick_init
@dataclass(frozen=True, kw_only=True)
class SystemMessage:
    """The system prompt; first in every conversation."""

    text: str


@quick_init
@dataclass(frozen=True, kw_only=True)
class UserMessage:
    """A message from us."""

    text: str
    cached: bool = False
    """Whether a prefix shared by many requests ends here; providers that need a cache mark get one."""


@quick_init
@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A tool call by the model. The arguments are its own text and may not be valid JSON."""

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
    """The turn in the provider's own form, with reasoning and signatures; sent back unchanged."""


@quick_init
@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """The result of a tool call, or why it failed."""

    call_id: str
    name: str
    text: str


Message = SystemMessage | UserMessage | AssistantMessage | ToolResult


@dataclass(frozen=True, kw_only=True)
class ToolSpec:
    """A tool offered to the model."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of the arguments."""

    @cached_property
    def parameters_json(self) -> str:
        """The schema as sent, in its original order, encoded once because the same tools go with every step."""
        return json.dumps(self.parameters, separators=(",", ":"))


@quick_init
@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """Sampling settings. None leaves the provider's default."""

    temperature: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    effort: ReasoningEffort | None = None
    """How long to think. A model without this level uses the nearest lower one at which it thinks, else its lowest."""
    tier: ServiceTier | None = None


class LosableReservation(Protocol):
    """Money reserved for a call."""

    ended: bool
    """Whether the ledger knows how the call ended."""
    grant: "Grant"
    """What the ledger has reserved: the most one attempt can cost."""

    @property
    def payer(self) -> str:
        """The run that pays; empty if there is none."""
        ...

    @property
    def ledger(self) -> "Ledger":
        """The ledger that holds it."""
        ...

    def ended_with_reply(self) -> None:
        """The journal has billed the call together with its reply."""
        ...

    async def lose(self) -> int:
        """An attempt may have been billed: reserve the next, or raise `BudgetExceeded`. Returns its maximum tokens."""
        ...

    async def reprice(self, factor: float) -> int:
        """Reserve again because the price multiplier has changed. Returns the maximum output tokens."""
        ...


@quick_init
@dataclass(frozen=True, kw_only=True)
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
    """Distinguishes repeated requests with the same words (trial, attempt): each is paid for and journalled once."""
    cap: int | None = field(default=None, compare=False)
    """Maximum output tokens the budget can pay for. Not part of the journal key."""
    reservations: tuple["LosableReservation", ...] = field(default=(), compare=False, repr=False)
    """Money reserved for the call; whoever retries it reports lost replies here."""

    def paid_from(self, reservation: "LosableReservation", cap: int | None) -> "Request":
        """The same request with money reserved for it; cached values, such as its key, are kept."""
        paid = object.__new__(Request)
        vars(paid).update(vars(self), cap=cap, reservations=(*self.reservations, reservation))
        return paid

    def capped(self, cap: int) -> "Request":
        """The same request with less money. A request without a cap is not paid from a limited budget."""
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


@quick_init
@dataclass(frozen=True, kw_only=True)
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
    """Whether some counts are our own estimates because those of the provider are missing or cannot be right."""


@quick_init
@dataclass(frozen=True, kw_only=True)
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
    """The reply is larger than we store. It was billed, and another attempt would bring the same."""


class OutOfCredit(ModelRefused):
    """The account has no credit left or has reached its spend limit: retrying makes no sense."""


class SettingRefused(ModelRefused):
    """The model rejects one of the settings; the request may succeed without it."""

    def __init__(self, problem: str, *, setting: str) -> None:
        super().__init__(problem)
        self.setting = setting
        """One of `SETTINGS` in `providers.wire`."""


class BudgetExceeded(ModelError):
    """The call would exceed the budget of the question or the run."""


@runtime_checkable
class Model(Protocol):
    """Answers requests. Wrappers add one concern each: journal, limits, budget, retries, time."""

    async def complete(self, request: Request) -> Reply:
        """The model's reply, or a `ModelError`."""
        ...


# Failures the journal must tell from the rest: a reply lost, a question never asked, one that another is asking.


class ReplyLost(ModelBusy):
    """The request reached the provider and no usable reply came back: it may have been billed."""


class BatchDeferred(ModelBusy):
    """The provider had no room for a batch or did not get to it in time: nothing was billed, and it is submitted again.

    The batch waits where batches are collected, so that its requests stay together.
    """


class NotInJournal(InputError):
    """A replay asks for something that the recorded run never asked."""


class ReservationReleased(Exception):
    """The money for a request was released while this process was away: nothing may be sent for it."""


class RequestInFlight(Exception):
    """Another process that shares the journal is sending this request; its answer will do."""


# A model provider as the registry sees it: how models are named, which key it needs, how to open a client.


class ProviderClient(Model, Protocol):
    """A model that holds connections."""

    async def close(self) -> None:
        """Close the connections."""
        ...


@dataclass(frozen=True, kw_only=True)
class ProviderConfig:
    """What a client is opened with."""

    name: "ModelName"
    """The first model to be asked. Unless the provider is `per_model`, the client also serves its other models."""
    key: str = field(default="", repr=False)
    address: str = ""
    """Address for requests: from the settings, the model's name, or the provider's own `address`."""
    journal: "Journal | None" = field(default=None, repr=False)
    """Where a client that submits batches records them."""


@dataclass(frozen=True, kw_only=True)
class Provider:
    """A way to reach language models. Everything except `open` has a default that suits a service without a key."""

    open: Callable[[ProviderConfig], ProviderClient]
    """Creates the client, which connects on first use."""
    form: str = ""
    """How to write the names of its models, such as `openai:NAME`; shown when a name is wrong."""
    key_variables: tuple[str, ...] = ()
    """Environment variables that may hold the key; the first one that is set is used."""
    key_required: bool = True
    address: str = ""
    requires: str = ""
    """A Python module that is needed to use the provider."""
    extra: str = "llm"
    """The extra of foretell that installs the module."""
    per_model: bool = False
    """Whether every model has its own client, limits and bill, like files on this machine."""
    named_with_address: bool = False
    """Whether model names end in the server's address: `PROVIDER:NAME@URL`."""
    free: bool = False
    """Whether its models run in this process and cost nothing."""
    tiers: tuple[str, ...] = ()
    """Its service tiers besides the standard one, each with its own price."""
    price_ids: Callable[[str], Sequence[tuple[str, str]]] = lambda name: ()
    """From a model's name to (vendor, model) pairs in the public price list, best match first."""
    price: Callable[[str], "TokenPrice | None"] = lambda name: None
    """The price that the provider itself states for a model."""


def load_provider(name: str) -> Provider:
    """The provider with this name; registered functions and models are wrapped as providers."""
    plugin = load("models", name)
    if isinstance(plugin, Provider):
        return plugin
    from foretell.models.providers.function import function_provider

    return function_provider(name, cast("Callable[..., Any] | Mapping[str, Any] | Model", plugin))
