"""Waits for providers and services while the clock is set back and forward; says what it was told, and how it went."""

import asyncio
import json
import logging
import os
import sys
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from fakes.stored_run import StoredRunBuilder
from foretell.data import ServiceAccess, ServiceAddresses, ServiceLimit, ServiceStore, ServiceTurns
from foretell.models import Journal
from foretell.outgoing import DatabaseLimits, Limit, Limiter, Taken
from foretell.questions import EmitEvent, Failure, Forecast
from foretell.runs import Executor, RunCell, RunStore
from foretell.runs.executor import FLUSH_SECONDS

DAY = 86_400
PATIENCE = 20.0
RATE = Limit(what="requests", most=6000, seconds=60.0, held=False)


def set_clock(seconds: int) -> None:
    Path(os.environ["CLOCK_MOVED_BY"]).write_text(str(seconds))


async def provider(home: Path) -> None:
    """A pause that a provider asked for ends when it should, whatever the clock says."""
    with closing(Journal(home / "journal.db")) as journal:
        limiter, wants = Limiter(DatabaseLimits(journal.database), longest=60.0), [(RATE, 1.0)]
        limiter.give_back("openai", await limiter.take("openai", wants), wants)
        limiter.pause("openai", 0.1)
        set_clock(-DAY)
        await Limiter(DatabaseLimits(journal.database), longest=60.0).take("openai", wants)
        set_clock(DAY)
        await limiter.take("openai", wants)


async def services(home: Path) -> dict[str, float]:
    """Places and pauses of a service last as long as they did, whatever the clock says."""
    set_clock(0)
    store = ServiceStore(home / "services.db")
    rule = [(ServiceLimit(requests=1, seconds=30.0).limit, 1)]
    taken = store.take("gdelt", rule, longest=60.0)
    assert isinstance(taken, Taken)
    store.give_back("gdelt", taken, rule)
    waits: dict[str, float] = {}
    for name, seconds in (("back", -DAY), ("forward", DAY), ("home", 0)):
        set_clock(seconds)
        taken = store.take("gdelt", rule, longest=60.0)
        assert isinstance(taken, Taken)
        waits[name] = taken.wait
    turns = ServiceTurns(store, patience=60.0, longest=60.0)
    service = ServiceAddresses(ServiceAccess(addresses={"kalshi": "http://kalshi.test"})).by_name("kalshi")
    assert service is not None
    async with turns.turn(service, "/") as turn:
        await turns.refused(service, turn, 0.2, "too fast")
    set_clock(-DAY)
    async with turns.turn(service, "/"):
        waits["paused"] = max(0.0, store.state("kalshi").closed - time.time())
    turns.close()
    return waits


async def run(home: Path) -> int:
    """A run during which the clock is set says so and goes on."""
    set_clock(0)
    made = StoredRunBuilder(questions=2)

    async def answer(cell: RunCell, emit: EmitEvent) -> Forecast | Failure:
        set_clock(-DAY)
        await asyncio.sleep(2 * FLUSH_SECONDS)
        p = {target.id: 0.5 for target in cell.question.targets}
        return Forecast(question_id=cell.question.id, forecaster="f", as_of=cell.question.as_of, p=p)

    with closing(RunStore(home / "runs.db")) as store:
        store.begin("r", "{}", datetime.now(UTC).isoformat())
        cells = [RunCell(run="r", question=question, trial=0) for question in made.asked()]
        return (await Executor(store).run(cells, answer)).done


async def main(home: Path) -> None:
    before = time.time()
    set_clock(-DAY)
    assert before - time.time() > DAY - 60, "the clock cannot be set here"
    set_clock(0)
    async with asyncio.timeout(PATIENCE):
        await provider(home)
        waits = await services(home)
        done = await run(home)
    print(json.dumps({"waits": waits, "done": done}))


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, format="%(message)s")
    asyncio.run(main(Path(sys.argv[1])))
