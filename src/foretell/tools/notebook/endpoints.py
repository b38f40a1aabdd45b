"""Endpoints that notebooks can call by path: filtered tools, series, prices, and tables stored on this machine."""

import csv
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import numpy as np

from foretell.data.markets.market import MarketRef, PriceSource
from foretell.data.series.series import SeriesSource
from foretell.frozen import frozen
from foretell.models.journal import Journal
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf, instant
from foretell.questions.errors import InputError
from foretell.questions.question import SeriesRef
from foretell.questions.trace import EmitEvent, ignore_event
from foretell.tools.dates.addresses import late_link
from foretell.tools.dates.find import find_dates
from foretell.tools.dates.folding import fold
from foretell.tools.dates.periods import late_period
from foretell.tools.dates.stamps import is_after
from foretell.tools.dates.words import PLAN_KEY
from foretell.tools.journal import stored_result
from foretell.tools.leakage_filter import AdmittedSource, FilteredTools
from foretell.tools.post_cutoff_text import tells_later_events
from foretell.tools.series import WithProvenance, known_ahead, known_prices, known_series
from foretell.tools.tool import FETCH_WIKIPEDIA, LOOKUP_URL, WEB_SEARCH, ToolFailed

ParameterKind = Literal["text", "number", "date"]


@frozen
class Parameter:
    """One parameter of an endpoint."""

    name: str
    meaning: str
    kind: ParameterKind = "text"
    needed: bool = False

    def read(self, value: Any) -> str | float | date:
        """Parse a value as this parameter's kind; raise `ToolFailed` if it does not fit."""
        if self.kind == "number":
            if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
                return value
        elif isinstance(value, str | int) and not isinstance(value, bool):
            text = str(value).strip()
            if self.kind == "text" and 0 < len(text) <= 1_000:
                return text
            if self.kind == "date":
                try:
                    return date.fromisoformat(text)
                except ValueError:
                    pass
        like = {"text": "a text", "number": "a number", "date": "a date such as '2025-10-26'"}[self.kind]
        raise ToolFailed(f"the parameter {self.name!r} must be {like}")


@frozen
class Endpoint:
    """The handler of one path. It enforces the cutoff: everything it returns was known at that time."""

    path: str
    """The path, such as `/series/observations`."""
    documentation: str
    """What it returns, where the data comes from, and an example; the first line is a summary."""
    parameters: tuple[Parameter, ...]
    call: Callable[[Mapping[str, Any], AsOf], Awaitable[Any]]
    """Return JSON-serializable data with nothing later than the cutoff, or raise `ToolFailed`.

    A failure raised from another error is withheld in a backtest, because its cause can reveal later events.
    """


