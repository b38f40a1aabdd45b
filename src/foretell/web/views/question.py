"""One question of a run: every trial, and how the trials became one number."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from foretell.forecasters.combine.aggregate import Aggregate
from foretell.forecasters.combine.trials import PANEL
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.questions.trace import TraceEvent
from foretell.runs.combine import CombinationSettings, combine_trials, combining_by_name
from foretell.runs.store import CellKey, RunRow, RunStore
from foretell.web.background_runs import BackgroundStatus
from foretell.web.views.runs import RunRowView, cells_each, run_row_view
from foretell.web.views.trace import SpendingView, TraceView, trace_of

# From the trials of a question to its one number, stage by stage.


@dataclass(frozen=True, kw_only=True)
class CombinationStage:
    """Where the number stands after something was done to it."""

    name: str
    told: str
    p: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class CombinationView:
    """Raw trials, what was done to them, and what came out."""

    trials: tuple[CombinationStage, ...]
    stages: tuple[CombinationStage, ...]
    """In order; the last one is the answer."""
    p: dict[str, float]
    rationale: str
    """Of the trial nearest to the answer, after a word on how trials were combined."""
    spread: dict[str, float]
    """By target, the highest trial minus the lowest."""


def combination_of(
    answers: Sequence[Forecast | Failure], question: Question, aggregate: str = "logit-mean"
) -> CombinationView | None:
    """Stage by stage, as the run's spec says: every door shows the same number for it."""
    made = [answer for answer in answers if isinstance(answer, Forecast)]
    trials = [answer for answer in made if answer.forecaster != PANEL]
    if not made or not trials:
        return None
    how = combining_by_name(aggregate or "logit-mean")
    plain = Aggregate(rule=how.rule).apply([trial.p for trial in trials])
    fitting = combine_trials(made, [question], CombinationSettings(rule=how.rule))[0]
    final = combine_trials(answers, [question], how)[0]
    return CombinationView(
        trials=tuple(CombinationStage(name=f"Trial {trial.trial + 1}", told="", p=dict(trial.p)) for trial in trials),
        stages=tuple(_stages(how, plain, fitting, final)),
        p=dict(final.p),
        rationale=final.rationale,
        spread={t: max(trial.p[t] for trial in trials) - min(trial.p[t] for trial in trials) for t in plain},
    )


def _stages(
    how: CombinationSettings, plain: Mapping[str, float], fitting: Forecast, final: Forecast
) -> list[CombinationStage]:
    found = [CombinationStage(name=how.rule, told="the trials put together by the run's rule", p=dict(plain))]
    if _differ(plain, fitting.p):
        found.append(
            CombinationStage(
                name="made coherent", told="so that exclusive or ordered outcomes fit together", p=dict(fitting.p)
            )
        )
    if how.judged:
        told = "a model read the trials' reasons and answered in their place"
        found.append(CombinationStage(name="panel", told=told, p=dict(final.p)))
    elif how.fitted is not None:
        told = "blended with the market's price or the base rate, where the question has one"
        found.append(CombinationStage(name="calibrated", told=told, p=dict(final.p)))
    return found


def _differ(a: Mapping[str, float], b: Mapping[str, float]) -> bool:
    return any(abs(a[target] - b[target]) > 1e-9 for target in a if target in b)


TrialState = Literal["answered", "failed", "under way", "waiting"]


@dataclass(frozen=True, kw_only=True)
class TargetView:
    """One thing that can come true."""

    id: str
    label: str
    resolves_at: str | None
    price: float | None
    """What a market said when the question was asked."""


@dataclass(frozen=True, kw_only=True)
class QuestionTextView:
    """What was asked."""

    id: str
    due: str
    text: str
    criteria: str
    background: str
    url: str
    source: str
    closes_at: str | None
    targets: tuple[TargetView, ...]


