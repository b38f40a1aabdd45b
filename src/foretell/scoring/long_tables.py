"""Questions, resolutions and forecasts as long tables, and the scores of stored runs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from foretell.data.datasets.question_set import QUARANTINED, QuestionSet, asked_key
from foretell.data.files import write_atomically
from foretell.data.untrusted import rows_as_csv
from foretell.forecasters.combine.aggregate import PANEL
from foretell.metrics.bootstrap import Interval
from foretell.questions.as_of import instant
from foretell.questions.codec import plain_data
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution
from foretell.runs.backtest import Backtest
from foretell.runs.combine import combine_trials, combining_of_row, rule_in_words, scored_by
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.settings import Settings
from foretell.runs.spec import AUTO
from foretell.runs.store import RunRow, RunStore, find_run_row
from foretell.scoring.join import COST_COLUMNS, log_tables, read_table, table_rows
from foretell.scoring.role_columns import ColumnNames
from foretell.scoring.score import ScoringOptions, compare_pair, score_table
from foretell.scoring.scoreboard import Scoreboard
from foretell.scoring.table import BASE_RATE, CROWD, ForecastTable, base_rate
from foretell.scoring.table_input import TableSource
from foretell.scoring.verdict import Verdict

Row = dict[str, Any]


def outcome_rows(
    questions: Iterable[Question], resolutions: Iterable[Resolution], quarantined: Iterable[Question] = ()
) -> list[Row]:
    """One row per target; a target without a resolution has an empty outcome and is never scored.

    Questions that were left out follow, so that scoring can report their number. If any option has a payoff in dollars,
    there is a column `payoff`.
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
    """Write CSV or JSONL, depending on the suffix; the file appears complete or not at all."""
    if path.suffix == ".jsonl":
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    elif path.suffix == ".csv":
        text = rows_as_csv(rows)
    else:
        raise InputError("cannot write this kind of file", path=path, hint="use .csv or .jsonl")
    write_atomically(path, text.encode())
    return path


def day_text(moment: Any) -> str:
    """Write a question due on a whole day as that day, so that the files of one round agree."""
    at = instant(moment)
    return at.date().isoformat() if at == instant(at.date()) else at.isoformat(timespec="seconds")


# Stored runs.


@dataclass(frozen=True, kw_only=True)
class RunRows:
    """Stored runs over their questions as two long tables."""

    forecasts: list[Row]
    outcomes: list[Row]
    combined: list[Row]
    """Answers of runs whose trials were combined with price and base rate by a tested rule."""
    names: tuple[str, ...]
    """Names of the forecasters, in the order of the runs."""
    texts: Mapping[str, str]
    """Question texts, by question id."""
    notes: tuple[str, ...] = ()
    """How the user's own tables were understood."""


def run_rows(settings: Settings, starts: Sequence[str], *, decided: bool = True) -> RunRows:
    """Load the runs with these id prefixes: one forecast per question, with the outcomes of their question sets.

    Runs whose forecasters have the same name are distinguished by their ids. With `decided`, at least one outcome must
    be known.
    """
    forecasts: list[Row] = []
    together: list[Row] = []
    with closing(RunStore(settings.store)) as store:
        found = [find_run_row(store, start) for start in starts]
        questions, outcomes = questions_of_runs(store, [row.id for row in found])
        answers = [list(store.answers(row.id)) for row in found]
        names = [_name_of_run(row, said) for row, said in zip(found, answers, strict=True)]
        names = [
            f"{name} ({row.id[:6]})" if names.count(name) > 1 else name for name, row in zip(names, found, strict=True)
        ]
        for name, row, said in zip(names, found, answers, strict=True):
            # Its own questions: another run may have asked the same one with other options.
            asked, _ = questions_of_runs(store, [row.id])
            own, combined = scored_forecasts(store, row, said, asked)
            forecasts += [{**one, "forecaster": name} for one in forecast_rows(own, asked, costs=True)]
            together += [
                {**one, "forecaster": f"{name}{COMBINED}"} for one in forecast_rows(combined, asked, costs=True)
            ]
    if decided and all(row["outcome"] is None for row in outcomes):
        raise InputError("none of the questions has an outcome yet", hint="give a table of outcomes")
    texts = {question.id: question.text for question in questions}
    return RunRows(forecasts=forecasts, combined=together, outcomes=outcomes, names=tuple(names), texts=texts)


