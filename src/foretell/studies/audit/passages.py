"""What the agent of a run was shown and what was withheld, reconstructed from its events and the journal.

Events hold every word a model was shown, but of a refusal only its reason, address and headline. The text that was
refused is in the journal, where the tools keep what they brought before the fence looks at it.
"""

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from foretell.models.canonical import content_key
from foretell.models.journal import Journal
from foretell.models.model import ToolSpec
from foretell.questions.as_of import AsOf, AsOfMode, instant
from foretell.questions.question import Question, Target
from foretell.questions.trace import LeakBlocked, ToolUsed, TraceEvent
from foretell.runs.store import CellKey
from foretell.studies.audit.auditor import (
    AuditCase,
    AuditedText,
    Auditor,
    AuditRuling,
    ClusteredRate,
    FenceDecision,
    FenceMatrix,
    VerdictCounts,
    clustered_rate,
    count_verdicts,
    fence_matrix,
)
from foretell.studies.inputs import StudyProgress
from foretell.tools.dates.ages import without_age
from foretell.tools.fence import READ_LIMIT, SHOWN_LIMIT, SNIPPET_LIMIT, unmarked
from foretell.tools.journal import JournaledTool, journal_scope
from foretell.tools.rules import clamp_text
from foretell.tools.tool import (
    FETCH_PRICES,
    FETCH_SERIES,
    PREFIXES,
    SUMMARIZE_RESULTS,
    SourceItem,
    ToolFailed,
    ToolMaterial,
)

QuestionKey = tuple[str, str]
"""One asking of a question: its id and due time, as stored."""
NUMBERS = (FETCH_SERIES, FETCH_PRICES)
"""Tools that return dated rows, which are checked row by row instead of being read."""
HEAD = re.compile(
    r"^(?P<title>.*?)(?: \((?P<place>(?:(?:https?://\S+|[\w.-]+), )?\d{4}-\d{2}-\d{2}"
    r"|https?://\S+|[\w-]+(?:\.[\w-]+)+)\))?$",
    re.DOTALL,
)
MORE = re.compile(r"\n?\(\d+ more characters: summarize_results reads them\)\Z")


@dataclass(frozen=True, kw_only=True)
class TextLocation:
    """The trial and step in which a text came up."""

    trial: int
    step: int


@dataclass(frozen=True, kw_only=True)
class AuditPassage:
    """A text that the fence kept or dropped. The same text in several trials of a question is one passage."""

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
    """The events of one trial, and its question."""

    key: CellKey
    question: Question
    events: Sequence[TraceEvent]

    @property
    def asked(self) -> QuestionKey:
        """The asking it belongs to."""
        return self.key.question, self.key.due


@dataclass(frozen=True, kw_only=True)
class ShownMaterial:
    """Everything a run showed its agent or withheld from it."""

    passages: tuple[AuditPassage, ...] = ()
    without_text: Mapping[str, int] = field(default_factory=dict[str, int])
    """Refusals by layer whose text is unknown: addresses that were not opened, material not in the journal."""
    cuts: int = 0
    """How often numbers after the cutoff were cut off."""


def trial_traces(
    events: Iterable[tuple[int, CellKey, TraceEvent]], questions: Mapping[QuestionKey, Question]
) -> Iterator[TrialTrace]:
    """The events by trial, in the order of the questions. A question that is gone is known by id and date only."""
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
    """Where a run stored the results of its tools, and under which names."""

    journal: Journal | None = None
    engine: str = ""
    """Names of the search engines, as the run joined them."""
    mode: AsOfMode = "backtest"


async def collect_passages(trials: Iterable[TrialTrace], origin: MaterialOrigin) -> ShownMaterial:
    """What the trials of a run saw and were refused; equal texts of one question are merged."""
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
    """Tool uses and refusals with their step, the tools used in it, and those used before.

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
    """The texts of one observation; together they hold every word below its heading."""
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
    """The heading and one part per id; the whole text if the ids do not all occur in order."""
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
    """The refused text as it would have been shown: an excerpt, or the whole if the agent wanted to read on."""
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
    """Equal texts with the same decision merged into one, with all their locations."""
    found: dict[tuple[Any, ...], AuditPassage] = {}
    for one in passages:
        key = (one.asked, one.decision, one.layer, one.tool, one.title, one.text)
        before = found.get(key)
        found[key] = replace(before, seen=tuple(dict.fromkeys((*before.seen, *one.seen)))) if before else one
    return list(found.values())


class NotJournalled(Exception):
    """The result of a tool is not in the journal."""


@dataclass(frozen=True, kw_only=True)
class _NamedTool:
    """A stand-in for a tool: only its name matters, since nothing is fetched."""

    spec: ToolSpec

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        raise NotJournalled


@dataclass(frozen=True, kw_only=True)
class _ReadOnlyJournal:
    """A journal that is read but never written."""

    journal: Journal

    async def once_json(self, key: str, kind: str, produce: Callable[[], Awaitable[Any]]) -> Any:
        found = self.journal.find(key)
        return await produce() if found is None else json.loads(found)


def _reader(trace: TrialTrace, origin: MaterialOrigin) -> Fetch:
    """A function that finds the results of a trial's tools in the journal."""
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


