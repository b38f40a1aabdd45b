"""How good a stored run was: every question with its answer, price, outcome and score, and all of it beside anchors."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np

from foretell.forecasters.combine.trials import PANEL
from foretell.metrics.bootstrap import Interval, Resampling
from foretell.metrics.comparison import Comparison
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.store import RunRow, RunStore
from foretell.scoring.join import ReadOptions, read_table
from foretell.scoring.long_tables import day_text, final_forecasts, forecast_rows, outcome_rows
from foretell.scoring.score import ScoringOptions, score_table
from foretell.scoring.scoreboard import Scoreboard
from foretell.scoring.table import BASE_RATE, CROWD, ForecastTable, base_rate

THIS_RUN = "this run"
FEWEST_OUTCOMES = 2
"""Decided questions that a score with an interval takes at least."""
RUN_DRAWS = 500
SUMMARY_VERSION = 1
"""Of what is kept: raised where the summary says something else than before."""
MOST_PARTS = 12
"""Categories or sources that are listed."""


@dataclass(frozen=True, kw_only=True)
class TargetAnswer:
    """One outcome of a question: what the run said, what the market said, what happened."""

    id: str
    label: str
    p: float | None
    trials: tuple[float, ...]
    price: float | None
    outcome: int | None

    @property
    def brier(self) -> float | None:
        """Squared error of the answer."""
        return None if self.p is None or self.outcome is None else (self.p - self.outcome) ** 2

    @property
    def price_brier(self) -> float | None:
        """Squared error of the price."""
        return None if self.price is None or self.outcome is None else (self.price - self.outcome) ** 2


@dataclass(frozen=True, kw_only=True)
class QuestionAnswer:
    """One question of a run with what became of it."""

    question: Question
    targets: tuple[TargetAnswer, ...]
    failed: int
    """Trials without an answer."""
    degraded: int
    """Trials whose answer rests on a failure."""
    final: Forecast | None = None
    """Its trials as one forecast; None where none of them can be used."""

    @cached_property
    def leading(self) -> TargetAnswer:
        """The outcome that is shown where there is room for one: what happened, else what was thought likeliest."""
        happened = [one for one in self.targets if one.outcome == 1]
        return happened[0] if len(happened) == 1 else max(self.targets, key=lambda one: one.p or 0.0)

    @property
    def brier(self) -> float | None:
        """Mean over its outcomes that were answered and are decided."""
        return _mean([one.brier for one in self.targets])

    @property
    def gap(self) -> float | None:
        """Brier score of the price less that of the answer, on the outcomes that have both: above 0 is better."""
        return _mean([
            None if one.brier is None or one.price_brier is None else one.price_brier - one.brier
            for one in self.targets
        ])  # fmt: skip

    @property
    def decided(self) -> bool:
        """Whether something has come out."""
        return any(one.outcome is not None for one in self.targets)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


@dataclass(frozen=True, kw_only=True)
class RunPart:
    """A part of a run's questions, and how far the run is ahead of a reference on it."""

    column: str
    """category or source."""
    name: str
    reference: str
    difference: Comparison
    """In points of the Brier index."""


@dataclass(frozen=True, kw_only=True)
class RunScores:
    """A run's answers beside what happened."""

    run: str
    answers: tuple[QuestionAnswer, ...]
    board: Scoreboard | None = None
    """The run and its anchors, compared with the base rate; None where too little has come out."""
    table: ForecastTable | None = None
    against_price: Comparison | None = None
    """Brier index of the run less that of the market's price, on the targets that have both."""
    against_rate: Comparison | None = None
    """The same against the base rate."""
    parts: tuple[RunPart, ...] = ()
    """Where it was won and lost: the difference to the market, else to the base rate, by category or source."""

    @property
    def decided(self) -> int:
        """Questions of which something has come out."""
        return sum(one.decided for one in self.answers)

    def metric(self, name: str, who: str = THIS_RUN) -> Interval | None:
        """A metric of the run or one of its anchors over everything that is decided."""
        if self.board is None:
            return None
        rows = self.board.section(self.board.groups()[0]).rows
        return next((row.metric(name) for row in rows if row.name == who), None)

    @property
    def index(self) -> Interval | None:
        """The Brier index."""
        return self.metric("bi")

    def base_rates(self, question: Question) -> dict[str, float]:
        """By target of a question that is decided, the base rate that the run is held against."""
        if self.table is None:
            return {}
        targets = self.table.targets
        mine = np.flatnonzero(targets.question.mask(question.id) & targets.groups["due"].mask(day_text(question.due)))
        rates = base_rate(targets)[mine] if len(mine) else []
        return {targets.target.names[targets.target.codes[i]]: float(p) for i, p in zip(mine, rates, strict=True)}

    def summary(self) -> dict[str, Any]:
        """The run's scores as plain data: what lists show. None for what cannot be said yet."""
        found = {
            "bi": self.index,
            "price": self.metric("bi", CROWD),
            "base_rate": self.metric("bi", BASE_RATE),
            "brier": self.metric("brier"),
            "calibration_error": self.metric("ece"),
            "against_price": self.against_price,
            "against_base_rate": self.against_rate,
        }
        return {"decided": self.decided} | {name: _plain(one) for name, one in found.items()}


