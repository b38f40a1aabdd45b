"""Operations on tables: numbers, corrections, difficulty, files, topics and built sets."""

import asyncio
import csv
import gzip
import json
from datetime import date
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import foretell
from foretell.operations import compare, data_build, score
from foretell.operations.data_show import show_questions
from foretell.operations.requests.data import DataBuildRequest, DataShowRequest
from foretell.operations.requests.scoring import CompareRequest, ScoreRequest
from foretell.operations.score_numbers import NumberScores
from foretell.questions.errors import InputError
from foretell.report.document import write_outputs
from foretell.report.terminal import TextColumn, distinct, text_table

NAMES = ("good", "fair", "poor")


@pytest.fixture
def tables() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    rng = np.random.default_rng(1)
    truth = rng.uniform(0.05, 0.95, 60)
    outcome = (rng.uniform(size=60) < truth).astype(int)
    forecasts = [
        {"forecaster": name, "question": f"q{i}", "target": "yes", "p": float(np.clip(truth[i] + noise[i], 0.01, 0.99))}
        for name, spread in zip(NAMES, (0.02, 0.15, 0.45), strict=True)
        for noise in [rng.normal(0, spread, 60)]
        for i in range(60)
    ]
    outcomes = [
        {"question": f"q{i}", "target": "yes", "outcome": int(outcome[i]), "source": "ab"[i % 2]} for i in range(60)
    ]
    return forecasts, outcomes


def request(tables: tuple[Any, Any], **more: Any) -> ScoreRequest:
    return ScoreRequest.read({"forecasts": tables[0], "outcomes": tables[1], "bootstrap": "draws=200", **more})


def test_details_agree_with_the_board(tables: Any):
    result = score.score(request(tables, metrics="all"))
    assert isinstance(result, score.ScoreResult)
    details = {detail.forecaster: detail for detail in result.details}
    assert [detail.forecaster for detail in result.details] == list(NAMES)
    # Peer scores sum to zero.
    assert sum(detail.peer.estimate for detail in result.details) == pytest.approx(0, abs=1e-9)
    brier = {entry.forecaster: entry.metrics["brier"].estimate for entry in result.board.scores}
    gaps = [details[name].adjusted.estimate - brier[name] for name in NAMES]
    assert np.ptp(gaps) < 1e-9, "everybody answered everything: difficulty moves all alike"
    assert details["poor"].slope < details["good"].slope
    assert details["good"].reliability < details["poor"].reliability
    assert "Peer" in str(result)
    assert json.loads(result.to_json())["details"][0]["forecaster"] == "good"


def test_hard_questions_score_worse(tables: Any):
    result = score.score(request(tables, by=("difficulty",)))
    assert isinstance(result, score.ScoreResult)
    of = {
        entry.group["difficulty"]: entry.metrics["brier"].estimate
        for entry in result.board.scores
        if entry.forecaster == "fair" and "difficulty" in entry.group
    }
    assert of["easy"] < of["medium"] < of["hard"]


def test_several_are_compared_with_the_last_and_corrected(tables: Any):
    common = {
        "forecasts": tables[0],
        "outcomes": tables[1],
        "bootstrap": "draws=200",
        "metric": "brier",
        "names": NAMES,
    }
    plain = compare.compare(CompareRequest.read({**common, "correction": "none"}))
    holm = compare.compare(CompareRequest.read(common))
    assert plain.reference == "poor"
    own, corrected = ([getattr(pair.verdicts[0], name) for pair in holm.pairs] for name in ("p", "p_corrected"))
    assert own == [pair.verdicts[0].p for pair in plain.pairs]
    assert min(corrected) == pytest.approx(min(1, 2 * min(own)))
    assert all(np.isnan(pair.verdicts[0].p_corrected) for pair in plain.pairs)
    assert [pair["first"] for pair in holm.to_dict()["pairs"]] == ["good", "fair"]
    other = compare.compare(CompareRequest.read({**common, "reference": "good"}))
    assert [pair.first for pair in other.pairs] == ["fair", "poor"]
    with pytest.raises(InputError, match="nothing to compare with"):
        compare.compare(CompareRequest.read({**common, "names": ("good",)}))


def test_errors_include_the_difficulty_of_questions(tables: Any):
    result = score.score(ScoreRequest.read({"forecasts": tables[0], "outcomes": tables[1], "errors": "poor"}))
    assert isinstance(result, score.ErrorsResult)
    worst = result.to_dict()["hardest"][0]
    assert 0 <= worst["difficulty"] <= 1
    assert {row["column"] for row in result.rows()} == {"source"}
    assert max(map(len, str(result).splitlines())) <= 80


