"""One question of a run: every trial, and how the trials became one number."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from foretell.app.web.background import Background
from foretell.app.web.views.combination import Combination, combination_of
from foretell.app.web.views.runs import RunLine, cells_each, run_line
from foretell.app.web.views.trace import Spending, Trace, trace_of
from foretell.arena.store import CellKey, RunRow, Store
from foretell.questions.event import Event
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question

State = Literal["answered", "failed", "under way", "waiting"]


@dataclass(frozen=True, kw_only=True)
class TargetText:
    """One thing that can come true."""

    id: str
    label: str
    resolves_at: str | None
    price: float | None
    """What a market said when the question was asked."""


@dataclass(frozen=True, kw_only=True)
class QuestionText:
    """What was asked."""

    id: str
    due: str
    text: str
    criteria: str
    background: str
    url: str
    source: str
    closes_at: str | None
    targets: tuple[TargetText, ...]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One independent attempt, or the panel that read them all."""

    number: int
    panel: bool
    state: State
    p: dict[str, float] | None
    rationale: str
    error: str
    seconds: float | None
    drift: float | None
    """How far the answer is from the last belief, at most: an agent should submit what it believes."""
    trace: Trace


@dataclass(frozen=True, kw_only=True)
class QuestionView:
    """Everything about one question of one run."""

    run: RunLine
    mode: str
    clairvoyant: bool
    question: QuestionText
    asked: tuple[str, ...]
    """Every moment as of which the run asked it, the newest first."""
    trials: tuple[Trial, ...]
    combination: Combination | None
    """None while no trial has answered."""
    spending: Spending
    finished: bool
    background: Background | None
    """What this server knows of the run, if it started it."""
    last: int
    """The number of the newest event: a stream goes on from here."""


def question_view(
    store: Store, row: RunRow, id: str, *, due: str | None = None, background: Background | None = None
) -> QuestionView | None:
    """The question as it stands now; None where the run does not ask it."""
    last = store.last_event()  # Before anything is read: what comes later is told by the stream.
    moments = [found[0] for found in store.database.read(_MOMENTS, (row.id, id))]
    due = due or (moments[0] if moments else None)
    question = store.question(CellKey(run=row.id, question=id, due=due, trial=0)) if due else None
    if question is None or due is None:
        return None
    key = CellKey(run=row.id, question=id, due=due, trial=0)
    answers = {answer.trial: answer for answer in store.answers_to(key)}
    events: dict[int, list[tuple[int, Event]]] = {}
    for number, cell, event in store.events(row.id, id):
        if cell.due == due:
            events.setdefault(cell.trial, []).append((number, event))
    count = int(row.spec.get("trials", 1))
    trials = tuple(
        _trial(number, answers.get(number), events.get(number, []), panel=number >= count)
        for number in range(cells_each(row.spec))
    )
    return QuestionView(
        run=run_line(store, row),
        mode=str(row.spec.get("mode", "")),
        clairvoyant=bool(row.spec.get("clairvoyant")),
        question=question_text(question),
        asked=tuple(moments),
        trials=trials,
        combination=combination_of(list(answers.values()), question, str(row.spec.get("aggregate", ""))),
        spending=Spending.of(event for told in events.values() for _, event in told),
        finished=all(trial.state in ("answered", "failed") for trial in trials),
        background=background,
        last=last,
    )


_MOMENTS = "select due from question where run = ? and id = ? order by due desc"


def _trial(
    number: int, answer: Forecast | Failure | None, events: Sequence[tuple[int, Event]], *, panel: bool
) -> Trial:
    made = answer if isinstance(answer, Forecast) else None
    trace = trace_of(events, made.rationale if made else "")
    return Trial(
        number=number,
        panel=panel,
        state=_state(answer, events),
        p=dict(made.p) if made else None,
        rationale=made.rationale if made else "",
        error=answer.error if isinstance(answer, Failure) else "",
        seconds=made.usage.seconds if made else None,
        drift=_drift(made, trace),
        trace=trace,
    )


def _state(answer: Forecast | Failure | None, events: Sequence[tuple[int, Event]]) -> State:
    if answer is None:
        return "under way" if events else "waiting"
    return "answered" if isinstance(answer, Forecast) else "failed"


def _drift(made: Forecast | None, trace: Trace) -> float | None:
    if made is None or not trace.path:
        return None
    last = trace.path[-1].p
    return max((abs(p - last[target]) for target, p in made.p.items() if target in last), default=None)


def question_text(question: Question) -> QuestionText:
    """A question as pages show it."""
    return QuestionText(
        id=question.id,
        due=question.due.isoformat(),
        text=question.text,
        criteria=question.criteria,
        background=question.background,
        url=question.url,
        source=question.source,
        closes_at=question.closes_at.isoformat() if question.closes_at else None,
        targets=tuple(
            TargetText(
                id=target.id,
                label=target.label or target.id,
                resolves_at=target.resolves_at.isoformat() if target.resolves_at else None,
                price=target.snapshot.price if target.snapshot else None,
            )
            for target in question.targets
        ),
    )
