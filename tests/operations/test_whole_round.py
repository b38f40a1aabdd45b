"""A round of ForecastBench with services that have limits, gaps and failures: fresh values, each fetched once a day."""

import asyncio
import hashlib
import json
import random
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fakes.processes import forks
from fakes.whole_round import RoundServices, WholeRound, sample_value
from foretell.data.known_services import parse_rate_limits
from foretell.operations.requests.runs import ShowRequest
from foretell.operations.requests.tournaments import TournamentRunRequest
from foretell.operations.show import show
from foretell.operations.tournament import enter
from foretell.runs.settings import load_settings
from foretell.tournaments.round_visit import RoundResult

PACE = "fred=50/1s,yahoo=50/1s,dbnomics=50/1s,open_meteo=50/1s,acled=50/1s,wikipedia=1/0s,manifold=100/1s"
OWN = {"organization": "Us", "past_rounds": 0}
SIZE, EACH = 40, 4


@asynccontextmanager
async def opened(latency: float = 0.0) -> AsyncGenerator[RoundServices]:
    """Start a small round whose services have fast limits."""
    async with WholeRound(now=datetime.now(UTC), size=SIZE).open(latency) as services:
        limits = parse_rate_limits(PACE)
        for gate in services.gates.values():
            gate.limits = limits[gate.name]
        yield services


def request(**fields: Any) -> TournamentRunRequest:
    names = [name for name in fields if name not in TournamentRunRequest.model_fields]
    own = {f"tournament.{key}": value for key, value in {**OWN, **{name: fields.pop(name) for name in names}}.items()}
    return TournamentRunRequest.read({"tournament": "forecastbench", "set": own, **fields})


async def take_part(services: RoundServices, home: Path, **fields: Any) -> RoundResult:
    settings = replace(load_settings(services.environment(home)), network=True)
    seen: list[tuple[int, int]] = []
    done = await enter(request(**fields), settings, watch=lambda now: seen.append((now.fetched, now.wanted)))
    assert isinstance(done, RoundResult)
    assert not seen or max(wanted for _, wanted in seen) >= max(fetched for fetched, _ in seen)
    return done


