"""The contexts of a run: those of its question set, or those that its search engines gather."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from hashlib import sha256
from typing import Any, cast

from foretell.data.datasets.question_set import AskedKey, asked_key, questions_digest
from foretell.forecasters.forecaster import reads_context
from foretell.forecasters.prompt.builder import ContextBuilder, ContextUnavailable
from foretell.forecasters.prompt.prediction_context import PredictionContext, PredictionContexts
from foretell.forecasters.prompt.rendering import ContextView, missing_part, read_view
from foretell.frozen import frozen
from foretell.number_text import plural
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.runs.question_sets import Benchmark
from foretell.runs.runtime import (
    CONTEXT_OPTION,
    PlainRuntime,
    Runtime,
    forecaster_name,
    forecaster_options,
    live_questions,
)
from foretell.runs.spec import RunSpec
from foretell.runs.store import ContextRow, RunStore

STORED, GATHERED = "+sources", "+search"
"""Ends of the digest of a run's questions if they are shown with contexts. Runs of older versions have neither: they
showed the question alone, and continue so."""


def run_digest(
    spec: RunSpec, questions: Sequence[Question], contexts: Mapping[AskedKey, PredictionContext], now: datetime
) -> str:
    """Return the digest of a run's questions with the contexts that they are shown with."""
    digest = questions_digest(questions, now)
    keys = map(asked_key, questions)
    if shown := sorted(context.digest for key in keys if (context := contexts.get(key))):
        return sha256("\n".join([digest, *shown]).encode()).hexdigest()[: len(digest)] + STORED
    return digest + GATHERED if gathers_sources(spec) else digest


def contexts_of_set(spec: RunSpec, benchmark: Benchmark, questions: Sequence[Question]) -> dict[AskedKey, Any]:
    """Return the contexts that a question set has for a run's questions; none if its forecaster reads no context."""
    if CONTEXT_OPTION not in spec.options and not reads_context(forecaster_name(spec)):
        return {}
    contexts = {asked_key(question): benchmark.contexts.get(question) for question in questions}
    return {key: context for key, context in contexts.items() if context is not None}


def check_views(
    spec: RunSpec, questions: Sequence[Question], contexts: Mapping[AskedKey, PredictionContext]
) -> tuple[str, ...]:
    """Return a note on questions that lack a part of the view that a run names.

    Raises InputError if no question has it, because then the run would differ in nothing from one without that part.
    """
    view, gathers = named_view(spec), gathers_sources(spec)
    if view is None or not questions:
        return ()
    alone = (PredictionContext(question=question, as_of=question.as_of_in("live")) for question in questions)
    shown = [contexts.get(asked_key(context.question), context) for context in alone]
    wanted = ContextView(sources=view.sources and not gathers, market=view.market)
    missing = [problem for context in shown if (problem := missing_part(context, wanted))]
    problem = f"the view {view.name!r} cannot be shown"
    if len(missing) == len(questions):
        hint = (
            "name search engines, or use questions that come with sources: a file of Prophet Arena, arena:NAME"
            if wanted.sources and not contexts
            else "view: none shows the question alone"
        )
        raise InputError(f"{problem}: {missing[0]}, nor for any other", column=view_column(spec), hint=hint)
    note = f"{problem} for {plural(len(missing), 'question')}, which will fail: {missing[0]}" if missing else ""
    return (note,) if note and spec.mode == "backtest" else ()


def context_rows(contexts: Iterable[PredictionContext]) -> list[ContextRow]:
    """Return contexts as the store of runs keeps them."""
    return [ContextRow(context.question, context.digest, context.to_json()) for context in contexts]


def stored_contexts(store: RunStore, run: str) -> list[PredictionContext]:
    """Return the contexts of a run, each verified to be unchanged."""
    return [PredictionContext.from_json(body, digest=digest) for digest, body in store.contexts(run)]


def contexts_of(spec: RunSpec, store: RunStore, runtime: PlainRuntime) -> PredictionContexts:
    """Return the contexts that a run shows: those of an arena, those stored with the run, or those it gathers."""
    live = live_questions(spec)
    if live is not None:
        return live.contexts(spec, store)
    digest = spec.questions.digest
    gathers = digest.endswith(GATHERED) or (not digest and gathers_sources(spec))
    return RunContexts(store=store, runtime=runtime, gathers=gathers)


@frozen
class RunContexts:
    """The contexts that a run has; missing ones are gathered if the run searches for them."""

    runtime: PlainRuntime
    gathers: bool
    given: Mapping[AskedKey, PredictionContext] = field(default_factory=dict[AskedKey, PredictionContext])
    store: RunStore | None = None
    """Where contexts are read and gathered ones are stored; None stores none, as in a study."""

    async def of(self, question: Question, as_of: AsOf) -> PredictionContext | None:
        """Return the context; None if there is none for the question. Raises `CannotForecast` if gathering fails."""
        context = self.given.get(asked_key(question)) or await self._stored(question)
        if context is not None or not self.gathers:
            return context
        context = await gather_context(self.runtime, question, as_of)
        if self.store is not None:
            await self.store.aside(self.store.keep_contexts, self.runtime.spec.id, context_rows([context]))
        return context

    async def _stored(self, question: Question) -> PredictionContext | None:
        if self.store is None:
            return None
        body = await self.store.aside(self.store.context, self.runtime.spec.id, question)
        return None if body is None else PredictionContext.from_json(body)


async def gather_context(runtime: PlainRuntime, question: Question, as_of: AsOf) -> PredictionContext:
    """Return the context that the models and search engines of a run gather, the same each time.

    Raises `ContextUnavailable` if they gather none.
    """
    if not isinstance(runtime, Runtime) or runtime.services.engine is None:
        raise ContextUnavailable("sources are gathered by a run with a model and a search engine")
    builder = ContextBuilder(
        engine=runtime.services.engine,
        models=runtime.models,
        model=runtime.router.within(runtime.budget_of(question)),
        journal=runtime.journal,
        prices=runtime.router.prices,
    )
    return (await builder.build(question, as_of)).context


def view_column(spec: RunSpec) -> str:
    """Return the setting that names the view of a run."""
    return "options.context.view" if CONTEXT_OPTION in spec.options else "options.view"


def named_view(spec: RunSpec) -> ContextView | None:
    """Return the view that the options of a run name."""
    shown = spec.options.get(CONTEXT_OPTION)
    options = cast("Mapping[str, Any]", shown) if isinstance(shown, Mapping) else forecaster_options(spec)
    view = options.get("view")
    return read_view(view) if isinstance(view, str) else None


def gathers_sources(spec: RunSpec) -> bool:
    """Whether the search engines of a run gather sources for questions that come without."""
    view = named_view(spec)
    shown = CONTEXT_OPTION in spec.options or forecaster_name(spec) == "prompt"
    return shown and bool(spec.search) and (view is None or view.sources)
