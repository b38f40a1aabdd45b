import math
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
import pytest

from foretell.metrics import Interval
from foretell.report.charts import (
    Chart,
    ForestRow,
    FrontierPoint,
    conservatism_plot,
    correctness_histogram,
    forest_plot,
    frontier,
    pareto,
    question_set,
    reliability_diagram,
    score_by_group,
    verdict_heatmap,
)
from foretell.scoring import Breakdown, ForecastTable, ScoringOptions, Verdict, verdict_matrix
from foretell.scoring.breakdown import breakdown, differences

SVG = "{http://www.w3.org/2000/svg}"


def parsed(made: Chart) -> ElementTree.Element:
    assert "nan" not in made.svg.replace("NaN", "nan").replace("finan", "")
    assert "style=" not in made.svg
    return ElementTree.fromstring(made.standalone())


def words(made: Chart) -> str:
    return " ".join(e.text or "" for e in parsed(made).iter() if e.tag in (SVG + "text", SVG + "title"))


def test_reliability_diagram_prints_its_error_and_bins() -> None:
    made = reliability_diagram([0.95, 0.95, 0.05, 0.05], [1, 0, 0, 0], name="m")
    told = words(made)
    assert "ECE 0.250 · 4 forecasts" in told
    assert "forecast 0.95, happened 0.50" in told
    assert "forecast 0.05, happened 0.00" in told
    assert len(parsed(made).findall(f".//{SVG}circle")) == 2


def test_reliability_diagram_leaves_out_what_was_not_answered() -> None:
    assert "1 forecasts" in words(reliability_diagram([0.5, math.nan], [1, 0], name="m"))
    assert "no forecast" in words(reliability_diagram([math.nan], [0], name="m"))


def test_forest_plot_shows_numbers_and_survives_gaps(build_interval: Callable[..., Interval]) -> None:
    rows = [
        ForestRow(name="a", interval=build_interval(73.3, 70.1, 76.4)),
        ForestRow(name="crowd", interval=build_interval(70.0, math.nan, math.nan), anchor=True),
        ForestRow(name="void", interval=build_interval(math.nan)),
    ]
    made = forest_plot(rows, label="BI", reference="a")
    assert made.narrow is not None
    for drawn in (made, Chart(made.narrow)):
        told = words(drawn)
        assert "73.3 [70.1, 76.4]" in told
        assert "70.0" in told
        assert "void" not in told
        assert "dashed: reference" in told
    assert made.csv.splitlines() == ["name,BI,low,high", "a,73.3,70.1,76.4", "crowd,70,,"]


def test_plots_of_nothing_say_so() -> None:
    assert "No score" in words(forest_plot([], label="BI"))
    assert "No cost" in words(frontier([], label="BI"))
    assert "No scored question" in words(correctness_histogram([math.nan], name="m"))
    assert "No forecast has a market price" in words(conservatism_plot([0.5], [math.nan], name="m"))


def test_heatmap_writes_row_minus_column_with_stars(build_verdict: Callable[..., Verdict]) -> None:
    verdict = build_verdict(-0.1, -0.12, -0.08, metric="brier", better="low", p=0.0001)
    made = verdict_heatmap(["a", "b"], [verdict], label="Brier", decimals=3)
    told = words(made)
    assert "−.100" in told
    assert "+.100" in told
    assert "***" in told
    assert 'class="f-d8"' in made.svg


def test_heatmap_of_forty_shows_thirty_and_says_so() -> None:
    names = [f"forecaster {i}" for i in range(40)]
    made = verdict_heatmap(names, [], label="Brier")
    told = words(made)
    assert "the first 30 of 40 forecasters" in told
    assert "forecaster 29" in told
    assert "forecaster 30" not in told


def test_heatmap_of_one_has_nothing_to_compare() -> None:
    assert "Fewer than two" in words(verdict_heatmap(["a"], [], label="BI"))


def points(build: Callable[..., Interval]) -> list[FrontierPoint]:
    raw = [("cheap", 0.01, 60.0), ("dear", 5.0, 75.0), ("waste", 6.0, 55.0), ("middle", 0.5, 70.0)]
    return [FrontierPoint(name=n, cost=c, interval=build(s)) for n, c, s in raw]


def test_pareto_front_is_the_undominated_points(build_interval: Callable[..., Interval]) -> None:
    found = points(build_interval)
    assert [p.name for p in pareto(found)] == ["cheap", "middle", "dear"]
    assert [p.name for p in pareto(found, low_is_better=True)] == ["cheap", "waste"]


