"""The scores of stored runs: their forecasts as long tables, and their answers compared with outcomes and baselines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np

from foretell.data.datasets.question_set import EXCLUDED, QuestionSet
from foretell.forecasters.combine.aggregate import PANEL
from foretell.frozen import frozen
from foretell.metrics.bootstrap import Interval
from foretell.questions.codec import plain_data
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution
from foretell.runs.combine import chosen_rule, rule_in_words
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.settings import Settings
from foretell.runs.spec import AUTO
from foretell.runs.store import RunRow, RunStore, find_run_row
from foretell.scoring.added_tables import RunRows, joined_row
from foretell.scoring.baselines import BASE_RATE, MARKET_PRICE
from foretell.scoring.join import Difference, difference_notes, read_table
from foretell.scoring.long_tables import Row, day_text, forecast_rows, outcome_rows
from foretell.scoring.run_answers import (
    StoredAnswer,
    answers_of_run,
    caveats_of_answers,
    combined_forecasts,
    scored_forecasts,
)
from foretell.scoring.score import ScoringOptions, compare_pair, score_table
from foretell.scoring.scoreboard import Scoreboard
from foretell.scoring.table import ForecastTable, base_rate
from foretell.scoring.verdict import Verdict


def run_rows(settings: Settings, starts: Sequence[str], *, decided: bool = True) -> RunRows:
    """Load the runs with these id prefixes: one forecast per question, with the outcomes of their question sets.

    Runs whose forecasters have the same name are distinguished by their ids. With `decided`, at least one outcome must
    be known.
    """
    forecasts: list[Row] = []
    together: list[Row] = []
    with closing(RunStore(settings.store)) as store:
        rows = [find_run_row(store, start) for start in starts]
        differences = list[Difference]()
        questions, outcomes = questions_of_runs(store, [row.id for row in rows], differences)
        answers = [list(store.costed_answers(row.id)) for row in rows]
        counts = {row.id: store.question_count(row.id) for row in rows}
        names = [_name_of_run(row, own) for row, own in zip(rows, answers, strict=True)]
        names = [
            f"{name} ({row.id[:6]})" if names.count(name) > 1 else name for name, row in zip(names, rows, strict=True)
        ]
        for name, row, answers_of_run in zip(names, rows, answers, strict=True):
            # Only the run's own questions: another run may have asked the same one with other options.
            own_questions, _ = questions_of_runs(store, [row.id])
            own = scored_forecasts(store, row, answers_of_run, own_questions)
            combined = combined_forecasts(store, row, answers_of_run, own_questions, own)
            forecasts += [
                {**forecast_row, "forecaster": name} for forecast_row in forecast_rows(own, own_questions, costs=True)
            ]
            together += [
                {**forecast_row, "forecaster": f"{name}{COMBINED}"}
                for forecast_row in forecast_rows(combined, own_questions, costs=True)
            ]
    if decided and all(row["outcome"] is None for row in outcomes):
        raise InputError("none of the questions has an outcome yet", hint="give a table of outcomes")
    texts = {question.id: question.text for question in questions}
    # What was excluded is noted where the outcomes are joined.
    notes = tuple(
        f"{name}: {caveat}"
        for name, row, answers_of_run in zip(names, rows, answers, strict=True)
        for caveat in caveats_of_answers(row, counts[row.id], answers_of_run, excluded=0)
    )
    notes += tuple(difference_notes(differences))
    return RunRows(
        forecasts=forecasts, combined=together, outcomes=outcomes, names=tuple(names), texts=texts, notes=notes
    )


def _name_of_run(row: RunRow, answers: Iterable[Forecast | Failure]) -> str:
    """Return the run's own name, or else the name of its forecaster."""
    names = (answer.forecaster for answer in answers if isinstance(answer, Forecast) and answer.forecaster != PANEL)
    forecaster = next(names, None)
    if forecaster is None:
        raise InputError(f"run {row.id} has no forecast", hint="start it again with foretell run")
    return row.name or forecaster


COMBINED = ", combined"
"""Suffix for the row of a run's answers if they differ from its trials alone."""


