"""Check the databases of the home, move changed rows to a file, and compute lost answers again."""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from foretell.arena.store import MIGRATIONS as ARENA_TABLES
from foretell.arena.store import SCHEMA_NAME
from foretell.data.service_limits import PRACTICE_TABLES, STATE_FILE
from foretell.frozen import frozen
from foretell.models.database.integrity import (
    CheckedTable,
    file_problems,
    only_indexes,
    rebuild_indexes,
    renamed_columns,
    schema_versions,
    unreadable_values,
)
from foretell.models.database.interface import SqlRow
from foretell.models.database.liveness import FileLiveness
from foretell.models.journal import JOURNAL_TABLES, Journal
from foretell.models.journal_check import ENTRIES, paid_runs, remove_entries
from foretell.models.rate_limits import LIMIT_TABLES
from foretell.questions.forecast import Forecast
from foretell.runs.contexts import context_rows
from foretell.runs.runner import asks_models
from foretell.runs.settings import Settings
from foretell.runs.store import MIGRATIONS as STORE_TABLES
from foretell.runs.store import RunStore, TrialKey, trials_of
from foretell.runs.stored_rows import ANSWERS, ROW_READERS, TABLE_NOUNS, UNREADABLE, remove_unreadable, run_ids
from foretell.runs.stored_runs import replay_into, stored_run
from foretell.standing.store import MIGRATIONS as STANDING_TABLES
from foretell.standing.store import SCHEMA_NAME as STANDING

PARTS = {
    "store": STORE_TABLES,
    "journal": JOURNAL_TABLES,
    SCHEMA_NAME: ARENA_TABLES,
    "limits": LIMIT_TABLES,
    "practice": PRACTICE_TABLES,
    STANDING: STANDING_TABLES,
}
KNOWN_PARTS = {part: len(scripts) for part, scripts in PARTS.items()}
"""How many migrations of each part this version knows."""
LIMITS = "rate limits of services"
CHECKSUMMED = ("cell", "kept")
"""Tables of which every row has a checksum."""


@frozen
class HomeFile:
    """A database in the home."""

    path: Path
    what: str
    part: str = ""
    """The part whose migrations its version counts."""
    lost: str = ""
    """What it means to lose it."""


