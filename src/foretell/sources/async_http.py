"""The same way out to the web for code that waits for many answers at once."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Container, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from foretell.sources.http import (
    GOOD_STATUS,
    Answer,
    Busy,
    Limits,
    SourceError,
    check_status,
    redacted,
    retrying,
    told,
    user_agent,
)
from foretell.sources.pace import Pace

if TYPE_CHECKING:
    import httpx2

Admit = Callable[[str], Awaitable[str | None]]
"""Asked before every hop: raises to refuse an address; may return the numeric host that must be connected to."""

REDIRECT_STATUS = frozenset({301, 302, 303, 307, 308})
MAX_REDIRECTS = 10
MAX_EXPLANATION = 200
STAY_ACROSS_SITES = frozenset({"user-agent", "accept", "accept-language"})
"""Headers that follow a redirect to another site; anything else could be a key."""


class AsyncHttpClient:
    """Reads addresses with retries, at the pace each host bears, and never shows a key.

    Give it another transport to replay or to refuse the network. Use one client per event loop.

    >>> import httpx2
    >>> async def example() -> bytes:
    ...     transport = httpx2.MockTransport(lambda request: httpx2.Response(200, content=b"ok"))
    ...     async with AsyncHttpClient(transport=transport) as client:
    ...         return (await client.get("https://example.org/")).body
    >>> asyncio.run(example())
    b'ok'
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        transport: "httpx2.AsyncBaseTransport | None" = None,
        secrets: tuple[str, ...] = (),
        rates: Mapping[str, float] | None = None,
    ) -> None:
        """`rates` gives requests a second by host (`example.org`, or `127.0.0.1:8080` with a port)."""
        import httpx2

        self.limits = limits or Limits(total_seconds=60.0, max_bytes=20_000_000)
        self._veil = _Veil()
        self._paces: dict[str, Pace] = {}
        timeout = httpx2.Timeout(self.limits.read_seconds, connect=self.limits.connect_seconds)
        self._client = httpx2.AsyncClient(transport=transport, timeout=timeout, headers={"User-Agent": user_agent()})
        logging.getLogger("httpx2").addFilter(self._veil)
        for secret in secrets:
            self.keep_secret(secret)
        for host, per_second in (rates or {}).items():
            self._paces[host] = Pace(per_second=per_second)

    async def __aenter__(self) -> "AsyncHttpClient":
        """Use as a context manager to close connections at the end."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close connections."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close connections."""
        logging.getLogger("httpx2").removeFilter(self._veil)
        await self._client.aclose()

    def keep_secret(self, secret: str) -> None:
        """From now on this text is hidden in every error, address and log line of this client."""
        if secret and secret not in self._veil.secrets:
            self._veil.secrets.append(secret)

    def redact(self, text: str) -> str:
        """The text with every secret hidden."""
        return redacted(text, self._veil.secrets)

    def pace(self, url: str, *, per_second: float, burst: int = 1) -> None:
        """Ask the host of this address no faster than that."""
        self._paces[urlsplit(url).netloc] = Pace(per_second=per_second, burst=burst)

    async def get(
        self,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        follow_redirects: bool = True,
        admit: Admit | None = None,
    ) -> Answer:
        """The answer to a GET: 200, 304, or a redirect that is not to be followed. Else raises `SourceError`."""
        request = self._client.build_request("GET", url, params=params, headers=headers)
        hops: list[str] = []
        while True:
            hops.append(self.redact(str(request.url)))
            good = GOOD_STATUS | REDIRECT_STATUS
            answer = await self._with_retries(request, good, await admit(str(request.url)) if admit else None)
            if answer.status not in REDIRECT_STATUS or not follow_redirects:
                return Answer(status=answer.status, body=answer.body, headers=answer.headers, hops=tuple(hops))
            if len(hops) > MAX_REDIRECTS:
                raise SourceError(f"more than {MAX_REDIRECTS} redirects", url=hops[0])
            request = self._next_hop(request, answer, headers or {}, hops[-1])

    async def post(self, url: str, *, json: Any, headers: Mapping[str, str] | None = None) -> Answer:
        """The answer to a POST: any 2xx; redirects are not followed. Else raises `SourceError`."""
        request = self._client.build_request("POST", url, json=json, headers=headers)
        return await self._with_retries(request, range(200, 300), None)

    def _next_hop(
        self, request: "httpx2.Request", answer: Answer, headers: Mapping[str, str], shown: str
    ) -> "httpx2.Request":
        import httpx2

        try:
            target = request.url.join(answer.headers["location"])
        except (KeyError, httpx2.InvalidURL):
            raise SourceError("redirects to no readable address", url=shown, status=answer.status) from None
        if target.scheme not in ("http", "https"):
            raise SourceError("redirects to something that is not http", url=shown, status=answer.status)
        same_site = (target.scheme, target.netloc) == (request.url.scheme, request.url.netloc)
        kept = {k: v for k, v in headers.items() if same_site or k.lower() in STAY_ACROSS_SITES}
        return self._client.build_request("GET", target, headers=kept)

    async def _with_retries(self, request: "httpx2.Request", good: Container[int], address: str | None) -> Answer:
        pace = self._paces.get(request.url.netloc.decode())
        pinned = _pinned(request, address) if address else request
        url = self.redact(str(request.url))
        async for attempt in retrying(self.limits):
            with attempt:
                if pace is not None:
                    await pace.wait()
                return await self._once(pinned, url, good)
        raise AssertionError("retrying either returns or raises")

    async def _once(self, request: "httpx2.Request", url: str, good: Container[int]) -> Answer:
        import httpx2

        try:
            async with asyncio.timeout(self.limits.total_seconds):
                return await self._answer(request, url, good)
        except TimeoutError:
            failure = SourceError(f"answer took longer than {self.limits.total_seconds:g} s", url=url)
        except httpx2.TransportError as error:
            failure = Busy(self.redact(told(error)), url=url)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            failure = SourceError(self.redact(told(error)), url=url)
        # Raised out here so that no chained exception carries what was hidden.
        raise failure

    async def _answer(self, request: "httpx2.Request", url: str, good: Container[int]) -> Answer:
        response = await self._client.send(request, stream=True)
        try:
            status = response.status_code
            said = "" if status in good else await self._explanation(response)
            check_status(response, url, good=good, said=said)
            body = b"" if status in REDIRECT_STATUS else await self._body(response, url)
        finally:
            await response.aclose()
        return Answer(status=status, body=body, headers=dict(response.headers.items()), hops=(url,))

    async def _body(self, response: "httpx2.Response", url: str) -> bytes:
        body = bytearray()
        async for part in response.aiter_bytes():
            body += part
            if len(body) > self.limits.max_bytes:
                raise SourceError(f"answer is larger than {self.limits.max_bytes:,} bytes", url=url)
        return bytes(body)

    async def _explanation(self, response: "httpx2.Response") -> str:
        """The beginning of what the server says about a failure, unless it is a web page."""
        if "html" in response.headers.get("content-type", ""):
            return ""
        async for part in response.aiter_bytes():
            text = " ".join(self.redact(part.decode("utf-8", "replace")).split())
            return text[:MAX_EXPLANATION]
        return ""


def _pinned(request: "httpx2.Request", address: str) -> "httpx2.Request":
    """The request sent to a given numeric address, so that a second look-up of the name cannot lead elsewhere.

    Its connection is not kept: another site at the same address must prove its own name.
    """
    import httpx2

    extensions = {**request.extensions, "sni_hostname": request.url.host}
    headers = {**request.headers, "Connection": "close"}
    return httpx2.Request("GET", request.url.copy_with(host=address), headers=headers, extensions=extensions)


class _Veil(logging.Filter):
    """Hides secrets in log lines."""

    def __init__(self) -> None:
        super().__init__()
        self.secrets: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        """Let the line through, redacted."""
        if self.secrets:
            record.msg, record.args = redacted(record.getMessage(), self.secrets), ()
        return True
