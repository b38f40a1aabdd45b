"""Send one request through every interface: command line, Python, web and MCP, each with its own home."""

import asyncio
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from fastapi.testclient import TestClient

import foretell
from foretell.cli.main import cli
from foretell.mcp.permissions import ReadableFiles, ServerPermissions
from foretell.mcp.server import run_tool
from foretell.models.budget import Budget
from foretell.operations.requests.asking import AskRequest
from foretell.operations.requests.runs import RunRequest, ShowRequest
from foretell.operations.requests.scoring import ScoreRequest
from foretell.operations.requests.trees import TreeRequest, WhatIfRequest
from foretell.request import OperationRequest, flags, hints, is_list
from foretell.runs.settings import Settings, load_settings
from foretell.web.app import create_app

TOKEN = "test-token-0123456789-canary"
COMMANDS = {
    AskRequest: ("ask",),
    TreeRequest: ("tree", "grow"),
    WhatIfRequest: ("tree", "whatif"),
    RunRequest: ("run",),
    ShowRequest: ("show",),
    ScoreRequest: ("score",),
}
TOOLS = {
    AskRequest: "ask",
    TreeRequest: "grow_tree",
    WhatIfRequest: "what_if",
    RunRequest: "run",
    ShowRequest: "show",
    ScoreRequest: "score",
}
FUNCTIONS = {
    AskRequest: "ask",
    TreeRequest: "grow_tree",
    WhatIfRequest: "what_if",
    RunRequest: "run",
    ShowRequest: "show",
}


@dataclass(frozen=True, kw_only=True)
class Interfaces:
    """A machine with a corpus and a model, copied for every interface."""

    folder: Path
    environment: Mapping[str, str]

    def settings(self, name: str) -> Settings:
        home = self.folder / name
        if not home.exists():
            shutil.copytree(self.folder / "home", home)
        return load_settings({**self.environment, "FORETELL_HOME": str(home)})

    def by_command(self, kind: type[OperationRequest], fields: Mapping[str, Any]) -> dict[str, Any]:
        self.settings("cli")
        environment = {**self.environment, "FORETELL_HOME": str(self.folder / "cli"), "COLUMNS": "200"}
        words = [*COMMANDS[kind], *command_words(kind, fields), "--json"]
        done = CliRunner().invoke(cli, words, env=environment)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    def by_python(self, kind: type[OperationRequest], fields: Mapping[str, Any]) -> dict[str, Any]:
        return getattr(foretell, FUNCTIONS[kind])(**fields, settings=self.settings("python")).to_dict()

    def by_tool(self, kind: type[OperationRequest], fields: Mapping[str, Any]) -> dict[str, Any]:
        from dataclasses import replace

        settings = replace(self.settings("mcp"), budget=Budget("server", dollars=5.0))
        permissions = ServerPermissions(
            settings=settings,
            models=("openai:gpt-5-mini",),
            search=("local",),
            files=ReadableFiles.under([self.folder]),
        )
        sent = {name: str(value) if isinstance(value, Path) else value for name, value in fields.items()}
        answer, worked = asyncio.run(run_tool(permissions, TOOLS[kind], json.loads(json.dumps(sent))))
        assert worked, answer
        return answer

    def by_web(self, kind: type[OperationRequest], fields: Mapping[str, Any]) -> dict[str, Any]:
        sent: dict[str, Any] = json.loads(json.dumps(dict(fields), default=str))
        app = create_app(self.settings("web"), token=TOKEN)
        with TestClient(app, base_url="http://127.0.0.1", headers={"Authorization": f"Bearer {TOKEN}"}) as client:
            if kind is AskRequest and sent.get("model") == "none":
                return _ok(client.get("/api/ask", params={n: v for n, v in sent.items() if n != "model"}))
            if kind is WhatIfRequest:
                trees = self.folder / "web" / "trees"
                trees.mkdir(exist_ok=True)
                shutil.copy(sent.pop("tree"), trees / "sent.json")
                return _ok(client.post("/api/tree/whatif/sent", json=sent))
            if kind is ShowRequest:
                return _ok(client.get(f"/api/runs/{sent.pop('run')}/show", params=sent))
            begun = _ok(
                client.post({AskRequest: "/api/ask", TreeRequest: "/api/trees"}.get(kind, "/api/runs"), json=sent)
            )
            client.get(f"/api/runs/{begun['run']}/stream")  # Ends when the run does.
            if kind is AskRequest:
                which = {"question": begun["question"], "due": begun["due"]}
                return _ok(client.get(f"/api/runs/{begun['run']}/answer", params=which))
            return _ok(client.get(f"/api/runs/{begun['run']}/{'answer' if kind is TreeRequest else 'show'}"))

    def all(self, kind: type[OperationRequest], **fields: Any) -> dict[str, dict[str, Any]]:
        """Return the answers by interface, without fields that always differ."""
        ways = {"cli": self.by_command, "python": self.by_python, "web": self.by_web, "mcp": self.by_tool}
        return {name: comparable(way(kind, fields)) for name, way in ways.items()}


def _ok(response: Any) -> dict[str, Any]:
    assert response.status_code < 300, response.text
    return response.json()


def command_words(kind: type[OperationRequest], fields: Mapping[str, Any]) -> list[str]:
    """Return fields as command-line arguments."""
    arguments: list[str] = []
    words: list[str] = []
    for name, value in fields.items():
        info = kind.model_fields[name]
        spelled = flags(name, info)[-1]
        if hints(info).get("argument"):
            arguments += map(str, value if is_list(info) else [value])
        elif isinstance(value, bool):
            words.append(spelled if value else f"--no-{spelled.removeprefix('--')}")
        elif isinstance(value, Mapping):
            words += [word for key, item in value.items() for word in (spelled, f"{key}={item}")]
        elif is_list(info):
            words += [word for item in value for word in (spelled, str(item))]
        else:
            words += [spelled, *(map(str, value) if isinstance(value, list | tuple) else (str(value),))]
    return [*arguments, *words]


def comparable(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without times, paths of files and the account of a server."""
    result: dict[str, Any] = json.loads(json.dumps(answer))
    for name in ("server_spending", "file", "name"):
        result.pop(name, None)
    for part in (result, *result.get("answers", ())):
        part.get("usage", {}).pop("seconds", None)
    if isinstance(result.get("run"), dict):
        result["run"].pop("created", None)
    return result
