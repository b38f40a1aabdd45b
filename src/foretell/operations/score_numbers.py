"""Score forecasts of numbers: quantiles or samples against the actual value."""

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from rich.console import Console

from foretell.data.files import open_duckdb
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
from foretell.operations.requests.scoring import ScoreRequest
from foretell.operations.result import Result, show_table
from foretell.questions.errors import InputError
from foretell.questions.forecast import Numeric
from foretell.questions.question import NumericRange
from foretell.report.numbers import plural
from foretell.report.terminal import TextColumn, show_text
from foretell.scoring.table_input import (
    ColumnRule,
    InputTable,
    TableSource,
    check_rules,
    open_table,
    refuse_repeats,
    table_columns,
    text_rules,
)
from foretell.submit.metaculus import continuous_cdf

NUMBER_NOTE = (
    "CRPS is in the unit of the quantity, lower is better. Coverage: how often the value\n"
    "fell into the widest central interval; Nominal: how often it should."
)
METACULUS_NOTE = "Baseline and Peer: Metaculus scores of the questions with a range; above 0 is better."


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class NumberScores(Result):
    """Forecasters of numbers, best first."""

    scores: tuple[NumberScore, ...]
    notes: tuple[str, ...] = ()
    """What was left out."""

    def to_dict(self) -> Any:
        """Plain data."""
        return {"schema": "foretell/score-numbers/1", "scores": [asdict(one) for one in self.scores]}

    def rows(self) -> list[dict[str, Any]]:
        """One row for each forecaster."""
        return [
            asdict(one)
            | {
                name + end: getattr(found, of)
                for name in ("crps", "baseline", "peer")
                if (found := getattr(one, name)) is not None
                for end, of in (("", "estimate"), ("_low", "low"), ("_high", "high"))
            }
            for one in self.scores
        ]

    def print(self, console: Console) -> None:
        """A table."""
        columns: dict[TextColumn, Callable[[tuple[int, NumberScore]], object]] = {
            TextColumn(head="#", right=True): lambda row: row[0],
            TextColumn(head="Forecaster", shrink=16): lambda row: row[1].forecaster,
            TextColumn(head="n", right=True, drop=2): lambda row: row[1].n,
            TextColumn(head="CRPS", right=True): lambda row: f"{row[1].crps.estimate:.4g}",
            TextColumn(head="interval", right=True, drop=1): lambda row: (
                f"[{row[1].crps.low:.4g}, {row[1].crps.high:.4g}]"
            ),
            TextColumn(head="Coverage", right=True): lambda row: _share(row[1].coverage),
            TextColumn(head="Nominal", right=True): lambda row: _share(row[1].nominal),
        }
        ranged = any(one.baseline is not None for one in self.scores)
        if ranged:
            columns[TextColumn(head="Baseline", right=True)] = lambda row: _points(row[1].baseline)
            columns[TextColumn(head="Peer", right=True)] = lambda row: _points(row[1].peer)
        show_table(console, enumerate(self.scores, 1), columns)
        show_text(console, f"{NUMBER_NOTE}\n" + f"{METACULUS_NOTE}\n" * ranged)


def interval_text(found: Interval) -> str:
    """A score that may be positive or negative, with its interval."""
    interval = "" if math.isnan(found.low) else f" [{found.low:+.1f}, {found.high:+.1f}]"
    return f"{found.estimate:+.1f}{interval}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _points(found: Interval | None) -> str:
    return "–" if found is None else interval_text(found)


def is_number_table(source: TableSource) -> bool:
    """Whether a table forecasts numbers: values by level or sample instead of p. Reads only the head.

    >>> is_number_table([{"forecaster": "A", "question": "q", "level": 0.5, "value": 3}])
    True
    >>> is_number_table([{"forecaster": "A", "question": "q", "target": "yes", "p": 0.3}])
    False
    """
    columns = table_columns(source)
    return "p" not in columns and "value" in columns and bool({"level", "sample"} & columns)


FOR_PROBABILITIES = (
    *("combine", "weights", "by", "metric", "reference", "errors"),
    *("missing", "gamma", "fee", "metrics"),
)
"""Options of `score` that only forecasts of probabilities have a use for."""


