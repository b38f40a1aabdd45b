import asyncio
import dataclasses
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.models import FakeModels, ModelFault
from foretell.models.budget import Budget, BudgetedModel
from foretell.models.canonical import content_key, pack_reply, request_key, unpack_reply
from foretell.models.database import sqlite
from foretell.models.journal import DamagedReply, Journal, JournalEntry, JournalRequest, JournalWritingModel
from foretell.models.ledger import CallEstimate, CallRequest
from foretell.models.limits import ModelLimits
from foretell.models.model import (
    ModelBusy,
    ModelError,
    ModelSettings,
    NotInJournal,
    Reply,
    ReplyLost,
    Request,
    SystemMessage,
    TokenCount,
    ToolCall,
    ToolSpec,
    UserMessage,
)
from foretell.models.prices import PriceList
from foretell.models.providers.scripted import ScriptedModel
from foretell.models.reservation import Grant
from foretell.models.router import ModelRouter
from foretell.models.token_price import TokenPrice
from foretell.questions.errors import DiskFull, InputError
from foretell.questions.forecast import Cost

Place = Path | str


def _request(place: int = 0, model: str = "openai:m", **rest: object) -> Request:
    return Request(model=model, messages=(SystemMessage(text="s"), UserMessage(text=f"q {place}")), **rest)


def _exchange(fake: FakeModels, journal: Journal, keys: dict[str, str], **rest: object) -> ModelRouter:
    return ModelRouter(keys, journal=journal, addresses={"openai": f"{fake.url}/v1"}, **rest)


def test_every_part_of_a_request_changes_its_key():
    plain = _request()
    others = [
        _request(1),
        _request(model="openai:n"),
        _request(slot="trial 2"),
        _request(force="*"),
        _request(schema={"type": "object"}),
        _request(settings=ModelSettings(temperature=0.5)),
        dataclasses.replace(plain, messages=(SystemMessage(text="s"), UserMessage(text="q 0", cached=True))),
    ]
    assert len({request_key(request) for request in [plain, *others]}) == 8
    assert request_key(plain) == request_key(_request())


@given(
    st.text(),
    st.text(),
    st.none() | st.text(min_size=1),
    st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
    st.none() | st.sampled_from(["flex", "standard"]),
)
def test_request_key_is_the_key_of_the_canonical_json(
    slot: str, name: str, force: str | None, temperature: float, tier: str
):
    tool = ToolSpec(name="t", description="d", parameters={"type": "object"})
    settings = ModelSettings(temperature=temperature, max_tokens=7, tier=tier)
    request = _request(
        model=f"openai:{name}", slot=slot, force=force, tools=(tool,), settings=settings, schema={"b": 1}
    )
    document = {
        "model": f"openai:{name}",
        "messages": [content_key(["system", "s"]), content_key(["user", "q 0", False])],
        "tools": [content_key(["t", "d", '{"type":"object"}'])],
        "force": force,
        "schema": {"b": 1},
        "settings": [temperature, None, 7, None, *([tier] if tier else [])],
        "slot": slot,
    }
    assert request_key(request) == content_key(document)


