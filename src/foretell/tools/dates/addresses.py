"""Dates in addresses: folders, slugs, queries, fragments and file names."""

import re
from collections.abc import Iterator
from datetime import date
from urllib.parse import unquote

from foretell.questions.as_of import AsOf
from foretell.tools.addresses import UnreadableAddress, address_of
from foretell.tools.dates.find import find_in_folded, fold, lower, month_numbers
from foretell.tools.dates.stamps import is_after
from foretell.tools.dates.words import SCHEDULED

_FOLDERS = re.compile(r"/((?:19|20)\d{2})/(\d{1,2}|[a-z]{3,9})(?:/(\d{1,2}))?(?=/|$)|/((?:19|20)\d{2})-(\d{2})(?=/|$)")
_COMPACT = re.compile(r"(?<!\d)(20\d\d)[-_.]?(0[1-9]|1[0-2])[-_.]?(0[1-9]|[12]\d|3[01])(?!\d)")
_SPACED = re.compile(r"(?<!\d)(\d{1,2}) (\d{1,2}) (20\d\d)(?!\d)")
_SEPARATORS = re.compile(r"[-_+./?&=#,%]+")


def late_address(url: str, as_of: AsOf, *, title: str = "") -> str | None:
    """A date after the cutoff in an address, such as /2026/03/05/ or -on-6-june-2024.

    Addresses of agendas and of things to come do not count.
    """
    try:
        address = address_of(url)
    except UnreadableAddress:
        return None
    if address is None:
        return None
    query = "&".join(f"{name}={value}" for name, value in sorted(address.params))
    fragment = url.split("#", 1)[1] if "#" in url else ""
    place = lower(fold(unquote(f"{address.path}?{query}#{fragment}")))
    for text, before, days in _in_folders(place):
        if all(is_after(day, as_of) for day in days) and not SCHEDULED.search(before):
            return text
    words = _SEPARATORS.sub(" ", place)
    if SCHEDULED.search(words) or SCHEDULED.search(lower(fold(title))):
        return None
    for text, days in (
        *_in_digits(place, words),
        *((words[f.start : f.end], f.readings) for f in find_in_folded(words)),
    ):
        if all(is_after(day, as_of) for day in days):
            return text
    return None


def _in_folders(place: str) -> Iterator[tuple[str, str, tuple[date, ...]]]:
    """Dates that folders make, each with what stands before it."""
    for found in _FOLDERS.finditer(place):
        year, month, *rest = filter(None, found.groups())
        numbers = (int(month),) if month.isdigit() else month_numbers(month)
        days = tuple(day for number in numbers for day in _valid(int(year), number, int(rest[0]) if rest else 1))
        if days:
            yield found[0], place[: found.start()], days


def _in_digits(place: str, words: str) -> Iterator[tuple[str, tuple[date, ...]]]:
    for found in _COMPACT.finditer(place):
        if days := tuple(_valid(int(found[1]), int(found[2]), int(found[3]))):
            yield found[0], days
    for found in _SPACED.finditer(words):
        a, b, year = (int(one) for one in found.groups())
        if days := (*_valid(year, b, a), *_valid(year, a, b)):
            yield found[0], days


def _valid(year: int, month: int, day: int) -> Iterator[date]:
    try:
        yield date(year, month, day)
    except ValueError:
        return
