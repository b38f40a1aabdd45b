"""From a joined table to a scoreboard: every metric with its interval, every difference, and completion rates."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from numbers import Real
from typing import Any

import numpy as np

from foretell.data.untrusted import rows_as_text
from foretell.frozen import frozen
from foretell.metrics.arrays import Floats, Ints
from foretell.metrics.bootstrap import DEFAULT_RESAMPLING, Resampling
from foretell.metrics.comparison import McNemarTest, mcnemar
from foretell.metrics.decisions import clear_answers
from foretell.metrics.metric import (
    DECISION_METRICS,
    FORMER_NAMES,
    METRICS,
    STANDARD_METRICS,
    Metric,
    return_metric,
    sharpe_metric,
)
from foretell.metrics.power import PilotStudy, plan_from_pilot
from foretell.metrics.returns import RISK_NEUTRAL_BETTOR, Bettor
from foretell.metrics.scores import right_side
from foretell.plugins import load, names
from foretell.questions.codec import plain_data
from foretell.questions.errors import InputError, known_names
from foretell.questions.tabular import Tabular, rows_as_html
from foretell.scoring.baselines import ALWAYS_HALF, BASELINES, OVERALL
from foretell.scoring.engine import (
    MetricDraws,
    TargetLayer,
    draw_metrics,
    known_groups,
    layers_of,
    merged_notes,
    resampling_design,
)
from foretell.scoring.pair_comparer import PairComparer
from foretell.scoring.scoreboard import (
    Score,
    Scoreboard,
    group_title,
    verdict_row,
)
from foretell.scoring.table import ForecastTable, with_baselines, with_computed_columns
from foretell.scoring.verdict import Finding, Verdict, corrected


@frozen
class ScoringOptions:
    """Which metrics to compute, and how."""

    by: tuple[str, ...] = ()
    """Columns of the outcomes whose combinations are scored separately, besides the kinds and the overall number."""
    metric: str = "brier_index"
    """The metric that ranks the board and is compared with the reference."""
    metrics: tuple[str, ...] = ()
    """Metrics to compute besides the standard ones, e.g. peer, adjusted_brier_index, accuracy, resolution."""
    reference: str | None = None
    """The forecaster that the others are compared with; None means the leader."""
    cluster: tuple[str, ...] = ()
    """Column whose values are resampled as a whole: `cluster` if there is one, else `question`. Two columns, such as
    question and resolved_on, are crossed."""
    missing: float | None = None
    """Probability filled in for every target a forecaster left out; None scores only what was answered."""
    baselines: bool = True
    """Whether to add the baselines 0.5, base rate and market price."""
    bettor: Bettor = RISK_NEUTRAL_BETTOR
    resampling: Resampling = DEFAULT_RESAMPLING
    matters: float | None = None
    """The smallest difference that matters, in the unit of `metric`; None takes the metric's own."""

    def __post_init__(self) -> None:
        """Raise InputError for a value of another type, or a number that is out of range."""
        for name, kind in (("bettor", Bettor), ("resampling", Resampling)):
            if not isinstance(getattr(self, name), kind):
                raise InputError(f"must be a foretell.metrics.{kind.__name__}", column=name)
        check_number("missing", self.missing, 0.0, 1.0)
        check_number("matters", self.matters, 0.0, math.inf)


