"""The market baseline on Prophet Arena's public events, against an independent calculation.

The tests work with any of the published events, because every number is computed twice.
"""

import ast
import csv
import math
from pathlib import Path

import numpy as np
import pytest

from foretell import score
from foretell.runs.question_sets import open_benchmark
from foretell.scoring.arena_leaderboard import ScoredArena, arena_leaderboard, arena_leaderboard_groups
from foretell.scoring.arena_table import arena_table_from_prophet_arena
from foretell.scoring.arena_view import arena_view
from foretell.scoring.baselines import ALWAYS_HALF, MARKET_PRICE
from foretell.scoring.long_tables import outcome_rows

pytestmark = pytest.mark.shared_data


@pytest.fixture(scope="module")
def path(shared_data: Path) -> Path:
    files = sorted((shared_data / "prophet_arena").glob("*.csv"))
    if not files:
        pytest.skip(f"no Prophet Arena file in {shared_data}")
    return files[0]


@pytest.fixture(scope="module")
def rows(path: Path):
    """(event, category, market, outcome, yes ask, no ask) of every market with a quote, read from the file."""
    csv.field_size_limit(1 << 30)
    quoted = []
    with path.open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            quotes = ast.literal_eval(line["market_info"])
            outcomes = ast.literal_eval(line["market_outcome"])
            for market in dict.fromkeys(ast.literal_eval(line["markets"])):
                if market in outcomes and market in quotes:
                    quote = quotes[market]
                    asks = quote["yes_ask"] / 100, quote["no_ask"] / 100
                    quoted.append((line["event_ticker"], line["category"], market, int(outcomes[market]), *asks))
    return quoted


@pytest.fixture(scope="module")
def market_price(path: Path):
    return next(
        line
        for line in arena_leaderboard(ScoredArena.of(arena_table_from_prophet_arena(path)))
        if line.entry.name == MARKET_PRICE
    )


def baseline(rows):
    """Return the market's probability, the outcome and the event of every row."""
    p = np.array([yes / (yes + no) for *_, yes, no in rows])
    return p, np.array([row[3] for row in rows]), np.array([row[0] for row in rows])


def by_event(values, events):
    """Return the mean over events of the mean within each event."""
    return np.mean(
        [np.mean([v for v, e in zip(values, events, strict=True) if e == name]) for name in sorted(set(events))]
    )


def calibration_error(p, outcome, weight):
    """Return the calibration error over ten bins (low, high]; the first includes 0."""
    total = 0.0
    for b in range(10):
        inside = [i for i, value in enumerate(p) if (value > b / 10 or b == 0) and value <= (b + 1) / 10]
        total += abs(sum(weight[i] * (outcome[i] - p[i]) for i in inside))
    return total / sum(weight)


def dollar(gamma, p, outcome, yes, no):
    """Return the payoff of a dollar bet on one market by the rule of the paper."""
    if gamma == 0:
        share = 1.0 if p / yes >= (1 - p) / no - 1e-12 else 0.0
    elif gamma == 1:
        share = p
    else:
        ours = yes * (p / yes) ** (1 / gamma)
        theirs = no * ((1 - p) / no) ** (1 / gamma)
        share = ours / (ours + theirs)
    return share / yes if outcome else (1 - share) / no


def test_brier_scores_per_event_and_per_market_match(rows, market_price):
    p, outcome, events = baseline(rows)
    assert market_price.scores["brier"].estimate == pytest.approx(by_event((p - outcome) ** 2, events), rel=1e-12)
    assert market_price.by_market["brier"].estimate == pytest.approx(np.mean((p - outcome) ** 2), rel=1e-12)
    assert market_price.events == len(set(events))
    assert market_price.markets == len(rows)


def test_brier_index_and_log_score_match(rows, market_price):
    p, outcome, events = baseline(rows)
    index = 100 * (1 - math.sqrt(by_event((p - outcome) ** 2, events)))
    log = by_event(np.log(np.maximum(np.where(outcome == 1, p, 1 - p), 0.001)), events)
    assert market_price.scores["brier_index"].estimate == pytest.approx(index, rel=1e-12)
    assert market_price.scores["log"].estimate == pytest.approx(log, rel=1e-12)


