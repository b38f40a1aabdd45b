"""Runs any forecaster with a shared prediction context in its prompt, with or without its own tools."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.forecaster import AdmitAll, CannotForecast, Context, Forecaster
from foretell.forecasters.prompt.forecaster import check_view
from foretell.forecasters.prompt.prediction_context import PredictionContext
from foretell.forecasters.prompt.rendering import BOTH, ContextView, material, read_view, readable
from foretell.forecasters.prompt.summaries import words
from foretell.frozen import frozen
from foretell.models.model import ToolSpec
from foretell.models.structured_output import closed_object
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.forecast import UNFILTERED_SUFFIX, Forecast
from foretell.questions.question import Question
from foretell.questions.trace import EmitEvent
from foretell.tools.leakage_filter import FilteredTools
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.tool import WEB_SEARCH, SourceItem, ToolMaterial, required_text

# A search over the sources of a context alone, for forecasters without other tools.

INSTANT = timedelta(microseconds=1)
SPEC = ToolSpec(
    name=WEB_SEARCH,
    description=(
        "Search the sources that were gathered for this question; nothing else can be reached. Returns those that "
        "share words with the query, the closest first, or all of them where none does."
    ),
    parameters=closed_object({"query": {"type": "string", "description": "The words to search for."}}),
)


@frozen
class ContextSearchTool:
    """A tool that searches a context and nothing else."""

    context: PredictionContext
    spec: ToolSpec = SPEC

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """Return the sources that match the query, as stored in the context."""
        wanted = words(required_text(arguments, "query"))
        shared = [(len(wanted & words(f"{source.title} {source.summary}")), source) for source in self.context.sources]
        matching = [(n, source) for n, source in shared if n] or shared
        ordered = sorted(matching, key=lambda pair: (-pair[0], pair[1].rank))
        # Without URL fields, because the pages may have changed since. Dated just before the cutoff.
        captured = self.context.as_of.at - INSTANT
        items = (SourceItem(title=s.title, text=f"{s.summary} ({s.url})", captured=captured) for _, s in ordered)
        return ToolMaterial(heading="Sources:", items=tuple(items))


def context_toolbox(context: PredictionContext, emit: EmitEvent, *, searchable: bool = True) -> FilteredTools:
    """Return a toolbox over the sources of a context; it is empty without sources or if they may not be searched."""
    tools = (ContextSearchTool(context=context),) if searchable and context.sources else ()
    return FilteredTools.around(
        tools, LeakageRules(as_of=context.as_of, question=context.question, emit=emit), AdmitAll()
    )


GATHERED = "The following was gathered for this question beforehand. Evidence from it counts as part of the question."


@frozen
class ContextAdapter:
    """Gives another forecaster the shared prediction context.

    The material is exactly the text of the single prompt; it comes first in the question's background. If the market is
    hidden, the question has no quotes and there is no tool for prices.
    """

    forecaster: Forecaster
    view: ContextView | str | None = None
    """The parts of the context that are shown, as for `PromptForecaster`."""
    tools: bool = True
    """Whether it may use its own tools; if not, it can only search the context's sources."""
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "view", self.view and read_view(self.view))

    @property
    def name(self) -> str:
        """The name shown in tables."""
        tools = "with tools" if self.tools else "without tools"
        return self.label or f"{self.forecaster.name} on context {self.shown.name} {tools}"

    @property
    def shown(self) -> ContextView:
        """The view as a `ContextView`."""
        return read_view(self.view or BOTH)

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Return the inner forecaster's forecast under this adapter's name."""
        shared = await context.gathered(question)
        check_view(shared, self.view, context)
        shown = self._shown_question(readable(shared) if context.marked else shared)
        inner_context = self._inner_context(shared, question, context)
        try:
            forecast = await self._inner().forecast(shown, inner_context)
        except CannotForecast as reason:
            raise CannotForecast(str(reason), forecaster=self._marked(reason.forecaster)) from reason
        name = self._marked(forecast.forecaster)
        return replace(forecast, forecaster=name, trace=forecast.trace or f"context {shared.digest}")

    def _marked(self, inner: str) -> str:
        """Return this adapter's name, marked as unfiltered if the inner forecaster's name is."""
        return self.name + UNFILTERED_SUFFIX * inner.endswith(UNFILTERED_SUFFIX)

    def _inner(self) -> Forecaster:
        """Return the inner forecaster; without tools, a belief agent's prompt does not mention research."""
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

    def _inner_context(self, shared: PredictionContext, question: Question, context: Context) -> Context:
        """Return the same context with another toolbox.

        Tools see the original question. Otherwise the addresses of the sources in its background would be blocked as
        pages that decide it.
        """
        if not self.tools:

            def sources(_: Question, run: Context) -> FilteredTools:
                return context_toolbox(shared, run.emit, searchable=self.shown.sources)

            return replace(context, tools=sources)
        make = context.tools
        # Only markets have a tool for prices.
        seen = question if self.shown.market else replace(question, kind="dataset")

        def tools(_: Question, run: Context) -> FilteredTools:
            return make(seen, run)

        return replace(context, tools=tools)


ADAPTER_OPTIONS = ("view", "tools", "label")


def on_context(forecaster: Forecaster, options: Mapping[str, Any]) -> ContextAdapter:
    """Wrap a forecaster so that it is shown the contexts. Raises `InputError` for an unknown or wrong option."""
    for name in options:
        if name not in ADAPTER_OPTIONS:
            hint = f"options are {', '.join(ADAPTER_OPTIONS)}"
            raise InputError(f"a forecaster on a context has no option {name!r}", column="options", hint=hint)
    if not isinstance(options.get("tools", True), bool):
        raise InputError(f"tools is {options['tools']!r}, write true or false", column="options")
    return ContextAdapter(forecaster=forecaster, **options)
