"""The four stages in order, and their handling of errors."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.arena.live.site import START, Site

from foretell.arena.forecast import ForecastReport, make_forecasts
from foretell.arena.opening import ArenaPast
from foretell.arena.score_data import read_arena_table
from foretell.arena.stages import ContextReport, SettleReport, collect, make_contexts, settle
from foretell.arena.status import arena_status
from foretell.data.markets.listing import SkippedEntry
from foretell.forecasters.forecaster import Context, build_forecaster
from foretell.models.ledger import Money
from foretell.operations.arena import ArenaRunResult
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.resolution import Resolution
from foretell.runs.store import RunStore, TrialKey
from foretell.scoring.arena_leaderboard import ScoredArena, arena_leaderboard


def go(work: Any) -> Any:
    return asyncio.run(work)


async def all_stages(site: Site, arena: Any) -> None:
    await collect(arena, site.now)
    await make_contexts(arena, site.now)
    await make_forecasts(arena, site.now)
    await settle(arena, site.now)


def test_stages_lead_from_a_listing_to_a_result(anywhere: Site):
    site = anywhere
    site.exchange.offer("CUP", closes=START + timedelta(days=2), exclusivity="exactly one")
    site.answers["constant"] = lambda trial: [0.9, 0.3]
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
    forecast_times = arena.records.forecast_times.of_event("kalshi/CUP")
    assert [m.planned_at - START for m in forecast_times] == [timedelta(hours=h) for h in (0, 24, 36, 42)]
    # The last one was due at 42 h, and no stage ran before the event closed at 48 h.
    assert [m.state for m in forecast_times] == ["ready", "ready", "ready", "missed"]
    assert {(r.target_id, r.outcome) for r in arena.records.outcomes()} == {("CUP-A", 1), ("CUP-B", 0)}
    status = arena_status(arena, site.now)
    assert status.events == {"selected": 1, "open": 0, "settled": 1}
    assert [entry.forecasts for entry in status.entries.values()] == [3, 6]
    assert status.missed == {"too late: the event closed first": 1}
    assert status.money == Money()  # Nothing asked a model through the journal.
    answer = next(iter(site.store.answers(arena.spec.runs["one"].id)))
    assert isinstance(answer, Forecast)
    assert answer.p == pytest.approx({"CUP-A": 0.8, "CUP-B": 0.2})
    assert answer.stated == {"CUP-A": 0.9, "CUP-B": 0.3}


def test_two_processes_do_the_work_once(anywhere: Site, place: Path | str):
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
    assert arena.records.db.read("select count(*) from said") == [(9,)]
    second.close()


def test_all_entries_see_the_same_context(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    arena = site.arena()

    async def main() -> None:
        await collect(arena, site.now)
        await make_contexts(arena, site.now)

    go(main())
    (forecast_time,) = arena.records.forecast_times.ready()
    assert forecast_time.context is not None
    context = arena.records.context(forecast_time.context)
    assert context is not None
    assert context.digest == forecast_time.context
    assert context.question == arena.records.forecast_times.question(forecast_time.id)
    assert context.as_of.at == forecast_time.taken_at == START + timedelta(microseconds=1)


def test_outcomes_that_are_not_exclusive_stay_as_stated(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2), exclusivity="independent")
    site.answers["constant"] = lambda trial: [0.9, 0.9]
    arena = site.arena()
    go(all_stages(site, arena))
    (answer,) = site.store.answers(arena.spec.runs["one"].id)
    assert isinstance(answer, Forecast)
    assert (answer.p, answer.stated) == ({"CUP-A": 0.9, "CUP-B": 0.9}, None)


def test_entry_that_repeats_a_baseline_scores_exactly_like_it(site: Site):
    """Exclusive outcomes whose prices do not sum to one, which the arena would normalise."""
    repeats = {"constant": "always 0.5", "market": "market price"}
    site.spec["entries"] = {"own": "outside"} | {f"my {name}": name for name in repeats}
    for name in repeats:
        forecaster = build_forecaster(name)
        site.answers[name] = lambda trial, say=forecaster.forecast: say(
            trial.question, Context(as_of=trial.question.as_of_in("live"))
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
    assert rows["my constant"].scores["brier"].estimate == 0.25
    assert rows["own"].scores["brier"].estimate < 0.25


def test_forecast_after_the_deadline_is_rejected(site: Site):
    """The clock passes the deadline while the model answers."""
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    arena = site.arena()

    async def main() -> Any:
        await collect(arena, site.now)
        await make_contexts(arena, site.now)
        site.on_call = lambda: site.later(hours=25) and None
        return await make_forecasts(arena, site.now, entries=("one",))

    report = go(main())
    (answer,) = site.store.answers(arena.spec.runs["one"].id)
    assert isinstance(answer, Failure)
    assert answer.error.startswith("missed: the deadline was 2026-11-02T00:00:00+00:00, and the forecast came later")
    assert (report.made, report.failed) == (0, 1)
    assert arena.records.db.read("select count(*) from said") == [(0,)]


def test_missed_forecast_time_is_not_asked_later(site: Site):
    """The service was down for a day and a half. It does not ask missed questions as of an earlier time."""
    site.exchange.offer("CUP", closes=START + timedelta(days=4))
    arena = site.arena()

    async def main() -> Any:
        await collect(arena, site.now)
        site.later(hours=50)
        return await make_contexts(arena, site.now)

    report = go(main())
    assert report.missed == {"too late: the next forecast was due first": 1}
    forecast_times = arena.records.forecast_times.of_event("kalshi/CUP")
    assert [(m.number, m.state) for m in forecast_times] == [(0, "missed"), (1, "ready"), (2, "planned")]
    assert forecast_times[1].taken_at == START + timedelta(hours=50)


def test_forecasts_not_made_in_time_are_recorded_as_missed(site: Site):
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
        for answer in site.store.answers(run.id):
            assert isinstance(answer, Failure)
            assert answer.error == "missed: no forecast by 2026-11-02T00:00:00+00:00"
    status = arena_status(arena, site.now)
    assert [entry.missed for entry in status.entries.values()] == [1, 2]
    assert len(arena.records.forecast_times.ready()) == 1
    assert go(make_forecasts(arena, site.later(minutes=10))).missed == 0
    assert arena.records.forecast_times.ready() == []


def test_new_entry_has_not_missed_earlier_forecast_times(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    arena = site.arena()

    async def main() -> Any:
        await all_stages(site, arena)
        site.later(hours=30)
        site.spec["entries"] = {"new": "outside-view", "one": "constant"}
        later = site.arena()
        await make_contexts(later, site.now)
        return later, await make_forecasts(later, site.now)

    later, report = go(main())
    assert (report.made, report.missed) == (2, 0)
    status = arena_status(later, site.now)
    assert {name: entry.forecasts for name, entry in status.entries.items()} == {"new": 1, "one": 2}


def test_failed_forecast_is_retried_after_a_pause(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    site.answers["constant"] = lambda trial: "the provider is down"
    arena, shown = site.arena(), list[str]()

    async def main() -> list[Any]:
        await collect(arena, site.now)
        await make_contexts(arena, site.now)
        shown.append(str(arena_status(arena, site.now)))
        first = await make_forecasts(arena, site.now)
        shown.append(str(arena_status(arena, site.now)))
        second = await make_forecasts(arena, site.now)
        site.later(minutes=2)
        site.answers["constant"] = lambda trial: [0.5, 0.5]
        return [first, second, await make_forecasts(arena, site.now)]

    first, second, third = go(main())
    assert (first.made, first.failed, first.reasons) == (2, 1, {"one: the provider is down": 1})
    assert (second.made, second.failed, second.resting) == (0, 0, 1)
    assert (third.made, third.failed, third.resting) == (1, 0, 0)
    shown.append(str(arena_status(arena, site.now)))
    # The counts of an entry add up.
    for text, counts in zip(
        shown,
        (
            "0 forecasts, 0 failed, 0 too late, 1 not tried yet, $0",
            "0 forecasts, 1 failed (1 can be tried again), 0 too late, $0",
            "1 forecasts, 0 failed, 0 too late, $0",
        ),
        strict=True,
    ):
        assert counts in text


def test_past_read_while_results_are_being_stored_is_read_again(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2), targets=("A",))
    arena = site.arena()
    go(collect(arena, site.now))
    (event,) = arena.records.selected()
    past = ArenaPast(arena.records)
    later = site.later(days=3)
    result = Resolution(question_id=event, target_id="CUP-A", outcome=1, resolved_at=later, provenance="exchange")
    arena.records.add_outcomes([result], later)
    assert not past().resolved  # Another process has not marked the event as settled yet.
    arena.records.settle(event)
    assert [target.outcome for target in past().resolved] == [1]


def test_failed_search_is_retried(site: Site):
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
    (forecast_time,) = arena.records.forecast_times.ready()
    # It was asked on time, and only the search took longer.
    assert forecast_time.taken_at == START + timedelta(microseconds=1)


def test_contexts_made_with_fewer_sources_are_reported(site: Site):
    for name in ("CUP", "CAP"):
        site.exchange.offer(name, closes=START + timedelta(days=2))
    site.searcher.notes = ("1 of 2 searches failed: busy",)
    arena = site.arena()
    go(collect(arena, site.now))
    report = go(make_contexts(arena, site.now))
    assert (report.made, report.problems) == (2, {})
    assert str(report).splitlines()[1:] == ["  incomplete: 2 × 1 of 2 searches failed: busy"]


def test_problem_that_many_events_have_is_one_line_of_a_report():
    report = ContextReport()
    for name in ("CUP-27MAR03", "CAP-27MAR04"):
        report.problems[f"no source is left for question kalshi/{name}: 401 Unauthorized"] = 1
    (line,) = str(report).splitlines()[1:]
    assert line == "  to be retried: 2 × no source is left for question kalshi/CUP-27MAR03: 401 Unauthorized"


def test_outage_of_the_exchange_delays_forecasts(site: Site):
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


def test_event_that_ends_early_drops_its_planned_forecast_times(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=8))
    arena = site.arena()

    async def main() -> Any:
        await all_stages(site, arena)
        site.exchange.settle("CUP", 0, 1)
        site.later(days=1)
        return await collect(arena, site.now), await settle(arena, site.now)

    seen, report = go(main())
    assert (seen.over, report.settled) == (1, 1)
    forecast_times = arena.records.forecast_times.of_event("kalshi/CUP")
    assert [(m.state, m.reason) for m in forecast_times] == [("ready", ""), ("dropped", "the event is resolved")]


def test_event_removed_by_its_platform_is_dropped(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=8))
    arena = site.arena()

    async def main() -> Any:
        await all_stages(site, arena)
        site.exchange.events_.clear()
        return await collect(arena, site.later(days=1))

    assert go(main()).over == 1
    assert arena_status(arena, site.now).dropped == {"the event is gone": 1}


@pytest.mark.parametrize(("days", "hours"), [(2, 24), (16, 192), (0.4, None)])
def test_moved_close_replans_the_next_forecast_time(site: Site, days: float, hours: float | None):
    site.exchange.offer("CUP", closes=START + timedelta(days=8))
    arena = site.arena()

    async def main() -> None:
        await all_stages(site, arena)
        site.exchange.move("CUP", START + timedelta(days=days))
        await collect(arena, site.later(hours=1))

    go(main())
    last = arena.records.forecast_times.of_event("kalshi/CUP")[-1]
    if hours is None:
        assert (last.state, last.reason) == ("dropped", "the close was moved, and no time is left")
    else:
        assert (last.state, last.planned_at - START) == ("planned", timedelta(hours=hours))


def test_quotes_are_stored_when_they_change(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=20), price=0.4)
    arena = site.arena()

    async def main() -> None:
        for hour, price in enumerate((0.4, 0.4, 0.5, 0.5)):
            site.exchange.offer("CUP", closes=START + timedelta(days=20), price=price)
            await collect(arena, START + timedelta(hours=hour))

    go(main())
    rows = [(target, last) for target, _, last, *_ in arena.records.quotes("kalshi/CUP")]
    assert rows == [("CUP-A", 0.4), ("CUP-B", 0.4), ("CUP-A", 0.5), ("CUP-B", 0.5)]


def test_market_that_leaves_its_event_is_still_resolved(site: Site):
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


def test_amended_and_void_results_are_stored(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2), targets=("A", "B"))
    arena = site.arena()

    async def main() -> None:
        await all_stages(site, arena)
        site.exchange.results["CUP"] = {"CUP-A": 1}
        await settle(arena, site.later(days=3))
        site.exchange.results["CUP"] = {"CUP-A": 0, "CUP-B": None}
        await settle(arena, site.now)

    go(main())
    assert [(outcome.target_id, outcome.outcome) for outcome in arena.records.outcomes()] == [
        ("CUP-A", 0),
        ("CUP-B", None),
    ]


def test_reopened_event_is_asked_again(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=8))
    arena = site.arena()

    async def main() -> list[Any]:
        await all_stages(site, arena)
        site.exchange.change("CUP", status="closed")
        shut = await collect(arena, site.later(hours=1))
        still = await collect(arena, site.later(hours=1))
        site.exchange.change("CUP", status="open")
        back = await collect(arena, site.later(hours=22))
        report = await make_contexts(arena, site.later(days=4))
        return [shut.over, still.over, back.reopened, report.made, (await collect(arena, site.now)).reopened]

    assert go(main()) == [1, 0, 1, 1, 0]
    forecast_times = arena.records.forecast_times.of_event("kalshi/CUP")
    assert [forecast_time.state for forecast_time in forecast_times] == ["ready", "dropped", "ready", "planned"]
    assert forecast_times[2].planned_at - START == timedelta(days=4.5)


def test_settled_result_may_be_corrected_or_withdrawn(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=8), targets=("A", "B"))
    arena = site.arena()

    def stored_outcomes() -> list[tuple[str, int | None]]:
        return [(outcome.target_id, outcome.outcome) for outcome in arena.records.outcomes()]

    async def main() -> None:
        await all_stages(site, arena)
        site.exchange.settle("CUP", 1, 0)
        assert (await settle(arena, site.later(days=9))).settled == 1
        state = arena.records.outcome_state()
        site.exchange.settle("CUP", 0, 1)
        assert (await settle(arena, site.later(hours=1))).asked == 0
        report = await settle(arena, site.now, recheck=True)
        assert (report.outcomes, report.settled) == (2, 0)
        assert stored_outcomes() == [("CUP-A", 0), ("CUP-B", 1)]
        assert arena.records.outcome_state() != state
        # A market that cannot be read keeps its result.
        site.exchange.results.clear()
        assert (await settle(arena, site.now, recheck=True)).withdrawn == 0
        site.exchange.change("CUP", status="open")
        site.exchange.move("CUP", START + timedelta(days=30))
        assert (await settle(arena, site.now, recheck=True)).withdrawn == 1
        assert stored_outcomes() == []
        assert (await collect(arena, site.now)).reopened == 1
        site.exchange.settle("CUP", 1, 0)
        assert (await settle(arena, site.later(days=60), recheck=True)).settled == 1
        # After a week it is not rechecked.
        assert (await settle(arena, site.later(days=8), recheck=True)).asked == 0

    go(main())
    assert stored_outcomes() == [("CUP-A", 1), ("CUP-B", 0)]


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


def test_forecasts_that_workers_stored_are_recorded(site: Site):
    """A worker stores answers in the store of runs and not in the arena's tables."""
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    sent: list[Any] = []
    arena = site.arena(send=sent.extend)

    async def main() -> list[Any]:
        await collect(arena, site.now)
        await make_contexts(arena, site.now)
        first = await make_forecasts(arena, site.now)
        for trial, _ in sent:
            p = {target.id: 0.25 for target in trial.question.targets}
            as_of = trial.question.as_of_in("live")
            forecast = Forecast(question_id=trial.question.id, forecaster="f", as_of=as_of, p=p, trial=trial.trial)
            site.store.finish_trial(trial.key, forecast)
        return [first, await make_forecasts(arena, site.now)]

    first, second = go(main())
    assert (first.sent, first.made) == (3, 0)
    assert (second.sent, second.made) == (0, 3)
    assert [attempt for _, attempt in sent] == [0, 0, 0]
    assert site.store.question(sent[0][0].key) is not None


