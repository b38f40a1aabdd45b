"""From a joined table to a scoreboard: every metric with its interval, every difference, and completion rates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from html import escape
from typing import Any, cast

import numpy as np

from foretell.metrics.arrays import Bools, Floats, Ints
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
from foretell.questions.resolution import Resolution
from foretell.request import errors_name_fields
from foretell.scoring.engine import (
    MetricDraws,
    TargetBlock,
    TargetLayer,
    cluster_columns,
    draw_metrics,
    known_groups,
    layers_of,
    mean_of_draws,
)
from foretell.scoring.join import ReadOptions, read_table
from foretell.scoring.scoreboard import (
    Score,
    Scoreboard,
    rows_as_frame,
    rows_as_html,
    rows_as_text,
    verdict_row,
)
from foretell.scoring.table import ANCHORS, OVERALL, ForecastTable, with_anchors, with_computed_columns
from foretell.scoring.table_input import TableSource, names_a_file
from foretell.scoring.verdict import PairComparer, Verdict, corrected


@dataclass(frozen=True, kw_only=True)
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
    """Column whose values are resampled as wholes: `cluster` if there is one, else `question`. Two columns, such as
    question and resolved_on, are crossed."""
    missing: float | None = None
    """Probability filled in for every target a forecaster left out; None scores only what was answered."""
    anchors: bool = True
    """Whether to add the rows 0.5, base rate and crowd price."""
    bettor: Bettor = RISK_NEUTRAL_BETTOR
    resampling: Resampling = DEFAULT_RESAMPLING
    matters: float | None = None
    """The smallest difference that matters, in the unit of `metric`; None takes the metric's own."""


@errors_name_fields()
def score(
    forecasts: TableSource,
    outcomes: TableSource | None = None,
    *,
    reading: ReadOptions | None = None,
    scoring: ScoringOptions | None = None,
    **options: Any,
) -> Scoreboard:
    """Score forecasts against outcomes: a leaderboard that prints as a table, also in a notebook.

    Forecasts may be the id of a stored run (or a list of ids), the result of a backtest, a file (CSV, Parquet, JSONL),
    a data frame or a list of dictionaries. Outcomes may be any table, or a list of resolutions; they may be left out
    for a run, for a backtest of a named question set, and if the forecasts have a column `outcome`. `options` are
    the fields of `ReadOptions` and `ScoringOptions`: `score(f, o, by=("source",), missing=0.5)`.

    >>> board = score([{"forecaster": "A", "question": "q", "target": "yes", "p": 0.8, "outcome": 1}])
    >>> round(board.scores[0].metrics["brier"].estimate, 3)
    0.04
    """
    forecasts, outcomes = _sources(forecasts, outcomes)
    reading, options = _split_options(reading, options)
    table = read_table(forecasts, outcomes, reading)
    lists = {name: (value,) for name in ("by", "metrics") if isinstance(value := options.get(name), str)}
    return score_table(table, replace(scoring or ScoringOptions(), **options | lists))


def _split_options(reading: ReadOptions | None, options: dict[str, Any]) -> tuple[ReadOptions, dict[str, Any]]:
    """Apply the options that say how to read tables, and return the others."""
    names = {one.name for one in fields(ReadOptions)} & options.keys()
    changed = replace(reading or ReadOptions(), **{name: options[name] for name in names})
    return changed, {name: value for name, value in options.items() if name not in names}


def _sources(forecasts: TableSource, outcomes: TableSource | None) -> tuple[TableSource, TableSource | None]:
    """Turn runs, backtests and resolutions into long tables; keep other inputs."""
    from foretell.runs.backtest import Backtest

    if isinstance(forecasts, Backtest):
        from foretell.scoring.long_tables import forecast_rows, outcome_rows

        if outcomes is None or _all_are(outcomes, Resolution):
            known = forecasts.resolutions if outcomes is None else cast("list[Resolution]", outcomes)
            outcomes = outcome_rows(forecasts.questions, known, forecasts.quarantined)
        return forecast_rows(forecasts.forecasts, forecasts.questions), outcomes
    runs = [forecasts] if isinstance(forecasts, str) else forecasts
    if not _all_are(runs, str) or any(map(names_a_file, cast("list[str]", runs))):
        return forecasts, outcomes
    from foretell.runs.settings import load_settings
    from foretell.scoring.long_tables import run_rows

    found = run_rows(load_settings(), cast("list[str]", runs), decided=outcomes is None)
    return found.forecasts, outcomes or found.outcomes


