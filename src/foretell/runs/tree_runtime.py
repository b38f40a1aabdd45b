"""Opens the forecasters `tree`, `reason` and `thoughts` with their grounders, notebooks, served search and files."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from foretell.data.untrusted import for_file_name
from foretell.forecasters.forecaster import Forecaster
from foretell.forecasters.reason.forecaster import ReasonForecaster
from foretell.forecasters.reason.settings import ReasonSettings
from foretell.forecasters.tree.forecaster import TreeForecaster
from foretell.forecasters.tree.grow.ground import Grounder, Leaf
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.settings import GroundSettings, ThoughtSettings, TreeSettings
from foretell.forecasters.tree.thoughts import ThoughtsForecaster
from foretell.forecasters.tree.tree_file import write_tree
from foretell.frozen import frozen
from foretell.models.limits import ModelLimits
from foretell.plugins import load, names
from foretell.questions.errors import InputError
from foretell.questions.question import Question, SeriesRef
from foretell.runs.grown_trees import tree_file_name
from foretell.runs.runtime import Runtime
from foretell.runs.settings import Settings
from foretell.runs.spec import RunSpec

if TYPE_CHECKING:
    from foretell.forecasters.tree.grounders.deep_research import SearchServer
    from foretell.models.provider import ProviderClient
    from foretell.tools.notebook.endpoints import Endpoint

T = TypeVar("T")
RESEARCH_SECONDS = 3600.0
"""Maximum time for deep research."""


@frozen
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
        """Open the forecaster with its grounders."""
        return open_forecaster(self, runtime)

    def limits(self, usual: ModelLimits | None = None) -> ModelLimits:
        """Return limits that allow all leaves at once and long research."""
        limits = usual or ModelLimits()
        limits = replace(limits, at_once=max(limits.at_once, 2 * self.concurrency))
        if self.deep_model is None:
            return limits
        return replace(limits, seconds=RESEARCH_SECONDS, total_seconds=2 * RESEARCH_SECONDS)


@frozen
class TreeOptions(GroundingOptions, TreeSettings):
    """Options of the forecaster `tree`, from a run or the command line."""


@frozen
class ThoughtOptions(GroundingOptions, ThoughtSettings):
    """Options of the forecaster `thoughts`: chains, trees, graphs and forests of thoughts."""


@frozen
class ReasonOptions(ReasonSettings, GroundingOptions):
    """Options of the forecaster `reason`, from a run or the command line."""


SEARCH_SERVER_PORT = 8765
"""Port of the search server when a tunnel leads to it; otherwise any free port is used."""


@frozen
class TreeFolder:
    """Where finished trees and their notebooks are stored."""

    folder: Path
    file: Path | None = None
    """The file for a single tree; None gives every tree its own file in the folder."""

    def path(self, question: str, trial: int, target: str) -> Path:
        """The file of a tree."""
        if self.file is not None:
            return self.file
        return self.folder / f"{tree_file_name(question, target, trial)}.json"

    def store(self, question: Question, trial: int, target: str, tree: Tree) -> None:
        """Write a finished tree."""
        path = self.path(question.id, trial, target)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_tree(path, tree)

    def notebook(self, leaf: Leaf, trial: int) -> Path:
        """The file of a leaf's notebook, next to the tree's."""
        file = self.path(leaf.tree_question.question.id, trial, leaf.tree_question.target)
        # If all trials belong to one tree, each has its own notebook.
        suffix = f"-{trial}" if self.file is not None and trial else ""
        return file.with_name(f"{file.stem}_notebooks") / f"{for_file_name(leaf.id)}{suffix}.ipynb"


def _dollars_of_question(spec: RunSpec) -> float | None:
    """Return the budget of each question; that of the run if it has one question."""
    return spec.budget.run if spec.budget.question is None and spec.questions.typed else spec.budget.question


@asynccontextmanager
async def open_forecaster(options: GroundingOptions, runtime: Runtime) -> AsyncGenerator[tuple[Forecaster, Runtime]]:
    """Open `tree`, `reason` or `thoughts` with its runtime; kernels and search server are closed with it.

    Trees and notebooks are stored in the run's folder in the home, or in the single file given.
    """
    spec, watch = runtime.spec, runtime.trees.watch
    grows_trees = isinstance(options, TreeOptions | ReasonOptions)
    kind = "trees" if grows_trees else "thoughts"
    folder = TreeFolder(folder=runtime.settings.home / kind / spec.id)
    if grows_trees and spec.questions.typed:  # A typed claim has one tree in one file.
        file = (runtime.trees.file or folder.folder.with_suffix(".json")).resolve()
        folder = TreeFolder(folder=file.parent, file=file)
    async with AsyncExitStack() as stack:
        runtime, grounder, others = await _grounders(options, runtime, folder, stack)
        if isinstance(options, TreeOptions):
            forecaster = TreeForecaster(
                grounder=grounder,
                fall_backs=others,
                settings=options,
                dollars=spec.budget.question,
                seed=spec.seed,
                store_tree=folder.store,
                on_event=watch,
                run=spec.id,
            )
            yield forecaster, runtime
        elif isinstance(options, ReasonOptions):
            # The usual grounder gets the rounds of the settings.
            chosen = None if options.grounder == "search" else grounder
            yield (
                ReasonForecaster(
                    grounder=chosen,
                    fall_backs=others,
                    settings=options,
                    dollars=_dollars_of_question(spec),
                    store_tree=folder.store,
                    run=spec.id,
                ),
                runtime,
            )
        elif isinstance(options, ThoughtOptions):
            forecaster = ThoughtsForecaster(
                grounder=grounder,
                fall_backs=others,
                settings=options,
                dollars=spec.budget.question,
                on_event=watch,
            )
            yield forecaster, runtime


async def _grounders(
    options: GroundingOptions, runtime: Runtime, folder: TreeFolder, stack: AsyncExitStack
) -> tuple[Runtime, Grounder, tuple[Grounder, ...]]:
    """The requested grounder, and those that take over if it fails."""
    from foretell.forecasters.tree.grounders.adaptive import FALL_BACKS, AdaptiveGrounder

    wanted = options.grounder
    # These three need more than the context of a question. Grounders of plug-ins take no arguments.
    plain = [wanted] if wanted not in ("deep", "notebook", "auto") else []
    simple = [*plain, *(FALL_BACKS.get(wanted, ()) if wanted != "auto" else ("search", "agent", "plain"))]
    grounders: dict[str, Grounder] = {name: load("grounders", name)() for name in simple}
    if wanted in ("deep", "auto"):
        runtime, grounders["deep"] = await _deep_research(options, runtime, stack)
    if wanted in ("notebook", "auto"):
        try:
            grounders["notebook"] = await _notebook(options, runtime, folder, stack)
        except InputError as problem:
            if wanted == "notebook":
                raise
            runtime.trees.warnings.append(f"no notebooks: {problem}")
    if wanted == "auto":
        return runtime, AdaptiveGrounder(grounders=grounders), ()
    return runtime, grounders[wanted], tuple(grounders[name] for name in FALL_BACKS.get(wanted, ()))


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
            f"{model} must be able to reach the search server on this machine",
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
        wire=lambda name: _open_client(name, settings, server),
    )
    await stack.enter_async_context(router)
    return replace(runtime, router=router), DeepResearchGrounder(model=model, server=server)


def _open_client(model: str, settings: Settings, server: "SearchServer") -> "ProviderClient":
    from foretell.models.names import ModelName
    from foretell.models.providers.loading import load_provider
    from foretell.models.providers.responses import ResearchingModel
    from foretell.models.router import api_key_for, open_provider

    name = ModelName.read(model)
    address = settings.addresses.get(name.provider)
    if name.provider != "openai":
        return open_provider(model, settings.keys, address=address)
    key = api_key_for(name, settings.keys)
    return ResearchingModel(
        address or load_provider("openai").address, key, lambda request: server.address_for(request.slot)
    )


async def _notebook(options: GroundingOptions, runtime: Runtime, folder: TreeFolder, stack: AsyncExitStack) -> Grounder:
    from foretell.forecasters.tree.grounders.notebook import NotebookGrounder
    from foretell.tools.notebook.pool import KernelPool

    pool = KernelPool(most=options.kernels, unsandboxed=options.unsandboxed)
    if runtime.journal.mode == "live":  # A replay runs no notebook cell, so it needs no kernel.
        pool: KernelPool = await stack.enter_async_context(pool)
    return NotebookGrounder(
        pool=pool,
        endpoints=_endpoints(runtime),
        journal=runtime.journal,
        save=folder.notebook,
        base=folder.folder,
    )


def _endpoints(runtime: Runtime) -> "list[Endpoint]":
    """Return data for notebooks besides search: series and prices, with each answer stored in the journal."""
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
        # Show a source that has two names under the first.
        if description not in providers.values() and source.supplies(SeriesRef(provider=name, id=name)):
            providers[name] = description
    series = series_endpoint(source, providers, allow_revised=frozenset({"dbnomics"}))
    prices = market_prices_endpoint(runtime.services.prices)
    ahead = days_ahead_endpoint(source, providers)
    return [journaled_endpoint(endpoint, runtime.journal) for endpoint in (series, ahead, prices)]
