"""Ages that a text states for itself ("3 hours ago"), which cannot be dated without the day of reading."""

import re
from functools import cache, lru_cache

from foretell.patterns import pattern
from foretell.tools.dates.find import age_patterns
from foretell.tools.dates.folding import fold, lower
from foretell.tools.dates.words import ASIAN_STAMP, SMALL, TOKEN, is_future, is_stamp

_NAMED_DAYS = (
    "just now|moments ago|today|yesterday|gerade eben|heute|gestern|hier|ayer|hoy|ieri|oggi|ontem|hoje|bugun|dun"
    "|только что|сегодня|вчера|לפני יומיים|אתמול|היום|منذ یومین|امس|الیوم|دیروز|امروز"
)
_WITHOUT_NUMBER = frozenset(_NAMED_DAYS.split("|"))
_WITHOUT_NUMBER_ASIAN = "刚刚|剛剛|昨天|今天|昨日|本日|たった今|방금|어제|오늘"
_ENGLISH_UNIT = pattern(
    r"(?:s|m|h|d|w|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?|wks?|weeks?|mos?|months?|yrs?|years?)"
)
_SHORT_AGE = pattern(r"[·•]\s?\d{1,2}(?:s|m|h|d|w|mo|y|hrs?)\s?(?:$|[·•|])", re.MULTILINE)
"""An age in the style of social media, between separators."""
_ASIAN_SMALL = frozenset(("に", "の", "を", "于", "於", "了", "에", "最終", "最后", "最後"))
_LONGEST = 60
_SEPARATORS = ("|", "·", "•", "(", ")", "[", "]", " - ")
_PIECES = pattern("|".join(map(re.escape, _SEPARATORS)))
_NUMBER = pattern(r"\d+")
_UNSPACED = pattern("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_BYLINE = ("by ", "von ", "par ", "por ")
_META_WORDS = (
    "points point views view comments comment replies reply likes shares listed active streamed premiered live viewed "
    "answered asked commented replied shared joined online seen visited activity changed added uploaded bumped "
    "kommentare commentaires comentarios комментариев"
)
_META = frozenset(_META_WORDS.split())
_LEADING_AGE = pattern(r"^\s*(?:an?|\d+)\s+(?:minute|hour|day|week|month|year)s?\s+ago\s*[·•|–—:-]*\s*", re.IGNORECASE)
_MOST_WORDS = 6


_SHORTER = (
    ("vor {} ", "std. std stdn min. min tg. tagen"), ("il y a {} ", "h min mn j"), ("hace {} ", "h min d"),
    ("há {} ", "h min d"), ("منذ {} ", "ساعات ساعة دقيقة دقائق يوم أيام أسابيع أسبوع أشهر شهر"),
)  # fmt: skip
_SHORTER_BEFORE = (
    (" назад", "ч ч. мин мин. дн"), (" fa", "h ore min"), (" temu", "godz. godz min. dni"), (" geleden", "u uur min"),
    (" yang lalu", "jam menit hari"), (" lalu", "jam menit hari"), (" önce", "sa dk saat dakika"),
    (" sedan", "tim min"), (" siden", "t min timer"), (" sitten", "t min h"),
    (" atrás", "horas minutos dias"), (" тому", "год хв годин"),
)  # fmt: skip
"""Forms that the CLDR lacks: the unit after the other words (above) or before them."""


@cache
def _spaced() -> frozenset[tuple[str, ...]]:
    """Return the forms of an age in languages with spaces between words, split into words."""
    shorter = [f"{lead}{unit}" for lead, units in _SHORTER for unit in units.split()]
    shorter += [f"{{}} {unit}{end}" for end, units in _SHORTER_BEFORE for unit in units.split()]
    patterns = (*age_patterns(), *(lower(fold(pattern)) for pattern in shorter))
    return frozenset(tuple(_words(pattern)) for pattern in patterns if not _UNSPACED.search(pattern))


@cache
def _unspaced() -> re.Pattern[str]:
    """Return a pattern for the forms of an age in languages without spaces between words."""
    forms = {
        re.escape(age_pattern).replace(r"\{\}", r"\d+").replace(r"\ ", r"\s?")
        for age_pattern in age_patterns()
        if _UNSPACED.search(age_pattern)
    }
    return pattern(f"(?:{'|'.join(sorted(forms, key=len, reverse=True))}|{_WITHOUT_NUMBER_ASIAN})")


def _words(piece: str) -> list[str]:
    """Return the words of a piece of text, with {} for numbers."""
    return [word.strip(".,:;!") for word in _NUMBER.sub(" {} ", piece.replace("{}", "0")).split()]


def age_stamp(text: str) -> str | None:
    """Return a line, or a part of one between separators, in which the text states its age, or None."""
    folded = fold(text)
    if ("·" in folded or "•" in folded) and (short := _SHORT_AGE.search(folded)) is not None:
        return short[0].strip()
    for plain in folded.split("\n"):
        if not plain:
            continue
        head = plain[:200]
        if len(head) > _LONGEST and not any(map(head.__contains__, _SEPARATORS)):
            continue
        for piece in _PIECES.split(head):
            if 1 < len(piece) <= _LONGEST and (age := _age_of(piece.strip(" \t.:,"))) is not None:
                return age
    return None


@lru_cache(maxsize=256)
def _age_of(plain: str) -> str | None:
    """Return the age if the piece consists of it, apart from a stamp word, a name or a time of day."""
    piece = lower(plain)
    if not piece.isascii() and _UNSPACED.search(piece):
        match = _unspaced().search(piece)
        return None if match is None else _by_the_rest(piece, match[0], piece[: match.start()], piece[match.end() :])
    words = _words(piece)
    if "{}" not in words and not any(word in piece for word in ("ago", *_WITHOUT_NUMBER)):
        return None
    for start, first in enumerate(words):
        if first not in _first_words():
            continue
        for end in range(min(len(words), start + _MOST_WORDS), start, -1):
            if _is_age(words[start:end]):
                name = plain[
                    : max(0, piece.find(words[start + 1] if words[start] == "{}" and end - start > 1 else words[start]))
                ]
                before, after = " ".join(words[:start]), " ".join(words[end:])
                return _by_the_rest(piece, " ".join(words[start:end]), before, after, name=name)
    return None


@cache
def _first_words() -> frozenset[str]:
    """Return the words an age can begin with."""
    first_words = (name.split()[0] for name in _WITHOUT_NUMBER)
    return frozenset(("{}", "a", "an", "one", *first_words, *(way[0] for way in _spaced() if way)))


def _is_age(words: list[str]) -> bool:
    if tuple(words) in _spaced() or " ".join(words) in _WITHOUT_NUMBER:
        return True
    if len(words) < 3 or words[-1] != "ago":
        return False
    number, unit = words[:-2], words[-2]
    return number in (["{}"], ["a"], ["an"], ["one"], ["a", "few"]) and _ENGLISH_UNIT.fullmatch(unit) is not None


def _by_the_rest(piece: str, age: str, before: str, after: str, *, name: str = "") -> str | None:
    rest = TOKEN.findall(ASIAN_STAMP.sub(" ", f"{before} {after}"))
    counted = "{}" in age or any(letter.isdigit() for letter in age)
    if any(map(is_future, rest)):
        return None
    if counted and not after and (before.startswith(_BYLINE) or _is_name(name)):
        return piece
    if counted and _META.intersection(rest) and len(rest) <= 8:
        return piece
    stamped = any(map(is_stamp, rest)) or ASIAN_STAMP.search(piece) is not None or ":" in piece
    if stamped and counted and " by " in f" {before} ":
        return piece
    plain = all(is_stamp(word) or word in SMALL or word.isdigit() or word in _ASIAN_SMALL for word in rest)
    return piece if plain and (stamped or counted) else None


def _is_name(text: str) -> bool:
    """Whether the words before an age are the name of a person or a newspaper: "Ana Berg, 4 hrs ago"."""
    words = text.strip(" ,").split()
    # The number itself comes last.
    words = words[:-1] if words and words[-1].isdigit() else words
    return (
        1 <= len(words) <= 3 and text.rstrip(" 0123456789").endswith(",") and all(word[:1].isupper() for word in words)
    )


def without_age(text: str) -> str:
    """Return a snippet without the age that search engines put before it."""
    return _LEADING_AGE.sub("", text)
