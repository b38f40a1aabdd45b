"""All stages of an arena except forecasting (collecting, contexts, settling), and the service that runs every stage."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from foretell.arena.forecast import ForecastReport, make_forecasts, reason_lines
from foretell.arena.live import LiveArena
from foretell.arena.select import question_date, slot, volatilities
from foretell.arena.store import ForecastTime, SelectedEventRow
from foretell.data.http import SourceError
from foretell.data.markets.listing import ACTIVE_STATUSES, ListedEvent, ListingFilter
from foretell.data.payload import MalformedPayload
from foretell.forecasters.forecaster import CannotForecast
from foretell.frozen import frozen
from foretell.models.ledger import Money
from foretell.questions.as_of import AsOf
from foretell.questions.clock_jump import TOLERANCE
from foretell.questions.question import Question, Target
from foretell.questions.resolution import Resolution
from foretell.runs.claims import ClaimTable
from foretell.runs.executor import RunProgress

AT_ONCE = 8
"""Maximum number of events or forecast times processed concurrently."""
RECHECKED = timedelta(days=7)
"""How long after it was recorded a result is still rechecked, once a day."""


@dataclass(kw_only=True)
class CollectReport:
    """Counts of what a collection did, filled in as it runs."""

    listed: int = 0
    """Number of events read from the platforms."""
    chosen: tuple[str, ...] = ()
    rejected: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of rejected events by reason."""
    refreshed: int = 0
    """Number of selected events whose quotes were updated."""
    over: int = 0
    """Number of selected events that have ended."""
    reopened: int = 0
    """Number of events that had ended and are open again."""
    notes: list[str] = field(default_factory=list[str])
    """Entries from platforms that could not be used."""
    problems: list[str] = field(default_factory=list[str])
    """Platforms or events that could not be read."""
    unread: list[str] = field(default_factory=list[str])
    """Platforms whose list could not be read to its end."""

    @property
    def has_news(self) -> bool:
        """Whether there is anything to report: always."""
        return True

    @property
    def complete(self) -> bool:
        """Whether every platform was read, so that none need be asked again in this period."""
        return not self.unread and bool(self.listed or not self.problems)

    def __str__(self) -> str:
        """Format the report for people."""
        lines = [f"{self.listed} events looked at, {len(self.chosen)} taken up; {self.refreshed} refreshed"]
        lines[0] += f", {self.over} over" if self.over else ""
        lines[0] += f", {self.reopened} open again" if self.reopened else ""
        lines += [f"  {n} × {reason}" for reason, n in self.rejected.items()]
        return "\n".join(
            [*lines, *(f"  {note}" for note in self.notes), *(f"problem: {problem}" for problem in self.problems)]
        )


async def collect(arena: LiveArena, now: datetime) -> CollectReport:
    """Read every platform, refresh selected events, select new ones, and plan their first forecast times."""
    records, rules, report = arena.records, arena.spec.select, CollectReport()
    listed: list[ListedEvent] = []
    met: set[str] = set()
    left_out = Counter[str]()

    async def look(platform: str) -> None:
        # If a platform fails, the others are still read, and the events that it listed before count.
        listing = arena.events[platform].events(listing_request(arena, now))
        try:
            async for event in listing:
                if event.question.id not in met:  # A platform may list an event twice.
                    met.add(event.question.id)
                    listed.append(event)
        except SourceError as error:
            report.problems.append(f"{platform}: {error}")
            report.unread.append(platform)
        left_out.update(listing.ledger.left_out)
        skipped = Counter(entry.reason for entry in listing.ledger.skipped).most_common(5)
        report.notes += [f"{n} × skipped by the reader of {platform}: {reason}" for reason, n in skipped]

    await asyncio.gather(*map(look, arena.spec.platforms))
    # Includes closed events, because a market may reopen.
    known = await records.db.aside(records.selected, unsettled=True)
    await _refresh(arena, known, {event.question.id: event for event in listed}, now, report)
    volatility: Mapping[str, float] = {}
    if rules.volatility > 0:
        fresh = [event for event in listed if event.question.id not in known]
        volatility = await volatilities(fresh, rules, arena.prices, now)
    selection = await records.db.aside(records.decide, listed, rules, now, volatility=volatility)
    for event in selection.chosen:
        await records.db.aside(records.add_quotes, event.question)
    report.listed = len(listed) + left_out.total()
    report.chosen = tuple(event.question.id for event in selection.chosen)
    report.rejected = dict((left_out + Counter(selection.counts)).most_common())
    return report


