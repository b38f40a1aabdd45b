"""`foretell mcp`: a real client, the command's own server in this process or in one of its own, fakes behind it."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import CliRunner
from tests.mcp_server.office import Office, parsed, problem

from fakes.background import Background
from fakes.models import BackgroundModels
from foretell.cli import cli
from foretell.mcp import ServerPermissions, make_server
from foretell.practice import search_server, small_world
from foretell.questions import InputError

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


def served(office: Office, work: Work, *options: Any) -> None:
    """With a server within this process that was opened with the options of the command."""
    from mcp import Client

    opened: list[ServerPermissions] = []

    async def serve(permissions: ServerPermissions) -> None:
        opened.append(permissions)

    async def run() -> None:
        async with Client(make_server(opened[0])) as client:
            await work(client)

    with patch.dict(os.environ, office.whole_environment, clear=True), patch("foretell.mcp.server.serve_stdio", serve):
        end = CliRunner().invoke(cli, ["mcp", *map(str, options)], catch_exceptions=False)
        assert end.exit_code == 0, end.output
        asyncio.run(run())


def over_a_process(office: Office, work: Work, *options: Any) -> None:
    async def run() -> None:
        async with office.client(*options) as client:
            await work(client)

    asyncio.run(run())


def test_without_leave_to_spend_only_free_tools_are_on_offer(office: Office, provider: BackgroundModels):
    async def work(client: Any) -> None:
        found = {tool.name: tool for tool in (await client.list_tools()).tools}
        trees = ["list_trees", "show_tree", "edit_tree", "tree_log"]
        runs = ["list_runs", "list_grids", "stop_run", "show_run", "replay_run"]
        assert list(found) == ["ask", "what_if", *trees, "score", "search_as_of", *runs, "tournament_results"]
        for tool in found.values():
            assert tool.description
            assert tool.input_schema["type"] == "object"
            assert tool.input_schema["additionalProperties"] is False
            assert all("description" in argument for argument in tool.input_schema["properties"].values())
            assert "$ref" not in json.dumps(tool.input_schema)
        assert "model" not in found["ask"].input_schema["properties"]
        assert found["search_as_of"].input_schema["properties"]["engine"]["enum"] == ["local"]

        told = parsed(await client.call_tool("ask", {"question": BRIDGE, "closes": "2027-06-30", "price": 0.35}))
        assert told["p"] == {"yes": 0.35}
        assert told["run"] is None
        assert "price you gave: nothing was researched" in told["notes"][0]
        refused = await client.call_tool("ask", {"question": BRIDGE, "model": "openai:gpt-5-mini"})
        assert "spending is off" in problem(refused)
        assert "--allow-spending" in problem(refused)
        refused = await client.call_tool("grow_tree", {"claim": "The harbour bridge is approved."})
        assert "costs money" in problem(refused)

    served(office, work, "--model", "openai:gpt-5-mini")
    assert provider.stats()["arrived"] == 0


def test_arguments_that_do_not_fit_are_named(office: Office):
    async def work(client: Any) -> None:
        for name, arguments, words in (
            ("ask", {}, "question: is missing"),
            ("ask", {"question": BRIDGE, "price": 1.2}, "price"),
            ("ask", {"question": BRIDGE, "colour": "red"}, "colour: there is no such argument, known: model, "),
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
            ("show_run", {"run": "zzz"}, "no run is named 'zzz'"),
            ("launch", {}, "there is no tool 'launch'"),
        ):
            assert words in problem(await client.call_tool(name, arguments)), name

    served(office, work)


def test_what_if_is_arithmetic(office: Office):
    async def work(client: Any) -> None:
        arguments = {"tree": TREE, "set": {"P2": 1.0}, "tornado": True, "sd": {"P1": 0.1}}
        told = parsed(await client.call_tool("what_if", arguments))
        assert told["p"] == pytest.approx(0.4)
        (scenario,) = told["scenarios"]
        assert scenario["p"] == pytest.approx(0.7)
        assert {change["id"] for change in scenario["changes"]} == {"P0", "P2"}
        assert told["depends_on"][0]["id"] == "P1"
        assert told["spread"]["sd"] == pytest.approx(0.06)
        assert told["tornado"]

    served(office, work)


def test_scores_of_rows_and_of_files_agree(office: Office):
    for name, rows in (("forecasts", FORECASTS), ("outcomes", OUTCOMES)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (office.files / f"{name}.jsonl").write_text(lines, encoding="utf-8")

    async def work(client: Any) -> None:
        rows = parsed(
            await client.call_tool("score", {"forecasts": FORECASTS, "outcomes": OUTCOMES, "bootstrap": "draws=200"})
        )
        files = {"forecasts": "forecasts.jsonl", "outcomes": str(office.files / "outcomes.jsonl")}
        assert parsed(await client.call_tool("score", {**files, "bootstrap": "draws=200"})) == rows
        assert rows["scores"][0]["forecaster"] == "me"
        assert rows["scores"][0]["metrics"]["brier"]["estimate"] == pytest.approx(0.025)
        elsewhere = {**files, "forecasts": "../home/runs.db"}
        assert "may be read" in problem(await client.call_tool("score", elsewhere))
        assert "maximum" in str(next(t for t in (await client.list_tools()).tools if t.name == "score").input_schema)

    served(office, work, "--files", office.files)


def test_files_elsewhere_are_not_read(office: Office):
    (office.folder / "secret.jsonl").write_text("{}", encoding="utf-8")
    (office.files / "link.jsonl").symlink_to(office.folder / "secret.jsonl")
    names = ("../secret.jsonl", str(office.folder / "secret.jsonl"), "link.jsonl", "*.jsonl", "absent.jsonl")

    async def work(client: Any) -> None:
        for name in names:
            told = problem(await client.call_tool("what_if", {"tree": name}))
            assert "may be read" in told or "not the name of one file" in told
            assert "schema" not in told

    served(office, work, "--files", office.files)

    async def without(client: Any) -> None:
        assert "--files DIR" in problem(await client.call_tool("what_if", {"tree": "tree.json"}))

    served(office, without)


def test_a_search_needs_a_date_or_says_live(office: Office, provider: BackgroundModels):
    async def work(client: Any) -> None:
        query = {"query": "harbour bridge"}
        assert "no date was given" in problem(await client.call_tool("search_as_of", query))
        both = {**query, "as_of": "2026-07-01", "live": True}
        assert "not both" in problem(await client.call_tool("search_as_of", both))
        assert "not over yet" in problem(await client.call_tool("search_as_of", {**query, "as_of": "2999-01-01"}))
        assert "ISO date" in problem(await client.call_tool("search_as_of", {**query, "as_of": "2026-13-01"}))
        told = parsed(await client.call_tool("search_as_of", {**query, "as_of": "2026-07-01"}))
        assert {row["url"].rpartition("/")[2] for row in told["results"]} == {"old", "leak"}
        assert told["content_filter"].startswith("none: dates and addresses")
        told = parsed(await client.call_tool("search_as_of", {**query, "live": True, "limit": 2}))
        assert len(told["results"]) == 2
        assert told["mode"] == "live"

    served(office, work)
    assert provider.stats()["arrived"] == 0

    async def web(client: Any) -> None:
        dated = {"query": "harbour bridge", "as_of": "2026-07-01"}
        assert "judged by a model" in problem(await client.call_tool("search_as_of", dated))
        live = {"query": "harbour bridge", "live": True}
        told = problem(await client.call_tool("search_as_of", live))
        assert "brave" in told
        assert "not on offer" in problem(await client.call_tool("search_as_of", {**live, "engine": "local"}))

    served(office, web, "--search", "brave")


def test_with_leave_to_spend_everything_is_researched_and_kept(office: Office, provider: BackgroundModels):
    async def work(client: Any) -> None:
        found = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "grow_tree" in found
        assert found["ask"].input_schema["properties"]["model"]["enum"] == ["openai:gpt-5-mini", "none"]
        told = parsed(await client.call_tool("ask", {"question": BRIDGE, "closes": "2027-06-30", "trials": 2}))
        assert 0 < told["p"]["yes"] < 1
        assert told["rationale"]
        assert told["notes"] == []
        assert told["usage"]["calls"] > 0
        assert 0 < told["server_spending"]["billed"] < told["server_spending"]["allowed"] == 1.0

        runs = parsed(await client.call_tool("list_runs", {}))["runs"]
        assert [row["run"] for row in runs] == [told["run"]]
        shown = parsed(await client.call_tool("show_run", {"run": told["run"][:6]}))
        assert shown["total"] == 2
        asked = shown["answers"][0]["question_id"]
        steps = parsed(await client.call_tool("show_run", {"run": told["run"], "question": asked}))["steps"]
        assert list(steps) == ["trial 0", "trial 1"]
        assert any("web_search" in step["text"] for step in steps["trial 0"])

        dated = {"query": "harbour bridge", "as_of": "2026-07-01"}
        told = parsed(await client.call_tool("search_as_of", dated))
        assert [row["url"] for row in told["results"]] == ["https://news.example/old"]
        assert told["content_filter"] == "openai:gpt-5-mini"
        assert told["withheld"] >= 1

    served(office, work, *SPENDING)
    assert provider.stats()["arrived"] > 0


def test_a_tree_is_grown_and_played_with(office: Office):
    async def work(client: Any) -> None:
        grown = parsed(await client.call_tool("grow_tree", {"claim": "The harbour bridge is approved.", "leaves": 4}))
        assert grown["tree"]["schema"] == "foretell/tree/1"
        leaf = grown["depends_on"][0]["id"]
        told = parsed(await client.call_tool("what_if", {"tree": grown["tree"], "set": {leaf: 1.0}}))
        assert told["p"] == pytest.approx(grown["p"])
        assert told["scenarios"][0]["p"] != pytest.approx(grown["p"])
        # One tool after the other takes the tree by its run, its name or its file.
        (listed,) = parsed(await client.call_tool("list_trees", {}))["trees"]
        for tree in (grown["run"], listed["name"], grown["file"]):
            by_name = parsed(await client.call_tool("what_if", {"tree": tree, "set": {leaf: 1.0}}))
            assert by_name["scenarios"][0]["p"] == pytest.approx(told["scenarios"][0]["p"])
            edited = parsed(await client.call_tool("edit_tree", {"tree": tree, "set": {leaf: 0.5}, "message": "try"}))
            assert edited["version"] == 2
            planned = parsed(await client.call_tool("update_tree", {"tree": tree, "claims": [leaf], "plan": True}))
            assert planned["calls"]
        log = parsed(await client.call_tool("tree_log", {"tree": listed["name"]}))
        assert [version["message"] for version in log["versions"]] == ["as it was found", "try"]
        assert "report" in parsed(await client.call_tool("show_tree", {"tree": listed["name"]}))

    served(office, work, *SPENDING)


def test_the_budget_holds_for_all_calls_together(office: Office, provider: BackgroundModels):
    """Each question alone would fit; together they may not cost more than was allowed."""
    allowed = 0.03
    options = ("--allow-spending", str(allowed), *SPENDING[2:])

    async def work(client: Any) -> None:
        asked = [client.call_tool("ask", {"question": f"Will bridge {n} be approved?"}) for n in range(12)]
        answers = await asyncio.gather(*asked)
        told = [answer.structured_content for answer in answers if not answer.is_error]
        spent = max(answer["server_spending"]["billed"] for answer in told)
        assert 0 < spent <= allowed
        refused = await client.call_tool("ask", {"question": "Will bridge 99 be approved?", "budget": 0.000001})
        if refused.is_error:
            assert "allows 0.000001 dollars" in problem(refused)
        else:
            # Nothing was paid for, and the answer says so.
            assert "budget does not pay" in parsed(refused)["notes"][0]

    served(office, work, *options)
    assert provider.stats()["arrived"] > 0


def test_nothing_but_the_protocol_reaches_standard_output(office: Office):
    async def work(client: Any) -> None:
        parsed(await client.call_tool("ask", {"question": BRIDGE}))
        assert "sk-canary" not in json.dumps((await client.list_tools()).model_dump(mode="json"))

    over_a_process(office, work, *SPENDING)
    assert (office.folder / "stderr.txt").read_text(encoding="utf-8") == ""


def test_engines_that_send_bills_are_booked(office: Office):
    live = {"query": "central bank rate", "live": True}

    async def refused(client: Any) -> None:
        assert "sends bills" in problem(await client.call_tool("search_as_of", live))

    async def booked(client: Any) -> None:
        told = parsed(await client.call_tool("search_as_of", live))
        assert told["results"]
        assert told["server_spending"] == {
            "billed": 0.01,
            "reused": 0.0,
            "unknown": 0.0,
            "reserved": 0.0,
            "allowed": 0.015,
        }
        assert "allows 0.015 dollars" in problem(await client.call_tool("search_as_of", live))

    with Background(lambda: search_server(small_world(), "engine-key")) as engines:
        addresses = {"FORETELL_BRAVE_URL": f"{engines.url}/brave", "BRAVE_API_KEY": "engine-key"}
        found = replace(office, environment={**office.environment, **addresses})
        served(found, refused, "--search", "brave")
        assert not engines.server.requests
        served(found, booked, "--allow-spending", "0.015", *SPENDING[2:4], "--search", "brave")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--allow-spending", "1"), "name a --model"),
        (("--files", "nowhere"), "no such directory"),
        (("--search", "altavista"), "altavista"),
        (("--model", "gpt"), "cannot read the model name"),
    ],
)
def test_a_server_that_cannot_be_is_refused_in_one_line(office: Office, options: tuple[str, ...], words: str):
    with patch.dict(os.environ, office.whole_environment, clear=True):
        end = CliRunner().invoke(cli, ["mcp", *options])
    assert isinstance(end.exception, InputError)
    assert words in str(end.exception)
    assert len(str(end.exception).splitlines()) == 1
