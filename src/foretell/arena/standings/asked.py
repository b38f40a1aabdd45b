"""The moments of an arena out of its tables; what was shown at a moment is never changed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from foretell.arena.standings.frame import Asked, Columns, asked_of
from foretell.arena.standings.kept import Kept
from foretell.arena.standings.standings import Times
from foretell.evaluate.arrays import Ints
from foretell.llm.database.port import Database

# Nearly all rows are wanted: `|| ''` keeps the database from looking up each of them in an index.
_MOMENTS = """
select id, event, taken_at, closes_at, targets, quotes from moment
where arena || '' = ? and state = 'ready' and targets is not null and taken_at is not null order by id"""
_MARK = "select count(*), coalesce(max(id), 0), coalesce(sum(id), 0) from moment where arena = ? and state = 'ready'"
_ARRAYS = ("event", "taken_at", "hours", "sizes", "quotes", "key", "place")


@dataclass(frozen=True, kw_only=True)
class AskedReader:
    """Reads the moments of one arena that everybody was shown."""

    database: Database
    arena: str
    keep: Path | None = None
    """Folder in which what was read is kept; None keeps nothing."""

    def read(self) -> tuple[Asked, Ints]:
        """The askings, and by the id of a moment its place among them: −1 where it has none, and at the end."""
        kept = Kept(folder=self.keep, database=self.database, arena=self.arena, part="asked")
        mark = [int(number) for number in self.database.read(_MARK, (self.arena,))[0]] if self.keep else []
        found = kept.load()
        if found is not None and found[0].get("mark") == mark:
            return _unpacked(*found)
        asked, by_id = self._from_rows()
        head = {"mark": mark, "events": asked.events, "keys": _lists(asked)}
        kept.save(head, {name: getattr(asked, name) for name in _ARRAYS} | {"by_id": by_id})
        return asked, by_id

    def _from_rows(self) -> tuple[Asked, Ints]:
        rows = self.database.read(_MOMENTS, (self.arena,))
        ids, event, taken_at, closes_at, targets, quotes = zip(*rows, strict=True) if rows else ((),) * 6
        parsed = _targets(targets)
        asked = asked_of(
            Columns(
                event=event,
                taken_at=times(taken_at),
                closes_at=times(closes_at),
                targets=[parsed[text] for text in targets],
                quotes=[blob or b"" for blob in quotes],
            )
        )
        by_id = np.full(max(ids, default=0) + 2, -1, np.int64)
        by_id[np.array(ids, np.int64)] = asked.place
        return asked, by_id


def times(texts: Sequence[str | None]) -> Times:
    """To the second, downwards: what was known before a moment then certainly was."""
    return np.array([text and text[:19] for text in texts], "datetime64[s]")


def _targets(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Ids by the text they are kept as; one reading for all texts."""
    found = list(dict.fromkeys(texts))
    return dict(zip(found, map(tuple, json.loads(f"[{','.join(found)}]")), strict=True))


def _lists(asked: Asked) -> list[list[str]]:
    return [[event for event, _ in asked.keys], [target for _, target in asked.keys]]


def _unpacked(head: dict[str, Any], arrays: dict[str, Any]) -> tuple[Asked, Ints]:
    events, targets = head["keys"]
    keys = tuple(zip(events, targets, strict=True))
    asked = Asked(events=tuple(head["events"]), keys=keys, **{name: arrays[name] for name in _ARRAYS})
    return asked, arrays["by_id"]