def test_frontier_is_logarithmic_over_a_wide_range_only(build_interval: Callable[..., Interval]) -> None:
    assert "(logarithmic)" in words(frontier(points(build_interval), label="BI"))
    assert "(logarithmic)" not in words(frontier(points(build_interval)[1:3], label="BI"))
    free = [FrontierPoint(name="free", cost=0.0, interval=build_interval(50.0)), *points(build_interval)]
    assert "(logarithmic)" not in words(frontier(free, label="BI"))


def test_breakdown_agrees_with_scores_by_hand(table: ForecastTable) -> None:
    found = breakdown(table, "source", ["good", "half"], ScoringOptions(metric="brier"))
    assert found.groups == ("alpha", "beta", "gamma")
    assert found.n == (40, 40, 40)
    mask = table.targets.groups["source"].mask("beta")
    by_hand = float(np.mean((table.p_of("good")[mask] - table.targets.outcome[mask]) ** 2))
    interval = found.scores["good"][1]
    assert interval is not None
    assert interval.estimate == pytest.approx(by_hand)
    assert interval.low < by_hand < interval.high
    assert found.answered["half"] == (20, 20, 20)
    assert found.base_rate[1] == pytest.approx(table.targets.outcome[mask].mean())


def test_differences_are_paired_on_shared_targets(table: ForecastTable) -> None:
    found = differences(table, "due", "good", "half", ScoringOptions(metric="brier"))
    assert found.groups == ("2025-01-01",)
    assert found.n == (60,)
    interval = found.scores["good"][0]
    good, half = ((table.p_of(n)[:60] - table.targets.outcome[:60]) ** 2 for n in ("good", "half"))
    assert interval is not None
    assert interval.estimate == pytest.approx(float(np.mean(good - half)))


def test_group_pictures_show_every_group(table: ForecastTable) -> None:
    dots = score_by_group(breakdown(table, "source", ["good", "fair"]), label="BI")
    lines = score_by_group(breakdown(table, "horizon", ["good", "half"]), label="BI")
    assert all(name in words(dots) for name in ("alpha", "beta", "gamma", "BI by source", "good", "fair"))
    assert "BI by horizon (days)" in words(lines)
    assert 'class="soft"' in lines.svg


def test_no_score_in_any_group_is_said() -> None:
    void = Breakdown(
        column="x",
        ordered=False,
        groups=("a",),
        n=(0,),
        base_rate=(math.nan,),
        scores={"f": (None,)},
        answered={"f": (0,)},
    )
    assert "No score by x" in words(score_by_group(void, label="BI"))
    assert "a" in words(question_set(void))


def test_question_set_prints_base_rates(table: ForecastTable) -> None:
    found = breakdown(table, "source", [])
    told = words(question_set(found))
    assert f"{100 * found.base_rate[0]:.0f} %" in told
    assert "40" in told


def test_correctness_histogram_counts_the_worse_than_a_shrug() -> None:
    told = words(correctness_histogram([0.0, 0.01, 0.81, 0.25], name="m"))
    assert "25 % worse than saying 0.5" in told


@pytest.mark.parametrize("n", [20, 500])
def test_conservatism_plot_measures_distance_from_half(n: int) -> None:
    price = np.linspace(0.05, 0.95, n)
    told = words(conservatism_plot(0.5 + (price - 0.5) / 2, price, name="timid"))
    market = float(np.abs(price - 0.5).mean())
    assert f"mean distance from 0.5: {market / 2:.2f}, market {market:.2f} · n {n}" in told


def test_verdicts_overall_are_the_mean_over_kinds(build_table: Callable[..., ForecastTable]) -> None:
    outcome = np.zeros(40)
    kinds = ["market"] * 10 + ["dataset"] * 30
    a, b = np.full(40, 0.5), np.where(np.arange(40) < 10, 0.1, 0.3)
    table = build_table({"a": a, "b": b}, outcome, kind=kinds)
    [found] = verdict_matrix(table, ["a", "b"], {"kind": "overall"}, ScoringOptions(metric="brier_index"))
    assert found.diff == pytest.approx((50 - 90) / 2 + (50 - 70) / 2)
    [only] = verdict_matrix(table, ["a", "b"], {"kind": "market"}, ScoringOptions(metric="brier"))
    assert only.diff == pytest.approx(0.25 - 0.01)
    assert only.n == 10


def test_every_figure_is_deterministic(table: ForecastTable) -> None:
    found = breakdown(table, "source", ["good", "fair"])
    again = breakdown(table, "source", ["good", "fair"])
    assert score_by_group(found, label="BI") == score_by_group(again, label="BI")
    assert reliability_diagram([0.2, 0.7], [0, 1], name="m") == reliability_diagram([0.2, 0.7], [0, 1], name="m")
