"""Rate limits of services, shared on a machine: limits, pauses, crashes and user agents."""

import asyncio
import heapq
import logging
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.faults import busy, inject
from fakes.limited import CLIENT, LimitedService, at_once, limited_server, written_rate_limits
from foretell.data.http import AsyncHttpClient, HttpLimits, SourceError
from foretell.data.known_services import KNOWN_SERVICES, parse_rate_limits
from foretell.data.search.news import GDELT_URL
from foretell.data.service import JsonService, ServiceConfig
from foretell.data.service_limits import KnownService, ServiceAccess, ServiceAddresses, ServiceStore, ServiceTurns
from foretell.models.rate_limits import RateLimit, Taken
from foretell.practice.server import PracticeServer, json_response
from foretell.questions.errors import InputError

QUICK = HttpLimits(attempts=3, wait_seconds=0.0, max_wait_seconds=1.0, total_seconds=5.0)


def service(*limits: RateLimit, name: str = "gdelt", public: bool = True) -> KnownService:
    return KnownService(name=name, facts=KNOWN_SERVICES[name], limits=limits, public=public)


def limit(requests: int, seconds: float, what: str = "requests", path: str = "") -> RateLimit:
    return RateLimit(what=what, most=requests, seconds=seconds, path=path)


def take(store: ServiceStore, limits: Sequence[RateLimit], weight: int = 1) -> Taken:
    taken = store.take("gdelt", [(limit, weight if limit.seconds else 1) for limit in limits], longest=60.0)
    assert isinstance(taken, Taken)
    return taken


def give_back(store: ServiceStore, taken: Taken, limits: Sequence[RateLimit], weight: int = 1) -> None:
    if taken.units:
        store.give_back("gdelt", taken, [(limit, weight if limit.seconds else 1) for limit in limits])


# Limits.


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shared", [True, False])
def test_no_time_span_has_more_requests_than_its_limit(seed: int, shared: bool, tmp_path: Path) -> None:
    """Many processes with random delays, in simulated time: the limit holds whenever requests arrive."""
    chance = random.Random(seed)
    now = [1_000.0]
    limits = [limit(chance.choice([1, 3, 30]), chance.choice([1.0, 5.0])), limit(chance.choice([4, 40]), 20.0, "long")]
    processes = [ServiceStore(tmp_path / "s.db", clock=lambda: now[0]) for _ in range(3)]
    if not shared:
        processes = [ServiceStore(None, clock=lambda: now[0])] * 3
    arrivals: list[float] = []
    events: list[tuple[float, int, str, int, Taken]] = [(now[0], n, "ask", n % 3, Taken()) for n in range(90)]
    while events:
        now[0], number, what, process, taken = heapq.heappop(events)
        store = processes[process]
        if what == "answer":
            give_back(store, taken, limits)
            continue
        taken = take(store, limits)
        if not taken.units:
            heapq.heappush(events, (now[0] + taken.wait, number, "ask", process, Taken()))
            continue
        took = chance.choice([0.0, 0.01, 0.4, 3.0]) * chance.random()
        arrivals.append(now[0] + took * chance.random())
        heapq.heappush(events, (now[0] + took, number, "answer", process, taken))
    for store in processes:
        store.close()
    arrivals.sort()
    assert len(arrivals) == 90
    for bound in limits:
        assert all(b - a >= bound.seconds for a, b in zip(arrivals, arrivals[bound.most :], strict=False))


def test_units_are_free_again_after_a_span_and_a_clock_set_back_does_not_block(tmp_path: Path) -> None:
    now = [1_000.0]
    store = ServiceStore(tmp_path / "s.db", clock=lambda: now[0])
    limits = (limit(2, 10.0),)

    def wait_for_turn() -> float:
        taken = take(store, limits)
        give_back(store, taken, limits)
        return taken.wait

    assert [round(wait_for_turn(), 1) for _ in range(3)] == [0.0, 0.0, 10.1]
    now[0] += 10.1
    assert [round(wait_for_turn(), 1) for _ in range(3)] == [0.0, 0.0, 10.1]
    now[0] = 500.0
    assert round(wait_for_turn(), 1) == 10.1
    now[0] += 10.1
    assert wait_for_turn() == 0.0
    store.close()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="lists the open files of a process, as Linux shows them")
