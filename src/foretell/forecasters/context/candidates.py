"""Results of several searches as one list: the same page once, copies of one report once, the best placed first."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from foretell.tools.addresses import Address, UnreadableAddress, address_of
from foretell.tools.tool import Item

K = 60
"""Of reciprocal rank fusion: score = Σ 1/(K + place) over the searches that found a page (Cormack et al. 2009)."""
ALIKE = 0.6
"""Share of runs of three words from which two texts are one report (Broder 1997). Two days of one daily report share
their phrases but not their figures, and stay two."""
FEWEST_RUNS = 12
"""Shorter texts are compared by their titles alone."""
TELLING_TITLE = 5
"""Words of a title that no second report has by chance."""
COMPARED = 4_000
"""Characters of a text that are compared."""
TRACKING = ("utm_", "fbclid", "gclid", "ref", "cmpid", "ocid", "mc_")
_WORD = re.compile(r"\w+")
_Face = tuple[tuple[str, ...], frozenset[tuple[str, str, str]]]
"""What two copies have in common: the words of their title, and the runs of three words of their text."""
SAME_ADDRESS, SAME_WORDS = "found by another search already", "a copy of another find"


@dataclass(frozen=True, kw_only=True)
class Fused:
    """One list, and what was left out of it."""

    items: tuple[Item, ...]
    dropped: Mapping[str, int]
    """By reason."""


def fuse(searches: Sequence[Sequence[Item]]) -> Fused:
    """The results of all searches in one order. The same results give the same order, however they came in."""
    dropped: Counter[str] = Counter()
    first: dict[Address | str, Item] = {}
    score: Counter[Address | str] = Counter()
    for items in searches:
        for place, item in enumerate(items, start=1):
            key = page_of(item.url)
            dropped[SAME_ADDRESS] += key in first
            score[key] += 1 / (K + place)  # pyright: ignore[reportArgumentType] - a Counter of floats
            first[key] = _fuller(first.get(key), item)
    ordered = [first[key] for key in sorted(first, key=lambda key: (-score[key], first[key].url))]
    kept: list[tuple[Item, _Face]] = []
    for item in ordered:
        face = _face(item)
        if any(_copies(face, other) for _, other in kept):
            dropped[SAME_WORDS] += 1
        else:
            kept.append((item, face))
    return Fused(items=tuple(item for item, _ in kept), dropped={why: n for why, n in dropped.items() if n})


def page_of(url: str) -> Address | str:
    """What makes two addresses one page: everything but protocol, dressing and marks of where a reader came from.

    >>> page_of("https://www.a.example/x/?utm_source=feed") == page_of("http://a.example/x")
    True
    """
    try:
        found = address_of(url)
    except UnreadableAddress:
        return url.strip()
    if found is None:
        return url.strip()
    return replace(found, params=frozenset(pair for pair in found.params if not pair[0].startswith(TRACKING)))


def _fuller(known: Item | None, item: Item) -> Item:
    """Of two finds of one page the one that says more; of equals the first."""
    return item if known is None or len(item.text) > len(known.text) else known


def _face(item: Item) -> _Face:
    words = _WORD.findall(item.text[:COMPARED].casefold())
    runs = frozenset(zip(words, words[1:], words[2:], strict=False))
    return tuple(_WORD.findall(item.title.casefold())), runs


def _copies(one: _Face, other: _Face) -> bool:
    if len(one[0]) >= TELLING_TITLE and one[0] == other[0]:
        return True
    both = one[1] | other[1]
    return min(len(one[1]), len(other[1])) >= FEWEST_RUNS and len(one[1] & other[1]) >= ALIKE * len(both)
