"""The BLF paper's tranches A and B, drawn again from the published rounds, question by question and in order.

Resolution files are rewritten in place. Some outcomes were filled in after the paper drew its tranches (2026-04-10)
for days before it, so the pool of today's files is larger than the paper's; those ids are named here.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path

import duckdb
import pytest

from foretell.data.datasets import QuestionSet, TranchePlan, build_tranche, read_rounds

pytestmark = pytest.mark.shared_data

A, B = "2025-10-26", "2025-11-09"
STATION = "dbnomics/meteofrance_TEMPERATURE_celsius.{}.D"
LATE_STATIONS = ("07591", "61968", "61970", "61972", "61976", "61996", "61997", "78894", "78897", "81401")
FILLED_IN_LATER = {
    A: frozenset({STATION.format("78897")}),
    B: frozenset({"manifold/l6pDOuXNGWyIkjcJUEEj", "metaculus/24789", *map(STATION.format, LATE_STATIONS)}),
}
ORDER = {
    A: "22543b929dba250d7444389f137301b3c38f44c1396b8bc42da310bb0826a898",
    B: "0e3a52a8d6ee414848cc208bc13987f29be3ec054489183b0f964f9053f9dae5",
}
"""SHA-256 of the '<source>/<id>' lines of the study's own indices (data/exams/tranche-{a,b}/indices.json)."""
UNCHANGED = {
    A: {"acled", "fred", "wikipedia", "yfinance", "infer", "manifold", "metaculus", "polymarket"},
    B: {"acled", "fred", "wikipedia", "yfinance", "infer", "polymarket"},
}
"""Sources whose pool is today what it was then."""


@cache
def rounds(root: Path) -> QuestionSet:
    return read_rounds(root / "forecastbench", [A, B])


def tranche(root: Path, due: str, *, as_then: bool = True) -> QuestionSet:
    without = FILLED_IN_LATER[due] if as_then else frozenset()
    return build_tranche(rounds(root), TranchePlan(due=due, resolved_by="2026-04-10", without=without))


def paper_questions(root: Path, due: str) -> set[str]:
    query = f"""
    select source || '/' || question_id from '{root}/tables/ab_questions.parquet' where forecast_due_date = ?"""
    return {row[0] for row in duckdb.connect().execute(query, [due]).fetchall()}


@pytest.mark.parametrize("due", [A, B])
def test_the_200_questions(shared_data: Path, due: str) -> None:
    found = [q.id for q in tranche(shared_data, due).questions]
    assert len(found) == 200
    assert set(found) == paper_questions(shared_data, due)


@pytest.mark.parametrize("due", [A, B])
def test_their_order(shared_data: Path, due: str) -> None:
    lines = "\n".join(q.id for q in tranche(shared_data, due).questions)
    assert sha256(lines.encode()).hexdigest() == ORDER[due]


@pytest.mark.parametrize("due", [A, B])
def test_sources_whose_pool_did_not_grow_need_no_help(shared_data: Path, due: str) -> None:
    today, then = (tranche(shared_data, due, as_then=flag).questions for flag in (False, True))
    for source in UNCHANGED[due]:
        assert [q.id for q in today if q.source == source] == [q.id for q in then if q.source == source]


def test_todays_pool_draws_other_weather_stations(shared_data: Path) -> None:
    """What cannot be matched from the files alone, shown rather than hidden."""
    for due in (A, B):
        today, paper = (
            {q.id for q in tranche(shared_data, due, as_then=False).questions},
            paper_questions(shared_data, due),
        )
        assert {i.split("/")[0] for i in today ^ paper} <= {"dbnomics", "manifold", "metaculus"}
    assert len({q.id for q in tranche(shared_data, B, as_then=False).questions if q.kind == "market"}) == 102


@pytest.mark.parametrize("due", [A, B])
def test_the_791_events_and_their_outcomes(shared_data: Path, due: str) -> None:
    found = tranche(shared_data, due)
    kinds = {q.id: q.kind for q in found.questions}
    query = f"""
    select source || '/' || question_id, resolution_date, paper_outcome
    from '{shared_data}/tables/ab_resolutions.parquet' where forecast_due_date = ?"""
    rows = duckdb.connect().execute(query, [due]).fetchall()
    paper = {(q, "yes" if kinds[q] == "market" else day): outcome for q, day, outcome in rows}
    ours = {(question, target): outcome for (question, _, target), outcome in found.outcomes().items()}
    later = {("yfinance/IPG", "2025-12-09"), ("yfinance/IPG", "2026-02-07")} if due == B else set()
    assert set(ours) - set(paper) == later, "horizons of a delisted share, resolved after the paper"
    assert set(paper) <= set(ours)
    assert len([key for key in paper if paper[key] != ours[key]]) == {A: 3, B: 0}[due], "outcomes revised since"
