"""JSON to and from one server, over connections that stay open."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

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

    def json(self) -> dict[str, Any]:
        """The object in its body; empty where there is none."""
        try:
            found = json.loads(self.body)
        except ValueError:
            return {}
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


class HttpClient:
    """Asks one server. Whoever calls limits time and number: this has neither queue nor clock."""

    def __init__(self, address: str, headers: Mapping[str, str]) -> None:
        from urllib.request import getproxies, proxy_bypass

        try:
            import aiohttp  # pyright: ignore[reportUnusedImport]
        except ImportError:  # Said now, before the first call needs it.
            raise MissingExtra("asking a model", "llm") from None
        self._headers = {**headers, "Content-Type": "application/json"}
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}
        # The proxy that the environment names is looked up once: doing it per request costs as much as the request.
        parts = urlsplit(address)
        self._proxy = None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)

    async def send(self, method: str, url: str, data: bytes | None = None) -> HttpReply:
        """Send JSON. A failure before anything was sent is `ModelBusy`, any later one `ReplyLost`."""
        import aiohttp

        try:
            async with self._session().request(method, url, data=data, proxy=self._proxy) as answer:
                headers = {name.lower(): value for name, value in answer.headers.items()}
                return HttpReply(status=answer.status, headers=headers, body=await answer.read())
        except aiohttp.ClientConnectorError as error:
            raise ModelBusy(f"no connection: {error}") from None
        except (aiohttp.ClientError, ConnectionError) as error:
            raise ReplyLost(f"the connection broke: {type(error).__name__}") from None

    def _session(self) -> "aiohttp.ClientSession":
        import aiohttp

        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            self._sessions[loop] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60),
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=30),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._sessions[loop]

    async def close(self) -> None:
        """Close every connection."""
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()


# A provider's refusal as one of our errors, told in one line that never holds a key.

BUSY_STATUSES = frozenset({408, 409, 425, 429})
LONGEST_MESSAGE = 300
"""Characters of a provider's own words that are passed on."""


SHORTEST_KEY = 6
"""Characters of a key worth hiding: local servers take any word, such as "x"."""


def http_model_error(status: int, message: str, *, model: str, wait: float | None = None, code: str = "") -> ModelError:
    """The error for an HTTP status. `code` is the provider's own word for it, where it has one."""
    if status in (401, 403):
        # Providers quote the key they refuse, sometimes only in part: their words stay out.
        return ModelRefused(f"{model}: the provider does not accept the key (HTTP {status})")
    text = f"{model}: HTTP {status}" + (f": {message}" if message else "")
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