def questions_of_runs(
    store: RunStore, runs: Iterable[str], differences: list[Difference] | None = None
) -> tuple[list[Question], list[Row]]:
    """The distinct questions of all runs, and their targets with outcomes.

    Facts that runs state differently are those of the first run, and are added to `differences`.
    """
    found = [] if differences is None else differences
    from foretell.runs.question_sets import questions_of_run

    rows: dict[tuple[str, str, str], Row] = {}
    chosen: dict[tuple[str, str], Question] = {}
    for run in runs:
        stored = RunOutcomes(store).of(run)
        try:
            question_set = questions_of_run(store, run)
        except InputError:
            if not stored:
                raise
            # The file is gone or has changed: use the questions and outcomes stored with the run.
            question_set = QuestionSet(name=run, questions=tuple(store.questions(run)))
        chosen |= {(question.id, question.due.isoformat()): question for question in question_set.questions}
        for row in outcome_rows(question_set.questions, [*question_set.resolutions, *stored], question_set.excluded):
            key = (row["question"], row["target"], row["due"])
            rows[key] = joined_row(rows[key], row, found) if key in rows else row
    for name in ("payoff", EXCLUDED):
        if any(name in row for row in rows.values()):
            rows = {key: {**row, name: row.get(name)} for key, row in rows.items()}
    return list(chosen.values()), list(rows.values())


# The scores of a stored run: every question with its answer, price, outcome and score, compared with baselines.


THIS_RUN = "this run"
THIS_RUN_COMBINED = f"{THIS_RUN}{COMBINED}"
FEWEST_OUTCOMES = 2
"""Fewest decided questions for a score with an interval."""
MOST_PARTS = 12
"""Most categories or sources that are listed."""


@frozen
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


@frozen
class QuestionAnswer:
    """One question of a run with its answers and outcomes."""

    question: Question
    targets: tuple[TargetAnswer, ...]
    failed: int
    """Number of trials without an answer."""
    fallback: int
    """Number of trials whose answer is based on a failure."""
    value: str = ""
    """The value of its series that the answer stands on, in words."""

    @cached_property
    def leading(self) -> TargetAnswer:
        """The target shown if there is room for only one: what happened, or else the likeliest."""
        happened = [target for target in self.targets if target.outcome == 1]
        return happened[0] if len(happened) == 1 else max(self.targets, key=lambda target: target.p or 0.0)

    @property
    def brier(self) -> float | None:
        """Mean over its targets that are answered and decided."""
        return _mean([target.brier for target in self.targets])

    @property
    def gap(self) -> float | None:
        """Brier score of the price minus that of the answer, on targets with both; positive if the answer is better."""
        return _mean([
            None if target.brier is None or target.price_brier is None else target.price_brier - target.brier
            for target in self.targets
        ])  # fmt: skip

    @property
    def decided(self) -> bool:
        """Whether any of its outcomes is known."""
        return any(target.outcome is not None for target in self.targets)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


@frozen
class RunPart:
    """One group of a run's questions, and how far the run is ahead of a reference on it."""

    column: str
    """Either category or source."""
    name: str
    reference: str
    verdict: Verdict
    """The run against the reference, by Brier index."""


@frozen
class RunScores:
    """A run's answers compared with the outcomes."""

    run: str
    answers: tuple[QuestionAnswer, ...]
    rule: str = ""
    """How its answers are made from the trials, in one sentence."""
    caveats: tuple[str, ...] = ()
    """What failed or was left out, and what that means for the scores."""
    board: Scoreboard | None = None
    """The run, its answers if they differ from its trials, and the baselines, compared with the base rate; None if too
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
        return sum(answer.decided for answer in self.answers)

    def metric(self, name: str, who: str = THIS_RUN) -> Interval | None:
        """Return a metric of the run or of a baseline over all decided questions."""
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
        """The Brier index of the answers if they differ from the trials, else None.

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
        metrics = {
            "brier_index": self.index,
            "price": self.metric("brier_index", MARKET_PRICE),
            "base_rate": self.metric("brier_index", BASE_RATE),
            "brier": self.metric("brier"),
            "calibration_error": self.metric("ece"),
            "against_price": self.against_price,
            "against_base_rate": self.against_rate,
        }
        return {"decided": self.decided} | {name: _plain(value) for name, value in metrics.items()}


