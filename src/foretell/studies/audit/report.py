"""The result of an audit: as plain data, and as a page in the terminal."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any

from foretell.models.budget import CallCost
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.questions.trace import ModelCalled
from foretell.report.markup import clean
from foretell.report.terminal import rich_table
from foretell.runs.store import RunStore
from foretell.studies.audit.auditor import Auditor, AuditProgress, ClusteredRate, FenceMatrix, VerdictCounts
from foretell.studies.audit.leakage import ArmDifference, LeakageEstimate
from foretell.studies.audit.material import QUESTION, AuditFinding, AuditScope, MaterialAudit, audit_material
from foretell.studies.audit.memory import MemoryAudit, MemorySuspicion, agent_notes, audit_memory, training_cutoff_notes
from foretell.studies.audit.passages import MaterialOrigin, QuestionKey, TrialTrace, collect_passages, trial_traces

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable


AUDIT_SCHEMA = "foretell/audit/1"
LISTED = 20
"""Findings shown in the terminal; the file holds all."""


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """Everything `foretell audit` knows about a run."""

    run: str
    auditor: str
    filter: str
    """The model that guarded the run."""
    material: MaterialAudit
    memory: MemoryAudit
    leakage: LeakageEstimate | None = None
    spend: CallCost = field(default_factory=CallCost)
    notes: tuple[str, ...] = ()
    """What could not be looked at, and what to keep in mind."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; numbers that do not exist are null."""
        material = self.material
        meaning = {} if self.leakage is None else {"meaning": str(self.leakage)}
        return {
            "schema": AUDIT_SCHEMA,
            **{name: getattr(self, name) for name in ("run", "auditor", "filter", "notes")},
            "material": plain_data(material) | {"undetected": plain_data(material.undetected)},
            "memory": plain_data(self.memory) | {"confirmed": plain_data(self.memory.confirmed)},
            "leakage": None if self.leakage is None else plain_data(self.leakage) | meaning,
            "spend": plain_data(self.spend),
        }


