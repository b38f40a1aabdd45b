"""Whether a sentence says what happened on its date or is about the future, by the words in `languages.toml`."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files

from foretell.tools.dates.find import weekdays

_WORD = re.compile(r"[^\s\d.,;:!?()\[\]{}<>«»„“”\"'’‘।|/…–—_=*#@%$€£&+·•،؛۔።፣፤-]+|[,;:–—(،؛፣፤]")
_CLAUSE = frozenset(",;:–—(،؛፣፤")
_AND_WORDS = "and und et y e och og en ja i a и і та ve dan și és και"
_AND = frozenset(_AND_WORDS.split())
_CLAUSE_COST = 4
"""How many words a comma or dash counts as, because what lies beyond it is less related to the date."""
_NEAR_BEFORE, _NEAR_AFTER, _NEAR_SINCE = 4, 2, 3
"""How many words next to a date are searched for words of deadlines and ranges."""
_SHORT_WORD = 3
_DAY_NAMES = "dnia dzień dne den dniu день дата date datum fecha tanggal tarikh ngày"
_DAY_WORDS = frozenset(_DAY_NAMES.split())
_MOST_KNOWN = 20_000
_VERB_GROUP = 4
"""How many words before a verb are searched for its auxiliaries."""
_FROM = frozenset(("a", "à", "by", "from"))
_FIRST_VERB = 7
"""Among how many words after the date the verb of its clause is searched."""


@dataclass(frozen=True, slots=True)
class _Forms:
    """Words to look for: whole words, endings, beginnings and sequences of words."""

    whole: frozenset[str]
    endings: tuple[str, ...]
    beginnings: tuple[str, ...]
    rows: dict[str, list[list[str]]]
    """The following words of each sequence, by its first word, which is a whole word."""

    @classmethod
    def of(cls, text: str) -> "_Forms":
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
    """Cached results for single words, because the same ones occur again and again."""

    def has(self, word: str) -> bool:
        """Whether a word is one of them, as a whole or by its ending or beginning."""
        found = self.known.get(word)
        if found is None:
            if len(self.known) > _MOST_KNOWN:
                self.known.clear()
            found = self.known[word] = (
                word in self.whole
                or (word.endswith(self.endings) and len(word) > 3)
                or (bool(self.beginnings) and word.startswith(self.beginnings))
            )
        return found


@dataclass(frozen=True, slots=True)
class Language:
    """How a language expresses the past and the future."""

    code: str
    common: frozenset[str]
    months: frozenset[str]
    letters: frozenset[str]
    attached: frozenset[str]
    """Letters that are small words and are attached to the next word."""
    spaced: bool
    told: _Forms
    not_told: _Forms
    saying: frozenset[str]
    ahead: _Forms
    open: _Forms
    until: _Forms
    meant: frozenset[str]
    since: frozenset[str]
    lasted: _Forms
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
            told=_Forms.of(row["told"]),
            not_told=_Forms.of(row.get("not_told", "")),
            saying=frozenset(row.get("saying", "").split()),
            ahead=_Forms.of(row["ahead"]),
            open=_Forms.of(row.get("open", "")),
            until=_Forms.of(row["until"]),
            meant=frozenset(row.get("meant", "").split()),
            since=frozenset(row.get("since", "").split()),
            lasted=_Forms.of(row.get("lasted", "")),
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
_LETTERS_BY_SCRIPT = tuple((re.compile(letters), codes.split()) for letters, codes in _SCRIPTS)
_SAMPLE = 600
_LEAST_LETTERS, _LEAST_KANA = 5, 2


@lru_cache(maxsize=64)
def languages_of(text: str, within: str = "") -> tuple[Language, ...]:
    """Return the languages a text may be written in; if it is too short to tell, that of the text around it.

    >>> [language.code for language in languages_of("Die Bank hat den Zins gesenkt, und der Kurs ist gestiegen.")]
    ['de']
    """
    sample = text[:_SAMPLE].lower()
    words = _WORD.findall(sample)
    codes = _of_script(sample, len(words))
    scores = dict.fromkeys(codes, 0.0)
    votes = _votes()
    counts = Counter(words)
    for word in counts.keys() & votes.keys():
        for code, weight in votes[word]:
            if code in scores:
                scores[code] += weight * counts[word]
    if not sample.isascii():
        seen = frozenset(sample)
        for code in codes:
            scores[code] += 2 * bool(languages()[code].letters & seen)
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
    found: dict[str, list[tuple[str, int]]] = {}
    for code, language in languages().items():
        for word in language.common | language.months:
            weight = (word in language.common) + 2 * (word in language.months)
            found.setdefault(word, []).append((code, weight))
    return found


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


_SENTENCE_END = re.compile(
    r"(?<=[^\W\d]{3}[.!?;])\s+(?=[^\Wa-z]|[\"'(\[«„“¿¡])"
    r"|(?<=\d[ap]m\.)\s+(?=[A-Z\"“'])|(?<=[%)\]\"»”][.!?])\s+(?=[A-ZÀ-ÝА-Я\"'«„“])"
    r"|(?<=\d\.)\s+(?=[A-ZÀ-ÝА-Я][^\W\d]+ [^\W\d])|(?<=\d{4}\.)\s+(?=[^\Wa-zà-öø-ÿа-яё]|[\"'(«„“”])"
    r"|\n|[。！？।؟۔።]|(?<=[!?])\s|[·•]\s"
)
_END_SIGN = re.compile(r"[.!?;]\s|[\n。！？।؟۔።·•]")
_REACH = 320
"""How many characters of a sentence are searched on each side of a date, because untrusted ones may be endless."""


def is_told_as_done(text: str, start: int, end: int, *, edges: bool = True) -> bool:
    """Whether a text says what happened on the date between two positions; plans and conditions do not.

    >>> text = "The vote was postponed to a session on 6 June 2024. On 7 June 2024 the bank cut its rate."
    >>> is_told_as_done(text, 39, 50), is_told_as_done(text, 55, 66)
    (False, True)
    """
    before, after = _sentence_up_to(text, start), _sentence_from(text, end)
    if (inside := _BRACKET.search(before)) is not None and ")" in after:
        # What stands in the same brackets says what was on that day.
        bracketed = _told(text, inside[1], text[start:end], after.split(")")[0], edges=edges)
        if bracketed is not None:
            return bracketed
    told = _told(text, before, text[start:end], after, edges=edges)
    if told is None and not text[end + len(after) :].strip() and _SIGNATURE.search(before) and not _WORD.search(after):
        return True
    if told is None and _told_below(text, start - len(before), end + len(after), before, after):
        return True
    if (
        told is not None
        or _SPAN_HEAD.search(before)
        or not _DATELINE.fullmatch(before)
        or len(_WORD.findall(after)) > _LONGEST_REST
    ):
        return bool(told)
    # A dateline is told by what follows it on its line, a signature by what it stands behind.
    rest, lead = end + len(after), start - len(before)
    if start < _HEAD and text[rest : rest + 1] not in ("", "\n"):
        follows = _sentence_from(text, rest + 1)
        return bool(_told(text, "", "", follows))
    if lead > 0 and text[lead - 1] != "\n" and not _WORD.search(after.strip(" .")):
        return bool(_told(text, _sentence_up_to(text, lead - 1), "", ""))
    return False


def is_told_in_sentence(text: str, start: int, end: int) -> bool:
    """Whether the sentence itself says what happened in the time named between two positions."""
    before, after = _sentence_up_to(text, start), _sentence_from(text, end)
    return bool(_told(text, before, text[start:end], after))


def _told_below(text: str, first: int, last: int, before: str, after: str) -> bool:
    """Whether the date is in a heading without a verb, and the sentence right after it says what happened."""
    if first > 0 and text[first - 1] != "\n":
        return False
    if not 1 <= len(_WORD.findall(before)) + len(_WORD.findall(after)) <= _LONGEST_HEADING or after.endswith(
        ("?", ":")
    ):
        return False
    follows = _sentence_from(text, last + 1) if text[last : last + 1] not in ("", "\n") else ""
    return bool(follows) and not _YEAR.search(follows) and bool(_told(text, "", "", follows))


def is_plan(text: str, start: int, end: int, *, edges: bool = True) -> bool:
    """Whether a text refers to the date between two positions as a future one.

    Without `edges`, a word such as "for" or "until" before it does not make it a plan: "results for June 2024".
    """
    before, after = _sentence_up_to(text, start), _sentence_from(text, end)
    return _told(text, before, text[start:end], after, edges=edges) is False


def is_edge(text: str, start: int, end: int) -> bool:
    """Whether the date between two positions is a deadline or the edge of a range: "until 6 June", "from 6 June"."""
    before, after = _sentence_up_to(text, start).lower(), _sentence_from(text, end).lower()
    for one in languages_of(f"{before}{text[start:end]}{after}", within=text):
        split = (_WORD if one.spaced else _PIECE).findall
        if _until(one, split(before), split(after), before, after):
            return True
    return False


def _told(text: str, before: str, day: str, after: str, *, edges: bool = True) -> bool | None:
    """Return the combined verdict of all languages a sentence may be written in."""
    possible = languages_of(f"{before}{day}{after}", within=text)
    verdicts = {tells_as_done(one, before, after, edges=edges) for one in possible}
    return False if False in verdicts else True if True in verdicts else None


_BRACKET = re.compile(r"\(([^()]{3,60})$")
_DATELINE = re.compile(r"\W{0,4}(?:[^\Wa-zà-ÿа-я][^\s:]{0,20}[\s,./–—-]{1,4}|(?:den|le|el|am) ){0,5}\W{0,3}")
_SIGNATURE = re.compile(
    r"(?:^|[.!?]\s|[\[(–—])[^.\d:]{0,40}[^\W\d_]{3}[.\])]?,\s(?:den |le |el |il |a |am |em |dne |dnia |op )?$"
)
"""Before a date at the very end: a name or place and a comma."""
_SPAN_HEAD = re.compile(r"\d\.? ?[-–—] ?$")
"""A range of days belongs to events and is never a dateline."""
_LONGEST_REST, _HEAD, _LONGEST_HEADING = 3, 300, 12
"""Most words after a date in a dateline, most characters before it, and most words in a heading."""
_YEAR = re.compile(r"(?<!\bthe )\b(?:19|20)\d\d\b(?!-[eoö]s)")
"""A year that may belong to another date; "the 2026 final" and Hungarian "2026-os" are names."""


@lru_cache(maxsize=32)
def _sentence_up_to(text: str, place: int) -> str:
    first = max(0, place - _REACH)
    # One character more: the end of a sentence is known by how the next one begins.
    ends = (one.end() for one in _sentence_ends(text, first, min(len(text), place + 1)) if one.end() <= place)
    return text[max(ends, default=first) : max(0, place)]


@lru_cache(maxsize=32)
def _sentence_from(text: str, place: int) -> str:
    last = min(len(text), place + _REACH)
    stop = next(_sentence_ends(text, place, last), None)
    return text[place : stop.start() if stop else last]


def _sentence_ends(text: str, first: int, last: int) -> Iterator[re.Match[str]]:
    """Yield the ends of sentences, checking only at punctuation: checking every letter takes ten times as long."""
    for sign in _END_SIGN.finditer(text, max(0, first - 1), last):
        place = sign.end() - 1
        if place >= first and (end := _SENTENCE_END.match(text, place, last)) is not None:
            yield end


def tells_as_done(language: Language, before: str, after: str, *, edges: bool = True) -> bool | None:
    """Whether a sentence says what was done on the day between its two parts; None if it says neither.

    The word nearest to the date decides: "the court, which ruled in May, meets on" refers to a future day.

    >>> english = languages()["en"]
    >>> tells_as_done(english, "The bank cut its rate on ", "."), tells_as_done(english, "The bank meets on ", ".")
    (True, False)
    """
    split = (_WORD if language.spaced else _PIECE).findall
    before, after = _NO_WORDS.sub("", before.lower()), _NO_WORDS.sub("", after.lower())
    left, right = split(before), split(after)
    if right and right[0] in language.that and not language.saying.isdisjoint(left):
        # "said on 6 June that it would": the date is that of saying it, whatever was said.
        after, right = "", []
    if not language.since.isdisjoint(left[-_NEAR_SINCE:]):
        # Nothing is told "since" a day to come.
        return True
    if edges and _lasted(language, left):
        return True
    if after.rstrip().endswith(("?", "？", "؟")):
        return False
    if edges and _until(language, left, right, before, after):
        return _is_over(language, left, right)
    if any(True for _ in _distances(language, language.open, left, right)):
        return False
    counted = frozenset(_COUNTED.findall(f"{before} {after}"))
    ahead = min(_distances(language, language.ahead, left, right, counted), default=None)
    # What happened beyond another date belongs to that one.
    left, right = split(_YEAR.split(before)[-1]), split(_YEAR.split(after, maxsplit=1)[0])
    left = _what_was_said(language, left)
    told = min(_distances(language, language.told, left, right), default=None)
    if told is None and ahead is None:
        return None
    if (
        right
        and right[0] in _AND
        and told is not None
        and any(True for _ in _distances(language, language.told, left, []))
    ):
        # "was elected on 6 June and takes office in July": the plan is that of the next clause.
        ahead = min(_distances(language, language.ahead, left, [], counted), default=None)
    return ahead is None or (told is not None and told < ahead)


def _lasted(language: Language, left: Sequence[str]) -> bool:
    """Whether something that is over lasted until the date: "the strike lasted until", "had sold 900 by"."""
    near = left[-_NEAR_BEFORE:]
    if not any(map(language.until.has, near)) and "by" not in near:
        return False
    clause = max((place + 1 for place, word in enumerate(left) if word in _CLAUSE), default=0)
    places = range(clause, len(left))
    lasted = any(_found(language, language.lasted, left, place) for place in places)
    return lasted and not any(_found(language, language.ahead, left, place) for place in places)


def _is_over(language: Language, left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether a sentence begins with the edge of a range and goes on in the past: "From 6 June it ran"."""
    if not 1 <= len(left) <= _NEAR_BEFORE or not (language.until.has(left[0]) or left[0] in language.meant | _FROM):
        return False
    words = right[1:] if right[:1] == [","] else right
    clause = next((place for place, word in enumerate(words) if word in _CLAUSE), len(words))
    if any(
        _found(language, forms, right, place)
        for forms in (language.ahead, language.open)
        for place in range(len(right))
    ):
        return False
    return any(_found(language, language.told, words[:clause], place) for place in range(min(clause, _FIRST_VERB)))


