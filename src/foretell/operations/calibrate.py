"""Learn from resolved forecasts how to combine and correct the next ones."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast, get_args

import numpy as np
from rich.console import Console

from foretell.forecasters.combine.ensemble import (
    BestSoFar,
    Ensemble,
    EqualWeights,
    GreedySelection,
    PooledWeights,
    SkillWeights,
    side_by_side,
)
from foretell.forecasters.combine.rules import FittedRule, TrainingOverlap, one_sided
from foretell.forecasters.combine.rules import apply as apply_rule
from foretell.forecasters.combine.saving import load, to_json
from foretell.metrics.arrays import Bools
from foretell.metrics.bootstrap import Resampling
from foretell.metrics.comparison import McNemarTest, mcnemar
from foretell.metrics.decisions import DEFAULT_THRESHOLD, ThresholdReport, best_threshold, score_threshold
from foretell.operations.requests.scoring import (
    CalibrateApplyRequest,
    CalibrateFitRequest,
    CalibrationMethod,
    EnsembleRequest,
    ThresholdRequest,
)
from foretell.operations.result import Result, show_table
from foretell.questions.errors import InputError
from foretell.report.numbers import bracket, signed
from foretell.report.terminal import TextColumn, show_text
from foretell.scoring.join import (
    ReadOptions,
    answered_rows,
    choose_forecaster,
    read_examples,
    read_rows,
    read_table,
)
from foretell.scoring.table import ForecastTable, Labels
from foretell.studies.configurations import build_method

METHODS: tuple[CalibrationMethod, ...] = get_args(CalibrationMethod)


@dataclass(frozen=True, kw_only=True)
class FitResult(Result):
    """A fitted rule."""

    rule: FittedRule
    method: str
    forecaster: str
    one_sided: bool
    """All outcomes were the same, so nothing about calibration could be learnt."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Say so if nothing could be learnt."""
        return ("All of them came out alike, so nothing about calibration could be learnt.",) if self.one_sided else ()

    def to_json(self) -> str:
        """The rule as `foretell calibrate apply` reads it."""
        return to_json(self.rule)

    def to_dict(self) -> Any:
        """The same as plain data."""
        return json.loads(self.to_json())

    def __str__(self) -> str:
        training = self.rule.training
        return (
            f"Fitted {self.method} on {training.n:,} targets of {self.forecaster}, "
            f"{len(training.askings):,} dated questions.\n"
            f"It answers questions asked after {training.last_known}."
        )


def fit(request: CalibrateFitRequest) -> FitResult:
    """Fit a rule on forecasts whose outcomes are known."""
    found = read_examples(
        request.forecasts, request.outcomes, drop_unknown=request.drop_unknown, columns=request.columns
    )
    name, examples = choose_forecaster(found, request.forecaster)
    examples = answered_rows(examples)
    return FitResult(
        rule=build_method(request.method).fit(examples),
        method=request.method,
        forecaster=name,
        one_sided=one_sided(examples),
    )


@dataclass(frozen=True, kw_only=True)
class CalibratedForecasts(Result):
    """Forecasts corrected by a fitted rule."""

    forecasts: list[dict[str, Any]]

    def to_dict(self) -> Any:
        """One dictionary for each forecast, as `foretell score` reads them."""
        return self.forecasts

    def __str__(self) -> str:
        return f"{len(self.forecasts):,} forecasts."


def apply(request: CalibrateApplyRequest) -> CalibratedForecasts:
    """Apply a fitted rule to new forecasts; it refuses those it was fitted on."""
    rule = load(request.fitted)
    found = read_rows(request.forecasts, request.outcomes, drop_unknown=request.drop_unknown, columns=request.columns)
    if isinstance(rule, Ensemble):
        if missing := [name for name in rule.names if name not in found]:
            problem = f"there are no forecasts by {missing[0]!r}, a member of the ensemble"
            raise InputError(problem, column="forecaster")
        name, rows = "ensemble", side_by_side({name: found[name] for name in rule.names})[1]
    else:
        whose, rows = choose_forecaster(found, request.forecaster)
        name = f"{whose}, calibrated"
    rows = answered_rows(rows)
    try:
        p = apply_rule(rule, rows, check=request.check)
    except TrainingOverlap as error:
        hint = "fit on earlier rounds, or leave such questions out of the forecasts"
        raise InputError(f"this rule must not judge these forecasts: {error}", path=request.fitted, hint=hint) from None
    name = request.name or name
    columns = zip(rows.question.tolist(), rows.target.tolist(), rows.due.astype(str).tolist(), p.tolist(), strict=True)
    return CalibratedForecasts(
        forecasts=[
            {"forecaster": name, "question": question, "target": target, "due": due, "p": value}
            for question, target, due, value in columns
        ]
    )


