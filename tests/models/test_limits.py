"""How many at once, how fast, how often again; also over several processes: several openings of one database."""

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
from foretell.models import (
    Journal,
    LimitedModel,
    ModelBusy,
    ModelError,
    ModelLimits,
    ModelRefused,
    ModelRouter,
    Reply,
    ReplyLost,
    Request,
    TokenCount,
    UserMessage,
    open_provider,
    parse_limits,
)
from foretell.models.database import open_database
from foretell.models.providers import ScriptedModel
from foretell.outgoing import DatabaseLimits, Limit, Limiter, MemoryLimits, Taken, Wants, fair_shares
from foretell.questions import InputError

QUICK = ModelLimits(first_pause=0.001, longest_pause=5.0)


def _request(place: int = 0) -> Request:
    return Request(model="openai:m", messages=(UserMessage(text=f"q {place}"),))


def _limited(limits: ModelLimits, use: Callable[[LimitedModel, FakeModels], Awaitable[None]]) -> FakeModels:
    async def main() -> FakeModels:
        async with FakeModels(latency=0.01) as fake:
            wire = open_provider("openai:m", {"OPENAI_API_KEY": "k"}, address=f"{fake.url}/v1")
            await use(LimitedModel(wire, limits, rng=random.Random(0)), fake)
            await wire.close()
            return fake

    return asyncio.run(main())


def test_never_more_at_once_than_allowed():
    async def use(model: LimitedModel, _fake: FakeModels) -> None:
        await asyncio.gather(*[model.complete(_request(place)) for place in range(60)])

    assert _limited(ModelLimits(at_once=7), use).peak == 7


def _left(limits: ModelLimits, gaps: list[float], amounts: list[int]) -> list[tuple[float, int]]:
    """When requests of so many tokens leave that come after these gaps, in simulated time; each uses half of it."""
    now = [1000.0]
    store, left = MemoryLimits(lambda: now[0]), list[tuple[float, int]]()
    for gap, amount in zip(gaps, amounts, strict=False):
        now[0] += gap
        wants = [want for want in limits.wants(amount) if want[0].seconds]
        while (taken := store.take("p", wants, longest=300.0)).wait > 0:
            now[0] += taken.wait
        used = amount - amount // 2
        store.give_back("p", taken, [want for want in limits.wants(used) if want[0].seconds])
        left.append((now[0], used))
    return left


@settings(deadline=None, max_examples=60)
@given(
    limit=st.integers(2, 5000),
    gaps=st.lists(st.floats(0, 20), min_size=1, max_size=300),
    amounts=st.lists(st.integers(1, 500), min_size=300, max_size=300),
)
def test_no_minute_sees_more_than_the_limit(limit: int, gaps: list[float], amounts: list[int]):
    for limits, most in (
        (ModelLimits(requests_per_minute=limit), limit),
        (ModelLimits(tokens_per_minute=100 * limit), 100 * limit),
    ):
        left = _left(limits, gaps, amounts)
        for start, _ in left:
            inside = [used for at, used in left if start <= at < start + 60]
            assert (len(inside) if limits.requests_per_minute else sum(inside)) <= max(most, 500)


def test_requests_per_minute_hold_at_the_provider():
    async def use(model: LimitedModel, _fake: FakeModels) -> None:
        await asyncio.gather(*[model.complete(_request(place)) for place in range(26)])

    began = time.monotonic()
    times = list(_limited(ModelLimits(requests_per_minute=240, at_once=100), use).times)
    # A burst of 20, then four a second: a slow machine may only make it later.
    assert all(at - began >= max(0, place - 20) / 4 for place, at in enumerate(times))
    assert len(times) == 26


def test_tokens_that_were_not_used_are_given_back():
    given: list[float] = []

    class Watched(MemoryLimits):
        def take(self, place: str, wants: Wants, *, longest: float, waiting: int = 0) -> Taken:
            given.append(max(amount for _, amount in wants))
            return super().take(place, wants, longest=longest, waiting=waiting)

        def give_back(self, place: str, taken: Taken, wants: Wants, **options: Any) -> None:
            given.append(max(amount for _, amount in wants))
            super().give_back(place, taken, wants, **options)

    async def main() -> None:
        script = ScriptedModel([Reply(tokens=TokenCount(input=10, output=5))])
        limits = ModelLimits(tokens_per_minute=100_000)
        await LimitedModel(script, limits, limiter=Limiter(Watched(), longest=60.0)).complete(_request())

    asyncio.run(main())
    estimate, used = given
    assert estimate > used == 15


def test_busy_provider_is_asked_again():
    async def use(model: LimitedModel, fake: FakeModels) -> None:
        fake.fail(ModelFault(kind="status", status=429), times=2)
        fake.fail(ModelFault(kind="status", status=503))
        assert (await model.complete(_request())).text == "You said: q 0"

    assert _limited(QUICK, use).arrived == 4


