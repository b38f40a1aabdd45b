"""One pace for each service and machine: the law of its limits, pauses for all, crashes, and who is asking."""

import asyncio
import heapq
import logging
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
from fakes.limited import CLIENT, LimitedService, limited_server, written_pace
from foretell.data import (
    KNOWN_SERVICES,
    AsyncHttpClient,
    HttpLimits,
    JsonService,
    KnownService,
    ServiceAccess,
    ServiceAddresses,
    ServiceConfig,
    ServiceLimit,
    ServiceStore,
    ServiceTurns,
    SourceError,
    at_once,
    parse_pace,
)
from foretell.data.search import GDELT_URL
from foretell.outgoing import Taken
from foretell.practice import PracticeServer, json_response
from foretell.questions import InputError

QUICK = HttpLimits(attempts=3, wait_seconds=0.0, max_wait_seconds=1.0, total_seconds=5.0)


def service(*limits: ServiceLimit, name: str = "gdelt", public: bool = True) -> KnownService:
    return KnownService(name=name, facts=KNOWN_SERVICES[name], limits=limits, public=public)


def limit(requests: int, seconds: float, what: str = "requests", path: str = "") -> ServiceLimit:
    return ServiceLimit(what=what, requests=requests, seconds=seconds, path=path)


def take(store: ServiceStore, limits: Sequence[ServiceLimit], weight: int = 1) -> Taken:
    taken = store.take("gdelt", [(one.limit, one.units(weight)) for one in limits], longest=60.0)
    assert isinstance(taken, Taken)
    return taken


def give_back(store: ServiceStore, taken: Taken, limits: Sequence[ServiceLimit], weight: int = 1) -> None:
    if taken.units:
        store.give_back("gdelt", taken, [(one.limit, one.units(weight)) for one in limits])


# The law.


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shared", [True, False])
def test_no_span_ever_holds_more_requests_than_its_limit(seed: int, shared: bool, tmp_path: Path) -> None:
    """Many processes with random delays, in simulated time: whenever in its turn a request arrives, the law holds."""
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
    for one in limits:
        assert all(b - a >= one.seconds for a, b in zip(arrivals, arrivals[one.requests :], strict=False))


def test_places_come_back_after_a_whole_span_and_a_clock_set_back_blocks_nobody(tmp_path: Path) -> None:
    now = [1_000.0]
    store = ServiceStore(tmp_path / "s.db", clock=lambda: now[0])
    one = (limit(2, 10.0),)

    def asked() -> float:
        taken = take(store, one)
        give_back(store, taken, one)
        return taken.wait

    assert [round(asked(), 1) for _ in range(3)] == [0.0, 0.0, 10.1]
    now[0] += 10.1
    assert [round(asked(), 1) for _ in range(3)] == [0.0, 0.0, 10.1]
    now[0] = 500.0
    assert round(asked(), 1) == 10.1
    now[0] += 10.1
    assert asked() == 0.0
    store.close()


@pytest.mark.parametrize("shared", [True, False])
def test_a_request_that_a_service_counts_as_several_takes_as_many_places(shared: bool, tmp_path: Path) -> None:
    now = [1_000.0]
    store = ServiceStore(tmp_path / "s.db" if shared else None, clock=lambda: now[0])
    limits = (limit(10, 60.0), at_once(3))

    def asked(weight: int) -> float:
        taken = take(store, limits, weight)
        give_back(store, taken, limits, weight)
        return round(taken.wait, 1)

    assert [asked(weight) for weight in (4, 6, 1)] == [0.0, 0.0, 60.6]
    now[0] += 61.0
    assert [asked(weight) for weight in (9, 2, 1)] == [0.0, 60.6, 0.0]
    now[0] += 61.0
    assert [asked(weight) for weight in (50, 1)] == [0.0, 60.6], "heavier than the limit: alone"
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
"""Limits in the shape of the published ones, with time run faster."""
CELLS = (
    "wayback/cdx/search=11,wayback/web/2026=22,gdelt/doc=1,metaculus/posts=2,"
    "fred/series=5,kalshi/markets=5,manifold/bets=9,open_meteo/v1=11"
)
"""What the cells of one of three processes ask, all at once."""


def test_fifty_cells_in_three_processes_stay_within_every_limit(tmp_path: Path) -> None:
    services = [LimitedService(name, limits, answer_seconds=0.005) for name, limits in SCALED.items()]

    async def run() -> list[int | None]:
        async with limited_server(services) as server:
            command = [sys.executable, "-c", CLIENT, server.url, str(tmp_path), written_pace(SCALED), CELLS]
            started = [await asyncio.create_subprocess_exec(*command) for _ in range(3)]
            return [await process.wait() for process in started]

    assert asyncio.run(run()) == [0, 0, 0]
    assert [one.over for one in services] == [[] for _ in services]
    assert {one.name: len(one.spans) for one in services} == {
        name: sum(bool(one.seconds) for one in limits) for name, limits in SCALED.items()
    }
    assert not any(one.blocked for one in services)


