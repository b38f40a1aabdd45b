"""Learn from resolved forecasts how to combine and correct the next ones."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

from foretell.operations.requests import (
    CalibrateApplyRequest,
    CalibrateFitRequest,
    CalibrateReportRequest,
    CalibrationMethod,
    EnsembleRequest,
)
from foretell.operations.result import Result
from foretell.questions.errors import InputError
from foretell.report.terminal import TextColumn, text_table

if TYPE_CHECKING:
    from rich.console import Console

    from foretell.forecasters.combine.ensemble import Ensemble
    from foretell.forecasters.combine.rows import TrialRows
    from foretell.forecasters.combine.rules import FittedRule
    from foretell.report.study import StudyResult
    from foretell.runs.backtest import BacktestProgress

METHODS: tuple[CalibrationMethod, ...] = get_args(CalibrationMethod)


@dataclass(frozen=True, kw_only=True)
class FitResult(Result):
    """A fitted rule."""

    rule: "FittedRule"
    method: str
    forecaster: str
    one_sided: bool
    """All outcomes were alike, so nothing about calibration could be learnt."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where nothing could be learnt."""
        return ("All of them came out alike, so nothing about calibration could be learnt.",) if self.one_sided else ()

    def to_json(self) -> str:
        """The rule as `foretell calibrate apply` reads it."""
        from foretell.forecasters.combine.saving import to_json

        return to_json(self.rule)

    def to_dict(self) -> Any:
        """The same as plain data."""
        import json

        return json.loads(self.to_json())

    def __str__(self) -> str:
        """What it was fitted on, and what it may judge."""
        training = self.rule.training
        return (
            f"Fitted {self.method} on {training.n:,} targets of {self.forecaster}, {len(training.askings):,} askings.\n"
            f"It answers questions asked after {training.last_known}."
        )


def fit(request: CalibrateFitRequest) -> FitResult:
    """Fit a rule on forecasts whose outcomes are known."""
    from foretell.forecasters.combine.rules import one_sided
    from foretell.scoring.examples import answered_rows, choose_forecaster, read_examples
    from foretell.studies.protocols import build_method

    found = read_examples(request.forecasts, request.outcomes, drop_unknown=request.drop_unknown)
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
    """Forecasts as a fitted rule corrects them."""

    forecasts: list[dict[str, Any]]

    def to_dict(self) -> Any:
        """One dictionary for each forecast, as `foretell score` reads them."""
        return self.forecasts

    def __str__(self) -> str:
        """How many."""
        return f"{len(self.forecasts):,} forecasts."


def apply(request: CalibrateApplyRequest) -> CalibratedForecasts:
    """Apply a fitted rule to new forecasts; it refuses what it was fitted on."""
    from foretell.forecasters.combine.ensemble import Ensemble
    from foretell.forecasters.combine.rules import TrainingOverlap
    from foretell.forecasters.combine.rules import apply as apply_rule
    from foretell.forecasters.combine.saving import load
    from foretell.scoring.examples import answered_rows, choose_forecaster, read_rows

    rule = load(request.fitted)
    found = read_rows(request.forecasts, request.outcomes, drop_unknown=request.drop_unknown)
    if isinstance(rule, Ensemble):
        name, rows = "ensemble", _members(found, rule.names)
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


def _members(tables: "Mapping[str, TrialRows]", names: tuple[str, ...]) -> "TrialRows":
    """The forecasts of an ensemble's members, side by side."""
    from foretell.forecasters.combine.ensemble import side_by_side

    if missing := [name for name in names if name not in tables]:
        raise InputError(f"there are no forecasts by {missing[0]!r}, a member of the ensemble", column="forecaster")
    return side_by_side({name: tables[name] for name in names})[1]


@dataclass(frozen=True, kw_only=True)
class EnsembleResult(FitResult):
    """Weights of an ensemble."""

    ensemble: "Ensemble"

    def rows(self) -> list[dict[str, Any]]:
        """One row for each member."""
        members = zip(self.ensemble.names, self.ensemble.weights, strict=True)
        return [{"forecaster": name, "weight": weight} for name, weight in members]

    def __str__(self) -> str:
        """The members with their weights, and why."""
        columns = [TextColumn(head="Forecaster", shrink=16), TextColumn(head="Weight", right=True)]
        ranked = sorted(self.rows(), key=lambda row: -row["weight"])
        table = text_table(columns, [(row["forecaster"], f"{row['weight']:.3f}") for row in ranked])
        reason = f"Weights: {self.ensemble.told}." if self.ensemble.told else ""
        return f"{table}\n{reason}".rstrip()


def fit_ensemble(request: EnsembleRequest) -> EnsembleResult:
    """Choose weights for several forecasters; `apply` then combines them."""
    from foretell.forecasters.combine.ensemble import EqualWeights, GreedySelection, SkillWeights, side_by_side
    from foretell.scoring.examples import answered_rows, read_examples

    tables = read_examples(request.forecasts, request.outcomes, drop_unknown=request.drop_unknown)
    if len(tables) < 2:
        raise InputError("an ensemble needs two forecasters or more", path=request.forecasts, column="forecaster")
    names, rows = side_by_side({name: one.rows for name, one in tables.items()})
    examples = answered_rows(replace(next(iter(tables.values())), rows=rows))
    method = {
        "greedy": GreedySelection(names=names, replacement=request.replacement, steps=request.steps),
        "skill": SkillWeights(names=names),
        "equal": EqualWeights(names=names),
    }[request.method]
    fitted = method.fit(examples)
    return EnsembleResult(
        rule=fitted, ensemble=fitted, method=request.method, forecaster=f"{len(names)} forecasters", one_sided=False
    )


@dataclass(frozen=True, kw_only=True)
class StudyTables(Result):
    """A study: its tables, pictures and finding."""

    study: "StudyResult"

    def to_dict(self) -> Any:
        """The study's own data."""
        return self.study.to_dict()

    def to_html(self) -> str:
        """The study as a page."""
        from foretell.report.study_report import study_page

        return study_page(self.study)

    def to_markdown(self) -> str:
        """The study as Markdown."""
        from foretell.report.study_report import markdown_study

        return markdown_study(self.study)

    def print(self, console: "Console") -> None:
        """The finding and the tables."""
        from foretell.report.study_report import print_study

        print_study(self.study, console)


def report(request: CalibrateReportRequest, progress: "BacktestProgress | None" = None) -> StudyTables:
    """What every method would have brought: in-sample, by other questions, and by the past alone."""
    from foretell.metrics.bootstrap import Resampling
    from foretell.scoring.examples import choose_forecaster, read_examples
    from foretell.studies.calibration import calibration_report, calibration_study

    found = read_examples(request.forecasts, request.outcomes, drop_unknown=request.drop_unknown)
    name, examples = choose_forecaster(found, request.forecaster)
    how = Resampling(draws=request.draws, seed=request.seed)
    watch = progress or (lambda done, total: None)
    judged = calibration_report(examples, methods=request.methods or METHODS, resampling=how, progress=watch)
    return StudyTables(study=calibration_study(name, judged, how))