def test_trial_that_failed_at_a_worker_is_sent_again_as_a_new_attempt(site: Site):
    site.exchange.offer("CUP", closes=START + timedelta(days=2))
    site.spec["entries"] = {"one": "constant"}
    sent: list[Any] = []
    arena = site.arena(send=sent.extend)

    async def main() -> None:
        await collect(arena, site.now)
        await make_contexts(arena, site.now)
        await make_forecasts(arena, site.now)
        key: TrialKey = sent[0][0].key
        as_of = sent[0][0].question.as_of_in("live")
        site.store.finish_trial(key, Failure(question_id=key.question, forecaster="f", as_of=as_of, error="busy"))
        await make_forecasts(arena, site.now)
        await make_forecasts(arena, site.now)
        await make_forecasts(arena, site.later(minutes=5))

    go(main())
    assert [attempt for _, attempt in sent] == [0, 1, 2]


def test_failures_that_differ_in_a_number_are_counted_together():
    spent = "the budget of the run is spent: $0.01{} of $0.010"
    reasons = {spent.format(2): 2, spent.format(3): 3, "no reply": 1}
    report = ForecastReport(made=10, failed=6, reasons=reasons)
    assert str(report).splitlines()[1:] == [f"  failed: 5 × {spent.format(2)}", "  failed: 1 × no reply"]
    assert ArenaRunResult(arena="cup", stages={"forecast": report}).exit_code == 3
    assert (
        ArenaRunResult(arena="cup", stages={"forecast": ForecastReport(failed=1, reasons={"no reply": 1})}).exit_code
        == 0
    )
