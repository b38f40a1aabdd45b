"""Where trees are grown: the forecaster with its grounders, notebooks, served search and files."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from foretell.forecasters.tree.forecaster import TreeForecaster
from foretell.forecasters.tree.grow.ground import Grounder, Leaf
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.thought_forecaster import ThoughtsForecaster
from foretell.forecasters.tree.thought_search import ThoughtSettings
from foretell.forecasters.tree.tree_file import write_tree
from foretell.models.model import Reply, Request
from foretell.questions.errors import InputError
from foretell.questions.question import Question, SeriesRef
from foretell.questions.trace import EmitEvent, ignore_event
from foretell.runs.executor import AnswerCell
from foretell.runs.runtime import ContextWrapper, Runtime, forecaster_options, without_context
from foretell.runs.settings import Settings
from foretell.runs.tree_options import ThoughtOptions, TreeOptions

if TYPE_CHECKING:
    from foretell.forecasters.tree.grounders.deep_research import SearchServer
    from foretell.models.router import ProviderClient
    from foretell.tools.notebook.endpoints import Endpoint

TREE_FORECASTER, THOUGHTS_FORECASTER = "tree", "thoughts"
"""The names of the forecasters in run specs."""
SEARCH_SERVER_PORT = 8765
"""Where the search is served when a tunnel leads to it; without one any free port will do."""
SERIES_PROVIDERS = {
    "fred": "US and international economic data by FRED id, such as DGS10, UNRATE, CPIAUCSL",
    "yahoo": "daily closes of shares, indices, currencies and commodities by Yahoo symbol, such as ^GSPC, EURUSD=X",
    "dbnomics": "official statistics of many countries by DBnomics id, provider/dataset/series",
}


@dataclass(frozen=True, kw_only=True)
class TreeFolder:
    """Where finished trees and their notebooks are put."""

    folder: Path
    file: Path | None = None
    """The one file for the one tree there is; None gives every tree a file of its own in the folder."""

    def path(self, question: str, trial: int, target: str) -> Path:
        """The file of a tree."""
        if self.file is not None:
            return self.file
        return self.folder / f"{_file_name_part(question)}-{_file_name_part(target)}-{trial}.json"

    def keep(self, question: Question, trial: int, target: str, tree: Tree) -> None:
        """Write a finished tree."""
        path = self.path(question.id, trial, target)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_tree(path, tree)

    def notebook(self, leaf: Leaf, trial: int) -> Path:
        """The file of a leaf's notebook, beside the tree's."""
        file = self.path(leaf.matter.question.id, trial, leaf.matter.target)
        return file.with_name(f"{file.stem}_notebooks") / f"{leaf.id}.ipynb"


def _file_name_part(text: str) -> str:
    """A part of a file name: letters, digits and dashes, with something of the rest so that no two are the same.

    >>> _file_name_part("fred/DGS10"), _file_name_part("yes")
    ('fred-DGS10-44bcbd', 'yes')
    """
    import hashlib
    import re

    kept = re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip(".-")[:60]
    return kept if kept == text else f"{kept}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


@dataclass(frozen=True, kw_only=True)
class TreeRuntime:
    """Where trees are grown: makes the forecaster with all it needs, and closes that again."""

    bench: Runtime
    settings: Settings
    options: TreeOptions
    shelf: TreeFolder
    watch: EmitEvent = ignore_event
    warnings: list[str] = field(default_factory=list[str])

    @asynccontextmanager
    async def forecaster(self) -> AsyncGenerator[tuple[TreeForecaster, Runtime]]:
        """The forecaster and the bench it works at; kernels and served search are closed with it."""
        spec = self.bench.spec
        async with AsyncExitStack() as stack:
            bench, grounder = await self._grounder(stack)
            yield (
                TreeForecaster(
                    grounder=grounder,
                    settings=self.options.settings(spec.budget.question, spec.seed),
                    keep=self.shelf.keep,
                    watch=self.watch,
                ),
                bench,
            )

    @asynccontextmanager
    async def answers(self, dress: ContextWrapper = without_context) -> AsyncGenerator[AnswerCell]:
        """How the cells of a run are answered."""
        async with self.forecaster() as (forecaster, bench):
            yield bench.answers(dress(forecaster))

    @asynccontextmanager
    async def thoughts(
        self, settings: ThoughtSettings, dress: ContextWrapper = without_context
    ) -> AsyncGenerator[AnswerCell]:
        """How the cells of a run are answered by thoughts over the same grounders."""
        async with AsyncExitStack() as stack:
            bench, grounder = await self._grounder(stack)
            forecaster = ThoughtsForecaster(grounder=grounder, settings=settings, watch=self.watch)
            yield bench.answers(dress(forecaster))

    async def _grounder(self, stack: AsyncExitStack) -> tuple[Runtime, Grounder]:
        from foretell.forecasters.tree.grounders.adaptive import AdaptiveGrounder
        from foretell.forecasters.tree.grounders.agent import AgentGrounder
        from foretell.forecasters.tree.grounders.plain import PlainGrounder
        from foretell.forecasters.tree.grounders.search import SearchGrounder

        wanted = self.options.grounder
        bench = self.bench
        made: dict[str, Grounder] = {"search": SearchGrounder(), "agent": AgentGrounder(), "plain": PlainGrounder()}
        if wanted in ("deep", "auto"):
            bench, made["deep"] = await self._deep(stack)
        if wanted == "notebook":
            made["notebook"] = await self._notebook(stack)
        elif wanted == "auto":
            try:
                made["notebook"] = await self._notebook(stack)
            except InputError as problem:
                self.warnings.append(f"no notebooks: {problem}")
        return bench, AdaptiveGrounder(grounders=made) if wanted == "auto" else made[wanted]

    async def _deep(self, stack: AsyncExitStack) -> tuple[Runtime, Grounder]:
        from foretell.forecasters.tree.grounders.deep_research import (
            DeepResearchGrounder,
            is_deep_research_model,
            open_search_server,
        )
        from foretell.models.names import is_loopback

        model = self.options.deep_model
        if model is None or not is_deep_research_model(model):
            return self.bench, DeepResearchGrounder(model=model)
        public = self.settings.addresses.get("mcp")
        if public is None and not is_loopback(self.settings.addresses.get("openai", "")):
            raise InputError(
                f"{model} has to reach the search on this machine",
                hint=f"set FORETELL_MCP_URL to the address of a tunnel to port {SEARCH_SERVER_PORT}, "
                "or use another model",
            )
        bridge = await stack.enter_async_context(
            open_search_server(public_url=public, port=SEARCH_SERVER_PORT if public else 0)
        )
        return await self._researching(stack, bridge), DeepResearchGrounder(model=model, bridge=bridge)

    async def _researching(self, stack: AsyncExitStack, bridge: "SearchServer") -> Runtime:
        """The bench with an exchange that knows how to talk to models that research by themselves."""
        from foretell.models.router import ModelRouter

        exchange = ModelRouter(
            self.settings.keys,
            journal=self.bench.journal,
            prices=self.bench.exchange.prices,
            limits={"openai": self.options.limits()},
            addresses=self.settings.addresses,
            wire=lambda written: _wire(written, self.settings, bridge),
        )
        await stack.enter_async_context(exchange)
        return replace(self.bench, exchange=exchange)

    async def _notebook(self, stack: AsyncExitStack) -> Grounder:
        from foretell.forecasters.tree.grounders.notebook import NotebookGrounder
        from foretell.tools.notebook.pool import KernelPool

        pool = KernelPool(most=self.options.kernels, unsandboxed=self.options.unsandboxed)
        if self.bench.journal.mode == "live":
            # A replay runs no cell: it needs no kernel and no sandbox.
            pool: KernelPool = await stack.enter_async_context(pool)
        return NotebookGrounder(
            pool=pool,
            endpoints=_endpoints(self.bench),
            journal=self.bench.journal,
            save=self.shelf.notebook,
            base=self.shelf.folder,
        )


@asynccontextmanager
async def tree_answers(
    bench: Runtime, settings: Settings, dress: ContextWrapper = without_context
) -> AsyncGenerator[AnswerCell]:
    """How cells of a run are answered by trees; each tree is kept in the home, in a folder of the run."""
    shelf = TreeFolder(folder=settings.home / "trees" / bench.spec.id)
    options = TreeOptions.read(forecaster_options(bench.spec.options))
    nursery = TreeRuntime(bench=bench, settings=settings, options=options, shelf=shelf)
    async with nursery.answers(dress) as answer:
        yield answer


@asynccontextmanager
async def thought_answers(
    bench: Runtime, settings: Settings, dress: ContextWrapper = without_context
) -> AsyncGenerator[AnswerCell]:
    """How cells of a run are answered by thoughts; notebooks are kept in the home, in a folder of the run."""
    options = ThoughtOptions.read(forecaster_options(bench.spec.options))
    shelf = TreeFolder(folder=settings.home / THOUGHTS_FORECASTER / bench.spec.id)
    nursery = TreeRuntime(bench=bench, settings=settings, options=options.grounding, shelf=shelf)
    async with nursery.thoughts(options.settings(bench.spec.budget.question), dress) as answer:
        yield answer


class ResearchAwareProvider:
    """A provider's two ways: chat for most of its models, researches for those that do them."""

    def __init__(self, chat: "ProviderClient", research: "ProviderClient") -> None:
        self._chat = chat
        self._research = research

    async def complete(self, request: Request) -> Reply:
        """By the name of the model."""
        from foretell.forecasters.tree.grounders.deep_research import is_deep_research_model

        return await (self._research if is_deep_research_model(request.model) else self._chat).complete(request)

    async def close(self) -> None:
        """Close both."""
        await self._chat.close()
        await self._research.close()


