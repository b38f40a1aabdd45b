"""The shared context of a question as of a time: ranked sources and the market's quotes."""

import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, Protocol, cast

from foretell.data.datasets.question_set import MOST_SOURCES
from foretell.data.untrusted import INVISIBLE, UNSAFE, for_terminal
from foretell.frozen import frozen
from foretell.models.canonical import canonical_json
from foretell.questions.as_of import AsOf, UtcDatetime, instant
from foretell.questions.codec import from_dict, parse_json, to_json
from foretell.questions.errors import InputError, WrongValue
from foretell.questions.question import Question
from foretell.tools.leakage_rules import LeakageRules
from foretell.tools.post_cutoff_text import tells_later_events
from foretell.tools.tool import WEB_SEARCH, Refusal, SourceItem

SCHEMA = "foretell/context/1"
LONGEST_TITLE = 200
LONGEST_SUMMARY = 900
LONGEST_URL = 2000


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
    text = " ".join(unicodedata.normalize("NFC", UNSAFE.sub(" ", INVISIBLE.sub("", text))).split())
    if len(text) <= longest:
        return text
    start = text[: longest - 1]
    return (start.rpartition(" ")[0] or start).rstrip(" ,;:") + "…"


@frozen
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


@frozen
class PredictionContext:
    """A question as of a time, with its sources. Nothing in it is later than that time.

    >>> from foretell.questions.question import Target
    >>> q = Question(id="q", source="own", text="Snow?", due="2026-01-10", targets=(Target(id="yes"),))
    >>> bare = PredictionContext(question=q, as_of=q.as_of)
    >>> source = RankedSource(url="https://a.example", title="Cold", summary="")
    >>> full = PredictionContext(question=q, as_of=q.as_of, sources=(source,))
    >>> PredictionContext.from_json(full.to_json()) == full, bare.digest == full.digest
    (True, False)
    """

    question: Question
    """The question, with the quotes of its markets if there are any."""
    as_of: AsOf
    sources: tuple[RankedSource, ...] = ()
    """Sources by rank, from 1."""
    searcher: str = ""
    """The engine and model that found and summarised the sources."""
    closing_time: bool = False
    """Show the market's closing time in a backtest; set only if it was known beforehand. Live it is always shown."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", tuple(self.sources))
        object.__setattr__(self, "searcher", one_line(self.searcher, LONGEST_TITLE))
        if len(self.sources) > MOST_SOURCES:
            raise ValueError(f"a context holds at most {MOST_SOURCES} sources, not {len(self.sources)}")
        if [source.rank for source in self.sources] != list(range(1, len(self.sources) + 1)):
            raise ValueError(f"ranks must be 1, 2, …, not {[source.rank for source in self.sources]}")
        if len({source.url for source in self.sources}) < len(self.sources):
            raise ValueError("two sources of a context have the same address")
        for source in self.sources:
            if source.published is not None and not self.as_of.admits(source.published):
                raise ValueError(f"source {source.url} is dated {source.published}, after {self.as_of}")
        for target in self.question.targets:
            if target.snapshot is not None and not self.as_of.admits(target.snapshot.at):
                raise ValueError(f"the quotes of {target.id} are of {target.snapshot.at}, after {self.as_of}")
        try:
            to_json(self.question).encode()
        except UnicodeError:
            raise ValueError(f"question {self.question.id!r} has characters that cannot be encoded") from None

    @cached_property
    def canonical(self) -> bytes:
        """Canonical JSON: equal contexts have equal bytes, and different ones different bytes."""
        question = json.loads(to_json(self.question))
        if self.question.exclusivity == "exactly one":
            # The original form, so that stored contexts keep their digest.
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
        """SHA-256 of the canonical JSON, by which forecasts refer to the context."""
        return sha256(self.canonical).hexdigest()

    def to_json(self) -> str:
        """Return the canonical JSON as text."""
        return self.canonical.decode("ascii")

    @classmethod
    def from_json(cls, text: str | bytes, *, digest: str | None = None) -> "PredictionContext":
        """Parse a context. Raises `InputError` if it is invalid or its digest does not match."""
        document = parse_json(text)
        if not isinstance(document, dict) or cast("dict[str, Any]", document).get("schema") != SCHEMA:
            raise InputError(f"this is not a context in the form {SCHEMA!r}", column="schema")
        body = cast("dict[str, Any]", document)
        try:
            context = cls(
                question=from_dict(body["question"], Question),
                as_of=AsOf(at=instant(body["as_of"]["at"]), mode=body["as_of"]["mode"]),
                sources=tuple(RankedSource(**source) for source in body["sources"]),
                searcher=body["searcher"],
                closing_time=bool(body["closing_time"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, InputError) and not isinstance(error, WrongValue):
                raise
            raise InputError(f"this context cannot be read: {error}") from None
        if digest is not None and context.digest != digest:
            raise InputError(f"this context has the digest {context.digest[:12]}…, expected {digest[:12]}…")
        return context


def key_of(question: Question, as_of: AsOf) -> tuple[str, str, str]:
    """Return the key of a context: question, round and cutoff."""
    return question.id, question.due.isoformat(), as_of.at.isoformat()


def known_at(question: Question, as_of: AsOf) -> Question:
    """Return the question without quotes that were taken after the cutoff."""
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


@frozen
class RefusedArticle:
    """A source published with an event that the leakage filter refuses."""

    question: str
    title: str
    url: str
    reason: str

    def __str__(self) -> str:
        """A description on one line."""
        return for_terminal(f"{self.question}: “{self.title or self.url}” ({self.reason})")


def refused_articles(question: Question, articles: Iterable[PublishedArticle]) -> list[RefusedArticle]:
    """Return the sources published with an event that the leakage filter refuses, with the reasons.

    Such sources are declared as summaries of what was available when the question was asked, so they need no date. They
    are refused for later dates, for future days described as past, and for blocked addresses.
    """
    checked = ((article, article_refusal(question, article)) for article in articles)
    return [
        RefusedArticle(
            question=question.id, title=one_line(article.title, 80), url=one_line(article.url, 200), reason=reason
        )
        for article, reason in checked
        if reason is not None
    ]


def refusal_notes(refused: Sequence[RefusedArticle], published: int, most: int) -> list[str]:
    """Return a line that counts the refused sources, and one line for each of the first `most` of them."""
    if not refused:
        return []
    heading = f"{len(refused)} of {published} sources that came with the questions are not shown to models:"
    more = [f"… and {len(refused) - most} more"] if len(refused) > most else []
    return [heading, *(f"  {article}" for article in refused[:most]), *more]


def article_refusal(question: Question, article: PublishedArticle) -> str | None:
    """Return why the leakage filter refuses a source published with an event; None if it does not."""
    return _text_refusal(question, article.title, article.url.strip(), article.summary)


@lru_cache(maxsize=8192)  # All runs of a grid read the same articles.
def _text_refusal(question: Question, title: str, url: str, summary: str) -> str | None:
    as_of = question.as_of
    item = SourceItem(title=title, url=url, text=summary, captured=as_of.at, dating="none")
    admitted = LeakageRules(as_of=as_of, question=question).admit(item, WEB_SEARCH)
    if isinstance(admitted, Refusal):
        return admitted.reason
    if tells_later_events(f"{title}\n{summary}", as_of):
        return "it describes days after the cutoff as past"
    return None


def from_articles(
    question: Question, articles: Iterable[PublishedArticle], *, searcher: str = "published", closing_time: bool = False
) -> PredictionContext:
    """Return the context published with an event, as of its due time, with articles by rank and unranked ones last.

    Articles without an address get one made from their position. Articles without any text are left out, and so are
    those that the leakage filter refuses (see `refused_articles`).
    """
    admitted = sorted(articles, key=lambda article: article.rank if article.rank > 0 else 10**9)
    admitted = [article for article in admitted if article_refusal(question, article) is None]
    sources = [
        RankedSource(url=article.url.strip() or f"urn:article:{place}", title=article.title, summary=article.summary)
        for place, article in enumerate(admitted, start=1)
        if article.title.strip() or article.summary.strip()
    ]
    as_of = question.as_of
    return PredictionContext(
        question=known_at(question, as_of),
        as_of=as_of,
        sources=ranked(sources),
        searcher=searcher,
        closing_time=closing_time,
    )


def stored_context(question: Question, material: Iterable[PublishedArticle] | str) -> PredictionContext:
    """Return the context that a question set has for a question: its articles, or a whole context as JSON."""
    if not isinstance(material, str):
        return from_articles(question, material)
    context = PredictionContext.from_json(material)
    known = known_at(question, context.as_of)
    # A question that was changed since, such as one with later passages removed, is shown as it is now.
    return context if context.question == known else replace(context, question=known)


def _plain(value: Any) -> Any:
    """Return the same JSON with −0.0 as 0.0."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value + 0.0 if isinstance(value, float) else value


# Where forecasters get the context of a question: from a question set, a store or a builder.


class PredictionContexts(Protocol):
    """Provides the context of a question as of a time, the same for every forecaster."""

    async def of(self, question: Question, as_of: AsOf) -> PredictionContext | None:
        """Return the context; None if nothing was gathered for the question."""
        ...


class StoredContexts:
    """Contexts built before, by question, round and cutoff."""

    def __init__(self, contexts: Iterable[PredictionContext]) -> None:
        self._contexts: dict[tuple[str, str, str], PredictionContext] = {}
        for context in contexts:
            if self._contexts.setdefault(key_of(context.question, context.as_of), context) != context:
                raise ValueError(f"two contexts differ for question {context.question.id} at {context.as_of}")

    def __len__(self) -> int:
        return len(self._contexts)

    async def of(self, question: Question, as_of: AsOf) -> PredictionContext | None:
        """Return the stored context."""
        return self._contexts.get(key_of(question, as_of))
