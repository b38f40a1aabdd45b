"""foretell run: a spec, many questions, several trials; interrupted and started again at will."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretell.app import loop
from foretell.app.commands.options import FILE

if TYPE_CHECKING:
    from foretell.app.running import Prepared, Watch
    from foretell.app.settings import Settings


@click.command()
@click.argument("spec", type=FILE)
@click.option("--concurrency", type=click.IntRange(1, 2000), default=50, show_default=True, help="Cells at once.")
@click.option("--work", is_flag=True, help="With a shared database: answer cells here too, not only watch.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Also write the tables for scoring here.")
def run(spec: Path, concurrency: int, work: bool, out: Path | None) -> None:
    """Run the agent described in SPEC (YAML) over its questions.

    Every reply is journalled before it is used. Stop it or kill it at any moment and start it again: it goes on where
    it was and pays for no reply twice. The same spec is the same run.

    With FORETELL_DATABASE_URL set, its cells are queued there for every `foretell worker`, and this command watches.
    """
    from foretell.app.running import asks_models, execute, prepare
    from foretell.app.settings import load_settings
    from foretell.arena.spec import read_spec

    settings = load_settings()
    prepared = prepare(read_spec(spec))
    for warning in prepared.warnings:
        click.echo(f"warning: {warning}", err=True)
    click.echo(f"run {prepared.spec.id}: {len(prepared.questions)} questions × {prepared.spec.trials} trials", err=True)
    with progress_of_run() as watch:
        if settings.database and asks_models(prepared.spec):
            from foretell.app.cluster import run_together

            here = concurrency if work else None
            progress = loop.run(run_together(prepared, settings, watch=watch, tell=_warn, work=here))
        else:
            progress = loop.run(execute(prepared, settings, watch=watch, concurrency=concurrency))
    told = f"{progress.done} cells, {progress.failed} failed, {progress.skipped} were done before"
    click.echo(f"run {prepared.spec.id}: {told}, ${progress.dollars:.4f} in {progress.calls} calls")
    _tell_maybe_paid(settings)
    if out is not None:
        write_tables(prepared, settings, out)


def _warn(told: str) -> None:
    click.echo(told, err=True)


def _tell_maybe_paid(settings: "Settings") -> None:
    """What a bill may hold beyond the replies that are kept; nobody but the provider knows."""
    from foretell.llm.journal import Journal

    if settings.database or Path(settings.journal).is_file():
        journal = Journal(settings.journal)
        lost = journal.maybe_paid()
        journal.close()
        if lost:
            told = f"{lost} calls of all runs so far were on the wire when they were killed or ran out of time"
            click.echo(f"{told}: they may be billed although no reply is kept", err=True)


def write_tables(prepared: "Prepared", settings: "Settings", out: Path) -> None:
    """forecasts.csv (every trial), outcomes.csv and failures.csv of a run."""
    from foretell.arena.backtest import Backtest
    from foretell.arena.long_tables import write_backtest
    from foretell.arena.store import Store

    store = Store(settings.store)
    result = Backtest(questions=prepared.questions, answers=tuple(store.answers(prepared.spec.id)))
    store.close()
    for path in write_backtest(result, prepared.benchmark.questions.resolutions, out).values():
        click.echo(f"Wrote {path}")


@contextmanager
def progress_of_run() -> "Generator[Watch]":
    """A bar with failures, spend and the time left, shown only to a person at a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from foretell.arena.executor import Progress as RunProgress

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
