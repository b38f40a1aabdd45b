"""Rules scored side by side on the same targets: Brier index by kind and overall, and paired differences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan

import numpy as np

from foretell.forecasters.combine.rows import Examples, Strings
from foretell.metrics.arrays import Bools, Floats
from foretell.metrics.bootstrap import (
    Interval,
    Resampling,
    bootstrap_score,
    brier_index_from_sums,
    replicate,
    summarise,
)
from foretell.metrics.clusters import ResamplingDesign
from foretell.metrics.comparison import Comparison, compare_all, compare_paired
from foretell.metrics.scores import brier_index
from foretell.report.numbers import percent, signed
from foretell.report.study import CellValue, RowStyle, StudyChart, StudyTable, column, forest_chart, table, words
from foretell.scoring.breakdown import Breakdown
from foretell.scoring.scoreboard import OVERALL

KINDS = ("market", "dataset")
Scores = Mapping[str, Floats]
"""Brier score of every target, by rule or by configuration; NaN if there is no answer."""


@dataclass(frozen=True, kw_only=True)
class RuleScore:
    """One rule: its index by group, and its difference to the reference on the targets both answered."""

    name: str
    n: int
    completion: float
    index: Mapping[str, Interval]
    """Index by kind and overall; overall is the mean over kinds, and absent if a kind was left out."""
    differences: Mapping[str, Comparison]
    """Differences to the reference by group, with questions resampled; empty for the reference itself."""
    two_way: Comparison | None = None
    """Overall difference with resolution days resampled as well as questions."""


def brier_of(p: Floats, examples: Examples) -> Floats:
    """Return the squared error of every target; NaN if there is no forecast."""
    return (p - examples.outcome) ** 2


def raw_brier(examples: Examples) -> Floats:
    """Return the squared error of the logit mean of the trials."""
    return brier_of(examples.rows.raw, examples)


def index_of(score: Floats, examples: Examples, group: str = OVERALL) -> float:
    """Return the Brier index of the answered targets; overall is the mean over kinds, NaN if one was left out."""
    indices: list[float] = []
    for kind in np.unique(examples.rows.kind) if group == OVERALL else [group]:
        answered = (examples.rows.kind == kind) & np.isfinite(score)
        weight = examples.weight[answered]
        total = float(weight.sum())
        indices.append(brier_index(float(weight @ score[answered]) / total) if total > 0 else nan)
    return float(np.mean(indices))


def groups_of(examples: Examples) -> tuple[str, ...]:
    """Return the kinds that are present, and overall; overall alone if there is one kind."""
    present = [kind for kind in KINDS if (examples.rows.kind == kind).any()]
    return (*present, OVERALL) if len(present) > 1 else (OVERALL,)


def rule_scores(scores: Scores, examples: Examples, reference: str, resampling: Resampling) -> list[RuleScore]:
    """Score every rule, with intervals and paired differences to the reference, in the order given.

    All differences within a group come from the same resamples of whole questions: the same market asked in two rounds,
    and the horizons of one series, are drawn together.
    """
    names, groups = list(scores), groups_of(examples)
    matrix, at = np.column_stack([*scores.values()]), names.index(reference)
    index = {group: _intervals(matrix, examples, group, resampling) for group in groups}
    gaps = {group: _gaps(matrix, at, examples, group, resampling) for group in groups}
    crossed = _gaps(matrix, at, examples, OVERALL, resampling, crossed=True)
    answered = np.isfinite(matrix)
    return [
        RuleScore(
            name=name,
            n=int(answered[:, i].sum()),
            completion=float(answered[:, i].mean()),
            index={g: one for g in groups if (one := index[g][i]) is not None},
            differences={g: one for g in groups if i != at and (one := gaps[g][i]) is not None},
            two_way=crossed[i] if i != at else None,
        )
        for i, name in enumerate(names)
    ]


def _intervals(matrix: Floats, examples: Examples, group: str, resampling: Resampling) -> list[Interval | None]:
    """Return the interval of every rule's index on the targets it answered, all rules on the same resamples."""
    member = _of_group(examples, group)
    scores, answered = matrix[member], np.isfinite(matrix[member])
    weight = np.where(answered, examples.weight[member, None], 0.0)
    columns = np.stack([weight * np.nan_to_num(scores), weight], axis=2)
    strata = _design(examples, group).take(member).strata(len(scores))
    sums = [s.units.sums(columns[s.rows].reshape(len(s.rows), -1)).reshape(s.units.n, -1, 2) for s in strata]
    estimate, drawn = replicate(strata, sums, brier_index_from_sums, resampling)
    found: list[Interval | None] = []
    for i, value in enumerate(estimate.tolist()):
        present = [np.bincount(s.units.codes[answered[s.rows, i]], minlength=s.units.n) > 0 for s in strata]
        warnings = [s.warning(mask) for s, mask in zip(strata, present, strict=True)]
        warning = "; ".join(filter(None, warnings)) or None
        n_clusters = sum(int(mask.sum()) for mask in present)
        interval = summarise(value, drawn[:, i], resampling, n_clusters=n_clusters, warning=warning)
        # A rule that left a whole kind out has no overall index.
        found.append(None if isnan(value) else interval)
    return found


