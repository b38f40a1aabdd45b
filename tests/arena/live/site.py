"""An arena whose platform, clock and entries belong to the test."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from inspect import isawaitable
from typing import Any

from foretell.arena.forecast import with_arena_rules
from foretell.arena.live import LiveArena
from foretell.arena.spec import arena_from_json
from foretell.arena.store import ArenaStore
from foretell.data.http import SourceError
from foretell.data.markets.listing import EventListing, ListedEvent, ListingFilter, ListingReport, MarketStatus
from foretell.forecasters.prompt.builder import ContextBuild, ContextUnavailable
from foretell.forecasters.prompt.prediction_context import PredictionContext, RankedSource
from foretell.questions.as_of import AsOf, instant
from foretell.questions.forecast import Cost, Failure, Forecast
from foretell.questions.question import Question, Snapshot, Target
from foretell.questions.resolution import Resolution
from foretell.questions.trace import EmitEvent
from foretell.runs.executor import AnswerTrial
from foretell.runs.spec import RunSpec
from foretell.runs.store import RunStore, RunTrial

START = instant("2026-11-01T00:00:00Z")


@dataclass(kw_only=True)
class Exchange:
    """A platform that lists the events of the test."""

    events_: dict[str, ListedEvent] = field(default_factory=dict[str, ListedEvent])
    results: dict[str, dict[str, int | None]] = field(default_factory=dict[str, dict[str, int | None]])
    down: bool = False
    down_status: int | None = None
    platform: str = "kalshi"
    asked: list[str] = field(default_factory=list[str])

    def offer(self, name: str, *, closes: datetime, price: float = 0.4, **more: Any) -> None:
        targets = more.pop("targets", ("A", "B"))
        question = Question(
            id=f"{self.platform}/{name}",
            source=self.platform,
            text=more.pop("title", f"What about {name}?"),
            due=START,
            targets=tuple(
                Target(
                    id=f"{name}-{id}",
                    label=id,
                    resolves_at=closes,
                    snapshot=Snapshot(at=START, last_price=price, yes_ask=price + 0.01, no_ask=1.03 - price),
                )
                for id in targets
            ),
            category=more.pop("category", "Economics"),
            exclusivity=more.pop("exclusivity", "independent"),
            closes_at=closes,
        )
        self.events_[name] = ListedEvent(
            question=question,
            status=more.pop("status", "open"),
            recurrence=more.pop("recurrence", name),
            volume=more.pop("volume", 1000.0),
            **more,
        )

    def change(self, name: str, **fields: Any) -> None:
        self.events_[name] = replace(self.events_[name], **fields)

    def move(self, name: str, closes: datetime) -> None:
        listed = self.events_[name]
        self.events_[name] = replace(listed, question=replace(listed.question, closes_at=closes))

    def settle(self, name: str, *outcomes: int | None, status: MarketStatus = "resolved") -> None:
        targets = self.events_[name].question.targets
        self.results[name] = {target.id: outcome for target, outcome in zip(targets, outcomes, strict=False)}
        self.change(name, status=status)

    def events(self, wanted: ListingFilter) -> EventListing:
        ledger = ListingReport()

        async def walk() -> AsyncGenerator[ListedEvent]:
            if self.down:
                raise SourceError("the exchange is down", url="https://kalshi.example", status=self.down_status)
            for event in list(self.events_.values()):
                fresh = _as_of(event, wanted.as_of)
                if (reason := wanted.refusal(fresh)) is not None:
                    ledger.left_out[reason] += 1
                else:
                    yield fresh

        return EventListing(walk(), ledger)

    async def event(self, id: str, as_of: AsOf) -> ListedEvent:
        self.asked.append(id)
        if self.down:
            raise SourceError("the exchange is down", url="https://kalshi.example", status=self.down_status)
        if id not in self.events_:
            raise SourceError("no such event", url="https://kalshi.example", status=404)
        return _as_of(self.events_[id], as_of)

    async def settlements(self, questions: Sequence[Question]) -> list[Resolution]:
        if self.down:
            raise SourceError("the exchange is down", url="https://kalshi.example", status=self.down_status)
        return [
            Resolution(
                question_id=question.id,
                target_id=target,
                outcome=outcome,
                due=question.due,
                resolved_at=START + timedelta(days=9),
                provenance="https://kalshi.example",
            )
            for question in questions
            for target, outcome in self.results.get(question.id.removeprefix(f"{self.platform}/"), {}).items()
        ]


def _as_of(listed: ListedEvent, as_of: AsOf) -> ListedEvent:
    targets = tuple(
        replace(target, snapshot=replace(target.snapshot, at=as_of.at)) if target.snapshot else target
        for target in listed.question.targets
    )
    return replace(listed, question=replace(listed.question, due=as_of.at, targets=targets))


@dataclass(kw_only=True)
class Searcher:
    """Builds contexts with one source, and counts."""

    built: list[str] = field(default_factory=list[str])
    broken: str = ""
    notes: tuple[str, ...] = ()

    async def build(self, question: Question, as_of: AsOf) -> ContextBuild:
        if self.broken:
            raise ContextUnavailable(self.broken)
        self.built.append(f"{question.id} {as_of}")
        source = RankedSource(url=f"https://news.example/{len(self.built)}", title="A report", summary="It says so.")
        context = PredictionContext(question=question, as_of=as_of, sources=(source,), searcher="test")
        return ContextBuild(context=context, found=1, dropped={}, notes=self.notes, usage=Cost(dollars=0.01))


@dataclass(kw_only=True)
class Site:
    """The arena with everything around it."""

    store: RunStore
    spec: dict[str, Any]
    exchange: Exchange = field(default_factory=Exchange)
    searcher: Searcher = field(default_factory=Searcher)
    now: datetime = START
    answers: dict[str, Callable[[RunTrial], Any]] = field(default_factory=dict[str, Callable[[RunTrial], Any]])
    """By forecaster: its probabilities, an error, or a coroutine of a forecast."""
    calls: list[tuple[str, str, str, int]] = field(default_factory=list[tuple[str, str, str, int]])
    on_call: Callable[[], None] = lambda: None

    def arena(self, store: RunStore | None = None, **changes: Any) -> LiveArena:
        spec, store = arena_from_json(self.spec), store or self.store
        records = ArenaStore(store.database, spec.name)
        arena = LiveArena(
            spec=spec,
            store=store,
            records=records,
            clock=lambda: self.now,
            events={"kalshi": self.exchange},
            settlements={"kalshi": self.exchange},
            builder=self.searcher,
            prepare=self._prepare(records),
            **changes,
        )
        arena.open()
        return arena

    def _prepare(self, records: ArenaStore) -> Callable[[RunSpec], AbstractAsyncContextManager[AnswerTrial]]:
        @asynccontextmanager
        async def prepare(run: RunSpec) -> AsyncGenerator[AnswerTrial]:
            async def answer(trial: RunTrial, emit: EmitEvent) -> Forecast | Failure:
                self.calls.append((run.forecaster, *trial.key.row()[1:]))
                self.on_call()
                p = self.answers.get(run.forecaster, _half)(trial)
                as_of = trial.question.as_of_in("live")
                if isawaitable(p):
                    return await p
                if isinstance(p, str):
                    return Failure(
                        question_id=trial.question.id, forecaster="f", as_of=as_of, error=p, trial=trial.trial
                    )
                by_target = {target.id: value for target, value in zip(trial.question.targets, p, strict=True)}
                return Forecast(question_id=trial.question.id, forecaster=run.forecaster, as_of=as_of, p=by_target)

            yield with_arena_rules(answer, records, lambda: self.now)

        return prepare

    def later(self, **time: float) -> datetime:
        self.now += timedelta(**time)
        return self.now


def _half(trial: RunTrial) -> list[float]:
    return [0.5] * len(trial.question.targets)


def usual() -> dict[str, Any]:
    return {
        "name": "cup",
        "entries": {"one": "constant", "two": {"forecaster": "market-price", "trials": 2}},
        "schedule": {"minimum_gap_hours": 6},
    }