def add_tables(
    found: RunRows, forecasts: TableSource | None, outcomes: TableSource | None, columns: ColumnNames | None = None
) -> RunRows:
    """Add the user's own tables to stored runs: a single table, or several by name.

    A table of forecasts may leave out what is clear anyway: the target of a question that has only one, and the date of
    a question that was asked once. Without a column `forecaster`, the forecaster is called by the table's name.
    Outcomes, also those in a column of the forecasts, add to what is known.
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

    added, notes = list[Row](), list[str]()

    def read(table: TableSource, name: str, *, forecasts: bool) -> list[Row]:
        rows, understood = table_rows(table, name, columns, forecasts=forecasts)
        notes.extend(understood)
        return [_filled(row, asked) for row in rows]

    tables = [(name, *log_tables(table, None)) for name, table in named_tables(forecasts).items()]
    answers = [("outcomes", outcomes), *((name, inside) for name, _, inside in tables)]
    for row in (row for name, one in answers if one is not None for row in read(one, name, forecasts=False)):
        tell(row)
    called = {row["forecaster"] for row in found.forecasts}
    for name, table, _ in tables:
        for row in read(table, name, forecasts=True):
            who = row["forecaster"]
            full = row | {"forecaster": f"{who} (table)" if who in called else who}
            added.append({column: full[column] for column in FORECAST_COLUMNS if full.get(column) is not None})
            if "outcome" in full:
                tell(
                    {
                        column: value
                        for column, value in full.items()
                        if column not in ("forecaster", "p", "trial", *COST_COLUMNS)
                    }
                )
    known = [*found.forecasts, *added]
    return replace(found, forecasts=known, outcomes=list(told.values()), notes=(*found.notes, *notes))


FORECAST_COLUMNS = ("forecaster", "question", "target", "due", "trial", "p", *COST_COLUMNS)


def named_tables(forecasts: Any) -> dict[str, TableSource]:
    """Return tables by name: those of a mapping, a single one by the name of its file, or none."""
    if forecasts is None or isinstance(forecasts, Mapping):
        return dict(cast("Mapping[str, TableSource]", forecasts or {}))
    return {str(forecasts) if isinstance(forecasts, str | Path) else "forecasts": forecasts}


def _filled(row: Mapping[str, Any], asked: Mapping[str, Sequence[Row]]) -> Row:
    """Fill in the target and the date of a row's question, if they are missing and there is only one."""
    known = asked.get(str(row.get("question")), ())
    full = dict(row)
    for column in ("target", "due"):
        if full.get(column) is None and len(values := {one[column] for one in known}) == 1:
            full[column] = values.pop()
    with suppress(ValueError, TypeError, InputError):  # What is no date is refused where tables are checked.
        full["due"] = day_text(full["due"]) if full.get("due") else None
    return full | {"target": full.get("target") or "yes"}


def _name_of_run(row: RunRow, answers: Iterable[Forecast | Failure]) -> str:
    """Return the run's own name, or else the name of its forecaster."""
    names = (one.forecaster for one in answers if isinstance(one, Forecast) and one.forecaster != PANEL)
    forecaster = next(names, None)
    if forecaster is None:
        raise InputError(f"run {row.id} has no forecast", hint="start it again with foretell run")
    return row.name or forecaster


def final_forecasts(
    store: RunStore, row: RunRow, answers: Sequence[Forecast | Failure], questions: Sequence[Question]
) -> list[Forecast]:
    """One forecast per question of a run, with trials combined as its spec says: the number shown everywhere."""
    return combine_trials(answers, questions, combining_of_row(store, row))


COMBINED = ", combined"
"""Suffix for the row of a run's answers if they differ from its trials alone."""


