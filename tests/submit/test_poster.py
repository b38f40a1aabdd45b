"""Something sent: taken, refused, or nobody knows."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from fakes.faults import InboxFault, InboxFaults
from foretell.data import AsyncHttpClient, Payload, SourceError
from foretell.outgoing import Connections
from foretell.practice import PracticeServer, json_response
from foretell.submit import SEND_ONCE, Poster, SubmissionRefused, SubmissionUnconfirmed

SECRET = "canary-key-4711"


def sent(mishaps: Sequence[InboxFault | None] = (), status: int = 201) -> tuple[Any, int, int]:
    """What came of it, how often it was asked for, and how often it was taken."""
    taken: list[Any] = []

    def take(request: Any) -> Any:
        taken.append(request.json())
        return json_response({"said": request.headers.get("authorization")}, status)

    async def main() -> tuple[Any, int]:
        server = PracticeServer(middleware=InboxFaults(coming=list(mishaps)))
        server.route("POST", "/in", take)
        async with server, AsyncHttpClient(limits=SEND_ONCE, transport=Connections()) as http:
            headers = {"Authorization": f"Token {SECRET}"}
            poster = Poster(http=http, headers=headers, secret=SECRET, wait_seconds=0.0)
            try:
                found: Any = await poster.post(f"{server.url}/in", [{"a": 1}])
            except SourceError as error:
                found = error
            assert SECRET not in repr(poster)
            return found, len(server.requests)

    found, asked = asyncio.run(main())
    return found, asked, len(taken)


def test_taken():
    found, asked, taken = sent()
    assert (found.status, asked, taken) == (201, 1, 1)


def test_what_is_turned_away_at_the_door_comes_back():
    found, asked, taken = sent(["busy", "busy", "forbidden"])
    assert (found.status, asked, taken) == (201, 4, 1)


def test_a_door_that_stays_shut():
    found, asked, taken = sent(["busy"] * 9)
    assert isinstance(found, SubmissionRefused)
    assert (found.status, asked, taken) == (429, 5, 0)
    found, asked, taken = sent(["forbidden"] * 9)
    assert isinstance(found, SubmissionRefused)
    assert (found.status, asked, taken) == (403, 2, 0)


@pytest.mark.parametrize(
    ("mishap", "taken"), [("lost answer", 1), ("lost request", 0), ("broken", 0), ("broken after", 1)]
)
def test_what_nobody_knows_is_sent_only_once(mishap: InboxFault, taken: int):
    found, asked, arrived = sent([mishap])
    assert isinstance(found, SubmissionUnconfirmed)
    assert (asked, arrived) == (1, taken)


@pytest.mark.parametrize("status", [400, 401, 404, 405, 422])
def test_a_refusal_says_why_and_shows_no_key(status: int, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    found, asked, _ = sent(status=status)
    assert isinstance(found, SubmissionRefused)
    assert (found.status, asked) == (status, 1)
    assert "said" in str(found)
    assert SECRET not in f"{found}{found!r}{found.__cause__!r}{found.__context__!r}{caplog.text}"


def test_nobody_there():
    async def main() -> None:
        async with AsyncHttpClient(limits=SEND_ONCE) as http:
            await Poster(http=http, headers={}, secret="").post("http://127.0.0.1:9/in", {})

    with pytest.raises(SubmissionUnconfirmed):
        asyncio.run(main())


def test_a_client_that_repeats_is_refused():
    async def main() -> None:
        async with AsyncHttpClient() as http:
            Poster(http=http, headers={}, secret="")

    with pytest.raises(ValueError, match="may send a forecast twice"):
        asyncio.run(main())


def test_a_reply_that_cannot_be_read_leaves_it_open_what_was_taken() -> None:
    async def main() -> None:
        server = PracticeServer()
        server.route("POST", "/it", lambda request: json_response({}, 201).__class__(status=201, body=b"<html>"))
        async with server, AsyncHttpClient(limits=SEND_ONCE) as http:
            await Poster(http=http, headers={}, secret=SECRET).post_for_reply(f"{server.url}/it", {}, Payload.members)

    with pytest.raises(SubmissionUnconfirmed, match="not JSON"):
        asyncio.run(main())
