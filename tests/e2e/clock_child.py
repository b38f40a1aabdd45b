"""Waits for providers and services while the clock is set back and forward, and prints warnings and results."""

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
from foretell.data.service_limits import ServiceAccess, ServiceAddresses, ServiceStore, ServiceTurns
from foretell.models.journal import Journal
from foretell.models.rate_limits import DatabaseLimits, RateLimit, RateLimiter, Taken
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.trace import EmitEvent
from foretell.runs.executor import FLUSH_SECONDS, Executor
from foretell.runs.store import RunStore, RunTrial

DAY = 86_400
PATIENCE = 20.0
RATE = RateLimit(what="requests", most=6000, seconds=60.0, held=False)


def set_clock(seconds: int) -> None:
    Path(os.environ["CLOCK_MOVED_BY"]).write_text(str(seconds))


async def provider(home: Path) -> None:
    """A pause that a provider asked for keeps its length when the clock is set."""
    with closing(Journal(home / "journal.db")) as journal:
        limiter, wants = RateLimiter(DatabaseLimits(journal.database), longest=60.0), [(RATE, 1.0)]
        limiter.give_back_and_pause("openai", await limiter.take("openai", wants), wants, 0.1)
        set_clock(-DAY)
        await RateLimiter(DatabaseLimits(journal.database), longest=60.0).take("openai", wants)
        set_clock(DAY)
        await limiter.take("openai", wants)


async def services(home: Path) -> dict[str, float]:
    """Units and pauses of a service keep their length when the clock is set."""
    set_clock(0)
    store = ServiceStore(home / "services.db")
    rule = [(RateLimit(most=1, seconds=30.0), 1)]
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
    """A run during which the clock is set warns and continues."""
    set_clock(0)
    builder = StoredRunBuilder(questions=2)

    async def answer(trial: RunTrial, emit: EmitEvent) -> Forecast | Failure:
        set_clock(-DAY)
        await asyncio.sleep(2 * FLUSH_SECONDS)
        p = {target.id: 0.5 for target in trial.question.targets}
        return Forecast(question_id=trial.question.id, forecaster="f", as_of=trial.question.as_of, p=p)

    with closing(RunStore(home / "runs.db")) as store:
        store.begin("r", "{}", datetime.now(UTC).isoformat())
        trials = [RunTrial(run="r", question=question, trial=0) for question in builder.asked()]
        return (await Executor(store).run(trials, answer)).done


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
