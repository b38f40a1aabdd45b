"""A watch for tests: sources that are written down, a model that reads only its prompts, and kills."""

import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from foretell.forecasters.forecaster import Context, Models
from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.models.model import ModelError, Reply, Request, TokenCount
from foretell.models.names import ModelRoles
from foretell.models.prices import PriceList
from foretell.models.providers.function import model_name
from foretell.models.router import ModelRouter
from foretell.models.token_price import TokenPrice
from foretell.questions.as_of import AsOf, instant
from foretell.questions.question import Question, Target
from foretell.runs.settings import Settings
from foretell.runs.store import RunStore
from foretell.standing.look import PastPrice, Sighting
from foretell.standing.news import content_key
from foretell.standing.record import Look, NewEvidence, StandingQuestion
from foretell.standing.store import StandingStore
from foretell.standing.watcher import FirstAnswer, LookReport, Watcher

START = instant("2026-03-01T08:00:00Z")
CLOSES = START + timedelta(days=40)
CALL = 2200 * 10e-6
"""Dollars of a call of the model."""
ODDS = re.compile(r"odds ([\d.]+)")


class Killed(BaseException):
    """The process dies here."""


def question(text: str = "Will the Halvik terminal open by April 10, 2026?", **more: Any) -> Question:
    yes = Target(id="yes", resolves_at=CLOSES)
    return Question(id="asked/1", source="asked", text=text, due=START, closes_at=CLOSES, targets=(yes,), **more)


def report(text: str, at: datetime, url: str = "") -> NewEvidence:
    return NewEvidence(key=content_key(text), text=text, published=at, url=url)


@dataclass
class WrittenSources:
    """What markets, a series and searches show at each time."""

    documents: list[NewEvidence] = field(default_factory=list[NewEvidence])
    price: Callable[[datetime], float | None] = lambda at: None
    value: Callable[[datetime], tuple[float, str] | None] = lambda at: None
    limit: int = 10
    searched: bool = False
    reads: int = 0

    async def read(self, standing: StandingQuestion, now: datetime) -> Sighting:
        self.reads += 1
        shown = [item for item in self.documents if item.published is not None and item.published <= now]
        price, value = self.price(now), self.value(now)
        days = [standing.opened_at - timedelta(days=n) for n in range(20, 0, -1)]
        history = [PastPrice(target="yes", at=day, p=p) for day in days if (p := self.price(day)) is not None]
        return Sighting(
            at=now,
            prices={} if price is None else {"yes": price},
            history=tuple(history),
            value=None if value is None else value[0],
            value_day="" if value is None else value[1],
            value_text="" if value is None else f"the index stood at {value[0]:g}",
            documents=tuple(shown[-self.limit :]),
            searched=self.searched,
        )


@dataclass
class ReadingModel:
    """A model that knows only its prompt: it multiplies the odds by the factors that new evidence states."""

    price = TokenPrice(input=10.0, output=10.0)
    calls: list[str] = field(default_factory=list[str])
    failing: Callable[[str], bool] = lambda kind: False
    kill: Callable[[str], None] = lambda place: None

    async def complete(self, request: Request) -> Reply:
        kind = "news" if "verdicts" in (request.schema or {})["properties"] else "belief"
        self.kill(f"before {kind}")
        if self.failing(kind):
            raise ModelError("the provider is down")
        self.calls.append(request.slot)
        text = request.messages[1].text
        if kind == "news":
            rows = json.loads(text.partition("# Texts")[2])
            verdicts = [
                {
                    "id": row["id"],
                    "bears": "odds" in row["text"],
                    "why": "it states odds" if "odds" in row["text"] else "it is about badges",
                }
                for row in rows
            ]
            answer: Mapping[str, Any] = {"verdicts": verdicts}
        else:
            prior = float(re.search(r"Made on [\d-]+: ([\d.]+)", text)[1])  # type: ignore[index]
            rows = json.loads(text.partition("# New evidence")[2])
            odds = prior / (1 - prior)
            for row in rows:
                for factor in ODDS.findall(row["text"]):
                    odds *= float(factor)
            evidence = [{"id": row["id"], "favours": "yes", "weight": "as stated"} for row in rows]
            answer = {"evidence": evidence, "reason": f"{len(rows)} reports", "p": odds / (1 + odds)}
        return Reply(text=json.dumps(answer), tokens=TokenCount(input=2000, output=200))


@dataclass
class Bench:
    """A home with a watch that can be killed and opened again."""

    home: Path
    sources: WrittenSources = field(default_factory=WrittenSources)
    model: ReadingModel = field(default_factory=ReadingModel)
    now: datetime = START
    first_p: float = 0.4
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    reports: list[LookReport] = field(default_factory=list[LookReport])
    asked: int = 0
    kill: Callable[[str], None] = lambda place: None

    def __post_init__(self) -> None:
        self.model_name = model_name(self.model, "watched-reader")
        self.run = {
            "questions": {"dataset": "asked x"},
            "mode": "live",
            "forecaster": "reason",
            "models": {"agent": self.model_name},
        }

    async def first(self, standing: StandingQuestion, sighting: Sighting, budget: Budget) -> FirstAnswer:
        self.asked += 1
        return FirstAnswer(p={"yes": self.first_p}, rationale="It was likely.")

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Watcher]:
        self.model.kill = self.kill
        settings = Settings(home=self.home)
        with closing(RunStore(settings.store)) as store, closing(Journal(settings.journal)) as journal:
            prices = PriceList({self.model_name: self.model.price})
            async with ModelRouter({}, journal=journal, prices=prices) as router:

                @asynccontextmanager
                async def models(standing: StandingQuestion, at: datetime, budget: Budget) -> AsyncGenerator[Context]:
                    roles = ModelRoles(agent=self.model_name)
                    own = Models(roles=roles, model=router.within(budget), prices=prices)
                    yield Context(as_of=AsOf(at=at, mode="live"), models=own, budget=budget)

                yield Watcher(
                    settings=settings,
                    store=KillableStore(store.database, self.kill),
                    journal=journal,
                    clock=lambda: self.now,
                    sources=self.sources,
                    asker=self,
                    models=models,
                    tell=self.reports.append,
                )

    def watch_settings(self) -> dict[str, Any]:
        return {**self.run, "watch": self.settings}


class KillableStore(StandingStore):
    """A store before and after whose transaction a process can die."""

    def __init__(
        self, database: Any, kill: Callable[[str], None], stored: Callable[[str, Look], None] = lambda id, look: None
    ) -> None:
        super().__init__(database)
        self.kill, self.stored = kill, stored

    def add_look(self, id: str, look: Look, *args: Any, **kwargs: Any) -> bool:
        self.kill("before the look is stored")
        stored = super().add_look(id, look, *args, **kwargs)
        if stored:
            self.stored(id, look)
        self.kill("after the look is stored")
        return stored