def score_numbers(request: ScoreRequest, given: TableSource, known: TableSource | None) -> NumberScores | None:
    """CRPS and coverage of quantiles or samples; None if the forecasts are probabilities.

    Forecasts have the columns forecaster, question, value, and level (of a quantile, within 0 and 1) or sample (its
    number); outcomes have question and value.
    """
    if not is_number_table(given):
        return None
    request.refuse_set(FOR_PROBABILITIES, "has no effect on forecasts of a number")
    if request.bootstrap.cluster:
        hint = "leave cluster out: questions are resampled"
        raise InputError("cluster has no effect on forecasts of a number", column="--bootstrap", hint=hint)
    if known is None:
        raise InputError("forecasts of numbers need a table of outcomes", column="--outcomes", hint="-o FILE")
    with (
        open_duckdb() as con,
        open_table(given, "forecasts", con) as forecasts,
        open_table(known, "outcomes", con) as outcomes,
    ):
        values, stated, ranges = _values(outcomes), _stated(forecasts), _ranges(outcomes)
    unknown = len({question for _, question in stated} - set(values))
    notes = (f"Left out, because the outcomes do not mention them: {plural(unknown, 'question')}.",) if unknown else ()
    resampling = request.bootstrap.resampling
    by_forecaster: dict[str, list[tuple[str, list[tuple[float, float]]]]] = defaultdict(list)
    for (forecaster, question), pairs in stated.items():
        if values.get(question) is not None:
            by_forecaster[forecaster].append((question, sorted(pairs)))
    if not by_forecaster:
        raise InputError("no forecast is about a question with a known value", hint="are the question ids the same?")
    levels = "level" in forecasts.types
    scores = [
        _score(name, answered, values, levels=levels, resampling=resampling) for name, answered in by_forecaster.items()
    ]
    if ranges and levels:
        scores = _with_metaculus(scores, by_forecaster, values, ranges, resampling)
    return NumberScores(scores=tuple(sorted(scores, key=lambda one: one.crps.estimate)), notes=notes)


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
        found: Floats = crps_quantiles([numbers], at, [value]) if levels else crps_samples([numbers], [value])
        crps.append(float(found[0]))
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
    for row, one in enumerate(scores):
        for question, pairs in by_forecaster[one.forecaster]:
            value, scale = values[question], ranges.get(question)
            if scale is None or value is None or len(pairs) < 2:
                continue
            try:
                cdf = continuous_cdf(Numeric.from_quantiles(dict(pairs)), scale)
            except ValueError as error:
                raise InputError(f"quantiles of {one.forecaster} for {question}: {error}", column="value") from None
            width = scale.maximum - scale.minimum
            bucket = cdf_bucket_of([(value - scale.minimum) / width], scale.outcomes)
            at = row, place[question]
            happened[at] = cdf_buckets([cdf])[0, bucket[0]]
            if happened[at] == 0:
                ends = f"{scale.minimum:g} to {scale.maximum:g}"
                hint = "open the end beyond which it lies: open_lower or open_upper"
                raise InputError(f"the value of {question} lies outside its closed range {ends}", hint=hint)
            open_bounds = int(scale.open_lower) + int(scale.open_upper)
            baseline[at] = metaculus_baseline_continuous([cdf], bucket, open_bounds=open_bounds)[0]
    if np.isnan(happened).all():
        return scores
    peer, found = metaculus_peer_continuous(happened), list[NumberScore]()
    for one, own, points in zip(scores, baseline, peer, strict=True):
        kept = np.flatnonzero(~np.isnan(own))
        means = [bootstrap_score(x[kept], kept, resampling=resampling) if len(kept) else None for x in (own, points)]
        found.append(replace(one, baseline=means[0], peer=means[1]))
    return found


def _ranges(outcomes: InputTable) -> dict[str, NumericRange]:
    """The ranges of questions that have one: range_min, range_max, and whether an end is open."""
    if not {"range_min", "range_max"} <= set(outcomes.types):
        return {}
    low, high = outcomes.number("range_min"), outcomes.number("range_max")
    bad = f"{low} is not null and {high} is not null and not {low} < {high}"
    hint = "write the lower end into range_min"
    check_rules(outcomes, [ColumnRule(column="range_max", bad=bad, problem="{value} ends no range", hint=hint)])
    ends = [
        f"coalesce(lower({outcomes.text(name)}) in ('true', 'yes', '1'), false)" if name in outcomes.types else "false"
        for name in ("open_lower", "open_upper")
    ]
    columns = ", ".join([outcomes.text("question"), low, high, *ends])
    rows = outcomes.con.execute(f"select {columns} from {outcomes.table}").fetchall()
    return {
        question: NumericRange(minimum=least, maximum=most, open_lower=opens[0], open_upper=opens[1])
        for question, least, most, *opens in rows
        if least is not None and most is not None
    }


def _values(outcomes: InputTable) -> dict[str, float | None]:
    outcomes.require("question", "value")
    check_rules(outcomes, [*text_rules(outcomes, "question"), _finite(outcomes, "value", optional=True)])
    refuse_repeats(outcomes, {"question": outcomes.text("question")})
    query = f"select {outcomes.text('question')}, {outcomes.number('value')} from {outcomes.table}"
    return dict(outcomes.con.execute(query).fetchall())


def _stated(forecasts: InputTable) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """(forecaster, question) → levels or sample numbers with their values."""
    which = "level" if "level" in forecasts.types else "sample"
    forecasts.require("forecaster", "question", which, "value")
    number = forecasts.number("level") if which == "level" else forecasts.number("sample")
    rules = [*text_rules(forecasts, "forecaster", "question"), _finite(forecasts, "value", optional=False)]
    if which == "level":
        bad = f"{number} is null or not ({number} > 0 and {number} < 1)"
        rules.append(
            ColumnRule(column="level", bad=bad, problem="{value} is not a level", hint="0.9 for the 90 % quantile")
        )
    check_rules(forecasts, rules)
    key = {name: forecasts.text(name) for name in ("forecaster", "question", which)}
    refuse_repeats(forecasts, key)
    found: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    columns = f"{key['forecaster']}, {key['question']}, {number}, {forecasts.number('value')}"
    for forecaster, question, at, value in forecasts.con.execute(f"select {columns} from {forecasts.table}").fetchall():
        found[forecaster, question].append((at, value))
    return found


def _finite(table: InputTable, column: str, *, optional: bool) -> ColumnRule:
    number = table.number(column)
    present = f"{table.text(column)} is not null and " if optional else ""
    bad = f"{present}({number} is null or not isfinite({number}))"
    return ColumnRule(column=column, bad=bad, problem="{value} is not a number", hint="write a decimal such as 12.5")
