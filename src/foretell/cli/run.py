"""foretell run: a spec, many questions, several trials; interrupted and started again at will."""

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from foretell.cli.request_options import request_options
from foretell.operations.requests import RunRequest
from foretell.runs import event_loop

if TYPE_CHECKING:
    from foretell.runs.executor import RunProgress
    from foretell.runs.runner import WatchProgress
    from foretell.runs.settings import Settings
    from foretell.runs.worker import WorkerCapacity


@click.command()
@request_options(RunRequest)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def run(request: RunRequest, as_json: bool) -> None:
    """Run the agent described in SPEC (YAML) over its questions.

    Every reply is journalled before it is used. Stop it or kill it at any moment and start it again: it goes on where
    it was and pays for no reply twice. The same spec is the same run.

    With FORETELL_DATABASE_URL set, its cells are queued there for every `foretell worker`, and this command watches.
    """
    from foretell.operations.run import prepare, run_prepared
    from foretell.runs.settings import load_settings

    settings = load_settings()
    prepared = prepare(request, settings)
    for warning in prepared.warnings:
        click.echo(f"warning: {warning}", err=True)
    click.echo(f"run {prepared.spec.id}: {len(prepared.questions)} questions × {prepared.spec.trials} trials", err=True)
    with progress_of_run() as watch:
        result = event_loop.run(run_prepared(prepared, request, settings, watch=watch, tell=_warn))
    for note in result.notes:
        _warn(note)
    if as_json:
        click.echo(result.to_json())
        return
    done = result.progress
    counts = f"{done.done} cells, {done.failed} failed, {done.skipped} were done before"
    click.echo(f"run {result.run}: {counts}, ${done.dollars:.4f} in {done.calls} calls")
    for path in result.tables:
        click.echo(f"Wrote {path}")


def _warn(text: str) -> None:
    click.echo(text, err=True)


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
