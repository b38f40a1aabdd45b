"""Bounds, files and schemas of the server, without a process."""

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.mcp import TOOLS, ReadableFiles, ServerPermissions, limit_size
from foretell.mcp import server as serving
from foretell.models import Budget
from foretell.questions import Cost, InputError
from foretell.runs import Settings

values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=400),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=8), inner, max_size=20),
    max_leaves=25,
)


@settings(deadline=None, max_examples=30)
@given(answer=st.dictionaries(st.text(max_size=20), values, max_size=20), most=st.integers(200, 5_000))
def test_answers_fit(answer: dict[str, object], most: int):
    told = limit_size(answer, most)
    assert len(json.dumps(told, ensure_ascii=False)) <= most
    assert told == answer or told["shortened"] is True


def test_what_was_cut_is_counted():
    told = limit_size({"rows": [{"n": n, "text": "x" * 50} for n in range(2_000)]}, most=30_000)
    assert told["rows"][-1].startswith("…")
    assert len(told["rows"]) < 2_000


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


def test_a_spent_purse_stops_paid_models_and_not_free_ones(tmp_path: Path):
    purse = Budget("server", dollars=0.5)
    desk = ServerPermissions(
        settings=Settings(home=tmp_path, budget=purse), models=("openai:gpt-5-mini", "local:m.gguf")
    )
    assert desk.model() == "openai:gpt-5-mini"
    purse.spend(Cost(dollars=0.5))
    with pytest.raises(InputError, match="used up"):
        desk.model()
    assert desk.model("local:m.gguf") == "local:m.gguf"
    with pytest.raises(InputError, match="not on offer"):
        desk.model("openai:gpt-5")


def test_a_price_that_nobody_knows_is_asked_for_before_anything_is_spent(tmp_path: Path):
    unheard = "compat:unheard@http://203.0.113.1/v1"
    settings = Settings(home=tmp_path / "home", budget=Budget("server", dollars=1.0))
    desk = ServerPermissions(settings=settings, models=(unheard,))
    context = SimpleNamespace(session=SimpleNamespace(report_progress=None))
    for tool, fields in (("ask", {"question": "Will it?"}), ("grow_tree", {"claim": "It will."})):
        answer, worked = asyncio.run(serving.run_tool(desk, tool, {**fields, "model": unheard}, context))
        assert not worked
        assert "needs a known price" in json.dumps(answer)
        assert f"prices.{unheard}=0.5/2" in json.dumps(answer)
    assert not (tmp_path / "home").exists()


def test_the_page_lists_every_tool_once():
    page = (Path(__file__).parents[2] / "docs" / "interfaces.md").read_text(encoding="utf-8")
    section = page.partition("\n## AI assistants")[2].partition("\n## ")[0]
    first_cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    listed = [name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(listed) == sorted(tool.name for tool in TOOLS)


def test_every_schema_is_a_closed_object(tmp_path: Path):
    jsonschema = pytest.importorskip("jsonschema", reason="checks the schemas")
    desk = ServerPermissions(settings=Settings(home=tmp_path))
    for offer in TOOLS:
        schema = offer.schema(desk)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["additionalProperties"] is False
        assert not {"model", "engine"} & schema["properties"].keys()


def test_long_work_gives_signs_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def slow(_desk: ServerPermissions, _wish: Any) -> dict[str, Any]:
        await asyncio.sleep(0.1)
        return {"done": True}

    seen: list[tuple[float, str]] = []

    async def report(passed: float, message: str) -> None:
        seen.append((passed, message))

    purse = Budget("server", dollars=1.0)
    desk = ServerPermissions(settings=Settings(home=tmp_path, budget=purse), models=("local:m.gguf",))
    listing = next(offer for offer in TOOLS if offer.name == "list_runs")
    monkeypatch.setattr(serving, "PROGRESS_SECONDS", 0.01)
    monkeypatch.setattr(serving, "TOOLS", (replace(listing, use=slow),))
    context = SimpleNamespace(session=SimpleNamespace(report_progress=report))
    answer, worked = asyncio.run(serving.run_tool(desk, "list_runs", {}, context))
    assert worked
    assert answer == {"done": True}
    assert len(seen) > 1
    assert "$0.0000 billed" in seen[0][1]


def test_a_tool_that_breaks_does_not_break_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("mcp", reason="mcp is not installed: pip install 'foretell[mcp]'")
    from mcp.client.client import Client
    from mcp.shared.exceptions import MCPError

    async def broken(_desk: ServerPermissions, _wish: Any) -> dict[str, Any]:
        raise RuntimeError("a secret place")

    desk = ServerPermissions(settings=Settings(home=tmp_path))
    by_name = {offer.name: offer for offer in TOOLS}
    offers = (replace(by_name["list_runs"], use=broken), by_name["score"])
    monkeypatch.setattr(serving, "TOOLS", offers)

    async def run() -> None:
        async with Client(serving.make_server(desk)) as client:
            with pytest.raises(MCPError) as told:
                await client.call_tool("list_runs", {})
            assert "secret" not in str(told.value)
            rows = {
                "forecasts": [{"forecaster": "me", "question": "q", "target": "yes", "p": 0.5}],
                "outcomes": [{"question": "q", "target": "yes", "outcome": 1}],
            }
            assert not (await client.call_tool("score", {**rows, "bootstrap": "draws=100"})).is_error

    asyncio.run(run())
