"""Opens the forecasters `tree` and `thoughts` with their grounders, notebooks, served search and files."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from foretell.data.untrusted import for_file_name
from foretell.forecasters.forecaster import Forecaster
from foretell.forecasters.tree.forecaster import TreeForecaster
from foretell.forecasters.tree.grow.ground import Grounder, Leaf
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.settings import GroundSettings, ThoughtSettings, TreeSettings
from foretell.forecasters.tree.thoughts import ThoughtsForecaster
from foretell.forecasters.tree.tree_file import write_tree
from foretell.models.limits import ModelLimits
from foretell.plugins import load, names
from foretell.questions.errors import InputError
from foretell.questions.question import Question, SeriesRef
from foretell.runs.runtime import Runtime
from foretell.runs.settings import Settings

if TYPE_CHECKING:
    from foretell.forecasters.tree.grounders.deep_research import SearchServer
    from foretell.models.router import ProviderClient
    from foretell.tools.notebook.endpoints import Endpoint

T = TypeVar("T")
RESEARCH_SECONDS = 3600.0
"""Longest time for a deep research."""


@dataclass(frozen=True, kw_only=True)
class GroundingOptions(GroundSettings):
    """Options for grounding leaves that need something opened by the run."""

    asks_models: ClassVar[bool] = True
    former_names: ClassVar[dict[str, str]] = {"at_once": "concurrency", "most_leaves": "max_leaves"}

    grounder: str = "search"
    deep_model: str | None = None
    """A model that does research on its own, such as openai:gpt-6.1-sol."""
    kernels: int = 4
    """Number of notebooks running at the same time."""
    unsandboxed: bool = False
    """Run notebooks with all the rights of the user."""

    def __post_init__(self) -> None:
        super().__post_init__()
        load("grounders", self.grounder)

    def open(self, runtime: Runtime) -> AbstractAsyncContextManager[tuple[Forecaster, Runtime]]:
        """The forecaster, with its grounders open."""
        return open_forecaster(self, runtime)

    def limits(self, usual: ModelLimits | None = None) -> ModelLimits:
        """Limits on the provider: every leaf at once, and long researches."""
        limits = usual or ModelLimits()
        limits = replace(limits, at_once=max(limits.at_once, 2 * self.concurrency))
        if self.deep_model is None:
            return limits
        return replace(limits, seconds=RESEARCH_SECONDS, total_seconds=2 * RESEARCH_SECONDS)


@dataclass(frozen=True, kw_only=True)
class TreeOptions(GroundingOptions, TreeSettings):
    """Options of the forecaster `tree`, from a run or the command line."""


@dataclass(frozen=True, kw_only=True)
class ThoughtOptions(GroundingOptions, ThoughtSettings):
    """Options of the forecaster `thoughts`: chains, trees, graphs and forests of thoughts."""


SEARCH_SERVER_PORT = 8765
"""Port of the search server when a tunnel leads to it; otherwise any free port is used."""


@dataclass(frozen=True, kw_only=True)
class TreeFolder:
    """Where finished trees and their notebooks are stored."""

    folder: Path
    file: Path | None = None
    """The file for a single tree; None gives every tree its own file in the folder."""

    def path(self, question: str, trial: int, target: str) -> Path:
        """The file of a tree."""
        if self.file is not None:
            return self.file
        return self.folder / f"{for_file_name(question)}-{for_file_name(target)}-{trial}.json"

    def store(self, question: Question, trial: int, target: str, tree: Tree) -> None:
        """Write a finished tree."""
        path = self.path(question.id, trial, target)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_tree(path, tree)

    def notebook(self, leaf: Leaf, trial: int) -> Path:
        """The file of a leaf's notebook, next to the tree's."""
        file = self.path(leaf.tree_question.question.id, trial, leaf.tree_question.target)
        # Where all trials belong to one tree, each has a notebook of its own.
        again = f"-{trial}" if self.file is not None and trial else ""
        return file.with_name(f"{file.stem}_notebooks") / f"{for_file_name(leaf.id)}{again}.ipynb"


@asynccontextmanager
async def open_forecaster(options: GroundingOptions, runtime: Runtime) -> AsyncGenerator[tuple[Forecaster, Runtime]]:
    """The forecaster `tree` or `thoughts` with its runtime; kernels and search server are closed with it.

    Trees and notebooks are stored in the run's folder in the home, or in the single file given.
    """
    spec, watch = runtime.spec, runtime.trees.watch
    kind = "trees" if isinstance(options, TreeOptions) else "thoughts"
    folder = TreeFolder(folder=runtime.settings.home / kind / spec.id)
    if isinstance(options, TreeOptions) and spec.questions.typed:  # One claim that a person typed: one tree, one file.
        file = (runtime.trees.file or folder.folder.with_suffix(".json")).resolve()
        folder = TreeFolder(folder=file.parent, file=file)
    async with AsyncExitStack() as stack:
        runtime, grounder, others = await _grounders(options, runtime, folder, stack)
        if isinstance(options, TreeOptions):
            made = TreeForecaster(
                grounder=grounder,
                fall_backs=others,
                settings=options,
                dollars=spec.budget.question,
                seed=spec.seed,
                store_tree=folder.store,
                on_event=watch,
                run=spec.id,
            )
            yield made, runtime
        elif isinstance(options, ThoughtOptions):
            made = ThoughtsForecaster(
                grounder=grounder,
                fall_backs=others,
                settings=options,
                dollars=spec.budget.question,
                on_event=watch,
            )
            yield made, runtime


async def _grounders(
    options: GroundingOptions, runtime: Runtime, folder: TreeFolder, stack: AsyncExitStack
) -> tuple[Runtime, Grounder, tuple[Grounder, ...]]:
    """The requested grounder, and those that take over if it fails."""
    from foretell.forecasters.tree.grounders.adaptive import FALL_BACKS, AdaptiveGrounder

    wanted = options.grounder
    # The other three need more than the context of a question; those of other packages are made without arguments.
    own = [wanted] if wanted not in ("deep", "notebook", "auto") else []
    simple = [*own, *(FALL_BACKS.get(wanted, ()) if wanted != "auto" else ("search", "agent", "plain"))]
    made: dict[str, Grounder] = {name: load("grounders", name)() for name in simple}
    if wanted in ("deep", "auto"):
        runtime, made["deep"] = await _deep_research(options, runtime, stack)
    if wanted in ("notebook", "auto"):
        try:
            made["notebook"] = await _notebook(options, runtime, folder, stack)
        except InputError as problem:
            if wanted == "notebook":
                raise
            runtime.trees.warnings.append(f"no notebooks: {problem}")
    if wanted == "auto":
        return runtime, AdaptiveGrounder(grounders=made), ()
    return runtime, made[wanted], tuple(made[name] for name in FALL_BACKS.get(wanted, ()))


async def _deep_research(
    options: GroundingOptions, runtime: Runtime, stack: AsyncExitStack
) -> tuple[Runtime, Grounder]:
    """The grounder, and the runtime with a router that can talk to models that do research on their own."""
    from foretell.forecasters.tree.grounders.deep_research import (
        DeepResearchGrounder,
        is_deep_research_model,
        open_search_server,
    )
    from foretell.models.names import is_loopback
    from foretell.models.router import ModelRouter

    model, settings = options.deep_model, runtime.settings
    if model is None or not is_deep_research_model(model):
        return runtime, DeepResearchGrounder(model=model)
    public = settings.addresses.get("mcp")
    if public is None and not is_loopback(settings.addresses.get("openai", "")):
        raise InputError(
            f"{model} has to reach the search on this machine",
            hint=f"set search_server in settings.toml to the address of a tunnel to port {SEARCH_SERVER_PORT}, or use "
            "another model",
        )
    served = open_search_server(public_url=public, port=SEARCH_SERVER_PORT if public else 0)
    server = await stack.enter_async_context(served)
    router = ModelRouter(
        settings.keys,
        journal=runtime.journal,
        prices=runtime.router.prices,
        limits={"openai": options.limits()},
        addresses=settings.addresses,
        wire=lambda written: _wire(written, settings, server),
    )
    await stack.enter_async_context(router)
    return replace(runtime, router=router), DeepResearchGrounder(model=model, server=server)


def _wire(written: str, settings: Settings, server: "SearchServer") -> "ProviderClient":
    from foretell.models.model import load_provider
    from foretell.models.names import ModelName
    from foretell.models.providers.responses import ResearchingModel
    from foretell.models.router import api_key_for, open_provider

    name = ModelName.read(written)
    address = settings.addresses.get(name.provider)
    if name.provider != "openai":
        return open_provider(written, settings.keys, address=address)
    key = api_key_for(name, settings.keys)
    return ResearchingModel(
        address or load_provider("openai").address, key, lambda request: server.address_for(request.slot)
    )


async def _notebook(options: GroundingOptions, runtime: Runtime, folder: TreeFolder, stack: AsyncExitStack) -> Grounder:
    from foretell.forecasters.tree.grounders.notebook import NotebookGrounder
    from foretell.tools.notebook.pool import KernelPool

    pool = KernelPool(most=options.kernels, unsandboxed=options.unsandboxed)
    if runtime.journal.mode == "live":  # A replay runs no cell: it needs no kernel and no sandbox.
        pool: KernelPool = await stack.enter_async_context(pool)
    return NotebookGrounder(
        pool=pool,
        endpoints=_endpoints(runtime),
        journal=runtime.journal,
        save=folder.notebook,
        base=folder.folder,
    )


def _endpoints(runtime: Runtime) -> "list[Endpoint]":
    """Data for notebooks besides the search: series and prices, each answer stored in the journal."""
    from foretell.tools.notebook.endpoints import (
        days_ahead_endpoint,
        journaled_endpoint,
        market_prices_endpoint,
        series_endpoint,
    )

    source = runtime.services.series
    providers: dict[str, str] = {}
    for name in names("series"):
        description: str = getattr(load("series", name), "description", name)
        # A source that has two names is shown under the first.
        if description not in providers.values() and source.supplies(SeriesRef(provider=name, id=name)):
            providers[name] = description
    series = series_endpoint(source, providers, allow_revised=frozenset({"dbnomics"}))
    prices = market_prices_endpoint(runtime.services.prices)
    ahead = days_ahead_endpoint(source, providers)
    return [journaled_endpoint(one, runtime.journal) for one in (series, ahead, prices)]
