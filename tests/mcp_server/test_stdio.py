"""`foretell mcp`: a real client, the command's server in this process or in its own, and fake services."""

import asyncio
import json
import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import CliRunner
from tests.mcp_server.office import ServerHome, parsed, problem

from fakes.background import Background
from fakes.models import BackgroundModels
from foretell.cli.main import cli
from foretell.mcp.permissions import ServerPermissions
from foretell.mcp.server import make_server
from foretell.practice.web import search_server, small_world
from foretell.questions.errors import InputError

SPENDING = ("--allow-spending", "1", "--model", "openai:gpt-5-mini", "--search", "local")
BRIDGE = "Will the harbour bridge be approved?"
TREE = {
    "schema": "foretell/tree/1",
    "root": "P0",
    "nodes": {
        "P0": {
            "claim": "It is built.",
            "children": ["P1", "P2"],
            "link": {"kind": "linear", "intercept": 0.0, "weights": {"P1": 0.6, "P2": 0.4}},
        },
        "P1": {"claim": "It is paid for.", "p": 0.5},
        "P2": {"claim": "It is allowed.", "p": 0.25},
    },
}
FORECASTS = [
    {"forecaster": "me", "question": "q1", "target": "yes", "p": 0.8},
    {"forecaster": "me", "question": "q2", "target": "yes", "p": 0.1},
    {"forecaster": "you", "question": "q1", "target": "yes", "p": 0.5},
    {"forecaster": "you", "question": "q2", "target": "yes", "p": 0.5},
]
OUTCOMES = [
    {"question": "q1", "target": "yes", "outcome": 1},
    {"question": "q2", "target": "yes", "outcome": 0},
]

Work = Callable[[Any], Awaitable[None]]


def served(server_home: ServerHome, work: Work, *options: Any) -> None:
    """Run the work with a server in this process, opened with the options of the command."""
    from mcp import Client

    opened: list[ServerPermissions] = []

    async def serve(permissions: ServerPermissions) -> None:
        opened.append(permissions)

    async def run() -> None:
        async with Client(make_server(opened[0])) as client:
            await work(client)

    with (
        patch.dict(os.environ, server_home.whole_environment, clear=True),
        patch("foretell.mcp.server.serve_stdio", serve),
    ):
        end = CliRunner().invoke(cli, ["mcp", *map(str, options)], catch_exceptions=False)
        assert end.exit_code == 0, end.output
        asyncio.run(run())


def over_a_process(server_home: ServerHome, work: Work, *options: Any) -> None:
    async def run() -> None:
        async with server_home.client(*options) as client:
            await work(client)

    asyncio.run(run())


def test_without_spending_only_free_tools_are_offered(server_home: ServerHome, provider: BackgroundModels):
    async def work(client: Any) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        trees = ["edit_tree", "what_if", "tree_log"]
        assert list(tools) == ["ask", "show", "score", *trees, "list", "search_as_of", "tournament"]
        for tool in tools.values():
            assert tool.description
            assert tool.input_schema["type"] == "object"
            assert tool.input_schema["additionalProperties"] is False
            assert all("description" in argument for argument in tool.input_schema["properties"].values())
            assert "$ref" not in json.dumps(tool.input_schema)
        assert "model" not in tools["ask"].input_schema["properties"]
        assert tools["search_as_of"].input_schema["properties"]["engine"]["enum"] == ["local"]

        answer = parsed(await client.call_tool("ask", {"question": BRIDGE, "closes": "2027-06-30", "price": 0.35}))
        assert answer["p"] == {"yes": 0.35}
        assert answer["run"] is None
        assert "price you gave: nothing was researched" in answer["notes"][0]
        refused = await client.call_tool("ask", {"question": BRIDGE, "model": "openai:gpt-5-mini"})
        assert "spending is off" in problem(refused)
        assert "--allow-spending" in problem(refused)
        refused = await client.call_tool("grow_tree", {"claim": "The harbour bridge is approved."})
        assert "costs money" in problem(refused)

    served(server_home, work, "--model", "openai:gpt-5-mini")
    assert provider.stats()["arrived"] == 0


