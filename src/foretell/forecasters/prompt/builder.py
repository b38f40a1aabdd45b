"""Builds a context: searches, leakage filter, ranking and summaries, with counts of all results that were dropped."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from foretell.data.datasets.question_set import MOST_SOURCES
from foretell.data.search.engine import SearchEngine
from foretell.forecasters.forecaster import CannotForecast, TracedModel, UsageMeter
from foretell.forecasters.prompt.prediction_context import (
    PredictionContext,
    RankedSource,
    known_at,
    ranked,
)
from foretell.forecasters.prompt.summaries import PageSummary, Summariser, extracted, template_queries
from foretell.frozen import frozen
from foretell.models.canonical import content_key
from foretell.models.journal import Journal
from foretell.models.model import Model, ModelError, ToolSpec
from foretell.models.names import ModelRole, ModelRoles
from foretell.models.prices import PriceList
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.questions.field_checks import check_least
from foretell.questions.forecast import Cost
from foretell.questions.question import Question
from foretell.questions.trace import EmitEvent, LeakBlocked, TraceEvent, ignore_event
from foretell.tools.addresses import Address, page_of
from foretell.tools.content_filter import ContentFilter, Excerpt, ModelContentFilter
from foretell.tools.journal import material_from_json, material_to_json
from foretell.tools.leakage_filter import AdmittedSource, FilteredTools
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.post_cutoff_text import tells_later_events
from foretell.tools.tool import WEB_SEARCH, LeakRefused, SourceItem, ToolFailed, ToolMaterial
from foretell.tools.web import SEARCH_SPEC, WebSearch

# Merging the results of several searches: each page once, copies of one report once, the highest ranked first.

K = 60
"""Constant of reciprocal rank fusion: score = Σ 1/(K + rank) over the searches with the page (Cormack et al. 2009)."""
ALIKE = 0.6
"""Share of common three-word runs from which two texts count as copies (Broder 1997). Two issues of a daily report
share their phrases but not their figures, so they do not count as copies."""
FEWEST_RUNS = 12
"""Minimum number of three-word runs for comparing texts; shorter ones are compared by their titles alone."""
LONG_TITLE = 5
"""Number of words from which texts with equal titles count as copies."""
COMPARED = 4_000
"""Number of characters of a text that are compared."""
_WORD = pattern(r"\w+")
_Fingerprint = tuple[tuple[str, ...], frozenset[tuple[str, str, str]]]
"""The words of the title, and the three-word runs of the text, by which copies are recognised."""
SAME_ADDRESS, SAME_WORDS = "already found by another search", "a copy of another result"


def fuse(searches: Sequence[Sequence[SourceItem]]) -> tuple[tuple[SourceItem, ...], dict[str, int]]:
    """Merge the results of all searches in one order, and count those dropped by reason.

    The order does not depend on the order of the searches.
    """
    dropped: Counter[str] = Counter()
    first: dict[Address | str, SourceItem] = {}
    score: Counter[Address | str] = Counter()
    for items in searches:
        for place, item in enumerate(items, start=1):
            key = page_of(item.url)
            dropped[SAME_ADDRESS] += key in first
            score[key] += 1 / (K + place)  # pyright: ignore[reportArgumentType] - a Counter of floats
            # Of two results for one page, use the longer text; of equals the first.
            if key not in first or len(item.text) > len(first[key].text):
                first[key] = item
    ordered = [first[key] for key in sorted(first, key=lambda key: (-score[key], first[key].url))]
    distinct: list[tuple[SourceItem, _Fingerprint]] = []
    for item in ordered:
        fingerprint = _fingerprint(item)
        if any(_copies(fingerprint, other) for _, other in distinct):
            dropped[SAME_WORDS] += 1
        else:
            distinct.append((item, fingerprint))
    return tuple(item for item, _ in distinct), {why: n for why, n in dropped.items() if n}


def _fingerprint(item: SourceItem) -> _Fingerprint:
    words = _WORD.findall(item.text[:COMPARED].casefold())
    runs = frozenset(zip(words, words[1:], words[2:], strict=False))
    return tuple(_WORD.findall(item.title.casefold())), runs


def _copies(one: _Fingerprint, other: _Fingerprint) -> bool:
    if len(one[0]) >= LONG_TITLE and one[0] == other[0]:
        return True
    both = one[1] | other[1]
    return min(len(one[1]), len(other[1])) >= FEWEST_RUNS and len(one[1] & other[1]) >= ALIKE * len(both)


# All searches of a context as one tool: run concurrently, stored in the journal, merged before the leakage filter.


class ParallelSearch:
    """Runs several queries concurrently. Use a new instance for each context; its attributes describe the results.

    Unlike an agent's tool it does not store failures, so a failed search is repeated when the context is built again.
    """

    def __init__(self, engine: SearchEngine, journal: Journal | None, scope: str, *, limit: int) -> None:
        self._search = WebSearch(engine=engine, limit=limit)
        self._journal = journal
        self._scope = scope
        self.found = 0
        """Number of results of all searches, before any were dropped."""
        self.dropped: Mapping[str, int] = {}
        self.failures: list[str] = []

    @property
    def spec(self) -> ToolSpec:
        """The spec of a web search, for the leakage filter."""
        return SEARCH_SPEC

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """Return the merged results. Raises `ToolFailed` if no search worked."""
        queries: Sequence[str] = arguments["queries"]
        materials = await asyncio.gather(*(self._search_once(query, as_of) for query in queries))
        results = [[_whole(item) for item in material.items] for material in materials if material is not None]
        if not results:
            raise ToolFailed(f"All {len(queries)} searches failed; the first: {self.failures[0]}")
        self.found = sum(map(len, results))
        items, self.dropped = fuse(results)
        return ToolMaterial(heading="Results", items=items)

    async def _search_once(self, query: str, as_of: AsOf) -> ToolMaterial | None:
        arguments = {"query": query}

        async def fetch() -> dict[str, Any]:
            return material_to_json(await self._search.use(arguments, as_of))

        try:
            if self._journal is None:
                return await self._search.use(arguments, as_of)
            key = content_key(["context", arguments, as_of.at.isoformat(), as_of.mode, self._scope])
            return material_from_json(await self._journal.once_json(key, "tool", fetch))
        except LeakRefused as refused:
            self.failures.append(refused.refusal.reason)
        except ToolFailed as error:
            self.failures.append(str(error))
        return None


def _whole(item: SourceItem) -> SourceItem:
    """Return the item without lone surrogates, which cannot be encoded."""
    texts = {name: getattr(item, name) for name in ("title", "text", "snippet", "url")}
    encodable = {name: text.encode("utf-8", "replace").decode() for name, text in texts.items()}
    return item if encodable == texts else replace(item, **encodable)


# The result of building a context, and the settings.


class ContextUnavailable(CannotForecast):
    """No context could be built, for a reason that may be temporary."""


@frozen
class ContextBuildSettings:
    """Settings for building a context; part of its identity."""

    queries: int = 4
    per_query: int = 10
    compared: int = 24
    """Maximum number of results that the summariser ranks; the rest is dropped."""
    attempts: int = 3
    closing_time: bool = False
    """See `PredictionContext.closing_time`."""

    def __post_init__(self) -> None:
        check_least(self, queries=1, per_query=1, compared=1, attempts=1)


@frozen
class ContextBuild:
    """A context and how it was built. Every result found is either a source or counted in `dropped`."""

    context: PredictionContext
    found: int
    dropped: Mapping[str, int]
    """Number of results dropped, by reason."""
    queries: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Problems while building, such as failed searches or fallbacks."""
    usage: Cost = field(default_factory=Cost)
    """The cost of building it, also if it was built earlier."""

    def __str__(self) -> str:
        """A summary on one line."""
        why = ", ".join(f"{n} {reason}" for reason, n in sorted(self.dropped.items(), key=lambda item: -item[1]))
        text = f"{len(self.context.sources)} sources of {self.found} results" + (f" ({why})" if why else "")
        return "; ".join([text, *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain data for JSON."""
        data: dict[str, Any] = {name: getattr(self, name) for name in ("found", "dropped", "queries", "notes")}
        return {**data, "context": self.context.to_json(), "usage": vars(self.usage)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "ContextBuild":
        """Restore a build from what `to_dict` returned."""
        return cls(
            context=PredictionContext.from_json(data["context"]),
            found=data["found"],
            dropped=dict(data["dropped"]),
            queries=tuple(data["queries"]),
            notes=tuple(data["notes"]),
            usage=Cost(**data["usage"]),
        )


ROLE: ModelRole = "summariser"
NOT_INFORMATIVE, TOO_MANY = "not informative according to the summariser", "ranked below the best ten"
SUMMARY_LEAKS, UNREADABLE = "summary mentions later events", "without readable text"
TOO_LATE, REFUSED = "dated after the cutoff", "refused by the leakage filter"


@frozen
class ContextBuilder:
    """Builds the context of any question as of any time, with any search engine, with or without models.

    Searches are proposed, run behind the leakage filter, deduplicated, ranked and summarised, and dropped results are
    counted. With a journal every search and every finished context is stored: a builder that was killed continues where
    it stopped, and building again returns the same bytes. The model's own journal stores its replies.
    """

    engine: SearchEngine
    models: ModelRoles | None = None
    model: Model | None = None
    """Answers requests to all models. Without it: template searches, the engine's order, extracts for summaries."""
    journal: Journal | None = None
    content_filter: ContentFilter | None = None
    """None uses the model in the filter's role. A backtest needs one of the two."""
    settings: ContextBuildSettings = field(default_factory=ContextBuildSettings)
    prices: PriceList | None = None
    emit: EmitEvent = ignore_event

    @property
    def name(self) -> str:
        """The name of the searcher in contexts."""
        if self.model is None or self.models is None:
            return f"{self.engine.name} extracts"
        return f"{self.engine.name} with {self.models.name(ROLE)}"

    def traced(self, role: ModelRole, emit: EmitEvent) -> tuple[Model, ModelRoles] | None:
        """Return the traced model for a role and all model roles; None without a model."""
        if self.model is None or self.models is None:
            return None
        return TracedModel(self.model, emit, role, self.prices), self.models

    async def build(self, question: Question, as_of: AsOf) -> ContextBuild:
        """Build the context of a question as of a time. Raises `ContextUnavailable` if that fails."""
        question = known_at(question, as_of)
        try:
            bare = PredictionContext(question=question, as_of=as_of, searcher=self.name)
        except ValueError as error:
            raise ContextUnavailable(str(error)) from None

        async def build_data() -> dict[str, Any]:
            return (await _BuildRun(self, question, as_of).run()).to_dict()

        if self.journal is None:
            return ContextBuild.from_dict(await build_data())
        key = content_key(["built", bare.digest, vars(self.settings)])
        return ContextBuild.from_dict(await self.journal.once_json(key, "context", build_data))


class _BuildRun:
    """Builds one context of a question."""

    def __init__(self, parts: ContextBuilder, question: Question, as_of: AsOf) -> None:
        self._parts = parts
        self._question = question
        self._meter = UsageMeter(parts.emit)
        self._blocked: list[LeakBlocked] = []
        self._dropped: Counter[str] = Counter()
        self._notes: list[str] = []
        self._summary_errors: list[str] = []
        scope = f"{question.id}/{parts.engine.name}/{parts.settings.per_query}"
        self._searches = ParallelSearch(parts.engine, parts.journal, scope, limit=parts.settings.per_query)
        self._rules = LeakageRules(as_of=as_of, question=question, emit=self._on_event)
        self._filter = parts.content_filter
        if self._filter is None and (traced := parts.traced("filter", self._meter)):
            model, models = traced
            self._filter = ModelContentFilter(
                model=model, name=models.name("filter"), settings=models.setting("filter")
            )
        try:
            self._filtered = FilteredTools.around((self._searches,), self._rules, self._filter)
        except ValueError as error:
            raise ContextUnavailable(str(error)) from None
        self._summariser: Summariser | None = None
        if traced := parts.traced(ROLE, self._meter):
            model, models = traced
            self._summariser = Summariser(
                model=model,
                name=models.name(ROLE),
                question=question,
                as_of=as_of,
                settings=models.setting(ROLE),
                attempts=parts.settings.attempts,
            )

    async def run(self) -> ContextBuild:
        """Build the context, and count the results found and dropped."""
        queries = await self._queries()
        pages = await self._admitted(queries)
        sources = await self._summarise(await self._chosen(pages))
        # Temporary problems, without which there may be sources.
        filter_failures = [event.reason for event in self._blocked if event.reason.startswith("the filter")]
        if not sources and (problems := [*self._searches.failures, *filter_failures]):
            raise ContextUnavailable(f"no source is left for question {self._question.id}: {problems[0]}")
        if self._summary_errors:
            self._notes.append(f"{len(self._summary_errors)} extracts in place of summaries: {self._summary_errors[0]}")
        context = PredictionContext(
            question=self._question,
            as_of=self._rules.as_of,
            sources=ranked(sources),
            searcher=self._parts.name,
            closing_time=self._parts.settings.closing_time,
        )
        return ContextBuild(
            context=context,
            found=self._searches.found,
            dropped=dict(self._dropped),
            queries=queries,
            notes=tuple(self._notes),
            usage=self._meter.usage,
        )

    async def _queries(self) -> tuple[str, ...]:
        count = self._parts.settings.queries
        if self._summariser is not None:
            try:
                return await self._summariser.queries(count)
            except ModelError as error:
                self._notes.append(f"searches by template: {error}")
        return template_queries(self._question, count)

    async def _admitted(self, queries: Sequence[str]) -> list[AdmittedSource]:
        """Return the results that pass the leakage filter, in merged order; the others are counted by reason."""
        seen = await self._filtered.use(WEB_SEARCH, {"queries": list(queries)})
        if failed := self._searches.failures:
            self._notes.append(f"{len(failed)} of {len(queries)} searches failed: {failed[0]}")
        self._dropped.update(self._searches.dropped)
        refused = self._searches.found - sum(self._searches.dropped.values()) - len(seen.source_ids)
        reasons = [_reason(event) for event in self._blocked if event.layer in ("address", "date", "content")][:refused]
        self._dropped.update(reasons + [REFUSED] * (refused - len(reasons)))
        return [self._filtered.sources[id] for id in seen.source_ids]

    async def _chosen(self, pages: Sequence[AdmittedSource]) -> list[AdmittedSource]:
        """Return the pages to summarise, best first."""
        known = [page for page in pages if page.published is None or self._rules.as_of.admits(page.published)]
        compared = known[: self._parts.settings.compared]
        order = tuple(range(len(compared)))
        if self._summariser is not None and compared:
            try:
                order = await self._summariser.ranking(compared)
            except ModelError as error:
                self._notes.append(f"ranked in the engine's order: {error}")
        self._drop(TOO_LATE, len(pages) - len(known))
        self._drop(TOO_MANY, len(known) - len(compared))
        self._drop(NOT_INFORMATIVE, len(compared) - len(order))
        return [compared[place] for place in order]

    async def _summarise(self, pages: Sequence[AdmittedSource]) -> list[RankedSource]:
        """Summarise the ten best pages; a page that cannot be summarised is replaced by the next."""
        sources: list[RankedSource] = []
        left = list(pages)
        while left and len(sources) < MOST_SOURCES:
            room = MOST_SOURCES - len(sources)
            batch, left = left[:room], left[room:]
            texts = await self._texts(batch)
            summaries = await asyncio.gather(
                *(self._summary(page, text) for page, text in zip(batch, texts, strict=True))
            )
            for page, summary, keep in zip(batch, summaries, await self._without_leaks(summaries), strict=True):
                if keep and page.url.strip() and (summary.title or summary.summary):
                    source = RankedSource(
                        url=page.url, title=summary.title, summary=summary.summary, published=page.published
                    )
                    sources.append(source)
                else:
                    self._drop(UNREADABLE if keep else SUMMARY_LEAKS, 1)
        self._drop(TOO_MANY, len(left))
        return sources

    async def _texts(self, pages: Sequence[AdmittedSource]) -> list[str]:
        """Return the text of each page, as far as it may be read."""
        try:
            return [text or page.shown for page, text in await self._filtered.sources.read([page.id for page in pages])]
        except ToolFailed:
            return [page.shown for page in pages]

    async def _summary(self, page: AdmittedSource, text: str) -> PageSummary:
        if self._summariser is not None:
            try:
                return await self._summariser.summary(page, text)
            except ModelError as error:
                self._summary_errors.append(str(error))
        return extracted(page, text, self._question)

    async def _without_leaks(self, summaries: Sequence[PageSummary]) -> list[bool]:
        """Return which summaries to keep. In a backtest they are checked for leaks from the summariser's knowledge."""
        if not self._rules.active or self._filter is None or self._summariser is None:
            return [True] * len(summaries)
        excerpts = [Excerpt(title=summary.title, text=summary.summary) for summary in summaries]
        verdicts = await self._filter.judge(excerpts, self._rules.as_of, self._question.text)
        if len(verdicts) != len(summaries):
            return [False] * len(summaries)
        judged = zip(verdicts, summaries, strict=True)
        return [
            verdict.keeps and not tells_later_events(summary.summary, self._rules.as_of) for verdict, summary in judged
        ]

    def _drop(self, reason: str, count: int) -> None:
        if count > 0:
            self._dropped[reason] += count

    def _on_event(self, event: TraceEvent) -> None:
        if isinstance(event, LeakBlocked):
            self._blocked.append(event)
        self._meter(event)


def _reason(blocked: LeakBlocked) -> str:
    """Return the reason without the details of one page, so that equal reasons can be counted."""
    if blocked.layer == "content":
        return "refused by the content filter"
    return "its address is blocked" if blocked.layer == "address" else blocked.reason.partition(":")[0]
