"""Texts that the agent of a run was shown and texts that were withheld, read from its events and the journal.

Events contain every word a model was shown, but of a refused text only reason, address and headline. The refused text
is in the journal, where tools store their results before the leakage filter checks them.
"""

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, cast

from foretell.forecasters.prompt.prediction_context import RankedSource
from foretell.frozen import frozen
from foretell.models.canonical import content_key
from foretell.models.journal import Journal
from foretell.models.model import ToolSpec
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf, AsOfMode, instant
from foretell.questions.question import Question, Target
from foretell.questions.trace import LeakBlocked, QuestionShown, ToolUsed, TraceEvent
from foretell.runs.store import TrialKey
from foretell.studies.audit.auditor import (
    AuditCase,
    AuditedText,
    Auditor,
    AuditRuling,
    ClusteredRate,
    FilterDecision,
    FilterMatrix,
    VerdictCounts,
    clustered_rate,
    count_verdicts,
    filter_matrix,
)
from foretell.studies.inputs import StudyProgress
from foretell.tools.dates.ages import without_age
from foretell.tools.journal import JournaledTool, journal_scope
from foretell.tools.leakage_filter import READ_LIMIT, SHOWN_LIMIT, SNIPPET_LIMIT
from foretell.tools.leakage_rules import clamp_text
from foretell.tools.marks import source_parts, unmarked
from foretell.tools.tool import (
    FETCH_PRICES,
    FETCH_SERIES,
    LOOKUP_URL,
    PREFIXES,
    SERIES_STATS,
    SUMMARIZE_RESULTS,
    SourceItem,
    ToolFailed,
    ToolMaterial,
)

QUESTION, CONTEXT = "question", "context"
"""Used as the tools of passages that are the question itself, or a source that was gathered beforehand."""
QuestionKey = tuple[str, str]
"""Id and due time of a question, as stored."""
NUMBERS = (FETCH_SERIES, FETCH_PRICES, SERIES_STATS)
"""Tools that return dated rows, which are checked row by row instead of being read."""
HEAD = pattern(
    r"^(?P<title>.*?)(?: \((?P<place>(?:(?:https?://\S+|[\w.-]+), )?\d{4}-\d{2}-\d{2}"
    r"|https?://\S+|[\w-]+(?:\.[\w-]+)+)\))?$",
    re.DOTALL,
)
MORE = pattern(r"\n?\(\d+ more characters: (?:summarize_results|lookup_url) reads them\)\Z")


@frozen
class TextLocation:
    """The trial and step in which a text came up."""

    trial: int
    step: int


@frozen
class AuditPassage:
    """A text that the leakage filter kept or dropped. The same text in several trials of a question is one passage."""

    asked: QuestionKey
    decision: FilterDecision
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


@frozen
class TrialTrace:
    """The events of one trial, and its question."""

    key: TrialKey
    question: Question
    events: Sequence[TraceEvent]
    sources: Sequence[RankedSource] = ()
    """Sources that were gathered beforehand and shown with the question."""

    @property
    def asked(self) -> QuestionKey:
        """The id and due time of its question."""
        return self.key.question, self.key.due


@frozen
class ShownMaterial:
    """Everything a run showed its agent or withheld from it."""

    passages: tuple[AuditPassage, ...] = ()
    without_text: Mapping[str, int] = field(default_factory=dict[str, int])
    """Refusals by layer whose text is unknown: addresses that were not opened, material not in the journal."""
    cuts: int = 0
    """How often numbers after the cutoff were cut off."""


def trial_traces(
    events: Iterable[tuple[int, TrialKey, TraceEvent]], questions: Mapping[QuestionKey, Question]
) -> Iterator[TrialTrace]:
    """The events by trial, in the order of the questions. A question that is missing has only its id and date."""
    by_trial: dict[TrialKey, list[TraceEvent]] = {}
    for _, key, event in events:
        by_trial.setdefault(key, []).append(event)
    for key, trial_events in sorted(by_trial.items(), key=lambda item: item[0].row()):
        unknown = Question(
            id=key.question, source="unknown", text="", due=instant(key.due), targets=(Target(id="yes"),)
        )
        yield TrialTrace(key=key, question=questions.get((key.question, key.due), unknown), events=trial_events)


