"""Rules scored side by side on the same targets: Brier index by kind and overall, and paired differences."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan, nan

import numpy as np

from foretell.forecasters.combine.rows import UNKNOWN_DAY, Examples, Strings
from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.bootstrap import (
    Interval,
    Resampling,
    bootstrap_score,
    brier_index_from_sums,
    mean_from_sums,
)
from foretell.metrics.clusters import ResamplingDesign
from foretell.metrics.comparison import compare_paired
from foretell.metrics.metric import METRICS
from foretell.metrics.scores import brier_index
from foretell.number_text import percent, signed
from foretell.report.numbers import CellValue
from foretell.report.study import RowStyle, StudyChart, StudyTable, column, forest_chart, table, words
from foretell.scoring.baselines import OVERALL
from foretell.scoring.breakdown import Breakdown
from foretell.scoring.verdict import Verdict

KINDS = ("market", "dataset")
Scores = Mapping[str, Floats]
"""Brier score of every target, by rule or by configuration; NaN if there is no answer."""


@frozen
class RuleScore:
    """One rule: its index by group, and its difference to the reference on the targets both answered."""

    name: str
    n: int
    completion: float
    index: Mapping[str, Interval]
    """Index by kind and overall; overall is the mean over kinds, and absent if a kind was left out."""
    verdicts: Mapping[str, Verdict]
    """Verdicts against the reference by group; empty for the reference itself."""


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


def rule_scores(
    scores: Scores, examples: Examples, reference: str, resampling: Resampling, *, forecaster: str = ""
) -> list[RuleScore]:
    """Score every rule, with intervals and verdicts against the reference, in the order given.

    Whole questions are resampled: the same market asked in two rounds, and the horizons of one series, are drawn
    together; so are the days that questions share. Verdicts on rules of one `forecaster` name it as their group.
    """
    within = {"forecaster": forecaster} if forecaster else {}
    groups = groups_of(examples)
    return [
        RuleScore(
            name=name,
            n=int(np.isfinite(score).sum()),
            completion=float(np.isfinite(score).mean()),
            index={group: index for group in groups if (index := _index(score, examples, group, resampling))},
            verdicts={
                group: replace(verdict, group=within)
                for group in groups
                if name != reference
                and (
                    verdict := paired_verdict(score, scores[reference], examples, (name, reference), group, resampling)
                )
            },
        )
        for name, score in scores.items()
    ]


def _index(score: Floats, examples: Examples, group: str, resampling: Resampling) -> Interval | None:
    """Return the index on the targets answered; None for a rule that left a whole kind out."""
    if isnan(index_of(score, examples, group)):
        return None
    answered = _of_group(examples, group) & np.isfinite(score)
    design = study_design(examples.take(answered), group)
    metric = METRICS["brier_index"]
    return bootstrap_score(
        score[answered], design, statistic=metric.from_sums, resampling=resampling, bounds=metric.bounds
    )


def study_design(examples: Examples, group: str, *, weighted: bool = True) -> ResamplingDesign:
    """Return the resampling design that a board has: clusters, the days that they share, and kinds as strata."""
    rows = examples.rows
    days: dict[str, Ints] = {}
    for name, times in (("resolved_on", examples.known_on), ("due", rows.due)):
        codes = np.unique(times, return_inverse=True)[1].astype(np.int64)
        days[name] = np.where(np.isnat(times) | (times == UNKNOWN_DAY), -1, codes)
    return ResamplingDesign(
        cluster=rows.cluster,
        days=days,
        stratum=rows.kind if group == OVERALL and len(np.unique(rows.kind)) > 1 else None,
        weight=examples.weight if weighted else None,
        stream=sorted(KINDS).index(group) if group in KINDS else 0,
    )


def _of_group(examples: Examples, group: str) -> Bools:
    return np.ones(len(examples), bool) if group == OVERALL else examples.rows.kind == group


def mean_of_runs(values: Floats) -> Floats:
    """Return the mean over runs (rows), leaving out those that failed; NaN if none answered."""
    n = (~np.isnan(values)).sum(axis=0)
    return np.where(n > 0, np.nansum(values, axis=0) / np.maximum(n, 1), np.nan)


def known_mean(values: Floats, cluster: Strings, how: Resampling, weight: Floats | None = None) -> Interval | None:
    """Return the weighted mean of the values that exist, with whole clusters resampled; None if there are none."""
    exists = np.isfinite(values)
    if weight is not None:
        exists &= weight > 0
    design = ResamplingDesign(cluster=cluster[exists], weight=None if weight is None else weight[exists])
    return bootstrap_score(values[exists], design, resampling=how) if exists.any() else None


def weighted_means(rows: Floats, weight: Floats) -> Floats:
    """Return the weighted mean of every row over its columns that are not NaN; NaN if there is none."""
    exists = np.isfinite(rows)
    total = exists @ weight
    return np.divide(np.where(exists, rows, 0.0) @ weight, total, out=np.full(len(rows), np.nan), where=total > 0)


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


CHANGE = ("with the change", "without it")
"""Names of the two sides of a gain."""


def paired_verdict(
    first: Floats, second: Floats, examples: Examples, names: tuple[str, str], group: str, how: Resampling
) -> Verdict | None:
    """Return the verdict on two Brier scores by target within a group, in Brier index; None if they share no target."""
    common = _of_group(examples, group) & np.isfinite(first) & np.isfinite(second)
    if not common.any():
        return None
    metric, design = METRICS["brier_index"], study_design(examples.take(common), group)
    comparison = compare_paired(
        first[common], second[common], design, statistic=metric.from_sums, resampling=how, bounds=metric.bounds
    )
    verdict = Verdict.of(comparison, names, metric, level=how.level)
    return replace(verdict, one_sided=bool(np.ptp(examples.outcome[common]) == 0))


def mean_gain(
    first: Sequence[Floats],
    second: Sequence[Floats],
    examples: Examples,
    how: Resampling,
    *,
    group: str = OVERALL,
    times: float = 1.0,
) -> Verdict | None:
    """Return the mean over pairs of index(first) − index(second), all pairs recomputed on the same resamples.

    Each pair is compared on the targets that both of it answered; None if there are none. `times` scales the mean.
    """
    a, b = (np.column_stack([*scores]) for scores in (first, second))
    if a.shape != b.shape:
        raise ValueError(f"{a.shape[1]} and {b.shape[1]} rules cannot be paired")
    both = np.isfinite(a + b)
    member = _of_group(examples, group) & both.any(axis=1)
    if not member.any():
        return None
    weight = examples.weight[member, None] * both[member]
    a, b = (np.hstack([np.nan_to_num(scores[member]) * weight, weight]) for scores in (a, b))
    design = study_design(examples.take(member), group, weighted=False)
    comparison = compare_paired(a, b, design, statistic=mean_index, resampling=how).times(times)
    return None if isnan(comparison.diff) else Verdict.of(comparison, CHANGE, "brier_index", level=how.level)


def mean_index(sums: Floats) -> Floats:
    """Mean over rules of the Brier index, from (…, 2R) sums: R of weighted Brier scores, then their R of weights.

    A rule without weight is left out of the mean.

    >>> mean_index(np.array([1.0, 0.0, 4.0, 4.0])).tolist(), mean_index(np.array([1.0, 0.0, 4.0, 0.0])).tolist()
    (75.0, 50.0)
    """
    index = brier_index_from_sums(np.stack(np.split(sums, 2, axis=-1), axis=-1))
    exists = np.isfinite(index)
    return mean_from_sums(np.stack([np.where(exists, index, 0.0).sum(axis=-1), exists.sum(axis=-1)], axis=-1))


def rule_score_table(
    title: str, scores: Sequence[RuleScore], groups: Sequence[str], *, styles: Mapping[str, RowStyle] | None = None
) -> StudyTable:
    """Table of rules: index and verdict against the reference, by kind and overall."""
    kinds = [group for group in groups if group != OVERALL]
    columns = [
        heading
        for kind in kinds
        for heading in (
            column(kind, f"Brier index on {kind} questions"),
            column(f"Δ {kind}", f"minus the reference on {kind} questions"),
        )
    ]
    columns += [
        column("BI", "Brier index, overall: mean over kinds, with its interval"),
        column("Δ", "minus the reference on shared targets, questions and the days they share resampled"),
        column("n", "targets answered"),
        column("done", "share of the targets answered"),
    ]
    rows: list[tuple[str, list[CellValue]]] = []
    for score in scores:
        values = [part for kind in kinds for part in (estimate(score, kind), score.verdicts.get(kind))]
        overall = (score.index.get(OVERALL), score.verdicts.get(OVERALL), score.n, percent(score.completion))
        rows.append((score.name, [*values, *overall]))
    return table(title, "", columns, rows, styles=styles)


def estimate(score: RuleScore, group: str) -> float | None:
    """Return the index of a rule within a group without its interval; None if it has none."""
    return score.index[group].estimate if group in score.index else None


# One change in many configurations.


@frozen
class PairedGains:
    """Paired gains in Brier index, by configuration and on average."""

    mean: Verdict
    """Mean gain, all configurations recomputed on the same resamples, each on the targets it answered."""
    kinds: Mapping[str, Verdict]
    """Mean gain on each kind of question, if there are several."""
    by_config: Mapping[str, Verdict]
    """Without those that answered nothing of a kind."""

    @property
    def worst(self) -> tuple[str, Verdict]:
        """The configuration that loses most, or gains least."""
        return min(self.by_config.items(), key=lambda item: item[1].diff)

    @property
    def better(self) -> int:
        """Number of configurations that gain."""
        return sum(verdict.diff > 0 for verdict in self.by_config.values())

    @property
    def clearly_worse(self) -> int:
        """Number of configurations that lose by more than chance."""
        return sum(verdict.says == "worse" for verdict in self.by_config.values())

    def values(self) -> tuple[CellValue, ...]:
        """Return the values of the `SPREAD` columns of a table."""
        if not self.by_config:
            return (None,) * len(SPREAD)
        name, worst = self.worst
        return (worst, name, f"{self.better} of {len(self.by_config)}", self.clearly_worse)

    def __str__(self) -> str:
        """Say how many configurations lose, and name the worst case."""
        if not self.by_config:
            return "no configuration answered questions of every kind"
        name, worst = self.worst
        hurt = "no configuration loses by more than chance"
        if self.clearly_worse:
            hurt = f"{self.clearly_worse} of {len(self.by_config)} lose by more than chance"
        return f"{hurt}; at worst {signed(worst.diff, 1)} ({name})"


SPREAD = (
    column("worst", "the largest loss, or the smallest gain, of one configuration", 2),
    words("there", "the configuration of the largest loss"),
    column("better", "configurations that gain"),
    column("clearly worse", "configurations that lose by more than chance"),
)


def paired_gains(after: Scores, before: Scores, configs: Mapping[str, Examples], how: Resampling) -> PairedGains | None:
    """Return the gains of the configurations of `after` over those of `before`; None if they share no target."""
    some, pairs = configs[next(iter(after))], ([*after.values()], [before[name] for name in after])
    mean = mean_gain(*pairs, some, how)
    by_config = {name: paired_verdict(after[name], before[name], configs[name], CHANGE, OVERALL, how) for name in after}
    kinds = {kind: mean_gain(*pairs, some, how, group=kind) for kind in groups_of(some) if kind != OVERALL}
    if mean is None:
        return None
    return PairedGains(
        mean=mean,
        kinds={kind: verdict for kind, verdict in kinds.items() if verdict is not None},
        by_config={name: verdict for name, verdict in by_config.items() if verdict is not None},
    )


def gains_table(title: str, row_header: str, gains: Mapping[str, PairedGains], *, decimals: int = 1) -> StudyTable:
    """Table of mean gains by kind and overall, and of how they are spread over configurations."""
    kinds = [kind for kind in KINDS if kind in next(iter(gains.values())).kinds]
    columns = [column(f"Δ {kind}", f"mean difference on {kind} questions", decimals) for kind in kinds]
    columns.append(column("Δ", "mean difference overall, all of them on the same resamples", decimals))
    rows = {
        name: (*(gain.kinds.get(kind) for kind in kinds), gain.mean, *gain.values()) for name, gain in gains.items()
    }
    return table(title, row_header, (*columns, *SPREAD), rows)


def gains_chart(name: str, title: str, gains: Mapping[str, PairedGains], label: str) -> StudyChart:
    """Chart of the mean gains, the largest on top."""
    order = sorted(gains, key=lambda name: -gains[name].mean.diff)
    means = {row: gains[row].mean.interval for row in order}
    return forest_chart(name, title, means, label, decimals=2, reference=0.0)
