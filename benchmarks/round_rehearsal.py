"""A whole ForecastBench round against test services with latency, the real limits, gaps and one outage.

Each visit is the command `foretell tournament run forecastbench` in its own process: `--plan`, then the round from the
question set to the uploaded file; then the same with another home, killed at random moments and started again. Prints
the wall time as a ratio to the time that the slowest limits force, the share of fresh values, requests over a limit,
and whether the killed round gave the same file without asking again for what was stored.

    PYTHONPATH=src:tests python benchmarks/round_rehearsal.py [QUESTIONS [SERVICE_THAT_IS_DOWN]]
"""

import asyncio
import hashlib
import json
import os
import random
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from fakes.whole_round import RoundServices, WholeRound
from foretell.forecasters.model_free.temperature import PLACES

LATENCY = 0.2
KILLS = 6
DOWN = 503
COMMAND = (
    *("-m", "foretell", "tournament", "run", "forecastbench", "--json", "--set", "tournament.organization=Us"),
    *("--set", "tournament.past_rounds=2"),
)


async def visit(environment: Mapping[str, str], *more: str, most: float | None = None) -> tuple[int, str]:
    """Take part in a process, killed after `most` seconds; return its exit code and what it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *COMMAND,
        *more,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), most)
    except TimeoutError:
        process.kill()
        out = b""
        await process.wait()
    return process.returncode or 0, out.decode()


def stored(home: Path) -> set[str]:
    """Return the keys of the stored responses."""
    return {path.name for path in home.glob("day_cache/*/*") if not path.name.endswith(".lock")}


def file_of(home: Path) -> object:
    """Return the content of the file that was sent."""
    (path,) = home.glob("tournaments/*/*.Us.1.json")
    return json.loads(path.read_text(encoding="utf-8"))


async def rehearse(services: RoundServices, home: Path, down: str) -> None:
    """Take part once without and once with kills."""
    gates, accept = services.gates, ("--accept-stale",) if down else ()
    if down:
        gates[down].down = DOWN
    environment = services.environment(home / "whole")
    began = monotonic()
    code, _ = await visit(environment, "--plan")
    print(f"--plan: exit code {code}, {monotonic() - began:.1f} s")
    if down:
        code, out = await visit(environment)
        print(f"with {down} down and without --accept-stale: exit code {code}, {json.loads(out)['problems']}")
        environment = services.environment(home / "accepted")
    before = {name: (len(gate.targets), gate.units) for name, gate in gates.items()}
    began = monotonic()
    code, out = await visit(environment, *accept)
    took, done = monotonic() - began, json.loads(out)
    fresh = done["values"] - done["stale"]
    print(f"round: exit code {code}, {done['answered']} of {done['questions']} answered, {took:.1f} s")
    print(f"fresh values: {fresh} of {done['values']} ({fresh / max(done['values'], 1):.1%})")
    for note in (*done["notes"], *done["problems"]):
        print(f"  {note}")
    forced = {name: gate.forced_seconds(gate.units - before[name][1]) for name, gate in gates.items()}
    slowest = max(forced, key=lambda name: forced[name])
    print(f"slowest limits: {slowest} {forced[slowest]:.1f} s; wall time is {took / forced[slowest]:.2f} times that")
    print({name: len(gate.targets) - before[name][0] for name, gate in gates.items()}, "requests")
    await killed(services, home / "killed", took, accept)
    reference = Path(environment["FORETELL_HOME"])
    print(f"same file after kills: {file_of(home / 'killed') == file_of(reference)}")
    print(f"requests over a limit: {sum(gate.refused for gate in gates.values())}")


async def killed(services: RoundServices, home: Path, took: float, accept: tuple[str, ...]) -> None:
    """Take part with kills at random moments, and count requests for what was stored before."""
    environment, chance = services.environment(home), random.Random(7)
    urls = {name: services.servers[name].url for name in services.gates}
    repeated = 0
    for life in range(KILLS + 1):
        known, before = stored(home), {name: len(gate.targets) for name, gate in services.gates.items()}
        code, _ = await visit(environment, *accept, most=chance.uniform(1.0, took) if life < KILLS else None)
        for name, gate in services.gates.items():
            asked = (urls[name] + target for target in gate.targets[before[name] :])
            repeated += sum(hashlib.sha256(url.encode()).hexdigest() in known for url in asked)
        print(f"life {life + 1}: exit code {code}, {len(stored(home))} responses stored")
        if code >= 0:
            break
    print(f"requests for what was stored: {repeated}")


async def main(size: int, down: str) -> None:
    """Rehearse a round of a size with one service down."""
    with tempfile.TemporaryDirectory() as folder:
        round_of_today = WholeRound(now=datetime.now(UTC), size=size, stations=tuple(PLACES))
        async with round_of_today.open(LATENCY) as services:
            await rehearse(services, Path(folder), down)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 500, sys.argv[2] if len(sys.argv) > 2 else "dbnomics"))
