"""Score forecasts of numbers: quantiles or samples against the actual value."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from rich.console import Console

from foretell.data.files import open_duckdb
from foretell.frozen import frozen
from foretell.metrics.arrays import Floats
from foretell.metrics.bootstrap import Interval, Resampling, bootstrap_score
from foretell.metrics.scores import (
    cdf_bucket_of,
    cdf_buckets,
    crps_quantiles,
    crps_samples,
    interval_covers,
    interval_score,
    metaculus_baseline_continuous,
    metaculus_peer_continuous,
)
from foretell.number_text import percent, plural
from foretell.operations.requests.scoring import ScoreRequest
from foretell.questions.errors import InputError, said
from foretell.questions.forecast import Numeric
from foretell.questions.question import NumericRange
from foretell.report.numbers import estimate
from foretell.report.result import Result, show_table
from foretell.report.terminal import TextColumn, show_text
from foretell.scoring.columns import what_was_understood, with_forecaster
from foretell.scoring.metaculus_cdf import continuous_cdf
from foretell.scoring.number_tables import is_number_table, read_ranges, read_stated, read_values
from foretell.scoring.table_input import (
    TableSource,
    open_table,
)

NUMBER_NOTE = (
    "CRPS is in the unit of the quantity, lower is better. Coverage: how often the value\n"
    "fell into the widest central interval; Nominal: how often it should."
)
METACULUS_NOTE = "Baseline and Peer: Metaculus scores of the questions with a range; above 0 is better."


@frozen
class NumberScore:
    """One forecaster on the questions it answered."""

    forecaster: str
    n: int
    crps: Interval
    coverage: float | None
    """Share of values within the widest central interval; None for samples."""
    nominal: float | None
    """The nominal share."""
    interval_score: float | None
    baseline: Interval | None = None
    """Metaculus baseline score on the questions with a range; None if there are none."""
    peer: Interval | None = None
    """Metaculus peer score on the same questions."""


@frozen
class NumberScores(Result):
    """Forecasters of numbers, best first."""

    scores: tuple[NumberScore, ...]
    notes: tuple[str, ...] = ()
    """What was left out."""

    def to_dict(self) -> Any:
        """Plain data."""
        scores = [asdict(score) for score in self.scores]
        return {"schema": "foretell/score-numbers/1", "scores": scores, "notes": list(self.notes)}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each forecaster."""
        return [
            asdict(score)
            | {
                name + end: getattr(interval, of)
                for name in ("crps", "baseline", "peer")
                if (interval := getattr(score, name)) is not None
                for end, of in (("", "estimate"), ("_low", "low"), ("_high", "high"))
            }
            for score in self.scores
        ]

    def print(self, console: Console) -> None:
        """Print a table."""
        columns: dict[TextColumn, Callable[[tuple[int, NumberScore]], object]] = {
            TextColumn(head="#", right=True): lambda row: row[0],
            TextColumn(head="Forecaster", shrink=16): lambda row: row[1].forecaster,
            TextColumn(head="n", right=True, drop=2): lambda row: row[1].n,
            TextColumn(head="CRPS", right=True): lambda row: f"{row[1].crps.estimate:.4g}",
            TextColumn(head="interval", right=True, drop=1): lambda row: (
                f"[{row[1].crps.low:.4g}, {row[1].crps.high:.4g}]"
            ),
            TextColumn(head="Coverage", right=True): lambda row: percent(row[1].coverage),
            TextColumn(head="Nominal", right=True): lambda row: percent(row[1].nominal),
        }
        ranged = any(score.baseline is not None for score in self.scores)
        if ranged:
            columns[TextColumn(head="Baseline", right=True)] = lambda row: estimate(row[1].baseline, 1)
            columns[TextColumn(head="Peer", right=True)] = lambda row: estimate(row[1].peer, 1)
        show_table(console, enumerate(self.scores, 1), columns)
        show_text(console, f"{NUMBER_NOTE}\n" + f"{METACULUS_NOTE}\n" * ranged)


FOR_PROBABILITIES = (
    *("combine", "weights", "by", "metric", "reference", "errors"),
    *("missing", "gamma", "fee", "metrics"),
)
"""Options of `score` that apply only to forecasts of probabilities."""


