"""Study: what does another trial bring? Score against the number of trials, exactly over all choices of trials."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np

from foretell.forecasters.combine.aggregate import extremised, logit_mean, mean, median, trimmed
from foretell.forecasters.combine.rows import Examples
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval
from foretell.metrics.comparison import Comparison
from foretell.report.charts.groups import score_by_group
from foretell.report.charts.svg import Chart
from foretell.report.numbers import bracket, plural, signed
from foretell.report.study import CellValue, RowStyle, StudyChart, StudyColumn, StudyResult, StudyRow, StudyTable
from foretell.scoring.scoreboard import OVERALL
from foretell.studies.configurations import complete_configs, study_notes, study_settings
from foretell.studies.inputs import DataInputs, StudyData, TableOptions
from foretell.studies.scores import (
    RuleScore,
    as_interval,
    brier_of,
    groups_of,
    mean_gain,
    reversed_difference,
    rule_score_table,
    rule_scores,
    step_scores,
)

Pool = Callable[[Floats], Floats]
"""K × n probabilities without a gap to n probabilities."""

RULES: Mapping[str, Pool] = {
    "logit mean": logit_mean,
    "mean": mean,
    "median": median,
    "trimmed mean": trimmed,
    "extremised": extremised,
}


def pooled(pool: Pool, trials: Floats) -> Floats:
    """The rule over the trials that gave an answer; NaN where none did.

    >>> pooled(mean, np.array([[0.2, 0.4, np.nan], [0.4, np.nan, np.nan]])).round(2).tolist()
    [0.3, 0.4, nan]
    """
    said = ~np.isnan(trials)
    out = np.full(trials.shape[1], np.nan)
    patterns, code = np.unique(said, axis=1, return_inverse=True)
    for i, pattern in enumerate(patterns.T):
        if pattern.any():
            here = np.flatnonzero(code.ravel() == i)
            out[here] = pool(trials[np.ix_(pattern, here)])
    return out


def expected_brier(pool: Pool, examples: Examples, k: int) -> Floats:
    """Brier score of every target when k of its trials are taken, the exact mean over all choices of k.

    Trials that failed count as taken: what is left of a choice answers, and a choice without any answer is left out.
    """
    trials = examples.rows.trials
    total, count = np.zeros(len(examples)), np.zeros(len(examples))
    for choice in combinations(range(len(trials)), k):
        score = (pooled(pool, trials[list(choice)]) - examples.outcome) ** 2
        count += np.isfinite(score)
        total += np.nan_to_num(score)
    return np.divide(total, count, out=np.full(len(examples), np.nan), where=count > 0)


def endless_brier(examples: Examples) -> Floats:
    """Brier score of the mean of infinitely many trials, estimated without bias from the spread of those there are.

    The mean of k trials has the expected score (μ − o)² + σ²/k, so (p̄ − o)² − s²/K estimates what is left as k grows.
    NaN where fewer than two trials answered. A single target's estimate may be negative; averages may not be read
    without their interval.
    """
    trials = examples.rows.trials
    n = (~np.isnan(trials)).sum(axis=0)
    enough = n > 1
    held = np.where(np.isnan(trials), 0.0, trials)
    average = held.sum(axis=0) / np.maximum(n, 1)
    spread = np.where(np.isnan(trials), 0.0, (trials - average) ** 2).sum(axis=0) / np.maximum(n - 1, 1)
    return np.where(enough, (average - examples.outcome) ** 2 - spread / np.maximum(n, 1), np.nan)


CURVES = ("logit mean", "mean", "median")
ENDLESS = "mean of ∞ trials"
NOTES = (
    "Every number for k trials is the exact mean over all choices of k of the trials: nothing is drawn at random.",
    "The arithmetic mean's expected Brier score is a line in 1/k, which gives its score with endlessly many trials; "
    "other rules obey no such law.",
)


def study(inputs: DataInputs, options: TableOptions) -> StudyResult:
    """What does another trial bring?

    Curves of all complete configurations, and every rule for the chosen ones (the best one, if none is chosen).
    """
    data = inputs.data(options)
    tables = complete_configs(data)
    curves: dict[str, list[Floats]] = {}
    for done, (name, examples) in enumerate(tables.items()):
        data.progress(done, len(tables))
        curves[name] = [expected_brier(RULES["logit mean"], examples, k) for k in _counts(examples)]
    overview, gain = _overview(tables, curves, data)
    shown = data.chosen or (_best(overview),)
    details = {name: trial_rule_scores(tables[name], data) for name in shown}
    grids = [_detail(name, found, tables[name]) for name, found in details.items()]
    figures = [_curve(found, tables[name]) for name, found in details.items()]
    return StudyResult(
        name="trials",
        title="What another trial brings",
        sentences=(_sentence(gain, tables, overview),),
        tables=(overview, *grids),
        charts=tuple(
            StudyChart(name=f"trials-{i}", title=f"{name}: score against trials", chart=figure)
            for i, (name, figure) in enumerate(zip(shown, figures, strict=True), 1)
        ),
        notes=(*NOTES, *study_notes(data, tables)),
        settings=study_settings(data, tables),
    )


def trial_rule_scores(examples: Examples, data: StudyData) -> list[RuleScore]:
    """Every rule with every number of trials, against the logit mean of all trials."""
    scores = {
        trial_rule_label(rule, k): expected_brier(RULES[rule], examples, k)
        for rule in CURVES
        for k in reversed(_counts(examples))
    }
    most = len(examples.rows.trials)
    if most > 1:
        scores[ENDLESS] = endless_brier(examples)
    for rule in ("trimmed mean", "extremised"):
        scores[trial_rule_label(rule, most)] = brier_of(pooled(RULES[rule], examples.rows.trials), examples)
    return rule_scores(scores, examples, trial_rule_label("logit mean", most), data.resampling)


def trial_rule_label(rule: str, k: int) -> str:
    """A rule over k trials, as tables write it.

    >>> trial_rule_label("logit mean", 5)
    'logit mean of 5'
    """
    return f"{rule} of {k}"


def _counts(examples: Examples) -> range:
    return range(1, len(examples.rows.trials) + 1)


def _overview(
    tables: Mapping[str, Examples], curves: Mapping[str, Sequence[Floats]], data: StudyData
) -> tuple[StudyTable, Comparison | None]:
    """One line per configuration: the logit mean's index with 1, 2, … trials, and what the last ones bring."""
    most = max(len(curve) for curve in curves.values())
    entries: list[StudyRow] = []
    for name, curve in curves.items():
        scores = {str(k): score for k, score in enumerate(curve, 1)}
        found = rule_scores(scores, tables[name], str(len(curve)), data.resampling)
        index: list[CellValue] = [one.index[OVERALL].estimate if OVERALL in one.index else None for one in found]
        index += [None] * (most - len(index))
        gain = [
            None if one is None else reversed_difference(one)
            for one in (found[0].differences.get(OVERALL), found[0].two_way)
        ]
        entries.append(StudyRow(name=name, values=(*index, *gain, found[-1].index.get(OVERALL))))
    columns = [
        StudyColumn(label=f"k={k}", tip=f"Brier index of the logit mean of {k} trials") for k in range(1, most + 1)
    ]
    columns += [
        StudyColumn(label="all − one", tip="paired difference, questions resampled"),
        StudyColumn(label="two-way", tip="the same, resolution days resampled too"),
        StudyColumn(label="all", tip="with its interval"),
    ]
    entries.sort(key=lambda entry: -(entry.values[-1].estimate if isinstance(entry.values[-1], Interval) else 0.0))
    grid = StudyTable(
        title="Logit mean of k trials", row_header="Configuration", columns=tuple(columns), rows=tuple(entries)
    )
    longest = [name for name, curve in curves.items() if len(curve) == most > 1]
    if not longest:
        return grid, None
    last, first = ([curves[name][k] for name in longest] for k in (-1, 0))
    return grid, mean_gain(last, first, tables[longest[0]], data.resampling)