def _all_are(values: object, kind: type) -> bool:
    return isinstance(values, list | tuple) and bool(values) and all(isinstance(one, kind) for one in values)  # type: ignore[reportUnknownVariableType]


def add_metrics() -> None:
    """Register metrics of other packages next to the built-in ones."""
    for name in names("metrics"):
        METRICS.setdefault(name, load("metrics", name))


def score_table(table: ForecastTable, scoring: ScoringOptions | None = None) -> Scoreboard:
    """Score every forecaster on every group, and compare each with the reference on the targets both answered."""
    scoring = scoring or ScoringOptions()
    given, table = table, prepared(table, scoring, anchors=scoring.anchors)
    by, unknown = known_groups(table.targets, scoring.by)
    if unknown:
        note = f"Not grouped by {', '.join(unknown)}, because the table has no such column."
        scoring, table = replace(scoring, by=by), replace(table, notes=(*table.notes, note))
    layers = layers_of(table.targets, scoring.by, scoring.cluster)
    metrics = _metrics(table, scoring)
    drawn = draw_metrics(table, layers, list(metrics.values()), scoring.resampling, scoring.cluster)
    # What was put in for missing forecasts is scored, but it does not count as answered.
    filled = given.forecasters if scoring.missing is not None else ()
    answered = {name: np.isfinite(given.p_of(name)) for name in filled}
    scores = [score for blocks in drawn for score in _layer_scores(blocks, scoring, answered)]
    reference = _reference(table, scores, scoring)
    comparer = pair_comparer(table, scoring, metrics[scoring.metric])
    pairs = [(name, reference) for name in table.forecasters if name != reference]
    verdicts = [
        verdict for group, rows in _groups(layers) for verdict in with_correction(comparer.verdicts(pairs, group, rows))
    ]
    return Scoreboard(
        scores=tuple(scores),
        verdicts=tuple(verdicts),
        reference=reference,
        metric=scoring.metric,
        settings=_settings(scoring, layers[0]),
        notes=table.notes,
    )


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
    """Correct the p-values of one group; anchors are yardsticks, not candidates, and do not count."""
    candidates = iter(corrected([verdict for verdict in verdicts if verdict.first not in ANCHORS]))
    return [verdict if verdict.first in ANCHORS else next(candidates) for verdict in verdicts]


def _groups(layers: Sequence[TargetLayer]) -> Iterator[tuple[Mapping[str, str], Ints]]:
    """Yield every group of the board with its targets, the overall one first."""
    if layers and _has_kinds(layers[0].blocks):
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
    found = {name: own.get(name) or METRICS[name] for name in names}
    if METRICS[scoring.metric].needs == "payoffs" and not pays:
        hint = "add what a dollar on each option returned"
        raise InputError(f"{scoring.metric} needs options with values", column="payoff", hint=hint)
    found = {name: metric for name, metric in found.items() if pays or metric.needs != "payoffs"}
    if table.targets.priced:
        return found
    unpriced = {name: metric for name, metric in found.items() if metric.needs not in ("prices", "fees")}
    if scoring.metric not in unpriced:
        raise InputError(f"{scoring.metric} needs prices", column="price", hint="add price or yes_ask and no_ask")
    return unpriced


def _layer_scores(
    drawn: Sequence[tuple[TargetBlock, Mapping[str, MetricDraws]]],
    scoring: ScoringOptions,
    answered: Mapping[str, Bools],
) -> Iterator[Score]:
    if _has_kinds([block for block, _ in drawn]):
        # Overall is the unweighted mean over kinds, for those who answered all of them.
        overall = {name: mean_of_draws([draws[name] for _, draws in drawn]) for name in drawn[0][1]}
        rows = np.concatenate([block.rows for block, _ in drawn])
        yield from _scores({"kind": OVERALL}, rows, overall, scoring, answered)
    for block, draws in drawn:
        yield from _scores(block.group, block.rows, draws, scoring, answered)


