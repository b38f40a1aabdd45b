"""Rules scored side by side on the same targets: Brier index by kind and overall, and paired differences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan

import numpy as np

from foretell.arena.scoreboard import OVERALL
from foretell.evaluate.arrays import Bools, Floats
from foretell.evaluate.bootstrap import Resampling, brier_index_from_sums, replicate, summarise
from foretell.evaluate.compare import compare_all, compare_paired
from foretell.evaluate.design import Design
from foretell.evaluate.intervals import Interval
from foretell.evaluate.proper import brier_index
from foretell.evaluate.significance import Comparison
from foretell.forecasters.combine.rows import Examples

KINDS = ("market", "dataset")
Scores = Mapping[str, Floats]
"""By rule, the Brier score of every target; NaN where the rule gave no answer."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One rule: its index by group, and its difference to the reference on the targets both answered."""

    name: str
    n: int
    completion: float
    index: Mapping[str, Interval]
    """By kind and overall; overall is the mean over kinds and absent where a kind was left out."""
    against: Mapping[str, Comparison]
    """Minus the reference, questions resampled; empty for the reference itself."""
    two_way: Comparison | None = None
    """The overall difference when resolution days are resampled beside questions."""


def brier_of(p: Floats, examples: Examples) -> Floats:
    """Squared error of every target, NaN where there is no forecast."""
    return (p - examples.outcome) ** 2


def index_of(score: Floats, examples: Examples, group: str = OVERALL) -> float:
    """The Brier index of what was answered; overall is the mean over kinds, NaN where one was left out entirely."""
    kinds = np.unique(examples.rows.kind) if group == OVERALL else [group]
    found: list[float] = []
    for kind in kinds:
        kept = (examples.rows.kind == kind) & np.isfinite(score)
        weight = examples.weight[kept]
        total = float(weight.sum())
        found.append(brier_index(float(weight @ score[kept]) / total) if total > 0 else float("nan"))
    return float(np.mean(found))


def groups_of(examples: Examples) -> tuple[str, ...]:
    """The kinds there are and overall; overall alone where there is one kind."""
    present = [kind for kind in KINDS if (examples.rows.kind == kind).any()]
    return (*present, OVERALL) if len(present) > 1 else (OVERALL,)


def standings(scores: Scores, examples: Examples, reference: str, resampling: Resampling) -> list[Standing]:
    """Every rule with its intervals and its paired differences to the reference, in the order given.

    All differences within a group come from the same resamples of whole questions: the same market asked in two
    rounds, and the horizons of one series, are drawn together.
    """
    names = list(scores)
    matrix, at = np.column_stack([scores[name] for name in names]), names.index(reference)
    groups = groups_of(examples)
    index = {group: _intervals(matrix, examples, group, resampling) for group in groups}
    gaps = {group: _gaps(matrix, at, examples, group, resampling) for group in groups}
    crossed = _gaps(matrix, at, examples, OVERALL, resampling, crossed=True)
    found: list[Standing] = []
    for i, name in enumerate(names):
        mine = {g: one for g in groups if (one := gaps[g][i]) is not None and i != at}
        found.append(
            Standing(
                name=name,
                n=int(np.isfinite(matrix[:, i]).sum()),
                completion=float(np.isfinite(matrix[:, i]).mean()),
                index={g: one for g in groups if (one := index[g][i]) is not None},
                against=mine,
                two_way=crossed[i] if i != at else None,
            )
        )
    return found


def as_interval(gap: Comparison) -> Interval:
    """A difference as a number with its interval, for pictures."""
    return Interval(
        estimate=gap.diff,
        low=gap.low,
        high=gap.high,
        se=gap.se,
        n_clusters=gap.n_clusters,
        draws=0,
        warning=gap.warning,
    )


def turned(gap: Comparison) -> Comparison:
    """Second − first instead of first − second."""
    return replace(gap, diff=-gap.diff, low=-gap.high, high=-gap.low)


def gap(first: Floats, second: Floats, examples: Examples, group: str, how: Resampling) -> Comparison:
    """Index of the first − index of the second within a group, on the targets both answered, questions resampled."""
    member = _of_group(examples, group)
    design = _design(examples, group).take(member)
    return compare_paired(first[member], second[member], design, statistic=brier_index_from_sums, resampling=how)


def mean_gain(
    first: Sequence[Floats], second: Sequence[Floats], examples: Examples, how: Resampling, *, group: str = OVERALL
) -> Comparison:
    """Mean over pairs of index(first) − index(second), all pairs recomputed on the same resamples.

    Only targets that every one of them answered count.
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


def _design(examples: Examples, group: str, *, crossed: bool = False, weighted: bool = True) -> Design:
    """Rows of a group: questions as clusters, kinds apart in the overall group."""
    rows, several = examples.rows, len(groups_of(examples)) > 1
    return Design(
        cluster=rows.cluster,
        crossed=np.datetime_as_string(examples.known_on, "D") if crossed else None,
        stratum=rows.kind if group == OVERALL and several else None,
        weight=examples.weight if weighted else None,
    )


def _of_group(examples: Examples, group: str) -> Bools:
    return np.ones(len(examples), bool) if group == OVERALL else examples.rows.kind == group


def _intervals(matrix: Floats, examples: Examples, group: str, resampling: Resampling) -> list[Interval | None]:
    """The index of every rule on what it answered, all rules on the same resamples."""
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
        # A rule that left a whole kind out has no overall index.
        told = [s.warning(mask) for s, mask in zip(strata, present, strict=True)]
        n_clusters = sum(int(mask.sum()) for mask in present)
        warning = "; ".join(filter(None, told)) or None
        interval = summarise(value, drawn[:, i], resampling, n_clusters=n_clusters, warning=warning)
        found.append(None if isnan(value) else interval)
    return found


def _gaps(
    matrix: Floats, reference: int, examples: Examples, group: str, how: Resampling, *, crossed: bool = False
) -> list[Comparison | None]:
    member = _of_group(examples, group)
    design = _design(examples, group, crossed=crossed).take(member)
    found = compare_all(matrix[member], reference, design, statistic=brier_index_from_sums, resampling=how)
    return [None if isnan(one.diff) else one for one in found]
