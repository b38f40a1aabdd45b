"""Tables in the layout of Analytica, checked by hand: options with values, two factors crossed, and claims."""

from typing import Any

import pytest

from foretell import study
from foretell.questions.errors import InputError
from foretell.report.study import cell_number
from foretell.scoring.join import read_examples
from foretell.scoring.table import ForecastCost
from foretell.studies.inputs import StudyData

VALUES = {"t1": (1.3, 0.7), "t2": (0.8, 1.2), "t3": (2.0, 0.0)}
FIRST = {
    "alone": [(0.6, 0.6, 0.4), (0.4, 0.6, 0.4)],
    "linear": [(0.7, 0.3, 0.8), (0.7, 0.3, 0.8)],
    "average": [(0.7, 0.6, 0.8), (0.7, 0.6, 0.8)],
}
"""Return data from the probability of the first option of each task, by method and trial."""
FACTORS = {"alone": {"grounder": "search"}} | {
    name: {"rule": name, "grounder": "search"} for name in ("linear", "average")
}


def options_data(**changes: Any) -> StudyData:
    outcomes = [
        {
            "question": task,
            "target": side,
            "due": "2024-06-01",
            "resolved_on": "2025-06-01",
            "outcome": int(v == max(pay)),
        }
        | {"payoff": v}
        for task, pay in VALUES.items()
        for side, v in zip(("long", "short"), pay, strict=True)
    ]
    forecasts = [
        {"forecaster": name, "question": task, "target": side, "due": "2024-06-01", "trial": trial, "p": q}
        for name, trials in FIRST.items()
        for trial, by_task in enumerate(trials)
        for task, p in zip(VALUES, by_task, strict=True)
        for side, q in (("long", p), ("short", 1 - p))
    ]
    return StudyData(tables=read_examples(forecasts, outcomes), factors=FACTORS, **changes)


def test_performance_stability_and_efficiency_match_hand_computation():
    costs = {"linear": ForecastCost(dollars=0.26, seconds=330.0)}
    result = study("decisions", options_data(costs=costs), bootstrap="draws=100")
    board = result.table("Performance, stability and efficiency")
    # alone is right about t1 in one of two trials and about nothing else.
    assert board.numbers("Accu.") == pytest.approx({"chance": 50, "alone": 100 / 6, "linear": 100, "average": 200 / 3})
    assert [row.name for row in board.rows] == ["chance", "alone", "linear", "average"], (
        "the base is the one without a rule"
    )
    assert board.numbers("Imp.") == pytest.approx({"linear": 500, "average": 300})
    assert board.numbers("Soft")["linear"] == pytest.approx(100 * (0.7 + 0.7 + 0.8) / 3)
    assert board.numbers("Conf.")["alone"] == pytest.approx(60)
    # The hard score of alone is 1 and 0 on t1, and the same in both trials elsewhere: variances 0.5, 0 and 0.
    assert board.numbers("Var") == pytest.approx({"alone": 50 / 3, "linear": 0, "average": 0})
    assert (board.numbers("Cost"), board.numbers("Time")) == ({"linear": 0.26}, pytest.approx({"linear": 5.5}))
    first, second = result.sentences
    assert first == "linear is right most often of 3 methods: on 100.0 % of 3 tasks."
    assert second.startswith("Too few to tell linear from average: they share 3 independent questions")


def test_accuracy_by_two_crossed_factors():
    data = options_data()
    tables = {**data.tables, "linear nb": data.tables["linear"], "alone nb": data.tables["average"]}
    factors = {**FACTORS, "linear nb": {"rule": "linear", "grounder": "notebook"}, "alone nb": {"grounder": "notebook"}}
    result = study("decisions", StudyData(tables=tables, factors=factors), bootstrap="draws=100")
    crossed = result.table("rule × grounder")
    assert crossed.numbers("search") == pytest.approx({"without rule": 100 / 6, "linear": 100, "average": 200 / 3})
    assert crossed.numbers("notebook") == pytest.approx({"without rule": 200 / 3, "linear": 100})
    board = result.table("Performance, stability and efficiency")
    assert board.numbers("Imp.")["linear nb"] == pytest.approx(50), "every grounder has a base of its own"


def claims_data(*, split: bool) -> StudyData:
    rows = [("a", 0.45, 1, "validation", "x"), ("b", 0.3, 0, "validation", "x"), ("c", 0.42, 1, "test", "x; y")]
    rows += [("d", 0.2, 0, "test", "y"), ("e", 0.6, 0, "test", "x")]
    outcomes = [
        {"question": q, "target": "true", "due": "2024-06-01", "resolved_on": "2024-06-02", "outcome": o, "category": c}
        | {"subtype": s if split else "claim"}
        for q, _, o, s, c in rows
    ]
    forecasts = [{"forecaster": "m", "question": q, "target": "true", "due": "2024-06-01", "p": p} for q, p, *_ in rows]
    return StudyData(tables=read_examples(forecasts, outcomes))


def test_claims_by_category_with_a_threshold_from_the_validation_split():
    board = study("decisions", claims_data(split=True), bootstrap="draws=100").table("Claims")
    (row,) = board.rows
    assert {
        heading.label: cell_number(v)
        for heading, v in zip(board.columns, row.values, strict=True)
        if heading.label != "p"
    } == (
        pytest.approx(
            {
                "threshold": 0.375,
                "Accu.": 200 / 3,
                "True": 100,
                "False": 50,
                "x": 50,
                "y": 100,
                "Cost ×1k": float("nan"),
            }
            | {"n": 3},
            nan_ok=True,
        )
    )
    whole = study("decisions", claims_data(split=False), bootstrap="draws=100")
    assert whole.table("Claims").numbers("threshold") == {"m": 0.5}
    assert any("no validation and test split" in note for note in whole.notes)


def test_unknown_reference_is_refused():
    with pytest.raises(InputError, match="no configuration is called 'nobody'"):
        study("decisions", options_data(), bootstrap="draws=100", reference="nobody")
