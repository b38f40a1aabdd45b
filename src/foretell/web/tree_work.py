"""Work of models on trees, requested from this server: its progress, its cost and its result."""

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fastapi import HTTPException

from foretell.operations.requests.trees import (
    TreeExpandRequest,
    TreeGroundRequest,
    TreeResearchRequest,
    TreeResynthesizeRequest,
)
from foretell.operations.tree_edit import TreeEditResult
from foretell.operations.tree_research import expand, ground, resynthesize_judgements
from foretell.questions.trace import Failed, ModelCalled, NodeAnalyzed, NodeGrounded, NodeSynthesized, TraceEvent
from foretell.runs.settings import Settings
from foretell.web.background_runs import BackgroundJob, BackgroundStatus
from foretell.web.formatting import percent

TreeWorkKind = Literal["ground", "expand", "resynthesize"]
WORK_REQUESTS: Mapping[TreeWorkKind, type[TreeResearchRequest]] = {
    "ground": TreeGroundRequest,
    "expand": TreeExpandRequest,
    "resynthesize": TreeResynthesizeRequest,
}
MOST_AT_ONCE, MOST_KEPT, LINES_KEPT = 4, 50, 30
"""Maximum number of concurrent jobs, of jobs remembered, and of log lines kept per job."""


def work_title(what: TreeWorkKind, claims: Sequence[str]) -> str:
    """Return a title that says what is done to which claims.

    >>> work_title("ground", ["P1", "P2"]), work_title("resynthesize", ())
    ('Ground P1, P2 again', 'Update stale judgements')
    """
    named = ", ".join(claims)
    titles = {"ground": f"Ground {named or 'what is stale'} again", "expand": f"Break down {named}"}
    return titles.get(what, f"Update the judgement of {named}" if named else "Update stale judgements")


async def work_on_tree(
    request: TreeResearchRequest, settings: Settings, watch: Callable[[TraceEvent], None] = lambda _: None
) -> TreeEditResult:
    """Run the operation that a request asks for, the same as the commands do."""
    match request:
        case TreeGroundRequest():
            return await ground(request, settings, watch=watch)
        case TreeExpandRequest():
            return await expand(request, settings, watch=watch)
        case TreeResynthesizeRequest():
            return await resynthesize_judgements(request, settings, watch=watch)


@dataclass(kw_only=True)
class TreeWork:
    """A job for models on a tree."""

    id: str
    tree: str
    """Name of the tree."""
    what: TreeWorkKind
    claims: tuple[str, ...]
    began: float
    calls: int = 0
    dollars: float = 0.0
    unpriced: int = 0
    """Number of calls whose price is not known."""
    told: deque[str] = field(default_factory=lambda: deque[str](maxlen=LINES_KEPT))
    result: TreeEditResult | None = None
    job: BackgroundJob | None = None

    @property
    def status(self) -> BackgroundStatus:
        """Status of the job."""
        return self.job.status if self.job is not None else BackgroundStatus(state="running")

    def hear(self, event: TraceEvent) -> None:
        """Update the totals and the log with an event."""
        if isinstance(event, ModelCalled):
            self.calls += 1
            self.dollars += 0.0 if event.reused else event.dollars or 0.0
            self.unpriced += event.dollars is None
        elif line := _line(event):
            self.told.append(line)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        result = self.result
        return {
            "work": self.id,
            "title": work_title(self.what, self.claims),
            "tree": self.tree,
            "what": self.what,
            "claims": list(self.claims),
            "state": self.status.state,
            "error": self.status.error,
            "calls": self.calls,
            "dollars": None if self.unpriced else self.dollars,
            "told": list(self.told),
            "result": None if result is None else {**result.to_dict(), "warnings": list(result.warnings)},
        }


def _line(event: TraceEvent) -> str:
    match event:
        case NodeGrounded():
            found = f"{percent(event.p)}" if event.p is not None else f"failed: {event.error}"
            return f"{event.node} examined by {event.grounder}: {found}"
        case NodeAnalyzed():
            return f"{event.node} broken down into {', '.join(event.added) or 'nothing'}"
        case NodeSynthesized():
            return f"{event.node} put together: {percent(event.p)}"
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

    def start(self, tree: str, what: TreeWorkKind, request: TreeResearchRequest) -> TreeWork:
        """Start a job; raises a 409 error if too many are running."""
        named = (request.claim,) if isinstance(request, TreeExpandRequest) else request.claims
        work = TreeWork(id=secrets.token_hex(6), tree=tree, what=what, claims=named, began=time.monotonic())
        with self._lock:
            going = [one for one in self._works.values() if one.status.state == "running"]
            if len(going) >= MOST_AT_ONCE:
                raise HTTPException(409, f"models work on {MOST_AT_ONCE} trees already; wait for one or stop it")
            for old in list(self._works)[: max(0, len(self._works) - MOST_KEPT)]:
                if self._works[old] not in going:
                    del self._works[old]
            self._works[work.id] = work
            work.job = BackgroundJob(f"{what} {tree}", self._task(work, request))
        return work

    def _task(self, work: TreeWork, request: TreeResearchRequest) -> Callable[[], Coroutine[Any, Any, object]]:
        async def task() -> None:
            work.result = await work_on_tree(request, self._settings, work.hear)

        return task

    def of(self, id: str) -> TreeWork:
        """Return the job with this id; raises a 404 error if there is none."""
        if id not in self._works:
            raise HTTPException(404, "this server knows of no such work; what it finished is in the tree's versions")
        return self._works[id]

    def stop(self, id: str) -> TreeWork:
        """Stop a job: nothing is written to the tree, and every reply received is kept."""
        found = self.of(id)
        if found.job is not None and found.status.state == "running":
            found.job.stop()
        return found

    def close(self) -> None:
        """Stop all jobs."""
        for id in list(self._works):
            self.stop(id)
