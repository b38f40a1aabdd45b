"""Backtests of forecasters that ask no model."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foretell.data.datasets.question_set import quarantine_note
from foretell.data.series.local import CsvSeries
from foretell.operations.requests import BacktestRequest
from foretell.operations.result import Result
from foretell.runs.backtest import Backtest, BacktestProgress
from foretell.runs.backtest import backtest as run_backtest
from foretell.runs.question_sets import LATE_TEXT_HINT, open_benchmark
from foretell.runs.services import SeriesOnDemand
from foretell.runs.settings import load_settings
from foretell.scoring.long_tables import forecast_rows, write_backtest


@dataclass(frozen=True, kw_only=True)
class BacktestResult(Result):
    """The answers of a backtest, and the tables they were written to."""

    backtest: Backtest
    tables: tuple[Path, ...] = ()

    def to_dict(self) -> Any:
        """How many answered and failed, and where the tables are."""
        result = self.backtest
        return {
            "questions": len(result.questions),
            "quarantined": [one.id for one in result.quarantined],
            "forecasts": dict(Counter(one.forecaster for one in result.forecasts)),
            "failures": [
                {"forecaster": one.forecaster, "question": one.question_id, "error": one.error}
                for one in result.failures
            ],
            "tables": [str(path) for path in self.tables],
        }

    def rows(self) -> list[dict[str, Any]]:
        """The forecasts as `foretell score` reads them."""
        return forecast_rows(self.backtest.forecasts, self.backtest.questions)

    def __str__(self) -> str:
        lines = [f"Wrote {path}" for path in self.tables]
        if failures := self.backtest.failures:
            first = failures[0]
            total = len(self.backtest.answers)
            lines.append(f"{len(failures)} of {total} answers failed, e.g. {first.forecaster}: {first.error}")
        lines = lines or [f"{len(self.backtest.forecasts)} forecasts"]
        if late := self.backtest.quarantined:
            lines.append(f"{quarantine_note(len(late))} ({LATE_TEXT_HINT})")
        return "\n".join(lines)


def backtest(request: BacktestRequest, progress: BacktestProgress | None = None) -> BacktestResult:
    """Run forecasters over a question set as of its dates, and write the tables that `foretell score` reads."""
    benchmark = open_benchmark(request.dataset, wanted=request.wanted(), folder=request.data)
    series = None if request.series is None else CsvSeries(path=request.series)
    if series is None and benchmark.series is None and request.fetch_series:
        series = SeriesOnDemand(load_settings())
    result = run_backtest(request.forecasters, benchmark, series=series, progress=progress)
    written = {} if request.tables is None else write_backtest(result, result.resolutions, request.tables)
    return BacktestResult(backtest=result, tables=tuple(written.values()))