def test_everybody_waits_when_the_provider_says_so():
    async def use(model: LimitedModel, fake: FakeModels) -> None:
        fake.fail(ModelFault(kind="status", status=429, wait=0.4))
        first = asyncio.create_task(model.complete(_request(0)))
        while fake.arrived < 1 or fake.under_way:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)  # The answer has come back by now.
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


def test_a_wait_beyond_patience_is_not_waited_for():
    async def use(model: LimitedModel, fake: FakeModels) -> None:
        fake.fail(ModelFault(kind="status", status=429, wait=3600))
        with pytest.raises(ModelError, match="gave up after 1 attempts"):
            await model.complete(_request())

    _limited(ModelLimits(total_seconds=60), use)


def test_refusal_is_not_tried_again():
    async def use(model: LimitedModel, fake: FakeModels) -> None:
        fake.fail(ModelFault(kind="status", status=400))
        with pytest.raises(ModelRefused):
            await model.complete(_request())

    assert _limited(QUICK, use).arrived == 1


def test_every_call_ends_in_time():
    async def use(model: LimitedModel, fake: FakeModels) -> None:
        fake.fail(ModelFault(kind="slow", seconds=30), times=2)
        with pytest.raises(ModelError, match=r"no complete answer within 0\.05 s") as caught:
            await model.complete(_request())
        assert isinstance(caught.value.__cause__, ReplyLost)

    _limited(ModelLimits(seconds=0.05, attempts=2, first_pause=0.001), use)


Place = Path | str
MANY = 3


async def _ask(place: Place, limits: ModelLimits, keys: dict[str, str], calls: int, *faults: ModelFault) -> FakeModels:
    """So many calls from each of three."""
    journals = [Journal(place) for _ in range(MANY)]
    async with FakeModels(latency=0.05) as fake:
        for fault in faults:
            fake.fail(fault)
        address = {"openai": f"{fake.url}/v1"}
        exchanges = [ModelRouter(keys, journal=each, addresses=address, limits={"openai": limits}) for each in journals]
        requests = [Request(model="openai:m", messages=(UserMessage(text=f"q {n}"),)) for n in range(MANY * calls)]
        await asyncio.gather(*[exchanges[n % MANY].complete(request) for n, request in enumerate(requests)])
        for exchange in exchanges:
            await exchange.close()
    for journal in journals:
        journal.close()
    return fake


def test_never_more_at_once_over_all(place: Place, keys: dict[str, str]):
    # The first seven are answered late, so that they are under way together on a busy machine too.
    slow = [ModelFault(kind="slow", seconds=3)] * 7
    fake = asyncio.run(_ask(place, ModelLimits(at_once=7, shared=True), keys, 20, *slow))
    assert fake.arrived == 60
    assert fake.peak == 7


def test_requests_per_minute_hold_over_all(place: Place, keys: dict[str, str]):
    began = time.monotonic()
    fake = asyncio.run(_ask(place, ModelLimits(requests_per_minute=240, shared=True), keys, 9))
    # A burst of 20, then four a second: a slow machine may only make it later.
    earliest = [max(0, place - 20) / 4 for place in range(9 * MANY)]
    assert all(at - began >= soon for at, soon in zip(fake.times, earliest, strict=True))


def test_tokens_per_minute_hold_over_all(place: Place, keys: dict[str, str]):
    # Each is estimated at 4,097 tokens and uses a few: what was not used is given back.
    limits = ModelLimits(tokens_per_minute=4097 * 12 * 3, shared=True)
    fake = asyncio.run(_ask(place, limits, keys, 4))
    assert fake.arrived == 12


def test_all_wait_when_the_provider_says_so(place: Place, keys: dict[str, str]):
    limits = ModelLimits(at_once=1, requests_per_minute=6000, first_pause=0.01, shared=True)
    fake = asyncio.run(_ask(place, limits, keys, 2, ModelFault(kind="status", status=429, wait=0.7)))
    times = list(fake.times)
    assert len(times) == 2 * MANY + 1
    assert times[1] - times[0] >= 0.6


class Slots:
    """So many at once over all who have a database open."""

    def __init__(self, database: Any, most: int) -> None:
        self.used = 0
        self._limiter = Limiter(DatabaseLimits(database), longest=300.0)
        self._wants = [(Limit(what="at once", most=most, seconds=0.0), 1.0)]
        self._taken: list[Taken] = []

    async def __aenter__(self) -> None:
        self._taken.append(await self._limiter.take("p", self._wants))
        self.used += 1

    async def __aexit__(self, *error: object) -> None:
        self.used -= 1
        self._limiter.give_back("p", self._taken.pop(), self._wants)


