"""Forecasts of ForecastBench's public methods: submission files, the published archive, or a flat table.

A file that cannot be read is left out, named and counted: one bad file among hundreds must not prevent scoring.
"""

import tarfile
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foretell.data.datasets.forecastbench import YES, ForecastBenchSubmission, read_submission
from foretell.data.datasets.rows import open_table
from foretell.questions.errors import InputError

FORECAST_SETS = "forecast_sets"
"""Name under which they are looked for next to the pulled rounds: a folder or an archive."""
ARCHIVES = (".tar.gz", ".tgz", ".tar")
TABLES = (".parquet", ".csv")
TABLE_COLUMNS = ("method", "forecast_due_date", "source", "question_id", "resolution_date", "probability")
MOST_FILES, MOST_BYTES = 5_000, 50_000_000
"""Maximum number of files of the requested rounds that are read, and maximum size of one in bytes."""
Row = dict[str, Any]


@dataclass(kw_only=True)
class MethodForecasts:
    """Rows in the format that scoring reads, and the files that were left out."""

    rows: list[Row] = field(default_factory=list[Row])
    problems: list[str] = field(default_factory=list[str])

    @property
    def methods(self) -> set[str]:
        """Names of the methods."""
        return {row["forecaster"] for row in self.rows}


def read_methods(place: Path, rounds: Collection[str], *, own: Collection[str] = ()) -> MethodForecasts:
    """Return the forecasts of all methods for these rounds, without those in `own` (as `organization:model`).

    They are in a submission (.json), a folder of them, the published archive (.tar.gz), or a table (.parquet, .csv).
    """
    method_forecasts = MethodForecasts()
    if place.suffix in TABLES:
        method_forecasts.rows += _table_rows(place, rounds)
        return method_forecasts
    if not place.exists():
        raise InputError("no such file or folder", path=place, column="--methods")
    for name, path in _files(place, rounds):
        try:
            submission = read_submission(path)
        except InputError as error:
            method_forecasts.problems.append(f"{name}: {error.problem}")
            continue
        if submission.forecaster not in own and submission.due.date().isoformat() in rounds:
            method_forecasts.rows += submission_rows(submission)
    return method_forecasts


def submission_rows(submission: ForecastBenchSubmission, name: str | None = None) -> list[Row]:
    """Return one row per forecast of a submission."""
    due = submission.due.date().isoformat()
    return [
        {
            "forecaster": name or submission.forecaster,
            "question": forecast.question_id,
            "target": target,
            "due": due,
            "p": p,
        }
        for forecast in submission.forecasts
        for target, p in forecast.p.items()
    ]


def _files(place: Path, rounds: Collection[str]) -> Iterator[tuple[str, Path]]:
    """Yield the files of these rounds, whose names begin with their due date."""
    if place.is_file() and not place.name.endswith(ARCHIVES):
        yield place.name, place
        return
    if place.is_dir():
        named = (path for path in sorted(place.rglob("*.json")) if path.name[:10] in rounds)
        yield from ((path.name, path) for path, _ in zip(named, range(MOST_FILES), strict=False))
        return
    try:
        with tarfile.open(place) as archive, tempfile.TemporaryDirectory(prefix="foretell-") as folder:
            count = 0
            for member in archive:
                name = Path(member.name).name
                wanted = member.isfile() and name.endswith(".json") and name[:10] in rounds
                if not wanted or member.size > MOST_BYTES or count >= MOST_FILES:
                    continue
                content = archive.extractfile(member)
                assert content is not None
                count += 1
                path = Path(folder) / f"{count}.json"
                path.write_bytes(content.read())
                yield name, path
                path.unlink()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise InputError(f"is not an archive that can be read: {error}", path=place, column="--methods") from None


def _table_rows(path: Path, rounds: Collection[str]) -> list[Row]:
    """Return the rows of a table with columns method, due date, source, question, resolution date and probability."""
    if not path.is_file():
        raise InputError("no such file", path=path, column="--methods")
    with open_table(path, TABLE_COLUMNS) as (con, table, columns):
        not_imputed = "and coalesce(imputed::varchar, 'false') <> 'true'" if "imputed" in columns else ""
        query = f"""select method, source, question_id, forecast_due_date::varchar,
            coalesce(resolution_date::varchar, ''),
            try_cast(probability as double) from {table}
            where list_contains(?, left(forecast_due_date::varchar, 10)) {not_imputed}
            and try_cast(probability as double) between 0 and 1"""
        records = con.execute(query, [sorted(rounds)]).fetchall()
    return [
        {
            "forecaster": method,
            "question": f"{source}/{id}",
            "target": str(day)[:10] or YES,
            "due": str(due)[:10],
            "p": p,
        }
        for method, source, id, due, day, p in records
    ]