def power(**fields: Any) -> compare.PowerAnalysis:
    result = compare.compare(CompareRequest.read(fields))
    assert isinstance(result, compare.PowerAnalysis)
    return result


def test_a_power_analysis_needs_a_spread(tables: Any):
    with pytest.raises(InputError, match="spread is unknown"):
        power(detect=1)
    pilot = {"forecasts": tables[0], "outcomes": tables[1], "names": ("good", "poor")}
    assert power(detect=1, **pilot).to_dict()["targets"] > 1
    assert power(detect="1,power=0.9", **pilot).targets > power(detect=1, **pilot).targets
    with pytest.raises(InputError, match="that of two forecasters, and there are 3"):
        power(detect=1, forecasts=tables[0], outcomes=tables[1])
    with pytest.raises(InputError, match="--by: has no effect with --detect"):
        power(detect=1, by="source", **pilot)


def test_without_names_all_pairs_are_compared_and_tested(tables: Any):
    fields = {"forecasts": tables[0], "outcomes": tables[1], "bootstrap": "draws=200"}
    result = compare.compare(CompareRequest.read(fields))
    assert isinstance(result, compare.CompareResult)
    assert [(p.first, p.second) for p in result.pairs] == [("good", "fair"), ("good", "poor"), ("fair", "poor")]
    assert all(pair.mcnemar is not None for pair in result.pairs)
    named = compare.compare(CompareRequest.read({**fields, "names": ("good", "poor")}))
    assert isinstance(named, compare.CompareResult)
    assert result.pairs[1].verdicts[0].diff == named.pairs[0].verdicts[0].diff, "a pair has one verdict"
    study = result.document
    accuracy = study.table("Score and accuracy").numbers("accuracy")
    gap = study.table("Right where the other is wrong").numbers("3")["1 good"]
    assert gap == pytest.approx(accuracy["good"] - accuracy["poor"])
    assert study.table("Agreement, % of targets").numbers("1")["2 fair"] > 50
    assert max(map(len, str(result).splitlines())) <= 80
    assert "Who beats whom" in result.to_html()
    against = compare.compare(CompareRequest.read({**fields, "reference": "fair"}))
    assert isinstance(against, compare.CompareResult)
    assert [(pair.first, pair.second) for pair in against.pairs] == [("good", "fair"), ("poor", "fair")]


def test_a_name_is_a_file_a_forecaster_or_a_run(tables: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path / "home"))
    path = tmp_path / "f.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in tables[0]))
    fields = {"outcomes": tables[1], "bootstrap": "draws=200"}
    result = compare.compare(CompareRequest.read({**fields, "names": (str(path), "good", "poor")}))
    assert isinstance(result, compare.CompareResult)
    assert [(pair.first, pair.second) for pair in result.pairs] == [("good", "poor")]
    with pytest.raises(InputError, match=r"'goof' is neither a file, a forecaster .* \(did you mean good\?\)"):
        compare.compare(CompareRequest.read({**fields, "names": (str(path), "goof", "poor")}))


def test_costs_of_forecasts_give_the_best_for_their_cost(tables: Any):
    dollars = {"good": 0.4, "fair": 0.1, "poor": 0.2}
    rows = [{**row, "dollars": dollars[row["forecaster"]], "seconds": 2} for row in tables[0]]
    result = score.score(request((rows, tables[1])))
    assert isinstance(result, score.ScoreResult)
    assert {name: cost.dollars for name, cost in result.table.costs.items()} == pytest.approx(dollars)
    assert "Score and cost" in result.to_html()
    assert "Score and cost" not in score.score(request(tables)).to_html()
    twice = [{**row, "trial": trial} for row in rows for trial in (1, 2)]
    both = score.score(request((twice, tables[1])))
    assert isinstance(both, score.ScoreResult)
    assert both.table.costs["good"].dollars == pytest.approx(0.8), "the trials of an answer add up"
    with pytest.raises(InputError, match="-1 is not a cost"):
        score.score(request(([{**rows[0], "dollars": -1}, *rows[1:]], tables[1])))