def test_a_process_that_is_killed_while_it_asks_blocks_nobody(tmp_path: Path) -> None:
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
                pace=parse_pace("wikipedia/at-once=1/0s"),
            )
            async with AsyncHttpClient(access=access, limits=QUICK) as client:
                waiting = asyncio.create_task(client.get(f"{server.url}/wikipedia/quick"))
                await asyncio.sleep(0.1)
                assert not waiting.done()
                process.kill()
                await process.wait()
                return (await waiting).status

    assert asyncio.run(run()) == 200


def test_a_cancelled_request_gives_its_place_back(tmp_path: Path) -> None:
    async def run() -> None:
        turns = ServiceTurns(ServiceStore(tmp_path / "s.db"), patience=60.0, longest=60.0)
        one = service(at_once(1))

        async def hold() -> None:
            async with turns.turn(one, "/"):
                await asyncio.sleep(600)

        held = asyncio.create_task(hold())
        queued = asyncio.create_task(hold())
        await asyncio.sleep(0.05)
        queued.cancel()
        held.cancel()
        await asyncio.gather(held, queued, return_exceptions=True)
        async with asyncio.timeout(30), turns.turn(one, "/"):
            pass
        turns.close()

    asyncio.run(run())


@pytest.mark.parametrize("damage", ["not a database at all, but long enough to be looked at" * 20, None])
def test_a_damaged_or_forbidden_file_is_no_reason_to_stop(damage: str | None, tmp_path: Path) -> None:
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


def closed_for(name: str, told: float | None, said: str, now: float, again: int = 1) -> float:
    """Seconds that a service is not asked after refusals."""
    clock = [now]
    turns = ServiceTurns(ServiceStore(None, clock=lambda: clock[0]), patience=60.0, longest=60.0)

    async def run() -> float:
        for _ in range(again):
            clock[0] = max(now, turns.store.state(name).closed) + 0.001
            async with turns.turn(service(limit(9, 1.0), name=name), "/") as turn:
                clock[0] += 0.001
                await turns.refused(service(name=name), turn, told, said)
        return turns.store.state(name).closed - clock[0]

    with closing(turns):
        return asyncio.run(run())


def test_how_long_a_refusal_closes_a_service() -> None:
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


def test_refusals_of_requests_that_were_under_way_together_count_once() -> None:
    clock = [1_000.0]
    turns = ServiceTurns(ServiceStore(None, clock=lambda: clock[0]), patience=60.0, longest=60.0)
    one = service(limit(9, 1.0))

    async def run() -> None:
        async with turns.turn(one, "/") as first, turns.turn(one, "/") as second:
            clock[0] += 1.0
            await turns.refused(one, first, None, "429")
            await turns.refused(one, second, None, "429")

    asyncio.run(run())
    assert turns.store.state("gdelt").refusals == 1
    turns.close()


def asked(home: Path, use: Callable[[AsyncHttpClient, PracticeServer], object], **more: object) -> PracticeServer:
    """Something done with two clients of one home, one after the other, at a service of this machine."""

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


