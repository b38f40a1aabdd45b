"""The package forecasting-tools: a foretell forecaster as one of its bots, and its reports as tables to score."""

import json
from asyncio import to_thread
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from foretell.data.datasets.rows import text_lines
from foretell.inspect_tasks.logs import LoggedForecasts
from foretell.questions.errors import InputError
from foretell.questions.question import Question, Target
from foretell.runs.backtest import AnyForecaster, backtest
from foretell.scoring.long_tables import Row

PACKAGE = "forecasting_tools"


def forecast_bot(forecaster: AnyForecaster, **options: Any) -> Any:
    """Return a `ForecastBot` of forecasting-tools that answers with a foretell forecaster.

    It answers yes-or-no and multiple-choice questions. For numbers, use `foretell.enter_tournament`.

    Args:
        forecaster: A function of a question, an object with a `name` and an `async forecast(question, context)`, or the
            name of a forecaster that needs no model.
        options: Parameters of `ForecastBot`, such as `publish_reports_to_metaculus`.
    """
    if find_spec(PACKAGE) is None:
        raise InputError("forecasting-tools is not installed", hint="pip install forecasting-tools")
    tools: Any = import_module(PACKAGE)

    class ForetellBot(tools.ForecastBot):  # pyright: ignore[reportUntypedBaseClass] - an optional package
        """A bot whose forecasts are those of a foretell forecaster."""

        @classmethod
        def _llm_config_defaults(cls) -> dict[str, None]:
            return {}

        async def run_research(self, question: Any) -> str:
            """Return nothing: the forecaster does its own research."""
            return ""

        async def _run_forecast_on_binary(self, question: Any, research: str) -> Any:
            p, reason = await _answer(forecaster, question, {"yes": "yes"})
            return tools.ReasonedPrediction(prediction_value=p["yes"], reasoning=reason)

        async def _run_forecast_on_multiple_choice(self, question: Any, research: str) -> Any:
            names = {f"option {n}": option for n, option in enumerate(question.options)}
            p, reason = await _answer(forecaster, question, names)
            total = sum(p.values())
            listed = [tools.PredictedOption(option_name=name, probability=p[id] / total) for id, name in names.items()]
            value = tools.PredictedOptionList(predicted_options=listed)
            return tools.ReasonedPrediction(prediction_value=value, reasoning=reason)

        async def _run_forecast_on_numeric(self, question: Any, research: str) -> Any:
            raise InputError("this bot answers no questions about numbers", hint="use foretell.enter_tournament")

    return ForetellBot(enable_summarize_research=False, **options)


async def _answer(forecaster: AnyForecaster, asked: Any, labels: Mapping[str, str]) -> tuple[Mapping[str, float], str]:
    """Return the probability of each target as of now, and the reason."""
    question = Question(
        id=str(asked.id_of_question or asked.id_of_post or asked.question_text),
        source="metaculus",
        text=asked.question_text,
        criteria="\n\n".join(filter(None, (asked.resolution_criteria, asked.fine_print))),
        background=asked.background_info or "",
        due=datetime.now(UTC),
        closes_at=asked.close_time,
        targets=tuple(
            Target(id=id, label=label, resolves_at=asked.scheduled_resolution_time) for id, label in labels.items()
        ),
        exclusivity="exactly one" if len(labels) > 1 else "independent",
        url=asked.page_url or "",
    )
    result = await to_thread(backtest, forecaster, [question])
    if result.failures:
        raise InputError(f"no forecast: {result.failures[0].error}", path=question.id)
    forecast = result.forecasts[0]
    return forecast.p, forecast.rationale or f"Forecast of {forecast.forecaster}."


# Reports and benchmarks as tables.


class _AskedQuestion(BaseModel):
    """What is read of the question of a report."""

    question_text: str
    id_of_question: int | str | None = None
    id_of_post: int | str | None = None
    resolution_string: str | None = None
    community_prediction_at_access_time: float | None = None

    @property
    def id(self) -> str:
        return str(self.id_of_question or self.id_of_post or self.question_text)


