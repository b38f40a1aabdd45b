"""Items are sent once, whatever happens in between, and recorded before and after."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from foretell.data.http import SourceError
from foretell.practice.server import json_response
from foretell.questions.errors import InputError
from foretell.tournaments.ledger import SubmissionLedger
from foretell.tournaments.submission import ItemResult, SendOptions, SubmissionItem, SubmissionSender

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
QUICK = SendOptions(pause=0.0)


def handed_in(
    metaculus: Any, ledger: SubmissionLedger, forecasts: list[Any], patience: SendOptions = QUICK, **changed: Any
) -> list[ItemResult]:
    async def use(submitter: Any) -> list[ItemResult]:
        submission = submitter.plan(forecasts, ())
        return await SubmissionSender(submitter, ledger, lambda: NOW, patience).hand_in(submission)

    return metaculus.with_submitter(forecasts, use, **changed)


def fates(handed: list[ItemResult]) -> list[str]:
    return [result.fate for result in handed]


def kinds(ledger: SubmissionLedger) -> list[str]:
    assert ledger.verify().whole
    return [entry.kind for entry in ledger.entries()]


def test_intention_is_recorded_before_and_receipt_after_sending(
    metaculus: Any, ledger: SubmissionLedger, make_forecast: Any
):
    handed = handed_in(metaculus, ledger, [make_forecast("metaculus/101")], comment="private")
    assert fates(handed) == ["sent", "sent"]
    intention, receipt, comment, noted = ledger.entries()
    assert (intention.kind, intention.platform, intention.account, intention.question) == (
        "intention",
        "metaculus",
        "practice-bot",
        "metaculus/101",
    )
    assert intention.content == {"question": 1, "probability_yes": 0.63}
    assert receipt.content == {"intention": 1, "sent": intention.digest, "how": "answered"}
    assert (comment.part, noted.content["answer"]) == ("comment", {"comment": "1000"})
    assert "canary-token" not in ledger.path.read_text()
    assert ledger.verify().whole


def test_the_same_content_is_sent_once(metaculus: Any, ledger: SubmissionLedger, make_forecast: Any):
    first = [make_forecast("metaculus/101")]
    handed_in(metaculus, ledger, first, comment="private")
    again = handed_in(metaculus, ledger, first, comment="private")
    assert fates(again) == ["already", "already"]
    assert metaculus.posted == []
    # Withdrawn by hand, but the ledger has it as sent.
    metaculus.inbox.forecasts.clear()
    again = handed_in(metaculus, ledger, first)
    assert [str(result) for result in again] == ["metaculus/101 forecast: already (entry 1 of the ledger)"]
    assert fates(handed_in(metaculus, ledger, first, SendOptions(pause=0.0, resend=True))) == ["sent"]


def test_change_and_its_reversal_are_both_sent(metaculus: Any, ledger: SubmissionLedger, make_forecast: Any):
    for p in (0.6, 0.7, 0.6):
        assert fates(handed_in(metaculus, ledger, [make_forecast("metaculus/101", p)])) == ["sent"]
    assert [forecast["probability_yes"] for forecast in metaculus.inbox.forecasts] == [0.6, 0.7, 0.6]
    assert kinds(ledger) == ["intention", "receipt"] * 3


def test_forecast_shown_by_the_platform_is_not_sent_with_a_new_ledger(
    metaculus: Any, ledger: SubmissionLedger, make_forecast: Any, tmp_path: Any
):
    handed_in(metaculus, ledger, [make_forecast("metaculus/101")])
    other = SubmissionLedger(tmp_path / "other.jsonl")
    assert [str(result) for result in handed_in(metaculus, other, [make_forecast("metaculus/101")])] == [
        "metaculus/101 forecast: already (metaculus shows it)"
    ]


@pytest.mark.parametrize("mishap", ["lost answer", "broken after"])
def test_lost_answer_is_read_back_and_nothing_is_sent_twice(
    metaculus: Any, ledger: SubmissionLedger, make_forecast: Any, mishap: Any
):
    metaculus.fake.inbox_faults.coming = [mishap, mishap]
    handed = handed_in(metaculus, ledger, [make_forecast("metaculus/101")], comment="private")
    assert fates(handed) == ["found", "found"]
    assert (len(metaculus.inbox.forecasts), len(metaculus.inbox.comments)) == (1, 1)
    assert len(metaculus.posted) == 2
    assert kinds(ledger) == ["intention", "receipt"] * 2


@pytest.mark.parametrize("mishap", ["lost request", "broken"])
def test_a_lost_request_is_read_back_and_sent_again(
    metaculus: Any, ledger: SubmissionLedger, make_forecast: Any, mishap: Any
):
    metaculus.fake.inbox_faults.coming = [mishap, None, mishap, mishap]
    handed = handed_in(metaculus, ledger, [make_forecast("metaculus/101")], comment="private")
    assert fates(handed) == ["sent", "sent"]
    assert (len(metaculus.inbox.forecasts), len(metaculus.inbox.comments)) == (1, 1)
    assert kinds(ledger) == ["intention", "receipt"] * 2


def test_item_that_never_arrives_fails_and_is_recorded(metaculus: Any, ledger: SubmissionLedger, make_forecast: Any):
    metaculus.fake.inbox_faults.coming = ["broken"] * 9
    handed = handed_in(metaculus, ledger, [make_forecast("metaculus/101")], comment="private")
    assert fates(handed) == ["failed", "held back"]
    assert len(metaculus.posted) == 3
    assert kinds(ledger) == ["intention", "absence"]


def test_busy_platform_is_waited_for(metaculus: Any, ledger: SubmissionLedger, make_forecast: Any):
    metaculus.fake.inbox_faults.coming = ["busy", "busy", "forbidden"]
    assert fates(handed_in(metaculus, ledger, [make_forecast("metaculus/101")])) == ["sent"]
    assert len(metaculus.inbox.forecasts) == 1


def test_refusal_is_recorded_and_can_be_retried(metaculus: Any, ledger: SubmissionLedger, make_forecast: Any):
    # The fake's clock is ahead, so the question is closed when the forecast arrives.
    metaculus.inbox.now = lambda: datetime(2028, 1, 1, tzinfo=UTC)
    handed = handed_in(metaculus, ledger, [make_forecast("metaculus/101")], comment="private")
    assert fates(handed) == ["refused", "held back"]
    assert kinds(ledger) == ["intention", "refusal"]
    metaculus.inbox.now = lambda: NOW
    assert fates(handed_in(metaculus, ledger, [make_forecast("metaculus/101")])) == ["sent"]


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("arrived", [True, False])
@pytest.mark.parametrize("part", ["forecast", "comment"])
def test_intention_of_a_killed_process_is_settled_by_the_next_one(
    metaculus: Any, ledger: SubmissionLedger, make_forecast: Any, arrived: bool, part: str
):
    forecasts = [make_forecast("metaculus/101"), make_forecast("metaculus/102", {"Ann": 0.7, "Bob": 0.3})]

    async def die(submitter: Any) -> None:
        class Dying(type(submitter)):
            async def send(self, items: Sequence[SubmissionItem]) -> list[ItemResult]:
                if items[0].part == part:
                    if arrived:
                        await super().send(items)
                    raise Killed
                return await super().send(items)

        dying = Dying(**{name: getattr(submitter, name) for name in ("writer", "account", "seen", "now", "options")})
        await SubmissionSender(dying, ledger, lambda: NOW, QUICK).hand_in(dying.plan(forecasts, ()))

    with pytest.raises(Killed):
        metaculus.with_submitter(forecasts, die, comment="private")
    assert kinds(ledger).count("intention") > kinds(ledger).count("receipt")
    handed = handed_in(metaculus, ledger, forecasts, comment="private")
    assert set(fates(handed)) <= {"already", "sent"}
    assert len(metaculus.inbox.forecasts) == len(metaculus.inbox.comments) == 2
    entry_kinds = kinds(ledger)
    assert entry_kinds.count("receipt") == 4
    assert entry_kinds.count("absence") == (0 if arrived else 2)
    assert entry_kinds.count("intention") == entry_kinds.count("receipt") + entry_kinds.count("absence")


def test_unreachable_platform_leaves_the_result_open(metaculus: Any, ledger: SubmissionLedger, make_forecast: Any):
    forecasts = [make_forecast("metaculus/101")]

    async def use(submitter: Any) -> list[ItemResult]:
        metaculus.fake.inbox_faults.coming = ["lost answer"]
        submission = submitter.plan(forecasts, ())
        metaculus.fake.faults.down = ("/posts",)
        return await SubmissionSender(submitter, ledger, lambda: NOW, QUICK).hand_in(submission)

    (result,) = metaculus.with_submitter(forecasts, use)
    assert result.fate == "unknown"
    assert kinds(ledger) == ["intention"]
    metaculus.fake.faults.down = ()
    assert fates(handed_in(metaculus, ledger, forecasts)) == ["already"]
    assert kinds(ledger) == ["intention", "receipt"]
    assert len(metaculus.inbox.forecasts) == 1


def test_two_processes_do_not_send_concurrently(metaculus: Any, ledger: SubmissionLedger, make_forecast: Any):
    with ledger.sending("metaculus"), pytest.raises(InputError, match="another process is sending to metaculus"):
        handed_in(metaculus, ledger, [make_forecast("metaculus/101")])


def test_preview_sends_and_writes_nothing(metaculus: Any, ledger: SubmissionLedger, make_forecast: Any):
    forecasts = [make_forecast("metaculus/101"), make_forecast("metaculus/105")]

    async def use(submitter: Any) -> Any:
        submission = submitter.plan(forecasts, ())
        before = len(metaculus.server.requests)
        preview = SubmissionSender(submitter, ledger, lambda: NOW, QUICK).preview(submission)
        assert len(metaculus.server.requests) == before
        return preview

    fresh, known = metaculus.with_submitter(forecasts, use, comment="private")
    assert [(item.question, item.part) for item in fresh] == [
        ("metaculus/101", "forecast"),
        ("metaculus/101", "comment"),
    ]
    assert (known, kinds(ledger), metaculus.posted) == ([], [], [])
    handed_in(metaculus, ledger, forecasts, comment="private")
    fresh, known = metaculus.with_submitter(forecasts, use, comment="private")
    assert (fresh, fates(known)) == ([], ["already", "already"])


def test_failed_read_back_of_open_intentions_stops_sending(
    metaculus: Any, ledger: SubmissionLedger, make_forecast: Any
):
    test_unreachable_platform_leaves_the_result_open(metaculus, ledger, make_forecast)
    metaculus.fake.inbox_faults.coming = ["lost answer"]

    async def use(submitter: Any) -> None:
        submission = submitter.plan([make_forecast("metaculus/101", 0.2)], ())
        metaculus.fake.faults.down = ("/posts",)
        sending = SubmissionSender(submitter, ledger, lambda: NOW, QUICK)
        assert fates(await sending.hand_in(submission)) == ["unknown"]
        with pytest.raises(SourceError):
            await sending.hand_in(submission)

    metaculus.with_submitter([make_forecast("metaculus/101", 0.2)], use)
    assert len(metaculus.posted) == 1


@pytest.mark.parametrize(
    ("status", "headers"),
    [(401, {}), (403, {}), (409, {}), (422, {}), (429, {"Retry-After": "7200"})],
    ids=["401", "403", "409", "422", "429"],
)
def test_refusal_has_the_servers_message_and_is_resent_at_the_next_call(
    metaculus: Any, ledger: SubmissionLedger, make_forecast: Any, status: int, headers: dict[str, str]
):
    forecasts = [make_forecast("metaculus/101")]

    def refuse(request: Any, handler: Any) -> Any:
        return handler(request) if request.method != "POST" else json_response({"detail": "not now"}, status, headers)

    async def use(submitter: Any) -> list[ItemResult]:
        submission = submitter.plan(forecasts, ())
        metaculus.server.middleware = refuse
        return await SubmissionSender(submitter, ledger, lambda: NOW, QUICK).hand_in(submission)

    (result,) = metaculus.with_submitter(forecasts, use)
    assert (result.fate, kinds(ledger), metaculus.inbox.forecasts) == ("refused", ["intention", "refusal"], [])
    assert str(status) in result.reason
    assert "not now" in result.reason
    assert fates(handed_in(metaculus, ledger, forecasts)) == ["sent"]
    assert len(metaculus.inbox.forecasts) == 1
