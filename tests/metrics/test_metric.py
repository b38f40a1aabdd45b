import ast
import csv
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.metrics.plain import average_return, event_weights, sharpe, sides

from foretell.metrics import (
    METRICS,
    STANDARD_METRICS,
    Bettor,
    DecisionRows,
    MetricRows,
    bootstrap_score,
    bootstrap_sums,
    brier,
    brier_index,
    ece,
    factorise,
    kalshi_fee,
    log_score,
    mean_brier,
    metaculus_baseline,
    murphy_decomposition,
    normalised_price,
    payoff,
    payoffs,
    return_metric,
    sharpe_metric,
)
from foretell.metrics.metric import metric_text


def test_a_former_name_means_its_metric_and_an_unknown_one_labels_itself():
    assert metric_text("brier") is METRICS["brier"]
    assert metric_text("bi") is METRICS["brier_index"]
    other = metric_text("wisdom")
    assert (other.name, other.label, other.meaning) == ("wisdom", "wisdom", "wisdom")


table = st.lists(
    st.tuples(st.floats(0.01, 0.99), st.booleans(), st.floats(0.1, 3), st.floats(0.05, 0.95), st.booleans()),
    min_size=3,
    max_size=30,
)


def rows_of(table):
    p, outcome, weight, yes, quoted = (np.array(column) for column in zip(*table, strict=True))
    quoted[0] = True
    yes = np.where(quoted, yes, np.nan)
    return complete(MetricRows.of(p, outcome, weight, prices=(yes, 1.02 - yes)))


def complete(rows):
    """The rows with everything that some metric needs."""
    yes, no = rows.yes_price, rows.no_price
    return replace(
        rows,
        yes_cost=yes + kalshi_fee(yes),
        no_cost=no + kalshi_fee(no),
        difficulty=0.1 * rows.outcome,
        peers=np.log(0.2 + 0.5 * rows.outcome),
        decision=DecisionRows(
            share=0.25 + 0.25 * rows.outcome,
            right=rows.outcome,
            hard=rows.p * rows.outcome,
            soft=rows.p**2,
            confidence=np.maximum(rows.p, 0.5),
        ),
    )


def direct(name, rows):
    p, outcome, weight = rows.p, rows.outcome, rows.weight
    paid = payoff(p, outcome, rows.yes_price, rows.no_price)
    adjusted = np.average(brier(p, outcome) - 0.1 * outcome, weights=weight)
    parts = murphy_decomposition(p, outcome, weight, bins=10)
    yes_side, no_side = sides(p, outcome, rows.yes_price, rows.no_price, weight)
    log_p = np.log(np.where(outcome == 1, p, 1 - p))
    task = weight * (0.25 + 0.25 * outcome)
    return {
        "choice": lambda: np.average(outcome, weights=task),
        "hard": lambda: np.average(p * outcome, weights=task),
        "soft": lambda: np.average(p**2, weights=task),
        "confidence": lambda: np.average(np.maximum(p, 0.5), weights=task),
        "yes_side": lambda: yes_side,
        "no_side": lambda: no_side,
        "accuracy": lambda: np.average(np.where(p == 0.5, 0.5, (p > 0.5) == outcome), weights=weight),
        "reliability": lambda: parts.reliability,
        "resolution": lambda: parts.resolution,
        "uncertainty": lambda: parts.uncertainty,
        "peer": lambda: np.average(100 * (log_p - np.log(0.2 + 0.5 * outcome)), weights=weight),
        "adjusted_brier": lambda: adjusted,
        "adjusted_brier_index": lambda: brier_index(max(0.0, adjusted)),
        "brier": lambda: mean_brier(p, outcome, weight),
        "brier_index": lambda: brier_index(mean_brier(p, outcome, weight)),
        "metaculus_baseline": lambda: np.average(metaculus_baseline(p, outcome), weights=weight),
        "log": lambda: np.average(log_score(p, outcome), weights=weight),
        "ece": lambda: (
            ece(p, outcome, weight)
            if np.average((p - np.average(p, weights=weight)) ** 2, weights=weight) >= 1e-9
            else np.nan
        ),
        "return": lambda: average_return(paid, weight),
        "net": lambda: average_return(payoff(p, outcome, rows.yes_cost, rows.no_cost), weight),
        "sharpe": lambda: sharpe(paid, weight),
    }[name]()


