"""Decides whether a sentence describes a date as past or as future, by the words in `languages.toml`."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from foretell.patterns import pattern
from foretell.tools.dates.find import weekdays
from foretell.tools.dates.languages import CLAUSE, WORD, Forms, Language, in_a_row, languages_of, matches_at
from foretell.tools.dates.previews import BEFORE_DATE, NEAR_BEFORE, is_preview

_AND_WORDS = "and und et y e och og en ja i a и і та ve dan și és και"
_AND = frozenset(_AND_WORDS.split())
_OWN_AND = {"en": "and", "de": "und", "fr": "et", "es": "y e", "it": "e ed", "pt": "e", "nl": "en"}
_AND_BY_LANGUAGE = {code: frozenset(words.split()) for code, words in _OWN_AND.items()}
"""Words for "and" in languages in which one of the others is a preposition or an article."""
_CLAUSE_COST = 4
"""How many words a comma or dash counts as, because the text beyond it is less related to the date."""
_NEAR_AFTER, _NEAR_SINCE = 2, 4
"""How many words after a date are searched for words of ranges, and before it for "since"."""
_SHORT_WORD = 3
_DAY_NAMES = "dnia dzień dne den dniu день дата date datum fecha tanggal tarikh ngày"
_DAY_WORDS = frozenset(_DAY_NAMES.split())
_LONG_CLAUSE = 5
"""From how many words before a date its clause has a verb of its own, or none that concerns the date."""
_VERB_GROUP = 4
"""How many words before a verb are searched for its auxiliaries."""
_FROM = frozenset(("a", "à", "by", "from"))
_FIRST_VERB = 7
"""Among how many words after the date the verb of its clause is searched."""


_SENTENCE_END = pattern(
    r"(?<=[^\W\d]{3}[.!?;])\s+(?=[^\Wa-z]|[\"'(\[«„“¿¡])"
    r"|(?<=\d[ap]m\.)\s+(?=[A-Z\"“'])|(?<=[%)\]\"»”][.!?])\s+(?=[A-ZÀ-ÝА-Я\"'«„“])"
    r"|(?<=\d\.)\s+(?=[A-ZÀ-ÝА-Я][^\W\d]+ [^\W\d])|(?<=\d{4}\.)\s+(?=[^\Wa-zà-öø-ÿа-яё]|[\"'(«„“”])"
    r"|\n|[。！？।؟۔።]|(?<=[!?])\s|[·•]\s"
)
_END_SIGN = pattern(r"[.!?;]\s|[\n。！？।؟۔።·•]")
_REACH = 320
"""How many characters of a sentence are searched on each side of a date, because untrusted ones may be endless."""


def describes_past(text: str, start: int, end: int, *, edges: bool = True) -> bool:
    """Whether a text says what happened on the date between two positions; plans and conditions do not.

    >>> text = "The vote was postponed to a session on 6 June 2024. On 7 June 2024 the bank cut its rate."
    >>> describes_past(text, 39, 50), describes_past(text, 55, 66)
    (False, True)
    """
    before, after = _sentence_up_to(text, start), _sentence_from(text, end)
    if (inside := _BRACKET.search(before)) is not None and ")" in after:
        # The text in the same brackets describes that day.
        bracketed = _combined_verdict(text, inside[1], text[start:end], after.split(")")[0], edges=edges)
        if bracketed is not None:
            return bracketed
    done = _combined_verdict(text, before, text[start:end], after, edges=edges)
    if done is None and not text[end + len(after) :].strip() and _SIGNATURE.search(before) and not WORD.search(after):
        return True
    if done is None and _described_below(text, start - len(before), end + len(after), before, after):
        return True
    if (
        done is not None
        or _SPAN_HEAD.search(before)
        or not _DATELINE.fullmatch(before)
        or len(WORD.findall(after)) > _LONGEST_REST
    ):
        return bool(done)
    # A dateline is judged by the text after it on its line, a signature by the text before it.
    rest, lead = end + len(after), start - len(before)
    if start < _HEAD and text[rest : rest + 1] not in ("", "\n"):
        follows = _sentence_from(text, rest + 1)
        return bool(_combined_verdict(text, "", "", follows))
    if lead > 0 and text[lead - 1] != "\n" and not WORD.search(after.strip(" .")):
        return bool(_combined_verdict(text, _sentence_up_to(text, lead - 1), "", ""))
    return False


def sentence_describes_past(text: str, start: int, end: int) -> bool:
    """Whether the sentence itself says what happened in the time named between two positions."""
    before, after = _sentence_up_to(text, start), _sentence_from(text, end)
    return bool(_combined_verdict(text, before, text[start:end], after))


def _described_below(text: str, first: int, last: int, before: str, after: str) -> bool:
    """Whether the date is in a heading without a verb, and the sentence right after it says what happened."""
    if first > 0 and text[first - 1] != "\n":
        return False
    if not 1 <= len(WORD.findall(before)) + len(WORD.findall(after)) <= _LONGEST_HEADING or after.endswith(("?", ":")):
        return False
    follows = _sentence_from(text, last + 1) if text[last : last + 1] not in ("", "\n") else ""
    return bool(follows) and not _YEAR.search(follows) and bool(_combined_verdict(text, "", "", follows))


def is_plan(text: str, start: int, end: int, *, edges: bool = True) -> bool:
    """Whether a text refers to the date between two positions as a future one.

    Without `edges`, a word such as "for" or "until" before it does not make it a plan: "results for June 2024".
    """
    before, after = _sentence_up_to(text, start), _sentence_from(text, end)
    return _combined_verdict(text, before, text[start:end], after, edges=edges) is False


def is_edge(text: str, start: int, end: int) -> bool:
    """Whether the date between two positions is a deadline or the edge of a range: "until 6 June", "from 6 June"."""
    before, after = _sentence_up_to(text, start).lower(), _sentence_from(text, end).lower()
    for language in languages_of(f"{before}{text[start:end]}{after}", within=text):
        split = _split(language)
        if _until(language, split(before), split(after), before, after):
            return True
    return False


def _combined_verdict(text: str, before: str, day: str, after: str, *, edges: bool = True) -> bool | None:
    """Return the combined verdict of all languages a sentence may be written in."""
    possible = languages_of(f"{before}{day}{after}", within=text)
    verdicts = [clause_describes_past(language, before, after, edges=edges) for language in possible]
    if False in verdicts:
        return False
    # If many languages are possible, one of them may have a past form that is another word in the right one.
    least = 2 if len(verdicts) > _FEW_LANGUAGES and _SIGNS.sub("", f"{before}{after}").isascii() else 1
    return True if verdicts.count(True) >= least else None


_FEW_LANGUAGES = 3
_SIGNS = pattern("[–—‘’“”…·•€£]")
"""Signs of many languages."""
_BRACKET = pattern(r"\(([^()]{3,60})$")
_DATELINE = pattern(r"\W{0,4}(?:[^\Wa-zà-ÿа-я][^\s:]{0,20}[\s,./–—-]{1,4}|(?:den|le|el|am) ){0,5}\W{0,3}")
_SIGNATURE = pattern(
    r"(?:^|[.!?]\s|[\[(–—])[^.\d:]{0,40}[^\W\d_]{3}[.\])]?,\s(?:den |le |el |il |a |am |em |dne |dnia |op )?$"
)
"""Before a date at the very end: a name or place and a comma."""
_SPAN_HEAD = pattern(r"\d\.? ?[-–—] ?$")
"""A range of days belongs to events and is never a dateline."""
_LONGEST_REST, _HEAD, _LONGEST_HEADING = 3, 300, 12
"""Most words after a date in a dateline, most characters before it, and most words in a heading."""
_YEAR = pattern(r"(?<!\bthe )\b(?:19|20)\d\d\b(?!-[eoö]s)")
"""A year that may belong to another date; "the 2026 final" and Hungarian "2026-os" are names."""


@lru_cache(maxsize=32)
def _sentence_up_to(text: str, place: int) -> str:
    first = max(0, place - _REACH)
    # One character more, because the start of the next sentence marks the end of this one.
    ends = (
        sentence_end.end()
        for sentence_end in _sentence_ends(text, first, min(len(text), place + 1))
        if sentence_end.end() <= place
    )
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


def clause_describes_past(language: Language, before: str, after: str, *, edges: bool = True) -> bool | None:
    """Whether a sentence describes the day between its two parts as past; None if it is undecided.

    The word nearest to the date decides: "the court, which ruled in May, meets on" refers to a future day.

    >>> (english,) = languages_of("The bank cut its rate, and it was the first time that it did.")
    >>> clause_describes_past(english, "The bank cut its rate on ", ".")
    True
    >>> clause_describes_past(english, "The bank meets on ", ".")
    False
    """
    split = _split(language)
    before = _RANGE_BEFORE.sub(r"\1 ", _DAYS_BEFORE.sub("", before))
    if (weekday := _WORD_AND_COMMA.search(before)) is not None and weekday[1].lower() in weekdays():
        before = before[: weekday.end(1)] + " "
    sentence = before
    before, after = (_NO_WORDS.sub("", part.lower()) for part in (before, after))
    left, right = split(before), split(after)
    if right and right[0] in language.that and not language.saying.isdisjoint(left):
        # "said on 6 June that it would": the date is that of the statement, whatever was said.
        after, right = "", []
    if _began_or_lasted(language, f"{before} {after}", left, edges=edges):
        return True
    if after.rstrip().endswith(("?", "？", "؟")) or (language.code == "en" and left[:1] in _CONDITIONS):
        return False
    if right[:2] == [",", "when"] and any(True for _ in _distances(language, language.told, [], right)):
        return True
    if edges and _until(language, left, right, before, after):
        return _is_over(language, left, right)
    if any(True for _ in _distances(language, language.open, left, _of_that_time(language, left, right))):
        return False
    if is_preview(language, sentence, left, right):
        return False
    return _nearest_is_past(language, before, after, left, right)


def _nearest_is_past(
    language: Language, before: str, after: str, left: Sequence[str], right: Sequence[str]
) -> bool | None:
    """Whether the word of the past or of plans that is nearest to the date is one of the past; None without any."""
    split = _split(language)
    counted = frozenset(_COUNTED.findall(f"{before} {after}"))
    start = max((place + 1 for place, word in enumerate(left) if word in CLAUSE), default=0)
    if _tells(language, left[start:]):
        # What has happened on that day is said, so that plans in another clause are not for it.
        right = right[: next((place for place, word in enumerate(right) if word in CLAUSE), len(right))]
    right = _of_that_time(language, left, right)
    ahead = min(_distances(language, language.ahead, left, right, counted), default=None)
    # Words beyond another date belong to that date.
    left, right = split(_YEAR.split(before)[-1]), split(_YEAR.split(after, maxsplit=1)[0])
    if language.code == "en" and left[:1] in _OPENINGS and CLAUSE.isdisjoint(left) and not _tells(language, left):
        # "At the hearing on 6 June the judge ruled": the verb follows the date, whatever the noun is.
        told = min(_distances(language, language.told, [], right), default=None)
        plan = min(_distances(language, language.ahead, [], right, counted), default=None)
        if told is not None:
            return plan is None or told < plan
    last = next((word for word in reversed(left) if word not in BEFORE_DATE | _DAY_OF), ",")
    left = _own_clause(language, _what_was_said(language, left))
    if language.code == "en" and last not in CLAUSE and not _tells(language, left):
        # The date belongs to a noun, and only the verb of that noun tells of it: "the vote on 6 June was lost".
        joints = CLAUSE | _JOINING
        right = right[: next((place for place, word in enumerate(right) if word in joints), len(right))]
    if language.code == "en" and left[:1] in _SIGNING_UP and "for" in left[1:_NEAR_SINCE]:
        right = []
    if _is_of_noun(language, left) and not _ended(language, left):
        # Something was done about an event of that day: "banned the rally of 24 May".
        left = []
    distance = min(_distances(language, language.told, left, right), default=None)
    if distance is None and ahead is None:
        return None
    if (
        right
        and right[0] in _AND_BY_LANGUAGE.get(language.code, _AND)
        and distance is not None
        and _tells(language, left)
    ):
        # "was elected on 6 June and takes office in July": the plan belongs to the next clause.
        ahead = min(_distances(language, language.ahead, left, [], counted), default=None)
    return ahead is None or (distance is not None and distance < ahead)


def _of_that_time(language: Language, left: Sequence[str], right: Sequence[str]) -> Sequence[str]:
    """The words after the date, without an English clause about another time if what happened on the day is said."""
    start = max((place + 1 for place, word in enumerate(left) if word in CLAUSE), default=0)
    if language.code != "en" or not _tells(language, left[start:]):
        return right
    return right[: next((place for place, word in enumerate(right) if word in _SUBORDINATE), len(right))]


_OF = {
    "en": "of", "de": "vom", "fr": "du", "es": "del", "it": "del dell", "nl": "van",
}  # fmt: skip
_OF_WORDS = {code: frozenset(words.split()) for code, words in _OF.items()}
_ENDED_WORDS = """
won lost beat defeated survived stunned swept ended decided followed after since in at during gewann verlor endete nach
seit bei remporté gagné perdu après depuis lors ganó perdió tras desde en vinto perso dopo na won verloor
"""
_ENDED = frozenset(_ENDED_WORDS.split())
"""Words that say how an event came out, or what came after it."""


def _is_of_noun(language: Language, left: Sequence[str]) -> bool:
    """Whether the date is that of a noun: "the rally of", "le rassemblement du"."""
    place = len(left) - 1
    while place > 0 and left[place] in weekdays():
        place -= 1
    return place > 0 and left[place] in _OF_WORDS.get(language.code, frozenset())


def _ended(language: Language, left: Sequence[str]) -> bool:
    """Whether the words before such a noun say how it came out, or are too few to tell."""
    return not _ENDED.isdisjoint(left) or not _tells(language, left[: -_NEAR_SINCE + 1])


def _split(language: Language) -> Callable[[str], list[str]]:
    return (WORD if language.spaced else _PIECE).findall


_AGE = pattern(
    r"\b(?:in|into|entering|entered) its (?:[a-z]+th|second|third) (?:day|week|month|year)\b"
    r"|\b(?:days?|weeks?|months?|years?) into\b"
)
"""How long something has lasted that began on the date."""


def _began_or_lasted(language: Language, sentence: str, left: Sequence[str], *, edges: bool) -> bool:
    """Whether something began on the date and goes on, or lasted until it and is over."""
    if not language.since.isdisjoint(left[-_NEAR_SINCE:]):
        # "since" never precedes a future day.
        return True
    if edges and _lasted(language, left):
        return True
    return language.code == "en" and _AGE.search(sentence) is not None and _tells(language, left)


def _tells(language: Language, left: Sequence[str]) -> bool:
    """Whether a verb of the past precedes the date."""
    return any(True for _ in _distances(language, language.told, left, []))


def _lasted(language: Language, left: Sequence[str]) -> bool:
    """Whether something that is over lasted until the date: "the strike lasted until", "had sold 900 by"."""
    near = left[-NEAR_BEFORE:]
    if not any(map(language.until.has, near)) and "by" not in near:
        return False
    clause = max((place + 1 for place, word in enumerate(left) if word in CLAUSE), default=0)
    places = range(clause, len(left))
    lasted = any(matches_at(language, language.lasted, left, place) for place in places)
    return lasted and not any(matches_at(language, language.ahead, left, place) for place in places)


def _is_over(language: Language, left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether a sentence begins with the edge of a range and continues in the past: "From 6 June it ran"."""
    edge = left[:1] and (language.until.has(left[0]) or left[0] in language.meant | _FROM)
    if len(left) > NEAR_BEFORE or not (edge or left[:2] == ["as", "of"]):
        return False
    words = right[1:] if right[:1] == [","] else right
    clause = next((place for place, word in enumerate(words) if word in CLAUSE), len(words))
    if any(
        matches_at(language, forms, right, place)
        for forms in (language.ahead, language.open)
        for place in range(len(right))
    ):
        return False
    return any(matches_at(language, language.told, words[:clause], place) for place in range(min(clause, _FIRST_VERB)))