def home_files(settings: Settings) -> list[HomeFile]:
    """Return the databases that exist."""
    home = settings.home
    files = [
        HomeFile(path=home / STATE_FILE, what=LIMITS, lost="the rate limits of services are reset"),
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
    """Return parts of a file that a newer version wrote."""
    versions = schema_versions(file.path)
    return [
        f"{part or file.part} version {number}, this one knows {KNOWN_PARTS[part or file.part]}"
        for part, number in versions.items()
        if number > KNOWN_PARTS.get(part or file.part, number)
    ]


def file_faults(file: HomeFile) -> tuple[str, ...]:
    """Return what is wrong with the file itself. An empty file is fine: it is initialised when it is opened."""
    if not file.path.stat().st_size:
        return ()
    return (
        file_problems(file.path)
        or renamed_columns(file.path, PARTS.get(file.part, ()))
        or unreadable_values(file.path, (*ROW_READERS, *CHECKSUMMED), CHECKSUMMED)
    )


def missing_runs(file: HomeFile) -> int:
    """Return how many runs have paid replies in the journal but are missing from the file of runs."""
    journal = file.path.with_name("journal.db")
    return len(paid_runs(journal) - run_ids(file.path)) if journal.is_file() and not file_problems(journal) else 0


def in_use(path: Path) -> bool:
    """Whether a process has a database open."""
    life = FileLiveness(str(path), read_only=True)
    ids = (lock.name.rpartition("-")[2] for lock in path.parent.glob(f"{path.name}-alive-*"))
    return any(life.alive(int(id, 16)) for id in ids)


# Repairing.


def rebuild_file(file: HomeFile) -> tuple[str, ...]:
    """Repair a damaged file that no process has open, if that is safe; return what was done, or nothing.

    Indexes are rebuilt from their tables, and the rate limits of services are reset. Everything else can only be
    restored from a backup or with SQLite's own tools.
    """
    if file.what == LIMITS:
        moved_to = file.path.with_name(f"{file.path.name}.damaged-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}")
        for end in ("", "-wal"):
            with suppress(FileNotFoundError):
                Path(f"{file.path}{end}").rename(f"{moved_to}{end}")
        Path(f"{file.path}-shm").unlink(missing_ok=True)
        return f"the damaged file is saved as {moved_to.name}", file.lost
    problems = file_problems(file.path)
    if not problems or not only_indexes(problems):
        return ()
    rebuild_indexes(file.path)
    return () if file_faults(file) else ("its indexes were rebuilt",)


def set_aside(table: CheckedTable, wrong: Sequence[SqlRow], settings: Settings) -> Iterator[str]:
    """Move rows that were changed after they were stored into a file of the home, and compute answers again."""
    moved_to = _write_rows(table.file, table.columns, wrong, settings.home)
    yield f"{len(wrong)} edited {table.rows} were moved to {moved_to.name}"
    if table is ENTRIES:
        with closing(Journal(settings.journal)) as journal:
            remove_entries(journal, wrong)
        yield "they are requested, and paid for, again when needed"
        return
    keys = [TrialKey(run=run, question=question, due=due, trial=trial) for run, question, due, trial, *_ in wrong]
    with closing(RunStore(settings.store)) as store:
        store.forget_answers(keys)
        for run in dict.fromkeys(key.run for key in keys):
            yield from _rebuild_run(store, run, settings)


def _write_rows(name: str, columns: Sequence[str], rows: Sequence[SqlRow], home: Path) -> Path:
    """Write rows that are removed from a database into a file next to it."""
    moved_to = home / f"{name}.set-aside-{datetime.now(UTC):%Y%m%d-%H%M%S}.jsonl"
    with moved_to.open("a", encoding="utf-8") as file:
        for row in rows:
            shown = [value.hex() if isinstance(value, bytes) else value for value in row]
            file.write(json.dumps(dict(zip(columns, shown, strict=True))) + "\n")
    return moved_to


def set_aside_rows(store: RunStore, wrong: Mapping[str, Sequence[SqlRow]], settings: Settings) -> Iterator[str]:
    """Move unreadable rows into a file of the home; questions are read again from their own files."""
    for table, rows in wrong.items():
        names = ROW_READERS[table][0].split(", ")
        moved_to = _write_rows(ANSWERS.file, names, rows, settings.home)
        for row in rows:
            remove_unreadable(store.database, table, row)
        yield f"{len(rows)} {TABLE_NOUNS[table]} that cannot be read were moved to {moved_to.name}"
    for run in dict.fromkeys(row[0] for row in wrong.get("question", ())):
        yield from _questions_again(store, run)
    if wrong.get("run"):
        yield "running the same spec again continues this run, with every reply from the journal"


def _questions_again(store: RunStore, run: str) -> Iterator[str]:
    """Restore questions that a run has lost, if the file they came from is unchanged."""
    row = store.run(run)
    if row is None:
        return
    try:
        prepared = stored_run(store, run, from_store=False)
    except UNREADABLE as error:
        yield f"run {run}: its file of questions cannot be read ({error})"
        return
    if prepared.spec.questions.digest != row.spec.get("questions", {}).get("digest", ""):
        yield f"run {run}: its file of questions has changed; lost questions are not restored"
        return
    before = len(store.questions(run))
    store.keep_questions(run, prepared.questions)
    store.keep_contexts(run, context_rows(prepared.contexts.values()))
    yield f"run {run}: {len(store.questions(run)) - before} questions were read again"


def _rebuild_run(store: RunStore, run: str, settings: Settings) -> Iterator[str]:
    """Recompute lost answers of a run from the journal, without any request."""
    try:
        prepared = stored_run(store, run)
    except UNREADABLE as error:
        yield f"run {run}: its questions cannot be read ({error}); running the same spec again continues this run"
        return
    spec = prepared.spec
    keys = [trial.key for trial in trials_of(run, prepared.questions, spec.trials)]
    ended = store.ended(run)
    missing = [key for key in keys if (key.question, key.due, key.trial) not in ended]
    if not missing:
        return
    if asks_models(spec) and not Path(settings.journal).is_file():
        yield f"run {run}: {len(missing)} of {len(keys)} answers are missing, and there is no journal"
        return
    again = 0
    with tempfile.TemporaryDirectory(prefix="foretell-repair-") as folder:
        row = store.run(run)
        assert row is not None
        replay_into(Path(folder), prepared, row, settings)
        with closing(RunStore(Path(folder) / "runs.db")) as computed:
            events: dict[Any, list[Any]] = {}
            for _, key, event in computed.events(run):
                events.setdefault(key, []).append((key, event.timed(None, None)))  # When it happened is lost.
            for key in missing:
                for answer in computed.answers_to(key):
                    if isinstance(answer, Forecast) and answer.trial == key.trial and not answer.fallback:
                        store.start_trial(key)
                        store.add_events(events.get(key, []))
                        store.finish_trial(key, answer)
                        again += 1
    if again:
        yield f"run {run}: {again} of {len(missing)} missing answers were computed again from the journal"
    if len(missing) > again:
        yield f"run {run}: {len(missing) - again} of {len(keys)} answers are open; foretell run SPEC computes them"
