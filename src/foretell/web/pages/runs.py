"""Runs: the list with its experiments, and one run with progress, failures, cost and questions."""

import asyncio
import json
import math
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast, get_args

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from foretell.data.untrusted import rows_as_csv
from foretell.frozen import changed_fields, frozen
from foretell.operations.data_show import QuestionsResult, look_at_set
from foretell.operations.grid import list_grids
from foretell.operations.requests.runs import (
    RunOrder,
    RunRequest,
    RunsDeleteRequest,
    RunsEditRequest,
    RunsRequest,
    RunsResolveRequest,
    RunsStopRequest,
    ShowRequest,
)
from foretell.operations.resolve import resolve_run
from foretell.operations.run import prepare
from foretell.operations.runs import delete_runs, edit_run, method_names, question_set
from foretell.operations.runs import stop_run as stop_stored_run
from foretell.operations.show import show
from foretell.plugins import names
from foretell.questions.codec import parse_yaml
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.report.pending_work import pending_in_words
from foretell.report.provenance import Provenance, command_text, running_command
from foretell.report.run_report import run_headline, score_figures
from foretell.request import errors_name_fields, setting
from foretell.runs import event_loop
from foretell.runs.set_names import set_names, sets_here
from foretell.runs.spec import RunState, read_changes
from foretell.runs.store import RunRow, RunStore, TrialKey, trials_per_question
from foretell.runs.stored_runs import carry_over, failures_by_reason, prepare_again, replace_run, resume
from foretell.scoring.run_scores import QuestionAnswer, RunScores
from foretell.web.event_watch import pending_digest
from foretell.web.forms import FormField, body_of, form_fields, form_values
from foretell.web.pages.ask import UNPRICED, StartedRun, known_models, start_from_form, start_run, usable_engines
from foretell.web.rendering import html_page, link_to
from foretell.web.run_figures import answer_ruler, ruler_ends, run_ruler, score_rulers
from foretell.web.run_form import PickedSet, UsualSettings, as_yaml, form_of_spec, keep_questions
from foretell.web.run_rows import RUNS_PER_PAGE, RunList, RunRowView, run_row_view
from foretell.web.search import matches
from foretell.web.security import FIELD, TokenRequired, files_of, form_of, require_token, visitor_of
from foretell.web.state import CurrentState, WebState
from foretell.web.streaming import STREAM, After, Brief, event_to_dict, stream

router = APIRouter()
QUESTIONS_PER_PAGE = 25
MAX_REASONS, MAX_EXAMPLES, MAX_ENDINGS, MOST_PENDING = 20, 5, 20, 8
Offset = Annotated[int, Query(ge=0, le=10_000_000, description="Leave out so many from the start.")]
Limit = Annotated[int, Query(ge=1, le=500)]
ShortWord = Annotated[str, Query(max_length=200)]
ONLY_COMMAND = ("where", "again", "pilot", "plan", "prompts", "only_failed")
"""Fields of a run's request that its form does not have."""
ORDERS: dict[RunOrder, str] = {
    "date": "newest first",
    "score": "best score first",
    "cost": "highest cost first",
    "name": "name, A to Z",
}
"""Order of the list of runs → how the page names it."""
PRIVATE_ORDER: RunOrder = "cost"
"""The order that says which run cost most, so it needs the token."""


@frozen
class RunFilters:
    """Which runs to list, as given in the page address."""

    find: ShortWord = ""
    grid: ShortWord = ""
    """Name of an experiment whose runs are listed instead, by their settings."""
    tag: ShortWord = ""
    state: RunState | Literal[""] = ""
    model: Annotated[str, Query(max_length=300)] = ""
    questions: Annotated[str, Query(max_length=1000)] = ""
    archived: bool = False
    sort: RunOrder = "date"

    def request(self) -> RunsRequest:
        """Return the filters as the request that the command uses."""
        chosen = {"tag": self.tag, "state": self.state, "model": self.model, "set": self.questions}
        words = [shlex.quote(f"{key}:{value}") for key, value in chosen.items() if value]
        words += ["archived:any"] if self.archived else []
        return RunsRequest(find=" ".join([self.find, *words]), sort=self.sort)

    def address(self) -> dict[str, str]:
        """Return what differs from the list of all runs, newest first, for links."""
        return {name: "true" if value is True else str(value) for name, value in changed_fields(self).items()}


