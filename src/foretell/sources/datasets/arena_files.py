"""Which kind of Prophet Arena file it is, if it is one: its first line tells."""

import json
from pathlib import Path
from typing import Any, cast

from foretell.sources.datasets.question_set import QuestionSet

CSV_COLUMNS = ("event_ticker", "market_outcome", "market_info", "snapshot_time")
JSON_FIELDS = ("slug", "outcomes", "windows")


def read_arena_file(path: str | Path) -> QuestionSet | None:
    """The events of a published CSV, or of the SDK's JSONL; None where the file is neither."""
    first = _first_line(Path(path))
    columns = [column.strip().strip('"') for column in first.split(",")]
    if all(column in columns for column in CSV_COLUMNS):
        from foretell.sources.datasets.prophet_arena import read_events_csv

        return read_events_csv(path)
    if all(field in _fields(first) for field in JSON_FIELDS):
        from foretell.sources.datasets.arena_events import read_events_jsonl

        return read_events_jsonl(path)
    return None


def _first_line(path: Path) -> str:
    if path.suffix.lower() not in (".csv", ".jsonl"):
        return ""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        return file.readline()


def _fields(line: str) -> Any:
    try:
        found = json.loads(line)
    except ValueError:
        return ()
    return cast("dict[str, Any]", found) if isinstance(found, dict) else ()
