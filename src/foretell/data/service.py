"""What a plug-in that reads the outside world is opened with, and how it speaks to its server."""

import asyncio
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.payload import Payload
from foretell.plugins import describe, load, variables_in_words
from foretell.questions.errors import InputError

Params = Mapping[str, str] | Iterable[tuple[str, str]]
"""What is asked for in an address; as pairs where a name is repeated."""


@dataclass(frozen=True, kw_only=True)
class ServiceConfig:
    """The connection, the key and the place of one service."""

    http: AsyncHttpClient
    """Shared by all services of a run. Tell it your key (`keep_secret`) and, unless `known_services` lists your host,
    your pace (`pace`)."""
    key: str = field(default="", repr=False)
    """From the first of the plug-in's `key_variables` that is set; empty where none is."""
    address: str | None = None
    """Replaces the public address, from FORETELL_<NAME>_URL: a mirror, a proxy or a test server."""
    home: Path = Path()
    """Where files of this program are kept."""
    corpus: Path = Path("corpus.db")
    """The local corpus."""
    series: Path | None = None
    """A CSV file, or a folder of them, with series of the user's own."""


class JsonService:
    """A server that answers in JSON. Its key is never shown."""

    def __init__(self, config: ServiceConfig, host: str, *, headers: Mapping[str, str] | None = None) -> None:
        self.http = config.http
        self.host = config.address or host
        self._headers = dict(headers or {})
        self.http.keep_secret(config.key)
        self.http.stand_in(self.host, host)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(host={self.host!r})"

    async def read(self, path: str, params: Params = ()) -> Payload:
        """What stands at a path."""
        pairs = tuple(cast("Mapping[str, str]", params).items() if isinstance(params, Mapping) else params)
        return Payload.of(await self.http.get(f"{self.host}{path}", params=pairs or None, headers=self._headers))

    async def post(self, path: str, body: Any) -> Payload:
        """The answer to what is sent to a path."""
        return Payload.of(await self.http.post(f"{self.host}{path}", json=body, headers=self._headers))


def needs_key(plugin: Any) -> bool:
    """Whether a plug-in is of no use without a key: it names variables and does not say that they are optional."""
    return bool(getattr(plugin, "key_variables", ())) and bool(getattr(plugin, "key_required", True))


def load_with_key(kind: str, name: str, key: str) -> Any:
    """The plug-in of this name; one without the key it needs is an `InputError` now, not in the middle of a run."""
    plugin = load(kind, name)
    if needs_key(plugin) and not key:
        hint = f"set {variables_in_words(plugin.key_variables)}"
        if kind == "search_engines":
            hint += ", or use --search local"
        raise InputError(f"the {describe(kind)} {name} needs a key", hint=hint)
    return plugin


def open_service(kind: str, name: str, config: ServiceConfig) -> Any:
    """The plug-in, opened: by its `open(config)`, or called with the config where it has none."""
    plugin = load_with_key(kind, name, config.key)
    return cast("Callable[[ServiceConfig], Any]", getattr(plugin, "open", plugin))(config)


# Services that hand out a token for a name and a secret: it is fetched once, kept while it lasts, and never shown.

SPARE_SECONDS = 60.0
"""A token that lasts no longer than this is not used any more."""
SHORTEST_SECONDS = 300.0
"""How long a token is taken to last where the server does not say."""


class AccessToken:
    """A bearer token by OAuth; callers at the same time share one request for it."""

    def __init__(
        self,
        http: AsyncHttpClient,
        url: str,
        form: Mapping[str, str],
        *,
        basic: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`basic` is `name:secret` where the server wants them in the header instead of the form."""
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
        """The header to send along."""
        async with self._asking:
            if self._clock() >= self._until:
                await self._ask()
            return {"Authorization": f"Bearer {self._token}"}

    def forget(self) -> None:
        """Ask for another one next time."""
        self._until = float("-inf")

    async def _ask(self) -> None:
        answer = Payload.of(await self._http.post(self._url, form=self._form, headers=self._headers))
        self._token = answer.need("access_token").text()
        self._http.keep_secret(self._token)
        self._until = self._clock() + (answer.amount("expires_in") or SHORTEST_SECONDS) - SPARE_SECONDS


class TokenService(JsonService):
    """A server that answers in JSON to whoever shows such a token; one that it no longer takes is fetched anew once."""

    def __init__(self, config: ServiceConfig, host: str, token: AccessToken) -> None:
        super().__init__(config, host, headers={"Accept": "application/json"})
        self._token = token

    async def read(self, path: str, params: Params = ()) -> Payload:
        """What stands at a path."""
        for attempt in range(2):
            self._headers |= await self._token.header()
            try:
                return await super().read(path, params)
            except SourceError as error:
                if error.status != HTTPStatus.UNAUTHORIZED or attempt:
                    raise
                self._token.forget()
        raise AssertionError("the second attempt either returns or raises")
