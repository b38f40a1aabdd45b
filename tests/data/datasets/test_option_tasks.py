import json
import re
from datetime import date
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.data.datasets.analytica import (
    HIGHER_LOWER,
    LONG_SHORT,
    FinancialTaskPlan,
    build_financial_tasks,
    read_options,
)
from foretell.data.series.series import Series
from foretell.questions.as_of import AsOf, instant
from foretell.questions.errors import InputError

TASK = {
    "id": "nvda",
    "question": "Long or short NVDA for a year?",
    "options": {"long": 2.71, "short": -0.71},
    "cutoff": "2024-06-01",
    "resolves": "2025-06-01",
}


def lines(*tasks: dict) -> str:
    return "\n".join(json.dumps(task) for task in tasks)


def test_a_task_becomes_a_question_with_payoffs(write) -> None:
    options = read_options(write("tasks.jsonl", lines(TASK)))
    (question,) = options.questions
    assert (question.id, question.exclusivity, question.due) == ("nvda", "exactly one", instant("2024-06-01"))
    assert [t.id for t in question.targets] == ["long", "short"]
    assert [(r.target_id, r.outcome, r.payoff) for r in options.resolutions] == [("long", 1, 2.71), ("short", 0, -0.71)]


def test_options_may_be_a_list_and_tasks_may_be_open(write) -> None:
    listed = TASK | {
        "id": "x",
        "options": [{"label": "a", "value": 1}, {"label": "b", "value": 3}, {"label": "c", "value": 2}],
    }
    still_open = TASK | {"id": "y", "options": ["a", "b"], "resolves": None}
    options = read_options(write("tasks.jsonl", lines(listed, still_open)))
    assert [r.outcome for r in options.resolutions] == [0, 1, 0]
    assert len(options.questions) == 2, "an open task is a question without a resolution"