def test_the_table_is_literal_and_keyed_by_name():
    assert STANDARD_METRICS == ("brier", "brier_index", "metaculus_baseline", "log", "ece", "return", "sharpe")
    assert list(METRICS)[: len(STANDARD_METRICS)] == list(STANDARD_METRICS)
    assert all(metric.name == name for name, metric in METRICS.items())
    low = ["brier", "ece", "reliability", "uncertainty", "adjusted_brier"]
    assert [name for name, metric in METRICS.items() if metric.better == "low"] == low


def test_every_metric_has_a_direct_definition():
    assert all(metric.label and metric.meaning and metric.decimals >= 0 for metric in METRICS.values())
    assert len({metric.label for metric in METRICS.values()}) == len(METRICS)


def test_metrics_that_name_a_column_mean_the_same_column():
    rng = np.random.default_rng(0)
    p, yes = rng.uniform(0.05, 0.95, 40), rng.uniform(0.1, 0.9, 40)
    rows = complete(MetricRows.of(p, rng.random(40) < p, rng.uniform(0.5, 2, 40), (yes, 1.02 - yes)))
    seen = {}
    for metric in METRICS.values():
        for name, column in zip(metric.column_names, metric.columns(rows).T, strict=True):
            assert column.tolist() == seen.setdefault(name, column).tolist(), name


@settings(max_examples=30)
@given(table=table)
def test_metrics_from_sums_equal_their_direct_definition(table):
    rows = rows_of(table)
    for name, metric in METRICS.items():
        if not metric.columns(rows).any():  # No bet on Yes.
            assert np.isnan(direct(name, rows)), name
        else:
            assert metric.population(rows) == pytest.approx(direct(name, rows), nan_ok=True), name


@settings(max_examples=30)
@given(table=table, seed=st.integers(0, 2**32 - 1))
def test_counting_rows_equals_repeating_them(table, seed):
    """What a bootstrap needs: the number of a resample is from_sums(counts @ columns)."""
    rows = rows_of(table)
    drawn = np.random.default_rng(seed).integers(0, len(rows.p), len(rows.p))
    if np.isnan(rows.yes_price[drawn]).all():
        drawn[0] = 0
    counts = np.bincount(drawn, minlength=len(rows.p))
    again = complete(
        MetricRows.of(
            rows.p[drawn], rows.outcome[drawn], rows.weight[drawn], (rows.yes_price[drawn], rows.no_price[drawn])
        )
    )
    for name, metric in METRICS.items():
        by_sums = metric.from_sums(np.stack([counts, counts]) @ metric.columns(rows))
        assert by_sums.shape == (2,)
        assert by_sums == pytest.approx([direct(name, again)] * 2, nan_ok=True), name


@pytest.mark.parametrize("name", METRICS)
def test_metrics_ignore_the_scale_of_weights_and_rows_of_weight_zero(name):
    rng = np.random.default_rng(2)
    p, yes, weight = rng.uniform(0.05, 0.95, 40), rng.uniform(0.1, 0.9, 40), rng.uniform(0.5, 2, 40)
    outcome = rng.random(40) < p
    weight[7] = 0
    keep = weight > 0
    metric, prices = METRICS[name], (yes, 1 - yes)
    value = metric.population(complete(MetricRows.of(p, outcome, weight, prices)))
    assert metric.population(complete(MetricRows.of(p, outcome, 5 * weight, prices))) == pytest.approx(value)
    fewer = complete(MetricRows.of(p[keep], outcome[keep], weight[keep], (yes[keep], 1 - yes[keep])))
    assert metric.population(fewer) == pytest.approx(value)


@pytest.mark.parametrize("name", METRICS)
def test_no_weight_gives_nan_not_a_warning(name):
    metric = METRICS[name]
    k = len(metric.column_names)
    assert np.isnan(metric.from_sums(np.zeros((2, k)))).all()


def test_metrics_use_the_expected_number_of_columns():
    rows = MetricRows.of([0.4, 0.6], [0, 1], prices=([0.5, 0.5], [0.5, 0.5]))
    widths = {name: METRICS[name].columns(rows).shape[1] for name in STANDARD_METRICS}
    assert widths == {
        "brier": 2,
        "brier_index": 2,
        "metaculus_baseline": 2,
        "log": 2,
        "ece": 13,
        "return": 2,
        "sharpe": 4,
    }


