"""Study: how much of the error is bias, how much is chance between runs? Confidence, hard-score variance, histograms.

After Analytica (2026), sections 3 and 5.1. A run is a trial; a yes-no target is a task with two options, of which the
one that comes true is worth 1 and the other 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval, Resampling, bootstrap_score
from foretell.report.charts.calibration import histogram_rows
from foretell.report.charts.scales import ChartScale
from foretell.report.charts.svg import Chart, empty, figure, rect, text, x_axis, y_axis
from foretell.report.numbers import number, plural
from foretell.report.study import CellValue, StudyChart, StudyResult, StudyTable
from foretell.report.study_report import value_text
from foretell.studies.configurations import complete_configs, study_notes, study_settings
from foretell.studies.inputs import DataInputs, TableOptions
from foretell.studies.layout import column, table
from foretell.studies.scores import mean_of_runs, right_answers


@dataclass(frozen=True, kw_only=True)
class RunStability:
    """Per target, in per cent: what repeated runs of one method come to."""

    accuracy: Floats
    soft: Floats
    brier: Floats
    confidence: Floats
    variance: Floats
    """Of the hard score between runs; NaN with fewer than two."""
    spread: Floats
    """Variance of the probability between runs."""
    undecided: Floats
    """Share of runs that said exactly one half."""

    @classmethod
    def of(cls, examples: Examples) -> "RunStability":
        """Over the runs that answered."""
        p, outcome = examples.rows.trials, examples.outcome
        happened = np.where(outcome == 1, p, 1 - p)
        hard = right_answers(p, outcome)
        return cls(
            accuracy=100 * mean_of_runs(hard),
            soft=100 * mean_of_runs(happened),
            brier=100 * mean_of_runs((p - outcome) ** 2),
            confidence=100 * mean_of_runs(np.maximum(p, 1 - p)),
            variance=100 * variance_of_runs(hard),
            spread=100 * variance_of_runs(p),
            undecided=100 * mean_of_runs(np.where(np.isnan(p), np.nan, p == 0.5)),
        )


def variance_of_runs(values: Floats) -> Floats:
    """Variance between runs (rows), n − 1; NaN with fewer than two."""
    n = (~np.isnan(values)).sum(axis=0)
    squares = np.nansum((values - mean_of_runs(values)) ** 2, axis=0)
    return np.where(n > 1, squares / np.maximum(n - 1, 1), np.nan)


def runs_histogram(examples: Examples, name: str, *, bins: int = 20) -> Chart:
    """Distance of single runs to what happened: 0 is certain and right, 1 is certain and wrong."""
    off = np.abs(examples.rows.trials - examples.outcome)
    off = off[np.isfinite(off)]
    if not len(off):
        return empty("No run answered")
    count, edges = np.histogram(off, bins=bins, range=(0, 1))
    share = 100 * count / len(off)
    left, top, bottom, right = 44.0, 44.0, 210.0, 368.0
    x = ChartScale(low=0, high=1, start=left, stop=right)
    y = ChartScale(low=0, high=float(share.max()) * 1.08, start=bottom, stop=top)
    bars = [
        rect(
            x(edges[i]) + 1,
            y(value),
            (right - left) / bins - 2,
            bottom - y(value),
            "f-a bar" if edges[i] < 0.5 else "f-b bar",
            tip=f"{edges[i]:.2f}–{edges[i + 1]:.2f}: {count[i]} runs ({value:.1f} %)",
        )
        for i, value in enumerate(share.tolist())
        if value
    ]
    told = f"mean {number(float(off.mean()), 3)}, standard deviation {number(float(off.std()), 3)}"
    return figure(
        380,
        250,
        f"Distance of {len(off)} runs of {name} to what happened",
        text(4, 16, name, "h"),
        text(4, 32, told, "s k"),
        y_axis(y, left, right, count=4),
        x_axis(x, bottom, top, "distance of a run to what happened (share in %)"),
        *bars,
        rows=histogram_rows("distance", edges, count),
    )


NOTES = (
    "Hard is the worth of the option that is held likelier, soft the worth expected under the forecast. With two "
    "options worth 1 and 0, hard is accuracy (an undecided 0.5 counts as wrong) and soft is the chance given to what "
    "happened. Confidence is the chance of the likelier option.",
    "Variance is that of the hard score between runs of one question, as in the paper; spread is the standard "
    "deviation of the probability itself. A tree that always answers 0.49 has neither, and is no better for it: read "
    "both beside accuracy.",
    "Against outcomes, the squared error of one run is that of the mean of endlessly many runs plus the variance "
    "between runs.",
)


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """How much of the error is bias, how much is chance?

    Repeated runs of every forecaster: accuracy, confidence, and how far runs of one question differ.
    """
    data = inputs.data(options)
    tables = complete_configs(data)
    found = {name: RunStability.of(examples) for name, examples in tables.items()}
    board = _board(found, tables, data.resampling)
    # The first, and those whose runs differ least and most.
    order = sorted(found, key=lambda name: float(np.nan_to_num(found[name].spread).mean()))
    shown = dict.fromkeys([next(iter(found)), order[0], order[-1]])
    return StudyResult(
        name="stability",
        title="Bias and chance between runs",
        sentences=(_sentence(board),),
        tables=(board,),
        charts=tuple(
            StudyChart(name=f"runs-{i}", title=f"{name}: single runs", chart=runs_histogram(tables[name], name))
            for i, name in enumerate(shown, 1)
        ),
        notes=(*NOTES, *study_notes(data, tables)),
        settings=study_settings(data, tables),
    )


def _board(found: Mapping[str, RunStability], tables: Mapping[str, Examples], how: Resampling) -> StudyTable:
    columns = (
        column("accuracy", "of a single run, % (the hard score)"),
        column("soft", "chance given to what happened, %"),
        column("Brier", "of a single run, ×100"),
        column("confidence", "chance of the likelier option, %"),
        column("variance", "of the hard score between runs, ×100"),
        column("spread", "standard deviation of the probability between runs, in points"),
        column("undecided", "% of runs that said exactly one half, which no outcome makes right"),
        column("runs"),
    )
    rows: dict[str, tuple[CellValue, ...]] = {}
    for name, one in found.items():
        spread = _mean_of(one.spread, tables[name], how)
        rows[name] = (
            _mean_of(one.accuracy, tables[name], how),
            _estimate(one.soft),
            _estimate(one.brier),
            _mean_of(one.confidence, tables[name], how),
            _mean_of(one.variance, tables[name], how),
            # From a variance in per cent to a standard deviation in points.
            10 * spread.estimate**0.5 if isinstance(spread, Interval) else None,
            _estimate(one.undecided),
            len(tables[name].rows.trials),
        )
    return table("Stability", "Method", columns, rows)


def _mean_of(values: Floats, examples: Examples, how: Resampling) -> CellValue:
    kept = np.isfinite(values)
    if not kept.any():
        return None
    return bootstrap_score(values[kept], examples.rows.cluster[kept], resampling=how)


def _estimate(values: Floats) -> CellValue:
    kept = np.isfinite(values)
    return float(np.mean(values[kept])) if kept.any() else None


def _sentence(board: StudyTable) -> str:
    variance = board.numbers("variance")
    if not variance:
        return "There is one run only: nothing to say about chance between runs."
    least, most = min(variance, key=lambda name: variance[name]), max(variance, key=lambda name: variance[name])
    if variance[least] == variance[most]:
        told = _describe(board, least)
        return f"The hard score varies equally between runs for {plural(len(variance), 'method')}: {told}."
    return (
        f"The hard score varies least between runs for {_describe(board, least)} and most for {_describe(board, most)}."
    )


def _describe(board: StudyTable, name: str) -> str:
    """A method with the variance between its runs and its accuracy."""
    variance, accuracy = board.column("variance")[name], board.numbers("accuracy")
    right = f", accuracy {number(accuracy[name], 1)} %" if name in accuracy else ""
    return f"{name} ({value_text(variance, 1)}{right})"
