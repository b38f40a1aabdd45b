"""What commands do with tables, through requests: numbers, corrections, difficulty, files, topics and built sets."""

import asyncio
import csv
import json
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foretell
from foretell.operations import (
    ClaimsRequest,
    CompareRequest,
    ErrorsRequest,
    FinancialTasksRequest,
    NumberScores,
    OptionTasksRequest,
    PlanRequest,
    QuestionsRequest,
    ScoreRequest,
    check_questions,
    data,
    score,
)
from foretell.questions import InputError
from foretell.report import TextColumn, distinct, text_table, write_outputs

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
    return ScoreRequest.read({"forecasts": tables[0], "outcomes": tables[1], "draws": 200, **more})


def test_details_agree_with_the_board(tables: Any):
    found = score.score(request(tables, metrics="all", anchors=False))
    assert isinstance(found, score.ScoreResult)
    details = {one.forecaster: one for one in found.details}
    assert [one.forecaster for one in found.details] == list(NAMES)
    # What one forecaster wins over its peers the others lose.
    assert sum(one.peer.estimate for one in found.details) == pytest.approx(0, abs=1e-9)
    brier = {one.forecaster: one.metrics["brier"].estimate for one in found.board.scores}
    gaps = [details[name].adjusted.estimate - brier[name] for name in NAMES]
    assert np.ptp(gaps) < 1e-9, "everybody answered everything: difficulty moves all alike"
    assert details["poor"].slope < details["good"].slope
    assert details["good"].reliability < details["poor"].reliability
    assert "Peer" in str(found)
    assert json.loads(found.to_json())["details"][0]["forecaster"] == "good"


def test_hard_questions_score_worse(tables: Any):
    found = score.score(request(tables, by=("difficulty",), anchors=False))
    assert isinstance(found, score.ScoreResult)
    of = {
        one.group["difficulty"]: one.metrics["brier"].estimate
        for one in found.board.scores
        if one.forecaster == "fair" and "difficulty" in one.group
    }
    assert of["easy"] < of["medium"] < of["hard"]


def test_several_are_compared_with_the_last_and_corrected(tables: Any):
    common = {"forecasts": tables[0], "outcomes": tables[1], "draws": 200, "metric": "brier", "forecasters": NAMES}
    plain = score.compare(CompareRequest.read({**common, "correction": "none"}))
    holm = score.compare(CompareRequest.read(common))
    assert plain.reference == "poor"
    assert plain.corrected == plain.p_values == holm.p_values
    assert holm.corrected[0] == pytest.approx(min(1, 2 * min(holm.p_values)))
    assert "corrected for 2 comparisons: holm" in str(holm)
    assert [pair["first"] for pair in holm.to_dict()["pairs"]] == ["good", "fair"]
    other = score.compare(CompareRequest.read({**common, "reference": "good"}))
    assert [pair.first for pair in other.pairs] == ["fair", "poor"]
    with pytest.raises(InputError, match="nobody to compare with"):
        score.compare(CompareRequest.read({**common, "forecasters": ("good",)}))


def test_errors_say_how_hard_a_question_was(tables: Any):
    found = score.errors(ErrorsRequest.read({"forecasts": tables[0], "outcomes": tables[1], "forecaster": "poor"}))
    worst = found.to_dict()["hardest"][0]
    assert 0 <= worst["difficulty"] <= 1
    assert {row["column"] for row in found.rows()} == {"source"}
    assert max(map(len, str(found).splitlines())) <= 80


def test_a_plan_needs_a_spread(tables: Any):
    with pytest.raises(InputError, match="spread is unknown"):
        score.plan(PlanRequest.read({"gain": 1}))
    pilot = {"forecasts": tables[0], "outcomes": tables[1], "pilot": ("good", "poor"), "gain": 1}
    assert score.plan(PlanRequest.read(pilot)).to_dict()["targets"] > 1


def test_quantiles_and_samples_are_scored_by_crps():
    levels = (0.1, 0.5, 0.9)
    sharp, wide = (9.0, 10.0, 11.0), (0.0, 10.0, 20.0)
    quantiles = [
        {"forecaster": name, "question": "q", "level": level, "value": value}
        for name, values in (("sharp", sharp), ("wide", wide))
        for level, value in zip(levels, values, strict=True)
    ]
    outcomes = [{"question": "q", "value": 10.5}, {"question": "open", "value": None}]
    found = score.score(request((quantiles, outcomes)))
    assert isinstance(found, NumberScores)
    assert [one.forecaster for one in found.scores] == ["sharp", "wide"]
    assert found.scores[0].crps.estimate == pytest.approx(2 * np.mean([0.1 * 1.5, 0.5 * 0.5, 0.1 * 0.5]))
    assert found.scores[0].coverage == 1
    samples = [{"forecaster": "s", "question": "q", "sample": i, "value": v} for i, v in enumerate((10.0, 11.0))]
    assert score.score(request((samples, outcomes))).rows()[0]["crps"] == pytest.approx(0.25)
    with pytest.raises(InputError, match="is not a level"):
        score.score(request(([{**quantiles[0], "level": 1.5}], outcomes)))
    with pytest.raises(InputError, match="has no row in the outcomes"):
        score.score(request(([{**quantiles[0], "question": "other"}], outcomes)))


