"""Questions, resolutions and forecasts, also those of stored runs, as the long tables that `foretell score` reads."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foretell.data.atomic_file import write_atomically
from foretell.data.datasets.question_set import QUARANTINED, asked_key
from foretell.data.untrusted import for_csv
from foretell.forecasters.combine.trials import PANEL
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution
from foretell.runs.backtest import Backtest
from foretell.runs.combine import combine_trials, combining_by_name
from foretell.runs.settings import Settings
from foretell.runs.spec import RunSpec, spec_from_json
from foretell.runs.store import RunStore, find_run

Row = dict[str, Any]


def outcome_rows(
    questions: Iterable[Question], resolutions: Iterable[Resolution], quarantined: Iterable[Question] = ()
) -> list[Row]:
    """One row per target; a target without resolution keeps an empty outcome and is never scored.

    Questions that were left out follow, so that whoever scores the table can say how many there are.
    """
    late = {asked_key(one): one for one in quarantined}
    if late:
        asked = {asked_key(one): one for one in questions}
        rows = outcome_rows((asked | late).values(), resolutions)
        keys = {(id, _day(due)) for id, due in late}
        return [{**row, QUARANTINED: 1 if (row["question"], row["due"]) in keys else None} for row in rows]
    known = {(r.question_id, r.due, r.target_id): r for r in resolutions}
    rows: list[Row] = []
    for question in questions:
        for target in question.targets:
            found = known.get((question.id, question.due, target.id)) or known.get((question.id, None, target.id))
            rows.append(_outcome_row(question, target, found))
    return rows


def _outcome_row(question: Question, target: Target, found: Resolution | None) -> Row:
    snapshot = target.snapshot
    resolved = (found.resolved_at if found else None) or target.resolves_at
    return {
        "question": question.id,
        "target": target.id,
        "due": _day(question.due),
        "outcome": None if found is None else found.outcome,
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


def forecast_rows(forecasts: Iterable[Forecast], questions: Iterable[Question]) -> list[Row]:
    """One row per forecaster, question, target and trial."""
    due = {(q.id, q.as_of.at): _day(q.due) for q in questions}
    return [
        {
            "forecaster": forecast.forecaster,
            "question": forecast.question_id,
            "target": target,
            "due": due.get((forecast.question_id, forecast.as_of.at), _day(forecast.as_of.at)),
            "trial": forecast.trial,
            "p": p,
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
            "due": _day(f.as_of.at),
            "trial": f.trial,
            "error": f.error,
        }
        for f in failures
    ]


def write_backtest(result: Backtest, resolutions: Iterable[Resolution], folder: Path) -> dict[str, Path]:
    """forecasts.csv, outcomes.csv and, if any, failures.csv in a folder that may not hold them yet.

    A forecast that rests on a failure is listed with the failures: scores must not mistake it for one that does not.
    """
    folder.mkdir(parents=True, exist_ok=True)
    degraded = [
        Failure(
            question_id=one.question_id,
            forecaster=one.forecaster,
            as_of=one.as_of,
            trial=one.trial,
            error=f"degraded: {one.problem}",
        )
        for one in result.forecasts
        if one.degraded
    ]
    tables = {
        "forecasts": forecast_rows([one for one in result.forecasts if not one.degraded], result.questions),
        "outcomes": outcome_rows(result.questions, resolutions, result.quarantined),
        "failures": failure_rows([*result.failures, *degraded]),
    }
    return {name: write_rows(rows, folder / f"{name}.csv") for name, rows in tables.items() if rows}


def write_rows(rows: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """CSV or JSONL by ending; the file appears whole or not at all."""
    text = io.StringIO(newline="")
    if path.suffix == ".jsonl":
        text.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    elif path.suffix == ".csv":
        writer = csv.DictWriter(text, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows({name: for_csv(value) for name, value in row.items()} for row in rows)
    else:
        raise InputError("cannot write this kind of file", path=path, hint="use .csv or .jsonl")
    write_atomically(path, text.getvalue().encode())
    return path


def _day(moment: Any) -> str:
    """A question due on a whole day is written as that day, so that the files of one round agree."""
    at = instant(moment)
    return at.date().isoformat() if at == instant(at.date()) else at.isoformat(timespec="seconds")


# Stored runs.


@dataclass(frozen=True, kw_only=True)
class RunRows:
    """Stored runs over their questions as two long tables."""

    forecasts: list[Row]
    outcomes: list[Row]
    names: tuple[str, ...]
    """Of the forecasters, in the order of the runs."""
    texts: Mapping[str, str]
    """What was asked, by question."""


def run_rows(settings: Settings, starts: Sequence[str]) -> RunRows:
    """The runs whose ids begin so, their trials combined as each run says, with the outcomes of their question sets.

    Runs whose forecasters have one name are told apart by their ids.
    """
    found: list[tuple[RunSpec, list[Forecast]]] = []
    ids: list[str] = []
    with closing(RunStore(settings.store)) as store:
        for start in starts:
            run = find_run(store, start)
            spec = next(spec_from_json(row.spec) for row in store.runs() if row.id == run)
            answers = [one for one in store.answers(run) if isinstance(one, Forecast) and one.forecaster != PANEL]
            if not answers:
                raise InputError(f"run {run} has no forecast", hint="start it again with foretell run")
            found.append((spec, answers))
            ids.append(run)
        questions, outcomes = questions_of_runs(store, ids)
    names = [answers[0].forecaster for _, answers in found]
    names = [
        f"{name} ({spec.id[:6]})" if names.count(name) > 1 else name
        for name, (spec, _) in zip(names, found, strict=True)
    ]
    forecasts: list[Row] = []
    for name, (spec, answers) in zip(names, found, strict=True):
        rule = combining_by_name("logit-mean" if spec.aggregate == "judged" else spec.aggregate)
        combined = combine_trials(answers, questions, rule)
        forecasts += [{**row, "forecaster": name} for row in forecast_rows(combined, questions)]
    if all(row["outcome"] is None for row in outcomes):
        raise InputError("none of the questions has an outcome yet", hint="give a table of outcomes")
    texts = {question.id: question.text for question in questions}
    return RunRows(forecasts=forecasts, outcomes=outcomes, names=tuple(names), texts=texts)


def questions_of_runs(store: RunStore, runs: Iterable[str]) -> tuple[list[Question], list[Row]]:
    """The questions of all runs, each once, and their targets with outcomes."""
    from foretell.runs.question_sets import questions_of_run

    rows: dict[tuple[str, str, str], Row] = {}
    chosen: dict[tuple[str, str], Question] = {}
    for run in runs:
        found = questions_of_run(store, run)
        chosen |= {(question.id, question.due.isoformat()): question for question in found.questions}
        for row in outcome_rows(found.questions, found.resolutions, found.quarantined):
            rows.setdefault((row["question"], row["target"], row["due"]), row)
    return list(chosen.values()), list(rows.values())