@frozen
class AnswerFilters:
    """Which answers of a run to list and in which order, as given in the page address."""

    sort: Literal["asked", "gap", "score", "answer"] = "asked"
    outcome: Literal["", "yes", "no", "open"] = ""
    flag: Literal["", "failed", "fallback"] = ""
    category: ShortWord = ""
    find: ShortWord = ""

    def address(self) -> dict[str, str]:
        """Return what differs from all answers as asked, for links."""
        return changed_fields(self)

    def chosen(self, answers: Sequence[QuestionAnswer]) -> list[QuestionAnswer]:
        """Return the answers that pass, sorted; those without a value to sort by come last."""
        passing = [answer for answer in answers if self._passes(answer)]
        if self.sort == "asked":
            return passing
        keys: dict[str, Callable[[QuestionAnswer], float | None]] = {
            "gap": lambda answer: answer.gap,
            "score": lambda answer: None if answer.brier is None else -answer.brier,
            "answer": lambda answer: None if answer.leading.p is None else -answer.leading.p,
        }
        key = keys[self.sort]
        return sorted(passing, key=lambda answer: math.inf if (value := key(answer)) is None else value)

    def _passes(self, answer: QuestionAnswer) -> bool:
        outcome = answer.leading.outcome
        wanted = {"": True, "yes": outcome == 1, "no": outcome == 0, "open": not answer.decided}[self.outcome]
        flagged = {"": True, "failed": bool(answer.failed), "fallback": bool(answer.fallback)}[self.flag]
        fitting = self.category in ("", _category(answer.question))
        return wanted and flagged and fitting and self.find.casefold() in answer.question.text.casefold()


def _category(question: Question) -> str:
    return question.category or question.source


def _all_but(*names: str) -> list[str]:
    """The fields of a run's request except these."""
    return [name for name in RunRequest.model_fields if name not in names]


class RunBody(body_of(RunRequest, *_all_but("again", "extend", "only_failed", "set"))):
    """A run to start, continue or repeat; a spec is a mapping, because a name would refer to a file on the server."""

    ONLY_WITH: ClassVar[Mapping[str, str]] = {"run": "again only_failed", "spec": "extend"}
    spec: dict[str, Any] | None = setting(None, "The spec of a new run: questions, models, search, trials, …")
    run: str | None = setting(None, "Name or id of a stored run to continue.", max_length=64)


@router.get("/api/runs", tags=["runs"])
def read_runs(
    request: Request,
    here: CurrentState,
    filters: Annotated[RunFilters, Depends()],
    offset: Offset = 0,
    limit: Limit = RUNS_PER_PAGE,
) -> RunList:
    """List the runs on this machine, each with its state and score. To sort them by cost needs the token."""
    if filters.sort == PRIVATE_ORDER:
        require_token(request)
    return here.run_list(filters.request(), offset=offset, limit=limit)


@router.get("/runs", include_in_schema=False)
def show_runs(
    request: Request,
    here: CurrentState,
    filters: Annotated[RunFilters, Depends()],
    offset: Offset = 0,
    undo: Annotated[tuple[ShortWord, ...], Query(max_length=500)] = (),
) -> Response:
    """Show the list of runs, and the form that starts one; `undo` names runs that were just deleted."""
    if filters.sort == PRIVATE_ORDER:
        require_token(request)
    deleted = [row for run in undo if (row := here.store.run(run)) is not None and row.deleted]
    return _runs_page(request, here, offset, {}, "", filters=filters, deleted=deleted)


