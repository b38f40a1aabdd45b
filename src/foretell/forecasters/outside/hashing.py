"""Words and word pairs as numbers in a fixed range: the same on every machine and in every version of Python."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from zlib import crc32

import numpy as np

from foretell.evaluate.arrays import Ints
from foretell.forecasters.outside.deadlines import MASK

BITS = 13
BUCKETS = 1 << BITS
"""Of each of the two blocks: words as they stand come first, then the sentence's shape with names left out."""
NAME = "‹name›"
_TOKEN = re.compile(rf"{MASK}|{NAME}|[^\W\d_]+(?:['’][^\W\d_]+)?|[$€£%≥≤<>#]|\d[\d,.]*")
_NAMES = re.compile(
    r"\b[A-Z][\w'’.\-–&]*(?:\s+(?:(?:of|the|de|and|&|al|von|van|for)\s+)?[A-Z][\w'’.\-–&]*)*", re.UNICODE
)
_OPENING = re.compile(r"^\W*\w+")


def tokens(text: str) -> list[str]:
    """Lower-case words and signs; every number is the same one.

    >>> tokens("Will it reach $4,000 by ‹date›?")
    ['will', 'it', 'reach', '$', '0', 'by', '‹date›']
    """
    return ["0" if t[0].isdigit() else t.replace("’", "'") for t in _TOKEN.findall(text.lower())]


def shape(text: str) -> str:
    """The text with runs of capitalised words replaced, the first word of the sentence apart.

    >>> shape("Will Ada Lovelace win the Nobel Prize in ‹date›?")
    'will ‹name› win the ‹name› in ‹date›?'
    """
    return _NAMES.sub(NAME, _OPENING.sub(lambda opening: opening[0].lower(), text, count=1))


def grams(text: str) -> Iterator[tuple[int, str]]:
    """Block (0 words, 1 shape) and wording of every word and pair of neighbours, each once; ^ and $ are the ends."""
    for block, version in enumerate((text, shape(text))):
        found = tokens(version)
        closed = ["^", *found, "$"]
        pairs = (f"{a} {b}" for a, b in pairwise(closed))
        for gram in dict.fromkeys((*found, *pairs)):
            yield block, gram


def bucket(block: int, gram: str) -> int:
    """The number of a gram.

    >>> bucket(0, "by ‹date›"), bucket(1, "by ‹date›") - bucket(0, "by ‹date›") == BUCKETS
    (7818, True)
    """
    return (crc32(gram.encode()) & (BUCKETS - 1)) + block * BUCKETS


@lru_cache(maxsize=1 << 16)
def buckets(text: str) -> Ints:
    """The numbers of all grams of a text, ascending, each once."""
    return np.unique(np.fromiter((bucket(*gram) for gram in grams(text)), np.int64))
