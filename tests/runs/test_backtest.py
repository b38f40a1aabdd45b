import asyncio
from dataclasses import replace

import numpy as np
import pytest

import foretell
from foretell import backtest
from foretell.data.series.series import Series, SeriesInMemory
from foretell.forecasters.base_rates.baselines import BaseRateForecaster, ConstantForecaster, MarketPriceForecaster
from foretell.forecasters.forecaster import Context
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question, SeriesRef, Snapshot, Target
from foretell.questions.resolution import Resolution
from foretell.runs.past import past_of
from foretell.scoring.long_tables import failure_rows, forecast_rows, outcome_rows, write_backtest

PRICED = Question(
    id="market/a",
    source="market",
    text="?",
    due=instant("2026-01-10"),
    targets=(Target(id="yes", snapshot=Snapshot(at=instant("2026-01-01"), last_price=0.3)),),
)
DATED = Question(
    id="data/b",
    source="data",
    kind="dataset",
    text="?",
    due=instant("2026-01-10"),
    targets=tuple(Target(id=day, resolves_at=instant(day)) for day in ("2026-01-17", "2026-02-09")),
    series=SeriesRef(provider="x", id="b"),
)
RESOLUTIONS = [
    Resolution(question_id="market/a", target_id="yes", due=instant("2026-01-10"), outcome=1),
    Resolution(
        question_id="data/b",
        target_id="2026-01-17",
        due=instant("2026-01-10"),
        outcome=0,
        resolved_at=instant("2026-01-17"),
    ),
]


class Peeker:
    """Reports the last day that it could see."""

    name = "peeker"

    async def forecast(self, question: Question, context: Context) -> Forecast:
        series = await context.series_of(question)
        self.last = series.days[-1]
        return Forecast(
            question_id=question.id,
            forecaster=self.name,
            as_of=context.as_of,
            p={target.id: 0.5 for target in question.targets},
        )


class Leaky:
    """A source that ignores the cutoff."""

    async def fetch(self, ref: SeriesRef, as_of: object) -> Series:
        days = np.arange("2025-12-01", "2026-03-01", dtype="M8[D]")
        return Series(id="b", days=days, values=np.arange(len(days), dtype=float))


def test_leaky_source_is_clamped_to_the_due_date():
    peeker = Peeker()
    result = backtest([peeker], [DATED], series=Leaky())
    assert len(result.forecasts) == 1
    assert peeker.last == np.datetime64("2026-01-10")


def test_failures_are_recorded_with_their_reason_and_do_not_stop_the_backtest():
    result = backtest([MarketPriceForecaster(), ConstantForecaster()], [PRICED, DATED])
    assert [(f.forecaster, f.question_id) for f in result.forecasts] == [
        ("market-price", "market/a"),
        ("always 0.5", "market/a"),
        ("always 0.5", "data/b"),
    ]
    (failure,) = result.failures
    assert "no price" in failure.error
    assert failure_rows(result.failures)[0]["error"] == failure.error


def test_a_forecast_that_leaves_a_target_out_is_a_failure():
    class Half:
        name = "half"

        async def forecast(self, question: Question, context: Context) -> Forecast:
            return Forecast(question_id=question.id, forecaster="half", as_of=context.as_of, p={"2026-01-17": 0.5})

    assert "2026-02-09" in backtest([Half()], [DATED]).failures[0].error


def test_tables_of_a_backtest_can_be_scored(tmp_path):
    result = backtest([MarketPriceForecaster(), ConstantForecaster(p=0.2)], [PRICED, DATED])
    paths = write_backtest(result, RESOLUTIONS, tmp_path / "run")
    board = foretell.score(paths["forecasts"], paths["outcomes"])
    always = next(s for s in board.scores if s.forecaster == "always 0.2" and dict(s.group) == {"kind": "overall"})
    assert always.n == 2
    assert always.metrics["brier"].estimate == pytest.approx((0.64 + 0.04) / 2)
    assert any("has not resolved" in note for note in board.notes)


def test_outcome_rows_include_unresolved_targets():
    rows = {(row["question"], row["target"]): row for row in outcome_rows([PRICED, DATED], RESOLUTIONS)}
    assert rows["market/a", "yes"]["price"] == 0.3
    assert rows["data/b", "2026-01-17"]["horizon"] == 7
    assert rows["data/b", "2026-02-09"]["outcome"] is None
    assert forecast_rows(backtest([MarketPriceForecaster()], [PRICED]).forecasts, [PRICED])[0]["due"] == "2026-01-10"


def test_base_rates_see_only_what_was_known_before():
    questions, resolutions = [], []
    for month in range(1, 7):
        due, known = f"2025-{month:02d}-01", f"2025-{month:02d}-20"
        target = Target(id=known, resolves_at=instant(known))
        questions.append(
            Question(id="s/x", source="s", kind="dataset", subtype="t", text="?", due=instant(due), targets=(target,))
        )
        resolutions.append(
            Resolution(
                question_id="s/x", target_id=known, due=instant(due), outcome=int(month > 1), resolved_at=instant(known)
            )
        )
    past = past_of(questions, resolutions)
    assert len(past.resolved) == 6
    result = backtest([BaseRateForecaster()], questions, past=past)
    assert [f.question_id for f in result.failures] == ["s/x"]
    p = [next(iter(f.p.values())) for f in result.forecasts]
    assert p[0] < 0.5
    assert p == sorted(p)
    future = [Resolution(**{**vars(r), "outcome": 0}) for r in resolutions[3:]]
    changed = past_of(questions, resolutions[:3] + future)
    again = backtest([BaseRateForecaster()], questions[:4], past=changed)
    assert [next(iter(f.p.values())) for f in again.forecasts] == p[:3]


