"""Notes on what a table leaves open: facts that differ between rows, columns not read, groups without a metric."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foretell
from foretell.operations.compare import compare
from foretell.operations.requests.scoring import CompareRequest, ScoreRequest
from foretell.operations.score import score
from foretell.operations.score_numbers import NumberScores
from foretell.questions.errors import InputError
from foretell.scoring.join import read_table
from foretell.scoring.score import ScoringOptions, accuracies, compare_pair, score_table


def rows(forecaster: str, **facts: Any) -> list[dict[str, Any]]:
    return [
        {"forecaster": forecaster, "question": f"q{n}", "p": 0.3 + 0.02 * n, "outcome": n % 2, "price": 0.5, **facts}
        for n in range(12)
    ]


def with_other(table: list[dict[str, Any]], place: int, **facts: Any) -> list[dict[str, Any]]:
    return [{**row, **facts} if i == place else row for i, row in enumerate(table)]


def test_rows_that_differ_about_one_target_are_named() -> None:
    first, second = rows("a"), with_other(with_other(rows("b"), 3, price=0.9), 5, price=0.1)
    notes = read_table([*first, *second]).notes
    assert notes == (
        "Rows about one target differ in price: q3 has 0.5, which is used, and 0.9; so do those about 1 more target.",
    )
    assert foretell.compare([*first, *second], None, "a", "b").notes == notes
    assert notes[0] in str(foretell.score([*first, *second]))
    assert read_table([*first, *rows("b")]).notes == ()
    assert read_table([*first, *second]).targets.price[3] == 0.5


def test_tables_that_differ_about_one_target_are_named_by_every_command() -> None:
    tables = {"a": rows("a"), "b": with_other(rows("b"), 3, price=0.9, outcome=0)}
    notes = {
        "Rows about one target differ in outcome: q3 has 0, which is used, and 1.",
        "Rows about one target differ in price: q3 has 0.5, which is used, and 0.9.",
    }
    board = score(ScoreRequest(forecasts=tables))
    assert notes <= set(board.board.notes)
    compared = compare(CompareRequest(forecasts=tables, names=["a", "b"]))
    assert notes <= set(compared.to_dict()["notes"])


def test_a_fact_that_only_one_of_several_tables_states_is_used() -> None:
    bare = [{name: value for name, value in row.items() if name != "price"} for row in rows("a")]
    board = score(ScoreRequest(forecasts={"a": bare, "b": rows("b")})).board
    assert {"market price"} <= {row.forecaster for row in board.scores}


def test_prices_in_the_table_of_forecasts_are_not_read_beside_outcomes() -> None:
    outcomes = [{"question": row["question"], "outcome": row["outcome"]} for row in rows("a")]
    forecasts = [{name: row[name] for name in ("forecaster", "question", "p", "price")} for row in rows("a")]
    (note,) = read_table(forecasts, outcomes).notes
    assert note == "Not used: price in the table of forecasts, because the table of outcomes is read for it."


def test_results_have_the_schema_and_the_verdict_of_the_headline_in_json() -> None:
    tables = {"a": rows("a"), "b": [{**row, "p": 0.9 - row["p"]} for row in rows("b")]}
    for reference in (None, "a", "b", "always 0.5"):
        scored = score(ScoreRequest(forecasts=tables, reference=reference))
        data = scored.to_dict()
        assert data["schema"] == "foretell/score/3"
        assert data["lead"]["sentence"] in " ".join(str(scored).split())
    pair = compare(CompareRequest(forecasts=tables, names=("a", "b"))).to_dict()
    several = compare(CompareRequest(forecasts=tables | {"c": rows("c")}, names=())).to_dict()
    assert {pair["schema"], several["schema"], *(one["schema"] for one in several["pairs"])} == {"foretell/compare/1"}
    assert (pair["first"], pair["second"]) == ("a", "b")


def half_priced() -> list[dict[str, Any]]:
    table = [*rows("a"), *[{**row, "p": 0.9 - row["p"]} for row in rows("b")]]
    return [
        {**row, "price": row["price"] if int(row["question"][1:]) < 6 else None, "half": int(row["question"][1:]) // 6}
        for row in table
    ]


def test_groups_that_alone_have_a_metric_are_named() -> None:
    board = score_table(read_table(half_priced()), ScoringOptions(by=("half",)))
    assert "Computed only for Overall, half 0: Return, Sharpe." in board.notes
    kinds = [{**row, "kind": "dataset" if row["price"] is None else "market"} for row in half_priced()]
    board = score_table(read_table(kinds), ScoringOptions(metric="return"))
    assert "Computed only for Market: Return, Sharpe." in board.notes
    assert not any("Computed only" in note for note in score_table(read_table(rows("a"))).notes)


def test_a_comparison_names_the_groups_without_the_metric_and_counts_what_has_it() -> None:
    table = read_table(half_priced())
    pair = compare_pair(table, "a", "b", ScoringOptions(metric="return", by=("half",)))
    assert [verdict.n for verdict in pair.verdicts] == [6, 6]
    assert pair.verdicts[0].says == "too few to tell"  # Six of the twelve targets have no price.
    assert pair.notes == (
        "Not compared on half 1: no Return there.",
        "6 of the 12 targets that both answered have a Return.",
    )
    kinds = [{**row, "kind": "dataset" if row["price"] is None else "market"} for row in half_priced()]
    pair = compare_pair(read_table(kinds), "a", "b", ScoringOptions(metric="return"))
    assert pair.sentence.startswith("Market only: Too few to tell a from b")
    assert pair.notes[0] == "Not compared on Overall, Dataset: no Return there."


def test_the_accuracy_of_a_comparison_is_that_of_score() -> None:
    rng = np.random.default_rng(4)
    table = [
        {"forecaster": name, "question": f"q{n}", "p": round(float(rng.uniform()), 1), "outcome": int(n % 3 == 0)}
        | {"weight": n % 4, "kind": "market" if n < 10 else "dataset"}
        for name in ("a", "b", "c")
        for n in range(40)
        if name != "c" or n % 5
    ]
    compared = compare(CompareRequest(forecasts=table, names=[]))
    shown = next(part for part in compared.document.tables if part.title == "Score and accuracy")
    at = [column.label for column in shown.columns].index("accuracy")
    joined = read_table(table)
    on_board = score_table(joined, ScoringOptions(metric="accuracy")).group(kind="overall")
    scores = {score.forecaster: 100 * score.metrics["accuracy"].estimate for score in on_board}
    for name, values in ((row.name, row.values) for row in shown.rows):
        assert values[at] == pytest.approx(scores[name])
        kinds = []
        for kind in ("market", "dataset"):
            mine = [row for row in table if row["forecaster"] == name and row["kind"] == kind]
            right = [0.5 if row["p"] == 0.5 else (row["p"] > 0.5) == row["outcome"] for row in mine]
            kinds.append(np.average(right, weights=[row["weight"] for row in mine]))
        assert values[at] == pytest.approx(100 * np.mean(kinds))
    assert accuracies(joined).keys() == {"a", "b", "c"}
    # Targets without weight count nowhere, also not in McNemar's test.
    (pair,) = compare(CompareRequest(forecasts=[r for r in table if r["forecaster"] != "c"], names=["a", "b"])).pairs
    test = compare_pair(joined, "a", "b", ScoringOptions(metric="accuracy")).mcnemar
    assert pair.verdicts
    assert test is not None
    assert test.n + test.left_out == sum(row["weight"] > 0 for row in table if row["forecaster"] == "a")


QUANTILES = [{"question": f"n{i}", "level": q, "value": i + 10 * q} for i in range(5) for q in (0.1, 0.5, 0.9)]
VALUES = [{"question": f"n{i}", "value": i + 3} for i in range(5)]


@pytest.mark.parametrize("column", ["level", "quantile"])
def test_quantiles_need_no_column_of_forecasters(column: str) -> None:
    table = [{column: row["level"], **{name: row[name] for name in ("question", "value")}} for row in QUANTILES]
    scores = score(ScoreRequest(forecasts=table, outcomes=VALUES))
    assert isinstance(scores, NumberScores)
    (row,) = scores.scores
    assert (row.forecaster, row.n) == ("forecast", 5)
    assert row.crps.estimate == pytest.approx(1.2)  # Twice the mean of 0.1·2, 0.5·2 and 0.1·6.
    assert scores.to_dict()["notes"] == ["Read 15 rows: one forecaster, called forecast."]


def test_a_column_for_each_quantile_is_refused_with_what_to_write(tmp_path: Path) -> None:
    wide = tmp_path / "wide.csv"
    wide.write_text("question,q10,q50,q90,outcome\nn1,1,2,3,2\nn2,2,3,4,3\n")
    with pytest.raises(InputError, match=r"columns q10, q50, q90 are quantiles.*level 0\.10 for q10"):
        read_table(wide)


def test_a_small_difference_keeps_its_sign() -> None:
    table = [
        {"forecaster": name, "question": f"q{n}", "p": 0.5 + shift * (1 if n % 2 else -1), "outcome": n % 2}
        for name, shift in (("a", 0.0003), ("b", 0.0001))
        for n in range(60)
    ]
    pair = compare_pair(read_table(table), "b", "a")
    (verdict,) = pair.verdicts
    assert verdict.sentence == (
        "b and a do not differ by an amount that matters (1 point): the first is behind by 0.02 points of Brier index "
        "(50.01 and 50.03; 95 % interval 0.02 to 0.02) on the 60 targets both answered."
    )
    assert replace(verdict, low=-0.01, high=0.01).sentence.count("0.0 points") == 1