def test_a_long_pause_is_told_once_and_holds_for_every_client(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def use(client: AsyncHttpClient, server: PracticeServer) -> None:
        if not server.requests:
            inject(server, busy("3600"))
        for _ in range(3):
            with pytest.raises(SourceError, match=r"Kalshi is not asked before .* 429 Too Many Requests") as caught:
                await client.get(f"{server.url}/kalshi/markets")
            assert caught.value.status == 429

    with caplog.at_level(logging.WARNING):
        assert len(asked(tmp_path, use).requests) == 1
    assert caplog.text.count("is not asked before") == 1
    with closing(ServiceStore(tmp_path / "services.db")) as store:
        state = store.state("kalshi")
    assert state.closed > time.time() + 3_000
    assert state.success == 0.0


def test_a_short_pause_is_waited_for(tmp_path: Path) -> None:
    async def use(client: AsyncHttpClient, server: PracticeServer) -> None:
        inject(server, *([] if server.requests else [busy("0.05"), busy("0")]))
        await client.get(f"{server.url}/kalshi/markets")

    assert len(asked(tmp_path, use).requests) == 4
    with closing(ServiceStore(tmp_path / "services.db")) as store:
        state = store.state("kalshi")
    assert (state.refusals, "429" in state.problem) == (0, True)
    assert state.success > state.error > 0


# Whose limits, and under which name.


def test_services_are_found_by_their_public_hosts_and_by_addresses_of_our_own() -> None:
    own = {"wayback": "http://127.0.0.1:1/a", "gdelt": "http://mirror.example/gdelt", "openai": "http://127.0.0.1:2"}
    book = ServiceAddresses(ServiceAccess(addresses=own, pace=parse_pace("fred=1/s")))

    def found(host: str, path: str = "/") -> tuple[str, list[str]] | None:
        known = book.find(host, path)
        return known and (known.name, [str(one) for one in known.limits_of(path)])

    assert found("web.archive.org", "/cdx/search/cdx") == ("wayback", ["30/min", "10 at once"])
    assert found("web.archive.org", "/web/2026id_/x") == ("wayback", ["600/min", "10 at once"])
    assert found("de.wikipedia.org") == ("wikipedia", ["20/s", "1 at once"])
    assert found("api.stlouisfed.org") == ("fred", ["1/s"])
    assert found("127.0.0.1:1", "/a/cdx/search/cdx") == ("wayback", ["30/min", "10 at once"])
    assert found("mirror.example", "/gdelt/doc") == ("gdelt", ["1/5 s"])
    assert (found("127.0.0.1:2"), found("example.org"), found("notwikipedia.org")) == (None, None, None)


def test_what_settings_say_about_the_pace() -> None:
    read = parse_pace("wayback/pages=100/min, gdelt=1/10s,kalshi=none")
    assert {name: [str(one) for one in limits] for name, limits in read.items()} == {
        "wayback": ["30/min", "10 at once", "100/min"],
        "gdelt": ["1/10 s"],
        "kalshi": [],
    }
    for wrong in ("gdelt", "gdelt=fast", "wayback/books=1/s", "gdelt=0/s"):
        with pytest.raises(InputError):
            parse_pace(wrong)


def named(service: str, **access: object) -> str:
    """What we call ourselves to a service."""

    async def run() -> str:
        server = PracticeServer()
        server.route("GET", "/", lambda _: json_response({}))
        async with server:
            known = ServiceAccess(addresses={service: server.url}, **access)  # pyright: ignore[reportArgumentType]
            async with AsyncHttpClient(limits=QUICK, access=known) as client:
                await client.get(f"{server.url}/")
            return server.requests[0].headers["user-agent"]

    return asyncio.run(run())


def test_the_name_we_give_ourselves() -> None:
    assert named("kalshi").startswith("foretell/")
    assert "(" not in named("kalshi")
    assert named("kalshi", contact="me@example.org").endswith(" (+me@example.org)")
    assert named("none that is known", contact="me@example.org").endswith(" (+me@example.org)")
    browser = named("yahoo", contact="me@example.org")
    assert browser.startswith("Mozilla/5.0 (compatible; foretell/")
    assert browser.endswith("; +me@example.org)")
    own = {"yahoo": "mine/1", "": "all/1"}
    assert (named("yahoo", user_agents=own), named("kalshi", user_agents=own)) == ("mine/1", "all/1")


def test_wikipedia_is_not_asked_by_nobody_and_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    async def ask() -> None:
        async with AsyncHttpClient(limits=QUICK) as client:
            for _ in range(3):
                with pytest.raises(SourceError, match="doctor --contact"):
                    await client.get("https://en.wikipedia.org/w/api.php")

    asyncio.run(ask())
    assert caplog.text.count("wants to know who asks") == 1


@pytest.mark.parametrize("practice", [True, False])
def test_a_server_on_this_machine_is_spared_like_the_service_unless_it_is_for_practice(
    practice: bool, tmp_path: Path
) -> None:
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

    # One request in five seconds; the third client knows from the second, through the home.
    assert asyncio.run(run()) == ([3, 6, 9] if practice else [1, 2, 2])


def test_a_plug_in_cannot_change_the_limits_of_a_known_service(tmp_path: Path) -> None:
    async def use(client: AsyncHttpClient, server: PracticeServer) -> None:
        client.pace(f"{server.url}/kalshi", per_second=0.001)
        await asyncio.gather(*(client.get(f"{server.url}/kalshi/markets") for _ in range(5)))

    assert len(asked(tmp_path, use).requests) == 10


def test_machines_with_one_database_keep_a_limit_together(postgres: str, tmp_path: Path) -> None:
    """Two homes stand for two machines."""
    one = LimitedService("kalshi", (limit(3, 0.5),), answer_seconds=0.01)

    async def run() -> list[float]:
        async with limited_server([one]) as server:
            clients = [
                AsyncHttpClient(
                    limits=QUICK,
                    access=ServiceAccess(
                        home=tmp_path / name,
                        database=postgres,
                        addresses={"kalshi": f"{server.url}/kalshi"},
                        pace=parse_pace("kalshi=3/0.5s"),
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
    assert (one.over, one.counts["requests"]) == ([], 10)
    assert success > time.time() - 3600 > error == 0.0
    assert not (tmp_path / "a").exists()