def _own_clause(language: Language, left: list[str]) -> list[str]:
    """Return the words of the date's own clause, if it has a verb or a noun: "on" and "in Berlin on" have none."""
    if language.code != "en":
        place = max((place + 1 for place, word in enumerate(left) if word in CLAUSE), default=0)
        return left[place:] if len(left) - place >= _LONG_CLAUSE else left
    joints = [
        -1,
        *(place for place, word in enumerate(left) if word in _CLAUSE_STARTS or _joins_verbs(language, left, place)),
    ]
    if ":" in left[:-_LONG_CLAUSE]:
        # A clause follows the colon, and not only a name.
        joints = sorted({*joints, max(place for place, word in enumerate(left[:-_LONG_CLAUSE]) if word == ":")})
    clause = left
    for first, last in zip(reversed(joints), reversed((*joints[1:], len(left))), strict=True):
        clause = left[first + 1 : last]
        aside = first >= 0 and left[first] in CLAUSE and last < len(left)
        if (_tells(language, clause) and clause[0] != "as") or not (aside or _is_bare(clause)):
            break
    return clause


def _joins_verbs(language: Language, words: Sequence[str], place: int) -> bool:
    """Whether an "and" begins a clause with a verb of the past: "and confirmed a visit on"."""
    if words[place] != "and" or place + 1 >= len(words):
        return False
    return words[place + 1] in language.stance or matches_at(language, language.told, words, place + 1)


