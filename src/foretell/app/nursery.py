"""Where trees are grown: the forecaster with its grounders, notebooks, served search and files."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from foretell.app.on_context import Dress, as_it_is, own_options
from foretell.app.settings import Settings
from foretell.app.thought_options import ThoughtOptions
from foretell.app.tree_options import TreeOptions
from foretell.app.workbench import Workbench
from foretell.arena.executor import Answer
from foretell.forecasters.tree.files.tree_file import write_tree
from foretell.forecasters.tree.forecaster import TreeForecaster
from foretell.forecasters.tree.growing.ground import Grounder, Leaf
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.thoughts.forecaster import ThoughtsForecaster
from foretell.forecasters.tree.thoughts.settings import ThoughtSettings
from foretell.llm.message import Reply, Request
from foretell.questions.event import Emit, ignore
from foretell.questions.problems import InputError
from foretell.questions.question import Question, SeriesRef

if TYPE_CHECKING:
    from foretell.forecasters.tree.grounders.bridge import Bridge
    from foretell.llm.opening import Wire
    from foretell.tools.notebook.endpoint import Endpoint

TREE, THOUGHTS = "tree", "thoughts"
"""The names of the forecasters in run specs."""
MCP_PORT = 8765
"""Where the search is served when a tunnel leads to it; without one any free port will do."""
PROVIDERS = {
    "fred": "US and international economic data by FRED id, such as DGS10, UNRATE, CPIAUCSL",
    "yahoo": "daily closes of shares, indices, currencies and commodities by Yahoo symbol, such as ^GSPC, EURUSD=X",
    "dbnomics": "official statistics of many countries by DBnomics id, provider/dataset/series",
}


@dataclass(frozen=True, kw_only=True)
class Shelf:
    """Where finished trees and their notebooks are put."""

    folder: Path
    file: Path | None = None
    """The one file for the one tree there is; None gives every tree a file of its own in the folder."""

    def path(self, question: str, trial: int, target: str) -> Path:
        """The file of a tree."""
        if self.file is not None:
            return self.file
        return self.folder / f"{_plain(question)}-{_plain(target)}-{trial}.json"

    def keep(self, question: Question, trial: int, target: str, tree: Tree) -> None:
        """Write a finished tree."""
        path = self.path(question.id, trial, target)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_tree(path, tree)

    def notebook(self, leaf: Leaf, trial: int) -> Path:
        """The file of a leaf's notebook, beside the tree's."""
        file = self.path(leaf.matter.question.id, trial, leaf.matter.target)
        return file.with_name(f"{file.stem}_notebooks") / f"{leaf.id}.ipynb"


def _plain(text: str) -> str:
    """A part of a file name: letters, digits and dashes, with something of the rest so that no two are the same.

    >>> _plain("fred/DGS10"), _plain("yes")
    ('fred-DGS10-44bcbd', 'yes')
    """
    import hashlib
    import re

    kept = re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip(".-")[:60]
    return kept if kept == text else f"{kept}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


@dataclass(frozen=True, kw_only=True)
class Nursery:
    """Where trees are grown: makes the forecaster with all it needs, and closes that again."""

    bench: Workbench
    settings: Settings
    options: TreeOptions
    shelf: Shelf
    watch: Emit = ignore
    warnings: list[str] = field(default_factory=list[str])

    @asynccontextmanager
    async def forecaster(self) -> AsyncGenerator[tuple[TreeForecaster, Workbench]]:
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
    async def answers(self, dress: Dress = as_it_is) -> AsyncGenerator[Answer]:
        """How the cells of a run are answered."""
        async with self.forecaster() as (forecaster, bench):
            yield bench.answers(dress(forecaster))

    @asynccontextmanager
    async def thoughts(self, settings: ThoughtSettings, dress: Dress = as_it_is) -> AsyncGenerator[Answer]:
        """How the cells of a run are answered by thoughts over the same grounders."""
        async with AsyncExitStack() as stack:
            bench, grounder = await self._grounder(stack)
            forecaster = ThoughtsForecaster(grounder=grounder, settings=settings, watch=self.watch)
            yield bench.answers(dress(forecaster))

    async def _grounder(self, stack: AsyncExitStack) -> tuple[Workbench, Grounder]:
        from foretell.forecasters.tree.grounders.adaptive import Adaptive
        from foretell.forecasters.tree.grounders.believing import Believing
        from foretell.forecasters.tree.grounders.plain import Plain
        from foretell.forecasters.tree.grounders.searching import Searching

        wanted = self.options.grounder
        bench = self.bench
        made: dict[str, Grounder] = {"search": Searching(), "agent": Believing(), "plain": Plain()}
        if wanted in ("deep", "auto"):
            bench, made["deep"] = await self._deep(stack)
        if wanted == "notebook":
            made["notebook"] = await self._notebook(stack)
        elif wanted == "auto":
            try:
                made["notebook"] = await self._notebook(stack)
            except InputError as problem:
                self.warnings.append(f"no notebooks: {problem}")
        return bench, Adaptive(grounders=made) if wanted == "auto" else made[wanted]

    async def _deep(self, stack: AsyncExitStack) -> tuple[Workbench, Grounder]:
        from foretell.forecasters.tree.grounders.bridge import open_bridge
        from foretell.forecasters.tree.grounders.deep import Deep, researches
        from foretell.llm.names import is_loopback

        model = self.options.deep_model
        if model is None or not researches(model):
            return self.bench, Deep(model=model)
        public = self.settings.addresses.get("mcp")
        if public is None and not is_loopback(self.settings.addresses.get("openai", "")):
            raise InputError(
                f"{model} has to reach the search on this machine",
                hint=f"set FORETELL_MCP_URL to the address of a tunnel to port {MCP_PORT}, or use another model",
            )
        bridge = await stack.enter_async_context(open_bridge(public_url=public, port=MCP_PORT if public else 0))
        return await self._researching(stack, bridge), Deep(model=model, bridge=bridge)

    async def _researching(self, stack: AsyncExitStack, bridge: "Bridge") -> Workbench:
        """The bench with an exchange that knows how to talk to models that research by themselves."""
        from foretell.llm.opening import Exchange

        exchange = Exchange(
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
        from foretell.forecasters.tree.grounders.notebook import InNotebook
        from foretell.tools.notebook.pool import Pool

        pool = Pool(most=self.options.kernels, unsandboxed=self.options.unsandboxed)
        if self.bench.journal.mode == "live":
            # A replay runs no cell: it needs no kernel and no sandbox.
            pool: Pool = await stack.enter_async_context(pool)
        return InNotebook(
            pool=pool,
            endpoints=_endpoints(self.bench),
            journal=self.bench.journal,
            save=self.shelf.notebook,
            base=self.shelf.folder,
        )


@asynccontextmanager
async def tree_answers(bench: Workbench, settings: Settings, dress: Dress = as_it_is) -> AsyncGenerator[Answer]:
    """How cells of a run are answered by trees; each tree is kept in the home, in a folder of the run."""
    shelf = Shelf(folder=settings.home / "trees" / bench.spec.id)
    options = TreeOptions.read(own_options(bench.spec.options))
    nursery = Nursery(bench=bench, settings=settings, options=options, shelf=shelf)
    async with nursery.answers(dress) as answer:
        yield answer


@asynccontextmanager
async def thought_answers(bench: Workbench, settings: Settings, dress: Dress = as_it_is) -> AsyncGenerator[Answer]:
    """How cells of a run are answered by thoughts; notebooks are kept in the home, in a folder of the run."""
    options = ThoughtOptions.read(own_options(bench.spec.options))
    shelf = Shelf(folder=settings.home / THOUGHTS / bench.spec.id)
    nursery = Nursery(bench=bench, settings=settings, options=options.grounding, shelf=shelf)
    async with nursery.thoughts(options.settings(bench.spec.budget.question), dress) as answer:
        yield answer


class ByModel:
    """A provider's two ways: chat for most of its models, researches for those that do them."""

    def __init__(self, chat: "Wire", research: "Wire") -> None:
        self._chat = chat
        self._research = research

    async def complete(self, request: Request) -> Reply:
        """By the name of the model."""
        from foretell.forecasters.tree.grounders.deep import researches

        return await (self._research if researches(request.model) else self._chat).complete(request)

    async def close(self) -> None:
        """Close both."""
        await self._chat.close()
        await self._research.close()


