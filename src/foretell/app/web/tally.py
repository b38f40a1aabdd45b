"""Running sums over the events of runs: what they cost and how their trials ended; nothing is read twice."""

import json
import threading
from collections import Counter
from dataclasses import dataclass, field

from foretell.app.web.views.trace import Spending
from foretell.arena.store import Store
from foretell.questions.event import ModelCalled

# Written so that no index on the run is used: what is new stands at the end of the table, and is read from there.
_NEW = """
select kind, body from event
where id > ? and id <= ? and run || '' = ? and kind in ('ModelCalled', 'ForecastMade') order by id"""


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What was counted up to an event."""

    upto: int = 0
    spending: Spending = field(default_factory=Spending)
    endings: Counter[str] = field(default_factory=Counter[str])
    """How often trials ended in which way."""


class Tallies:
    """One tally per run that somebody looked at."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tallies: dict[str, Tally] = {}
        self._lock = threading.Lock()

    def of(self, run: str) -> Tally:
        """The sums as they stand now."""
        with self._lock:
            newest = self._store.last_event()
            before = self._tallies.get(run, Tally())
            if before.upto > newest:  # A cell was begun anew and its events are gone.
                before = Tally()
            now = before if before.upto == newest else self._more(run, before, newest)
            self._tallies[run] = now
        return now

    def _more(self, run: str, before: Tally, newest: int) -> Tally:
        rows = self._store.database.read(_NEW, (before.upto, newest, run))
        calls = [ModelCalled(**json.loads(body)) for kind, body in rows if kind == "ModelCalled"]
        ended = Counter(str(json.loads(body).get("how", "")) for kind, body in rows if kind == "ForecastMade")
        return Tally(upto=newest, spending=before.spending + Spending.of(calls), endings=before.endings + ended)