def _is_bare(words: Sequence[str]) -> bool:
    """Whether there are only words such as "on" before a date."""
    return all(word in BEFORE_DATE or word in weekdays() for word in words)


_OPENINGS = (["at"], ["after"], ["following"], ["during"], ["with"])
_SIGNING_UP = (["registration"], ["registrations"], ["applications"], ["nominations"], ["entries"], ["booking"])
"""Words that begin a sentence about joining an event of the date, whatever has happened to them."""
_CONDITIONS = (["should"], ["were"])
"""Words that begin an English condition without "if"."""
_SUBORDINATE_WORDS = "that which who whose because while although though whether if pending when where but"
_SUBORDINATE = frozenset(("after", "amid", "as", "because", "when", "while"))
"""Words after a date that begin a clause about another time: "settled on 6 June after it said that it would"."""
_CLAUSE_STARTS = (CLAUSE - {":"}) | frozenset(_SUBORDINATE_WORDS.split())
"""Signs and English words that begin a clause with a verb of its own."""
_DAY_OF = frozenset(("day", "this", "st", "nd", "rd", "th"))
"""Words between "on" and a date: "on this 14th day of"."""
_JOINING = frozenset(("and", "but", "or"))


def _what_was_said(language: Language, words: list[str]) -> list[str]:
    """Return the words after "said that", because when it was said does not concern the date that follows."""
    for place in range(len(words) - 1, 0, -1):
        said = language.code != "en" or any(word in language.saying for word in words[max(0, place - 4) : place])
        if words[place] in language.that and said:
            return words[place + 1 :]
    for place in range(len(words) - 2, -1, -1):
        if language.code == "en" and words[place] in _THOUGHT and words[place + 1] in _SUBJECT_STARTS:
            return words[place + 1 :]
    return words