def scored_forecasts(
    store: RunStore, row: RunRow, answers: Sequence[Forecast | Failure], questions: Sequence[Question]
) -> tuple[list[Forecast], list[Forecast]]:
    """The forecasts a run is scored by, and its answers if they differ from those: see `scored_by`."""
    how = combining_of_row(store, row)
    finals = combine_trials(answers, questions, how)
    if (plain := scored_by(row, how)) is how:
        return finals, []
    own = combine_trials(answers, questions, plain)
    return own, finals if any(a.p != b.p for a, b in zip(own, finals, strict=True)) else []


def questions_of_runs(store: RunStore, runs: Iterable[str]) -> tuple[list[Question], list[Row]]:
    """The distinct questions of all runs, and their targets with outcomes."""
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


# How good a stored run was: every question with its answer, price, outcome and score, and all of it beside anchors.


THIS_RUN = "this run"
THIS_RUN_COMBINED = f"{THIS_RUN}{COMBINED}"
FEWEST_OUTCOMES = 2
"""Fewest decided questions for a score with an interval."""
SUMMARY_VERSION = 3
"""Version of the stored summary; raised if its content changes."""
MOST_PARTS = 12
"""Most categories or sources that are listed."""


@dataclass(frozen=True, kw_only=True)
class TargetAnswer:
    """One target of a question: the run's forecast, the market's price and the outcome."""

    id: str
    label: str
    p: float | None
    trials: tuple[float, ...]
    price: float | None
    outcome: int | None

    @property
    def brier(self) -> float | None:
        """Squared error of the answer; None if answer or outcome is missing."""
        return None if self.p is None or self.outcome is None else (self.p - self.outcome) ** 2

    @property
    def price_brier(self) -> float | None:
        """Squared error of the price; None if price or outcome is missing."""
        return None if self.price is None or self.outcome is None else (self.price - self.outcome) ** 2


@dataclass(frozen=True, kw_only=True)
class QuestionAnswer:
    """One question of a run with its answers and outcomes."""

    question: Question
    targets: tuple[TargetAnswer, ...]
    failed: int
    """Number of trials without an answer."""
    degraded: int
    """Number of trials whose answer is based on a failure."""
    final: Forecast | None = None
    """The combined forecast of its trials; None if none of them can be used."""

    @cached_property
    def leading(self) -> TargetAnswer:
        """The target shown if there is room for only one: what happened, or else the likeliest."""
        happened = [one for one in self.targets if one.outcome == 1]
        return happened[0] if len(happened) == 1 else max(self.targets, key=lambda one: one.p or 0.0)

    @property
    def brier(self) -> float | None:
        """Mean over its targets that are answered and decided."""
        return _mean([one.brier for one in self.targets])

    @property
    def gap(self) -> float | None:
        """Brier score of the price minus that of the answer, on targets with both; positive if the answer is better."""
        return _mean([
            None if one.brier is None or one.price_brier is None else one.price_brier - one.brier
            for one in self.targets
        ])  # fmt: skip

    @property
    def decided(self) -> bool:
        """Whether any of its outcomes is known."""
        return any(one.outcome is not None for one in self.targets)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


@dataclass(frozen=True, kw_only=True)
class RunPart:
    """One group of a run's questions, and how far the run is ahead of a reference on it."""

    column: str
    """Either category or source."""
    name: str
    reference: str
    verdict: Verdict
    """The run against the reference, by Brier index."""


