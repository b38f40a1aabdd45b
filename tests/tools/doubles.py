"""Small fakes of external services, for tests of the tools and the leakage filter."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from foretell.data.markets.market import MarketRef, PricePoint
from foretell.data.pages import Page
from foretell.data.search.engine import SearchHit
from foretell.data.series.series import FetchedSeries, Series
from foretell.data.wikipedia import ArticleRevision
from foretell.models.model import ModelError, Reply, Request, ToolSpec
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, SeriesRef, Target
from foretell.questions.trace import TraceEvent
from foretell.tools.content_filter import ModelContentFilter
from foretell.tools.leakage_filter import FilteredTools, Observation
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.tool import SourceItem, ToolMaterial

CUTOFF = AsOf.day("2025-10-26")


def question(**fields: Any) -> Question:
    defaults: dict[str, Any] = {
        "id": "infer/1",
        "source": "infer",
        "text": "Will the bill pass by 31 December 2025?",
        "due": "2025-10-26",
        "targets": (Target(id="yes"),),
    }
    return Question(**{**defaults, **fields})


def at(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00") if "T" in text else text + "T09:00:00+00:00")


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Answers every search with the same hits, regardless of the cutoff."""

    hits: Sequence[SearchHit]
    filters_dates: bool = True
    name: str = "double"

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        return list(self.hits)[:limit]


@dataclass(frozen=True, kw_only=True)
class Pages:
    page: Page | Exception

    async def fetch(self, url: str, as_of: AsOf) -> Page:
        if isinstance(self.page, Exception):
            raise self.page
        return self.page


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """A series that ignores the cutoff."""

    rows: Mapping[str, float]
    revised: bool = False

    async def fetch_with_provenance(self, ref: SeriesRef, as_of: AsOf) -> FetchedSeries:
        return FetchedSeries(series=series(self.rows, ref.id), revised=self.revised)


def series(rows: Mapping[str, float], name: str = "x") -> Series:
    return Series(id=name, days=np.array(list(rows), "M8[D]"), values=np.array(list(rows.values())))


@dataclass(frozen=True, kw_only=True)
class Prices:
    """A market that ignores the cutoff."""

    points: Sequence[PricePoint] | Exception
    platform: str = "polymarket"

    async def prices(self, ref: MarketRef, as_of: AsOf, days: int = 60) -> list[PricePoint]:
        if isinstance(self.points, Exception):
            raise self.points
        return list(self.points)


@dataclass(frozen=True, kw_only=True)
class Articles:
    revision_: ArticleRevision | Exception

    async def revision(self, title: str, as_of: AsOf) -> ArticleRevision:
        if isinstance(self.revision_, Exception):
            raise self.revision_
        return self.revision_


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """A plugin tool that returns any material."""

    items: tuple[SourceItem, ...]
    heading: str = ""
    name: str = "plugin"
    seen: list[AsOf] = field(default_factory=list[AsOf])

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description="", parameters={"type": "object"})

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        self.seen.append(as_of)
        return ToolMaterial(heading=self.heading, items=self.items)


@dataclass
class Judge:
    """A filter model that judges by a function of (title, text, cutoff day) and records its requests."""

    rule: Callable[[str, str, str], bool]
    requests: list[Request] = field(default_factory=list[Request])

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        task = request.messages[-1].text
        cutoff = task.split("(", 1)[1][:10]
        texts = json.loads(task.split("Texts:\n", 1)[1])
        verdicts = [
            {
                "id": text["id"],
                "verdict": "KEEP" if self.rule(text["title"], text["text"], cutoff) else "DROP",
                "reason": "by rule",
            }
            for text in texts
        ]
        return Reply(text=json.dumps({"verdicts": verdicts}))


class Broken:
    """A filter model that never answers."""

    async def complete(self, request: Request) -> Reply:
        raise ModelError("the provider is down")


def keeps_all() -> Judge:
    return Judge(lambda title, text, cutoff: True)


def drops_all() -> Judge:
    return Judge(lambda title, text, cutoff: False)


def filtered(
    *tools: Any, about: Question | None = None, as_of: AsOf = CUTOFF, model: Any = None, **options: Any
) -> tuple[FilteredTools, list[TraceEvent]]:
    """Return filtered tools, by default with a content filter that keeps everything, and their list of events."""
    events: list[TraceEvent] = []
    rules = LeakageRules(as_of=as_of, question=about or question(), emit=events.append, **options)
    content_filter = ModelContentFilter(model=model or keeps_all(), name="scripted:filter", seconds=5.0)
    return FilteredTools.around(tools, rules, content_filter), events


def use(toolbox: FilteredTools, name: str, **arguments: Any) -> Observation:
    return asyncio.run(toolbox.use(name, arguments))