def listing_request(arena: LiveArena, now: datetime) -> ListingFilter:
    """Return the request to a platform: those rules that it can apply itself."""
    rules, how = arena.spec.select, arena.spec.collect
    return ListingFilter(
        as_of=AsOf(at=now, mode="live"),
        closes_after=now + timedelta(hours=rules.closes_after_hours),
        closes_before=now + timedelta(days=rules.closes_within_days),
        minimum_volume=rules.volume,
        limit=how.limit,
        pages=how.pages,
    )


async def _refresh(
    arena: LiveArena,
    known: Mapping[str, SelectedEventRow],
    listed: Mapping[str, ListedEvent],
    now: datetime,
    report: CollectReport,
) -> None:
    """Update the state of selected events, from the listing or, if they are not in it, one by one.

    Events of a platform whose list cannot be read are skipped: each request would take as long to fail, and a server
    that answers 404 to everything has not withdrawn its events.
    """
    slots, read = asyncio.Semaphore(AT_ONCE), arena.events.keys() - set(report.unread)

    async def ask(row: SelectedEventRow) -> None:
        async with slots:
            try:
                event = await arena.events[row.platform].event(row.native, AsOf(at=now, mode="live"))
            except SourceError as error:
                if error.status == HTTPStatus.NOT_FOUND:
                    await close_event(arena, row.event, "gone", now)
                    report.over += row.status in ACTIVE_STATUSES
                else:
                    report.problems.append(f"{row.event}: {error}")
            else:
                await _note(arena, row, event, now, report)

    for id, row in known.items():
        if id in listed:
            await _note(arena, row, listed[id], now, report)
    await asyncio.gather(*(ask(row) for id, row in known.items() if id not in listed and row.platform in read))


async def _note(
    arena: LiveArena, row: SelectedEventRow, event: ListedEvent, now: datetime, report: CollectReport
) -> None:
    """Store an event's state and quotes; replan its forecast times if it ended, reopened or closes at another time."""
    records = arena.records
    await records.db.aside(records.seen, event, now)
    report.refreshed += 1
    was_open, closes = row.status in ACTIVE_STATUSES, event.closes_at or row.closes_at
    if event.status not in ACTIVE_STATUSES:
        await close_event(arena, row.event, event.status, now)
        report.over += was_open
    elif not was_open:
        await records.db.aside(_plan_again, arena, row.event, closes, now)
        report.reopened += 1
    elif closes != row.closes_at:
        await records.db.aside(_replan, arena, row.event, closes, now)


async def close_event(arena: LiveArena, event: str, status: str, now: datetime) -> None:
    """Mark an event as over. It is not asked about again."""
    records = arena.records
    await records.db.aside(records.over, event, status)
    await records.db.aside(records.forecast_times.drop, event, f"the event is {status}", now)


def _plan_again(arena: LiveArena, event: str, closes: datetime, now: datetime) -> None:
    """Plan the next forecast time of an event that has reopened, halfway from now to its close."""
    forecast_times = arena.records.forecast_times
    last = forecast_times.of_event(event)[-1].number
    if (at := arena.spec.schedule.following(last, now, closes)) is not None:
        forecast_times.plan(event, last + 1, at)


def _replan(arena: LiveArena, event: str, closes: datetime, now: datetime) -> None:
    """Replan the coming forecast time of an event whose close was moved; past forecast times stay as they are."""
    forecast_times, schedule = arena.records.forecast_times, arena.spec.schedule
    known = forecast_times.of_event(event)
    planned = [forecast_time for forecast_time in known if forecast_time.state == "planned"]
    before = [forecast_time for forecast_time in known if forecast_time.state != "planned"]
    if not before:
        return
    last = before[-1]
    at = schedule.following(last.number, last.planned_at, closes)
    if at is not None and at < now:
        at = schedule.following(last.number, now, closes)
    if planned:
        forecast_times.replan(planned[0], at, "the close was moved, and no time is left")
    elif at is not None:
        forecast_times.plan(event, last.number + 1, at)


# The fourth stage: read the results of events from their platforms.