@dataclass(frozen=True, kw_only=True)
class TrialView:
    """One independent attempt, or the panel that read them all."""

    number: int
    panel: bool
    state: TrialState
    p: dict[str, float] | None
    rationale: str
    error: str
    seconds: float | None
    drift: float | None
    """How far the answer is from the last belief, at most: an agent should submit what it believes."""
    trace: TraceView


@dataclass(frozen=True, kw_only=True)
class QuestionView:
    """Everything about one question of one run."""

    run: RunRowView
    mode: str
    clairvoyant: bool
    question: QuestionTextView
    asked: tuple[str, ...]
    """Every moment as of which the run asked it, the newest first."""
    trials: tuple[TrialView, ...]
    combination: CombinationView | None
    """None while no trial has answered."""
    spending: SpendingView
    finished: bool
    background: BackgroundStatus | None
    """What this server knows of the run, if it started it."""
    last: int
    """The number of the newest event: a stream goes on from here."""


def question_view(
    store: RunStore, row: RunRow, id: str, *, due: str | None = None, background: BackgroundStatus | None = None
) -> QuestionView | None:
    """The question as it stands now; None where the run does not ask it."""
    last = store.last_event()  # Before anything is read: what comes later is told by the stream.
    moments = [found[0] for found in store.database.read(_MOMENTS_SQL, (row.id, id))]
    due = due or (moments[0] if moments else None)
    question = store.question(CellKey(run=row.id, question=id, due=due, trial=0)) if due else None
    if question is None or due is None:
        return None
    key = CellKey(run=row.id, question=id, due=due, trial=0)
    answers = {answer.trial: answer for answer in store.answers_to(key)}
    events: dict[int, list[tuple[int, TraceEvent]]] = {}
    for number, cell, event in store.events(row.id, id):
        if cell.due == due:
            events.setdefault(cell.trial, []).append((number, event))
    count = int(row.spec.get("trials", 1))
    trials = tuple(
        _trial(number, answers.get(number), events.get(number, []), panel=number >= count)
        for number in range(cells_each(row.spec))
    )
    return QuestionView(
        run=run_row_view(store, row),
        mode=str(row.spec.get("mode", "")),
        clairvoyant=bool(row.spec.get("clairvoyant")),
        question=question_text(question),
        asked=tuple(moments),
        trials=trials,
        combination=combination_of(list(answers.values()), question, str(row.spec.get("aggregate", ""))),
        spending=SpendingView.of(event for told in events.values() for _, event in told),
        finished=all(trial.state in ("answered", "failed") for trial in trials),
        background=background,
        last=last,
    )


_MOMENTS_SQL = "select due from question where run = ? and id = ? order by due desc"


def _trial(
    number: int, answer: Forecast | Failure | None, events: Sequence[tuple[int, TraceEvent]], *, panel: bool
) -> TrialView:
    made = answer if isinstance(answer, Forecast) else None
    trace = trace_of(events, made.rationale if made else "")
    return TrialView(
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


def _state(answer: Forecast | Failure | None, events: Sequence[tuple[int, TraceEvent]]) -> TrialState:
    if answer is None:
        return "under way" if events else "waiting"
    return "answered" if isinstance(answer, Forecast) else "failed"


def _drift(made: Forecast | None, trace: TraceView) -> float | None:
    if made is None or not trace.path:
        return None
    last = trace.path[-1].p
    return max((abs(p - last[target]) for target, p in made.p.items() if target in last), default=None)


def question_text(question: Question) -> QuestionTextView:
    """A question as pages show it."""
    return QuestionTextView(
        id=question.id,
        due=question.due.isoformat(),
        text=question.text,
        criteria=question.criteria,
        background=question.background,
        url=question.url,
        source=question.source,
        closes_at=question.closes_at.isoformat() if question.closes_at else None,
        targets=tuple(
            TargetView(
                id=target.id,
                label=target.label or target.id,
                resolves_at=target.resolves_at.isoformat() if target.resolves_at else None,
                price=target.snapshot.price if target.snapshot else None,
            )
            for target in question.targets
        ),
    )