_THOUGHT = frozenset(("said", "wrote", "thought", "believed", "reckoned", "added", "noted", "knew"))
_SUBJECT_STARTS = frozenset(
    ("the", "a", "an", "it", "he", "she", "they", "we", "its", "his", "her", "their", "this", "both")
)
"""Words with which a statement begins that follows its verb without "that"."""


_DAYS_BEFORE = pattern(r"(?:\b\d{1,2}(?:st|nd|rd|th|\.)?,? )+(?:(?:and|und|et|y|e|och|og|en|i|to|bis) )?$")
"""The other days of a list that ends with the date: "7, 8 and" of "7, 8 and 9 May"."""
_WORD_AND_COMMA = pattern(r"\b([^\W\d_]{3,12}), $")
_RANGE_BEFORE = pattern(
    r"\b([Bb]etween|[Zz]wischen dem|[Ee]ntre (?:le|el|os?)|[Tt]ra il|[Tt]ussen|[Mm]ellan(?: den)?|[Mm]ellem(?: den)?"
    r"|[Mm]iędzy|[Мм]ежду) \d{1,2}(?:st|nd|rd|th|er|\.)?(?: (?:de )?[^\W\d_]{3,12})?(?: (?:19|20)\d\d)?"
    r" (?:and|und(?: dem)?|et(?: le)?|y(?: el)?|e(?: il| o)?|en|och|og|a|и) $"
)
"""The first day of a range that ends with the date: "15 June and" of "between 15 June and 31 July"."""
_NO_WORDS = pattern(
    "[\u064b-\u0652]|(?<=[0-9])[,:](?=[0-9])"
    r"|\b(?:as|than) (?:(?:widely|had|been|was|were) )*(?:expected|planned|scheduled|forecast|predicted|promised)\b"
)
"""Arabic vowel signs, which most texts leave out; signs within numbers, which do not end a clause; "as expected"."""
_PIECE = pattern(r"[^\s。、,.!！?？()（）「」『』:：;；]+|[?？]")
"""A clause in languages without spaces between words."""