@dataclass(frozen=True, kw_only=True)
class RunScores:
    """A run's answers compared with the outcomes."""

    run: str
    answers: tuple[QuestionAnswer, ...]
    rule: str = ""
    """How its answers are made from the trials, in one sentence."""
    board: Scoreboard | None = None
    """The run, its answers if they are more than its trials, and its anchors, compared with the base rate; None if too
    few outcomes are known."""
    table: ForecastTable | None = None
    against_price: Verdict | None = None
    """The run against the market's price by Brier index, on the targets that have both."""
    against_rate: Verdict | None = None
    """The run against the base rate by Brier index."""
    parts: tuple[RunPart, ...] = ()
    """Difference to the market, or else to the base rate, by category or source: where the run won and lost."""

    @property
    def decided(self) -> int:
        """Number of questions with a known outcome."""
        return sum(one.decided for one in self.answers)

    def metric(self, name: str, who: str = THIS_RUN) -> Interval | None:
        """Return a metric of the run or one of its anchors over everything that is decided."""
        if self.board is None:
            return None
        rows = self.board.section(self.board.groups()[0]).rows
        return next((row.metric(name) for row in rows if row.name == who), None)

    @property
    def index(self) -> Interval | None:
        """The Brier index of the run."""
        return self.metric("brier_index")

    @property
    def combined(self) -> dict[str, float] | None:
        """The Brier index of the answers if they are more than the trials, else None.

        It is not part of the stored summary, because outcomes of other runs may change it.
        """
        return _plain(self.metric("brier_index", THIS_RUN_COMBINED))

    def base_rates(self, question: Question) -> dict[str, float]:
        """The base rate that the run is compared with, by target of a decided question."""
        if self.table is None:
            return {}
        targets = self.table.targets
        mine = np.flatnonzero(targets.question.mask(question.id) & targets.groups["due"].mask(day_text(question.due)))
        rates = base_rate(targets)[mine] if len(mine) else []
        return {targets.target.names[targets.target.codes[i]]: float(p) for i, p in zip(mine, rates, strict=True)}

    def summary(self) -> dict[str, Any]:
        """Return the run's scores as plain data, for lists; None for what is not yet known."""
        found = {
            "brier_index": self.index,
            "price": self.metric("brier_index", CROWD),
            "base_rate": self.metric("brier_index", BASE_RATE),
            "brier": self.metric("brier"),
            "calibration_error": self.metric("ece"),
            "against_price": self.against_price,
            "against_base_rate": self.against_rate,
        }
        return {"decided": self.decided} | {name: _plain(value) for name, value in found.items()}


def _plain(value: Interval | Verdict | None) -> dict[str, Any] | None:
    if value is None:
        return None
    if isinstance(value, Interval):
        return {"estimate": value.estimate, "low": value.low, "high": value.high}
    sides = {"own": value.first_score.estimate, "other": value.second_score.estimate}
    numbers = {"estimate": value.diff, "low": value.low, "high": value.high, "n": value.n}
    return plain_data({**numbers, **sides, "says": value.says, "sentence": value.sentence})


_KEEP = """
insert into run_score values (?, ?, ?)
on conflict (run) do update set seen = excluded.seen, summary = excluded.summary"""


