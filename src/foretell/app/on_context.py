"""Entries of an arena among other runs: what they are shown, and the rules they all answer under."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from foretell.app.clock import clock_of
from foretell.app.settings import Settings
from foretell.arena.executor import Answer
from foretell.arena.live.answers import BookContexts, under_the_rules
from foretell.arena.live.book import Book
from foretell.arena.live.spec import arena_of
from foretell.arena.spec import RunSpec
from foretell.arena.store import Store
from foretell.forecasters.context.adapter import Attempts
from foretell.forecasters.context.contexts import Contexts, QuestionAlone
from foretell.forecasters.context.options import on_context
from foretell.forecasters.forecaster import Forecaster
from foretell.questions.problems import InputError

CONTEXT = "context"
"""The name of the forecaster that only reads a context, and of the option that shows it to another."""


class Trying(Forecaster, Attempts, Protocol):
    """A forecaster that ends every trial in a value."""


Dress = Callable[[Trying], Trying]
"""Shows a forecaster what its run is to be shown."""


def as_it_is(forecaster: Trying) -> Trying:
    """Shown nothing more."""
    return forecaster


def own_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the forecaster itself, without what it is shown."""
    return {name: value for name, value in options.items() if name != CONTEXT}


def contexts_of(spec: RunSpec, store: Store) -> Contexts:
    """What is shown: of an arena what its book holds, of other runs the question alone."""
    arena = arena_of(spec)
    return QuestionAlone() if arena is None else BookContexts(Book(store.database, arena))


def dressing(spec: RunSpec, store: Store) -> Dress:
    """Shows the context to a forecaster whose options ask for it."""
    if CONTEXT not in spec.options:
        return as_it_is
    shown = shown_in(spec.options)
    contexts = contexts_of(spec, store)
    return lambda forecaster: on_context(forecaster, shown, contexts)


def shown_in(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """How a forecaster is shown the context."""
    shown = options[CONTEXT]
    if not isinstance(shown, Mapping):
        raise InputError(f"context is {shown!r}, write e.g. {{view: both, tools: false}}", column="options.context")
    return cast("Mapping[str, Any]", shown)


def ruled(answer: Answer, spec: RunSpec, settings: Settings, store: Store) -> Answer:
    """An entry of an arena answers in time and adds up; other runs answer as they do."""
    arena = arena_of(spec)
    return answer if arena is None else under_the_rules(answer, Book(store.database, arena), clock_of(settings))
