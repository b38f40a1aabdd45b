"""Builds a context: searches, the fence, ranking and summaries, with a count of everything that was left out."""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from foretell.data.search.engine import SearchEngine
from foretell.forecasters.forecaster import CannotForecast, TracedModel, UsageMeter
from foretell.forecasters.prompt.prediction_context import (
    MOST_SOURCES,
    PredictionContext,
    RankedSource,
    known_at,
    ranked,
)
from foretell.forecasters.prompt.summaries import PageSummary, Summariser, extracted, template_queries
from foretell.models.canonical import content_key
from foretell.models.journal import Journal
from foretell.models.model import Model, ModelError, ToolSpec
from foretell.models.names import ModelRole, ModelRoles
from foretell.models.prices import PriceList
from foretell.questions.as_of import AsOf
from foretell.questions.forecast import Cost
from foretell.questions.question import Question
from foretell.questions.trace import EmitEvent, LeakBlocked, TraceEvent, ignore_event
from foretell.tools.addresses import Address, UnreadableAddress, address_of
from foretell.tools.fence import AdmittedSource, FencedTools
from foretell.tools.journal import material_from_json, material_to_json
from foretell.tools.late_text import tells_late
from foretell.tools.leak_filter import ContentFilter, Excerpt, LeakFilter
from foretell.tools.rules import FenceRules
from foretell.tools.tool import WEB_SEARCH, LeakRefused, SourceItem, ToolFailed, ToolMaterial
from foretell.tools.web import SEARCH_SPEC, WebSearch

# Merging the results of several searches: each page once, copies of one report once, the best placed first.

K = 60
"""Constant of reciprocal rank fusion: score = Σ 1/(K + place) over the searches with the page (Cormack et al. 2009)."""
ALIKE = 0.6
"""Share of common three-word runs from which two texts count as one report (Broder 1997). Two days of one daily report
share their phrases but not their figures, and stay two."""
FEWEST_RUNS = 12
"""Minimum number of three-word runs for comparing texts; shorter ones are compared by their titles alone."""
TELLING_TITLE = 5
"""Number of words from which two equal titles are not a coincidence."""
COMPARED = 4_000
"""Number of characters of a text that are compared."""
TRACKING = ("utm_", "fbclid", "gclid", "ref", "cmpid", "ocid", "mc_")
_WORD = re.compile(r"\w+")
_Face = tuple[tuple[str, ...], frozenset[tuple[str, str, str]]]
"""What copies are recognised by: the words of the title, and the three-word runs of the text."""
SAME_ADDRESS, SAME_WORDS = "found by another search already", "a copy of another find"


def fuse(searches: Sequence[Sequence[SourceItem]]) -> tuple[tuple[SourceItem, ...], dict[str, int]]:
    """Merge the results of all searches in one order, and count those left out by reason.

    The same results give the same order, however they came in.
    """
    dropped: Counter[str] = Counter()
    first: dict[Address | str, SourceItem] = {}
    score: Counter[Address | str] = Counter()
    for items in searches:
        for place, item in enumerate(items, start=1):
            key = page_of(item.url)
            dropped[SAME_ADDRESS] += key in first
            score[key] += 1 / (K + place)  # pyright: ignore[reportArgumentType] - a Counter of floats
            # Of two finds of one page the one that says more; of equals the first.
            if key not in first or len(item.text) > len(first[key].text):
                first[key] = item
    ordered = [first[key] for key in sorted(first, key=lambda key: (-score[key], first[key].url))]
    kept: list[tuple[SourceItem, _Face]] = []
    for item in ordered:
        face = _face(item)
        if any(_copies(face, other) for _, other in kept):
            dropped[SAME_WORDS] += 1
        else:
            kept.append((item, face))
    return tuple(item for item, _ in kept), {why: n for why, n in dropped.items() if n}


def page_of(url: str) -> Address | str:
    """The identity of a page: its address without protocol, superfluous parts and tracking parameters.

    >>> page_of("https://www.a.example/x/?utm_source=feed") == page_of("http://a.example/x")
    True
    """
    try:
        found = address_of(url)
    except UnreadableAddress:
        return url.strip()
    if found is None:
        return url.strip()
    return replace(found, params=frozenset(pair for pair in found.params if not pair[0].startswith(TRACKING)))


def _face(item: SourceItem) -> _Face:
    words = _WORD.findall(item.text[:COMPARED].casefold())
    runs = frozenset(zip(words, words[1:], words[2:], strict=False))
    return tuple(_WORD.findall(item.title.casefold())), runs


