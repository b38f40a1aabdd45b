"""All stages as one service, on a clock that leaps."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.arena.live.site import START, Exchange, Site

from foretell.arena import ArenaService, arena_status
from foretell.arena.stages import clock_check
from foretell.runs import RunStore


async def until(true: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.01)


def test_two_services_share_the_work_of_a_week(site: Site, tmp_path: Path):
    for n in range(3):
        site.exchange.offer(f"E{n}", closes=START + timedelta(days=2 + n))
    told: list[str] = []

    async def main(second: RunStore) -> None:
        arena, stop = site.arena(), asyncio.Event()
        services = [
            ArenaService(arena=one, poll_interval=0.01, tell=lambda stage, _: told.append(stage))
            for one in (arena, site.arena(second))
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
        found = arena_status(arena, site.now)
        assert found.events == {"selected": 3, "open": 0, "settled": 3}
        assert "missed" not in found.moments
        assert found.entries["one"].forecasts == found.moments["ready"] == len(site.searcher.built)
        assert len(site.calls) == len(set(site.calls)) == 3 * found.moments["ready"]

    with closing(RunStore(tmp_path / "runs.db")) as second:
        asyncio.run(main(second))
    assert set(told) == {"collect", "context", "forecast", "resolve"}
    assert told.count("collect") == 7


def test_once_for_cron(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    arena = site.arena()
    told: list[str] = []
    service = ArenaService(arena=arena, tell=lambda stage, _: told.append(stage))

    async def main() -> None:
        await service.once()
        await service.once()

    asyncio.run(main())
    assert told == ["collect", "context", "forecast"]
    assert arena_status(arena, site.now).waiting == 0


def test_named_stages_are_done_even_if_they_are_not_due(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    arena = site.arena()
    reports: list[tuple[str, str]] = []

    def service(*stages: str, entries: tuple[str, ...] = ()) -> ArenaService:
        kept = lambda stage, report: reports.append((stage, str(report)))  # noqa: E731
        return ArenaService(arena=arena, stages=stages, entries=entries, tell=kept)

    async def main() -> None:
        await service("context", "collect").now()
        await service("collect").now()
        await service("forecast", entries=("one",)).now()
        await service("resolve").now()
        await ArenaService(arena=arena, stages=("collect", "resolve"), tell=service().tell).once()

    asyncio.run(main())
    assert [stage for stage, _ in reports] == ["collect", "context", "collect", "forecast", "resolve"], (
        "what is not due is done when it is named, in the order of the stages, and once leaves alone what was done"
    )
    assert "1 events looked at, 1 taken up" in reports[0][1]
    status = arena_status(arena, site.now)
    forecasts = {name: entry.forecasts for name, entry in status.entries.items()}
    assert forecasts["one"] == 1
    assert set(forecasts.values()) == {0, 1}


def test_a_service_does_only_its_stages(site: Site):
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


def test_an_exchange_that_is_down_is_read_when_it_is_back(site: Site):
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


def test_a_stage_that_breaks_is_tried_again(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    arena = site.arena()
    left = 2

    def crash(cell: Any) -> Any:
        nonlocal left
        left -= 1
        if left >= 0:
            raise RuntimeError("a bug")
        return [0.5, 0.5]

    site.answers["always"] = crash

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


def test_a_clock_that_was_set_back_is_told_once_and_again_after_it_was_right(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.exchange.offer("CUP", closes=START + timedelta(days=9))

    async def main() -> None:
        await ArenaService(arena=site.arena()).once()
        assert "clock" not in caplog.text
        # A process that starts later sees what is stored.
        site.later(hours=-30)
        await ArenaService(arena=site.arena()).once()
        assert caplog.text.count("nothing is due until then") == 1
        # One that runs on tells it once, and again where the clock was right in between.
        caplog.clear()
        check, now = clock_check(site.arena()), site.now
        for hours in (0, 1, 31, -9, -8):
            await check(now + timedelta(hours=hours))
        assert caplog.text.count("the clock shows") == 2

    asyncio.run(main())


@pytest.mark.parametrize("status", [None, 404, 500])
def test_a_platform_that_is_down_holds_up_no_other_and_is_read_in_the_same_slot(site: Site, status: int | None):
    """Also one that answers 404 to everything: none of its events counts as gone, and nothing as decided."""
    other = Exchange(platform="manifold", down=True, down_status=status)
    closes = START + timedelta(days=4)
    site.spec["platforms"] = ["kalshi", "manifold"]
    site.exchange.offer("CUP", closes=closes)
    other.offer("RACE", closes=closes)
    both: dict[str, Any] = {"kalshi": site.exchange, "manifold": other}
    arena = replace(site.arena(), events=both, settlements=both)
    told: list[str] = []
    service = ArenaService(arena=arena, tell=lambda stage, report: told.append(f"{stage}: {report}"))

    def open_events() -> set[str]:
        return {id for id, row in arena.book.selected(unsettled=True).items() if row.status == "open"}

    async def step(**later: float) -> str:
        told.clear()
        site.later(**later)
        await service.once()
        return "\n".join(told)

    async def main() -> None:
        first = await step()
        assert "problem: manifold: https://kalshi.example: the exchange is down" in first
        assert (open_events(), "3 forecasts, 0 failed" in first) == ({"kalshi/CUP"}, True)
        other.down = False
        assert "collect" not in await step(seconds=20)  # A pause keeps the other platform from being read all the time.
        second = await step(minutes=2)
        assert (open_events(), "3 forecasts, 0 failed" in second) == ({"kalshi/CUP", "manifold/RACE"}, True)
        assert "collect" not in await step(minutes=2)
        other.down, other.asked = True, []
        third = await step(days=2)
        assert "3 forecasts, 0 failed" in third  # The other platform's next moment.
        assert third.count("the exchange is down") == 2
        assert len(open_events()) == 2
        other.settle("RACE", 1, 0)
        site.exchange.settle("CUP", 1, 0)
        assert "manifold: https://kalshi.example" in await step(days=3)
        assert {one.question_id for one in arena.book.outcomes()} == {"kalshi/CUP"}
        other.down = False
        await step(hours=2)
        assert {one.question_id for one in arena.book.outcomes()} == {"kalshi/CUP", "manifold/RACE"}

    asyncio.run(main())
