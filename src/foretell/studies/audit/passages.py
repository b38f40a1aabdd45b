"""What the agent of a run saw and what was kept from it, put together from the events and the journal.

Events hold every word a model was shown, but of a refusal only its reason, address and headline. The text that was
refused is in the journal, where the tools keep what they brought before the fence looks at it.
"""

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from foretell.models.journal import Journal
from foretell.models.model import ToolSpec
from foretell.questions.as_of import AsOf, AsOfMode, instant
from foretell.questions.question import Question, Target
from foretell.questions.trace import LeakBlocked, ToolUsed, TraceEvent
from foretell.runs.store import CellKey
from foretell.studies.audit.auditor import FenceDecision
from foretell.tools.dates.ages import without_age
from foretell.tools.fence import READ_LIMIT, SHOWN_LIMIT, SNIPPET_LIMIT, unmarked
from foretell.tools.journal import JournaledTool, journal_scope
from foretell.tools.names import FETCH_PRICES, FETCH_SERIES, PREFIXES, SUMMARIZE_RESULTS
from foretell.tools.tool import SourceItem, ToolFailed, ToolMaterial

QuestionKey = tuple[str, str]
"""One asking of a question: its id and due moment, as the store writes them."""
NUMBERS = (FETCH_SERIES, FETCH_PRICES)
"""Tools whose results are dated rows: they are checked row by row, not read."""
HEAD = re.compile(
    r"^(?P<title>.*?)(?: \((?P<place>(?:(?:https?://\S+|[\w.-]+), )?\d{4}-\d{2}-\d{2}"
    r"|https?://\S+|[\w-]+(?:\.[\w-]+)+)\))?$",
    re.DOTALL,
)
MORE = re.compile(r"\n?\(\d+ more characters: summarize_results reads them\)\Z")


@dataclass(frozen=True, kw_only=True)
class TextLocation:
    """When a text came up: in which trial, at which step."""

    trial: int
    step: int