def test_a_round_fetches_everything_once_and_is_fresh(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened() as services:
            plan = await take_part(services, tmp_path, plan=True)
            assert plan.plan is not None
            done = await take_part(services, tmp_path)
            assert (done.exit_code, done.answered) == (0, SIZE), done
            assert (done.values, done.stale) == (5 * EACH, 0)
            assert f"values of series: {5 * EACH} of {5 * EACH} fresh" in str(done)
            words = {row["question"]: row["value"] for row in done.rows()}
            assert words["dbnomics/meteofrance_TEMPERATURE_celsius.07607.D"].startswith("value of 1 day ago (")
            assert words["acled/events0"].startswith("value of 3 days ago (")
            assert words["manifold/manifoldmarket0000"] is None
            # The run, its JSON and its page say the same.
            station = "dbnomics/meteofrance_TEMPERATURE_celsius.07607.D"
            settings = load_settings(services.environment(tmp_path))
            shown = show(ShowRequest(run=done.runs[0], question=station), settings)
            assert shown.rows()[0]["value"] == words[station]
            assert shown.view is not None
            assert shown.view["combination"]["value"] == words[station]
            (stored,) = shown.to_dict()["answers"]
            assert (stored["value"]["age"], stored["value"]["series"]) == (1, station.replace("_", "/", 2))
            assert words[station] in stored["rationale"]
            repeated = {name: Counter(gate.targets).most_common(1) for name, gate in services.gates.items()}
            assert all(counts and counts[0][1] == 1 for counts in repeated.values()), repeated
            assert not any(gate.refused for gate in services.gates.values())
            # Forecasts of the weather, and prices of the due day, are fetched too.
            assert len(services.gates["open_meteo"].targets) == EACH
            before = {name: len(gate.targets) for name, gate in services.gates.items()}
            again = await take_part(services, tmp_path, sandbox=True)
            assert again.values == 5 * EACH
            live = {name: len(gate.targets) - before[name] for name, gate in services.gates.items()}
            assert live["yfinance"] == live["dbnomics"] == 0, "today's responses are used again"

    asyncio.run(work())


def test_a_round_with_many_stale_values_is_sent_only_if_told_so(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened() as services:
            services.gates["dbnomics"].down = 403
            refused = await take_part(services, tmp_path)
            assert (refused.exit_code, refused.file, refused.stale) == (3, None, EACH)
            assert any(f"{EACH} of {5 * EACH} values are older" in problem for problem in refused.problems)
            assert any(note.startswith(f"{EACH} series of dbnomics could not be read") for note in refused.notes)
            told = await take_part(services, tmp_path, dry_run=True)
            assert (told.exit_code, told.stale) == (0, EACH), told.problems
            # The next visit reads what failed, and only that.
            services.gates["dbnomics"].down = 0
            before = {name: len(gate.targets) for name, gate in services.gates.items()}
            done = await take_part(services, tmp_path)
            assert (done.exit_code, done.stale) == (0, 0), done
            more = {name: len(gate.targets) - before[name] for name, gate in services.gates.items()}
            assert more == {**dict.fromkeys(more, 0), "dbnomics": EACH}
            services.gates["dbnomics"].down = 403
            accepted = await take_part(services, tmp_path / "other", accept_stale=True, file_number=2)
            assert (accepted.exit_code, accepted.stale) == (0, EACH)
            assert accepted.file is not None
            assert any("could have given" in note for note in accepted.notes)

    asyncio.run(work())


def live(environment: dict[str, str]) -> None:
    """One visit in its own process."""
    asyncio.run(enter(request(), load_settings(environment)))


def test_killed_visits_give_the_same_file_without_asking_again_for_what_was_stored(tmp_path: Path) -> None:
    async def work() -> None:
        chance = random.Random(1)
        async with opened(latency=0.03) as services:
            whole = await take_part(services, tmp_path / "whole")
            environment = services.environment(tmp_path / "killed")
            urls = {name: services.servers[name].url for name in services.gates}
            for life in range(3):
                stored = {path.name for path in (tmp_path / "killed").glob("day_cache/*/*")}
                before = {name: len(gate.targets) for name, gate in services.gates.items()}
                process = forks().Process(target=live, args=(environment,))
                process.start()
                for _ in range(chance.randrange(3, 20) if life < 2 else 1200):
                    await asyncio.sleep(0.05)
                    if process.exitcode is not None:
                        break
                process.kill()
                await asyncio.to_thread(process.join)
                for name, gate in services.gates.items():
                    asked = {urls[name] + target for target in gate.targets[before[name] :]}
                    assert not stored & {hashlib.sha256(url.encode()).hexdigest() for url in asked}, name
            assert whole.file is not None
            (again,) = (tmp_path / "killed").glob("tournaments/*/*.Us.1.json")
            assert json.loads(again.read_text("utf-8")) == json.loads(whole.file.read_text("utf-8"))
            assert not any(gate.refused for gate in services.gates.values())

    asyncio.run(work())


def test_nothing_after_the_due_day_reaches_a_forecast_of_a_round(tmp_path: Path) -> None:
    """The services know values of later days, and everything that is fetched for an earlier round ignores them."""

    async def work(poison: bool) -> dict[str, float]:
        now = datetime.now(UTC)
        due = now.date() - timedelta(days=14)

        def value(number: int, day: date) -> float:
            return sample_value(number, day) + (1000.0 + 7 * number if poison and day > due else 0.0)

        async with WholeRound(now=now, size=SIZE, value=value).open() as services:
            for gate in services.gates.values():
                gate.limits = ()
            settings = load_settings(services.environment(tmp_path / str(poison)))
            fields = {"tournament": f"forecastbench:{due}", "sandbox": True}
            done = await enter(request(**fields), replace(settings, network=True))
            assert isinstance(done, RoundResult)
            assert (done.answered, done.values) == (SIZE, 5 * EACH)
            return {f"{row['question']} {row['target']}": row["p"] for row in done.rows()}

    assert asyncio.run(work(True)) == pytest.approx(asyncio.run(work(False)))
