"""Two workers compared with one, and a trial on a worker compared with a trial of the embedded executor.

PostgreSQL is real, in a temporary folder; `foretell worker` and `foretell run` are separate processes.
The provider is a fake whose latency dominates. Throughput is counted there, from the first call to the last, so that
starting up does not count. CPU time is that of the workers (waiting for trials included) and of the server during the
run.

Without `--full` a run has 200 trials of 7 calls, which takes three minutes.
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
from foretell.questions.as_of import instant
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Target
from foretell.questions.trace import EmitEvent
from foretell.runs.executor import AnswerTrial, Executor
from foretell.runs.spec import read_spec
from foretell.runs.store import RunRow, RunStore, RunTrial, trials_of
from foretell.runs.trial_queue import TrialQueue, enqueue
from foretell.runs.worker import Worker, WorkerCapacity, WorkerSignals

BRAIN = "foretell.practice.models.scripts:agent_script"
LATENCY = 1.0
STEPS = 4
TRIALS = 5
HERE = 25
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Times of a whole run."""

    trials: int
    calls: int
    wall: float
    cpu: float
    server_cpu: float = 0.0

    @property
    def speed(self) -> float:
        """Calls per second."""
        return self.calls / self.wall


def child() -> None:
    """Run the command line in its own process, with a search that costs nothing."""
    register("search_engines", Engine.name, lambda _: Engine())
    sys.argv = ["foretell", *sys.argv[2:]]
    cli.main()


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process so far."""
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


def prepare(folder: Path, url: str, count: int) -> dict[str, str]:
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
    """Return the seconds from the first call at the provider to the last."""
    fake.reset()
    environment = prepare(folder, fake.url, count)
    if server is not None:
        environment["FORETELL_DATABASE_URL"] = server.create(f"arena{workers}")
    with ExitStack() as stack:
        at_work = [
            stack.enter_context(started(folder, environment, "worker", "--concurrency", str(HERE)))
            for _ in range(workers)
        ]
        time.sleep(6 if workers else 0)  # All of them have started.
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
        trials=done.done,
        calls=len(times),
        wall=times[-1] - times[0] + LATENCY,
        cpu=after - before,
        server_cpu=server_after - server_before,
    )


def report(name: str, timing: Timing, ideal: float) -> None:
    cpu = f"{timing.cpu / timing.trials * 1000:6.1f} ms CPU a trial"
    server = f" and {timing.server_cpu / timing.trials * 1000:.1f} ms of the server" if timing.server_cpu else ""
    print(f"  {name:26} {timing.speed:6.1f} calls/s, {timing.wall / ideal:4.2f} × ideal, {cpu}{server}", flush=True)


def throughput(count: int) -> None:
    trials = count * TRIALS
    calls = 2 * STEPS - 1
    print(f"{trials} trials of {calls} calls at {LATENCY:g} s, {HERE} trials at once on a worker")
    ideal = trials * calls * LATENCY / HERE
    with FakeModelProcess(latency=LATENCY, script=BRAIN) as fake, LocalPostgres() as server, _folder() as folder:
        embedded = measured(fake, folder / "embedded", count, 0, None)
        report("embedded executor, SQLite", embedded, ideal)
        single = measured(fake, folder / "one", count, 1, server)
        report("one worker", single, ideal)
        two = measured(fake, folder / "two", count, 2, server)
        report("two workers", two, ideal / 2)
    print(f"  two workers are {two.speed / single.speed:.2f} × as fast as one")
    print(f"  one worker is {single.speed / embedded.speed:.2f} × as fast as the embedded executor")
    more = (single.cpu / single.trials - embedded.cpu / embedded.trials) * 1000
    print(f"  a trial costs {more:.1f} ms of CPU more on a worker than in the embedded executor", flush=True)


@contextmanager
def _folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


QUESTIONS = [
    Question(id=f"q{n}", source="s", text="?", due=instant("2026-01-01"), targets=(Target(id="yes"),))
    for n in range(500)
]


async def nothing(trial: RunTrial, emit: EmitEvent) -> Forecast:
    return Forecast(question_id=trial.question.id, forecaster="nothing", as_of=trial.question.as_of, p={"yes": 0.5})


@asynccontextmanager
async def nothing_around(row: RunRow) -> AsyncGenerator[AnswerTrial]:
    yield nothing


async def empty_trials(url: str) -> None:
    """Measure the cost of a trial that does nothing."""
    trials = list(trials_of("r", QUESTIONS, 1))
    with _folder() as folder, closing(RunStore(folder / "runs.db")) as store:
        cpu = time.process_time()
        await Executor(store).run(trials, nothing)
        print(f"  embedded executor: {(time.process_time() - cpu) / len(trials) * 1000:5.2f} ms CPU")
    with closing(RunStore(url)) as store, closing(TrialQueue(url)) as queue:
        store.begin("r", "{}", "2026-01-01")
        store.keep_questions("r", QUESTIONS)
        cpu = time.process_time()
        enqueue(queue, store, trials)
        print(f"  queueing it:       {(time.process_time() - cpu) / len(trials) * 1000:5.2f} ms CPU")
        life = store.database.life
        assert isinstance(life, SessionLiveness)
        worker, orders = Worker(url, store, life, nothing_around), WorkerSignals()
        cpu = time.process_time()
        serving = asyncio.create_task(worker.serve(WorkerCapacity(here=HERE), orders))
        while worker.progress.done < len(trials):
            await asyncio.sleep(0.1)
        print(f"  on a worker:       {(time.process_time() - cpu) / len(trials) * 1000:5.2f} ms CPU", flush=True)
        orders.rest.set()
        await serving


def main() -> None:
    if binaries() is None:
        print("skipped: no PostgreSQL server is installed")
        return
    print(f"{len(QUESTIONS)} trials that do nothing; of each:")
    with LocalPostgres() as server:
        asyncio.run(empty_trials(server.create("arena")))
    throughput(100 if "--full" in sys.argv else 40)


if __name__ == "__main__":
    child() if sys.argv[1:2] == ["child"] else main()
