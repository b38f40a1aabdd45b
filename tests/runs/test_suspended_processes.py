"""A process that was suspended neither sends nor writes work that others took over meanwhile."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from foretell.models.database import liveness
from foretell.models.database.interface import Statements
from foretell.models.database.liveness import SessionLiveness
from foretell.models.journal import Journal, JournalEntry, JournalRequest, JournalWritingModel
from foretell.models.model import ModelBusy, Reply, Request, RequestInFlight, UserMessage
from foretell.models.prices import PriceList
from foretell.models.rate_limits import DatabaseLimits, RateLimit, RateLimiter, Taken
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Target
from foretell.questions.trace import EmitEvent, Failed
from foretell.runs.executor import Executor, RunProgress
from foretell.runs.store import RunStore, RunTrial

Place = Path | str
DUE = datetime(2026, 1, 1, tzinfo=UTC)
SOMEBODY = 12345
QUESTION = Question(id="q", source="own", text="?", due=DUE, targets=(Target(id="yes"),))
TRIAL = RunTrial(run="r", question=QUESTION, trial=0)


def forecast(trial: int = 0) -> Forecast:
    return Forecast(question_id="q", forecaster="t", as_of=QUESTION.as_of, p={"yes": 0.5}, trial=trial)


def hand_over(store: RunStore, owner: int = SOMEBODY) -> None:
    assert store.database.write("update tick set owner = ?", (owner,)) == 1


@pytest.mark.parametrize("step", ["before the start", "under way", "before the end"])
def test_trial_that_was_taken_over_is_not_written(place: Place, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(trial: RunTrial, emit: EmitEvent) -> Forecast:
        emit(Failed(error="ours"))
        if step == "under way":
            hand_over(store)
            await asyncio.sleep(60)
        elif step == "before the end":
            hand_over(store)
        return forecast()

    async def main() -> RunProgress:
        executor = Executor(store, concurrency=1)
        running = asyncio.create_task(executor.run([TRIAL], answer))
        async with asyncio.timeout(60):
            while (await store.aside(store.database.read, "select owner from tick")) != [(SOMEBODY,)]:
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.6)  # Time enough to write something.
            assert list(store.answers("r")) == []
            assert list(store.events("r")) == []
            # The other process answers and ends.
            store.add_events([(TRIAL.key, Failed(error="theirs"))])
            store.finish_trial(TRIAL.key, forecast())
            store.database.write("delete from tick", ())
            return await running

    with closing(RunStore(place)) as store:
        if step == "before the start":
            start = store.start_trial

            def late(*arguments: Any) -> bool:
                hand_over(store)
                return start(*arguments)

            monkeypatch.setattr(store, "start_trial", late)
        progress = asyncio.run(main())
        assert (progress.done, progress.failed) == (1, 0)
        assert [event for _, _, event in store.events("r")] == [Failed(error="theirs")]


class Wire:
    """Counts what is sent."""

    def __init__(self) -> None:
        self.sent = 0

    async def complete(self, request: Request) -> Reply:
        self.sent += 1
        return Reply(text="yes")


REQUEST = Request(model="compat:m@http://127.0.0.1:9/v1", messages=(UserMessage(text="?"),))


def fall_asleep(life: Any) -> None:
    """Pretend that this much time has passed since the last sign of life."""
    life._signed = -1e9


def test_suspended_process_sends_nothing_before_checking_its_claims(postgres: str) -> None:
    async def main() -> None:
        wire = Wire()
        with closing(Journal(postgres)) as journal:
            life = journal.database.life
            assert isinstance(life, SessionLiveness)
            model = JournalWritingModel(wire, journal, PriceList())
            intend = journal.intend

            def asleep_after(request: JournalRequest) -> bool:
                ours = intend(request)
                term = life.term
                fall_asleep(life)
                while life.term == term:  # It gives a sign of life before other tasks run.
                    time.sleep(0.05)
                return ours

            journal.intend = asleep_after
            with pytest.raises(ModelBusy, match="was suspended"):
                await model.complete(REQUEST)
            assert wire.sent == 0
            assert journal.sends() == 0
            journal.intend = intend
            assert (await model.complete(REQUEST)).text == "yes"
            assert wire.sent == 1

    asyncio.run(main())


def test_trial_sends_nothing_before_its_claim_is_checked(postgres: str) -> None:
    """Its claim is still valid, so it continues. Until that is checked, every send is rejected and retried."""
    wire, refused = Wire(), 0

    async def answer(trial: RunTrial, emit: EmitEvent) -> Forecast:
        nonlocal refused
        fall_asleep(store.database.life)
        while not wire.sent:
            try:
                await model.complete(REQUEST)
            except ModelBusy:
                refused += 1
                await asyncio.sleep(0.02)
        return forecast()

    with closing(RunStore(postgres)) as store, closing(Journal(postgres)) as journal:
        model = JournalWritingModel(wire, journal, PriceList())
        progress = asyncio.run(Executor(store).run([TRIAL], answer))
        assert (progress.done, progress.failed, wire.sent) == (1, 0, 1)
        assert refused


def test_answer_to_a_taken_over_call_is_not_stored(place: Place) -> None:
    with closing(Journal(place)) as mine:
        request = JournalRequest(key="ab" * 32, kind="model")
        assert mine.intend(request)
        mine.database.write("update sent set owner = ?", (SOMEBODY,))
        with pytest.raises(RequestInFlight):
            mine.keep(request, JournalEntry(body=b"late"))
        assert mine.find(request.key) is None


def test_slots_taken_by_others_are_not_reused(place: Place) -> None:
    """Of six slots, ours were given to others while we were suspended. Nothing starts before there is room."""

    async def main() -> None:
        with closing(Journal(place)) as mine, closing(Journal(place)) as theirs:
            limiter, me, they = RateLimiter(DatabaseLimits(mine.database), longest=300.0), mine.database.life, theirs
            wants = [(RateLimit(what="at once", most=6), 1.0)]
            ours: list[Taken] = [await limiter.take("p", wants) for _ in range(3)]

            def take_all(statements: Statements) -> None:
                statements.write("delete from limit_turn where owner = ?", (me.id,))
                for number in range(6):
                    row = (they.database.life.id, -1 - number, "p/at once", 1.0, float("inf"), 1e12)
                    statements.write("insert into limit_turn values (?, ?, ?, ?, ?, ?)", row)

            await theirs.database.aside(theirs.database.together, take_all)
            if isinstance(me, SessionLiveness):
                fall_asleep(me)
            limiter.give_back("p", ours.pop(), wants)
            waiting = asyncio.create_task(limiter.take("p", wants))
            await asyncio.sleep(0.6)
            assert not waiting.done()  # Six of their requests are in progress, and two of ours from before.
            await theirs.database.aside(theirs.database.write, "delete from limit_turn where number < 0")
            async with asyncio.timeout(20):
                ours.append(await waiting)
            for taken in ours:
                limiter.give_back("p", taken, wants)

    asyncio.run(main())


CHILD = """
import sys, time
from foretell.runs.claims import ClaimTable
from foretell.runs.store import RunStore
store = RunStore(sys.argv[1])
claims = ClaimTable(store.database)
print(claims.take("cell r", "q"), flush=True)
sys.stdin.readline()
print("q" in store.database.together(lambda statements: claims.ours(statements, "cell r")), flush=True)
"""


@asynccontextmanager
async def child(place: Place) -> AsyncGenerator[subprocess.Popen[str]]:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", CHILD, str(place)], **pipes)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_stopped_process_keeps_its_claims_or_loses_them_permanently(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one machine a live process keeps its claims. On several, its lease ends, and it notices on resuming."""
    monkeypatch.setattr(liveness, "STALE", 1.5)
    monkeypatch.setattr(liveness, "_ALIVE", "(gone is null or gone > clock_timestamp() - make_interval(secs => 1.5))")

    async def main() -> None:
        from foretell.runs.claims import ClaimTable

        with closing(RunStore(place)) as store:
            claims, shared = ClaimTable(store.database), store.database.shared
            async with child(place) as stopped:
                assert stopped.stdin is not None
                assert stopped.stdout is not None
                assert stopped.stdout.readline() == "True\n"
                os.kill(stopped.pid, signal.SIGSTOP)
                taken, until = False, time.monotonic() + (30 if shared else 1)
                while not taken and time.monotonic() < until:
                    taken = claims.take("cell r", "q")
                    await asyncio.sleep(0.1)
                assert taken == shared
                os.kill(stopped.pid, signal.SIGCONT)
                stopped.stdin.write("\n")
                stopped.stdin.flush()
                assert stopped.stdout.readline() == f"{not shared}\n"

    asyncio.run(main())
