"""Posting JSON to one address, over connections that stay open."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from foretell.models.model import ModelBusy, ModelError, ModelRefused, ReplyLost
from foretell.questions.errors import MissingExtra

if TYPE_CHECKING:
    import aiohttp


@dataclass(frozen=True, kw_only=True)
class HttpReply:
    """An answer over HTTP, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpPoster:
    """Posts to one URL. Whoever calls limits time and number: this has neither queue nor clock."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._headers = {**headers, "Content-Type": "application/json"}
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}
        self._proxy = _proxy(url)

    async def __call__(self, data: bytes) -> HttpReply:
        """Send JSON. A failure before anything was sent is `ModelBusy`, any later one `ReplyLost`."""
        import aiohttp

        try:
            async with self._session().post(self._url, data=data, proxy=self._proxy) as answer:
                return HttpReply(status=answer.status, headers=_lower(answer.headers), body=await answer.read())
        except aiohttp.ClientConnectorError as error:
            raise ModelBusy(f"no connection: {error}") from None
        except (aiohttp.ClientError, ConnectionError) as error:
            raise ReplyLost(f"the connection broke: {type(error).__name__}") from None

    def _session(self) -> "aiohttp.ClientSession":
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            self._sessions[loop] = self._new_session()
        return self._sessions[loop]

    def _new_session(self) -> "aiohttp.ClientSession":
        import aiohttp

        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
        return aiohttp.ClientSession(
            connector=connector,
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=30),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close every connection."""
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()


def require_aiohttp() -> None:
    """Say what to install before the first call needs it."""
    try:
        import aiohttp  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError:
        raise MissingExtra("asking a model", "llm") from None


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _proxy(url: str) -> str | None:
    """The proxy the environment names for an address; looked up once, because doing it per request costs as much."""
    from urllib.parse import urlsplit
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)


# A provider's refusal as one of our errors, told in one line that never holds a key.

BUSY_STATUSES = frozenset({408, 409, 425, 429})
LONGEST_MESSAGE = 300
"""Characters of a provider's own words that are passed on."""


SHORTEST_KEY = 6
"""Characters of a key worth hiding: local servers take any word, such as "x"."""


def http_model_error(status: int, told: str, *, model: str, wait: float | None = None, code: str = "") -> ModelError:
    """The error for an HTTP status. `code` is the provider's own word for it, where it has one."""
    if status in (401, 403):
        # Providers quote the key they refuse, sometimes only in part: their words stay out.
        return ModelRefused(f"{model}: the provider does not accept the key (HTTP {status})")
    text = f"{model}: HTTP {status}" + (f": {told}" if told else "")
    if "insufficient_quota" in code or status == 402:
        return ModelRefused(f"{text} (no credit is left)")
    if status in BUSY_STATUSES or status >= 500:
        return ModelBusy(text, wait=wait)
    return ModelRefused(text)


def redact_key(text: str, key: str) -> str:
    """Text that may be shown: shortened, on one line, and without the key."""
    clean = " ".join((text.replace(key, "***") if len(key) >= SHORTEST_KEY else text).split())
    return clean if len(clean) <= LONGEST_MESSAGE else clean[:LONGEST_MESSAGE] + "…"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds a server asked us to wait: in milliseconds, in seconds, or as a date by its own clock.

    >>> retry_after({"retry-after": "1.5"}), retry_after({"retry-after-ms": "250"}), retry_after({})
    (1.5, 0.25, None)
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * scale)
        except (KeyError, ValueError):
            continue
    try:
        until, now = parsedate_to_datetime(headers["retry-after"]), parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError):
        return None
    return max(0.0, (_aware(until) - _aware(now)).total_seconds())


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
