"""Check a journal: entries that were changed after they were stored, and requests and accounts that are missing."""

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from foretell.models.database.integrity import CheckedTable
from foretell.models.database.interface import SqlRow
from foretell.models.database.sqlite import open_read_only
from foretell.models.journal import Journal, entry_fault
from foretell.models.ledger import ACCOUNTS_OF_RUNS

ENTRIES = CheckedTable(
    file="journal.db",
    name="kept",
    columns=("key", "kind", "model", "slot", "input", "output", "cached", "dollars", "answer", "checksum"),
    fault=entry_fault,
    rows="replies and tool results",
    described=lambda row: f"{row[1]} {row[2]} ({bytes(row[0]).hex()[:12]})",
)


def paid_runs(journal: Path) -> set[str]:
    """Return the runs that have paid replies in a journal."""
    with closing(open_read_only(journal)) as con:
        if "run" not in [row[1] for row in con.execute("PRAGMA table_info(sent)")]:
            return set()
        query = "SELECT DISTINCT run FROM sent JOIN kept ON kept.key = sent.key WHERE run IS NOT NULL"
        return {row[0] for row in con.execute(query)}


def remove_entries(journal: Journal, rows: Iterable[SqlRow]) -> None:
    """Delete entries, so that they are requested again when needed."""
    journal.database.write_many("DELETE FROM kept WHERE key = ?", [row[:1] for row in rows])


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