def _runs_page(  # noqa: PLR0913 - the list and the form below it
    request: Request,
    here: WebState,
    offset: int,
    values: dict[str, Any],
    problem: str,
    looked: QuestionsResult | None = None,
    filters: RunFilters | None = None,
    deleted: Sequence[RunRow] = (),
    shows: str = "",
) -> Response:
    filters = filters or RunFilters()
    grids = _grids(here)
    if filters.grid and filters.grid not in {grid["name"] for grid in grids}:
        raise HTTPException(404, f"there is no experiment {filters.grid[:80]!r}")
    size = here.rows_per_page(RUNS_PER_PAGE)
    view, status = here.run_list(filters.request(), offset=offset, limit=size), 422 if problem else 200
    running = [run for run in view.runs if run.state == "running"]
    starts = visitor_of(request).may_write
    spent = here.dollars(run.id for run in view.runs) if starts else {}
    specs = dict(here.while_unchanged(("specs",), here.store.specs))
    more: dict[str, Any] = {
        "filters": filters,
        "grids": [grid for grid in grids if filters.grid in ("", grid["name"])],
        "matches": matches(here, filters.find),
        "models": sorted({name for spec in specs.values() for name in method_names(spec) if name}),
        "datasets": sorted({name for spec in specs.values() if (name := question_set(spec))}),
        "states": get_args(RunState),
        "orders": {order: text for order, text in ORDERS.items() if starts or order != PRIVATE_ORDER},
        "seconds_left": {run.id: here.seconds_left(run) for run in running},
        "counted": Counter(run.state for run in view.runs).most_common(),
        "tags": here.store.tags(),
        "answers": {run.id: here.only_answer(run) for run in view.runs},
        "rulers": here.cached(
            ("rulers",), tuple((run.id, str(run.score)) for run in view.runs), lambda: score_rulers(view.runs)
        ),
        "ends": ruler_ends(view.runs),
        "spent": spent,
        "same": _same_questions(specs, view.runs),
        "fields": form_fields(RunRequest, leave_out=ONLY_COMMAND) if starts else (),
        "usual": _usual_fields(here) if starts else (),
        "shows": shows,
        "picker": form_fields(PickedSet, proposals={"dataset": sets_here()}) if starts else (),
        "entered": values,
        "problem": problem,
        "deleted": deleted,
        "sets": set_names(),
        "looked": looked,
    }
    return html_page(request, "runs.html", view, status=status, size=size, **more)


def _usual_fields(here: WebState) -> tuple[FormField, ...]:
    """Return the fields of the form for the usual settings; models are found by typing a part of their name."""
    return form_fields(
        UsualSettings,
        choices={"search": usable_engines(here.settings)},
        proposals={"model": known_models(here), "forecaster": names("forecasters")},
    )


def _grids(here: WebState) -> list[dict[str, Any]]:
    """Return the experiments on this machine, each with its runs, as `foretell grid --json` prints them."""
    files = tuple((path.name, path.stat().st_mtime_ns) for path in (here.settings.home / "grids").glob("*.json"))
    if not files:
        return []
    return here.while_unchanged(("grids", *files), lambda: list_grids(here.settings).to_dict()["grids"])


def _same_questions(specs: Mapping[str, Mapping[str, Any]], runs: Sequence[RunRowView]) -> list[dict[str, Any]]:
    """Group scored runs that asked the same questions, and so can be compared directly."""
    groups: dict[str, list[RunRowView]] = {}
    for run in runs:
        questions = specs.get(run.id, {}).get("questions", {})
        if run.score.get("brier_index") and (digest := str(questions.get("digest", ""))):
            groups.setdefault(digest, []).append(run)
    return [
        {"title": group[0].title, "questions": group[0].questions, "ids": [run.id for run in group]}
        for group in groups.values()
        if len(group) > 1
    ]


@router.get("/api/runs/{run}", tags=["runs"])
def read_run(
    here: CurrentState, run: str, filters: Annotated[AnswerFilters, Depends()], offset: Offset = 0
) -> dict[str, Any]:
    """Progress, scores and cost of a run, what failed and why, and a page of its questions."""
    return _run_view(here, here.run(run), filters, offset)[0]


@router.get("/runs/{run}", include_in_schema=False)
def show_run(
    request: Request,
    here: CurrentState,
    run: str,
    filters: Annotated[AnswerFilters, Depends()],
    offset: Offset = 0,
) -> Response:
    """Show the page of a run, with its charts."""
    return _run_page(request, here, here.run(run), filters, offset)


