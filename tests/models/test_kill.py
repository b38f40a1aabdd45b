"""kill -9 at random points: nothing that was received is paid for twice."""

import importlib.util
import json
import random
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from fakes.models import BackgroundModels
from foretell.models.canonical import request_key
from foretell.models.facts import facts_of
from foretell.models.journal import Journal
from foretell.models.providers.chat import ChatApi

CHILD = Path(__file__).with_name("kill_child.py")


def _child() -> ModuleType:
    spec = importlib.util.spec_from_file_location("kill_child", CHILD)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _stored_keys(journal: Journal) -> frozenset[str]:
    return frozenset(key.hex() for (key,) in journal.database.read("SELECT key FROM kept"))


def test_killed_run_resumes_without_repeating_a_call(tmp_path: Path, kill_harness: ModuleType):
    child = _child()
    rng = random.Random(7)
    path, progress = tmp_path / "journal.db", tmp_path / "progress"
    with BackgroundModels(latency=0.02) as fake:
        requests = [child.request(fake.url, place) for place in range(child.CALLS)]
        key = {place: request_key(request) for place, request in enumerate(requests)}
        hashes = {place: _fake_hash(request) for place, request in enumerate(requests)}
        paid_when_stored: dict[int, int] = {}

        def after_kill() -> None:
            journal = Journal(path)
            kept_keys = _stored_keys(journal)
            journal.close()
            used = {int(line) for line in kill_harness.lines(progress)}
            assert {key[place] for place in used} <= kept_keys  # Stored before use.
            billed = fake.stats()["billed"]
            for place in key:
                if key[place] in kept_keys:
                    paid_when_stored.setdefault(place, billed[hashes[place]])

        command = [sys.executable, str(CHILD), fake.url, str(path), str(progress)]
        points = kill_harness.kill_points(child.CALLS, 6, rng)
        lives = kill_harness.live_and_die(command, progress, points, rng=rng, after_kill=after_kill)
        billed = fake.stats()["billed"]

    assert lives.code == 0
    assert lives.kills >= 3
    assert {place: billed[hashes[place]] for place in paid_when_stored} == paid_when_stored
    journal = Journal(path)
    assert _stored_keys(journal) == frozenset(key.values())
    # All further bills of a request were counted as lost.
    assert sum(billed.values()) - child.CALLS <= journal.ledger.lost_calls()
    assert sum(spend.calls for spend in journal.spent().values()) == child.CALLS
    journal.close()


def _fake_hash(request: object) -> str:
    sent = json.dumps(ChatApi(stream=True).body(request, "m", facts_of("m")), separators=(",", ":"))
    return sha256(f"/v1/chat/completions\n{sent}".encode()).hexdigest()


def test_killed_at_random_times_and_during_bursts(tmp_path: Path) -> None:
    child = [sys.executable, str(Path(__file__).with_name("burst_child.py")), str(tmp_path)]
    end = subprocess.run(child, capture_output=True, text=True, check=False)
    assert end.returncode == 0, end.stderr
    killed, *_ = map(int, end.stdout.split())
    assert killed >= 25
