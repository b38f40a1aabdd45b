"""The four stages one after the other, and what each does when something goes wrong."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.arena.live.site import START, Site

from foretell.arena import SettleReport, arena_status, make_contexts, make_forecasts, read_arena_table
from foretell.arena.stages import collect, settle
from foretell.data.markets import SkippedEntry
from foretell.forecasters import Context, build_forecaster
from foretell.models.ledger import Money
from foretell.questions import Failure, Forecast
from foretell.runs import CellKey, RunStore
from foretell.scoring import ScoredArena
from foretell.scoring.arena_leaderboard import arena_leaderboard


def go(work: Any) -> Any:
    return asyncio.run(work)


async def all_stages(site: Site, arena: Any) -> None:
    await collect(arena, site.now)
    await make_contexts(arena, site.now)
    await make_forecasts(arena, site.now)
    await settle(arena, site.now)


def test_from_a_listing_to_a_result(anywhere: Site):
    site = anywhere
    site.exchange.offer("CUP", closes=START + timedelta(days=2), exclusivity="exactly one")
    site.answers["always"] = lambda cell: [0.9, 0.3]
    arena = site.arena()

    async def main() -> None:
        await all_stages(site, arena)
        for _ in range(4):
            site.later(hours=12)
            await all_stages(site, arena)
        site.exchange.settle("CUP", 1, 0)
        site.later(hours=12)
        await all_stages(site, arena)

    go(main())
    moments = arena.book.moments.of_event("kalshi/CUP")
    assert [m.planned_at - START for m in moments] == [timedelta(hours=h) for h in (0, 24, 36, 42)]
    # The last one was due at 42 h and nobody looked before the event closed at 48 h.
    assert [m.state for m in moments] == ["ready", "ready", "ready", "missed"]
    assert {(r.target_id, r.outcome) for r in arena.book.outcomes()} == {("CUP-A", 1), ("CUP-B", 0)}
    told = arena_status(arena, site.now)
    assert told.events == {"selected": 1, "open": 0, "settled": 1}
    assert [entry.forecasts for entry in told.entries.values()] == [3, 6]
    assert told.missed == {"too late: the event closed first": 1}
    assert told.money == Money()  # Nothing asked a model through the journal.
    said = next(iter(site.store.answers(arena.spec.runs["one"].id)))
    assert isinstance(said, Forecast)
    assert said.p == pytest.approx({"CUP-A": 0.8, "CUP-B": 0.2})
    assert said.stated == {"CUP-A": 0.9, "CUP-B": 0.3}


def test_done_by_two_at_once_it_is_done_once(anywhere: Site, place: Path | str):
    site, second = anywhere, RunStore(place)
    for n in range(3):
        site.exchange.offer(f"E{n}", closes=START + timedelta(days=3 + n))
    arena, again = site.arena(), site.arena(second)

    async def main() -> None:
        await asyncio.gather(collect(arena, site.now), collect(again, site.now))
        await asyncio.gather(make_contexts(arena, site.now), make_contexts(again, site.now))
        await asyncio.gather(make_forecasts(arena, site.now), make_forecasts(again, site.now))
        await all_stages(site, arena)

    go(main())
    assert len(site.searcher.built) == 3
    assert len(site.calls) == len(set(site.calls)) == 9
    assert arena.book.db.read("select count(*) from said") == [(9,)]
    second.close()


def test_everybody_is_shown_the_same_bytes(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    arena = site.arena()

    async def main() -> None:
        await collect(arena, site.now)
        await make_contexts(arena, site.now)

    go(main())
    (moment,) = arena.book.moments.ready()
    assert moment.context is not None
    kept = arena.book.context(moment.context)
    assert kept is not None
    assert kept.digest == moment.context
    assert kept.question == arena.book.moments.question(moment.id)
    assert kept.as_of.at == moment.taken_at == START + timedelta(microseconds=1)


def test_outcomes_that_are_not_exclusive_stay_as_stated(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2), exclusivity="independent")
    site.answers["always"] = lambda cell: [0.9, 0.9]
    arena = site.arena()
    go(all_stages(site, arena))
    (said,) = site.store.answers(arena.spec.runs["one"].id)
    assert isinstance(said, Forecast)
    assert (said.p, said.stated) == ({"CUP-A": 0.9, "CUP-B": 0.9}, None)


def test_an_entry_that_repeats_a_yardstick_scores_exactly_like_it(site: Site):
    """Exclusive outcomes whose prices do not sum to one, which the rules of the arena would make coherent."""
    repeats = {"always": "always 0.5", "market": "crowd price"}
    site.spec["entries"] = {"own": "outside"} | {f"my {name}": name for name in repeats}
    for name in repeats:
        forecaster = build_forecaster(name)
        site.answers[name] = lambda cell, say=forecaster.forecast: say(
            cell.question, Context(as_of=cell.question.as_of_in("live"))
        )
    for n in range(6):
        site.exchange.offer(
            f"E{n}",
            closes=START + timedelta(days=2),
            price=0.2 + 0.1 * n,
            targets=("A", "B", "C"),
            exclusivity="exactly one" if n % 2 else "at most one",
        )
    arena = site.arena()

    async def main() -> None:
        await all_stages(site, arena)
        for n in range(6):
            site.exchange.settle(f"E{n}", *(int(n % 3 == k) for k in range(3)))
        site.later(days=3)
        await all_stages(site, arena)

    go(main())
    scored = ScoredArena.of(read_arena_table(site.store.database, "cup"))
    rows = {row.entry.name: row for row in arena_leaderboard(scored)}
    for name, yardstick in repeats.items():
        mine, other = rows[f"my {name}"], rows[yardstick]
        assert mine.scores == other.scores
        assert mine.by_market == other.by_market
        assert (mine.events, mine.markets, mine.completion) == (other.events, other.markets, other.completion)
    assert rows["my always"].scores["brier"].estimate == 0.25
    assert rows["own"].scores["brier"].estimate < 0.25


def test_a_forecast_that_comes_too_late_is_refused(site: Site):
    """The clock leaps over the deadline while the model thinks."""
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    arena = site.arena()

    async def main() -> Any:
        await collect(arena, site.now)
        await make_contexts(arena, site.now)
        site.on_call = lambda: site.later(hours=25) and None
        return await make_forecasts(arena, site.now, entries=("one",))

    found = go(main())
    (said,) = site.store.answers(arena.spec.runs["one"].id)
    assert isinstance(said, Failure)
    assert said.error.startswith("missed: the deadline was 2026-11-02T00:00:00+00:00, and the forecast came later")
    assert (found.made, found.failed) == (0, 1)
    assert arena.book.db.read("select count(*) from said") == [(0,)]


def test_nothing_is_asked_after_its_time(site: Site):
    """The service was away for a day and a half: what it did not ask then is not asked now as of then."""
    site.exchange.offer("CUP", closes=START + timedelta(days=4))
    arena = site.arena()

    async def main() -> Any:
        await collect(arena, site.now)
        site.later(hours=50)
        return await make_contexts(arena, site.now)

    found = go(main())
    assert found.missed == {"too late: the next moment was due first": 1}
    moments = arena.book.moments.of_event("kalshi/CUP")
    assert [(m.number, m.state) for m in moments] == [(0, "missed"), (1, "ready"), (2, "planned")]
    assert moments[1].taken_at == START + timedelta(hours=50)


def test_what_was_not_forecast_in_time_is_noted_as_missed(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    arena = site.arena()

    async def main() -> Any:
        await collect(arena, site.now)
        await make_contexts(arena, site.now)
        site.later(hours=24)
        first = await make_forecasts(arena, site.now)
        return first, await make_forecasts(arena, site.now)

    first, second = go(main())
    assert (first.made, first.missed, second.missed) == (0, 3, 0)
    assert site.calls == []
    for run in arena.spec.runs.values():
        for said in site.store.answers(run.id):
            assert isinstance(said, Failure)
            assert said.error == "missed: no forecast by 2026-11-02T00:00:00+00:00"
    told = arena_status(arena, site.now)
    assert [entry.missed for entry in told.entries.values()] == [1, 2]
    assert len(arena.book.moments.ready()) == 1
    assert go(make_forecasts(arena, site.later(minutes=10))).missed == 0
    assert arena.book.moments.ready() == []


def test_who_comes_later_did_not_miss_what_was_before(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    arena = site.arena()

    async def main() -> Any:
        await all_stages(site, arena)
        site.later(hours=30)
        site.spec["entries"] = {"new": "outside", "one": "always"}
        later = site.arena()
        await make_contexts(later, site.now)
        return later, await make_forecasts(later, site.now)

    later, found = go(main())
    assert (found.made, found.missed) == (2, 0)
    told = arena_status(later, site.now)
    assert {name: entry.forecasts for name, entry in told.entries.items()} == {"new": 1, "one": 2}


def test_what_fails_rests_and_is_tried_again(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    site.answers["always"] = lambda cell: "the provider is down"
    arena = site.arena()

    async def main() -> list[Any]:
        await collect(arena, site.now)
        await make_contexts(arena, site.now)
        first = await make_forecasts(arena, site.now)
        second = await make_forecasts(arena, site.now)
        site.later(minutes=2)
        site.answers["always"] = lambda cell: [0.5, 0.5]
        return [first, second, await make_forecasts(arena, site.now)]

    first, second, third = go(main())
    assert (first.made, first.failed, first.reasons) == (2, 1, {"the provider is down": 1})
    assert (second.made, second.failed, second.resting) == (0, 0, 1)
    assert (third.made, third.failed, third.resting) == (1, 0, 0)


def test_a_searcher_that_fails_is_asked_again(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    site.searcher.broken = "no search worked"
    arena = site.arena()

    async def main() -> list[Any]:
        await collect(arena, site.now)
        first = await make_contexts(arena, site.now)
        second = await make_contexts(arena, site.now)
        troubles = arena_status(arena, site.now).troubles
        site.later(hours=1)
        site.searcher.broken = ""
        return [first, second, troubles, await make_contexts(arena, site.now)]

    first, second, troubles, third = go(main())
    assert first.problems == troubles == {"no search worked": 1}
    assert (second.made, second.problems) == (0, {})
    assert third.made == 1
    (moment,) = arena.book.moments.ready()
    # It was asked when its moment came; only the searching took longer.
    assert moment.taken_at == START + timedelta(microseconds=1)


def test_an_outage_of_the_exchange(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    arena = site.arena()

    async def main() -> list[Any]:
        site.exchange.down = True
        empty = await collect(arena, site.now)
        site.exchange.down = False
        await collect(arena, site.now)
        site.exchange.down = True
        stuck = await make_contexts(arena, site.now)
        results = await settle(arena, site.later(days=3))
        return [empty, stuck, results]

    empty, stuck, results = go(main())
    assert "the exchange is down" in empty.problems[0]
    assert (empty.listed, empty.chosen) == (0, ())
    assert "the exchange is down" in next(iter(stuck.problems))
    assert "the exchange is down" in results.problems[0]


def test_an_event_that_ends_early(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=8))
    arena = site.arena()

    async def main() -> Any:
        await all_stages(site, arena)
        site.exchange.settle("CUP", 0, 1)
        site.later(days=1)
        return await collect(arena, site.now), await settle(arena, site.now)

    seen, found = go(main())
    assert (seen.over, found.settled) == (1, 1)
    moments = arena.book.moments.of_event("kalshi/CUP")
    assert [(m.state, m.reason) for m in moments] == [("ready", ""), ("dropped", "the event is resolved")]


def test_an_event_that_is_gone(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=8))
    arena = site.arena()

    async def main() -> Any:
        await all_stages(site, arena)
        site.exchange.events_.clear()
        return await collect(arena, site.later(days=1))

    assert go(main()).over == 1
    assert arena_status(arena, site.now).dropped == {"the event is gone": 1}


@pytest.mark.parametrize(("days", "hours"), [(2, 24), (16, 192), (0.4, None)])
def test_a_close_that_moves(site: Site, days: float, hours: float | None):
    site.exchange.offer("CUP", closes=START + timedelta(days=8))
    arena = site.arena()

    async def main() -> None:
        await all_stages(site, arena)
        site.exchange.move("CUP", START + timedelta(days=days))
        await collect(arena, site.later(hours=1))

    go(main())
    last = arena.book.moments.of_event("kalshi/CUP")[-1]
    if hours is None:
        assert (last.state, last.reason) == ("dropped", "the close was moved, and no time is left")
    else:
        assert (last.state, last.planned_at - START) == ("planned", timedelta(hours=hours))


def test_quotes_are_kept_where_they_change(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=20), price=0.4)
    arena = site.arena()

    async def main() -> None:
        for hour, price in enumerate((0.4, 0.4, 0.5, 0.5)):
            site.exchange.offer("CUP", closes=START + timedelta(days=20), price=price)
            await collect(arena, START + timedelta(hours=hour))

    go(main())
    rows = [(target, last) for target, _, last, *_ in arena.book.quotes("kalshi/CUP")]
    assert rows == [("CUP-A", 0.4), ("CUP-B", 0.4), ("CUP-A", 0.5), ("CUP-B", 0.5)]


def test_a_market_that_leaves_its_event_is_still_resolved(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2), targets=("A", "B", "C"))
    arena = site.arena()

    async def main() -> Any:
        await all_stages(site, arena)
        site.exchange.offer("CUP", closes=START + timedelta(days=2), targets=("A", "B"))
        site.exchange.results["CUP"] = {"CUP-A": 1, "CUP-B": 0}
        first = await settle(arena, site.later(days=3))
        site.exchange.results["CUP"]["CUP-C"] = 0
        return first, await settle(arena, site.now)

    first, second = go(main())
    assert (first.outcomes, first.settled, second.outcomes, second.settled) == (2, 0, 1, 1)


def test_a_result_that_is_amended_or_void(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2), targets=("A", "B"))
    arena = site.arena()

    async def main() -> None:
        await all_stages(site, arena)
        site.exchange.results["CUP"] = {"CUP-A": 1}
        await settle(arena, site.later(days=3))
        site.exchange.results["CUP"] = {"CUP-A": 0, "CUP-B": None}
        await settle(arena, site.now)

    go(main())
    assert [(one.target_id, one.outcome) for one in arena.book.outcomes()] == [("CUP-A", 0), ("CUP-B", None)]


def test_an_event_that_opens_again_is_asked_again(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=8))
    arena = site.arena()

    async def main() -> list[Any]:
        await all_stages(site, arena)
        site.exchange.change("CUP", status="closed")
        shut = await collect(arena, site.later(hours=1))
        still = await collect(arena, site.later(hours=1))
        site.exchange.change("CUP", status="open")
        back = await collect(arena, site.later(hours=22))
        asked = await make_contexts(arena, site.later(days=4))
        return [shut.over, still.over, back.reopened, asked.made, (await collect(arena, site.now)).reopened]

    assert go(main()) == [1, 0, 1, 1, 0]
    moments = arena.book.moments.of_event("kalshi/CUP")
    assert [one.state for one in moments] == ["ready", "dropped", "ready", "planned"]
    assert moments[2].planned_at - START == timedelta(days=4.5)


def test_a_settled_result_may_be_corrected_or_taken_back(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=8), targets=("A", "B"))
    arena = site.arena()

    def told() -> list[tuple[str, int | None]]:
        return [(one.target_id, one.outcome) for one in arena.book.outcomes()]

    async def main() -> None:
        await all_stages(site, arena)
        site.exchange.settle("CUP", 1, 0)
        assert (await settle(arena, site.later(days=9))).settled == 1
        state = arena.book.outcome_state()
        site.exchange.settle("CUP", 0, 1)
        assert (await settle(arena, site.later(hours=1))).asked == 0
        found = await settle(arena, site.now, recheck=True)
        assert (found.outcomes, found.settled) == (2, 0)
        assert told() == [("CUP-A", 0), ("CUP-B", 1)]
        assert arena.book.outcome_state() != state
        # A platform that is merely unable to show the market keeps its result.
        site.exchange.results.clear()
        assert (await settle(arena, site.now, recheck=True)).withdrawn == 0
        site.exchange.change("CUP", status="open")
        site.exchange.move("CUP", START + timedelta(days=30))
        assert (await settle(arena, site.now, recheck=True)).withdrawn == 1
        assert told() == []
        assert (await collect(arena, site.now)).reopened == 1
        site.exchange.settle("CUP", 1, 0)
        assert (await settle(arena, site.later(days=60), recheck=True)).settled == 1
        # After a week nobody asks again.
        assert (await settle(arena, site.later(days=8), recheck=True)).asked == 0

    go(main())
    assert told() == [("CUP-A", 1), ("CUP-B", 0)]


def test_results_that_cannot_be_read_are_named_and_counted(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2), targets=("A", "B"))
    arena = site.arena()
    reason = "kalshi market CUP-B: field markets[1].result is missing"
    bad = SkippedEntry(platform="kalshi", id="CUP-B", reason=reason)

    async def main() -> SettleReport:
        await all_stages(site, arena)
        site.exchange.results["CUP"] = {"CUP-A": 1}
        for source in arena.settlements.values():
            source.skipped = [bad]  # pyright: ignore[reportAttributeAccessIssue]
        return await settle(arena, site.later(days=3))

    report = go(main())
    assert report.outcomes == 1
    assert [problem.partition(": ")[2] for problem in report.problems] == [f"1 entries could not be read; {reason}"]


def test_cells_that_others_finished_are_caught_up(site: Site):
    """A worker finishes cells in the store and knows nothing of the book."""
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    sent: list[Any] = []
    arena = site.arena(send=sent.extend)

    async def main() -> list[Any]:
        await collect(arena, site.now)
        await make_contexts(arena, site.now)
        first = await make_forecasts(arena, site.now)
        for cell, _ in sent:
            p = {target.id: 0.25 for target in cell.question.targets}
            as_of = cell.question.as_of_in("live")
            said = Forecast(question_id=cell.question.id, forecaster="f", as_of=as_of, p=p, trial=cell.trial)
            site.store.finish_cell(cell.key, said)
        return [first, await make_forecasts(arena, site.now)]

    first, second = go(main())
    assert (first.sent, first.made) == (3, 0)
    assert (second.sent, second.made) == (0, 3)
    assert [attempt for _, attempt in sent] == [0, 0, 0]
    assert site.store.question(sent[0][0].key) is not None


def test_a_cell_that_failed_elsewhere_is_sent_again_as_another_attempt(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    site.spec["entries"] = {"one": "always"}
    sent: list[Any] = []
    arena = site.arena(send=sent.extend)

    async def main() -> None:
        await collect(arena, site.now)
        await make_contexts(arena, site.now)
        await make_forecasts(arena, site.now)
        key: CellKey = sent[0][0].key
        as_of = sent[0][0].question.as_of_in("live")
        site.store.finish_cell(key, Failure(question_id=key.question, forecaster="f", as_of=as_of, error="busy"))
        await make_forecasts(arena, site.now)
        await make_forecasts(arena, site.now)
        await make_forecasts(arena, site.later(minutes=5))

    go(main())
    assert [attempt for _, attempt in sent] == [0, 1, 2]