def test_slots_of_one_who_is_gone_are_used_by_the_others(place: Place):
    async def main() -> None:
        one, other = open_database(place, "test"), Journal(place).database
        first, second = Slots(one, 4), Slots(other, 4)
        for _ in range(4):
            await first.__aenter__()
        waiting = [asyncio.create_task(second.__aenter__()) for _ in range(4)]
        await asyncio.sleep(0.3)
        assert not any(task.done() for task in waiting)
        one.close()
        async with asyncio.timeout(20):
            await asyncio.gather(*waiting)
        for _ in range(4):
            await second.__aexit__(None, None, None)
        other.close()

    asyncio.run(main())


def test_what_a_stopped_process_has_sent_counts_until_it_is_over(postgres: str):
    """It counts as gone after its silence, but a provider goes on with its calls; those of a killed one are over."""
    import psycopg

    stopped = 4711

    async def main() -> None:
        with closing(Journal(postgres)) as journal, psycopg.connect(postgres, autocommit=True) as session:
            # Of a stopped process the server has an open session with its lock, and no sign for long.
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
            # Its calls are over: by the clock, or because it was killed and its session is gone with it.
            session.close()
            async with asyncio.timeout(20):
                await asyncio.gather(*waiting)
            for _ in range(6):
                await slots.__aexit__()

    asyncio.run(main())


def test_calls_that_must_be_over_by_now_are_over_whoever_sent_them(place: Place):
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


def test_two_semaphores_of_one_process_hold_together(place: Place):
    async def main() -> None:
        journal = Journal(place)
        both = [Slots(journal.database, 3) for _ in range(2)]
        most = 0

        async def work(slots: Slots) -> None:
            nonlocal most
            async with slots:
                most = max(most, sum(each.used for each in both))
                await asyncio.sleep(0.02)

        await asyncio.gather(*[work(both[n % 2]) for n in range(30)])
        assert most == 3
        journal.close()

    asyncio.run(main())


def test_one_who_comes_later_gets_a_fair_share(place: Place):
    async def main() -> None:
        journals = [Journal(place), Journal(place)]
        slots = [Slots(journal.database, 8) for journal in journals]
        fair = asyncio.Event()

        async def work(which: int) -> None:
            while not fair.is_set():
                async with slots[which]:
                    used = [each.used for each in slots]
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


def test_a_cancelled_wait_leaves_nothing_behind(place: Place):
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


@settings(deadline=None, max_examples=60)
@given(
    limit=st.integers(2, 3000),
    rounds=st.lists(st.tuples(st.floats(0, 5), st.integers(1, 40)), min_size=1, max_size=40),
)
def test_no_minute_sees_more_than_the_limit_over_all(limit: int, rounds: list[tuple[float, int]]):
    now, left = [1000.0], list[float]()
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
                left.append(now[0])
    for start in left:
        assert sum(start <= moment < start + 60 for moment in left) <= limit


@settings(deadline=None, max_examples=100)
@given(
    slots=st.integers(0, 50),
    wanted=st.dictionaries(st.integers(1, 10**18), st.integers(0, 60)),
    turn=st.integers(0, 99),
)
def test_shares_are_fair_and_leave_nothing_over(slots: int, wanted: dict[int, int], turn: int):
    shares = fair_shares(slots, wanted, turn)
    assert shares.keys() == wanted.keys()
    assert all(shares[owner] <= want for owner, want in wanted.items())
    assert sum(shares.values()) == min(slots, sum(wanted.values()))
    short = [shares[owner] for owner, want in wanted.items() if shares[owner] < want]
    assert not short or max(shares.values()) - min(short) <= 1


def test_with_fewer_slots_than_processes_everybody_comes_first_now_and_then():
    first = {max(shares, key=shares.__getitem__) for shares in (fair_shares(1, {5: 3, 77: 3}, n) for n in range(50))}
    assert first == {5, 77}


@pytest.mark.parametrize("text", ["openai speed=3", "openai at_once", "openai requests=many", "openai at_once=0"])
def test_limits_that_cannot_be_read(text: str):
    with pytest.raises(InputError, match="cannot read the limit"):
        parse_limits(text)


def test_a_large_request_is_not_waited_for_in_vain():
    now = [1000.0]
    store, limits = MemoryLimits(lambda: now[0]), ModelLimits(tokens_per_minute=600, at_once=1_000_000)
    assert store.take("p", limits.wants(10_000), longest=60.0).wait == 0
    assert store.take("p", limits.wants(1), longest=60.0).wait > 60
    now[0] += 61
    assert store.take("p", limits.wants(1), longest=60.0).wait == 0


def test_a_file_may_be_opened_by_two(tmp_path: Path):
    with closing(Journal(tmp_path / "a.db")) as one, closing(Journal(tmp_path / "a.db")) as other:
        assert one.database.life.gone([other.database.life.id, 5]) == {5}
