"""What the agent of a run saw and what was kept from it, put together from the events and the journal.

Events hold every word a model was shown, but of a refusal only its reason, address and headline. The text that was
refused is in the journal, where the tools keep what they brought before the fence looks at it.
"""

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from foretell.arena.store import CellKey
from foretell.arena.studies.leak_rates import Decision
from foretell.llm.journal import Journal
from foretell.llm.message import ToolSpec
from foretell.questions.clock import AsOf, Mode, instant
from foretell.questions.event import Event, LeakBlocked, ToolUsed
from foretell.questions.question import Question, Target
from foretell.tools.admission import SHOWN_LIMIT, SNIPPET_LIMIT
from foretell.tools.kept import Kept, scope_of
from foretell.tools.names import FETCH_PRICES, FETCH_SERIES, PREFIXES, SUMMARIZE_RESULTS
from foretell.tools.shelf import READ_LIMIT
from foretell.tools.stamps import without_age
from foretell.tools.tool import Item, Material, ToolFailed

Asked = tuple[str, str]
"""One asking of a question: its id and due moment, as the store writes them."""
NUMBERS = (FETCH_SERIES, FETCH_PRICES)
"""Tools whose results are dated rows: they are checked row by row, not read."""
HEAD = re.compile(
    r"^(?P<title>.*?)(?: \((?P<place>(?:[\w.-]+, )?\d{4}-\d{2}-\d{2}|[\w-]+(?:\.[\w-]+)+)\))?$", re.DOTALL
)
MORE = re.compile(r"\n?\(\d+ more characters: summarize_results reads them\)\Z")


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """When a text came up: in which trial, at which step."""

    trial: int
    step: int


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A text the fence decided on. What comes up in several trials of a question is one passage."""

    asked: Asked
    decision: Decision
    tool: str
    title: str
    text: str
    layer: str = ""
    """Which layer refused it; empty for what was kept."""
    where: str = ""
    """Address of what was refused; host and date of what was shown."""
    reason: str = ""
    """Why it was refused."""
    seen: tuple[Sighting, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The events of one trial, with what they are about."""

    key: CellKey
    question: Question
    events: Sequence[Event]

    @property
    def asked(self) -> Asked:
        """The asking it belongs to."""
        return self.key.question, self.key.due


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Everything a run showed and refused."""

    passages: tuple[Passage, ...] = ()
    without_text: Mapping[str, int] = field(default_factory=dict[str, int])
    """Refusals by layer whose words are nowhere: addresses that were not opened, material not in the journal."""
    cuts: int = 0
    """Times numbers after the cutoff were cut off, row by row."""


def traces(events: Iterable[tuple[int, CellKey, Event]], questions: Mapping[Asked, Question]) -> Iterator[Trace]:
    """The events by trial, in the order of the questions. One nobody can find any more is known by id and date only."""
    by_cell: dict[CellKey, list[Event]] = {}
    for _, key, event in events:
        by_cell.setdefault(key, []).append(event)
    for key, happened in sorted(by_cell.items(), key=lambda cell: cell[0].row()):
        question = questions.get((key.question, key.due)) or _unknown(key)
        yield Trace(key=key, question=question, events=happened)


def _unknown(key: CellKey) -> Question:
    return Question(id=key.question, source="unknown", text="", due=instant(key.due), targets=(Target(id="yes"),))


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a run kept what its tools brought, and under which names."""

    journal: Journal | None = None
    engine: str = ""
    """Names of the search engines, as the run joined them."""
    mode: Mode = "backtest"

    def scope(self, trace: Trace) -> str:
        """What the material of a trial depended on besides arguments and cutoff."""
        return scope_of(trace.question.id, trace.key.trial, self.engine or None)


async def seen_in(trials: Iterable[Trace], origin: Origin) -> Seen:
    """What the trials of a run saw and were refused; equal texts of one question are put together."""
    found: list[Passage] = []
    lost: Counter[str] = Counter()
    cuts = 0
    for trace in trials:
        fetch = _reader(trace, origin)
        for event, step, uses, before in steps_of(trace.events):
            if isinstance(event, ToolUsed):
                found += shown(trace, event)
            elif event.layer == "data":
                cuts += 1
            else:
                passage = await _refused(trace, event, step, (uses, before), fetch)
                found += [passage] if passage else []
                lost[event.layer] += passage is None
    return Seen(passages=tuple(_united(found)), without_text=dict(+lost), cuts=cuts)


Step = tuple[ToolUsed | LeakBlocked, int, Sequence[ToolUsed], Sequence[ToolUsed]]


def steps_of(events: Sequence[Event]) -> Iterator[Step]:
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