def test_scores_by_lead_time_come_from_dates_or_horizons(tables: Any):
    dated = [{**row, "due": "2026-01-01", "resolved_on": f"2026-0{1 + i % 2}-05"} for i, row in enumerate(tables[1])]
    result = score.score(request((tables[0], dated), by=("lead_time",)))
    assert isinstance(result, score.ScoreResult)
    groups = {entry.group["lead_time"] for entry in result.board.scores if "lead_time" in entry.group}
    assert groups == {"up to a week", "up to three months"}
    far = [{**row, "horizon": 400} for row in tables[1]]
    board = score.score(request((tables[0], far), by=("lead_time",)))
    assert isinstance(board, score.ScoreResult)
    assert {entry.group["lead_time"] for entry in board.board.scores if "lead_time" in entry.group} == {"longer"}
    with pytest.raises(InputError, match="time from asking to resolution"):
        score.score(request(tables, by=("lead_time",)))


def test_forecasts_of_unknown_targets_are_left_out_and_counted(tables: Any):
    extra = {"forecaster": "good", "question": "elsewhere", "target": "yes", "p": 0.4}
    result = score.score(request(([*tables[0], extra], tables[1])))
    assert isinstance(result, score.ScoreResult)
    assert "Left out, because the outcomes do not mention the target: 1 forecast." in result.board.notes
    assert result.board.scores == score.score(request(tables)).board.scores


def test_quantiles_and_samples_are_scored_by_crps():
    levels = (0.1, 0.5, 0.9)
    sharp, wide = (9.0, 10.0, 11.0), (0.0, 10.0, 20.0)
    quantiles = [
        {"forecaster": name, "question": "q", "level": level, "value": value}
        for name, values in (("sharp", sharp), ("wide", wide))
        for level, value in zip(levels, values, strict=True)
    ]
    outcomes = [{"question": "q", "value": 10.5}, {"question": "open", "value": None}]
    result = score.score(request((quantiles, outcomes)))
    assert isinstance(result, NumberScores)
    assert [entry.forecaster for entry in result.scores] == ["sharp", "wide"]
    assert result.scores[0].crps.estimate == pytest.approx(2 * np.mean([0.1 * 1.5, 0.5 * 0.5, 0.1 * 0.5]))
    assert result.scores[0].coverage == 1
    samples = [{"forecaster": "s", "question": "q", "sample": i, "value": v} for i, v in enumerate((10.0, 11.0))]
    assert score.score(request((samples, outcomes))).rows()[0]["crps"] == pytest.approx(0.25)
    with pytest.raises(InputError, match="is not a level"):
        score.score(request(([{**quantiles[0], "level": 1.5}], outcomes)))
    with pytest.raises(InputError, match="no forecast is about a question with a known value"):
        score.score(request(([{**quantiles[0], "question": "other"}], outcomes)))
    some = score.score(request(([*quantiles, {**quantiles[0], "question": "other"}], outcomes)))
    assert isinstance(some, NumberScores)
    assert "not in the outcomes: 1 question." in some.notes[0]


def test_numbers_with_a_range_have_metaculus_scores():
    quantiles = [
        {"forecaster": name, "question": "q", "level": level, "value": 50.0 + width * (level - 0.5)}
        for name, width in (("even", 100.0), ("half", 50.0))
        for level in (0.1, 0.5, 0.9)
    ]
    row = {"question": "q", "value": 52.0, "range_min": 0, "range_max": 100}
    result = score.score(request((quantiles, [row])))
    assert isinstance(result, NumberScores)
    by_name = {entry.forecaster: entry for entry in result.scores}
    even, half = by_name["even"], by_name["half"]
    assert even.baseline is not None
    assert half.baseline is not None
    assert half.peer is not None
    assert even.baseline.estimate == pytest.approx(0, abs=6), "as if nothing were known"
    assert half.baseline.estimate - even.baseline.estimate == pytest.approx(50 * np.log(2), abs=4)
    assert half.peer.estimate == pytest.approx(half.baseline.estimate - even.baseline.estimate)
    assert "Metaculus" in str(result)
    assert result.rows()[0]["baseline"] == max(even.baseline.estimate, half.baseline.estimate)
    with pytest.raises(InputError, match="outside its closed range 0 to 100"):
        score.score(request((quantiles, [{**row, "value": 120.0}])))
    beyond = score.score(request((quantiles, [{**row, "value": 120.0, "open_upper": "yes"}]))).rows()
    points = {entry["forecaster"]: entry["baseline"] for entry in beyond}
    assert points["half"] < 0 < points["even"], "a tenth above 90 is more than Metaculus' twentieth above 100"
    with pytest.raises(InputError, match="is not above range_min"):
        score.score(request((quantiles, [{**row, "range_max": -1}])))


