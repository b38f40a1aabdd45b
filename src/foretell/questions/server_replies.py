"""Helpers for replies of servers: read how long to wait, and hide keys that they repeat."""

import math
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from html import escape
from urllib.parse import quote, quote_plus


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds a server asks us to wait. It may give milliseconds, seconds or a date.

    >>> retry_after({"retry-after": "1.5"}), retry_after({"retry-after-ms": "250"}), retry_after({})
    (1.5, 0.25, None)
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = read_seconds(headers.get(name, ""))
        if seconds is not None:
            return seconds * scale
    try:
        until = parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError):
        return None
    try:
        now = parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError):
        now = datetime.now(UTC)
    return max(0.0, (aware(until) - aware(now)).total_seconds())


def read_seconds(text: str) -> float | None:
    """Parse seconds to wait, at least 0; None if the text is not a finite number.

    >>> read_seconds("-1"), read_seconds("inf"), read_seconds("soon")
    (0.0, None, None)
    """
    try:
        seconds = float(text)
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def aware(time: datetime) -> datetime:
    """Return a time with its zone; without one, it is UTC."""
    return time if time.tzinfo else time.replace(tzinfo=UTC)


HIDDEN = "•••"
PART = 8
"""Length of a part of a key that is hidden, because servers often quote keys without their end."""
LONGEST_SEARCHED = 200_000
"""Maximum length of texts in which parts are hidden. Whole keys are hidden in texts of any length."""


@lru_cache(maxsize=64)
def _forms(secret: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return a key in all its encodings, longest first, and all their parts."""
    plain = secret.encode("utf-8", "replace")
    coded = [code(b" " * lead + plain).decode() for code in (b64encode, urlsafe_b64encode) for lead in range(3)]
    forms = {secret, quote(secret), quote(secret, safe=""), quote_plus(secret), escape(secret), plain.hex()}
    long = len(secret) >= 2 * PART
    # The first and last letters of base64 depend on the text around the key.
    parts = {form[at : at + PART] for form in forms for at in range(len(form) - PART + 1)}
    parts |= {form[at : at + PART] for form in coded for at in range(4, len(form) - PART - 3)}
    return tuple(sorted(forms, key=len, reverse=True)), frozenset(parts if long else ())


def redacted(text: str, secrets: Iterable[str], mark: str = HIDDEN) -> str:
    """Return the text with every secret hidden, also if it appears encoded or in part.

    >>> redacted("https://example.org/?key=a%2Fb was refused", ["a/b"])
    'https://example.org/?key=••• was refused'
    >>> redacted("bad key: sk-0123456789abcd****", ["sk-0123456789abcdefgh"])
    'bad key: •••****'
    """
    for secret in filter(None, secrets):
        forms, parts = _forms(secret)
        for form in forms:
            text = text.replace(form, mark)
        if parts and len(text) <= LONGEST_SEARCHED:
            text = _without_parts(text, parts, mark)
    return text


def _without_parts(text: str, parts: frozenset[str], mark: str) -> str:
    pieces: list[str] = []
    at = reached = 0
    while at <= len(text) - PART:
        if text[at : at + PART] not in parts:
            at += 1
            continue
        end = at + PART
        while text[end - PART + 1 : end + 1] in parts:
            end += 1
        pieces += [text[reached:at], mark]
        at = reached = end
    return "".join([*pieces, text[reached:]]) if pieces else text