def check_number(name: str, value: object, low: float, high: float) -> None:
    """Raise InputError for what is neither None nor a number in a range."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{value!r} is not a number", column=f"--{name}")
    if not low <= float(value) <= high:
        limits = f"at least {low:g}" if math.isinf(high) else f"from {low:g} to {high:g}"
        raise InputError(f"must be {limits}, not {float(value):g}", column=f"--{name}")


def add_metrics() -> None:
    """Register metrics of other packages next to the built-in ones."""
    for name in names("metrics"):
        METRICS.setdefault(name, load("metrics", name))


def score_table(table: ForecastTable, scoring: ScoringOptions | None = None) -> Scoreboard:
    """Score every forecaster on every group, and compare each with the reference on the targets both answered."""
    scoring = scoring or ScoringOptions()
    original, table = table, prepared(table, scoring, baselines=scoring.baselines)
    by, unknown = known_groups(table.targets, scoring.by)
    if unknown:
        note = f"Not grouped by {', '.join(unknown)}, because the table has no such column."
        scoring, table = replace(scoring, by=by), replace(table, notes=(*table.notes, note))
    layers = layers_of(table.targets, scoring.by, scoring.cluster)
    metrics = _metrics(table, scoring)
    # Filled-in forecasts are scored, but do not count as answered.
    filled = original.forecasters if scoring.missing is not None else ()
    answered = {name: original.answered(name) for name in filled}
    groups, settings, merged = list(_groups(layers)), _settings(scoring, layers), merged_notes(layers[0])
    scores = list(_all_scores(table, layers, groups, metrics, scoring, answered))
    del layers  # The clusters of a long table take much memory, and the comparisons have their own.
    reference = _reference(table, scores, scoring)
    comparer = pair_comparer(table, scoring, metrics[scoring.metric])
    pairs = [(name, reference) for name in table.forecasters if name != reference]
    verdicts = [verdict for group, rows in groups for verdict in with_correction(comparer.verdicts(pairs, group, rows))]
    return Scoreboard(
        scores=tuple(scores),
        verdicts=tuple(verdicts),
        reference=reference,
        metric=scoring.metric,
        settings=settings,
        notes=(*table.notes, *merged, *_metrics_of_some(scores, groups, metrics)),
        behind_half=dict(_behind_half(table, scores, groups[:1], comparer)),
    )


def _metrics_of_some(
    scores: Sequence[Score], groups: Sequence[tuple[Mapping[str, str], Ints]], metrics: Mapping[str, Metric]
) -> list[str]:
    """Name the only groups that have a metric, such as those with prices; baselines do not count."""
    scored: dict[str, list[str]] = {}
    for score in scores:
        for name in score.metrics if score.forecaster not in BASELINES else ():
            scored.setdefault(name, []).append(group_title(score.group))
    titles = [group_title(group) for group, _ in groups]
    metrics_of: dict[tuple[str, ...], list[str]] = {}
    for name, having in scored.items():
        metrics_of.setdefault(tuple(title for title in titles if title in having), []).append(metrics[name].label)
    return [
        f"Computed only for {', '.join(having)}: {', '.join(labels)}."
        for having, labels in metrics_of.items()
        if len(having) < len(titles)
    ]


def _behind_half(
    table: ForecastTable,
    scores: Sequence[Score],
    first: Sequence[tuple[Mapping[str, str], Ints]],
    comparer: PairComparer,
) -> Iterator[tuple[str, Finding]]:
    """Yield the forecasters with a worse score than always 0.5 on the first group, and the verdict on each."""
    name, sign = comparer.metric.name, 1 if comparer.metric.better == "low" else -1
    for group, rows in first if ALWAYS_HALF in table.forecasters else ():
        known = {s.forecaster: s.metrics[name] for s in scores if dict(s.group) == dict(group) and name in s.metrics}
        if ALWAYS_HALF not in known:
            return
        half = known[ALWAYS_HALF].estimate
        behind = [who for who, own in known.items() if who not in BASELINES and sign * (own.estimate - half) > 0]
        for verdict in comparer.verdicts([(who, ALWAYS_HALF) for who in behind], group, rows):
            yield verdict.first, verdict.says


def pair_comparer(table: ForecastTable, scoring: ScoringOptions, metric: Metric | None = None) -> PairComparer:
    """Compare pairs of forecasters of a table by the metric, clusters and resampling of these options."""
    return PairComparer(
        table=table,
        metric=metric or _metrics(table, scoring)[scoring.metric],
        cluster=scoring.cluster,
        resampling=scoring.resampling,
        matters=scoring.matters,
    )


def with_correction(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Correct the p-values of one group; comparisons of baselines are not corrected and do not count."""
    candidates = iter(corrected([verdict for verdict in verdicts if verdict.first not in BASELINES]))
    return [verdict if verdict.first in BASELINES else next(candidates) for verdict in verdicts]


