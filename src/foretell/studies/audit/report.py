"""The audit of a run, and its report: how much of the score could be leakage?"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

from foretell.questions.codec import plain_data
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.questions.trace import ModelCalled
from foretell.report.study import CellValue, StudyResult, StudyTable, column, count, table, words
from foretell.runs.store import RunStore
from foretell.studies.audit.auditor import Auditor, ClusteredRate, FenceMatrix
from foretell.studies.audit.leakage import (
    AgentNote,
    LeakageEstimate,
    MemoryAudit,
    MemorySuspicion,
    agent_notes,
    audit_memory,
    training_cutoff_notes,
)
from foretell.studies.audit.passages import (
    QUESTION,
    AuditFinding,
    AuditScope,
    MaterialAudit,
    MaterialOrigin,
    QuestionKey,
    TrialTrace,
    audit_material,
    collect_passages,
    trial_traces,
)
from foretell.studies.inputs import StudyProgress

# The report: what the leakage filter got wrong, rates, leaks and memories, and what they are worth.


LISTED = 20
"""Findings shown in a table; the JSON file holds all."""
HOW_TO_READ = (
    "A leak is a text from after the time of the forecast that tells how the question came out. The leakage filter "
    "keeps such texts from the agent; the auditor is another model that reads what came through and what did not.",
    "Rates carry 95 % intervals; texts on one question resemble each other, so the wider of the plain interval and the "
    "one by question is shown.",
    "Memory: statements of the agent about events after the cutoff that none of its sources made.",
)


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """Everything an audit knows about a run."""

    run: str
    auditor: str
    filter: str
    """The model that guarded the run."""
    material: MaterialAudit
    memory: MemoryAudit
    leakage: LeakageEstimate | None = None
    notes: tuple[str, ...] = ()
    """What could not be examined, and caveats."""

    def details(self) -> dict[str, Any]:
        """Every finding as plain data."""
        material = self.material
        meaning = {} if self.leakage is None else {"meaning": str(self.leakage)}
        return {
            **{name: getattr(self, name) for name in ("run", "auditor", "filter")},
            "material": plain_data(material) | {"undetected": plain_data(material.undetected)},
            "memory": plain_data(self.memory) | {"confirmed": plain_data(self.memory.confirmed)},
            "leakage": None if self.leakage is None else plain_data(self.leakage) | meaning,
        }


def audit_result(report: AuditReport) -> StudyResult:
    """The report as tables and sentences."""
    sentences = [audit_headline(report), _memory(report.memory)]
    if report.leakage is not None:
        sentences.append(str(report.leakage))
    return StudyResult(
        name="audit",
        title=f"Audit of run {report.run}",
        sentences=tuple(sentences),
        tables=tuple(_tables(report)),
        notes=(*_open_ends(report), *report.notes),
        settings={"run": report.run, "auditor": report.auditor, "filter": report.filter},
        how_to_read=HOW_TO_READ,
        details=report.details(),
    )


def _tables(report: AuditReport) -> Iterator[StudyTable]:
    material = report.material
    yield _fence_table(material)
    yield _rate_table(material)
    for title, parts in (("By source of the question", material.by_source), ("By tool", material.by_tool)):
        if len(parts) > 1:
            yield _parts_table(title, parts)
    if material.undetected:
        yield _findings("Leaks that reached the agent", [_leak(one) for one in material.undetected])
    if report.memory.confirmed:
        title = "Memory: stated as known, and no source says so"
        yield _findings(title, [_memory_row(one) for one in report.memory.confirmed])
    if report.leakage is not None:
        yield _arms_table(report.leakage)


def _fence_table(audit: MaterialAudit) -> StudyTable:
    counts = {"kept": audit.whole.kept, "dropped": audit.whole.dropped}
    counts |= {f"– by {layer}": one for layer, one in audit.by_layer.items()}
    columns = [count(word) for word in ("clean", "leak", "undecided")]
    rows = {name: (one.clean, one.leak, one.undecided) for name, one in counts.items()}
    return table("The leakage filter", "Texts", columns, rows, caption=_kinds(audit))


def _rate_table(audit: MaterialAudit) -> StudyTable:
    parts = {"whole filter": audit.whole, "content filter alone": audit.content}
    rates = {
        "kept texts that leak (undetected)": [part.undetected for part in parts.values()],
        "leaks that were caught": [part.recall for part in parts.values()],
        "clean texts that were dropped": [part.false_drops for part in parts.values()],
    }
    rows = {name: [format_rate(rate) for rate in both] for name, both in rates.items()}
    return table("Rates, with 95 % intervals", "Rate", [words(label) for label in parts], rows)


def _parts_table(title: str, parts: Mapping[str, FenceMatrix]) -> StudyTable:
    columns = (
        *(count(label) for label in ("kept", "leaks", "undecided")),
        words("undetected", "share of the kept texts that leak"),
        *(count(label) for label in ("dropped", "clean")),
    )
    rows: dict[str, tuple[CellValue, ...]] = {}
    for name, one in parts.items():
        kept = (one.kept.n, one.kept.leak, one.kept.undecided, format_rate(one.undetected))
        rows[name] = (*kept, one.dropped.n, one.dropped.clean)
    return table(title, "", columns, rows)


def _arms_table(estimate: LeakageEstimate) -> StudyTable:
    differences = {
        "this run − no tools": estimate.lead,
        "  where no leak was seen": estimate.untouched if estimate.exposure.touched else None,
        "no filter − this run": estimate.gain,
        "no filter − no tools": estimate.future,
    }
    columns = (column("Brier", decimals=4), column("Brier index"), count("n"))
    rows = {name: (one.brier, one.index, one.brier.n) for name, one in differences.items() if one is not None}
    return table("In score units", "Paired differences", columns, rows)


def _findings(title: str, rows: Sequence[tuple[str, tuple[str, str, str]]]) -> StudyTable:
    columns = [words(label) for label in ("where", "text", "reason")]
    more = len(rows) - LISTED
    caption = f"{more} more are in the JSON file." if more > 0 else ""
    return table(f"{title} ({len(rows)})", "Question", columns, rows[:LISTED], caption=caption)


def _leak(one: AuditFinding) -> tuple[str, tuple[str, str, str]]:
    passage = one.passage
    what = "the question itself" if passage.tool == QUESTION else passage.tool
    places = ", ".join(f"trial {seen.trial} step {seen.step}" for seen in passage.seen[:3]) or "at the start"
    quote = one.ruling.quote or passage.text[:160]
    exact = one.by == "rows" or one.ruling.quotes(f"{passage.title}\n{passage.text}")
    text = f"{passage.title}: “{quote[:400]}”{'' if exact else ' (not its exact words)'}"
    return passage.asked[0], (f"{what} · {places}", text, one.ruling.reason[:400])


def _memory_row(one: MemorySuspicion) -> tuple[str, tuple[str, str, str]]:
    note = one.note
    where = f"trial {note.trial} after step {note.step} · {note.kind}, found by {' and '.join(one.found_by)}"
    return note.asked[0], (where, one.statement[:400], one.ruling.reason[:400])


def audit_headline(report: AuditReport) -> str:
    """The undetected rate in a sentence, with its interval by question."""
    rate = report.material.whole.undetected
    if not rate.n:
        return f"Run {report.run}: no text that the agent saw could be judged."
    worst = report.material.whole.undetected_at_most
    more = f"; {worst:.1%} if all that is undecided were" if report.material.whole.kept.undecided else ""
    return (
        f"Run {report.run}: {rate.count} of {rate.n} texts the agent saw are leaks, {rate.share:.1%} "
        f"[{rate.cluster_low:.1%}, {rate.cluster_high:.1%}] by question{more}."
    )


def format_rate(rate: ClusteredRate) -> str:
    """A rate as text: count, share, and the wider of its intervals.

    >>> from foretell.studies.audit.auditor import clustered_rate
    >>> format_rate(clustered_rate([True, False], ["a", "b"]))
    '1/2 = 50.0% [5.5%, 94.5%]'
    """
    if isnan(rate.share):
        return "–"
    low, high = min(rate.low, rate.cluster_low), max(rate.high, rate.cluster_high)
    return f"{rate.count}/{rate.n} = {rate.share:.1%} [{low:.1%}, {high:.1%}]"


def _kinds(audit: MaterialAudit) -> str:
    told = f"{audit.judged} texts judged" + (f", a sample of {audit.drawn_from}" if audit.sampled else "")
    numbers, asked = audit.numbers, audit.questions
    told += f". Numbers: {numbers.n} tables checked row by row, {numbers.leak} with rows after the cutoff."
    if asked.n:
        told += f" The questions' own words: {asked.leak} of {asked.n} leak, {asked.undecided} undecided."
    return told


def _memory(memory: MemoryAudit) -> str:
    open_ = sum(one.ruling.word == "undecided" for one in memory.suspicions)
    told = (
        f"Memory: {memory.notes} notes read, {len(memory.suspicions)} suspicious statements, "
        f"{len(memory.confirmed)} of them without a source, on {format_rate(memory.questions)} of the questions"
    )
    undecided = memory.read.undecided + open_
    return told + (f"; {undecided} undecided." if undecided else ".")


def _open_ends(report: AuditReport) -> Iterable[str]:
    material, memory = report.material, report.memory
    for layer, n in material.without_text.items():
        yield f"{n} refusals of the {layer} layer have no text that could be judged."
    if material.cuts:
        yield f"{material.cuts} times numbers after the cutoff were cut off; cut rows are not judged."
    if memory.replies_missing:
        yield f"{memory.replies_missing} replies of the agent are not in the journal: their words were not read."
    for text, n in (memory.cutoffs or {}).items():
        yield f"{text} ({n} questions)."
    if (warning := material.whole.undetected.warning) is not None:
        yield f"Intervals of the rates: {warning}."
    if report.leakage is not None and report.leakage.lead is not None and report.leakage.lead.brier.warning:
        yield f"Intervals in score units: {report.leakage.lead.brier.warning}."


# The audit itself.


@dataclass(frozen=True, kw_only=True)
class AuditRecord:
    """A stored run as an audit needs it: trials, answers, questions, and where its tools' results are."""

    trials: Sequence[TrialTrace]
    forecasts: Sequence[Forecast]
    scope: AuditScope
    origin: MaterialOrigin

    @property
    def models(self) -> tuple[str, ...]:
        """The models whose words the forecast rests on: those that guard or judge cannot leak into it."""
        called = [event for trace in self.trials for event in trace.events if isinstance(event, ModelCalled)]
        return tuple(dict.fromkeys(one.model for one in called if one.role not in ("filter", "auditor", "judge")))


