"""Question sets, resolution sets and submissions, valid and malformed."""

from pathlib import Path
from typing import Any

import pytest

from fakes.forecastbench_rounds import read_rounds
from foretell.data.datasets.forecastbench import (
    read_question_set,
    read_resolution_set,
    read_round,
    read_submission,
    resolution_revisions,
)
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.questions.question import SeriesRef
from foretell.questions.resolution import Resolution

DUE = "2025-10-26"


def market(**changes: Any) -> dict[str, Any]:
    return {
        "id": "7994",
        "source": "metaculus",
        "question": "Will it be approved before 2041?",
        "resolution_criteria": "Resolves to the outcome of the question found at https://example.org/7994.",
        "background": "N/A",
        "market_info_open_datetime": "2021-09-16T05:00:00+00:00",
        "market_info_close_datetime": "2040-12-31T20:08:00+00:00",
        "market_info_resolution_criteria": "Yes if approved.",
        "url": "https://example.org/7994",
        "freeze_datetime": "2025-10-16T00:00:00+00:00",
        "freeze_datetime_value": "0.8",
        "freeze_datetime_value_explanation": "The community prediction.",
        "source_intro": "…",
        "resolution_dates": "N/A",
        **changes,
    }


def dataset(**changes: Any) -> dict[str, Any]:
    return (
        market(
            id="DAAA",
            source="fred",
            question="Will the yield have increased by {resolution_date} as compared to {forecast_due_date}?\n\nNote.",
            background="A bond yield.",
            market_info_open_datetime="N/A",
            market_info_close_datetime="N/A",
            market_info_resolution_criteria="N/A",
            freeze_datetime_value="5.13",
            freeze_datetime_value_explanation="The latest value.",
            resolution_dates=["2025-11-02", "2025-11-25"],
        )
        | changes
    )


def outcome(**changes: Any) -> dict[str, Any]:
    row = {"id": "7994", "source": "metaculus", "direction": None, "resolution_date": "2025-12-01"}
    return row | {"resolved_to": 1.0, "resolved": True} | changes


def question_set(*questions: dict[str, Any], due: str = DUE) -> dict[str, Any]:
    return {"forecast_due_date": due, "question_set": f"{due}-llm.json", "questions": list(questions)}


def resolution_set(*rows: dict[str, Any], due: str = DUE) -> dict[str, Any]:
    return {"forecast_due_date": due, "question_set": f"{due}-llm.json", "resolutions": list(rows)}


def test_a_market_question_is_read(write) -> None:
    (question,) = read_question_set(write("q.json", question_set(market()))).questions
    assert (question.id, question.kind, question.subtype, question.cluster) == (
        "metaculus/7994",
        "market",
        "market",
        "metaculus/7994",
    )
    assert question.due == instant(DUE)
    assert question.background == "", "N/A means nothing"
    assert question.criteria.endswith("7994.\n\nYes if approved."), "the market's own criteria reach the question"
    assert question.closes_at == instant("2040-12-31T20:08:00Z")
    (target,) = question.targets
    assert (target.id, target.resolves_at) == ("yes", None)
    assert target.snapshot is not None
    assert (target.snapshot.last_price, target.snapshot.at) == (0.8, instant("2025-10-16"))
    assert question.series is None


def test_a_dataset_question_has_one_target_per_date(write) -> None:
    (question,) = read_question_set(write("q.json", question_set(dataset()))).questions
    assert (question.id, question.kind, question.subtype) == ("fred/DAAA", "dataset", "all")
    first = "Will the yield have increased by {} as compared to 2025-10-26?"
    assert question.text == first.format("the resolution date") + "\n\nNote."
    assert [t.label for t in question.targets] == [first.format("2025-11-02"), first.format("2025-11-25")]
    assert [t.id for t in question.targets] == ["2025-11-02", "2025-11-25"]
    assert [question.horizon_days(t) for t in question.targets] == [7, 30]
    assert all(t.snapshot is None for t in question.targets), "a level of a series is not a price of an outcome"
    assert question.background == "A bond yield.\n\nValue known on 2025-10-16: 5.13. The latest value."
    assert question.series is not None
    assert (question.series.provider, question.series.id, question.series.threshold) == ("fred", "DAAA", None)


