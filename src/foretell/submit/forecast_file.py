"""Forecasts from a file: as `foretell ask --json` and `foretell show --json` print them, or in plain fields.

Plain fields are `question`, one of `p` (a number, or a number for each option) and `quantiles` (a value for each
level), and perhaps `rationale` and `forecaster`.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from foretell.data.datasets.rows import Row, jsonl_rows, read_text, record
from foretell.questions.as_of import AsOf
from foretell.questions.codec import from_dict
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast, Numeric
from foretell.questions.question import Question

FIELDS = ("question", "p", "quantiles", "rationale", "forecaster")


def read_forecasts(path: Path, now: datetime) -> tuple[list[Forecast], list[Question]]:
    """Forecasts, and questions where the file holds some; plain rows are forecasts of now."""
    forecasts: list[Forecast] = []
    questions: list[Question] = []
    for record_ in _rows(path):
        row = dict(record_.fields)
        try:
            kind = row.get("type", "")
            if kind == "Question":
                questions.append(from_dict(row, Question))
            elif kind == "Forecast" or "question_id" in row:
                forecasts.append(from_dict(row, Forecast))
            elif not kind and "event" not in row:
                forecasts.append(_plain(row, now))
        except InputError as error:
            raise error.at(path=path, row=record_.number) from None
    if not forecasts:
        raise InputError("holds no forecast", path=path, hint="rows such as {'question': 'metaculus/123', 'p': 0.63}")
    return forecasts, questions


def _rows(path: Path) -> Iterator[Row]:
    """The objects of a JSON file, or of JSON lines."""
    try:
        whole = json.loads(read_text(path))
    except ValueError:
        yield from jsonl_rows(path)
        return
    for number, entry in enumerate(cast("list[Any]", whole) if isinstance(whole, list) else [whole], start=1):
        yield record(path, number, entry)


def _plain(row: Mapping[str, Any], now: datetime) -> Forecast:
    for name in row:
        if name not in FIELDS:
            raise InputError("is not a field of a forecast", column=name, hint=f"fields are {', '.join(FIELDS)}")
    if not isinstance(row.get("question"), str) or ("p" in row) == ("quantiles" in row):
        raise InputError("a forecast needs a question, and either p or quantiles")
    p = row.get("p", {})
    try:
        return Forecast(
            question_id=row["question"],
            forecaster=str(row.get("forecaster", "file")),
            as_of=AsOf(at=now, mode="live"),
            p=p if isinstance(p, dict) else {"yes": p},
            rationale=str(row.get("rationale", "")),
            distribution=Numeric.from_quantiles({float(level): float(x) for level, x in row["quantiles"].items()})
            if "quantiles" in row
            else None,
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(str(error), column="p" if "p" in row else "quantiles") from None