@dataclass(kw_only=True)
class SettleReport:
    """Counts of what a settlement did, filled in as it runs."""

    asked: int = 0
    """Number of events whose results were looked up."""
    outcomes: int = 0
    """Number of new or amended results, by target."""
    settled: int = 0
    """Number of events whose results are now complete."""
    withdrawn: int = 0
    """Number of settled events whose platform withdrew the result."""
    problems: list[str] = field(default_factory=list[str])

    @property
    def has_news(self) -> bool:
        """Whether there is anything to report."""
        return bool(self.outcomes or self.settled or self.withdrawn or self.problems)

    def __str__(self) -> str:
        """Format the report for people."""
        head = f"{self.asked} events looked up, {self.outcomes} new results, {self.settled} settled"
        head += f", {self.withdrawn} no longer resolved" if self.withdrawn else ""
        return "\n".join([head, *(f"problem: {problem}" for problem in self.problems)])


async def settle(arena: LiveArena, now: datetime, *, recheck: bool = False) -> SettleReport:
    """Look up the results of events whose close has passed or that are no longer listed as open.

    With `recheck`, include events that settled within the last days, because platforms correct and withdraw results.
    """
    report, by_platform = SettleReport(), dict[str, list[SelectedEventRow]]()
    records = arena.records
    lately = await records.db.aside(records.settled_since, now - RECHECKED) if recheck else []
    for row in [*(await records.db.aside(records.selected, unsettled=True)).values(), *lately]:
        if row.settled or row.closes_at <= now or row.status != "open":
            by_platform.setdefault(row.platform, []).append(row)
            report.asked += 1
    await asyncio.gather(*(_platform(arena, name, rows, now, report) for name, rows in by_platform.items()))
    return report


async def _platform(
    arena: LiveArena, platform: str, rows: Sequence[SelectedEventRow], now: datetime, report: SettleReport
) -> None:
    records, aside = arena.records, arena.records.db.aside
    if platform not in arena.settlements:
        report.problems.append(f"{platform}: there is no reader for its results")
        return
    asked = {row.event: await aside(_with_all_targets, arena, row) for row in rows}
    try:
        results = await arena.settlements[platform].settlements(list(asked.values()))
    except SourceError as error:
        report.problems.append(f"{platform}: {error}")
        return
    skipped = getattr(arena.settlements[platform], "skipped", ())
    if skipped:
        report.problems.append(f"{platform}: {len(skipped)} entries could not be read; {skipped[0].reason}")
    before = [result for event in asked for result in await aside(records.outcomes, event)]
    known = {(result.question_id, result.target_id): _result(result) for result in before}
    new = [result for result in results if known.get((result.question_id, result.target_id)) != _result(result)]
    await aside(records.add_outcomes, new, now)
    resolved = Counter(event for event, _ in {*known, *((result.question_id, result.target_id) for result in results)})
    open_before = {row.event for row in rows if not row.settled}
    settled = [event for event in open_before if resolved[event] >= len(asked[event].targets)]
    if not skipped:  # A skipped market may still have its result.
        resolved_keys = {(result.question_id, result.target_id) for result in results}
        gone = {key[0] for key in known.keys() - resolved_keys} - open_before
        await asyncio.gather(*(_withdraw(arena, row, now, report) for row in rows if row.event in gone))
    for event in settled:
        await close_event(arena, event, "resolved", now)
        await aside(records.settle, event)
    report.outcomes += len(new)
    report.settled += len(settled)


async def _withdraw(arena: LiveArena, row: SelectedEventRow, now: datetime, report: SettleReport) -> None:
    """Delete the result of a settled event, if its platform reports that it no longer has one."""
    if row.platform not in arena.events:
        return
    with suppress(SourceError):
        event = await arena.events[row.platform].event(row.native, AsOf(at=now, mode="live"))
        if event.status != "resolved":
            await arena.records.db.aside(arena.records.withdraw, row.event)
            report.withdrawn += 1


def _result(resolution: Resolution) -> tuple[int | None, float | None, datetime | None]:
    return resolution.outcome, resolution.payoff, resolution.resolved_at


def _with_all_targets(arena: LiveArena, row: SelectedEventRow) -> Question:
    """Return the event with every target that was ever asked about, because some end early and leave the listing."""
    listed = {target.id: target for target in row.question.targets}
    for forecast_time in arena.records.forecast_times.of_event(row.event):
        for id in forecast_time.targets:
            listed.setdefault(id, Target(id=id))
    return replace(row.question, targets=tuple(listed.values()), exclusivity="independent")


# The second stage: store the question at each forecast time, and build the context that every entry is shown.


