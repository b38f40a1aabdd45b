"""Check the databases of the home, set aside rows that are not what was stored, and compute lost answers again."""

import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from foretell.arena.store import MIGRATIONS as ARENA_TABLES
from foretell.arena.store import SCHEMA_NAME
from foretell.data.pace import PRACTICE_TABLES, STATE_FILE
from foretell.models.database.integrity import (
    file_problems,
    only_indexes,
    rebuild_indexes,
    renamed_columns,
    schema_versions,
    text_or_bytes,
    unreadable_values,
)
from foretell.models.database.interface import SqlRow
from foretell.models.database.liveness import FileLiveness
from foretell.models.database.sqlite import open_read_only
from foretell.models.journal import JOURNAL_TABLES, Journal, entry_fault
from foretell.models.ledger import ACCOUNTS_OF_RUNS
from foretell.operations.run import replay_into, stored_run
from foretell.outgoing.limiter import LIMIT_TABLES
from foretell.questions.forecast import Forecast
from foretell.runs.runner import asks_models
from foretell.runs.settings import Settings
from foretell.runs.store import CELL_COLUMNS, ROW_READERS, UNREADABLE, CellKey, RunStore, answer_fault, cells_of
from foretell.runs.store import MIGRATIONS as STORE_TABLES

PARTS = {
    "store": STORE_TABLES,
    "journal": JOURNAL_TABLES,
    SCHEMA_NAME: ARENA_TABLES,
    "limits": LIMIT_TABLES,
    "practice": PRACTICE_TABLES,
}
KNOWN_PARTS = {part: len(scripts) for part, scripts in PARTS.items()}
"""How many migrations of each part this version knows."""
LIMITS = "rate limits of services"
CHECKSUMMED = ("cell", "kept")
"""Tables of which every row has a checksum."""


@dataclass(frozen=True, kw_only=True)
class HomeFile:
    """A database in the home."""

    path: Path
    what: str
    part: str = ""
    """The part whose migrations its version counts."""
    lost: str = ""
    """What it means to lose it."""


def home_files(settings: Settings) -> list[HomeFile]:
    """The databases that exist."""
    home = settings.home
    files = [
        HomeFile(path=home / STATE_FILE, what=LIMITS, lost="the rate limits of services start anew"),
        HomeFile(path=settings.corpus, what="corpus", lost="add its documents again"),
    ]
    if settings.database is None:
        journal = "replies are requested, and paid for, again when they are needed"
        runs = "run the same specs again: every reply comes from the journal, free of charge"
        files[:0] = [
            HomeFile(path=home / "journal.db", what="journal", part="journal", lost=journal),
            HomeFile(path=home / "runs.db", what="runs", part="store", lost=runs),
        ]
    return [file for file in files if file.path.is_file()]


def newer_parts(file: HomeFile) -> list[str]:
    """Parts of a file that a newer version wrote."""
    found = schema_versions(file.path)
    return [
        f"{part or file.part} version {number}, this one knows {KNOWN_PARTS[part or file.part]}"
        for part, number in found.items()
        if number > KNOWN_PARTS.get(part or file.part, number)
    ]


def file_faults(file: HomeFile) -> tuple[str, ...]:
    """What is wrong with a file as such. An empty file is fine: it is initialised when it is opened."""
    if not file.path.stat().st_size:
        return ()
    return (
        file_problems(file.path)
        or renamed_columns(file.path, PARTS.get(file.part, ()))
        or unreadable_values(file.path, (*ROW_READERS, *CHECKSUMMED), CHECKSUMMED)
    )


def missing_runs(file: HomeFile) -> int:
    """How many runs have paid replies in the journal but are missing from the file of runs."""
    journal = file.path.with_name("journal.db")
    if not journal.is_file() or file_problems(journal):
        return 0
    with closing(open_read_only(journal)) as con:
        if "run" not in [row[1] for row in con.execute("PRAGMA table_info(sent)")]:
            return 0
        query = "SELECT DISTINCT run FROM sent JOIN kept ON kept.key = sent.key WHERE run IS NOT NULL"
        paid = {row[0] for row in con.execute(query)}
    with closing(open_read_only(file.path)) as con:
        known = con.execute("SELECT 1 FROM sqlite_master WHERE name = 'run'").fetchone()
        return len(paid - ({row[0] for row in con.execute("SELECT id FROM run")} if known else set()))


@dataclass(kw_only=True)
class StoredCheck:
    """Which rows of a table match their checksums."""

    wrong: list[SqlRow] = field(default_factory=list[SqlRow])
    """Rows that are not what was stored."""
    unverified: int = 0
    """Rows without a checksum."""
    total: int = 0


