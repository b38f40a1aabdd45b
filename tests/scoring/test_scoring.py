import json
from pathlib import Path

import numpy as np
import pytest

import foretell
from foretell.metrics import Resampling
from foretell.questions.errors import InputError
from foretell.scoring.baselines import ALWAYS_HALF, BASE_RATE, MARKET_PRICE
from foretell.scoring.join import read_table
from foretell.scoring.score import ScoringOptions, score_table
from foretell.scoring.scoreboard import Scoreboard
from foretell.scoring.table import base_rate

FAST = Resampling(draws=300)


def world(n: int = 60, seed: int = 1) -> tuple[list[dict], list[dict]]:
    """Two kinds of questions, a good forecaster and a noisy one that leaves some targets out."""
    rng = np.random.default_rng(seed)
    forecasts, outcomes = [], []
    for i in range(n):
        truth, kind = rng.uniform(0.02, 0.98), ("market", "dataset")[i % 2]
        for target in ("a", "b") if kind == "dataset" else ("yes",):
            outcomes.append(
                {
                    "question": f"q{i}",
                    "target": target,
                    "outcome": int(rng.random() < truth),
                    "kind": kind,
                    "source": f"s{i % 3}",
                    "price": round(truth * 0.8 + 0.1, 3) if kind == "market" else None,
                }
            )
            key = {"question": f"q{i}", "target": target}
            forecasts.append({"forecaster": "good", **key, "p": truth})
            if i % 5:
                noisy = float(np.clip(truth + rng.normal(0, 0.3), 0.01, 0.99))
                forecasts.append({"forecaster": "noisy", **key, "p": noisy})
    return forecasts, outcomes


@pytest.fixture(scope="module")
def board() -> Scoreboard:
    return foretell.score(*world(), by=("source",), reference="good", resampling=FAST)


def lines(board: Scoreboard, **group: str) -> dict:
    return {s.forecaster: s for s in board.scores if dict(s.group) == group}


def test_scores_match_the_formulas(board: Scoreboard):
    forecasts, outcomes = world()
    happened = {(o["question"], o["target"]): o for o in outcomes}
    rows = [
        f for f in forecasts if f["forecaster"] == "noisy" and happened[f["question"], f["target"]]["kind"] == "market"
    ]
    p = np.array([f["p"] for f in rows])
    o = np.array([happened[f["question"], f["target"]]["outcome"] for f in rows])
    line = lines(board, kind="market")["noisy"]
    assert line.metrics["brier"].estimate == pytest.approx(np.mean((p - o) ** 2))
    assert line.metrics["brier_index"].estimate == pytest.approx(100 * (1 - np.sqrt(np.mean((p - o) ** 2))))
    assert line.n == len(rows)
    assert line.completion == pytest.approx(len(rows) / 30)


def test_overall_is_the_mean_of_the_kinds(board: Scoreboard):
    for name in ("good", "noisy", ALWAYS_HALF):
        parts = [lines(board, kind=kind)[name].metrics["brier_index"].estimate for kind in ("market", "dataset")]
        assert lines(board, kind="overall")[name].metrics["brier_index"].estimate == pytest.approx(np.mean(parts))


def test_a_forecaster_of_one_kind_has_no_overall_score(board: Scoreboard):
    assert MARKET_PRICE in lines(board, kind="market")
    assert MARKET_PRICE not in lines(board, kind="overall")


def test_baselines_are_in_every_group(board: Scoreboard):
    assert {ALWAYS_HALF, BASE_RATE} <= lines(board, kind="overall").keys()
    assert lines(board, kind="overall")[ALWAYS_HALF].metrics["brier_index"].estimate == pytest.approx(50)


def test_every_number_lies_in_its_interval_and_groups_add_up(board: Scoreboard):
    for score in board.scores:
        interval = score.metrics["brier_index"]
        assert interval.low <= interval.estimate + 1e-9
        assert interval.high >= interval.estimate - 1e-9
    by_source = [s.n for s in board.scores if "source" in s.group and s.forecaster == "good"]
    assert sum(by_source) == lines(board, kind="overall")["good"].n


def test_differences_are_paired_on_common_targets(board: Scoreboard):
    table = read_table(*world())
    common = np.isfinite(table.p_of("noisy")) & table.targets.groups["kind"].mask("market")
    brier = {name: np.mean((table.p_of(name) - table.targets.outcome)[common] ** 2) for name in ("good", "noisy")}
    expected = 100 * (np.sqrt(brier["good"]) - np.sqrt(brier["noisy"]))
    verdicts = [
        verdict for verdict in board.verdicts if verdict.first == "noisy" and dict(verdict.group) == {"kind": "market"}
    ]
    assert verdicts[0].diff == pytest.approx(expected)
    assert verdicts[0].n == common.sum()


