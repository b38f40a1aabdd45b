"""`foretell practice`: try everything without an account and without a network."""

import asyncio
import contextlib
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretell.cli.request_options import request_options
from foretell.operations.requests import PracticeRequest
from foretell.runs import event_loop

if TYPE_CHECKING:
    from foretell.runs.settings import Settings


@click.command()
@request_options(PracticeRequest)
@click.option("--env", is_flag=True, help="Start it in the background and print the lines that lead a shell to it.")
@click.option("--env-file", type=click.Path(path_type=Path, dir_okay=False), help="Also write the lines to this file.")
@click.option("--stop", is_flag=True, help="Stop the world in the background that this shell is in.")
@click.option("--hours", type=click.FloatRange(0, min_open=True), help="Stop by itself after so many hours.")
@click.option("--port-base", "old_port", hidden=True)
@click.option("--print-env", "old_file", hidden=True)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def practice(
    request: PracticeRequest,
    env: bool,
    env_file: Path | None,
    stop: bool,
    hours: float | None,
    old_port: str | None,
    old_file: str | None,
    command: tuple[str, ...],
) -> None:
    """Start a practice world on this machine: no key, no network, and nothing to pay.

    Models, search engines, web pages, Wikipedia, series, markets, deep research, and the inboxes of Metaculus and
    Prophet Arena. Run one command in it:

      foretell practice -- foretell ask "Will Norges Bank cut its rate before 2027?"

    Or stay in it with your shell, until foretell practice --stop:

      eval "$(foretell practice --env)"

    Without either, it serves until Ctrl-C and prints the lines for other shells. The world is small and made up, and
    its models know nothing: it shows how things work, not how good forecasts are.
    """
    from foretell.operations.practice import TRY_NEXT, run_in_practice, start_in_background, stop_practice
    from foretell.runs.settings import load_settings

    _refuse_old_spellings(old_port, old_file, command)
    settings = load_settings()
    if stop:
        click.echo("Stopped." if stop_practice() else "There is no practice world to stop.", err=True)
    elif command:
        sys.exit(event_loop.run(run_in_practice(request, settings, command)))
    elif env:
        click.echo(start_in_background(request, settings), nl=False)
        click.echo(f"Try: {TRY_NEXT}\nStop it: foretell practice --stop", err=True)
    else:
        event_loop.run(_serve(request, settings, env_file, hours))


def _refuse_old_spellings(port: str | None, file: str | None, command: tuple[str, ...]) -> None:
    from foretell.questions.errors import InputError

    for given, old, new in ((port, "--port-base", "--port"), (file, "--print-env", "--env-file")):
        if given is not None:
            raise InputError(f"{old} is now {new}", column=old)
    if command[:1] == ("fakes",):
        raise InputError("`foretell dev fakes` is now `foretell practice`")


async def _serve(request: PracticeRequest, settings: "Settings", env_file: Path | None, hours: float | None) -> None:
    from foretell.cli.options import write_text
    from foretell.operations.practice import TRY_NEXT, open_practice, shell_lines

    stopped = asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(sign, stopped.set)
    if env_file is not None:
        # Whoever waits for the file must not find that of an earlier time.
        env_file.unlink(missing_ok=True)
    async with open_practice(request, settings, stopped) as environment:
        lines = shell_lines(environment)
        click.echo(lines, nl=False)
        if env_file is not None:
            write_text(env_file, lines)
        click.echo(f"Serving until Ctrl-C. In a shell with the lines above, try: {TRY_NEXT}", err=True)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), None if hours is None else hours * 3600)