def _groups(layers: Sequence[TargetLayer]) -> Iterator[tuple[Mapping[str, str], Ints]]:
    """Yield every group of the board with its targets, the overall one first."""
    if layers and len(layers[0].blocks) > 1:
        yield {"kind": OVERALL}, layers[0].targets
    for layer in layers:
        for block in layer.blocks:
            yield block.group, block.rows


def _metrics(table: ForecastTable, scoring: ScoringOptions) -> dict[str, Metric]:
    """The metrics of the board, including the bettor's own returns; those that need prices only if there are any."""
    own = {
        "return": return_metric(scoring.bettor),
        "net": return_metric(Bettor(gamma=scoring.bettor.gamma), net=True),
        "sharpe": sharpe_metric(scoring.bettor),
    }
    pays = bool(table.targets.options.any())
    decisions = DECISION_METRICS if pays else ()
    names = dict.fromkeys((*STANDARD_METRICS, *decisions, scoring.metric, *scoring.metrics))
    metrics = {name: own.get(name) or METRICS[name] for name in names}
    if METRICS[scoring.metric].needs == "payoffs" and not pays:
        hint = "add what a dollar on each option returned"
        raise InputError(f"{scoring.metric} needs options with values", column="payoff", hint=hint)
    metrics = {name: metric for name, metric in metrics.items() if pays or metric.needs != "payoffs"}
    if table.targets.priced:
        return metrics
    unpriced = {name: metric for name, metric in metrics.items() if metric.needs not in ("prices", "fees")}
    if scoring.metric not in unpriced:
        raise InputError(f"{scoring.metric} needs prices", column="price", hint="add price or yes_ask and no_ask")
    return unpriced


def _all_scores(
    table: ForecastTable,
    layers: Sequence[TargetLayer],
    groups: Sequence[tuple[Mapping[str, str], Ints]],
    metrics: Mapping[str, Metric],
    scoring: ScoringOptions,
    answered: Mapping[str, Ints],
) -> Iterator[Score]:
    """Score every group, and yield the groups in the order of the board, each ranked."""
    rows_of = {tuple(group.items()): rows for group, rows in groups}
    scores: dict[tuple[tuple[str, str], ...], list[Score]] = {group: [] for group in rows_of}
    for group, draws in draw_metrics(table, layers, list(metrics.values()), scoring.resampling, scoring.cluster):
        key = tuple(group.items())
        scores[key] += _scores(group, rows_of[key], draws, scoring, answered)
    order = {name: place for place, name in enumerate(table.forecasters)}
    sign = -1 if METRICS[scoring.metric].better == "high" else 1
    for of_group in scores.values():
        of_group.sort(key=lambda score: order[score.forecaster])
        ranked = [score for score in of_group if scoring.metric in score.metrics]
        ranked.sort(key=lambda score: sign * score.metrics[scoring.metric].estimate)
        yield from ranked
        yield from (score for score in of_group if scoring.metric not in score.metrics)


def _scores(
    group: Mapping[str, str],
    rows: Ints,
    drawn: Mapping[str, MetricDraws],
    scoring: ScoringOptions,
    answered: Mapping[str, Ints],
) -> list[Score]:
    intervals = {name: draws.intervals(scoring.resampling) for name, draws in drawn.items()}
    # The Brier score exists wherever anything was answered, so it counts the rows for the whole line.
    counted = drawn["brier"]
    return [
        Score(
            forecaster=forecaster,
            group=group,
            n=support.n,
            questions=support.questions,
            completion=(int(np.isin(answered[forecaster], rows).sum()) if forecaster in answered else support.n)
            / len(rows),
            metrics={name: column[forecaster] for name, column in intervals.items() if forecaster in column},
        )
        for forecaster, support in zip(counted.names, counted.support, strict=True)
    ]


def _reference(table: ForecastTable, scores: Sequence[Score], scoring: ScoringOptions) -> str:
    if scoring.reference is None:
        return scores[0].forecaster
    table.require(scoring.reference)
    return scoring.reference