def test_invalid_arguments_are_named_in_the_error(server_home: ServerHome):
    async def work(client: Any) -> None:
        for name, arguments, words in (
            ("ask", {}, "question: is empty"),
            ("ask", {"question": BRIDGE, "price": 1.2}, "price"),
            ("ask", {"question": BRIDGE, "colour": "red"}, "colour: there is no such argument, known: question, "),
            ("ask", {"question": BRIDGE, "closes": "soon"}, "closes"),
            ("ask", {"question": BRIDGE, "as_of": "2026-01-01", "closes": "2025-01-01"}, "`closes` must be later"),
            ("ask", {"question": BRIDGE, "close": "2027-01-01"}, "no such argument, did you mean closes?"),
            ("what_if", {}, "tree: is missing"),
            ("what_if", {"tree": {"schema": "foretell/tree/1"}}, "nodes"),
            ("what_if", {"tree": TREE, "set": {"P9": 0.5}}, "P9"),
            ("what_if", {"tree": TREE, "scenarios": ["rain"]}, "no scenario 'rain' is saved"),
            ("score", {"forecasts": FORECASTS}, "outcomes"),
            ("score", {"forecasts": [{"p": 2}], "outcomes": OUTCOMES}, "question"),
            ("score", {"sources": ["/etc/passwd.csv"]}, "no file may be read"),
            ("score", {"sources": ["/etc/passwd"]}, "no file may be read"),
            ("score", {"sources": ["/etc/nothing"]}, "no file may be read"),
            ("score", {"sources": ["zzz"]}, "no run is named 'zzz'"),
            ("score", {"metrics": "all"}, "does not offer it"),
            ("show", {"run": "zzz"}, "no run is named 'zzz'"),
            ("show", {}, "name a run or a tree"),
            ("show", {"tree": "t", "limit": 3}, "no effect without"),
            ("tournament", {"tournament": "manifold:x"}, "no platform 'manifold'"),
            ("tournament", {"tournament": "metaculus:x", "action": "plan"}, "spending is off"),
            ("edit_tree", {"tree": "t", "set": {"P1": 3}}, "set.P1"),
            ("launch", {}, "there is no tool 'launch'"),
        ):
            assert words in problem(await client.call_tool(name, arguments)), name

    served(server_home, work)


def test_what_if_needs_no_model(server_home: ServerHome):
    async def work(client: Any) -> None:
        arguments = {"tree": TREE, "set": {"P2": 1.0}, "tornado": True, "sd": {"P1": 0.1}}
        answer = parsed(await client.call_tool("what_if", arguments))
        assert answer["p"] == pytest.approx(0.4)
        (scenario,) = answer["scenarios"]
        assert scenario["p"] == pytest.approx(0.7)
        assert {change["id"] for change in scenario["changes"]} == {"P0", "P2"}
        assert answer["depends_on"][0]["id"] == "P1"
        assert answer["spread"]["sd"] == pytest.approx(0.06)
        assert answer["tornado"]

    served(server_home, work)


