"""Learn from resolved forecasts how to combine and correct the next ones."""

import json
from dataclasses import replace
from typing import Any, TypeVar, cast

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
from foretell.forecasters.combine.saving import load as load_rule
from foretell.forecasters.combine.saving import to_json
from foretell.frozen import frozen
from foretell.operations.requests.scoring import (
    ENSEMBLE_METHODS,
    FIT_METHODS,
    THRESHOLD,
    CalibrateApplyRequest,
    CalibrateFitRequest,
    GreedySettings,
    ThresholdSettings,
)
from foretell.operations.thresholds import (
    DecidedForecasts,
    ThresholdResult,
    apply_thresholds,
    fit_thresholds,
    read_thresholds,
)
from foretell.plugins import load, names
from foretell.questions.errors import InputError, known_names
from foretell.report.result import Result, show_table
from foretell.report.terminal import TextColumn, show_text
from foretell.request import OperationRequest
from foretell.scoring.join import answered_rows, choose_forecaster, read_examples, read_rows


@frozen
class FitResult(Result):
    """A fitted rule."""

    rule: FittedRule
    method: str
    forecaster: str
    notes: tuple[str, ...] = ()
    """What was left out, and whether anything could be learnt."""

    def to_json(self) -> str:
        """Return the rule as `foretell calibrate apply` reads it."""
        return to_json(self.rule)

    def to_dict(self) -> Any:
        """Return the rule as plain data."""
        return json.loads(self.to_json())

    def __str__(self) -> str:
        training = self.rule.training
        return (
            f"Fitted {self.method} on {training.n:,} targets of {self.forecaster}, "
            f"{len(training.askings):,} dated questions.\n"
            f"It answers questions asked after {training.last_known}."
        )


def fit(request: CalibrateFitRequest) -> "FitResult | ThresholdResult":
    """Fit a calibration rule, the weights of an ensemble or thresholds on forecasts whose outcomes are known.

    Raises:
        InputError: If there is no such method or setting, or if the tables cannot be learnt from.
    """
    if request.method == THRESHOLD:
        return fit_thresholds(request, _settings(request, ThresholdSettings))
    if request.method in ENSEMBLE_METHODS:
        return _fit_ensemble(request)
    if request.method not in names("combiners"):
        hint = known_names(request.method, list(dict.fromkeys((*FIT_METHODS, *names("combiners")))))
        raise InputError(f"there is no method {request.method!r}", column="--method", hint=hint)
    _settings(request, OperationRequest)
    notes: list[str] = []
    tables = read_examples(request.forecasts, request.outcomes, columns=request.columns, notes=notes)
    name, examples = choose_forecaster(tables, request.forecaster)
    examples = answered_rows(examples)
    if one_sided(examples):
        notes.append("All outcomes were the same, so nothing about calibration could be learnt.")
    rule = load("combiners", request.method)().fit(examples)
    return FitResult(rule=rule, method=request.method, forecaster=name, notes=tuple(notes))


MethodSettings = TypeVar("MethodSettings", bound=OperationRequest)


def _settings(request: CalibrateFitRequest, kind: type[MethodSettings]) -> MethodSettings:
    """Return the settings of the request's method, checked."""
    for name in request.set:
        if name not in kind.model_fields:
            known = list(kind.model_fields)
            hint = known_names(name, known) if known else "leave it out"
            raise InputError(f"{request.method} has no setting {name!r}", column="--set", hint=hint)
    try:
        return kind.read(request.set)
    except InputError as error:
        raise error.at(column=f"--set {error.column}") from None


@frozen
class CalibratedForecasts(Result):
    """Forecasts corrected by a fitted rule."""

    forecasts: list[dict[str, Any]]
    notes: tuple[str, ...] = ()
    """What was left out."""

    def to_dict(self) -> Any:
        """Return one dictionary for each forecast, as `foretell score` reads them."""
        return self.forecasts

    def __str__(self) -> str:
        return f"{len(self.forecasts):,} forecasts."


