"""Intervals and stars of a leaderboard with shared days, few clusters and many rows, and power analysis."""

from typing import Any

import numpy as np
import pytest

from foretell import score
from foretell.metrics import Resampling, expanded_level
from foretell.metrics.bootstrap import expanded_p
from foretell.operations.compare import PowerAnalysis, compare
from foretell.operations.requests.scoring import CompareRequest, ScoreRequest
from foretell.operations.score import ScoreResult
from foretell.operations.score import score as score_tables
from foretell.scoring.engine import Support
from foretell.scoring.join import read_examples, read_table
from foretell.scoring.scoreboard import Scoreboard
from foretell.scoring.table import base_rate
from foretell.studies.scores import raw_brier, rule_scores


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
def test_shared_days_are_a_second_way_of_clustering_if_there_are_enough(days: int, margins: str):
    assert score(*tables(days=days)).settings["cluster"] == margins


def test_days_with_one_cluster_each_are_not_resampled():
    forecasts, outcomes = tables()
    apart = [{**row, "resolved_on": f"2025-{1 + i // 28:02d}-{1 + i % 28:02d}"} for i, row in enumerate(outcomes)]
    assert score(forecasts, apart).settings["cluster"] == "question"
    assert score(forecasts, outcomes, cluster=("question",)).settings["cluster"] == "question"


def test_stars_appear_only_if_the_interval_excludes_zero():
    for seed in range(12):
        board = score(*tables(forecasters=6, clusters=8 + seed, seed=seed))
        for verdict in board.verdicts:
            assert not (verdict.stars and verdict.low <= 0 <= verdict.high), (seed, verdict)
            assert not verdict.p_corrected < verdict.p, "corrected for the number of rows"


def test_few_clusters_widen_intervals_and_raise_p_values_consistently():
    for n in (5, 12, 40, 400):
        assert expanded_p(1 - expanded_level(0.95, n), n) == pytest.approx(0.05)
        assert 0.95 < expanded_level(0.95, n) <= expanded_level(0.95, 5)
    assert expanded_level(0.95, 1) == 0.95


def board(options: dict[str, Any]) -> Scoreboard:
    result = score_tables(ScoreRequest.read(options))
    assert isinstance(result, ScoreResult)
    return result.board


def power(**options: Any) -> PowerAnalysis:
    result = compare(CompareRequest.read(options))
    assert isinstance(result, PowerAnalysis)
    return result


def test_power_analysis_uses_the_brier_index_of_its_pilot():
    forecasts, outcomes = tables(clusters=60)
    options = {"names": ("f0", "f1"), "forecasts": forecasts, "outcomes": outcomes}
    own = power(detect=2.0, **options)
    squared = [
        (
            row["p"]
            - next(o["outcome"] for o in outcomes if (o["question"], o["target"]) == (row["question"], row["target"]))
        )
        ** 2
        for row in forecasts
    ]
    assert own.index == pytest.approx(100 * (1 - np.mean(squared) ** 0.5))
    usual = power(detect={"points": 2.0, "index": 70.0}, **options)
    assert own.index < 70
    assert own.targets < usual.targets, "a point of index is more Brier score at a worse level"
    # Needed targets go with the inverse square of the gain in Brier score, which at index I is worth (100 − I) / 5,000.
    assert own.targets / usual.targets == pytest.approx(((100 - 70) / (100 - own.index)) ** 2, rel=0.05)


def test_a_pilot_at_index_54_needs_less_than_half_the_targets_of_index_70():
    """The worked example: a gain of one point, 1,945 targets around an index of 70 and 833 around the pilot's 54.2."""
    spread = 0.0945
    usual, own = (power(detect=text, sd=spread) for text in ("1", "1,index=54.2"))
    assert (usual.index, usual.targets) == (70.0, pytest.approx(1945, abs=10))
    assert own.targets == pytest.approx(833, abs=10)