_POSTPOSED_CODES = "fi et hu tr hi bn ta te ka hy ur kk mn az uz mr gu pa ml kn si eu"
_POSTPOSED = frozenset(_POSTPOSED_CODES.split())
"""Languages that put "until" after the date: "6 June until"."""
_BRACKETED = pattern(r"^[(（][^)）]{1,4}[)）]")
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
    near = left[-NEAR_BEFORE:]
    if any(map(language.until.has, near)):
        return True
    if language.code in _POSTPOSED and any(map(language.until.has, right[:_NEAR_AFTER])):
        return True
    if left and _meant(language, left, before) and _NIGHT.isdisjoint(near):
        return True
    return any(in_a_row(language.until, near, place) for place in range(len(near)))


_AFTER_A_NUMBER = pattern(r"\d\S*\s+\S+\s*$")


def _meant(language: Language, left: Sequence[str], before: str) -> bool:
    """Whether the word right before the date makes it a plan; an article or weekday may stand between."""
    if left[-1] in language.meant:
        return True
    if _AFTER_A_NUMBER.search(before):  # "rose to 6% in June": the word belongs to the number.
        return False
    beside = left[-1]
    between = len(beside) <= _SHORT_WORD or beside in _DAY_WORDS or beside in weekdays()
    return len(left) > 1 and between and left[-2] in language.meant