@frozen
class MaterialOrigin:
    """Where a run stored the results of its tools, and under which names."""

    journal: Journal | None = None
    engine: str = ""
    """Names of the search engines, as the run joined them."""
    mode: AsOfMode = "backtest"


async def collect_passages(trials: Iterable[TrialTrace], origin: MaterialOrigin) -> ShownMaterial:
    """Return the texts that the trials of a run saw and were refused; equal texts of one question are merged."""
    audit_passages: list[AuditPassage] = []
    lost: Counter[str] = Counter()
    cuts = 0
    for trace in trials:
        fetch = _reader(trace, origin)
        audit_passages += first_passages(trace)
        for event, step, uses, before in steps_of(trace.events):
            if isinstance(event, ToolUsed):
                audit_passages += shown_passages(trace, event)
            elif event.layer == "data":
                cuts += 1
            else:
                passage = await _refused(trace, event, step, (uses, before), fetch)
                audit_passages += [passage] if passage else []
                lost[event.layer] += passage is None
    return ShownMaterial(passages=tuple(_merge_equal(audit_passages)), without_text=dict(+lost), cuts=cuts)


Step = tuple[ToolUsed | LeakBlocked, int, Sequence[ToolUsed], Sequence[ToolUsed]]


def steps_of(events: Sequence[TraceEvent]) -> Iterator[Step]:
    """Tool uses and refusals with their step, the tools used in it, and those used before.

    If a trial was interrupted during a tool use, its last refusals belong to no tool; their step is the last plus one.
    """
    relevant = [event for event in events if isinstance(event, ToolUsed | LeakBlocked)]
    uses = [event for event in relevant if isinstance(event, ToolUsed)]
    for place, event in enumerate(relevant):
        later = (other for other in relevant[place:] if isinstance(other, ToolUsed))
        step = next((use.step for use in later), max((use.step for use in uses), default=0) + 1)
        now = [use for use in uses if use.step == step]
        yield event, step, now, [use for use in uses if use.step < step]


def first_passages(trace: TrialTrace) -> list[AuditPassage]:
    """Return what a trial was shown before research: its first prompt, and each source of its context."""
    start = (TextLocation(trial=trace.key.trial, step=0),)
    prompts = [
        (QUESTION, trace.question.text, event.text, trace.question.url)
        for event in trace.events
        if isinstance(event, QuestionShown)
    ]
    sources = [(CONTEXT, source.title, source.summary, source.url) for source in trace.sources]
    return [
        AuditPassage(asked=trace.asked, decision="kept", tool=tool, title=title, text=text, where=where, seen=start)
        for tool, title, text, where in (*prompts[:1], *sources)
    ]


def shown_passages(trace: TrialTrace, use: ToolUsed) -> list[AuditPassage]:
    """Return the texts of one observation; together they contain every word below its heading."""
    if not use.sources:
        return []
    parts = source_parts(unmarked(use.result), use.sources)
    if use.tool not in PREFIXES:
        # Headings of other tools may contain leaks; those of our own tools only repeat the request.
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


Fetch = Callable[[ToolUsed], Awaitable[tuple[SourceItem, ...]]]


