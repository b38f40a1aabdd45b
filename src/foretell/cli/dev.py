"""`foretell dev`: for people who work on foretell, or try it without any account."""

import asyncio
import contextlib
import signal
from errno import EADDRINUSE
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretell.runs import event_loop

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foretell.practice.services import ServiceOptions

PORTS = 13


@click.group()
def dev() -> None:
    """Try things out: services that live on this machine."""


@dev.command()
@click.option(
    "--port-base",
    type=click.IntRange(1024, 65535 - PORTS),
    help=f"First of {PORTS} ports in a row (default: free ones).",
)
@click.option("--latency", type=click.FloatRange(0), default=0.0, metavar="SECONDS", help="Wait before every answer.")
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    help="FORETELL_HOME for what is run against the fakes (default: a folder of its own beside your runs).",
)
@click.option(
    "--print-env",
    "env_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the lines to this file, once everything listens.",
)
def fakes(port_base: int | None, latency: float, home: Path | None, env_file: Path | None) -> None:
    """Serve fake models, search engines, pages, series and markets on this machine until Ctrl-C.

    Prints lines for a shell that lead foretell to them, with keys that open nothing:

      foretell dev fakes --print-env fakes.env & sleep 3

      . ./fakes.env; foretell ask "Will Norges Bank cut its rate?" --model openai:fake --search brave

    The world behind them is small and made up, and the models know nothing: use them to see how things work.
    """
    from datetime import UTC, datetime

    from foretell.practice.services import ServiceOptions
    from foretell.questions.errors import InputError
    from foretell.runs.settings import load_settings

    # Replies of fakes must never get into the journal of real runs: they would be taken for paid ones.
    own = (home or load_settings().home / "fakes").absolute()
    listening = ServiceOptions(now=datetime.now(UTC), port_base=port_base or 0, latency=latency)
    if env_file is not None:
        # Whoever waits for the file must not find that of an earlier time.
        env_file.unlink(missing_ok=True)
    try:
        event_loop.run(_serve(listening, own, env_file))
    except OSError as error:
        if error.errno != EADDRINUSE:
            raise
        raise InputError("a port is taken", column="--port-base", hint="name another, or none for free ones") from None


async def _serve(listening: "ServiceOptions", home: Path, env_file: Path | None) -> None:
    from foretell.cli.options import write_text
    from foretell.practice.services import all_services

    stopped = asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(sign, stopped.set)
    async with all_services(listening) as addresses:
        lines = "".join(f"{line}\n" for line in environment(addresses, home))
        click.echo(lines, nl=False)
        if env_file is not None:
            write_text(env_file, lines)
        click.echo("serving until Ctrl-C", err=True)
        await stopped.wait()


def environment(addresses: "Mapping[str, str]", home: Path) -> list[str]:
    """Lines for a shell: addresses, keys, and a home apart from that of real runs.

    >>> environment({"brave": "http://127.0.0.1:8101/brave"}, Path("/tmp/my fakes"))[:2]
    ["export FORETELL_HOME='/tmp/my fakes'", 'export FORETELL_BRAVE_URL=http://127.0.0.1:8101/brave']
    """
    from shlex import quote

    from foretell.practice.services import KEY
    from foretell.runs.settings import KEYS

    values = {"FORETELL_HOME": str(home)}
    values |= {f"FORETELL_{service.upper()}_URL": url for service, url in addresses.items()}
    values |= {names[0]: KEY for service, names in KEYS.items() if service in addresses}
    return [f"export {name}={quote(value)}" for name, value in values.items()]
