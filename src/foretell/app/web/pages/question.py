"""One question of a run: trajectories, evidence, the trace, and from trials to the answer; live while it goes on."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, Response

from foretell.app.web.pages.runs import After, Brief
from foretell.app.web.rendering import page
from foretell.app.web.serving import Here, Serving
from foretell.app.web.streaming import STREAM, Watching, last_heard, stream
from foretell.app.web.views.question import QuestionView, TargetText, question_view
from foretell.arena.report.figures.trajectory import Trajectory, stages_plot, trajectory_plot
from foretell.arena.report.svg import Figure

MOST = 6
"""Targets that get a picture of their own."""
router = APIRouter()
Due = Annotated[str | None, Query(max_length=64, description="Asked as of when; the newest if left out.")]


def _found(here: Serving, run: str, question: str, due: str | None) -> QuestionView:
    row = here.run(run)
    view = question_view(here.store, row, question, due=due, background=here.jobs.of(row.id))
    if view is None:
        when = f" as of {due[:64]}" if due else ""
        raise HTTPException(404, f"run {row.id} does not ask {question[:200]!r}{when}")
    return view


# Before the question itself: its id may hold slashes, and would swallow the last part.
@router.get(
    "/api/runs/{run}/questions/{question:path}/stream", tags=["live"], response_class=Response, responses=STREAM
)
def stream_question(
    request: Request, here: Here, run: str, question: str, after: After = 0, brief: Brief = False
) -> Response:
    """Everything that happens to one question, as it happens."""
    row = here.run(run)
    watching = Watching(run=row.id, question=question, after=last_heard(request, after), brief=brief)
    return stream(here.store, watching, lambda: here.question_over(row.id, question), leaving=here.leaving.is_set)


@router.get("/api/runs/{run}/questions/{question:path}", tags=["runs"])
def read_question(here: Here, run: str, question: str, due: Due = None) -> QuestionView:
    """Every trial of a question step by step, with evidence, refusals and cost, and the way to the answer."""
    return _found(here, run, question, due)


@router.get("/runs/{run}/questions/{question:path}", include_in_schema=False)
def show_question(request: Request, here: Here, run: str, question: str, due: Due = None) -> Response:
    """The question as a page."""
    view = _found(here, run, question, due)
    targets = _leading(view)
    return page(
        request,
        "question.html",
        view,
        targets=targets,
        paths=[_trajectories(view, target) for target in targets],
        stages=[_stages(view, target) for target in targets],
    )


def _leading(view: QuestionView) -> list[TargetText]:
    """The likeliest targets, at most so many."""
    p = view.combination.p if view.combination else {}
    return sorted(view.question.targets, key=lambda target: -p.get(target.id, 0.0))[:MOST]


def _trajectories(view: QuestionView, target: TargetText) -> Figure:
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


def _stages(view: QuestionView, target: TargetText) -> Figure:
    if view.combination is None:
        return stages_plot([], 0)
    every = (*view.combination.trials, *view.combination.stages)
    return stages_plot([(stage.name, stage.p.get(target.id, 0.0)) for stage in every], len(view.combination.trials))
