"""Test forecasters without models on past questions, each as of its own date."""

from collections import Counter
from pathlib import Path
from typing import Any

from foretell.data.datasets.question_set import excluded_note
from foretell.data.series.local import CsvSeries
from foretell.frozen import frozen
from foretell.number_text import plural
from foretell.operations.requests.data import BacktestRequest
from foretell.questions.backtest import Backtest
from foretell.report.result import Result
from foretell.runs.backtest import BacktestProgress
from foretell.runs.backtest import backtest as run_backtest
from foretell.runs.question_sets import LEAKY_QUESTIONS_HINT, open_benchmark
from foretell.runs.services import SeriesOnDemand
from foretell.runs.settings import load_settings
from foretell.scoring.long_tables import forecast_rows, write_backtest


@frozen
class BacktestResult(Result):
    """The answers of a backtest."""

    backtest: Backtest

    def to_dict(self) -> Any:
        """Counts of answers and failures."""
        result = self.backtest
        return {
            "questions": len(result.questions),
            "excluded": [question.id for question in result.excluded],
            "forecasts": dict(Counter(forecast.forecaster for forecast in result.forecasts)),
            "failures": [
                {"forecaster": failure.forecaster, "question": failure.question_id, "error": failure.error}
                for failure in result.failures
            ],
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return the forecasts as `foretell score` reads them."""
        return forecast_rows(self.backtest.forecasts, self.backtest.questions)

    def write_folder(self, path: Path) -> list[Path]:
        """Write forecasts.csv, outcomes.csv and, if any, failures.csv, and return their paths."""
        return list(write_backtest(self.backtest, self.backtest.resolutions, path).values())

    def __str__(self) -> str:
        forecasts, questions = len(self.backtest.forecasts), len(self.backtest.questions)
        lines = [f"{plural(forecasts, 'forecast')} on {plural(questions, 'question')}"]
        if failures := self.backtest.failures:
            first = failures[0]
            total = len(self.backtest.answers)
            lines.append(f"{len(failures)} of {total} answers failed, e.g. {first.forecaster}: {first.error}")
        if excluded := self.backtest.excluded:
            lines.append(f"{excluded_note(len(excluded))} ({LEAKY_QUESTIONS_HINT})")
        return "\n".join(lines)


def backtest(request: BacktestRequest, progress: BacktestProgress | None = None) -> BacktestResult:
    """Test forecasters on a question set as of its dates."""
    benchmark = open_benchmark(request.dataset, wanted=request.wanted())
    series = None if request.series is None else CsvSeries(path=request.series)
    if series is None and benchmark.series is None and request.fetch_series:
        series = SeriesOnDemand(load_settings())
    return BacktestResult(backtest=run_backtest(request.forecasters, benchmark, series=series, progress=progress))