def _wire(written: str, settings: Settings, bridge: "SearchServer") -> "ProviderClient":
    from foretell.models.names import ModelName
    from foretell.models.providers.openai_responses import OpenAIResponses
    from foretell.models.router import PROVIDER_ADDRESSES, api_key_for, open_provider

    name = ModelName.read(written)
    chat = open_provider(written, settings.keys, address=settings.addresses.get(name.provider))
    if name.provider != "openai":
        return chat
    address = settings.addresses.get("openai") or PROVIDER_ADDRESSES["openai"]
    return ResearchAwareProvider(
        chat, OpenAIResponses(address, api_key_for(name, settings.keys), lambda one: bridge.reach(one.slot))
    )


def _endpoints(bench: Runtime) -> "list[Endpoint]":
    """Data for notebooks besides the search: series and prices, each answer kept in the journal."""
    from foretell.tools.notebook.endpoints import JournaledEndpoint, MarketPricesEndpoint, SeriesEndpoint

    source = bench.equipment.series
    providers = {
        name: line for name, line in SERIES_PROVIDERS.items() if source.supplies(SeriesRef(provider=name, id=name))
    }
    series = SeriesEndpoint(source=source, providers=providers, allow_revised=frozenset({"dbnomics"}))
    prices = MarketPricesEndpoint(sources=bench.equipment.prices)
    return [JournaledEndpoint(endpoint=one, journal=bench.journal) for one in (series, prices)]
