"""A stored run as an audit needs it: its trials, its answers, its questions, and where its tools' material is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from foretell.arena.store import Store
from foretell.arena.studies.audit import MaterialAudit, Scope, audit_material
from foretell.arena.studies.auditor import Auditor, Progress
from foretell.arena.studies.parametric import MemoryAudit, audit_memory, knowledge_of, notes_of
from foretell.arena.studies.sightings import Asked, Origin, Trace, seen_in, traces
from foretell.questions.event import ModelCalled
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question


@dataclass(frozen=True, kw_only=True)
class Record:
    """What is left of a run."""

    trials: Sequence[Trace]
    forecasts: Sequence[Forecast]
    scope: Scope
    origin: Origin

    @property
    def models(self) -> tuple[str, ...]:
        """The models whose words the forecast rests on: those that guard or judge cannot leak into it."""
        called = [event for trace in self.trials for event in trace.events if isinstance(event, ModelCalled)]
        return tuple(dict.fromkeys(one.model for one in called if one.role not in ("filter", "auditor", "judge")))


def record_of(store: Store, run: str, questions: Iterable[Question], origin: Origin) -> Record:
    """Read a run from its store. Only questions that were worked on count, found in the set or not."""
    known: Mapping[Asked, Question] = {(one.id, one.due.isoformat()): one for one in questions}
    trials = list(traces(store.events(run), known))
    forecasts = [answer for answer in store.answers(run) if isinstance(answer, Forecast)]
    worked_on = {trace.asked: trace.question for trace in trials}
    return Record(trials=trials, forecasts=forecasts, scope=Scope(questions=worked_on, mode=origin.mode), origin=origin)


async def audit_record(
    record: Record, auditor: Auditor, *, sample: int | None = None, progress: Progress | None = None
) -> tuple[MaterialAudit, MemoryAudit]:
    """What the fence got wrong, and what the models remembered."""
    seen = await seen_in(record.trials, record.origin)
    material = await audit_material(seen, record.scope, auditor, sample=sample, progress=progress)
    by_trial = {(one.question_id, one.as_of.at, one.trial): one for one in record.forecasts}
    journal = record.origin.journal
    read = [
        notes_of(
            trace, by_trial.get((trace.key.question, record.scope.as_of(trace.asked).at, trace.key.trial)), journal
        )
        for trace in record.trials
    ]
    notes = [note for found, _ in read for note in found]
    memory = await audit_memory(notes, seen.passages, record.scope, auditor, progress)
    missing = sum(lost for _, lost in read)
    return material, replace(memory, replies_missing=missing, cutoffs=knowledge_of(record.models, record.scope))