@dataclass(frozen=True, kw_only=True)
class AuditPassage:
    """A text the fence decided on. What comes up in several trials of a question is one passage."""

    asked: QuestionKey
    decision: FenceDecision
    tool: str
    title: str
    text: str
    layer: str = ""
    """Which layer refused it; empty for what was kept."""
    where: str = ""
    """Address of what was refused; address or host, and date, of what was shown."""
    reason: str = ""
    """Why it was refused."""
    seen: tuple[TextLocation, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TrialTrace:
    """The events of one trial, with what they are about."""

    key: CellKey
    question: Question
    events: Sequence[TraceEvent]

    @property
    def asked(self) -> QuestionKey:
        """The asking it belongs to."""
        return self.key.question, self.key.due


@dataclass(frozen=True, kw_only=True)
class ShownMaterial:
    """Everything a run showed and refused."""

    passages: tuple[AuditPassage, ...] = ()
    without_text: Mapping[str, int] = field(default_factory=dict[str, int])
    """Refusals by layer whose words are nowhere: addresses that were not opened, material not in the journal."""
    cuts: int = 0
    """Times numbers after the cutoff were cut off, row by row."""


def trial_traces(
    events: Iterable[tuple[int, CellKey, TraceEvent]], questions: Mapping[QuestionKey, Question]
) -> Iterator[TrialTrace]:
    """The events by trial, in the order of the questions. One nobody can find any more is known by id and date only."""
    by_cell: dict[CellKey, list[TraceEvent]] = {}
    for _, key, event in events:
        by_cell.setdefault(key, []).append(event)
    for key, happened in sorted(by_cell.items(), key=lambda cell: cell[0].row()):
        unknown = Question(
            id=key.question, source="unknown", text="", due=instant(key.due), targets=(Target(id="yes"),)
        )
        yield TrialTrace(key=key, question=questions.get((key.question, key.due), unknown), events=happened)


@dataclass(frozen=True, kw_only=True)
class MaterialOrigin:
    """Where a run kept what its tools brought, and under which names."""

    journal: Journal | None = None
    engine: str = ""
    """Names of the search engines, as the run joined them."""
    mode: AsOfMode = "backtest"


async def collect_passages(trials: Iterable[TrialTrace], origin: MaterialOrigin) -> ShownMaterial:
    """What the trials of a run saw and were refused; equal texts of one question are put together."""
    found: list[AuditPassage] = []
    lost: Counter[str] = Counter()
    cuts = 0
    for trace in trials:
        fetch = _reader(trace, origin)
        for event, step, uses, before in steps_of(trace.events):
            if isinstance(event, ToolUsed):
                found += shown_passages(trace, event)
            elif event.layer == "data":
                cuts += 1
            else:
                passage = await _refused(trace, event, step, (uses, before), fetch)
                found += [passage] if passage else []
                lost[event.layer] += passage is None
    return ShownMaterial(passages=tuple(_merge_equal(found)), without_text=dict(+lost), cuts=cuts)


Step = tuple[ToolUsed | LeakBlocked, int, Sequence[ToolUsed], Sequence[ToolUsed]]


def steps_of(events: Sequence[TraceEvent]) -> Iterator[Step]:
    """Uses and refusals with their step, the tools used in it, and those used before. Refusals come before their tool.

    A trial that was cut off in the middle of a tool leaves refusals without one: they stand a step after the last.
    """
    relevant = [event for event in events if isinstance(event, ToolUsed | LeakBlocked)]
    uses = [event for event in relevant if isinstance(event, ToolUsed)]
    for place, event in enumerate(relevant):
        later = (other for other in relevant[place:] if isinstance(other, ToolUsed))
        step = next((use.step for use in later), max((use.step for use in uses), default=0) + 1)
        now = [use for use in uses if use.step == step]
        yield event, step, now, [use for use in uses if use.step < step]


def shown_passages(trace: TrialTrace, use: ToolUsed) -> list[AuditPassage]:
    """The texts of one observation. Every word below the heading ends up in one of them."""
    if not use.sources:
        return []
    parts = _parts(unmarked(use.result), use.sources)
    if use.tool not in PREFIXES:
        # A stranger's heading may tell as much as what stands below it; our own only repeat what was asked.
        parts = [f"{parts[0]}\n{parts[1]}", *parts[2:]] if len(parts) > 1 else parts
    else:
        parts = parts[1:] or parts
    passages: list[AuditPassage] = []
    for part in parts:
        first, _, text = part.partition("\n")
        head = HEAD.match(re.sub(r"^\[[^\]]*\]\s*", "", first))
        passages.append(
            AuditPassage(
                asked=trace.asked,
                decision="kept",
                tool=use.tool,
                title=head["title"] if head else first,
                text=MORE.sub("", text),
                where=(head["place"] or "") if head else "",
                seen=(TextLocation(trial=trace.key.trial, step=use.step),),
            )
        )
    return passages


def _parts(result: str, ids: Sequence[str]) -> list[str]:
    """The heading and one part per id; the whole as it is where the ids cannot all be found in their order."""
    cuts: list[int] = []
    at = 0
    for name in ids:
        at = result.find(f"[{name}]", at)
        while at > 0 and result[at - 1] != "\n":
            at = result.find(f"[{name}]", at + 1)
        if at < 0:
            return [result]
        cuts.append(at)
        at += 1
    heading = result[: cuts[0]].strip()
    return [heading, *(result[a:b].strip() for a, b in zip(cuts, [*cuts[1:], len(result)], strict=True))]


Fetch = Callable[[ToolUsed], Awaitable[tuple[SourceItem, ...]]]


async def _refused(
    trace: TrialTrace, event: LeakBlocked, step: int, uses: tuple[Sequence[ToolUsed], Sequence[ToolUsed]], fetch: Fetch
) -> AuditPassage | None:
    """The refused text, as it would have been shown: an excerpt, or the whole where the agent wanted to read on."""
    now, before = uses

    async def find(among: Sequence[ToolUsed]) -> tuple[ToolUsed, SourceItem] | None:
        for use in among:
            for item in await fetch(use):
                published = item.published.isoformat() if item.published is not None else ""
                if (item.url, item.title[:200], published) == (event.url, event.title, event.published):
                    return use, item
        return None

    if (found := await find(now)) is not None:
        use, item = found
        # What the fence would have shown of it.
        text = without_age(item.snippet)[:SNIPPET_LIMIT] if item.snippet else item.text[:SHOWN_LIMIT]
        tool = use.tool
    elif any(use.tool == SUMMARIZE_RESULTS for use in now) and (found := await find(before)) is not None:
        _, item = found
        text, tool = item.text[:READ_LIMIT], SUMMARIZE_RESULTS
    else:
        return None
    return AuditPassage(
        asked=trace.asked,
        decision="dropped",
        tool=tool,
        title=item.title,
        text=text,
        layer=event.layer,
        where=event.url,
        reason=event.reason,
        seen=(TextLocation(trial=trace.key.trial, step=step),),
    )


def _merge_equal(passages: Iterable[AuditPassage]) -> list[AuditPassage]:
    """Equal texts with the same fate as one, seen at all their places."""
    found: dict[tuple[Any, ...], AuditPassage] = {}
    for one in passages:
        key = (one.asked, one.decision, one.layer, one.tool, one.title, one.text)
        before = found.get(key)
        found[key] = replace(before, seen=tuple(dict.fromkeys((*before.seen, *one.seen)))) if before else one
    return list(found.values())


class NotJournalled(Exception):
    """The journal does not hold what a tool brought."""


@dataclass(frozen=True, kw_only=True)
class _NamedTool:
    """Stands for a tool of which only the name matters, because nothing is fetched."""

    spec: ToolSpec

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        raise NotJournalled


@dataclass(frozen=True, kw_only=True)
class _ReadOnlyJournal:
    """A journal that is only looked into."""

    journal: Journal

    async def once_json(self, key: str, kind: str, produce: Callable[[], Awaitable[Any]]) -> Any:
        found = self.journal.find(key)
        return await produce() if found is None else json.loads(found)


def _reader(trace: TrialTrace, origin: MaterialOrigin) -> Fetch:
    """What tools brought in a trial, from the journal, under the names by which the run kept it."""
    read: dict[int, tuple[SourceItem, ...]] = {}

    async def fetch(use: ToolUsed) -> tuple[SourceItem, ...]:
        if origin.journal is None or use.tool == SUMMARIZE_RESULTS:
            return ()
        if id(use) not in read:
            tool = _NamedTool(spec=ToolSpec(name=use.tool, description="", parameters={}))
            scope = journal_scope(trace.question.id, trace.key.trial, origin.engine or None)
            stored = JournaledTool(
                tool=tool, journal=cast("Journal", _ReadOnlyJournal(journal=origin.journal)), scope=scope
            )
            try:
                material = await stored.use(use.arguments, trace.question.as_of_in(origin.mode))
                read[id(use)] = material.items
            except (NotJournalled, ToolFailed):
                read[id(use)] = ()
        return read[id(use)]

    return fetch
