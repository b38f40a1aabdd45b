"""The ledger: nested accounts, sharing between processes, and open calls of ended processes."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.postgres import LocalPostgres
from foretell.models.canonical import content_key, pack_reply
from foretell.models.journal import Journal, JournalEntry, JournalRequest
from foretell.models.ledger import Account, CallEstimate, CallRequest, Ledger, Money, Shortage, batch_key
from foretell.models.model import Reply, ReservationReleased
from foretell.models.reservation import Grant
from foretell.models.token_price import TokenPrice

PRICE = TokenPrice(input=0, output=1000)
"""A tenth of a cent for every token written."""


def call_request(account: str, output: int = 100, name: str = "x", **more: bool) -> CallRequest:
    return CallRequest(account, content_key(name), "openai:m", CallEstimate(0, output, PRICE), **more)


def granted(answer: Grant | Shortage) -> Grant:
    assert isinstance(answer, Grant), answer
    return answer


def test_an_estimate_counts_the_fee_of_a_request_apart_from_its_tokens():
    price = TokenPrice(input=2000, output=8000, request=0.5)
    estimate = CallEstimate(100, 50, price, factor=0.5)
    assert estimate.dollars(0) == pytest.approx((0.2 + 0.5) / 2)
    assert estimate.dollars() == pytest.approx((0.2 + 0.4 + 0.5) / 2)
    assert estimate.share(0.35) == pytest.approx(1.0), "as many tokens as estimated"
    assert estimate.share(0.25 + 0.05) == pytest.approx(0.5), "half of the tokens, and the whole fee"
    assert CallEstimate(0, 50, price).share(0.7) == 1.0, "nothing was estimated to compare with"
    assert CallEstimate(100, 50).share(0.7) == 1.0


def test_the_longest_reply_is_what_the_money_left_pays_for():
    estimate = CallEstimate(100, 50, TokenPrice(input=2000, output=8000, request=0.5), factor=0.5)
    assert estimate.longest(0.35 + 0.004 * 20) == 20
    assert estimate.longest(0.35 + 0.004 * 20.99) == 20
    assert estimate.longest(100.0) == 50
    free = TokenPrice(input=2000, output=0)
    assert [CallEstimate(100, 50, free).longest(dollars) for dollars in (0.2, 0.19)] == [50, 0]


@pytest.fixture
def ledgers(place: Path | str) -> Iterator[list[Ledger]]:
    """Three ledgers on one database, which act like three processes."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Journal(place))).ledger for _ in range(3)]


def test_a_call_is_reserved_and_then_billed_lost_or_released(ledgers: list[Ledger]):
    ledger, other, _ = ledgers
    ledger.open(Account("run", "run", 1.0))
    calls = [granted(ledger.reserve(call_request("run"))) for _ in range(3)]
    assert other.money("run") == Money(reserved=pytest.approx(0.3))
    for call in calls:
        assert ledger.sending(call.call)
    ledger.bill(calls[0], 0.04)
    ledger.lose(calls[1])
    ledger.release(calls[2])
    assert other.money("run") == Money(billed=0.04, unknown=0.1)
    assert other.lost_calls() == other.lost_calls("run") == 1
    never_sent = granted(ledger.reserve(call_request("run")))
    ledger.lose(never_sent)  # Cancelled while waiting for its turn, so it is not billed.
    for call in calls:  # Ended calls are not counted again.
        ledger.release(call) if call != calls[1] else ledger.lose(call)
    assert other.money("run") == Money(billed=0.04, unknown=0.1)
    ledger.bill(calls[1], 0.07)  # The lost reply arrived after all.
    assert other.money("run") == Money(billed=pytest.approx(0.11))


