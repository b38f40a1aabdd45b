"""A whole run of the belief agent: 400 questions × 5 trials × 8 steps, 500 trials at once, and a bare aiohttp loop.

A trial makes 15 model calls in sequence: eight steps of the agent and the content filter's verdict on each of seven
searches. All of them go to one fake provider in its own process. Journal, leakage filter, limits, budget and events are
on, as in `foretell run`. The bare loop posts the request bodies of one trial of the run, 500 chains at once, and does
nothing else. Without `--full` there are 100 questions, which is 500 trials and takes two minutes.

The ideal is calls × latency / 500: only the provider takes time.
"""

import asyncio
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from fakes.models import FakeModelProcess, FakeModels
from foretell.data.datasets.question_set import QuestionSet
from foretell.data.search.engine import SearchHit
from foretell.plugins import register
from foretell.practice.models.scripts import agent_script
from foretell.questions.as_of import AsOf, instant
from foretell.questions.question import Question, Target
from foretell.runs.event_loop import run as run_on_loop
from foretell.runs.question_sets import Benchmark
from foretell.runs.runner import PreparedRun, execute_run
from foretell.runs.settings import Settings
from foretell.runs.spec import QuestionsSpec, RunSpec

AT_ONCE = 500
TRIALS = 5
STEPS = 8
BRAIN = "foretell.practice.models.scripts:agent_script"
PASSAGE = "The speaker said that the house would settle it after the recess, once both committees had been heard. "


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Times and memory of a whole run."""

    calls: int
    wall: float
    cpu: float

    @property
    def cpu_ms(self) -> float:
        """CPU milliseconds per call."""
        return self.cpu / self.calls * 1000


@dataclass(kw_only=True)
class Watch:
    """Samples every few milliseconds of CPU time what this process is doing, and its memory."""

    shares: Counter[str] = field(default_factory=Counter[str])
    sizes: list[float] = field(default_factory=list[float])

    def __enter__(self) -> "Watch":
        # Use a signal, because a thread would mostly run while this one waits for SQLite.
        signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, 0.005, 0.005)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _look(self, _signal: int, frame: FrameType | None) -> None:
        self.shares[place_of(frame)] += 1
        if self.shares.total() % 50 == 1:
            self.sizes.append(resident_mb())


PLACES = (
    ("foretell/llm/wires", "HTTP"),
    ("aiohttp", "HTTP"),
    ("foretell/llm/canonical", "journal"),
    ("foretell/llm/journal", "journal"),
    ("foretell/llm/flush", "journal"),
    ("foretell/llm", "limits and budget"),
    ("foretell/arena", "events and trials"),
    ("foretell/tools/kept", "journal"),
    ("foretell/tools", "rules"),
    ("foretell/forecasters", "agent"),
    ("foretell/app", "agent"),
)


def place_of(frame: FrameType | None) -> str:
    """Return the part of the architecture at work: that of the innermost function that belongs to one."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.endswith("foretell/app/loop.py"):
            break
        for part, name in PLACES:
            if part in file:
                return name
        frame = frame.f_back
    return "event loop"


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1]) if Path("/proc/self/statm").exists() else 0
    return pages * 4096 / 1e6


def questions(count: int) -> tuple[Question, ...]:
    return tuple(
        Question(
            id=f"q{place}",
            source="own",
            text=f"Will parliament {place} ratify the accord?",
            criteria="YES if the parliament's gazette prints the law. " * 4,
            background="The accord was signed in spring; a vote is planned for autumn. " * 30,
            due=instant("2026-07-01"),
            targets=(Target(id="yes"),),
        )
        for place in range(count)
    )


class Engine:
    """Return five articles for every query, each with its own passage for the filter to judge.

    Searching costs nothing here, because search engines run on other machines.
    """

    name = "articles"
    filters_dates = True

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """Return the same articles with other words."""
        return [self._hit(query, part) for part in range(1, 6)]

    def _hit(self, query: str, part: int) -> SearchHit:
        snippet = f"On {query}: the parties are divided, and a poll sees {40 + part} in favour. {PASSAGE}"
        return SearchHit(
            url=f"https://news.example/{part}",
            title=f"Before the vote, part {part}",
            snippet=snippet,
            published=instant(f"2026-06-0{part}"),
            dating="published",
            text=f"{snippet} {PASSAGE * 15}",
        )


