"""Recorded answers as the readers get them, and adapters that are connected to recordings."""

from collections.abc import Callable, Mapping
from typing import Any

from conformance.recordings import answer, names, recording, replay
from foretell.data.http import AsyncHttpClient, HttpLimits, HttpResponse, SourceError
from foretell.data.pages import PageUnavailable
from foretell.data.payload import Payload
from foretell.data.series.series import SeriesUnavailable
from foretell.data.service import ServiceConfig
from foretell.outgoing.client import Answer, HttpRequest

ONCE = HttpLimits(attempts=1)
KEY = "key-beside-recordings"
REFUSALS = (SourceError, SeriesUnavailable, PageUnavailable)


def body_of(service: str, name: str) -> Payload:
    """The body of a recorded answer."""
    exchange = recording(service, name)
    return Payload(url=exchange["url"], value=exchange["body"])


def response_of(service: str, name: str) -> HttpResponse:
    """A recorded answer as foretell's HTTP client returns it."""
    recorded = answer(service, name)
    headers = {key.lower(): value for key, value in recorded.headers.items()}
    body = recorded.body if isinstance(recorded.body, bytes) else b""
    hops = (str(recording(service, name)["url"]),)
    return HttpResponse(status=recorded.status, body=body, headers=headers, hops=hops)


def config_on(answers: Mapping[str, Answer], seen: list[HttpRequest] | None = None, **more: Any) -> ServiceConfig:
    """Return the configuration of a plug-in that gets only these answers, by the end of the path."""
    client = AsyncHttpClient(limits=ONCE, transport=replay(answers, seen))
    return ServiceConfig(http=client, **more)


def sweep(service: str, read: Callable[[str], object]) -> None:
    """Check that every recording of a service is read, or refused with a reason."""
    for name in names(service):
        try:
            read(name)
        except REFUSALS as refusal:
            reason = str(refusal)
            assert reason, f"{name} is refused without a reason"
            # Wikipedia refuses with status 200, and the archive with a page of its own.
            refused = (recording(service, name)["status"] or 200) >= 400 or "refused" in reason or service == "wayback"
            assert refused, f"{name}: {reason}"
