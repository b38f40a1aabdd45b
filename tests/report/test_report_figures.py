import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.metrics import Interval
from foretell.number_text import percent
from foretell.report.charts.calibration import conservatism_plot, correctness_histogram, reliability_diagram
from foretell.report.charts.groups import question_set, score_by_group, verdict_heatmap
from foretell.report.charts.ranking import ForestRow, FrontierPoint, forest_plot, frontier, pareto
from foretell.report.charts.rulers import labelled_score
from foretell.report.charts.svg import BOLD_LETTER, Chart
from foretell.report.charts.updates import ForecastHistory, ShownUpdate, updates_plot
from foretell.scoring.breakdown import Breakdown, breakdown, differences, verdict_matrix
from foretell.scoring.score import ScoringOptions
from foretell.scoring.table import ForecastTable
from foretell.scoring.verdict import Verdict

SVG = "{http://www.w3.org/2000/svg}"


def parsed(chart: Chart) -> ElementTree.Element:
    assert "nan" not in chart.svg.replace("NaN", "nan").replace("finan", "")
    assert "style=" not in chart.svg
    return ElementTree.fromstring(chart.standalone())


def words(chart: Chart) -> str:
    return " ".join(e.text or "" for e in parsed(chart).iter() if e.tag in (SVG + "text", SVG + "title"))


def test_reliability_diagram_prints_its_error_and_bins() -> None:
    chart = reliability_diagram([0.95, 0.95, 0.05, 0.05], [1, 0, 0, 0], name="m")
    shown = words(chart)
    assert "calibration error 25.0 points · 4 forecasts" in shown
    assert "forecast 95 %, happened 50 %" in shown
    assert "forecast 5 %, happened 0 %" in shown
    assert len(parsed(chart).findall(f".//{SVG}circle")) == 2


def test_reliability_diagram_leaves_out_unanswered_targets() -> None:
    assert "1 forecast" in words(reliability_diagram([0.5, math.nan], [1, 0], name="m"))
    assert "no forecast" in words(reliability_diagram([math.nan], [0], name="m"))


def test_forest_plot_shows_numbers_and_accepts_missing_ones(build_interval: Callable[..., Interval]) -> None:
    rows = [
        ForestRow(name="a", interval=build_interval(73.3, 70.1, 76.4)),
        ForestRow(name="market", interval=build_interval(70.0, math.nan, math.nan), baseline=True),
        ForestRow(name="void", interval=build_interval(math.nan)),
    ]
    chart = forest_plot(rows, label="BI", reference="a")
    assert chart.narrow is not None
    for drawn in (chart, Chart(chart.narrow)):
        shown = words(drawn)
        assert "73.3 [70.1, 76.4]" in shown
        assert "70.0" in shown
        assert "void" not in shown
        assert "dashed: reference" in shown
    assert chart.csv.splitlines() == ["name,BI,low,high", "a,73.3,70.1,76.4", "market,70,,"]


def test_empty_plots_have_a_message() -> None:
    assert "No score" in words(forest_plot([], label="BI"))
    assert "No cost" in words(frontier([], label="BI"))
    assert "No scored question" in words(correctness_histogram([math.nan], name="m"))
    assert "No forecast has a market price" in words(conservatism_plot([0.5], [math.nan], name="m"))


def test_heatmap_writes_row_minus_column_with_stars(build_verdict: Callable[..., Verdict]) -> None:
    verdict = build_verdict(-0.1, -0.12, -0.08, metric="brier", better="low", p=0.0001)
    chart = verdict_heatmap(["a", "b"], [verdict], label="Brier", decimals=3)
    shown = words(chart)
    assert "−.100" in shown
    assert "+.100" in shown
    assert "***" in shown
    assert 'class="f-d8"' in chart.svg