def _best(overview: StudyTable) -> str:
    return overview.rows[0].name


def _detail(name: str, found: Sequence[RuleScore], examples: Examples) -> StudyTable:
    reference = next(one.name for one in found if not one.differences)
    styles: dict[str, RowStyle] = {reference: "reference", ENDLESS: "anchor"}
    return rule_score_table(f"{name}: rules and trials", found, groups_of(examples), styles=styles)


def _curve(found: Sequence[RuleScore], examples: Examples) -> Chart:
    """Paired differences to all trials' logit mean: intervals of the scores themselves would hide the curve."""
    counts, by_name = _counts(examples), {one.name: one for one in found}
    scores = {rule: tuple(_gap(by_name[trial_rule_label(rule, k)]) for k in counts) for rule in CURVES}
    groups = [str(k) for k in counts]
    label = f"BI minus logit mean of {len(counts)}"
    lines = step_scores("trials", groups, scores, [found[0].n] * len(groups))
    return score_by_group(lines, label=label, decimals=2, zero=True)


def _gap(one: RuleScore) -> Interval:
    if OVERALL in one.differences:
        return as_interval(one.differences[OVERALL])
    return Interval(estimate=0.0, low=0.0, high=0.0, se=0.0, n_clusters=0, draws=0)


def _sentence(gain: Comparison | None, tables: Mapping[str, Examples], overview: StudyTable) -> str:
    if gain is None:
        return "There is one trial only: nothing to say about more of them."
    labels = [column.label for column in overview.columns if column.label.startswith("k=")]
    most = len(labels)
    by_label = [overview.numbers(label) for label in labels]
    mean = np.mean([[numbers[name] for numbers in by_label] for name in by_label[-1]], axis=0)
    told = ", ".join(f"trial {k} {signed(step, 2)}" for k, step in enumerate(np.diff(mean).tolist(), 2))
    return (
        f"{most} trials instead of one are worth {signed(gain.diff, 1)} BI {bracket(gain.low, gain.high, 1)} on "
        f"average over {plural(len(tables), 'configuration')} (logit mean): {told}."
    )