def _gaps(
    matrix: Floats, reference: int, examples: Examples, group: str, how: Resampling, *, crossed: bool = False
) -> list[Comparison | None]:
    member = _of_group(examples, group)
    design = _design(examples, group, crossed=crossed).take(member)
    found = compare_all(matrix[member], reference, design, statistic=brier_index_from_sums, resampling=how)
    return [None if isnan(one.diff) else one for one in found]


def _design(examples: Examples, group: str, *, crossed: bool = False, weighted: bool = True) -> ResamplingDesign:
    """Return the resampling design of a group: questions as clusters; overall, kinds as strata."""
    several = len(groups_of(examples)) > 1
    return ResamplingDesign(
        cluster=examples.rows.cluster,
        crossed=np.datetime_as_string(examples.known_on, "D") if crossed else None,
        stratum=examples.rows.kind if group == OVERALL and several else None,
        weight=examples.weight if weighted else None,
    )


def _of_group(examples: Examples, group: str) -> Bools:
    return np.ones(len(examples), bool) if group == OVERALL else examples.rows.kind == group


def right_answers(p: Floats, outcome: Floats) -> Floats:
    """Return 1 if p is on the side of one half that came true, 0 if not (one half is wrong), and NaN if p is NaN.

    >>> right_answers(np.array([0.8, 0.5, 0.1, np.nan]), np.array([1.0, 1.0, 1.0, 1.0])).tolist()
    [1.0, 0.0, 0.0, nan]
    """
    return np.where(np.isnan(p), np.nan, np.where(outcome == 1, p, 1 - p) > 0.5)


def mean_of_runs(values: Floats) -> Floats:
    """Return the mean over runs (rows), leaving out those that failed; NaN if none answered."""
    n = (~np.isnan(values)).sum(axis=0)
    return np.where(n > 0, np.nansum(values, axis=0) / np.maximum(n, 1), np.nan)


def known_mean(values: Floats, cluster: Strings, how: Resampling) -> Interval | None:
    """Return the mean of the values that exist, with whole clusters resampled; None if there are none."""
    known = np.isfinite(values)
    return bootstrap_score(values[known], cluster[known], resampling=how) if known.any() else None


def run_accuracy(examples: Examples) -> Floats:
    """Return the percentage of a target's runs that were right, for every target; NaN if none answered."""
    return 100 * mean_of_runs(right_answers(examples.rows.trials, examples.outcome))


def step_scores(
    column: str, groups: Sequence[str], scores: Mapping[str, tuple[Interval, ...]], n: Sequence[int]
) -> Breakdown:
    """Return the scores of several rules over ordered steps, for a line chart; `n` is the number of cases per step."""
    return Breakdown(
        column=column,
        ordered=True,
        groups=tuple(groups),
        n=tuple(n),
        base_rate=(nan,) * len(groups),
        scores=scores,
        answered={rule: tuple(n) for rule in scores},
    )


def paired_gap(first: Floats, second: Floats, examples: Examples, group: str, how: Resampling) -> Comparison:
    """Return index(first) − index(second) within a group, on targets that both answered, with questions resampled."""
    member = _of_group(examples, group)
    design = _design(examples, group).take(member)
    return compare_paired(first[member], second[member], design, statistic=brier_index_from_sums, resampling=how)


def mean_gain(
    first: Sequence[Floats], second: Sequence[Floats], examples: Examples, how: Resampling, *, group: str = OVERALL
) -> Comparison:
    """Return the mean over pairs of index(first) − index(second), all pairs recomputed on the same resamples.

    Only targets that all of them answered count.
    """
    member = _of_group(examples, group)
    weight = examples.weight[member, None]
    a, b = (np.column_stack([*scores])[member] * weight for scores in (first, second))
    if a.shape != b.shape:
        raise ValueError(f"{a.shape[1]} and {b.shape[1]} rules cannot be paired")
    design = _design(examples, group, weighted=False).take(member)
    return compare_paired(np.hstack([a, weight]), np.hstack([b, weight]), design, statistic=mean_index, resampling=how)


def mean_index(sums: Floats) -> Floats:
    """Mean over rules of the Brier index, from (…, R + 1) sums: R of weighted Brier scores and one of weights.

    >>> mean_index(np.array([1.0, 0.0, 4.0])).tolist()
    75.0
    """
    each = [brier_index_from_sums(np.stack([sums[..., r], sums[..., -1]], axis=-1)) for r in range(sums.shape[-1] - 1)]
    return np.mean(each, axis=0)