@dataclass(kw_only=True)
class ContextReport:
    """Counts of what happened to due forecast times, filled in as contexts are made."""

    made: int = 0
    sources: int = 0
    money: Money = field(default_factory=Money)
    missed: dict[str, int] = field(default_factory=dict[str, int])
    """Number of missed forecast times by reason."""
    over: int = 0
    """Number of forecast times of events that turned out to be over."""
    elsewhere: int = 0
    """Number of forecast times that another process is working on."""
    problems: dict[str, int] = field(default_factory=dict[str, int])
    """Number of failures to be retried, by reason."""
    notes: Counter[str] = field(default_factory=Counter[str])
    """Number of contexts that were made with fewer sources or without a model, by reason."""

    @property
    def has_news(self) -> bool:
        """Whether there is anything to report."""
        return bool(self.made or self.missed or self.over or self.problems)

    def __str__(self) -> str:
        """Format the report for people."""
        head = f"{self.made} contexts made with {self.sources} sources, {self.money}"
        head += f"; {self.over} over" if self.over else ""
        head += f"; {self.elsewhere} in progress elsewhere" if self.elsewhere else ""
        reasons = {"missed": self.missed, "to be retried": self.problems, "incomplete": self.notes}
        return "\n".join([head, *(line for what, of in reasons.items() for line in reason_lines(what, of))])


async def make_contexts(arena: LiveArena, now: datetime) -> ContextReport:
    """For every due forecast time, store the question and then its context, or mark it as missed if it is too late."""
    report, forecast_times, slots = ContextReport(), arena.records.forecast_times, asyncio.Semaphore(AT_ONCE)
    progress, seen, down = RunProgress(total=0), set[int](), dict[str, SourceError]()
    before = arena.spending()

    async def make_context(forecast_time: ForecastTime) -> None:
        async with slots, arena.claims.claim(f"moment {arena.name}", str(forecast_time.id)) as mine:
            if mine:
                await _ForecastTimeWork(arena, forecast_time, report, down).do()
            else:
                report.elsewhere += 1
        report.money = arena.spending() - before
        progress.done, progress.money = progress.done + 1, report.money
        arena.watch(progress)

    def is_due(forecast_time: ForecastTime) -> bool:
        return forecast_time.id not in seen and not arena.retries.is_waiting(forecast_time.id, now)

    # Missing a forecast time plans the next one, which may be due as well.
    while batch := list(filter(is_due, await arena.records.db.aside(forecast_times.due, now))):
        seen.update(forecast_time.id for forecast_time in batch)
        progress.total += len(batch)
        async with asyncio.TaskGroup() as group:
            for forecast_time in batch:
                group.create_task(make_context(forecast_time))
    return report


