"""Responses that are stored for a day: one request for all processes, nothing wrong is kept, old days are deleted."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from foretell.data.day_cache import DayCache
from foretell.data.http import AsyncHttpClient, HttpLimits, NotFound, SourceError
from foretell.data.payload import Payload
from foretell.data.service_limits import ServiceAccess
from foretell.practice.server import PracticeServer, ServerRequest, ServerResponse, json_response

TODAY = datetime(2026, 11, 15, 23, tzinfo=UTC)


def test_concurrent_readers_of_several_processes_send_one_request(tmp_path: Path) -> None:
    async def work() -> None:
        sent: list[str] = []

        async def send() -> tuple[dict[str, Any], bytes]:
            sent.append("request")
            await asyncio.sleep(0.01)
            return {"status": 200}, b"body"

        # Each process has its own cache of the same folder.
        caches = [DayCache(tmp_path, lambda: TODAY) for _ in range(3)]
        answers = await asyncio.gather(*(cache.once("address", send) for cache in caches for _ in range(4)))
        assert (sent, answers) == (["request"], [({"status": 200}, b"body")] * 12)
        # A damaged file counts as missing, a new day begins anew, and earlier days are deleted.
        (stored,) = (path for path in tmp_path.glob("2026-11-15/*") if not path.suffix)
        stored.write_bytes(b"x")
        await caches[0].once("address", send)
        await DayCache(tmp_path, lambda: TODAY.replace(day=16)).once("address", send)
        assert (len(sent), [path.name for path in tmp_path.iterdir()]) == (3, ["2026-11-16"])

    asyncio.run(work())


def test_refusals_are_stored_but_failures_and_unreadable_answers_are_not(tmp_path: Path) -> None:
    answers: dict[str, list[ServerResponse]] = {
        "/missing": [json_response({}, 404)],
        "/broken": [json_response({}, 500), json_response({"n": 1})],
        "/unreadable": [ServerResponse(body=b"<html>"), json_response({"n": 2})],
    }

    def respond(request: ServerRequest) -> ServerResponse:
        left = answers[request.path]
        return left.pop(0) if len(left) > 1 else left[0]

    async def work() -> None:
        server = PracticeServer()
        server.route("GET", "*", respond)
        async with server:
            access = ServiceAccess(home=tmp_path, addresses={"dbnomics": server.url})
            async with AsyncHttpClient(limits=HttpLimits(attempts=1), access=access) as plain:
                daily = DayCache(tmp_path / "day_cache", lambda: TODAY)
                client = plain.once_a_day(daily)

                async def read(path: str) -> Any:
                    with daily.discarding(SourceError):
                        try:
                            return Payload.of(await client.get(f"{server.url}{path}")).value
                        except NotFound as missing:
                            return missing.status

                assert await read("/missing") == await read("/missing") == 404
                for path in ("/broken", "/unreadable"):
                    with pytest.raises(SourceError):
                        await read(path)
                    assert await read(path) == await read(path) == {"n": 1 if path == "/broken" else 2}
                paths = [request.path for request in server.requests]
                assert {path: paths.count(path) for path in answers} == {"/missing": 1, "/broken": 2, "/unreadable": 2}

    asyncio.run(work())
