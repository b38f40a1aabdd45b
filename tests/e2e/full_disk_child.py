"""Fills and frees the small disk with FORETELL_HOME around a run, and prints the run's output each time."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

HOME = Path(os.environ.get("FORETELL_HOME", "."))
PATIENCE = 60.0


def fill() -> Path:
    """Fill the disk."""
    ballast = HOME / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return ballast


def replies() -> int:
    try:
        with closing(sqlite3.connect(f"file:{HOME / 'journal.db'}?mode=ro", uri=True)) as con:
            return con.execute("select count(*) from kept").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def main(command: list[str], output: Path) -> None:
    ballast = fill()
    full = subprocess.run(command, capture_output=True, text=True, check=False)
    ballast.unlink()
    with output.open("w") as file:
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file)
    until = time.monotonic() + PATIENCE
    while run.poll() is None and replies() < 12 and time.monotonic() < until:
        time.sleep(0.005)
    ballast = fill()
    while run.poll() is None and "the disk is full" not in output.read_text() and time.monotonic() < until:
        time.sleep(0.02)
    waits, at_full = run.poll() is None, replies()
    time.sleep(0.3)  # Replies in flight arrive meanwhile and have to be held.
    ballast.unlink()
    code = run.wait(timeout=PATIENCE)
    result = {"full": [full.returncode, full.stderr], "waits": waits, "at_full": at_full, "code": code}
    print(json.dumps({**result, "said": output.read_text()}))


if __name__ == "__main__":
    main(sys.argv[2:], Path(sys.argv[1]))