def test_cancelled_waiter_loses_no_reply_and_leaves_no_intent(tmp_path: Path):
    async def main(stop_at: str) -> tuple[int, int]:
        journal = Journal(tmp_path / f"{stop_at}.db")
        request = JournalRequest(key=content_key("a"), kind="model")

        async def record() -> None:
            async with journal.recording(request) as recording:
                if stop_at == "keep":
                    asyncio.get_running_loop().call_soon(task.cancel)
                recording.answer = JournalEntry(body=b"paid")

        task = asyncio.create_task(record())
        if stop_at == "intend":
            asyncio.get_running_loop().call_soon(task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        counts = journal.sends(), int(journal.find(request.key) == b"paid")
        journal.close()
        return counts

    assert asyncio.run(main("intend")) == (0, 0)
    assert asyncio.run(main("keep")) == (1, 1)


def test_key_does_not_depend_on_the_order_of_a_schema():
    first, second = {"type": "object", "title": "t"}, {"title": "t", "type": "object"}
    assert request_key(_request(schema=first)) == request_key(_request(schema=second))


def test_equal_requests_in_flight_are_sent_once(place: Place, keys: dict[str, str]):
    async def main() -> None:
        journal = Journal(place)
        async with FakeModels(latency=0.05) as fake, _exchange(fake, journal, keys) as exchange:
            replies = await asyncio.gather(*[exchange.complete(_request()) for _ in range(10)])
            assert await exchange.complete(_request()) == replies[0]
            await exchange.complete(_request(slot="trial 2"))
            assert all(reply == replies[0] for reply in replies)
            # The slot is not sent, so the provider receives the same text twice.
            assert list(fake.billed.values()) == [2]
        assert journal.sends() == 2
        journal.close()

    asyncio.run(main())


def test_second_caller_sends_when_the_first_is_cancelled(place: Place, keys: dict[str, str]):
    async def main() -> None:
        journal = Journal(place)
        # The reply to the first caller never arrives before it is cancelled. The reply to the second is immediate.
        async with FakeModels(latency=60) as fake, _exchange(fake, journal, keys) as exchange:
            model = exchange.within(Budget("run", run="run"))
            leader = asyncio.create_task(model.complete(_request()))
            while not fake.arrived:
                await asyncio.sleep(0.001)
            follower = asyncio.create_task(model.complete(_request()))
            await asyncio.sleep(0.01)
            fake.latency = 0.0
            leader.cancel()
            assert (await follower).text == "You said: q 0"
            assert journal.ledger.lost_calls() == 1  # The first request was cancelled in flight.
        journal.close()

    asyncio.run(main())


def test_callers_of_the_same_request_share_its_failure(place: Place):
    async def main() -> None:
        journal = Journal(place)

        async def fail() -> bytes:
            await asyncio.sleep(0.3)  # All three have asked by then, however slow the database is.
            raise ModelError("no")

        outcomes = await asyncio.gather(
            *[journal.once(content_key("x"), "tool", fail) for _ in range(3)], return_exceptions=True
        )
        assert [str(outcome) for outcome in outcomes] == ["no"] * 3
        assert journal.sends() == 1
        journal.close()

    asyncio.run(main())


def test_replay_is_offline_and_identical(place: Place, keys: dict[str, str]):

    async def live() -> list[bytes]:
        journal = Journal(place)
        async with FakeModels() as fake, _exchange(fake, journal, keys) as exchange:
            replies = [pack_reply(await exchange.complete(_request(number))) for number in range(5)]
        journal.close()
        return replies

    async def replay() -> list[bytes]:
        journal = Journal(place, mode="replay")
        async with ModelRouter({}, journal=journal) as exchange:  # No key and no provider.
            exchange.check(["openai:m"])
            replies = [pack_reply(await exchange.complete(_request(number))) for number in range(5)]
            with pytest.raises(
                NotInJournal, match=r"no answer is stored for model openai:m slot trial 9 \([0-9a-f]{12}\)"
            ):
                await exchange.complete(_request(5, slot="trial 9"))
        journal.close()
        return replies

    assert asyncio.run(live()) == asyncio.run(replay())


def test_replay_needs_an_existing_journal(tmp_path: Path):
    with pytest.raises(InputError, match="there is no journal to replay"):
        Journal(tmp_path / "none.db", mode="replay")
    (tmp_path / "text.db").write_text("not a database at all, and long enough to be read as a header " * 20)
    with pytest.raises(InputError, match="this is not a journal"):
        Journal(tmp_path / "text.db")


def test_tool_results_are_stored_once(place: Place):
    async def main() -> None:
        journal = Journal(place)
        fetched = 0

        async def fetch() -> dict[str, object]:
            nonlocal fetched
            fetched += 1
            return {"found": (1, 2)}

        first = await journal.once_json(content_key({"tool": "search", "q": "x"}), "search", fetch)
        again = await journal.once_json(content_key({"q": "x", "tool": "search"}), "search", fetch)
        assert first == again == {"found": [1, 2]}
        assert fetched == 1
        assert journal.spent() == {}
        journal.close()

    asyncio.run(main())


def test_reply_is_stored_before_it_is_returned(place: Place):
    async def main() -> None:
        journal, reader = Journal(place), Journal(place)
        stored: list[bytes | None] = []
        exchange = ModelRouter({}, journal=journal, wire=lambda _: _ClosableModel(ScriptedModel(["yes"])))
        await exchange.complete(_request())
        stored.append(reader.find(request_key(_request())))
        assert stored == [pack_reply(Reply(text="yes", model="openai:m"))]
        reader.close()
        journal.close()

    asyncio.run(main())


class _ClosableModel:
    def __init__(self, model: ScriptedModel) -> None:
        self.complete = model.complete

    async def close(self) -> None:
        return None


def test_request_in_flight_is_not_sent_by_another_process(place: Place):
    mine, other = Journal(place), Journal(place)
    request = JournalRequest(key=content_key("x"), kind="tool")
    assert mine.intend(request)
    assert not other.intend(request)
    mine.give_up(request, billed=False)
    assert other.intend(request)
    assert not mine.intend(request)
    assert other.keep(request, JournalEntry(body=b"first")) == b"first"
    assert not mine.intend(request)
    # If it is sent nevertheless, the first answer is used.
    assert mine.keep(request, JournalEntry(body=b"second")) == b"first"
    assert mine.sends() == 2
    mine.close()
    other.close()


@pytest.mark.parametrize(
    "edit", ["answer = ?", "dollars = 0.5", "output = 1", "model = 'openai:other'", "checksum = ?", "kind = 'tool'"]
)
def test_edited_entry_is_reported_and_not_used(place: Place, edit: str):
    request = JournalRequest(key=content_key("x"), kind="model", model="openai:m")

    async def again(journal: Journal) -> bytes:
        return await journal.once(request.key, "model", lambda: pytest.fail("asked again"))

    with closing(Journal(place)) as journal:
        journal.intend(request)
        journal.keep(request, JournalEntry(body=b"p = 0.10", tokens=TokenCount(input=5, output=7), dollars=0.25))
        assert journal.find(request.key) == b"p = 0.10"
        journal.database.write(f"UPDATE kept SET {edit}", (b"p = 0.90",) if "?" in edit else ())
        with pytest.raises(DamagedReply, match=rf"\({request.key[:12]}\) is not used.*changed.*doctor --repair"):
            asyncio.run(again(journal))
    with closing(Journal(place, mode="replay")) as journal, pytest.raises(DamagedReply):
        asyncio.run(again(journal))


def test_reply_delayed_by_a_full_disk_is_not_requested_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The first caller has given up meanwhile, and another one needs the reply."""
    monkeypatch.setattr(sqlite, "FULL_PAUSE", 0.01)
    key, sent = content_key("x"), list[int]()

    async def main(journal: Journal) -> bytes:
        def room(pages: int) -> None:
            journal.database.read(f"PRAGMA max_page_count = {pages}")

        async def produce() -> bytes:
            sent.append(1)
            room(1)
            return b"x" * 100_000

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await journal.once(key, "tool", produce)
        second = asyncio.create_task(journal.once(key, "tool", produce))
        await asyncio.sleep(0.05)
        room(1_000_000)
        return await second

    with closing(Journal(tmp_path / "journal.db")) as journal:
        assert asyncio.run(main(journal)) == b"x" * 100_000
    assert sent == [1]


def test_full_disk_raises_an_error_and_sends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sqlite, "FULL_PATIENCE", 0.0)
    sent: list[int] = []

    async def produce() -> bytes:
        sent.append(1)
        return b"reply"

    with closing(Journal(tmp_path / "journal.db")) as journal:
        monkeypatch.setattr(sqlite, "RESERVED_BYTES", 10**18)
        with pytest.raises(DiskFull, match=r"journal.db: the disk is full: only .* kB are left \(free some space"):
            asyncio.run(journal.once(content_key("x"), "tool", produce))
        assert (sent, journal.sends()) == ([], 0)


def test_full_disk_is_logged_once_while_reads_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(sqlite, "FULL_PAUSE", 0.01)

    async def produce() -> bytes:
        return b"reply"

    async def main(journal: Journal) -> list[bytes]:
        tasks = [asyncio.create_task(journal.once(content_key(name), "tool", produce)) for name in "abc"]
        for _ in range(5):
            await asyncio.sleep(0.01)
            await journal.database.aside(journal.database.read, "SELECT 1")
        monkeypatch.setattr(sqlite, "RESERVED_BYTES", 0)
        return await asyncio.gather(*tasks)

    with closing(Journal(tmp_path / "journal.db")) as journal:
        monkeypatch.setattr(sqlite, "RESERVED_BYTES", 10**18)
        assert asyncio.run(main(journal)) == [b"reply"] * 3
    assert len([record for record in caplog.records if "waiting up to" in record.getMessage()]) == 1


def test_entries_without_checksum_are_accepted(place: Place):
    request = JournalRequest(key=content_key("x"), kind="tool")
    journal = Journal(place)
    journal.intend(request)
    journal.keep(request, JournalEntry(body=b"old"))
    journal.database.write("UPDATE kept SET checksum = NULL")
    assert journal.find(request.key) == b"old"
    journal.close()


def test_process_waits_for_a_request_in_flight_elsewhere(place: Place, keys: dict[str, str]):
    async def main() -> None:
        journals = [Journal(place), Journal(place)]
        async with FakeModels(latency=0.2) as fake:
            exchanges = [_exchange(fake, journal, keys) for journal in journals]
            asking = [exchange.complete(_request(number)) for number in range(5) for exchange in exchanges]
            replies = await asyncio.gather(*asking)
            assert list(fake.billed.values()) == [1] * 5
            assert replies[::2] == replies[1::2]
            for exchange in exchanges:
                await exchange.close()
        assert journals[0].sends() == 5
        for journal in journals:
            journal.close()

    asyncio.run(main())


def test_process_sends_a_request_that_another_gave_up(place: Place):
    async def main() -> None:
        journal, other = Journal(place), Journal(place)
        key, begun = content_key("x"), asyncio.Event()

        async def fail() -> bytes:
            begun.set()
            await asyncio.sleep(0.1)
            raise ModelError("no")

        async def answer() -> bytes:
            return b"yes"

        failing = asyncio.create_task(journal.once(key, "tool", fail))
        await begun.wait()
        assert await other.once(key, "tool", answer) == b"yes"
        with pytest.raises(ModelError):
            await failing
        assert journal.sends() == 2
        journal.close()
        other.close()

    asyncio.run(main())


def test_requests_in_flight_count_as_lost(place: Place, keys: dict[str, str]):
    limits = {"openai": ModelLimits(attempts=3, first_pause=0.001)}

    async def main() -> None:
        journal = Journal(place)
        async with FakeModels() as fake, _exchange(fake, journal, keys, limits=limits) as exchange:
            fake.fail(ModelFault(kind="status", status=500))
            fake.fail(ModelFault(kind="cut"))
            await exchange.within(Budget("run", run="run")).complete(_request())
            # The 500 was certainly not billed. The truncated reply may have been billed, and was billed here.
            assert (journal.sends(), journal.ledger.lost_calls()) == (3, 1)
            assert list(fake.billed.values()) == [2]
        journal.close()

        crashed = Journal(place)
        call = crashed.ledger.reserve(CallRequest("run", content_key("in flight"), "openai:m", CallEstimate(0, 10)))
        assert isinstance(call, Grant)
        assert crashed.ledger.sending(call.call)
        assert crashed.ledger.lost_calls() == 1  # The second is in flight.
        crashed.close()
        after = Journal(place)
        assert after.ledger.lost_calls() == 2
        after.close()

    asyncio.run(main())


@pytest.mark.parametrize(("error", "lost"), [(ModelBusy("429"), 0), (ReplyLost("cut"), 1)])
def test_only_failures_with_possible_bills_count_as_lost(place: Place, error: Exception, lost: int):
    class Failing:
        async def complete(self, request: Request) -> Reply:
            raise error

    async def main() -> None:
        journal, prices = Journal(place), PriceList()
        writing = JournalWritingModel(Failing(), journal, prices)
        with pytest.raises(ModelBusy):
            await BudgetedModel(writing, prices, Budget("run", run="run"), journal).complete(_request())
        assert journal.ledger.lost_calls() == lost
        journal.close()

    asyncio.run(main())


def test_spending_is_summed_by_model(place: Place):
    async def main() -> None:
        journal = Journal(place)
        prices = PriceList({"openai:m": TokenPrice(input=1, output=10)})
        reply = Reply(text="x", tokens=TokenCount(input=1_000_000, output=100_000))
        script = ScriptedModel(lambda _: reply)
        exchange = ModelRouter({}, journal=journal, prices=prices, wire=lambda _: _ClosableModel(script))
        for number in range(2):
            await exchange.complete(_request(number))
        await exchange.complete(_request(model="compat:x@http://example.org/v1"))
        spent = journal.spent()
        assert spent["openai:m"] == Cost(calls=2, input_tokens=2_000_000, output_tokens=200_000, dollars=4.0)
        assert spent["compat:x@http://example.org/v1"].unpriced == 1
        journal.close()

    asyncio.run(main())


TEXT = st.text(max_size=30) | st.sampled_from(["a\x7f", "\ud800", "é\n\x00", '"\\/\u2028'])


@given(TEXT, TEXT, st.booleans())
def test_fast_key_computation_gives_the_same_key(text: str, other: str, cached: bool):
    tool = ToolSpec(name="t", description=other, parameters={"type": "object", "title": text})
    messages = (SystemMessage(text=text), UserMessage(text=other, cached=cached))
    request = Request(model="openai:m", messages=messages, tools=(tool,), settings=ModelSettings(temperature=1e-07))
    system, user = content_key(["system", text]), content_key(["user", other, cached])
    assert request_key(request) == content_key(
        {
            "model": "openai:m",
            "messages": [system, user],
            "tools": [content_key(["t", other, tool.parameters_json])],
            "force": None,
            "schema": None,
            "settings": [1e-07, None, None, None],
            "slot": "",
        }
    )
    reply = Reply(text=text, calls=(ToolCall(id="c", name="t", arguments=other),), dollars=1e-07, sealed=other)
    assert unpack_reply(pack_reply(reply)) == reply
