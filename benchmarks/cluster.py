"""Two workers beside one, and a cell on a worker beside a cell of the embedded executor.

PostgreSQL is real, in a temporary folder, and so are `foretell worker` and `foretell run` as processes of their own.
The provider is a fake whose latency dominates. Throughput is counted there, from the first call to the last, so that
starting up does not count. CPU time is that of the workers (waiting for cells included) and of the server while the run
goes on.

Without `--full` a run has 200 cells of 7 calls, which takes three minutes.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from agent_run import Engine
from fakes.models import FakeModelProcess
from fakes.postgres import LocalPostgres, binaries
from foretell.cli import main as cli
from foretell.models.database.liveness import SessionLiveness
from foretell.plugins import register
from foretell.questions import EmitEvent, Forecast, Question, Target, instant
from foretell.runs import (
    AnswerCell,
    CellQueue,
    Executor,
    RunCell,
    RunRow,
    RunStore,
    Worker,
    WorkerCapacity,
    WorkerSignals,
    cells_of,
    enqueue,
    read_spec,
)

BRAIN = "foretell.practice.models.scripts:agent_script"
LATENCY = 1.0
STEPS = 4
TRIALS = 5
HERE = 25
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Of a whole run."""

    cells: int
    calls: int
    wall: float
    cpu: float
    server_cpu: float = 0.0

    @property
    def speed(self) -> float:
        """Calls in a second."""
        return self.calls / self.wall


def child() -> None:
    """The command line in a process of its own, with a search that costs nothing."""
    register("search_engines", Engine.name, lambda _: Engine())
    sys.argv = ["foretell", *sys.argv[2:]]
    cli.main()