def _plain(found: Interval | Comparison | None) -> dict[str, float] | None:
    if found is None:
        return None
    return {
        "estimate": found.diff if isinstance(found, Comparison) else found.estimate,
        "low": found.low,
        "high": found.high,
    }


_KEEP = """
insert into run_score values (?, ?, ?)
on conflict (run) do update set seen = excluded.seen, summary = excluded.summary"""


class StoredScores:
    """The summaries of runs' scores, computed again only where an answer or an outcome came in."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._outcomes = RunOutcomes(store)

    def of(self, rows: Sequence[RunRow]) -> dict[str, dict[str, Any]]:
        """By run: what `RunScores.summary` says."""
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
    """What is kept of a run's scores; None where that cannot be read, and is made anew."""
    try:
        found = json.loads(text)
    except (ValueError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def score_run(store: RunStore, row: RunRow) -> RunScores:
    """A run's answers, combined as the run says, beside the outcomes that are known."""
    questions = store.questions(row.id)
    answers = list(store.answers(row.id))
    finals = final_forecasts(store, row, answers, questions)
    resolutions = RunOutcomes(store).of(row.id)
    told = tuple(_question_answers(questions, answers, finals, resolutions))
    scored = RunScores(run=row.id, answers=told)
    if not finals or sum(one.brier is not None for one in told) < FEWEST_OUTCOMES:
        return scored
    forecasts = [{**row, "forecaster": THIS_RUN} for row in forecast_rows(finals, questions)]
    try:
        table = read_table(forecasts, outcome_rows(questions, resolutions), ReadOptions(drop_unknown=True))
    except InputError:  # What was answered is not what came out.
        return scored
    column = next((name for name in ("category", "source") if _distinct(table, name) > 1), "")
    by, resampling = (column,) if column else (), Resampling(draws=RUN_DRAWS)
    board = score_table(table, ScoringOptions(reference=BASE_RATE, by=by, resampling=resampling))
    by_price = None
    if any(one.forecaster == CROWD for one in board.scores):
        by_price = score_table(table, ScoringOptions(reference=CROWD, by=by, resampling=resampling))
    return RunScores(
        run=row.id,
        answers=told,
        board=board,
        table=table,
        against_price=_against(by_price) if by_price else None,
        against_rate=_against(board),
        parts=_parts(by_price or board, column) if column else (),
    )


def _distinct(table: ForecastTable, column: str) -> int:
    labels = table.targets.groups.get(column)
    return 0 if labels is None else len({labels.names[code] for code in labels.codes} - {""})


def _parts(board: Scoreboard, column: str) -> tuple[RunPart, ...]:
    """By category or source, best first; the largest that there is room for."""
    found = [
        RunPart(column=column, name=one.group[column], reference=one.reference, difference=one.comparison)
        for one in board.differences
        if one.forecaster == THIS_RUN and one.group.get(column)
    ]
    largest = sorted(found, key=lambda part: -part.difference.n)[:MOST_PARTS]
    return tuple(sorted(largest, key=lambda part: -part.difference.diff))


def _against(board: Scoreboard) -> Comparison | None:
    """How the run compares with the board's reference over everything."""
    rows = board.section(board.groups()[0]).rows
    return next((row.difference for row in rows if row.name == THIS_RUN), None)


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
