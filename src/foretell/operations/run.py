"""Runs: start one from a spec, show it, and recompute it from the journal. Backtests of forecasters without models."""

import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from foretell.data.corpus import Corpus
from foretell.data.datasets.question_set import quarantine_note, questions_digest
from foretell.data.series.local import CsvSeries
from foretell.models.journal import Journal
from foretell.models.ledger import Money
from foretell.operations.ask import stored_questions
from foretell.operations.question_view import how_made, question_view
from foretell.operations.requests.data import BacktestRequest
from foretell.operations.requests.runs import EVERY_REASON, STARTS, ReplayRequest, RunRequest, ShowRequest
from foretell.operations.result import Result
from foretell.operations.run_plan import RunPlan, plan_run
from foretell.operations.runs import failures_by_reason, money_of, run_to_dict
from foretell.operations.table import operation
from foretell.questions.codec import to_json
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.trace import TraceEvent
from foretell.report.document import ReportDocument
from foretell.report.numbers import estimate, plural
from foretell.report.run_report import answer_text, describe_event, question_report, run_report
from foretell.report.study import StudyResult
from foretell.report.terminal import show_text
from foretell.runs import event_loop
from foretell.runs.backtest import Backtest, BacktestProgress
from foretell.runs.backtest import backtest as run_backtest
from foretell.runs.event_loop import run_sync
from foretell.runs.executor import RunProgress
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.question_sets import LATE_TEXT_HINT, folders_of, open_benchmark
from foretell.runs.runner import (
    PreparedRun,
    WatchProgress,
    asks_models,
    begin_run,
    check_options,
    check_run,
    execute_run,
    find_run_of,
    prepare_run,
)
from foretell.runs.runtime import forecaster_name
from foretell.runs.services import SeriesOnDemand
from foretell.runs.settings import KEYS, Settings, load_settings
from foretell.runs.spec import (
    FOUND_OUT,
    RunSpec,
    current_names,
    read_changes,
    read_spec,
    spec_from_json,
    spec_from_mapping,
    with_settings,
)
from foretell.runs.store import CellKey, RunRow, RunStore, find_run, find_run_row
from foretell.scoring.long_tables import QuestionAnswer, RunScores, forecast_rows, score_run, write_backtest
from foretell.scoring.table import BASE_RATE, CROWD

MOST_REASONS = 5
"""How many kinds of failures are listed."""
PILOT = "pilot"
"""Tag of the run that a pilot makes."""
MAX_NAME = 70
"""How much of a run's name the name of its repetition keeps."""
NUMBER = re.compile(r" \(\d+\)$")
"""The number at the end of a repeated run's name."""

# Running a spec.


