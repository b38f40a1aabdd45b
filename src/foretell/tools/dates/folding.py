"""Normalizes texts before dates are searched: ASCII digits, no accents, invisible characters or look-alikes."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from html import unescape
from itertools import accumulate

from foretell.data.untrusted import INVISIBLE
from foretell.patterns import pattern

# Simple patterns suffice afterwards. Positions always refer to the folded text.


class _Letters(dict[int, str]):
    """Code → its letter in ASCII, found when a text first has it, because reading all of Unicode takes long."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        self[code] = str(unicodedata.digit(letter)) if code < 0x10000 and letter.isdecimal() else letter
        return self[code]


class _WithoutMarks(dict[int, str | None]):
    """Code → the character, None for marks such as accents; found in the same way."""

    def __missing__(self, code: int) -> str | None:
        self[code] = None if code < 0x10000 and unicodedata.category(chr(code))[0] == "M" else chr(code)
        return self[code]


_LETTERS = _Letters(
    str.maketrans(
        {
            **dict.fromkeys("‐‑‒–—―−﹣－", "-"),
            **dict.fromkeys("’‘‛′´`ʹʼ״׳", "'"),
            **dict.fromkeys("⁄∕⧸／", "/"),
            **dict.fromkeys("∶꞉：︓", ":"),
            **dict.fromkeys("\u3164\uffa0\u2800", " "),
            **{
                "ı": "i",
                "ł": "l",
                "Ł": "L",
                "ø": "o",
                "Ø": "O",
                "đ": "d",
                "Đ": "D",
                "ي": "ی",
                "ى": "ی",
                "ك": "ک",
                "。": ".",
                "、": ",",
                "،": ",",
                "॰": ".",
            },
        }
    )
)
_NO_MARKS = _WithoutMarks()
_THAI_DOT = pattern(r"\.(?=[ก-ฮ])(?<=[ก-ฮ]\.)")
"""The dots inside abbreviated Thai month names."""

_ENTITY = pattern(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,8});", re.IGNORECASE)
_INLINE_TAG = pattern(
    r"</?(?:b|i|u|s|em|strong|span|font|small|sup|sub|mark|wbr|a|bdi|bdo)(?:\s[^<>\d\n]{0,200})?/?>", re.I
)
_SPACED_OUT = pattern(r"(?<!\S)(?:[^\s|](?: |\u00a0)){5,}[^\s|](?!\S)")
_LETTER_DIGITS = pattern(r"(?<!\w)[12][0-9oOlI]{3}([-/.])[0-9oOlI]{1,2}\1[0-9oOlI]{1,2}(?!\w)")
_DIGIT_LIKE = str.maketrans("oOlI", "0011")
_LOOK_ALIKE = str.maketrans(
    "аАвВеЕіІјЈкКмМнНоОрРсСтТуУхХѕЅһԁԛԝᴀαΑβΒεΕηΗιΙκΚμΜνΝοΟρΡτΤυΥχΧᎠᎡᎢᎪᎫᎬᎳᎷᎻᎽᏀᏃᏌᏎᏕᏙᏚᏞᏟᏢᏦ",
    "aAbBeEiIjJkKmMhHoOpPcCtTyYxXsShdqwaaAbBeEnHiIkKuMvNoOpPtTuYxXDRTAJEWMHYGZUSSVSLCPK",
)
_MIXED = pattern(
    r"[a-zA-Z]{0,40}[\u0370-\u03ff\u0400-\u04ff\u0500-\u052f\u13a0-\u13ef\u1d00-\u1d7f][a-zA-Z\u0370-\u03ff\u0400-\u0"
    r"4ff\u0500-\u052f\u13a0-\u13ef\u1d00-\u1d7f]{2,40}"
)
_LATIN = pattern(r"[a-zA-Z]")
_MIXED_SEEN = pattern(
    r"[\u0370-\u03ff\u0400-\u04ff\u0500-\u052f\u13a0-\u13ef\u1d00-\u1d7f](?:(?=[a-zA-Z])|(?<=[a-zA-Z].))"
)
"""A letter of another script next to a Latin one."""
_HAN_NUMBER = pattern(r"[〇零○一二三四五六七八九十]{1,4}(?=\s?[年月日号號])")
_HAN = {sign: place for place, sign in enumerate("〇一二三四五六七八九")} | {"零": 0, "○": 0}

