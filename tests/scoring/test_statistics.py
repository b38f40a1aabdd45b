"""Which intervals and stars a board has: shared days, few clusters, many rows; and what a plan rests on."""

from typing import Any

import numpy as np
import pytest

from foretell import score
from foretell.metrics import expanded_level
from foretell.metrics.bootstrap import expanded_p
from foretell.operations import CompareRequest, PowerAnalysis, ScoreRequest
from foretell.operations.compare import compare
from foretell.operations.score import ScoreResult
from foretell.operations.score import score as score_tables
from foretell.scoring import Scoreboard


def tables(*, forecasters: int = 2, clusters: int = 40, days: int = 20, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    outcomes: list[dict[str, Any]] = [
        {
            "question": f"q{c}",
            "target": f"t{k}",
            "outcome": int(rng.random() < 0.5),
            "resolved_on": f"2025-03-{d + 1:02d}",
        }
        for c in range(clusters)
        for k, d in enumerate(rng.integers(0, days, 3))
    ]
    forecasts = [
        {"forecaster": f"f{n}", "question": row["question"], "target": row["target"]}
        | {"p": float(np.clip(0.5 + 0.2 * (row["outcome"] - 0.5) + rng.normal(0, 0.2), 0.01, 0.99))}
        for n in range(forecasters)
        for row in outcomes
    ]
    return forecasts, outcomes


@pytest.mark.parametrize(("days", "margins"), [(20, "question × resolved_on"), (5, "question")])
def test_days_that_clusters_share_are_a_margin_of_their_own_where_there_are_enough(days: int, margins: str):
    assert score(*tables(days=days)).settings["cluster"] == margins


def test_days_of_one_cluster_each_add_nothing():
    forecasts, outcomes = tables()
    apart = [{**row, "resolved_on": f"2025-{1 + i // 28:02d}-{1 + i % 28:02d}"} for i, row in enumerate(outcomes)]
    assert score(forecasts, apart).settings["cluster"] == "question"
    assert score(forecasts, outcomes, cluster=("question",)).settings["cluster"] == "question"


def test_a_star_never_stands_where_the_interval_holds_zero():
    for seed in range(12):
        board = score(*tables(forecasters=6, clusters=8 + seed, seed=seed))
        for verdict in board.verdicts:
            assert not (verdict.stars and verdict.low <= 0 <= verdict.high), (seed, verdict)
            assert not verdict.p_corrected < verdict.p, "corrected for the number of rows"


def test_few_clusters_widen_the_level_and_the_p_value_alike():
    for n in (5, 12, 40, 400):
        assert expanded_p(1 - expanded_level(0.95, n), n) == pytest.approx(0.05)
        assert 0.95 < expanded_level(0.95, n) <= expanded_level(0.95, 5)
    assert expanded_level(0.95, 1) == 0.95


def board(asked: dict[str, Any]) -> Scoreboard:
    found = score_tables(ScoreRequest.read(asked))
    assert isinstance(found, ScoreResult)
    return found.board


def power(**asked: Any) -> PowerAnalysis:
    found = compare(CompareRequest.read(asked))
    assert isinstance(found, PowerAnalysis)
    return found


def test_a_power_analysis_stands_on_the_level_of_its_pilot():
    forecasts, outcomes = tables(clusters=60)
    asked = {"names": ("f0", "f1"), "forecasts": forecasts, "outcomes": outcomes}
    own = power(detect=2.0, **asked)
    squared = [
        (
            row["p"]
            - next(o["outcome"] for o in outcomes if (o["question"], o["target"]) == (row["question"], row["target"]))
        )
        ** 2
        for row in forecasts
    ]
    assert own.index == pytest.approx(100 * (1 - np.mean(squared) ** 0.5))
    usual = power(detect={"points": 2.0, "index": 70.0}, **asked)
    assert own.index < 70
    assert own.targets < usual.targets, "a point of index is more Brier score at a worse level"
    # Needed targets go with the inverse square of the gain in Brier score, which at index I is worth (100 − I) / 5,000.
    assert own.targets / usual.targets == pytest.approx(((100 - 70) / (100 - own.index)) ** 2, rel=0.05)


def test_a_pilot_at_54_needs_less_than_half_of_what_the_usual_level_would_ask_for():
    """The worked example: a gain of one point, 1,945 targets around an index of 70 and 833 around the pilot's 54.2."""
    spread = 0.0945
    usual, own = (power(detect=text, sd=spread) for text in ("1", "1,index=54.2"))
    assert (usual.index, usual.targets) == (70.0, pytest.approx(1945, abs=10))
    assert own.targets == pytest.approx(833, abs=10)
