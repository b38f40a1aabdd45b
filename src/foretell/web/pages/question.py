"""One question of a run: every trial step by step, and how the trials became one number; live while it goes on."""

import asyncio
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response

from foretell.forecasters.agent.answer_format import LEVELS
from foretell.forecasters.base_rates.outside_view import OutsideView
from foretell.forecasters.combine.aggregate import Aggregate
from foretell.forecasters.combine.trials import PANEL
from foretell.forecasters.forecaster import CannotForecast, Context
from foretell.questions.errors import InputError, MissingExtra
from foretell.questions.exclusivity import probability_of_none
from foretell.questions.forecast import Failure, Forecast, Numeric
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution
from foretell.questions.trace import TraceEvent
from foretell.report.charts.rulers import ShownAnswer, probability_ruler
from foretell.report.charts.svg import Chart, figure_png
from foretell.report.charts.timelines import Trajectory, stages_plot, trajectory_plot
from foretell.report.question_card import question_card
from foretell.runs.combine import CombinationSettings, combine_trials
from foretell.runs.store import CellKey, RunRow, cells_each
from foretell.runs.taught import combining_of_row
from foretell.web.rendering import html_page, link_to
from foretell.web.run_rows import SpendingView, run_row_view
from foretell.web.state import CurrentState, WebState
from foretell.web.streaming import STREAM, After, Brief, stream
from foretell.web.trace import trace_view, what_moved

router = APIRouter()
MOST_OPEN, MOST_WITHHELD = 6, 20
MAX_CHARTS = 6
"""Targets that get charts of their own."""
ShortId = Annotated[str, Query(max_length=2000)]
_MOMENTS_SQL = "select due from question where run = ? and id = ? order by due desc"


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
) -> dict[str, Any]:
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
    trials = [
        _trial(number, answers.get(number), events.get(number, []), panel=number >= int(row.spec.get("trials", 1)))
        for number in range(cells_each(row.spec))
    ]
    return {
        "run": run_row_view(store, row),
        "mode": str(row.spec.get("mode", "")),
        "clairvoyant": bool(row.spec.get("clairvoyant")),
        "question": _question_text(asked, here.outcomes.of(row.id, question), base_rates_of(here, row, asked)),
        "asked": moments,
        "trials": trials,
        # Which evidence moved belief how far, on average over trials; of a question with one outcome.
        "moved": what_moved([trial["trace"] for trial in trials], asked.targets[0].id)
        if len(asked.targets) == 1
        else [],
        "combination": combination_of(list(answers.values()), asked, combining_of_row(store, row)),
        # What agents still want to know, and how often they said so: it would change the answer.
        "open": Counter(text for trial in trials for text in trial["trace"]["open_questions"]).most_common(MOST_OPEN),
        # What the fence kept from them, each thing once.
        "withheld": _withheld(trials),
        "spending": SpendingView().plus(event for several in events.values() for _, event in several),
        "finished": all(trial["state"] in ("answered", "failed") for trial in trials),
        "background": here.jobs.of(row.id),
        "last": last,
    }