def _run_page(  # noqa: PLR0913 - the page, and what was typed into its form
    request: Request,
    here: WebState,
    row: RunRow,
    filters: AnswerFilters | None = None,
    offset: int = 0,
    problem: str = "",
    values: Mapping[str, str] | None = None,
    again: bool = False,
) -> Response:
    """Return the page of a run; with `again`, `problem` belongs to the form that runs it again."""
    filters = filters or AnswerFilters()
    view, scores = _run_view(here, row, filters, offset)
    more: dict[str, Any] = {
        "now": datetime.now(UTC).timestamp(),
        "filters": filters,
        "rulers": here.cached(
            ("answer rulers", row.id, filters, offset),
            (view["last"], *here.answered(row)),
            lambda: [answer_ruler(line["leading"]) for line in view["questions"]],
        ),
        "settings": {**_settings_of(row), **(values or {})},
        "problem": problem,
        "again": again,
        # A live question is asked again from its text, because it is asked as of now.
        "ask_again": None if question_set(row.spec) or row.spec["mode"] != "live" else _wording(scores.answers),
        "categories": sorted({_category(answer.question) for answer in scores.answers}),
        "gaps": Counter(
            math.copysign(1, gap) if gap else 0 for answer in scores.answers if (gap := answer.gap) is not None
        ),
        "permalink": str(request.base_url).rstrip("/") + link_to("run", row.id),
        "titles": {answer.question.id: answer.question.text for answer in scores.answers if answer.failed},
        **here.cached(
            ("figures", row.id),
            (view["finished"], *here.answered(row)),
            lambda: {"score_ruler": run_ruler(view["score"]), **score_figures(scores)},
        ),
    }
    provenance = Provenance.now(scores.board.settings if scores.board else None)
    return html_page(request, "run.html", view, status=422 if problem else 200, made=provenance, **more)


def _wording(answers: Sequence[QuestionAnswer]) -> dict[str, str]:
    """Return text and closing day of a question, as the form that asks one takes them from its address."""
    for answer in answers:
        closes = answer.question.closes_at
        return {"question": answer.question.text} | ({} if closes is None else {"closes": closes.date().isoformat()})
    return {}


def _settings_of(row: RunRow) -> dict[str, str]:
    """Return the settings of a run that can be changed, by dotted name, as form values."""
    spec, settings = row.spec, {"forecaster": str(row.spec.get("forecaster", ""))}
    for field in ("models", "options", "sampling", "prices"):
        settings |= {f"{field}.{name}": _setting_text(value) for name, value in (spec.get(field) or {}).items()}
    named = [str(name) for name in (spec.get("models") or {}).values()]
    settings |= {f"prices.{name}": "" for name in named if f"prices.{name}" not in settings}
    settings |= {name: _setting_text(spec.get(name)) for name in ("search", "trials")}
    settings["combine"] = _setting_text(spec.get("combine"))
    budget = spec.get("budget") or {}
    return settings | {f"budget.{name}": _setting_text(budget.get(name)) for name in ("run", "question")}


def _setting_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, cast("Sequence[Any]", value)))
    return value if isinstance(value, str) else json.dumps(value)