def _what_was_said(language: Language, words: list[str]) -> list[str]:
    """Return the words after "said that", because when it was said does not concern the date that follows."""
    for place in range(len(words) - 1, 0, -1):
        if words[place] in language.that and any(word in language.saying for word in words[max(0, place - 4) : place]):
            return words[place + 1 :]
    return words


_NO_WORDS = re.compile("[\u064b-\u0652]|(?<=[0-9]),(?=[0-9])")
"""Arabic vowel signs, which most texts leave out, and commas within numbers, which do not end a clause."""
_PIECE = re.compile(r"[^\s。、,.!！?？()（）「」『』:：;；]+|[?？]")
"""A clause in languages without spaces between words."""


_POSTPOSED_CODES = "fi et hu tr hi bn ta te ka hy ur kk mn az uz mr gu pa ml kn si eu"
_POSTPOSED = frozenset(_POSTPOSED_CODES.split())
"""Languages that put "until" after the date: "6 June until"."""
_BRACKETED = re.compile(r"^[(（][^)）]{1,4}[)）]")
_NIGHT = frozenset(
    (
        "night", "nacht", "natt", "natten", "nat", "nuit", "noche", "madrugada", "notte", "noite", "noc", "ночь", "ніч",
        "midnight", "mitternacht", "minuit", "μεσάνυχτα",
    )
)  # fmt: skip
"""Words for night: the night to a day is not a plan for it."""


