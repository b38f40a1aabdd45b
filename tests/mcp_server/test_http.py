"""`foretell mcp --http`: loopback, a token for everything, and the same tools."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.mcp_server.office import ServerHome, parsed, problem

from foretell.data import connections
from foretell.forecasters.tree.grounders.deep_research import open_search_server
from foretell.mcp.permissions import ServerPermissions
from foretell.mcp.server import http_app, listen
from foretell.runs.settings import Settings

TOKEN = "a-long-token-for-tests-0123456789"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def test_without_the_token_nothing_is_revealed(server_home: ServerHome):
    async def run() -> None:
        import httpx2

        async with server_home.http(TOKEN) as url, httpx2.AsyncClient(trust_env=False) as client:
            right = {**ACCEPT, "Authorization": f"Bearer {TOKEN}"}
            for header in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}):
                answer = await client.post(url, json=LIST, headers={**ACCEPT, **header})
                assert answer.status_code == 401
                assert "ask" not in answer.text
                assert (await client.get(url, headers=header)).status_code == 401
            for header in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
                assert (await client.post(url, json=LIST, headers={**right, **header})).status_code in (403, 421)
            large = await client.post(url, content=b" " * 9_000_000, headers=right)
            assert large.status_code == 413

    asyncio.run(run())


def test_http_server_offers_the_same_tools_with_the_token(server_home: ServerHome):
    async def run() -> None:
        import httpx2
        from mcp.client.client import Client
        from mcp.client.streamable_http import streamable_http_client

        seen: list[Any] = []

        async def progress(*arguments: Any) -> None:
            seen.append(arguments)

        options = ("--allow-spending", "1", "--model", "openai:gpt-5-mini", "--search", "local")
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            server_home.http(TOKEN, *options) as url,
            httpx2.AsyncClient(trust_env=False, headers=headers, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            assert "grow_tree" in {tool.name for tool in (await client.list_tools()).tools}
            question = {"question": "Will the harbour bridge be approved?", "closes": "2027-06-30"}
            answer = parsed(await client.call_tool("ask", question, progress_callback=progress))
            assert answer["usage"]["calls"] > 0
            assert "no date was given" in problem(await client.call_tool("search_as_of", {"query": "bridge"}))

    asyncio.run(run())


def test_generated_token_is_printed_once(server_home: ServerHome):
    process = server_home.start("mcp", "--http", "--port", "0", env=server_home.whole_environment)
    assert process.stderr is not None
    first, second = process.stderr.readline(), process.stderr.readline()
    process.terminate()
    process.communicate(timeout=20)
    assert re.match(r"serving http://127\.0\.0\.1:\d+/mcp until Ctrl-C", first)
    assert len(second.removeprefix("token: ").strip()) >= 40


def test_a_short_token_is_refused(server_home: ServerHome):
    foretell = ServerHome(folder=server_home.folder, environment={"FORETELL_TOKEN": "short"}).foretell("mcp", "--http")
    assert foretell.returncode == 2
    assert "shorter than" in foretell.stderr


@asynccontextmanager
async def tool_server(home: Path) -> AsyncGenerator[tuple[int, str]]:
    """Run the HTTP server in this process; yield its port and its token."""
    import uvicorn

    app, listening = http_app(ServerPermissions(settings=Settings(home=home)), TOKEN), listen("127.0.0.1", 0)
    server = uvicorn.Server(connections.server_config(app, app.connections, log_level="critical", lifespan="on"))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:
        await asyncio.sleep(0.01)
    yield listening.getsockname()[1], TOKEN
    server.should_exit = True
    await serving


@asynccontextmanager
async def research_server(_home: Path) -> AsyncGenerator[tuple[int, str]]:
    """Serve the search tool that a deep-research model uses, for one leaf."""
    no_tools: Any = None
    async with open_search_server() as server:
        with server.serve("leaf", no_tools) as address:
            yield int(server.url.split(":")[2].partition("/")[0]), address.token


async def reply_to(port: int, *sent: bytes) -> bytes:
    """Return everything that the server answers to these bytes before it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    received = b""
    try:
        for piece in sent:
            writer.write(piece)
        while piece := await asyncio.wait_for(reader.read(65536), 60):
            received += piece
    except ConnectionError:
        pass
    writer.close()
    return received


def head(method: str, token: str, *headers: str) -> bytes:
    own = ("Host: 127.0.0.1:80", f"Authorization: Bearer {token}", "Accept: application/json, text/event-stream")
    lines = (f"{method} /mcp HTTP/1.1", *own, "Content-Type: application/json", "Connection: close", *headers, "", "")
    return "\r\n".join(lines).encode()


@pytest.mark.parametrize("serving", [tool_server, research_server])
def test_memory_and_waiting_time_of_the_http_server_are_bounded(
    serving: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = json.dumps(LIST).encode()
    length = f"Content-Length: {len(body)}"
    chunk = b"%x\r\n%s\r\n" % (100_000, b" " * 100_000)

    async def run() -> None:
        async with serving(tmp_path) as (port, token):
            whole = await reply_to(port, head("POST", token, length), body)
            assert (whole[:12], b"inputSchema" in whole) == (b"HTTP/1.1 200", True)
            # Without the token the body is not read.
            assert b" 401 " in await reply_to(port, head("POST", "wrong", length))
            assert b" 413 " in await reply_to(port, head("POST", token, "Content-Length: 99000000"))
            assert b" 413 " in await reply_to(port, head("POST", token, "Transfer-Encoding: chunked"), *[chunk] * 82)
            long = await reply_to(port, head("GET", token, f"X-Long: {'x' * 40_000}"))
            assert b" 400 " in long or b" 431 " in long
            with monkeypatch.context() as patched:
                patched.setattr(connections, "HEADER_SECONDS", 0.2)
                patched.setattr(connections, "BODY_SECONDS", 0.2)
                assert b" 408 " in await reply_to(port, head("POST", token, length)[:-2])
                assert b" 408 " in await reply_to(port, head("POST", token, length), body[:-1])
            with monkeypatch.context() as patched:
                patched.setattr(connections, "MAX_STREAMS", 0)
                patched.setattr(connections, "MAX_REPLY_BYTES", 100)
                assert b" 503 " in await reply_to(port, head("GET", token))
                assert b"inputSchema" not in await reply_to(port, head("POST", token, length), body)
            assert b"inputSchema" in await reply_to(port, head("POST", token, length), body)

    asyncio.run(run())