class EnsembleResult(FitResult):
    """The weights of an ensemble."""

    @property
    def ensemble(self) -> Ensemble:
        """The members with their weights."""
        return cast("Ensemble", self.rule)

    def rows(self) -> list[dict[str, Any]]:
        """One row for each member."""
        members = zip(self.ensemble.names, self.ensemble.weights, strict=True)
        return [{"forecaster": name, "weight": weight} for name, weight in members]

    def print(self, console: Console) -> None:
        """The members with their weights, and why."""
        ranked = sorted(self.rows(), key=lambda row: -row["weight"])
        rows = [{**row, "weight": f"{row['weight']:.3f}"} for row in ranked]
        columns = {TextColumn(head="Forecaster", shrink=16): "forecaster"}
        show_table(console, rows, {**columns, TextColumn(head="Weight", right=True): "weight"})
        if self.ensemble.told:
            show_text(console, f"Weights: {self.ensemble.told}.\n")


def fit_ensemble(request: EnsembleRequest) -> EnsembleResult:
    """Choose weights for several forecasters; `apply` then combines them."""
    tables = read_examples(
        request.forecasts, request.outcomes, drop_unknown=request.drop_unknown, columns=request.columns
    )
    if len(tables) < 2:
        raise InputError("an ensemble needs two forecasters or more", path=request.forecasts, column="forecaster")
    names, rows = side_by_side({name: one.rows for name, one in tables.items()})
    examples = answered_rows(replace(next(iter(tables.values())), rows=rows))
    method = {
        "greedy": GreedySelection(names=names, replacement=request.replacement, steps=request.steps),
        "skill": SkillWeights(names=names),
        "pooled": PooledWeights(names=names),
        "best": BestSoFar(names=names),
        "equal": EqualWeights(names=names),
    }[request.method]
    whose = f"{len(names)} forecasters"
    return EnsembleResult(rule=method.fit(examples), method=request.method, forecaster=whose, one_sided=False)


# Thresholds: chosen on validation rows, judged on test rows.


SCHEMA = "foretell/thresholds/1"
SPLIT_COLUMNS = ("split", "subtype")
"""Columns that may hold the split if none is named; claims have it as their subtype."""
NOTE = (
    "A claim is called True if p is above the threshold, which was chosen on the validation rows alone. Test: what\n"
    "it reaches on the test rows; Gain: minus what one half reaches there; p: McNemar's exact test of the two."
)


@dataclass(frozen=True, kw_only=True)
class ForecasterThreshold:
    """The threshold of one forecaster, and its value on rows where it was not chosen."""

    forecaster: str
    report: ThresholdReport
    test: McNemarTest
    """The threshold compared with one half, on the test rows."""
    called_true: float
    """Share of true claims in the test rows that were called True."""
    called_false: float
    """Share of false claims that were called False."""