def _settings(scoring: ScoringOptions, layers: Sequence[TargetLayer]) -> dict[str, object]:
    ways = dict.fromkeys(" × ".join(block.ways) for layer in layers for block in layer.blocks)
    return {
        "metric": scoring.metric,
        "draws": scoring.resampling.draws,
        "level": scoring.resampling.level,
        "seed": scoring.resampling.seed,
        "cluster": " or ".join(ways) + (", by the days that a group shares" if len(ways) > 1 else ""),
        "missing": scoring.missing,
        "gamma": scoring.bettor.gamma,
    }


# Comparison of two forecasters, with a plan for the next one.


COMPARISON_SCHEMA = "foretell/compare/1"


@frozen
class PairComparison(Tabular):
    """The first forecaster against the second, overall and by group."""

    first: str
    second: str
    verdicts: tuple[Verdict, ...]
    """The verdict on everything both answered, then those by group; empty if they share no target."""
    resampling: Resampling
    """How the intervals were resampled."""
    pilot: PilotStudy | None
    """Spread of their Brier differences, for planning the next comparison; None if they never differ."""
    mcnemar: McNemarTest | None = None
    """How often one is right while the other is wrong, for the metrics accuracy and choice."""
    notes: tuple[str, ...] = ()
    """Which clusters were merged before they were resampled, and which groups have no score by the metric."""

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        if self.verdicts:
            first = self.verdicts[0]
            where = "" if dict(first.group) in ({}, {"kind": OVERALL}) else f"{group_title(first.group)} only: "
            return f"{where}{first.sentence}"
        return f"{self.first} and {self.second} have no target with an outcome in common."

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; missing numbers are null."""
        return {"schema": COMPARISON_SCHEMA, **plain_data(self), "sentence": self.sentence}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per group: both scores on the common targets, the difference and the verdict."""
        return [verdict_row(verdict) for verdict in self.verdicts]

    def __str__(self) -> str:
        parts = [self.sentence, rows_as_text(self.rows()) if self.verdicts else "", *self.notes]
        return "\n\n".join(filter(None, parts))

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<p>{escape(self.sentence)}</p>{rows_as_html(self.rows())}{notes}"


def compare_pair(
    table: ForecastTable, first: str, second: str, scoring: ScoringOptions | None = None
) -> PairComparison:
    """Compare two forecasters of a table on the targets both answered."""
    scoring = scoring or ScoringOptions()
    if first == second:
        raise InputError(f"{first!r} is compared with itself", hint="name two forecasters")
    table = prepared(table, scoring, baselines=bool({first, second} & set(BASELINES)))
    for name in (first, second):
        table.require(name)
    comparer = pair_comparer(table, scoring)
    targets = np.flatnonzero(np.isfinite(table.p_of(first)) & np.isfinite(table.p_of(second)))
    layers = layers_of(table.targets, scoring.by, scoring.cluster, targets) if len(targets) else []
    groups = list(_groups(layers))
    verdicts = [verdict for group, rows in groups for verdict in comparer.verdicts([(first, second)], group, rows)]
    compared = [verdict.group for verdict in verdicts]
    without = [group_title(group) for group, _ in groups if group not in compared]
    lacking = [f"Not compared on {', '.join(without)}: no {comparer.metric.label} there."] if without else []
    if compared and compared[0] == {"kind": OVERALL} and (n := verdicts[0].n) < len(targets):
        lacking.append(f"{n:,} of the {len(targets):,} targets that both answered have a {comparer.metric.label}.")
    # The overall verdict is one comparison. The groups are many, so they are corrected for their number.
    overall = int(compared[:1] == [{"kind": OVERALL}])
    return PairComparison(
        first=first,
        second=second,
        verdicts=(*verdicts[:overall], *corrected(verdicts[overall:])),
        resampling=scoring.resampling,
        pilot=pilot_of(table, first, second),
        mcnemar=mcnemar_of_pair(table, first, second, scoring.metric) if scoring.metric in RIGHT_OR_WRONG else None,
        notes=(*(merged_notes(layers[0]) if layers else ()), *lacking),
    )


