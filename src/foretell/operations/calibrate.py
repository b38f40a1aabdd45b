"""Learn from resolved forecasts how to combine and correct the next ones."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from foretell.operations.requests import (
    CalibrateApplyRequest,
    CalibrateFitRequest,
    CalibrateReportRequest,
    CalibrationMethod,
)
from foretell.operations.result import Result
from foretell.questions.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

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
    from foretell.forecasters.combine.rules import TrainingOverlap
    from foretell.forecasters.combine.rules import apply as apply_rule
    from foretell.forecasters.combine.saving import load
    from foretell.scoring.examples import answered_rows, choose_forecaster, read_rows

    rule = load(request.fitted)
    found = read_rows(request.forecasts, request.outcomes, drop_unknown=request.drop_unknown)
    whose, rows = choose_forecaster(found, request.forecaster)
    rows = answered_rows(rows)
    try:
        p = apply_rule(rule, rows, check=request.check)
    except TrainingOverlap as error:
        hint = "fit on earlier rounds, or leave such questions out of the forecasts"
        raise InputError(f"this rule must not judge these forecasts: {error}", path=request.fitted, hint=hint) from None
    name = request.name or f"{whose}, calibrated"
    columns = zip(rows.question.tolist(), rows.target.tolist(), rows.due.astype(str).tolist(), p.tolist(), strict=True)
    return CalibratedForecasts(
        forecasts=[
            {"forecaster": name, "question": question, "target": target, "due": due, "p": value}
            for question, target, due, value in columns
        ]
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
    more = {} if progress is None else {"progress": progress}
    judged = calibration_report(examples, methods=request.methods or METHODS, resampling=how, **more)
    return StudyTables(study=calibration_study(name, judged, how))
