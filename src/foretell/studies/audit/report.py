"""The audit of a run, and its report: how much of the score could be leakage?"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isnan
from typing import Any

from foretell.forecasters.prompt.rendering import BOTH, ContextView
from foretell.frozen import frozen
from foretell.number_text import percent
from foretell.questions.codec import plain_data
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.questions.trace import ModelCalled
from foretell.report.numbers import CellValue
from foretell.report.study import StudyTable, column, count, table, words
from foretell.report.study_result import StudyResult
from foretell.runs.store import RunStore
from foretell.studies.audit.auditor import Auditor, ClusteredRate, FilterMatrix
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
from foretell.studies.stored_runs import FindContext, shown_contexts

# The report: errors of the leakage filter, rates, leaks, remembered facts, and their effect on the score.


LISTED = 20
"""Maximum number of findings shown in a table; the JSON file contains all."""
HOW_TO_READ = (
    "A leak is a text from after the time of the forecast that shows how the question resolved. The leakage filter "
    "withholds such texts from the agent; the auditor is another model that reads the shown and the withheld texts.",
    "Rates carry 95 % intervals; texts on one question are correlated, so the wider of the plain interval and the "
    "one by question is shown.",
    "Memory: statements of the agent about events after the cutoff that none of its sources made.",
)


@frozen
class AuditReport:
    """All results of the audit of a run."""

    run: str
    auditor: str
    filter: str
    """The model that was the content filter of the run."""
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
        notes=(*_caveats(report), *report.notes),
        settings={"run": report.run, "auditor": report.auditor, "filter": report.filter},
        how_to_read=HOW_TO_READ,
        details=report.details(),
    )


def _tables(report: AuditReport) -> Iterator[StudyTable]:
    material = report.material
    yield _filter_table(material)
    yield _rate_table(material)
    for title, parts in (("By source of the question", material.by_source), ("By tool", material.by_tool)):
        if len(parts) > 1:
            yield _parts_table(title, parts)
    if material.undetected:
        yield _findings("Leaks that reached the agent", [_leak(finding) for finding in material.undetected])
    if report.memory.confirmed:
        title = "Memory: stated as a fact without a source"
        yield _findings(title, [_memory_row(suspicion) for suspicion in report.memory.confirmed])
    if report.leakage is not None:
        yield _arms_table(report.leakage)


def _filter_table(audit: MaterialAudit) -> StudyTable:
    counts = {"kept": audit.whole.kept, "dropped": audit.whole.dropped}
    counts |= {f"– by {layer}": verdicts for layer, verdicts in audit.by_layer.items()}
    columns = [count(word) for word in ("clean", "leak", "undecided")]
    rows = {name: (verdicts.clean, verdicts.leak, verdicts.undecided) for name, verdicts in counts.items()}
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


def _parts_table(title: str, parts: Mapping[str, FilterMatrix]) -> StudyTable:
    columns = (
        *(count(label) for label in ("kept", "leaks", "undecided")),
        words("undetected", "share of the kept texts that leak"),
        *(count(label) for label in ("dropped", "clean")),
    )
    rows: dict[str, tuple[CellValue, ...]] = {}
    for name, matrix in parts.items():
        kept_cells = (matrix.kept.n, matrix.kept.leak, matrix.kept.undecided, format_rate(matrix.undetected))
        rows[name] = (*kept_cells, matrix.dropped.n, matrix.dropped.clean)
    return table(title, "", columns, rows)


def _arms_table(estimate: LeakageEstimate) -> StudyTable:
    differences = {
        "this run − no tools": estimate.lead,
        "  where no leak was seen": estimate.untouched if estimate.exposure.touched else None,
        "no filter − this run": estimate.gain,
        "no filter − no tools": estimate.future,
    }
    columns = (column("Brier", decimals=4), column("Brier index"), count("n"))
    rows = {
        name: (difference.brier, difference.index, difference.brier.n)
        for name, difference in differences.items()
        if difference is not None
    }
    return table("In score units", "Paired differences", columns, rows)


def _findings(title: str, rows: Sequence[tuple[str, tuple[str, str, str]]]) -> StudyTable:
    columns = [words(label) for label in ("where", "text", "reason")]
    more = len(rows) - LISTED
    caption = f"{more} more are in the JSON file." if more > 0 else ""
    return table(f"{title} ({len(rows)})", "Question", columns, rows[:LISTED], caption=caption)


def _leak(finding: AuditFinding) -> tuple[str, tuple[str, str, str]]:
    passage = finding.passage
    what = "the question itself" if passage.tool == QUESTION else passage.tool
    places = (
        ", ".join(f"trial {location.trial} step {location.step}" for location in passage.seen[:3]) or "at the start"
    )
    quote = finding.ruling.quote or passage.text[:160]
    exact = finding.by == "rows" or finding.ruling.quotes(f"{passage.title}\n{passage.text}")
    text = f"{passage.title}: “{quote[:400]}”{'' if exact else ' (not its exact words)'}"
    return passage.asked[0], (f"{what} · {places}", text, finding.ruling.reason[:400])


def _memory_row(suspicion: MemorySuspicion) -> tuple[str, tuple[str, str, str]]:
    note = suspicion.note
    where = f"trial {note.trial} after step {note.step} · {note.kind}, found by {' and '.join(suspicion.found_by)}"
    return note.asked[0], (where, suspicion.statement[:400], suspicion.ruling.reason[:400])


def audit_headline(report: AuditReport) -> str:
    """The undetected rate in a sentence, with its interval by question."""
    rate = report.material.whole.undetected
    if not rate.n:
        return f"Run {report.run}: no text that the agent saw could be judged."
    worst = report.material.whole.undetected_at_most
    more = f"; {percent(worst, 1)} if all that is undecided were" if report.material.whole.kept.undecided else ""
    return (
        f"Run {report.run}: {rate.count} of {rate.n} texts the agent saw are leaks, {percent(rate.share, 1)} "
        f"[{percent(rate.cluster_low, 1)}, {percent(rate.cluster_high, 1)}] by question{more}."
    )


def format_rate(rate: ClusteredRate) -> str:
    """A rate as text: count, share, and the wider of its intervals.

    >>> from foretell.studies.audit.auditor import clustered_rate
    >>> format_rate(clustered_rate([True, False], ["a", "b"]))
    '1/2 = 50.0 % [5.5 %, 94.5 %]'
    """
    if isnan(rate.share):
        return "–"
    low, high = min(rate.low, rate.cluster_low), max(rate.high, rate.cluster_high)
    return f"{rate.count}/{rate.n} = {percent(rate.share, 1)} [{percent(low, 1)}, {percent(high, 1)}]"


def _kinds(audit: MaterialAudit) -> str:
    kinds = f"{audit.judged} texts judged" + (f", a sample of {audit.drawn_from}" if audit.sampled else "")
    numbers, questions = audit.numbers, audit.questions
    kinds += f". Numbers: {numbers.n} tables checked row by row, {numbers.leak} with rows after the cutoff."
    if questions.n:
        kinds += f" The questions' own words: {questions.leak} of {questions.n} leak, {questions.undecided} undecided."
    return kinds


def _memory(memory: MemoryAudit) -> str:
    open_ = sum(suspicion.ruling.word == "undecided" for suspicion in memory.suspicions)
    text = (
        f"Memory: {memory.notes} notes read, {len(memory.suspicions)} suspicious statements, "
        f"{len(memory.confirmed)} of them without a source, on {format_rate(memory.questions)} of the questions"
    )
    undecided = memory.read.undecided + open_
    return text + (f"; {undecided} undecided." if undecided else ".")


def _caveats(report: AuditReport) -> Iterable[str]:
    material, memory = report.material, report.memory
    for layer, n in material.without_text.items():
        yield f"{n} refusals of the {layer} layer have no text that could be judged."
    if material.cuts:
        yield f"{material.cuts} times numbers after the cutoff were cut off; cut rows are not judged."
    if memory.replies_missing:
        yield f"{memory.replies_missing} replies of the agent are not in the journal and were not read."
    for text, n in (memory.cutoffs or {}).items():
        yield f"{text} ({n} questions)."
    if (warning := material.whole.undetected.warning) is not None:
        yield f"Intervals of the rates: {warning}."
    if report.leakage is not None and report.leakage.lead is not None and report.leakage.lead.brier.warning:
        yield f"Intervals in score units: {report.leakage.lead.brier.warning}."


# The audit.


@frozen
class AuditRecord:
    """A stored run as an audit needs it: trials, answers, questions, and where its tools' results are."""

    trials: Sequence[TrialTrace]
    forecasts: Sequence[Forecast]
    scope: AuditScope
    origin: MaterialOrigin

    @property
    def models(self) -> tuple[str, ...]:
        """The models that contributed to the forecast, without those that filter or judge."""
        called = [event for trace in self.trials for event in trace.events if isinstance(event, ModelCalled)]
        return tuple(dict.fromkeys(event.model for event in called if event.role not in ("filter", "auditor", "judge")))