_ONES = "one two three four five six seven eight nine"
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
)
_ORDINAL_NUMBERS = {
    **{word: place for place, word in enumerate(_ORDINALS.split(), start=1)},
    **{f"twenty {word}": 20 + place for place, word in enumerate(_ORDINALS.split()[:9], start=1)},
    "thirtieth": 30,
    "thirty first": 31,
}
_TWENTIES = {
    "twenty twenty {}": _ONES,
    "two thousand twenty {}": _ONES,
    "two thousand and twenty {}": _ONES,
    "deux mille vingt {}": "et-un deux trois quatre cinq six sept huit neuf",
    "dos mil veinti{}": "uno dos tres cuatro cinco seis siete ocho nueve",
    "duemilaventi{}": "uno due tre quattro cinque sei sette otto nove",
    "dois mil e vinte e {}": "um dois tres quatro cinco seis sete oito nove",
    "zweitausend{}undzwanzig": "ein zwei drei vier funf sechs sieben acht neun",
    "zweitausendund{}undzwanzig": "ein zwei drei vier funf sechs sieben acht neun",
    "tweeduizend{}entwintig": "een twee drie vier vijf zes zeven acht negen",
}
_YEAR_WORDS = {
    phrase.format(word.replace("-", " ")): 2020 + place
    for phrase, words in _TWENTIES.items()
    for place, word in enumerate(words.split(), start=1)
} | {"twenty thirty": 2030, "two thousand thirty": 2030, "two thousand and thirty": 2030, "deux mille trente": 2030}
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"


def _either(phrases: dict[str, int]) -> str:
    return "|".join(sorted((phrase.replace(" ", r"[ -]{1,3}") for phrase in phrases), key=len, reverse=True))


_WORDED_YEAR = pattern(rf"\b(?:{_either(_YEAR_WORDS)})\b", re.IGNORECASE)
_WORDED_DAY = pattern(
    rf"\b(?P<before>{_either(_ORDINAL_NUMBERS)})\b(?=,? (?:day )?(?:of )?(?:{_MONTHS})\b)"
    rf"|(?<=[a-z]) (?:the )?(?P<after>{_either(_ORDINAL_NUMBERS)})\b(?=,? (?:20\d\d|in the year))",
    re.IGNORECASE,
)
_SPELT = ("wenty", "housand", "WENTY", "HOUSAND", "eux mil", " mil ", "ausend", "uemila", "eduizend")
_ORDINAL_ENDS = ("irst", "econd", "hird", "ifth", "ixth", "hth", "inth", "enth", "elfth", "urth", "ieth")
_ORDINAL_SEEN = pattern(rf"(?:{'|'.join(_ORDINAL_ENDS)})(?:,? (?:day )?(?:of )?[A-Z]|,? 20\d\d)")
"""Text that may contain a day written in words."""
_SPACED_OUT_SEEN = pattern(r" \S \S \S \S")
_LETTER_DIGITS_SEEN = tuple(pattern(rf"{first}[0-9oOlI]{{3}}[-/.][0-9oOlI]{{1,2}}[-/.]") for first in "12")
"""Two patterns, because searching for one letter is several times faster than for either of two."""
_SPACES = pattern(r"[\s-]+")


@lru_cache(maxsize=16)
def fold(text: str) -> str:
    """Return text with ASCII digits and without accents, vowel signs, invisible characters, entities or fancy dashes.

    Case is kept. Years in words, letters that pose as digits or as other letters, and s p a c e d   o u t words are
    written plainly.

    >>> fold("Mis à jour le ５ févr. ۲۰۲۴")
    'Mis a jour le 5 fevr. 2024'
    >>> fold("Uрdаted: the fifth of June, two thousand and twenty-four, 2 0 2 4 - O 6")
    'Updated: the 5 of June, 2024, 2024-O6'
    """
    if "&" in text and ";" in text:
        text = _ENTITY.sub(_read_entity, text)
    if "<" in text:
        text = _INLINE_TAG.sub("", text)
    if "%2" in text:
        text = text.replace("%20", " ").replace("%2F", "/").replace("%3A", ":").replace("%2D", "-")
    if not text.isascii():
        text = _plain_letters(text)
    if _SPACED_OUT_SEEN.search(text) is not None:
        text = _SPACED_OUT.sub(lambda match: _SPACES_ONLY.sub("", match[0]), text)
    if any(pattern.search(text) for pattern in _LETTER_DIGITS_SEEN):
        text = _LETTER_DIGITS.sub(lambda match: match[0].translate(_DIGIT_LIKE), text)
    if any(map(text.__contains__, _SPELT)):
        text = _WORDED_YEAR.sub(lambda match: str(_YEAR_WORDS[_SPACES.sub(" ", match[0].lower())]), text)
    if any(map(text.__contains__, _ORDINAL_ENDS)) and _ORDINAL_SEEN.search(text) is not None:
        text = _WORDED_DAY.sub(_in_digits, text)
    return text


_SPACES_ONLY = pattern(r"\s")


_DIGIT = pattern(r"\d")
_NON_ASCII = pattern(r"[^\x00-\x7f]+")


