"""From a joined table to a scoreboard: every number with its interval, every gap with its completion rate."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from foretell.arena.anchors import with_anchors
from foretell.arena.drawing import Draws, draw_differences, draw_metrics, mean_of
from foretell.arena.groups import Layer, layers_of
from foretell.arena.intake import Source
from foretell.arena.joining import Reading, read_table
from foretell.arena.scoreboard import OVERALL, Difference, Score, Scoreboard
from foretell.arena.table import Table
from foretell.evaluate.bootstrap import Resampling
from foretell.evaluate.metric import METRICS, Metric, return_metric, sharpe_metric
from foretell.evaluate.significance import comparison_of
from foretell.evaluate.stakes import RISK_NEUTRAL, Bettor
from foretell.questions.problems import InputError

RETURNS = ("return", "sharpe")
"""Metrics that need prices."""


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """What to compute and how sure to be of it."""

    by: tuple[str, ...] = ()
    """Columns of the outcomes whose combinations are scored apart, besides the kinds and the overall number."""
    metric: str = "bi"
    """Ranks the board and is compared with the reference."""
    reference: str | None = None
    """Whom the others are compared with; None takes the leader."""
    cluster: tuple[str, ...] = ()
    """Column whose values are resampled as wholes: `cluster` if there is one, else `question`. Two columns, such
    as question and resolved_on, are resampled crosswise."""
    missing: float | None = None
    """A probability put in for every target a forecaster left out; None scores only what was answered."""
    anchors: bool = True
    """Add the rows 0.5, base rate and crowd price."""
    bettor: Bettor = RISK_NEUTRAL
    resampling: Resampling = field(default_factory=lambda: Resampling(draws=2000))


def score(
    forecasts: Source,
    outcomes: Source,
    *,
    reading: Reading | None = None,
    scoring: Scoring | None = None,
    **options: Any,
) -> Scoreboard:
    """Score a table of forecasts against a table of outcomes.

    Either may be a file (CSV, Parquet, JSONL), a data frame or a list of dictionaries. `options` are the fields of
    `Scoring`, for the common case: `score(f, o, by=("source",), reference="crowd price")`.

    >>> board = score([{"forecaster": "A", "question": "q", "target": "yes", "p": 0.8}],
    ...               [{"question": "q", "target": "yes", "outcome": 1}])
    >>> round(board.scores[0].metrics["brier"].estimate, 3)
    0.04
    """
    return score_table(read_table(forecasts, outcomes, reading), replace(scoring or Scoring(), **options))


def score_table(table: Table, scoring: Scoring | None = None) -> Scoreboard:
    """Score every forecaster on every group, and compare each with the reference on the targets both answered."""
    scoring = scoring or Scoring()
    if scoring.metric not in METRICS:
        raise InputError(f"unknown metric {scoring.metric!r}", hint=f"one of {', '.join(METRICS)}")
    table = table.filled(scoring.missing) if scoring.missing is not None else table
    table = with_anchors(table) if scoring.anchors else table
    layers = layers_of(table.targets, scoring.by, scoring.cluster)
    metrics = _metrics(table, scoring)
    drawn = draw_metrics(table, layers, metrics, scoring.resampling)
    scores = [s for layer, blocks in zip(layers, drawn, strict=True) for s in _layer_scores(layer, blocks, scoring)]
    reference = _reference(table, scores, scoring)
    gaps = draw_differences(table, layers, reference, metrics[scoring.metric], scoring.resampling)
    differences = [
        d
        for layer, blocks in zip(layers, gaps, strict=True)
        for d in _layer_differences(layer, blocks, reference, scoring)
    ]
    return Scoreboard(
        scores=tuple(scores),
        differences=tuple(differences),
        reference=reference,
        metric=scoring.metric,
        settings=_settings(scoring, layers[0]),
        notes=table.notes,
    )


def _metrics(table: Table, scoring: Scoring) -> dict[str, Metric]:
    """The metrics of the board, with the bettor's own returns where there are prices to bet against."""
    metrics = METRICS | {"return": return_metric(scoring.bettor), "sharpe": sharpe_metric(scoring.bettor)}
    priced = table.targets.priced
    if not priced and scoring.metric in RETURNS:
        raise InputError(f"{scoring.metric} needs prices", column="price", hint="add price or yes_ask and no_ask")
    return metrics if priced else {name: metric for name, metric in metrics.items() if name not in RETURNS}


def _layer_scores(layer: Layer, drawn: Sequence[Mapping[str, Draws]], scoring: Scoring) -> Iterator[Score]:
    if _has_kinds(layer):
        # Overall is the unweighted mean over kinds, for those who answered all of them.
        overall = {name: mean_of([block[name] for block in drawn]) for name in drawn[0]}
        yield from _scores({"kind": OVERALL}, sum(len(block.rows) for block in layer.blocks), overall, scoring)
    for block, found in zip(layer.blocks, drawn, strict=True):
        yield from _scores(block.group, len(block.rows), found, scoring)


def _has_kinds(layer: Layer) -> bool:
    return len(layer.blocks) > 1 and set(layer.blocks[0].group) == {"kind"}


def _scores(group: Mapping[str, str], size: int, drawn: Mapping[str, Draws], scoring: Scoring) -> list[Score]:
    intervals = {name: draws.intervals(scoring.resampling) for name, draws in drawn.items()}
    # The Brier score exists wherever anything was answered, so it counts the rows for the whole line.
    counted = drawn["brier"]
    scores = [
        Score(
            forecaster=forecaster,
            group=group,
            n=support.n,
            questions=support.questions,
            completion=support.n / size,
            metrics={name: found[forecaster] for name, found in intervals.items() if forecaster in found},
        )
        for forecaster, support in zip(counted.names, counted.support, strict=True)
    ]
    sign = -1 if METRICS[scoring.metric].better == "high" else 1
    ranked = [s for s in scores if scoring.metric in s.metrics]
    ranked.sort(key=lambda s: sign * s.metrics[scoring.metric].estimate)
    return ranked + [s for s in scores if scoring.metric not in s.metrics]


def _reference(table: Table, scores: Sequence[Score], scoring: Scoring) -> str:
    if scoring.reference is None:
        return scores[0].forecaster
    table.require(scoring.reference)
    return scoring.reference


def _layer_differences(layer: Layer, drawn: Sequence[Draws], reference: str, scoring: Scoring) -> Iterator[Difference]:
    groups: list[tuple[Mapping[str, str], Draws]] = []
    if drawn and _has_kinds(layer):
        groups.append(({"kind": OVERALL}, mean_of(drawn)))
    groups += [(block.group, draws) for block, draws in zip(layer.blocks, drawn, strict=False)]
    for group, draws in groups:
        intervals = draws.intervals(scoring.resampling)
        for i, name in enumerate(draws.names):
            if name in intervals:
                found = comparison_of(intervals[name], draws.replicates[:, i], n=draws.support[i].n)
                yield Difference(
                    forecaster=name, reference=reference, group=group, metric=scoring.metric, comparison=found
                )


def _settings(scoring: Scoring, layer: Layer) -> dict[str, object]:
    return {
        "metric": scoring.metric,
        "draws": scoring.resampling.draws,
        "level": scoring.resampling.level,
        "seed": scoring.resampling.seed,
        "cluster": " × ".join(layer.blocks[0].margins),
        "missing": scoring.missing,
        "gamma": scoring.bettor.gamma,
    }
