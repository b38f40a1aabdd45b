"""Standings out of the tables of an arena, in a few statements whatever the number of forecasts.

A year of an arena holds more than half a million forecasts. As rows they take longer to read than all scores take to
compute, so the database joins them to a few long texts, and arrays are made of those.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from foretell.arena.standings.asked import AskedReader, times
from foretell.arena.standings.frame import Kinds, Outcomes, frame_of
from foretell.arena.standings.gathering import Costs, Gathering
from foretell.arena.standings.said import SaidReader, joined
from foretell.arena.standings.standings import Entry, Standings
from foretell.llm.database.port import Database, Row
from foretell.questions.problems import InputError

_ENTRIES = "select id, name, run from entry where arena = ? order by id"
_LISTED = "select event, platform, category from listed where arena = ? and decision = 'selected'"
_OUTCOMES = "select event, target, outcome, coalesce(resolved_at, told_at) from outcome where arena = ?"


def from_book(database: Database, arena: str, *, stated: bool = False, keep: Path | None = None) -> Standings:
    """All standings of an arena; with `stated`, also what was said before it was made to fit.

    `keep` is a folder for what was read, so that the next reading asks the database only for what is new.
    """
    entries = database.read(_ENTRIES, (arena,))
    if not entries and not database.read("select 1 from arena where name = ?", (arena,)):
        known = ", ".join(name for (name,) in database.read("select name from arena order by name"))
        raise InputError(f"there is no arena {arena!r} in {database.place}", hint=f"there are: {known or 'none'}")
    asked, place = AskedReader(database=database, arena=arena, keep=keep).read()
    sizes = np.append(asked.sizes, 0)[place]
    reader = SaidReader(database=database, arena=arena, keep=keep)
    with ThreadPoolExecutor(1) as aside:
        # The database joins forecasts while we look up the outcomes.
        reading = aside.submit(reader.read, sizes)
        frame = frame_of(arena, asked, _kinds(database, arena), _known(database, arena))
        said = reading.result()
    gathering = Gathering(frame=frame, place=place, entry={row[0]: code for code, row in enumerate(entries)})
    p = gathering.table(said)
    told = gathering.table(joined(reader.after(0, "stated", sizes))) if stated else None
    return replace(
        frame,
        entries=_named(entries, gathering.costs(said)),
        p=p,
        stated=None if told is None else np.where(np.isfinite(told), told, p),
    )


def _kinds(database: Database, arena: str) -> Kinds:
    listed = database.read(_LISTED, (arena,))
    return Kinds(
        platform={event: platform for event, platform, _ in listed},
        category={event: category for event, _, category in listed},
    )


def _known(database: Database, arena: str) -> Outcomes:
    rows = database.read(_OUTCOMES, (arena,))
    return Outcomes(
        place={(row[0], row[1]): i for i, row in enumerate(rows)},
        outcome=np.array([row[2] for row in rows], np.float64),
        known_at=times([row[3] for row in rows]),
    )


def _named(entries: Sequence[Row], costs: Costs) -> tuple[Entry, ...]:
    """Names as written; where an entry's set-up was changed under its name, each run is an entry of its own."""
    names = [name for _, name, _ in entries]
    return tuple(
        Entry(
            name=name if names.count(name) == 1 else f"{name} ({run[:6]})",
            said=int(costs.said[i]),
            dollars=float(costs.dollars[i]),
            seconds=float(costs.seconds[i]),
        )
        for i, (_, name, run) in enumerate(entries)
    )
