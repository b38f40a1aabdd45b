"""One trial step by step: what it looked for, what it saw, what was kept from it, and what it believed after each."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, cast

from foretell.questions import trace as kinds
from foretell.questions.trace import TraceEvent
from foretell.report.trace import describe_event
from foretell.tools.names import WEB_SEARCH
from foretell.web.run_rows import SpendingView

TraceEventKind = Literal["model", "tool", "withheld", "belief", "tree", "answer", "failed"]
Probabilities = dict[str, float]
SOURCE_HEAD = re.compile(r"^\[([\w.-]{1,80})\] (.{0,500})$", re.MULTILINE)
"""The first line of a result as a model sees it, and of a source at the end of a rationale."""
URL_PATTERN = re.compile(r"^(.*?)\s*(https?://\S+)$")


@dataclass(frozen=True, kw_only=True)
class SourceView:
    """Something that may be cited."""

    id: str
    title: str
    """With place and date, as the model was shown it."""
    url: str = ""


@dataclass(frozen=True, kw_only=True)
class EvidenceView:
    """A claim and where it comes from."""

    claim: str
    source: SourceView | None
    """None: the model named none, or one that does not exist."""


@dataclass(frozen=True, kw_only=True)
class BeliefPointView:
    """The belief after a step."""

    step: int
    p: Probabilities
    reason: str
    confidence: str


@dataclass(frozen=True, kw_only=True)
class TraceEventView:
    """One event. Which fields are filled depends on its kind."""

    id: int
    """Its number in the store; live streams use the same."""
    kind: TraceEventKind
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
class TraceView:
    """All that is known of how a trial went."""

    happenings: tuple[TraceEventView, ...]
    path: tuple[BeliefPointView, ...]
    """The belief after every step that changed it."""
    evidence_for: tuple[EvidenceView, ...]
    evidence_against: tuple[EvidenceView, ...]
    """As they stand in the last belief."""
    open_questions: tuple[str, ...]
    searches: tuple[str, ...]
    tools: dict[str, int]
    """How often each tool was used."""
    withheld: dict[str, int]
    """How much each layer of the fence kept back."""
    spending: SpendingView
    how: str
    """How it came to its answer."""


def trace_view(events: Sequence[tuple[int, TraceEvent]], rationale: str = "") -> TraceView:
    """The trace that the events of one cell tell; the rationale adds the addresses of what was cited."""
    happened = [event for _, event in events]
    beliefs = [event for event in happened if isinstance(event, kinds.BeliefRevised)]
    used = [event for event in happened if isinstance(event, kinds.ToolUsed)]
    sources = _sources(used, rationale)
    last: Mapping[str, Any] = beliefs[-1].belief if beliefs else {}
    return TraceView(
        happenings=tuple(_event_view(number, event) for number, event in events),
        path=tuple(
            BeliefPointView(step=b.step, p=dict(b.p), reason=b.reason, confidence=str(b.belief.get("confidence", "")))
            for b in beliefs
        ),
        evidence_for=_evidence(last.get("evidence_for"), sources),
        evidence_against=_evidence(last.get("evidence_against"), sources),
        open_questions=tuple(map(str, last.get("open_questions") or ())),
        searches=tuple(str(event.arguments.get("query", "")) for event in used if event.tool == WEB_SEARCH),
        tools=dict(Counter(event.tool for event in used)),
        withheld=dict(Counter(event.layer for event in happened if isinstance(event, kinds.LeakBlocked))),
        spending=SpendingView().plus(happened),
        how=next((event.how for event in reversed(happened) if isinstance(event, kinds.ForecastMade)), ""),
    )


def _event_view(number: int, event: TraceEvent) -> TraceEventView:
    make = partial(TraceEventView, id=number)
    match event:
        case kinds.ModelCalled():
            text = f"{event.model}: {event.input_tokens:,} tokens read, {event.output_tokens:,} written"
            return make(kind="model", title=event.role, text=text, dollars=event.dollars, replayed=event.replayed)
        case kinds.ToolUsed():
            return make(
                kind="tool",
                step=event.step,
                title=event.tool,
                text=event.result,
                arguments={name: str(value) for name, value in event.arguments.items() if name != "updated_belief"},
                sources=tuple(event.sources),
                failed=event.failed,
            )
        case kinds.LeakBlocked():
            text, title = f"{event.layer}: {event.reason}", event.title or event.layer
            return make(kind="withheld", title=title, text=text, url=event.url, published=event.published)
        case kinds.BeliefRevised():
            return make(kind="belief", step=event.step, text=event.reason, p=dict(event.p))
        case kinds.ForecastMade():
            return make(kind="answer", text=event.how, p=dict(event.p))
        case kinds.Failed():
            return make(kind="failed", text=event.error, failed=True)
        case _:
            return make(kind="tree", text=describe_event(event))


def _evidence(written: Any, sources: Mapping[str, SourceView]) -> tuple[EvidenceView, ...]:
    if not isinstance(written, list | tuple):
        return ()
    found: list[EvidenceView] = []
    for item in cast("Sequence[Any]", written):
        if isinstance(item, dict):
            fields = cast("dict[str, Any]", item)
            id = str(fields.get("source_id", ""))
            source = sources.get(id) or (SourceView(id=id, title=id) if id else None)
            found.append(EvidenceView(claim=str(fields.get("claim", "")), source=source))
    return tuple(found)


def _sources(used: Sequence[kinds.ToolUsed], rationale: str) -> dict[str, SourceView]:
    """By id: the title as the model saw it, with the address where the rationale or the call tells it."""
    found = {"question": SourceView(id="question", title="the question itself")}
    for event in used:
        heads = {id: title for id, title in SOURCE_HEAD.findall(event.result)[:200]}
        url = str(event.arguments.get("url", "")) if len(event.sources) == 1 else ""
        for id in event.sources:
            found[id] = SourceView(id=id, title=heads.get(id, id), url=url)
    for id, line in SOURCE_HEAD.findall(rationale[-100_000:]):
        if id in found and (cited := URL_PATTERN.match(line)):
            found[id] = SourceView(id=id, title=cited[1] or found[id].title, url=cited[2])
    return found