def test_options_have_metaculus_scores():
    forecasts_by_name = {"sure": (0.8, 0.1, 0.1), "even": (1 / 3, 1 / 3, 1 / 3)}
    forecasts = [
        {"forecaster": name, "question": f"q{i}", "target": f"o{k}", "p": p}
        for name, options in forecasts_by_name.items()
        for i in range(3)
        for k, p in enumerate(options)
    ]
    # A question with dates has no options: its probabilities do not add up to 1.
    forecasts += [{"forecaster": "sure", "question": "dates", "target": f"o{k}", "p": 0.6} for k in range(3)]
    outcomes = [
        {"question": name, "target": f"o{k}", "outcome": int(k == 0)}
        for name in ("q0", "q1", "q2", "dates")
        for k in range(3)
    ]
    result = score.score(request((forecasts, outcomes), metrics="all"))
    options = {row["forecaster"]: row for row in result.to_dict()["options"]}
    assert {name: row["n"] for name, row in options.items()} == {"sure": 3, "even": 3}
    assert options["even"]["baseline"]["estimate"] == pytest.approx(0, abs=1e-9)
    assert options["sure"]["baseline"]["estimate"] == pytest.approx(100 * np.log(0.8 * 3) / np.log(3))
    assert options["sure"]["peer"]["estimate"] == pytest.approx(100 * np.log(0.8 * 3))
    assert "Metaculus peer" in str(result)


def test_files_are_written_by_their_suffix(tables: Any, tmp_path: Path):
    import duckdb

    result = score.score(request(tables))
    names = ("s.json", "s.csv", "s.parquet", "s.html", "s.md", "s.jsonl")
    write_outputs(result, [tmp_path / "new" / name for name in names])
    assert json.loads((tmp_path / "new" / "s.json").read_text())["schema"] == "foretell/score/3"
    with (tmp_path / "new" / "s.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["forecaster"] for row in rows} >= set(NAMES)
    stored = duckdb.sql(f"select count(*) from '{tmp_path / 'new' / 's.parquet'}'").fetchall()[0][0]
    assert stored == len(rows) == len((tmp_path / "new" / "s.jsonl").read_text().splitlines())
    with pytest.raises(InputError, match=r"known suffixes are \.json, \.csv"):
        write_outputs(result, [tmp_path / "a.json", tmp_path / "a.svg"])
    assert not (tmp_path / "a.json").exists()


def test_names_stay_distinct_and_tables_fit():
    names = [f"provider:model-with-a-long-name-{kind}-and-more-of-it" for kind in ("one", "two", "six")]
    short = distinct(names, 20)
    assert len(set(short)) == 3
    assert all(len(name) <= 20 for name in short)
    columns = [TextColumn(head="name", shrink=12), TextColumn(head="less important", drop=1), TextColumn(head="n")]
    text = text_table(columns, [(name, "x" * 40, 1) for name in names], 40)
    head, *rest = text.splitlines()
    assert "less important" not in head
    assert max(map(len, [head, *rest])) <= 40
    assert len(set(rest[:3])) == 3
    assert "less important" in " ".join(rest[3:])


def test_questions_are_sorted_by_topic(tmp_path: Path):
    file = tmp_path / "q.jsonl"
    file.write_text('{"text": "Will the ceasefire in Gaza hold?"}\n{"text": "Will bitcoin close above 200k?"}\n')
    result = asyncio.run(show_questions(DataShowRequest.read({"dataset": str(file), "topics": True})))
    assert [row["topic"] for row in result.to_dict()] == ["Geopolitics & Conflict", "Financial Markets"]
    assert "2 questions" in str(result)
    with pytest.raises(InputError, match="--model: has no effect without --topics"):
        DataShowRequest.read({"dataset": str(file), "model": "openai:x"})


def built(kind: str, source: Path, folder: Path, **fields: Any) -> list[Path]:
    request = DataBuildRequest.read({"kind": kind, "sources": (str(source),), **fields})
    return asyncio.run(data_build.build(request)).write_folder(folder)


def test_sets_are_built_and_can_be_asked(tmp_path: Path):
    from foretell.data.datasets.question_files import read_questions

    claims = tmp_path / "c.jsonl"
    claims.write_text('{"claim": "It holds.", "label": true, "published": "2025-02-01", "split": "test"}\n')
    questions, outcomes = built("claims", claims, tmp_path / "claims")
    assert len(read_questions(questions).questions) == 1
    assert ",1," in outcomes.read_text()
    with pytest.raises(InputError, match="has no questions"):
        built("claims", claims, tmp_path / "none", set={"split": "validation"})
    tasks = tmp_path / "t.jsonl"
    tasks.write_text('{"question": "Long or short?", "options": {"long": 1.3, "short": 0.7}, "cutoff": "2024-06-01"}\n')
    request = DataBuildRequest.read({"kind": "options", "sources": (str(tasks),)})
    assert asyncio.run(data_build.build(request)).to_dict()["outcomes"] == 2
    prices = tmp_path / "X.csv"
    days = np.arange("2023-01-01", "2024-06-01", dtype="M8[D]")
    prices.write_text("date,value\n" + "".join(f"{day},{100 + i}\n" for i, day in enumerate(days)))
    chosen = {"horizon": "30", "history": "100", "task": "higher-lower"}
    questions, _ = built("prices", prices, tmp_path / "prices", cutoffs=("2024-01-01",), set=chosen)
    assert [t.id for t in read_questions(questions).questions[0].targets] == ["higher", "lower"]
    with pytest.raises(InputError, match="has no questions"):
        built("prices", prices, tmp_path / "none", cutoffs=("2024-01-01",), set={**chosen, "history": "5000"})


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"kind": "prices", "sources": ("x.csv",)}, "--cutoff: is needed"),
        ({"kind": "sample", "sources": ("2025-10-26",)}, "--resolved-by: is needed"),
        ({"kind": "claims", "sources": ("a", "b")}, "SOURCE: claims are built from one source"),
        (
            {"kind": "claims", "sources": ("a",), "cutoffs": ("2024-01-01",)},
            "--cutoff: has no effect without KIND prices",
        ),
        ({"kind": "claims", "sources": ("a",), "set": {"spilt": "test"}}, r"--set spilt: .*did you mean split\?"),
        ({"kind": "claims", "sources": ("a",), "set": {"split": "train"}}, "--set split"),
        ({"kind": "options", "sources": ("a",), "set": {"seed": "1"}}, "--set seed: there is no such setting"),
    ],
)
def test_invalid_sources_of_a_set_are_named(fields: dict[str, Any], problem: str):
    with pytest.raises(InputError, match=problem):
        asyncio.run(data_build.build(DataBuildRequest.read(fields)))