@lru_cache(maxsize=20_000)
def _plain_run(text: str) -> str:
    """Fold a run of non-ASCII characters. Cached, because the same ones occur repeatedly."""
    # Digits first: NFKD would turn superscripts into digits of the number before them.
    plain = unicodedata.normalize("NFKD", INVISIBLE.sub("", text).translate(_LETTERS))
    plain = unicodedata.normalize("NFC", plain.translate(_NO_MARKS)).translate(_LETTERS)
    return _DIGIT.sub(lambda match: str(unicodedata.digit(match[0])), plain)


def _plain_letters(text: str) -> str:
    plain = _NON_ASCII.sub(lambda match: _plain_run(match[0]), text)
    if plain.isascii():
        return plain
    plain = _THAI_DOT.sub("", plain)
    if "年" in plain or "月" in plain:
        plain = _HAN_NUMBER.sub(lambda match: _from_han(match[0]), plain)
    return _MIXED.sub(_one_script, plain) if _MIXED_SEEN.search(plain) is not None else plain


def _read_entity(match: re.Match[str]) -> str:
    """Decode an entity; line breaks become spaces, so that a line stays one line."""
    return unescape(match[0]).replace("\n", " ").replace("\r", " ")


def _one_script(match: re.Match[str]) -> str:
    """Convert a word that mixes scripts to the Latin letters its letters look like."""
    word = match[0]
    return word if word.isascii() or _LATIN.search(word) is None else word.translate(_LOOK_ALIKE)


def _from_han(signs: str) -> str:
    if "十" not in signs:
        return "".join(str(_HAN[sign]) for sign in signs)
    tens, _, ones = signs.partition("十")
    if len(tens) > 1 or len(ones) > 1 or "十" in ones:
        return signs
    return str(10 * (_HAN[tens] if tens else 1) + (_HAN[ones] if ones else 0))


def _in_digits(match: re.Match[str]) -> str:
    number = _ORDINAL_NUMBERS[_SPACES.sub(" ", (match["before"] or match["after"]).lower())]
    return str(number) if match["before"] else f" {number}"


@lru_cache(maxsize=16)
def lower(folded: str) -> str:
    """Return the lower case of the same length, so that positions in one are positions in the other."""
    low = folded.lower()
    if len(low) == len(folded):
        return low
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in folded)


_WORDS = pattern(r"\s+|\S{1,200}")
_ONE_WORD = lru_cache(maxsize=20_000)(fold.__wrapped__)


@lru_cache(maxsize=8)
def _word_places(line: str, plain: str) -> tuple[list[int], list[int], list[str]] | None:
    """Return where each word starts in a line and in its folded form, and the words; None if folding joins words."""
    words = _WORDS.findall(line)
    folded = [_ONE_WORD(word) for word in words]
    if "".join(folded) != plain:
        return None
    starts = accumulate(map(len, words), initial=0), accumulate(map(len, folded), initial=0)
    return list(starts[0]), list(starts[1]), words


@lru_cache(maxsize=8)
def _lines(text: str) -> list[str]:
    return text.split("\n")


def original_span(text: str, plain: str, start: int, end: int) -> tuple[str, int, int]:
    """Return the original text and the start and end in it of a part of its folded form.

    If folding joins words, this is the folded form itself. The cost does not grow with the position, because untrusted
    texts may have endless lines.
    """
    if text == plain or not text:
        return plain, start, end
    lines, number, first = _lines(text), plain.count("\n", 0, start), plain.rfind("\n", 0, start) + 1
    last = plain.find("\n", start)
    last = len(plain) if last < 0 else last
    # Folding changes neither the number nor the order of lines.
    if end > last or len(lines) != plain.count("\n") + 1:
        return plain, start, end
    word_places = _word_places(lines[number], plain[first:last])
    if word_places is None:
        return plain, start, end
    in_text, in_plain, words = word_places
    before = sum(map(len, lines[:number])) + number

    def place(folded_place: int) -> int:
        k = min(bisect_right(in_plain, folded_place) - 1, len(words) - 1)
        return before + in_text[k] + unfolded(words[k], _ONE_WORD(words[k]), folded_place - in_plain[k])

    return text, place(start - first), place(end - 1 - first) + 1


def unfolded(text: str, plain: str, place: int) -> int:
    """Return the position in a text of a position in its folded form. Folding keeps the number and order of lines."""
    if text == plain:
        return place
    before = plain.rfind("\n", 0, place) + 1
    start = sum(len(line) + 1 for line in text.split("\n")[: plain.count("\n", 0, place)])
    low, high = start, len(text)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if len(fold(text[start:middle])) <= place - before else (low, middle)
    return max(start, low - 1)


def places_of(low: str, word: str) -> Iterator[int]:
    """Yield the positions of a word: searching for each of a few words is faster than one pattern for all."""
    place = low.find(word)
    while place >= 0:
        yield place
        place = low.find(word, place + 1)