def test_a_task_without_a_single_best_option_is_dropped(write) -> None:
    flat = TASK | {"id": "flat", "options": {"long": 1.0, "short": 1.0}}
    tie = TASK | {"id": "tie", "options": {"a": 2.0, "b": 2.0, "c": 1.0}}
    options = read_options(write("tasks.jsonl", lines(TASK, flat, tie)))
    assert [q.id for q in options.questions] == ["nvda"]
    assert options.notes == ("2 tasks dropped: no single option pays best",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"options": {"long": 1}}, "column options: bad: needs two or more options"),
        ({"options": {"long": 1, "short": None}}, "some options have dollars and some have none"),
        ({"options": {"long": "a lot", "short": 1}}, "column value: bad: 'a lot' is not a number"),
        ({"options": ["a", "a"]}, "option 'a' occurs twice"),
        ({"options": [{"name": "a"}, {"name": "b"}]}, "expected a label and a value"),
        ({"cutoff": None}, "column cutoff: bad: is missing"),
        ({"cutoff": "2024-06-31"}, "column cutoff: bad: '2024-06-31' is not an ISO date"),
        ({"resolves": "2024-06-01"}, "is not after the cutoff"),
        ({"id": "nvda"}, "task nvda occurs twice"),
        ({"quesiton": "?"}, "column quesiton: is not a known field (did you mean question?)"),
    ],
)
def test_a_malformed_task_raises_with_row_and_column(write, changes: dict, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_options(write("tasks.jsonl", lines(TASK, TASK | {"id": "bad"} | changes)))
    assert "row 2" in str(caught.value)
    assert message in str(caught.value)


def prices(values: list[float], start: str = "2024-01-01") -> Series:
    days = np.datetime64(start, "D") + np.arange(len(values))
    return Series(id="X", days=days, values=np.array(values, dtype=float))


PLAN = FinancialTaskPlan(horizon_days=10, min_history=5, max_stale_days=2)


def test_payoffs_follow_a_rise_and_a_fall() -> None:
    series = prices([100.0] * 10 + [150.0] * 10)
    tasks = build_financial_tasks(series, [date(2024, 1, 5)], LONG_SHORT, PLAN)
    assert [(r.target_id, r.outcome, r.payoff) for r in tasks.resolutions] == [
        ("long", 1, 1.5),
        ("short", 0, 0.5),
    ]
    falling = build_financial_tasks(prices([100.0] * 10 + [80.0] * 10), [date(2024, 1, 5)], HIGHER_LOWER, PLAN)
    assert [(r.target_id, r.outcome, r.payoff) for r in falling.resolutions] == [("higher", 0, 0.0), ("lower", 1, 1.0)]
    (question,) = tasks.questions
    assert (question.due, question.targets[0].resolves_at) == (instant("2024-01-05"), instant("2024-01-15"))
    assert question.cluster == "financial/X"


@pytest.mark.parametrize(
    ("series", "cutoff", "reason"),
    [
        (prices([1.0, 2.0] * 20), date(2024, 1, 4), "too little history"),
        (prices([1.0, 2.0] * 20), date(2024, 2, 25), "no price at the start"),
        (prices([1.0, 2.0] * 20), date(2024, 2, 5), "no price at the end"),
        (prices([1.0] * 40), date(2024, 1, 20), "options pay the same"),
        (prices([-1.0] * 40), date(2024, 1, 20), "a price is not positive"),
    ],
)
@pytest.mark.parametrize("wager", [LONG_SHORT, HIGHER_LOWER])
def test_a_dropped_task_has_a_reason(series: Series, cutoff: date, reason: str, wager) -> None:
    tasks = build_financial_tasks(series, [cutoff], wager, PLAN)
    assert (tasks.questions, tasks.notes) == ((), (f"1 tasks dropped: {reason}",))


@settings(max_examples=40)
@given(st.lists(st.floats(0.5, 200), min_size=30, max_size=40))
def test_payoffs_of_long_and_short_sum_to_the_stake(values: list[float]) -> None:
    tasks = build_financial_tasks(prices(values), [date(2024, 1, day) for day in (6, 9, 12)], LONG_SHORT, PLAN)
    for question in tasks.questions:
        pair = [r for r in tasks.resolutions if r.due == question.due]
        assert sum(r.payoff for r in pair) == pytest.approx(2)
        assert sum(r.outcome for r in pair) == 1
    assert len(tasks.questions) + sum(int(note.split()[0]) for note in tasks.notes) == 3


def test_a_plan_without_a_horizon_raises() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        FinancialTaskPlan(horizon_days=0)


@pytest.mark.shared_data
def test_tasks_are_built_from_real_prices(shared_data: Path) -> None:
    query = f"select date, close from '{shared_data}/tables/ts_yfinance_close.parquet' where ticker = 'AAPL' order by 1"
    columns = duckdb.connect().execute(query).fetchnumpy()
    series = Series(id="AAPL", days=columns["date"].astype("M8[D]"), values=np.asarray(columns["close"], dtype=float))
    tasks = build_financial_tasks(
        series, [date(2024, month, 1) for month in range(1, 13)] + [date(2025, 6, 1), date(2023, 2, 1)]
    )
    assert len(tasks.questions) == 12
    assert set(tasks.notes) == {"1 tasks dropped: no price at the end", "1 tasks dropped: too little history"}


def test_a_financial_task_contains_prices_up_to_its_date_only() -> None:
    days = np.arange("2023-01-01", "2024-06-01", dtype="M8[D]")
    prices = Series(id="X", days=days, values=100 + np.arange(len(days), dtype=float))
    cutoff = date(2024, 2, 1)
    (question,) = build_financial_tasks(prices, [cutoff], plan=FinancialTaskPlan(horizon_days=30)).questions
    last = prices.until(AsOf.day(cutoff))
    fromisoformats = [date.fromisoformat(day) for day in re.findall(r"\d{4}-\d\d-\d\d", question.background)]
    assert max(fromisoformats) == last.days[-1].astype(object) <= cutoff
    assert min(fromisoformats) == date(2023, 1, 31)
    assert len(fromisoformats) == len(set(fromisoformats)) == 10 + 13
    assert question.last_value is not None
    assert question.last_value.value == last.values[-1]
    assert question.last_value.at.date() <= cutoff
    assert f"{fromisoformats[9]} {last.values[-1]:g}" in question.background
