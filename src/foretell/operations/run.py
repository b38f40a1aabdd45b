"""Start a run from a spec, or continue a stored one."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from foretell.frozen import frozen
from foretell.models.journal import Journal
from foretell.number_text import plural
from foretell.operations.requests.runs import STARTS, RunRequest
from foretell.questions.backtest import Backtest
from foretell.questions.errors import InputError
from foretell.report.planning import plan_run
from foretell.report.result import Result
from foretell.report.run_plan import RunPlan
from foretell.report.terminal import show_text
from foretell.runs.contexts import run_digest
from foretell.runs.executor import RunProgress
from foretell.runs.runner import PreparedRun, WatchProgress, asks_models, execute_run, find_run_of, prepare_run
from foretell.runs.runtime import forecaster_name
from foretell.runs.settings import Settings, load_settings
from foretell.runs.spec import read_changes, read_spec, spec_from_mapping, with_settings
from foretell.runs.store import RunStore, find_run
from foretell.runs.stored_rows import DamagedRow
from foretell.runs.stored_runs import begin_stored, check_start, prepare_again, resume
from foretell.scoring.long_tables import write_backtest
from foretell.scoring.run_answers import caveats_of_run
from foretell.scoring.stored_scores import keep_summary

if TYPE_CHECKING:
    from foretell.report.study_result import StudyResult

PILOT = "pilot"
"""Tag of the run that a pilot makes."""


@frozen
class RunResult(Result):
    """What a run did this time."""

    run: str
    questions: int
    trials: int
    progress: RunProgress
    excluded: int = 0
    """Questions that were left out because their own text is newer than their date."""
    cautions: tuple[str, ...] = ()
    """What a model may have known beforehand."""
    notes: tuple[str, ...] = ()
    """What failed or was left out, what that means for the scores, and what else is worth knowing."""
    pilot: "StudyResult | None" = None
    """The report of a pilot on the whole run; None for any other run."""
    write_tables: Callable[[Path], list[Path]] | None = field(default=None, repr=False, compare=False)

    @property
    def exit_code(self) -> int:
        """1 if the pilot failed; 3 if an answer is missing or is a fallback."""
        if self.pilot is not None:
            return 0 if self.pilot.passed else 1
        return 3 if self.progress.failed or self.progress.fallback or self.progress.stopped else 0

    def write_folder(self, path: Path) -> list[Path]:
        """Write forecasts.csv (every trial), outcomes.csv and, if any, failures.csv, and return their paths."""
        return [] if self.write_tables is None else self.write_tables(path)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row."""
        return [{name: value for name, value in self.to_dict().items() if not isinstance(value, list)}]

    def to_dict(self) -> dict[str, Any]:
        """Counts and cost."""
        done = self.progress
        return {
            "run": self.run,
            "questions": self.questions,
            "excluded": self.excluded,
            "trials": self.trials,
            "done": done.done,
            "failed": done.failed,
            "fallback": done.fallback,
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
        counts = f"{done.done} trials, {done.failed} failed, {done.skipped} were done before"
        counts += f", {done.fallback} fallback" if done.fallback else ""
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
                hint = "give the settings file"
                raise InputError("a stored run has no new questions", column="--extend", hint=hint)
            if request.again:
                prepared = prepare_again(store, run, settings, changes, plan=request.plan)
            else:
                prepared = resume(store, run, settings, changes, request.only_failed or "", plan=request.plan)
        return _pilot(prepared, request.pilot)
    for name in ("again", "only_failed"):
        if getattr(request, name):
            hint = "give the name or id of a run instead of a file; foretell runs lists them"
            raise InputError("needs a stored run", column=STARTS[name], hint=hint)
    source = request.spec
    if isinstance(source, Path):
        spec = read_spec(source, changes)
    else:
        spec = spec_from_mapping(with_settings(source, changes) if changes else source)
    check_start(spec, settings, plan=request.plan)
    prepared = prepare_run(spec, folders=(Path(), *([source.parent] if isinstance(source, Path) else [])))
    prepared = _pilot(prepared, request.pilot)
    with closing(RunStore(settings.store)) as store:
        return find_run_of(store, prepared, extend=request.extend)


def _stored_id(store: RunStore, name: str) -> str:
    try:
        return find_run(store, name)
    except InputError as error:
        hint = "foretell runs lists them; a settings file ends in .yaml or .json"
        raise InputError(error.problem, hint=hint) from None


def _pilot(prepared: PreparedRun, questions: int | None) -> PreparedRun:
    """Return the first questions of a run, each asked once, as a run of its own; without a number, the run itself."""
    if questions is None:
        return prepared
    if not asks_models(prepared.spec):
        raise InputError("this forecaster uses no model", column="--pilot", hint="run it; it costs nothing")
    questions_spec = replace(prepared.spec.questions, limit=questions, digest="")
    chosen = prepared.questions[:questions]
    if prepared.spec.questions.digest:
        digest = run_digest(prepared.spec, chosen, prepared.contexts, prepared.now or datetime.now(UTC))
        questions_spec = replace(questions_spec, digest=digest)
    return replace(
        prepared, spec=replace(prepared.spec, questions=questions_spec, trials=1), questions=chosen, only=None
    )


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
        from foretell.runs.prompts import prompts_of

        shown = prepared.questions[:1] if request.prompts else ()
        contexts = prepared.contexts.values()
        prompts = [prompt for question in shown for prompt in await prompts_of(spec, question, settings, contexts)]
        return plan_run(prepared, settings, prompts)
    if request.stored is not None and request.pilot is None:
        with closing(RunStore(settings.store)) as store:
            begin_stored(store, find_run(store, request.stored), prepared, settings, again=request.again)
    tell(f"run {spec.id}: {plural(len(prepared.questions), 'question')} × {plural(spec.trials, 'trial')}")
    for notice in (*prepared.notes, *prepared.notices):
        tell(notice)
    progress = await carry_out(prepared, settings, where=request.where, watch=watch, tell=tell)
    caveats = await asyncio.to_thread(_caveats, settings, spec.id)
    result = RunResult(
        run=spec.id,
        questions=len(prepared.questions),
        excluded=spec.questions.excluded,
        trials=spec.trials,
        progress=progress,
        cautions=prepared.warnings,
        notes=(*_without_repeats(prepared.notes, caveats), *caveats, *progress.unread, *_unconfirmed_calls(settings)),
        write_tables=lambda folder: write_tables(prepared, settings, folder),
    )
    return result if request.pilot is None else replace(result, pilot=_judged(prepared, request, settings))


def _caveats(settings: Settings, run: str) -> tuple[str, ...]:
    with closing(RunStore(settings.store)) as store:
        row = store.run(run)
        try:
            return () if row is None else caveats_of_run(store, row)
        except DamagedRow as error:  # The run itself is complete.
            return (str(error),)


def _without_repeats(notes: Iterable[str], caveats: Sequence[str]) -> list[str]:
    """Return the notes that no caveat begins with."""
    return [note for note in notes if not any(caveat.startswith(note) for caveat in caveats)]


def _judged(prepared: PreparedRun, request: RunRequest, settings: Settings) -> "StudyResult":
    """Return the report on the whole run from the trials of its pilot."""
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


async def carry_out(
    prepared: PreparedRun,
    settings: Settings,
    *,
    where: str,
    watch: WatchProgress = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
) -> RunProgress:
    """Answer the open trials of a run, in this process or by the workers of a shared database."""
    shared = settings.database is not None and asks_models(prepared.spec)
    if where in ("workers", "both") and not shared:
        hint = "set FORETELL_DATABASE_URL, and start `foretell worker`"
        raise InputError("there are no workers for this run", column="--where", hint=hint)
    if shared and where != "here":
        from foretell.runs.shared_runs import run_together  # Needs the driver of PostgreSQL.

        work = prepared.spec.concurrency if where == "both" else None
        progress = await run_together(prepared, settings, watch=watch, tell=tell, work=work)
    else:
        progress = await execute_run(prepared, settings, watch=watch)
    await asyncio.to_thread(keep_summary, settings.store, prepared.spec.id)
    return progress


def _unconfirmed_calls(settings: Settings) -> tuple[str, ...]:
    """Calls that may be billed although no reply was saved."""
    if not settings.database and not Path(settings.journal).is_file():
        return ()
    with closing(Journal(settings.journal)) as journal:
        lost = journal.ledger.lost_calls()
    if not lost:
        return ()
    text = f"{lost} calls of all runs so far were interrupted or timed out before their reply"
    return (f"{text}: they may be billed although no reply is stored",)


def write_tables(prepared: PreparedRun, settings: Settings, out: Path) -> list[Path]:
    """Write forecasts.csv (every trial), outcomes.csv and failures.csv of a run."""
    with closing(RunStore(settings.store)) as store:
        answers, excluded = tuple(store.costed_answers(prepared.spec.id)), prepared.benchmark.questions.excluded
    result = Backtest(questions=prepared.questions, answers=answers, excluded=excluded)
    return list(write_backtest(result, prepared.benchmark.questions.resolutions, out).values())
