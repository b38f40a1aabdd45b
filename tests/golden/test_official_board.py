"""The market column of ForecastBench's tournament board of 2026-04-10, recomputed from the forecasts.

The difficulty of a market question is the Brier score of its price on the due date, so a forecaster who repeats the
price scores exactly the anchor C on every question. That forecaster is on the board ("Imputed Forecaster"), and its two
printed columns determine C to one part in five hundred. C is the mean difficulty of all 1,711 market questions of the
board. The tables have prices for 1,644 of them, and for three more that were resolved later with an earlier date; 67 of
2024-07-21, outside the set that humans answered, have none. The anchor of the questions with a price is .0557 instead
of .0565, which raises every index by 0.1 to 0.2.

The dataset column cannot be recomputed: its difficulties were fitted on runs that are not in the tables.
"""

from pathlib import Path

import duckdb
import numpy as np
import pytest

from foretell.metrics import adjusted_brier_index, brier, difficulty_anchor, market_difficulty

pytestmark = pytest.mark.shared_data

GOLDEN_ANCHOR = 0.05647
ON_BOARD = """q.source_type = 'market' and r.resolved and q.forecast_due_date <= '2025-12-21'
    and (r.resolution_date <= '2026-04-09' or q.forecast_due_date = '2025-08-31')
    and (q.forecast_due_date <> '2025-11-09' or q.paper_tranche = 'B')"""
"""Two questions of 2025-11-09 were resolved later, with an earlier date; one of 2025-08-31 was on the board."""
BOARD_NAME = {
    "ext:Cassi-AI:Cassi ensemble_2_crowdadj": "Cassi ensemble_2_crowdadj",
    "ext:xAI:Grok 4.20 (Preview)": "Grok 4.20 (Preview)",
    "ext:Lightning Rod Labs:Foresight-32B": "Foresight-32B",
    "ext:ForecastBench:GPT-5-2025-08-07 (zero shot with freeze values)": (
        "GPT-5-2025-08-07 (zero shot with crowd forecast)"
    ),
}
PRINTED = {"Cassi": 75.8, "Grok": 75.2, "Foresight": 74.9, "GPT-5": 74.5}


def rows(root: Path, method: str | None = None) -> dict[str, np.ndarray]:
    """Return price and outcome of the board's market questions, with a method's forecasts if one is named."""
    tables = root / "tables"
    forecast, join = "0.5", ""
    if method:
        forecast = "f.probability"
        join = f"""join '{tables}/forecasts.parquet' f on f.method = $method and f.resolution_date = ''
            and (f.forecast_due_date, f.source, f.question_id) = (q.forecast_due_date, q.source, q.question_id)"""
    query = f"""
        select {forecast} as p, q.price_on_due_date as price, r.outcome as outcome
        from '{tables}/questions.parquet' q
        join '{tables}/resolutions.parquet' r using (forecast_due_date, source, question_id) {join}
        where {ON_BOARD} and q.price_on_due_date is not null"""
    columns = duckdb.connect().execute(query, {"method": method} if method else None).fetchnumpy()
    return {name: np.asarray(column, dtype=np.float64) for name, column in columns.items()}


def board(root: Path, model: str) -> tuple[float, int, float]:
    query = f"""select "Market", "N market", "Brier Market"
        from '{root}/tables/leaderboard_20260410.parquet' where board = 'tournament' and "Model" = ?"""
    [(index, n, score)] = duckdb.connect().execute(query, [model]).fetchall()
    return float(index), int(n), float(score)


def anchor_range(root: Path) -> tuple[float, float]:
    """Return the range of anchors that round to the printed numbers of the forecaster who repeats the price."""
    index, _, score = board(root, "Imputed Forecaster")
    low, high = (1 - (index + 0.05) / 100) ** 2, (1 - (index - 0.05) / 100) ** 2
    return max(low, score - 0.0005), min(high, score + 0.0005)


@pytest.mark.parametrize("method", BOARD_NAME)
def test_market_index_matches_the_printed_one(shared_data: Path, method: str) -> None:
    printed, n, _ = board(shared_data, BOARD_NAME[method])
    assert printed in PRINTED.values()
    r = rows(shared_data, method)
    assert len(r["p"]) == n
    scores, difficulty = brier(r["p"], r["outcome"]), market_difficulty(r["price"], r["outcome"])
    for constant in (*anchor_range(shared_data), GOLDEN_ANCHOR):
        assert adjusted_brier_index(scores, difficulty, constant) == pytest.approx(printed, abs=0.1)
    assert round(adjusted_brier_index(scores, difficulty, GOLDEN_ANCHOR), 1) == printed


def test_printed_columns_determine_the_anchor(shared_data: Path) -> None:
    low, high = anchor_range(shared_data)
    assert high - low < 0.0001
    assert low <= GOLDEN_ANCHOR <= high


def test_anchor_of_the_questions_with_a_price_is_near_the_printed_one(shared_data: Path) -> None:
    r = rows(shared_data)
    _, on_board, _ = board(shared_data, "Always 0.5")
    assert (len(r["p"]), on_board) == (1647, 1711)
    difficulty = market_difficulty(r["price"], r["outcome"])
    constant = difficulty_anchor(difficulty)
    assert constant == pytest.approx(GOLDEN_ANCHOR, abs=0.001)
    assert adjusted_brier_index(brier(r["p"], r["outcome"]), difficulty, constant) == pytest.approx(50)


@pytest.mark.parametrize("method", BOARD_NAME)
def test_index_with_the_computed_anchor_is_within_a_quarter_of_the_printed_one(shared_data: Path, method: str) -> None:
    all_rows = rows(shared_data)
    constant = difficulty_anchor(market_difficulty(all_rows["price"], all_rows["outcome"]))
    r = rows(shared_data, method)
    index = adjusted_brier_index(brier(r["p"], r["outcome"]), market_difficulty(r["price"], r["outcome"]), constant)
    assert index == pytest.approx(board(shared_data, BOARD_NAME[method])[0], abs=0.25)