def apply(request: CalibrateApplyRequest) -> CalibratedForecasts | DecidedForecasts:
    """Apply a fitted rule or threshold to new forecasts; it refuses those it was fitted on."""
    if (thresholds := read_thresholds(request.fitted)) is not None:
        return apply_thresholds(thresholds, request)
    rule, notes = load_rule(request.fitted), list[str]()
    rows_by_forecaster = read_rows(request.forecasts, request.outcomes, columns=request.columns, notes=notes)
    if isinstance(rule, Ensemble):
        if missing := [name for name in rule.names if name not in rows_by_forecaster]:
            problem = f"there are no forecasts by {missing[0]!r}, a member of the ensemble"
            raise InputError(problem, column="forecaster")
        request.refuse_set(("forecaster",), "has no effect on an ensemble, which combines all forecasters")
        name, rows = "ensemble", side_by_side({name: rows_by_forecaster[name] for name in rule.names})[1]
    else:
        whose, rows = choose_forecaster(rows_by_forecaster, request.forecaster)
        name = f"{whose}, calibrated"
    rows = answered_rows(rows)
    try:
        p = apply_rule(rule, rows, check="ids" if request.allow_overlap else "time")
    except TrainingOverlap as error:
        hint = "fit on earlier rounds, or remove these questions from the forecasts"
        raise InputError(f"this rule must not judge these forecasts: {error}", path=request.fitted, hint=hint) from None
    columns = zip(rows.question.tolist(), rows.target.tolist(), rows.due.astype(str).tolist(), p.tolist(), strict=True)
    return CalibratedForecasts(
        forecasts=[
            {"forecaster": name, "question": question, "target": target, "due": due, "p": value}
            for question, target, due, value in columns
        ],
        notes=tuple(notes),
    )


class EnsembleResult(FitResult):
    """The weights of an ensemble."""

    @property
    def ensemble(self) -> Ensemble:
        """The members with their weights."""
        return cast("Ensemble", self.rule)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each member."""
        members = zip(self.ensemble.names, self.ensemble.weights, strict=True)
        return [{"forecaster": name, "weight": weight} for name, weight in members]

    def print(self, console: Console) -> None:
        """Print the members with their weights, and the reasons."""
        ranked = sorted(self.rows(), key=lambda row: -row["weight"])
        rows = [{**row, "weight": f"{row['weight']:.3f}"} for row in ranked]
        columns = {TextColumn(head="Forecaster", shrink=16): "forecaster"}
        show_table(console, rows, {**columns, TextColumn(head="Weight", right=True): "weight"})
        if self.ensemble.reason:
            show_text(console, f"Weights: {self.ensemble.reason}.\n")


def _fit_ensemble(request: CalibrateFitRequest) -> EnsembleResult:
    """Choose weights for several forecasters; `apply` then combines them."""
    greedy = _settings(request, GreedySettings if request.method == "greedy" else OperationRequest)
    request.refuse_set(("forecaster",), "has no effect on an ensemble, which combines all forecasters")
    notes: list[str] = []
    tables = read_examples(request.forecasts, request.outcomes, columns=request.columns, notes=notes)
    if len(tables) < 2:
        raise InputError("an ensemble needs two forecasters or more", path=request.forecasts, column="forecaster")
    members, rows = side_by_side({name: table.rows for name, table in tables.items()})
    examples = answered_rows(replace(next(iter(tables.values())), rows=rows))
    if isinstance(greedy, GreedySettings):
        method = GreedySelection(names=members, replacement=greedy.replacement, steps=greedy.steps)
    else:
        kinds = {"skill": SkillWeights, "pooled": PooledWeights, "best": BestSoFar, "equal": EqualWeights}
        method = kinds[request.method](names=members)
    whose = f"{len(members)} forecasters"
    return EnsembleResult(rule=method.fit(examples), method=request.method, forecaster=whose, notes=tuple(notes))