def test_numbers_with_a_range_have_metaculus_scores():
    quantiles = [
        {"forecaster": name, "question": "q", "level": level, "value": 50.0 + width * (level - 0.5)}
        for name, width in (("even", 100.0), ("half", 50.0))
        for level in (0.1, 0.5, 0.9)
    ]
    row = {"question": "q", "value": 52.0, "range_min": 0, "range_max": 100}
    found = score.score(request((quantiles, [row])))
    assert isinstance(found, NumberScores)
    by_name = {one.forecaster: one for one in found.scores}
    even, half = by_name["even"], by_name["half"]
    assert even.baseline is not None
    assert half.baseline is not None
    assert half.peer is not None
    assert even.baseline.estimate == pytest.approx(0, abs=6), "as if nothing were known"
    assert half.baseline.estimate - even.baseline.estimate == pytest.approx(50 * np.log(2), abs=4)
    assert half.peer.estimate == pytest.approx(half.baseline.estimate - even.baseline.estimate)
    assert "Metaculus" in str(found)
    assert found.rows()[0]["baseline"] == max(even.baseline.estimate, half.baseline.estimate)
    with pytest.raises(InputError, match="outside its closed range 0 to 100"):
        score.score(request((quantiles, [{**row, "value": 120.0}])))
    beyond = score.score(request((quantiles, [{**row, "value": 120.0, "open_upper": "yes"}]))).rows()
    points = {one["forecaster"]: one["baseline"] for one in beyond}
    assert points["half"] < 0 < points["even"], "a tenth above 90 is more than Metaculus' twentieth above 100"
    with pytest.raises(InputError, match="ends no range"):
        score.score(request((quantiles, [{**row, "range_max": -1}])))


def test_options_have_metaculus_scores():
    said = {"sure": (0.8, 0.1, 0.1), "even": (1 / 3, 1 / 3, 1 / 3)}
    forecasts = [
        {"forecaster": name, "question": f"q{i}", "target": f"o{k}", "p": p}
        for name, options in said.items()
        for i in range(3)
        for k, p in enumerate(options)
    ]
    # A question with dates is none with options: what is said of them does not add up to one.
    forecasts += [{"forecaster": "sure", "question": "dates", "target": f"o{k}", "p": 0.6} for k in range(3)]
    outcomes = [
        {"question": name, "target": f"o{k}", "outcome": int(k == 0)}
        for name in ("q0", "q1", "q2", "dates")
        for k in range(3)
    ]
    found = score.score(request((forecasts, outcomes), metrics="all"))
    options = {row["forecaster"]: row for row in found.to_dict()["options"]}
    assert {name: row["n"] for name, row in options.items()} == {"sure": 3, "even": 3}
    assert options["even"]["baseline"]["estimate"] == pytest.approx(0, abs=1e-9)
    assert options["sure"]["baseline"]["estimate"] == pytest.approx(100 * np.log(0.8 * 3) / np.log(3))
    assert options["sure"]["peer"]["estimate"] == pytest.approx(100 * np.log(0.8 * 3))
    assert "Metaculus peer" in str(found)


