"""Scores of forecasters within the groups of a column, with intervals that respect clusters."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np

from foretell.frozen import frozen
from foretell.metrics.arrays import Bools, Floats, Ints
from foretell.metrics.bootstrap import Interval
from foretell.metrics.calibration import reliability_bins
from foretell.patterns import pattern
from foretell.scoring.baselines import OVERALL
from foretell.scoring.score import ScoringOptions, pair_comparer, score_table
from foretell.scoring.scoreboard import Scoreboard
from foretell.scoring.table import ForecastTable, Labels, Targets
from foretell.scoring.verdict import Verdict, corrected

# Readable groups of a column: numbers are binned, dates grouped by month and small categories pooled.

NUMBER_PATTERN = pattern(r"^\s*([≤<>≥]?)\s*([-+−]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(.*)$")
DAY_PATTERN = pattern(r"^\d{4}-\d{2}-\d{2}")
PLAIN_NUMBER_PATTERN = pattern(r"^\s*[-+−]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?\s*$")
UNKNOWN = "(none)"
QUANTILES = 5

Key = Callable[[str], tuple[float | str, ...]]


@frozen
class LabelGrouping:
    """Rows sorted into at most a dozen or so named groups."""

    column: str
    codes: Ints
    names: tuple[str, ...]
    ordered: bool
    """Whether the groups have an order (days, sizes), so that a line may join them."""


def group_labels(column: str, labels: Labels, *, most: int = 12) -> LabelGrouping:
    """Group a column in a readable way.

    More than `most` different numbers become fifths of the rows, more than two dozen days become months (or years), and
    of more than `most` other names the small ones are pooled as "other".

    >>> horizons = Labels(codes=np.array([0, 1, 2, 1]), names=("30", "7", "90"))
    >>> group_labels("horizon", horizons).names
    ('7', '30', '90')
    """
    used = [i for i, count in enumerate(np.bincount(labels.codes, minlength=len(labels.names))) if count]
    named = [labels.names[i] for i in used if labels.names[i]]
    if named and all(DAY_PATTERN.match(name) for name in named):
        return _days(column, labels, len(named), most)
    if named and all(NUMBER_PATTERN.match(name) for name in named):
        if len(named) > most and all(PLAIN_NUMBER_PATTERN.match(name) for name in named):
            return _fifths(column, labels)
        return _relabelled(column, labels, {name: name for name in named}, key=_size, ordered=True)
    count = np.bincount(labels.codes, minlength=len(labels.names))
    large = sorted(used, key=lambda i: (-int(count[i]), labels.names[i]))[: most if len(used) <= most else most - 1]
    names = {labels.names[i] for i in large}
    shown = {name: name if name in names else "other" for name in named}
    order = {labels.names[i]: place for place, i in enumerate(large)}
    return _relabelled(column, labels, shown, key=lambda name: (order.get(name, len(order)),), ordered=False)


def _size(name: str) -> tuple[float, ...]:
    match = NUMBER_PATTERN.match(name)
    if match is None:
        return (np.inf, 0)
    return (float(match[2].replace("−", "-")), {"≤": -1, "<": -1, ">": 1, "≥": 1}.get(match[1], 0))


def _days(column: str, labels: Labels, distinct: int, most: int) -> LabelGrouping:
    length = 10 if distinct <= 2 * most else 7
    if len({name[:length] for name in labels.names if name}) > 4 * most:
        length = 4
    shown = {name: name[:length] for name in labels.names if name}
    return _relabelled(column, labels, shown, key=lambda name: (name,), ordered=True)


def _fifths(column: str, labels: Labels) -> LabelGrouping:
    numbers = np.array([float(name.replace("−", "-")) if name else np.nan for name in labels.names])[labels.codes]
    edges = np.unique(np.nanquantile(numbers, np.linspace(0, 1, QUANTILES + 1)))
    codes = np.clip(np.searchsorted(edges, numbers, side="left") - 1, 0, len(edges) - 2)
    names = [f"{_short(a)}–{_short(b)}" for a, b in pairwise(edges)]
    if np.isnan(numbers).any():
        codes = np.where(np.isnan(numbers), len(names), codes)
        names.append(UNKNOWN)
    return LabelGrouping(column=column, codes=codes.astype(np.int64), names=tuple(names), ordered=True)


def _short(value: float) -> str:
    for scale, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= scale:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g}"


def _relabelled(column: str, labels: Labels, shown: dict[str, str], *, key: Key, ordered: bool) -> LabelGrouping:
    count = np.bincount(labels.codes, minlength=len(labels.names))
    present = {shown.get(name, UNKNOWN) for name, c in zip(labels.names, count, strict=True) if c}
    names = sorted(present - {UNKNOWN}, key=key) + [UNKNOWN] * (UNKNOWN in present)
    place = {name: i for i, name in enumerate(names)}
    lookup = np.array([place.get(shown.get(name, UNKNOWN), 0) for name in labels.names], dtype=np.int64)
    return LabelGrouping(column=column, codes=lookup[labels.codes], names=tuple(names), ordered=ordered)


NOT_GROUPS = frozenset({"cluster", "text", "title", "question_text", "url"})
"""Columns that identify single questions; grouping by them is not useful."""
READABLE_GROUP = "readable group"
BRIER_INDEX = ScoringOptions()


@frozen
class Breakdown:
    """One metric by the groups of one column, for one or more forecasters."""

    column: str
    ordered: bool
    groups: tuple[str, ...]
    n: tuple[int, ...]
    """Number of targets in each group, answered or not."""
    base_rate: tuple[float, ...]
    """Weighted share of yes in each group; NaN if the group has no weight."""
    scores: Mapping[str, tuple[Interval | None, ...]]
    """Per forecaster, one score per group; None if it answered nothing there."""
    answered: Mapping[str, tuple[int, ...]]
    """Per forecaster, how many of each group's targets the score is based on."""


