"""A practice world for a user: started here or in the background, with the environment that leads foretell to it."""

import asyncio
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from errno import EADDRINUSE
from pathlib import Path
from shlex import quote

from foretell.data.files import write_atomically
from foretell.operations.requests import PracticeRequest
from foretell.plugins import PAIR
from foretell.practice.services import KEY, STOP, ServiceOptions, all_services
from foretell.questions.errors import InputError
from foretell.runs.settings import KEYS, KNOWN_MODELS, Settings

WORLD = "FORETELL_PRACTICE"
"""Environment variable that holds the address of the world that a shell is in."""
TRY_NEXT = 'foretell ask "Will Norges Bank cut its rate before 2027?"'
MODEL, ENGINE = "openai:practice", "brave"
UNSET = (
    "FORETELL_DATABASE_URL",
    "FORETELL_CLOCK",
    "FORETELL_CORPUS",
    "FORETELL_LIMITS",
    "FORETELL_PACE",
    "FORETELL_SERIES",
)
"""These would lead out of the practice world: practice replies must never get into a journal of real ones."""
CONTACT = "practice@example.org"
"""Wikipedia wants to know who asks, here too."""
FREE_MODELS = """date = 2026-11-16
source = "the practice world: its models run on this machine"

[[model]]
pattern = '^(practice|example-)'
name = "openai:practice"
price = [0, 0, 0]
"""
"""What a home of practice or of an example knows of its models: they cost nothing and can be picked."""
START_SECONDS = 60.0
LIFETIME_HOURS = 8.0
"""After this time a world in the background stops by itself."""


def practice_home(request: PracticeRequest, settings: Settings) -> Path:
    """Where runs and journals of the practice world are stored, apart from real ones."""
    return (request.home or settings.home / "practice").absolute()


def practice_environment(addresses: Mapping[str, str], home: Path) -> dict[str, str | None]:
    """Environment variables of the practice world; None for those that must not be set."""
    values: dict[str, str | None] = dict.fromkeys(UNSET)
    values |= {"FORETELL_HOME": str(home), "FORETELL_MODEL": MODEL, "FORETELL_SEARCH": ENGINE}
    values |= {WORLD: addresses.get("anthropic", ""), "FORETELL_CONTACT": CONTACT}
    values |= dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
    values |= {f"FORETELL_{service.upper()}_URL": url for service, url in addresses.items()}
    for service, names in KEYS.items():
        values |= dict.fromkeys(part for name in names for part in name.split(PAIR))
        values |= dict.fromkeys(names[0].split(PAIR), KEY if service in addresses else None)
    return values


def shell_lines(environment: Mapping[str, str | None]) -> str:
    """The environment as lines for a shell.

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
    request: PracticeRequest, settings: Settings, stopped: asyncio.Event | None = None
) -> AsyncGenerator[dict[str, str | None]]:
    """The environment of a practice world that is served while in use.

    Args:
        request: What is wanted.
        settings: The user's own; runs of the practice world are stored beside theirs.
        stopped: Set when somebody asks the world to stop.
    """
    options = ServiceOptions(now=datetime.now(UTC), port=request.port, latency=request.latency)
    home = practice_home(request, settings)
    if not (home / KNOWN_MODELS).exists():
        home.mkdir(parents=True, exist_ok=True)
        write_atomically(home / KNOWN_MODELS, FREE_MODELS.encode())
    try:
        async with all_services(options, None if stopped is None else stopped.set) as addresses:
            yield practice_environment(addresses, home)
    except OSError as error:
        if error.errno != EADDRINUSE:
            raise
        raise InputError("a port is taken", column="--port", hint="name another, or none for free ones") from None


async def run_in_practice(request: PracticeRequest, settings: Settings) -> int:
    """Run the command of a request inside a practice world; what it exits with."""
    command = request.command
    program = [sys.executable, "-m", "foretell.cli.main"] if command[0] == "foretell" else [command[0]]
    async with open_practice(request, settings) as environment:
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
    return code if code >= 0 else 128 - code


def start_in_background(request: PracticeRequest, settings: Settings) -> str:
    """Start a practice world that outlives this process; the shell lines of its environment."""
    stop_practice()
    home = practice_home(request, settings)
    home.mkdir(parents=True, exist_ok=True)
    lines, log = home / "practice.env", home / "practice.log"
    lines.unlink(missing_ok=True)
    command = [sys.executable, "-m", "foretell.cli.main", "practice", "--env-file", str(lines), "--home", str(home)]
    command += ["--port", str(request.port), "--latency", str(request.latency), "--hours", str(LIFETIME_HOURS)]
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
        )
    until = time.monotonic() + START_SECONDS
    while not lines.exists():
        if process.poll() is not None or time.monotonic() > until:
            reason = log.read_text(encoding="utf-8", errors="replace").strip().removeprefix("foretell: ")
            raise InputError(reason or "the practice world did not start", hint=f"its log is {log}")
        time.sleep(0.05)
    return lines.read_text(encoding="utf-8")


def stop_practice() -> bool:
    """Stop the world in the background that this shell is in; whether there was one."""
    address = os.environ.get(WORLD)
    if not address:
        return False
    # Not through a proxy: it is on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{address}{STOP}", data=b"", timeout=10):
            return True
    except OSError:
        return False
