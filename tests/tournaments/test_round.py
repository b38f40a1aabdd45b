"""A round of ForecastBench: one complete file per model, submitted in time."""

import asyncio
import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from foretell.questions.as_of import AsOf
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Target
from foretell.tournaments.forecastbench import ForecastBenchSubmitter, ForecastBenchTeam, files_of
from foretell.tournaments.ledger import SubmissionLedger
from foretell.tournaments.submission import SendOptions, SubmissionSender

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
    options: Any = {"sender": SENDER, "found": files_of(folder, DAY), **fields}
    return ForecastBenchSubmitter(folder=folder, now=now, **options)


def problems(folder: Path, made_forecasts: list[Forecast] | None = None, **fields: Any) -> tuple[str, ...]:
    (item,) = (
        submitter(folder, **fields).plan(forecasts() if made_forecasts is None else made_forecasts, QUESTIONS).items
    )
    return item.problems


def handed_in(sender: ForecastBenchSubmitter, ledger: SubmissionLedger, made_forecasts: list[Forecast]) -> list[str]:
    sending = SubmissionSender(sender, ledger, lambda: NOON, SendOptions(pause=0.0))
    return [result.fate for result in asyncio.run(sending.hand_in(sender.plan(made_forecasts, QUESTIONS)))]


def test_file_is_written_and_recorded(tmp_path: Path, ledger: SubmissionLedger):
    submission = submitter(tmp_path)
    assert handed_in(submission, ledger, forecasts()) == ["sent"]
    path = tmp_path / "2026-08-02.Ex Ample.1.json"
    body = json.loads(path.read_text())
    assert (body["question_set"], len(body["forecasts"])) == ("2026-08-02-llm.json", 40)
    intention, receipt = ledger.entries()
    assert intention.content["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert intention.content["forecasts"][0] == ["manifold", "m0", None, 0.25]
    assert (intention.account, intention.question, receipt.kind) == (
        "Ex. Ample",
        "forecastbench/2026-08-02#1",
        "receipt",
    )
    assert handed_in(submitter(tmp_path), ledger, forecasts()) == ["already"]


def test_plan_has_the_exact_file(tmp_path: Path):
    submission = submitter(tmp_path, reasoning=True)
    plan = submission.plan(forecasts(), QUESTIONS)
    (request,) = submission.requests(plan.ready)
    assert (request.method, request.address) == ("WRITE", str(tmp_path / "2026-08-02.Ex Ample.1.json"))
    assert request.body["forecasts"][0]["reasoning"] == "Because."
    assert plan.items[0].notes == ("market forecasts: 20 of 20 (100.0 %)", "dataset forecasts: 20 of 20 (100.0 %)")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("now", "message"),
    [
        (datetime(2026, 8, 1, 23, 59, tzinfo=UTC), "begins on that day"),
        (datetime(2026, 8, 3, tzinfo=UTC), "was closed at the end of that day"),
    ],
)
def test_file_is_accepted_only_on_the_due_date(tmp_path: Path, now: datetime, message: str):
    assert any(message in problem for problem in problems(tmp_path, now=now))
    assert problems(tmp_path, now=datetime(2026, 8, 2, 23, 59, 59, tzinfo=UTC)) == ()


def test_forecasts_of_another_day_or_of_a_backtest_are_rejected(tmp_path: Path):
    (message,) = problems(tmp_path, forecasts(day="2026-08-01"))
    assert message.startswith("30 forecasts were made as of another day than 2026-08-02: manifold/m0 (2026-08-01)")
    assert problems(tmp_path, forecasts("backtest")) == ("30 forecasts were made in a backtest, not live",)


def test_insufficient_coverage_is_rejected_with_what_is_missing(tmp_path: Path):
    (item,) = submitter(tmp_path).plan(forecasts(without=2), QUESTIONS).items
    assert item.problems == ("less than 95 % of the market forecasts: it would not be ranked",)
    assert item.notes[0] == "market forecasts: 18 of 20 (90.0 %); missing: manifold/m0, manifold/m1"
    assert problems(tmp_path, forecasts(without=1)) == ()
    assert problems(tmp_path, forecasts(without=2), incomplete=True) == ()


def test_forecast_of_another_question_is_named(tmp_path: Path):
    stray = Forecast(question_id="fred/S0", forecaster="a", as_of=AsOf.day(DAY, "live"), p={"2027-01-01": 0.5})
    (message,) = problems(tmp_path, [stray])
    assert "fred/S0 2027-01-01 was forecast, but is not in the question set" in message


def test_each_model_has_one_file(tmp_path: Path, ledger: SubmissionLedger):
    handed_in(submitter(tmp_path), ledger, forecasts())
    other = ForecastBenchTeam(organization="Ex. Ample", model="full", number=2)
    assert problems(tmp_path, sender=other) == (
        "2026-08-02.Ex Ample.1.json has this model already: a model has one file",
    )
    (message,) = problems(tmp_path, sender=ForecastBenchTeam(organization="Ex. Ample", model="light"))
    assert "has another model, 'full'" in message
    assert problems(tmp_path, sender=ForecastBenchTeam(organization="Ex. Ample", model="light", number=2)) == ()
    (tmp_path / "2026-08-02.Others.1.json").write_text("no json")
    assert problems(tmp_path) == ()


def test_file_of_a_killed_process_is_recognised(tmp_path: Path, ledger: SubmissionLedger):
    submission = submitter(tmp_path)
    item = submission.plan(forecasts(), QUESTIONS).ready[0]
    from foretell.tournaments.ledger import LedgerDraft

    intention = LedgerDraft(
        kind="intention",
        platform="forecastbench",
        account="Ex. Ample",
        question=item.question,
        part="file",
        content=item.kept,
    )
    ledger.append([intention], NOON)
    assert handed_in(submission, ledger, forecasts()) == ["sent"]
    assert [entry.kind for entry in ledger.entries()] == ["intention", "absence", "intention", "receipt"]