def _copies(one: _Face, other: _Face) -> bool:
    if len(one[0]) >= TELLING_TITLE and one[0] == other[0]:
        return True
    both = one[1] | other[1]
    return min(len(one[1]), len(other[1])) >= FEWEST_RUNS and len(one[1] & other[1]) >= ALIKE * len(both)


# All searches of a context as one tool: asked side by side, kept in the journal, fused before the fence sees them.


class ParallelSearch:
    """Runs several queries concurrently. Use one for one context, then read from it what happened.

    Unlike an agent's tool it does not store failures: a failed search is repeated when the context is built again.
    """

    def __init__(self, engine: SearchEngine, journal: Journal | None, scope: str, *, limit: int) -> None:
        self._search = WebSearch(engine=engine, limit=limit)
        self._journal = journal
        self._scope = scope
        self.found = 0
        """Number of results of all searches, before anything was left out."""
        self.dropped: Mapping[str, int] = {}
        self.failures: list[str] = []

    @property
    def spec(self) -> ToolSpec:
        """The spec of a web search, which the fence knows."""
        return SEARCH_SPEC

    async def use(self, arguments: Mapping[str, Any], as_of: AsOf) -> ToolMaterial:
        """Return the fused results; raise `ToolFailed` if no search worked."""
        queries: Sequence[str] = arguments["queries"]
        found = await asyncio.gather(*(self._one(query, as_of) for query in queries))
        brought = [[_whole(item) for item in material.items] for material in found if material is not None]
        if not brought:
            raise ToolFailed(f"All {len(queries)} searches failed; the first: {self.failures[0]}")
        self.found = sum(map(len, brought))
        items, self.dropped = fuse(brought)
        return ToolMaterial(heading="Results", items=items)

    async def _one(self, query: str, as_of: AsOf) -> ToolMaterial | None:
        asked = {"query": query}

        async def fetched() -> dict[str, Any]:
            return material_to_json(await self._search.use(asked, as_of))

        try:
            if self._journal is None:
                return await self._search.use(asked, as_of)
            key = content_key(["context", asked, as_of.at.isoformat(), as_of.mode, self._scope])
            return material_from_json(await self._journal.once_json(key, "tool", fetched))
        except LeakRefused as refused:
            self.failures.append(refused.refusal.reason)
        except ToolFailed as error:
            self.failures.append(str(error))
        return None


def _whole(item: SourceItem) -> SourceItem:
    """The item without lone surrogates, which no request and no file can hold."""
    texts = {name: getattr(item, name) for name in ("title", "text", "snippet", "url")}
    mended = {name: text.encode("utf-8", "replace").decode() for name, text in texts.items()}
    return item if mended == texts else replace(item, **mended)


# A context with the story of its making, and the numbers that steer it.


class ContextUnavailable(CannotForecast):
    """No context could be built, for a reason that may be temporary: try again later."""


@dataclass(frozen=True, kw_only=True)
class ContextBuildSettings:
    """How a context is built; part of what identifies it."""

    queries: int = 4
    per_query: int = 10
    compared: int = 24
    """Maximum number of results that the summariser ranks; those below are not looked at."""
    attempts: int = 3
    closing_time: bool = False
    """See `PredictionContext.closing_time`."""

    def __post_init__(self) -> None:
        if min(self.queries, self.per_query, self.compared, self.attempts) < 1:
            raise ValueError("queries, per_query, compared and attempts must be at least 1")