@dataclass(frozen=True, kw_only=True)
class CheckedTable:
    """A table with a checksum in the last column of every row."""

    file: str
    name: str
    columns: tuple[str, ...]
    fault: Callable[[SqlRow], str]
    """What is wrong with a row; empty if nothing is."""
    rows: str
    """What its rows are called."""
    described: Callable[[SqlRow], str]
    """Which row it is, for people."""

    @property
    def query(self) -> str:
        """Reads every row."""
        return f"SELECT {', '.join(self.columns)} FROM {self.name}"

    def check(self, rows: Iterable[SqlRow]) -> StoredCheck:
        """Compare rows with their checksums."""
        check = StoredCheck()
        for row in rows:
            check.total += 1
            check.unverified += row[-1] is None
            if self.fault(row):
                check.wrong.append(row)
        return check

    def check_file(self, path: Path) -> StoredCheck:
        """Check all rows of a sound file, which may be older than checksums."""
        with closing(open_read_only(path)) as con:
            con.text_factory = text_or_bytes
            known = [row[1] for row in con.execute(f"PRAGMA table_info({self.name})")]
            if "checksum" in known:
                return self.check(con.execute(self.query))
            count = con.execute(f"SELECT count(*) FROM {self.name}").fetchone()[0] if known else 0
            return StoredCheck(unverified=count, total=count)


ENTRIES = CheckedTable(
    file="journal.db",
    name="kept",
    columns=("key", "kind", "model", "slot", "input", "output", "cached", "dollars", "answer", "checksum"),
    fault=entry_fault,
    rows="replies and tool results",
    described=lambda row: f"{row[1]} {row[2]} ({bytes(row[0]).hex()[:12]})",
)
ANSWERS = CheckedTable(
    file="runs.db",
    name="cell",
    columns=CELL_COLUMNS,
    fault=answer_fault,
    rows="answers",
    described=lambda row: f"run {row[0]}, {row[1]}, trial {row[3]}",
)


def in_use(path: Path) -> bool:
    """Whether a process has a database open."""
    life = FileLiveness(str(path), read_only=True)
    ids = (lock.name.rpartition("-")[2] for lock in path.parent.glob(f"{path.name}-alive-*"))
    return any(life.alive(int(id, 16)) for id in ids)


# Repairing.


def rebuild_file(file: HomeFile) -> tuple[str, ...]:
    """Repair a damaged file that no process has open, if that is safe; return what was done, or nothing.

    Indexes are rebuilt from their tables, and the rate limits of services start anew. Everything else can only be
    restored from a backup or with SQLite's own tools.
    """
    if file.what == LIMITS:
        aside = file.path.with_name(f"{file.path.name}.damaged-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}")
        for end in ("", "-wal"):
            with suppress(FileNotFoundError):
                Path(f"{file.path}{end}").rename(f"{aside}{end}")
        Path(f"{file.path}-shm").unlink(missing_ok=True)
        return f"the damaged file is saved as {aside.name}", file.lost
    problems = file_problems(file.path)
    if not problems or not only_indexes(problems):
        return ()
    rebuild_indexes(file.path)
    return () if file_faults(file) else ("its indexes were rebuilt",)


def rebuild_accounts(journal: Path) -> tuple[str, ...]:
    """Add what is missing in a journal that no process has open, as in one that SQLite recovered.

    A saved reply was requested, even if the request is lost. What a run has paid counts against its budget, even if its
    account is lost. Returns what was done.
    """
    with closing(Journal(journal)) as opened:
        place = opened.database
        accounts = "SELECT count(*) FROM account"
        before = place.read(accounts)[0][0]
        sent = place.write("INSERT OR IGNORE INTO sent (key, sends) SELECT key, 1 FROM kept")
        for statement in filter(str.strip, ACCOUNTS_OF_RUNS.split(";")):
            place.write(statement)
        added = place.read(accounts)[0][0] - before
    notes = [f"{sent:,} replies have their request again"] if sent else []
    return (*notes, *([f"the accounts of {added} runs were rebuilt"] if added else []))


def set_aside(table: CheckedTable, wrong: Sequence[SqlRow], settings: Settings) -> Iterator[str]:
    """Move rows that are not what was stored into a file of the home; answers are then computed again."""
    aside = _aside(table.file, table.columns, wrong, settings.home)
    yield f"{len(wrong)} edited {table.rows} were moved to {aside.name}"
    if table is ENTRIES:
        with closing(Journal(settings.journal)) as journal:
            journal.database.write_many("DELETE FROM kept WHERE key = ?", [(row[0],) for row in wrong])
        yield "they are asked, and paid, again when needed"
        return
    keys = [CellKey(run=run, question=question, due=due, trial=trial) for run, question, due, trial, *_ in wrong]
    with closing(RunStore(settings.store)) as store:
        store.forget_answers(keys)
        for run in dict.fromkeys(key.run for key in keys):
            yield from _rebuild_run(store, run, settings)


def _aside(name: str, columns: Sequence[str], rows: Sequence[SqlRow], home: Path) -> Path:
    """Write rows that are removed from a database into a file beside it."""
    aside = home / f"{name}.set-aside-{datetime.now(UTC):%Y%m%d-%H%M%S}.jsonl"
    with aside.open("a", encoding="utf-8") as file:
        for row in rows:
            shown = [value.hex() if isinstance(value, bytes) else value for value in row]
            file.write(json.dumps(dict(zip(columns, shown, strict=True))) + "\n")
    return aside


