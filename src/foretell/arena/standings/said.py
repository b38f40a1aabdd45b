"""Forecasts as columns: joined by the database into long texts, made into arrays, and kept in a file between readings.

`said` only ever grows, so a file that holds its first rows stays right; whether it does is asked of the database each
time it is used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foretell.arena.standings.kept import Kept
from foretell.evaluate.arrays import Floats, Ints
from foretell.llm.database.port import Database

PACKED = 1_000_000_000
"""Two whole numbers a and b below it travel as a·PACKED + b."""
PORTION = 100_000
"""Forecasts joined to one text: some megabytes."""
WORTH_KEEPING = 20_000
"""New forecasts below which the file is left as it is."""
_SAID = "from said where seq > ? and seq <= ?"
_OURS = " and entry in (select id from entry where arena = ?)"
# Ids, and dollars and seconds in millionths and thousandths, two to a number: half as many numbers to write and read.
_IDS = "entry * 1000000000 + moment"
_COST = "cast(round(dollars * 1000000) as {0}) * 1000000000 + cast(round(seconds * 1000) as {0})"
_JOINED = {
    False: f"""select group_concat({_IDS}), group_concat({_COST.format("integer")}),
    cast(group_concat({{0}}, '') as blob), max(trial), max(seq) {_SAID}""",
    True: f"""select string_agg(({_IDS})::text, ',' order by seq),
    string_agg(({_COST.format("bigint")})::text, ',' order by seq), string_agg({{0}}, ''::bytea order by seq),
    max(trial), max(seq) {_SAID}""",
}
"""By whether the database is a server: SQLite and PostgreSQL have no word in common for this. SQLite joins blobs byte
by byte as if they were text, whatever is in them; the length is checked all the same."""
_LENGTHS = {
    False: f"select group_concat(coalesce(length({{0}}), 0)) {_SAID}",
    True: f"select string_agg(coalesce(length({{0}}), 0)::text, ',' order by seq) {_SAID}",
}


@dataclass(frozen=True, kw_only=True)
class Said:
    """Forecasts in the order they were noted."""

    ids: Ints
    """Entry and moment of each, packed."""
    costs: Ints
    """Millionths of a dollar and thousandths of a second, packed."""
    sizes: Ints
    """Probabilities of each."""
    p: Floats
    """All of them one after the other."""
    trials: int
    """Most trials of one entry at one moment."""
    last: int
    """The largest number among them in the database."""


NOTHING = Said(
    ids=np.empty(0, np.int64),
    costs=np.empty(0, np.int64),
    sizes=np.empty(0, np.int64),
    p=np.empty(0),
    trials=1,
    last=0,
)


@dataclass(frozen=True, kw_only=True)
class SaidReader:
    """Reads the forecasts of one arena."""

    database: Database
    arena: str
    keep: Path | None = None
    """Folder in which what was read is kept; None keeps nothing."""

    def read(self, sizes: Ints) -> Said:
        """All forecasts; `sizes` are the numbers of targets by the id of a moment."""
        kept = self._kept()
        found = joined([kept, *self.after(kept.last, "p", sizes)])
        if len(found.ids) - len(kept.ids) >= WORTH_KEEPING:
            arrays = {"ids": found.ids, "costs": found.costs, "sizes": found.sizes, "p": found.p}
            self._file.save({"trials": found.trials, "last": found.last}, arrays)
        return found

    def after(self, last: int, column: str, sizes: Ints) -> list[Said]:
        """What was noted after a number, some thousands at a time."""
        end = self.database.read("select coalesce(max(seq), 0) from said")[0][0]
        sql = _JOINED[self.database.shared].format(column) + self._which
        found: list[Said] = []
        for start in range(last, end, PORTION):
            values = (start, start + PORTION, *self._whose)
            ((ids, costs, p, trial, seq),) = self.database.read(sql, values)
            if ids is None:
                continue
            at, raw = _numbers(ids), p or b""
            size = sizes[np.minimum(at % PACKED, len(sizes) - 1)]
            if 8 * size.sum() != len(raw):  # Some have no probabilities, or others than their moment has targets.
                ((lengths,),) = self.database.read(_LENGTHS[self.database.shared].format(column) + self._which, values)
                size = _numbers(lengths) // 8
            numbers = np.frombuffer(raw, "<f8")
            found.append(Said(ids=at, costs=_numbers(costs), sizes=size, p=numbers, trials=trial + 1, last=seq))
        return found

    @property
    def _alone(self) -> bool:
        return self.database.read("select count(*) from arena")[0][0] == 1

    @property
    def _which(self) -> str:
        return "" if self._alone else _OURS

    @property
    def _whose(self) -> tuple[str, ...]:
        return () if self._alone else (self.arena,)

    @property
    def _file(self) -> Kept:
        return Kept(folder=self.keep, database=self.database, arena=self.arena, part="said")

    def _kept(self) -> Said:
        """What the file holds, if the database still begins with just that."""
        found = self._file.load()
        if found is None:
            return NOTHING
        head, arrays = found
        said = Said(
            ids=arrays["ids"],
            costs=arrays["costs"],
            sizes=arrays["sizes"],
            p=arrays["p"],
            trials=head["trials"],
            last=head["last"],
        )
        return said if self._begins_with(said) else NOTHING

    def _begins_with(self, kept: Said) -> bool:
        count = f"select count(*) {_SAID}{self._which}"
        rows = self.database.read(count, (0, kept.last, *self._whose))
        ends = self.database.read("select entry, moment, p from said where seq = ?", (kept.last,))
        if rows[0][0] != len(kept.ids) or not ends:
            return False
        entry, moment, p = ends[0]
        return entry * PACKED + moment == kept.ids[-1] and kept.p[-int(kept.sizes[-1]) :].tobytes() == bytes(p)


def joined(parts: Sequence[Said]) -> Said:
    """One after the other."""
    filled = [part for part in parts if len(part.ids)] or [NOTHING]
    if len(filled) == 1:
        return filled[0]
    return Said(
        ids=np.concatenate([part.ids for part in filled]),
        costs=np.concatenate([part.costs for part in filled]),
        sizes=np.concatenate([part.sizes for part in filled]),
        p=np.concatenate([part.p for part in filled]),
        trials=max(part.trials for part in filled),
        last=max(part.last for part in filled),
    )


def _numbers(text: str) -> Ints:
    return np.fromstring(text, np.int64, sep=",")
