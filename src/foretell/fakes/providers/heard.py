"""What a fake provider hears and says, whatever format the two come in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

SaidFinish = Literal["stop", "tool", "length", "refusal"]


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool on offer."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Heard:
    """A request for a completion."""

    format: str
    """openai, anthropic or gemini."""
    hash: str
    """Of path and body: two equal requests have the same."""
    json: Mapping[str, Any]
    model: str
    words: str
    """Every text of the conversation."""
    last: str
    """The last text of the conversation."""
    tools: tuple[Tool, ...] = ()
    force: str | None = None
    """The tool that must be called; "*" for any."""
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Call:
    """A tool call to answer with. The arguments may be broken JSON on purpose."""

    name: str
    arguments: str | Mapping[str, Any] = "{}"


@dataclass(frozen=True, kw_only=True)
class Said:
    """A completion."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    finish: SaidFinish | None = None
    """None for what fits: `tool` with calls, else `stop`."""
    input: int | None = None
    output: int | None = None
    """Tokens; None for a guess by length."""
    cached: int = 0
    stored: int = 0
    """Input tokens written to the cache; Anthropic bills them apart."""
    thoughts: str = ""
    """What was thought before, sealed in each provider's way: it must come back with the next request."""

    @property
    def ending(self) -> SaidFinish:
        """How it ended."""
        return self.finish or ("tool" if self.calls else "stop")

    def tokens(self, heard: Heard) -> tuple[int, int]:
        """Input and output, as stated or guessed."""
        written = len(self.text) + sum(len(str(call.arguments)) for call in self.calls)
        read = len(heard.words) // 4 + 1 if self.input is None else self.input
        return read, written // 4 + 1 if self.output is None else self.output


class Format(Protocol):
    """One provider's way of writing."""

    name: str

    def owns(self, path: str) -> bool:
        """Whether a request to this path is one of mine."""
        ...

    def hear(self, path: str, body: dict[str, Any], hash: str) -> Heard:
        """Understand a request."""
        ...

    def say(self, said: Said, heard: Heard) -> dict[str, Any]:
        """Write a completion."""
        ...

    def fail(self, status: int, told: str) -> dict[str, Any]:
        """Write an error."""
        ...


@dataclass(frozen=True, kw_only=True)
class Texts:
    """Collects the texts of a conversation, however deep they lie."""

    found: list[str] = field(default_factory=list[str])

    def add(self, content: Any) -> None:
        """A string, or a list or dict with `text`, `content` or `parts` in it."""
        if isinstance(content, str):
            self.found.append(content)
        elif isinstance(content, list):
            for part in content:
                self.add(part)
        elif isinstance(content, dict):
            for name in ("text", "content", "parts", "response", "output", "result"):
                self.add(content.get(name))