class _ForecastTimeWork:
    """The work on one forecast time that this process has claimed."""

    def __init__(
        self, arena: LiveArena, forecast_time: ForecastTime, report: ContextReport, down: dict[str, SourceError]
    ) -> None:
        """`down` has the platforms that did not answer in this round. They are not asked again in it."""
        self._arena, self._forecast_time, self._report, self._down = arena, forecast_time, report, down
        self._records, self._aside = arena.records, arena.records.db.aside

    async def do(self) -> None:
        # Another process may have changed its state since it was listed.
        self._forecast_time = await self._aside(self._records.forecast_times.find, self._forecast_time.id)
        row = await self._aside(self._records.event, self._forecast_time.event)
        assert row is not None, f"{self._forecast_time.event} was never selected"
        if self._forecast_time.state == "planned" and not await self._too_late(row.closes_at):
            try:
                await self._ask(row)
            except SourceError as error:
                await self._failed(str(error))
        if self._forecast_time.state == "taken" and not await self._too_late(
            self._forecast_time.closes_at or row.closes_at
        ):
            try:
                await self._gather()
            except (CannotForecast, SourceError) as error:
                await self._failed(str(error))

    async def _ask(self, row: SelectedEventRow) -> None:
        """Read the current quotes and store the question."""
        arena, forecast_time, now = self._arena, self._forecast_time, self._arena.clock()
        if row.platform in self._down:
            raise self._down[row.platform]
        try:
            event = await arena.events[row.platform].event(row.native, AsOf(at=question_date(now), mode="live"))
        except SourceError as error:
            if error.status is None and not isinstance(error, MalformedPayload):
                self._down[row.platform] = error
            raise
        await self._aside(self._records.seen, event, now)
        if event.status != "open":
            await close_event(arena, forecast_time.event, event.status, now)
            self._report.over += 1
            return
        closes, schedule = event.closes_at or row.closes_at, arena.spec.schedule
        if not await self._too_late(closes):
            deadline, _ = schedule.deadline(forecast_time.number, forecast_time.planned_at, closes)
            following = schedule.following(forecast_time.number, forecast_time.planned_at, closes)
            question = replace(event.question, closes_at=closes)
            self._forecast_time = await self._aside(
                self._records.forecast_times.take, forecast_time, question, deadline, following
            )

    async def _gather(self) -> None:
        """Build the context of a question that was asked. A builder that was killed resumes where it stopped."""
        question = await self._aside(self._records.forecast_times.question, self._forecast_time.id)
        built = await self._arena.builder.build(question, question.as_of_in("live"))
        await self._aside(self._records.keep_context, built, self._arena.clock())
        await self._aside(self._records.forecast_times.add_context, self._forecast_time.id, built.context.digest)
        self._arena.retries.forget(self._forecast_time.id)
        self._report.made += 1
        self._report.sources += len(built.context.sources)
        self._report.notes.update(built.notes)

    async def _too_late(self, closes: datetime) -> bool:
        """Return whether it is too late to answer. If so, mark the forecast time as missed.

        A question is never asked as of an earlier time.
        """
        forecast_time, schedule = self._forecast_time, self._arena.spec.schedule
        deadline, why = schedule.deadline(forecast_time.number, forecast_time.planned_at, closes)
        if self._arena.clock() < min(deadline, forecast_time.deadline or deadline):
            return False
        reason = f"too late: {why}"
        following = schedule.following(forecast_time.number, forecast_time.planned_at, closes)
        await self._aside(self._records.forecast_times.miss, forecast_time, reason, following)
        self._arena.retries.forget(forecast_time.id)
        self._report.missed[reason] = self._report.missed.get(reason, 0) + 1
        return True

    async def _failed(self, reason: str) -> None:
        await self._aside(self._records.forecast_times.record_failure, self._forecast_time.id, reason)
        self._arena.retries.failed(self._forecast_time.id, self._arena.clock())
        self._report.problems[reason] = self._report.problems.get(reason, 0) + 1


# All stages as one service. Any number of services may run on one database.

STAGES = ("collect", "context", "forecast", "resolve")
"""All stages, in order."""
StageReport = CollectReport | ContextReport | ForecastReport | SettleReport
StageCallback = Callable[[str, StageReport], None]
"""Called with the name and report of every stage that did something."""
StageWork = Callable[[datetime], Awaitable[None]]
LOOK_SECONDS = 20.0
"""Seconds between two checks of what is due."""
WORKERS_SECONDS = 1.0
"""Seconds between two checks of what workers have done."""

log = logging.getLogger(__name__)