@dataclass(frozen=True, kw_only=True)
class RunResult(Result):
    """What a run did this time."""

    run: str
    questions: int
    trials: int
    progress: RunProgress
    quarantined: int = 0
    """Questions that were left out because their own text is newer than their date."""
    cautions: tuple[str, ...] = ()
    """What a model may have known beforehand."""
    notes: tuple[str, ...] = ()
    pilot: StudyResult | None = None
    """What a pilot says about the whole run; None for any other run."""
    write_tables: Callable[[Path], list[Path]] | None = field(default=None, repr=False, compare=False)

    @property
    def exit_code(self) -> int:
        """1 if the pilot failed; 3 if an answer is missing or rests on a failure."""
        if self.pilot is not None:
            return 0 if self.pilot.passed else 1
        return 3 if self.progress.failed or self.progress.degraded or self.progress.stopped else 0

    def write_folder(self, path: Path) -> list[Path]:
        """Write forecasts.csv (every trial), outcomes.csv and, if any, failures.csv, and return their paths."""
        return [] if self.write_tables is None else self.write_tables(path)

    def rows(self) -> list[dict[str, Any]]:
        """One row."""
        return [{name: value for name, value in self.to_dict().items() if not isinstance(value, list)}]

    def to_dict(self) -> dict[str, Any]:
        """Counts and cost."""
        done = self.progress
        return {
            "run": self.run,
            "questions": self.questions,
            "quarantined": self.quarantined,
            "trials": self.trials,
            "cells": done.done,
            "failed": done.failed,
            "degraded": done.degraded,
            "stopped": done.stopped or None,
            "done_before": done.skipped,
            **done.money.to_dict(),
            "calls": done.calls,
            "warnings": list(self.cautions),
            "notes": list(self.notes),
            **({} if self.pilot is None else {"pilot": self.pilot.to_dict()}),
        }

    def print(self, console: Console) -> None:
        """Print the counts and, for a pilot, its report."""
        if self.pilot is not None:
            self.pilot.print(console)
        show_text(console, f"{self}\n")

    def __str__(self) -> str:
        done = self.progress
        counts = f"{done.done} cells, {done.failed} failed, {done.skipped} were done before"
        counts += f", {done.degraded} degraded by a failure" if done.degraded else ""
        head = f"run {self.run}: {counts}, {done.money} in {done.calls} calls"
        head += f"\nStopped early: {done.stopped}" if done.stopped else ""
        verdict = [] if self.pilot is None else [self.pilot.text]
        return "\n".join([*verdict, head, f"Answers and scores: foretell show {self.run}"])


def prepare(request: RunRequest, settings: Settings) -> PreparedRun:
    """Return the run that a request starts, continues or repeats, checked before anything is stored."""
    changes = read_changes(request.set)
    if request.stored is not None:
        with closing(RunStore(settings.store)) as store:
            run = _stored_id(store, request.stored)
            if request.extend:
                hint = "name the settings file"
                raise InputError("a stored run has no new questions", column="--extend", hint=hint)
            if request.again:
                prepared = prepare_again(store, run, settings, changes, plan=request.plan)
            else:
                prepared = resume(store, run, settings, changes, request.only_failed or "", plan=request.plan)
        return _pilot(prepared, request.pilot)
    for name in ("again", "only_failed"):
        if getattr(request, name):
            hint = "name it instead of a file; foretell runs lists them"
            raise InputError("needs a stored run", column=STARTS[name], hint=hint)
    written = request.spec
    if isinstance(written, Path):
        spec = read_spec(written, changes)
    else:
        spec = spec_from_mapping(with_settings(written, changes) if changes else written)
    _check(spec, settings, plan=request.plan)
    prepared = prepare_run(spec, folders=(Path(), *([written.parent] if isinstance(written, Path) else [])))
    prepared = _pilot(prepared, request.pilot)
    with closing(RunStore(settings.store)) as store:
        return find_run_of(store, prepared, extend=request.extend)


def _stored_id(store: RunStore, name: str) -> str:
    try:
        return find_run(store, name)
    except InputError as error:
        hint = "foretell runs lists them; a settings file ends in .yaml or .json"
        raise InputError(error.problem, hint=hint) from None


def _check(spec: RunSpec, settings: Settings, *, plan: bool) -> None:
    """Raise errors before anything is stored. A plan checks no keys, so that its cost can be seen without any."""
    if not plan:
        check_run(spec, settings)
    elif asks_models(spec):
        check_options(spec)


def _pilot(prepared: PreparedRun, questions: int | None) -> PreparedRun:
    """The first questions of a run, each asked once, as a run of its own; without a number, the run itself."""
    if questions is None:
        return prepared
    if not asks_models(prepared.spec):
        raise InputError("this forecaster asks no model", column="--pilot", hint="run it: it costs nothing")
    asked = replace(prepared.spec.questions, limit=questions, digest="")
    chosen = prepared.questions[:questions]
    if prepared.spec.questions.digest:
        asked = replace(asked, digest=questions_digest(chosen, prepared.now or datetime.now(UTC)))
    return replace(prepared, spec=replace(prepared.spec, questions=asked, trials=1), questions=chosen, only=None)