def read_audit_record(store: RunStore, run: str, questions: Iterable[Question], origin: MaterialOrigin) -> AuditRecord:
    """Read a run from its store. Only questions with a trial count."""
    known: Mapping[QuestionKey, Question] = {(one.id, one.due.isoformat()): one for one in questions}
    trials = list(trial_traces(store.events(run), known))
    forecasts = [answer for answer in store.answers(run) if isinstance(answer, Forecast)]
    worked_on = {trace.asked: trace.question for trace in trials}
    return AuditRecord(
        trials=trials, forecasts=forecasts, scope=AuditScope(questions=worked_on, mode=origin.mode), origin=origin
    )


async def audit_record(
    record: AuditRecord, auditor: Auditor, *, sample: int | None = None, progress: StudyProgress | None = None
) -> tuple[MaterialAudit, MemoryAudit]:
    """Audit a run: what the leakage filter got wrong, and what the models remembered."""
    seen = await collect_passages(record.trials, record.origin)
    material = await audit_material(seen, record.scope, auditor, sample=sample, progress=progress)
    by_trial = {(one.question_id, one.as_of.at, one.trial): one for one in record.forecasts}
    notes: list[AgentNote] = []
    missing = 0
    for trace in record.trials:
        forecast = by_trial.get((trace.key.question, record.scope.as_of(trace.asked).at, trace.key.trial))
        found, lost = agent_notes(trace, forecast, record.origin.journal)
        notes += found
        missing += lost
    memory = await audit_memory(notes, seen.passages, record.scope, auditor, progress)
    cutoffs = training_cutoff_notes(record.models, record.scope)
    return material, replace(memory, replies_missing=missing, cutoffs=cutoffs)
