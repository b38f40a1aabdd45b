"""Settings that a plug-in for an external service is opened with, and clients for JSON services."""

import asyncio
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.payload import Payload
from foretell.frozen import frozen
from foretell.plugins import describe, load, variables_in_words
from foretell.questions.errors import InputError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
Params = Mapping[str, str] | Iterable[tuple[str, str]]
"""Query parameters of a request; pairs if a name is repeated."""


@frozen
class ServiceConfig:
    """HTTP client, key and address of one service, and local paths."""

    http: AsyncHttpClient
    """HTTP client shared by all services of a run. Register your key with it (`keep_secret`) and, unless
    `known_services` lists your host, your rate limit (`limit_rate`)."""
    key: str = field(default="", repr=False)
    """Value of the first of the plug-in's `key_variables` that is set; empty if none is."""
    address: str | None = None
    """Address from FORETELL_<NAME>_URL that replaces the public one: a mirror, a proxy or a test server."""
    home: Path = Path()
    """Directory in which this program keeps its files."""
    corpus: Path = Path("corpus.db")
    """File of the local corpus."""
    series: Path | None = None
    """A CSV file with the user's own series, or a folder of such files."""


PRACTICE_SITES = {"metaculus": ("metaculus.com",), "prophet_arena": ("prophetarena.co",)}
"""Service → hosts of its web site, if practice has pages for its questions."""
MADE_UP_SITES = {"kalshi": ("kalshi.com",), "manifold": ("manifold.markets",), "polymarket": ("polymarket.com",)}
"""The same for services whose questions have no page in practice."""


def practice_page(url: str, addresses: Mapping[str, str]) -> str:
    """Return where the page of a question is: on the practice server, if that stands in for the service of the address.

    Returned is "" for a made-up question that has no page; addresses of real services stay as they are.

    >>> practice_page("https://www.metaculus.com/questions/9001/", {"metaculus": "http://127.0.0.1:8123"})
    'http://127.0.0.1:8123/questions/9001/'
    >>> practice_page("https://kalshi.com/markets/kxrate", {"kalshi": "http://127.0.0.1:8124"})
    ''
    >>> practice_page("https://www.metaculus.com/questions/9001/", {"metaculus": "https://proxy.example/api"})
    'https://www.metaculus.com/questions/9001/'
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").removeprefix("www.")
    for service, hosts in (PRACTICE_SITES | MADE_UP_SITES).items():
        stand_in = urlsplit(addresses.get(service, ""))
        if host in hosts and stand_in.hostname in LOOPBACK:
            own = parts._replace(scheme=stand_in.scheme, netloc=stand_in.netloc)
            return own.geturl() if service in PRACTICE_SITES else ""
    return url


class JsonService:
    """Client of a server that responds in JSON. Its key is never shown."""

    def __init__(self, config: ServiceConfig, host: str, *, headers: Mapping[str, str] | None = None) -> None:
        self.http = config.http
        self.host = config.address or host
        self._headers = dict(headers or {})
        self.http.keep_secret(config.key)
        self.http.stand_in(self.host, host)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(host={self.host!r})"

    async def read(self, path: str, params: Params = ()) -> Payload:
        """Send a GET request to a path and parse the response."""
        pairs = tuple(cast("Mapping[str, str]", params).items() if isinstance(params, Mapping) else params)
        return Payload.of(await self.http.get(f"{self.host}{path}", params=pairs or None, headers=self._headers))

    async def post(self, path: str, body: Any) -> Payload:
        """Send a POST request with a JSON body to a path and parse the response."""
        return Payload.of(await self.http.post(f"{self.host}{path}", json=body, headers=self._headers))


def needs_key(plugin: Any) -> bool:
    """Whether a plug-in is useless without a key: it names key variables and does not declare them optional."""
    return bool(getattr(plugin, "key_variables", ())) and bool(getattr(plugin, "key_required", True))


def load_with_key(kind: str, name: str, key: str) -> Any:
    """Load the plug-in of this name. A missing required key raises `InputError` now, not in the middle of a run."""
    plugin = load(kind, name)
    if needs_key(plugin) and not key:
        hint = f"set {variables_in_words(plugin.key_variables)}"
        if kind == "search_engines":
            hint += ", or use --search local"
        raise InputError(f"the {describe(kind)} {name} needs a key", hint=hint)
    return plugin


def open_service(kind: str, name: str, config: ServiceConfig) -> Any:
    """Open the plug-in by its `open(config)` or, if it has none, by calling it with the config."""
    plugin = load_with_key(kind, name, config.key)
    return cast("Callable[[ServiceConfig], Any]", getattr(plugin, "open", plugin))(config)


# Services that issue a token for a name and a secret. It is reused until it expires, and never shown.

SPARE_SECONDS = 60.0
"""Seconds before its expiry at which a token is replaced."""
SHORTEST_SECONDS = 300.0
"""Seconds for which a token is assumed to be valid if the server does not say."""


class AccessToken:
    """An OAuth bearer token; concurrent callers share one request for it."""

    def __init__(
        self,
        http: AsyncHttpClient,
        url: str,
        form: Mapping[str, str],
        *,
        basic: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`basic` is `name:secret` if the server expects them in the header instead of the form."""
        self._http = http
        self._url = url
        self._form = dict(form)
        self._headers = {"Authorization": f"Basic {b64encode(basic.encode()).decode()}"} if basic else {}
        self._clock = clock
        self._token = ""
        self._until = float("-inf")
        self._asking = asyncio.Lock()
        for secret in (basic.partition(":")[2], *self._headers.values(), form.get("password", "")):
            http.keep_secret(secret.removeprefix("Basic "))

    async def header(self) -> dict[str, str]:
        """Return the authorization header, requesting a token first if there is none or it has expired."""
        async with self._asking:
            if self._clock() >= self._until:
                await self._ask()
            return {"Authorization": f"Bearer {self._token}"}

    def forget(self) -> None:
        """Discard the token, so that the next request fetches a new one."""
        self._until = float("-inf")

    async def _ask(self) -> None:
        answer = Payload.of(await self._http.post(self._url, form=self._form, headers=self._headers))
        self._token = answer.need("access_token").text()
        self._http.keep_secret(self._token)
        self._until = self._clock() + (answer.amount("expires_in") or SHORTEST_SECONDS) - SPARE_SECONDS


class TokenService(JsonService):
    """Client of a JSON server that needs a token; a rejected token is replaced once."""

    def __init__(self, config: ServiceConfig, host: str, token: AccessToken) -> None:
        super().__init__(config, host, headers={"Accept": "application/json"})
        self._token = token

    async def read(self, path: str, params: Params = ()) -> Payload:
        """Send a GET request to a path and parse the response."""
        for attempt in range(2):
            self._headers |= await self._token.header()
            try:
                return await super().read(path, params)
            except SourceError as error:
                if error.status != HTTPStatus.UNAUTHORIZED or attempt:
                    raise
                self._token.forget()
        raise AssertionError("the second attempt either returns or raises")