class StoredScores:
    """Stored summaries of runs' scores, recomputed only if an answer or an outcome has come in."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._outcomes = RunOutcomes(store)

    def of(self, rows: Sequence[RunRow]) -> dict[str, dict[str, Any]]:
        """Return `RunScores.summary` by run."""
        told, database = self._outcomes.count(), self._store.database
        kept = {run: (seen, text) for run, seen, text in database.read("select run, seen, summary from run_score")}
        found: dict[str, dict[str, Any]] = {}
        for row in rows:
            decided, when = told.get(row.id, (0, ""))
            if not decided:
                found[row.id] = RunScores(run=row.id, answers=()).summary()
                continue
            state = (
                f"{SUMMARY_VERSION} {row.done} {row.failed} {row.degraded} {decided} {when} {row.spec.get('aggregate')}"
            )
            seen, text = kept.get(row.id, ("", ""))
            summary = _kept_summary(text) if seen == state else None
            if summary is None:
                summary = score_run(self._store, row).summary()
                if not database.read_only:
                    database.write(_KEEP, (row.id, state, json.dumps(summary)))
            found[row.id] = summary
        return found


def _kept_summary(text: str) -> dict[str, Any] | None:
    """Parse a stored summary; None if it cannot be read and must be recomputed."""
    try:
        found = json.loads(text)
    except (ValueError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def score_run(store: RunStore, row: RunRow) -> RunScores:
    """Compare a run's answers with the known outcomes, and score its trials and its answers."""
    questions = store.questions(row.id)
    answers = list(store.answers(row.id))
    own, combined = scored_forecasts(store, row, answers, questions)
    finals = combined or own
    rule = ""
    if row.spec.get("models") or int(row.spec.get("trials", 1)) > 1:
        rule = rule_in_words(row.spec.get("aggregate") or AUTO, combining_of_row(store, row), tested=bool(combined))
    resolutions = RunOutcomes(store).of(row.id)
    told = tuple(_question_answers(questions, answers, finals, resolutions))
    scored = RunScores(run=row.id, answers=told, rule=rule)
    if not finals or sum(one.brier is not None for one in told) < FEWEST_OUTCOMES:
        return scored
    forecasts = [
        {**one, "forecaster": name}
        for name, said in ((THIS_RUN, own), (THIS_RUN_COMBINED, combined))
        for one in forecast_rows(said, questions)
    ]
    try:
        table = read_table(forecasts, outcome_rows(questions, resolutions))
    except InputError:  # What was answered is not what came out.
        return scored
    column = next((name for name in ("category", "source") if _distinct(table, name) > 1), "")
    by = (column,) if column else ()
    board = score_table(table, ScoringOptions(reference=BASE_RATE))
    priced = any(score.forecaster == CROWD for score in board.scores)
    rate = compare_pair(table, THIS_RUN, BASE_RATE, ScoringOptions(by=by)).verdicts
    price = compare_pair(table, THIS_RUN, CROWD, ScoringOptions(by=by)).verdicts if priced else ()
    return RunScores(
        run=row.id,
        answers=told,
        rule=rule,
        board=board,
        table=table,
        against_price=price[0] if price else None,
        against_rate=rate[0] if rate else None,
        parts=_parts(price or rate, column) if column else (),
    )


def _distinct(table: ForecastTable, column: str) -> int:
    labels = table.targets.groups.get(column)
    return 0 if labels is None else len({labels.names[code] for code in labels.codes} - {""})


def _parts(verdicts: Sequence[Verdict], column: str) -> tuple[RunPart, ...]:
    """Verdicts by category or source, best first, limited to the largest ones."""
    found = [
        RunPart(column=column, name=verdict.group[column], reference=verdict.second, verdict=verdict)
        for verdict in verdicts
        if verdict.group.get(column)
    ]
    largest = sorted(found, key=lambda part: -part.verdict.n)[:MOST_PARTS]
    return tuple(sorted(largest, key=lambda part: -part.verdict.diff))


def _question_answers(
    questions: Sequence[Question],
    answers: Sequence[Forecast | Failure],
    finals: Sequence[Forecast],
    resolutions: Sequence[Resolution],
) -> list[QuestionAnswer]:
    outcomes: Mapping[tuple[str, datetime | None, str], int | None] = {
        (one.question_id, one.due, one.target_id): one.outcome for one in resolutions
    }
    said = {(one.question_id, one.as_of.at): one for one in finals}
    trials: dict[tuple[str, datetime], list[Forecast | Failure]] = {}
    for answer in answers:
        trials.setdefault((answer.question_id, answer.as_of.at), []).append(answer)
    found: list[QuestionAnswer] = []
    for question in questions:
        key = (question.id, question.as_of.at)
        ended, final = trials.get(key, []), said.get(key)
        forecasts = [one for one in ended if isinstance(one, Forecast) and one.forecaster != PANEL]
        targets = tuple(
            TargetAnswer(
                id=target.id,
                label=target.label or target.id,
                p=None if final is None else final.p.get(target.id),
                trials=tuple(one.p[target.id] for one in forecasts if target.id in one.p),
                price=target.snapshot.price if target.snapshot else None,
                outcome=outcomes.get((question.id, question.due, target.id)),
            )
            for target in question.targets
        )
        degraded = sum(one.degraded for one in forecasts)
        failed = sum(isinstance(one, Failure) for one in ended)
        found.append(QuestionAnswer(question=question, targets=targets, failed=failed, degraded=degraded, final=final))
    return found