def test_scores_of_rows_and_of_files_agree(server_home: ServerHome):
    for name, rows in (("forecasts", FORECASTS), ("outcomes", OUTCOMES)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (server_home.files / f"{name}.jsonl").write_text(lines, encoding="utf-8")

    async def work(client: Any) -> None:
        rows = parsed(
            await client.call_tool("score", {"forecasts": FORECASTS, "outcomes": OUTCOMES, "bootstrap": "draws=200"})
        )
        files = {"forecasts": "forecasts.jsonl", "outcomes": str(server_home.files / "outcomes.jsonl")}
        assert parsed(await client.call_tool("score", {**files, "bootstrap": "draws=200"})) == rows
        assert rows["scores"][0]["forecaster"] == "me"
        assert rows["scores"][0]["metrics"]["brier"]["estimate"] == pytest.approx(0.025)
        elsewhere = {**files, "forecasts": "../home/runs.db"}
        assert "may be read" in problem(await client.call_tool("score", elsewhere))
        assert "maximum" in str(next(t for t in (await client.list_tools()).tools if t.name == "score").input_schema)

    served(server_home, work, "--files", server_home.files)


def test_files_outside_the_readable_folders_are_not_read(server_home: ServerHome):
    (server_home.folder / "secret.jsonl").write_text("{}", encoding="utf-8")
    (server_home.files / "link.jsonl").symlink_to(server_home.folder / "secret.jsonl")
    names = ("../secret.jsonl", str(server_home.folder / "secret.jsonl"), "link.jsonl", "*.jsonl", "absent.jsonl")

    async def work(client: Any) -> None:
        for name in names:
            message = problem(await client.call_tool("what_if", {"tree": name}))
            assert "may be read" in message or "not the name of one file" in message
            assert "schema" not in message

    served(server_home, work, "--files", server_home.files)

    async def without(client: Any) -> None:
        assert "--files DIR" in problem(await client.call_tool("what_if", {"tree": "tree.json"}))

    served(server_home, without)


def test_search_requires_a_date_or_live(server_home: ServerHome, provider: BackgroundModels):
    async def work(client: Any) -> None:
        query = {"query": "harbour bridge"}
        assert "no date was given" in problem(await client.call_tool("search_as_of", query))
        both = {**query, "as_of": "2026-07-01", "live": True}
        assert "not both" in problem(await client.call_tool("search_as_of", both))
        assert "not over yet" in problem(await client.call_tool("search_as_of", {**query, "as_of": "2999-01-01"}))
        assert "ISO date" in problem(await client.call_tool("search_as_of", {**query, "as_of": "2026-13-01"}))
        answer = parsed(await client.call_tool("search_as_of", {**query, "as_of": "2026-07-01"}))
        assert {row["url"].rpartition("/")[2] for row in answer["results"]} == {"old", "leak"}
        assert answer["content_filter"].startswith("none: dates and addresses")
        answer = parsed(await client.call_tool("search_as_of", {**query, "live": True, "limit": 2}))
        assert len(answer["results"]) == 2
        assert answer["mode"] == "live"

    served(server_home, work)
    assert provider.stats()["arrived"] == 0

    async def web(client: Any) -> None:
        dated = {"query": "harbour bridge", "as_of": "2026-07-01"}
        assert "judged by a model" in problem(await client.call_tool("search_as_of", dated))
        live = {"query": "harbour bridge", "live": True}
        message = problem(await client.call_tool("search_as_of", live))
        assert "brave" in message
        assert "not on offer" in problem(await client.call_tool("search_as_of", {**live, "engine": "local"}))

    served(server_home, web, "--search", "brave")


def test_with_spending_answers_are_researched_and_stored(server_home: ServerHome, provider: BackgroundModels):
    async def work(client: Any) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "grow_tree" in tools
        assert tools["ask"].input_schema["properties"]["model"]["enum"] == ["openai:gpt-5-mini", "none"]
        answer = parsed(await client.call_tool("ask", {"question": BRIDGE, "closes": "2027-06-30", "trials": 2}))
        assert 0 < answer["p"]["yes"] < 1
        assert answer["rationale"]
        assert answer["notes"] == []
        assert answer["usage"]["calls"] > 0
        assert 0 < answer["server_spending"]["billed"] < answer["server_spending"]["allowed"] == 1.0

        runs = parsed(await client.call_tool("list", {}))["runs"]
        assert [row["run"] for row in runs] == [answer["run"]]
        shown = parsed(await client.call_tool("show", {"run": answer["run"][:6]}))
        assert shown["total"] == 2
        question = shown["answers"][0]["question_id"]
        steps = parsed(await client.call_tool("show", {"run": answer["run"], "question": question}))["steps"]
        assert list(steps) == ["trial 0", "trial 1"]
        assert any("web_search" in step["text"] for step in steps["trial 0"])

        dated = {"query": "harbour bridge", "as_of": "2026-07-01"}
        answer = parsed(await client.call_tool("search_as_of", dated))
        assert [row["url"] for row in answer["results"]] == ["https://news.example/old"]
        assert answer["content_filter"] == "openai:gpt-5-mini"
        assert answer["withheld"] >= 1

    served(server_home, work, *SPENDING)
    assert provider.stats()["arrived"] > 0


def test_tree_is_grown_listed_queried_and_edited_by_name(server_home: ServerHome):
    """All steps in sequence, with a real client over standard input and output."""

    async def work(client: Any) -> None:
        assert parsed(await client.call_tool("list", {"kind": "trees"})) == {"trees": [], "total": 0}
        grown = parsed(await client.call_tool("grow_tree", {"claim": "The harbour bridge is approved.", "leaves": 4}))
        assert grown["tree"]["schema"] == "foretell/tree/1"
        (listed,) = parsed(await client.call_tool("list", {"kind": "trees"}))["trees"]
        assert (listed["name"], listed["p"]) == (grown["name"], pytest.approx(grown["p"]))
        assert parsed(await client.call_tool("list", {"kind": "trees", "find": "tunnel"}))["total"] == 0
        assert [row["run"] for row in parsed(await client.call_tool("list", {}))["runs"]] == [grown["name"]]

        leaf = grown["depends_on"][0]["id"]
        for tree in (grown["name"], grown["run"], grown["file"], grown["tree"]):
            answer = parsed(await client.call_tool("what_if", {"tree": tree, "set": {leaf: 1.0}}))
            assert answer["p"] == pytest.approx(grown["p"])
            assert answer["scenarios"][0]["p"] != pytest.approx(grown["p"])

        change = {"tree": listed["name"], "set": {leaf: 1.0}, "message": "It was announced."}
        edited = parsed(await client.call_tool("edit_tree", change))
        assert edited["p"] == pytest.approx(answer["scenarios"][0]["p"])
        versions = parsed(await client.call_tool("tree_log", {"tree": listed["name"]}))["versions"]
        assert [(row["version"], row["message"]) for row in versions][-1] == (2, "It was announced.")
        changes = parsed(await client.call_tool("tree_log", {"tree": listed["name"], "diff": "1.."}))["changes"]
        assert leaf in {row["id"] for row in changes}
        restored = parsed(await client.call_tool("edit_tree", {"tree": listed["name"], "restore": 1}))
        assert restored["version"] == 3
        shown = parsed(await client.call_tool("show", {"tree": listed["name"]}))
        assert "# The harbour bridge is approved." in shown["report"]

        update = {"tree": listed["name"], "claims": [leaf], "plan": True}
        assert parsed(await client.call_tool("update_tree", update))["plan"]
        done = parsed(await client.call_tool("update_tree", {**update, "plan": False, "trials": 2}))
        assert done["version"] == 4
        both = {"tree": listed["name"], "expand": leaf, "claims": [leaf]}
        assert "has no effect with `expand`" in problem(await client.call_tool("update_tree", both))
        plan = parsed(await client.call_tool("update_tree", {"tree": listed["name"], "expand": leaf, "plan": True}))
        assert plan["plan"]
        parsed(await client.call_tool("update_tree", {"tree": listed["name"], "research": False, "plan": True}))

    over_a_process(server_home, work, *SPENDING)


def test_a_run_is_started_shown_replayed_continued_and_repeated(server_home: ServerHome):
    async def work(client: Any) -> None:
        spec = {"questions": {"dataset": "demo", "limit": 2}, "forecaster": "prior", "mode": "backtest"}
        done = parsed(await client.call_tool("run", {"spec": spec}))
        shown = parsed(await client.call_tool("show", {"run": done["run"]}))
        assert shown["total"] == done["questions"] == 2
        replayed = parsed(await client.call_tool("show", {"run": done["run"], "replay": True}))
        assert replayed["same"] == 2
        assert parsed(await client.call_tool("run", {"run": done["run"]}))["run"] == done["run"]
        again = parsed(await client.call_tool("run", {"run": done["run"], "again": True}))
        assert again["run"] != done["run"]
        assert parsed(await client.call_tool("list", {"find": done["run"]}))["total"] in (0, 1)
        assert parsed(await client.call_tool("list", {"limit": 1}))["total"] == 2
        for kind in ("grids", "arenas"):
            assert parsed(await client.call_tool("list", {"kind": kind})) == {kind: [], "total": 0}
        assert "not running" in problem(await client.call_tool("run", {"run": done["run"], "stop": True}))
        assert "name a stored run" in problem(await client.call_tool("run", {}))
        assert parsed(await client.call_tool("tournament", {}))["boards"] == {}
        for tournament in ("metaculus:minibench", "prophet-arena:weekly"):
            sandbox = {"tournament": tournament, "action": "sandbox"}
            assert re.search(
                "does not submit forecasts|no testing area", problem(await client.call_tool("tournament", sandbox))
            )

    served(server_home, work, *SPENDING)


def test_budget_limits_all_calls_together(server_home: ServerHome, provider: BackgroundModels):
    """Each question alone fits into the budget; together they must not exceed it."""
    allowed = 0.03
    options = ("--allow-spending", str(allowed), *SPENDING[2:])

    async def work(client: Any) -> None:
        calls = [client.call_tool("ask", {"question": f"Will bridge {n} be approved?"}) for n in range(12)]
        answers = await asyncio.gather(*calls)
        structured_contents = [answer.structured_content for answer in answers if not answer.is_error]
        spent = max(answer["server_spending"]["billed"] for answer in structured_contents)
        assert 0 < spent <= allowed
        refused = await client.call_tool("ask", {"question": "Will bridge 99 be approved?", "budget": 0.000001})
        if refused.is_error:
            assert "allows 0.000001 dollars" in problem(refused)
        else:
            # Nothing was paid, as the answer shows.
            assert "budget is too small" in parsed(refused)["notes"][0]

    served(server_home, work, *options)
    assert provider.stats()["arrived"] > 0


def test_nothing_but_the_protocol_reaches_standard_output(server_home: ServerHome):
    async def work(client: Any) -> None:
        parsed(await client.call_tool("ask", {"question": BRIDGE}))
        assert "sk-canary" not in json.dumps((await client.list_tools()).model_dump(mode="json"))

    over_a_process(server_home, work, *SPENDING)
    assert (server_home.folder / "stderr.txt").read_text(encoding="utf-8") == ""


def test_queries_to_paid_engines_are_charged_to_the_budget(server_home: ServerHome):
    live = {"query": "central bank rate", "live": True}

    async def refused(client: Any) -> None:
        assert "costs money" in problem(await client.call_tool("search_as_of", live))

    async def booked(client: Any) -> None:
        answer = parsed(await client.call_tool("search_as_of", live))
        assert answer["results"]
        assert answer["server_spending"] == {
            "billed": 0.01,
            "reused": 0.0,
            "unknown": 0.0,
            "reserved": 0.0,
            "allowed": 0.015,
        }
        assert "allows 0.015 dollars" in problem(await client.call_tool("search_as_of", live))

    with Background(lambda: search_server(small_world(), "engine-key")) as engines:
        addresses = {"FORETELL_BRAVE_URL": f"{engines.url}/brave", "BRAVE_API_KEY": "engine-key"}
        with_addresses = replace(server_home, environment={**server_home.environment, **addresses})
        served(with_addresses, refused, "--search", "brave")
        assert not engines.server.requests
        served(with_addresses, booked, "--allow-spending", "0.015", *SPENDING[2:4], "--search", "brave")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--allow-spending", "1"), "name a --model"),
        (("--files", "nowhere"), "no such directory"),
        (("--search", "altavista"), "altavista"),
        (("--model", "gpt"), "cannot read the model name"),
    ],
)
def test_invalid_server_options_are_refused_in_one_line(server_home: ServerHome, options: tuple[str, ...], words: str):
    with patch.dict(os.environ, server_home.whole_environment, clear=True):
        end = CliRunner().invoke(cli, ["mcp", *options])
    assert isinstance(end.exception, InputError)
    assert words in str(end.exception)
    assert len(str(end.exception).splitlines()) == 1