def prepared(url: str, count: int, trials: int = TRIALS) -> PreparedRun:
    spec = RunSpec(
        questions=QuestionsSpec(dataset="made up"),
        models={"agent": f"compat:searcher-{STEPS - 1}@{url}/v1"},
        options={"steps": STEPS},
        search=(Engine.name,),
        trials=trials,
        concurrency=AT_ONCE,
    )
    question_set = QuestionSet(name="made up", questions=questions(count))
    return PreparedRun(
        spec=spec, benchmark=Benchmark(questions=question_set, history=question_set), questions=question_set.questions
    )


def whole(fake: FakeModelProcess, folder: Path, count: int, watch: Watch) -> Timing:
    """Time a whole run, as `foretell run` does it."""
    settings = Settings(home=folder / "home")
    with watch:
        wall, cpu = time.perf_counter(), time.process_time()
        progress = run_on_loop(execute_run(prepared(fake.url, count), settings))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert (progress.done, progress.failed) == (count * TRIALS, 0), progress
    return Timing(calls=progress.calls, wall=wall, cpu=cpu)


async def bodies_of_one_cell(folder: Path) -> list[dict[str, Any]]:
    """Return the request bodies of one trial, in order."""
    async with FakeModels(agent_script) as fake:
        await execute_run(prepared(fake.url, 1, trials=1), Settings(home=folder / "one"))
        return [dict(heard.json) for heard in fake.queries]


async def bare(url: str, bodies: list[dict[str, Any]]) -> Timing:
    """Time a lower bound: 500 chains that write JSON, post it, and read JSON."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None)) as session:

        async def chain(place: int) -> None:
            for body in bodies:
                body_bytes = json.dumps({**body, "seed": place}).encode()
                async with session.post(f"{url}/v1/chat/completions", data=body_bytes) as answer:
                    json.loads(await answer.read())["choices"][0]["message"]

        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(chain(place) for place in range(AT_ONCE)))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Timing(calls=AT_ONCE * len(bodies), wall=wall, cpu=cpu)


def timed(work: Awaitable[Timing]) -> Timing:
    return run_on_loop(work)


def report(name: str, timing: Timing, base: Timing, latency: float) -> None:
    ideal = timing.calls * latency / AT_ONCE
    against_bare = (timing.wall / timing.calls) / (base.wall / base.calls)
    text = f"{timing.wall / ideal:5.2f} × ideal, {against_bare:5.2f} × bare loop, {timing.cpu_ms:5.2f} ms CPU a call"
    print(f"  {name:34} {text}", flush=True)


def case(latency: float, count: int) -> None:
    trials = count * TRIALS
    print(f"{count} questions × {TRIALS} trials × {STEPS} steps at {latency:g} s, {AT_ONCE} at once", flush=True)
    with FakeModelProcess(latency=latency, script=BRAIN) as fake, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bodies = run_on_loop(bodies_of_one_cell(folder))
        base = timed(bare(fake.url, bodies))
        report("bare aiohttp loop", base, base, latency)
        fake.reset()
        watch = Watch()
        timing = whole(fake, folder, count, watch)
        report("journal, leakage filter, events and agent", timing, base, latency)
        stats = fake.stats()
    paid = sum(stats["billed"].values())
    kb = sum(len(json.dumps(body)) for body in bodies) / len(bodies) / 1000
    print(
        f"  {trials} forecasts from {timing.calls} calls, {paid} billed, {kb:.0f} KB each; peak {stats['peak']} at once"
    )
    shares = ", ".join(f"{place} {n / watch.shares.total():.0%}" for place, n in watch.shares.most_common())
    print(f"  where the CPU time goes: {shares}")
    sizes = watch.sizes
    half, end = max(sizes[: len(sizes) // 2]), max(sizes[len(sizes) // 2 :])
    print(f"  resident memory: {half:.0f} MB at most in the first half, {end:.0f} MB in the second", flush=True)


def main() -> None:
    register("search_engines", Engine.name, lambda _: Engine())
    count = 400 if "--full" in sys.argv else 100
    for latency in (2.0, 0.2):
        case(latency, count)


if __name__ == "__main__":
    main()