def _changes(row: RunRow, form: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the settings that a form changes in the run's spec; an emptied field removes its setting."""
    changes: dict[str, Any] = {}
    for name, before in _settings_of(row).items():
        text = form.get(name, (before,))[0].strip()
        if text == before:
            continue
        several = name == "search"
        parts = [part.strip() for part in text.split(",") if part.strip()]
        changes[name] = parts if several else parse_yaml(text) if text else None
    return changes


def _run_view(here: WebState, row: RunRow, filters: AnswerFilters, offset: int) -> tuple[dict[str, Any], RunScores]:
    last = here.store.last_event()
    line, totals = run_row_view(here.store, row), here.totals(row.id)
    scores = here.scores(row, finished=line.finished)
    background = here.jobs.of(row.id)
    going = line.state == "running" or (background is not None and background.state == "running")
    chosen, size = filters.chosen(scores.answers), here.rows_per_page(QUESTIONS_PER_PAGE)
    view = {
        "run": line,
        # Scores with their intervals, and a sentence.
        "score": scores.summary(),
        "combined": scores.combined,
        "rule": scores.rule,
        # What failed or was left out, and what that means for the scores.
        "caveats": scores.caveats,
        "headline": run_headline(scores) if scores.board else "",
        "found": len(chosen),
        "spec": row.spec,
        "services": row.services,
        # A trial that has just ended may still be claimed.
        "under_way": min(here.store.under_way(row.id), line.total - line.done - line.failed) if going else 0,
        "spending": totals.spending,
        # Calls whose price is not known yet, and lost ones that may have been billed.
        "money": here.money(row.id),
        "lost": here.lost_replies(row.id),
        "budget": (row.spec.get("budget") or {}).get("run"),
        "seconds_left": here.seconds_left(line),
        # How often trials ended in which way: submitted, at the step limit, at the budget, …
        "endings": dict(totals.endings.most_common(MAX_ENDINGS)),
        "failures": _failures(here.store, row.id) if row.failed else [],
        "questions": here.cached(
            ("answers", row.id, filters, offset),
            (last, *here.answered(row)),
            lambda: [_question_view(here.store, row, answer) for answer in chosen[offset : offset + size]],
        ),
        "offset": offset,
        "size": size,
        "finished": line.finished,
        "background": background,
        **_pending_view(here.store, row.id),
        "last": last,
    }
    return view, scores


def _pending_view(store: RunStore, run: str) -> dict[str, Any]:
    """Return what the trials of a run wait for, those that wait longest first, and how many requests are repeated."""
    pending = store.pending_work(run)
    work = [(key, item) for key, text in pending.items() for item in pending_in_words(text, stated=True)]
    work.sort(key=lambda pair: pair[1]["since"])
    return {
        "pending": pending_digest(pending, run),
        "work": [
            {**item, "id": key.question, "due": key.due, "trial": key.trial, "question": question.text}
            for key, item in work[:MOST_PENDING]
            if (question := store.question(key)) is not None
        ],
        "more_work": max(0, len(work) - MOST_PENDING),
        "retried": sum(item["retries"] > 0 for _, item in work),
    }


def _failures(store: RunStore, run: str) -> list[dict[str, Any]]:
    """Return failures by reason, most frequent first, with the id and date of some of their questions."""
    return [
        {
            "reason": reason,
            "count": len(trials),
            "examples": list(dict.fromkeys((trial.question, trial.due) for trial in trials))[:MAX_EXAMPLES],
        }
        for reason, trials in islice(failures_by_reason(store, run).items(), MAX_REASONS)
    ]


def _question_view(store: RunStore, row: RunRow, scored: QuestionAnswer) -> dict[str, Any]:
    """Return a question with the forecasts of its trials, the number still missing, its answer and its outcome."""
    question, due = scored.question, scored.question.due.isoformat()
    answers: list[dict[str, Any]] = []
    for answer in store.answers_to(TrialKey(run=row.id, question=question.id, due=due, trial=0)):
        if isinstance(answer, Forecast):
            fallback = answer.problem if answer.fallback else ""
            answers.append({"trial": answer.trial, "p": dict(answer.p), "error": "", "fallback": fallback})
        else:
            answers.append({"trial": answer.trial, "p": None, "error": answer.error, "fallback": ""})
    leading = scored.leading
    return {
        "id": question.id,
        "due": due,
        "text": question.text,
        "category": _category(question),
        "outcomes": len(scored.targets),
        "value": scored.value,
        "leading": {
            "label": "" if len(scored.targets) == 1 else leading.label,
            "p": leading.p,
            "trials": leading.trials,
            "price": leading.price,
            "outcome": leading.outcome,
        },
        "brier": scored.brier,
        # Brier score of the price minus that of the answer: above 0 is better than the market.
        "gap": scored.gap,
        "answers": answers,
        "waiting": max(trials_per_question(row.spec) - len(answers), 0),
    }


class CsvResponse(Response):
    """A CSV table as a response."""

    media_type = "text/csv"


@router.get("/api/runs/{run}/answers.csv", tags=["runs"], response_class=CsvResponse)
def download_answers(here: CurrentState, run: str, filters: Annotated[AnswerFilters, Depends()]) -> Response:
    """The answers on a run's page as CSV: one row per outcome of each question."""
    row = here.run(run)
    scores = here.scores(row, finished=True)
    columns = ("question", "due", "text", "target", "p", "trials", "price", "outcome", "brier", "price_brier")
    rows: list[dict[str, object]] = []
    for answer in filters.chosen(scores.answers):
        for target in answer.targets:
            values = (target.p, " ".join(f"{p:.4g}" for p in target.trials), target.price, target.outcome)
            named = (answer.question.id, answer.question.due.isoformat(), answer.question.text, target.id)
            rows.append(dict(zip(columns, (*named, *values, target.brier, target.price_brier), strict=True)))
    headers = {"Content-Disposition": f'attachment; filename="{row.id}.csv"'}
    return CsvResponse(rows_as_csv(rows, columns), headers=headers)


# Names, tags and notes of runs.


@router.post("/runs/{run}/labels", include_in_schema=False)
async def send_labels(request: Request, here: CurrentState, _: TokenRequired, run: str) -> Response:
    """Handle the form that names, tags, archives and annotates a run."""
    form, row = await form_of(request), here.run(run)
    values = {name: values[0].strip() for name, values in form.items()}
    tags = [tag.strip() for tag in values.get("tags", "").split(",") if tag.strip()]
    name = values.get("name", "")
    changes = RunsEditRequest.read({
        "run": row.id,
        "name": name if name != row.name else None,
        "tags": tags,
        "untag": [tag for tag in row.tags if tag not in tags],
        "note": values.get("note", ""),
        "archive": bool(values.get("archived")),
    })  # fmt: skip
    await run_in_threadpool(edit_run, changes, here.settings)
    return RedirectResponse(link_to("run", row.id), status_code=303)


@router.post("/runs/{run}/remove", include_in_schema=False)
def send_remove(here: CurrentState, _: TokenRequired, run: str) -> Response:
    """Handle the button that moves a run to the bin."""
    id = here.run(run).id
    delete_runs(RunsDeleteRequest(runs=(id,), yes=True), here.settings)
    return RedirectResponse(link_to("runs", undo=[id]), status_code=303)


@router.post("/runs/selected/{what}", include_in_schema=False)
async def send_selected(
    request: Request, here: CurrentState, _: TokenRequired, what: Literal["tag", "archive", "delete", "restore"]
) -> Response:
    """Handle the bar below the list, which tags, archives, deletes or restores the selected runs."""
    form = await form_of(request)
    runs = [run if what == "restore" else here.run(run).id for run in form.get("run", ())]
    tags = [tag.strip() for tag in form.get("tags", [""])[0].split(",") if tag.strip()] if what == "tag" else []

    def write() -> None:
        if what == "delete":
            delete_runs(RunsDeleteRequest.read({"runs": runs, "yes": True}), here.settings)
            return
        for run in runs:
            archive = True if what == "archive" else None
            restore = what == "restore"
            changes = {"run": run, "tags": tags, "archive": archive, "restore": restore}
            edit_run(RunsEditRequest.read(changes), here.settings)

    await run_in_threadpool(write)
    return RedirectResponse(link_to("runs", undo=runs if what == "delete" else None), status_code=303)


@router.post("/runs/{run}/resolve", include_in_schema=False)
async def send_resolve(here: CurrentState, _: TokenRequired, run: str) -> Response:
    """Handle the button that looks up the outcomes of a run's questions."""
    id = here.run(run).id
    await run_in_threadpool(lambda: event_loop.run(resolve_run(RunsResolveRequest(run=id), here.settings)))
    return RedirectResponse(link_to("run", id), status_code=303)


@router.post("/api/runs", tags=["runs"], status_code=202)
def start_or_continue(here: CurrentState, _: TokenRequired, request: RunBody) -> dict[str, Any]:
    """Start the run of a spec, continue a stored run, or repeat it with the next seed. Spends money.

    What is answered already is not paid for again. With `set`, a stored run becomes the run of the new settings on the
    same questions, whose id is returned.
    """
    if (request.run is None) == (request.spec is None):
        raise InputError("name a stored run, or give the spec of a new one", column="run")
    with errors_name_fields(RunRequest):
        if request.run is None:
            return {**asdict(_start(here, request)), "state": "running"}
        run = here.run(request.run).id
        chosen = RunRequest.read({**request.model_dump(exclude={"run"}), "spec": run})
        changes = read_changes(chosen.set)
        if chosen.again:
            return {**asdict(_again(here, run, changes)), "state": "running"}
        return _go_on(here, run, changes, chosen.only_failed or "")


def _start(here: WebState, body: RunBody, *, confirmed: bool = True) -> StartedRun:
    chosen = RunRequest.read(body.model_dump(include=set(RunRequest.model_fields)))
    prepared = prepare(chosen, here.settings)
    return start_run(here, prepared, confirmed=confirmed)


def _again(here: WebState, run: str, changes: Mapping[str, Any] | None = None) -> StartedRun:
    prepared = prepare_again(here.store, run, here.settings, changes)
    started = start_run(here, prepared)
    carry_over(here.store, run, prepared)
    return started


@router.post("/runs", include_in_schema=False)
async def send_run(request: Request, here: CurrentState, _: TokenRequired) -> Response:
    """Handle the form that starts a run, or that shows its questions, or its settings in the other way."""
    form, files = await form_of(request), await files_of(request)
    form.pop(FIELD, None)
    confirmed, look, other_way = (form.pop(name, [""])[0] for name in (UNPRICED, "look", "show"))
    typed = form.pop("text", [""])[0]
    picked = form_values(PickedSet, {name: form[name] for name in PickedSet.model_fields if name in form})
    usual = form_values(UsualSettings, {name: form[name] for name in UsualSettings.model_fields if name in form})
    rest = {name: form[name] for name in form if name not in (*PickedSet.model_fields, *UsualSettings.model_fields)}
    values = {"spec": "", **form_values(RunRequest, rest)}

    def whole_spec() -> dict[str, Any]:
        with errors_name_fields(UsualSettings, titles=True):
            spec = UsualSettings.read(usual).spec(values["spec"])
        return PickedSet.read(picked).spec(spec)

    def start() -> StartedRun:
        return _start(here, RunBody.read({**values, "spec": whole_spec()}), confirmed=bool(confirmed))

    path = ""

    def show_again(problem: str) -> Response:
        if path and path in problem:
            # The visitor knows the file by its name, and has to send another one.
            shown = {**picked, "dataset": "", "text": typed}
            return _runs_page(request, here, 0, {**values, **usual, **shown}, problem.replace(path, Path(path).name))
        return _runs_page(request, here, 0, {**values, **usual, **picked, "text": "" if path else typed}, problem)

    try:
        if path := await run_in_threadpool(keep_questions, here.settings, files, typed):
            # From now on, the form names the stored file.
            picked["dataset"] = path
        if other_way:
            spec, engines = whole_spec(), usable_engines(here.settings)
            shown = form_of_spec(spec, engines) if other_way == "form" else {"spec": as_yaml(spec)}
            return await run_in_threadpool(_runs_page, request, here, 0, {**values, **shown}, "", shows=other_way)
        if not look:
            return await start_from_form(RunRequest, start, show_again, watch="run")
        with errors_name_fields(PickedSet, titles=True):
            chosen = PickedSet.read(picked)
            if not chosen.dataset:
                raise InputError("is missing", column="dataset")
            # Reading a set may need files and other servers, so it runs in a thread.
            looking = look_at_set(chosen.dataset, chosen.wanted(), here.settings)
            looked = await run_in_threadpool(asyncio.run, looking)
    except InputError as error:
        return await run_in_threadpool(show_again, str(error))
    return await run_in_threadpool(_runs_page, request, here, 0, {**values, **usual, **picked}, "", looked)


@router.get("/api/runs/{run}/show", tags=["runs"])
def read_answers(
    here: CurrentState, run: str, question: str | None = None, limit: Annotated[int | None, Query(ge=1)] = None
) -> dict[str, Any]:
    """The answers of a run, or every step to one answer; the same as `foretell show --json` prints."""
    request = ShowRequest.read({"run": here.run(run).id, "question": question, "limit": limit})
    with running_command(command_text("show", request)):
        return show(request, here.settings).to_dict()


@router.get("/api/runs/{run}/stream", tags=["live"], response_class=Response, responses=STREAM)
def stream_run(
    request: Request,
    here: CurrentState,
    run: str,
    question: Annotated[str | None, Query(max_length=2000, description="Only events of this question.")] = None,
    after: After = 0,
    brief: Brief = False,
) -> Response:
    """Stream the events of a run as they happen; `Last-Event-ID` continues after a lost connection."""
    return stream(request, here, here.run(run).id, question, after=after, brief=brief)


class StopBody(body_of(RunsStopRequest, "run")):
    """How to stop a run."""


@router.post("/api/runs/{run}/stop", tags=["runs"], status_code=202)
def stop_run(here: CurrentState, _: TokenRequired, run: str, body: StopBody | None = None) -> dict[str, str]:
    """Stop a run early: trials in progress answer with their current estimates. With `discard` they stay unfinished.

    Existing answers are kept either way, nothing is paid for twice, and the run can be resumed.
    """
    id, options = here.run(run).id, body.model_dump() if body else {}
    if options.get("discard") and here.jobs.stop(id):
        return {"run": id, "state": "stopped"}
    try:
        stop_stored_run(RunsStopRequest.read({"run": id, **options}), here.settings)
    except InputError as error:
        raise HTTPException(409, str(error)) from None
    return {"run": id, "state": "stopping"}


def _go_on(here: WebState, run: str, changes: Mapping[str, Any], reason: str = "") -> dict[str, str]:
    prepared = resume(here.store, run, here.settings, changes, reason)
    here.jobs.refuse_running(run)
    replace_run(here.store, run, prepared, here.settings)
    here.jobs.start(prepared)
    return {"run": prepared.spec.id, "state": "running"}


@router.post("/runs/{run}/again", include_in_schema=False)
async def send_again(request: Request, here: CurrentState, _: TokenRequired, run: str) -> Response:
    """Handle the button that runs a run again."""
    row = here.run(run)
    return await start_from_form(
        RunRequest,
        lambda: _again(here, row.id),
        lambda problem: _run_page(request, here, row, problem=problem, again=True),
        watch="run",
    )


@router.post("/runs/{run}/stop", include_in_schema=False)
async def send_stop(request: Request, here: CurrentState, _: TokenRequired, run: str) -> Response:
    """Handle the buttons that stop or pause a run, on its page and on the pages of its questions."""
    form = {name: values[0] for name, values in (await form_of(request)).items()}
    id, body = here.run(run).id, StopBody.read({"discard": bool(form.get("discard"))})
    with suppress(HTTPException):  # The run has just ended, which its page shows.
        await run_in_threadpool(stop_run, here, None, id, body)
    return _back_to(id, form)


def _back_to(run: str, form: Mapping[str, str]) -> Response:
    """Return to the page whose button was pressed: that of the run, or that of one of its questions."""
    asked = form.get("question")
    link = link_to("question", run, asked, due=form.get("due", "")) if asked else link_to("run", run)
    return RedirectResponse(link, status_code=303)


@router.post("/runs/{run}/resume", include_in_schema=False)
async def send_resume(request: Request, here: CurrentState, _: TokenRequired, run: str) -> Response:
    """Handle the buttons that resume a run or retry what failed for one reason, and the form that changes it first."""
    form, row = await form_of(request), here.run(run)
    reason = form.get("only_failed", [""])[0]
    try:
        going = await run_in_threadpool(lambda: _go_on(here, row.id, _changes(row, form), reason))
    except InputError as error:
        values = {name: values[0] for name, values in form.items() if name != FIELD}
        return await run_in_threadpool(partial(_run_page, request, here, row, problem=str(error), values=values))
    return _back_to(going["run"], {name: values[0] for name, values in form.items()})


@router.get("/api/runs/{run}/events", tags=["live"])
def read_trace_events(
    here: CurrentState, run: str, after: After = 0, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> list[dict[str, Any]]:
    """Events of a run after a given number, with their whole texts, without waiting for more."""
    events = here.store.events(here.run(run).id, after=after, limit=limit)
    return [event_to_dict(number, key, event) for number, key, event in events]
