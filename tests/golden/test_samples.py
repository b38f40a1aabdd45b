"""The samples A and B of the BLF paper, reproduced from the published rounds, question by question and in order.

Resolution files are rewritten in place. Some outcomes were filled in after the paper drew its samples (2026-04-10) for
days before it, so the pool of today's files is larger than that of the paper; those ids are listed here.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path

import duckdb
import pytest

from fakes.forecastbench_rounds import read_rounds
from foretell.data.datasets.forecastbench import question_file, resolution_file
from foretell.data.datasets.question_set import QuestionSet
from foretell.data.datasets.samples import SamplePlan, build_sample
from foretell.data.files import DownloadCache
from foretell.operations.data_build import build
from foretell.operations.requests.data import DataBuildRequest
from foretell.questions.errors import InputError
from foretell.runs import event_loop
from foretell.runs.event_loop import run_sync

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
"""Sources whose pool has not changed since."""


@cache
def rounds(root: Path) -> QuestionSet:
    return read_rounds(root / "forecastbench", [A, B])


def sample(root: Path, due: str, *, as_then: bool = True) -> QuestionSet:
    without = FILLED_IN_LATER[due] if as_then else frozenset()
    return build_sample(rounds(root), SamplePlan(due=due, resolved_by="2026-04-10", without=without))


def paper_questions(root: Path, due: str) -> set[str]:
    query = f"""
    select source || '/' || question_id from '{root}/tables/ab_questions.parquet' where forecast_due_date = ?"""
    return {row[0] for row in duckdb.connect().execute(query, [due]).fetchall()}


@pytest.mark.parametrize("due", [A, B])
def test_samples_have_the_200_questions_of_the_paper(shared_data: Path, due: str) -> None:
    ids = [q.id for q in sample(shared_data, due).questions]
    assert len(ids) == 200
    assert set(ids) == paper_questions(shared_data, due)


@pytest.mark.parametrize("due", [A, B])
def test_samples_have_the_order_of_the_paper(shared_data: Path, due: str) -> None:
    lines = "\n".join(q.id for q in sample(shared_data, due).questions)
    assert sha256(lines.encode()).hexdigest() == ORDER[due]


@pytest.mark.parametrize("due", [A, B])
def test_sources_with_an_unchanged_pool_give_the_same_questions_today(shared_data: Path, due: str) -> None:
    today, then = (sample(shared_data, due, as_then=flag).questions for flag in (False, True))
    for source in UNCHANGED[due]:
        assert [q.id for q in today if q.source == source] == [q.id for q in then if q.source == source]


def test_todays_pool_gives_other_weather_stations(shared_data: Path) -> None:
    """Documents the differences that today's files cause."""
    for due in (A, B):
        today, paper = (
            {q.id for q in sample(shared_data, due, as_then=False).questions},
            paper_questions(shared_data, due),
        )
        assert {i.split("/")[0] for i in today ^ paper} <= {"dbnomics", "manifold", "metaculus"}
    assert len({q.id for q in sample(shared_data, B, as_then=False).questions if q.kind == "market"}) == 102


@pytest.mark.parametrize("due", [A, B])
def test_samples_have_the_791_events_and_outcomes_of_the_paper(shared_data: Path, due: str) -> None:
    question_set = sample(shared_data, due)
    kinds = {q.id: q.kind for q in question_set.questions}
    query = f"""
    select source || '/' || question_id, resolution_date, paper_outcome
    from '{shared_data}/tables/ab_resolutions.parquet' where forecast_due_date = ?"""
    rows = duckdb.connect().execute(query, [due]).fetchall()
    paper = {(q, "yes" if kinds[q] == "market" else day): outcome for q, day, outcome in rows}
    ours = {(question, target): outcome for (question, _, target), outcome in question_set.outcomes().items()}
    later = {("yfinance/IPG", "2025-12-09"), ("yfinance/IPG", "2026-02-07")} if due == B else set()
    assert set(ours) - set(paper) == later, "horizons of a delisted share, resolved after the paper"
    assert set(paper) <= set(ours)
    assert len([key for key in paper if paper[key] != ours[key]]) == {A: 3, B: 0}[due], "outcomes revised since"


def test_one_command_draws_both_rounds_into_one_set(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORETELL_HOME", str(tmp_path))
    cache = DownloadCache(tmp_path / "forecastbench")
    for due in (A, B):
        for name in (question_file(due), resolution_file(due)):
            cache.put(name, (shared_data / "forecastbench" / name).read_bytes(), url="")
    fields = {"kind": "sample", "resolved_by": "2026-04-10"}
    built = run_sync(build(DataBuildRequest.read({**fields, "sources": (A, B)})), event_loop.run).questions
    alone = [sample(shared_data, due, as_then=False).questions for due in (A, B)]
    assert [(q.id, q.due) for q in built.questions] == [(q.id, q.due) for questions in alone for q in questions]
    assert len(built.outcomes()) == sum(len(sample(shared_data, due, as_then=False).outcomes()) for due in (A, B))
    with pytest.raises(InputError, match=f"the round {A} is named twice"):
        run_sync(build(DataBuildRequest.read({**fields, "sources": (A, A)})), event_loop.run)