def unreadable_rows(con: sqlite3.Connection) -> dict[str, list[SqlRow]]:
    """Runs, questions and steps that cannot be read although the file is sound, by table."""
    if not con.execute("SELECT 1 FROM pragma_table_info('cell') WHERE name = 'checksum'").fetchone():
        return {}  # Of an older version, whose tables are still to be brought up to date.
    con.text_factory = text_or_bytes
    unreadable: dict[str, list[SqlRow]] = {}
    for table, (columns, read) in ROW_READERS.items():
        for row in con.execute(f"SELECT {columns} FROM {table}"):
            try:
                if any(isinstance(value, bytes) for value in row):
                    raise ValueError("text that cannot be decoded")
                read(row)
            except UNREADABLE:
                unreadable.setdefault(table, []).append(row)
    return unreadable


def set_aside_rows(store: RunStore, wrong: Mapping[str, Sequence[SqlRow]], settings: Settings) -> Iterator[str]:
    """Move unreadable rows into a file of the home; questions are read again from their own files."""
    for table, rows in wrong.items():
        names = ROW_READERS[table][0].split(", ")
        aside = _aside(ANSWERS.file, names, rows, settings.home)
        for row in rows:
            store.database.write(*_mending(table, row))
        yield f"{len(rows)} {TABLE_NOUNS[table]} that cannot be read were moved to {aside.name}"
    for run in dict.fromkeys(row[0] for row in wrong.get("question", ())):
        yield from _questions_again(store, run)
    if wrong.get("run"):
        yield "the same spec run again is the same run, with every reply out of the journal"


TABLE_NOUNS = {"run": "runs", "question": "questions", "event": "steps", "run_outcome": "outcomes"}


def _mending(table: str, row: SqlRow) -> tuple[str, SqlRow]:
    """The statement that removes an unreadable row. A run with a readable spec only loses its tags."""
    if table == "run":
        with suppress(*UNREADABLE):
            dict(json.loads(row[1]))
            return "UPDATE run SET services = '[]', tags = '[]' WHERE id = ?", row[:1]
        return "DELETE FROM run WHERE id = ?", row[:1]
    if table == "event":
        return "DELETE FROM event WHERE id = ?", row[1:2]
    if table == "question":
        return "DELETE FROM question WHERE run = ? AND id = ? AND due = ?", row[:3]
    return "DELETE FROM run_outcome WHERE run = ? AND question = ? AND due = ? AND target = ?", row[:4]


def _questions_again(store: RunStore, run: str) -> Iterator[str]:
    """Restore questions that a run has lost, if the file they came from is unchanged."""
    row = store.run(run)
    if row is None:
        return
    try:
        found = stored_run(store, run, kept=False)
    except UNREADABLE as error:
        yield f"run {run}: its file of questions cannot be read ({error})"
        return
    if found.spec.questions.digest != row.spec.get("questions", {}).get("digest", ""):
        yield f"run {run}: its file of questions is not what it was; what was lost is not asked again"
        return
    before = len(store.questions(run))
    store.keep_questions(run, found.questions)
    yield f"run {run}: {len(store.questions(run)) - before} questions were read again"


def _rebuild_run(store: RunStore, run: str, settings: Settings) -> Iterator[str]:
    """Recompute lost answers of a run from the journal, without asking anybody."""
    try:
        prepared = stored_run(store, run)
    except UNREADABLE as error:
        yield f"run {run}: its questions cannot be read ({error}); the same spec run again is the same run"
        return
    spec = prepared.spec
    cells = [cell.key for cell in cells_of(run, prepared.questions, spec.trials)]
    ended = store.ended(run)
    missing = [key for key in cells if (key.question, key.due, key.trial) not in ended]
    if not missing:
        return
    if asks_models(spec) and not Path(settings.journal).is_file():
        yield f"run {run}: {len(missing)} of {len(cells)} answers are not there, and no journal"
        return
    again = 0
    with tempfile.TemporaryDirectory(prefix="foretell-repair-") as folder:
        row = store.run(run)
        assert row is not None
        replay_into(Path(folder), prepared, row, settings)
        with closing(RunStore(Path(folder) / "runs.db")) as computed:
            events: dict[Any, list[Any]] = {}
            for _, key, event in computed.events(run):
                events.setdefault(key, []).append((key, event))
            for key in missing:
                for answer in computed.answers_to(key):
                    if isinstance(answer, Forecast) and answer.trial == key.trial and not answer.degraded:
                        store.start_cell(key)
                        store.add_events(events.get(key, []))
                        store.finish_cell(key, answer)
                        again += 1
    if again:
        yield f"run {run}: {again} of {len(missing)} missing answers were computed again from the journal"
    if len(missing) > again:
        yield f"run {run}: {len(missing) - again} of {len(cells)} answers are open; foretell run SPEC goes on with them"