def rows_of(p: dict[str, list[float]], outcomes: list[int], **columns: list[Any]) -> tuple[Any, Any]:
    forecasts = [
        {"forecaster": name, "question": f"q{i}", "target": "yes", "p": value}
        for name, values in p.items()
        for i, value in enumerate(values)
    ]
    known = [
        {
            "question": f"q{i}",
            "target": "yes",
            "outcome": outcome,
            **{name: values[i] for name, values in columns.items()},
        }
        for i, outcome in enumerate(outcomes)
    ]
    return forecasts, known


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_intervals_are_wide_with_few_questions(n: int):
    """With fewer than six clusters, percentiles of the bootstrap alone would give intervals that are far too short."""
    result = score.score(request(rows_of({"me": [0.7 + 0.05 * (i % 2) for i in range(n)]}, [1] * n)))
    assert isinstance(result, score.ScoreResult)
    own = result.board.scores[0].metrics["brier_index"]
    student = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}[n] * np.sqrt(n / (n - 1)) * own.se
    assert own.estimate - own.low == pytest.approx(student, rel=1e-3)
    assert own.high == pytest.approx(min(100.0, own.estimate + student), rel=1e-3)
    if n == 2:
        assert "Too few to tell" in str(result)


def test_an_overall_interval_is_as_uncertain_as_its_smaller_kind():
    rng = np.random.default_rng(2)
    kinds = ["market"] * 60 + ["dataset"] * 7
    p = [*rng.uniform(0.7, 0.8, 60), *rng.uniform(0.1, 0.9, 7)]
    result = score.score(request(rows_of({"me": p}, [1] * 67, kind=kinds)))
    assert isinstance(result, score.ScoreResult)
    mine = {row.group["kind"]: row.metrics["brier_index"] for row in result.board.scores if row.forecaster == "me"}
    overall, market, dataset = (mine[kind] for kind in ("overall", "market", "dataset"))
    spread = [(entry.se / 2) ** 2 for entry in (market, dataset)]
    freedom = sum(spread) ** 2 / (spread[0] ** 2 / 59 + spread[1] ** 2 / 6)
    assert overall.n_effective == 1 + int(freedom) < 10, "Satterthwaite's degrees of freedom, not 66"
    assert overall.n_clusters == 67
    single = score.score(request(rows_of({"me": p[:61]}, [1] * 61, kind=kinds[:61])))
    assert isinstance(single, score.ScoreResult)
    (own,) = (entry for entry in single.board.group(kind="overall") if entry.forecaster == "me")
    assert np.isnan(own.metrics["brier_index"].low), "nobody knows how far one question is off"


