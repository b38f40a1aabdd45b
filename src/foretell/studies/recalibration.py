"""Study: how would forecasts have to be bent to fit what happened, and what is their Brier score made of?"""

from math import nan

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.bootstrap import Interval
from foretell.metrics.calibration import CalibrationLine, calibration_line, ece, murphy_decomposition
from foretell.report.charts.calibration import reliability_diagram
from foretell.report.charts.ranking import ForestRow, forest_plot
from foretell.report.numbers import number, plural
from foretell.report.study import CellValue, StudyChart, StudyColumn, StudyResult, StudyTable
from foretell.studies.configurations import best_config, complete_configs, study_notes, study_settings
from foretell.studies.inputs import DataInputs, TableOptions

BINS = 10
NORMAL = 1.959964
NOTES = (
    "Logistic recalibration (Cox 1958): the line intercept + slope · log-odds that fits outcomes best. Slope 1 and "
    "intercept 0 is calibrated; a slope below 1 is overconfidence, above 1 hedging; an intercept above 0 means that "
    "more came true than was said. Intervals are ± 1.96 standard errors and take targets for independent.",
    f"Brier = reliability − resolution + uncertainty + what {BINS} bins hide (Murphy 1973). Reliability is lost to "
    "miscalibration; resolution is won by telling questions apart.",
)


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """Are forecasters over- or underconfident?

    The recalibration line and the decomposition of the Brier score, by forecaster.
    """
    data = inputs.data(options)
    tables = complete_configs(data)
    lines = {name: calibration_line(*_answered(table)) for name, table in tables.items()}
    slopes = {name: _interval(line.slope, line.slope_se, tables[name]) for name, line in lines.items()}
    rows = [ForestRow(name=name, interval=slope) for name, slope in slopes.items() if lines[name].identified]
    charts = [
        StudyChart(
            name="slopes",
            title="Slope of the recalibration line",
            chart=forest_plot(rows, label="slope, 1 is calibrated", decimals=2, reference=1.0),
        )
    ]
    for place, name in enumerate(data.chosen or (best_config(tables),), start=1):
        table = tables[name]
        drawn = reliability_diagram(table.rows.raw, table.outcome, table.weight, name=name)
        charts.append(StudyChart(name=f"reliability-{place}", title=f"Reliability of {name}", chart=drawn))
    return StudyResult(
        name="recalibration",
        title="Over- and underconfidence",
        sentences=(_sentence(slopes, lines),),
        tables=(_line_table(tables, lines, slopes), _parts_table(tables)),
        charts=tuple(charts),
        notes=(*NOTES, *study_notes(data, tables)),
        settings=study_settings(data, tables),
    )


def _answered(table: Examples) -> tuple[np.ndarray, np.ndarray]:
    known = np.isfinite(table.rows.raw)
    return table.rows.raw[known], table.outcome[known]


def _interval(estimate: float, se: float, table: Examples) -> Interval:
    n = int(np.isfinite(table.rows.raw).sum())
    return Interval(
        estimate=estimate, low=estimate - NORMAL * se, high=estimate + NORMAL * se, se=se, n_clusters=n, draws=0
    )


def _line_table(
    tables: dict[str, Examples], lines: dict[str, CalibrationLine], slopes: dict[str, Interval]
) -> StudyTable:
    columns = (
        StudyColumn(label="slope", decimals=2, tip="below 1 is overconfidence"),
        StudyColumn(label="intercept", decimals=2, tip="above 0: more came true than was said"),
        StudyColumn(label="ECE", decimals=3, tip="expected calibration error over ten bins"),
        StudyColumn(label="n", decimals=0),
    )
    return StudyTable.build(
        "Recalibration line on the log-odds scale",
        columns,
        ((name, _line_values(tables[name], line, slopes[name])) for name, line in lines.items()),
        row_header="Forecaster",
    )


def _line_values(table: Examples, line: CalibrationLine, slope: Interval) -> dict[str, CellValue]:
    p, outcome = _answered(table)
    known = line.identified
    return {
        "slope": slope if known else None,
        "intercept": _interval(line.intercept, line.intercept_se, table) if known else None,
        "ECE": ece(p, outcome),
        "n": len(p),
    }


def _parts_table(tables: dict[str, Examples]) -> StudyTable:
    labels = {
        "Brier": "mean squared error",
        "reliability": "lost to miscalibration, lower is better",
        "resolution": "won by telling questions apart, higher is better",
        "uncertainty": "what the questions bring along",
        "within bins": "what the bins hide",
    }
    rows: list[tuple[str, dict[str, CellValue]]] = []
    for name, table in tables.items():
        parts = murphy_decomposition(*_answered(table), bins=BINS)
        values = (parts.brier, parts.reliability, parts.resolution, parts.uncertainty, parts.within)
        rows.append((name, dict(zip(labels, values, strict=True))))
    columns = [StudyColumn(label=label, decimals=3, tip=tip) for label, tip in labels.items()]
    return StudyTable.build("What the Brier score is made of", columns, rows, row_header="Forecaster")


def _sentence(slopes: dict[str, Interval], lines: dict[str, CalibrationLine]) -> str:
    known = {name: slope for name, slope in slopes.items() if lines[name].identified}
    over = sum(slope.high < 1 for slope in known.values())
    under = sum(slope.low > 1 for slope in known.values())
    middle = float(np.median([slope.estimate for slope in known.values()])) if known else nan
    return (
        f"Of {plural(len(known), 'forecaster')}, {over} are clearly overconfident and {under} clearly hedge; the "
        f"median slope is {number(middle, 2)}."
    )