# The leak audit: a second model reads again everything the fence decided on, and says how often it was wrong.


MATERIAL_INSTRUCTION = """\
You examine a finished experiment. A forecaster was meant to know the world only as it was up to a cutoff. You get \
texts that came up in its research: some it was given, others were withheld, and you are not told which. Decide for \
each one whether a reader could learn from it how the world went on after the cutoff.

"leak": at least one statement in the text could not have been made by the cutoff, because it reports something that \
occurred, was measured, decided, said or published later, and it tells something about the world of that later time. \
It does not matter whether it concerns the question. Copy the decisive words into the quote.

"clean": every statement could have been made by the cutoff. In particular clean are:
- appointments, calendars, deadlines, announced plans, expectations, forecasts, odds and polls about later days, \
however precise, as long as they are not told as having come about;
- a later date by itself, in a link, a label, a file name or a page footer, with nothing said about what happened then;
- what holds in every year: climate, rules, usual dates, encyclopedic background;
- anything older than the cutoff, however much it helps.

"unsure": the words allow no decision. Do not guess.

You may use what you know of history to recognise a statement as later, but the statement must stand in the text.
"""


@dataclass(frozen=True, kw_only=True)
class AuditFinding:
    """A passage with its ruling."""

    passage: AuditPassage
    ruling: AuditRuling
    by: str = "auditor"
    """Who ruled: the auditor, or the row check for dated numbers."""


@dataclass(frozen=True, kw_only=True)
class MaterialAudit:
    """The auditor's verdicts on the material of a run."""

    findings: tuple[AuditFinding, ...]
    whole: FenceMatrix
    """The whole fence: kept against dropped, by any layer."""
    content: FenceMatrix
    """Only what reached the content filter, the part of the fence that is a model."""
    by_layer: Mapping[str, VerdictCounts]
    """Verdicts on what each layer dropped."""
    by_source: Mapping[str, FenceMatrix]
    """By source of the question."""
    by_tool: Mapping[str, FenceMatrix]
    numbers: VerdictCounts
    """Tables of dated numbers that were shown, checked row by row."""
    questions: VerdictCounts
    """The questions' own texts, which may have been edited after the cutoff."""
    exposed: ClusteredRate
    """Questions that saw at least one leak or undecided text, among all questions of the run."""
    touched: frozenset[QuestionKey] = frozenset()
    """The questions that saw at least one leak or undecided text."""
    judged: int = 0
    drawn_from: int = 0
    """Number of texts that there were; more than `judged` if only a sample was judged."""
    shown: int = 0
    """Number of those texts that the agent saw."""
    without_text: Mapping[str, int] = field(default_factory=dict[str, int])
    cuts: int = 0

    @property
    def undetected(self) -> tuple[AuditFinding, ...]:
        """Leaks that reached the agent."""
        return tuple(one for one in self.findings if one.ruling.word == "leak" and one.passage.decision == "kept")

    @property
    def undecided(self) -> tuple[AuditFinding, ...]:
        """Findings without a verdict."""
        return tuple(one for one in self.findings if one.ruling.word == "undecided")

    @property
    def sampled(self) -> bool:
        """Whether some texts were left out."""
        return self.judged < self.drawn_from


@dataclass(frozen=True, kw_only=True)
class AuditScope:
    """The questions of a run, and its mode."""

    questions: Mapping[QuestionKey, Question]
    """Every asking that the run finished."""
    mode: AsOfMode = "backtest"

    def as_of(self, asked: QuestionKey) -> AsOf:
        """The cutoff of an asking."""
        return self.questions[asked].as_of_in(self.mode)


QUESTION = "question"
"""Takes the place of the tool if the text is the question itself."""


