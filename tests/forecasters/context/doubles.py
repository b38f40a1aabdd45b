"""Example questions, a search engine with fixed results, and a harness for forecasters with a context."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from foretell.data.search.engine import SearchHit
from foretell.forecasters.forecaster import Context, Models, attempt
from foretell.forecasters.prompt.prediction_context import PredictionContext, RankedSource
from foretell.models.model import Model, Reply, Request, TokenCount
from foretell.models.names import ModelRoles
from foretell.models.providers.scripted import ScriptedModel
from foretell.questions.as_of import AsOf, instant
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question, Snapshot, Target
from foretell.questions.trace import TraceEvent
from foretell.tools.content_filter import Excerpt, LeakVerdict

AT = instant("2026-01-10T12:00:00Z")
BACK = AsOf(at=AT, mode="backtest")
LIVE = AsOf(at=AT, mode="live")


def quote(last: float) -> Snapshot:
    return Snapshot(at=AT, last_price=last, yes_ask=last + 0.02, no_ask=1 - last + 0.02, volume=1200)


CUP = Question(
    id="cup",
    source="kalshi",
    text="Who wins the cup?",
    due=AT,
    criteria="The winner named by the association.",
    background="Two teams are left.",
    targets=(
        Target(id="Red Team", label="Red Team", snapshot=quote(0.613)),
        Target(id="Blue Team", label="Blue Team", snapshot=quote(0.387)),
    ),
    exclusivity="exactly one",
    category="Sports",
    closes_at=instant("2026-01-20T20:00:00Z"),
)
VISITS = Question(
    id="visits",
    source="kalshi",
    text="Whom will the minister meet?",
    due=AT,
    targets=(Target(id="x", label="Mr X"), Target(id="y", label="Ms Y"), Target(id="z", label="Dr Z")),
)
SNOW = Question(id="snow", source="own", text="Will it snow in Oslo?", due=AT, targets=(Target(id="yes"),))


def source(n: int, **more: Any) -> RankedSource:
    fields = {"url": f"https://news.example/{n}", "title": f"Report {n}", "summary": f"The {n}th report. It is short."}
    return RankedSource(**{**fields, "published": instant("2026-01-05"), "rank": n, **more})


def shared(question: Question = CUP, as_of: AsOf = BACK, sources: int = 2, **more: Any) -> PredictionContext:
    ranked_sources = tuple(source(n) for n in range(1, sources + 1))
    return PredictionContext(question=question, as_of=as_of, sources=ranked_sources, searcher="canned", **more)


class One:
    """Provides always the same context."""

    def __init__(self, context: PredictionContext) -> None:
        self.context = context

    async def of(self, question: Question, as_of: AsOf) -> PredictionContext:
        return self.context


class KeepAll:
    """A content filter that drops only texts with the word LEAK."""

    def __init__(self) -> None:
        self.judged: list[Excerpt] = []

    async def judge(self, excerpts: Sequence[Excerpt], as_of: AsOf, question: str) -> list[LeakVerdict]:
        self.judged += excerpts
        return [
            LeakVerdict(word="DROP" if "LEAK" in excerpt.title + excerpt.text else "KEEP", reason="")
            for excerpt in excerpts
        ]


def hit(n: int, **more: Any) -> SearchHit:
    snippet = f"Page {n} tells of matter number {n} alone, in words {'abcdefghij'[n % 10] * 9} of its own."
    fields: dict[str, Any] = {
        "url": f"https://news.example/page/{n}",
        "title": f"Headline {n}",
        "snippet": snippet,
        "text": f"{snippet} The red team trained in Oslo on day {n}. A third sentence ends page {n}. And a fourth.",
        "published": instant("2026-01-04T08:00:00Z"),
    }
    return SearchHit(**{**fields, **more})


@dataclass
class FixedEngine:
    """A search engine with the same results for every query, or results by query."""

    hits: Sequence[SearchHit] | Callable[[str], Sequence[SearchHit]] = ()
    name: str = "canned"
    filters_dates: bool = True
    queries: list[str] = field(default_factory=list)

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        await asyncio.sleep(0)
        self.queries.append(query)
        hits = self.hits(query) if callable(self.hits) else self.hits
        return list(hits)[:limit]


def no_tools(question: Question, context: Context) -> Any:
    raise AssertionError("tools must not be used")


def run_context(model: Model, events: list[TraceEvent] | None = None, as_of: AsOf = BACK, **more: Any) -> Context:
    log = [] if events is None else events
    return Context(
        as_of=as_of,
        models=Models(roles=ModelRoles(agent="scripted:x"), model=model),
        tools=no_tools,
        emit=log.append,
        **more,
    )


@dataclass
class PromptHarness:
    """Runs a forecaster against a scripted model and records events and requests."""

    forecaster: Any
    question: Question = CUP
    context: PredictionContext | None = None
    as_of: AsOf = BACK
    events: list[TraceEvent] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    def run(self, script: Any, **more: Any) -> Forecast | Failure:
        model = script if hasattr(script, "complete") else ScriptedModel(script)
        contexts = None if self.context is None else One(self.context)
        run = run_context(model, self.events, self.as_of, contexts=contexts, **more)
        answer = asyncio.run(attempt(self.forecaster, self.question, run))
        self.requests = getattr(model, "requests", [])
        return answer

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def say(p: Any, rationale: Any = "Because of the reports.", **more: Any) -> Reply:
    text = json.dumps({"rationale": rationale, "probabilities": p, **more})
    return Reply(text=text, tokens=TokenCount(input=100, output=10))


def words(request: Request) -> str:
    return "\n".join(message.text for message in request.messages)