def test_calibration_errors_match(rows, market_price):
    p, outcome, events = baseline(rows)
    size = {name: list(events).count(name) for name in set(events)}
    weight = [1 / size[event] for event in events]
    assert market_price.by_market["ece"].estimate == pytest.approx(
        calibration_error(p, outcome, [1] * len(p)), rel=1e-10
    )
    assert market_price.scores["ece"].estimate == pytest.approx(calibration_error(p, outcome, weight), rel=1e-10)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_returns_match(rows, market_price, gamma):
    p, _, events = baseline(rows)
    paid = [dollar(gamma, q, row[3], row[4], row[5]) for q, row in zip(p, rows, strict=True)]
    name = f"return_gamma{gamma:g}" if gamma else "return"
    assert market_price.by_market[name].estimate == pytest.approx(np.mean(paid), rel=1e-9)
    assert market_price.scores[name].estimate == pytest.approx(by_event(paid, events), rel=1e-9)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_returns_after_fees_match(rows, market_price, gamma):
    p, _, events = baseline(rows)
    paid = [
        dollar(gamma, q, row[3], *(ask + 0.07 * ask * (1 - ask) for ask in row[4:]))
        for q, row in zip(p, rows, strict=True)
    ]
    name = f"net_gamma{gamma:g}" if gamma else "net"
    assert market_price.scores[name].estimate == pytest.approx(by_event(paid, events), rel=1e-9)


def test_sharpe_ratios_match(rows, market_price):
    p, _, events = baseline(rows)
    paid = np.array([dollar(0.0, q, row[3], row[4], row[5]) for q, row in zip(p, rows, strict=True)])
    each = np.array([paid[events == name].mean() for name in sorted(set(events))])
    assert market_price.scores["sharpe"].estimate == pytest.approx((each - 1).mean() / each.std(ddof=1), rel=1e-9)
    assert market_price.by_market["sharpe"].estimate == pytest.approx((paid - 1).mean() / paid.std(ddof=1), rel=1e-9)


def test_returns_by_side_of_always_half_match(path, rows):
    """Always-0.5 buys the cheaper side, so it bets on both sides."""
    line = next(
        entry_line
        for entry_line in arena_leaderboard(ScoredArena.of(arena_table_from_prophet_arena(path)))
        if entry_line.entry.name == ALWAYS_HALF
    )
    _, _, events = baseline(rows)
    size = {name: list(events).count(name) for name in set(events)}
    sides = {"yes_side": (0.0, 0.0), "no_side": (0.0, 0.0)}
    for event, _, _, outcome, yes, no in rows:
        side, won = ("yes_side", outcome / yes) if 0.5 / yes >= 0.5 / no else ("no_side", (1 - outcome) / no)
        sides[side] = sides[side][0] + won / size[event], sides[side][1] + 1 / size[event]
    for side, (won, staked) in sides.items():
        assert line.scores[side].estimate == pytest.approx(won / staked, rel=1e-9)


def test_brier_scores_by_category_match(path, rows):
    groups = {
        group.name: group
        for group in arena_leaderboard_groups(ScoredArena.of(arena_table_from_prophet_arena(path)), "category")
    }
    for name in {row[1] for row in rows}:
        mine = [row for row in rows if row[1] == name]
        p, outcome, events = baseline(mine)
        line = next(line for line in groups[name].lines if line.entry.name == MARKET_PRICE)
        assert line.scores["brier"].estimate == pytest.approx(by_event((p - outcome) ** 2, events), rel=1e-12)


def test_scoring_of_tables_agrees_with_the_arena(path, market_price):
    """`foretell backtest` and `foretell score` on the same file: every market counts once there."""
    questions = open_benchmark(str(path)).questions
    outcomes = [row for row in outcome_rows(questions.questions, questions.resolutions) if row["price"] is not None]
    forecasts = [
        {
            "forecaster": MARKET_PRICE,
            "question": row["question"],
            "target": row["target"],
            "due": row["due"],
            "p": row["price"],
        }
        for row in outcomes
    ]
    board = score(forecasts, outcomes)
    mine = next(line for line in board.scores if line.forecaster == MARKET_PRICE)
    for name in ("brier", "brier_index", "log", "ece", "return"):
        assert mine.metrics[name].estimate == pytest.approx(market_price.by_market[name].estimate, rel=1e-9), name
    assert mine.metrics["sharpe"].estimate == pytest.approx(market_price.by_market["sharpe"].estimate, rel=1e-9)


def test_page_data_is_valid_json(path):
    import json

    view = arena_view(arena_table_from_prophet_arena(path))
    data = json.loads(json.dumps(view.to_dict(), allow_nan=False))
    assert data["schema"] == "foretell/standings/2"
    assert {line["entry"]["name"] for line in data["lines"]} == {MARKET_PRICE, "base rate", ALWAYS_HALF}
