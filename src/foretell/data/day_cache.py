"""Responses that are requested once a day: by all runs and processes of this machine, and after a killed one.

A response is stored as it arrived, so whoever reads it cuts it off at the time of asking like a new one.
"""

import asyncio
import hashlib
import json
import shutil
import zlib
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from foretell.data.files import write_atomically
from foretell.questions.as_of import Clock
from foretell.questions.file_lock import LockHeld, locked

FOLDER = "day_cache"
POLL_SECONDS = 0.05
"""Seconds between checks whether another process has received the response."""

_read_now: ContextVar[list[Path] | None] = ContextVar("_read_now", default=None)
"""The files that the current reader has received."""


class DayCache:
    """A folder of responses for each day, one file each. Folders of earlier days are deleted."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._day = ""
        self._flying: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def once(
        self, request: str, send: Callable[[], Awaitable[tuple[dict[str, Any], bytes]]]
    ) -> tuple[dict[str, Any], bytes]:
        """Return today's response to a request, as facts and body: the stored one, or that of `send`.

        An error of `send` is raised and not stored. If nothing can be stored, every request is sent.
        """
        path = self._today() / hashlib.sha256(request.encode()).hexdigest()
        if (read_now := _read_now.get()) is not None:
            read_now.append(path)
        async with self._flying[path], _alone(path.with_suffix(".lock")):
            if (stored := _stored(path)) is not None:
                return stored
            facts, body = await send()
            with suppress(OSError):
                write_atomically(path, zlib.compress(json.dumps(facts).encode() + b"\n" + body, 1), private=True)
            return facts, body

    @contextmanager
    def discarding(self, problem: type[Exception]) -> Generator[None]:
        """Discard the responses that were read within, if they lead to this problem: they may be better next time."""
        token = _read_now.set(read_now := [])
        try:
            yield
        except problem:
            for path in read_now:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
            raise
        finally:
            _read_now.reset(token)

    def _today(self) -> Path:
        """Return the folder of today, deleting those of earlier days when it is first used."""
        day = self._clock().date().isoformat()
        if day != self._day:
            self._day = day
            self._flying.clear()
            with suppress(OSError):
                for folder in self._folder.iterdir():
                    if folder.name < day:
                        shutil.rmtree(folder, ignore_errors=True)
        return self._folder / day


def _stored(path: Path) -> tuple[dict[str, Any], bytes] | None:
    """Return a stored response; None if there is none or its file is damaged."""
    try:
        facts, _, body = zlib.decompress(path.read_bytes()).partition(b"\n")
        return json.loads(facts), body
    except (OSError, ValueError, zlib.error):
        return None


@asynccontextmanager
async def _alone(path: Path) -> AsyncGenerator[None]:
    """Hold the lock of a file; without it if the folder cannot be written."""
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(locked(path, wait=False))
            except LockHeld:
                await asyncio.sleep(POLL_SECONDS)
                continue
            except OSError:
                pass
            break
        yield