async def audit_material(
    seen: ShownMaterial,
    scope: AuditScope,
    auditor: Auditor,
    *,
    sample: int | None = None,
    progress: StudyProgress | None = None,
) -> MaterialAudit:
    """Judge the passages of a run and its questions' own texts. A larger sample contains a smaller one."""
    read = [one for one in seen.passages if one.tool not in NUMBERS]
    passages = draw_sample(read, sample)
    for asked, question in scope.questions.items():
        if question.text:
            text = "\n\n".join(filter(None, (question.criteria, question.background)))
            passages.append(
                AuditPassage(
                    asked=asked, decision="kept", tool=QUESTION, title=question.text, text=text, where=question.url
                )
            )
    cases = [
        AuditCase(
            instruction=MATERIAL_INSTRUCTION,
            as_of=scope.as_of(one.asked),
            question=scope.questions[one.asked].text,
            title=one.title,
            text=one.text,
        )
        for one in passages
    ]
    rulings = await auditor.judge(cases, progress)
    findings = [AuditFinding(passage=p, ruling=r) for p, r in zip(passages, rulings, strict=True)]
    rows = [check_rows(one, scope.as_of(one.asked)) for one in seen.passages if one.tool in NUMBERS]
    return _summary([*findings, *rows], seen, scope, drawn_from=len(read))


def draw_sample(passages: Sequence[AuditPassage], count: int | None) -> list[AuditPassage]:
    """A sample of passages, chosen by a hash of their content: as good as random, and the same every time."""
    if count is None or count >= len(passages):
        return list(passages)
    ranked = sorted(passages, key=lambda one: content_key([*one.asked, one.decision, one.title, one.text]))
    chosen = {id(one) for one in ranked[:count]}
    return [one for one in passages if id(one) in chosen]


def check_rows(passage: AuditPassage, as_of: AsOf) -> AuditFinding:
    """Whether a table of dated numbers ends at the cutoff, which a rule decides better than a reader."""
    _, late = clamp_text(passage.text, as_of)
    if late:
        ruling = AuditRuling(word="leak", reason="a row after the cutoff", quote=late[0])
    else:
        ruling = AuditRuling(word="clean", reason="no row after the cutoff")
    return AuditFinding(passage=passage, ruling=ruling, by="rows")


def _summary(
    findings: Sequence[AuditFinding], seen: ShownMaterial, scope: AuditScope, *, drawn_from: int
) -> MaterialAudit:
    texts = [one for one in findings if one.by == "auditor" and one.passage.tool != QUESTION]
    shown = [one for one in findings if one.passage.tool != QUESTION and one.passage.decision == "kept"]
    touched = frozenset(one.passage.asked for one in shown if one.ruling.word != "clean")

    def matrix(some: Iterable[AuditFinding]) -> FenceMatrix:
        return fence_matrix(
            [
                AuditedText(
                    decision=one.passage.decision,
                    word=one.ruling.word,
                    cluster=scope.questions[one.passage.asked].cluster,
                )
                for one in some
            ]
        )

    def counts(holds: Callable[[AuditFinding], bool]) -> VerdictCounts:
        return count_verdicts(one.ruling.word for one in findings if holds(one))

    def by(name: Callable[[AuditFinding], str]) -> dict[str, list[AuditFinding]]:
        groups: dict[str, list[AuditFinding]] = {}
        for one in texts:
            groups.setdefault(name(one), []).append(one)
        return dict(sorted(groups.items()))

    sources, tools = by(lambda one: scope.questions[one.passage.asked].source), by(lambda one: one.passage.tool)
    layers = {name: part for name, part in by(lambda one: one.passage.layer).items() if name}
    return MaterialAudit(
        findings=tuple(findings),
        whole=matrix(texts),
        content=matrix(one for one in texts if one.passage.layer in ("", "content")),
        by_layer={name: count_verdicts(one.ruling.word for one in part) for name, part in layers.items()},
        by_source={name: matrix(part) for name, part in sources.items()},
        by_tool={name: matrix(part) for name, part in tools.items()},
        numbers=counts(lambda one: one.by == "rows"),
        questions=counts(lambda one: one.passage.tool == QUESTION),
        exposed=clustered_rate(
            [key in touched for key in scope.questions], [q.cluster for q in scope.questions.values()]
        ),
        touched=touched,
        judged=len(texts),
        drawn_from=drawn_from,
        shown=sum(one.decision == "kept" and one.tool not in NUMBERS for one in seen.passages),
        without_text=seen.without_text,
        cuts=seen.cuts,
    )