def test_details_are_those_of_the_board_also_for_two_kinds(tables: Any):
    kinds = [dict(row, kind="market" if i < 15 else "dataset") for i, row in enumerate(tables[1])]
    result = score.score(request((tables[0], kinds), metrics="all"))
    assert isinstance(result, score.ScoreResult)
    board = {entry.forecaster: entry.metrics for entry in result.board.group(kind="overall")}
    for detail in result.details:
        assert (detail.peer, detail.adjusted) == (
            board[detail.forecaster]["peer"],
            board[detail.forecaster]["adjusted_brier"],
        )


def test_a_group_of_few_clusters_is_marked_in_every_table():
    kinds = ["market"] * 40 + ["dataset"] * 8
    result = score.score(request(rows_of({"me": [0.7] * 40 + [0.6, 0.4] * 4}, [1] * 48, kind=kinds)))
    assert isinstance(result, score.ScoreResult)
    printed = Console(width=120, record=True, file=StringIO())
    result.print(printed)
    mark = "only 8 clusters: take intervals with care"
    for text in (printed.export_text(), result.to_markdown(), result.to_html()):
        assert mark in text
        assert "only 40 clusters" not in text


def test_json_names_every_p_value_for_what_it_is(tables: Any):
    result = score.score(request(tables)).to_dict()["verdicts"][0]
    assert {"p", "p_corrected"} == {name for name in result if name.startswith("p")}


def test_a_forecast_of_one_half_takes_no_side_in_mcnemars_test():
    forecasts, outcomes = rows_of({"me": [0.5, 0.5, 0.9, 0.9], "you": [0.9, 0.1, 0.5, 0.1]}, [0, 0, 1, 1])
    result = compare.compare(CompareRequest.read({
        "names": ("me", "you"), "forecasts": forecasts, "outcomes": outcomes, "metric": "accuracy",
        "bootstrap": "draws=100",
    }))  # fmt: skip
    test = result.pairs[0].mcnemar
    assert test is not None
    assert (test.n, test.only_a, test.only_b, test.left_out) == (1, 1, 0, 3)
    printed = Console(width=120, record=True, file=StringIO())
    result.print(printed)
    assert "3 targets left out" in " ".join(printed.export_text().split())


def test_difficulty_is_the_error_of_a_price_unless_it_is_that_of_a_dataset():
    forecasts, outcomes = rows_of({"a": [0.9, 0.2, 0.6], "b": [0.7, 0.4, 0.5]}, [1, 0, 1], price=[0.8, 0.1, None])
    plain = score.score(ScoreRequest.read({"errors": "a", "forecasts": forecasts, "outcomes": outcomes}))
    assert isinstance(plain, score.ErrorsResult)
    hard = list(plain.difficulty.values())
    assert hard[:2] == pytest.approx([0.04, 0.01])
    board = score.score(request((forecasts, outcomes), metrics="all"))
    assert isinstance(board, score.ScoreResult)
    rows = board.table
    assert rows.difficulty.tolist() == pytest.approx(hard)
    assert (rows.difficulty - rows.anchored_difficulty).std() == pytest.approx(0)
    datasets = [{**row, "kind": "dataset"} for row in outcomes]
    other = score.score(ScoreRequest.read({"errors": "a", "forecasts": forecasts, "outcomes": datasets}))
    assert isinstance(other, score.ErrorsResult)
    assert list(other.difficulty.values())[:2] != pytest.approx([0.04, 0.01])


def test_files_of_comparisons_hold_two_sided_and_corrected_p_values(tables: Any):
    result = compare.compare(CompareRequest.read({
        "names": (*NAMES[1:], "good"), "forecasts": tables[0], "outcomes": tables[1], "by": "source",
        "bootstrap": "draws=200",
    }))  # fmt: skip
    rows = [row for row in result.rows() if row.get("kind") == "overall"]
    assert [row["p"] for row in rows] == [pair.verdicts[0].p for pair in result.pairs]
    assert all(row["p_corrected"] >= row["p"] for row in rows)
    assert result.pairs[0].rows()[0]["p"] == rows[0]["p"], "the table in Python is the same"