async def _refused(
    trace: TrialTrace, event: LeakBlocked, step: int, uses: tuple[Sequence[ToolUsed], Sequence[ToolUsed]], fetch: Fetch
) -> AuditPassage | None:
    """Return the refused text as it would have been shown: an excerpt, or all of it if the agent asked for that."""
    now, before = uses

    async def find(among: Sequence[ToolUsed]) -> tuple[ToolUsed, SourceItem] | None:
        for use in among:
            for item in await fetch(use):
                published = item.published.isoformat() if item.published is not None else ""
                if (item.url, item.title[:200], published) == (event.url, event.title, event.published):
                    return use, item
        return None

    if (match := await find(now)) is not None:
        use, item = match
        # The part that the leakage filter would have shown.
        text = without_age(item.snippet)[:SNIPPET_LIMIT] if item.snippet else item.text[:SHOWN_LIMIT]
        tool = use.tool
    elif any(use.tool in (SUMMARIZE_RESULTS, LOOKUP_URL) for use in now) and (match := await find(before)) is not None:
        _, item = match
        text = item.text[:READ_LIMIT]
        tool = next(use.tool for use in now if use.tool in (SUMMARIZE_RESULTS, LOOKUP_URL))
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
    audit_passages: dict[tuple[Any, ...], AuditPassage] = {}
    for passage in passages:
        key = (passage.asked, passage.decision, passage.layer, passage.tool, passage.title, passage.text)
        before = audit_passages.get(key)
        audit_passages[key] = (
            replace(before, seen=tuple(dict.fromkeys((*before.seen, *passage.seen)))) if before else passage
        )
    return list(audit_passages.values())


class NotJournalled(Exception):
    """The result of a tool is not in the journal."""


@frozen
class _NamedTool:
    """A stand-in for a tool: only its name matters, since nothing is fetched."""

    spec: ToolSpec

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        raise NotJournalled


@frozen
class _ReadOnlyJournal:
    """A journal that is read but never written."""

    journal: Journal

    async def once_json(self, key: str, kind: str, produce: Callable[[], Awaitable[Any]]) -> Any:
        stored = self.journal.find(key)
        return await produce() if stored is None else json.loads(stored)


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


# The leak audit: a second model judges all texts that the leakage filter decided on, and counts its errors.


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


@frozen
class AuditFinding:
    """A passage with its ruling."""

    passage: AuditPassage
    ruling: AuditRuling
    by: str = "auditor"
    """Who ruled: the auditor, or the row check for dated numbers."""


@frozen
class MaterialAudit:
    """The auditor's verdicts on the material of a run."""

    findings: tuple[AuditFinding, ...]
    whole: FilterMatrix
    """The whole leakage filter: kept against dropped, by any layer."""
    content: FilterMatrix
    """Only what reached the content filter, the part of the leakage filter that is a model."""
    by_layer: Mapping[str, VerdictCounts]
    """Verdicts on what each layer dropped."""
    by_source: Mapping[str, FilterMatrix]
    """By source of the question."""
    by_tool: Mapping[str, FilterMatrix]
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
        return tuple(
            finding for finding in self.findings if finding.ruling.word == "leak" and finding.passage.decision == "kept"
        )

    @property
    def undecided(self) -> tuple[AuditFinding, ...]:
        """Findings without a verdict."""
        return tuple(finding for finding in self.findings if finding.ruling.word == "undecided")

    @property
    def sampled(self) -> bool:
        """Whether some texts were left out."""
        return self.judged < self.drawn_from


@frozen
class AuditScope:
    """The questions of a run, and its mode."""

    questions: Mapping[QuestionKey, Question]
    """Every question that the run finished, by id and due time."""
    mode: AsOfMode = "backtest"

    def as_of(self, key: QuestionKey) -> AsOf:
        """Return the cutoff of a question."""
        return self.questions[key].as_of_in(self.mode)


async def audit_material(
    material: ShownMaterial,
    scope: AuditScope,
    auditor: Auditor,
    *,
    sample: int | None = None,
    progress: StudyProgress | None = None,
) -> MaterialAudit:
    """Judge the passages of a run and its questions' own texts. A larger sample contains a smaller one."""
    read = [passage for passage in material.passages if passage.tool not in (*NUMBERS, QUESTION)]
    prompts = [passage for passage in material.passages if passage.tool == QUESTION]
    prompted = {passage.asked for passage in prompts}
    passages = [*draw_sample(read, sample), *prompts]
    for key, question in scope.questions.items():
        if question.text and key not in prompted:
            text = "\n\n".join(filter(None, (question.criteria, question.background)))
            passages.append(
                AuditPassage(
                    asked=key, decision="kept", tool=QUESTION, title=question.text, text=text, where=question.url
                )
            )
    cases = [
        AuditCase(
            instruction=MATERIAL_INSTRUCTION,
            as_of=scope.as_of(passage.asked),
            question=scope.questions[passage.asked].text,
            title=passage.title,
            text=passage.text,
        )
        for passage in passages
    ]
    rulings = await auditor.judge(cases, progress)
    findings = [AuditFinding(passage=p, ruling=r) for p, r in zip(passages, rulings, strict=True)]
    rows = [check_rows(passage, scope.as_of(passage.asked)) for passage in material.passages if passage.tool in NUMBERS]
    return _summary([*findings, *rows], material, scope, drawn_from=len(read))


