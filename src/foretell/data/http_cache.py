"""HTTP responses, stored in the home for as long as their server allows.

The key contains the whole request and the cutoff: a response for one cutoff is never used for another, and a stored
response is never newer than what the server would send. Requests with a key and private responses are not stored.
"""

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from email.utils import parsedate_to_datetime
from pathlib import Path

from foretell.frozen import frozen
from foretell.questions.server_replies import aware

FOLDER = "http_cache"
MAX_BYTES = 200_000_000
"""Maximum size of all responses; the least recently used are deleted first."""
MAX_ANSWER = 20_000_000
PLAIN_HEADERS = frozenset({"accept", "accept-encoding", "accept-language", "connection", "host", "user-agent"})
"""A request with any other header may contain a key or already be conditional."""
_FRESHNESS = ("age", "cache-control", "date", "etag", "expires", "last-modified")


@frozen
class CachedAnswer:
    """A stored response."""

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Header values by lower-case name."""
    stored: float
    """Seconds since 1970."""

    @property
    def conditions(self) -> dict[str, str]:
        """Return headers that request the response only if it has changed."""
        names = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
        return {header: self.headers[name] for name, header in names.items() if self.headers.get(name)}

    def fresh(self, now: float) -> bool:
        """Whether it may be used without a new request."""
        return self.stored <= now < self.stored + fresh_seconds(self.headers)


def fresh_seconds(headers: Mapping[str, str]) -> float:
    """Return how long a response may be used without a new request.

    >>> fresh_seconds({"cache-control": "public, max-age=300", "age": "60"}), fresh_seconds({"etag": "x"})
    (240.0, 0.0)
    """
    rules = cache_rules(headers)
    if "no-cache" in rules:
        return 0.0
    if "max-age" in rules:
        return max(0.0, _number(rules["max-age"]) - _number(headers.get("age", "")))
    try:
        expires, date = (parsedate_to_datetime(headers[name]) for name in ("expires", "date"))
        return max(0.0, (aware(expires) - aware(date)).total_seconds())
    except (KeyError, ValueError):
        return 0.0


def cache_rules(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the directives of Cache-Control by lower-case name."""
    parts = (part.partition("=") for part in headers.get("cache-control", "").lower().split(","))
    return {name.strip(): value.strip().strip('"') for name, _, value in parts if name.strip()}


def is_cacheable(headers: Mapping[str, str]) -> bool:
    """Whether the server allows storing a response and it would be useful."""
    rules = cache_rules(headers)
    if {"no-store", "private"} & set(rules) or headers.get("vary", "").strip() == "*" or "set-cookie" in headers:
        return False
    return bool(headers.get("etag") or headers.get("last-modified")) or fresh_seconds(headers) > 0


def _number(text: str) -> float:
    return float(text) if text.isdigit() else 0.0


class HttpCache:
    """A folder of responses, one file each, for several processes."""

    def __init__(self, folder: Path, *, max_bytes: int = MAX_BYTES, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self.now = clock
        self._size: int | None = None

    def key(self, url: str, headers: Mapping[str, str]) -> str | None:
        """Return the cache key of a request; None if it must not be stored."""
        lower = {name.lower(): value for name, value in headers.items()}
        if not set(lower) <= PLAIN_HEADERS:
            return None
        content = "\n".join([url, *(lower.get(name, "") for name in ("accept", "accept-language"))])
        return hashlib.sha256(content.encode()).hexdigest()

    def find(self, key: str) -> CachedAnswer | None:
        """Return the response with this key; a damaged file counts as missing."""
        path = self._folder / key
        try:
            head, _, body = path.read_bytes().partition(b"\n")
            facts = json.loads(head)
            if hashlib.sha256(body).hexdigest() != facts["sha256"]:
                return None
            os.utime(path)
            return CachedAnswer(body=body, headers=facts["headers"], stored=facts["stored"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, key: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Store a response if its server allows it; a full disk is ignored."""
        if not is_cacheable(headers) or len(body) > MAX_ANSWER:
            return
        facts = {"headers": dict(headers), "stored": self.now(), "sha256": hashlib.sha256(body).hexdigest()}
        content = json.dumps(facts).encode() + b"\n" + body
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            self._make_room(len(content))
            handle, temporary = tempfile.mkstemp(dir=self._folder, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                Path(temporary).replace(self._folder / key)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise

    def renew(self, key: str, known: CachedAnswer, headers: Mapping[str, str]) -> CachedAnswer:
        """Restart the lifetime of a stored response that is still valid (304), with the server's new headers."""
        renewed = {name: headers[name] for name in _FRESHNESS if name in headers}
        again = CachedAnswer(body=known.body, headers={**known.headers, **renewed}, stored=self.now())
        self.keep(key, again.body, again.headers)
        return again

    def _make_room(self, size: int) -> None:
        """Make room for a response of this size; files are scanned only if the folder may be full."""
        if self._size is not None and self._size + size <= self._max_bytes:
            self._size += size
            return
        files = sorted((entry.stat().st_mtime, entry.stat().st_size, entry.path) for entry in os.scandir(self._folder))
        total = sum(length for _, length, _ in files)
        # Down to nine tenths, so that the next responses fit without another scan.
        goal = self._max_bytes if total + size <= self._max_bytes else int(0.9 * self._max_bytes)
        for _, length, path in files:
            if total + size <= goal:
                break
            Path(path).unlink(missing_ok=True)
            total -= length
        self._size = total + size