def _withheld(trials: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was kept from the trials, by title and reason, with how often it came up."""
    seen: Counter[tuple[str, str, str, str]] = Counter(
        (one["title"], one["text"], one["url"], one["published"])
        for trial in trials
        for one in trial["trace"]["happenings"]
        if one["kind"] == "withheld"
    )
    return [
        {"title": title, "reason": reason, "url": url, "published": published, "times": times}
        for (title, reason, url, published), times in seen.most_common(MOST_WITHHELD)
    ]


def _question_text(question: Question, resolutions: Sequence[Resolution], rates: Mapping[str, float]) -> dict[str, Any]:
    outcomes = {one.target_id: one for one in resolutions if one.due == question.due}
    return {
        "id": question.id,
        "due": question.due.isoformat(),
        "text": question.text,
        "criteria": question.criteria,
        "background": question.background,
        "url": question.url,
        "source": question.source,
        "category": question.category,
        "closes_at": question.closes_at.isoformat() if question.closes_at else None,
        "exclusivity": question.exclusivity,
        "targets": [
            {
                "id": target.id,
                "label": target.label or target.id,
                "resolves_at": target.resolves_at.isoformat() if target.resolves_at else None,
                # What a market said when the question was asked.
                "price": target.snapshot.price if target.snapshot else None,
                # How often what is like it had come true by then.
                "rate": rates.get(target.id),
                "outcome": outcomes[target.id].outcome if target.id in outcomes else None,
                "decided_at": outcomes[target.id].resolved_at if target.id in outcomes else None,
            }
            for target in question.targets
        ],
    }


LONGEST_TIP = 300
"""Characters of a claim where it is said in passing."""
MOST_SCORED, LONGEST_TEXT = 3_000, 20_000
"""Questions of a run, and characters of one, for which base rates are made while somebody waits for a page."""


def base_rates_of(here: WebState, row: RunRow, question: Question) -> dict[str, float]:
    """By target, how often what is like it came true, by what was known when it was asked; empty where nobody can say.

    Stored with the run, else from what of the same run had come out by then, as its score has it; of an open question
    from how questions worded like it ended.
    """
    due = question.due.isoformat()
    stored = {
        target: rate for (id, at, target), rate in here.store.rates(row.id).items() if (id, at) == (question.id, due)
    }
    if stored:
        return stored
    if len(question.text) + len(question.criteria) + len(question.background) > LONGEST_TEXT:
        return {}
    if here.store.asked().get(row.id, 0) <= MOST_SCORED:
        scored = here.scores(row, finished=True).base_rates(question)
        if scored:
            return scored
    with suppress(CannotForecast, InputError):
        context = Context(as_of=question.as_of_in("live" if row.spec.get("mode") == "live" else "backtest"))
        return dict(asyncio.run(OutsideView().forecast(question, context)).p)
    return {}


def finding_of(view: Mapping[str, Any]) -> str:
    """The answer to a question of one outcome in a sentence: beside the market and the outcome, and what moved it."""
    (target,), combination = view["question"]["targets"], view["combination"]
    if combination is None:
        return ""
    p, price, outcome = combination["p"].get(target["id"]), target["price"], target["outcome"]
    parts: list[str] = []
    if price is not None and p is not None:
        gap = 100 * (p - price)
        beside = (
            f"{abs(gap):.0f} points {'above' if gap > 0 else 'below'} the market"
            if abs(gap) >= 0.5
            else "As the market"
        )
        if outcome is not None and abs(gap) >= 0.5:
            beside = (
                "Closer than the market" if abs(p - outcome) < abs(price - outcome) else "Further off than the market"
            )
        parts.append(f"{beside}.")
    for word, sign in (("up", 1), ("down", -1)):
        moved = [one for one in view["moved"] if sign * one["move"] > 0]
        if moved:
            points = f"{100 * abs(moved[0]['move']):.0f}"
            parts.append(
                f"What pulled it {word} most, by {points} points: {moved[0]['claim'][:LONGEST_TIP].rstrip('.')}."
            )
    return " ".join(parts)


def _trial(
    number: int, answer: Forecast | Failure | None, events: Sequence[tuple[int, TraceEvent]], *, panel: bool
) -> dict[str, Any]:
    """One independent attempt, or the panel that read them all."""
    forecast = answer if isinstance(answer, Forecast) else None
    trace = trace_view(events, forecast.rationale if forecast else "")
    # How far the answer is from the last belief, at most: an agent should submit what it believes.
    drift = None
    if forecast and trace["path"]:
        last = trace["path"][-1]["p"]
        drift = max((abs(p - last[target]) for target, p in forecast.p.items() if target in last), default=None)
    waiting = "under way" if events else "waiting"
    return {
        "number": number,
        "panel": panel,
        "state": waiting if answer is None else "answered" if forecast else "failed",
        "p": forecast.p if forecast else None,
        "rationale": forecast.rationale if forecast else "",
        "error": answer.error if isinstance(answer, Failure) else "",
        "degraded": forecast.problem if forecast and forecast.degraded else "",
        "seconds": forecast.usage.seconds if forecast else None,
        "drift": drift,
        "trace": trace,
    }


def combination_of(
    answers: Sequence[Forecast | Failure], question: Question, how: CombinationSettings
) -> dict[str, Any] | None:
    """Stage by stage, as the run's spec says: every door shows the same number for it. None where no trial answered."""
    forecasts = [answer for answer in answers if isinstance(answer, Forecast)]
    trials = [forecast for forecast in forecasts if forecast.forecaster != PANEL]
    if not trials:
        return None
    sound = [trial for trial in trials if not trial.degraded]
    if not sound:  # Better than nothing, and marked as such.
        how = replace(how, degraded=True)
    trials = sound or trials
    plain = Aggregate(rule=how.rule).apply([trial.p for trial in trials])
    coherent = combine_trials(forecasts, [question], CombinationSettings(rule=how.rule, degraded=how.degraded))[0].p
    final = combine_trials(answers, [question], how)[0]
    stages: list[tuple[str, str, Mapping[str, float]]] = [
        (how.rule, "the trials put together by the run's rule", plain)
    ]
    if any(abs(plain[target] - coherent[target]) > 1e-9 for target in plain if target in coherent):
        stages.append(("made coherent", "so that outcomes that exclude or imply each other fit together", coherent))
    if how.judged:
        stages.append(("panel", "a model read the trials' reasons and answered in their place", final.p))
    elif how.fitted is not None:
        blended = "blended with the market's price or the base rate, where the question has one"
        stages.append(("calibrated", blended, final.p))
    return {
        "trials": [{"name": f"Trial {trial.trial + 1}", "told": "", "p": trial.p} for trial in trials],
        "stages": [{"name": name, "told": text, "p": p} for name, text, p in stages],
        "p": final.p,
        "none": probability_of_none(final.p, question.exclusivity),
        "quantiles": quantiles_of(final, question),
        "degraded": final.degraded,
        "rationale": final.rationale,
        "spread": {t: max(trial.p[t] for trial in trials) - min(trial.p[t] for trial in trials) for t in plain},
    }


def quantiles_of(forecast: Forecast, question: Question) -> dict[str, str] | None:
    """Of a question about a number or a date, as people read them; None for any other."""
    found = forecast.distribution
    if not isinstance(found, Numeric):
        return None
    values = {name: found.quantile(level) for name, level in LEVELS.items()}
    scale = question.range
    return {name: f"{value:,.6g}" if scale is None else scale.write(value) for name, value in values.items()}


@router.get("/runs/{run}/questions/{question:path}", include_in_schema=False)
def show_question(request: Request, view: Annotated[dict[str, Any], Depends(read_question)]) -> Response:
    """The question as a page, with charts of the likeliest targets."""
    combination, targets = view["combination"], view["question"]["targets"]
    p: dict[str, float] = combination["p"] if combination else {}
    leading = sorted(targets, key=lambda target: -p.get(target["id"], 0.0))[:MAX_CHARTS]
    paths = [
        trajectory_plot(
            [_trajectory(trial, target["id"]) for trial in view["trials"]],
            "Belief after each step" if len(targets) == 1 else target["label"],
            combined=p.get(target["id"]),
            price=target["price"],
        )
        for target in leading
    ]
    stages = [_stages(combination, target["id"]) for target in leading]
    ruler = _ruler(view) if len(targets) == 1 else None
    run, asked = view["run"].id, view["question"]
    place = str(request.base_url).rstrip("/")
    shared = {
        "permalink": place + link_to("question", run, asked["id"], due=asked["due"]),
        "preview": place + link_to("preview", run, question=asked["id"], due=asked["due"]),
        "command": f"foretell show {run} {shlex.quote(asked['id'])}",
    }
    more: dict[str, Any] = {"targets": leading, "paths": paths, "stages": stages, "ruler": ruler, "shared": shared}
    more["finding"] = finding_of(view) if len(targets) == 1 else ""
    return html_page(request, "question.html", view, **more)


@router.get("/runs/{run}/preview.png", include_in_schema=False)
def show_preview(here: CurrentState, run: str, question: ShortId, due: ShortId = "") -> Response:
    """The picture of an answer for where its link is shared; as SVG where nothing here draws a PNG."""
    view = read_question(here, run, question, due or None)
    target = view["question"]["targets"][0]
    combination = view["combination"] if len(view["question"]["targets"]) == 1 else None
    id = target["id"]
    trials = [one["p"][id] for one in combination["trials"] if id in one["p"]] if combination else []
    p = combination["p"].get(id) if combination else None
    card = question_card(view["question"]["text"], p, trials, target["price"], target["outcome"])
    try:
        return Response(figure_png(card.svg), media_type="image/png")
    except MissingExtra:
        return Response(card.standalone(), media_type="image/svg+xml")


def _ruler(view: dict[str, Any]) -> Chart | None:
    """The answer to a question of one outcome between 0 and 100 %, with trials, market and what happened."""
    (target,), combination = view["question"]["targets"], view["combination"]
    if combination is None:
        return None
    id, trials = (
        target["id"],
        [trial["p"][target["id"]] for trial in combination["trials"] if target["id"] in trial["p"]],
    )
    shown = ShownAnswer(
        p=combination["p"].get(id),
        trials=trials,
        price=target["price"],
        rate=target["rate"],
        outcome=target["outcome"],
    )
    return probability_ruler(shown, large=True)


def _trajectory(trial: dict[str, Any], target: str) -> Trajectory:
    return Trajectory(
        name="panel" if trial["panel"] else f"trial {trial['number'] + 1}",
        points=[(point["step"], point["p"][target]) for point in trial["trace"]["path"] if target in point["p"]],
        final=(trial["p"] or {}).get(target),
        found={
            point["step"]: (point["cited"][0]["claim"] if point["cited"] else point["reason"])[:LONGEST_TIP]
            for point in trial["trace"]["path"]
        },
    )


def _stages(combination: dict[str, Any] | None, target: str) -> Chart:
    if combination is None:
        return stages_plot([], 0)
    every = [*combination["trials"], *combination["stages"]]
    return stages_plot([(stage["name"], stage["p"].get(target, 0.0)) for stage in every], len(combination["trials"]))
