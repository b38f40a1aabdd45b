"""What all requests share: settings, one store of runs, who may do what, and the runs this server started."""

import threading
import time
from typing import Annotated

from fastapi import Depends, HTTPException, Request

from foretell.app.settings import Settings
from foretell.app.web.background import Jobs
from foretell.app.web.pace import Pace
from foretell.app.web.security import Access
from foretell.app.web.tally import Tallies
from foretell.app.web.views.arena import Boards
from foretell.app.web.views.run import Watched
from foretell.app.web.views.runs import cells_each, run_line
from foretell.arena.store import RunRow, Store

ENDINGS = 20
"""Ways in which trials end that are told apart."""


class Serving:
    """Made once per application. The store is safe for many threads: routes that read it are plain functions."""

    def __init__(self, *, settings: Settings, access: Access) -> None:
        self.settings = settings
        self.access = access
        self.store = Store(settings.store)
        self.jobs = Jobs(settings)
        self.boards = Boards(self.store, settings.home / "standings")
        self.leaving = threading.Event()
        """Set when the server is about to end: whoever listens lets go."""
        self._pace = Pace()
        self._tallies = Tallies(self.store)

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

    def watched(self, row: RunRow) -> Watched:
        """What was seen of a run besides what its store says."""
        line = run_line(self.store, row)
        left = self._pace.left(row.id, done=line.done + line.failed, total=line.cells, now=time.monotonic())
        tally = self._tallies.of(row.id)
        endings = dict(tally.endings.most_common(ENDINGS))
        return Watched(spending=tally.spending, endings=endings, seconds_left=left, background=self.jobs.of(row.id))

    def over(self, run: str) -> bool:
        """Whether nothing more will happen in a run: every cell has ended, or it stood still when we ended it."""
        row = self.store.run(run)
        if row is None:
            return True
        background = self.jobs.of(run)
        if background is not None:
            return background.state != "running"
        return run_line(self.store, row).finished

    def question_over(self, run: str, question: str) -> bool:
        """Whether nothing more will happen to one question of a run."""
        row = self.store.run(run)
        if row is None:
            return True
        counted = "select count(*) from {} where run = ? and {} = ?"
        ended = self.store.database.read(counted.format("cell", "question"), (run, question))[0][0]
        asked = self.store.database.read(counted.format("question", "id"), (run, question))[0][0]
        return ended >= asked * cells_each(row.spec) or self.over(run)


def _serving(request: Request) -> Serving:
    return request.app.state.serving


Here = Annotated[Serving, Depends(_serving)]
"""Parameter of every route that needs the store or the settings."""
