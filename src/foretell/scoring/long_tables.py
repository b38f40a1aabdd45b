"""Questions, resolutions and forecasts as long tables."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import time
from pathlib import Path
from typing import Any

from foretell.data.datasets.question_set import EXCLUDED, asked_key
from foretell.data.files import write_atomically
from foretell.data.untrusted import rows_as_csv
from foretell.questions.as_of import instant
from foretell.questions.backtest import Backtest
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution

Row = dict[str, Any]


def outcome_rows(
    questions: Iterable[Question], resolutions: Iterable[Resolution], excluded: Iterable[Question] = ()
) -> list[Row]:
    """One row per target; a target without a resolution has an empty outcome and is never scored.

    Excluded questions follow, so that scoring can report their number. If any option has a payoff in dollars,
    there is a column `payoff`.
    """
    left_out = {asked_key(question): question for question in excluded}
    if left_out:
        included = {asked_key(question): question for question in questions}
        rows = outcome_rows((included | left_out).values(), resolutions)
        keys = {(id, day_text(due)) for id, due in left_out}
        return [{**row, EXCLUDED: 1 if (row["question"], row["due"]) in keys else None} for row in rows]
    known = {(r.question_id, r.due, r.target_id): r for r in resolutions}
    pays = any(r.payoff is not None for r in known.values())
    rows: list[Row] = []
    for question in questions:
        for target in question.targets:
            resolution = known.get((question.id, question.due, target.id)) or known.get((question.id, None, target.id))
            row = _outcome_row(question, target, resolution)
            rows.append({**row, "payoff": None if resolution is None else resolution.payoff} if pays else row)
    return rows


def _outcome_row(question: Question, target: Target, resolution: Resolution | None) -> Row:
    snapshot = target.snapshot
    resolved = (resolution.resolved_at if resolution else None) or target.resolves_at
    return {
        "question": question.id,
        "target": target.id,
        "due": day_text(question.due),
        "outcome": None if resolution is None else resolution.outcome,
        "kind": question.kind,
        "source": question.source,
        "subtype": question.subtype,
        "category": question.category,
        "horizon": question.horizon_days(target),
        "cluster": question.cluster,
        "resolved_on": resolved.date().isoformat() if resolved else None,
        "price": snapshot.price if snapshot else None,
        "yes_ask": snapshot.yes_ask if snapshot else None,
        "no_ask": snapshot.no_ask if snapshot else None,
    }


def forecast_rows(forecasts: Iterable[Forecast], questions: Iterable[Question], *, costs: bool = False) -> list[Row]:
    """One row per forecaster, question, target and trial; with `costs`, each with what the forecast cost."""
    due = {(q.id, q.as_of.at): day_text(q.due) for q in questions}
    return [
        {
            "forecaster": forecast.forecaster,
            "question": forecast.question_id,
            "target": target,
            "due": due.get((forecast.question_id, forecast.as_of.at), day_text(forecast.as_of.at)),
            "trial": forecast.trial,
            "p": p,
            **({"dollars": forecast.usage.worth, "seconds": forecast.usage.seconds} if costs else {}),
        }
        for forecast in forecasts
        for target, p in forecast.p.items()
    ]


def failure_rows(failures: Iterable[Failure]) -> list[Row]:
    """One row per failed question, with the reason."""
    return [
        {
            "forecaster": f.forecaster,
            "question": f.question_id,
            "due": day_text(f.as_of.at),
            "trial": f.trial,
            "error": f.error,
        }
        for f in failures
    ]


def write_backtest(result: Backtest, resolutions: Iterable[Resolution], folder: Path) -> dict[str, Path]:
    """Write forecasts.csv, outcomes.csv and, if any, failures.csv to a folder that must not contain them yet.

    A forecast that is based on a failure is also listed with the failures, so that scores do not mistake it for a
    normal one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    fallback = [
        Failure(
            question_id=forecast.question_id,
            forecaster=forecast.forecaster,
            as_of=forecast.as_of,
            trial=forecast.trial,
            error=f"fallback: {forecast.problem}",
        )
        for forecast in result.forecasts
        if forecast.fallback
    ]
    tables = {
        "forecasts": forecast_rows(
            [forecast for forecast in result.forecasts if not forecast.fallback], result.questions
        ),
        "outcomes": outcome_rows(result.questions, resolutions, result.excluded),
        "failures": failure_rows([*result.failures, *fallback]),
    }
    return {name: write_rows(rows, folder / f"{name}.csv") for name, rows in tables.items() if rows}


def write_rows(rows: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """Write CSV or JSONL, depending on the suffix; the file appears complete or not at all."""
    if path.suffix == ".jsonl":
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    elif path.suffix == ".csv":
        text = rows_as_csv(rows)
    else:
        raise InputError("cannot write this kind of file", path=path, hint="use .csv or .jsonl")
    write_atomically(path, text.encode())
    return path


def day_text(value: Any) -> str:
    """Format midnight UTC as a day and any other time in full, so that the files of one round agree."""
    at = instant(value)
    return at.isoformat(timespec="seconds") if at.time() > time.min else at.date().isoformat()