def cpu_of(pid: int) -> float:
    """Seconds a process has computed so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / TICKS


@contextmanager
def started(folder: Path, environment: dict[str, str], *arguments: str) -> Generator[subprocess.Popen[bytes]]:
    command = [sys.executable, __file__, "child", *arguments]
    silent: dict[str, int] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, **environment}, **silent)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait()


def furnish(folder: Path, url: str, count: int) -> dict[str, str]:
    folder.mkdir(parents=True)
    rows = [
        {
            "id": f"q{n}",
            "text": f"Will parliament {n} ratify the accord?",
            "background": "The accord was signed in spring; a vote is planned for autumn. " * 30,
            "due": "2026-07-01",
            "by": "2026-12-31",
        }
        for n in range(count)
    ]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = {
        "questions": "questions.jsonl",
        "search": [Engine.name],
        "models": {"agent": f"compat:searcher-{STEPS - 1}@{url}/v1"},
        "options": {"steps": STEPS},
        "trials": TRIALS,
    }
    (folder / "run.yaml").write_text(yaml.safe_dump(spec))
    return {"FORETELL_HOME": str(folder / "home")}


def measured(fake: FakeModelProcess, folder: Path, count: int, workers: int, server: LocalPostgres | None) -> Timing:
    """From the first call at the provider to the last."""
    fake.reset()
    environment = furnish(folder, fake.url, count)
    if server is not None:
        environment["FORETELL_DATABASE_URL"] = server.create(f"arena{workers}")
    with ExitStack() as stack:
        at_work = [
            stack.enter_context(started(folder, environment, "worker", "--concurrency", str(HERE)))
            for _ in range(workers)
        ]
        time.sleep(6 if workers else 0)  # All of them have come up.
        running = stack.enter_context(started(folder, environment, "run", "run.yaml", "--set", f"concurrency={HERE}"))
        while not fake.stats()["arrived"]:
            time.sleep(0.05)
        pids = [each.pid for each in at_work] or [running.pid]
        before, server_before = sum(map(cpu_of, pids)), server.cpu() if server else 0.0
        after, server_after = before, server_before
        while running.poll() is None:
            after, server_after = sum(map(cpu_of, pids)), server.cpu() if server else 0.0
            time.sleep(0.2)
        assert running.returncode == 0
    times = fake.stats()["times"]
    with closing(RunStore(environment.get("FORETELL_DATABASE_URL", folder / "home" / "runs.db"))) as store:
        done = store.run(read_spec(folder / "run.yaml").id)
    assert done is not None
    assert (done.done, done.failed) == (count * TRIALS, 0), done
    return Timing(
        cells=done.done,
        calls=len(times),
        wall=times[-1] - times[0] + LATENCY,
        cpu=after - before,
        server_cpu=server_after - server_before,
    )


def report(name: str, found: Timing, ideal: float) -> None:
    cpu = f"{found.cpu / found.cells * 1000:6.1f} ms CPU a cell"
    server = f" and {found.server_cpu / found.cells * 1000:.1f} ms of the server" if found.server_cpu else ""
    print(f"  {name:26} {found.speed:6.1f} calls/s, {found.wall / ideal:4.2f} × ideal, {cpu}{server}", flush=True)


def throughput(count: int) -> None:
    cells = count * TRIALS
    calls = 2 * STEPS - 1
    print(f"{cells} cells of {calls} calls at {LATENCY:g} s, {HERE} cells at once on a worker")
    ideal = cells * calls * LATENCY / HERE
    with FakeModelProcess(latency=LATENCY, script=BRAIN) as fake, LocalPostgres() as server, _folder() as folder:
        embedded = measured(fake, folder / "embedded", count, 0, None)
        report("embedded executor, SQLite", embedded, ideal)
        one = measured(fake, folder / "one", count, 1, server)
        report("one worker", one, ideal)
        two = measured(fake, folder / "two", count, 2, server)
        report("two workers", two, ideal / 2)
    print(f"  two workers are {two.speed / one.speed:.2f} × as fast as one")
    print(f"  one worker is {one.speed / embedded.speed:.2f} × as fast as the embedded executor")
    more = (one.cpu / one.cells - embedded.cpu / embedded.cells) * 1000
    print(f"  a cell costs {more:.1f} ms of CPU more on a worker than in the embedded executor", flush=True)


@contextmanager
def _folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


QUESTIONS = [
    Question(id=f"q{n}", source="s", text="?", due=instant("2026-01-01"), targets=(Target(id="yes"),))
    for n in range(500)
]


async def nothing(cell: RunCell, emit: EmitEvent) -> Forecast:
    return Forecast(question_id=cell.question.id, forecaster="nothing", as_of=cell.question.as_of, p={"yes": 0.5})


@asynccontextmanager
async def nothing_around(row: RunRow) -> AsyncGenerator[AnswerCell]:
    yield nothing


async def empty_cells(url: str) -> None:
    """What a cell costs that does nothing at all."""
    cells = list(cells_of("r", QUESTIONS, 1))
    with _folder() as folder, closing(RunStore(folder / "runs.db")) as store:
        cpu = time.process_time()
        await Executor(store).run(cells, nothing)
        print(f"  embedded executor: {(time.process_time() - cpu) / len(cells) * 1000:5.2f} ms CPU")
    with closing(RunStore(url)) as store, closing(CellQueue(url)) as queue:
        store.begin("r", "{}", "2026-01-01")
        store.keep_questions("r", QUESTIONS)
        cpu = time.process_time()
        enqueue(queue, store, cells)
        print(f"  queueing it:       {(time.process_time() - cpu) / len(cells) * 1000:5.2f} ms CPU")
        life = store.database.life
        assert isinstance(life, SessionLiveness)
        worker, orders = Worker(url, store, life, nothing_around), WorkerSignals()
        cpu = time.process_time()
        serving = asyncio.create_task(worker.serve(WorkerCapacity(here=HERE), orders))
        while worker.progress.done < len(cells):
            await asyncio.sleep(0.1)
        print(f"  on a worker:       {(time.process_time() - cpu) / len(cells) * 1000:5.2f} ms CPU", flush=True)
        orders.rest.set()
        await serving


def main() -> None:
    if binaries() is None:
        print("skipped: no PostgreSQL server is installed")
        return
    print(f"{len(QUESTIONS)} cells that do nothing; of each:")
    with LocalPostgres() as server:
        asyncio.run(empty_cells(server.create("arena")))
    throughput(100 if "--full" in sys.argv else 40)


if __name__ == "__main__":
    child() if sys.argv[1:2] == ["child"] else main()
