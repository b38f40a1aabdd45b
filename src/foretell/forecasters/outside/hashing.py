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


def mark(block: int, gram: str) -> int:
    """A number that hardly any other gram has: block and CRC-32."""
    return (block << 32) | crc32(gram.encode())


def bucket_of(marks: Ints) -> Ints:
    """The buckets of marks.

    >>> bucket_of(np.array([mark(0, "by ‹date›"), mark(1, "by ‹date›")])).tolist()
    [7818, 16010]
    """
    return (marks & (BUCKETS - 1)) + (marks >> 32) * BUCKETS


@lru_cache(maxsize=1 << 16)
def marks(text: str) -> Ints:
    """The marks of all grams of a text, ascending, each once."""
    return np.unique(np.fromiter((mark(*gram) for gram in grams(text)), np.int64))


@lru_cache(maxsize=1 << 16)
def buckets(text: str) -> Ints:
    """The buckets of all grams of a text, ascending, each once."""
    return np.unique(bucket_of(marks(text)))
