"""A round of ForecastBench: one file, in time, complete, and one for each model."""

import asyncio
import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from foretell.questions import AsOf, Forecast, Question, Target
from foretell.submit import (
    ForecastBenchSubmitter,
    ForecastBenchTeam,
    SendOptions,
    SubmissionLedger,
    SubmissionSender,
    files_of,
)

DAY = "2026-08-02"
NOON = datetime(2026, 8, 2, 12, tzinfo=UTC)
SENDER = ForecastBenchTeam(organization="Ex. Ample", model="full")


def question(id: str, source: str, targets: tuple[str, ...], kind: Any) -> Question:
    return Question(
        id=f"{source}/{id}", source=source, text="?", due=DAY, kind=kind, targets=tuple(Target(id=t) for t in targets)
    )


DATES = ("2026-08-09", "2026-09-01")
QUESTIONS = [
    *(question(f"m{n}", "manifold", ("yes",), "market") for n in range(20)),
    *(question(f"S{n}", "fred", DATES, "dataset") for n in range(10)),
]


def forecasts(mode: Any = "live", day: str = DAY, without: int = 0) -> list[Forecast]:
    return [
        Forecast(
            question_id=q.id,
            forecaster="agent",
            as_of=AsOf.day(day, mode),
            p={target.id: 0.25 for target in q.targets},
            rationale="Because.",
        )
        for q in QUESTIONS[without:]
    ]


def submitter(folder: Path, now: datetime = NOON, **fields: Any) -> ForecastBenchSubmitter:
    made: Any = {"sender": SENDER, "found": files_of(folder, DAY), **fields}
    return ForecastBenchSubmitter(folder=folder, now=now, **made)


def problems(folder: Path, told: list[Forecast] | None = None, **fields: Any) -> tuple[str, ...]:
    (item,) = submitter(folder, **fields).plan(forecasts() if told is None else told, QUESTIONS).items
    return item.problems


def handed_in(made: ForecastBenchSubmitter, ledger: SubmissionLedger, told: list[Forecast]) -> list[str]:
    sending = SubmissionSender(made, ledger, lambda: NOON, SendOptions(pause=0.0))
    return [one.fate for one in asyncio.run(sending.hand_in(made.plan(told, QUESTIONS)))]


def test_the_file_is_written_whole_and_on_record(tmp_path: Path, ledger: SubmissionLedger):
    made = submitter(tmp_path)
    assert handed_in(made, ledger, forecasts()) == ["sent"]
    path = tmp_path / "2026-08-02.Ex Ample.1.json"
    body = json.loads(path.read_text())
    assert (body["question_set"], len(body["forecasts"])) == ("2026-08-02-llm.json", 40)
    meant, receipt = ledger.entries()
    assert meant.content["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert meant.content["forecasts"][0] == ["manifold", "m0", None, 0.25]
    assert (meant.account, meant.question, receipt.kind) == ("Ex. Ample", "forecastbench/2026-08-02#1", "receipt")
    assert handed_in(submitter(tmp_path), ledger, forecasts()) == ["already"]


def test_the_plan_shows_the_file_to_the_letter(tmp_path: Path):
    made = submitter(tmp_path, reasoning=True)
    plan = made.plan(forecasts(), QUESTIONS)
    (request,) = made.requests(plan.ready)
    assert (request.method, request.address) == ("WRITE", str(tmp_path / "2026-08-02.Ex Ample.1.json"))
    assert request.body["forecasts"][0]["reasoning"] == "Because."
    assert plan.items[0].notes == ("market forecasts: 20 of 20 (100.0 %)", "dataset forecasts: 20 of 20 (100.0 %)")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (datetime(2026, 8, 1, 23, 59, tzinfo=UTC), "begins on that day"),
        (datetime(2026, 8, 3, tzinfo=UTC), "was closed at the end of that day"),
    ],
)
def test_in_time_or_not_at_all(tmp_path: Path, now: datetime, told: str):
    assert any(told in problem for problem in problems(tmp_path, now=now))
    assert problems(tmp_path, now=datetime(2026, 8, 2, 23, 59, 59, tzinfo=UTC)) == ()


def test_forecasts_of_another_day_or_of_a_backtest(tmp_path: Path):
    (told,) = problems(tmp_path, forecasts(day="2026-08-01"))
    assert told.startswith("30 forecasts were made as of another day than 2026-08-02: manifold/m0 (2026-08-01)")
    assert problems(tmp_path, forecasts("backtest")) == ("30 forecasts were made in a backtest, not live",)


def test_too_little_is_refused_with_what_is_missing(tmp_path: Path):
    (item,) = submitter(tmp_path).plan(forecasts(without=2), QUESTIONS).items
    assert item.problems == ("less than 95 % of the market forecasts: it would not be ranked",)
    assert item.notes[0] == "market forecasts: 18 of 20 (90.0 %); missing: manifold/m0, manifold/m1"
    assert problems(tmp_path, forecasts(without=1)) == ()
    assert problems(tmp_path, forecasts(without=2), incomplete=True) == ()


def test_a_forecast_of_something_else_is_named(tmp_path: Path):
    stray = Forecast(question_id="fred/S0", forecaster="a", as_of=AsOf.day(DAY, "live"), p={"2027-01-01": 0.5})
    (told,) = problems(tmp_path, [stray])
    assert "fred/S0 2027-01-01 was forecast, but is not in the question set" in told


def test_one_file_for_a_model_and_one_model_for_a_file(tmp_path: Path, ledger: SubmissionLedger):
    handed_in(submitter(tmp_path), ledger, forecasts())
    other = ForecastBenchTeam(organization="Ex. Ample", model="full", number=2)
    assert problems(tmp_path, sender=other) == (
        "2026-08-02.Ex Ample.1.json holds this model already: one file for a model",
    )
    (told,) = problems(tmp_path, sender=ForecastBenchTeam(organization="Ex. Ample", model="light"))
    assert "holds another model, 'full'" in told
    assert problems(tmp_path, sender=ForecastBenchTeam(organization="Ex. Ample", model="light", number=2)) == ()
    (tmp_path / "2026-08-02.Others.1.json").write_text("no json")
    assert problems(tmp_path) == ()


def test_a_writer_that_dies_is_read_back(tmp_path: Path, ledger: SubmissionLedger):
    made = submitter(tmp_path)
    item = made.plan(forecasts(), QUESTIONS).ready[0]
    from foretell.submit import LedgerDraft

    meant = LedgerDraft(
        kind="intention",
        platform="forecastbench",
        account="Ex. Ample",
        question=item.question,
        part="file",
        content=item.kept,
    )
    ledger.append([meant], NOON)
    assert handed_in(made, ledger, forecasts()) == ["sent"]
    assert [entry.kind for entry in ledger.entries()] == ["intention", "absence", "intention", "receipt"]