def _until(language: Language, left: Sequence[str], right: Sequence[str], before: str, after: str) -> bool:
    if not language.spaced:
        beside = before[-4:], _BRACKETED.sub("", after)[:4]
        return any(word in part for word in language.until.whole for part in beside)
    near = left[-_NEAR_BEFORE:]
    if any(map(language.until.has, near)):
        return True
    if language.code in _POSTPOSED and any(map(language.until.has, right[:_NEAR_AFTER])):
        return True
    if left and _meant(language, left, before) and _NIGHT.isdisjoint(near):
        return True
    return any(_in_a_row(language.until, near, place) for place in range(len(near)))


_AFTER_A_NUMBER = re.compile(r"\d\S*\s+\S+\s*$")


def _meant(language: Language, left: Sequence[str], before: str) -> bool:
    """Whether the word right before the date makes it a plan; an article or weekday may stand between."""
    if left[-1] in language.meant:
        return True
    if _AFTER_A_NUMBER.search(before):  # "rose to 6% in June": the word belongs to the number.
        return False
    beside = left[-1]
    between = len(beside) <= _SHORT_WORD or beside in _DAY_WORDS or beside in weekdays()
    return len(left) > 1 and between and left[-2] in language.meant


_COUNTED = re.compile(r"\d\s([^\W\d_]+)")
"""Words after a number, which are nouns: in "562 votes" nobody votes."""


