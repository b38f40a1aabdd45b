"""Work of models on trees, requested from this server: its progress, its cost and its result."""

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from fastapi import HTTPException

from foretell.number_text import percent
from foretell.operations.requests.trees import TreeUpdateRequest
from foretell.operations.tree_edit import TreeEditResult
from foretell.operations.tree_update import update
from foretell.questions.trace import (
    CallMeter,
    Failed,
    ModelCalled,
    NodeAnalyzed,
    NodeGrounded,
    NodeSynthesized,
    TraceEvent,
)
from foretell.runs.settings import Settings
from foretell.web.background_runs import BackgroundJob, BackgroundStatus

MOST_AT_ONCE, MOST_KEPT, LINES_KEPT = 4, 50, 30
"""Maximum number of concurrent jobs, of jobs remembered, and of log lines kept per job."""


def work_title(request: TreeUpdateRequest) -> str:
    """Return a title that says what is done to which claims.

    >>> work_title(TreeUpdateRequest(tree="t", claims=("P1", "P2"))), work_title(TreeUpdateRequest(tree="t"))
    ('Update P1, P2', 'Update what is stale or failed')
    """
    if request.expand is not None:
        return f"Break down {request.expand}"
    return f"Update {', '.join(request.claims) or 'what is stale or failed'}"


@dataclass(kw_only=True)
class TreeWork:
    """A job for models on a tree."""

    id: str
    tree: str
    """Name of the tree."""
    request: TreeUpdateRequest
    began: float
    meter: CallMeter = field(default_factory=CallMeter)
    log_lines: deque[str] = field(default_factory=lambda: deque[str](maxlen=LINES_KEPT))
    result: TreeEditResult | None = None
    job: BackgroundJob | None = None

    @property
    def status(self) -> BackgroundStatus:
        """Status of the job."""
        return self.job.status if self.job is not None else BackgroundStatus(state="running")

    def on_event(self, event: TraceEvent) -> None:
        """Update the totals and the log with an event."""
        if isinstance(event, ModelCalled):
            self.meter.count(event)
        elif line := _line(event):
            self.log_lines.append(line)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        result, cost = self.result, self.meter.cost
        return {
            "work": self.id,
            "title": work_title(self.request),
            "tree": self.tree,
            "claims": list(self.request.claims or filter(None, [self.request.expand])),
            "state": self.status.state,
            "error": self.status.error,
            "calls": cost.calls,
            "dollars": None if cost.unpriced else cost.dollars,
            "log": list(self.log_lines),
            "result": None if result is None else {**result.to_dict(), "warnings": list(result.warnings)},
        }


def _line(event: TraceEvent) -> str:
    match event:
        case NodeGrounded():
            result = f"{percent(event.p)}" if event.p is not None else f"failed: {event.error}"
            return f"{event.node} researched by {event.grounder}: {result}"
        case NodeAnalyzed():
            return f"{event.node} broken down into {', '.join(event.added) or 'nothing'}"
        case NodeSynthesized():
            return f"{event.node} combined: {percent(event.p)}"
        case Failed():
            return f"failed: {event.error}"
        case _:
            return ""


class BackgroundTreeWork:
    """All jobs on trees that were requested from this server, by job id."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._works: dict[str, TreeWork] = {}
        self._lock = threading.Lock()

    def start(self, tree: str, request: TreeUpdateRequest) -> TreeWork:
        """Start a job; raises a 409 error if too many are running."""
        work = TreeWork(id=secrets.token_hex(6), tree=tree, request=request, began=time.monotonic())
        with self._lock:
            running = [job for job in self._works.values() if job.status.state == "running"]
            if len(running) >= MOST_AT_ONCE:
                raise HTTPException(409, f"models work on {MOST_AT_ONCE} trees already; wait for one or stop it")
            for old in list(self._works)[: max(0, len(self._works) - MOST_KEPT)]:
                if self._works[old] not in running:
                    del self._works[old]
            self._works[work.id] = work
            work.job = BackgroundJob(f"update {tree}", self._task(work))
        return work

    def _task(self, work: TreeWork) -> Callable[[], Coroutine[Any, Any, object]]:
        async def task() -> None:
            work.result = await update(work.request, self._settings, watch=work.on_event)

        return task

    def of(self, id: str) -> TreeWork:
        """Return the job with this id; raises a 404 error if there is none."""
        if id not in self._works:
            raise HTTPException(404, "there is no such job; finished work is in the versions of the tree")
        return self._works[id]

    def stop(self, id: str) -> TreeWork:
        """Stop a job: nothing is written to the tree, and every reply received is kept."""
        work = self.of(id)
        if work.job is not None and work.status.state == "running":
            work.job.stop()
        return work

    def close(self) -> None:
        """Stop all jobs."""
        for id in list(self._works):
            self.stop(id)
