"""Where contexts of an arena are built: any search engine, with a summariser or with extracts, or none at all."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from foretell.app.equipment import Equipment, equip
from foretell.app.settings import Settings
from foretell.app.workbench import Workbench, workbench
from foretell.arena.live.arena import Builds
from foretell.arena.live.spec import PREFIX, ArenaSpec, ContextSpec
from foretell.arena.spec import QuestionsSpec, RunSpec
from foretell.forecasters.context.build import BuildSettings, Built, CannotBuild, ContextBuilder
from foretell.forecasters.context.context import Context, known_at
from foretell.llm.cost import Budget
from foretell.llm.journal import Journal
from foretell.questions.clock import AsOf
from foretell.questions.problems import InputError
from foretell.questions.question import Question
from foretell.sources.async_http import AsyncHttpClient
from foretell.sources.search import SearchEngine

NOBODY = "nobody"
"""The searcher of contexts without sources."""


class Bare:
    """No sources: the question and its quotes."""

    async def build(self, question: Question, as_of: AsOf) -> Built:
        """At once."""
        try:
            context = Context(question=known_at(question, as_of), as_of=as_of, searcher=NOBODY)
        except ValueError as error:
            raise CannotBuild(str(error)) from None
        return Built(context=context, found=0, dropped={})


@dataclass(frozen=True, kw_only=True)
class Searching:
    """Builds each context within its own budget, and all within that of the arena's contexts."""

    engine: SearchEngine
    spec: ContextSpec
    journal: Journal
    bench: Workbench | None = None
    """None: extracts instead of summaries."""

    async def build(self, question: Question, as_of: AsOf) -> Built:
        """The context of a question at a moment, or `CannotBuild`."""
        spec, bench = self.spec, self.bench
        settings = BuildSettings(queries=spec.queries, per_query=spec.per_query, compared=spec.compared)
        if bench is None:
            plain = ContextBuilder(engine=self.engine, journal=self.journal, settings=settings)
            return await plain.build(question, as_of)
        budget = Budget("context", dollars=spec.budget.question, within=bench.budget)
        builder = ContextBuilder(
            engine=self.engine,
            models=bench.models,
            model=bench.exchange.within(budget),
            journal=self.journal,
            settings=settings,
            prices=bench.exchange.prices,
        )
        return await builder.build(question, as_of)


@asynccontextmanager
async def building(spec: ArenaSpec, settings: Settings, journal: Journal) -> AsyncGenerator[Builds]:
    """What builds contexts, with its connections; a missing key is told now."""
    how = spec.context
    if not how.search:
        if how.models:
            raise InputError("models are named, but no engine to search with", column="context.search")
        yield Bare()
    elif not how.models:
        async with AsyncHttpClient() as client:
            yield Searching(engine=_engine(equip(settings, client, how.search)), spec=how, journal=journal)
    else:
        async with workbench(_run(spec), settings, journal) as bench:
            yield Searching(engine=_engine(bench.equipment), spec=how, journal=journal, bench=bench)


def _engine(equipment: Equipment) -> SearchEngine:
    assert equipment.engine is not None
    return equipment.engine


def _run(spec: ArenaSpec) -> RunSpec:
    """The making of contexts as if it were a run: its models, its engines, its budget."""
    models = dict(spec.context.models)
    models.setdefault("agent", next(iter(models.values())))
    return RunSpec(
        questions=QuestionsSpec(dataset=f"{PREFIX}{spec.name}"),
        forecaster="contexts",
        models=models,
        search=spec.context.search,
        mode="live",
        budget=spec.context.budget,
    )