@dataclass(frozen=True, kw_only=True)
class ThresholdResult(Result):
    """The threshold of each forecaster."""

    found: tuple[ForecasterThreshold, ...]
    criterion: str

    def to_dict(self) -> Any:
        """The thresholds and their value."""
        forecasters = [
            {"forecaster": one.forecaster, "threshold": one.report.threshold.value, **plain_report(one)}
            for one in self.found
        ]
        return {"schema": SCHEMA, "criterion": self.criterion, "forecasters": forecasters}

    def rows(self) -> list[dict[str, Any]]:
        """One row for each forecaster."""
        return [dict(row) for row in self.to_dict()["forecasters"]]

    def print(self, console: Console) -> None:
        """A table."""
        columns: dict[TextColumn, Callable[[ForecasterThreshold], object]] = {
            TextColumn(head="Forecaster", shrink=12): lambda one: one.forecaster,
            TextColumn(head="threshold", right=True): lambda one: f"{one.report.threshold.value:.3f}",
            TextColumn(head="validation", right=True, drop=2): lambda one: f"{one.report.threshold.score:.3f}",
            TextColumn(head="test", right=True): lambda one: f"{one.report.score:.3f}",
            TextColumn(head="at 0.5", right=True): lambda one: f"{one.report.score_at_half:.3f}",
            TextColumn(head="gain", right=True): lambda one: (
                f"{signed(one.report.gain.diff, 3)} {bracket(one.report.gain.low, one.report.gain.high, 3)}"
            ),
            TextColumn(head="p", right=True, drop=1): lambda one: f"{one.test.p:.3f}",
            TextColumn(head="True", right=True, drop=3): lambda one: f"{one.called_true:.0%}",
            TextColumn(head="False", right=True, drop=3): lambda one: f"{one.called_false:.0%}",
            TextColumn(head="n", right=True, drop=2): lambda one: one.report.n,
        }
        show_text(console, f"{self.criterion}\n")
        show_table(console, self.found, columns)
        show_text(console, f"{NOTE}\n")


def plain_report(one: ForecasterThreshold) -> dict[str, Any]:
    """The value of a threshold as plain data."""
    report = one.report
    return {
        "validation": report.threshold.score,
        "validation_n": report.threshold.n,
        "test": report.score,
        "test_at_half": report.score_at_half,
        "test_n": report.n,
        "gain": report.gain.diff,
        "gain_low": report.gain.low,
        "gain_high": report.gain.high,
        "mcnemar_p": one.test.p,
        "called_true": one.called_true,
        "called_false": one.called_false,
    }


def fit_thresholds(request: ThresholdRequest) -> ThresholdResult:
    """Choose the threshold of every forecaster on the validation rows, and judge it on the test rows."""
    reading = ReadOptions(trials=request.combine, drop_unknown=request.drop_unknown, columns=request.columns)
    table = read_table(request.forecasts, request.outcomes, reading)
    split = _split(table, request.split)
    parts = tuple(split.mask(name) for name in (request.validation, request.test))
    for name, rows in zip((request.validation, request.test), parts, strict=True):
        if not rows.any():
            hint = f"there are {', '.join(repr(one) for one in split.names[:8])}"
            raise InputError(f"no target is of the part {name!r}", column=request.split or "split", hint=hint)
    how = Resampling(draws=request.draws, seed=request.seed)
    found = [_one(table, name, parts, request, how) for name in table.forecasters]
    ranked = sorted(found, key=lambda one: -one.report.score)
    return ThresholdResult(found=tuple(ranked), criterion=request.criterion)


def _split(table: ForecastTable, column: str | None) -> Labels:
    groups = table.targets.groups
    for name in (column,) if column else SPLIT_COLUMNS:
        if name in groups:
            return groups[name]
    hint = "add a column split with validation and test; foretell study threshold chooses and judges by folds instead"
    raise InputError("the outcomes do not say what is validation and what is test", column=column or "split", hint=hint)


def _one(
    table: ForecastTable, name: str, parts: tuple[Bools, ...], request: ThresholdRequest, how: Resampling
) -> ForecasterThreshold:
    targets, p = table.targets, table.p_of(name)
    chosen_on, judged_on = (rows & np.isfinite(p) for rows in parts)
    for part, rows in ((request.validation, chosen_on), (request.test, judged_on)):
        if not rows.any():
            raise InputError(f"{name} answered nothing of the part {part!r}", column="forecaster")
    try:
        threshold = best_threshold(p[chosen_on], targets.outcome[chosen_on], criterion=request.criterion)
    except ValueError as error:
        raise InputError(f"{name}: no threshold can be chosen on {request.validation}: {error}") from None
    cluster = targets.groups.get("cluster", targets.question).codes[judged_on]
    outcome, said = targets.outcome[judged_on], p[judged_on] > threshold.value
    at_half = p[judged_on] > DEFAULT_THRESHOLD
    return ForecasterThreshold(
        forecaster=name,
        report=score_threshold(threshold, p[judged_on], outcome, cluster, resampling=how),
        test=mcnemar(said == outcome, at_half == outcome),
        called_true=_share(said, outcome == 1),
        called_false=_share(~said, outcome == 0),
    )


def _share(right: Bools, among: Bools) -> float:
    return float(right[among].mean()) if among.any() else float("nan")
