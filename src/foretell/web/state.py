"""What all requests share: settings, one store of runs, who may do what, and the runs this server started."""

import json
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, HTTPException, Request

from foretell.questions.trace import ModelCalled
from foretell.runs.settings import Settings
from foretell.runs.store import RunRow, RunStore
from foretell.web.background_runs import BackgroundRuns
from foretell.web.security import AccessRules
from foretell.web.views.arena import LeaderboardCache
from foretell.web.views.runs import RunActivity, cells_each, run_row_view
from foretell.web.views.trace import SpendingView

# How fast a run goes, from what was seen of it: the store keeps no clock times.

WINDOW = 600.0
"""Seconds that are looked back on."""
FEWEST = 3.0
"""Seconds that must have passed before a guess is made."""


class RunSpeed:
    """Sightings of how many cells of each run were done, and when."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[tuple[float, int]]] = {}
        self._lock = threading.Lock()

    def left(self, run: str, *, done: int, total: int, now: float) -> float | None:
        """Seconds until the run is finished at the pace of the last minutes; None where that is not known yet.

        >>> pace = RunSpeed()
        >>> pace.left("r", done=0, total=10, now=0.0), pace.left("r", done=2, total=10, now=20.0)
        (None, 80.0)
        """
        with self._lock:
            seen = self._seen.setdefault(run, deque())
            if not seen or seen[-1][1] != done:
                seen.append((now, done))
            while len(seen) > 2 and now - seen[0][0] > WINDOW:
                seen.popleft()
            began, at_first = seen[0]
        if done >= total:
            return 0.0
        gained, passed = done - at_first, now - began
        return (total - done) * passed / gained if gained > 0 and passed >= FEWEST else None


# Running sums over the events of runs: what they cost and how their trials ended; nothing is read twice.

# Written so that no index on the run is used: what is new stands at the end of the table, and is read from there.
_NEW = """
select kind, body from event
where id > ? and id <= ? and run || '' = ? and kind in ('ModelCalled', 'ForecastMade') order by id"""


@dataclass(frozen=True, kw_only=True)
class RunTotals:
    """What was counted up to an event."""

    upto: int = 0
    spending: SpendingView = field(default_factory=SpendingView)
    endings: Counter[str] = field(default_factory=Counter[str])
    """How often trials ended in which way."""


class RunTotalsCache:
    """One tally per run that somebody looked at."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._tallies: dict[str, RunTotals] = {}
        self._lock = threading.Lock()

    def of(self, run: str) -> RunTotals:
        """The sums as they stand now."""
        with self._lock:
            newest = self._store.last_event()
            before = self._tallies.get(run, RunTotals())
            if before.upto > newest:  # A cell was begun anew and its events are gone.
                before = RunTotals()
            now = before if before.upto == newest else self._more(run, before, newest)
            self._tallies[run] = now
        return now

    def _more(self, run: str, before: RunTotals, newest: int) -> RunTotals:
        rows = self._store.database.read(_NEW, (before.upto, newest, run))
        calls = [ModelCalled(**json.loads(body)) for kind, body in rows if kind == "ModelCalled"]
        ended = Counter(str(json.loads(body).get("how", "")) for kind, body in rows if kind == "ForecastMade")
        return RunTotals(upto=newest, spending=before.spending + SpendingView.of(calls), endings=before.endings + ended)


ENDINGS = 20
"""Ways in which trials end that are told apart."""


class WebState:
    """Made once per application. The store is safe for many threads: routes that read it are plain functions."""

    def __init__(self, *, settings: Settings, access: AccessRules) -> None:
        self.settings = settings
        self.access = access
        self.store = RunStore(settings.store)
        self.jobs = BackgroundRuns(settings)
        self.boards = LeaderboardCache(self.store, settings.home / "standings")
        self.leaving = threading.Event()
        """Set when the server is about to end: whoever listens lets go."""
        self._pace = RunSpeed()
        self._tallies = RunTotalsCache(self.store)

    def close(self) -> None:
        """End what was started and let go of everything."""
        self.jobs.close()
        self.store.close()

    def run(self, start: str) -> RunRow:
        """The run whose id is that, or begins so if only one does."""
        found = self.store.run(start)
        if found is None and len(start) >= 4:
            near = [row for row in self.store.runs() if row.id.startswith(start)]
            found = near[0] if len(near) == 1 else None
        if found is None:
            raise HTTPException(404, f"there is no run {start[:80]!r}")
        return found

    def watched(self, row: RunRow) -> RunActivity:
        """What was seen of a run besides what its store says."""
        line = run_row_view(self.store, row)
        left = self._pace.left(row.id, done=line.done + line.failed, total=line.cells, now=time.monotonic())
        tally = self._tallies.of(row.id)
        endings = dict(tally.endings.most_common(ENDINGS))
        return RunActivity(spending=tally.spending, endings=endings, seconds_left=left, background=self.jobs.of(row.id))

    def over(self, run: str) -> bool:
        """Whether nothing more will happen in a run: every cell has ended, or it stood still when we ended it."""
        row = self.store.run(run)
        if row is None:
            return True
        background = self.jobs.of(run)
        if background is not None:
            return background.state != "running"
        return run_row_view(self.store, row).finished

    def question_over(self, run: str, question: str) -> bool:
        """Whether nothing more will happen to one question of a run."""
        row = self.store.run(run)
        if row is None:
            return True
        counted = "select count(*) from {} where run = ? and {} = ?"
        ended = self.store.database.read(counted.format("cell", "question"), (run, question))[0][0]
        asked = self.store.database.read(counted.format("question", "id"), (run, question))[0][0]
        return ended >= asked * cells_each(row.spec) or self.over(run)


def _state_of(request: Request) -> WebState:
    return request.app.state.serving


CurrentState = Annotated[WebState, Depends(_state_of)]
"""Parameter of every route that needs the store or the settings."""
