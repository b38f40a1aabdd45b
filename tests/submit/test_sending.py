"""From plan to platform: sent once whatever happens in between, and on record before and after."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from foretell.data import SourceError
from foretell.practice import json_response
from foretell.questions import InputError
from foretell.submit import (
    ItemResult,
    SendOptions,
    SubmissionItem,
    SubmissionLedger,
    SubmissionSender,
)

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
    return [one.fate for one in handed]


def kinds(ledger: SubmissionLedger) -> list[str]:
    assert ledger.verify().whole
    return [entry.kind for entry in ledger.entries()]


def test_intention_before_and_receipt_after(metaculus: Any, ledger: SubmissionLedger, said: Any):
    handed = handed_in(metaculus, ledger, [said("metaculus/101")], comment="private")
    assert fates(handed) == ["sent", "sent"]
    meant, taken, comment, noted = ledger.entries()
    assert (meant.kind, meant.platform, meant.account, meant.question) == (
        "intention",
        "metaculus",
        "practice-bot",
        "metaculus/101",
    )
    assert meant.content == {"question": 1, "probability_yes": 0.63}
    assert taken.content == {"intention": 1, "sent": meant.digest, "how": "answered"}
    assert (comment.part, noted.content["answer"]) == ("comment", {"comment": "1000"})
    assert "canary-token" not in ledger.path.read_text()
    assert ledger.verify().whole


def test_the_same_content_is_sent_once(metaculus: Any, ledger: SubmissionLedger, said: Any):
    first = [said("metaculus/101")]
    handed_in(metaculus, ledger, first, comment="private")
    again = handed_in(metaculus, ledger, first, comment="private")
    assert fates(again) == ["already", "already"]
    assert metaculus.posted == []
    # Withdrawn by hand: the ledger still knows that it was sent.
    metaculus.inbox.forecasts.clear()
    again = handed_in(metaculus, ledger, first)
    assert [str(one) for one in again] == ["metaculus/101 forecast: already (entry 1 of the ledger)"]
    assert fates(handed_in(metaculus, ledger, first, SendOptions(pause=0.0, resend=True))) == ["sent"]


def test_a_change_is_sent_and_so_is_the_way_back(metaculus: Any, ledger: SubmissionLedger, said: Any):
    for p in (0.6, 0.7, 0.6):
        assert fates(handed_in(metaculus, ledger, [said("metaculus/101", p)])) == ["sent"]
    assert [one["probability_yes"] for one in metaculus.inbox.forecasts] == [0.6, 0.7, 0.6]
    assert kinds(ledger) == ["intention", "receipt"] * 3


def test_what_the_platform_shows_is_not_sent_though_the_ledger_is_new(
    metaculus: Any, ledger: SubmissionLedger, said: Any, tmp_path: Any
):
    handed_in(metaculus, ledger, [said("metaculus/101")])
    other = SubmissionLedger(tmp_path / "other.jsonl")
    assert [str(one) for one in handed_in(metaculus, other, [said("metaculus/101")])] == [
        "metaculus/101 forecast: already (metaculus shows it)"
    ]


@pytest.mark.parametrize("mishap", ["lost answer", "broken after"])
def test_a_lost_answer_is_read_back_and_nothing_is_sent_twice(
    metaculus: Any, ledger: SubmissionLedger, said: Any, mishap: Any
):
    metaculus.fake.inbox_faults.coming = [mishap, mishap]
    handed = handed_in(metaculus, ledger, [said("metaculus/101")], comment="private")
    assert fates(handed) == ["found", "found"]
    assert (len(metaculus.inbox.forecasts), len(metaculus.inbox.comments)) == (1, 1)
    assert len(metaculus.posted) == 2
    assert kinds(ledger) == ["intention", "receipt"] * 2


@pytest.mark.parametrize("mishap", ["lost request", "broken"])
def test_a_lost_request_is_read_back_and_sent_again(metaculus: Any, ledger: SubmissionLedger, said: Any, mishap: Any):
    metaculus.fake.inbox_faults.coming = [mishap, None, mishap, mishap]
    handed = handed_in(metaculus, ledger, [said("metaculus/101")], comment="private")
    assert fates(handed) == ["sent", "sent"]
    assert (len(metaculus.inbox.forecasts), len(metaculus.inbox.comments)) == (1, 1)
    assert kinds(ledger) == ["intention", "receipt"] * 2


def test_what_never_arrives_is_given_up_and_noted(metaculus: Any, ledger: SubmissionLedger, said: Any):
    metaculus.fake.inbox_faults.coming = ["broken"] * 9
    handed = handed_in(metaculus, ledger, [said("metaculus/101")], comment="private")
    assert fates(handed) == ["failed", "held back"]
    assert len(metaculus.posted) == 3
    assert kinds(ledger) == ["intention", "absence"]


def test_busy_is_waited_for(metaculus: Any, ledger: SubmissionLedger, said: Any):
    metaculus.fake.inbox_faults.coming = ["busy", "busy", "forbidden"]
    assert fates(handed_in(metaculus, ledger, [said("metaculus/101")])) == ["sent"]
    assert len(metaculus.inbox.forecasts) == 1


def test_a_refusal_is_noted_and_may_be_tried_again(metaculus: Any, ledger: SubmissionLedger, said: Any):
    # The fake's clock runs ahead: closed by the time it arrives.
    metaculus.inbox.now = lambda: datetime(2028, 1, 1, tzinfo=UTC)
    handed = handed_in(metaculus, ledger, [said("metaculus/101")], comment="private")
    assert fates(handed) == ["refused", "held back"]
    assert kinds(ledger) == ["intention", "refusal"]
    metaculus.inbox.now = lambda: NOW
    assert fates(handed_in(metaculus, ledger, [said("metaculus/101")])) == ["sent"]


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("arrived", [True, False])
@pytest.mark.parametrize("part", ["forecast", "comment"])
def test_a_process_that_dies_in_between_leaves_a_trace_and_the_next_one_decides(
    metaculus: Any, ledger: SubmissionLedger, said: Any, arrived: bool, part: str
):
    forecasts = [said("metaculus/101"), said("metaculus/102", {"Ann": 0.7, "Bob": 0.3})]

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
    found = kinds(ledger)
    assert found.count("receipt") == 4
    assert found.count("absence") == (0 if arrived else 2)
    assert found.count("intention") == found.count("receipt") + found.count("absence")


def test_an_unreachable_platform_leaves_it_open_for_the_next_time(metaculus: Any, ledger: SubmissionLedger, said: Any):
    forecasts = [said("metaculus/101")]

    async def use(submitter: Any) -> list[ItemResult]:
        metaculus.fake.inbox_faults.coming = ["lost answer"]
        submission = submitter.plan(forecasts, ())
        metaculus.fake.faults.down = ("/posts",)
        return await SubmissionSender(submitter, ledger, lambda: NOW, QUICK).hand_in(submission)

    (one,) = metaculus.with_submitter(forecasts, use)
    assert one.fate == "unknown"
    assert kinds(ledger) == ["intention"]
    metaculus.fake.faults.down = ()
    assert fates(handed_in(metaculus, ledger, forecasts)) == ["already"]
    assert kinds(ledger) == ["intention", "receipt"]
    assert len(metaculus.inbox.forecasts) == 1


def test_two_processes_do_not_send_at_once(metaculus: Any, ledger: SubmissionLedger, said: Any):
    with ledger.sending("metaculus"), pytest.raises(InputError, match="another process is sending to metaculus"):
        handed_in(metaculus, ledger, [said("metaculus/101")])


def test_a_preview_asks_nobody_and_writes_nothing(metaculus: Any, ledger: SubmissionLedger, said: Any):
    forecasts = [said("metaculus/101"), said("metaculus/105")]

    async def use(submitter: Any) -> Any:
        submission = submitter.plan(forecasts, ())
        before = len(metaculus.server.requests)
        found = SubmissionSender(submitter, ledger, lambda: NOW, QUICK).preview(submission)
        assert len(metaculus.server.requests) == before
        return found

    fresh, known = metaculus.with_submitter(forecasts, use, comment="private")
    assert [(item.question, item.part) for item in fresh] == [
        ("metaculus/101", "forecast"),
        ("metaculus/101", "comment"),
    ]
    assert (known, kinds(ledger), metaculus.posted) == ([], [], [])
    handed_in(metaculus, ledger, forecasts, comment="private")
    fresh, known = metaculus.with_submitter(forecasts, use, comment="private")
    assert (fresh, fates(known)) == ([], ["already", "already"])


def test_reading_back_that_fails_before_anything_is_sent_stops_everything(
    metaculus: Any, ledger: SubmissionLedger, said: Any
):
    test_an_unreachable_platform_leaves_it_open_for_the_next_time(metaculus, ledger, said)
    metaculus.fake.inbox_faults.coming = ["lost answer"]

    async def use(submitter: Any) -> None:
        submission = submitter.plan([said("metaculus/101", 0.2)], ())
        metaculus.fake.faults.down = ("/posts",)
        sending = SubmissionSender(submitter, ledger, lambda: NOW, QUICK)
        assert fates(await sending.hand_in(submission)) == ["unknown"]
        with pytest.raises(SourceError):
            await sending.hand_in(submission)

    metaculus.with_submitter([said("metaculus/101", 0.2)], use)
    assert len(metaculus.posted) == 1


@pytest.mark.parametrize(
    ("status", "headers"),
    [(401, {}), (403, {}), (409, {}), (422, {}), (429, {"Retry-After": "7200"})],
    ids=["401", "403", "409", "422", "429"],
)
def test_a_refusal_is_told_in_the_servers_words_and_sent_at_the_next_call(
    metaculus: Any, ledger: SubmissionLedger, said: Any, status: int, headers: dict[str, str]
):
    forecasts = [said("metaculus/101")]

    def refuse(request: Any, handler: Any) -> Any:
        return handler(request) if request.method != "POST" else json_response({"detail": "not now"}, status, headers)

    async def use(submitter: Any) -> list[ItemResult]:
        submission = submitter.plan(forecasts, ())
        metaculus.server.middleware = refuse
        return await SubmissionSender(submitter, ledger, lambda: NOW, QUICK).hand_in(submission)

    (one,) = metaculus.with_submitter(forecasts, use)
    assert (one.fate, kinds(ledger), metaculus.inbox.forecasts) == ("refused", ["intention", "refusal"], [])
    assert str(status) in one.reason
    assert "not now" in one.reason
    assert fates(handed_in(metaculus, ledger, forecasts)) == ["sent"]
    assert len(metaculus.inbox.forecasts) == 1
