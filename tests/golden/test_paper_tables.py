"""Results of the BLF paper (Murphy et al. 2026) that need no fitting, recomputed from the published forecasts.

The Brier index is computed over a whole population; overall is the mean of the market and the data index.
"""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import duckdb
import numpy as np
import pytest

from foretell.metrics import brier, brier_index, brier_index_from_sums, compare_paired, mean_brier, metaculus_baseline

pytestmark = pytest.mark.shared_data

BLF = "blf:pro-high-brave-c1-p1-t1[hier-cal]"
CASSI = "ext:Cassi-AI:Cassi ensemble_2_crowdadj"
GPT5 = "ext:ForecastBench:GPT-5-2025-08-07 (zero shot with freeze values)"
GROK = "ext:xAI:Grok 4.20 (Preview)"
FORESIGHT = "ext:Lightning Rod Labs:Foresight-32B"
A, B = "2025-10-26", "2025-11-09"

TABLE_1 = {
    BLF: {"market": (81.31, 86.68, 83.77), "data": (62.37, 63.12, 62.74), "overall": (71.84, 74.90, 73.26)},
    CASSI: {"market": (78.68, 84.24, 81.25), "data": (61.85, 57.44, 59.60), "overall": (70.26, 70.84, 70.43)},
    GPT5: {"market": (79.80, 80.91, 80.35), "data": (61.14, 59.03, 60.08), "overall": (70.47, 69.97, 70.21)},
    GROK: {"market": (79.46, None, 79.46), "data": (61.37, None, 61.37), "overall": (70.42, None, 70.42)},
    FORESIGHT: {"market": (None, 80.95, 80.95), "data": (None, 57.63, 57.63), "overall": (None, 69.29, 69.29)},
}
PRIORS_OF_TABLE_7 = {
    ("acled", "10x_spike"): 0.00,
    ("acled", "increase"): 0.23,
    ("wikipedia", "vaccine"): 0.00,
    ("wikipedia", "fide_elo"): 0.01,
    ("wikipedia", "fide_rank"): 0.68,
    ("wikipedia", "swimming"): 0.99,
    ("fred", "all"): 0.42,
    ("yfinance", "all"): 0.58,
    ("dbnomics", "all"): 0.56,
}
"""Rounded as printed."""
TABLE_16 = {
    "kimi-k2.5-high-brave-c0-t0[hier-cal]": (40.7, 63.5, 13.3),
    "pro-high-brave-c0-t0[hier-cal]": (28.7, 59.8, 16.2),
    "kimi-k2.5-high-brave-c0-t0-nobelief[hier-cal]": (33.4, 61.0, 15.2),
    "pro-high-brave-c0-t0-nobelief[hier-cal]": (23.9, 58.3, 17.4),
    "pro-high-brave-c0-t0-clairvoyant_calibrated_hier": (72.2, 76.5, 5.5),
}

Event = tuple[str, str, str, str]
"""Kind, due date, question, resolution date."""

EVENTS = """
select if(q.source_type = 'market', 'market', 'data') as kind, r.forecast_due_date as due,
       r.source || '/' || r.question_id as question, r.resolution_date as day, r.paper_outcome as outcome,
       q.source as source, q.subtype as subtype, q.freeze_value as freeze
from '{tables}/ab_resolutions.parquet' r
join '{tables}/ab_questions.parquet' q using (forecast_due_date, source, question_id)
"""


@cache
def events(tables: Path) -> dict[Event, tuple[float, str, str, float]]:
    rows = duckdb.connect().execute(EVENTS.format(tables=tables)).fetchall()
    return {(kind, due, question, day): tuple(rest) for kind, due, question, day, *rest in rows}


@cache
def published(tables: Path, method: str) -> dict[Event, float]:
    """Return a method's probability per event; a market forecast has no date."""
    query = f"""
    select forecast_due_date, source || '/' || question_id, resolution_date, probability
    from '{tables}/ab_forecasts.parquet' where method = ?"""
    by_key = {row[:3]: row[3] for row in duckdb.connect().execute(query, [method]).fetchall()}
    by_event = {e: by_key.get((e[1], e[2], "" if e[0] == "market" else e[3])) for e in events(tables)}
    return {event: p for event, p in by_event.items() if p is not None}


def prices_and_priors(tables: Path) -> dict[Event, float]:
    """Return forecasts without a model: the freeze price for markets, Table 7 for data sets."""
    return {
        event: freeze if event[0] == "market" else PRIORS_OF_TABLE_7[source, subtype]
        for event, (_, source, subtype, freeze) in events(tables).items()
    }


def index(tables: Path, forecasts: dict[Event, float], kind: str, dues: Iterable[str] = (A, B)) -> float | None:
    if kind == "overall":
        parts = [index(tables, forecasts, part, dues) for part in ("market", "data")]
        return None if None in parts else sum(parts) / 2
    chosen = [event for event in forecasts if event[0] == kind and event[1] in dues]
    if not chosen:
        return None
    return brier_index(mean_brier([forecasts[e] for e in chosen], [events(tables)[e][0] for e in chosen]))


def gap(tables: Path, one: dict[Event, float], other: dict[Event, float], kind: str):
    """Return one − other in Brier index on the common events, resampled by event as in the paper."""
    chosen = [event for event in one if event in other and event[0] == kind]
    outcome = [events(tables)[e][0] for e in chosen]
    scores = [brier([forecasts[e] for e in chosen], outcome) for forecasts in (one, other)]
    return compare_paired(*scores, statistic=brier_index_from_sums)