def _has_kinds(blocks: Sequence[TargetBlock]) -> bool:
    return len(blocks) > 1 and set(blocks[0].group) == {"kind"}


def _scores(
    group: Mapping[str, str],
    rows: Ints,
    drawn: Mapping[str, MetricDraws],
    scoring: ScoringOptions,
    answered: Mapping[str, Bools],
) -> list[Score]:
    intervals = {name: draws.intervals(scoring.resampling) for name, draws in drawn.items()}
    # The Brier score exists wherever anything was answered, so it counts the rows for the whole line.
    counted = drawn["brier"]
    scores = [
        Score(
            forecaster=forecaster,
            group=group,
            n=support.n,
            questions=support.questions,
            completion=(int(answered[forecaster][rows].sum()) if forecaster in answered else support.n) / len(rows),
            metrics={name: found[forecaster] for name, found in intervals.items() if forecaster in found},
        )
        for forecaster, support in zip(counted.names, counted.support, strict=True)
    ]
    sign = -1 if METRICS[scoring.metric].better == "high" else 1
    ranked = [s for s in scores if scoring.metric in s.metrics]
    ranked.sort(key=lambda s: sign * s.metrics[scoring.metric].estimate)
    return ranked + [s for s in scores if scoring.metric not in s.metrics]


def _reference(table: ForecastTable, scores: Sequence[Score], scoring: ScoringOptions) -> str:
    if scoring.reference is None:
        return scores[0].forecaster
    table.require(scoring.reference)
    return scoring.reference


def _settings(scoring: ScoringOptions, layer: TargetLayer) -> dict[str, object]:
    return {
        "metric": scoring.metric,
        "draws": scoring.resampling.draws,
        "level": scoring.resampling.level,
        "seed": scoring.resampling.seed,
        "cluster": " × ".join(layer.blocks[0].ways),
        "missing": scoring.missing,
        "gamma": scoring.bettor.gamma,
    }


# Two forecasters head to head, with a plan for the next time.


@dataclass(frozen=True, kw_only=True)
class PairComparison:
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

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        if self.verdicts:
            return self.verdicts[0].sentence
        return f"{self.first} and {self.second} have no target with an outcome in common."

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; missing numbers are null."""
        return {**plain_data(self), "sentence": self.sentence}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per group: both scores on the common targets, the difference and the verdict."""
        return [verdict_row(verdict) for verdict in self.verdicts]

    def to_frame(self) -> Any:
        """Return the rows as a pandas data frame."""
        return rows_as_frame(self.rows())

    def __str__(self) -> str:
        return f"{self.sentence}\n\n{rows_as_text(self.rows())}" if self.verdicts else self.sentence

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.sentence)}</p>{rows_as_html(self.rows())}"


@errors_name_fields()
def compare(
    forecasts: TableSource,
    outcomes: TableSource | None,
    first: str,
    second: str,
    *,
    reading: ReadOptions | None = None,
    **options: Any,
) -> PairComparison:
    """Whether the first forecaster is better than the second, and by more than chance, on the targets both answered.

    `options` are the fields of `ReadOptions` and `ScoringOptions`, as in `score`.

    >>> rows = [{"forecaster": name, "question": f"q{n}", "target": "yes", "p": p}
    ...         for name, p in (("bold", 0.9), ("shy", 0.6)) for n in range(4)]
    >>> happened = [{"question": f"q{n}", "target": "yes", "outcome": 1} for n in range(4)]
    >>> verdict = compare(rows, happened, "bold", "shy", metric="brier").verdicts[0]
    >>> round(verdict.diff, 2), verdict.says
    (-0.15, 'too few to tell')
    """
    forecasts, outcomes = _sources(forecasts, outcomes)
    reading, options = _split_options(reading, options)
    scoring = replace(ScoringOptions(), **options)
    return compare_pair(read_table(forecasts, outcomes, reading), first, second, scoring)


