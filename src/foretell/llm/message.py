"""What is said to a model and what it says back: a closed set of values, the same for every provider."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

Finish = Literal["stop", "tool", "length", "refusal"]
Effort = Literal["none", "low", "medium", "high"]


@dataclass(frozen=True, kw_only=True)
class System:
    """The standing instruction; first in every conversation."""

    text: str


@dataclass(frozen=True, kw_only=True)
class User:
    """What we say."""

    text: str
    cached: bool = False
    """Ends a prefix that stays the same over many requests: providers that need a cache mark get one here."""


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A call the model asks for. The arguments are its own text: they may be no JSON at all."""

    id: str
    name: str
    arguments: str
    mark: str = ""
    """What the provider wants back with the call (Gemini signs calls it thought about); nobody else reads it."""


@dataclass(frozen=True, kw_only=True)
class Assistant:
    """What the model said in an earlier turn."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    thoughts: str = ""
    """What it thought before, in the provider's own sealed form: handed back as it came, read by nobody else."""


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """What a call returned, or why it failed."""

    call_id: str
    name: str
    text: str


Message = System | User | Assistant | ToolResult


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


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to sample. None leaves the provider's default."""

    temperature: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    effort: Effort | None = None


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
    settings: Settings = field(default_factory=Settings)
    slot: str = ""
    """Tells repeated requests with equal words apart (trial, attempt): each is paid for and journalled once."""


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """What was read and written."""

    input: int = 0
    output: int = 0
    cached: int = 0
    """Part of the input that was billed at the cache price."""
    stored: int = 0
    """Part of the input that was billed at the price of writing the cache."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What came back."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: Finish = "stop"
    tokens: Tokens = field(default_factory=Tokens)
    model: str = ""
    """As the provider named it."""
    thoughts: str = ""
    """See `Assistant.thoughts`."""

    def as_message(self) -> Assistant:
        """The turn to append to the conversation."""
        return Assistant(text=self.text, calls=self.calls, thoughts=self.thoughts)