@pytest.fixture
def tables(shared_data: Path) -> Path:
    return shared_data / "tables"


def test_numbers_of_events_match_the_paper(tables: Path) -> None:
    counts = {(kind, due): 0 for kind in ("market", "data") for due in (A, B)}
    for kind, due, *_ in events(tables):
        counts[kind, due] += 1
    assert counts == {("market", A): 100, ("market", B): 100, ("data", A): 298, ("data", B): 293}


@pytest.mark.parametrize("kind", ["market", "data", "overall"])
@pytest.mark.parametrize("method", TABLE_1)
def test_table_1_is_reproduced(tables: Path, method: str, kind: str) -> None:
    forecasts = published(tables, method)
    indexes = [index(tables, forecasts, kind, dues) for dues in ((A,), (B,), (A, B))]
    for got, expected in zip(indexes, TABLE_1[method][kind], strict=True):
        assert (got is None) == (expected is None)
        assert expected is None or got == pytest.approx(expected, abs=0.02)


def test_overall_of_both_samples_is_not_the_mean_of_the_samples(tables: Path) -> None:
    a, b, both = TABLE_1[BLF]["overall"]
    assert both == pytest.approx(index(tables, published(tables, BLF), "overall"), abs=0.02)
    assert abs((a + b) / 2 - both) > 0.1


def test_cassi_in_the_paper_uses_forecasts_of_b_for_questions_asked_twice(tables: Path) -> None:
    """The 80.08 / 82.04 of the paper use one forecast per market, that of B."""
    cassi = published(tables, CASSI)
    in_b = {question: p for (kind, due, question, _), p in cassi.items() if kind == "market" and due == B}
    twice = [event for event in cassi if event[0] == "market" and event[1] == A and event[2] in in_b]
    replaced = cassi | {event: in_b[event[2]] for event in twice}
    assert len(twice) == 25
    assert index(tables, replaced, "market", (A,)) == pytest.approx(80.08, abs=0.02)
    assert index(tables, replaced, "market") == pytest.approx(82.04, abs=0.02)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("market", (81.38, 81.59, 81.48)), ("data", (56.64, 59.91, 58.23)), ("overall", (69.01, 70.75, 69.85))],
)
def test_prices_and_rounded_priors_match_the_paper(tables: Path, kind: str, expected: tuple[float, ...]) -> None:
    forecasts = prices_and_priors(tables)
    indexes = [index(tables, forecasts, kind, dues) for dues in ((A,), (B,), (A, B))]
    assert indexes == pytest.approx(expected, abs=0.02)


def test_constant_one_half_has_index_50(tables: Path) -> None:
    half = dict.fromkeys(events(tables), 0.5)
    assert [index(tables, half, kind) for kind in ("market", "data", "overall")] == pytest.approx([50, 50, 50])


@pytest.mark.parametrize(
    ("method", "kind", "expected"),
    [
        (CASSI, "data", -3.13),
        (GPT5, "market", -3.43),
        (GPT5, "data", -2.66),
        (GROK, "market", -1.85),
        (GROK, "data", -1.00),
        (FORESIGHT, "market", -5.73),
        (FORESIGHT, "data", -5.48),
    ],
)
def test_paired_differences_to_blf_match_the_paper(tables: Path, method: str, kind: str, expected: float) -> None:
    result = gap(tables, published(tables, method), published(tables, BLF), kind)
    assert result.diff == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(
    ("method", "kind", "significant"),
    [
        (CASSI, "data", True),
        (GPT5, "market", False),
        (GPT5, "data", True),
        (GROK, "market", False),
        (GROK, "data", False),
        (FORESIGHT, "market", True),
        (FORESIGHT, "data", True),
    ],
)
def test_significance_of_differences_matches_the_paper(tables: Path, method: str, kind: str, significant: bool) -> None:
    result = gap(tables, published(tables, method), published(tables, BLF), kind)
    assert (result.p_one_sided < 0.05) == significant
    assert (result.high < 0) == significant


def test_difference_between_blf_and_no_model_matches_the_paper(tables: Path) -> None:
    """The data figure of the paper, +4.47, used unrounded priors; rounding changes it by 0.04."""
    market = gap(tables, published(tables, BLF), prices_and_priors(tables), "market")
    data = gap(tables, published(tables, BLF), prices_and_priors(tables), "data")
    assert market.diff == pytest.approx(2.29, abs=0.02)
    assert (market.low, market.high) == pytest.approx((-2.0, 6.8), abs=0.3)
    assert data.diff == pytest.approx(4.47, abs=0.06)
    assert (data.low, data.high) == pytest.approx((2.8, 6.1), abs=0.2)


@pytest.mark.parametrize("method", TABLE_16)
def test_table_16_is_reproduced(tables: Path, method: str) -> None:
    query = f"""
    select probability, resolved_to from '{tables}/aibq2_forecasts.parquet'
    join '{tables}/aibq2_questions.parquet' on question_id = id where method = ?"""
    p, outcome = np.array(duckdb.connect().execute(query, [method]).fetchall()).T
    assert len(p) == 113
    score = mean_brier(p, outcome)
    scores = (metaculus_baseline(p, outcome).mean(), brier_index(score), 100 * score)
    assert scores == pytest.approx(TABLE_16[method], abs=0.051)