def rule_score_table(
    title: str, scores: Sequence[RuleScore], groups: Sequence[str], *, styles: Mapping[str, RowStyle] | None = None
) -> StudyTable:
    """Table of rules: index and difference by kind, then overall with both intervals of the difference."""
    kinds = [group for group in groups if group != OVERALL]
    columns = [
        one
        for kind in kinds
        for one in (
            column(kind, f"Brier index on {kind} questions"),
            column(f"Δ {kind}", f"minus the reference on {kind} questions"),
        )
    ]
    columns += [
        column("BI", "Brier index, overall: mean over kinds, with its interval"),
        column("Δ", "minus the reference on shared targets, questions resampled"),
        column("Δ two-way", "the same with resolution days resampled beside questions"),
        column("n", "targets answered"),
        column("done", "share of the targets answered"),
    ]
    rows: list[tuple[str, list[CellValue]]] = []
    for one in scores:
        values = [part for kind in kinds for part in (estimate(one, kind), one.differences.get(kind))]
        overall = (one.index.get(OVERALL), one.differences.get(OVERALL), one.two_way, one.n, percent(one.completion))
        rows.append((one.name, [*values, *overall]))
    return table(title, "", columns, rows, styles=styles)


def estimate(score: RuleScore, group: str) -> float | None:
    """Return the index of a rule within a group without its interval; None if it has none."""
    return score.index[group].estimate if group in score.index else None


# One change in many configurations.


@dataclass(frozen=True, kw_only=True)
class PairedGains:
    """Paired gains in Brier index, by configuration and on average."""

    mean: Comparison
    """Mean gain, all configurations recomputed on the same resamples, on the targets that all of them answered."""
    kinds: Mapping[str, Comparison]
    """Mean gain on each kind of question, if there are several."""
    by_config: Mapping[str, Comparison]

    @property
    def worst(self) -> tuple[str, Comparison]:
        """The configuration that loses most, or gains least."""
        return min(self.by_config.items(), key=lambda item: item[1].diff)

    @property
    def better(self) -> int:
        """Number of configurations that gain."""
        return sum(one.diff > 0 for one in self.by_config.values())

    @property
    def clearly_worse(self) -> int:
        """Number of configurations that lose by more than noise: the whole interval lies below zero."""
        return sum(one.high < 0 for one in self.by_config.values())

    def values(self) -> tuple[CellValue, ...]:
        """Return the values of the `SPREAD` columns of a table."""
        name, worst = self.worst
        return (worst, name, f"{self.better} of {len(self.by_config)}", self.clearly_worse)

    def __str__(self) -> str:
        """Say how many configurations lose, and name the worst case."""
        name, worst = self.worst
        hurt = "no configuration loses by more than noise"
        if self.clearly_worse:
            hurt = f"{self.clearly_worse} of {len(self.by_config)} lose by more than noise"
        return f"{hurt}; at worst {signed(worst.diff, 1)} ({name})"


SPREAD = (
    column("worst", "the largest loss, or the smallest gain, of one configuration", 2),
    words("there", "the configuration of the largest loss"),
    column("better", "configurations that gain"),
    column("clearly worse", "configurations whose whole interval lies below zero"),
)


def paired_gains(after: Scores, before: Scores, configs: Mapping[str, Examples], how: Resampling) -> PairedGains:
    """Return the gains of the configurations of `after` over those of `before`."""
    some, pairs = configs[next(iter(after))], ([*after.values()], [before[name] for name in after])
    return PairedGains(
        mean=mean_gain(*pairs, some, how),
        kinds={kind: mean_gain(*pairs, some, how, group=kind) for kind in groups_of(some) if kind != OVERALL},
        by_config={name: paired_gap(after[name], before[name], configs[name], OVERALL, how) for name in after},
    )


def gains_table(title: str, row_header: str, gains: Mapping[str, PairedGains], *, decimals: int = 1) -> StudyTable:
    """Table of mean gains by kind and overall, and of how they are spread over configurations."""
    kinds = [kind for kind in KINDS if kind in next(iter(gains.values())).kinds]
    columns = [column(f"Δ {kind}", f"mean difference on {kind} questions", decimals) for kind in kinds]
    columns.append(column("Δ", "mean difference overall, all of them on the same resamples", decimals))
    rows = {name: (*(one.kinds[kind] for kind in kinds), one.mean, *one.values()) for name, one in gains.items()}
    return table(title, row_header, (*columns, *SPREAD), rows)


def gains_chart(name: str, title: str, gains: Mapping[str, PairedGains], label: str) -> StudyChart:
    """Chart of the mean gains, the largest on top."""
    order = sorted(gains, key=lambda name: -gains[name].mean.diff)
    means = {one: gains[one].mean.interval for one in order}
    return forest_chart(name, title, means, label, decimals=2, reference=0.0)
