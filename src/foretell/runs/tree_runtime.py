"""Where trees are grown: the forecaster with its grounders, notebooks, served search and files."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from foretell.forecasters.tree.forecaster import TreeForecaster
from foretell.forecasters.tree.grow.ground import Grounder, Leaf
from foretell.forecasters.tree.proposition import Tree
from foretell.forecasters.tree.thoughts import ThoughtSettings, ThoughtsForecaster
from foretell.forecasters.tree.tree_file import write_tree
from foretell.models.model import Reply, Request
from foretell.plugins import load, names
from foretell.questions.errors import InputError
from foretell.questions.question import Question, SeriesRef
from foretell.questions.trace import EmitEvent, ignore_event
from foretell.runs.runtime import Runtime
from foretell.runs.settings import Settings
from foretell.runs.tree_options import ThoughtOptions, TreeOptions

if TYPE_CHECKING:
    from foretell.forecasters.tree.grounders.deep_research import SearchServer
    from foretell.models.router import ProviderClient
    from foretell.tools.notebook.endpoints import Endpoint

SEARCH_SERVER_PORT = 8765
"""Where the search is served when a tunnel leads to it; without one any free port will do."""


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
        file = self.path(leaf.tree_question.question.id, trial, leaf.tree_question.target)
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
    async def trees(self) -> AsyncGenerator[tuple[TreeForecaster, Runtime]]:
        """The forecaster that grows trees and the runtime it works with; kernels and served search close with it."""
        spec = self.bench.spec
        async with AsyncExitStack() as stack:
            bench, grounder = await self._grounder(stack)
            settings = self.options.settings(spec.budget.question, spec.seed)
            forecaster = TreeForecaster(
                grounder=grounder, settings=settings, store_tree=self.shelf.keep, on_event=self.watch
            )
            yield forecaster, bench

    @asynccontextmanager
    async def thoughts(self, settings: ThoughtSettings) -> AsyncGenerator[tuple[ThoughtsForecaster, Runtime]]:
        """The forecaster that thinks over the same grounders, and the runtime it works with."""
        async with AsyncExitStack() as stack:
            bench, grounder = await self._grounder(stack)
            yield ThoughtsForecaster(grounder=grounder, settings=settings, on_event=self.watch), bench

    async def _grounder(self, stack: AsyncExitStack) -> tuple[Runtime, Grounder]:
        from foretell.forecasters.tree.grounders.adaptive import AdaptiveGrounder

        wanted = self.options.grounder
        bench = self.bench
        # The other three need more than the context of a question; those of other packages are made without arguments.
        simple = [wanted] if wanted not in ("deep", "notebook", "auto") else ["search", "agent", "plain"]
        made: dict[str, Grounder] = {name: load("grounders", name)() for name in simple}
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
        return await self._researching(stack, bridge), DeepResearchGrounder(model=model, server=bridge)

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


def open_tree(options: TreeOptions, runtime: Runtime) -> AbstractAsyncContextManager[tuple[TreeForecaster, Runtime]]:
    """The forecaster `tree`. Each tree is stored in the home, in a folder of the run, or in the one file named."""
    folder = TreeFolder(folder=runtime.settings.home / "trees" / runtime.spec.id)
    if runtime.spec.questions.typed:  # One claim that a person typed: one tree, in one file.
        file = (runtime.trees.file or folder.folder.with_suffix(".json")).resolve()
        folder = TreeFolder(folder=file.parent, file=file)
    return _tree_runtime(runtime, options, folder).trees()


def open_thoughts(
    options: ThoughtOptions, runtime: Runtime
) -> AbstractAsyncContextManager[tuple[ThoughtsForecaster, Runtime]]:
    """The forecaster `thoughts`. Notebooks are stored in the home, in a folder of the run."""
    folder = TreeFolder(folder=runtime.settings.home / "thoughts" / runtime.spec.id)
    settings = options.settings(runtime.spec.budget.question)
    return _tree_runtime(runtime, options.grounding, folder).thoughts(settings)


def _tree_runtime(runtime: Runtime, options: TreeOptions, folder: TreeFolder) -> TreeRuntime:
    output = runtime.trees
    return TreeRuntime(
        bench=runtime,
        settings=runtime.settings,
        options=options,
        shelf=folder,
        watch=output.watch,
        warnings=output.warnings,
    )


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
    from foretell.models.provider import load_provider
    from foretell.models.providers.openai_responses import OpenAIResponses
    from foretell.models.router import api_key_for, open_provider

    name = ModelName.read(written)
    chat = open_provider(written, settings.keys, address=settings.addresses.get(name.provider))
    if name.provider != "openai":
        return chat
    address = settings.addresses.get("openai") or load_provider("openai").address
    return ResearchAwareProvider(
        chat, OpenAIResponses(address, api_key_for(name, settings.keys), lambda one: bridge.address_for(one.slot))
    )


def _endpoints(bench: Runtime) -> "list[Endpoint]":
    """Data for notebooks besides the search: series and prices, each answer kept in the journal."""
    from foretell.tools.notebook.endpoints import journaled_endpoint, market_prices_endpoint, series_endpoint

    source = bench.equipment.series
    providers: dict[str, str] = {}
    for name in names("series"):
        description: str = getattr(load("series", name), "description", name)
        # A source that has two names is shown under the first.
        if description not in providers.values() and source.supplies(SeriesRef(provider=name, id=name)):
            providers[name] = description
    series = series_endpoint(source, providers, allow_revised=frozenset({"dbnomics"}))
    prices = market_prices_endpoint(bench.equipment.prices)
    return [journaled_endpoint(one, bench.journal) for one in (series, prices)]