@frozen
class ArenaService:
    """A process that runs every stage, or some of them, when it is due."""

    arena: LiveArena
    stages: Sequence[str] = STAGES
    entries: Sequence[str] = ()
    """Entries whose forecasts are made; empty for all."""
    poll_interval: float = LOOK_SECONDS
    tell: StageCallback = lambda stage, report: None
    claims: ClaimTable = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "claims", ClaimTable(self.arena.store.database))

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set. Work in progress is abandoned, and any process can resume it."""
        work = self._work()
        if work.pop("forecast", None) is not None:
            # One loop for each entry, so that a slow entry does not delay the others.
            entries = self.entries or self.arena.spec.entries
            work |= {f"forecast {name}": self._forecasts(name) for name in entries}
        tasks: list[asyncio.Task[Any]] = [
            asyncio.create_task(self._loop(name, stage, stop)) for name, stage in work.items()
        ]
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([*tasks, stopped], return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for task in (*tasks, stopped):
                task.cancel()
            await asyncio.gather(*tasks, stopped, return_exceptions=True)

    async def once(self) -> None:
        """Run whatever is due now, one stage after the other."""
        now = self.arena.clock()
        for stage in self._work().values():
            await stage(now)

    def _work(self) -> dict[str, StageWork]:
        """Return the chosen stages in order, after a check of the clock."""
        works = (self._collect, self._contexts, self._forecasts(*self.entries), self._resolve)
        by_name = zip(STAGES, works, strict=True)
        return {"clock": clock_check(self.arena), **{name: work for name, work in by_name if name in self.stages}}

    async def now(self) -> None:
        """Run the stages whether or not they are due, and wait for forecasts that workers make."""
        for name in STAGES:
            if name in self.stages:
                self.tell(name, await self._stage_now(name))

    async def _stage_now(self, name: str) -> StageReport:
        arena, now = self.arena, self.arena.clock()
        if name == "context":
            return await make_contexts(arena, now)
        if name == "resolve":
            return await settle(arena, now, recheck=True)
        if name == "collect":
            collected = await collect(arena, now)
            if collected.complete:
                # A running service need not read the platforms again in this period.
                slot_name, due = f"collect {arena.name}", slot(now, arena.spec.collect.every_hours).isoformat()
                await arena.store.database.aside(self.claims.take, slot_name, due)
                await arena.store.database.aside(self.claims.done, slot_name, due)
            return collected
        report = await make_forecasts(arena, now, entries=self.entries)
        while report.sent:
            await asyncio.sleep(WORKERS_SECONDS)
            report = replace(report, sent=0) + await make_forecasts(arena, arena.clock(), entries=self.entries)
        return report

    async def _contexts(self, now: datetime) -> None:
        if await self.arena.records.db.aside(self.arena.records.forecast_times.due, now):
            self._report("context", await make_contexts(self.arena, now))

    def _forecasts(self, *entries: str) -> StageWork:
        async def work(now: datetime) -> None:
            self._report("forecast", await make_forecasts(self.arena, now, entries=entries))

        return work

    async def _collect(self, now: datetime) -> None:
        retries = self.arena.retries
        if retries.is_waiting("collect", now):
            return

        async def work() -> bool:
            report = await collect(self.arena, now)
            self._report("collect", report)
            # Retry a failed platform before the next slot, which may be tomorrow's, but after a pause, because a retry
            # reads the other platforms as well.
            if report.unread and report.listed:
                retries.failed("collect", now)
            else:
                retries.forget("collect")
            return report.complete

        await self._in_its_slot("collect", self.arena.spec.collect.every_hours, now, work)

    async def _resolve(self, now: datetime) -> None:
        async def work() -> bool:
            hours = self.arena.spec.resolve.every_hours
            first_of_day = slot(now, hours) - timedelta(hours=hours) < slot(now, 24)
            self._report("resolve", await settle(self.arena, now, recheck=first_of_day))
            return True  # A platform that could not be read is retried in the next slot.

        await self._in_its_slot("resolve", self.arena.spec.resolve.every_hours, now, work)

    async def _in_its_slot(self, name: str, hours: float, now: datetime, work: Callable[[], Awaitable[bool]]) -> None:
        """Run `work` once per time slot of `hours` hours, in one process. If that process dies, another takes over."""
        database, claims = self.arena.store.database, self.claims
        slot_name, due = f"{name} {self.arena.name}", slot(now, hours).isoformat()
        if not await database.aside(claims.take, slot_name, due):
            return
        finished = False
        try:
            finished = await work()
        finally:
            await database.aside(claims.done if finished else claims.give_back, slot_name, due)

    async def _loop(self, name: str, work: StageWork, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await work(self.arena.clock())
            except Exception:  # A failed stage is logged and retried at the next poll.
                log.exception("arena %s, %s", self.arena.name, name)
            with suppress(TimeoutError):
                async with asyncio.timeout(self.poll_interval):
                    await stop.wait()

    def _report(self, stage: str, report: StageReport) -> None:
        """Report a stage, unless it did nothing."""
        if report.has_news:
            self.tell(stage, report)


def clock_check(arena: LiveArena) -> StageWork:
    """Return work that warns if the clock is behind earlier activity, because nothing is due until it has caught up."""
    latest: datetime | None = None
    warned = False

    async def work(now: datetime) -> None:
        nonlocal latest, warned
        if latest is None:
            latest = await arena.records.db.aside(arena.records.latest) or now
        behind = latest - now > timedelta(seconds=TOLERANCE)
        if behind and not warned:
            text = "arena %s: the clock shows %s, but the last activity was at %s; nothing is due until then. %s"
            fix = "Set this machine's clock (foretell doctor checks it)"
            log.warning(text, arena.name, f"{now:%Y-%m-%d %H:%M}", f"{latest:%Y-%m-%d %H:%M} UTC", fix)
        warned, latest = behind, max(latest, now)

    return work
