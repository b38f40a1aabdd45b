"""What counts as new: the same fact read again, or in another document, is never counted twice."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256

from foretell.patterns import pattern
from foretell.standing.record import Look, NewEvidence, StandingBelief
from foretell.tools.addresses import UnreadableAddress, address_of

SHINGLE = 3
"""Words in a row that are compared."""
ALIKE = 0.6
"""Share of the shorter text's shingles in the longer one, from which both report the same fact."""
LONGEST_TEXT = 2_000
"""Characters of a document that are kept: enough to judge it, and to see later what was known."""
LONGEST_TITLE = 200
CHANGED = "New on this page since it was read before:"
FEWEST = 5
"""Shingles of the shorter text below which only equal texts are the same."""
_WORD = pattern(r"[^\W_]+(?:[.,:][0-9]+)*")
_FIGURE = pattern(
    r".*\d.*|january|february|march|april|june|july|august|september|october|november|december", re.DOTALL
)
"""Words that tell reports of the same wording apart: numbers and months. "May" is more often a verb."""


def address_key(url: str) -> str:
    """Return a key of a web address that ignores protocol, mobile prefixes, tracking ports and spelling.

    >>> address_key("https://www.example.com/A?b=1") == address_key("http://m.example.com:443/a/?b=1#top")
    True
    """
    try:
        place = address_of(url)
    except UnreadableAddress:
        place = None
    plain = url.strip() if place is None else f"{place.host}{place.path}{sorted(place.params)}"
    return f"address {_digest(plain)}"


MOST_SENTENCES = 300
"""Sentences of a page by which its next version is compared."""
_SENTENCE = pattern(r"(?<=[.!?])\s+|\s*\n\s*")


def sentences_of(page: str) -> tuple[str, ...]:
    r"""Return the different sentences and lines of a page.

    >>> sentences_of("It is open. It is open.\n\nIt rained.")
    ('It is open.', 'It rained.')
    """
    parts = (" ".join(part.split()) for part in _SENTENCE.split(page))
    return tuple(dict.fromkeys(part for part in parts if part))[:MOST_SENTENCES]


def content_key(text: str) -> str:
    """Return a key of the words of a text.

    >>> content_key("Rates fell.") == content_key("rates  FELL")
    True
    """
    return f"text {_digest(' '.join(_words(text)))}"


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:20]


@lru_cache(maxsize=20_000)
def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.lower()))


@lru_cache(maxsize=20_000)
def _parts(text: str) -> tuple[frozenset[tuple[str, ...]], frozenset[str]]:
    """Return the shingles of a text, and its figures."""
    words = _words(text)
    shingles = frozenset(words[place : place + SHINGLE] for place in range(len(words) - SHINGLE + 1))
    return shingles, frozenset(word for word in words if _FIGURE.fullmatch(word))


def same_fact(one: str, other: str) -> bool:
    """Whether two texts report the same: most of the shorter one is in the longer one, with no other figure.

    >>> report = "The harbour council voted on Friday to approve the new bridge with 7 votes."
    >>> same_fact(report, f"Breaking news from the harbour. {report} More follows.")
    True
    >>> same_fact(report, report.replace("7", "4"))
    False
    >>> same_fact(f"Of 18 March: {report}", f"Of 18 April: {report}")
    False
    """
    first, second = _parts(one), _parts(other)
    short, long = (first, second) if len(first[0]) <= len(second[0]) else (second, first)
    if len(short[0]) < FEWEST:
        return _words(one) == _words(other)
    return short[1] <= long[1] and len(short[0] & long[0]) >= ALIKE * len(short[0])


def unseen(
    found: Iterable[NewEvidence], seen: Iterable[str], earlier: Sequence[NewEvidence]
) -> tuple[list[NewEvidence], list[NewEvidence]]:
    """Split what was found into news and evidence that is only to be marked as seen.

    Args:
        found: What a look found. An address is in `url`.
        seen: Keys of everything that looks have found.
        earlier: Evidence that looks have found, for comparison of the texts.

    Returns:
        The news, each with the key of its text. And what to mark as seen: the addresses of the news, the sentences of
            pages that were read whole, and other documents with a fact that is known, under the key of that fact.

    A page that was read whole before is news again if it changed, with its new sentences alone.
    """
    before = set(seen)
    known, texts = set(before), list(earlier)
    news: list[NewEvidence] = []
    marks: list[NewEvidence] = []
    for evidence in found:
        address = address_key(evidence.url) if evidence.url else ""
        if evidence.key in known:
            continue
        whole = f"whole {address}"
        said = {f"said {_digest(f'{address} {content_key(part)}')}": part for part in evidence.sentences if address}
        keys = [key for key in (address, *([whole, *said] if said else [])) if key and key not in known]
        changed = [part for key, part in list(said.items())[: _compared(evidence, said, known)] if key not in known]
        read_before = address in known
        # Excerpts of one page differ from search to search: only a page that was read whole shows that it changed.
        if read_before and not said:
            continue
        known.update((evidence.key, *keys))
        marks += [NewEvidence(key=key, text="", url=evidence.url) for key in keys]
        if read_before:
            text, evidence = " ".join(changed), _changed(evidence, changed)
        else:
            text = evidence.text
        known_fact = any(same_fact(text, other.text) for other in texts)
        if known_fact or (read_before and not (changed and whole in before)):
            marks.append(NewEvidence(key=evidence.key, text="", url=evidence.url))
            continue
        texts.append(evidence)
        news.append(replace(evidence, sentences=()))
    return news, marks


def _compared(evidence: NewEvidence, said: Collection[str], known: Collection[str]) -> int:
    """Return how many sentences of a page tell what is new on it.

    What follows the last known sentence of a long page may only have moved up, because others before it are gone.
    """
    last = max((place for place, key in enumerate(said, 1) if key in known), default=0)
    return last if last and len(evidence.sentences) >= MOST_SENTENCES else len(said)


def _changed(evidence: NewEvidence, sentences: Sequence[str]) -> NewEvidence:
    """Return the new sentences of a page. When they were written is not known: the day of the page may be its first."""
    title = evidence.text.partition("\n")[0][:LONGEST_TITLE]
    text = f"{title}\n{CHANGED} {' '.join(sentences)}"[:LONGEST_TEXT]
    return replace(evidence, text=text, published=None)


def waiting_news(looks: Sequence[Look], beliefs: Sequence[StandingBelief]) -> list[NewEvidence]:
    """Return the news that no look has judged yet, because a model failed or a budget was spent; oldest first."""
    updated = {belief.look for belief in beliefs}
    waiting: dict[str, NewEvidence] = {}
    for look in looks:
        # What was found when the question was asked is known to its first belief.
        judged = "first" in look.triggers or look.bears is False or (look.bears is True and look.number in updated)
        for evidence in look.news:
            if judged:
                waiting.pop(evidence.key, None)
            else:
                waiting[evidence.key] = evidence
        waiting |= {evidence.key: evidence for evidence in look.waits}
    return list(waiting.values())
