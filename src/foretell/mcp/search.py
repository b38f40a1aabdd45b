"""`search_as_of`: a search that sees nothing from after a date."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from foretell.mcp.permissions import ALLOW_SPENDING, ServerPermissions
from foretell.questions.as_of import AsOf, instant
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost
from foretell.questions.question import Question, Target
from foretell.questions.trace import EmitEvent, LeakBlocked, TraceEvent
from foretell.request import OperationRequest, setting
from foretell.tools.fence import AdmittedSource, FencedTools
from foretell.tools.leak_filter import Excerpt, LeakVerdict
from foretell.tools.names import WEB_SEARCH
from foretell.tools.rules import FenceRules

OWN, UNBILLED = "local", ("local", "gdelt")
QUERY_DOLLARS = 0.01
"""Booked for a query to an engine that sends bills: no list price known to us is higher."""
NOT_JUDGED_NOTE = "none: dates and addresses were checked, but no model read the texts for later knowledge"


class SearchRequest(OperationRequest):
    """Search for what was known by a date."""

    query: str = setting(help="A few concrete words.", min_length=2, max_length=400)
    as_of: str | None = setting(
        None,
        "Only what was known by then: ISO date such as 2027-03-31, or a moment with its zone. Needed unless `live`.",
        pattern=r"^\d{4}-\d{2}-\d{2}",
        max_length=40,
    )
    live: bool = setting(False, "Search the present instead, without any fence; must be said.")
    question: str = setting("", "What it is for: its own pages are closed, leaks dropped.", max_length=2_000)
    engine: str | None = setting(None, "Which of the server's engines to ask.")
    limit: int = setting(5, "Results.", ge=1, le=20)
    characters: int = setting(1_000, "Of each text.", ge=100, le=6_000)


@dataclass(frozen=True)
class TrustedCorpusFilter:
    """The content filter of one's own corpus where no model may be asked: its dates are trusted."""

    async def judge(self, excerpts: Sequence[Excerpt], as_of: AsOf, question: str) -> list[LeakVerdict]:
        """All are kept."""
        return [LeakVerdict(word="KEEP", reason="not judged")] * len(excerpts)


async def search_as_of(permissions: ServerPermissions, request: SearchRequest) -> dict[str, Any]:
    """Results that were published by the date, each with its own date."""
    question, engine = _question(request), permissions.engine(request.engine)
    withheld: list[LeakBlocked] = []

    def count(event: TraceEvent) -> None:
        if isinstance(event, LeakBlocked):
            withheld.append(event)

    async with _fenced_search(permissions, request, question, engine, count) as (tools, judged):
        _pay(permissions, engine)
        seen = await tools.use(WEB_SEARCH, {"query": request.query})
        if seen.failed:
            raise InputError(seen.text)
        found = [tools.sources[id] for id in seen.source_ids[: request.limit]]
    return {
        "query": request.query,
        "mode": "live" if request.live else "as of",
        "as_of": str(tools.as_of),
        "engine": engine,
        "content_filter": judged,
        "results": [_result(one, request.characters) for one in found],
        "withheld": len(withheld),
        "server_spending": permissions.spending(),
    }


def _question(request: SearchRequest) -> Question:
    """What is searched for, as of when; a search without a date is refused unless it says that it means now."""
    if request.live and request.as_of is not None:
        raise InputError("a live search has no date: give `as_of` or `live`, not both")
    now = datetime.now(UTC).replace(microsecond=0)
    if not request.live and request.as_of is None:
        raise InputError("no date was given", column="as_of", hint="say as_of, or live: true to search the present")
    try:
        due = instant(request.as_of) if request.as_of is not None else now
    except ValueError as error:
        raise InputError(str(error), column="as_of") from None
    if due > now:
        hint = "say live: true to search the present"
        raise InputError(f"{request.as_of} is not over yet", column="as_of", hint=hint)
    id = f"search/{now.isoformat()}" if request.live else "search"
    text = request.question or request.query
    return Question(id=id, source="assistant", text=text, due=due, targets=(Target(id="yes"),))


@asynccontextmanager
async def _fenced_search(
    permissions: ServerPermissions, request: SearchRequest, question: Question, engine: str, emit: EmitEvent
) -> AsyncGenerator[tuple[FencedTools, str]]:
    """The search behind the fence, and who judges what it finds."""
    settings = permissions.settings
    if request.live or not permissions.may_spend:
        from foretell.data.http import AsyncHttpClient
        from foretell.runs.services import open_services
        from foretell.tools.web import WebSearch

        if not request.live and engine != OWN:
            raise InputError(f"as of a date, what {engine} finds has to be judged by a model", hint=ALLOW_SPENDING)
        as_of = question.as_of_in("live" if request.live else "backtest")
        async with AsyncHttpClient(access=settings.access) as client:
            found = open_services(settings, client, [engine]).engine
            assert found is not None
            fence = FenceRules(as_of=as_of, question=question, emit=emit)
            tools = FencedTools.around([WebSearch(engine=found, limit=request.limit)], fence, TrustedCorpusFilter())
            yield tools, "none: live" if request.live else NOT_JUDGED_NOTE
        return
    from foretell.models.journal import Journal
    from foretell.runs.runtime import open_runtime
    from foretell.runs.spec import QuestionsSpec, RunSpec

    model = permissions.model()
    spec = RunSpec(questions=QuestionsSpec(dataset="search"), models={"agent": model}, search=(engine,))
    with closing(Journal(settings.journal)) as journal:
        async with open_runtime(spec, settings, journal) as runtime:
            yield runtime.tools(question, runtime.context(question, 0, emit)), model


def _pay(permissions: ServerPermissions, engine: str) -> None:
    """Engines that send bills are asked only where spending is allowed."""
    if engine in UNBILLED:
        return
    if permissions.budget is None:
        raise InputError(f"{engine} sends bills and spending is off", hint="start with --allow-spending DOLLARS")
    cost = Cost(dollars=QUERY_DOLLARS)
    permissions.budget.spend(cost)


def _result(one: AdmittedSource, characters: int) -> dict[str, Any]:
    text = one.shown
    return {
        "title": one.title,
        "url": one.url,
        "published": one.published.date().isoformat() if one.published is not None else None,
        "text": text if len(text) <= characters else f"{text[:characters]}…",
    }
