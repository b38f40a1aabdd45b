"""ForecastBench: the rules for submissions, with files that are accepted and files that are refused.

The rules are those that the board publishes and its upload runs (github.com/forecastingresearch/forecastbench, commit
04e6117e of 2026), implemented here a second time: every submission must pass both.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from conformance.recordings import Check
from foretell.data.datasets.forecastbench import read_question_set
from foretell.questions.as_of import AsOf, instant
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.tournaments.forecastbench import (
    ForecastBenchSubmitter,
    ForecastBenchTeam,
    build_submission,
    check_submission,
    file_bytes,
    require_coverage,
)

SERVICE = "forecastbench"
DUE = "2026-08-02"
MARKETS = ("infer", "manifold", "metaculus", "polymarket")
DATASETS = ("acled", "dbnomics", "fred", "wikipedia", "yfinance")
HORIZONS = (7, 30, 90, 180, 365, 1095, 1825, 3650)
EACH = 20
"""Number of questions of every source; with one in twenty missing, the coverage is just enough."""
TEAM = ForecastBenchTeam(organization="Example A.I.", model="full", model_organization="Maker")
NAME = TEAM.file_name(DUE)
Body = dict[str, Any]


def question_set() -> Body:
    """A round as it is published."""
    days = [(date.fromisoformat(DUE) + timedelta(days=days)).isoformat() for days in HORIZONS]
    questions = [
        {
            "id": f"{source}-{n}",
            "source": source,
            "question": "Will it be higher on {resolution_date} than on {forecast_due_date}?",
            "resolution_criteria": "As published.",
            "background": "N/A",
            "url": "https://example.org",
            "freeze_datetime": "2026-07-23T00:00:00+00:00",
            "freeze_datetime_value": "0.5",
            "freeze_datetime_value_explanation": "The value.",
            "resolution_dates": days if source in DATASETS else "N/A",
        }
        for source in (*MARKETS, *DATASETS)
        for n in range(EACH)
    ]
    return {"forecast_due_date": DUE, "question_set": f"{DUE}-llm.json", "questions": questions}


def published_problems(name: str, body: Any, round_file: Body) -> list[str]:
    """Return the problems that the board reports for a file; empty if it is accepted."""
    problems: list[str] = []
    parts = re.fullmatch(r"(\d{4}-\d{2}-\d{2})\.(.+)\.(\d+)\.json", name)
    if parts is None or parts[1] != round_file["forecast_due_date"]:
        problems.append("file name")
    problems += [key for key in ("organization", "model", "model_organization") if not isinstance(body.get(key), str)]
    if body.get("question_set") != round_file["question_set"]:
        problems.append("question_set")
    rows: Any = body.get("forecasts")
    if not isinstance(rows, list) or not rows:
        return [*problems, "forecasts"]
    known = {(question["id"], question["source"]) for question in round_file["questions"]}
    problems += [problem for row in rows for problem in _row_problems(row)]
    for kind, sources in (("market", MARKETS), ("dataset", DATASETS)):
        total = sum(question["source"] in sources for question in round_file["questions"])
        covered = {(row.get("id"), row.get("source")) for row in rows if row.get("source") in sources} & known
        problems += [f"{kind} coverage"] if len(covered) < 0.95 * total else []
    return problems


def _row_problems(row: Body) -> list[str]:
    if any(field not in row for field in ("id", "source", "forecast", "resolution_date")):
        return ["fields of a row"]
    row_problems: list[str] = []
    if not isinstance(row["forecast"], int | float) or not 0 <= row["forecast"] <= 1:
        row_problems.append("probability")
    if row["source"] not in (*MARKETS, *DATASETS):
        row_problems.append("source")
    elif (row["resolution_date"] is None) != (row["source"] in MARKETS):
        row_problems.append("resolution_date")
    return row_problems


def _round() -> tuple[Question, ...]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{DUE}-llm.json"
        path.write_text(json.dumps(question_set()))
        return read_question_set(path).questions


def _forecasts(questions: tuple[Question, ...], p: float = 0.3) -> list[Forecast]:
    now = AsOf(at=instant(f"{DUE}T12:00:00Z"), mode="live")
    return [
        Forecast(
            question_id=question.id, forecaster="f", as_of=now, p={t.id: p for t in question.targets}, rationale="Why."
        )
        for question in questions
    ]


def _ours(body: Any, questions: tuple[Question, ...]) -> str:
    """Return why foretell would not submit a file; empty if it would."""
    try:
        require_coverage(check_submission(body, questions))
    except InputError as error:
        return str(error)
    return ""


def _valid_file() -> None:
    questions = _round()
    assert len(questions) == EACH * 9
    for reasoning, p in ((False, 0.3), (True, 0.0), (True, 1.0)):
        body = build_submission(_forecasts(questions, p), questions, TEAM, reasoning=reasoning)
        read = json.loads(file_bytes(body))
        assert published_problems(NAME, read, question_set()) == []
        assert _ours(read, questions) == ""
        assert len(read["forecasts"]) == EACH * (4 + 5 * len(HORIZONS))


def _names() -> None:
    for number in (1, 2, 3):
        name = ForecastBenchTeam(organization="Example A.I.", model="m", number=number).file_name(DUE)
        assert name == f"{DUE}.Example AI.{number}.json"
        assert not published_problems(name, {}, question_set()).count("file name")
    for wrong in ({"number": 4}, {"number": 0}, {"organization": "a/b"}, {"organization": "..."}, {"model": " "}):
        fields: Any = {"organization": "Example", "model": "m", **wrong}
        with pytest.raises(InputError):
            ForecastBenchTeam(**fields)
    for name in (f"{DUE}.Example.json", f"{DUE}.Example.one.json", "2026-08-16.Example.1.json", f"{DUE}.Example.1.txt"):
        assert "file name" in published_problems(name, {}, question_set())


def _verdicts(changes: Mapping[str, tuple[Callable[[Body], object], bool]]) -> None:
    """Check that foretell and the board agree on each change of a valid file."""
    questions = _round()
    good = build_submission(_forecasts(questions), questions, TEAM, reasoning=True)
    for what, (change, taken) in changes.items():
        body: Body = json.loads(file_bytes(good))
        change(body)
        theirs, ours = published_problems(NAME, body, question_set()), _ours(body, questions)
        assert (theirs == []) is taken, (what, theirs)
        assert (ours == "") is taken, (what, ours)


def _drop(source: str, count: int) -> Callable[[Body], object]:
    def change(body: Body) -> None:
        gone = {f"{source}-{n}" for n in range(count)}
        body["forecasts"] = [row for row in body["forecasts"] if row["source"] != source or row["id"] not in gone]

    return change


def _row(source: str, /, **fields: Any) -> Callable[[Body], object]:
    return lambda body: next(row for row in body["forecasts"] if row["source"] == source).update(fields)


def _heads() -> None:
    _verdicts(
        {
            "as it is": (lambda body: None, True),
            "a field more": (lambda body: body.update(note="x"), True),
            "no organization": (lambda body: body.pop("organization"), False),
            "no maker of the model": (lambda body: body.pop("model_organization"), False),
            "a model that is a list": (lambda body: body.update(model=["m"]), False),
            "another round": (lambda body: body.update(question_set="2026-08-16-llm.json"), False),
            "no forecasts": (lambda body: body.update(forecasts=[]), False),
            "forecasts by id": (lambda body: body.update(forecasts={}), False),
        }
    )


def _rows() -> None:
    _verdicts(
        {
            "certainty": (_row("infer", forecast=1), True),
            "no reasons": (lambda body: [row.pop("reasoning") for row in body["forecasts"]], True),
            "in percent": (_row("infer", forecast=30), False),
            "below 0": (_row("fred", forecast=-0.01), False),
            "in words": (_row("infer", forecast="0.3"), False),
            "nothing": (_row("infer", forecast=None), False),
            "a market with a date": (_row("manifold", resolution_date="2026-08-09"), False),
            "a data set without one": (_row("fred", resolution_date=None), False),
            "an unknown source": (_row("polymarket", source="kalshi"), False),
            "no date at all": (lambda body: body["forecasts"][0].pop("resolution_date"), False),
        }
    )
    # The board only warns about these, but they are mistakes.
    questions = _round()
    for change in (_row("infer", id="nothing"), _row("acled", resolution_date="2026-08-10"), _row("infer", id=["a"])):
        body: Body = json.loads(file_bytes(build_submission(_forecasts(questions), questions, TEAM)))
        change(body)
        assert "is not asked in this round" in _ours(body, questions)


def _coverage() -> None:
    _verdicts(
        {
            "4 of 80 markets missing": (_drop("manifold", 4), True),
            "5 of 80 markets missing": (_drop("manifold", 5), False),
            "5 of 100 data sets missing": (_drop("fred", 5), True),
            "6 of 100 data sets missing": (_drop("fred", 6), False),
            "no markets": (lambda body: [_drop(source, EACH)(body) for source in MARKETS], False),
        }
    )


def _times() -> None:
    questions = _round()

    def problems(now: datetime, **more: Any) -> tuple[str, ...]:
        team = ForecastBenchTeam(organization="Example", model="full", number=more.pop("number", 1))
        submitter = ForecastBenchSubmitter(sender=team, folder=Path(), now=now, **more)
        return submitter.plan(_forecasts(questions), questions).items[0].problems

    for now in (f"{DUE}T00:00:00Z", f"{DUE}T23:59:59Z"):
        assert problems(instant(now)) == ()
    for now in ("2026-08-01T23:59:59Z", "2026-08-03T00:00:00Z"):
        assert problems(instant(now)) != ()
    # Only one file per model is allowed; submitting it again replaces it.
    team = ForecastBenchTeam(organization="Example", model="full")
    before = {team.file_name(DUE): file_bytes(build_submission(_forecasts(questions), questions, team))}
    assert problems(instant(f"{DUE}T12:00:00Z"), found=before) == ()
    assert problems(instant(f"{DUE}T12:00:00Z"), found=before, number=2) != ()


CHECKS = [
    Check(service=SERVICE, what="a whole round that we write passes every rule of the upload", function=_valid_file),
    Check(service=SERVICE, what="file names: due date, organization without dots, number 1 to 3", function=_names),
    Check(service=SERVICE, what="who sends it and for which set: 2 files taken, 6 refused, as there", function=_heads),
    Check(
        service=SERVICE,
        what="rows: 2 files taken, 8 refused, as there; 3 refused that it would only warn of",
        function=_rows,
    ),
    Check(service=SERVICE, what="95 % of the markets and of the data sets, not one question less", function=_coverage),
    Check(service=SERVICE, what="on the due date alone (UTC), one file for a model", function=_times),
]
