"""The readers on every available published round, against tables made from the same files."""

from functools import cache
from pathlib import Path

import duckdb
import pytest

from fakes.forecastbench_rounds import read_rounds
from foretell.data.datasets.forecastbench import read_resolution_set, resolution_revisions, subtype_of
from foretell.data.datasets.question_set import QuestionSet
from foretell.questions.codec import from_json, to_json
from foretell.questions.question import Question
from foretell.questions.resolution import Resolution

pytestmark = pytest.mark.shared_data

ROUNDS = ["2025-10-26", "2025-11-09", "2025-11-23", "2025-12-07", "2025-12-21", "2026-01-04", "2026-01-18"]


@cache
def all_rounds(root: Path) -> QuestionSet:
    return read_rounds(root / "forecastbench")


def query(root: Path, sql: str) -> list[tuple]:
    return duckdb.connect().execute(sql.replace("TABLES", str(root / "tables"))).fetchall()


def test_every_round_has_250_market_and_250_dataset_questions(shared_data: Path) -> None:
    rounds = all_rounds(shared_data)
    assert len(rounds.questions) == 7 * 500
    assert sorted({q.due.date().isoformat() for q in rounds.questions}) == ROUNDS
    for due in ROUNDS:
        kinds = [q.kind for q in rounds.questions if q.due.date().isoformat() == due]
        assert (kinds.count("market"), kinds.count("dataset")) == (250, 250)


def test_texts_have_no_placeholders(shared_data: Path) -> None:
    for question in all_rounds(shared_data).questions:
        texts = [question.text, question.criteria, question.background, *(t.label for t in question.targets)]
        assert not any("{resolution_date}" in t or "{forecast_due_date}" in t or t == "N/A" for t in texts)


def test_subtypes_agree_with_the_table(shared_data: Path) -> None:
    rows = query(shared_data, "select source, source_type, question, subtype from 'TABLES/questions.parquet'")
    assert len(rows) == 8273
    assert [row for row in rows if subtype_of(row[0], row[1], row[2]) != row[3]] == []


def test_questions_agree_with_the_table(shared_data: Path) -> None:
    rows = query(
        shared_data,
        """select source || '/' || question_id, forecast_due_date, subtype, source_type, n_resolution_dates,
               freeze_value
        from 'TABLES/questions.parquet' where forecast_due_date >= '2025-10-26'""",
    )
    table = {(i, due): rest for i, due, *rest in rows}
    assert len(table) == 3500
    for q in all_rounds(shared_data).questions:
        subtype, kind, dates, freeze = table[q.id, q.due.date().isoformat()]
        assert (q.subtype, q.kind) == (subtype, kind)
        if kind == "dataset":
            assert len(q.targets) == dates
        else:
            assert q.targets[0].snapshot is not None
            assert q.targets[0].snapshot.last_price == pytest.approx(freeze)


def test_outcomes_agree_with_the_table(shared_data: Path) -> None:
    rows = query(
        shared_data,
        """select source || '/' || question_id, r.forecast_due_date, resolution_date, outcome, resolved
        from 'TABLES/resolutions.parquet' r where r.forecast_due_date >= '2025-10-26'""",
    )
    rounds = all_rounds(shared_data)
    kinds = {q.id: q.kind for q in rounds.questions}
    table = {
        (i, due, "yes" if kinds[i] == "market" else day): int(outcome)
        for i, due, day, outcome, resolved in rows
        if resolved
    }
    ours = {(i, due.date().isoformat(), target): y for (i, due, target), y in rounds.outcomes().items()}
    assert len(ours) == 7442
    assert ours == table


def test_unresolved_rows_are_not_outcomes(shared_data: Path) -> None:
    unresolved = [r for r in all_rounds(shared_data).resolutions if r.outcome is None]
    assert len(unresolved) == 925
    assert all(r.resolved_at is None for r in unresolved)


def test_combinations_of_older_rounds_are_dropped_and_counted(shared_data: Path) -> None:
    resolution_set = read_resolution_set(shared_data / "forecastbench/resolution_sets/2025-08-03_resolution_set.json")
    assert len(resolution_set.resolutions) == 1613
    assert len(resolution_set.outcomes()) == 1520
    assert "6188 combination rows dropped" in resolution_set.notes


def test_market_asked_twice_is_one_cluster(shared_data: Path) -> None:
    markets = [q for q in all_rounds(shared_data).questions if q.kind == "market"]
    both = {q.id for q in markets if q.due.date().isoformat() == ROUNDS[0]} & {
        q.id for q in markets if q.due.date().isoformat() == ROUNDS[1]
    }
    assert len(both) > 25
    assert all(q.cluster == q.id for q in markets)


def test_series_have_the_provider_of_their_source(shared_data: Path) -> None:
    # There is no series for swimming records.
    questions = all_rounds(shared_data).questions
    assert {q.subtype for q in questions if q.series is None} == {"market", "swimming"}
    assert all(q.series.provider == q.source for q in questions if q.series)
    stations = [q.series.id for q in questions if q.source == "dbnomics" and q.series]
    assert all(station.startswith("meteofrance/TEMPERATURE/celsius.") for station in stations)


def test_questions_of_a_round_survive_a_json_round_trip(shared_data: Path) -> None:
    for question in read_rounds(shared_data / "forecastbench", [ROUNDS[0]]).questions:
        assert from_json(to_json(question), Question) == question


def test_published_revisions_are_detected(shared_data: Path) -> None:
    rows = query(
        shared_data,
        """select source || '/' || id, fdd, resolution_date, resolved_to, rev
        from 'TABLES/dataset_outcome_revisions.parquet' where rev in (0, 1)""",
    )
    versions: dict[int, list[Resolution]] = {0: [], 1: []}
    for question, due, day, value, version in rows:
        outcome = int(value) if value in (0, 1) else None
        versions[version].append(Resolution(question_id=question, target_id=day, due=due, outcome=outcome))
    known_first = sum(r.outcome is not None for r in versions[0])
    assert len(versions[0]) == len(versions[1]) > 400
    assert len(resolution_revisions(versions[0], versions[1])) == known_first
    assert resolution_revisions(versions[1], versions[1]) == ()