def breakdown(
    table: ForecastTable, column: str, forecasters: Sequence[str], scoring: ScoringOptions = BRIER_INDEX
) -> Breakdown:
    """Score every forecaster in every readable group (see `group_labels`) of a column of `table.targets.groups`."""
    by = group_labels(column, table.targets.groups[column])
    scored: dict[tuple[str, str | None], tuple[Interval | None, int]] = {}
    if any(len(table.rows_of(name)) for name in forecasters):
        board = _scored(table.only(*forecasters), by, replace(scoring, reference=None))
        scored = {
            (s.forecaster, s.group.get(READABLE_GROUP)): (s.metrics.get(scoring.metric), s.n) for s in board.scores
        }
    lines = {name: [scored.get((name, str(i)), (None, 0)) for i in range(len(by.names))] for name in forecasters}
    return Breakdown(
        column=column,
        ordered=by.ordered,
        groups=by.names,
        n=tuple(np.bincount(by.codes, minlength=len(by.names)).tolist()),
        base_rate=_rates(table, by),
        scores={name: tuple(score for score, _ in line) for name, line in lines.items()},
        answered={name: tuple(n for _, n in line) for name, line in lines.items()},
    )


def differences(
    table: ForecastTable, column: str, forecaster: str, reference: str, scoring: ScoringOptions = BRIER_INDEX
) -> Breakdown:
    """Forecaster minus reference on the targets both answered, in every readable group that has any.

    Both are recomputed on the same resamples; `n` counts shared targets.
    """
    by = group_labels(column, table.targets.groups[column])
    board = _scored(table.only(forecaster, reference), by, replace(scoring, reference=reference))
    groups = {verdict.group.get(READABLE_GROUP): verdict for verdict in board.verdicts}
    shared = [(i, groups[str(i)]) for i in range(len(by.names)) if str(i) in groups]
    rates = _rates(table, by)
    return Breakdown(
        column=column,
        ordered=by.ordered,
        groups=tuple(by.names[i] for i, _ in shared),
        n=tuple(verdict.n for _, verdict in shared),
        base_rate=tuple(rates[i] for i, _ in shared),
        scores={forecaster: tuple(verdict.interval for _, verdict in shared)},
        answered={forecaster: tuple(verdict.n for _, verdict in shared)},
    )


def overall(table: ForecastTable, forecaster: str, scoring: ScoringOptions = BRIER_INDEX) -> Interval | None:
    """The metric over all targets (mean over kinds, or that of the only kind answered); None if there are none."""
    if not len(table.rows_of(forecaster)):
        return None
    board = score_table(table.only(forecaster), replace(scoring, by=(), reference=None, baselines=False))
    return next((s.metrics[scoring.metric] for s in board.scores if scoring.metric in s.metrics), None)