@dataclass(frozen=True, kw_only=True)
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
    """What building it cost, whenever that was."""

    def __str__(self) -> str:
        """A summary on one line."""
        why = ", ".join(f"{n} {reason}" for reason, n in sorted(self.dropped.items(), key=lambda one: -one[1]))
        text = f"{len(self.context.sources)} sources of {self.found} results" + (f" ({why})" if why else "")
        return "; ".join([text, *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain data for JSON."""
        text: dict[str, Any] = {name: getattr(self, name) for name in ("found", "dropped", "queries", "notes")}
        return {**text, "context": self.context.to_json(), "usage": vars(self.usage)}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> "ContextBuild":
        """Restore a build from what `to_dict` returned."""
        return cls(
            context=PredictionContext.from_json(found["context"]),
            found=found["found"],
            dropped=dict(found["dropped"]),
            queries=tuple(found["queries"]),
            notes=tuple(found["notes"]),
            usage=Cost(**found["usage"]),
        )


ROLE: ModelRole = "summariser"
NOT_TELLING, TOO_MANY = "not telling, said the summariser", "ranked below the best ten"
SUMMARY_LEAKS, UNREADABLE = "its summary tells what came later", "nothing readable in it"
TOO_LATE, REFUSED = "dated after the moment", "refused by the fence"


@dataclass(frozen=True, kw_only=True)
class ContextBuilder:
    """Builds the context of any question at any moment, with any search engine, with models or without.

    Searches are proposed, run behind the fence, deduplicated, ranked and summarised, and all of it is counted. With a
    journal every search and every finished context is stored: a builder that was killed continues where it stopped, and
    building again returns the same bytes. Model replies are stored by the journal behind which the model is.
    """

    engine: SearchEngine
    models: ModelRoles | None = None
    model: Model | None = None
    """Answers for all models. None: template searches, the engine's order, and extracts instead of summaries."""
    journal: Journal | None = None
    leak_filter: ContentFilter | None = None
    """None uses the model in the filter's role. A backtest with neither is refused."""
    settings: ContextBuildSettings = field(default_factory=ContextBuildSettings)
    prices: PriceList | None = None
    emit: EmitEvent = ignore_event

    @property
    def name(self) -> str:
        """The name of the searcher in contexts."""
        if self.model is None or self.models is None:
            return f"{self.engine.name} extracts"
        return f"{self.engine.name} with {self.models.name(ROLE)}"

    def watched(self, role: ModelRole, emit: EmitEvent) -> tuple[Model, ModelRoles] | None:
        """The traced model for a role and all model roles; None if there is no model."""
        if self.model is None or self.models is None:
            return None
        return TracedModel(self.model, emit, role, self.prices), self.models

    async def build(self, question: Question, as_of: AsOf) -> ContextBuild:
        """Build the context of a question at a moment, or raise `ContextUnavailable`."""
        question = known_at(question, as_of)
        try:
            bare = PredictionContext(question=question, as_of=as_of, searcher=self.name)
        except ValueError as error:
            raise ContextUnavailable(str(error)) from None

        async def made() -> dict[str, Any]:
            return (await _BuildRun(self, question, as_of).run()).to_dict()

        if self.journal is None:
            return ContextBuild.from_dict(await made())
        key = content_key(["built", bare.digest, vars(self.settings)])
        return ContextBuild.from_dict(await self.journal.once_json(key, "context", made))


class _BuildRun:
    """Builds one context of a question at a moment."""

    def __init__(self, parts: ContextBuilder, question: Question, as_of: AsOf) -> None:
        self._parts = parts
        self._question = question
        self._meter = UsageMeter(parts.emit)
        self._blocked: list[LeakBlocked] = []
        self._dropped: Counter[str] = Counter()
        self._notes: list[str] = []
        self._unsummed: list[str] = []
        scope = f"{question.id}/{parts.engine.name}/{parts.settings.per_query}"
        self._searches = ParallelSearch(parts.engine, parts.journal, scope, limit=parts.settings.per_query)
        self._fence = FenceRules(as_of=as_of, question=question, emit=self._heard)
        self._filter = parts.leak_filter
        if self._filter is None and (found := parts.watched("filter", self._meter)):
            model, models = found
            self._filter = LeakFilter(model=model, name=models.name("filter"), settings=models.setting("filter"))
        try:
            self._fenced = FencedTools.around((self._searches,), self._fence, self._filter)
        except ValueError as error:
            raise ContextUnavailable(str(error)) from None
        self._summariser: Summariser | None = None
        if found := parts.watched(ROLE, self._meter):
            model, models = found
            self._summariser = Summariser(
                model=model,
                name=models.name(ROLE),
                question=question,
                as_of=as_of,
                settings=models.setting(ROLE),
                attempts=parts.settings.attempts,
            )

    async def run(self) -> ContextBuild:
        """Build the context, and count what was found and dropped."""
        queries = await self._queries()
        pages = await self._admitted(queries)
        sources = await self._summed_up(await self._chosen(pages))
        # Why there may be sources another time.
        unheard = [event.reason for event in self._blocked if event.reason.startswith("the filter")]
        if not sources and (troubles := [*self._searches.failures, *unheard]):
            raise ContextUnavailable(f"no source is left for question {self._question.id}: {troubles[0]}")
        if self._unsummed:
            self._notes.append(f"{len(self._unsummed)} extracts in place of summaries: {self._unsummed[0]}")
        context = PredictionContext(
            question=self._question,
            as_of=self._fence.as_of,
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
        """The results that pass the fence, in the fused order; all others are counted by reason."""
        seen = await self._fenced.use(WEB_SEARCH, {"queries": list(queries)})
        if failed := self._searches.failures:
            self._notes.append(f"{len(failed)} of {len(queries)} searches failed: {failed[0]}")
        self._dropped.update(self._searches.dropped)
        refused = self._searches.found - sum(self._searches.dropped.values()) - len(seen.source_ids)
        reasons = [_reason(event) for event in self._blocked if event.layer in ("address", "date", "content")][:refused]
        self._dropped.update(reasons + [REFUSED] * (refused - len(reasons)))
        return [self._fenced.sources[id] for id in seen.source_ids]

    async def _chosen(self, pages: Sequence[AdmittedSource]) -> list[AdmittedSource]:
        """The pages that are worth a summary, best first."""
        known = [page for page in pages if page.published is None or self._fence.as_of.admits(page.published)]
        compared = known[: self._parts.settings.compared]
        order = tuple(range(len(compared)))
        if self._summariser is not None and compared:
            try:
                order = await self._summariser.ranking(compared)
            except ModelError as error:
                self._notes.append(f"the engine's order stands: {error}")
        self._drop(TOO_LATE, len(pages) - len(known))
        self._drop(TOO_MANY, len(known) - len(compared))
        self._drop(NOT_TELLING, len(compared) - len(order))
        return [compared[place] for place in order]

    async def _summed_up(self, pages: Sequence[AdmittedSource]) -> list[RankedSource]:
        """Summaries of the ten best pages that can be summarised; a page that cannot makes room for the next."""
        sources: list[RankedSource] = []
        left = list(pages)
        while left and len(sources) < MOST_SOURCES:
            room = MOST_SOURCES - len(sources)
            batch, left = left[:room], left[room:]
            texts = await self._texts(batch)
            summaries = await asyncio.gather(
                *(self._summary(page, text) for page, text in zip(batch, texts, strict=True))
            )
            for page, one, keep in zip(batch, summaries, await self._without_leaks(summaries), strict=True):
                if keep and page.url.strip() and (one.title or one.summary):
                    source = RankedSource(url=page.url, title=one.title, summary=one.summary, published=page.published)
                    sources.append(source)
                else:
                    self._drop(UNREADABLE if keep else SUMMARY_LEAKS, 1)
        self._drop(TOO_MANY, len(left))
        return sources

    async def _texts(self, pages: Sequence[AdmittedSource]) -> list[str]:
        """As much of each page's text as may be read."""
        try:
            return [text or page.shown for page, text in await self._fenced.sources.read([page.id for page in pages])]
        except ToolFailed:
            return [page.shown for page in pages]

    async def _summary(self, page: AdmittedSource, text: str) -> PageSummary:
        if self._summariser is not None:
            try:
                return await self._summariser.summary(page, text)
            except ModelError as error:
                self._unsummed.append(str(error))
        return extracted(page, text, self._question)

    async def _without_leaks(self, text: Sequence[PageSummary]) -> list[bool]:
        """Which summaries to keep: in a backtest each is judged like any text, as its writer may know the future."""
        if not self._fence.active or self._filter is None or self._summariser is None:
            return [True] * len(text)
        excerpts = [Excerpt(title=one.title, text=one.summary) for one in text]
        verdicts = await self._filter.judge(excerpts, self._fence.as_of, self._question.text)
        if len(verdicts) != len(text):
            return [False] * len(text)
        kept = zip(verdicts, text, strict=True)
        return [verdict.keeps and not tells_late(one.summary, self._fence.as_of) for verdict, one in kept]

    def _drop(self, reason: str, count: int) -> None:
        if count > 0:
            self._dropped[reason] += count

    def _heard(self, event: TraceEvent) -> None:
        if isinstance(event, LeakBlocked):
            self._blocked.append(event)
        self._meter(event)


def _reason(blocked: LeakBlocked) -> str:
    """The reason without the details of one page, so that equal reasons can be counted."""
    if blocked.layer == "content":
        return "kept back by the content filter"
    return "its address is closed" if blocked.layer == "address" else blocked.reason.partition(":")[0]
