"""Study: how would forecasts have to be bent to fit what happened, and what is their Brier score made of?"""

from math import nan

import numpy as np

from foretell.metrics.bootstrap import Interval
from foretell.metrics.calibration import calibration_line, ece, murphy_decomposition
from foretell.report.numbers import number, plural
from foretell.report.study import CellValue, StudyResult
from foretell.studies.configurations import complete_configs, shown_configs, with_scope
from foretell.studies.inputs import DataInputs, TableOptions
from foretell.studies.layout import column, count, forest_chart, reliability_chart, table

BINS = 10
NORMAL = 1.959964
NOTES = (
    "Logistic recalibration (Cox 1958): the line intercept + slope · log-odds that fits outcomes best. Slope 1 and "
    "intercept 0 is calibrated; a slope below 1 is overconfidence, above 1 hedging; an intercept above 0 means that "
    "more came true than was said. Intervals are ± 1.96 standard errors and take targets for independent.",
    f"Brier = reliability − resolution + uncertainty + what {BINS} bins hide (Murphy 1973). Reliability is lost to "
    "miscalibration; resolution is won by telling questions apart.",
)
LINE = (
    column("slope", "below 1 is overconfidence", 2),
    column("intercept", "above 0: more came true than was said", 2),
    column("ECE", "expected calibration error over ten bins", 3),
    count("n"),
)
PARTS = (
    column("Brier", "mean squared error", 3),
    column("reliability", "lost to miscalibration, lower is better", 3),
    column("resolution", "won by telling questions apart, higher is better", 3),
    column("uncertainty", "what the questions bring along", 3),
    column("within bins", "what the bins hide", 3),
)


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """Are forecasters over- or underconfident?

    The recalibration line and the decomposition of the Brier score, by forecaster.
    """
    data = inputs.data(options)
    configs = complete_configs(data)
    slopes: dict[str, Interval] = {}
    lines: dict[str, tuple[CellValue, ...]] = {}
    parts: dict[str, tuple[CellValue, ...]] = {}
    for name, examples in configs.items():
        known = np.isfinite(examples.rows.raw)
        p, outcome = examples.rows.raw[known], examples.outcome[known]
        line, murphy = calibration_line(p, outcome), murphy_decomposition(p, outcome, bins=BINS)
        ends: tuple[Interval | None, Interval | None] = (None, None)
        if line.identified:
            slopes[name] = _normal(line.slope, line.slope_se, len(p))
            ends = slopes[name], _normal(line.intercept, line.intercept_se, len(p))
        lines[name] = (*ends, ece(p, outcome), len(p))
        parts[name] = (murphy.brier, murphy.reliability, murphy.resolution, murphy.uncertainty, murphy.within)
    over, under = sum(one.high < 1 for one in slopes.values()), sum(one.low > 1 for one in slopes.values())
    middle = float(np.median([one.estimate for one in slopes.values()])) if slopes else nan
    title = "Slope of the recalibration line"
    result = StudyResult(
        name="recalibration",
        title="Over- and underconfidence",
        sentences=(
            f"Of {plural(len(slopes), 'forecaster')}, {over} are clearly overconfident and {under} clearly hedge; "
            f"the median slope is {number(middle, 2)}.",
        ),
        tables=(
            table("Recalibration line on the log-odds scale", "Forecaster", LINE, lines),
            table("What the Brier score is made of", "Forecaster", PARTS, parts),
        ),
        charts=(
            forest_chart("slopes", title, slopes, "slope, 1 is calibrated", decimals=2, reference=1.0),
            *(
                reliability_chart(place, f"Reliability of {name}", configs[name].rows.raw, configs[name], name=name)
                for place, name in enumerate(shown_configs(data, configs), start=1)
            ),
        ),
        notes=NOTES,
    )
    return with_scope(result, data, configs)


def _normal(estimate: float, se: float, n: int) -> Interval:
    low, high = estimate - NORMAL * se, estimate + NORMAL * se
    return Interval(estimate=estimate, low=low, high=high, se=se, n_clusters=n, draws=0)