def test_series_in_memory_serves_any_provider():
    days = np.arange("2025-12-01", "2026-01-20", dtype="M8[D]")
    source = SeriesInMemory(series={"b": Series(id="b", days=days, values=np.ones(len(days)))})
    peeker = Peeker()
    backtest([peeker], [DATED], series=source)
    assert peeker.last == np.datetime64("2026-01-10")


def test_plain_functions_forecast():
    def by_kind(question, context):
        assert context.as_of == question.as_of
        return {target.id: 0.2 for target in question.targets}

    async def later(question):
        return 0.4

    def odd(question):
        return 7

    result = backtest([by_kind, later, odd, "always:p=0.1"], [PRICED])
    assert [(f.forecaster, set(f.p.values())) for f in result.forecasts] == [
        ("by_kind", {0.2}),
        ("later", {0.4}),
        ("always 0.1", {0.1}),
    ]
    (failure,) = result.failures
    assert failure.error.startswith("odd gave no probabilities")
    with pytest.raises(InputError, match="is not a forecaster"):
        backtest([3], [PRICED])


def test_one_number_answers_several_dates_but_not_several_outcomes():
    assert backtest(lambda question: 0.4, [DATED]).forecasts[0].p == {"2026-01-17": 0.4, "2026-02-09": 0.4}
    cup = Question(id="cup", source="own", text="?", due="2026-01-10", targets=(Target(id="red"), Target(id="blue")))
    failed = backtest(lambda question: 0.4, [cup])
    assert "gave one number for red, blue: return a mapping" in str(failed)


def test_a_named_set_comes_with_its_outcomes():
    benchmark = foretell.open_benchmark("demo")
    result = backtest("always:p=0.3", "demo")
    assert len(result.forecasts) == len(benchmark.questions.questions)
    assert foretell.score(result) == foretell.score(result, benchmark.questions.resolutions)


class Cautious:
    """A forecaster with one method, and without a name."""

    def forecast(self, question: Question) -> float:
        return 0.3


def test_an_object_with_one_method_is_a_forecaster():
    (forecast,) = backtest(Cautious(), [PRICED]).forecasts
    assert (forecast.forecaster, set(forecast.p.values())) == ("Cautious", {0.3})


def test_an_exception_costs_only_its_question_and_names_it():
    second = replace(PRICED, id="second")

    def fails(question: Question) -> float:
        return 0.2 if question.id == PRICED.id else 1 / 0

    result = backtest([fails, "always:p=0.1"], [PRICED, second])
    assert [(failure.question_id, failure.error) for failure in result.failures] == [
        ("second", "ZeroDivisionError: division by zero")
    ]
    assert len(result.forecasts) == 3
    assert "fails: ZeroDivisionError: division by zero (question second)" in str(result)


def test_it_can_be_awaited_and_reports_its_progress():
    seen: list[tuple[int, int]] = []

    async def both() -> None:
        awaited = await foretell.abacktest("always:p=0.1", [PRICED], progress=lambda done, of: seen.append((done, of)))
        assert awaited == backtest("always:p=0.1", [PRICED])

    asyncio.run(both())
    assert seen == [(1, 1)]


def test_wrong_arguments_are_refused_before_anything_is_asked():
    assert len(backtest("constant:p=0.3", (question for question in [PRICED])).questions) == 1
    for fields, problem in (
        ({"limit": 0}, "limit = 0 is not a number of questions"),
        ({"limit": 2.5}, "limit is 2.5; expected a whole number or None"),
        ({"leaky_questions": "maybe"}, "leaky_questions is 'maybe'; expected 'exclude', 'keep' or 'redact'"),
        ({"settings": "/home"}, r"must be a foretell\.types\.Settings"),
    ):
        with pytest.raises(InputError, match=problem):
            backtest("constant:p=0.3", [PRICED], **fields)
    with pytest.raises(InputError, match="forecasters: is empty"):
        backtest([], [PRICED])
    with pytest.raises(InputError, match=r"the class ConstantForecaster is not a forecaster"):
        backtest(ConstantForecaster, [PRICED])
    with pytest.raises(ValueError, match=r"Question, field targets: is .*; expected a list, each entry a Target"):
        Question(id="a", source="own", text="?", due="2026-01-10", targets=("yes",))


def test_yes_and_no_of_a_forecaster_must_sum_to_one():
    question = Question(id="q", source="own", text="?", due="2026-01-10", targets=(Target(id="yes"),))
    for no, expected in ((0.58, {"yes": 0.42}), (0.9, None)):
        (answer,) = backtest(lambda _, no=no: {"yes": 0.42, "no": no}, [question]).answers
        if expected is None:
            assert isinstance(answer, Failure)
            assert answer.error.startswith("yes has 0.42 and no has 0.9, which do not sum to 1")
        else:
            assert isinstance(answer, Forecast)
            assert answer.p == expected