def prepared(table: ForecastTable, scoring: ScoringOptions, *, baselines: bool) -> ForecastTable:
    """Return the table as it is scored: missing forecasts filled in, and baselines added if `baselines`."""
    add_metrics()
    for name in (scoring.metric, *scoring.metrics):
        column = "--metric" if name == scoring.metric else "--metrics"
        if name in FORMER_NAMES:
            raise InputError(f"the metric {name} is now {FORMER_NAMES[name]}", column=column)
        if name not in METRICS:
            raise InputError(f"unknown metric {name!r}", column=column, hint=known_names(name, list(METRICS)))
    table = with_computed_columns(table, scoring.by)
    table = table.filled(scoring.missing) if scoring.missing is not None else table
    return with_baselines(table) if baselines else table


def accuracies(table: ForecastTable) -> dict[str, Score]:
    """The overall accuracy of every forecaster, as on a board; its interval is not computed."""
    board = score_table(table, ScoringOptions(metric="accuracy", baselines=False, resampling=Resampling(draws=2)))
    return {score.forecaster: score for score in board.group(**board.groups()[0])}


RIGHT_OR_WRONG = ("accuracy", "choice")
"""Metrics by which a single answer is right or wrong."""


def mcnemar_of_pair(table: ForecastTable, first: str, second: str, metric: str = "accuracy") -> McNemarTest | None:
    """McNemar's test of two forecasters: by task for choices, else by target; None if they share no clear answer."""
    pair = table.only(first, second)
    targets = pair.targets
    right: list[Floats] = []
    for name in pair.forecasters:
        p = pair.p_of(name)
        if metric == "choice":
            rows = np.flatnonzero(np.isfinite(p))
            correct = np.full(len(targets), np.nan)
            correct[rows] = pair.decisions(rows, p[rows]).right
        else:
            correct = right_side(p, targets.outcome)
        right.append(correct)
    # A task is one answer, not one for each of its options.
    _, rows = np.unique(targets.askings, return_index=True) if metric == "choice" else (None, np.arange(len(targets)))
    both = np.stack([correct[rows] for correct in right])
    # A forecast of 0.5, or a tie of the most probable options, is neither right nor wrong.
    both[:, targets.weight[rows] <= 0] = np.nan
    clear = clear_answers(both)
    n = int(np.isfinite(clear).all(axis=0).sum())
    return replace(mcnemar(*clear), left_out=int(np.isfinite(both).all(axis=0).sum()) - n) if n else None


def pilot_of(table: ForecastTable, first: str, second: str) -> PilotStudy | None:
    """How many questions the next comparison of this pair needs; None if they never differ."""
    targets = table.targets
    scores = np.stack([(table.p_of(name) - targets.outcome) ** 2 for name in (first, second)])
    common = np.flatnonzero(np.isfinite(scores.sum(axis=0)))
    scores = scores[:, common]
    if not len(common):
        return None
    ways = np.empty((2, len(common)), np.int64)
    for at, part in enumerate(resampling_design(targets, (), common, targets.groups.get("kind")).strata(len(common))):
        # Kinds are resampled separately. Crossed with themselves, clusters that share no days keep their variance.
        ways[:, part.rows] = [way.codes + at * len(common) for way in (part.ways[0], part.ways[-1])]
    # The overall index is the mean over kinds: a row counts by its kind, not by how many rows the kind has, and a
    # difference in Brier score moves the index of its kind by 50 over the root of that kind's Brier score.
    kinds = targets.groups["kind"].codes[common] if "kind" in targets.groups else np.zeros(len(common), np.int64)
    _, kind, rows = np.unique(kinds, return_inverse=True, return_counts=True)
    root = np.sqrt(np.bincount(kind, scores.mean(axis=0)) / rows)
    gap = scores[0] - scores[1]
    if all(np.ptp(gap[kind == k]) == 0 for k in range(len(rows))) or len(np.unique(ways[0])) < 2:
        return None
    share = (root.mean() / np.maximum(root, np.finfo(float).eps) * len(common) / (len(rows) * rows))[kind]
    pilot = plan_from_pilot(scores[0] * share, scores[1] * share, *ways, stratum=kind)
    return replace(pilot, index=100 * (1 - float(root.mean())))
