"""Runs that this server started. They continue without a viewer and end with the server; paid replies are kept."""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Literal

from fastapi import HTTPException

from foretell.frozen import frozen
from foretell.operations.run import carry_out
from foretell.questions.errors import InputError
from foretell.runs.runner import PreparedRun
from foretell.runs.settings import Settings

MAX_RUNS = 4
"""Maximum number of concurrent runs."""
STOP_SECONDS = 10.0
log = logging.getLogger(__name__)


@frozen
class BackgroundStatus:
    """Status of a background job of this server."""

    state: Literal["running", "ended", "stopped", "error"]
    error: str = ""
    """Why the job failed as a whole; failures of single trials are in the store."""
    since: datetime | None = None
    """When it was started or resumed; set while it is running."""


class BackgroundJob:
    """Work in its own thread with its own event loop, so that pages never wait for it."""

    def __init__(self, name: str, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        self.name = name
        self.status = BackgroundStatus(state="running", since=datetime.now(UTC))
        self._work = work
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Cancel the job; if started again, it continues where it stopped."""
        if self._loop is not None and self._task is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
            self.status = BackgroundStatus(state="ended")
        except asyncio.CancelledError:
            self.status = BackgroundStatus(state="stopped")
        except InputError as error:
            self.status = BackgroundStatus(state="error", error=str(error))
        except Exception as error:  # The page of the job shows the error, and the server continues.
            log.error("%s failed", self.name, exc_info=error)
            self.status = BackgroundStatus(state="error", error=f"{type(error).__name__}: {error}")

    async def _main(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        await self._work()


class BackgroundRuns:
    """All runs that this server started, by run id."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._runs: dict[str, BackgroundJob] = {}
        self._lock = threading.Lock()

    def start(self, prepared: PreparedRun) -> None:
        """Start or resume a run; raises a 409 error if it is already running or too many runs are."""
        run = prepared.spec.id
        self.refuse_running(run)
        with self._lock:
            running = {id for id, job in self._runs.items() if job.status.state == "running"}
            if len(running) >= MAX_RUNS:
                raise HTTPException(409, f"{MAX_RUNS} runs are running already; wait for one of them or stop it")
            self._runs[run] = BackgroundJob(f"run {run}", lambda: carry_out(prepared, self._settings, where="here"))

    def refuse_running(self, run: str) -> None:
        """Raise a 409 error if the run is running: a run is not started twice, nor changed while it is running."""
        job = self._runs.get(run)
        if job is not None and job.status.state == "running":
            raise HTTPException(409, f"run {run} is already running")

    def of(self, run: str) -> BackgroundStatus | None:
        """Return the status of a run, or None if this server did not start it."""
        job = self._runs.get(run)
        return job.status if job else None

    def stop(self, run: str) -> bool:
        """Stop a run; return False if it is not running here."""
        job = self._runs.get(run)
        if job is None or job.status.state != "running":
            return False
        job.stop()
        return True

    def close(self) -> None:
        """Stop all runs."""
        for run in list(self._runs):
            self.stop(run)
