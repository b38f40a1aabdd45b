"""`score`, `compare` and `read_table` for programs: they take runs, backtests, files, data frames and lists of rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from foretell.interface import suggesting
from foretell.metrics.bootstrap import DEFAULT_RESAMPLING, Resampling
from foretell.metrics.returns import RISK_NEUTRAL_BETTOR, Bettor
from foretell.python_calls import python_errors
from foretell.questions.backtest import Backtest
from foretell.questions.errors import InputError
from foretell.questions.field_checks import check_arguments
from foretell.questions.resolution import Resolution
from foretell.scoring import join
from foretell.scoring.join import Trials, Weights
from foretell.scoring.long_tables import forecast_rows, outcome_rows
from foretell.scoring.role_columns import ColumnNames
from foretell.scoring.score import PairComparison, ScoringOptions, compare_pair, score_table
from foretell.scoring.scoreboard import Scoreboard
from foretell.scoring.table import ForecastTable
from foretell.scoring.table_input import TableSource, names_a_file


@suggesting
@python_errors()
@check_arguments
def score(  # noqa: PLR0913 - one parameter per option
    forecasts: TableSource,
    outcomes: TableSource | None = None,
    *,
    by: str | Sequence[str] = (),
    metric: str = "brier_index",
    metrics: str | Sequence[str] = (),
    reference: str | None = None,
    missing: float | None = None,
    baselines: bool = True,
    trials: Trials = "mean",
    weights: Weights = "equal",
    columns: ColumnNames | None = None,
    cluster: str | Sequence[str] = (),
    bettor: Bettor = RISK_NEUTRAL_BETTOR,
    resampling: Resampling = DEFAULT_RESAMPLING,
    matters: float | None = None,
) -> Scoreboard:
    """Score forecasts against outcomes: a leaderboard that prints as a table, also in a notebook.

    Args:
        forecasts: The id of a stored run (or a list of ids), the result of a backtest, a file (CSV, Parquet, JSONL), a
            data frame, a list of dictionaries, a dictionary of columns, or what `read_table` returned.
        outcomes: Any table, or a list of resolutions. Not needed for a run, for a backtest of a named question set, and
            if the forecasts have a column `outcome`.
        by: Columns of the outcomes whose combinations are scored separately.
        metric: The metric that ranks the board and is compared with the reference.
        metrics: Metrics to compute besides the standard ones, such as "peer" or "accuracy".
        reference: The forecaster that the others are compared with (default: the leader).
        missing: Probability filled in for every target that a forecaster left out; None scores what was answered.
        baselines: Whether to add the baselines 0.5, base rate and market price.
        trials: How to treat several trials: average, average log-odds, or as separate forecasters.
        weights: Whether every target counts once, or every question; a column `weight` precedes.
        columns: Role → its column, if that has no usual name: {"forecaster": "model", "p": "prob"}; several for `p` if
            each column is a forecaster.
        cluster: Columns whose values are resampled as a whole (default: `cluster` if there is one, else `question`).
        bettor: Who bets, for the metrics of returns.
        resampling: How intervals are computed.
        matters: The smallest difference that matters, in the unit of `metric`.

    Returns:
        A `Scoreboard`: `scores` has one row for each forecaster and group, with `metrics` as intervals, and `verdicts`
            compare each forecaster with the reference.

    Raises:
        InputError: If a table is invalid; the error lists all its problems with their rows.

    >>> board = score([{"forecaster": "A", "question": "q", "target": "yes", "p": 0.8, "outcome": 1}])
    >>> round(board.scores[0].metrics["brier"].estimate, 3)
    0.04
    """
    scoring = ScoringOptions(
        by=_names(by),
        metric=metric,
        metrics=_names(metrics),
        reference=reference,
        cluster=_names(cluster),
        missing=missing,
        baselines=baselines,
        bettor=bettor,
        resampling=resampling,
        matters=matters,
    )
    return score_table(_table(forecasts, outcomes, trials, weights, columns), scoring)


@suggesting
@python_errors()
@check_arguments
def compare(  # noqa: PLR0913 - one parameter per option
    forecasts: TableSource,
    outcomes: TableSource | None,
    first: str,
    second: str,
    *,
    by: str | Sequence[str] = (),
    metric: str = "brier_index",
    missing: float | None = None,
    trials: Trials = "mean",
    weights: Weights = "equal",
    columns: ColumnNames | None = None,
    cluster: str | Sequence[str] = (),
    bettor: Bettor = RISK_NEUTRAL_BETTOR,
    resampling: Resampling = DEFAULT_RESAMPLING,
    matters: float | None = None,
) -> PairComparison:
    """Return whether the first forecaster is better, and by more than chance, on the targets both answered.

    Args:
        forecasts: As in `score`.
        outcomes: As in `score`; None if the forecasts have them.
        first: Name of a forecaster.
        second: Name of the forecaster it is compared with.
        by: Columns of the outcomes whose combinations are compared separately.
        metric: The metric that is compared.
        missing: Probability filled in for every target that a forecaster left out.
        trials: How to treat several trials: average, average log-odds, or as separate forecasters.
        weights: Whether every target counts once, or every question.
        columns: As in `score`.
        cluster: Columns whose values are resampled as a whole.
        bettor: Who bets, for the metrics of returns.
        resampling: How intervals are computed.
        matters: The smallest difference that matters, in the unit of `metric`.

    Returns:
        A `PairComparison`: `sentence` says it in words, `verdicts` in numbers, overall and by group.

    Raises:
        InputError: If a table is invalid, or there is no such forecaster.

    >>> rows = [{"forecaster": name, "question": f"q{n}", "target": "yes", "p": p}
    ...         for name, p in (("bold", 0.9), ("shy", 0.6)) for n in range(4)]
    >>> happened = [{"question": f"q{n}", "target": "yes", "outcome": 1} for n in range(4)]
    >>> verdict = compare(rows, happened, "bold", "shy", metric="brier").verdicts[0]
    >>> round(verdict.diff, 2), verdict.says
    (-0.15, 'too few to tell')
    """
    scoring = ScoringOptions(
        by=_names(by),
        metric=metric,
        cluster=_names(cluster),
        missing=missing,
        bettor=bettor,
        resampling=resampling,
        matters=matters,
    )
    table = _table(forecasts, outcomes, trials, weights, columns)
    pair = compare_pair(table, first, second, scoring)
    return replace(pair, notes=(*table.notes, *pair.notes))


@suggesting
@python_errors()
@check_arguments
def read_table(
    forecasts: TableSource,
    outcomes: TableSource | None = None,
    *,
    trials: Trials = "mean",
    weights: Weights = "equal",
    columns: ColumnNames | None = None,
) -> ForecastTable:
    """Read, check and join forecasts and outcomes once, for several calls of `score` and `compare`.

    Columns and values may be written as people usually do; the notes of the result say how they were read.

    Args:
        forecasts: As in `score`.
        outcomes: As in `score`.
        trials: How to treat several trials: average, average log-odds, or as separate forecasters.
        weights: Whether every target counts once, or every question; a column `weight` precedes.
        columns: Role → its column, if that has no usual name: {"forecaster": "model", "p": "prob"}; several for `p` if
            each column is a forecaster.

    Returns:
        The joined table.

    Raises:
        InputError: If a table is invalid; the error lists all its problems with their rows.

    >>> read_table([{"forecaster": "A", "question": "q", "p": 0.8, "outcome": 1}])
    <ForecastTable: 1 forecast by 1 forecaster, 1 target>
    """
    return _table(forecasts, outcomes, trials, weights, columns)


def _names(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _table(
    forecasts: TableSource,
    outcomes: TableSource | None,
    trials: Trials,
    weights: Weights,
    columns: ColumnNames | None,
) -> ForecastTable:
    """Return the joined table, reading it if necessary."""
    reading = join.ReadOptions(trials=trials, weights=weights, columns=columns or {})
    if isinstance(forecasts, ForecastTable):
        if outcomes is not None or reading != join.ReadOptions():
            problem = "outcomes, trials, weights and columns have no effect on a table that was read"
            raise InputError(problem, hint="give them to read_table")
        return forecasts
    own, known, notes = _sources(forecasts, outcomes)
    table = join.read_table(own, known, reading)
    return replace(table, notes=(*notes, *table.notes)) if notes else table


def _without_forecast(done: Backtest) -> list[str]:
    """Return a note on every forecaster that is not in the table, because all its answers failed."""
    failed: dict[str, list[str]] = {}
    for failure in done.failures:
        failed.setdefault(failure.forecaster, []).append(failure.error)
    for forecast in done.forecasts:
        failed.pop(forecast.forecaster, None)
    return [f"{name} is left out: it answered no question ({errors[0]})." for name, errors in failed.items()]


def _sources(
    forecasts: TableSource, outcomes: TableSource | None
) -> tuple[TableSource, TableSource | None, Sequence[str]]:
    """Turn runs, backtests and resolutions into long tables, with notes on what failed; keep other inputs."""
    if isinstance(forecasts, Backtest):
        if forecasts.failures and not forecasts.forecasts:
            raise InputError("every question failed, so there is no forecast", hint=forecasts.failures[0].error)
        if outcomes is None or _all_are(outcomes, Resolution):
            known = forecasts.resolutions if outcomes is None else cast("list[Resolution]", outcomes)
            outcomes = outcome_rows(forecasts.questions, known, forecasts.excluded)
        return forecast_rows(forecasts.forecasts, forecasts.questions), outcomes, _without_forecast(forecasts)
    runs = [forecasts] if isinstance(forecasts, str) else forecasts
    if not _all_are(runs, str) or any(map(names_a_file, cast("list[str]", runs))):
        return forecasts, outcomes, ()
    # Imported here: tables are scored without the store of runs.
    from foretell.runs.settings import load_settings
    from foretell.scoring.run_scores import run_rows

    rows = run_rows(load_settings(), cast("list[str]", runs), decided=outcomes is None)
    return rows.forecasts, outcomes or rows.outcomes, rows.notes


def _all_are(values: object, kind: type) -> bool:
    return isinstance(values, list | tuple) and bool(values) and all(isinstance(value, kind) for value in values)  # type: ignore[reportUnknownVariableType]
