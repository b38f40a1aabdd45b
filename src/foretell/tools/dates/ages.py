"""Ages that a text tells of itself ("3 hours ago"), which mean nothing without the day of reading."""

import re
from functools import cache, lru_cache

from foretell.tools.dates.find import age_patterns, fold, lower
from foretell.tools.dates.words import ASIAN_STAMP, SMALL, TOKEN, is_future, is_stamp

_ENGLISH = r"(?:an?|a few|\d+)\s*(?:s|m|h|d|secs?|mins?|minutes?|hrs?|hours?|days?|weeks?|months?|years?)\s+ago"
_WITHOUT_NUMBER = (
    "just now|moments ago|today|yesterday|gerade eben|heute|gestern|hier|ayer|hoy|ieri|oggi|ontem|hoje|bugun|dun"
    "|только что|сегодня|вчера|刚刚|昨天|今天|昨日|本日|방금|어제|오늘"
)
_ASIAN_SMALL = frozenset(("に", "の", "を", "于", "於", "了", "에", "最終", "最后", "最後"))
_LONGEST = 60
_PIECES = re.compile(r"[|·•()\[\]]| - ")
_BYLINE = ("by ", "von ", "par ", "por ")
_LEADING_AGE = re.compile(
    r"^\s*(?:an?|\d+)\s+(?:minute|hour|day|week|month|year)s?\s+ago\s*[·•|–—:-]*\s*", re.IGNORECASE
)


@cache
def _age() -> re.Pattern[str]:
    forms = {re.escape(pattern).replace(r"\{\}", r"(?:\d+|an?|one|a few)") for pattern in age_patterns()}
    ordered = sorted({*forms, _ENGLISH}, key=len, reverse=True)
    return re.compile(f"(?:{'|'.join(ordered)}|{_WITHOUT_NUMBER})")


def age_stamp(text: str) -> str | None:
    """A line, or a piece of one between separators, in which the text tells its age."""
    for line in lower(fold(text)).split("\n"):
        for piece in _PIECES.split(line[:200]):
            if 2 < len(piece) <= _LONGEST and (age := _age_of(piece.strip(" \t.:,"))) is not None:
                return age
    return None


@lru_cache(maxsize=256)
def _age_of(piece: str) -> str | None:
    """The age that a piece of a line consists of, with nothing but a stamp word or a clock beside it."""
    found = _age().search(piece)
    if found is None:
        return None
    before, after = piece[: found.start()], piece[found.end() :]
    if found[0][-1:].isascii() and (before[-1:].isalnum() or after[:1].isalnum()):
        return None
    rest = TOKEN.findall(ASIAN_STAMP.sub(" ", f"{before} {after}"))
    counted = any(letter.isdigit() for letter in found[0])
    if counted and not after and before.startswith(_BYLINE):
        return piece
    stamped = any(map(is_stamp, rest)) or ASIAN_STAMP.search(piece) is not None
    plain = all(is_stamp(word) or word in SMALL or word.isdigit() or word in _ASIAN_SMALL for word in rest)
    return piece if plain and (stamped or counted) and not any(map(is_future, rest)) else None


def without_age(text: str) -> str:
    """A snippet without the age that engines put before it."""
    return _LEADING_AGE.sub("", text)
