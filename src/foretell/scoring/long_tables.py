"""Questions, resolutions and forecasts, also those of stored runs, as the long tables that `foretell score` reads."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from foretell.data.datasets.question_set import QUARANTINED, QuestionSet, asked_key
from foretell.data.files import write_atomically
from foretell.data.untrusted import rows_as_csv
from foretell.forecasters.combine.trials import PANEL
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution
from foretell.runs.backtest import Backtest
from foretell.runs.combine import combine_trials
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.past import StoredRates
from foretell.runs.settings import Settings
from foretell.runs.store import RunRow, RunStore, find_run
from foretell.runs.taught import combining_of_row
from foretell.scoring.join import check_table
from foretell.scoring.table_input import TableSource, table_rows

Row = dict[str, Any]


def outcome_rows(
    questions: Iterable[Question], resolutions: Iterable[Resolution], quarantined: Iterable[Question] = ()
) -> list[Row]:
    """One row per target; a target without resolution keeps an empty outcome and is never scored.

    Questions that were left out follow, so that whoever scores the table can say how many there are. Where any
    option has dollars, there is a column `payoff`.
    """
    late = {asked_key(one): one for one in quarantined}
    if late:
        asked = {asked_key(one): one for one in questions}
        rows = outcome_rows((asked | late).values(), resolutions)
        keys = {(id, day_text(due)) for id, due in late}
        return [{**row, QUARANTINED: 1 if (row["question"], row["due"]) in keys else None} for row in rows]
    known = {(r.question_id, r.due, r.target_id): r for r in resolutions}
    pays = any(r.payoff is not None for r in known.values())
    rows: list[Row] = []
    for question in questions:
        for target in question.targets:
            found = known.get((question.id, question.due, target.id)) or known.get((question.id, None, target.id))
            row = _outcome_row(question, target, found)
            rows.append({**row, "payoff": None if found is None else found.payoff} if pays else row)
    return rows


def _outcome_row(question: Question, target: Target, found: Resolution | None) -> Row:
    snapshot = target.snapshot
    resolved = (found.resolved_at if found else None) or target.resolves_at
    return {
        "question": question.id,
        "target": target.id,
        "due": day_text(question.due),
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
    due = {(q.id, q.as_of.at): day_text(q.due) for q in questions}
    return [
        {
            "forecaster": forecast.forecaster,
            "question": forecast.question_id,
            "target": target,
            "due": due.get((forecast.question_id, forecast.as_of.at), day_text(forecast.as_of.at)),
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
            "due": day_text(f.as_of.at),
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
    if path.suffix == ".jsonl":
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    elif path.suffix == ".csv":
        text = rows_as_csv(rows)
    else:
        raise InputError("cannot write this kind of file", path=path, hint="use .csv or .jsonl")
    write_atomically(path, text.encode())
    return path


def day_text(moment: Any) -> str:
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


def run_rows(settings: Settings, starts: Sequence[str], *, decided: bool = True) -> RunRows:
    """The runs whose ids begin so, their trials combined as each run says, with the outcomes of their question sets.

    Runs whose forecasters have one name are told apart by their ids. With `decided`, some outcome must be known.
    """
    found: list[RunRow] = []
    forecasts: list[Row] = []
    with closing(RunStore(settings.store)) as store:
        for start in starts:
            row = store.run(find_run(store, start))
            assert row is not None
            found.append(row)
        questions, outcomes = questions_of_runs(store, [row.id for row in found])
        answers = [list(store.answers(row.id)) for row in found]
        names = [_name_of_run(row, said) for row, said in zip(found, answers, strict=True)]
        names = [
            f"{name} ({row.id[:6]})" if names.count(name) > 1 else name for name, row in zip(names, found, strict=True)
        ]
        for name, row, said in zip(names, found, answers, strict=True):
            combined = final_forecasts(store, row, said, questions)
            forecasts += [{**one, "forecaster": name} for one in forecast_rows(combined, questions)]
    if decided and all(row["outcome"] is None for row in outcomes):
        raise InputError("none of the questions has an outcome yet", hint="give a table of outcomes")
    texts = {question.id: question.text for question in questions}
    return RunRows(forecasts=forecasts, outcomes=outcomes, names=tuple(names), texts=texts)


def add_tables(found: RunRows, forecasts: TableSource | None, outcomes: TableSource | None) -> RunRows:
    """Stored runs with tables of one's own beside them: one, or several by their names.

    A table of forecasts may leave out what is settled elsewhere: the target of a question that has one, and the date of
    a question that was asked once. Without a column `forecaster` it is called by its name. Outcomes, also those in a
    column of the forecasts, add to what is known.
    """
    told = {(row["question"], row["target"], row["due"]): row for row in found.outcomes}
    asked: dict[str, list[Row]] = {}
    for row in found.outcomes:
        asked.setdefault(row["question"], []).append(row)

    def tell(row: Row) -> None:
        key = (row.get("question"), row.get("target"), row.get("due"))
        if key not in told:
            asked.setdefault(str(key[0]), []).append(row)
            told[key] = {"due": None, **row}
        elif row.get("outcome") is not None:
            told[key] = told[key] | {"outcome": row["outcome"]}

    for row in () if outcomes is None else table_rows(outcomes, "outcomes"):
        tell(_filled(row, asked))
    added, called = list[Row](), {row["forecaster"] for row in found.forecasts}
    for name, table in _named_tables(forecasts):
        own: list[Row] = []
        for row in table_rows(table, name):
            full, who = _filled(row, asked), row.get("forecaster", Path(name).stem)
            full["forecaster"] = f"{who} (table)" if who in called else who
            own.append({column: full[column] for column in FORECAST_COLUMNS if full.get(column) is not None})
            if "outcome" in full:
                tell({column: value for column, value in full.items() if column not in ("forecaster", "p", "trial")})
        check_table([dict.fromkeys(("question", "target", "p")) | row for row in own], name)
        added += own
    return replace(found, forecasts=[*found.forecasts, *added], outcomes=list(told.values()))


FORECAST_COLUMNS = ("forecaster", "question", "target", "due", "trial", "p")


def _named_tables(forecasts: Any) -> Sequence[tuple[str, TableSource]]:
    if forecasts is None or isinstance(forecasts, Mapping):
        return list(cast("Mapping[str, TableSource]", forecasts or {}).items())
    return [(str(forecasts) if isinstance(forecasts, str | Path) else "forecasts", forecasts)]


def _filled(row: Mapping[str, Any], asked: Mapping[str, Sequence[Row]]) -> Row:
    """A row with the target and the date of its question, where it says none and there is only one."""
    known = asked.get(str(row.get("question")), ())
    full = dict(row)
    for column in ("target", "due"):
        if full.get(column) is None and len(values := {one[column] for one in known}) == 1:
            full[column] = values.pop()
    with suppress(ValueError, TypeError, InputError):  # What is no date is refused where tables are checked.
        full["due"] = day_text(full["due"]) if full.get("due") else None
    return full


def _name_of_run(row: RunRow, answers: Iterable[Forecast | Failure]) -> str:
    """What people call it, else its forecaster."""
    names = (one.forecaster for one in answers if isinstance(one, Forecast) and one.forecaster != PANEL)
    forecaster = next(names, None)
    if forecaster is None:
        raise InputError(f"run {row.id} has no forecast", hint="start it again with foretell run")
    return row.name or forecaster


def final_forecasts(
    store: RunStore, row: RunRow, answers: Sequence[Forecast | Failure], questions: Sequence[Question]
) -> list[Forecast]:
    """One forecast per question of a run, its trials combined as its spec says: the number that every door shows."""
    rates = StoredRates(table=store.rates(row.id))
    how = combining_of_row(store, row, rates if rates.table else None)
    return combine_trials(answers, questions, how)


def questions_of_runs(store: RunStore, runs: Iterable[str]) -> tuple[list[Question], list[Row]]:
    """The questions of all runs, each once, and their targets with outcomes."""
    from foretell.runs.question_sets import questions_of_run

    rows: dict[tuple[str, str, str], Row] = {}
    chosen: dict[tuple[str, str], Question] = {}
    for run in runs:
        kept = RunOutcomes(store).of(run)
        try:
            found = questions_of_run(store, run)
        except InputError:
            if not kept:
                raise
            # The file is gone or tells something else by now; what the run was told stands.
            found = QuestionSet(name=run, questions=tuple(store.questions(run)))
        chosen |= {(question.id, question.due.isoformat()): question for question in found.questions}
        for row in outcome_rows(found.questions, [*found.resolutions, *kept], found.quarantined):
            rows.setdefault((row["question"], row["target"], row["due"]), row)
    for name in ("payoff", QUARANTINED):
        if any(name in row for row in rows.values()):
            rows = {key: {**row, name: row.get(name)} for key, row in rows.items()}
    return list(chosen.values()), list(rows.values())