def compare_pair(
    table: ForecastTable, first: str, second: str, scoring: ScoringOptions | None = None
) -> PairComparison:
    """Compare two forecasters of a table on the targets both answered."""
    scoring = scoring or ScoringOptions()
    table = prepared(table, scoring, anchors=bool({first, second} & set(ANCHORS)))
    for name in (first, second):
        table.require(name)
    comparer = pair_comparer(table, scoring)
    targets = np.flatnonzero(np.isfinite(table.p_of(first)) & np.isfinite(table.p_of(second)))
    layers = layers_of(table.targets, scoring.by, scoring.cluster, targets) if len(targets) else []
    verdicts = [
        verdict for group, rows in _groups(layers) for verdict in comparer.verdicts([(first, second)], group, rows)
    ]
    # The whole is one question, its groups are many: only they are corrected for each other.
    return PairComparison(
        first=first,
        second=second,
        verdicts=(*verdicts[:1], *corrected(verdicts[1:])),
        resampling=scoring.resampling,
        pilot=pilot_of(table, first, second),
        mcnemar=mcnemar_of_pair(table, first, second, scoring.metric) if scoring.metric in RIGHT_OR_WRONG else None,
    )


def prepared(table: ForecastTable, scoring: ScoringOptions, *, anchors: bool) -> ForecastTable:
    """Return the table as it is scored: missing forecasts filled in, and the anchors added."""
    add_metrics()
    for name in (scoring.metric, *scoring.metrics):
        if name in FORMER_NAMES:
            raise InputError(f"the metric {name} is now {FORMER_NAMES[name]}", column="--metric")
        if name not in METRICS:
            raise InputError(f"unknown metric {name!r}", column="--metric", hint=known_names(name, list(METRICS)))
    table = with_computed_columns(table, scoring.by)
    table = table.filled(scoring.missing) if scoring.missing is not None else table
    return with_anchors(table) if anchors else table


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
            found = np.full(len(targets), np.nan)
            found[rows] = pair.decisions(rows, p[rows]).right
        else:
            found = right_side(p, targets.outcome)
        right.append(found)
    # A task is one answer, not one for each of its options.
    _, rows = np.unique(targets.askings, return_index=True) if metric == "choice" else (None, np.arange(len(targets)))
    both = np.stack([found[rows] for found in right])
    # A forecast of 0.5, or a tie of the most probable options, takes no side.
    clear = clear_answers(both)
    n = int(np.isfinite(clear).all(axis=0).sum())
    return replace(mcnemar(*clear), left_out=int(np.isfinite(both).all(axis=0).sum()) - n) if n else None


def pilot_of(table: ForecastTable, first: str, second: str) -> PilotStudy | None:
    """How many questions the next comparison of this pair needs; None if they never differ."""
    targets = table.targets
    scores = np.stack([(table.p_of(name) - targets.outcome) ** 2 for name in (first, second)])
    common = np.flatnonzero(np.isfinite(scores.sum(axis=0)))
    scores = scores[:, common]
    ways = [labels.codes[common] for labels in cluster_columns(targets, (), common).values()]
    # The overall index is the mean over kinds: a row counts by its kind, not by how many rows the kind has, and a
    # difference in Brier score moves the index of its kind by 50 over the root of that kind's Brier score.
    kinds = targets.groups["kind"].codes[common] if "kind" in targets.groups else np.zeros(len(common), np.int64)
    _, kind, rows = np.unique(kinds, return_inverse=True, return_counts=True)
    root = np.sqrt(np.bincount(kind, scores.mean(axis=0)) / rows)
    gap = scores[0] - scores[1]
    if all(np.ptp(gap[kind == k]) == 0 for k in range(len(rows))) or len(np.unique(ways[0])) < 2:
        return None
    share = (root.mean() / np.maximum(root, np.finfo(float).eps) * len(common) / (len(rows) * rows))[kind]
    found = plan_from_pilot(scores[0] * share, scores[1] * share, *ways, stratum=kind)
    return replace(found, index=100 * (1 - float(root.mean())))
