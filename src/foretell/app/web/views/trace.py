"""One trial step by step: what it looked for, what it saw, what was kept from it, and what it believed after each."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from foretell.app.commands.show import told
from foretell.questions import event as kinds
from foretell.questions.event import Event
from foretell.tools.names import WEB_SEARCH

Kind = Literal["model", "tool", "withheld", "belief", "tree", "answer", "failed"]
Probabilities = dict[str, float]
HEAD = re.compile(r"^\[([\w.-]{1,80})\] (.{0,500})$", re.MULTILINE)
"""The first line of a result as a model sees it, and of a source at the end of a rationale."""
ADDRESS = re.compile(r"^(.*?)\s*(https?://\S+)$")


@dataclass(frozen=True, kw_only=True)
class Source:
    """Something that may be cited."""

    id: str
    title: str
    """With place and date, as the model was shown it."""
    url: str = ""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A claim and where it comes from."""

    claim: str
    source: Source | None
    """None: the model named none, or one that does not exist."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """The belief after a step."""

    step: int
    p: Probabilities
    reason: str
    confidence: str


@dataclass(frozen=True, kw_only=True)
class Happening:
    """One event. Which fields are filled depends on its kind."""

    id: int
    """Its number in the store; live streams use the same."""
    kind: Kind
    step: int | None = None
    title: str = ""
    text: str = ""
    """What the model saw, what it said, or why something was withheld."""
    arguments: dict[str, str] = field(default_factory=dict[str, str])
    sources: tuple[str, ...] = ()
    url: str = ""
    published: str = ""
    p: Probabilities = field(default_factory=dict[str, float])
    failed: bool = False
    dollars: float | None = None
    replayed: bool = False


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What a trial or a run cost so far."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float = 0.0

    def __add__(self, other: "Spending") -> "Spending":
        return Spending(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            dollars=self.dollars + other.dollars,
        )

    @classmethod
    def of(cls, happened: Iterable[Event]) -> "Spending":
        """Summed over the calls among the events."""
        calls = [event for event in happened if isinstance(event, kinds.ModelCalled)]
        return cls(
            calls=len(calls),
            input_tokens=sum(call.input_tokens for call in calls),
            output_tokens=sum(call.output_tokens for call in calls),
            dollars=sum(call.dollars or 0.0 for call in calls),
        )


@dataclass(frozen=True, kw_only=True)
class Trace:
    """All that is known of how a trial went."""

    happenings: tuple[Happening, ...]
    path: tuple[Point, ...]
    """The belief after every step that changed it."""
    evidence_for: tuple[Evidence, ...]
    evidence_against: tuple[Evidence, ...]
    """As they stand in the last belief."""
    open_questions: tuple[str, ...]
    searches: tuple[str, ...]
    tools: dict[str, int]
    """How often each tool was used."""
    withheld: dict[str, int]
    """How much each layer of the fence kept back."""
    spending: Spending
    how: str
    """How it came to its answer."""


def trace_of(events: Sequence[tuple[int, Event]], rationale: str = "") -> Trace:
    """The trace that the events of one cell tell; the rationale adds the addresses of what was cited."""
    happened = [event for _, event in events]
    beliefs = [event for event in happened if isinstance(event, kinds.BeliefRevised)]
    used = [event for event in happened if isinstance(event, kinds.ToolUsed)]
    sources = _sources(used, rationale)
    last: Mapping[str, Any] = beliefs[-1].belief if beliefs else {}
    return Trace(
        happenings=tuple(_happening(number, event) for number, event in events),
        path=tuple(
            Point(step=b.step, p=dict(b.p), reason=b.reason, confidence=str(b.belief.get("confidence", "")))
            for b in beliefs
        ),
        evidence_for=_evidence(last.get("evidence_for"), sources),
        evidence_against=_evidence(last.get("evidence_against"), sources),
        open_questions=tuple(map(str, last.get("open_questions") or ())),
        searches=tuple(str(event.arguments.get("query", "")) for event in used if event.tool == WEB_SEARCH),
        tools=dict(Counter(event.tool for event in used)),
        withheld=dict(Counter(event.layer for event in happened if isinstance(event, kinds.LeakBlocked))),
        spending=Spending.of(happened),
        how=next((event.how for event in reversed(happened) if isinstance(event, kinds.ForecastMade)), ""),
    )


def _happening(number: int, event: Event) -> Happening:
    match event:
        case kinds.ModelCalled():
            words = f"{event.model}: {event.input_tokens:,} tokens read, {event.output_tokens:,} written"
            return Happening(
                id=number,
                kind="model",
                title=event.role,
                text=words,
                dollars=event.dollars,
                replayed=event.replayed,
            )
        case kinds.ToolUsed():
            given = {name: str(value) for name, value in event.arguments.items() if name != "updated_belief"}
            return Happening(
                id=number,
                kind="tool",
                step=event.step,
                title=event.tool,
                text=event.result,
                arguments=given,
                sources=tuple(event.sources),
                failed=event.failed,
            )
        case kinds.LeakBlocked():
            return Happening(
                id=number,
                kind="withheld",
                title=event.title or event.layer,
                text=f"{event.layer}: {event.reason}",
                url=event.url,
                published=event.published,
            )
        case kinds.BeliefRevised():
            return Happening(id=number, kind="belief", step=event.step, text=event.reason, p=dict(event.p))
        case kinds.ForecastMade():
            return Happening(id=number, kind="answer", text=event.how, p=dict(event.p))
        case kinds.Failed():
            return Happening(id=number, kind="failed", text=event.error, failed=True)
        case _:
            return Happening(id=number, kind="tree", text=told(event))


def _evidence(written: Any, sources: Mapping[str, Source]) -> tuple[Evidence, ...]:
    if not isinstance(written, list | tuple):
        return ()
    return tuple(
        Evidence(claim=str(item.get("claim", "")), source=_named(str(item.get("source_id", "")), sources))
        for item in written  # pyright: ignore[reportUnknownVariableType] - stored JSON
        if isinstance(item, dict)
    )


def _named(id: str, sources: Mapping[str, Source]) -> Source | None:
    if id == "question":
        return Source(id=id, title="the question itself")
    return sources.get(id) or (Source(id=id, title=id) if id else None)


def _sources(used: Sequence[kinds.ToolUsed], rationale: str) -> dict[str, Source]:
    """By id: the title as the model saw it, with the address where the rationale or the call tells it."""
    found: dict[str, Source] = {}
    for event in used:
        heads = {id: title for id, title in HEAD.findall(event.result)[:200]}
        url = str(event.arguments.get("url", "")) if len(event.sources) == 1 else ""
        for id in event.sources:
            found[id] = Source(id=id, title=heads.get(id, id), url=url)
    for id, line in HEAD.findall(rationale[-100_000:]):
        if id in found and (cited := ADDRESS.match(line)):
            found[id] = Source(id=id, title=cited[1] or found[id].title, url=cited[2])
    return found
