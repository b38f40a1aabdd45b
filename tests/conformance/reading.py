"""Recorded answers as our readers get them, and adapters that are asked over a network of recordings."""

from collections.abc import Callable, Mapping
from typing import Any

from conformance.recordings import answer, names, recording, replay
from foretell.data import (
    AsyncHttpClient,
    HttpLimits,
    HttpResponse,
    PageUnavailable,
    Payload,
    ServiceConfig,
    SourceError,
)
from foretell.data.series import SeriesUnavailable
from foretell.outgoing import Answer, HttpRequest

ONCE = HttpLimits(attempts=1)
KEY = "key-beside-recordings"
REFUSALS = (SourceError, SeriesUnavailable, PageUnavailable)


def body_of(service: str, name: str) -> Payload:
    """The body of a recorded answer."""
    exchange = recording(service, name)
    return Payload(url=exchange["url"], value=exchange["body"])


def response_of(service: str, name: str) -> HttpResponse:
    """A recorded answer as our client hands it over."""
    found = answer(service, name)
    headers = {key.lower(): value for key, value in found.headers.items()}
    body = found.body if isinstance(found.body, bytes) else b""
    hops = (str(recording(service, name)["url"]),)
    return HttpResponse(status=found.status, body=body, headers=headers, hops=hops)


def config_on(answers: Mapping[str, Answer], seen: list[HttpRequest] | None = None, **more: Any) -> ServiceConfig:
    """What a plug-in is opened with where only these answers exist, by the end of an address's path."""
    client = AsyncHttpClient(limits=ONCE, transport=replay(answers, seen))
    return ServiceConfig(http=client, **more)


def sweep(service: str, read: Callable[[str], object]) -> None:
    """Every recording of a service is read, or refused with a reason; nothing else may happen."""
    for name in names(service):
        try:
            read(name)
        except REFUSALS as refusal:
            told = str(refusal)
            assert told, f"{name} is refused without a reason"
            # Wikipedia refuses with status 200, and the archive with a page of its own.
            said_no = (recording(service, name)["status"] or 200) >= 400 or "refused" in told or service == "wayback"
            assert said_no, f"{name}: {told}"
