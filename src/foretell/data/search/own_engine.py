"""A function or object of a program as a search engine, as the parameter `search` takes it."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Protocol, cast

from foretell.data.search.engine import CannotSearch, SearchHit
from foretell.data.untrusted import for_log
from foretell.frozen import frozen
from foretell.own_objects import name_object, own_object
from foretell.plugins import takes_arguments
from foretell.questions.as_of import AsOf, instant
from foretell.questions.errors import InputError, known_names

log = logging.getLogger(__name__)
Hits = Sequence[SearchHit | Mapping[str, Any]]
"""Results: `SearchHit`, or mappings with its fields, of which only `url` and `title` are required."""
SearchFunction = Callable[..., Hits] | Callable[..., Awaitable[Hits]]
"""A function of a query, of a query and the `as_of` of the forecast, or of these and the number of results wanted."""


class HasSearch(Protocol):
    """An object with a method `search`."""

    @property
    def search(self) -> SearchFunction:
        """The function that searches."""
        ...


AnySearch = str | SearchFunction | HasSearch
"""A search engine by name, a function, or an object with a method `search(query, as_of, limit)`."""


def engine_name(engine: AnySearch) -> str:
    """Return the name of a search engine in settings; that of a function or object is `python:NAME`."""
    if isinstance(engine, str):
        return engine
    OwnSearch.of(engine)  # Raises now instead of in every trial.
    return name_object("search_engines", engine)


@frozen
class OwnSearch:
    """Calls a function or the method `search` of an object. Unless it is `async`, it runs in a thread."""

    function: Callable[..., Any]
    counts: int
    """How many of query, date and limit it takes."""
    filters_dates: bool
    name: str = "python"

    @classmethod
    def of(cls, engine: Any, name: str = "python") -> "OwnSearch":
        """Wrap a function or object. Raises `InputError` if it cannot be a search engine.

        It can filter by date if its attribute `filters_dates` says so or, without that attribute, if it takes the date.
        """
        function = getattr(engine, "search", engine)
        if not callable(function):
            hint = "give a name, a function of a query, or an object with a method search(query, as_of, limit)"
            raise InputError(f"{engine!r} is not a search engine", column="search", hint=hint)
        counts = next((count for count in (3, 2, 1) if takes_arguments(function, count)), 0)
        if not counts:
            hint = "it takes the query, or the query, the date and the number of results"
            raise InputError(f"{function!r} cannot be a search engine", column="search", hint=hint)
        filters_dates = bool(getattr(engine, "filters_dates", counts > 1))
        return cls(function=function, counts=counts, filters_dates=filters_dates, name=name)

    async def search(self, query: str, as_of: AsOf, limit: int = 10) -> list[SearchHit]:
        """Return at most `limit` results."""
        arguments = (query, as_of, limit)[: self.counts]
        try:
            if inspect.iscoroutinefunction(self.function):
                result = await self.function(*arguments)
            else:
                result = await asyncio.to_thread(self.function, *arguments)
                result = await result if inspect.isawaitable(result) else result
        except CannotSearch:
            raise
        except Exception as error:
            # The text is not for the model: in a backtest, it could be about later events.
            log.warning("the search engine %s failed: %s: %s", self.name, type(error).__name__, for_log(str(error)))
            raise CannotSearch(f"the engine failed ({type(error).__name__})") from error
        if not isinstance(result, Sequence) or isinstance(result, str):
            hint = "return a list of foretell.types.SearchHit"
            raise InputError(f"{self.name} returned {type(result).__name__}, no list of results", hint=hint)
        return [_hit(hit, self.name) for hit in cast("Sequence[Any]", result)[:limit]]


def _hit(hit: Any, engine: str) -> SearchHit:
    if isinstance(hit, SearchHit):
        return hit
    known = [field.name for field in fields(SearchHit)]
    if not isinstance(hit, Mapping) or not {"url", "title"} <= {*cast("Mapping[str, Any]", hit)}:
        raise InputError(f"{engine} returned {hit!r}", hint="a result needs at least `url` and `title`")
    given = dict(cast("Mapping[str, Any]", hit))
    if wrong := [name for name in given if name not in known]:
        raise InputError(f"{engine} returned a result with {wrong[0]!r}", hint=known_names(wrong[0], known))
    try:
        moments = {
            name: None if given.get(name) is None else instant(given[name]) for name in ("published", "text_as_of")
        }
    except ValueError as error:
        raise InputError(f"{engine} returned a result whose date {error}") from None
    row: dict[str, Any] = (
        {"snippet": "", "dating": "none" if moments["published"] is None else "published"} | given | moments
    )
    return SearchHit(**row)


def own_engine(name: str) -> OwnSearch:
    """Return the search engine that a program gave this name. Raises `InputError` if it is of another program."""
    return OwnSearch.of(own_object("search_engines", name), name)