def test_call_that_ends_while_another_asks_for_money_wakes_it(ledgers: list[Ledger], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("foretell.models.ledger.LOOK_ELSEWHERE", 3600)
    ledger = ledgers[0]
    ledger.open(Account("run", "run", 0.1))
    first = granted(ledger.reserve(call_request("run")))
    answers: list[Grant | Shortage] = []
    ask = ledger._try_reserve

    async def ask_while_the_first_call_ends(request: CallRequest) -> Grant | Shortage:
        answers.append(await ask(request))
        if len(answers) == 2:
            ledger.release(first)
            ledger.call_ended()
        return answers[-1]

    monkeypatch.setattr(ledger, "_try_reserve", ask_while_the_first_call_ends)
    asyncio.run(asyncio.wait_for(ledger.reserve_soon(call_request("run", name="y")), 60))
    assert [isinstance(answer, Grant) for answer in answers] == [False, False, True]


def test_refusal_names_the_tightest_account_with_correct_sums(ledgers: list[Ledger]):
    ledger = ledgers[0]
    ledger.open(Account("arena", "arena", 10.0))
    ledger.open(Account("run", "run", 0.25, "arena"))
    ledger.open(Account("question", "question", 5.0, "run"))
    ledger.bill(granted(ledger.reserve(call_request("question"))), 0.1)
    lost = granted(ledger.reserve(call_request("question")))
    assert ledger.sending(lost.call)
    ledger.lose(lost)
    for account in ("question", "run", "arena"):
        assert ledger.money(account) == Money(billed=0.1, unknown=0.1)
    last = granted(ledger.reserve(call_request("question", output=1000)))
    assert (last.output, last.dollars, last.limited) == (50, pytest.approx(0.05), True)
    ledger.bill(last, 0.045)
    refused = ledger.reserve(call_request("question", output=1000))
    message = "0.145 billed, 0.1 unknown, 0.005 left; the next call needs 0.016"
    assert refused == Shortage("run", f"the budget of the run allows 0.25 dollars: {message}")


def test_a_call_waits_while_others_are_open_and_takes_what_is_left(ledgers: list[Ledger]):
    first, second, _ = ledgers
    first.open(Account("run", "run", 0.15))
    call = granted(first.reserve(call_request("run")))
    assert second.reserve(call_request("run")) == Shortage("run")  # It may get more money when the first has ended.
    first.bill(call, 0.02)
    assert granted(second.reserve(call_request("run"))).output == 100
    assert second.reserve(call_request("run")) == Shortage("run")


def test_first_waiting_call_continues_when_a_call_ends():
    ledger = Ledger.in_memory()
    ledger.open(Account("run", "run", 0.35))

    async def call(n: int) -> int:
        grant = granted(await ledger.reserve_soon(call_request("run", name=str(n))))
        await asyncio.sleep(0.01)
        ledger.bill(grant, 0.01)
        ledger.call_ended()
        return grant.output

    async def main() -> list[int]:
        return await asyncio.wait_for(asyncio.gather(*map(call, range(20))), 30)

    assert asyncio.run(main()) == [100] * 20
    assert ledger.money("run") == Money(billed=pytest.approx(0.2))


def test_enclosed_account_adds_its_usage_to_the_new_parent(ledgers: list[Ledger]):
    ledger, other, _ = ledgers
    ledger.open(Account("run", "run"))
    ledger.bill(granted(ledger.reserve(call_request("run"))), 0.1)
    still = granted(ledger.reserve(call_request("run")))
    other.open(Account("grid", "grid", 0.25))
    for _ in range(2):
        other.enclose(["run", "no such run"], "grid")
        assert ledger.money("grid") == Money(billed=0.1, reserved=0.1)
    ledger.bill(still, 0.1)
    assert other.money("grid") == Money(billed=pytest.approx(0.2))
    assert granted(ledger.reserve(call_request("run"))).output == 50


def test_raised_limit_applies_to_all_processes(ledgers: list[Ledger]):
    first, second, _ = ledgers
    first.open(Account("run", "run", 0.01))
    assert isinstance(second.reserve(call_request("run")), Shortage)
    first.open(Account("run", "run", 1.0))
    assert granted(second.reserve(call_request("run"))).output == 100


def test_a_limit_needs_a_price(ledgers: list[Ledger]):
    ledger = ledgers[0]
    ledger.open(Account("free", "run"))
    ledger.open(Account("limited", "run", 1.0))
    unknown = call_request("limited")._replace(estimate=CallEstimate(10, 10))
    assert ledger.reserve(unknown) == Shortage("limited", unpriced=True)
    assert granted(ledger.reserve(unknown._replace(account="free"))).dollars == 0.0


# Open calls of a killed process.

KILLED = """
import os, sys
from foretell.models.canonical import content_key
from foretell.models.journal import Journal
from foretell.models.token_price import TokenPrice
from foretell.models.ledger import Account, CallEstimate, CallRequest
ledger = Journal(sys.argv[1]).ledger
ledger.open(Account("run", "run", 1.0))
for name in ("reserved", "sent", "gathered", "submitted"):
    estimate = CallEstimate(0, 100, TokenPrice(input=0, output=1000))
    grant = ledger.reserve(CallRequest("run", content_key(name), "openai:m", estimate))
    if name == "sent":
        ledger.sending(grant.call)
    elif name == "submitted":
        ledger.sending_batch([content_key(name)])
print("ready", flush=True)
os.kill(os.getpid(), 9)
"""


def test_ended_process_releases_unsent_calls_and_keeps_sent_ones_as_unknown(place: Path | str):
    with closing(Journal(place)) as journal:
        ledger = journal.ledger
        child = subprocess.run([sys.executable, "-c", KILLED, str(place)], check=False, capture_output=True, timeout=60)
        assert b"ready" in child.stdout, child.stderr.decode()
        key = content_key("submitted")
        journal.keep(JournalRequest(key=batch_key(key), kind="batch"), JournalEntry(body=b"batch_1"))
        while (money := ledger.money("run")).reserved > 0.11:  # A server considers a process ended only after a while.
            assert money.unknown == 0.0
        assert money == Money(unknown=0.1, reserved=0.1)
        # The provider has the batch. The next caller continues with the same reservation and is billed once.
        again = granted(ledger.reserve(call_request("run", name="submitted", batch=True)))
        assert ledger.money("run") == money
        ledger.bill(again, 0.02)
        assert ledger.money("run") == Money(billed=0.02, unknown=0.1)
        assert granted(ledger.reserve(call_request("run", output=880))).output == 880


def test_process_considered_dead_sends_nothing(ledgers: list[Ledger]):
    ledger = ledgers[0]
    ledger.open(Account("run", "run", 1.0))
    call = granted(ledger.reserve(call_request("run")))
    ledger.release(call)  # As another process does that considers this one dead.
    assert not ledger.sending(call.call)


class Reserved:
    """A minimal reservation for the journal."""

    payer = "run"

    def __init__(self, ledger: Ledger, grant: Grant) -> None:
        self.ledger, self.grant, self.ended = ledger, grant, False

    def ended_with_reply(self) -> None:
        self.ended = True

    async def lose(self) -> int:
        raise AssertionError

    async def reprice(self, factor: float) -> int:
        raise AssertionError


def test_a_reply_is_stored_and_billed_together(place: Path | str):
    with closing(Journal(place)) as journal:
        journal.ledger.open(Account("run", "run", 1.0))
        money = Reserved(journal.ledger, granted(journal.ledger.reserve(call_request("run"))))
        request = JournalRequest(content_key("x"), "model", "openai:m", payer="run", reservation=money)
        assert journal.intend(request)
        journal.keep(request, JournalEntry(body=pack_reply(Reply(text="yes")), dollars=0.03))
        assert money.ended
        assert journal.ledger.money("run") == Money(billed=0.03)


def test_a_released_call_is_not_recorded_as_sent(place: Path | str):
    with closing(Journal(place)) as journal:
        journal.ledger.open(Account("run", "run", 1.0))
        money = Reserved(journal.ledger, granted(journal.ledger.reserve(call_request("run"))))
        journal.ledger.release(money.grant)
        request = JournalRequest(content_key("x"), "model", "openai:m", payer="run", reservation=money)
        with pytest.raises(ReservationReleased):
            journal.intend(request)
        assert journal.database.read("SELECT sends, owner FROM sent") == [(0, None)]
        assert journal.ledger.money("run") == Money()


def test_money_of_a_recorded_call_survives_a_crash_of_the_server(postgres: str, postgres_server: LocalPostgres):
    """The reservation itself does not wait for the disk: recording the request writes it there."""
    with closing(Journal(postgres)) as journal:
        journal.ledger.open(Account("run", "run", 1.0))
        money = Reserved(journal.ledger, granted(journal.ledger.reserve(call_request("run"))))
        request = JournalRequest(content_key("x"), "model", "openai:m", payer="run", reservation=money)
        assert journal.intend(request)
        postgres_server.outage(0)
        assert journal.ledger.money("run") == Money(reserved=0.1)
        # Of a reservation without a request, the money may be lost with it, but nothing is sent then.
        unsent = Reserved(journal.ledger, granted(journal.ledger.reserve(call_request("run", name="y"))))
        postgres_server.outage(0)
        reserved = journal.ledger.money("run").reserved
        try:
            assert journal.intend(
                JournalRequest(content_key("y"), "model", "openai:m", payer="run", reservation=unsent)
            )
        except ReservationReleased:
            assert reserved == 0.1
        else:
            assert reserved == 0.2


def test_money_of_a_batch_survives_a_crash_of_the_server(postgres: str, postgres_server: LocalPostgres):
    with closing(Journal(postgres)) as journal:
        journal.ledger.open(Account("run", "run", 1.0))
        granted(journal.ledger.reserve(call_request("run", batch=True)))
        postgres_server.outage(0)
        assert journal.ledger.money("run") == Money(reserved=0.1)


ENDS = ("bill", "lose", "release")


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(1, 400), st.floats(0, 1), st.sampled_from(["bill", "lose", "release"])), max_size=60
    ),
    st.floats(0.01, 3),
)
def test_limits_hold_and_sums_are_exact(calls: list[tuple[int, float, str]], limit: float):
    ledger = Ledger.in_memory()
    ledger.open(Account("run", "run", limit))
    ledger.open(Account("question", "question", limit / 2, "run"))
    billed = unknown = 0.0
    for n, (output, share, how) in enumerate(calls):
        answer = ledger.reserve(call_request(("run", "question")[n % 2], output))
        if isinstance(answer, Shortage):
            continue
        assert ledger.sending(answer.call)
        if how == "bill":
            ledger.bill(answer, share * answer.dollars)
            billed += share * answer.dollars
        else:
            getattr(ledger, how)(answer)
            unknown += answer.dollars * (how == "lose")
    money = ledger.money("run")
    assert money.used <= limit + 1e-9
    assert money == Money(billed=pytest.approx(billed, abs=1e-6), unknown=pytest.approx(unknown, abs=1e-6))
    assert ledger.money("question").used <= limit / 2 + 1e-9
