"""Bounds, files and schemas of the server, without a process."""

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.cli.main import cli
from foretell.mcp import server as serving
from foretell.mcp.permissions import ReadableFiles, ServerPermissions
from foretell.mcp.server import limit_size
from foretell.mcp.tools import TOOLS
from foretell.models.budget import Budget
from foretell.questions.errors import InputError
from foretell.questions.forecast import Cost
from foretell.runs.settings import Settings

values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=400),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=8), inner, max_size=20),
    max_leaves=25,
)


@settings(max_examples=30)
@given(answer=st.dictionaries(st.text(max_size=20), values, max_size=20), most=st.integers(200, 5_000))
def test_answers_are_limited_in_size(answer: dict[str, object], most: int):
    limited = limit_size(answer, most)
    assert len(json.dumps(limited, ensure_ascii=False)) <= most
    assert limited == answer or limited["shortened"] is True


def test_shortened_lists_and_texts_state_how_much_was_cut():
    limited = limit_size({"rows": [{"n": n, "text": "x" * 50} for n in range(2_000)]}, most=30_000)
    assert limited["rows"][-1].startswith("…")
    assert len(limited["rows"]) < 2_000


def test_a_file_is_found_under_any_root(tmp_path: Path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "b" / "t.csv").write_text("x", encoding="utf-8")
    files = ReadableFiles.under([tmp_path / "a", tmp_path / "b"])
    assert files.find("t.csv") == (tmp_path / "b" / "t.csv").resolve()
    with pytest.raises(InputError, match="may be read"):
        files.find("..")
    with pytest.raises(InputError, match="not the name"):
        files.find("t.csv\x00.txt")


def test_spent_budget_stops_paid_models_but_not_free_ones(tmp_path: Path):
    budget = Budget("server", dollars=0.5)
    permissions = ServerPermissions(
        settings=Settings(home=tmp_path, budget=budget), models=("openai:gpt-5-mini", "local:m.gguf")
    )
    assert permissions.model() == "openai:gpt-5-mini"
    budget.spend(Cost(dollars=0.5))
    with pytest.raises(InputError, match="used up"):
        permissions.model()
    assert permissions.model("local:m.gguf") == "local:m.gguf"
    with pytest.raises(InputError, match="not on offer"):
        permissions.model("openai:gpt-5")


def test_unknown_price_is_refused_before_anything_is_spent(tmp_path: Path):
    unpriced = "compat:unheard@http://203.0.113.1/v1"
    settings = Settings(home=tmp_path / "home", budget=Budget("server", dollars=1.0))
    permissions = ServerPermissions(settings=settings, models=(unpriced,))
    context = SimpleNamespace(session=SimpleNamespace(report_progress=None))
    for tool, fields in (("ask", {"question": "Will it?"}), ("grow_tree", {"claim": "It will."})):
        answer, worked = asyncio.run(serving.run_tool(permissions, tool, {**fields, "model": unpriced}, context))
        assert not worked
        assert "needs a known price" in json.dumps(answer)
    assert not (tmp_path / "home").exists()


def test_documentation_page_lists_every_tool_once():
    page = (Path(__file__).parents[2] / "docs" / "interfaces.md").read_text(encoding="utf-8")
    section = page.partition("\n## AI assistants")[2].partition("\n## ")[0]
    first_cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    listed = [name for text in first_cells for name in re.findall(r"`(\w+)`", text)]
    assert sorted(listed) == sorted(tool.name for tool in TOOLS)


def test_every_schema_is_a_closed_object(tmp_path: Path):
    jsonschema = pytest.importorskip("jsonschema", reason="checks the schemas")
    permissions = ServerPermissions(settings=Settings(home=tmp_path))
    for tool in TOOLS:
        schema = tool.schema(permissions)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["additionalProperties"] is False
        assert not {"model", "engine"} & schema["properties"].keys()
        assert set(tool.arguments) <= tool.request.model_fields.keys(), tool.name


def test_there_are_few_tools_and_their_descriptions_are_short(tmp_path: Path):
    pytest.importorskip("mcp", reason="mcp is not installed: pip install 'foretell[mcp]'")
    from mcp.client.client import Client

    settings = Settings(home=tmp_path, budget=Budget("server", dollars=1.0))
    permissions = ServerPermissions(
        settings=settings, models=("openai:gpt-5-mini", "openai:gpt-5"), search=("local", "brave")
    )

    async def listed() -> str:
        async with Client(serving.make_server(permissions)) as client:
            return (await client.list_tools()).model_dump_json(by_alias=True, exclude_none=True)

    tokens = len(asyncio.run(listed())) / 4
    print(f"{len(TOOLS)} tools, {tokens:.0f} tokens")
    assert len(TOOLS) <= 12
    assert tokens <= 5_000


def test_tool_list_in_the_terminal_matches_the_server():
    text = " ".join(CliRunner().invoke(cli, ["mcp", "--help"]).output.split())
    assert f"Tools: {', '.join(tool.name for tool in TOOLS)}" in text


def test_long_calls_report_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def slow(_desk: ServerPermissions, _wish: Any) -> dict[str, Any]:
        await asyncio.sleep(0.1)
        return {"done": True}

    seen: list[tuple[float, str]] = []

    async def report(passed: float, message: str) -> None:
        seen.append((passed, message))

    budget = Budget("server", dollars=1.0)
    permissions = ServerPermissions(settings=Settings(home=tmp_path, budget=budget), models=("local:m.gguf",))
    listing = next(tool for tool in TOOLS if tool.name == "list")
    monkeypatch.setattr(serving, "PROGRESS_SECONDS", 0.01)
    monkeypatch.setattr(serving, "TOOLS", (replace(listing, use=slow),))
    context = SimpleNamespace(session=SimpleNamespace(report_progress=report))
    answer, worked = asyncio.run(serving.run_tool(permissions, "list", {}, context))
    assert worked
    assert answer == {"done": True}
    assert len(seen) > 1
    assert "$0 billed" in seen[0][1]


def test_exception_in_a_tool_does_not_stop_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("mcp", reason="mcp is not installed: pip install 'foretell[mcp]'")
    from mcp.client.client import Client
    from mcp.shared.exceptions import MCPError

    async def broken(_desk: ServerPermissions, _wish: Any) -> dict[str, Any]:
        raise RuntimeError("a secret place")

    permissions = ServerPermissions(settings=Settings(home=tmp_path))
    by_name = {tool.name: tool for tool in TOOLS}
    offers = (replace(by_name["list"], use=broken), by_name["score"])
    monkeypatch.setattr(serving, "TOOLS", offers)

    async def run() -> None:
        async with Client(serving.make_server(permissions)) as client:
            with pytest.raises(MCPError) as raises:
                await client.call_tool("list", {})
            assert "secret" not in str(raises.value)
            rows = {
                "forecasts": [{"forecaster": "me", "question": "q", "target": "yes", "p": 0.5}],
                "outcomes": [{"question": "q", "target": "yes", "outcome": 1}],
            }
            assert not (await client.call_tool("score", {**rows, "bootstrap": "draws=100"})).is_error

    asyncio.run(run())
