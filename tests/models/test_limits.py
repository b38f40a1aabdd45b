"""Concurrency, rates and retries, also across processes, which are simulated by opening a database several times."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.models import FakeModels, ModelFault
from foretell.models.database import open_database
from foretell.models.journal import Journal
from foretell.models.limited_model import LimitedModel
from foretell.models.limits import ModelLimits, parse_model_limits
from foretell.models.model import (
    ModelBusy,
    ModelError,
    ModelRefused,
    Reply,
    ReplyLost,
    Request,
    TokenCount,
    UserMessage,
)
from foretell.models.providers.scripted import ScriptedModel
from foretell.models.rate_limits import DatabaseLimits, MemoryLimits, RateLimit, RateLimiter, Taken, Wants, fair_shares
from foretell.models.router import ModelRouter, open_provider
from foretell.questions.errors import InputError

QUICK = ModelLimits(first_pause=0.001, longest_pause=5.0)


def _request(place: int = 0) -> Request:
    return Request(model="openai:m", messages=(UserMessage(text=f"q {place}"),))


def _limited(limits: ModelLimits, use: Callable[[LimitedModel, FakeModels], Awaitable[None]]) -> FakeModels:
    async def main() -> FakeModels:
        async with FakeModels(latency=0.01) as fake:
            client = open_provider("openai:m", {"OPENAI_API_KEY": "k"}, address=f"{fake.url}/v1")
            await use(LimitedModel(client, limits, rng=random.Random(0)), fake)
            await client.close()
            return fake

    return asyncio.run(main())


def test_concurrency_limit_holds():
    async def use(model: LimitedModel, _fake: FakeModels) -> None:
        await asyncio.gather(*[model.complete(_request(place)) for place in range(60)])

    assert _limited(ModelLimits(at_once=7), use).peak == 7


def _departures(limits: ModelLimits, gaps: list[float], amounts: list[int]) -> list[tuple[float, int]]:
    """Simulated departure times of requests after these gaps. Each request uses half of its estimated tokens."""
    now = [1000.0]
    store, departures = MemoryLimits(lambda: now[0]), list[tuple[float, int]]()
    for gap, amount in zip(gaps, amounts, strict=False):
        now[0] += gap
        wants = [want for want in limits.wants(amount) if want[0].seconds]
        while (taken := store.take("p", wants, longest=300.0)).wait > 0:
            now[0] += taken.wait
        used = amount - amount // 2
        store.give_back("p", taken, [want for want in limits.wants(used) if want[0].seconds])
        departures.append((now[0], used))
    return departures


@settings(max_examples=60)
@given(
    limit=st.integers(2, 5000),
    gaps=st.lists(st.floats(0, 20), min_size=1, max_size=300),
    amounts=st.lists(st.integers(1, 500), min_size=300, max_size=300),
)
def test_rate_limit_holds_in_every_minute(limit: int, gaps: list[float], amounts: list[int]):
    for limits, most in (
        (ModelLimits(requests_per_minute=limit), limit),
        (ModelLimits(tokens_per_minute=100 * limit), 100 * limit),
    ):
        departures = _departures(limits, gaps, amounts)
        for start, _ in departures:
            inside = [used for at, used in departures if start <= at < start + 60]
            assert (len(inside) if limits.requests_per_minute else sum(inside)) <= max(most, 500)


def test_requests_per_minute_limit_holds():
    async def use(model: LimitedModel, _fake: FakeModels) -> None:
        await asyncio.gather(*[model.complete(_request(place)) for place in range(26)])

    began = time.monotonic()
    times = list(_limited(ModelLimits(requests_per_minute=240, at_once=100), use).times)
    # A burst of 20, then four a second. A slow machine may only delay requests.
    assert all(at - began >= max(0, place - 20) / 4 for place, at in enumerate(times))
    assert len(times) == 26


def test_unused_tokens_are_given_back():
    amounts: list[float] = []

    class Watched(MemoryLimits):
        def take(self, place: str, wants: Wants, *, longest: float, waiting: int = 0) -> Taken:
            amounts.append(max(amount for _, amount in wants))
            return super().take(place, wants, longest=longest, waiting=waiting)

        def give_back(self, place: str, taken: Taken, wants: Wants, **options: Any) -> None:
            amounts.append(max(amount for _, amount in wants))
            super().give_back(place, taken, wants, **options)

    async def main() -> None:
        script = ScriptedModel([Reply(tokens=TokenCount(input=10, output=5))])
        limits = ModelLimits(tokens_per_minute=100_000)
        await LimitedModel(script, limits, limiter=RateLimiter(Watched(), longest=60.0)).complete(_request())

    asyncio.run(main())
    estimate, used = amounts
    assert estimate > used == 15


def test_busy_provider_is_retried():
    async def use(model: LimitedModel, fake: FakeModels) -> None:
        fake.fail(ModelFault(kind="status", status=429), times=2)
        fake.fail(ModelFault(kind="status", status=503))
        assert (await model.complete(_request())).text == "You said: q 0"

    assert _limited(QUICK, use).arrived == 4


def test_all_requests_wait_for_the_pause_of_the_provider():
    async def use(model: LimitedModel, fake: FakeModels) -> None:
        fake.fail(ModelFault(kind="status", status=429, wait=0.4))
        first = asyncio.create_task(model.complete(_request(0)))
        while fake.arrived < 1 or fake.under_way:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)  # The response has arrived by now.
        await asyncio.gather(first, *[model.complete(_request(place)) for place in range(1, 5)])

    times = list(_limited(QUICK, use).times)
    assert len(times) == 6
    assert times[1] - times[0] >= 0.39


def test_attempts_are_bounded():
    async def use(model: LimitedModel, fake: FakeModels) -> None:
        fake.fail(ModelFault(kind="status", status=500), times=10)
        with pytest.raises(ModelError, match=r"HTTP 500.*gave up after 3 attempts") as caught:
            await model.complete(_request())
        assert not isinstance(caught.value, ModelBusy)

    assert _limited(ModelLimits(attempts=3, first_pause=0.001), use).arrived == 3


def test_too_long_retry_after_gives_up_immediately():
    async def use(model: LimitedModel, fake: FakeModels) -> None:
        fake.fail(ModelFault(kind="status", status=429, wait=3600))
        with pytest.raises(ModelError, match="gave up after 1 attempts"):
            await model.complete(_request())

    _limited(ModelLimits(total_seconds=60), use)


def test_refused_request_is_not_retried():
    async def use(model: LimitedModel, fake: FakeModels) -> None:
        fake.fail(ModelFault(kind="status", status=400))
        with pytest.raises(ModelRefused):
            await model.complete(_request())

    assert _limited(QUICK, use).arrived == 1


def test_calls_end_at_their_time_limit():
    async def use(model: LimitedModel, fake: FakeModels) -> None:
        fake.fail(ModelFault(kind="slow", seconds=30), times=2)
        with pytest.raises(ModelError, match=r"no complete answer within 0\.05 s") as caught:
            await model.complete(_request())
        assert isinstance(caught.value.__cause__, ReplyLost)

    _limited(ModelLimits(seconds=0.05, attempts=2, first_pause=0.001), use)


Place = Path | str
MANY = 3


async def _ask(place: Place, limits: ModelLimits, keys: dict[str, str], calls: int, *faults: ModelFault) -> FakeModels:
    """Send this number of calls from each of three routers."""
    journals = [Journal(place) for _ in range(MANY)]
    async with FakeModels(latency=0.05) as fake:
        for fault in faults:
            fake.fail(fault)
        address = {"openai": f"{fake.url}/v1"}
        exchanges = [
            ModelRouter(keys, journal=journal, addresses=address, limits={"openai": limits}) for journal in journals
        ]
        requests = [Request(model="openai:m", messages=(UserMessage(text=f"q {n}"),)) for n in range(MANY * calls)]
        await asyncio.gather(*[exchanges[n % MANY].complete(request) for n, request in enumerate(requests)])
        for exchange in exchanges:
            await exchange.close()
    for journal in journals:
        journal.close()
    return fake


def test_concurrency_limit_holds_across_processes(place: Place, keys: dict[str, str]):
    # The first seven are answered late, so that they are concurrent even on a busy machine.
    slow = [ModelFault(kind="slow", seconds=3)] * 7
    fake = asyncio.run(_ask(place, ModelLimits(at_once=7, shared=True), keys, 20, *slow))
    assert fake.arrived == 60
    assert fake.peak == 7


def test_requests_per_minute_limit_holds_across_processes(place: Place, keys: dict[str, str]):
    began = time.monotonic()
    fake = asyncio.run(_ask(place, ModelLimits(requests_per_minute=240, shared=True), keys, 9))
    # A burst of 20, then four a second. A slow machine may only delay requests.
    earliest = [max(0, place - 20) / 4 for place in range(9 * MANY)]
    assert all(at - began >= soon for at, soon in zip(fake.times, earliest, strict=True))


def test_tokens_per_minute_limit_holds_across_processes(place: Place, keys: dict[str, str]):
    # Each is estimated at 4,097 tokens and uses a few. Unused tokens are given back.
    limits = ModelLimits(tokens_per_minute=4097 * 12 * 3, shared=True)
    fake = asyncio.run(_ask(place, limits, keys, 4))
    assert fake.arrived == 12


def test_all_processes_wait_for_the_pause_of_the_provider(place: Place, keys: dict[str, str]):
    limits = ModelLimits(at_once=1, requests_per_minute=6000, first_pause=0.01, shared=True)
    fake = asyncio.run(_ask(place, limits, keys, 2, ModelFault(kind="status", status=429, wait=0.7)))
    times = list(fake.times)
    assert len(times) == 2 * MANY + 1
    assert times[1] - times[0] >= 0.6


def test_pause_is_known_as_soon_as_the_slot_is_free(place: Place, monkeypatch: pytest.MonkeyPatch):
    """Otherwise another process sends in between."""

    async def main() -> None:
        database, other = open_database(place, "test"), Journal(place).database
        wants = [(RateLimit(what="at once", most=1), 1.0)]
        first, second = (RateLimiter(DatabaseLimits(each), longest=300.0) for each in (database, other))
        taken = await first.take("p", wants)
        writes = list[Any]()
        monkeypatch.setattr(database, "later", writes.append)
        first.give_back_and_pause("p", taken, wants, 0.5)
        for write in writes:
            write()
            start = time.monotonic()
            await second.take("p", wants)
            assert time.monotonic() - start >= 0.3
        database.close()
        other.close()

    asyncio.run(main())


class Slots:
    """A concurrency limit shared by all who have a database open."""

    def __init__(self, database: Any, most: int) -> None:
        self.used = 0
        self._limiter = RateLimiter(DatabaseLimits(database), longest=300.0)
        self._wants = [(RateLimit(what="at once", most=most), 1.0)]
        self._taken: list[Taken] = []

    async def __aenter__(self) -> None:
        self._taken.append(await self._limiter.take("p", self._wants))
        self.used += 1

    async def __aexit__(self, *error: object) -> None:
        self.used -= 1
        self._limiter.give_back("p", self._taken.pop(), self._wants)


def test_slots_of_an_ended_process_are_reused(place: Place):
    async def main() -> None:
        database, other = open_database(place, "test"), Journal(place).database
        first, second = Slots(database, 4), Slots(other, 4)
        for _ in range(4):
            await first.__aenter__()
        waiting = [asyncio.create_task(second.__aenter__()) for _ in range(4)]
        await asyncio.sleep(0.3)
        assert not any(task.done() for task in waiting)
        database.close()
        async with asyncio.timeout(20):
            await asyncio.gather(*waiting)
        for _ in range(4):
            await second.__aexit__(None, None, None)
        other.close()

    asyncio.run(main())


def test_calls_of_a_stopped_process_count_until_they_end(postgres: str):
    """A stopped process counts as gone, but its calls continue at the provider. Those of a killed one have ended."""
    import psycopg

    stopped = 4711

    async def main() -> None:
        with closing(Journal(postgres)) as journal, psycopg.connect(postgres, autocommit=True) as session:
            # For a stopped process, the server has an open session with its lock and no recent sign.
            session.execute("select pg_try_advisory_lock(%s)", (stopped,))
            assert journal.database.life.id
            journal.database.write(
                "insert into life (id, name, role, since, seen, gone) select ?, 'x', '', ago, ago, ago"
                " from (select clock_timestamp() - interval '1 hour' as ago) as times",
                (stopped,),
            )
            slots, until = Slots(journal.database, 6), journal.database.now() + 300
            for number in range(3):
                row = (stopped, number, "p/at once", 1.0, float("inf"), until)
                journal.database.write("insert into limit_turn values (?, ?, ?, ?, ?, ?)", row)
            for _ in range(3):
                await asyncio.wait_for(slots.__aenter__(), 20)
            waiting = [asyncio.create_task(slots.__aenter__()) for _ in range(3)]
            await asyncio.sleep(0.4)
            assert not any(task.done() for task in waiting), "six calls and the three of the stopped one"
            # Its calls have ended, by the clock or because it was killed and its session is closed.
            session.close()
            async with asyncio.timeout(20):
                await asyncio.gather(*waiting)
            for _ in range(6):
                await slots.__aexit__()

    asyncio.run(main())


def test_expired_calls_free_their_slots(place: Place):
    async def main() -> None:
        with closing(Journal(place)) as journal:
            slots, other = Slots(journal.database, 2), journal.database.life.id
            now = journal.database.now() if journal.database.shared else time.time()
            for number in range(2):
                row = (other, -1 - number, "p/at once", 1.0, float("inf"), now - 1)
                journal.database.write("insert into limit_turn values (?, ?, ?, ?, ?, ?)", row)
            async with asyncio.timeout(20), slots, slots:
                pass

    asyncio.run(main())


def test_two_limiters_of_one_process_share_the_limit(place: Place):
    async def main() -> None:
        journal = Journal(place)
        both = [Slots(journal.database, 3) for _ in range(2)]
        most = 0

        async def work(slots: Slots) -> None:
            nonlocal most
            async with slots:
                most = max(most, sum(slot_set.used for slot_set in both))
                await asyncio.sleep(0.02)

        await asyncio.gather(*[work(both[n % 2]) for n in range(30)])
        assert most == 3
        journal.close()

    asyncio.run(main())


def test_later_process_gets_a_fair_share(place: Place):
    async def main() -> None:
        journals = [Journal(place), Journal(place)]
        slots = [Slots(journal.database, 8) for journal in journals]
        fair = asyncio.Event()

        async def work(which: int) -> None:
            while not fair.is_set():
                async with slots[which]:
                    used = [slot_set.used for slot_set in slots]
                    assert sum(used) <= 8
                    if min(used) >= 3:
                        fair.set()
                    await asyncio.sleep(0.02)

        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            for which in (0, 1):
                for _ in range(20):
                    group.create_task(work(which))
                while slots[0].used < 8 and not fair.is_set():
                    await asyncio.sleep(0.01)
        for journal in journals:
            journal.close()

    asyncio.run(main())


def test_cancelled_wait_frees_its_slot(place: Place):
    async def main() -> None:
        with closing(Journal(place)) as journal:
            slots = Slots(journal.database, 2)
            chance = random.Random(1)
            for _ in range(15):
                tasks = [asyncio.create_task(slots.__aenter__()) for _ in range(4)]
                await asyncio.sleep(chance.choice([0, 0.001, 0.01]))
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                while slots.used:
                    await slots.__aexit__()
            async with asyncio.timeout(20), slots, slots:
                pass

    asyncio.run(main())


@settings(max_examples=60)
@given(
    limit=st.integers(2, 3000),
    rounds=st.lists(st.tuples(st.floats(0, 5), st.integers(1, 40)), min_size=1, max_size=40),
)
def test_rate_limit_holds_in_every_minute_across_processes(limit: int, rounds: list[tuple[float, int]]):
    now, departures = [1000.0], list[float]()
    wants = [want for want in ModelLimits(requests_per_minute=limit).wants(0) if want[0].seconds]
    with closing(open_database(":memory:", "test")) as database:
        store = DatabaseLimits(database, clock=lambda: now[0])
        for gap, waiting in rounds:
            now[0] += gap
            for _ in range(waiting):
                taken = store.take("p", wants, longest=300.0)
                assert isinstance(taken, Taken)
                if taken.wait:
                    break
                departures.append(now[0])
    for start in departures:
        assert sum(start <= departure < start + 60 for departure in departures) <= limit


@settings(max_examples=100)
@given(
    slots=st.integers(0, 50),
    wanted=st.dictionaries(st.integers(1, 10**18), st.integers(0, 60)),
    turn=st.integers(0, 99),
)
def test_fair_shares_use_all_slots(slots: int, wanted: dict[int, int], turn: int):
    shares = fair_shares(slots, wanted, turn)
    assert shares.keys() == wanted.keys()
    assert all(shares[owner] <= want for owner, want in wanted.items())
    assert sum(shares.values()) == min(slots, sum(wanted.values()))
    short = [shares[owner] for owner, want in wanted.items() if shares[owner] < want]
    assert not short or max(shares.values()) - min(short) <= 1


def test_processes_take_turns_if_there_are_fewer_slots_than_processes():
    first = {max(shares, key=shares.__getitem__) for shares in (fair_shares(1, {5: 3, 77: 3}, n) for n in range(50))}
    assert first == {5, 77}


@pytest.mark.parametrize("text", ["openai speed=3", "openai at_once", "openai requests=many", "openai at_once=0"])
def test_invalid_limits_are_refused(text: str):
    with pytest.raises(InputError, match="cannot read the limit"):
        parse_model_limits(text)


def test_request_larger_than_the_limit_passes_if_the_window_is_empty():
    now = [1000.0]
    store, limits = MemoryLimits(lambda: now[0]), ModelLimits(tokens_per_minute=600, at_once=1_000_000)
    assert store.take("p", limits.wants(10_000), longest=60.0).wait == 0
    assert store.take("p", limits.wants(1), longest=60.0).wait > 60
    now[0] += 61
    assert store.take("p", limits.wants(1), longest=60.0).wait == 0


def test_two_journals_on_one_file_see_each_other(tmp_path: Path):
    with closing(Journal(tmp_path / "a.db")) as mine, closing(Journal(tmp_path / "a.db")) as other:
        assert mine.database.life.gone([other.database.life.id, 5]) == {5}
