"""Runs that this server started. They go on when nobody looks, and end with the server; what they paid for is kept."""

import asyncio
import logging
import threading
from dataclasses import dataclass
from typing import Literal

from foretell.questions.errors import InputError
from foretell.runs.runner import PreparedRun, execute_run
from foretell.runs.settings import Settings

MAX_RUNS = 4
"""Runs at once."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class BackgroundStatus:
    """How a run of this server stands."""

    state: Literal["running", "ended", "stopped", "broken"]
    error: str = ""
    """Why it broke as a whole; what happened to single cells is in the store."""


class RunNotStarted(Exception):
    """A run that cannot be started now."""


class BackgroundRun:
    """One run in a thread and on a loop of its own, so that pages never wait for it."""

    def __init__(self, prepared: PreparedRun, settings: Settings, concurrency: int) -> None:
        self._prepared = prepared
        self._concurrency = concurrency
        self._settings = settings
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None
        self._now = BackgroundStatus(state="running")
        self._thread = threading.Thread(target=self._run, name=f"run {prepared.spec.id}", daemon=True)

    @property
    def now(self) -> BackgroundStatus:
        """How it stands."""
        return self._now

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, patience: float = 10.0) -> None:
        """End it where it stands; started again it goes on from there."""
        loop, task = self._loop, self._task
        if loop is not None and task is not None and self._thread.is_alive():
            loop.call_soon_threadsafe(task.cancel)
        self._thread.join(patience)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
            self._now = BackgroundStatus(state="ended")
        except asyncio.CancelledError:
            self._now = BackgroundStatus(state="stopped")
        except InputError as error:
            self._now = BackgroundStatus(state="broken", error=str(error))
        except Exception as error:  # the boundary of a run: it is told on its page, and the server goes on
            log.error("run %s broke", self._prepared.spec.id, exc_info=error)
            self._now = BackgroundStatus(state="broken", error=f"{type(error).__name__}: {error}")

    async def _main(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        await execute_run(self._prepared, self._settings, concurrency=self._concurrency)


class BackgroundRuns:
    """All runs that this server started, by their id."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._jobs: dict[str, BackgroundRun] = {}
        self._lock = threading.Lock()

    def start(self, prepared: PreparedRun, *, concurrency: int = 50) -> None:
        """Begin a run, or go on with it."""
        with self._lock:
            going = {run for run, job in self._jobs.items() if job.now.state == "running"}
            if prepared.spec.id in going:
                raise RunNotStarted(f"run {prepared.spec.id} is going on already")
            if len(going) >= MAX_RUNS:
                raise RunNotStarted(f"{MAX_RUNS} runs are going on; wait for one of them or stop it")
            job = self._jobs[prepared.spec.id] = BackgroundRun(prepared, self._settings, concurrency)
            job.start()

    def of(self, run: str) -> BackgroundStatus | None:
        """How a run stands, if this server started it."""
        job = self._jobs.get(run)
        return job.now if job else None

    def stop(self, run: str) -> bool:
        """End a run; False where it does not go on here."""
        job = self._jobs.get(run)
        if job is None or job.now.state != "running":
            return False
        job.stop()
        return True

    def close(self) -> None:
        """End all of them."""
        for run in list(self._jobs):
            self.stop(run)