_COUNTED = pattern(r"\d\s([^\W\d_]+)")
"""Words that are nouns after a number, such as "votes" in "562 votes"."""


def _distances(
    language: Language, forms: Forms, left: Sequence[str], right: Sequence[str], nouns: frozenset[str] = frozenset()
) -> Iterator[int]:
    """Yield the distance of each matching word from the date, in words."""
    words = [*left, *right]
    for place in range(len(words)):
        if words[place] in nouns:
            continue
        if not matches_at(language, forms, words, place) and not (
            forms is language.ahead and _is_present(language, words, place)
        ):
            continue
        if forms is language.ahead and _is_subject(language, words, place):
            continue
        if forms is language.told and (
            (words[place] in _HEADLINE_VERBS and not _ARTICLES.isdisjoint(words))
            or _within_a_plan(language, words, place)
            or (place >= len(left) and words[place] in language.saying and not _opens_saying(left, words, place))
            or (words[place] in language.stance and not _is_beside(left, place))
        ):
            continue
        between = words[place + 1 : len(left)] if place < len(left) else words[len(left) : place]
        joints = CLAUSE | _AND_BY_LANGUAGE.get(language.code, _AND)
        yield sum(_CLAUSE_COST if word in joints else 1 for word in between)


def _opens_saying(left: Sequence[str], words: Sequence[str], place: int) -> bool:
    """Whether the date that opens a sentence is that of a statement: "On 6 June the agency declared the outbreak"."""
    return _is_bare(left) and bool(left) and place + 1 < len(words) and words[place + 1] not in CLAUSE


_IN_HEADLINES = """
dies wins beats cuts sacks resigns praises lists finds blocks rejects approves elects arrests convicts acquits jails
ousts halts kills
"""
_HEADLINE_VERBS = frozenset(_IN_HEADLINES.split())
_ARTICLES = frozenset(("the", "a", "an"))
"""English verbs in the present describe the past only in headlines, which have no articles."""


def _is_beside(left: Sequence[str], place: int) -> bool:
    """Whether the date is that of a verb: it follows the verb at once, or opens the sentence."""
    if all(word in BEFORE_DATE for word in left):
        return len(left) <= place < len(left) + _FIRST_VERB
    return place == len(left) - 1 or (place == len(left) - 2 and left[-1] in BEFORE_DATE)


def _is_subject(language: Language, words: Sequence[str], place: int) -> bool:
    """Whether an English word in -s is a noun, because a verb follows it: "housing starts dropped"."""
    if language.code != "en" or not words[place].endswith("s") or place + 1 >= len(words):
        return False
    if words[place] in ("is", "gets"):
        return False
    return matches_at(language, language.told, words, place + 1)


_OBJECT_STARTS = frozenset(("the", "a", "an", "it", "them", "him", "her", "its", "his", "their"))
_BEFORE_PRESENT = frozenset(("and", "but", "then", "he", "she", "it", "who", "which"))
_SHORTEST_PRESENT = 4


def _is_present(language: Language, words: Sequence[str], place: int) -> bool:
    """Whether an English word in -s is a verb, by the words next to it: "and sends it under the hammer".

    Other verbs in the present may be those of a headline, which tells of the past.
    """
    if language.code != "en" or not 0 < place < len(words) - 1 or words[place - 1] not in _BEFORE_PRESENT:
        return False
    word = words[place]
    verb = len(word) >= _SHORTEST_PRESENT and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return verb and words[place + 1] in _OBJECT_STARTS


def _within_a_plan(language: Language, words: Sequence[str], place: int) -> bool:
    """Whether a word of plans closely precedes a verb, as in "will be held"."""
    if not language.spaced:
        return False
    first = max(0, place - _VERB_GROUP)
    clause = max((index + 1 for index in range(first, place) if words[index] in CLAUSE), default=first)
    return any(
        matches_at(language, language.ahead, words, index) and not _is_subject(language, words, index)
        for index in range(clause, place)
    )
