"""Services that hand out a token for a name and a secret: it is fetched once, kept while it lasts, and never shown."""

import asyncio
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from http import HTTPStatus

from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.payload import Payload
from foretell.data.service import JsonService, Params, ServiceConfig

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

    def __init__(
        self, config: ServiceConfig, host: str, token: AccessToken, *, per_second: float | None = None
    ) -> None:
        super().__init__(config, host, per_second=per_second, headers={"Accept": "application/json"})
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
