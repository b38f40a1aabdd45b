"""What every model is shown about a question at one moment: ranked sources and the market's quotes, as one value."""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, Protocol, cast

from foretell.data.untrusted import for_terminal
from foretell.forecasters.forecaster import CannotForecast
from foretell.models.canonical import canonical_json
from foretell.questions.as_of import AsOf, UtcDatetime, instant
from foretell.questions.codec import from_dict, parse_json, to_json
from foretell.questions.errors import InputError
from foretell.questions.question import Question
from foretell.tools.late_text import tells_late
from foretell.tools.rules import FenceRules
from foretell.tools.tool import WEB_SEARCH, Refusal, SourceItem

SCHEMA = "foretell/context/1"
MOST_SOURCES = 10
LONGEST_TITLE = 200
LONGEST_SUMMARY = 900
LONGEST_URL = 2000
_INVISIBLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufffe\uffff\ud800-\udfff]+"
)


class PublishedArticle(Protocol):
    """A source as a data set publishes it, without a date; rank 0 if it has none."""

    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def url(self) -> str: ...  # noqa: D102
    @property
    def summary(self) -> str: ...  # noqa: D102
    @property
    def rank(self) -> int: ...  # noqa: D102


def one_line(text: str, longest: int) -> str:
    r"""Put a text on one line, normalised and without invisible characters; a longer one is cut at a word.

    >>> one_line("# Market\n\nYES\u202e is\x00 sure", 100), one_line("far too long a title", 12)
    ('# Market YES is sure', 'far too…')
    """
    text = " ".join(unicodedata.normalize("NFC", _INVISIBLE.sub(" ", text)).split())
    if len(text) <= longest:
        return text
    kept = text[: longest - 1]
    return (kept.rpartition(" ")[0] or kept).rstrip(" ,;:") + "…"


