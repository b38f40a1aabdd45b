"""One question of a run: every trial step by step, and how the trials became one number; live while it goes on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response

from foretell.forecasters.combine.aggregate import Aggregate
from foretell.forecasters.combine.trials import PANEL
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.questions.trace import TraceEvent
from foretell.report.charts.svg import Chart
from foretell.report.charts.timelines import Trajectory, stages_plot, trajectory_plot
from foretell.runs.combine import CombinationSettings, combine_trials, combining_by_name
from foretell.runs.store import CellKey
from foretell.web.background_runs import BackgroundStatus
from foretell.web.rendering import html_page
from foretell.web.run_rows import RunRowView, SpendingView, cells_each, run_row_view
from foretell.web.state import CurrentState
from foretell.web.streaming import STREAM, After, Brief, stream
from foretell.web.trace import TraceView, trace_view

router = APIRouter()
MAX_CHARTS = 6
"""Targets that get charts of their own."""
_MOMENTS_SQL = "select due from question where run = ? and id = ? order by due desc"


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
    state: Literal["answered", "failed", "under way", "waiting"]
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


# Before the question itself: its id may hold slashes, and would swallow the last part.
@router.get(
    "/api/runs/{run}/questions/{question:path}/stream", tags=["live"], response_class=Response, responses=STREAM
)
def stream_question(
    request: Request, here: CurrentState, run: str, question: str, after: After = 0, brief: Brief = False
) -> Response:
    """Everything that happens to one question, as it happens."""
    return stream(request, here, here.run(run).id, question, after=after, brief=brief)


@router.get("/api/runs/{run}/questions/{question:path}", tags=["runs"])
def read_question(
    here: CurrentState,
    run: str,
    question: str,
    due: Annotated[str | None, Query(max_length=64, description="Asked as of when; the newest if left out.")] = None,
) -> QuestionView:
    """Every trial of a question step by step, with evidence, refusals and cost, and the way to the answer."""
    row, store = here.run(run), here.store
    last = store.last_event()  # Before anything is read: what comes later is sent by the stream.
    moments = tuple(found[0] for found in store.database.read(_MOMENTS_SQL, (row.id, question)))
    moment = due or (moments[0] if moments else "")
    key = CellKey(run=row.id, question=question, due=moment, trial=0)
    asked = store.question(key)
    if asked is None:
        when = f" as of {due[:64]}" if due else ""
        raise HTTPException(404, f"run {row.id} does not ask {question[:200]!r}{when}")
    answers = {answer.trial: answer for answer in store.answers_to(key)}
    events: dict[int, list[tuple[int, TraceEvent]]] = {}
    for number, cell, event in store.events(row.id, question):
        if cell.due == moment:
            events.setdefault(cell.trial, []).append((number, event))
    trials = tuple(
        _trial(number, answers.get(number), events.get(number, []), panel=number >= int(row.spec.get("trials", 1)))
        for number in range(cells_each(row.spec))
    )
    return QuestionView(
        run=run_row_view(store, row),
        mode=str(row.spec.get("mode", "")),
        clairvoyant=bool(row.spec.get("clairvoyant")),
        question=_question_text(asked),
        asked=moments,
        trials=trials,
        combination=combination_of(list(answers.values()), asked, row.spec.get("aggregate") or "logit-mean"),
        spending=SpendingView().plus(event for several in events.values() for _, event in several),
        finished=all(trial.state in ("answered", "failed") for trial in trials),
        background=here.jobs.of(row.id),
        last=last,
    )


def _question_text(question: Question) -> QuestionTextView:
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


def _trial(
    number: int, answer: Forecast | Failure | None, events: Sequence[tuple[int, TraceEvent]], *, panel: bool
) -> TrialView:
    forecast = answer if isinstance(answer, Forecast) else None
    trace = trace_view(events, forecast.rationale if forecast else "")
    drift = None
    if forecast and trace.path:
        last = trace.path[-1].p
        drift = max((abs(p - last[target]) for target, p in forecast.p.items() if target in last), default=None)
    waiting = "under way" if events else "waiting"
    return TrialView(
        number=number,
        panel=panel,
        state=waiting if answer is None else "answered" if forecast else "failed",
        p=dict(forecast.p) if forecast else None,
        rationale=forecast.rationale if forecast else "",
        error=answer.error if isinstance(answer, Failure) else "",
        seconds=forecast.usage.seconds if forecast else None,
        drift=drift,
        trace=trace,
    )


def combination_of(answers: Sequence[Forecast | Failure], question: Question, aggregate: str) -> CombinationView | None:
    """Stage by stage, as the run's spec says: every door shows the same number for it."""
    forecasts = [answer for answer in answers if isinstance(answer, Forecast)]
    trials = [forecast for forecast in forecasts if forecast.forecaster != PANEL]
    if not trials:
        return None
    how = combining_by_name(aggregate)
    plain = Aggregate(rule=how.rule).apply([trial.p for trial in trials])
    coherent = combine_trials(forecasts, [question], CombinationSettings(rule=how.rule))[0].p
    final = combine_trials(answers, [question], how)[0]
    stages: list[tuple[str, str, Mapping[str, float]]] = [
        (how.rule, "the trials put together by the run's rule", plain)
    ]
    if any(abs(plain[target] - coherent[target]) > 1e-9 for target in plain if target in coherent):
        stages.append(("made coherent", "so that exclusive or ordered outcomes fit together", coherent))
    if how.judged:
        stages.append(("panel", "a model read the trials' reasons and answered in their place", final.p))
    elif how.fitted is not None:
        stages.append(
            ("calibrated", "blended with the market's price or the base rate, where the question has one", final.p)
        )
    return CombinationView(
        trials=tuple(CombinationStage(name=f"Trial {trial.trial + 1}", told="", p=dict(trial.p)) for trial in trials),
        stages=tuple(CombinationStage(name=name, told=text, p=dict(p)) for name, text, p in stages),
        p=dict(final.p),
        rationale=final.rationale,
        spread={t: max(trial.p[t] for trial in trials) - min(trial.p[t] for trial in trials) for t in plain},
    )


@router.get("/runs/{run}/questions/{question:path}", include_in_schema=False)
def show_question(request: Request, view: Annotated[QuestionView, Depends(read_question)]) -> Response:
    """The question as a page."""
    p = view.combination.p if view.combination else {}
    targets = sorted(view.question.targets, key=lambda target: -p.get(target.id, 0.0))[:MAX_CHARTS]
    paths = [_trajectories(view, target) for target in targets]
    stages = [_stages(view.combination, target) for target in targets]
    return html_page(request, "question.html", view, targets=targets, paths=paths, stages=stages)


def _trajectories(view: QuestionView, target: TargetView) -> Chart:
    lines = [
        Trajectory(
            name="panel" if trial.panel else f"trial {trial.number + 1}",
            points=[(point.step, point.p[target.id]) for point in trial.trace.path if target.id in point.p],
            final=(trial.p or {}).get(target.id),
        )
        for trial in view.trials
    ]
    title = "Belief after each step" if len(view.question.targets) == 1 else target.label
    return trajectory_plot(lines, title, combined=view.combination.p.get(target.id) if view.combination else None)


def _stages(combination: CombinationView | None, target: TargetView) -> Chart:
    if combination is None:
        return stages_plot([], 0)
    every = (*combination.trials, *combination.stages)
    return stages_plot([(stage.name, stage.p.get(target.id, 0.0)) for stage in every], len(combination.trials))