def draw_sample(passages: Sequence[AuditPassage], count: int | None) -> list[AuditPassage]:
    """Return a sample of passages, chosen by a hash of their content, so that it is the same every time."""
    if count is None or count >= len(passages):
        return list(passages)
    ranked = sorted(
        passages, key=lambda passage: content_key([*passage.asked, passage.decision, passage.title, passage.text])
    )
    chosen = {id(passage) for passage in ranked[:count]}
    return [passage for passage in passages if id(passage) in chosen]


def check_rows(passage: AuditPassage, as_of: AsOf) -> AuditFinding:
    """Check by a rule whether a table of dated numbers ends at the cutoff."""
    _, late = clamp_text(passage.text, as_of)
    if late:
        ruling = AuditRuling(word="leak", reason="a row after the cutoff", quote=late[0])
    else:
        ruling = AuditRuling(word="clean", reason="no row after the cutoff")
    return AuditFinding(passage=passage, ruling=ruling, by="rows")


def _summary(
    findings: Sequence[AuditFinding], material: ShownMaterial, scope: AuditScope, *, drawn_from: int
) -> MaterialAudit:
    texts = [finding for finding in findings if finding.by == "auditor" and finding.passage.tool != QUESTION]
    shown = [finding for finding in findings if finding.passage.tool != QUESTION and finding.passage.decision == "kept"]
    touched = frozenset(finding.passage.asked for finding in shown if finding.ruling.word != "clean")

    def matrix(some: Iterable[AuditFinding]) -> FilterMatrix:
        return filter_matrix(
            [
                AuditedText(
                    decision=finding.passage.decision,
                    word=finding.ruling.word,
                    cluster=scope.questions[finding.passage.asked].cluster,
                )
                for finding in some
            ]
        )

    def counts(holds: Callable[[AuditFinding], bool]) -> VerdictCounts:
        return count_verdicts(finding.ruling.word for finding in findings if holds(finding))

    def by(name: Callable[[AuditFinding], str]) -> dict[str, list[AuditFinding]]:
        groups: dict[str, list[AuditFinding]] = {}
        for text in texts:
            groups.setdefault(name(text), []).append(text)
        return dict(sorted(groups.items()))

    sources, tools = (
        by(lambda finding: scope.questions[finding.passage.asked].source),
        by(lambda finding: finding.passage.tool),
    )
    layers = {name: part for name, part in by(lambda finding: finding.passage.layer).items() if name}
    return MaterialAudit(
        findings=tuple(findings),
        whole=matrix(texts),
        content=matrix(text for text in texts if text.passage.layer in ("", "content")),
        by_layer={name: count_verdicts(finding.ruling.word for finding in part) for name, part in layers.items()},
        by_source={name: matrix(part) for name, part in sources.items()},
        by_tool={name: matrix(part) for name, part in tools.items()},
        numbers=counts(lambda finding: finding.by == "rows"),
        questions=counts(lambda finding: finding.passage.tool == QUESTION),
        exposed=clustered_rate(
            [key in touched for key in scope.questions], [q.cluster for q in scope.questions.values()]
        ),
        touched=touched,
        judged=len(texts),
        drawn_from=drawn_from,
        shown=sum(p.decision == "kept" and p.tool not in (*NUMBERS, QUESTION) for p in material.passages),
        without_text=material.without_text,
        cuts=material.cuts,
    )