@pytest.mark.parametrize(
    ("source", "text", "frozen", "series"),
    [
        (
            "acled",
            "Will there be more 'Riots' in Monaco for the 30 days before {resolution_date} compared to …?",
            "1.5",
            SeriesRef(provider="acled", id="Monaco/Riots/30 days", threshold=1.5),
        ),
        (
            "acled",
            "Will there be more than ten times as many fatalities in Côte d'Ivoire for the 30 days before "
            "{resolution_date} compared to one plus …?",
            "1.25",
            SeriesRef(provider="acled", id="Côte d'Ivoire/fatalities/30 days", threshold=12.5),
        ),
        (
            "wikipedia",
            "According to Wikipedia, will Wei Yi have a FIDE ranking on {resolution_date} as high or higher than …?",
            "8.0",
            SeriesRef(provider="wikipedia", id="FIDE rankings/Wei Yi/Rank", comparison="below", threshold=8.5),
        ),
        (
            "wikipedia",
            "According to Wikipedia, will Wei Yi have an Elo rating on {resolution_date} that's at least 1% higher …?",
            "2700.0",
            SeriesRef(provider="wikipedia", id="FIDE rankings/Wei Yi/Rating", threshold=2727.0),
        ),
        (
            "wikipedia",
            "According to Wikipedia, will a vaccine have been developed for Mpox by {resolution_date}?",
            "No",
            SeriesRef(provider="wikipedia", id="List of infectious diseases/Mpox/Vaccine", threshold=0.5),
        ),
        ("wikipedia", "According to Wikipedia, will Wei Yi have a FIDE ranking on D as high or higher …?", "N/A", None),
        ("wikipedia", "According to Wikipedia, will A still hold the world record for 50m?", "50m backstroke", None),
        ("acled", "Will something else happen?", "1", None),
    ],
)
def test_questions_about_acled_and_wikipedia_refer_to_series(write, source, text, frozen, series) -> None:
    row = dataset(source=source, id="9d48", question=text, freeze_datetime_value=frozen)
    (question,) = read_question_set(write("q.json", question_set(row))).questions
    assert question.series == series


def test_combinations_and_repetitions_are_dropped_and_counted(write) -> None:
    path = write("q.json", question_set(market(), market(), market(id=["7994", "8001"])))
    combined = read_question_set(path)
    assert len(combined.questions) == 1
    assert set(combined.notes) == {"1 combination questions dropped", "1 repeated questions dropped"}