def test_support_of_a_sum_of_independent_parts():
    def part(n: int, clusters: int, warning: str | None = None) -> Support:
        return Support(n=n, questions=n // 2, n_clusters=clusters, n_effective=clusters, warning=warning)

    both = Support.of([part(100, 5), part(60, 9, "a part of its own")], [1.0, 1.0])
    assert (both.n, both.questions, both.n_clusters) == (160, 80, 14)
    assert both.n_effective == 11, "one more than Satterthwaite's degrees of freedom, 4 / (1 / 4 + 1 / 8)"
    assert both.warning is not None
    assert both.warning.startswith("only 11 clusters")
    assert "a part of its own" not in both.warning, "its few clusters count in those of the sum"
    assert Support.of([part(90, 30), part(90, 30)], [1.0, 1.0]).warning is None
    assert Support.of([part(90, 30, "uneven"), part(90, 30)], [1.0, 1.0]).warning == "uneven"


def two_kinds() -> list[dict[str, Any]]:
    """Sixty dataset questions with three dates each, six days in all, and sixty market questions on twenty days."""
    rng = np.random.default_rng(1)
    asked = [
        {"question": f"d{q}", "target": f"t{k}", "kind": "dataset", "resolved_on": f"2025-03-{1 + (q + 2 * k) % 6:02d}"}
        for q in range(60)
        for k in range(3)
    ]
    asked += [
        {"question": f"m{q}", "target": "yes", "kind": "market", "resolved_on": f"2025-04-{1 + q % 20:02d}"}
        for q in range(60)
    ]
    rows = [{**row, "outcome": int(rng.random() < 0.4), "due": "2025-02-01"} for row in asked]
    return [{**row, "forecaster": "f", "p": round(float(rng.random()), 2)} for row in rows]


def test_a_difference_from_one_half_has_the_interval_of_the_score():
    # Always 0.5 has the index 50 in every resample, so score and difference are the same draws, moved by 50.
    board = score(two_kinds(), by=("kind",), reference="f")
    assert board.settings["cluster"] == "question or question × resolved_on, by the days that a group shares"
    clusters = {"overall": 80, "dataset": 60, "market": 20}
    for verdict in (verdict for verdict in board.verdicts if verdict.first == "always 0.5"):
        kind = verdict.group["kind"]
        own = next(row for row in board.group(kind=kind) if row.forecaster == "f").metrics["brier_index"]
        assert (50 - own.high, 50 - own.low) == pytest.approx((verdict.low, verdict.high), abs=1e-9), kind
        assert own.n_clusters == verdict.n_clusters == clusters.pop(kind)
    assert not clusters


def test_a_study_has_the_intervals_of_the_board():
    rows = two_kinds()
    other = [{**row, "forecaster": "g", "p": round(1 - row["p"] / 2, 2)} for row in rows]
    board, examples = score([*rows, *other], by=("kind",), reference="g"), read_examples([*rows, *other])
    scores = {name: raw_brier(examples[name]) for name in "fg"}
    study = {rule.name: rule for rule in rule_scores(scores, examples["f"], "g", Resampling())}
    for kind in ("overall", "dataset", "market"):
        here = next(row for row in board.group(kind=kind) if row.forecaster == "f").metrics["brier_index"]
        there = study["f"].index[kind]
        assert (here.low, here.high) == pytest.approx((there.low, there.high), abs=1e-9), kind
        gap = next(found for found in board.verdicts if found.first == "f" and found.group == {"kind": kind})
        assert gap.sentence == study["f"].verdicts[kind].sentence


def test_times_of_one_day_are_one_day():
    forecasts, outcomes = tables()
    timed = [
        {**row, "resolved_on": f"{row['resolved_on']}T{i // 60:02d}:{i % 60:02d}:00Z"} for i, row in enumerate(outcomes)
    ]
    days, times = score(forecasts, outcomes), score(forecasts, timed)
    assert times.settings["cluster"] == "question × resolved_on"
    assert times.verdicts[0].interval == days.verdicts[0].interval


def test_a_target_without_a_day_of_asking_has_no_known_past():
    asked = [
        {"question": f"q{i}", "due": "" if i == 0 else "2026-03-01", "resolved_on": "2026-02-01"} for i in range(9)
    ]
    rates = []
    for own in (0, 1):
        rows = [{**row, "forecaster": "f", "p": 0.3, "outcome": own if i == 0 else 1} for i, row in enumerate(asked)]
        rates.append(base_rate(read_table(rows).targets).tolist())
    assert [rate[0] for rate in rates] == [0.5, 0.5]
    # (yes + 1) / (n + 2), with all nine outcomes known a month before.
    assert rates[0][1:] == [pytest.approx(9 / 11)] * 8


@pytest.mark.parametrize("yes", [2, 3])
def test_a_base_rate_without_width_is_explained(yes: int):
    # Of four targets with two yes, a yes has the rate (1 + 1) / (3 + 2) = 0.4 of the others and a no 0.6.
    rows = [{"forecaster": "f", "question": f"q{i}", "p": 0.3, "outcome": int(i < yes)} for i in range(4)]
    board = score(rows)
    rate = next(row for row in board.scores if row.forecaster == "base rate").metrics["brier"]
    assert (rate.low == rate.high) == (yes == 2)
    assert any("its interval has no width" in note for note in board.notes) == (yes == 2)
