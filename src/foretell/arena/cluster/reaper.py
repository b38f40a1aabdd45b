"""Cells of workers that are gone are put back into the queue by those who live."""

import logging
from collections.abc import Sequence

from foretell.arena.cluster.engine import CellQueue, Queued
from foretell.arena.store import Store
from foretell.llm.database.port import Statements
from foretell.llm.database.session_life import SessionLife
from foretell.questions.forecast import Failure

MOST = 5
"""How often a cell is taken over before it counts as a failure: it may be what its workers die of."""
TABLES = ("create table takeover (workflow text primary key, times integer not null);",)
_COUNT = """
insert into takeover values (?, 1) on conflict (workflow) do update set times = takeover.times + 1"""

log = logging.getLogger(__name__)


def executor_name(life: int) -> str:
    """A worker as the queue knows it."""
    return f"{life:016x}"


class Reaper:
    """Looks who holds cells and is not there any more. Calls wait for the server; any number may look."""

    def __init__(self, queue: CellQueue, store: Store, life: SessionLife) -> None:
        self._queue = queue
        self._store = store
        self._life = life
        store.database.migrate("cluster", TABLES)

    def sweep(self) -> list[Queued]:
        """Put back what the dead hold; what the living do."""
        held = self._queue.held()
        living = {executor_name(id) for id in self._life.living()}
        gone = {queued.executor for queued in held} - living
        if gone:
            self.put_back(sorted(gone), "the worker that had it is gone")
        return [queued for queued in held if queued.executor in living]

    def put_back(self, executors: Sequence[str], why: str, *, counted: bool = True) -> int:
        """Put back what these hold; what was taken over too often becomes a failure."""

        def work(statements: Statements) -> int:
            # Alone: a second reaper with an old list would take cells from those who have them now.
            lost = self._queue.held(executors)
            spent = [queued for queued in lost if counted and _times(statements, queued) > MOST]
            for queued in spent:
                self._fail(queued, why)
            self._queue.drop(spent)
            self._queue.put_back([queued for queued in lost if queued not in spent])
            return len(lost)

        found = self._store.database.together(work, alone="reaper")
        if found:
            log.warning("%d cells are queued again: %s", found, why)
        return found

    def _fail(self, queued: Queued, why: str) -> None:
        question = self._store.question(queued.key)
        if question is not None and not self._store.answered(queued.key):
            error = f"given up after {MOST} takeovers: {why}"
            failure = Failure(
                question_id=question.id,
                forecaster="cluster",
                as_of=question.as_of,
                trial=queued.key.trial,
                error=error,
            )
            self._store.finish_cell(queued.key, failure)


def _times(statements: Statements, queued: Queued) -> int:
    statements.write(_COUNT, (queued.id,))
    return statements.read("select times from takeover where workflow = ?", (queued.id,))[0][0]
