"""Learn from resolved forecasts how to combine and correct the next ones."""

import json
from dataclasses import dataclass, replace
from typing import Any, cast, get_args

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
from foretell.operations.requests.scoring import (
    CalibrateApplyRequest,
    CalibrateFitRequest,
    CalibrationMethod,
    EnsembleRequest,
)
from foretell.operations.result import Result, show_table
from foretell.operations.thresholds import DecidedForecasts, apply_thresholds, read_thresholds
from foretell.questions.errors import InputError
from foretell.report.terminal import TextColumn, show_text
from foretell.scoring.join import answered_rows, choose_forecaster, read_examples, read_rows
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


def apply(request: CalibrateApplyRequest) -> CalibratedForecasts | DecidedForecasts:
    """Apply a fitted rule or threshold to new forecasts; it refuses those it was fitted on."""
    if (thresholds := read_thresholds(request.fitted)) is not None:
        return apply_thresholds(thresholds, request)
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