def _wire(written: str, settings: Settings, bridge: "Bridge") -> "Wire":
    from foretell.llm.names import ModelName
    from foretell.llm.opening import ADDRESSES, key_for, open_model
    from foretell.llm.wires.openai_responses import OpenAIResponses

    name = ModelName.read(written)
    chat = open_model(written, settings.keys, address=settings.addresses.get(name.provider))
    if name.provider != "openai":
        return chat
    address = settings.addresses.get("openai") or ADDRESSES["openai"]
    return ByModel(chat, OpenAIResponses(address, key_for(name, settings.keys), lambda one: bridge.reach(one.slot)))


def _endpoints(bench: Workbench) -> "list[Endpoint]":
    """Data for notebooks besides the search: series and prices, each answer kept in the journal."""
    from foretell.tools.notebook.endpoints.kept import KeptEndpoint
    from foretell.tools.notebook.endpoints.prices import MarketPrices
    from foretell.tools.notebook.endpoints.series import SeriesObservations

    source = bench.equipment.series
    providers = {name: line for name, line in PROVIDERS.items() if source.supplies(SeriesRef(provider=name, id=name))}
    series = SeriesObservations(source=source, providers=providers, allow_revised=frozenset({"dbnomics"}))
    prices = MarketPrices(sources=bench.equipment.prices)
    return [KeptEndpoint(endpoint=one, journal=bench.journal) for one in (series, prices)]