def test_row_scores_exist_if_the_metric_is_their_mean():
    rows = MetricRows.of([0.4, 0.6], [0, 1], prices=([0.5, np.nan], [0.5, np.nan]))
    assert [name for name in STANDARD_METRICS if METRICS[name].per_question is None] == ["brier_index", "ece", "sharpe"]
    assert METRICS["brier"].per_question(rows).tolist() == brier([0.4, 0.6], [0, 1]).tolist()
    assert np.isnan(METRICS["return"].per_question(rows)[1])


def test_brier_index_is_not_the_mean_of_parts():
    bi = METRICS["brier_index"]
    easy, hard = MetricRows.of([0.9], [1]), MetricRows.of([0.3], [1])
    both = MetricRows.of([0.9, 0.3], [1, 1])
    assert (bi.population(easy) + bi.population(hard)) / 2 == pytest.approx(60)
    assert bi.population(both) == pytest.approx(50)


def test_certain_and_wrong_forecasts_have_a_finite_log_score():
    assert METRICS["log"].population(MetricRows.of([0.0, 0.5], [1, 1])) == pytest.approx(
        (np.log(0.001) + np.log(0.5)) / 2
    )


def test_missing_outcome_raises():
    with pytest.raises(ValueError, match=r"outcome\[0\] = nan is missing"):
        MetricRows.of([0.5], [np.nan])


def test_scoring_nothing_raises():
    with pytest.raises(ValueError, match="nothing to score"):
        MetricRows.of([], [])
    unpriced = MetricRows.of([0.5], [1], prices=([np.nan], [np.nan]))
    for name in ("return", "sharpe"):
        with pytest.raises(ValueError, match="no row can be scored"):
            METRICS[name].population(unpriced)
        with pytest.raises(ValueError, match="carry no prices"):
            METRICS[name].population(MetricRows.of([0.5], [1]))


def test_intervals_of_what_a_dollar_became_do_not_go_below_nothing():
    paid, events = [0.0] * 9 + [12.0], [str(event) for event in range(10)]
    assert bootstrap_score(paid, events).low < 0
    names = ("return", "net", "yes_side", "no_side")
    assert [bootstrap_score(paid, events, bounds=METRICS[name].bounds).low for name in names] == [0.0] * 4


def test_returns_depend_on_the_risk_aversion_of_the_bettor():
    rows = MetricRows.of([0.8, 0.3], [1, 1], prices=([0.5, 0.5], [0.5, 0.5]))
    assert return_metric(Bettor(gamma=1.0)).population(rows) == pytest.approx((1.6 + 0.6) / 2)
    assert sharpe_metric(Bettor(gamma=1.0)).population(rows) == pytest.approx(0.1 / np.std([1.6, 0.6], ddof=1))
    assert payoffs(rows).tolist() == [2, 0]


def test_metrics_fit_the_bootstrap():
    rng = np.random.default_rng(4)
    p, yes = rng.uniform(0.05, 0.95, 120), rng.uniform(0.1, 0.9, 120)
    rows = complete(MetricRows.of(p, rng.random(120) < p, prices=(yes, 1 - yes)))
    clusters = factorise(np.repeat(np.arange(40), 3))
    for metric in METRICS.values():
        interval = bootstrap_sums(clusters.sums(metric.columns(rows)), metric.from_sums)
        assert interval.estimate == pytest.approx(metric.population(rows))
        # Resampling adds noise to every bin, so replicates of binned metrics are biased.
        if metric.name not in ("ece", "reliability", "resolution", "uncertainty"):
            assert interval.low < interval.estimate < interval.high


@pytest.mark.shared_data
def test_big_events_dominate_unless_events_are_weighted(shared_data):
    """Markets of Prophet Arena events: pooled and per event are different numbers."""
    csv.field_size_limit(sys.maxsize)
    event, p, outcome = [], [], []
    with (shared_data / "prophet_arena" / "subset_100_half.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            quotes, results = ast.literal_eval(row["market_info"]), ast.literal_eval(row["market_outcome"])
            for market, result in results.items():
                if market in quotes:
                    asks = quotes[market]["yes_ask"], quotes[market]["no_ask"]
                    event.append(row["event_ticker"])
                    p.append(float(normalised_price(asks[0] / 100, asks[1] / 100)))
                    outcome.append(result)
    pooled = mean_brier(p, outcome)
    by_event = mean_brier(p, outcome, event_weights(event))
    assert event_weights(event).sum() == pytest.approx(len(set(event)))
    assert (pooled, by_event) == pytest.approx((0.0479, 0.1720), abs=5e-4)
