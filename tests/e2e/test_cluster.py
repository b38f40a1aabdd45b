"""Several workers on one real PostgreSQL, as real processes, with a provider that counts what it bills."""

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from fakes.models import BackgroundModels
from fakes.postgres import LocalPostgres
from fakes.processes import ForkedCommand
from fakes.stored_run import run_id_of
from foretell.models.journal import Journal
from foretell.questions.forecast import Failure
from foretell.runs.store import RunStore, trials_of

Build = Callable[..., Any]

BRAIN = "foretell.practice.models.scripts:agent_script"
QUESTIONS, TRIALS = 12, 3
CELLS = QUESTIONS * TRIALS
HERE = 4
"""Concurrent trials of one worker."""
PATIENCE = 120


@pytest.fixture(scope="module")
def slow() -> Iterator[BackgroundModels]:
    """A slow provider."""
    with BackgroundModels(script=BRAIN, latency=0.15) as fake:
        yield fake


class Site:
    """A workspace whose runs and journal are in a PostgreSQL database."""

    def __init__(self, workspace: Any, provider: BackgroundModels, url: str) -> None:
        provider.reset()
        self.workspace = workspace.with_environment(FORETELL_DATABASE_URL=url)
        self.provider = provider
        self.url = url
        self.children: list[ForkedCommand] = []
        self.output: list[str] = []
        self.spec = self.workspace.spec(trials=TRIALS)

    @property
    def run_id(self) -> str:
        return run_id_of(self.spec)

    def start(self, *arguments: str, **environment: str) -> ForkedCommand:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        child = self.workspace.start(*arguments, streams=streams, **environment)
        self.children.append(child)
        return child

    def worker(self, *arguments: str, here: int = HERE, **environment: str) -> ForkedCommand:
        return self.start("worker", "--concurrency", str(here), *arguments, **environment)

    def run(self, *arguments: str) -> ForkedCommand:
        return self.start("run", self.spec.name, *arguments)

    def ended(self, child: ForkedCommand, code: int = 0) -> str:
        output = child.communicate(timeout=PATIENCE)[0]
        assert child.returncode == code, output
        self.output.append(output)
        return output

    def tell(self, *arguments: str) -> str:
        """Run a command in this process, which has everything loaded."""
        end = self.workspace.foretell(*arguments)
        assert end.returncode == 0, end.stderr
        self.output.append(end.stdout + end.stderr)
        return self.output[-1]

    def kept(self) -> int:
        with closing(Journal(self.url)) as journal:
            return len(journal.database.read("SELECT key FROM kept"))

    def until_kept(self, replies: int) -> None:
        until = time.monotonic() + PATIENCE
        with closing(Journal(self.url)) as journal:
            while len(journal.database.read("SELECT key FROM kept")) < replies:
                broken = [child.communicate()[0] for child in self.children if (child.poll() or 0) > 0]
                assert not broken, broken
                assert time.monotonic() < until, "nothing goes on"
                time.sleep(0.05)

    def until_told(self, words: str, *arguments: str) -> None:
        until = time.monotonic() + PATIENCE
        while words not in self.tell(*arguments):
            assert time.monotonic() < until, "nobody says so"
            time.sleep(0.2)

    def answers(self) -> list[Any]:
        with closing(RunStore(self.url)) as store:
            return list(store.answers(self.run_id))

    def events(self) -> dict[tuple[str, int], list[Any]]:
        with closing(RunStore(self.url)) as store:
            return events_of(store, self.run_id)

    def everything(self) -> str:
        """Each row of each table, the engine's too, as text."""
        query = "select table_schema, table_name from information_schema.tables where table_type = 'BASE TABLE'"
        with closing(RunStore(self.url)) as store:
            tables = store.database.read(query)
            rows = [store.database.read(f'select t::text from "{schema}"."{name}" t') for schema, name in tables]
        assert ("dbos", "workflow_status") in tables
        return "\n".join(row for table in rows for (row,) in table)

    def bill(self) -> dict[str, int]:
        return self.provider.stats()["billed"]

    def close(self) -> None:
        for child in self.children:
            if child.poll() is None:
                child.kill()
            if child.stdout is not None and not child.stdout.closed:
                child.communicate()


