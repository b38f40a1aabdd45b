"""One thing sent to a server, and the plain truth about what became of it: taken, refused, or nobody knows."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from foretell.sources.async_http import AsyncHttpClient
from foretell.sources.http import Answer, Busy, Limits, SourceError
from foretell.sources.payload import Payload

ONCE = Limits(total_seconds=60.0, max_bytes=5_000_000, attempts=1)
"""For a client that sends: it must not repeat by itself what may have arrived."""
FIRST_FAILURE = 500


class Refused(SourceError):
    """The server said no, so nothing has changed there."""


class Lost(SourceError):
    """No answer came that says whether it was taken: read back before sending it again."""


class Poster:
    """Sends with a key in a header, which is never shown.

    What a server turns away at the door (429, and a first 403, which busy outer layers give to good keys) never
    arrived and is sent again after a wait. Everything else is sent once.
    """

    def __init__(
        self,
        *,
        http: AsyncHttpClient,
        headers: Mapping[str, str],
        secret: str,
        turns: int = 5,
        wait_seconds: float = 4.0,
    ) -> None:
        """`http` must not repeat requests (see `ONCE`); `turns` is how often to come back to a closed door."""
        if http.limits.attempts != 1:
            raise ValueError("a client that repeats requests by itself may send a forecast twice; give it ONCE")
        self._http = http
        self._headers = dict(headers)
        self._turns = turns
        self._wait_seconds = wait_seconds
        http.keep_secret(secret)

    def __repr__(self) -> str:
        return "Poster(…)"

    async def post(self, url: str, body: Any) -> Answer:
        """Any 2xx, or `Refused`, or `Lost`."""
        forbidden = 0
        for turn in range(1, self._turns + 1):
            try:
                return await self._http.post(url, json=body, headers=self._headers)
            except SourceError as error:
                forbidden += error.status == HTTPStatus.FORBIDDEN
                failure, wait = self._judged(error, turn, again=turn < self._turns and forbidden < 2)
            if failure is not None:
                raise failure
            await asyncio.sleep(wait)
        raise AssertionError("the last turn returns or raises")

    def _judged(self, error: SourceError, turn: int, *, again: bool) -> tuple[SourceError | None, float]:
        """The failure, or None and how long to wait before the next turn."""
        at_the_door = error.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.FORBIDDEN)
        wait = error.wait if isinstance(error, Busy) and error.wait is not None else self._wait_seconds * turn
        if at_the_door and again and wait <= self._http.limits.max_wait_seconds:
            return None, wait
        if error.status is None or error.status >= FIRST_FAILURE or error.status == HTTPStatus.REQUEST_TIMEOUT:
            return Lost(error.problem, url=error.url, status=error.status), 0.0
        return Refused(error.problem, url=error.url, status=error.status), 0.0


def told(answer: Answer, url: str) -> Payload:
    """The JSON of an answer that says the thing was taken. What cannot be read leaves open what was taken: `Lost`."""
    try:
        return Payload.of(answer, url)
    except SourceError as error:
        raise Lost(error.problem, url=error.url, status=answer.status) from None