def score_numbers(
    request: ScoreRequest, forecast_source: TableSource, outcome_source: TableSource | None
) -> NumberScores | None:
    """Return CRPS and coverage of quantiles or samples; None if the forecasts are probabilities.

    Forecasts have the columns forecaster, question, value, and level (of a quantile, within 0 and 1) or sample (its
    number); outcomes have question and value.
    """
    if not is_number_table(forecast_source):
        return None
    request.refuse_set(FOR_PROBABILITIES, "has no effect on forecasts of a number")
    if request.bootstrap.cluster:
        hint = "leave cluster out: questions are resampled"
        raise InputError("cluster has no effect on forecasts of a number", column="--bootstrap", hint=hint)
    if outcome_source is None:
        raise InputError("forecasts of numbers need a table of outcomes", column="--outcomes", hint="-o FILE")
    with (
        open_duckdb() as con,
        open_table(forecast_source, "forecasts", con) as forecasts,
        open_table(outcome_source, "outcomes", con) as outcomes,
    ):
        forecasts = with_forecaster(forecasts)
        values, stated, ranges = read_values(outcomes), read_stated(forecasts), read_ranges(outcomes)
        understood = what_was_understood(forecasts)
    unknown = len({question for _, question in stated} - set(values))
    left_out = (f"Left out because they are not in the outcomes: {plural(unknown, 'question')}.",) if unknown else ()
    resampling = request.bootstrap.resampling
    by_forecaster: dict[str, list[tuple[str, list[tuple[float, float]]]]] = defaultdict(list)
    for (forecaster, question), pairs in stated.items():
        if values.get(question) is not None:
            by_forecaster[forecaster].append((question, sorted(pairs)))
    if not by_forecaster:
        raise InputError("no forecast is about a question with a known value", hint="are the question ids the same?")
    levels = bool({"level", "quantile"} & set(forecasts.types))
    scores = [
        _score(name, answered, values, levels=levels, resampling=resampling) for name, answered in by_forecaster.items()
    ]
    if ranges and levels:
        scores = _with_metaculus(scores, by_forecaster, values, ranges, resampling)
    return NumberScores(
        scores=tuple(sorted(scores, key=lambda score: score.crps.estimate)), notes=(*understood, *left_out)
    )


def _score(
    name: str,
    answered: list[tuple[str, list[tuple[float, float]]]],
    values: dict[str, float | None],
    *,
    levels: bool,
    resampling: Resampling,
) -> NumberScore:
    crps: list[float] = []
    ends: list[tuple[float, float, float, float]] = []
    for question, pairs in answered:
        value = values[question]
        assert value is not None
        at, numbers = np.array([level for level, _ in pairs]), np.array([number for _, number in pairs])
        score: Floats = crps_quantiles([numbers], at, [value]) if levels else crps_samples([numbers], [value])
        crps.append(float(score[0]))
        if levels and len(at) > 1:
            ends.append((float(numbers[0]), float(numbers[-1]), float(at[-1] - at[0]), value))
    coverage = nominal = width = None
    if ends:
        low, high, share, happened = (np.array(column) for column in zip(*ends, strict=True))
        coverage, nominal = float(interval_covers(low, high, happened).mean()), float(share.mean())
        width = float(interval_score(low, high, happened, level=min(nominal, 0.999)).mean())
    return NumberScore(
        forecaster=name,
        n=len(crps),
        crps=bootstrap_score(crps, [question for question, _ in answered], resampling=resampling),
        coverage=coverage,
        nominal=nominal,
        interval_score=width,
    )


def _with_metaculus(
    scores: list[NumberScore],
    by_forecaster: dict[str, list[tuple[str, list[tuple[float, float]]]]],
    values: dict[str, float | None],
    ranges: dict[str, NumericRange],
    resampling: Resampling,
) -> list[NumberScore]:
    """Add baseline and peer scores, with each forecast converted as for Metaculus."""
    place = {question: i for i, question in enumerate(ranges)}
    shape = len(scores), len(place)
    baseline, happened = np.full(shape, np.nan), np.full(shape, np.nan)
    for row, score in enumerate(scores):
        for question, pairs in by_forecaster[score.forecaster]:
            value, scale = values[question], ranges.get(question)
            if scale is None or value is None or len(pairs) < 2:
                continue
            try:
                cdf = continuous_cdf(Numeric.from_quantiles(dict(pairs)), scale)
            except ValueError as error:
                raise InputError(
                    f"quantiles of {score.forecaster} for {question}: {said(error)}", column="value"
                ) from None
            width = scale.maximum - scale.minimum
            bucket = cdf_bucket_of([(value - scale.minimum) / width], scale.outcomes)
            at = row, place[question]
            happened[at] = cdf_buckets([cdf])[0, bucket[0]]
            if happened[at] == 0:
                ends = f"{scale.minimum:g} to {scale.maximum:g}"
                hint = "set open_lower or open_upper for that end"
                raise InputError(f"the value of {question} is outside its closed range {ends}", hint=hint)
            open_bounds = int(scale.open_lower) + int(scale.open_upper)
            baseline[at] = metaculus_baseline_continuous([cdf], bucket, open_bounds=open_bounds)[0]
    if np.isnan(happened).all():
        return scores
    peer, metaculus = metaculus_peer_continuous(happened), list[NumberScore]()
    for score, own, points in zip(scores, baseline, peer, strict=True):
        known = np.flatnonzero(~np.isnan(own))
        means = [bootstrap_score(x[known], known, resampling=resampling) if len(known) else None for x in (own, points)]
        metaculus.append(replace(score, baseline=means[0], peer=means[1]))
    return metaculus
