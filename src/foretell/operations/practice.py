"""Practice: stand-ins for all services on this machine, which need no key and no network."""

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from errno import EADDRINUSE
from pathlib import Path
from shlex import quote

from foretell.data.files import write_atomically
from foretell.operations.requests.setup import PracticeRequest
from foretell.plugins import PAIR
from foretell.practice.services import KEY, PracticeInboxes, ServiceOptions, all_services
from foretell.questions.errors import InputError
from foretell.runs.settings import KEYS, KNOWN_MODELS, OLD, SETTINGS_FILE, Settings
from foretell.tournaments.forecastbench import TOKEN_VARIABLE

TRY_NEXT = 'foretell ask "Will Norges Bank cut its rate before 2027?"'
MODEL, ENGINE = "openai:practice", "brave"
UNSET = ("FORETELL_DATABASE_URL", "FORETELL_CLOCK", *OLD)
"""Variables that are unset in practice, so that its replies never get into a real journal."""
CONTACT = "practice@example.org"
"""Requests to the simulated Wikipedia need a contact too."""
INBOX = "inbox.jsonl"
"""File in the home of practice with what bots sent to its tournaments."""
FREE_MODELS = """date = 2026-11-16
source = "practice: its models run on this machine"

[[model]]
pattern = '^(practice|example-)'
name = "openai:practice"
price = [0, 0, 0]
"""
"""Table of models for the home of practice or an example: they cost nothing."""


def prepare_home(home: Path) -> None:
    """Write the table of models and the settings of practice or an example, unless they exist."""
    for name, text in ((KNOWN_MODELS, FREE_MODELS), (SETTINGS_FILE, f'contact = "{CONTACT}"\n')):
        if not (home / name).exists():
            write_atomically(home / name, text.encode())


def practice_environment(addresses: Mapping[str, str], home: Path) -> dict[str, str | None]:
    """Return the environment variables of practice; None for variables to unset."""
    values: dict[str, str | None] = dict.fromkeys(UNSET)
    values |= {"FORETELL_HOME": str(home), "FORETELL_MODEL": MODEL, "FORETELL_SEARCH": ENGINE}
    values |= dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
    values |= {f"FORETELL_{service.upper()}_URL": url for service, url in addresses.items()}
    values[TOKEN_VARIABLE] = KEY if "buckets" in addresses else None
    for service, names in KEYS.items():
        values |= dict.fromkeys(part for name in names for part in name.split(PAIR))
        values |= dict.fromkeys(names[0].split(PAIR), KEY if service in addresses else None)
    return values


def shell_lines(environment: Mapping[str, str | None]) -> str:
    """Return the environment as lines for a shell.

    >>> print(shell_lines({"A": "it's", "B": None}), end="")
    export A='it'"'"'s'
    unset B
    """
    lines = (
        f"unset {name}" if value is None else f"export {name}={quote(value)}" for name, value in environment.items()
    )
    return "".join(f"{line}\n" for line in lines)


@asynccontextmanager
async def open_practice(
    request: PracticeRequest, settings: Settings, inboxes: PracticeInboxes | None = None
) -> AsyncGenerator[dict[str, str | None]]:
    """Start the practice servers, yield their environment variables, and stop them at the end."""
    inboxes = inboxes or PracticeInboxes()
    options = ServiceOptions(now=datetime.now(UTC), port=request.port, latency=request.latency, inboxes=inboxes)
    home = settings.practice_home
    prepare_home(home)
    try:
        async with all_services(options) as addresses:
            yield practice_environment(addresses, home)
    except OSError as error:
        if error.errno != EADDRINUSE:
            raise
        raise InputError(
            "a port is in use", column="--port", hint="choose another, or leave it out to use free ports"
        ) from None


def save_received(inboxes: PracticeInboxes, settings: Settings) -> str:
    """Write what bots sent to a file in the home of practice; return a summary, empty if nothing was sent."""
    rows = inboxes.received()
    if not rows:
        return ""
    path = settings.practice_home / INBOX
    write_atomically(path, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode())
    counts: dict[str, list[str]] = {}
    for (platform, kind), number in Counter((row["platform"], row["kind"]) for row in rows).items():
        counts.setdefault(platform, []).append(f"{number} {kind}{'s' if number > 1 else ''}")
    sent = "; ".join(f"{platform}: {' and '.join(kinds)}" for platform, kinds in counts.items())
    return f"Sent to {sent}. See {path}, one line for each, as received."


async def run_in_practice(
    request: PracticeRequest, settings: Settings, tell: Callable[[str], None] = lambda _: None
) -> int:
    """Run the command of a request in practice, and return its exit code.

    `tell` is called at the end with what the command sent to tournaments, if it sent anything.
    """
    command, inboxes = request.command, PracticeInboxes()
    program = [sys.executable, "-m", "foretell.cli.main"] if command[0] == "foretell" else [command[0]]
    async with open_practice(request, settings, inboxes) as environment:
        values = {name: value for name, value in (os.environ | environment).items() if value is not None}
        try:
            process = await asyncio.create_subprocess_exec(*program, *command[1:], env=values)
        except OSError as error:
            raise InputError(f"cannot run {command[0]}: {error.strerror}") from None
        try:
            code = await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()
    if received := save_received(inboxes, settings):
        tell(received)
    return code if code >= 0 else 128 - code
