"""Opening an SQLite file that several processes may open, and make, at the same moment."""

import sqlite3
import time

PATIENCE = 30.0
PAUSE = 0.01


def use_wal(db: sqlite3.Connection) -> None:
    """Write-ahead logging from here on: readers do not wait for a writer, and a commit is one write.

    Where another process is switching the same new file at this moment, SQLite gives up at once; this waits.
    """
    until = time.monotonic() + PATIENCE
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(PAUSE)
