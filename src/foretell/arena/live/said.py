"""Forecasts as bare numbers, for standings that are read at once; every one of them stands in the store as well."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from foretell.arena.live.moments import packed
from foretell.llm.database.port import Database, Row, Statements
from foretell.questions.codec import from_json
from foretell.questions.forecast import Forecast

Which = tuple[int, int, int]
"""Entry, moment and trial."""
_SAY = """
insert into said (entry, moment, trial, p, stated, at, dollars, seconds) values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict do nothing"""
_UNSAID = """
select m.id, m.targets, e.id, c.trial, c.forecast
from moment m join entry e on e.arena = m.arena
join cell c on c.run = e.run and c.question = m.event and c.due = m.taken_at
where m.arena = ? and m.state = 'ready' and m.over = 0 and c.forecast is not null
    and not exists (select 1 from said s where s.moment = m.id and s.entry = e.id and s.trial = c.trial)"""
_FOR_READY = """
select s.moment, s.entry, s.trial from moment m join said s on s.moment = m.id
where m.arena = ? and m.state = 'ready' and m.over = 0"""
_ADD = """
insert into tally values (?, 1, ?, ?) on conflict (entry) do update set forecasts = tally.forecasts + 1,
    dollars = tally.dollars + excluded.dollars, seconds = tally.seconds + excluded.seconds"""
_SPENT = """
select t.entry, t.forecasts, t.dollars, t.seconds from tally t join entry e on e.id = t.entry where e.arena = ?"""


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What one entry has said so far."""

    forecasts: int = 0
    dollars: float = 0.0
    seconds: float = 0.0


class SaidRows:
    """Those of one arena."""

    def __init__(self, database: Database, arena: str) -> None:
        self._db = database
        self._arena = arena

    def say(self, which: Which, targets: Sequence[str], forecast: Forecast, at: datetime) -> None:
        """Note a forecast; the same again changes nothing."""
        self._note([_row(which, targets, forecast, at)])

    def catch_up(self, at: datetime) -> int:
        """Note what cells say about moments that are not over and nobody noted; how many."""
        rows = [
            _row((entry, moment, trial), json.loads(targets), from_json(body, Forecast), at)
            for moment, targets, entry, trial, body in self._db.read(_UNSAID, (self._arena,))
        ]
        if rows:
            self._note(rows)
        return len(rows)

    def _note(self, rows: Sequence[Row]) -> None:
        def work(statements: Statements) -> None:
            for row in rows:
                if statements.write(_SAY, row):
                    statements.write(_ADD, (row[0], *row[-2:]))

        # One after the other: whoever reads on from the last number it saw must not miss a smaller one.
        self._db.together(work, alone=f"said/{self._arena}")

    def for_ready(self) -> set[tuple[int, int, int]]:
        """Moment, entry and trial of what has been said about moments that still wait for forecasts."""
        return {(moment, entry, trial) for moment, entry, trial in self._db.read(_FOR_READY, (self._arena,))}

    def tallies(self) -> dict[int, Tally]:
        """By entry."""
        return {
            entry: Tally(forecasts=n, dollars=dollars, seconds=seconds)
            for entry, n, dollars, seconds in self._db.read(_SPENT, (self._arena,))
        }


def _row(which: Which, targets: Sequence[str], forecast: Forecast, at: datetime) -> Row:
    stated = None if forecast.stated is None else packed([forecast.stated[target] for target in targets])
    p = packed([forecast.p[target] for target in targets])
    return (*which, p, stated, at.isoformat(), forecast.usage.dollars, forecast.usage.seconds)