def _distances(
    language: Language, forms: _Forms, left: Sequence[str], right: Sequence[str], nouns: frozenset[str] = frozenset()
) -> Iterator[int]:
    """Yield the distance of each matching word from the date, in words."""
    words = [*left, *right]
    for place in range(len(words)):
        if words[place] in nouns or not _found(language, forms, words, place):
            continue
        if forms is language.told and (
            _within_a_plan(language, words, place) or (place >= len(left) and words[place] in language.saying)
        ):
            continue
        between = words[place + 1 : len(left)] if place < len(left) else words[len(left) : place]
        yield sum(_CLAUSE_COST if word in _CLAUSE or word in _AND else 1 for word in between)


def _within_a_plan(language: Language, words: Sequence[str], place: int) -> bool:
    """Whether a word of plans closely precedes a verb: in "will be held" nothing was held."""
    if not language.spaced:
        return False
    first = max(0, place - _VERB_GROUP)
    clause = max((one + 1 for one in range(first, place) if words[one] in _CLAUSE), default=first)
    return any(_found(language, language.ahead, words, one) for one in range(clause, place))


def _found(language: Language, forms: _Forms, words: Sequence[str], place: int) -> bool:
    word = words[place]
    if forms is language.told and (language.not_told.has(word) or _is_noun(language, words, place)):
        return False
    if not language.spaced:
        return any(one in word for one in forms.whole) or word.endswith(forms.endings)
    if forms.has(word) or (len(word) > 2 and word[0] in language.attached and forms.has(word[1:])):
        return True
    return _in_a_row(forms, words, place)


def _is_noun(language: Language, words: Sequence[str], place: int) -> bool:
    """Whether the preceding word makes a verb a noun: "a cut"."""
    return place > 0 and [words[place]] in language.not_told.rows.get(words[place - 1], ())


def _in_a_row(forms: _Forms, words: Sequence[str], place: int) -> bool:
    """Whether a sequence of words begins here; one other word may stand between any two."""
    for others in forms.rows.get(words[place], ()):
        at = place
        for wanted in others:
            at = next((one for one in (at + 1, at + 2) if one < len(words) and _fits(wanted, words[one])), -1)
            if at < 0:
                break
        else:
            return True
    return False


def _fits(wanted: str, word: str) -> bool:
    if wanted.startswith("-"):
        return word.endswith(wanted[1:]) and len(word) > len(wanted)
    if wanted.endswith("-"):
        return word.startswith(wanted[:-1])
    return word == wanted
