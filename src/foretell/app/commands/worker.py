"""foretell worker: one of many that share the cells of all runs."""

import asyncio
import signal
from typing import TYPE_CHECKING

import click

from foretell.app import loop

if TYPE_CHECKING:
    from foretell.app.settings import Settings
    from foretell.arena.cluster.worker import Capacity
    from foretell.arena.executor import Progress


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
    from foretell.app.cluster import serve, shared_url
    from foretell.app.settings import load_settings
    from foretell.arena.cluster.worker import Capacity

    settings = load_settings()
    shared_url(settings)
    if drop is not None:
        _drop(settings, drop)
    if status:
        _tell(settings)
    if status or drop is not None:
        return

    async def work(settings: "Settings", capacity: "Capacity") -> "Progress":
        from foretell.arena.cluster.worker import Orders

        orders = Orders()
        _obey(orders.rest, orders.leave)
        return await serve(settings, capacity, orders, idle=idle)

    click.echo(f"up to {concurrency} cells at once; Ctrl-C to finish and leave", err=True)
    done = loop.run(work(settings, Capacity(here=concurrency, everywhere=everywhere)))
    click.echo(f"{done.done} cells, {done.failed} failed, ${done.dollars:.4f} in {done.calls} calls")


def _tell(settings: "Settings") -> None:
    from foretell.app.cluster import standing

    for line in loop.run(standing(settings)).lines():
        click.echo(line)


def _drop(settings: "Settings", written: str) -> None:
    from foretell.app.cluster import drop, shared_url
    from foretell.app.commands.show import find_run
    from foretell.arena.store import Store

    store = Store(shared_url(settings))
    run = find_run(store, written)
    store.close()
    click.echo(
        f"run {run}: {loop.run(drop(settings, run))} cells are no longer queued; `foretell run` queues them anew"
    )


def _obey(rest: asyncio.Event, leave: asyncio.Event) -> None:
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
