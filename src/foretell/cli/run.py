"""foretell run: a spec, many questions, several trials; interrupted and started again at will."""

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretell.cli.options import FILE_PATH
from foretell.runs import event_loop

if TYPE_CHECKING:
    from foretell.runs.executor import RunProgress
    from foretell.runs.runner import PreparedRun, WatchProgress
    from foretell.runs.settings import Settings
    from foretell.runs.worker import WorkerCapacity


@click.command()
@click.argument("spec", type=FILE_PATH)
@click.option("--concurrency", type=click.IntRange(1, 2000), default=50, show_default=True, help="Cells at once.")
@click.option("--work", is_flag=True, help="With a shared database: answer cells here too, not only watch.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Also write the tables for scoring here.")
def run(spec: Path, concurrency: int, work: bool, out: Path | None) -> None:
    """Run the agent described in SPEC (YAML) over its questions.

    Every reply is journalled before it is used. Stop it or kill it at any moment and start it again: it goes on where
    it was and pays for no reply twice. The same spec is the same run.

    With FORETELL_DATABASE_URL set, its cells are queued there for every `foretell worker`, and this command watches.
    """
    from foretell.runs.runner import asks_models, execute_run, prepare_run
    from foretell.runs.settings import load_settings
    from foretell.runs.spec import read_spec

    settings = load_settings()
    prepared = prepare_run(read_spec(spec))
    for warning in prepared.warnings:
        click.echo(f"warning: {warning}", err=True)
    click.echo(f"run {prepared.spec.id}: {len(prepared.questions)} questions × {prepared.spec.trials} trials", err=True)
    with progress_of_run() as watch:
        if settings.database and asks_models(prepared.spec):
            from foretell.operations.shared_runs import run_together

            here = concurrency if work else None
            progress = event_loop.run(run_together(prepared, settings, watch=watch, tell=_warn, work=here))
        else:
            progress = event_loop.run(execute_run(prepared, settings, watch=watch, concurrency=concurrency))
    told = f"{progress.done} cells, {progress.failed} failed, {progress.skipped} were done before"
    click.echo(f"run {prepared.spec.id}: {told}, ${progress.dollars:.4f} in {progress.calls} calls")
    _note_unconfirmed_calls(settings)
    if out is not None:
        write_tables(prepared, settings, out)


def _warn(told: str) -> None:
    click.echo(told, err=True)


def _note_unconfirmed_calls(settings: "Settings") -> None:
    """What a bill may hold beyond the replies that are kept; nobody but the provider knows."""
    from foretell.models.journal import Journal

    if settings.database or Path(settings.journal).is_file():
        journal = Journal(settings.journal)
        lost = journal.maybe_paid()
        journal.close()
        if lost:
            told = f"{lost} calls of all runs so far were on the wire when they were killed or ran out of time"
            click.echo(f"{told}: they may be billed although no reply is kept", err=True)


def write_tables(prepared: "PreparedRun", settings: "Settings", out: Path) -> None:
    """forecasts.csv (every trial), outcomes.csv and failures.csv of a run."""
    from foretell.runs.backtest import Backtest
    from foretell.runs.store import RunStore
    from foretell.scoring.long_tables import write_backtest

    store = RunStore(settings.store)
    result = Backtest(questions=prepared.questions, answers=tuple(store.answers(prepared.spec.id)))
    store.close()
    for path in write_backtest(result, prepared.benchmark.questions.resolutions, out).values():
        click.echo(f"Wrote {path}")


@contextmanager
def progress_of_run() -> "Generator[WatchProgress]":
    """A bar with failures, spend and the time left, shown only to a person at a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from foretell.runs.executor import RunProgress

    console = Console(stderr=True)
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]} failed · ${task.fields[dollars]:.2f} · {task.fields[calls]} calls"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task("run", total=None, failed=0, dollars=0.0, calls=0)

        def watch(now: RunProgress) -> None:
            bars.update(
                task, total=now.total, completed=now.done, failed=now.failed, dollars=now.dollars, calls=now.calls
            )

        yield watch


# foretell worker: one of many that share the cells of all runs.


@click.command()
@click.option("--concurrency", type=click.IntRange(1, 2000), default=50, show_default=True, help="Cells at once, here.")
@click.option("--everywhere", type=click.IntRange(1), help="Cells at once over all workers.")
@click.option("--idle", type=click.FloatRange(0), metavar="SECONDS", help="Leave after so long without a cell.")
@click.option("--status", is_flag=True, help="Only tell who is at work and what is waiting.")
@click.option("--drop", metavar="RUN", help="Only take the cells of RUN out of the queue, those at work too.")
def worker(concurrency: int, everywhere: int | None, idle: float | None, status: bool, drop: str | None) -> None:
    """Answer cells of any run that `foretell run` has queued in the shared database (FORETELL_DATABASE_URL).

    Start as many as you like, on as many machines as you like. When one is killed, the others take its cells over and
    get every reply it was sent from the journal. Ctrl-C lets it finish what it is at; a second one leaves now.
    """
    from foretell.operations.shared_runs import run_worker, shared_url
    from foretell.runs.settings import load_settings
    from foretell.runs.worker import WorkerCapacity

    settings = load_settings()
    shared_url(settings)
    if drop is not None:
        _drop_run(settings, drop)
    if status:
        _print_status(settings)
    if status or drop is not None:
        return

    async def work(settings: "Settings", capacity: "WorkerCapacity") -> "RunProgress":
        from foretell.runs.worker import WorkerSignals

        orders = WorkerSignals()
        _stop_on_signals(orders.rest, orders.leave)
        return await run_worker(settings, capacity, orders, idle=idle)

    click.echo(f"up to {concurrency} cells at once; Ctrl-C to finish and leave", err=True)
    done = event_loop.run(work(settings, WorkerCapacity(here=concurrency, everywhere=everywhere)))
    click.echo(f"{done.done} cells, {done.failed} failed, ${done.dollars:.4f} in {done.calls} calls")


def _print_status(settings: "Settings") -> None:
    from foretell.operations.shared_runs import cluster_status

    for line in event_loop.run(cluster_status(settings)).lines():
        click.echo(line)


def _drop_run(settings: "Settings", written: str) -> None:
    from foretell.operations.shared_runs import drop_run, shared_url
    from foretell.runs.store import RunStore, find_run

    store = RunStore(shared_url(settings))
    run = find_run(store, written)
    store.close()
    click.echo(
        f"run {run}: {event_loop.run(drop_run(settings, run))} cells are no longer queued; "
        "`foretell run` queues them anew"
    )


def _stop_on_signals(rest: asyncio.Event, leave: asyncio.Event) -> None:
    """The first signal asks to finish, the second to leave; a third one ends the process."""
    running = asyncio.get_running_loop()

    def told() -> None:
        if rest.is_set():
            leave.set()
            for sign in (signal.SIGINT, signal.SIGTERM):
                running.remove_signal_handler(sign)
        rest.set()

    for sign in (signal.SIGINT, signal.SIGTERM):
        running.add_signal_handler(sign, told)