def test_files_are_written_by_their_suffix(tables: Any, tmp_path: Path):
    import duckdb

    found = score.score(request(tables))
    names = ("s.json", "s.csv", "s.parquet", "s.html", "s.md", "s.jsonl")
    write_outputs(found, [tmp_path / "new" / name for name in names])
    assert json.loads((tmp_path / "new" / "s.json").read_text())["schema"] == "foretell/score/1"
    with (tmp_path / "new" / "s.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["forecaster"] for row in rows} >= set(NAMES)
    stored = duckdb.sql(f"select count(*) from '{tmp_path / 'new' / 's.parquet'}'").fetchall()[0][0]
    assert stored == len(rows) == len((tmp_path / "new" / "s.jsonl").read_text().splitlines())
    with pytest.raises(InputError, match=r"known suffixes are \.json, \.csv"):
        write_outputs(found, [tmp_path / "a.json", tmp_path / "a.svg"])
    assert not (tmp_path / "a.json").exists()


def test_names_stay_distinct_and_tables_fit():
    names = [f"provider:model-with-a-long-name-{kind}-and-more-of-it" for kind in ("one", "two", "six")]
    short = distinct(names, 20)
    assert len(set(short)) == 3
    assert all(len(name) <= 20 for name in short)
    columns = [TextColumn(head="name", shrink=12), TextColumn(head="less important", drop=1), TextColumn(head="n")]
    text = text_table(columns, [(name, "x" * 40, 1) for name in names], 40)
    assert "less important" not in text
    assert max(map(len, text.splitlines())) <= 40
    assert len(set(text.splitlines())) == 4


def test_questions_are_sorted_by_topic(tmp_path: Path):
    file = tmp_path / "q.jsonl"
    file.write_text('{"text": "Will the ceasefire in Gaza hold?"}\n{"text": "Will bitcoin close above 200k?"}\n')
    request = QuestionsRequest.read({"dataset": str(file), "topics": True, "as_of": "2026-01-01"})
    found = asyncio.run(check_questions(request))
    assert [row["topic"] for row in found.rows()] == ["Geopolitics & Conflict", "Financial Markets"]
    assert "2 questions" in str(found)
    with pytest.raises(InputError, match="add --topics"):
        asyncio.run(check_questions(QuestionsRequest.read({"dataset": str(file), "model": "openai:x"})))


def test_sets_are_built_and_can_be_asked(tmp_path: Path):
    from foretell.data.datasets import read_questions

    claims = tmp_path / "c.jsonl"
    claims.write_text('{"claim": "It holds.", "label": true, "published": "2025-02-01"}\n')
    built = data.build_claims(ClaimsRequest.read({"source": claims, "folder": tmp_path / "claims"}))
    assert len(read_questions(built.files[0]).questions) == 1
    assert ",1," in built.files[1].read_text()
    tasks = tmp_path / "t.jsonl"
    tasks.write_text('{"question": "Long or short?", "options": {"long": 1.3, "short": 0.7}, "cutoff": "2024-06-01"}\n')
    built = data.build_options(OptionTasksRequest.read({"source": tasks, "folder": tmp_path / "options"}))
    assert built.to_dict()["outcomes"] == 2
    prices = tmp_path / "X.csv"
    days = np.arange("2023-01-01", "2024-06-01", dtype="M8[D]")
    prices.write_text("date,value\n" + "".join(f"{day},{100 + i}\n" for i, day in enumerate(days)))
    asked = {
        "sources": (str(prices),),
        "cutoffs": ("2024-01-01",),
        "horizon": 30,
        "history": 100,
        "folder": tmp_path / "fin",
    }
    built = asyncio.run(data.build_financial(FinancialTasksRequest.read({**asked, "kind": "higher-lower"})))
    assert [t.id for t in read_questions(built.files[0]).questions[0].targets] == ["higher", "lower"]
    with pytest.raises(InputError, match="holds no question"):
        asyncio.run(data.build_financial(FinancialTasksRequest.read({**asked, "history": 5000})))


def test_a_yes_no_table_need_not_name_its_target() -> None:
    board = foretell.score(
        [{"forecaster": "me", "question": "rain", "p": 0.7}], [{"question": "rain", "outcome": 1}], anchors=False
    )
    assert board.scores[0].metrics["brier"].estimate == pytest.approx(0.09)
    with pytest.raises(InputError, match="did you mean 'targt'"):
        foretell.score([{"forecaster": "me", "question": "rain", "targt": "yes", "p": 0.7, "outcome": 1}])
    with pytest.raises(InputError, match="a dict is not a table"):
        foretell.score({"rain": 0.7}, {"rain": 1})
    with pytest.raises(InputError, match="forecasts: the table has no rows"):
        foretell.score([], [])


def test_python_calls_read_as_in_any_library() -> None:
    assert {"HOMES", "offer", "interface"}.isdisjoint(dir(foretell))
    assert foretell.ask.__name__ == "ask"
    assert "    closes: When the answer will be known." in (foretell.ask.__doc__ or "")
    with pytest.raises(TypeError, match=r"ask\(\) got an unexpected keyword argument 'modle'; did you mean 'model'"):
        foretell.ask("Will it rain?", modle="none")  # pyright: ignore[reportCallIssue]
    answer = foretell.ask("Will it rain?", closes=date(2099, 1, 1), price=0.4, model="none", search="local")
    assert repr(answer) == str(answer)
    with pytest.raises(InputError, match="field model: should be a valid string or callable"):
        foretell.ask("Will it rain?", model=3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="'Will it rain\\?' is not a Question"):
        foretell.backtest("prior", ["Will it rain?"])  # pyright: ignore[reportArgumentType]