class _ReportedOption(BaseModel):
    option_name: str
    probability: float


class _ReportedOptions(BaseModel):
    predicted_options: list[_ReportedOption]


class _ForecastReport(BaseModel):
    question: _AskedQuestion
    prediction: float | _ReportedOptions | Any = Field(union_mode="left_to_right")


class _Benchmark(BaseModel):
    forecast_reports: list[_ForecastReport]
    explicit_name: str | None = None
    forecast_bot_class_name: str | None = None


def read_reports(path: str | Path, *, name: str | None = None) -> LoggedForecasts:
    """Read a file of reports or benchmarks (.json or .jsonl) as tables for `foretell score`.

    The forecaster is the benchmark, `name`, or the file's name. Resolved yes-or-no and multiple-choice questions are
    read; the community prediction of a yes-or-no question is its market price. All others are among the failures.
    Raises InputError if the file holds something else, or no report that can be scored.
    """
    path = Path(path)
    forecasts: list[Row] = []
    failures: list[Row] = []
    outcomes: dict[tuple[str, str], Row] = {}
    for who, report in _reports(path, name or path.stem):
        asked = report.question
        try:
            p, happened = _read(report.prediction, asked.resolution_string)
        except ValueError as problem:
            failures.append({"forecaster": who, "question": asked.id, "error": str(problem)})
            continue
        price = asked.community_prediction_at_access_time
        forecasts += [{"forecaster": who, "question": asked.id, "target": id, "p": value} for id, value in p.items()]
        shared = {"question": asked.id, "cluster": str(asked.id_of_post or asked.id), "price": price}
        outcomes |= {(asked.id, id): {**shared, "target": id, "outcome": int(id == happened)} for id in p}
    if not forecasts:
        reason = failures[0]["error"] if failures else "the file is empty"
        raise InputError(f"no report can be scored: {reason}", path=path)
    return LoggedForecasts(forecasts=tuple(forecasts), outcomes=tuple(outcomes.values()), failures=tuple(failures))


def _reports(path: Path, name: str) -> Iterator[tuple[str, _ForecastReport]]:
    """Yield every report with its forecaster; the reports of a benchmark have the benchmark's name."""
    try:
        lines = list(text_lines(path))
        values = [json.loads(line) for line in lines] if path.suffix == ".jsonl" else json.loads("".join(lines))
        for entry in TypeAdapter(list[_Benchmark | _ForecastReport]).validate_python(values):
            if isinstance(entry, _Benchmark):
                who = entry.explicit_name or entry.forecast_bot_class_name or name
                yield from ((who, report) for report in entry.forecast_reports)
            else:
                yield name, entry
    except ValidationError as error:
        first = error.errors()[-1]  # Of the two forms of an entry, a report is the one tried last.
        row, *field = (part for part in first["loc"] if not str(part).startswith("_"))
        problem = f"{'.'.join(map(str, field)) or 'entry'}: {first['msg']}"
        raise InputError(f"entry {int(row) + 1} is no report of forecasting-tools: {problem}", path=path) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"cannot be read as reports of forecasting-tools: {error}", path=path) from None


def _read(prediction: Any, resolution: str | None) -> tuple[dict[str, float], str]:
    """Return the probability of each target, and the one that came true; raise `ValueError` if there is none."""
    if resolution is None:
        raise ValueError("the question is not resolved")
    if isinstance(prediction, float):
        p, known = {"yes": prediction}, {"yes", "no"}
    elif isinstance(prediction, _ReportedOptions):
        p = {option.option_name: option.probability for option in prediction.predicted_options}
        known = set(p)
    else:
        raise ValueError("only yes-or-no and multiple-choice questions are read")
    if resolution not in known:
        raise ValueError(f"the question was resolved as {resolution}")
    return p, resolution