def read_audit_record(
    store: RunStore,
    run: str,
    questions: Iterable[Question],
    origin: MaterialOrigin,
    find: FindContext = lambda digest: None,
    view: ContextView = BOTH,
) -> AuditRecord:
    """Read a run from its store. Only questions with a trial count.

    `find` returns the contexts that were gathered beforehand, which the run showed in its view.
    """
    by_key: Mapping[QuestionKey, Question] = {
        (question.id, question.due.isoformat()): question for question in questions
    }
    contexts = shown_contexts(store, run, find, view)
    sources = {place: context.sources for place, (context, shown) in contexts.items() if shown.sources}
    trials = [
        replace(trace, sources=sources.get((*trace.asked, trace.key.trial), ()))
        for trace in trial_traces(store.events(run), by_key)
    ]
    forecasts = [answer for answer in store.answers(run) if isinstance(answer, Forecast)]
    questions_by_key = {trace.asked: trace.question for trace in trials}
    return AuditRecord(
        trials=trials,
        forecasts=forecasts,
        scope=AuditScope(questions=questions_by_key, mode=origin.mode),
        origin=origin,
    )


async def audit_record(
    record: AuditRecord, auditor: Auditor, *, sample: int | None = None, progress: StudyProgress | None = None
) -> tuple[MaterialAudit, MemoryAudit]:
    """Audit a run: what the leakage filter got wrong, and what the models remembered."""
    shown = await collect_passages(record.trials, record.origin)
    material = await audit_material(shown, record.scope, auditor, sample=sample, progress=progress)
    by_trial = {(forecast.question_id, forecast.as_of.at, forecast.trial): forecast for forecast in record.forecasts}
    notes: list[AgentNote] = []
    missing = 0
    for trace in record.trials:
        forecast = by_trial.get((trace.key.question, record.scope.as_of(trace.asked).at, trace.key.trial))
        trial_notes, lost = agent_notes(trace, forecast, record.origin.journal)
        notes += trial_notes
        missing += lost
    memory = await audit_memory(notes, shown.passages, record.scope, auditor, progress)
    cutoffs = training_cutoff_notes(record.models, record.scope)
    return material, replace(memory, replies_missing=missing, cutoffs=cutoffs)
