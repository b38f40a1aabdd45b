"""`search_as_of`: a search that sees nothing from after a date."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from foretell.mcp.arguments import SearchArguments
from foretell.mcp.permissions import ALLOW_SPENDING, ServerPermissions
from foretell.questions.as_of import AsOf, instant
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost
from foretell.questions.question import Question, Target
from foretell.questions.trace import LeakBlocked, TraceEvent
from foretell.tools.fence import AdmittedSource, FencedTools
from foretell.tools.leak_filter import Excerpt, LeakVerdict
from foretell.tools.names import WEB_SEARCH
from foretell.tools.rules import FenceRules

OWN, UNBILLED = "local", ("local", "gdelt")
QUERY_DOLLARS = 0.01
"""Booked for a query to an engine that sends bills: no list price known to us is higher."""
NOT_JUDGED_NOTE = "none: dates and addresses were checked, but no model read the texts for later knowledge"


@dataclass(frozen=True)
class TrustedCorpusFilter:
    """The content filter of one's own corpus where no model may be asked: its dates are trusted."""

    async def judge(self, excerpts: Sequence[Excerpt], as_of: AsOf, question: str) -> list[LeakVerdict]:
        """All are kept."""
        return [LeakVerdict(word="KEEP", reason="not judged")] * len(excerpts)


@dataclass(frozen=True, kw_only=True)
class WithheldCounter:
    """Counts what the fence withholds."""

    seen: list[LeakBlocked] = field(default_factory=list[LeakBlocked])

    def emit(self, event: TraceEvent) -> None:
        """Take note of refusals only."""
        if isinstance(event, LeakBlocked):
            self.seen.append(event)


async def search_as_of(permissions: ServerPermissions, arguments: SearchArguments) -> dict[str, Any]:
    """Results that were published by the date, each with its own date."""
    question, engine = _question(arguments), permissions.engine(arguments.engine)
    lookout = WithheldCounter()
    async with _toolbox(permissions, arguments, question, engine, lookout) as (toolbox, judged):
        _pay(permissions, engine)
        seen = await toolbox.use(WEB_SEARCH, {"query": arguments.query})
        if seen.failed:
            raise InputError(seen.text)
        found = [toolbox.shelf[id] for id in seen.source_ids[: arguments.limit]]
    return {
        "query": arguments.query,
        "mode": "live" if arguments.live else "as of",
        "as_of": str(toolbox.as_of),
        "engine": engine,
        "content_filter": judged,
        "results": [_result(one, arguments.characters) for one in found],
        "withheld": len(lookout.seen),
        "server_spending": permissions.spending(),
    }


def _question(arguments: SearchArguments) -> Question:
    """What is searched for, as of when; a search without a date is refused unless it says that it means now."""
    if arguments.live and arguments.as_of is not None:
        raise InputError("a live search has no date: give `as_of` or `live`, not both")
    now = datetime.now(UTC).replace(microsecond=0)
    if not arguments.live and arguments.as_of is None:
        raise InputError("no date was given", column="as_of", hint="say as_of, or live: true to search the present")
    try:
        due = instant(arguments.as_of) if arguments.as_of is not None else now
    except ValueError as error:
        raise InputError(str(error), column="as_of") from None
    if due > now:
        hint = "say live: true to search the present"
        raise InputError(f"{arguments.as_of} is not over yet", column="as_of", hint=hint)
    id = f"search/{now.isoformat()}" if arguments.live else "search"
    text = arguments.question or arguments.query
    return Question(id=id, source="assistant", text=text, due=due, targets=(Target(id="yes"),))


@asynccontextmanager
async def _toolbox(
    permissions: ServerPermissions,
    arguments: SearchArguments,
    question: Question,
    engine: str,
    lookout: WithheldCounter,
) -> AsyncGenerator[tuple[FencedTools, str]]:
    """The search behind the fence, and who judges what it finds."""
    if arguments.live or not permissions.may_spend:
        if not arguments.live and engine != OWN:
            raise InputError(f"as of a date, what {engine} finds has to be judged by a model", hint=ALLOW_SPENDING)
        async with _by_rules(permissions, arguments, question, engine, lookout) as toolbox:
            yield toolbox, "none: live" if arguments.live else NOT_JUDGED_NOTE
        return
    async with _by_model(permissions, question, engine, lookout) as toolbox:
        yield toolbox, permissions.model()


@asynccontextmanager
async def _by_rules(
    permissions: ServerPermissions,
    arguments: SearchArguments,
    question: Question,
    engine: str,
    lookout: WithheldCounter,
) -> AsyncGenerator[FencedTools]:
    from foretell.data.http import AsyncHttpClient
    from foretell.runs.services import open_services
    from foretell.tools.web import WebSearch

    async with AsyncHttpClient() as client:
        found = open_services(permissions.settings, client, [engine]).engine
        assert found is not None
        as_of = question.as_of_in("live" if arguments.live else "backtest")
        fence = FenceRules(as_of=as_of, question=question, emit=lookout.emit)
        yield FencedTools.around([WebSearch(engine=found, limit=arguments.limit)], fence, TrustedCorpusFilter())


@asynccontextmanager
async def _by_model(
    permissions: ServerPermissions, question: Question, engine: str, lookout: WithheldCounter
) -> AsyncGenerator[FencedTools]:
    from foretell.models.journal import Journal
    from foretell.runs.runtime import open_runtime
    from foretell.runs.spec import QuestionsSpec, RunSpec

    spec = RunSpec(questions=QuestionsSpec(dataset="search"), models={"agent": permissions.model()}, search=(engine,))
    with closing(Journal(permissions.settings.journal)) as journal:
        async with open_runtime(spec, permissions.settings, journal) as runtime:
            context = runtime.context(question, 0, lookout.emit)
            yield runtime.tools(question, context)


def _pay(permissions: ServerPermissions, engine: str) -> None:
    """Engines that send bills are asked only where spending is allowed."""
    if engine in UNBILLED:
        return
    if permissions.purse is None:
        raise InputError(f"{engine} sends bills and spending is off", hint="start with --allow-spending DOLLARS")
    cost = Cost(dollars=QUERY_DOLLARS)
    permissions.purse.settle(permissions.purse.set_aside(cost), cost)


def _result(one: AdmittedSource, characters: int) -> dict[str, Any]:
    text = one.shown
    return {
        "title": one.title,
        "url": one.url,
        "published": one.published.date().isoformat() if one.published is not None else None,
        "text": text if len(text) <= characters else f"{text[:characters]}…",
    }