@pytest.mark.parametrize(
    ("row", "place"),
    [
        (
            market(freeze_datetime_value="1.8"),
            "column freeze_datetime_value: question metaculus/7994: last_price is 1.8",
        ),
        (market(freeze_datetime_value="high"), "column freeze_datetime_value: question metaculus/7994: 'high' is not"),
        (market(market_info_close_datetime="soon"), "column market_info_close_datetime: question metaculus/7994"),
        (market(freeze_datetime="2025-10-16T00:00:00"), "has no time zone"),
        (market(question=""), "column question: question metaculus/7994: is missing"),
        (market(source=None), "column source: is missing"),
        (market(id=None), "column id: is missing"),
        (dataset(resolution_dates=["2025-13-02"]), "column resolution_dates: question fred/DAAA: '2025-13-02'"),
        (dataset(resolution_dates=[]), "question fred/DAAA: targets is empty; expected at least one Target"),
        (dataset(resolution_dates=["2025-11-02", "2025-11-02"]), "names target '2025-11-02' twice"),
        ("text", "expected an object"),
    ],
)
def test_a_malformed_question_names_file_row_and_field(write, row, place: str) -> None:
    path = write("q.json", question_set(dataset(id="FINE"), row))
    with pytest.raises(InputError) as caught:
        read_question_set(path)
    assert str(caught.value).startswith(f"{path}, row 2")
    assert place in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "no list named 'questions'"),
        ({"questions": {}}, "no list named 'questions'"),
        ({"questions": []}, "field forecast_due_date: has no forecast due date"),
        ({"forecast_due_date": "soon", "questions": []}, "field forecast_due_date: 'soon' is not an ISO date"),
        ({"forecast_due_date": DUE, "question_set": "2025-11-09-llm.json", "questions": []}, "name two rounds"),
    ],
)
def test_a_file_of_another_kind_raises(write, content, message: str) -> None:
    path = write("q.json", content)
    with pytest.raises(InputError) as caught:
        read_question_set(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_a_missing_file_or_another_encoding_raises(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_question_set(tmp_path / "none.json")
    (tmp_path / "latin.json").write_bytes('{"é": 1}'.encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8"):
        read_question_set(tmp_path / "latin.json")


def test_the_same_question_with_different_content_raises(write) -> None:
    with pytest.raises(InputError, match="asked twice"):
        read_question_set(write("q.json", question_set(market(), market(question="Another?"))))


def test_only_resolved_rows_have_an_outcome(write) -> None:
    rows = (
        outcome(),
        outcome(id="1", resolved=False, resolved_to=0.31),
        outcome(id="2", resolved_to=0.3),
        outcome(id="3", resolved_to=None),
        outcome(id=["1", "2"], direction=[1, -1]),
        outcome(id="DAAA", source="fred", resolution_date="2025-11-02", resolved_to=0.0),
    )
    outcomes = read_resolution_set(write("r.json", resolution_set(*rows)))
    by_id = {r.question_id: r for r in outcomes.resolutions}
    assert {key: r.outcome for key, r in by_id.items()} == {
        "metaculus/7994": 1,
        "metaculus/1": None,
        "metaculus/2": None,
        "metaculus/3": None,
        "fred/DAAA": 0,
    }
    assert by_id["metaculus/7994"].resolved_at == instant("2025-12-01")
    assert by_id["metaculus/1"].resolved_at is None
    assert by_id["fred/DAAA"].target_id == "2025-11-02"
    assert all(r.due == instant(DUE) for r in outcomes.resolutions)
    assert [note.split(" ", 1)[0] for note in outcomes.notes] == ["2", "1", "1"]
    assert "2 rows resolved to neither 0 nor 1: no outcome" in outcomes.notes


def test_repeated_rows_are_dropped_and_contradictions_have_no_outcome(write) -> None:
    rows = (outcome(), outcome(), outcome(id="1"), outcome(id="1", resolved_to=0.0), outcome(id="1"))
    outcomes = read_resolution_set(write("r.json", resolution_set(*rows)))
    assert outcomes.outcomes() == {("metaculus/7994", instant(DUE), "yes"): 1}
    assert "1 repeated rows dropped" in outcomes.notes
    assert any("contradict" in note for note in outcomes.notes)


@pytest.mark.parametrize(
    ("row", "place"),
    [
        (outcome(resolved=None), "column resolved: question metaculus/7994: is missing"),
        (outcome(resolved="maybe"), "column resolved"),
        (outcome(resolution_date=None), "column resolution_date: question metaculus/7994: is missing"),
        (outcome(resolved_to="yes"), "column resolved_to"),
    ],
)
def test_a_malformed_outcome_raises_with_row_and_column(write, row, place: str) -> None:
    with pytest.raises(InputError) as caught:
        read_resolution_set(write("r.json", resolution_set(row)))
    assert f"row 1, {place}" in str(caught.value)


def test_a_round_joins_questions_and_outcomes(write) -> None:
    questions = write("q.json", question_set(market(), dataset()))
    rows = (
        outcome(),
        outcome(id="gone"),
        outcome(id="DAAA", source="fred", resolution_date="2025-11-02"),
        outcome(id="DAAA", source="fred", resolution_date="2027-11-02"),
    )
    joined = read_round(questions, write("r.json", resolution_set(*rows)))
    assert len(joined.outcomes()) == 2
    assert set(joined.notes) == {
        "1 outcomes without a question dropped",
        "1 outcomes for a date that was not asked dropped",
    }
    with pytest.raises(InputError, match="the outcomes are of"):
        read_round(questions, write("other.json", resolution_set(outcome(), due="2025-11-09")))


def test_a_question_of_several_rounds_is_one_cluster(write, tmp_path: Path) -> None:
    write(f"question_sets/{DUE}-llm.json", question_set(market()))
    write("question_sets/2025-11-09-llm.json", question_set(market(), due="2025-11-09"))
    write(f"resolution_sets/{DUE}_resolution_set.json", resolution_set(outcome()))
    rounds = read_rounds(tmp_path)
    assert [(q.id, q.due.date().isoformat()) for q in rounds.questions] == [
        ("metaculus/7994", DUE),
        ("metaculus/7994", "2025-11-09"),
    ]
    assert {q.cluster for q in rounds.questions} == {"metaculus/7994"}
    assert list(rounds.outcomes()) == [("metaculus/7994", instant(DUE), "yes")]


def test_revisions_compare_two_versions() -> None:
    def version(*outcomes: int | None) -> list[Resolution]:
        return [
            Resolution(question_id=f"q{i}", target_id="t", due=instant(DUE), outcome=o) for i, o in enumerate(outcomes)
        ]

    changed = resolution_revisions(version(0, 1, 1, None, 1), version(1, 1, None, 0))
    assert [(r.key[0], r.before, r.after) for r in changed] == [("q0", 0, 1), ("q2", 1, None)]


def submission(*forecasts: dict) -> dict:
    return {"organization": "Org", "model": "m", "question_set": f"{DUE}-llm.json", "forecasts": list(forecasts)}


def forecast(**changes) -> dict:
    row = {"id": "DAAA", "source": "fred", "forecast": 0.6, "resolution_date": "2025-11-02", "reasoning": "up"}
    return row | changes


def test_a_submission_is_read(write) -> None:
    published = read_submission(
        write(
            "s.json",
            submission(
                forecast(),
                forecast(resolution_date="2025-11-25", forecast=0.7, reasoning=None),
                forecast(id="7994", source="metaculus", forecast=0.2, resolution_date=None, reasoning=None),
                forecast(id=["a", "b"]),
                forecast(id="late", forecast=None),
            ),
        )
    )
    assert (published.forecaster, published.due) == ("Org:m", instant(DUE))
    assert {f.question_id: dict(f.p) for f in published.forecasts} == {
        "fred/DAAA": {"2025-11-02": 0.6, "2025-11-25": 0.7},
        "metaculus/7994": {"yes": 0.2},
    }
    assert published.forecasts[0].rationale == "up"
    assert published.forecasts[0].as_of.at.date().isoformat() == DUE
    assert set(published.notes) == {"1 forecasts of combination questions dropped", "1 rows without a forecast"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([forecast(forecast=1.2)], "row 1, column forecast: question fred/DAAA: 1.2 is outside [0, 1]"),
        (
            [forecast(), forecast(forecast=0.7)],
            "row 2, column forecast: question fred/DAAA: target 2025-11-02 is forecast",
        ),
        ([forecast(resolution_date=None)], "row 1, column resolution_date: question fred/DAAA: is missing"),
    ],
)
def test_a_malformed_submission_raises_with_row_and_column(write, rows, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_submission(write("s.json", submission(*rows)))
    assert message in str(caught.value)


def test_a_submission_without_a_name_raises(write) -> None:
    body = submission(forecast())
    del body["model"]
    with pytest.raises(InputError, match="field model: is missing"):
        read_submission(write("s.json", body))
