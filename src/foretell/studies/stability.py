"""How much of the error is bias, and how much is chance between runs: confidence, hard-score variance, histograms.

After Analytica (2026), sections 3 and 5.1. A run is a trial; a yes-no target is a task with two options, of which the
one that comes true is worth 1 and the other 0.
"""

from collections.abc import Mapping

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.frozen import frozen
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Resampling
from foretell.metrics.scores import right_side
from foretell.number_text import number, plural
from foretell.report.charts.calibration import histogram
from foretell.report.charts.svg import Chart, empty
from foretell.report.numbers import CellValue, value_text
from foretell.report.study import StudyChart, StudyTable, column, table
from foretell.report.study_result import StudyResult
from foretell.studies.configurations import study_configs, with_scope
from foretell.studies.inputs import StudyData
from foretell.studies.scores import known_mean, mean_of_runs, weighted_means


@frozen
class RunStability:
    """Statistics over repeated runs of one method, per target and in per cent."""

    accuracy: Floats
    soft: Floats
    brier: Floats
    confidence: Floats
    variance: Floats
    """Variance of the hard score between runs; NaN with fewer than two runs."""
    spread: Floats
    """Variance of the probability between runs."""
    undecided: Floats
    """Share of runs that said exactly one half."""

    @classmethod
    def of(cls, examples: Examples) -> "RunStability":
        """Compute the statistics over the runs that answered."""
        p, outcome = examples.rows.trials, examples.outcome
        happened = np.where(outcome == 1, p, 1 - p)
        hard = right_side(p, outcome)
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
    """Return the variance between runs (rows), divided by n − 1; NaN with fewer than two."""
    n = (~np.isnan(values)).sum(axis=0)
    squares = np.nansum((values - mean_of_runs(values)) ** 2, axis=0)
    return np.where(n > 1, squares / np.maximum(n - 1, 1), np.nan)


def runs_histogram(examples: Examples, name: str) -> Chart:
    """Histogram of the distance of single runs to what happened: 0 is certain and right, 1 is certain and wrong."""
    off = np.abs(examples.rows.trials - examples.outcome)
    off = off[np.isfinite(off)]
    if not len(off):
        return empty("No run answered")
    summary = f"mean {number(float(off.mean()), 3)}, standard deviation {number(float(off.std()), 3)}"
    title = f"Distance of {len(off)} runs of {name} to what happened"
    return histogram(off, title, (name, summary), what="distance to what happened", of="run", middle=0.5)


STABILITY_NOTES = (
    "Hard is the worth of the option that is held likelier, soft the worth expected under the forecast. With two "
    "options worth 1 and 0, hard is accuracy (an undecided 0.5 counts half) and soft is the chance given to what "
    "happened. Confidence is the chance of the likelier option.",
    "Variance is that of the hard score between runs of one question, as in the paper; spread is the standard "
    "deviation of the probability itself. A tree that always answers 0.49 has neither and is still no better, so read "
    "both together with accuracy.",
    "Against outcomes, the squared error of one run is that of the mean of infinitely many runs plus the variance "
    "between runs.",
)


def stability_section(data: StudyData) -> StudyResult:
    """Compare repeated runs of every forecaster: accuracy, confidence, and how far runs of one question differ."""
    tables = study_configs(data)
    by_method = {name: RunStability.of(examples) for name, examples in tables.items()}
    board = _board(by_method, tables, data.resampling)
    # Chart the first, and those whose runs differ least and most.
    order = sorted(by_method, key=lambda name: float(np.nan_to_num(by_method[name].spread).mean()))
    charted = dict.fromkeys([next(iter(by_method)), order[0], order[-1]])
    result = StudyResult(
        name="trials",
        title="Bias and chance between runs",
        sentences=(_stability_sentence(board),),
        tables=(board,),
        charts=tuple(
            StudyChart(name=f"runs-{i}", title=f"{name}: single runs", chart=runs_histogram(tables[name], name))
            for i, name in enumerate(charted, 1)
        ),
        notes=STABILITY_NOTES,
    )
    return with_scope(result, data, tables)


def _board(by_method: Mapping[str, RunStability], tables: Mapping[str, Examples], how: Resampling) -> StudyTable:
    columns = (
        column("accuracy", "of a single run, % (the hard score)"),
        column("soft", "chance given to what happened, %"),
        column("Brier", "of a single run, ×100"),
        column("confidence", "chance of the likelier option, %"),
        column("variance", "of the hard score between runs, ×100"),
        column("spread", "standard deviation of the probability between runs, in points"),
        column("undecided", "% of runs that said exactly one half, which counts half"),
        column("runs"),
    )
    rows: dict[str, tuple[CellValue, ...]] = {}
    for name, stability in by_method.items():
        cluster, weight = tables[name].rows.cluster, tables[name].weight
        spread = known_mean(stability.spread, cluster, how, weight)
        rows[name] = (
            known_mean(stability.accuracy, cluster, how, weight),
            _estimate(stability.soft, weight),
            _estimate(stability.brier, weight),
            known_mean(stability.confidence, cluster, how, weight),
            known_mean(stability.variance, cluster, how, weight),
            # From a variance in per cent to a standard deviation in points.
            10 * spread.estimate**0.5 if spread is not None else None,
            _estimate(stability.undecided, weight),
            len(tables[name].rows.trials),
        )
    return table("Stability", "Method", columns, rows)


def _estimate(values: Floats, weight: Floats) -> CellValue:
    mean = float(weighted_means(values[None], weight)[0])
    return None if np.isnan(mean) else mean


def _stability_sentence(board: StudyTable) -> str:
    variance = board.numbers("variance")
    if not variance:
        return "There is only one run, so chance between runs cannot be estimated."
    least, most = min(variance, key=lambda name: variance[name]), max(variance, key=lambda name: variance[name])
    if variance[least] == variance[most]:
        describe = _describe(board, least)
        return f"The hard score varies equally between runs for {plural(len(variance), 'method')}: {describe}."
    return (
        f"The hard score varies least between runs for {_describe(board, least)} and most for {_describe(board, most)}."
    )


def _describe(board: StudyTable, name: str) -> str:
    """A method with the variance between its runs and its accuracy."""
    variance, accuracy = board.column("variance")[name], board.numbers("accuracy")
    right = f", accuracy {number(accuracy[name], 1)} %" if name in accuracy else ""
    return f"{name} ({value_text(variance, 1)}{right})"
