"""The words of each language for the past and the future, from `languages.toml`, and which language a text is in."""

import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from functools import cache, lru_cache
from importlib.resources import files

from foretell.frozen import frozen
from foretell.patterns import pattern

WORD = pattern(r"[^\s\d.,;:!?()\[\]{}<>«»„“”\"'’‘।|/…–—_=*#@%$€£&+·•،؛۔።፣፤-]+|[,;:–—(،؛፣፤]")
"""A word, or a sign that ends a clause."""
CLAUSE = frozenset(",;:–—(،؛፣፤")
_MOST_KNOWN = 20_000


@frozen(kw_only=False)
class Forms:
    """Words to look for: whole words, endings, beginnings and sequences of words."""

    whole: frozenset[str]
    endings: tuple[str, ...]
    beginnings: tuple[str, ...]
    rows: dict[str, list[list[str]]]
    """The following words of each sequence, by its first word, which is a whole word."""

    @classmethod
    def of(cls, text: str) -> "Forms":
        """Read the words of an entry."""
        words = text.split()
        single = [word for word in words if "_" not in word]
        rows: dict[str, list[list[str]]] = {}
        for first, *others in (word.split("_") for word in words if "_" in word):
            rows.setdefault(first, []).append(others)
        return cls(
            whole=frozenset(word for word in single if not (word.startswith("-") or word.endswith("-"))),
            endings=tuple(word[1:] for word in single if word.startswith("-")),
            beginnings=tuple(word[:-1] for word in single if word.endswith("-")),
            rows=rows,
        )

    known: dict[str, bool] = field(default_factory=dict[str, bool], compare=False, repr=False)
    """Cached results for single words, because the same ones occur repeatedly."""

    def has(self, word: str) -> bool:
        """Whether a word is one of them, as a whole or by its ending or beginning."""
        known = self.known.get(word)
        if known is None:
            if len(self.known) > _MOST_KNOWN:
                self.known.clear()
            known = self.known[word] = (
                word in self.whole
                or (word.endswith(self.endings) and len(word) > 3)
                or (bool(self.beginnings) and word.startswith(self.beginnings))
            )
        return known


@frozen(kw_only=False)
class Language:
    """How a language expresses the past and the future."""

    code: str
    common: frozenset[str]
    months: frozenset[str]
    letters: frozenset[str]
    attached: frozenset[str]
    """Letters that are small words and are attached to the next word."""
    spaced: bool
    told: Forms
    not_told: Forms
    stance: frozenset[str]
    saying: frozenset[str]
    ahead: Forms
    open: Forms
    awaited: Forms
    until: Forms
    meant: frozenset[str]
    since: frozenset[str]
    lasted: Forms
    that: frozenset[str]


@cache
def languages() -> dict[str, Language]:
    """Return all languages by code."""
    table = tomllib.loads(files("foretell.tools.dates").joinpath("languages.toml").read_text(encoding="utf-8"))
    return {
        code: Language(
            code=code,
            common=frozenset(row.get("common", "").split()),
            months=frozenset(row.get("months", "").split()),
            letters=frozenset(row.get("letters", "")),
            attached=frozenset(row.get("attached", "")),
            spaced=row.get("spaced", True),
            told=Forms.of(row["told"]),
            not_told=Forms.of(row.get("not_told", "")),
            stance=frozenset(row.get("stance", "").split()),
            saying=frozenset(row.get("saying", "").split()),
            ahead=Forms.of(row["ahead"]),
            open=Forms.of(row.get("open", "")),
            awaited=Forms.of(row.get("awaited", "")),
            until=Forms.of(row["until"]),
            meant=frozenset(row.get("meant", "").split()),
            since=frozenset(row.get("since", "").split()),
            lasted=Forms.of(row.get("lasted", "")),
            that=frozenset(row.get("that", "").split()),
        )
        for code, row in table.items()
    }


_SCRIPTS = (
    ("[\u3040-\u30ff]", "ja"),
    ("[\uac00-\ud7af]", "ko"),
    ("[\u4e00-\u9fff]", "zh"),
    ("[\u0e00-\u0e7f]", "th"),
    ("[\u0590-\u05ff]", "he yi"),
    ("[\u0900-\u097f]", "hi ne mr"),
    ("[\u0a00-\u0a7f]", "pa"),
    ("[\u0a80-\u0aff]", "gu"),
    ("[\u0c80-\u0cff]", "kn"),
    ("[\u0d00-\u0d7f]", "ml"),
    ("[\u0d80-\u0dff]", "si"),
    ("[\u1780-\u17ff]", "km"),
    ("[\u1000-\u109f]", "my"),
    ("[\u1200-\u137f]", "am"),
    ("[\u0980-\u09ff]", "bn"),
    ("[\u0b80-\u0bff]", "ta"),
    ("[\u0c00-\u0c7f]", "te"),
    ("[\u10a0-\u10ff]", "ka"),
    ("[\u0530-\u058f]", "hy"),
    ("[\u0370-\u03ff]", "el"),
    ("[\u0400-\u04ff]", "ru uk bg sr be mk kk mn"),
    ("[\u0600-\u06ff]", "ar fa ur"),
)
_LETTERS_BY_SCRIPT = tuple((pattern(letters), codes.split()) for letters, codes in _SCRIPTS)
_SAMPLE = 600
_LEAST_LETTERS, _LEAST_KANA = 5, 2