def test_a_difference_of_nothing_but_rounding_has_no_star():
    p = [0.5] * 20 + [0.9] * 10
    board = score.score(request(rows_of({"half": [0.5] * 30, "me": p}, [1] * 20 + [1, 0] * 5), reference="half"))
    assert isinstance(board, score.ScoreResult)
    for verdict in board.board.verdicts:
        assert not verdict.stars or verdict.low > 0 or verdict.high < 0


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"detect": 0.0, "sd": 0.1}, "gain of zero"),
        ({"detect": float("nan"), "sd": 0.1}, "finite"),
        ({"detect": 1.0, "sd": float("inf")}, "finite"),
        ({"detect": 80.0, "sd": 0.1}, "cannot exceed 100"),
        ({"detect": 1.0}, "the spread is unknown"),
    ],
)
def test_invalid_power_analyses_are_refused_in_one_line(fields: dict[str, Any], problem: str):
    with pytest.raises(InputError, match=problem):
        power(**fields)


def test_a_power_analysis_counts_shared_days_and_kinds_as_a_comparison_does():
    rng = np.random.default_rng(3)
    days = [f"2026-01-{1 + i % 12:02}" for i in range(240)]
    shock = dict(zip(sorted(set(days)), rng.uniform(-0.3, 0.3, 12), strict=True))
    outcomes = [1] * 240
    p = {"a": [0.6 + shock[day] for day in days], "b": [0.6] * 240}
    request_of: dict[str, Any] = {"detect": 1.0, "names": ("a", "b")}
    forecasts, known = rows_of(p, outcomes)
    plain = power(**request_of, forecasts=forecasts, outcomes=known)
    dated = rows_of(p, outcomes, resolved_on=days)[1]
    shared = power(**request_of, forecasts=forecasts, outcomes=dated)
    assert plain.design_effect == pytest.approx(1.0)
    assert shared.design_effect == pytest.approx(240 / 12, rel=0.2), "all targets of a day move together"
    # Different means between kinds are not spread, because kinds are not sampled.
    kinds = ["market"] * 120 + ["dataset"] * 120
    steady = {"a": [0.7, 0.72] * 60 + [0.5, 0.52] * 60, "b": [0.6] * 240}
    apart = rows_of(steady, outcomes, kind=kinds)
    planned = power(**request_of, forecasts=apart[0], outcomes=apart[1])
    assert planned.sd < 0.02


