"""5,000 calls, 500 at once, through budget, journal, limits and wire, beside a bare aiohttp loop.

Both ask the same fake provider, which runs in a process of its own. Printed are ratios to the ideal (calls × latency /
how many at once) and to the bare loop, which survive a change of machine, and CPU milliseconds per call, which depend
on it. Rows in between show where the time goes.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fakes.models import FakeModelProcess
from foretell.models.budget import Budget
from foretell.models.facts import UNKNOWN
from foretell.models.journal import Journal
from foretell.models.limits import ModelLimits
from foretell.models.model import Model, ModelSettings, Request, SystemMessage, ToolSpec, UserMessage
from foretell.models.providers.chat import ChatWire
from foretell.models.router import ModelRouter, open_provider

AT_ONCE = 500
TOOL = ToolSpec(
    name="submit",
    description="Give a probability and the reason for it.",
    parameters={
        "type": "object",
        "properties": {
            "p": {"type": "number", "minimum": 0, "maximum": 1},
            "reason": {"type": "string", "minLength": 700, "maxLength": 700},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        },
        "required": ["p", "reason", "confidence"],
        "additionalProperties": False,
    },
)
Ask = Callable[[int], Awaitable[object]]


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Of all calls together, and of one."""

    wall: float
    cpu_ms: float


def request(model: str, place: int) -> Request:
    """8 KB of prompt, one forced tool, as a step of the belief agent has."""
    background = "Some background that the question comes with. " * 170
    return Request(
        model=model,
        messages=(
            SystemMessage(text="You forecast events."),
            UserMessage(text=f"{background}\nQuestion {place}: will it happen?"),
        ),
        tools=(TOOL,),
        force="submit",
        settings=ModelSettings(max_tokens=1000),
        slot=f"trial 1, call {place}",
    )


async def drive(ask: Ask, calls: int) -> Timing:
    """So many workers, each asking again as soon as it is answered."""
    places = iter(range(calls))

    async def work() -> None:
        for place in places:
            await ask(place)

    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*[work() for _ in range(AT_ONCE)])
    return Timing(wall=time.perf_counter() - wall, cpu_ms=(time.process_time() - cpu) / calls * 1000)


async def bare(url: str, calls: int) -> Timing:
    """What nobody can beat: post, read, decode."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None)) as session:

        async def ask(place: int) -> object:
            sent = json.dumps(ChatWire().body(request("compat:m@http://x", place), "m", UNKNOWN)).encode()
            async with session.post(url + "/v1/chat/completions", data=sent) as answer:
                found = json.loads(await answer.read())
            return json.loads(found["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])["p"]

        await ask(-1)
        return await drive(ask, calls)


async def through(url: str, calls: int, *, journal: Journal | None = None, whole: bool = True) -> Timing:
    """The wire alone, or everything around it."""
    name = f"compat:m@{url}/v1"
    async with AsyncExitStack() as stack:
        if whole:
            exchange = ModelRouter({}, journal=journal, limits={"compat": ModelLimits(at_once=AT_ONCE)})
            await stack.enter_async_context(exchange)
            model: Model = exchange.within(Budget("question", dollars=10**9, within=Budget("run", dollars=10**9)))
        else:
            wire = open_provider(name, {})
            stack.push_async_callback(wire.close)
            model = wire
        await model.complete(request(name, -1))
        return await drive(lambda place: model.complete(request(name, place)), calls)


def run(work: Awaitable[Timing]) -> Timing:
    """On uvloop where it is there, as the command line does."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)  # type: ignore[arg-type]
    return uvloop.run(work)  # type: ignore[arg-type]


def case(latency: float, calls: int) -> None:
    ideal = calls * latency / AT_ONCE
    print(f"{calls:,} calls of {latency:g} s, {AT_ONCE} at once; the ideal is {ideal:g} s")
    with FakeModelProcess(latency=latency) as fake, tempfile.TemporaryDirectory() as folder:
        base = run(bare(fake.url, calls))
        report("bare aiohttp loop", base, base, ideal)
        report("our wire", run(through(fake.url, calls, whole=False)), base, ideal)
        report("with budget and limits", run(through(fake.url, calls)), base, ideal)
        for durable, name in ((False, "with a journal that a kill survives"), (True, "with a journal on the disk")):
            journal = Journal(Path(folder) / f"{durable}.db", durable=durable)
            report(name, run(through(fake.url, calls, journal=journal)), base, ideal)
            report("  the same again, all answered by the journal", again(fake.url, calls, journal), base, ideal)
            journal.close()
        counts: dict[str, Any] = fake.stats()
        twice = sum(count > 5 for count in counts["billed"].values())
        print(f"  at most {counts['peak']} at once at the provider; {twice} requests billed twice by one run")


def again(url: str, calls: int, journal: Journal) -> Timing:
    return run(through(url, calls, journal=journal))


def report(name: str, found: Timing, base: Timing, ideal: float) -> None:
    against = f"{found.wall / ideal:5.2f} × ideal, {found.wall / base.wall:5.2f} × bare loop"
    print(f"  {name:48} {against}, {found.cpu_ms:5.2f} ms CPU a call", flush=True)


def main() -> None:
    quick = "--quick" in sys.argv
    case(0.2, 1000 if quick else 5000)
    case(2.0, 1000 if quick else 5000)


if __name__ == "__main__":
    main()