@lru_cache(maxsize=64)
def languages_of(text: str, within: str = "") -> tuple[Language, ...]:
    """Return the languages a text may be written in; if it is too short to tell, that of the text around it.

    >>> [language.code for language in languages_of("Die Bank hat den Zins gesenkt, und der Kurs ist gestiegen.")]
    ['de']
    """
    sample = text[:_SAMPLE].lower()
    words = WORD.findall(sample)
    codes = _of_script(sample, len(words))
    scores = dict.fromkeys(codes, 0.0)
    votes = _votes()
    counts = Counter(words)
    for word in counts.keys() & votes.keys():
        for code, weight in votes[word]:
            if code in scores:
                scores[code] += weight * counts[word]
    if not sample.isascii():
        characters = frozenset(sample)
        for code in codes:
            scores[code] += 2 * bool(languages()[code].letters & characters)
    best = max(scores.values())
    likely = [code for code, score in scores.items() if score > best - _CLEARLY]
    if within and (best < _CLEAR or len(likely) > 1):
        around = languages_of(within)
        if scores.get(around[0].code, -1) > best - _CLEARLY:
            return around
    if best < _CLEAR and "en" in codes and "en" not in likely:
        # Labels and logs in English have none of its frequent words.
        likely.append("en")
    return tuple(languages()[code] for code in (likely if best else codes[:1]))


@cache
def _votes() -> dict[str, list[tuple[str, int]]]:
    """Return which languages each frequent word and each month name suggests, with a weight."""
    votes: dict[str, list[tuple[str, int]]] = {}
    for code, language in languages().items():
        for word in language.common | language.months:
            weight = (word in language.common) + 2 * (word in language.months)
            votes.setdefault(word, []).append((code, weight))
    return votes


_CLEARLY, _CLEAR = 1, 4
"""Score margin by which a language must lead another, and score from which a text needs no context."""


def _of_script(sample: str, words: int) -> list[str]:
    """Return the codes of the languages written in the text's script."""
    if not sample.isascii():
        for letters, codes in _LETTERS_BY_SCRIPT:
            least = _LEAST_KANA if codes == ["ja"] else max(_LEAST_LETTERS, words / 3)
            if len(letters.findall(sample)) >= least:
                return codes
    return _latin()


@cache
def _latin() -> list[str]:
    """Return the codes of the languages in Latin script, English first."""
    others = {code for _, codes in _LETTERS_BY_SCRIPT for code in codes}
    return [code for code in languages() if code not in others]


def matches_at(language: Language, forms: Forms, words: Sequence[str], place: int) -> bool:
    """Whether one of the forms is at a place among words."""
    word = words[place]
    if forms is language.told and (language.not_told.has(word) or _is_noun(language, words, place)):
        return False
    if not language.spaced:
        return any(part in word for part in forms.whole) or word.endswith(forms.endings)
    if forms.has(word) or (len(word) > 2 and word[0] in language.attached and forms.has(word[1:])):
        return True
    return in_a_row(forms, words, place)


def _is_noun(language: Language, words: Sequence[str], place: int) -> bool:
    """Whether the preceding word makes a verb a noun: "a cut", "the first Fed cut"."""
    if place > 0 and [words[place]] in language.not_told.rows.get(words[place - 1], ()):
        return True
    if language.code != "en" or words[place] not in _NOUNS_TOO:
        return False
    return not _COUNTING.isdisjoint(words[max(0, place - _NOUN_REACH) : place])


_NOUNS_TOO = frozenset(("cut", "hit", "win", "split", "spread", "cast"))
_COUNTING = frozenset(("a", "an", "another", "no", "any", "first", "next", "second"))
_NOUN_REACH = 3
"""How many words before an English verb in its plain form are searched for a word that counts nouns."""


def in_a_row(forms: Forms, words: Sequence[str], place: int) -> bool:
    """Whether a sequence of words begins here; one other word may stand between any two."""
    for others in forms.rows.get(words[place], ()):
        at = place
        for part in others:
            at = next((index for index in (at + 1, at + 2) if index < len(words) and _fits(part, words[index])), -1)
            if at < 0:
                break
        else:
            return True
    return False


def _fits(part: str, word: str) -> bool:
    if part.startswith("-"):
        return word.endswith(part[1:]) and len(word) > len(part)
    if part.endswith("-"):
        return word.startswith(part[:-1])
    return word == part