@pytest.fixture
def site(slow: BackgroundModels, postgres: str, build_workspace: Build) -> Iterator[Site]:
    found = Site(build_workspace(slow.url, count=QUESTIONS), slow, postgres)
    yield found
    found.close()


def events_of(store: RunStore, run: str) -> dict[tuple[str, int], list[Any]]:
    events: dict[tuple[str, int], list[Any]] = {}
    for _, key, event in store.events(run):
        events.setdefault((key.question, key.trial), []).append(event)
    return events


def essence(answers: list[Any]) -> list[Any]:
    """Return everything except times."""
    return [(a.question_id, a.trial, a.p, a.rationale, a.usage.calls, a.usage.dollars) for a in answers]


def test_run_completes_when_one_of_two_workers_is_killed(site: Site, build_workspace: Build, canary: str, capsys: Any):
    """All trials finish once, as in one process; limits apply; no secret is stored."""
    calm = build_workspace(site.provider.url, count=QUESTIONS, name="calm")
    calm.run(calm.spec(trials=TRIALS))
    once = site.bill()
    assert set(once.values()) == {1}
    site.provider.reset()

    cap = 5
    site.workspace.set(f"model_limits.openai.at_once = {cap}")
    workers = [site.worker(), site.worker()]
    running = site.run()
    site.until_kept(len(once) // 3)
    workers[0].send_signal(signal.SIGKILL)
    killed = time.monotonic()
    ended = site.ended(running)
    seconds = time.monotonic() - killed
    billed = site.bill()

    assert f"{CELLS} trials, 0 failed" in ended
    assert site.provider.stats()["peak"] == cap
    assert essence(site.answers()) == essence(calm.forecasts(site.run_id))
    with closing(RunStore(calm.home / "runs.db")) as store:
        assert site.events() == events_of(store, site.run_id)
    # The same requests as in one process. Only requests in flight at the kill are billed twice.
    assert billed.keys() == once.keys()
    again = sum(billed.values()) - len(billed)
    with closing(Journal(site.url)) as journal:
        assert again <= journal.ledger.lost_calls() <= HERE
    workers[1].send_signal(signal.SIGTERM)
    site.ended(workers[1])
    site.ended(workers[0], code=-signal.SIGKILL)
    seen = "\n".join([site.everything(), *site.output])
    for secret in (canary, site.url.split("@")[0].split(":")[-1]):
        assert secret not in seen
        assert secret.encode().hex() not in seen
    with capsys.disabled():
        print(f"[{len(billed)} calls, {again} on the wire sent again, done {seconds:.0f} s after the kill]", end=" ")


def test_worker_that_resumes_has_lost_its_trials_and_slots(postgres: str, build_workspace: Build):
    """A worker is suspended for longer than its lease and resumes while another has its trials."""
    cap = 6
    with BackgroundModels(script=BRAIN, latency=0.6) as provider, ExitStack() as stack:
        site = Site(build_workspace(provider.url, count=QUESTIONS), provider, postgres)
        stack.callback(site.close)
        calm = build_workspace(provider.url, count=QUESTIONS, name="calm")
        calm.run(calm.spec(trials=TRIALS))
        once = site.bill()
        provider.reset()
        site.workspace.set(f"model_limits.openai.at_once = {cap}")
        sleeper, other = site.worker(), site.worker()
        running = site.run()
        site.until_kept(len(once) // 6)
        sleeper.send_signal(signal.SIGSTOP)
        with closing(RunStore(postgres)) as store:
            until = time.monotonic() + PATIENCE
            while not store.database.read("select 1 from takeover"):
                assert time.monotonic() < until, "nobody took over"
                time.sleep(0.05)
        sleeper.send_signal(signal.SIGCONT)
        ended = site.ended(running)
        assert f"{CELLS} trials, 0 failed" in ended
        assert provider.stats()["peak"] <= cap
        assert essence(site.answers()) == essence(calm.forecasts(site.run_id))
        with closing(RunStore(calm.home / "runs.db")) as store:
            assert site.events() == events_of(store, site.run_id)
        billed = site.bill()
        assert billed.keys() == once.keys()
        with closing(Journal(postgres)) as journal:
            # The worker that resumes books the replies to calls that the other one has sent again.
            stored = journal.database.read("SELECT 1 FROM sent JOIN kept ON kept.key = sent.key")
            assert sum(billed.values()) - len(billed) <= journal.sends() - len(stored) <= HERE
        for worker in (sleeper, other):
            assert worker.poll() is None
            worker.send_signal(signal.SIGTERM)
            site.ended(worker)


def test_limits_on_requests_and_trials_apply_over_workers(site: Site):
    per_minute, everywhere = 600, 6
    site.workspace.set(f"model_limits.openai.requests = {per_minute}")
    site.workspace.spec(trials=2)
    named = site.workspace.home / "settings.toml"
    unlimited = named.read_text()
    named.write_text(f"{unlimited}\nworkers_concurrency = {everywhere}\n")
    site.worker()
    site.until_told(f"together answer at most {everywhere} trials", "worker", "--status")
    named.write_text(unlimited)
    site.worker(here=50)  # Uses the limit that the other worker set.
    site.ended(site.run())
    assert f"together answer at most {everywhere} trials" in site.tell("worker", "--status")
    stats = site.provider.stats()
    assert 1 < stats["peak"] <= everywhere  # Each trial makes one call after the other.
    burst, rate = per_minute * 5 / 60, per_minute * 55 / 3600
    # Never more than a burst plus the rate from any request on. A few arrive later than they were sent.
    for place, start in enumerate(stats["times"]):
        for further, time_ in enumerate(stats["times"][place:]):
            assert further <= burst + rate * (time_ - start) + 5
    assert len(stats["times"]) > burst * 1.5


def test_run_survives_an_outage_of_the_database(
    slow: BackgroundModels, postgres_server: LocalPostgres, build_workspace: Build, capsys: Any
):
    assert postgres_server.port  # This test has its own server, which waits for the disk.
    with LocalPostgres() as server:
        site = Site(build_workspace(slow.url, count=QUESTIONS), slow, server.create("arena"))
        workers = [site.worker(), site.worker()]
        running = site.run()
        site.until_kept(40)
        server.outage(3.0)
        ended = site.ended(running)
        billed = site.bill()
        with closing(Journal(site.url)) as journal:
            assert journal.ledger.lost_calls() == 0
            assert journal.sends() == len(journal.database.read("SELECT key FROM kept"))
        assert f"{CELLS} trials, 0 failed" in ended
        assert len(site.answers()) == CELLS
        assert set(billed.values()) == {1}
        for worker in workers:
            assert worker.poll() is None
            worker.send_signal(signal.SIGTERM)
            site.ended(worker)
        assert all("the database is unavailable, retrying" in text for text in site.output)
        site.close()
    with capsys.disabled():
        print(f"[{len(billed)} calls, each billed once]", end=" ")


def test_workers_can_join_and_leave(site: Site):
    """One worker has no key, one is asked to stop, one must stop now, one stops when the queue is empty."""
    lacking = site.worker(OPENAI_API_KEY="")
    running = site.run()
    ended = site.ended(lacking, code=2)
    assert "needs a key: set OPENAI_API_KEY" in ended
    standing = site.tell("worker", "--status")
    assert f"run {site.run_id}: {CELLS} trials waiting" in standing
    assert "no worker is running" in standing
    leaving = site.worker()
    site.children.remove(lacking)
    site.until_kept(20)
    leaving.send_signal(signal.SIGTERM)
    ended = site.ended(leaving)
    done = len(site.answers())
    assert 0 < done < CELLS
    assert ended.strip().splitlines()[-1].startswith(f"{done} trials, 0 failed")
    hurried = site.worker()
    site.until_kept(site.kept() + 10)
    for _ in range(2):
        hurried.send_signal(signal.SIGINT)
        time.sleep(0.3)
    site.ended(hurried)
    site.ended(site.worker("--idle", "5", here=50))
    assert f"{CELLS} trials, 0 failed" in site.ended(running)
    assert len(site.answers()) == CELLS


def test_failures_of_one_reason_can_be_retried_alone(
    place: Path | str, provider: BackgroundModels, build_workspace: Build
):
    """In one process with a file, and by its own worker with PostgreSQL. Nothing is paid for twice."""
    provider.reset()
    shared = isinstance(place, str)
    workspace = build_workspace(provider.url, count=3).with_environment(
        **({"FORETELL_DATABASE_URL": place} if shared else {})
    )
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    worker = workspace.start("worker", "--concurrency", "2", streams=streams) if shared else None
    try:
        run = workspace.run(workspace.spec(trials=2, combine="judged"))
        once = provider.stats()["billed"]
        with closing(RunStore(place if shared else workspace.home / "runs.db")) as store:
            trials = list(trials_of(run, store.questions(run), 2))
            before = essence(list(store.answers(run)))
            for trial, error in zip(trials, ("timed out after 3 s", "timed out after 12 s", "no price"), strict=False):
                fields = {"question_id": trial.question.id, "forecaster": "agent", "as_of": trial.question.as_of}
                assert store.finish_trial(trial.key, Failure(**fields, trial=trial.trial, error=error))
            strange = workspace.foretell("run", run, "--only-failed", "bad weather")
            assert (strange.returncode, "nothing failed for that reason" in strange.stderr) == (2, True)
            foretell = workspace.foretell("run", run, "--only-failed", "timed out after 3 s")
            assert (foretell.returncode, "2 trials, 0 failed" in foretell.stdout) == (0, True), (
                foretell.stdout + foretell.stderr
            )
            row = store.run(run)
            assert row is not None
            assert (row.done, row.failed) == (8, 1)
            assert [answer.error for answer in store.answers(run) if isinstance(answer, Failure)] == ["no price"]
            assert workspace.foretell("run", run).returncode == 0
            assert essence(list(store.answers(run))) == before
        assert provider.stats()["billed"] == once
    finally:
        if worker is not None:
            worker.send_signal(signal.SIGTERM)
            worker.communicate(timeout=PATIENCE)


def test_run_started_twice_with_own_workers_pays_once(site: Site):
    site.workspace.spec(trials=2, combine="judged", questions={"dataset": "questions.jsonl", "limit": 8})
    both = [site.run("--where", "both", "--set", f"concurrency={HERE}") for _ in range(2)]
    for running in both:
        assert "24 trials, 0 failed" in site.ended(running)
    assert set(site.bill().values()) == {1}
    again = site.ended(site.run("--where", "both", "--out", "tables"))
    assert "24 were done before" in again
    assert "$0 billed in 0 calls" in again
    assert f"Wrote {Path('tables')}" in again
    assert site.run_id in site.tell("runs")
    assert "own/1" in site.tell("show", site.run_id)
    site.provider.reset()
    assert "24 of 24 answers are the same" in site.tell("replay", site.run_id)
    assert site.bill() == {}
    asking = ("--closes", "2027-01-01", "--model", "openai:gpt-5-mini", "--search", "local")
    assert "%" in site.tell("ask", "Will it rain?", *asking)


SCHEDULE = """
import sys, time
from foretell.runs.claims import ClaimTable
from foretell.runs.store import RunStore
place, stuck_at = sys.argv[1:]
once = ClaimTable(RunStore(place).database)
forecast_times = [f"2026-11-15T08:{minute:02}:00+00:00" for minute in range(12)]
print("ready", flush=True)
sys.stdin.readline()
while forecast_times:
    for due in list(forecast_times):
        if once.take("collect", due):
            print("doing", due, flush=True)
            time.sleep(600 if due[14:16] == stuck_at else 0.02)
            once.done("collect", due)
            print("done", due, flush=True)
    ((open_,),) = once._db.read("select count(*) from tick where done = 0")
    forecast_times = forecast_times if open_ else []
    time.sleep(0.05)
"""


def test_a_schedule_runs_once_on_many_machines(place: Path | str):
    """Three processes wait for the same work. One is killed during its work, which another then does."""
    command = [sys.executable, "-c", SCHEDULE, str(place)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    children = [subprocess.Popen([*command, stuck_at], **pipes) for stuck_at in ("00", "-", "-")]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    doomed, *others = children
    doomed.stdin.write("\n")
    doomed.stdin.flush()
    assert doomed.stdout.readline() == "doing 2026-11-15T08:00:00+00:00\n"
    for child in others:
        child.stdin.write("\n")
        child.stdin.flush()
    doomed.kill()
    splitlines = [child.communicate(timeout=PATIENCE)[0].splitlines() for child in children]
    done = Counter(line for lines in splitlines for line in lines if line.startswith("done"))
    begun = Counter(line for lines in splitlines[1:] for line in lines if line.startswith("doing"))
    assert (len(done), set(done.values())) == (12, {1})
    assert (len(begun), set(begun.values())) == (12, {1})
    assert [child.returncode for child in children] == [-signal.SIGKILL, 0, 0]


def test_a_file_shared_by_two_processes_is_paid_for_once(slow: BackgroundModels, build_workspace: Build):
    """Without a server, the same run is started twice at the same time. Both share its trials."""
    slow.reset()
    workspace = build_workspace(slow.url, count=6)
    command = ("run", workspace.spec(trials=2).name, "--set", f"concurrency={HERE}")
    both = [workspace.start(*command, streams={"stdout": subprocess.PIPE}) for _ in range(2)]
    outputs = [process.communicate(timeout=PATIENCE)[0] for process in both]
    assert all("12 trials, 0 failed" in each for each in outputs), outputs
    assert set(slow.stats()["billed"].values()) == {1}
    run = run_id_of(workspace.folder / "run.yaml")
    assert len(workspace.forecasts(run)) == 12
    calm = build_workspace(slow.url, count=6, name="calm")
    calm.run(calm.spec(trials=2))
    assert workspace.events(run) == calm.events(run)
    assert not [path for path in workspace.home.iterdir() if "alive" in path.name]


def test_run_can_be_rejected_and_removed_from_the_queue(site: Site):
    site.workspace.spec(trials=TRIALS, options={"stepz": 3})
    assert "the forecaster 'reason' has no option 'stepz'" in site.ended(site.run(), code=2)
    site.workspace.spec(trials=TRIALS)
    running = site.run()
    assert running.stdout is not None
    while "no worker is running" not in (line := running.stdout.readline()):
        assert line, "it ended"
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=PATIENCE)
    assert f"run {site.run_id}: {CELLS} trials waiting" in site.tell("worker", "--status")
    assert f"{CELLS} trials taken out of the queue" in site.tell("runs", "stop", site.run_id, "--discard")
    assert "waiting" not in site.tell("worker", "--status")


def test_worker_needs_a_database_address(workspace: Any):
    child = workspace.with_environment(FORETELL_DATABASE_URL="").foretell("worker")
    assert child.returncode == 2
    assert "FORETELL_DATABASE_URL=postgresql://" in child.stderr