def columns_to_group(table: ForecastTable) -> tuple[str, ...]:
    """Columns worth a breakdown: at least two readable groups, and most rows outside the pool of small ones."""
    return tuple(name for name, labels in table.targets.groups.items() if _worth(group_labels(name, labels)))


def _worth(by: LabelGrouping) -> bool:
    if by.column in NOT_GROUPS or len(by.names) < 2:
        return False
    return "other" not in by.names or float(np.mean(by.codes == by.names.index("other"))) < 0.7


def _rates(table: ForecastTable, by: LabelGrouping) -> tuple[float, ...]:
    weight = np.bincount(by.codes, table.targets.weight, len(by.names))
    yes = np.bincount(by.codes, table.targets.weight * table.targets.outcome, len(by.names))
    return tuple(np.divide(yes, weight, out=np.full(len(weight), np.nan), where=weight > 0).tolist())


def _scored(table: ForecastTable, by: LabelGrouping, scoring: ScoringOptions) -> Scoreboard:
    """Score by readable groups, under a separate column name because they differ from the table's own column."""
    labels = Labels(codes=by.codes, names=tuple(str(i) for i in range(len(by.names))))
    targets = replace(table.targets, groups={**table.targets.groups, READABLE_GROUP: labels})
    return score_table(replace(table, targets=targets), replace(scoring, by=(READABLE_GROUP,), baselines=False))


# Every forecaster against every other, on the targets both answered.


def verdict_matrix(
    table: ForecastTable, forecasters: Sequence[str], group: Mapping[str, str], scoring: ScoringOptions
) -> tuple[Verdict, ...]:
    """The verdict on every pair of forecasters within a group of the board, corrected for the number of pairs."""
    rows = np.ones(len(table.targets), dtype=np.bool_)
    for column, name in group.items():
        if column in table.targets.groups and name != OVERALL:
            rows &= table.targets.groups[column].mask(name)
    pairs = list(combinations(forecasters, 2))
    return corrected(pair_comparer(table, scoring).verdicts(pairs, group, np.flatnonzero(rows)))


# Shares of each group in a sample and in the whole, and their standardised difference.


NOTABLE_DIFFERENCE = 0.1
"""Standardised differences above this are commonly called an imbalance (Austin 2009)."""


@frozen
class GroupShare:
    """The share of one group of one column, in the sample and in the whole."""

    column: str
    group: str
    in_sample: float
    in_whole: float
    difference: float
    """(s − w) / √((s(1−s) + w(1−w)) / 2): the gap in units of its own spread (Austin 2009)."""


def standardised_difference(sample: float, whole: float) -> float:
    """Difference of two shares over their pooled spread; 0 if both are equal and exactly 0 or 1.

    >>> round(standardised_difference(0.6, 0.5), 3), standardised_difference(1.0, 1.0)
    (0.202, 0.0)
    """
    spread = math.sqrt((sample * (1 - sample) + whole * (1 - whole)) / 2)
    if spread == 0:
        return 0.0 if sample == whole else math.copysign(math.inf, sample - whole)
    return (sample - whole) / spread


def representativeness(table: ForecastTable, sample: Bools) -> tuple[GroupShare, ...]:
    """Share of every group of every readable column among the sampled targets and among all targets."""
    if not sample.any():
        return ()
    group_shares: list[GroupShare] = []
    for column in columns_to_group(table):
        by = group_labels(column, table.targets.groups[column])
        inside, whole = (
            np.bincount(codes, minlength=len(by.names)) / len(codes) for codes in (by.codes[sample], by.codes)
        )
        group_shares += [
            GroupShare(
                column=column,
                group=name,
                in_sample=float(inside[i]),
                in_whole=float(whole[i]),
                difference=standardised_difference(float(inside[i]), float(whole[i])),
            )
            for i, name in enumerate(by.names)
        ]
    return tuple(group_shares)


TITLE_COLUMNS = ("title", "question_text", "text")
WORST_SHOWN = 10


@frozen
class WorstForecast:
    """One target with its forecast and its outcome."""

    question: str
    target: str
    title: str
    """The question's text if the table has one, else empty."""
    p: float
    outcome: float
    """0 or 1, or the share that was paid out."""
    brier: float
    field: float
    """Mean Brier score of all forecasters on this target, which shows whether it was hard for everyone."""
    price: float


