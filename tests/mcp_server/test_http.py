"""`foretell mcp --http`: loopback, a token for everything, and the same tools."""

import asyncio
import re
import subprocess
from typing import Any

from tests.mcp_server.office import Office, parsed, problem

TOKEN = "a-long-token-for-tests-0123456789"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def test_no_token_no_word(office: Office):
    async def run() -> None:
        import httpx2

        async with office.http(TOKEN) as url, httpx2.AsyncClient(trust_env=False) as client:
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


def test_the_same_tools_with_the_token(office: Office):
    async def run() -> None:
        import httpx2
        from mcp.client.client import Client
        from mcp.client.streamable_http import streamable_http_client

        seen: list[Any] = []

        async def progress(*told: Any) -> None:
            seen.append(told)

        options = ("--allow-spending", "1", "--model", "openai:gpt-5-mini", "--search", "local")
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            office.http(TOKEN, *options) as url,
            httpx2.AsyncClient(trust_env=False, headers=headers, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            assert "grow_tree" in {tool.name for tool in (await client.list_tools()).tools}
            asked = {"question": "Will the harbour bridge be approved?", "closes": "2027-06-30"}
            told = parsed(await client.call_tool("ask", asked, progress_callback=progress))
            assert told["usage"]["calls"] > 0
            assert "no date was given" in problem(await client.call_tool("search_as_of", {"query": "bridge"}))

    asyncio.run(run())


def test_a_token_is_made_up_and_told_once(office: Office):
    process = subprocess.Popen(
        [*office.command, "--http", "--port", "0"], env=office.whole_environment, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    first, second = process.stderr.readline(), process.stderr.readline()
    process.terminate()
    process.communicate(timeout=20)
    assert re.match(r"serving http://127\.0\.0\.1:\d+/mcp until Ctrl-C", first)
    assert len(second.removeprefix("token: ").strip()) >= 40


def test_a_short_token_is_refused(office: Office):
    told = Office(folder=office.folder, environment={"FORETELL_MCP_TOKEN": "short"}).foretell("mcp", "--http")
    assert told.returncode == 2
    assert "shorter than" in told.stderr