def test_order_of_rows_does_not_matter():
    forecasts, outcomes = world()
    a = foretell.score(forecasts, outcomes, resampling=FAST)
    b = foretell.score(forecasts[::-1], outcomes, resampling=FAST)
    for name in ("good", "noisy"):
        assert lines(a, kind="overall")[name] == lines(b, kind="overall")[name]


def test_same_seed_same_numbers_other_seed_other_interval():
    table = read_table(*world())
    first, again, other = (
        score_table(table, ScoringOptions(resampling=Resampling(draws=200, seed=s))) for s in (0, 0, 1)
    )
    assert first == again
    assert first.scores[0].metrics["brier_index"] != other.scores[0].metrics["brier_index"]
    assert first.scores[0].metrics["brier_index"].estimate == other.scores[0].metrics["brier_index"].estimate


def test_missing_forecasts_can_count_as_half():
    board = foretell.score(*world(), missing=0.5, resampling=FAST)
    line = lines(board, kind="overall")["noisy"]
    answered = lines(foretell.score(*world(), resampling=FAST), kind="overall")["noisy"]
    assert line.completion == answered.completion < 1, "what was put in was not answered"
    assert line.n == answered.n / answered.completion
    assert any("count as 0.5" in note for note in board.notes)


def test_crossed_clusters_give_wider_intervals_when_days_matter():
    rng = np.random.default_rng(3)
    shock = rng.random(40) < 0.5
    outcomes = [
        {"question": f"q{q}", "target": str(d), "outcome": int(shock[d]), "resolved_on": f"2025-01-{1 + d % 28:02d}"}
        for q in range(40)
        for d in range(28)
    ]
    forecasts = [{"forecaster": "A", "question": o["question"], "target": o["target"], "p": 0.3} for o in outcomes]
    widths = []
    for cluster in (("question",), ("question", "resolved_on")):
        metric = (
            foretell.score(forecasts, outcomes, cluster=cluster, baselines=False, resampling=FAST)
            .scores[0]
            .metrics["brier_index"]
        )
        widths.append(metric.high - metric.low)
    assert widths[1] > 3 * widths[0] + 1


def test_base_rate_uses_only_the_past():
    outcomes = [
        {
            "question": f"q{i}",
            "target": "yes",
            "outcome": 1,
            "source": "s",
            "due": f"2025-01-{i:02d}",
            "resolved_on": f"2025-01-{i + 1:02d}",
        }
        for i in range(1, 9)
    ]
    forecasts = [
        {"forecaster": "A", "question": o["question"], "target": "yes", "due": o["due"], "p": 0.5} for o in outcomes
    ]
    rate = base_rate(read_table(forecasts, outcomes).targets)
    assert rate.tolist() == pytest.approx([1 / 2, 1 / 2, 2 / 3, 3 / 4, 4 / 5, 5 / 6, 6 / 7, 7 / 8])


def test_more_clusters_than_bundles_keep_their_number_and_width():
    rng = np.random.default_rng(0)
    n = 5000
    outcomes = [{"question": f"q{i}", "target": "yes", "outcome": int(rng.random() < 0.3)} for i in range(n)]
    forecasts = [{"forecaster": "A", "question": o["question"], "target": "yes", "p": 0.3} for o in outcomes]
    board = foretell.score(forecasts, outcomes, baselines=False, resampling=Resampling(draws=2000))
    metric = board.scores[0].metrics["brier"]
    exact = np.std([(0.3 - o["outcome"]) ** 2 for o in outcomes]) / np.sqrt(n)
    assert metric.n_clusters == n
    assert metric.se == pytest.approx(exact, rel=0.06)
    assert any("5,000 values of question" in note and "500" in note for note in board.notes)