@dataclass(frozen=True, kw_only=True)
class RankedSource:
    """One article: its title in English and a summary of three sentences."""

    url: str
    title: str
    summary: str
    published: UtcDatetime | None = None
    """Time of publication; None if undated."""
    rank: int = 1
    """Rank by informativeness, from 1."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", one_line(self.url, LONGEST_URL).replace(" ", "%20"))
        object.__setattr__(self, "title", one_line(self.title, LONGEST_TITLE))
        object.__setattr__(self, "summary", one_line(self.summary, LONGEST_SUMMARY))
        if self.published is not None:
            object.__setattr__(self, "published", instant(self.published))
        if not self.url:
            raise ValueError("a source needs an address")
        if not (self.title or self.summary):
            raise ValueError(f"source {self.url} has neither title nor summary")


@dataclass(frozen=True, kw_only=True)
class PredictionContext:
    """A question as of a moment, with its sources. Nothing in it is younger than the moment.

    >>> from foretell.questions.question import Target
    >>> q = Question(id="q", source="own", text="Snow?", due="2026-01-10", targets=(Target(id="yes"),))
    >>> bare = PredictionContext(question=q, as_of=q.as_of)
    >>> source = RankedSource(url="https://a.example", title="Cold", summary="")
    >>> told = PredictionContext(question=q, as_of=q.as_of, sources=(source,))
    >>> PredictionContext.from_json(told.to_json()) == told, bare.digest == told.digest
    (True, False)
    """

    question: Question
    """The question, with the quotes of its markets if there are any."""
    as_of: AsOf
    sources: tuple[RankedSource, ...] = ()
    """Sources by rank, from 1."""
    searcher: str = ""
    """Who found and summarised the sources."""
    closing_time: bool = False
    """Show in a backtest when the market closes; set only if that was known beforehand. Live it is always shown."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", tuple(self.sources))
        object.__setattr__(self, "searcher", one_line(self.searcher, LONGEST_TITLE))
        self._check_sources()
        for target in self.question.targets:
            if target.snapshot is not None and not self.as_of.admits(target.snapshot.at):
                raise ValueError(f"the quotes of {target.id} are of {target.snapshot.at}, after {self.as_of}")
        try:
            to_json(self.question).encode()
        except UnicodeError:
            raise ValueError(f"question {self.question.id!r} holds characters that no file can hold") from None

    def _check_sources(self) -> None:
        if len(self.sources) > MOST_SOURCES:
            raise ValueError(f"a context holds at most {MOST_SOURCES} sources, not {len(self.sources)}")
        if [source.rank for source in self.sources] != list(range(1, len(self.sources) + 1)):
            raise ValueError(f"ranks are 1, 2, … in this order, not {[source.rank for source in self.sources]}")
        if len({source.url for source in self.sources}) < len(self.sources):
            raise ValueError("a context names no address twice")
        for source in self.sources:
            if source.published is not None and not self.as_of.admits(source.published):
                raise ValueError(f"source {source.url} is dated {source.published}, after {self.as_of}")

    @cached_property
    def canonical(self) -> bytes:
        """Canonical JSON: equal contexts have equal bytes, and different ones different bytes."""
        question = json.loads(to_json(self.question))
        if self.question.exclusivity == "exactly one":
            # As it was always written, so that contexts that are stored keep the digest they are known by.
            question["exclusive"] = question.pop("exclusivity") == "exactly one"
        body = {
            "schema": SCHEMA,
            "question": question,
            "as_of": {"at": self.as_of.at.isoformat(), "mode": self.as_of.mode},
            "sources": [
                {**vars(source), "published": source.published and source.published.isoformat()}
                for source in self.sources
            ],
            "searcher": self.searcher,
            "closing_time": self.closing_time,
        }
        return canonical_json(_plain(body))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON; forecasts use it to say what they were shown."""
        return sha256(self.canonical).hexdigest()

    def to_json(self) -> str:
        """Return the canonical JSON as text."""
        return self.canonical.decode("ascii")

    @classmethod
    def from_json(cls, text: str | bytes, *, digest: str | None = None) -> "PredictionContext":
        """Parse a context. Raise `InputError` for anything invalid and for a digest that does not match."""
        found = parse_json(text)
        if not isinstance(found, dict) or cast("dict[str, Any]", found).get("schema") != SCHEMA:
            raise InputError(f"this is not a context in the form {SCHEMA!r}", column="schema")
        body = cast("dict[str, Any]", found)
        try:
            made = cls(
                question=from_dict(body["question"], Question),
                as_of=AsOf(at=instant(body["as_of"]["at"]), mode=body["as_of"]["mode"]),
                sources=tuple(RankedSource(**source) for source in body["sources"]),
                searcher=body["searcher"],
                closing_time=bool(body["closing_time"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"this context cannot be read: {error}") from None
        if digest is not None and made.digest != digest:
            raise InputError(f"this context has the digest {made.digest[:12]}…, expected {digest[:12]}…")
        return made


def key_of(question: Question, as_of: AsOf) -> tuple[str, str, str]:
    """The key of a context: question, round and moment."""
    return question.id, question.due.isoformat(), as_of.at.isoformat()


def known_at(question: Question, as_of: AsOf) -> Question:
    """The question without quotes that were taken after the moment."""
    targets = tuple(
        t if t.snapshot is None or as_of.admits(t.snapshot.at) else replace(t, snapshot=None) for t in question.targets
    )
    return question if targets == question.targets else replace(question, targets=targets)


def ranked(sources: Iterable[RankedSource]) -> tuple[RankedSource, ...]:
    """Number the sources in the order given: each address once, at most ten."""
    once: dict[str, RankedSource] = {}
    for source in sources:
        once.setdefault(source.url, source)
    return tuple(replace(s, rank=n) for n, s in enumerate(list(once.values())[:MOST_SOURCES], start=1))


@dataclass(frozen=True, kw_only=True)
class RefusedArticle:
    """A source published with an event that no model reads, because a rule of the fence refuses it."""

    question: str
    title: str
    url: str
    reason: str

    def __str__(self) -> str:
        """A description on one line."""
        return for_terminal(f"{self.question}: “{self.title or self.url}” ({self.reason})")


def refused_articles(question: Question, articles: Iterable[PublishedArticle]) -> list[RefusedArticle]:
    """Sources published with an event that the rules of the fence refuse, with the reasons.

    Such sources are declared to be summaries of what was available at the moment of asking, so they need no date of
    their own, like a stored version of a page. Later dates, future days described as past, and closed addresses count
    against them as they do everywhere.
    """
    found = ((one, article_refusal(question, one)) for one in articles)
    return [
        RefusedArticle(question=question.id, title=one_line(one.title, 80), url=one_line(one.url, 200), reason=reason)
        for one, reason in found
        if reason is not None
    ]


def refusal_notes(refused: Sequence[RefusedArticle], published: int, most: int) -> list[str]:
    """A line that counts the refused sources, and one line for each of the first `most` of them."""
    if not refused:
        return []
    text = f"{len(refused)} of {published} sources that came with the questions are shown to no model:"
    more = [f"… and {len(refused) - most} more"] if len(refused) > most else []
    return [text, *(f"  {one}" for one in refused[:most]), *more]


def article_refusal(question: Question, article: PublishedArticle) -> str | None:
    """Why the rules of the fence refuse a source published with an event; None if they do not."""
    as_of = question.as_of
    url = article.url.strip()
    item = SourceItem(title=article.title, url=url, text=article.summary, captured=as_of.at, dating="none")
    admitted = FenceRules(as_of=as_of, question=question).admit(item, WEB_SEARCH)
    if isinstance(admitted, Refusal):
        return admitted.reason
    if tells_late(f"{article.title}\n{article.summary}", as_of):
        return "it tells of days after the moment of asking as past"
    return None


def from_articles(
    question: Question, articles: Iterable[PublishedArticle], *, searcher: str = "published", closing_time: bool = False
) -> PredictionContext:
    """The context published with an event, as of its due time: its articles by rank, those without a rank last.

    Articles without an address get one made from their position. Articles without any words are left out, and so are
    those that the rules of the fence refuse (`refused_articles` names them).
    """
    given = sorted(articles, key=lambda one: one.rank if one.rank > 0 else 10**9)
    given = [one for one in given if article_refusal(question, one) is None]
    made = [
        RankedSource(url=one.url.strip() or f"urn:article:{place}", title=one.title, summary=one.summary)
        for place, one in enumerate(given, start=1)
        if one.title.strip() or one.summary.strip()
    ]
    as_of = question.as_of
    return PredictionContext(
        question=known_at(question, as_of),
        as_of=as_of,
        sources=ranked(made),
        searcher=searcher,
        closing_time=closing_time,
    )


def _plain(value: Any) -> Any:
    """The same JSON with a single notation of zero: −0.0 and 0.0 are the same price."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value + 0.0 if isinstance(value, float) else value


