"""Written submissions can be read by the reader of published submissions."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.data.datasets.forecastbench import read_question_set, read_submission
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Target
from foretell.tournaments.forecastbench import ForecastBenchTeam, build_submission, check_submission, require_coverage

DUE = "2025-10-26"
SENDER = ForecastBenchTeam(organization="Example", model="full")


def market(id: str = "7994", source: str = "metaculus") -> Question:
    return Question(id=f"{source}/{id}", source=source, text="?", due=instant(DUE), targets=(Target(id="yes"),))


def dataset(id: str = "DAAA", days: tuple[str, ...] = ("2025-11-02", "2025-11-25")) -> Question:
    targets = tuple(Target(id=day, resolves_at=instant(day)) for day in days)
    return Question(id=f"fred/{id}", source="fred", kind="dataset", text="?", due=instant(DUE), targets=targets)


def forecast(question: Question, p: float | dict[str, float] = 0.3) -> Forecast:
    by_target = p if isinstance(p, dict) else {target.id: p for target in question.targets}
    common = {"question_id": question.id, "forecaster": "full", "as_of": question.as_of}
    return Forecast(**common, p=by_target, rationale="because")


def test_rows_have_the_published_format():
    questions = [market(), dataset()]
    body = build_submission([forecast(q) for q in questions], questions, SENDER, reasoning=True)
    assert {name: value for name, value in body.items() if name != "forecasts"} == {
        "organization": "Example",
        "model": "full",
        "model_organization": "Example",
        "question_set": "2025-10-26-llm.json",
    }
    assert body["forecasts"] == [
        {"id": "7994", "source": "metaculus", "forecast": 0.3, "resolution_date": None, "reasoning": "because"},
        {"id": "DAAA", "source": "fred", "forecast": 0.3, "resolution_date": "2025-11-02", "reasoning": "because"},
        {"id": "DAAA", "source": "fred", "forecast": 0.3, "resolution_date": "2025-11-25", "reasoning": "because"},
    ]
    plain = build_submission([forecast(q) for q in questions], questions, SENDER)
    assert {row["reasoning"] for row in plain["forecasts"]} == {None}


def test_id_may_contain_slashes_and_the_name_of_its_source():
    question = market("metaculus/a/b")
    row = build_submission([forecast(question)], [question], SENDER)["forecasts"][0]
    assert row["id"] == "metaculus/a/b"


@pytest.mark.parametrize("organization", ["", " ", "...", "a/b", "a\\b"])
def test_names_unsuitable_for_files_are_rejected(organization: str):
    with pytest.raises(InputError, match=r"tournament\.organization"):
        ForecastBenchTeam(organization=organization, model="m")


def test_number_and_model_are_checked():
    with pytest.raises(InputError, match=r"tournament\.file_number"):
        ForecastBenchTeam(organization="a", model="m", number=4)
    with pytest.raises(InputError, match=r"tournament\.entry"):
        ForecastBenchTeam(organization="a", model=" ")
    assert ForecastBenchTeam(organization="St. A.I.", model="m", number=3).file_name(DUE) == "2025-10-26.St AI.3.json"


def test_coverage_is_counted_by_kind_and_named():
    questions = [market(str(n)) for n in range(20)] + [dataset(str(n)) for n in range(10)]
    forecasts = [forecast(q) for q in questions if q.id not in ("metaculus/3", "metaculus/4", "fred/7")]
    markets, datasets = check_submission(build_submission(forecasts, questions, SENDER), questions)
    assert (markets.asked, markets.given, dict(markets.missing)) == (20, 18, {"metaculus/3": 1, "metaculus/4": 1})
    assert (datasets.asked, datasets.given, dict(datasets.missing)) == (20, 18, {"fred/7": 2})
    with pytest.raises(InputError) as refused:
        require_coverage([markets, datasets])
    for message in (
        "market forecasts: 18 of 20 (90.0 %); missing: metaculus/3, metaculus/4",
        "dataset forecasts: 18 of 20 (90.0 %); missing: fred/7 (2 dates)",
        "tournament.incomplete=true",
    ):
        assert message in str(refused.value)


def test_each_kind_must_be_covered_and_exactly_95_percent_is_enough():
    questions = [market(str(n)) for n in range(20)] + [dataset("a")]
    nineteen = [forecast(q) for q in questions[1:]]
    require_coverage(check_submission(build_submission(nineteen, questions, SENDER), questions))
    only_markets = [forecast(q) for q in questions[:20]]
    with pytest.raises(InputError, match="dataset forecasts: 0 of 2"):
        require_coverage(check_submission(build_submission(only_markets, questions, SENDER), questions))
    require_coverage(check_submission(build_submission([forecast(market())], [market()], SENDER), [market()]))


def test_long_list_of_missing_questions_is_shortened():
    questions = [market(str(n)) for n in range(50)]
    message = str(check_submission(build_submission([], questions, SENDER), questions)[0])
    assert message.endswith("metaculus/19 and 30 more questions")


def test_forecast_outside_the_round_is_rejected():
    with pytest.raises(InputError, match="metaculus/7994 yes was forecast, but is not in the question set"):
        build_submission([forecast(market())], [dataset()], SENDER)
    later = forecast(dataset(days=("2025-11-02", "2030-01-01")))
    with pytest.raises(InputError, match="fred/DAAA 2030-01-01"):
        build_submission([later], [dataset()], SENDER)
    with pytest.raises(ValueError, match="two forecasts of"):
        build_submission([forecast(market()), forecast(market(), 0.4)], [market()], SENDER)
    with pytest.raises(ValueError, match="one round"):
        build_submission([], [], SENDER)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"forecast": 1.2}, "1.2 is not a probability"),
        ({"forecast": None}, "None is not a probability"),
        ({"forecast": float("nan")}, "nan is not a probability"),
        ({"forecast": True}, "True is not a probability"),
        ({"resolution_date": "2025-11-02"}, "is not asked"),
        ({"id": ["a", "b"]}, "is not asked"),
        ({"source": "manifold"}, "is not asked"),
    ],
)
def test_invalid_row_is_named(changes: dict[str, Any], message: str):
    body = build_submission([forecast(market())], [market()], SENDER)
    body["forecasts"] = [body["forecasts"][0] | changes]
    with pytest.raises(InputError, match="row 1, column forecasts") as refused:
        check_submission(body, [market()])
    assert message in str(refused.value)


def test_duplicate_row_is_named():
    body = build_submission([forecast(market())], [market()], SENDER)
    with pytest.raises(InputError, match="row 2, column forecasts: metaculus 7994: is forecast twice"):
        check_submission({**body, "forecasts": body["forecasts"] * 2}, [market()])


def read_back(body: dict[str, Any]) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / SENDER.file_name(DUE)
        path.write_text(json.dumps(body), encoding="utf-8")
        submission = read_submission(path)
    assert (submission.forecaster, submission.due) == ("Example:full", instant(DUE))
    assert submission.notes == ()
    return {forecast.question_id: dict(forecast.p) for forecast in submission.forecasts}


ids = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=12)
days = st.lists(st.sampled_from([f"2026-01-{n:02}" for n in range(1, 9)]), min_size=1, unique=True)


@settings(max_examples=30)
@given(st.data())
def test_written_file_is_read_back_and_counted(data: st.DataObject):
    questions = [market(id, "polymarket") for id in data.draw(st.lists(ids, min_size=1, max_size=5, unique=True))]
    questions += [dataset(id, tuple(data.draw(days))) for id in data.draw(st.lists(ids, max_size=4, unique=True))]
    chance = st.floats(0, 1)
    forecasts = [
        forecast(question, {target.id: data.draw(chance) for target in question.targets if data.draw(st.booleans())})
        for question in questions
    ]
    body = build_submission(forecasts, questions, SENDER)
    assert read_back(body) == {row.question_id: dict(row.p) for row in forecasts if row.p}
    for coverage in check_submission(body, questions):
        kinds = {q.id for q in questions if q.kind == coverage.kind}
        assert coverage.given == sum(len(row.p) for row in forecasts if row.question_id in kinds)
        assert coverage.asked == sum(len(q.targets) for q in questions if q.kind == coverage.kind)


@pytest.mark.shared_data
@pytest.mark.parametrize("day", ["2025-10-26", "2026-01-18"])
def test_published_round_round_trips(shared_data: Path, day: str):
    questions = read_question_set(shared_data / "forecastbench" / "question_sets" / f"{day}-llm.json").questions
    forecasts = {question.id: forecast(question, 0.1 + n / 1000) for n, question in enumerate(questions)}
    body = build_submission(forecasts.values(), questions, SENDER)
    coverages = check_submission(body, questions)
    require_coverage(coverages)
    assert [coverage.given for coverage in coverages] == [coverage.asked for coverage in coverages]
    assert body["question_set"] == f"{day}-llm.json"
    path = shared_data / "forecastbench" / "question_sets" / body["question_set"]
    published = [(row["source"], row["id"]) for row in json.loads(path.read_text())["questions"]]
    assert {(row["source"], row["id"]) for row in body["forecasts"]} == {
        (source, id) for source, id in published if isinstance(id, str)
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "s.json"
        file.write_text(json.dumps(body), encoding="utf-8")
        back = {row.question_id: dict(row.p) for row in read_submission(file).forecasts}
    assert back == {id: dict(row.p) for id, row in forecasts.items()}