async def run_spec(
    request: RunRequest,
    settings: Settings | None = None,
    *,
    watch: WatchProgress = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> RunResult | RunPlan:
    """Run a settings file on its questions, or continue or repeat a stored run.

    You can stop it and start it again: it continues where it stopped and pays for nothing twice.
    """
    settings = settings or load_settings()
    prepared = prepare(request, settings)
    spec = prepared.spec
    if request.plan:
        from foretell.operations.prompts import prompts_of

        asked = prepared.questions[:1] if request.prompts else ()
        return plan_run(prepared, settings, [one for first in asked for one in await prompts_of(spec, first, settings)])
    if request.stored is not None and request.pilot is None:
        with closing(RunStore(settings.store)) as store:
            begin_stored(store, find_run(store, request.stored), prepared, settings, again=request.again)
    tell(f"run {spec.id}: {plural(len(prepared.questions), 'question')} × {plural(spec.trials, 'trial')}")
    for notice in (*prepared.notes, *prepared.notices):
        tell(notice)
    progress = await carry_out(prepared, settings, where=request.where, watch=watch, tell=tell)
    result = RunResult(
        run=spec.id,
        questions=len(prepared.questions),
        quarantined=spec.questions.quarantined,
        trials=spec.trials,
        progress=progress,
        cautions=prepared.warnings,
        notes=(*prepared.notes, *progress.unread, *_unconfirmed_calls(settings)),
        write_tables=lambda folder: write_tables(prepared, settings, folder),
    )
    return result if request.pilot is None else replace(result, pilot=_judged(prepared, request, settings))


def _judged(prepared: PreparedRun, request: RunRequest, settings: Settings) -> StudyResult:
    """What the trials of a pilot say about the whole run."""
    from foretell.studies.pilot import judge_pilot
    from foretell.studies.stored_runs import traces_of_runs

    whole = prepare(request.model_copy(update={"pilot": None, "plan": True}), settings)
    spec = prepared.spec
    with closing(RunStore(settings.store)) as store:
        row = store.run(spec.id)
        store.label(spec.id, tags=sorted({*(row.tags if row else ()), PILOT}))
        (trials,) = traces_of_runs(store, [spec.id]).values()
    planned = len(whole.questions) * whole.spec.trials
    return judge_pilot(spec.models["agent"], trials, planned=planned, submits=forecaster_name(spec) == "agent")


def begin_stored(store: RunStore, old: str, prepared: PreparedRun, settings: Settings, *, again: bool = False) -> None:
    """Record that a stored run is continued with other settings, or repeated as a new one."""
    if again:
        begin_run(store, prepared.spec, datetime.now(UTC), settings.services, questions=prepared.questions)
        carry_over(store, old, prepared)
    else:
        replace_run(store, old, prepared, settings)


async def carry_out(
    prepared: PreparedRun,
    settings: Settings,
    *,
    where: str,
    watch: WatchProgress = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> RunProgress:
    """Answer the open cells of a run, in this process or by the workers of a shared database."""
    shared = settings.database is not None and asks_models(prepared.spec)
    if where in ("workers", "both") and not shared:
        hint = "set FORETELL_DATABASE_URL, and start `foretell worker`"
        raise InputError("there are no workers for this run", column="--where", hint=hint)
    if shared and where != "here":
        from foretell.operations.shared_runs import run_together  # Needs the driver of PostgreSQL.

        work = prepared.spec.concurrency if where == "both" else None
        return await run_together(prepared, settings, watch=watch, tell=tell, work=work)
    return await execute_run(prepared, settings, watch=watch)


run = operation(RunRequest)(run_spec)


def stored_run(store: RunStore, run: str, dataset: str | None = None, *, kept: bool = True) -> PreparedRun:
    """A stored run with the questions it asked, even if their file has changed since.

    Args:
        store: The store of runs.
        run: The run's id.
        dataset: The file of questions, if it has moved.
        kept: Use the questions stored with the run; otherwise those in their file, with their digest.
    """
    row = store.run(run)
    assert row is not None
    spec = spec_from_json(row.spec)
    # Older runs asked these questions before late text was checked.
    late_text = "cut" if spec.questions.late_text == "cut" else "keep"
    asked = replace(spec.questions, digest="", dataset=dataset or spec.questions.dataset, late_text=late_text)
    typed = stored_questions(store, spec)
    prepared = prepare_run(replace(spec, questions=asked), typed, folders=folders_of(row.folder))
    if not kept:
        return prepared
    asked_then = store.questions(run) if prepared.spec.questions.digest else []
    return replace(prepared, spec=spec, questions=tuple(asked_then) or prepared.questions)


def resume(
    store: RunStore,
    run: str,
    settings: Settings,
    changes: Mapping[str, Any] | None = None,
    reason: str = "",
    *,
    plan: bool = False,
) -> PreparedRun:
    """A stored run, ready to continue.

    Args:
        store: The store of runs.
        run: The run's id.
        settings: The settings of this machine.
        changes: Changes to its spec; with them it is the run it becomes, on the same questions.
        reason: Retry only what failed for this reason; `EVERY_REASON` for all that failed.
        plan: Whether it is only planned, and needs no keys.
    """
    row = store.run(run)
    assert row is not None
    spec = changed_spec(row, changes or {})
    _check(spec, settings, plan=plan)
    return replace(stored_run(store, run), spec=spec, only=_failed_for(store, run, reason) if reason else None)


def _failed_for(store: RunStore, run: str, reason: str) -> frozenset[CellKey]:
    """The cells that failed, for a reason or for any."""
    # A browser sends line ends in its own way.
    groups = {" ".join(error.split()): cells for error, cells in failures_by_reason(store, run).items()}
    if reason == EVERY_REASON and groups:
        return frozenset(cell for cells in groups.values() for cell in cells)
    wanted = " ".join(reason.split())
    if wanted not in groups:
        hint = f"it is one of: {'; '.join(groups)[:500]}" if groups else "nothing has failed"
        raise InputError("nothing failed for that reason", column="--only-failed", hint=hint)
    return frozenset(groups[wanted])


def changed_spec(row: RunRow, changes: Mapping[str, Any]) -> RunSpec:
    """The spec of a run with some fields changed, such as budget.run; None removes a field."""
    if not changes:
        return spec_from_json(row.spec)
    for name in changes:
        if name.partition(".")[0] == "questions":
            raise InputError("other questions are another run", column=name, hint="foretell run SPEC.yaml starts one")
    stored = {name: value for name, value in current_names(row.spec).items() if name not in FOUND_OUT}
    return spec_from_mapping(with_settings(stored, changes))


def replace_run(store: RunStore, old: str, prepared: PreparedRun, settings: Settings) -> None:
    """Give the name, note and tags of a run to the one that replaces it, and archive the old answers."""
    if old != prepared.spec.id:
        now, asked = datetime.now(UTC), prepared.questions
        begin_run(store, prepared.spec, now, settings.services, instead_of=old, questions=asked)


def prepare_again(
    store: RunStore, run: str, settings: Settings, changes: Mapping[str, Any] | None = None, *, plan: bool = False
) -> PreparedRun:
    """A new run with the settings of a stored one and the next seed that no run of them has used.

    A backtest asks the stored questions; a live run asks what its question set lists now.
    """
    row = store.run(run)
    assert row is not None
    spec = changed_spec(row, changes or {})
    if spec.mode == "backtest":
        prepared = replace(stored_run(store, run), spec=spec)
    elif spec.questions.typed:
        raise InputError("it answered a question as of the day it was asked", hint="ask the question again")
    else:
        prepared = prepare_run(spec.with_digest(""), folders=folders_of(row.folder))
    spec = prepared.spec
    while store.run(spec.id) is not None:
        spec = replace(spec, seed=spec.seed + 1)
    _check(spec, settings, plan=plan)
    return replace(prepared, spec=spec)


def carry_over(store: RunStore, old: str, new: PreparedRun) -> None:
    """Give a repeated run the first one's tags, its name with the next number, and what is known of its questions."""
    row = store.run(old)
    assert row is not None
    taken = {one.name for one in store.runs()}
    numbered = (f"{NUMBER.sub('', row.name)[:MAX_NAME]} ({number})" for number in count(2))
    name = next(name for name in numbered if name not in taken) if row.name else ""
    store.label(new.spec.id, name=name, tags=list(row.tags))
    outcomes = RunOutcomes(store)
    outcomes.keep(new.spec.id, new.questions, outcomes.of(old))


def _unconfirmed_calls(settings: Settings) -> tuple[str, ...]:
    """Calls that may be billed although no reply was saved."""
    if not settings.database and not Path(settings.journal).is_file():
        return ()
    with closing(Journal(settings.journal)) as journal:
        lost = journal.maybe_paid()
    if not lost:
        return ()
    text = f"{lost} calls of all runs so far were on the wire when they were killed or ran out of time"
    return (f"{text}: they may be billed although no reply is kept",)


def write_tables(prepared: PreparedRun, settings: Settings, out: Path) -> list[Path]:
    """Write forecasts.csv (every trial), outcomes.csv and failures.csv of a run."""
    with closing(RunStore(settings.store)) as store:
        answers, late = tuple(store.answers(prepared.spec.id)), prepared.benchmark.questions.quarantined
    result = Backtest(questions=prepared.questions, answers=answers, quarantined=late)
    return list(write_backtest(result, prepared.benchmark.questions.resolutions, out).values())


# Showing stored runs.


@dataclass(frozen=True, kw_only=True)
class ShowResult(Result):
    """The answers of a run, or one question with every step to its answer."""

    run: RunRow
    money: Money
    answers: tuple[Forecast | Failure, ...]
    total: int
    """Total number of answers."""
    texts: Mapping[str, str]
    """Question id → its text."""
    steps: Mapping[int, tuple[TraceEvent, ...]]
    """Trial → what happened, in order; for one question."""
    question: str | None = None
    scores: RunScores | None = None
    """The scores, if all questions are shown."""
    view: Mapping[str, Any] | None = None
    """The result of `question_view` for the question that is shown."""
    made: tuple[tuple[str, str], ...] = ()
    """How the run was made, as pairs of label and value."""
    limit: int | None = None

    @property
    def document(self) -> ReportDocument:
        """The report on the question that is shown, or on the run."""
        if self.view is not None:
            return question_report(self.view, self.made)
        return run_report(
            self.run.name or dict(self.made)["questions"],
            self.scores or RunScores(run=self.run.id, answers=()),
            self.made,
        )

    def to_html(self) -> str:
        """The report as one HTML file."""
        return self.document.to_html()

    def to_markdown(self) -> str:
        """The report as Markdown."""
        return self.document.to_markdown()

    def rows(self) -> list[dict[str, Any]]:
        """One row per answer."""
        return [
            {
                "question": answer.question_id,
                "as_of": answer.as_of.at.date().isoformat(),
                "trial": answer.trial,
                "answer": ", ".join(f"{target} {p:.0%}" for target, p in answer.p.items())
                + (f" (degraded: {answer.problem})" if answer.degraded else "")
                if isinstance(answer, Forecast)
                else f"failed: {answer.error}",
                "calls": answer.usage.calls if isinstance(answer, Forecast) else None,
                "dollars": answer.usage.dollars if isinstance(answer, Forecast) else None,
            }
            for answer in self.answers
        ]

    def to_dict(self) -> dict[str, Any]:
        """The stored answers and, for one question, the steps of each trial."""
        body: dict[str, Any] = {
            "run": run_to_dict(self.run, self.money),
            "answers": [
                {**json.loads(to_json(answer)), "question": self.texts.get(answer.question_id, "")}
                for answer in self.answers
            ],
            "total": self.total,
            **({} if self.scores is None else self._scored(self.scores)),
        }
        if self.question is not None:
            body["steps"] = {
                f"trial {trial}": [
                    {"event": type(event).__name__, "text": describe_event(event).strip(), **_as_json(vars(event))}
                    for event in events
                ]
                for trial, events in sorted(self.steps.items())
            }
            body["report"] = self.to_markdown()
        return body

    def _scored(self, scores: RunScores) -> dict[str, Any]:
        """Every question with its combined answer, and the scores."""
        return {
            "questions": [
                {
                    "id": one.question.id,
                    "text": one.question.text,
                    "as_of": one.question.as_of.at.isoformat(),
                    "p": {target.id: target.p for target in one.targets},
                    "price": {target.id: target.price for target in one.targets},
                    "outcome": {target.id: target.outcome for target in one.targets},
                    "brier": one.brier,
                }
                for one in scores.answers[: self.limit]
            ],
            "score": scores.summary(),
            "combined": scores.combined,
            "rule": scores.rule,
        }

    def print(self, console: "Console") -> None:
        """The questions with their answers, or every step to the answers of one question."""
        if self.scores is not None:
            show_text(console, f"{self._overview(self.scores)}\n")
            return
        for answer in self.answers:
            console.rule(f"trial {answer.trial}")
            for event in self.steps.get(answer.trial, ()):
                console.print(Text(describe_event(event)))
            failed = isinstance(answer, Failure)
            console.print(Text(f"failed: {answer.error}", style="red") if failed else Text(answer.rationale))

    def _overview(self, scores: RunScores) -> str:
        row = run_to_dict(self.run, self.money)
        counts = f"{row['forecasts']} forecasts, {row['failed']} failed, {row['degraded']} degraded"
        counts += f", {row['quarantined']} quarantined" if row["quarantined"] else ""
        lines = [*map(question_lines, scores.answers[: self.limit]), "", f"{counts}: {self.money}"]
        if (index := scores.index) is not None:
            beside = {
                "price": scores.metric("brier_index", CROWD),
                "base rate": scores.metric("brier_index", BASE_RATE),
            }
            others = "".join(f", {name} {one.estimate:.1f}" for name, one in beside.items() if one is not None)
            others += f", combined answers {scores.combined['estimate']:.1f}" if scores.combined else ""
            lines.append(f"Brier index {estimate(index, 1)} on {plural(scores.decided, 'decided question')}{others}")
        lines += [scores.rule] if scores.rule else []
        failures = Counter(answer.error for answer in self.answers if isinstance(answer, Failure))
        lines += [f"{plural(count, 'failure')}: {error}" for error, count in failures.most_common(MOST_REASONS)]
        return "\n".join([*lines, f"every step to one answer: foretell show {self.run.id} ID"])


def question_lines(one: QuestionAnswer) -> str:
    """A question of a run with its answer, trials, price and outcome, for people."""
    shown, several = one.leading, len(one.targets) > 1
    said = "failed" if one.final is None else answer_text(one.final, one.question)
    beside = [f"trials {min(shown.trials):.0%} to {max(shown.trials):.0%}"] if len(set(shown.trials)) > 1 else []
    beside += [] if shown.price is None else [f"price {shown.price:.0%}"]
    of = f"{shown.label}: " if several and beside else ""
    beside += [f"{one.degraded} degraded"] if one.degraded else []
    beside += [f"{one.failed} failed"] if one.failed and one.final is not None else []
    ended = "" if shown.outcome is None else ", it was " + ("yes" if shown.outcome else "no")
    if several and one.decided:
        ended = f", it was {', '.join(target.label for target in one.targets if target.outcome) or 'none of them'}"
    ended += "" if one.brier is None else f": Brier score {one.brier:.3f}"
    about = f" ({of}{', '.join(beside)})" if beside else ""
    when = one.question.as_of.at.date().isoformat()
    return f"{one.question.text}\n  {said}{about}{ended}\n  {one.question.id}, as of {when}"


def _as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(dict(values), ensure_ascii=False, default=str))


@operation(ShowRequest)
def show(request: ShowRequest, settings: Settings | None = None) -> ShowResult:
    """The answers of a stored run, or with `question` every step to one answer."""
    settings = settings or load_settings()
    with closing(RunStore(settings.store)) as store:
        row = find_run_row(store, request.run)
        id = row.id
        texts = {question.id: question.text for question in store.questions(id)}
        chosen = None if request.question is None else _question_named(request.question, texts)
        answers = [answer for answer in store.answers(id) if chosen in (None, answer.question_id)]
        if chosen is not None and not answers:
            hint = f"foretell show {id} lists its questions"
            raise InputError(f"run {id} has no answer to {chosen!r}", hint=hint)
        steps: dict[int, list[TraceEvent]] = {}
        for _, key, event in store.events(id, chosen) if chosen is not None else ():
            steps.setdefault(key.trial, []).append(event)
        scores = score_run(store, row) if chosen is None else None
        view = (
            None if chosen is None else question_view(store, row, chosen, request.as_of, lambda: score_run(store, row))
        )
        if chosen is not None and view is None:
            raise InputError(
                f"run {id} does not ask {chosen!r} as of {request.as_of}", hint="leave out --as-of for the newest"
            )
        money = money_of(store, settings, [id])[id]
        made = how_made(store, row, money.billed)
    return ShowResult(
        run=row,
        money=money,
        answers=tuple(answers[: request.limit]),
        total=len(answers),
        texts=texts,
        steps={trial: tuple(events[: request.limit]) for trial, events in steps.items()},
        question=chosen,
        scores=scores,
        view=view,
        made=made,
        limit=request.limit,
    )


def _question_named(name: str, texts: Mapping[str, str]) -> str:
    """Find a question by its id, the beginning of its id, or words of its text."""
    if name in texts:
        return name
    fits = [id for id in texts if id.startswith(name)] or [id for id in texts if name.lower() in texts[id].lower()]
    if len(fits) > 1:
        raise InputError(f"{name!r} fits {len(fits)} questions", hint=f"one of {', '.join(fits[:8])}")
    return fits[0] if fits else name


# Recomputing a run.


@dataclass(frozen=True, kw_only=True)
class ReplayResult(Result):
    """How many answers of a run are the same when recomputed from the journal."""

    run: str
    same: int
    total: int
    notes: tuple[str, ...] = ()
    """Why answers could not be recomputed."""

    @property
    def ok(self) -> bool:
        """Whether all answers are the same."""
        return self.same == self.total

    def __str__(self) -> str:
        return f"{self.same} of {self.total} answers are the same, from the journal alone"


@operation(ReplayRequest)
def replay(request: ReplayRequest, settings: Settings | None = None) -> Result:
    """Recompute a stored run from the journal alone, without network, keys or corpus, and compare the answers.

    Of a tree, the notebooks of its leaves are run again and their results compared.
    """
    settings = settings or load_settings()
    with closing(RunStore(settings.store)) as store:
        if (tree := _tree_named(store, request.run, settings)) is not None:
            if request.dataset is not None:
                raise InputError("has no effect on a tree", column="--dataset", hint="leave it out")
            from foretell.operations.tree import verify_notebooks

            return run_sync(verify_notebooks(tree, settings), event_loop.run)
        row = find_run_row(store, request.run)
        run = row.id
        before = [to_json(answer) for answer in store.answers(run)]
        prepared = stored_run(store, run, request.dataset)
    with tempfile.TemporaryDirectory(prefix="foretell-replay-") as folder:
        aside = replay_into(Path(folder), prepared, row, settings)
        with closing(RunStore(aside.store)) as again:
            answers = list(again.answers(run))
    after = [to_json(answer) for answer in answers]
    known = set(before)
    problems = [a.error for a in answers if isinstance(a, Failure) and to_json(a) not in known]
    same = sum(_without_seconds(a) == _without_seconds(b) for a, b in zip(before, after, strict=False))
    return ReplayResult(run=run, same=same, total=len(before), notes=tuple(dict.fromkeys(problems))[:5])


def _tree_named(store: RunStore, name: str, settings: Settings) -> Path | None:
    """The file of a tree that has this name; None if it names a run or nothing. A run takes precedence over a tree."""
    path, saved = Path(name), settings.home / "trees" / f"{name}.json"
    if any(row.name == name or row.id.startswith(name) for row in store.runs()):
        return None
    if path.is_file() or path.suffix == ".json":
        return path
    return saved if saved.is_file() else None


def replay_into(folder: Path, prepared: PreparedRun, row: RunRow, settings: Settings) -> Settings:
    """Recompute a run from the journal in a separate folder, and return the settings of that folder."""
    # Offer the same tools as then. Nobody is asked, so the keys need not be real.
    keys = {KEYS[service][0]: "replayed" for service in row.services if service in KEYS}
    aside = replace(settings, home=folder, keys=keys, corpus_file=None, database=None, budget=None)
    Corpus(aside.corpus).close()
    journal = Journal(settings.journal, mode="replay") if asks_models(prepared.spec) else None
    run_sync(execute_run(prepared, aside, journal=journal), event_loop.run)
    return aside


def _without_seconds(answer: str) -> str:
    """An answer without its duration, who paid, and the last bits of its cost, which vary between runs."""
    data = json.loads(answer)
    usage = data.get("usage", {})
    usage.pop("seconds", None)
    usage["dollars"] = round(usage.get("dollars", 0.0) + usage.pop("reused", 0.0), 9)
    return json.dumps(data, sort_keys=True)


# Backtests of forecasters without models.


@dataclass(frozen=True, kw_only=True)
class BacktestResult(Result):
    """The answers of a backtest."""

    backtest: Backtest

    def to_dict(self) -> Any:
        """How many answered and failed."""
        result = self.backtest
        return {
            "questions": len(result.questions),
            "quarantined": [one.id for one in result.quarantined],
            "forecasts": dict(Counter(one.forecaster for one in result.forecasts)),
            "failures": [
                {"forecaster": one.forecaster, "question": one.question_id, "error": one.error}
                for one in result.failures
            ],
        }

    def rows(self) -> list[dict[str, Any]]:
        """The forecasts as `foretell score` reads them."""
        return forecast_rows(self.backtest.forecasts, self.backtest.questions)

    def write_folder(self, path: Path) -> list[Path]:
        """Write forecasts.csv, outcomes.csv and, if any, failures.csv, and return their paths."""
        return list(write_backtest(self.backtest, self.backtest.resolutions, path).values())

    def __str__(self) -> str:
        forecasts, questions = len(self.backtest.forecasts), len(self.backtest.questions)
        lines = [f"{plural(forecasts, 'forecast')} on {plural(questions, 'question')}"]
        if failures := self.backtest.failures:
            first = failures[0]
            total = len(self.backtest.answers)
            lines.append(f"{len(failures)} of {total} answers failed, e.g. {first.forecaster}: {first.error}")
        if late := self.backtest.quarantined:
            lines.append(f"{quarantine_note(len(late))} ({LATE_TEXT_HINT})")
        return "\n".join(lines)


def backtest(request: BacktestRequest, progress: BacktestProgress | None = None) -> BacktestResult:
    """Test forecasters on a question set as of its dates."""
    benchmark = open_benchmark(request.dataset, wanted=request.wanted())
    series = None if request.series is None else CsvSeries(path=request.series)
    if series is None and benchmark.series is None and request.fetch_series:
        series = SeriesOnDemand(load_settings())
    return BacktestResult(backtest=run_backtest(request.forecasters, benchmark, series=series, progress=progress))