@frozen
class CalibrationGap:
    """A range of forecasts and its calibration error."""

    low: float
    high: float
    mean_p: float
    frequency: float
    frequency_low: float
    frequency_high: float
    count: int
    share_of_error: float
    """Share of the calibration error that comes from this bin."""


@frozen
class ErrorAnalysis:
    """Everything that the error pages and tables of one forecaster show."""

    forecaster: str
    reference: str | None
    scoring: ScoringOptions
    overall: Interval | None
    breakdowns: tuple[Breakdown, ...]
    """One breakdown per readable column."""
    differences: tuple[Breakdown, ...]
    """Breakdowns of forecaster minus reference on shared targets; empty without a reference."""
    shares: tuple[GroupShare, ...]
    """What the forecaster answered compared with all targets."""
    p: Floats
    """The probability of each target, NaN if not answered."""
    targets: Targets
    easiest: tuple[WorstForecast, ...]
    hardest: tuple[WorstForecast, ...]
    worst_bins: tuple[CalibrationGap, ...]
    """Bins of the reliability diagram, largest share of the calibration error first."""

    @property
    def brier(self) -> Floats:
        """Brier score of every target, NaN if not answered."""
        return (self.p - self.targets.outcome) ** 2


def error_analysis(
    table: ForecastTable,
    forecaster: str,
    reference: str | None = None,
    *,
    scoring: ScoringOptions = BRIER_INDEX,
) -> ErrorAnalysis:
    """Break down one forecaster's errors, next to a reference if one is named."""
    for name in filter(None, (forecaster, reference)):
        table.require(name)
    columns = scoring.by or columns_to_group(table)
    p = table.p_of(forecaster)
    brier = (p - table.targets.outcome) ** 2
    order = np.argsort(brier, kind="stable")[: int(np.isfinite(p).sum())]  # Unanswered targets sort last.
    return ErrorAnalysis(
        forecaster=forecaster,
        reference=reference,
        scoring=scoring,
        overall=overall(table, forecaster, scoring),
        breakdowns=tuple(breakdown(table, column, [forecaster], scoring) for column in columns),
        differences=()
        if reference is None
        else tuple(differences(table, column, forecaster, reference, scoring) for column in columns),
        shares=representativeness(table, np.isfinite(p)),
        p=p,
        targets=table.targets,
        easiest=_cases(table, forecaster, order[:WORST_SHOWN]),
        hardest=_cases(table, forecaster, order[::-1][:WORST_SHOWN]),
        worst_bins=_worst_bins(table, forecaster),
    )


def _cases(table: ForecastTable, forecaster: str, rows: Ints) -> tuple[WorstForecast, ...]:
    targets, p = table.targets, table.p_of(forecaster)
    total = np.bincount(table.target, (table.p - targets.outcome[table.target]) ** 2, minlength=len(targets))
    count = np.bincount(table.target, minlength=len(targets))
    titles = next((targets.groups[c] for c in TITLE_COLUMNS if c in targets.groups), None)
    return tuple(
        WorstForecast(
            question=targets.question.names[targets.question.codes[i]],
            target=targets.target.names[targets.target.codes[i]],
            title="" if titles is None else titles.names[titles.codes[i]],
            p=float(p[i]),
            outcome=float(targets.outcome[i]),
            brier=float((p[i] - targets.outcome[i]) ** 2),
            field=float(total[i] / count[i]),
            price=float(targets.price[i]),
        )
        for i in rows.tolist()
    )


def _worst_bins(table: ForecastTable, forecaster: str) -> tuple[CalibrationGap, ...]:
    p, targets = table.p_of(forecaster), table.targets
    counted = np.isfinite(p) & (targets.weight > 0)
    if not counted.any():
        return ()
    bins = reliability_bins(p[counted], targets.outcome[counted], targets.weight[counted])
    part = bins.weight * np.abs(bins.frequency - bins.mean_p)
    part = part / part.sum() if part.sum() > 0 else part
    return tuple(
        CalibrationGap(
            low=float(bins.low[i]),
            high=float(bins.high[i]),
            mean_p=float(bins.mean_p[i]),
            frequency=float(bins.frequency[i]),
            frequency_low=float(bins.frequency_low[i]),
            frequency_high=float(bins.frequency_high[i]),
            count=int(bins.count[i]),
            share_of_error=float(part[i]),
        )
        for i in np.argsort(-part, kind="stable")
    )
