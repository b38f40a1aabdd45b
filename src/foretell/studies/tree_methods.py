"""Studies of methods after Analytica (2026): stability over runs, agreement, thresholds, and cost."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import nan

import numpy as np

from foretell.forecasters.combine.rows import Examples
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Resampling
from foretell.metrics.comparison import (
    McNemarMatrix,
    compare_pairs,
    holm,
    mcnemar_matrix,
)
from foretell.metrics.decisions import Criterion, best_threshold, clear_answers, consensus_matrix, cross_fit_threshold
from foretell.metrics.scores import called_true, right_side
from foretell.questions.errors import InputError
from foretell.report.charts.calibration import unit_histogram
from foretell.report.charts.groups import distance_heatmap, verdict_heatmap
from foretell.report.charts.ranking import FrontierPoint, frontier, pareto
from foretell.report.charts.svg import Chart, empty
from foretell.report.numbers import bracket, number, plural, signed, value_text
from foretell.report.study import CellValue, StudyChart, StudyResult, StudyTable, column, count, table
from foretell.scoring.scoreboard import OVERALL
from foretell.scoring.verdict import Verdict, corrected
from foretell.studies.configurations import study_configs, with_scope
from foretell.studies.inputs import CostOptions, DataInputs, TableOptions
from foretell.studies.scores import known_mean, mean_of_runs, run_accuracy, study_design, weighted_means

# How much of the error is bias, how much is chance between runs? Confidence, hard-score variance, histograms.
#
# After Analytica (2026), sections 3 and 5.1. A run is a trial; a yes-no target is a task with two options, of which the
# one that comes true is worth 1 and the other 0.


@dataclass(frozen=True, kw_only=True)
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
    told = f"mean {number(float(off.mean()), 3)}, standard deviation {number(float(off.std()), 3)}"
    title = f"Distance of {len(off)} runs of {name} to what happened"
    return unit_histogram(off, title, (name, told), what="distance to what happened", of="run", middle=0.5)


STABILITY_NOTES = (
    "Hard is the worth of the option that is held likelier, soft the worth expected under the forecast. With two "
    "options worth 1 and 0, hard is accuracy (an undecided 0.5 counts half) and soft is the chance given to what "
    "happened. Confidence is the chance of the likelier option.",
    "Variance is that of the hard score between runs of one question, as in the paper; spread is the standard "
    "deviation of the probability itself. A tree that always answers 0.49 has neither, and is no better for it: read "
    "both beside accuracy.",
    "Against outcomes, the squared error of one run is that of the mean of endlessly many runs plus the variance "
    "between runs.",
)


def stability_study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """How much of the error is bias, and how much is chance?

    Compares repeated runs of every forecaster: accuracy, confidence, and how far runs of one question differ.
    """
    data = inputs.data(options)
    tables = study_configs(data)
    found = {name: RunStability.of(examples) for name, examples in tables.items()}
    board = _board(found, tables, data.resampling)
    # The first, and those whose runs differ least and most.
    order = sorted(found, key=lambda name: float(np.nan_to_num(found[name].spread).mean()))
    shown = dict.fromkeys([next(iter(found)), order[0], order[-1]])
    result = StudyResult(
        name="stability",
        title="Bias and chance between runs",
        sentences=(_stability_sentence(board),),
        tables=(board,),
        charts=tuple(
            StudyChart(name=f"runs-{i}", title=f"{name}: single runs", chart=runs_histogram(tables[name], name))
            for i, name in enumerate(shown, 1)
        ),
        notes=STABILITY_NOTES,
    )
    return with_scope(result, data, tables)


def _board(found: Mapping[str, RunStability], tables: Mapping[str, Examples], how: Resampling) -> StudyTable:
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
    for name, one in found.items():
        cluster, weight = tables[name].rows.cluster, tables[name].weight
        spread = known_mean(one.spread, cluster, how, weight)
        rows[name] = (
            known_mean(one.accuracy, cluster, how, weight),
            _estimate(one.soft, weight),
            _estimate(one.brier, weight),
            known_mean(one.confidence, cluster, how, weight),
            known_mean(one.variance, cluster, how, weight),
            # From a variance in per cent to a standard deviation in points.
            10 * spread.estimate**0.5 if spread is not None else None,
            _estimate(one.undecided, weight),
            len(tables[name].rows.trials),
        )
    return table("Stability", "Method", columns, rows)


def _estimate(values: Floats, weight: Floats) -> CellValue:
    mean = float(weighted_means(values[None], weight)[0])
    return None if np.isnan(mean) else mean


def _stability_sentence(board: StudyTable) -> str:
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


# Study: do methods get different questions right, and do they say the same? McNemar's test and agreement of all pairs.
#
# After Analytica (2026), D.1 and D.3.


MOST = 24
"""Maximum number of methods shown."""
CONSENSUS_NOTES = (
    "A target counts as answered rightly where p is on the side of one half on which it came out; exactly one half "
    "counts half. Trials are joined by their logit mean.",
    "McNemar's test takes targets for independent. Horizons of one question and questions of one day are not, so its "
    "p-values and intervals (Newcombe 1998) are too sure on such data, as the paper's are. Δ, clusters resamples whole "
    "clusters instead.",
    "Agreement is the share of targets that two methods put on the same side, without forecasts of one half. Methods "
    "that answer from the same evidence agree, right or wrong.",
)


def consensus_study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """Which methods are right when others are wrong (McNemar)?

    Compares all pairs of methods.
    """
    data = inputs.data(options)
    tables = study_configs(data, two_for="agreement")
    p = np.stack([one.rows.raw for one in tables.values()])
    outcome = next(iter(tables.values())).outcome
    right = right_side(p, outcome)
    weight = next(iter(tables.values())).weight
    order = np.argsort(-weighted_means(right, weight), kind="stable")[:MOST]
    names = [list(tables)[i] for i in order]
    tests = mcnemar_matrix(clear_answers(right[order]).T)
    side = clear_answers(called_true(p[order]))
    agree = 100 * consensus_matrix(side)
    accuracy = 100 * weighted_means(right[order], weight)
    # By target and not by kind, as McNemar's test counts.
    design = replace(study_design(next(iter(tables.values())), OVERALL), stratum=None)
    points, how = 100 * right[order].T, data.resampling
    compared = compare_pairs(points, list(combinations(range(len(names)), 2)), design, resampling=how)
    verdicts = corrected(
        [
            Verdict.of(found, (names[i], names[j]), "accuracy in points", level=how.level, matters=1.0)
            for (i, j), found in compared.items()
        ]
    )
    p_of_pairs = _corrected_pairs(tests.p)
    test_caption = (
        "Row minus column in points, its interval, and the p-value of McNemar's exact test, corrected for the number "
        "of pairs (Holm). A forecast of 0.5 takes no side: its target is left out of the pair."
    )
    mcnemar = _pairs_table(
        "McNemar",
        names,
        1,
        lambda i, j: f"{_gap(tests, i, j)} p {_p(p_of_pairs[i, j])}" if tests.n[i, j] else None,
    )
    agreement = _pairs_table(
        "Agreement, % of targets",
        names,
        0,
        lambda i, j: None if np.isnan(agree[i, j]) else float(agree[i, j]),
    )
    board = _against_best(names, tests, accuracy, verdicts)
    result = StudyResult(
        name="consensus",
        title="Who is right where others are wrong",
        sentences=(_consensus_sentence(names, accuracy, verdicts),),
        tables=(board, replace(mcnemar, caption=test_caption), agreement),
        charts=(
            StudyChart(
                name="mcnemar",
                title="Differences of accuracy",
                chart=verdict_heatmap(names, verdicts, label="accuracy in points"),
            ),
            StudyChart(
                name="agreement",
                title="How often two methods differ",
                chart=distance_heatmap(names, 100 - agree, label="% of targets put on different sides", decimals=0),
            ),
        ),
        notes=CONSENSUS_NOTES,
    )
    return with_scope(
        result, data, tables, left_out=dict.fromkeys(tables.keys() - set(names), f"is not among the best {MOST}")
    )


def _against_best(
    names: Sequence[str], tests: McNemarMatrix, accuracy: Floats, verdicts: Sequence[Verdict]
) -> StudyTable:
    columns = (
        column("accuracy", "%"),
        column("minus the best", "points, with Newcombe's 95 % interval"),
        column("p", "McNemar's exact test, two-sided, corrected for the number of methods (Holm)"),
        column("Δ, clusters", "the same difference with whole clusters resampled"),
        column("n", "targets both answered"),
    )
    rows: dict[str, tuple[CellValue, ...]] = {names[0]: (float(accuracy[0]), None, None, None, int(tests.n[0, 0]))}
    p = holm(tests.p[1:, 0])
    for i, name in enumerate(names[1:], 1):
        shared = bool(tests.n[i, 0])
        best = next((one.swapped() for one in verdicts if (one.first, one.second) == (names[0], name)), None)
        rows[name] = (
            float(accuracy[i]),
            _gap(tests, i, 0) if shared else None,
            _p(p[i - 1]) if shared else None,
            best,
            int(tests.n[i, 0]),
        )
    return table("Accuracy", "Method", columns, rows, styles={names[0]: "reference"})


def _corrected_pairs(p: Floats) -> Floats:
    """Correct a symmetric matrix of p-values for its number of pairs (Holm)."""
    out, upper = p.copy(), np.triu_indices(len(p), 1)
    out[upper] = holm(p[upper])
    out.T[upper] = out[upper]
    return out


def _pairs_table(title: str, names: Sequence[str], decimals: int, cell: Callable[[int, int], CellValue]) -> StudyTable:
    """Table with a cell for every pair of different methods; columns are named by the number of their method."""
    columns = tuple(column(str(j + 1), name, decimals) for j, name in enumerate(names))
    places = range(len(names))
    rows = {f"{i + 1} {names[i]}": [None if i == j else cell(i, j) for j in places] for i in places}
    return table(title, "Method", columns, rows)


def _gap(tests: McNemarMatrix, i: int, j: int) -> str:
    ends = bracket(100 * tests.low[i, j], 100 * tests.high[i, j], 1)
    return f"{signed(100 * tests.diff[i, j], 1)} {ends}"


def _p(value: float) -> str:
    """Format a p-value.

    >>> _p(0.0123), _p(0.00002)
    ('0.012', '<0.001')
    """
    return number(float(value), 3) if value >= 0.001 else "<0.001"


def _consensus_sentence(names: Sequence[str], accuracy: Floats, verdicts: Sequence[Verdict]) -> str:
    # The first is the first of its pairs.
    beaten = sum(one.first == names[0] and one.says == "better" and one.survives for one in verdicts)
    best = f"{names[0]} is right most often ({number(float(accuracy[0]), 1)} %)"
    others = plural(len(names) - 1, "other method")
    return f"{best}; corrected for the number of pairs, by more than chance than {beaten} of {others}."


# Study: where to cut a probability into True and False? Chosen on some rows, judged on others.
#
# After Analytica (2026), D.5.


CRITERIA: Mapping[Criterion, str] = {"accuracy": "Accuracy", "balanced": "Balanced accuracy"}
FOLDS = 10
THRESHOLD_NOTES = (
    "A claim is called True if p is above the threshold; a p at the threshold counts half. Chosen is the threshold "
    "that is best on all rows; what it reaches there (in-sample) flatters it. Held out is what thresholds reach on "
    f"questions they were not chosen on, in {FOLDS} folds of whole clusters.",
    "Balanced accuracy is the mean of the share of true claims called True and of false claims called False: it does "
    "not reward calling everything what most claims are.",
)


def threshold_study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """Which threshold best splits True from False?

    Tries every criterion on every configuration; the forecast is the logit mean of the trials.
    """
    data = inputs.data(options)
    configs = study_configs(data)
    tables = {name: one for name, one in configs.items() if _has_both_outcomes(one)}
    if not tables:
        raise InputError("all outcomes are the same: there is nothing to tell apart", hint="give more questions")
    grids = tuple(_grid(criterion, tables, data.resampling) for criterion in CRITERIA)
    result = StudyResult(
        name="threshold",
        title="Where to cut a probability",
        sentences=(_threshold_sentence(grids[0]),),
        tables=grids,
        notes=THRESHOLD_NOTES,
    )
    alone = "answered too little: one outcome only, or a single cluster"
    return with_scope(result, data, configs, left_out=dict.fromkeys(configs.keys() - tables.keys(), alone))


def _has_both_outcomes(examples: Examples) -> bool:
    known = np.isfinite(examples.rows.raw)
    return len(np.unique(examples.outcome[known])) > 1 and len(np.unique(examples.rows.cluster[known])) > 1


def _grid(criterion: Criterion, tables: Mapping[str, Examples], how: Resampling) -> StudyTable:
    columns = (
        column("chosen", "the best threshold on all rows", 3),
        column("at 0.5", "score at one half"),
        column("held out", "score of thresholds chosen on other questions"),
        column("gain", "held out minus at 0.5, clusters resampled"),
        column("in-sample", "score of the best threshold on the rows it was chosen on"),
        column("n", "targets answered"),
    )
    rows = {name: _values(one, criterion, how) for name, one in tables.items()}
    return table(f"{CRITERIA[criterion]}, %", "Method", columns, rows)


def _values(examples: Examples, criterion: Criterion, how: Resampling) -> tuple[CellValue, ...]:
    kept = examples.take(np.isfinite(examples.rows.raw))
    p, outcome, cluster = kept.rows.raw, kept.outcome, kept.rows.cluster
    chosen = best_threshold(p, outcome, criterion=criterion, weight=kept.weight)
    held = cross_fit_threshold(
        p, outcome, cluster, criterion=criterion, weight=kept.weight, folds=FOLDS, resampling=how
    )
    names = ("tuned threshold", "one half")
    gain = Verdict.of(held.gain.times(100), names, "accuracy in points", level=how.level, matters=1.0)
    scores = (100 * held.score_at_half, 100 * held.score, gain, 100 * held.in_sample)
    return (chosen.value, *scores, len(kept))


def _threshold_sentence(grid: StudyTable) -> str:
    gains = {name: gain for name, gain in grid.column("gain").items() if isinstance(gain, Verdict)}
    clear = sum(gain.says == "better" for gain in gains.values())
    harmed = sum(gain.says == "worse" for gain in gains.values())
    best = max(gains, key=lambda name: gains[name].diff)
    apart = f", and harms {plural(harmed, 'method')}" if harmed else ""
    at_half = grid.numbers("at 0.5").get(best, nan)
    return (
        f"A tuned threshold helps {clear} of {plural(len(gains), 'method')} by more than chance{apart}; at best it is "
        f"worth {value_text(gains[best], 1)} for {best} (accuracy in points, {number(at_half, 1)} at one half)."
    )


# Study: what does a right answer cost? Accuracy against dollars and against time, and who is not beaten on both.
#
# After Analytica (2026), section 5.4 and D.4.2.


FRONTIER_NOTES = (
    "On the frontier is who is not beaten in accuracy by anybody who costs no more. Accuracy per dollar favours "
    "whatever is nearly free, and is given because the paper gives it.",
    "Accuracy is that of single runs, at one half.",
)


def frontier_study(inputs: DataInputs, options: CostOptions) -> StudyResult:
    """What does a right answer cost, in dollars and in time?

    Compares forecasters whose cost is known, from their runs or from a table.
    """
    data = inputs.data(options)
    costs = data.costs
    configs = study_configs(data)
    tables = {name: one for name, one in configs.items() if name in costs}
    if not tables:
        raise InputError(
            "no forecaster has a cost", hint="give --costs, a table with forecaster, dollars and seconds, or --run"
        )
    shares = {
        name: known_mean(run_accuracy(one), one.rows.cluster, data.resampling, one.weight)
        for name, one in tables.items()
    }
    right = {name: share for name, share in shares.items() if share is not None}
    by = {
        unit: [FrontierPoint(name=n, cost=getattr(costs[n], unit), interval=i) for n, i in right.items()]
        for unit in ("dollars", "seconds")
    }
    best = {unit: {one.name for one in pareto(points)} for unit, points in by.items()}
    columns = (
        column("accuracy", "of a single run at one half, %"),
        column("dollars", "per forecast", 3),
        count("seconds", "per forecast, on the clock"),
        count("per dollar", "accuracy divided by dollars: the paper's cost efficiency"),
        column("best for its dollars"),
        column("best for its time"),
    )
    rows = {
        name: (
            interval,
            costs[name].dollars,
            costs[name].seconds,
            interval.estimate / costs[name].dollars if costs[name].dollars > 0 else None,
            *("yes" if name in names else "" for names in best.values()),
        )
        for name, interval in right.items()
    }
    charts = tuple(
        StudyChart(
            name=unit,
            title=f"Accuracy against {unit}",
            chart=frontier(points, label="accuracy, %", cost_label=f"{unit} per forecast"),
        )
        for unit, points in by.items()
    )
    leaders = [
        f"{one.name} ({number(one.interval.estimate, 1)} % for ${one.cost:.3g})" for one in pareto(by["dollars"])
    ]
    result = StudyResult(
        name="frontier",
        title="What a right answer costs",
        sentences=(f"Best for their dollars: {', '.join(leaders)}.",),
        tables=(table("Accuracy and cost", "Method", columns, rows),),
        charts=charts,
        notes=FRONTIER_NOTES,
    )
    left_out = dict.fromkeys(configs.keys() - tables.keys(), "has no known cost")
    left_out |= dict.fromkeys(tables.keys() - right.keys(), "answered no target that counts")
    return with_scope(result, data, tables, left_out=left_out)