def _plain(value: Interval | Verdict | None) -> dict[str, Any] | None:
    if value is None:
        return None
    if isinstance(value, Interval):
        return {"estimate": value.estimate, "low": value.low, "high": value.high}
    sides = {"own": value.first_score.estimate, "other": value.second_score.estimate}
    # The numbers beside each other subtract to the difference that is `shown`.
    sides["shown"] = value.shown_difference(value.decimals)
    numbers = {"estimate": value.diff, "low": value.low, "high": value.high, "n": value.n}
    return plain_data({**numbers, **sides, "says": value.says, "sentence": value.sentence})


def score_run(store: RunStore, row: RunRow, *, combined: bool = True) -> RunScores:
    """Compare a run's answers with the known outcomes, and score its trials and, with `combined`, its answers."""
    questions = store.questions(row.id)
    answered = answers_of_run(store, row, questions, combined=combined)
    rule = ""
    if combined and (row.spec.get("models") or int(row.spec.get("trials", 1)) > 1):
        rule = rule_in_words(chosen_rule(row.spec.get("combine") or AUTO, row.spec.get("models") or {}))
    resolutions = RunOutcomes(store).of(row.id)
    by_key = {answer.key: answer for answer in answered.answers}
    pairs = [(question, by_key.get((question.id, question.as_of.at.isoformat()))) for question in questions]
    question_answers = tuple(_question_answers(pairs, resolutions))
    scored = RunScores(run=row.id, answers=question_answers, rule=rule, caveats=answered.caveats)
    if sum(question_answer.brier is not None for question_answer in question_answers) < FEWEST_OUTCOMES:
        return scored
    forecasts: list[Row] = [
        {"forecaster": name, "question": question.id, "target": target, "due": day_text(question.due), "p": p}
        for question, answer in pairs
        if answer is not None
        for name, of_question in ((THIS_RUN, answer.own), (THIS_RUN_COMBINED, answer.combined))
        for target, p in (of_question or {}).items()
    ]
    try:
        table = read_table(forecasts, outcome_rows(questions, resolutions))
    except InputError:  # The forecasts and the outcomes have no target in common.
        return scored
    column = next((name for name in ("category", "source") if _distinct(table, name) > 1), "")
    by = (column,) if column else ()
    board = score_table(table, ScoringOptions(reference=BASE_RATE))
    priced = any(score.forecaster == MARKET_PRICE for score in board.scores)
    rate = compare_pair(table, THIS_RUN, BASE_RATE, ScoringOptions(by=by)).verdicts
    price = compare_pair(table, THIS_RUN, MARKET_PRICE, ScoringOptions(by=by)).verdicts if priced else ()
    return replace(
        scored,
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
    run_parts = [
        RunPart(column=column, name=verdict.group[column], reference=verdict.second, verdict=verdict)
        for verdict in verdicts
        if verdict.group.get(column)
    ]
    largest = sorted(run_parts, key=lambda part: -part.verdict.n)[:MOST_PARTS]
    return tuple(sorted(largest, key=lambda part: -part.verdict.diff))


def _question_answers(
    pairs: Iterable[tuple[Question, StoredAnswer | None]], resolutions: Sequence[Resolution]
) -> Iterator[QuestionAnswer]:
    outcomes: Mapping[tuple[str, datetime | None, str], int | None] = {
        (resolution.question_id, resolution.due, resolution.target_id): resolution.outcome for resolution in resolutions
    }
    for question, answer in pairs:
        answered = answer or StoredAnswer(question=question.id, as_of="")
        targets = tuple(
            TargetAnswer(
                id=target.id,
                label=target.short_label,
                p=None if answered.p is None else answered.p.get(target.id),
                trials=tuple(trial[target.id] for trial in answered.trials if target.id in trial),
                price=target.snapshot.price if target.snapshot else None,
                outcome=outcomes.get((question.id, question.due, target.id)),
            )
            for target in question.targets
        )
        yield QuestionAnswer(
            question=question,
            targets=targets,
            failed=answered.failed,
            fallback=answered.fallback,
            value=answered.value,
        )