def test_heatmap_of_forty_shows_thirty_with_a_note() -> None:
    names = [f"forecaster {i}" for i in range(40)]
    chart = verdict_heatmap(names, [], label="Brier")
    shown = words(chart)
    assert "the first 30 of 40 forecasters" in shown
    assert "forecaster 29" in shown
    assert "forecaster 30" not in shown


def test_heatmap_of_one_forecaster_has_a_message() -> None:
    assert "Fewer than two" in words(verdict_heatmap(["a"], [], label="BI"))


def points(build: Callable[..., Interval]) -> list[FrontierPoint]:
    raw = [("cheap", 0.01, 60.0), ("dear", 5.0, 75.0), ("waste", 6.0, 55.0), ("middle", 0.5, 70.0)]
    return [FrontierPoint(name=n, cost=c, interval=build(s)) for n, c, s in raw]


def test_pareto_front_is_the_undominated_points(build_interval: Callable[..., Interval]) -> None:
    candidates = points(build_interval)
    assert [p.name for p in pareto(candidates)] == ["cheap", "middle", "dear"]
    assert [p.name for p in pareto(candidates, low_is_better=True)] == ["cheap", "waste"]


def test_frontier_is_logarithmic_over_a_wide_range_only(build_interval: Callable[..., Interval]) -> None:
    assert "(logarithmic)" in words(frontier(points(build_interval), label="BI"))
    assert "(logarithmic)" not in words(frontier(points(build_interval)[1:3], label="BI"))
    free = [FrontierPoint(name="free", cost=0.0, interval=build_interval(50.0)), *points(build_interval)]
    assert "(logarithmic)" not in words(frontier(free, label="BI"))


def test_breakdown_matches_a_hand_computation(table: ForecastTable) -> None:
    scores = breakdown(table, "source", ["good", "half"], ScoringOptions(metric="brier"))
    assert scores.groups == ("alpha", "beta", "gamma")
    assert scores.n == (40, 40, 40)
    mask = table.targets.groups["source"].mask("beta")
    by_hand = float(np.mean((table.p_of("good")[mask] - table.targets.outcome[mask]) ** 2))
    interval = scores.scores["good"][1]
    assert interval is not None
    assert interval.estimate == pytest.approx(by_hand)
    assert interval.low < by_hand < interval.high
    assert scores.answered["half"] == (20, 20, 20)
    assert scores.base_rate[1] == pytest.approx(table.targets.outcome[mask].mean())


def test_differences_are_paired_on_shared_targets(table: ForecastTable) -> None:
    gaps = differences(table, "due", "good", "half", ScoringOptions(metric="brier"))
    assert gaps.groups == ("2025-01-01",)
    assert gaps.n == (60,)
    interval = gaps.scores["good"][0]
    good, half = ((table.p_of(n)[:60] - table.targets.outcome[:60]) ** 2 for n in ("good", "half"))
    assert interval is not None
    assert interval.estimate == pytest.approx(float(np.mean(good - half)))


def test_charts_by_group_show_every_group(table: ForecastTable) -> None:
    dots = score_by_group(breakdown(table, "source", ["good", "fair"]), label="BI")
    lines = score_by_group(breakdown(table, "horizon", ["good", "half"]), label="BI")
    assert all(name in words(dots) for name in ("alpha", "beta", "gamma", "BI by source", "good", "fair"))
    assert "BI by horizon (days)" in words(lines)
    assert 'class="soft"' in lines.svg


def test_groups_without_any_score_have_a_message() -> None:
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
    groups = breakdown(table, "source", [])
    shown = words(question_set(groups))
    assert f"{100 * groups.base_rate[0]:.0f} %" in shown
    assert "40" in shown


def test_correctness_histogram_counts_scores_worse_than_always_half() -> None:
    shown = words(correctness_histogram([0.0, 0.01, 0.81, 0.25], name="m"))
    assert "25 % worse than 0.5" in shown


