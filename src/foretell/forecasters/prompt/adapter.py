"""Runs any forecaster under the same rules: the shared context as its opening material, its tools on or off."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.forecaster import AdmitAll, CannotForecast, Context, Forecaster
from foretell.forecasters.prompt.prediction_context import PredictionContext, PredictionContexts
from foretell.forecasters.prompt.rendering import BOTH, ContextView, material, read_view, readable
from foretell.forecasters.prompt.summaries import words
from foretell.models.model import ToolSpec
from foretell.models.structured_output import closed_object
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.questions.trace import EmitEvent
from foretell.tools.fence import FencedTools
from foretell.tools.rules import FenceRules
from foretell.tools.tool import WEB_SEARCH, SourceItem, ToolMaterial, required_text

# The sources of a context as the only thing that can be searched: for forecasters whose parts do not all read it.

INSTANT = timedelta(microseconds=1)
SPEC = ToolSpec(
    name=WEB_SEARCH,
    description=(
        "Search the sources that were gathered for this question; nothing else can be reached. Returns those that "
        "share words with the query, the closest first, or all of them where none does."
    ),
    parameters=closed_object({"query": {"type": "string", "description": "The words to search for."}}),
)


@dataclass(frozen=True, kw_only=True)
class ContextSearchTool:
    """A tool that searches a context and nothing else."""

    context: PredictionContext
    spec: ToolSpec = SPEC

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """Return the sources that match the query, as they were when the context was made."""
        wanted = words(required_text(arguments, "query"))
        shared = [(len(wanted & words(f"{one.title} {one.summary}")), one) for one in self.context.sources]
        fitting = [(n, one) for n, one in shared if n] or shared
        ordered = sorted(fitting, key=lambda pair: (-pair[0], pair[1].rank))
        # Without their addresses, which today may lead to other pages; stored just before the moment.
        captured = self.context.as_of.at - INSTANT
        items = (SourceItem(title=s.title, text=f"{s.summary} ({s.url})", captured=captured) for _, s in ordered)
        return ToolMaterial(heading="Sources:", items=tuple(items))


def context_toolbox(context: PredictionContext, emit: EmitEvent, *, searchable: bool = True) -> FencedTools:
    """A toolbox over the sources of a context; it has no tool if there are no sources or they may not be searched."""
    tools = (ContextSearchTool(context=context),) if searchable and context.sources else ()
    return FencedTools.around(tools, FenceRules(as_of=context.as_of, question=context.question, emit=emit), AdmitAll())


CLAIRVOYANT = "+clairvoyant"
GATHERED = "The following was gathered for this question beforehand. Evidence from it counts as part of the question."


@dataclass(frozen=True, kw_only=True)
class ContextAdapter:
    """Shows another forecaster the same context that all others are shown.

    The material is the same text, byte for byte, that a single prompt contains; it comes first in the question's
    background. If the market is hidden, the question carries no quotes and no tool for prices is offered.
    """

    forecaster: Forecaster
    contexts: PredictionContexts
    view: ContextView | str = BOTH
    tools: bool = True
    """Whether it may search further by itself; if not, it can only search the context's own sources."""
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "view", read_view(self.view))

    @property
    def name(self) -> str:
        """The name shown in tables."""
        tools = "with tools" if self.tools else "without tools"
        return self.label or f"{self.forecaster.name} on context {self.shown.name} {tools}"

    @property
    def shown(self) -> ContextView:
        """The view as a `ContextView`."""
        return read_view(self.view)

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Return the inner forecaster's forecast under this adapter's name."""
        shared = await self.contexts.of(question, context.as_of)
        shown = self._shown_question(readable(shared) if context.marked else shared)
        surroundings = self._surroundings(shared, question, context)
        try:
            made = await self._inner().forecast(shown, surroundings)
        except CannotForecast as reason:
            raise CannotForecast(str(reason), forecaster=self._marked(reason.forecaster)) from reason
        named = self._marked(made.forecaster)
        return replace(made, forecaster=named, trace=made.trace or f"context {shared.digest}")

    def _marked(self, inner: str) -> str:
        """This adapter's name, marked as clairvoyant if the inner forecaster's name is."""
        return self.name + CLAIRVOYANT * inner.endswith(CLAIRVOYANT)

    def _inner(self) -> Forecaster:
        """The inner forecaster; without tools, a belief agent's instructions say that there is nothing to look up."""
        if isinstance(self.forecaster, BeliefAgent) and not self.tools:
            return replace(self.forecaster, variant=replace(self.forecaster.variant, tools=False, steps=1))
        return self.forecaster

    def _shown_question(self, shared: PredictionContext) -> Question:
        question = shared.question
        if not self.shown.market:
            question = replace(question, targets=tuple(replace(target, snapshot=None) for target in question.targets))
        shown = material(shared, self.shown)
        parts = [GATHERED, shown, question.background] if shown else [question.background]
        return replace(question, background="\n\n".join(filter(None, parts)))

    def _surroundings(self, shared: PredictionContext, question: Question, context: Context) -> Context:
        """The same context with another toolbox.

        Tools see the question as it was asked. Otherwise the addresses of its sources, now in its background, would
        count as pages that decide it and be closed.
        """
        if not self.tools:

            def sources(_: Question, run: Context) -> FencedTools:
                return context_toolbox(shared, run.emit, searchable=self.shown.sources)

            return replace(context, tools=sources)
        make = context.tools
        # Only markets have a tool for prices.
        seen = question if self.shown.market else replace(question, kind="dataset")

        def tools(_: Question, run: Context) -> FencedTools:
            return make(seen, run)

        return replace(context, tools=tools)


ADAPTER_OPTIONS = ("view", "tools", "label")


def on_context(forecaster: Forecaster, options: Mapping[str, Any], contexts: PredictionContexts) -> ContextAdapter:
    """Wrap a forecaster so that it uses the same contexts; an unknown or wrong option raises an error that names it."""
    for name in options:
        if name not in ADAPTER_OPTIONS:
            hint = f"options are {', '.join(ADAPTER_OPTIONS)}"
            raise InputError(f"a forecaster on a context has no option {name!r}", column="options", hint=hint)
    if not isinstance(options.get("tools", True), bool):
        raise InputError(f"tools is {options['tools']!r}, write true or false", column="options")
    return ContextAdapter(forecaster=forecaster, contexts=contexts, **options)