def check_parameters(endpoint: Endpoint, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parsed parameters of a call. Raises `ToolFailed`, which names the valid parameters, on an error."""
    known = {parameter.name: parameter for parameter in endpoint.parameters}
    for name in params:
        if name not in known:
            raise ToolFailed(f"{endpoint.path} has no parameter {name!r}; it takes: {', '.join(known) or 'none'}")
    for name, parameter in known.items():
        if parameter.needed and params.get(name) is None:
            raise ToolFailed(f"{endpoint.path} needs the parameter {name!r} ({parameter.meaning})")
    return {name: known[name].read(value) for name, value in params.items() if value is not None}


def describe_endpoint(endpoint: Endpoint) -> str:
    """Return the full documentation of an endpoint."""
    rows = [
        f"  {parameter.name} ({parameter.kind}{', needed' if parameter.needed else ''})"
        + (f": {parameter.meaning}" if parameter.meaning else "")
        for parameter in endpoint.parameters
    ]
    return "\n".join([endpoint.path, endpoint.documentation.strip(), "Parameters:", *(rows or ["  none"])])


def summarize_endpoints(endpoint: Endpoint) -> str:
    """Return a one-line summary of an endpoint."""
    return f"{endpoint.path}: {endpoint.documentation.strip().splitlines()[0]}"


# Filtered tools, such as the web search, as endpoints. A notebook sees the same results as an agent.

PATHS = {WEB_SEARCH: "/search/web", LOOKUP_URL: "/search/page", FETCH_WIKIPEDIA: "/search/wikipedia"}


def filtered_tool_endpoint(toolbox: FilteredTools, tool: str = WEB_SEARCH) -> Endpoint:
    """Return an endpoint that calls a toolbox. The cutoff is that of its leakage filter and must be the notebook's."""
    spec = next(spec for spec in toolbox.specs() if spec.name == tool)

    async def call(params: Mapping[str, Any], as_of: AsOf) -> dict[str, Any]:
        if as_of.at < toolbox.as_of.at:
            raise ToolFailed("this source stands at a later cutoff than the notebook, so it is closed")
        observation = await toolbox.use(tool, params)
        if observation.failed:
            raise ToolFailed(observation.text)
        return {"rows": [_source_row(toolbox.sources[source_id]) for source_id in observation.source_ids]}

    return Endpoint(
        path=PATHS.get(tool, f"/tool/{tool}"),
        documentation=f"{spec.description}\n"
        'Answer: {"rows": [{"id", "title", "url", "published", "text"}, …]}, empty where nothing could be admitted.',
        parameters=tuple(
            Parameter(
                name=name, meaning=str(shape.get("description", "")), needed=name in spec.parameters.get("required", ())
            )
            for name, shape in spec.parameters.get("properties", {}).items()
        ),
        call=call,
    )


def _source_row(admitted: AdmittedSource) -> dict[str, Any]:
    published = admitted.published and admitted.published.isoformat()
    row = {"id": admitted.id, "title": admitted.title, "url": admitted.url}
    return {**row, "published": published, "text": admitted.shown}


def journaled_endpoint(endpoint: Endpoint, journal: Journal, scope: str = "") -> Endpoint:
    """Wrap an endpoint that accesses the network: its results and failures are stored before a notebook sees them.

    They are therefore the same in every replay. `scope` is whatever they depend on besides parameters and cutoff.
    """

    async def call(params: Mapping[str, Any], as_of: AsOf) -> Any:
        texts = {name: str(value) for name, value in params.items()}
        request = ["endpoint", endpoint.path, texts, as_of.at.isoformat(), as_of.mode, scope]

        async def produce() -> dict[str, Any]:
            return {"answer": await endpoint.call(params, as_of)}

        return (await stored_result(journal, request, "endpoint", produce))["answer"]

    return replace(endpoint, call=call)


# Configured tables on this machine, filtered row by row at the cutoff.

ROWS = 5_000
MOST_ROWS = 50_000


@frozen
class LocalFile:
    """A CSV file that notebooks may read. For a backtest it needs a date column, or a day when all of it was known.

    Its text is subject to the same rules as a web page: a row is left out if one of its cells was written after the
    cutoff or describes later days as past, and so is a column named after a future day.
    """

    path: Path
    meaning: str
    """A description shown to every notebook, which should not mention anything known only later."""
    date_column: str | None = None
    """The column with the day or time a row became known; rows that are later or undated are left out."""
    known_since: date | None = None
    """The day by which the whole file was public, for tables without dates."""

    def open_at(self, as_of: AsOf) -> bool:
        """Whether any of the file may be read at the cutoff."""
        if as_of.mode == "live" or self.date_column is not None:
            return True
        return self.known_since is not None and as_of.admits_day(self.known_since)

    def admitted(self, row: Mapping[str, str | None], as_of: AsOf) -> bool:
        """Whether a row was known at the cutoff. A bare day must be over by then; an unreadable date is not known."""
        if self.date_column is None:
            return True
        text = (row.get(self.date_column) or "").strip()
        try:
            if len(text) == 10:
                return as_of.admits_day(date.fromisoformat(text))
            return as_of.admits(instant(datetime.fromisoformat(text)))
        except ValueError:
            return False

    def read(self, as_of: AsOf, offset: int, limit: int) -> tuple[list[str], list[dict[str, Any]], bool]:
        """Return the columns, up to `limit` known rows from `offset` on, and whether more rows follow."""
        with self.path.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.DictReader(stream)
            columns = [name for name in reader.fieldnames or () if not _late_column(name, as_of)]
            known = (row for row in reader if self.admitted(row, as_of) and not self._tells_late(row, columns, as_of))
            rows = list(islice(known, offset, offset + limit))
            more = next(known, None) is not None
        return columns, [{name: _value(row.get(name)) for name in columns} for row in rows], more

    def _tells_late(self, row: Mapping[str, str | None], columns: Sequence[str], as_of: AsOf) -> bool:
        """Whether any text in a row is from after the cutoff. A bare date is judged together with its column's name."""
        if as_of.mode == "live":
            return False
        cells = ((name, row.get(name) or "") for name in columns if name != self.date_column)
        return any(_is_late_cell(name, text[:LONGEST_CELL], as_of) for name, text in cells if _DIGIT.search(fold(text)))


def _is_late_cell(name: str, text: str, as_of: AsOf) -> bool:
    if isinstance(_value(text), int | float):
        return False
    named_text = f"{name}: {text}"
    if tells_later_events(named_text, as_of) or tells_later_events(text, as_of):
        return len(find_dates(text)) != 1 or not PLAN_KEY.search(name.lower())
    return late_period(named_text, as_of) is not None or late_link(text, as_of) is not None


def _late_column(name: str, as_of: AsOf) -> bool:
    """Whether a column holds the values of a day or month that had not begun, as in wide tables."""
    dates = find_dates(name) if as_of.mode != "live" else []
    return any(all(is_after(day, as_of) for day in found_date.readings) for found_date in dates)


LONGEST_CELL = 24_000
_DIGIT = pattern(r"\d")


def _value(text: str | None) -> str | float | int | None:
    """Return the text as a number if it is one; digits with a leading zero are an identifier and stay text.

    >>> [_value(text) for text in ("12", "-1.5", "0.5", "007", "n/a", "", None)]
    [12, -1.5, 0.5, '007', 'n/a', None, None]
    """
    if not text:
        return None
    if "_" in text or (len(text) > 1 and text.startswith("0") and text.isdigit()):
        return text
    for parse in (int, float):
        try:
            return parse(text)
        except ValueError:
            continue
    return text


def local_files_endpoint(folder: Path, **files: LocalFile) -> Endpoint:
    """Return an endpoint for files given by paths relative to a folder, which they must not leave.

    Only listed files can be read: a name is looked up and never becomes part of a path.
    """
    top = folder.resolve()
    known: dict[str, LocalFile] = {}
    for name, file in files.items():
        place = (top / file.path).resolve()
        if not place.is_relative_to(top):
            raise InputError(f"the file for {name!r} lies outside of {folder}", path=file.path)
        if not place.is_file():
            raise InputError("there is no such file", path=place)
        known[name] = replace(file, path=place)

    async def call(params: Mapping[str, Any], as_of: AsOf) -> dict[str, Any]:
        file = known.get(params["name"])
        if file is None or not file.open_at(as_of):
            tables = [name for name, file in known.items() if file.open_at(as_of)]
            raise ToolFailed(f"there is no table {params['name']!r}; tables: {', '.join(tables) or 'none'}")
        offset = int(max(params.get("offset", 0), 0))
        limit = int(min(max(params.get("limit", ROWS), 0), MOST_ROWS))
        try:
            columns, rows, more = file.read(as_of, offset, limit)
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise ToolFailed("the table cannot be read") from error
        return {"name": params["name"], "columns": columns, "rows": rows, "more": more}

    tables = "\n".join(f"  {name}: {file.meaning}" for name, file in known.items())
    return Endpoint(
        path="/files/read",
        documentation=f"Rows of a table kept on this machine.\nTables:\n{tables}\n"
        'Answer: {"name", "columns": […], "rows": [{column: value}, …], "more": true if rows are left}; numbers '
        f"are numbers, empty fields None. {ROWS:,} rows if not told otherwise, at most {MOST_ROWS:,}.",
        parameters=(
            Parameter(name="name", meaning=f"one of {', '.join(known)}", needed=True),
            Parameter(name="limit", meaning="how many rows", kind="number"),
            Parameter(name="offset", meaning="how many rows to leave out before", kind="number"),
        ),
        call=call,
    )


# Prices of prediction markets, and time series of any provider, as they were known at the cutoff.

PRICE_DAYS = 60
MAX_PRICE_DAYS = 365
MAX_OBSERVATIONS = 20_000


def market_prices_endpoint(sources: Mapping[str, PriceSource], emit: EmitEvent = ignore_event) -> Endpoint:
    """Return an endpoint for the prices of any market on the given platforms; `sources` maps platform to source."""
    platforms = ", ".join(sources)

    async def call(params: Mapping[str, Any], as_of: AsOf) -> dict[str, Any]:
        source = sources.get(params["platform"])
        if source is None:
            raise ToolFailed(f"there is no platform {params['platform']!r}; platforms: {platforms}")
        ref = MarketRef(platform=params["platform"], id=params["id"])
        days = int(min(max(params.get("days", PRICE_DAYS), 1), MAX_PRICE_DAYS))
        known = await known_prices(source, ref, as_of, days, emit)
        if not known:
            raise ToolFailed("no price was known at the cutoff")
        rows = [{"at": point.at.isoformat(), "p": point.p} for point in known]
        return {"platform": ref.platform, "id": ref.id, "rows": rows}

    return Endpoint(
        path="/market/prices",
        documentation="Prices at which a prediction market traded, as probabilities of yes, oldest first.\n"
        f"Platforms: {platforms}. The id is the platform's own.\n"
        'Answer: {"platform", "id", "rows": [{"at": "2025-10-24T12:00:00+00:00", "p": 0.41}, …]}.',
        parameters=(
            Parameter(name="platform", meaning=f"one of {platforms}", needed=True),
            Parameter(name="id", meaning="the platform's id of the market", needed=True),
            Parameter(name="days", meaning=f"how many days back, {PRICE_DAYS} if not given", kind="number"),
        ),
        call=call,
    )


def series_endpoint(
    source: WithProvenance | SeriesSource,
    providers: Mapping[str, str],
    *,
    allow_revised: frozenset[str] = frozenset(),
    emit: EmitEvent = ignore_event,
) -> Endpoint:
    """Return an endpoint for series of any provider; `providers` says what each one offers and how it names its series.

    In a backtest, values corrected after the cutoff are refused, except from the providers in `allow_revised`.
    """
    names = ", ".join(providers)

    async def call(params: Mapping[str, Any], as_of: AsOf) -> dict[str, Any]:
        if params["provider"] not in providers:
            raise ToolFailed(f"there is no provider {params['provider']!r}; providers: {names}")
        ref = SeriesRef(provider=params["provider"], id=params["id"])
        series = await known_series(source, ref, as_of, allow_revised=ref.provider in allow_revised, emit=emit)
        start, end = params.get("start"), params.get("end")
        first = 0 if start is None else int(np.searchsorted(series.days, np.datetime64(start, "D")))
        last = len(series) if end is None else int(np.searchsorted(series.days, np.datetime64(end, "D"), side="right"))
        days = series.days[first:last][-MAX_OBSERVATIONS:].astype(str).tolist()
        values = series.values[first:last][-MAX_OBSERVATIONS:].tolist()
        rows = [{"date": day, "value": value} for day, value in zip(days, values, strict=True)]
        return {"provider": ref.provider, "id": ref.id, "rows": rows}

    listed = "\n".join(f"  {name}: {line}" for name, line in providers.items())
    return Endpoint(
        path="/series/observations",
        documentation="Observations of an economic or financial time series, by day, oldest first.\n"
        f"Providers:\n{listed}\n"
        'Answer: {"provider", "id", "rows": [{"date": "2025-10-24", "value": 4.02}, …]}; to_frame(answer) makes a '
        f"table of it. At most the newest {MAX_OBSERVATIONS:,} observations.",
        parameters=(
            Parameter(name="provider", meaning=f"one of {names}", needed=True),
            Parameter(name="id", meaning="the provider's name of the series", needed=True),
            Parameter(name="start", meaning="first day", kind="date"),
            Parameter(name="end", meaning="last day", kind="date"),
        ),
        call=call,
    )


def days_ahead_endpoint(source: WithProvenance | SeriesSource, providers: Mapping[str, str]) -> Endpoint:
    """Return an endpoint for what was known at the cutoff about later days, from the providers of the series."""
    names = ", ".join(providers)

    async def call(params: Mapping[str, Any], as_of: AsOf) -> dict[str, Any]:
        if params["provider"] not in providers:
            raise ToolFailed(f"there is no provider {params['provider']!r}; providers: {names}")
        ref = SeriesRef(provider=params["provider"], id=params["id"])
        return {"provider": ref.provider, "id": ref.id, "lines": list(await known_ahead(source, ref, as_of))}

    return Endpoint(
        path="/series/ahead",
        documentation="What was known by today about the days ahead of a series: forecasts of the weather (open_meteo) "
        "and the release calendar (fred). Other providers say nothing.\n"
        'Answer: {"provider", "id", "lines": ["…"]}.',
        parameters=(
            Parameter(name="provider", meaning=f"one of {names}", needed=True),
            Parameter(name="id", meaning="the provider's name of the series", needed=True),
        ),
        call=call,
    )