def test_a_request_that_ends_after_its_client_returns_its_units_and_leaves_no_file_open(tmp_path: Path) -> None:
    file, limits = tmp_path / "s.db", [limit(1, 0.0, "at once")]
    store = ServiceStore(file)
    taken = take(store, limits)
    store.close()
    give_back(store, taken, limits)
    files = [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
    assert str(file.resolve()) not in files
    with closing(ServiceStore(file)) as other:
        assert take(other, limits).units


@pytest.mark.parametrize("shared", [True, False])
def test_a_request_that_counts_as_several_takes_several_units(shared: bool, tmp_path: Path) -> None:
    now = [1_000.0]
    store = ServiceStore(tmp_path / "s.db" if shared else None, clock=lambda: now[0])
    limits = (limit(10, 60.0), at_once(3))

    def wait_for_turn(weight: int) -> float:
        taken = take(store, limits, weight)
        give_back(store, taken, limits, weight)
        return round(taken.wait, 1)

    assert [wait_for_turn(weight) for weight in (4, 6, 1)] == [0.0, 0.0, 60.6]
    now[0] += 61.0
    assert [wait_for_turn(weight) for weight in (9, 2, 1)] == [0.0, 60.6, 0.0]
    now[0] += 61.0
    assert [wait_for_turn(weight) for weight in (50, 1)] == [0.0, 60.6], "a request above the limit is sent alone"
    store.close()
    weigh = KNOWN_SERVICES["open_meteo"].weigh
    assert weigh is not None
    assert weigh({"start_date": "2023-11-15", "end_date": "2026-11-14", "daily": "temperature_2m_max"}) == 79
    assert weigh({"past_days": "2", "hourly": "a,b"}) == 1


# Between processes.

SCALED = {
    "wayback": (limit(30, 0.6, "look-ups", "/cdx/"), limit(60, 0.3, "pages", "/web/"), at_once(10)),
    "gdelt": (limit(1, 0.3),),
    "metaculus": (limit(1, 0.2),),
    "fred": (limit(12, 0.3),),
    "kalshi": (limit(10, 0.2),),
    "manifold": (limit(25, 0.3), at_once(20)),
    "open_meteo": (limit(30, 0.3, "minute"), limit(50, 0.9, "hour"), at_once(10)),
}
"""Limits like the published ones, with shorter times."""
CELLS = (
    "wayback/cdx/search=11,wayback/web/2026=22,gdelt/doc=1,metaculus/posts=2,"
    "fred/series=5,kalshi/markets=5,manifold/bets=9,open_meteo/v1=11"
)
"""Requests that the tasks of one of three processes send at the same time."""


def test_fifty_tasks_in_three_processes_stay_within_every_limit(tmp_path: Path) -> None:
    services = [LimitedService(name, limits, answer_seconds=0.005) for name, limits in SCALED.items()]

    async def run() -> list[int | None]:
        async with limited_server(services) as server:
            command = [sys.executable, "-c", CLIENT, server.url, str(tmp_path), written_rate_limits(SCALED), CELLS]
            started = [await asyncio.create_subprocess_exec(*command) for _ in range(3)]
            return [await process.wait() for process in started]

    assert asyncio.run(run()) == [0, 0, 0]
    assert [service.over for service in services] == [[] for _ in services]
    assert {service.name: len(service.spans) for service in services} == {
        name: sum(bool(limit.seconds) for limit in limits) for name, limits in SCALED.items()
    }
    assert not any(service.blocked for service in services)


def test_a_process_killed_during_a_request_does_not_block_others(tmp_path: Path) -> None:
    async def run() -> float:
        hang = asyncio.Event()
        server = PracticeServer()

        async def never(_: object) -> object:
            hang.set()
            await asyncio.sleep(600)
            raise AssertionError

        server.route("GET", "/wikipedia/slow", never)  # pyright: ignore[reportArgumentType]
        server.route("GET", "/wikipedia/quick", lambda _: json_response({}))
        async with server:
            calls = [
                sys.executable,
                "-c",
                CLIENT,
                server.url,
                str(tmp_path),
                "wikipedia/at-once=1/0s",
                "wikipedia/slow=1",
            ]
            process = await asyncio.create_subprocess_exec(*calls, stderr=subprocess.DEVNULL)
            await hang.wait()
            access = ServiceAccess(
                home=tmp_path,
                addresses={"wikipedia": f"{server.url}/wikipedia"},
                rate_limits=parse_rate_limits("wikipedia/at-once=1/0s"),
            )
            async with AsyncHttpClient(access=access, limits=QUICK) as client:
                waiting = asyncio.create_task(client.get(f"{server.url}/wikipedia/quick"))
                await asyncio.sleep(0.1)
                assert not waiting.done()
                process.kill()
                await process.wait()
                return (await waiting).status

    assert asyncio.run(run()) == 200


def test_a_cancelled_request_returns_its_units(tmp_path: Path) -> None:
    async def run() -> None:
        turns = ServiceTurns(ServiceStore(tmp_path / "s.db"), patience=60.0, longest=60.0)
        known = service(at_once(1))

        async def hold() -> None:
            async with turns.turn(known, "/"):
                await asyncio.sleep(600)

        held = asyncio.create_task(hold())
        queued = asyncio.create_task(hold())
        await asyncio.sleep(0.05)
        queued.cancel()
        held.cancel()
        await asyncio.gather(held, queued, return_exceptions=True)
        async with asyncio.timeout(30), turns.turn(known, "/"):
            pass
        turns.close()

    asyncio.run(run())


@pytest.mark.parametrize("damage", ["not a database at all, but long enough to be looked at" * 20, None])
def test_a_damaged_or_unreadable_file_does_not_stop_requests(damage: str | None, tmp_path: Path) -> None:
    path = tmp_path / "home" / "services.db"
    if damage is None:
        path.mkdir(parents=True)
    else:
        path.parent.mkdir()
        path.write_text(damage)

    async def run() -> None:
        turns = ServiceTurns(ServiceStore(path), patience=60.0, longest=60.0)
        async with turns.turn(service(limit(5, 1.0)), "/") as turn:
            turn.problem = ""
        turns.close()

    asyncio.run(run())
    with closing(ServiceStore(path)) as store:
        assert damage is None or set(store.states()) == {"gdelt"}


# Pauses.


def closed_for(name: str, requested: float | None, reason: str, now: float, again: int = 1) -> float:
    """Return the seconds for which a service is closed after refusals."""
    clock = [now]
    turns = ServiceTurns(ServiceStore(None, clock=lambda: clock[0]), patience=60.0, longest=60.0)

    async def run() -> float:
        for _ in range(again):
            clock[0] = max(now, turns.store.state(name).closed) + 0.001
            async with turns.turn(service(limit(9, 1.0), name=name), "/") as turn:
                clock[0] += 0.001
                await turns.refused(service(name=name), turn, requested, reason)
        return turns.store.state(name).closed - clock[0]

    with closing(turns):
        return asyncio.run(run())


def test_a_refusal_closes_a_service_for_the_stated_or_usual_time() -> None:
    noon = 1_794_744_000.0
    assert time.gmtime(noon)[3:6] == (12, 0, 0)
    assert closed_for("kalshi", 7.0, "429", noon) == pytest.approx(7.0)
    assert closed_for("kalshi", None, "429", noon) == pytest.approx(KNOWN_SERVICES["kalshi"].pause)
    assert closed_for("kalshi", None, "429", noon, again=3) == pytest.approx(4 * KNOWN_SERVICES["kalshi"].pause)
    assert closed_for("wayback", 1.0, "429", noon) == pytest.approx(60.0)
    assert closed_for("prophet_arena", None, '{"code": "quota_exceeded"}', noon) == pytest.approx(43_200, abs=1)
    assert closed_for("open_meteo", None, "Hourly API request limit exceeded.", noon + 600) == pytest.approx(
        3_000, abs=1
    )


def test_refusals_of_concurrent_requests_count_once() -> None:
    clock = [1_000.0]
    turns = ServiceTurns(ServiceStore(None, clock=lambda: clock[0]), patience=60.0, longest=60.0)
    known = service(limit(9, 1.0))

    async def run() -> None:
        async with turns.turn(known, "/") as first, turns.turn(known, "/") as second:
            clock[0] += 1.0
            await turns.refused(known, first, None, "429")
            await turns.refused(known, second, None, "429")

    asyncio.run(run())
    assert turns.store.state("gdelt").refusals == 1
    turns.close()


def used_twice(home: Path, use: Callable[[AsyncHttpClient, PracticeServer], object], **more: object) -> PracticeServer:
    """Call `use` with two clients of one home, one after the other, and return the local server."""

    async def run() -> PracticeServer:
        server = PracticeServer()
        server.route("GET", "/kalshi/*", lambda _: json_response({"ok": True}))
        async with server:
            access = replace(ServiceAccess(home=home, addresses={"kalshi": f"{server.url}/kalshi"}), **more)
            for _ in range(2):
                async with AsyncHttpClient(limits=QUICK, access=access) as client:
                    await use(client, server)  # pyright: ignore[reportGeneralTypeIssues]
        return server

    return asyncio.run(run())


def test_a_long_pause_is_logged_once_and_applies_to_every_client(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def use(client: AsyncHttpClient, server: PracticeServer) -> None:
        if not server.requests:
            inject(server, busy("3600"))
        for _ in range(3):
            with pytest.raises(SourceError, match=r"Kalshi gets no requests before .* 429 Too Many Requests") as caught:
                await client.get(f"{server.url}/kalshi/markets")
            assert caught.value.status == 429

    with caplog.at_level(logging.WARNING):
        assert len(used_twice(tmp_path, use).requests) == 1
    assert caplog.text.count("gets no requests before") == 1
    with closing(ServiceStore(tmp_path / "services.db")) as store:
        state = store.state("kalshi")
    assert state.closed > time.time() + 3_000
    assert state.success == 0.0


def test_a_short_pause_is_waited_for(tmp_path: Path) -> None:
    async def use(client: AsyncHttpClient, server: PracticeServer) -> None:
        inject(server, *([] if server.requests else [busy("0.05"), busy("0")]))
        await client.get(f"{server.url}/kalshi/markets")

    assert len(used_twice(tmp_path, use).requests) == 4
    with closing(ServiceStore(tmp_path / "services.db")) as store:
        state = store.state("kalshi")
    assert (state.refusals, "429" in state.problem) == (0, True)
    assert state.success > state.error > 0


# Which limits and which user agent apply.


def test_services_are_found_by_public_hosts_and_custom_addresses() -> None:
    own = {"wayback": "http://127.0.0.1:1/a", "gdelt": "http://mirror.example/gdelt", "openai": "http://127.0.0.1:2"}
    services = ServiceAddresses(ServiceAccess(addresses=own, rate_limits=parse_rate_limits("fred=1/s")))

    def service_at(host: str, path: str = "/") -> tuple[str, list[str]] | None:
        known = services.find(host, path)
        return known and (known.name, [str(limit) for limit in known.limits_of(path)])

    assert service_at("web.archive.org", "/cdx/search/cdx") == ("wayback", ["30/min", "10 at once"])
    assert service_at("web.archive.org", "/web/2026id_/x") == ("wayback", ["600/min", "10 at once"])
    assert service_at("de.wikipedia.org") == ("wikipedia", ["20/s", "1 at once"])
    assert service_at("api.stlouisfed.org") == ("fred", ["1/s"])
    assert service_at("127.0.0.1:1", "/a/cdx/search/cdx") == ("wayback", ["30/min", "10 at once"])
    assert service_at("mirror.example", "/gdelt/doc") == ("gdelt", ["1/5 s"])
    assert (service_at("127.0.0.1:2"), service_at("example.org"), service_at("notwikipedia.org")) == (None, None, None)


def test_rate_limits_are_parsed_from_settings() -> None:
    read = parse_rate_limits("wayback/pages=100/min, gdelt=1/10s,kalshi=none")
    assert {name: [str(limit) for limit in limits] for name, limits in read.items()} == {
        "wayback": ["30/min", "10 at once", "100/min"],
        "gdelt": ["1/10 s"],
        "kalshi": [],
    }
    for wrong in ("gdelt", "gdelt=fast", "wayback/books=1/s", "gdelt=0/s"):
        with pytest.raises(InputError):
            parse_rate_limits(wrong)


def named(service: str, **access: object) -> str:
    """Return the user agent that a service gets."""

    async def run() -> str:
        server = PracticeServer()
        server.route("GET", "/", lambda _: json_response({}))
        async with server:
            known = ServiceAccess(addresses={service: server.url}, **access)  # pyright: ignore[reportArgumentType]
            async with AsyncHttpClient(limits=QUICK, access=known) as client:
                await client.get(f"{server.url}/")
            return server.requests[0].headers["user-agent"]

    return asyncio.run(run())


def test_the_user_agent_contains_the_contact_address() -> None:
    assert named("kalshi").startswith("foretell/")
    assert "(" not in named("kalshi")
    assert named("kalshi", contact="me@example.org").endswith(" (+me@example.org)")
    assert named("none that is known", contact="me@example.org").endswith(" (+me@example.org)")
    browser = named("yahoo", contact="me@example.org")
    assert browser.startswith("Mozilla/5.0 (compatible; foretell/")
    assert browser.endswith("; +me@example.org)")
    own = {"yahoo": "mine/1", "": "all/1"}
    assert (named("yahoo", user_agents=own), named("kalshi", user_agents=own)) == ("mine/1", "all/1")


def test_wikipedia_gets_no_request_without_a_contact_which_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def ask() -> None:
        async with AsyncHttpClient(limits=QUICK) as client:
            for _ in range(3):
                with pytest.raises(SourceError, match="doctor --contact"):
                    await client.get("https://en.wikipedia.org/w/api.php")

    asyncio.run(ask())
    assert caplog.text.count("requires a contact address") == 1


@pytest.mark.parametrize("practice", [True, False])
def test_limits_apply_to_a_local_server_unless_it_is_a_sandbox(practice: bool, tmp_path: Path) -> None:
    async def run() -> list[int]:
        server = PracticeServer()
        server.practice = practice
        server.route("GET", "/*", lambda _: json_response({}))
        sent: list[int] = []
        async with server:
            for home in (None, tmp_path, tmp_path):
                impatient = replace(QUICK, max_pause_seconds=0.5)
                async with AsyncHttpClient(limits=impatient, access=ServiceAccess(home=home)) as client:
                    gdelt = JsonService(ServiceConfig(http=client, address=server.url), GDELT_URL)
                    for _ in range(3):
                        with nullcontext() if practice else suppress(SourceError):
                            await gdelt.read("/doc/doc")
                sent.append(len(server.requests))
        return sent

    # One request in five seconds; the third client learns of the sandbox through the home.
    assert asyncio.run(run()) == ([3, 6, 9] if practice else [1, 2, 2])


def test_a_plug_in_cannot_change_the_limits_of_a_known_service(tmp_path: Path) -> None:
    async def use(client: AsyncHttpClient, server: PracticeServer) -> None:
        client.limit_rate(f"{server.url}/kalshi", per_second=0.001)
        await asyncio.gather(*(client.get(f"{server.url}/kalshi/markets") for _ in range(5)))

    assert len(used_twice(tmp_path, use).requests) == 10


def test_clients_share_the_limit_that_a_plug_in_sets_for_a_host(tmp_path: Path) -> None:
    async def run() -> int:
        server = PracticeServer()
        server.route("GET", "/x", lambda _: json_response({}))
        access = ServiceAccess(home=tmp_path)
        async with (
            server,
            AsyncHttpClient(limits=QUICK, access=access) as first,
            AsyncHttpClient(limits=QUICK, access=access) as second,
        ):
            for client in (first, second):
                client.limit_rate(server.url, per_second=0.001, burst=2)
                await client.get(f"{server.url}/x")
            for client in (first, second):
                with pytest.raises(SourceError, match="its limits are used up"):
                    await client.get(f"{server.url}/x")
        return len(server.requests)

    assert asyncio.run(run()) == 2


def test_machines_with_one_database_share_a_limit(postgres: str, tmp_path: Path) -> None:
    """Two homes represent two machines."""
    limited_service = LimitedService("kalshi", (limit(3, 0.5),), answer_seconds=0.01)

    async def run() -> list[float]:
        async with limited_server([limited_service]) as server:
            clients = [
                AsyncHttpClient(
                    limits=QUICK,
                    access=ServiceAccess(
                        home=tmp_path / name,
                        database=postgres,
                        addresses={"kalshi": f"{server.url}/kalshi"},
                        rate_limits=parse_rate_limits("kalshi=3/0.5s"),
                    ),
                )
                for name in ("a", "b")
            ]
            await asyncio.gather(*(clients[n % 2].get(f"{server.url}/kalshi/markets") for n in range(10)))
            for client in clients:
                await client.aclose()
        with closing(ServiceStore(postgres)) as store:
            return [store.state("kalshi").success, store.state("kalshi").error]

    success, error = asyncio.run(run())
    assert (limited_service.over, limited_service.counts["requests"]) == ([], 10)
    assert success > time.time() - 3600 > error == 0.0
    assert not (tmp_path / "a").exists()
