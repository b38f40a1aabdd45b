"""Study: what would every calibration method have brought to one forecaster?"""

from pathlib import Path

from foretell.metrics.bootstrap import Resampling
from foretell.report.study import StudyResult
from foretell.request import setting
from foretell.scoring.examples import choose_forecaster, read_examples
from foretell.studies.calibration import (
    CalibrationReport,
    calibration_report,
    describe_report,
    kind_table,
    protocol_notes,
    protocols_table,
    reliability_charts,
)
from foretell.studies.configurations import describe_scope
from foretell.studies.inputs import StudyOptions, StudyServices
from foretell.studies.protocols import METHODS
from foretell.studies.scores import groups_of


class CalibrationReportOptions(StudyOptions):
    """The forecasts of one forecaster, their outcomes, and the methods to try."""

    forecasts: Path = setting(
        help="Table of forecasts: forecaster, question, target, p, trial.", flag="-f/--forecasts", metavar="FILE"
    )
    outcomes: Path = setting(
        help="Table of outcomes: question, target, outcome, due, resolved_on.", flag="-o/--outcomes", metavar="FILE"
    )
    forecaster: str | None = setting(None, "Whose forecasts (default: the only ones there are).", metavar="NAME")
    drop_unknown: bool = setting(False, "Leave out forecasts of targets without an outcome row.")
    methods: tuple[str, ...] = setting((), f"Only this one of {', '.join(METHODS)}; repeatable.", flag="--method")


def study(inputs: StudyServices, options: CalibrationReportOptions) -> StudyResult:
    """What would calibration have brought to one forecaster?

    In-sample, by other questions, and by the past alone: only the last is what you would have had. Each number is
    compared with the plain logit mean of the trials, on the same resamples of whole questions; crowd, base rate and
    0.5 are shown beside it.

      foretell study calibration-report -f forecasts.csv -o outcomes.csv --out calibration.html
    """
    tables = read_examples(options.forecasts, options.outcomes, drop_unknown=options.drop_unknown)
    name, examples = choose_forecaster(tables, options.forecaster)
    report = calibration_report(
        examples, methods=options.methods or tuple(METHODS), resampling=options.resampling, progress=inputs.progress
    )
    return calibration_study(name, report, options.resampling)


def calibration_study(name: str, found: CalibrationReport, how: Resampling) -> StudyResult:
    """The report on one forecaster, ready to print and to write as a page."""
    tables = [protocols_table(found, f"{name}: protocols side by side")]
    if len(groups_of(found.examples)) > 1:
        tables.append(kind_table(found, "past only", f"{name}: past only, by kind"))
    return StudyResult(
        name="calibration-report",
        title=f"Calibration of {name}",
        sentences=(describe_report(found, name),),
        tables=tuple(tables),
        charts=tuple(reliability_charts(found, methods=found.methods[:2])),
        notes=(*protocol_notes(found.protocols), f"{describe_scope(found.examples)}."),
        settings={"forecaster": name, "draws": how.draws, "level": how.level, "seed": how.seed},
    )
