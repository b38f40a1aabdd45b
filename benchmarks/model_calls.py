"""5,000 calls, 500 at once, through budget, journal, limits and API client, compared with a bare aiohttp loop.

Both use the same fake provider, which runs in its own process, and the event loop of the command line. Prints ratios to
the ideal (calls × latency / how many at once) and to the bare loop, which depend little on the machine, and CPU
milliseconds per call, which depend on it. Rows in between show where the time goes; the last has the rules and the
events of a trial around the call. A second table compares the API client of every provider with the compatible one, in
CPU per call. `--postgres` times journal and ledger on PostgreSQL instead.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from fakes.models import FakeModelProcess
from fakes.postgres import LocalPostgres, binaries
from foretell.models.budget import Budget
from foretell.models.canonical import request_key
from foretell.models.facts import UNKNOWN
from foretell.models.journal import Journal
from foretell.models.limits import ModelLimits
from foretell.models.model import Model, ModelSettings, Request, SystemMessage, ToolSpec, UserMessage
from foretell.models.prices import PriceList
from foretell.models.providers.chat import ChatApi
from foretell.models.router import ModelRouter, open_provider
from foretell.models.token_price import FREE_OF_CHARGE
from foretell.questions.as_of import AsOf, instant
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Target
from foretell.questions.trace import BeliefRevised, EmitEvent, ModelCalled, ToolUsed
from foretell.runs.event_loop import run
from foretell.runs.executor import Executor
from foretell.runs.store import RunStore, RunTrial
from foretell.tools.content_filter import ModelContentFilter
from foretell.tools.leakage_filter import FilteredTools
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.tool import FETCH_SERIES, SourceItem, ToolMaterial

AT_ONCE = 500
TURNS = 3
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
    """Times of all calls together, and of one."""

    wall: float
    cpu_ms: float


def request(model: str, place: int) -> Request:
    """Return a request with 8 KB of prompt and one forced tool, like a step of the belief agent."""
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
    """Run many workers, each of which sends its next request as soon as the last is answered."""
    places = iter(range(calls))

    async def work() -> None:
        for place in places:
            await ask(place)

    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*[work() for _ in range(AT_ONCE)])
    return Timing(wall=time.perf_counter() - wall, cpu_ms=(time.process_time() - cpu) / calls * 1000)


async def bare(url: str, calls: int) -> Timing:
    """Time a lower bound: post, read, decode."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None)) as session:

        async def ask(place: int) -> object:
            body = json.dumps(ChatApi().body(request("compat:m@http://x", place), "m", UNKNOWN)).encode()
            async with session.post(url + "/v1/chat/completions", data=body) as answer:
                reply = json.loads(await answer.read())
            return json.loads(reply["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])["p"]

        await ask(-1)
        return await drive(ask, calls)


KEYS = {name: "k" for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY")}
PROVIDERS = {
    "openai": ("openai:gpt-5.6-sol", "/v1"),
    "anthropic": ("anthropic:claude-sonnet-4-6", ""),
    "google": ("google:gemini-3-flash-preview", ""),
    "openrouter": ("openrouter:moonshotai/kimi-k2.5", "/v1"),
}


async def through(
    url: str,
    calls: int,
    *,
    journal: Journal | None = None,
    whole: bool = True,
    provider: str = "compat",
    store: RunStore | None = None,
) -> Timing:
    """Time the API client alone, or everything around it; with a store, in trials whose events are written."""
    name, path = PROVIDERS.get(provider, (f"compat:m@{url}/v1", "/v1"))
    async with AsyncExitStack() as stack:
        if whole:
            limits, addresses = {provider: ModelLimits(at_once=AT_ONCE)}, {provider: url + path}
            prices = PriceList({name: FREE_OF_CHARGE} if provider == "compat" else None)
            exchange = ModelRouter(KEYS, journal=journal, limits=limits, addresses=addresses, prices=prices)
            await stack.enter_async_context(exchange)
            run = Budget("run", dollars=10**9, run="r")
            model: Model = exchange.within(Budget("question", dollars=10**9, within=run))
        else:
            wire = open_provider(name, KEYS, address=url + path)
            stack.push_async_callback(wire.close)
            model = wire
        await model.complete(request(name, -1))
        if store is None:
            return await drive(lambda place: model.complete(request(name, place)), calls)
        return await in_trials(model, name, calls, store)


AS_OF, BEFORE = AsOf.day("2026-01-01"), instant("2025-06-01")
STEPS = 10


class Archive:
    """A tool that returns forty dated numbers, which the leakage filter checks by its rules alone."""

    spec = ToolSpec(name=FETCH_SERIES, description="Reads.", parameters={"type": "object", "properties": {}})
    text = "\n".join(f"{BEFORE.date() + timedelta(days=n)}, {4 + n / 100:.2f}" for n in range(40))

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """Return the same numbers every time."""
        item = SourceItem(title="Before", text=self.text, published=BEFORE, clamped=True)
        return ToolMaterial(heading="Found", items=(item,))


async def in_trials(model: Model, name: str, calls: int, store: RunStore) -> Timing:
    """Run trials of ten steps of an agent: a call, its event, a filtered tool with its event, and a belief."""
    questions = [
        Question(id=f"q{n}", source="own", text="?", due=AS_OF.at, targets=(Target(id="yes"),))
        for n in range(max(1, calls // STEPS))
    ]

    async def answer(trial: RunTrial, emit: EmitEvent) -> Forecast:
        rules = LeakageRules(as_of=AS_OF, question=trial.question, emit=emit)
        tools = FilteredTools.around([Archive()], rules, ModelContentFilter(model=model, name=name))
        for step in range(STEPS):
            call = request(name, STEPS * int(trial.question.id[1:]) + step)
            reply = await model.complete(call)
            emit(
                ModelCalled(
                    role="agent", model=name, key=request_key(call), dollars=0.0,
                    input_tokens=reply.tokens.input, output_tokens=reply.tokens.output,
                )
            )  # fmt: skip
            observation = await tools.use(FETCH_SERIES, {})
            assert observation.source_ids
            emit(
                ToolUsed(
                    step=step, tool=FETCH_SERIES, arguments={}, result=observation.text, sources=observation.source_ids
                )
            )
            emit(BeliefRevised(step=step, p={"yes": 0.5}, reason="So far.", belief={"p": 0.5}))
        return Forecast(question_id=trial.question.id, forecaster="t", as_of=AS_OF, p={"yes": 0.5})

    wall, cpu = time.perf_counter(), time.process_time()
    trials = [RunTrial(run="r", question=question, trial=0) for question in questions]
    await Executor(store, concurrency=AT_ONCE).run(trials, answer)
    count = len(questions) * STEPS
    return Timing(wall=time.perf_counter() - wall, cpu_ms=(time.process_time() - cpu) / count * 1000)


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
        # In turns, and the fastest of each counts, because other work may run on this machine.
        bares, wholes = [base], list[Timing]()
        for turn in range(TURNS):
            bares.append(run(bare(fake.url, calls)))
            journal, store = Journal(Path(folder) / f"trials{turn}.db"), RunStore(Path(folder) / f"runs{turn}.db")
            store.begin("r", "{}", "2026-01-01")
            wholes.append(run(through(fake.url, calls, journal=journal, store=store)))
            journal.close()
            store.close()
        quickest = [min(several, key=lambda timing: timing.cpu_ms) for several in (wholes, bares)]
        report("with journal, leakage filter and events, in trials", quickest[0], quickest[1], ideal)
        counts: dict[str, Any] = fake.stats()
        twice = sum(count > 5 + 2 * TURNS for count in counts["billed"].values())
        print(f"  at most {counts['peak']} at once at the provider; {twice} requests billed twice by one run")


def again(url: str, calls: int, journal: Journal) -> Timing:
    return run(through(url, calls, journal=journal))


def report(name: str, timing: Timing, base: Timing, ideal: float) -> None:
    against = f"{timing.wall / ideal:5.2f} × ideal, {timing.wall / base.wall:5.2f} × bare loop"
    cpu = f"CPU {timing.cpu_ms / base.cpu_ms:5.2f} × bare loop ({timing.cpu_ms:5.2f} ms a call)"
    print(f"  {name:48} {against}; {cpu}", flush=True)


def wires(calls: int) -> None:
    """Compare every provider with the compatible client: CPU of the client, and of a call with journal and budget."""
    print(f"CPU of {calls:,} calls by provider, as ratios to the compatible wire")
    with FakeModelProcess() as fake, tempfile.TemporaryDirectory() as folder:
        bases: list[Timing] = []
        for provider in ("compat", *PROVIDERS):
            journal = Journal(Path(folder) / f"{provider}.db")
            timings = [
                run(through(fake.url, calls, provider=provider, whole=False)),
                run(through(fake.url, calls, provider=provider, journal=journal)),
            ]
            journal.close()
            bases = bases or timings
            wire, whole = (f"{timing.cpu_ms / base.cpu_ms:5.2f}" for timing, base in zip(timings, bases, strict=True))
            times = f"{timings[0].cpu_ms:.2f} and {timings[1].cpu_ms:.2f} ms"
            print(f"  {provider:12} wire {wire} ×, with journal {whole} × ({times} a call)", flush=True)


def on_postgres(calls: int, latency: float = 0.2) -> None:
    """Time the journal and the ledger of one process on a PostgreSQL server that waits for the disk."""
    if binaries() is None:
        print("PostgreSQL is not installed")
        return
    ideal = calls * latency / AT_ONCE
    print(f"PostgreSQL: {calls:,} calls of {latency:g} s, {AT_ONCE} at once; the ideal is {ideal:g} s")
    with FakeModelProcess(latency=latency) as fake, LocalPostgres() as server:
        base = run(bare(fake.url, calls))
        journal = Journal(server.create("calls"))
        timing = run(through(fake.url, calls, journal=journal))
        report("with a journal in PostgreSQL", timing, base, ideal)
        print(f"  {calls / timing.wall:,.0f} calls a second, reserved, saved and settled")
        report("  the same again, all answered by the journal", again(fake.url, calls, journal), base, ideal)
        journal.close()


def main() -> None:
    quick = "--quick" in sys.argv
    if "--postgres" in sys.argv:
        on_postgres(1000 if quick else 5000)
        return
    case(0.2, 1000 if quick else 5000)
    case(2.0, 1000 if quick else 5000)
    wires(1000 if quick else 3000)


if __name__ == "__main__":
    main()