def plain_data(value: Any) -> Any:
    """Dataclasses, sets and tuples as dicts and lists.

    >>> plain_data((float("nan"), frozenset({"b", "a"})))
    [None, ['a', 'b']]
    """
    if is_dataclass(value) and not isinstance(value, type):
        return plain_data(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain_data(inner) for key, inner in value.items()}
    if isinstance(value, frozenset):
        return [plain_data(inner) for inner in sorted(value)]
    if isinstance(value, list | tuple):
        return [plain_data(inner) for inner in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def print_audit(report: AuditReport, console: "Console") -> None:
    """The whole report. Texts of strangers are shown as they are, never as markup."""
    from rich.text import Text

    def say(text: str, style: str = "") -> None:
        console.print(Text(text, style=style))

    say(audit_headline(report), "bold")
    console.print()
    console.print(_matrix_grid(report.material))
    console.print()
    console.print(_rates_grid(report.material))
    say(_kinds(report.material), "dim")
    for title, parts in (
        ("By source of the question", report.material.by_source),
        ("By tool", report.material.by_tool),
    ):
        if len(parts) > 1:
            say(f"\n{title}", "bold")
            console.print(_parts_grid(parts))
    _list(say, "Leaks that reached the agent", [_found(one) for one in report.material.undetected])
    _list(say, "Memory: stated as known, and no source says so", [_stated(one) for one in report.memory.confirmed])
    say(f"\n{_memory(report.memory)}")
    if report.leakage is not None:
        say("\nIn score units", "bold")
        console.print(_arms_grid(report.leakage))
        say(str(report.leakage))
    console.print()
    for note in (*_open_ends(report), *report.notes):
        say(clean(note), "dim")
    say(f"{clean(report.auditor)}: {report.spend}", "dim")


def audit_headline(report: AuditReport) -> str:
    """The one number, with its interval by question."""
    rate = report.material.whole.undetected
    if not rate.n:
        return f"Run {report.run}: no text that the agent saw could be judged."
    worst = report.material.whole.undetected_at_most
    more = f"; {worst:.1%} if all that is undecided were" if report.material.whole.kept.undecided else ""
    return (
        f"Run {report.run}: {rate.count} of {rate.n} texts the agent saw are leaks, {rate.share:.1%} "
        f"[{rate.cluster_low:.1%}, {rate.cluster_high:.1%}] by question{more}."
    )


def _grid(*heads: str) -> "RichTable":
    grid = rich_table()
    for place, head in enumerate(heads):
        grid.add_column(head, justify="right" if place else "left")
    return grid


def _row(grid: "RichTable", *cells: str) -> None:
    from rich.text import Text

    grid.add_row(*(Text(clean(cell)) for cell in cells))


def _matrix_grid(audit: MaterialAudit) -> "RichTable":
    grid = _grid("The fence", "clean", "leak", "undecided")
    _row(grid, "kept", *_counts(audit.whole.kept))
    _row(grid, "dropped", *_counts(audit.whole.dropped))
    for layer, tally in audit.by_layer.items():
        _row(grid, f"– by {layer}", *_counts(tally))
    return grid


def _rates_grid(audit: MaterialAudit) -> "RichTable":
    grid = _grid("Rates, with 95 % intervals", "whole fence", "content filter alone")
    for name, told in (
        ("kept texts that leak (undetected)", "undetected"),
        ("leaks that were caught", "recall"),
        ("clean texts that were dropped", "false_drops"),
    ):
        _row(grid, name, format_rate(getattr(audit.whole, told)), format_rate(getattr(audit.content, told)))
    return grid


def _parts_grid(parts: Mapping[str, FenceMatrix]) -> "RichTable":
    grid = _grid("", "kept", "leaks", "undecided", "undetected", "dropped", "clean")
    for name, part in parts.items():
        kept, dropped = part.kept, part.dropped
        cells = (kept.n, kept.leak, kept.undecided)
        _row(grid, name, *map(str, cells), format_rate(part.undetected), str(dropped.n), str(dropped.clean))
    return grid


def _arms_grid(found: LeakageEstimate) -> "RichTable":
    grid = _grid("Paired differences", "Brier", "Brier index", "n")
    for gap, name in (
        (found.lead, "fenced − closed-book"),
        (found.untouched if found.exposure.touched else None, "  where no leak was seen"),
        (found.gain, "unfenced − fenced"),
        (found.future, "unfenced − closed-book"),
    ):
        if gap is not None:
            _row(grid, name, *_gap(gap), str(gap.brier.n))
    return grid


def _gap(gap: ArmDifference) -> tuple[str, str]:
    brier, index = gap.brier, gap.index
    return (
        f"{brier.diff:+.4f} [{brier.low:+.4f}, {brier.high:+.4f}]{brier.stars}",
        f"{index.diff:+.1f} [{index.low:+.1f}, {index.high:+.1f}]{index.stars}",
    )


def format_rate(rate: ClusteredRate) -> str:
    """A rate for people: count, share, and the wider of its intervals.

    >>> from foretell.studies.audit.auditor import clustered_rate
    >>> format_rate(clustered_rate([True, False], ["a", "b"]))
    '1/2 = 50.0% [5.5%, 94.5%]'
    """
    if isnan(rate.share):
        return "–"
    low, high = min(rate.low, rate.cluster_low), max(rate.high, rate.cluster_high)
    return f"{rate.count}/{rate.n} = {rate.share:.1%} [{low:.1%}, {high:.1%}]"


def _counts(tally: VerdictCounts) -> tuple[str, str, str]:
    return str(tally.clean), str(tally.leak), str(tally.undecided)


def _kinds(audit: MaterialAudit) -> str:
    told = f"{audit.judged} texts judged" + (f", a sample of {audit.drawn_from}" if audit.sampled else "")
    numbers, asked = audit.numbers, audit.questions
    told += f". Numbers: {numbers.n} tables checked row by row, {numbers.leak} with rows after the cutoff."
    if asked.n:
        told += f" The questions' own words: {asked.leak} of {asked.n} leak, {asked.undecided} undecided."
    return told


def _found(one: AuditFinding) -> str:
    passage = one.passage
    what = "the question itself" if passage.tool == QUESTION else passage.tool
    places = ", ".join(f"trial {seen.trial} step {seen.step}" for seen in passage.seen[:3]) or "at the start"
    quote = one.ruling.quote or passage.text[:160]
    doubt = (
        "" if one.by == "rows" or one.ruling.quotes(f"{passage.title}\n{passage.text}") else " (not its exact words)"
    )
    return f"{passage.asked[0]} · {what} · {places}\n  {passage.title}\n  “{quote}”{doubt}: {one.ruling.reason}"


def _stated(one: MemorySuspicion) -> str:
    note = one.note
    where = f"{note.asked[0]} · trial {note.trial} after step {note.step}"
    return f"{where} · {note.kind}, found by {' and '.join(one.found_by)}\n  “{one.statement}”: {one.ruling.reason}"


def _list(say: Any, title: str, entries: Sequence[str]) -> None:
    if not entries:
        return
    say(f"\n{title} ({len(entries)})", "bold")
    for entry in entries[:LISTED]:
        say("\n".join(f"{'  ' * (place > 0)}{clean(line)[:400]}" for place, line in enumerate(entry.split("\n"))))
    if len(entries) > LISTED:
        say(f"… and {len(entries) - LISTED} more in the JSON file (--json)", "dim")


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
    for layer, count in material.without_text.items():
        yield f"{count} refusals of the {layer} layer have no text that could be judged."
    if material.cuts:
        yield f"{material.cuts} times numbers after the cutoff were cut off; cut rows are not judged."
    if memory.replies_missing:
        yield f"{memory.replies_missing} replies of the agent are not in the journal: their words were not read."
    for text, count in (memory.cutoffs or {}).items():
        yield f"{text} ({count} questions)."
    if (warning := material.whole.undetected.warning) is not None:
        yield f"Intervals of the rates: {warning}."
    if report.leakage is not None and report.leakage.lead is not None and report.leakage.lead.brier.warning:
        yield f"Intervals in score units: {report.leakage.lead.brier.warning}."


# A stored run as an audit needs it: its trials, its answers, its questions, and where its tools' material is.


@dataclass(frozen=True, kw_only=True)
class AuditRecord:
    """What is left of a run."""

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
    """Read a run from its store. Only questions that were worked on count, found in the set or not."""
    known: Mapping[QuestionKey, Question] = {(one.id, one.due.isoformat()): one for one in questions}
    trials = list(trial_traces(store.events(run), known))
    forecasts = [answer for answer in store.answers(run) if isinstance(answer, Forecast)]
    worked_on = {trace.asked: trace.question for trace in trials}
    return AuditRecord(
        trials=trials, forecasts=forecasts, scope=AuditScope(questions=worked_on, mode=origin.mode), origin=origin
    )


async def audit_record(
    record: AuditRecord, auditor: Auditor, *, sample: int | None = None, progress: AuditProgress | None = None
) -> tuple[MaterialAudit, MemoryAudit]:
    """What the fence got wrong, and what the models remembered."""
    seen = await collect_passages(record.trials, record.origin)
    material = await audit_material(seen, record.scope, auditor, sample=sample, progress=progress)
    by_trial = {(one.question_id, one.as_of.at, one.trial): one for one in record.forecasts}
    journal = record.origin.journal
    read = [
        agent_notes(
            trace, by_trial.get((trace.key.question, record.scope.as_of(trace.asked).at, trace.key.trial)), journal
        )
        for trace in record.trials
    ]
    notes = [note for found, _ in read for note in found]
    memory = await audit_memory(notes, seen.passages, record.scope, auditor, progress)
    missing = sum(lost for _, lost in read)
    return material, replace(
        memory, replies_missing=missing, cutoffs=training_cutoff_notes(record.models, record.scope)
    )