@pytest.mark.parametrize("n", [20, 500])
def test_conservatism_plot_measures_distance_from_half(n: int) -> None:
    price = np.linspace(0.05, 0.95, n)
    shown = words(conservatism_plot(0.5 + (price - 0.5) / 2, price, name="timid"))
    market = float(np.abs(price - 0.5).mean())
    assert f"distance from 50 %: {percent(market / 2)}, market {percent(market)} · n {n}" in shown


def test_verdicts_overall_are_the_mean_over_kinds(build_table: Callable[..., ForecastTable]) -> None:
    outcome = np.zeros(40)
    kinds = ["market"] * 10 + ["dataset"] * 30
    a, b = np.full(40, 0.5), np.where(np.arange(40) < 10, 0.1, 0.3)
    table = build_table({"a": a, "b": b}, outcome, kind=kinds)
    [verdict] = verdict_matrix(table, ["a", "b"], {"kind": "overall"}, ScoringOptions(metric="brier_index"))
    assert verdict.diff == pytest.approx((50 - 90) / 2 + (50 - 70) / 2)
    [only] = verdict_matrix(table, ["a", "b"], {"kind": "market"}, ScoringOptions(metric="brier"))
    assert only.diff == pytest.approx(0.25 - 0.01)
    assert only.n == 10


def test_every_figure_is_deterministic(table: ForecastTable) -> None:
    groups = breakdown(table, "source", ["good", "fair"])
    again = breakdown(table, "source", ["good", "fair"])
    assert score_by_group(groups, label="BI") == score_by_group(again, label="BI")
    assert reliability_diagram([0.2, 0.7], [0, 1], name="m") == reliability_diagram([0.2, 0.7], [0, 1], name="m")


SHOWN_SCORES = st.floats(30, 95).map(lambda value: round(value, 1))


@given(score=SHOWN_SCORES, price=SHOWN_SCORES, rate=SHOWN_SCORES)
def test_names_on_the_ruler_of_a_score_do_not_cover_each_other(score: float, price: float, rate: float) -> None:
    chart = labelled_score((score, score - 5, score + 5), price=price, rate=rate)
    names = [one for one in parsed(chart).iter(SVG + "text") if one.get("y") in ("12", "28")]
    assert len(names) == 3
    spans: list[tuple[str | None, float, float]] = []
    for one in names:
        room, place = len(one.text or "") * BOLD_LETTER, float(one.get("x", ""))
        style = (one.get("class") or "").split()
        left = place - room * (0.5 if "m" in style else 1.0 if "r" in style else 0.0)
        spans.append((one.get("y"), left, left + room))
    for (row, _, end), (next_row, start, _) in pairwise(sorted(spans, key=lambda span: (span[0], span[1]))):
        assert row != next_row or end <= start


def test_names_at_the_ends_of_lines_are_whole_on_a_wide_chart() -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    updates = [ShownUpdate(at=begin, p=0.71), ShownUpdate(at=begin + timedelta(days=5), p=0.97)]
    later = begin + timedelta(days=20)
    prices = [(begin, 0.7), (later, 0.98)]
    shown = words(updates_plot(ForecastHistory(title="t", updates=updates, prices=prices, rate=0.4, now=later)))
    for name in ("foretell 97.0 %", "market 98.0 %", "base rate 40 %"):
        assert name in shown
    score = Interval(estimate=0.2, low=0.1, high=0.3, se=0.05, n_clusters=9, draws=0)
    names = ("market price", "hasty reader", "reader, news and price")
    groups = Breakdown(
        column="time to close",
        ordered=True,
        groups=("1 d", "2 d"),
        n=(9, 9),
        base_rate=(math.nan,) * 2,
        scores=dict.fromkeys(names, (score, score)),
        answered=dict.fromkeys(names, (9, 9)),
    )
    labels = [one.text for one in parsed(score_by_group(groups, label="Brier")).iter(SVG + "text")]
    assert set(names) <= set(labels)