def shown(trace: Trace, use: ToolUsed) -> list[Passage]:
    """The texts of one observation. Every word below the heading ends up in one of them."""
    if not use.sources:
        return []
    parts = _parts(use.result, use.sources)
    if use.tool not in PREFIXES:
        # A stranger's heading may tell as much as what stands below it; our own only repeat what was asked.
        parts = [f"{parts[0]}\n{parts[1]}", *parts[2:]] if len(parts) > 1 else parts
    else:
        parts = parts[1:] or parts
    sighting = Sighting(trial=trace.key.trial, step=use.step)
    return [_kept(trace, use, part, sighting) for part in parts]


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


def _kept(trace: Trace, use: ToolUsed, part: str, sighting: Sighting) -> Passage:
    first, _, text = part.partition("\n")
    head = HEAD.match(re.sub(r"^\[[^\]]*\]\s*", "", first))
    return Passage(
        asked=trace.asked,
        decision="kept",
        tool=use.tool,
        title=head["title"] if head else first,
        text=MORE.sub("", text),
        where=(head["place"] or "") if head else "",
        seen=(sighting,),
    )


Fetch = Callable[[ToolUsed], Awaitable[tuple[Item, ...]]]


async def _refused(
    trace: Trace, event: LeakBlocked, step: int, uses: tuple[Sequence[ToolUsed], Sequence[ToolUsed]], fetch: Fetch
) -> Passage | None:
    """The refused text, as it would have been shown: an excerpt, or the whole where the agent wanted to read on."""
    now, before = uses
    for use in now:
        for item in await fetch(use):
            if _same(item, event):
                return _dropped(trace, event, use.tool, (item.title, _excerpt(item)), step)
    if any(use.tool == SUMMARIZE_RESULTS for use in now):
        for use in before:
            for item in await fetch(use):
                if _same(item, event):
                    whole = (item.title, item.text[:READ_LIMIT])
                    return _dropped(trace, event, SUMMARIZE_RESULTS, whole, step)
    return None


def _same(item: Item, event: LeakBlocked) -> bool:
    published = item.published.isoformat() if item.published is not None else ""
    return (item.url, item.title[:200], published) == (event.url, event.title, event.published)


def _excerpt(item: Item) -> str:
    """What the fence would have shown of it (`tools.admission`)."""
    return without_age(item.snippet)[:SNIPPET_LIMIT] if item.snippet else item.text[:SHOWN_LIMIT]


def _dropped(trace: Trace, event: LeakBlocked, tool: str, words: tuple[str, str], step: int) -> Passage:
    title, text = words
    return Passage(
        asked=trace.asked,
        decision="dropped",
        tool=tool,
        title=title,
        text=text,
        layer=event.layer,
        where=event.url,
        reason=event.reason,
        seen=(Sighting(trial=trace.key.trial, step=step),),
    )


def _united(passages: Iterable[Passage]) -> list[Passage]:
    """Equal texts with the same fate as one, seen at all their places."""
    found: dict[tuple[Any, ...], Passage] = {}
    for one in passages:
        key = (one.asked, one.decision, one.layer, one.tool, one.title, one.text)
        before = found.get(key)
        found[key] = replace(before, seen=tuple(dict.fromkeys((*before.seen, *one.seen)))) if before else one
    return list(found.values())


class NotKept(Exception):
    """The journal does not hold what a tool brought."""


@dataclass(frozen=True, kw_only=True)
class _Named:
    """Stands for a tool of which only the name matters, because nothing is fetched."""

    spec: ToolSpec

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> Material:
        raise NotKept


@dataclass(frozen=True, kw_only=True)
class _LookUp:
    """A journal that is only looked into."""

    journal: Journal

    async def once_json(self, key: str, kind: str, produce: Callable[[], Awaitable[Any]]) -> Any:
        found = self.journal.find(key)
        return await produce() if found is None else json.loads(found)


def _reader(trace: Trace, origin: Origin) -> Fetch:
    """What tools brought in a trial, from the journal, under the names by which the run kept it."""
    read: dict[int, tuple[Item, ...]] = {}

    async def fetch(use: ToolUsed) -> tuple[Item, ...]:
        if origin.journal is None or use.tool == SUMMARIZE_RESULTS:
            return ()
        if id(use) not in read:
            read[id(use)] = await _brought(use, trace, origin, origin.journal)
        return read[id(use)]

    return fetch


async def _brought(use: ToolUsed, trace: Trace, origin: Origin, journal: Journal) -> tuple[Item, ...]:
    tool = _Named(spec=ToolSpec(name=use.tool, description="", parameters={}))
    kept = Kept(tool=tool, journal=_LookUp(journal=journal), scope=origin.scope(trace))
    try:
        return (await kept.use(use.arguments, trace.question.as_of_in(origin.mode))).items
    except (NotKept, ToolFailed):
        return ()