# Where forecasters get the context of a question: from a store, from a builder, or from the question alone.


class PredictionContexts(Protocol):
    """Provides the context of a question at a moment, the same for everyone who asks."""

    async def of(self, question: Question, as_of: AsOf) -> PredictionContext:
        """Return the context, or raise `CannotForecast` if there is none."""
        ...


class QuestionOnly:
    """Contexts without sources: the question, and the quotes it carries."""

    async def of(self, question: Question, as_of: AsOf) -> PredictionContext:
        """Return the question as of the moment."""
        try:
            return PredictionContext(question=known_at(question, as_of), as_of=as_of)
        except ValueError as error:
            raise CannotForecast(str(error)) from None


class StoredContexts:
    """Contexts built before, by question, round and moment."""

    def __init__(self, contexts: Iterable[PredictionContext]) -> None:
        self._contexts: dict[tuple[str, str, str], PredictionContext] = {}
        for context in contexts:
            if self._contexts.setdefault(key_of(context.question, context.as_of), context) != context:
                raise ValueError(f"two contexts differ for question {context.question.id} at {context.as_of}")

    def __len__(self) -> int:
        return len(self._contexts)

    async def of(self, question: Question, as_of: AsOf) -> PredictionContext:
        """Return the stored context."""
        found = self._contexts.get(key_of(question, as_of))
        if found is None:
            raise CannotForecast(f"no context is stored for question {question.id} at {as_of}")
        return found
