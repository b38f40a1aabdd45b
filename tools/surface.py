"""Counts what a person has to learn: commands, options, studies, pages, tools, variables and words.

    python tools/surface.py

`tests/test_surface.py` holds the counts to their limits.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fastapi.routing import APIRoute

ROOT = Path(__file__).parents[1]
LIMITS = {
    "commands": 60,
    "options": 400,
    "studies": 12,
    "pages of docs": 25,
    "words of docs": 35_000,
    "pages of the web app": 18 + 2,
    "JSON routes": 26,
    "MCP tools": 12,
    "tokens of MCP tools": 5_000,
    "metrics": 21,
    "environment variables": 7,
    "names in foretell": 46,
}
"""The most of each. The record of one's own questions is one page beyond the 18: of all of them, and of each."""
NO_PAGES = ("/api", "/static", "/openapi")
"""How the addresses begin that do not lead to a page."""


def commands(group: click.Group | None = None, parent: click.Context | None = None) -> Iterator[click.Command]:
    """Yield every command that does something, with subcommands and studies."""
    from foretell.cli.main import cli

    group = group or cli
    context = click.Context(group, parent=parent, info_name=group.name)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, context)
        elif command is not None:
            yield command


def options() -> int:
    """Count the options of all commands; the common --help is not counted."""
    return sum(isinstance(param, click.Option) for command in commands() for param in command.params)


def doc_pages() -> list[Path]:
    """Return the pages of the documentation that people write; generated ones are not among them."""
    return sorted((ROOT / "docs").rglob("*.md"))


def mcp_tokens() -> int:
    """Estimate the tokens of the tools' names, descriptions and schemas, at four characters each."""
    from foretell.mcp.permissions import ServerPermissions
    from foretell.mcp.tools import TOOLS
    from foretell.models.budget import Budget
    from foretell.runs.settings import Settings

    with TemporaryDirectory() as home:
        settings = Settings(home=Path(home), budget=Budget("server", dollars=1.0))
        server = ServerPermissions(settings=settings, models=("openai:gpt-5-mini",), search=("local",))
        tools = [
            {"name": tool.name, "description": tool.description, "inputSchema": tool.schema(server)} for tool in TOOLS
        ]
    return len(json.dumps(tools, ensure_ascii=False)) // 4


def routes() -> tuple[set[str], set[str]]:
    """Return the addresses of the pages and of the JSON routes of the web app, without redirects from old ones."""
    from fastapi.routing import APIRoute

    from foretell.runs.settings import Settings
    from foretell.web.app import create_app

    with TemporaryDirectory() as home:
        app = create_app(Settings(home=Path(home)))
    current = [route for route in app.router.routes if isinstance(route, APIRoute) and not is_redirect(route)]
    pages = {route.path for route in current if "GET" in route.methods and not route.path.startswith(NO_PAGES)}
    return pages, {route.path for route in current if route.path.startswith("/api/")}


def is_redirect(route: "APIRoute") -> bool:
    """Return whether an address of an earlier version leads to the present one."""
    return route.endpoint.__module__ == "foretell.web.moved"


def environment_variables() -> set[str]:
    """Return the FORETELL_ variables that the package reads.

    The addresses of services count as one. Variables of version 0.2, which settings.toml replaces, are left out.
    """
    from foretell.cli.serve import OLD_TOKEN_VARIABLE
    from foretell.runs.settings import OLD

    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    names = set(re.findall(r"\bFORETELL_[A-Z_]+[A-Z]\b", text)) - set(OLD) - {OLD_TOKEN_VARIABLE}
    services = {name for name in names if name.endswith("_URL")} - {"FORETELL_DATABASE_URL"}
    return names - services | {"FORETELL_<SERVICE>_URL"}


def counts() -> dict[str, int]:
    """Count everything that has a limit."""
    import foretell
    from foretell import plugins
    from foretell.mcp.tools import TOOLS
    from foretell.metrics.metric import METRICS

    pages, calls = routes()
    return {
        "commands": sum(1 for _ in commands()),
        "options": options(),
        "studies": len(plugins.names("studies")),
        "pages of docs": len(doc_pages()),
        "words of docs": sum(len(page.read_text(encoding="utf-8").split()) for page in doc_pages()),
        "pages of the web app": len(pages),
        "JSON routes": len(calls),
        "MCP tools": len(TOOLS),
        "tokens of MCP tools": mcp_tokens(),
        "metrics": len(list(METRICS)),
        "environment variables": len(environment_variables()),
        "names in foretell": len(foretell.__all__),
    }


def main() -> None:
    """Print each count beside its limit."""
    for name, count in counts().items():
        limit = LIMITS[name]
        print(f"{name:24}{count:8,}  of {limit:6,}{'' if count <= limit else '  too many'}")


if __name__ == "__main__":
    main()
