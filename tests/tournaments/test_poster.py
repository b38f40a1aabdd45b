"""A sent request is accepted, refused or unconfirmed."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from fakes.faults import InboxFault, InboxFaults
from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.payload import Payload
from foretell.outgoing.client import Connections
from foretell.practice.server import PracticeServer, json_response
from foretell.tournaments.submission import SEND_ONCE, Poster, SubmissionRefused, SubmissionUnconfirmed

SECRET = "canary-key-4711"


def sent(mishaps: Sequence[InboxFault | None] = (), status: int = 201) -> tuple[Any, int, int]:
    """Return the result, the number of requests, and how many were accepted."""
    accepted: list[Any] = []

    def take(request: Any) -> Any:
        accepted.append(request.json())
        return json_response({"said": request.headers.get("authorization")}, status)

    async def main() -> tuple[Any, int]:
        server = PracticeServer(middleware=InboxFaults(coming=list(mishaps)))
        server.route("POST", "/in", take)
        async with server, AsyncHttpClient(limits=SEND_ONCE, transport=Connections()) as http:
            headers = {"Authorization": f"Token {SECRET}"}
            poster = Poster(http=http, headers=headers, secret=SECRET, wait_seconds=0.0)
            try:
                result: Any = await poster.post(f"{server.url}/in", [{"a": 1}])
            except SourceError as error:
                result = error
            assert SECRET not in repr(poster)
            return result, len(server.requests)

    result, requests = asyncio.run(main())
    return result, requests, len(accepted)


def test_accepted_request_returns_the_reply():
    result, requests, accepted = sent()
    assert (result.status, requests, accepted) == (201, 1, 1)


def test_request_rejected_with_429_or_403_is_retried():
    result, requests, accepted = sent(["busy", "busy", "forbidden"])
    assert (result.status, requests, accepted) == (201, 4, 1)


def test_request_rejected_repeatedly_is_refused():
    result, requests, accepted = sent(["busy"] * 9)
    assert isinstance(result, SubmissionRefused)
    assert (result.status, requests, accepted) == (429, 5, 0)
    result, requests, accepted = sent(["forbidden"] * 9)
    assert isinstance(result, SubmissionRefused)
    assert (result.status, requests, accepted) == (403, 2, 0)


@pytest.mark.parametrize(
    ("mishap", "accepted"), [("lost answer", 1), ("lost request", 0), ("broken", 0), ("broken after", 1)]
)
def test_unconfirmed_request_is_sent_only_once(mishap: InboxFault, accepted: int):
    result, requests, arrived = sent([mishap])
    assert isinstance(result, SubmissionUnconfirmed)
    assert (requests, arrived) == (1, accepted)


@pytest.mark.parametrize("status", [400, 401, 404, 405, 422])
def test_refusal_has_its_reason_and_no_key(status: int, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    result, requests, _ = sent(status=status)
    assert isinstance(result, SubmissionRefused)
    assert (result.status, requests) == (status, 1)
    assert "said" in str(result)
    assert SECRET not in f"{result}{result!r}{result.__cause__!r}{result.__context__!r}{caplog.text}"


def test_unreachable_server_is_unconfirmed():
    async def main() -> None:
        async with AsyncHttpClient(limits=SEND_ONCE) as http:
            await Poster(http=http, headers={}, secret="").post("http://127.0.0.1:9/in", {})

    with pytest.raises(SubmissionUnconfirmed):
        asyncio.run(main())


def test_client_that_retries_is_rejected():
    async def main() -> None:
        async with AsyncHttpClient() as http:
            Poster(http=http, headers={}, secret="")

    with pytest.raises(ValueError, match="may send a forecast twice"):
        asyncio.run(main())


def test_unreadable_reply_is_unconfirmed() -> None:
    async def main() -> None:
        server = PracticeServer()
        server.route("POST", "/it", lambda request: json_response({}, 201).__class__(status=201, body=b"<html>"))
        async with server, AsyncHttpClient(limits=SEND_ONCE) as http:
            await Poster(http=http, headers={}, secret=SECRET).post_for_reply(f"{server.url}/it", {}, Payload.members)

    with pytest.raises(SubmissionUnconfirmed, match="not JSON"):
        asyncio.run(main())
