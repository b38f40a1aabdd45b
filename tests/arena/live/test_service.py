"""All stages as one service, with a clock that the test moves."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.arena.live.site import START, Exchange, Site

from foretell.arena.stages import ArenaService, clock_check
from foretell.arena.status import arena_status
from foretell.runs.store import RunStore


async def until(true: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.01)


def test_two_services_share_a_week_of_work(site: Site, tmp_path: Path):
    for n in range(3):
        site.exchange.offer(f"E{n}", closes=START + timedelta(days=2 + n))
    reported: list[str] = []

    async def main(second: RunStore) -> None:
        arena, stop = site.arena(), asyncio.Event()
        services = [
            ArenaService(arena=each, poll_interval=0.01, tell=lambda stage, _: reported.append(stage))
            for each in (arena, site.arena(second))
        ]
        tasks = [asyncio.create_task(service.run(stop)) for service in services]
        for step in range(28):
            for n in range(3):
                if site.now >= START + timedelta(days=2 + n):
                    site.exchange.settle(f"E{n}", 1, 0)
            await until(
                lambda: not arena_status(arena, site.now).waiting and not arena_status(arena, site.now).unresolved
            )
            if step < 27:
                site.later(hours=6)
        stop.set()
        await asyncio.gather(*tasks)
        status = arena_status(arena, site.now)
        assert status.events == {"selected": 3, "open": 0, "settled": 3}
        assert "missed" not in status.forecast_times
        assert status.entries["one"].forecasts == status.forecast_times["ready"] == len(site.searcher.built)
        assert len(site.calls) == len(set(site.calls)) == 3 * status.forecast_times["ready"]

    with closing(RunStore(tmp_path / "runs.db")) as second:
        asyncio.run(main(second))
    assert set(reported) == {"collect", "context", "forecast", "resolve"}
    assert reported.count("collect") == 7


def test_once_runs_each_due_stage(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    arena = site.arena()
    reported: list[str] = []
    service = ArenaService(arena=arena, tell=lambda stage, _: reported.append(stage))

    async def main() -> None:
        await service.once()
        await service.once()

    asyncio.run(main())
    assert reported == ["collect", "context", "forecast"]
    assert arena_status(arena, site.now).waiting == 0


def test_named_stages_run_even_if_they_are_not_due(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    arena = site.arena()
    reports: list[tuple[str, str]] = []

    def service(*stages: str, entries: tuple[str, ...] = ()) -> ArenaService:
        record = lambda stage, report: reports.append((stage, str(report)))  # noqa: E731
        return ArenaService(arena=arena, stages=stages, entries=entries, tell=record)

    async def main() -> None:
        await service("context", "collect").now()
        await service("collect").now()
        await service("forecast", entries=("one",)).now()
        await service("resolve").now()
        await ArenaService(arena=arena, stages=("collect", "resolve"), tell=service().tell).once()

    asyncio.run(main())
    assert [stage for stage, _ in reports] == ["collect", "context", "collect", "forecast", "resolve"], (
        "named stages run in order even if they are not due, and `once` does not repeat them"
    )
    assert "1 events looked at, 1 taken up" in reports[0][1]
    status = arena_status(arena, site.now)
    forecasts = {name: entry.forecasts for name, entry in status.entries.items()}
    assert forecasts["one"] == 1
    assert set(forecasts.values()) == {0, 1}


def test_service_runs_only_its_stages(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    arena = site.arena()
    stages: set[str] = set()

    async def main() -> None:
        stop = asyncio.Event()
        service = ArenaService(
            arena=arena, stages=("collect", "context"), poll_interval=0.01, tell=lambda stage, _: stages.add(stage)
        )
        task = asyncio.create_task(service.run(stop))
        await until(lambda: stages == {"collect", "context"})
        await asyncio.sleep(0.1)
        stop.set()
        await task

    asyncio.run(main())
    assert stages == {"collect", "context"}
    assert {entry.forecasts for entry in arena_status(arena, site.now).entries.values()} == {0}


def test_exchange_that_was_down_is_read_when_it_is_back(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    site.exchange.down = True
    arena = site.arena()

    async def main() -> None:
        stop = asyncio.Event()
        task = asyncio.create_task(ArenaService(arena=arena, poll_interval=0.01).run(stop))
        await asyncio.sleep(0.1)
        assert arena_status(arena, site.now).waiting == 1
        site.exchange.down = False
        await until(lambda: not arena_status(arena, site.now).waiting)
        stop.set()
        await task

    asyncio.run(main())
    assert arena_status(arena, site.now).entries["one"].forecasts == 1


def test_failed_stage_is_retried(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    arena = site.arena()
    left = 2

    def crash(trial: Any) -> Any:
        nonlocal left
        left -= 1
        if left >= 0:
            raise RuntimeError("a bug")
        return [0.5, 0.5]

    site.answers["constant"] = crash

    async def main() -> None:
        stop = asyncio.Event()
        task = asyncio.create_task(ArenaService(arena=arena, poll_interval=0.01).run(stop))
        await until(lambda: arena_status(arena, site.now).entries["one"].failed == 1)
        while not arena_status(arena, site.now).entries["one"].forecasts:
            await asyncio.sleep(0.05)
            site.later(minutes=5)
        stop.set()
        await task

    asyncio.run(main())


def test_clock_set_back_is_reported_once_until_it_is_right_again(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.exchange.offer("CUP", closes=START + timedelta(days=9))

    async def main() -> None:
        await ArenaService(arena=site.arena()).once()
        assert "clock" not in caplog.text
        # A process that starts later reads the stored times.
        site.later(hours=-30)
        await ArenaService(arena=site.arena()).once()
        assert caplog.text.count("nothing is due until then") == 1
        # A running process reports it once, and again if the clock was right in between.
        caplog.clear()
        check, now = clock_check(site.arena()), site.now
        for hours in (0, 1, 31, -9, -8):
            await check(now + timedelta(hours=hours))
        assert caplog.text.count("the clock shows") == 2

    asyncio.run(main())


@pytest.mark.parametrize("status", [None, 404, 500])
def test_platform_that_is_down_does_not_block_others_and_is_retried_in_the_same_slot(site: Site, status: int | None):
    """Also a platform that answers 404 to everything: none of its events counts as removed."""
    other = Exchange(platform="manifold", down=True, down_status=status)
    closes = START + timedelta(days=4)
    site.spec["platforms"] = ["kalshi", "manifold"]
    site.exchange.offer("CUP", closes=closes)
    other.offer("RACE", closes=closes)
    both: dict[str, Any] = {"kalshi": site.exchange, "manifold": other}
    arena = replace(site.arena(), events=both, settlements=both)
    reported: list[str] = []
    service = ArenaService(arena=arena, tell=lambda stage, report: reported.append(f"{stage}: {report}"))

    def open_events() -> set[str]:
        return {id for id, row in arena.records.selected(unsettled=True).items() if row.status == "open"}

    async def step(**later: float) -> str:
        reported.clear()
        site.later(**later)
        await service.once()
        return "\n".join(reported)

    async def main() -> None:
        first = await step()
        assert "problem: manifold: https://kalshi.example: the exchange is down" in first
        assert (open_events(), "3 forecasts, 0 failed" in first) == ({"kalshi/CUP"}, True)
        other.down = False
        assert "collect" not in await step(seconds=20)  # A pause limits how often the other platform is read.
        second = await step(minutes=2)
        assert (open_events(), "3 forecasts, 0 failed" in second) == ({"kalshi/CUP", "manifold/RACE"}, True)
        assert "collect" not in await step(minutes=2)
        other.down, other.asked = True, []
        third = await step(days=2)
        assert "3 forecasts, 0 failed" in third  # The other platform's next forecast time.
        assert third.count("the exchange is down") == 2
        assert len(open_events()) == 2
        other.settle("RACE", 1, 0)
        site.exchange.settle("CUP", 1, 0)
        assert "manifold: https://kalshi.example" in await step(days=3)
        assert {outcome.question_id for outcome in arena.records.outcomes()} == {"kalshi/CUP"}
        other.down = False
        await step(hours=2)
        assert {outcome.question_id for outcome in arena.records.outcomes()} == {"kalshi/CUP", "manifold/RACE"}

    asyncio.run(main())
