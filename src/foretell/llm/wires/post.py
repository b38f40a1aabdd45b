"""Posting JSON to one address, over connections that stay open."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from foretell.llm.failures import ReplyLost
from foretell.llm.model import ModelBusy
from foretell.questions.problems import MissingExtra

if TYPE_CHECKING:
    import aiohttp


@dataclass(frozen=True, kw_only=True)
class Posted:
    """An answer over HTTP, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Post:
    """Posts to one URL. Whoever calls limits time and number: this has neither queue nor clock."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._headers = {**headers, "Content-Type": "application/json"}
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}
        self._proxy = _proxy(url)

    async def __call__(self, data: bytes) -> Posted:
        """Send JSON. A failure before anything was sent is `ModelBusy`, any later one `ReplyLost`."""
        import aiohttp

        try:
            async with self._session().post(self._url, data=data, proxy=self._proxy) as answer:
                return Posted(status=answer.status, headers=_lower(answer.headers), body=await answer.read())
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


def need_aiohttp() -> None:
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