HEAD = b"forecaster,question,target,p\n"
OBJECT = b'{"forecaster": "me", "question": "q0", "target": "yes", "p": 0.7}\n'


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        (".csv", b"forecaster,question,target,p,p\nme,q0,yes,0.7,0.3\n", ", column p: column 'p' appears twice"),
        (".csv", HEAD + b"Jos\xe9,q0,yes,0.7\n", ": line 2 is not UTF-8 at byte 4 (save it"),
        (".csv", HEAD + b"me,q0,yes,\n", ", row 1, column p: the value is missing"),
        (".csv", HEAD + b"me,q0,yes,0.7\nme,q1,0.7\n", ", row 2: the row has 3 values and the header 4"),
        (".csv", HEAD + b'me,q0,yes,0.7\nme,"q1,yes,0.7\n', ", row 2: a quotation mark is never closed"),
        (".csv", HEAD + b"me,q0,yes,0.7\nme,q\0,yes,0.7\n", ": line 3 contains a NUL byte"),
        (".csv", HEAD.decode().encode("utf-16"), ": is not UTF-8 but UTF-16"),
        (".csv.gz", HEAD, ": is not a complete gzip file"),
        (".csv.gz", gzip.compress(HEAD + b"me,q0,yes,0.7\n", mtime=0)[:-12], ": is not a complete gzip file"),
        (".tsv", HEAD.replace(b",", b"\t") + b"me\tq0\t0.7\n", ", row 1: the row has 3 values and the header 4"),
        (".tsv", HEAD + b"me,q0,yes,0.7\n", ": has no tabs"),
        (".jsonl", OBJECT + OBJECT[:-9], ", row 2: is not JSON: "),
        (".jsonl.gz", gzip.compress(OBJECT + OBJECT[:-9], mtime=0), ", row 2: is not JSON: "),
        (".jsonl", OBJECT + b"\n" + OBJECT.replace(b"0.7", b"7"), ", row 3, column p: 7 is outside [0, 1]"),
        (".jsonl", OBJECT + b"\n" + OBJECT, ", row 3, column target: repeats row 1"),
        (".jsonl", b"[" * 100_000, ", row 1: is not JSON that can be read: it is nested too deeply"),
        (".jsonl", b"\xef\xbb\xbf" + OBJECT + OBJECT[:-9], ", row 2: is not JSON: "),
        (".jsonl", OBJECT.replace(b'"p"', b'"target"'), ", row 1, column target: appears twice"),
        (".jsonl", OBJECT.replace(b"me", rb"\ud83d"), ", row 1, column forecaster: contains half a character"),
        (".parquet", b"PAR1 and no more", ": is not a complete Parquet file"),
        (".json", b"[]", ": the table has no rows"),
        (".xlsx", b"PK", ": cannot read .xlsx (use .csv"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_table_that_cannot_be_read_is_refused_with_its_place(tmp_path: Path, name: str, content: bytes, problem: str):
    path = tmp_path / f"f{name}"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        score.score(request((path, [{"question": "q0", "target": "yes", "outcome": 1}])))
    assert str(caught.value).startswith(f"{path}{problem}")


@pytest.mark.parametrize("source", [{"a": 1}, object(), iter(()), []])
def test_values_that_are_not_tables_are_refused_in_one_line(source: Any):
    with pytest.raises(InputError, match=r"as a table|no rows"):
        score.score(request((source, [{"question": "q0", "target": "yes", "outcome": 1}])))


def test_a_yes_no_table_need_not_name_its_target() -> None:
    board = foretell.score(
        [{"forecaster": "me", "question": "rain", "p": 0.7}], [{"question": "rain", "outcome": 1}], baselines=False
    )
    assert board.scores[0].metrics["brier"].estimate == pytest.approx(0.09)
    by_source = foretell.score(
        [{"forecaster": "me", "question": "rain", "p": 0.7, "outcome": 1, "source": "own"}], by="source", metrics="peer"
    )
    assert {"source": "own"} in [dict(entry.group) for entry in by_source.scores]
    with pytest.raises(InputError, match="did you mean 'targt'"):
        foretell.score([{"forecaster": "me", "question": "rain", "targt": "yes", "p": 0.7, "outcome": 1}])
    with pytest.raises(InputError, match="cannot read dict as a table"):
        foretell.score({"rain": 0.7}, {"rain": 1})
    with pytest.raises(InputError, match="forecasts: the table has no rows"):
        foretell.score([], [])


def test_python_functions_have_signatures_docs_and_ordinary_errors() -> None:
    assert {"lazy_imports", "interface", "TYPE_CHECKING"}.isdisjoint(dir(foretell))
    assert foretell.ask.__name__ == "ask"
    assert "    closes: When the answer will be known." in (foretell.ask.__doc__ or "")
    with pytest.raises(TypeError, match=r"ask\(\) got an unexpected keyword argument 'modle'; did you mean 'model'"):
        foretell.ask("Will it rain?", modle="none")  # pyright: ignore[reportCallIssue]
    answer = foretell.ask("Will it rain?", closes=date(2099, 1, 1), price=0.4, model="none")
    assert repr(answer) == str(answer)
    with pytest.raises(InputError, match="field search: has no effect without `model`"):
        foretell.ask("Will it rain?", model="none", search="local")
    with pytest.raises(InputError, match="field model: should be text or a function"):
        foretell.ask("Will it rain?", model=3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="'Will it rain\\?' is not a Question"):
        foretell.backtest("prior", ["Will it rain?"])  # pyright: ignore[reportArgumentType]


def test_a_function_that_takes_the_wrong_arguments_is_refused_before_anything_is_asked() -> None:
    def three(question: Any, context: Any, more: Any) -> float:
        raise AssertionError("it was called")

    for wrong in (three, lambda: 0.5):
        with pytest.raises(InputError, match=r"cannot be a forecaster .it takes the question, or the question and"):
            foretell.backtest(wrong, "demo")
        with pytest.raises(InputError, match=r"cannot be a model .it takes the prompt"):
            foretell.ask("Will it rain?", model=wrong)


def test_python_errors_name_parameters_instead_of_flags() -> None:
    with pytest.raises(InputError, match=r"^field closes: 2020-01-01 is not after"):
        foretell.ask("Will it rain?", closes="2020-01-01", model="none")
    with pytest.raises(InputError, match=r"^field question: the question has no words"):
        foretell.ask("123", model="none")
    with pytest.raises(InputError, match=r"give `runs`; `foretell\.list_runs\(\)` lists them"):
        foretell.study("trajectories")
    answer = foretell.ask("Will it rain?", model="none")
    assert "because the network is switched off" in " ".join(answer.notes)
    assert "--" not in str(answer)