def test_forecasters_drawn_a_few_at_a_time_have_the_same_scores(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(0)
    outcomes = [
        {
            "question": f"q{i}",
            "outcome": i % 3 // 2,
            "kind": ("market", "dataset")[i % 2],
            "resolved_on": f"2026-01-{i % 12 + 1:02d}",
        }
        for i in range(60)
    ]
    forecasts = [
        {"forecaster": f"f{k}", "question": f"q{i}", "p": rng.random()}
        for k in range(7)
        for i in range(60)
        if k < 5 or (k == 5 and i % 2) or (k == 6 and i > 9)
    ]
    together = foretell.score(forecasts, outcomes, by=("resolved_on",))
    monkeypatch.setattr("foretell.scoring.engine.CHUNK", 1)
    apart = foretell.score(forecasts, outcomes, by=("resolved_on",))
    assert [(s.forecaster, s.group, s.n) for s in apart.scores] == [
        (s.forecaster, s.group, s.n) for s in together.scores
    ]
    for score, same in zip(apart.scores, together.scores, strict=True):
        assert {name: (m.low, m.high) for name, m in score.metrics.items()} == {
            name: pytest.approx((m.low, m.high), abs=1e-6, nan_ok=True) for name, m in same.metrics.items()
        }


def test_json_has_no_nan(board: Scoreboard):
    text = json.dumps(board.to_dict(), allow_nan=False)
    assert json.loads(text)["schema"] == "foretell/score/3"


@pytest.mark.parametrize(
    "options", [{"metric": "f1"}, {"reference": "nobody"}, {"by": ("colour",)}, {"cluster": ("a", "b", "c")}]
)
def test_unknown_options_are_errors_that_name_them(options: dict):
    with pytest.raises(InputError):
        foretell.score(*world(), **options)


@pytest.mark.shared_data
def test_published_table_is_reproduced_by_foretell_score(shared_data: Path, tmp_path: Path):
    """BLF Table 1 (golden numbers) from the published forecasts, by the same call a user makes."""
    import duckdb

    tables, con = shared_data / "tables", duckdb.connect()
    con.execute(
        f"""copy (select method as forecaster, source || '/' || question_id as question,
        case when resolution_date = '' then 'yes' else resolution_date end as target,
        forecast_due_date::date as due, probability as p from '{tables}/ab_forecasts.parquet')
        to '{tmp_path}/f.parquet'"""
    )
    con.execute(
        f"""copy (select source || '/' || question_id as question,
        case when source_type = 'market' then 'yes' else resolution_date end as target,
        r.forecast_due_date::date as due, paper_outcome as outcome, source_type as kind, source, horizon_days as horizon
        from '{tables}/ab_resolutions.parquet' r
        join '{tables}/ab_questions.parquet' q using (forecast_due_date, source, question_id))
        to '{tmp_path}/o.parquet'"""
    )
    blf = "blf:pro-high-brave-c1-p1-t1[hier-cal]"
    board = foretell.score(tmp_path / "f.parquet", tmp_path / "o.parquet", reference=blf)
    golden = {
        blf: (83.77, 62.74, 73.26),
        "ext:Cassi-AI:Cassi ensemble_2_crowdadj": (81.25, 59.60, 70.43),
        "ext:ForecastBench:GPT-5-2025-08-07 (zero shot with freeze values)": (80.35, 60.08, 70.21),
        ALWAYS_HALF: (50, 50, 50),
    }
    for name, numbers in golden.items():
        for kind, number in zip(("market", "dataset", "overall"), numbers, strict=True):
            assert lines(board, kind=kind)[name].metrics["brier_index"].estimate == pytest.approx(number, abs=0.02), (
                name,
                kind,
            )
    differences = {verdict.first: verdict for verdict in board.verdicts if dict(verdict.group) == {"kind": "dataset"}}
    for name, number in {
        "ext:Cassi-AI:Cassi ensemble_2_crowdadj": -3.13,
        "ext:xAI:Grok 4.20 (Preview)": -1.00,
        "ext:Lightning Rod Labs:Foresight-32B": -5.48,
    }.items():
        assert differences[name].diff == pytest.approx(number, abs=0.02)


def test_grouping_by_kind_lists_kinds_once():
    named = foretell.score(*world(), by=("kind",), resampling=FAST)
    plain = foretell.score(*world(), resampling=FAST)
    assert named.scores == plain.scores


def test_at_most_two_ways_of_clustering_are_crossed():
    outcomes = [
        {"question": f"q{n}", "outcome": n % 2, "resolved_on": f"2025-03-{n + 1:02d}", "source": f"s{n % 3}"}
        for n in range(8)
    ]
    forecasts = [{"forecaster": "a", "question": f"q{n}", "p": 0.4} for n in range(8)]
    table = read_table(forecasts, outcomes)
    assert score_table(table, ScoringOptions(cluster=("question", "source"), resampling=FAST)).scores
    with pytest.raises(InputError, match="at most two ways"):
        score_table(table, ScoringOptions(cluster=("question", "source", "resolved_on"), resampling=FAST))
