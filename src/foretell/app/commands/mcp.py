"""foretell mcp: a server for assistants."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from foretell.app.mcp.desk import Desk

TOKEN = "FORETELL_MCP_TOKEN"
SHORTEST_TOKEN = 16
FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command()
@click.option("--allow-spending", type=click.FloatRange(0), metavar="DOLLARS", help="May cost that much in all.")
@click.option("--model", "models", multiple=True, help="provider:name on offer, the usual one first; FORETELL_MODEL.")
@click.option("--search", "engines", multiple=True, help="Search engine on offer; FORETELL_SEARCH, else local.")
@click.option("--files", "folders", multiple=True, type=FOLDER, help="Tables and trees under this may be read.")
@click.option("--http", is_flag=True, help="Serve on http://127.0.0.1 instead of standard input and output.")
@click.option("--port", type=click.IntRange(0, 65535), default=8766, show_default=True, help="With --http; 0: any.")
def mcp(
    allow_spending: float | None,
    models: tuple[str, ...],
    engines: tuple[str, ...],
    folders: tuple[Path, ...],
    http: bool,
    port: int,
) -> None:
    """Serve foretell to assistants over the Model Context Protocol.

    Tools: ask, grow_tree, what_if, score, search_as_of, list_runs, show_run. Nothing is spent unless you allow it:

      foretell mcp --allow-spending 2 --model openai:NAME --search brave --files ~/forecasts

    The limit holds for all calls of this process together. Over --http every request needs the token, which is taken
    from FORETELL_MCP_TOKEN or made up and printed.
    """
    from importlib.util import find_spec

    from foretell.questions.problems import MissingExtra

    if find_spec("mcp") is None:
        raise MissingExtra("serving assistants", "mcp")
    desk = _desk(allow_spending, models, engines, folders)
    if http:
        _serve_http(desk, port)
    else:
        from foretell.app import loop
        from foretell.app.mcp.server import serve_stdio

        loop.run(serve_stdio(desk))


def _desk(
    dollars: float | None, models: tuple[str, ...], engines: tuple[str, ...], folders: tuple[Path, ...]
) -> "Desk":
    from dataclasses import replace

    from foretell.app.answers import usual_search
    from foretell.app.equipment import ENGINES
    from foretell.app.mcp.desk import Desk, Files
    from foretell.app.settings import load_settings
    from foretell.llm.cost import Budget
    from foretell.llm.names import ModelName
    from foretell.questions.problems import InputError

    named = models or tuple(filter(None, [os.environ.get("FORETELL_MODEL")]))
    for model in named:
        ModelName.read(model)
    search = engines or usual_search()
    if unknown := [engine for engine in search if engine not in ENGINES]:
        raise InputError(f"there is no search engine {unknown[0]!r}", hint=f"engines are {', '.join(ENGINES)}")
    if dollars is not None and not named:
        raise InputError("there is nothing to spend on", column="--allow-spending", hint="name a --model")
    settings = load_settings()
    purse = None if dollars is None else Budget("server", dollars=dollars)
    usual = search or (("local",) if settings.corpus.is_file() else ())
    return Desk(settings=replace(settings, purse=purse), models=named, search=usual, files=Files.under(folders))


def _serve_http(desk: "Desk", port: int) -> None:
    import secrets

    from foretell.app import loop
    from foretell.app.mcp.door import HOST, PATH, listen, serve_http
    from foretell.questions.problems import InputError

    given = os.environ.get(TOKEN, "")
    if given and len(given) < SHORTEST_TOKEN:
        raise InputError(f"{TOKEN} is shorter than {SHORTEST_TOKEN} characters", hint="take a long random one")
    token = given or secrets.token_urlsafe(32)
    listening = listen(port)
    click.echo(f"serving http://{HOST}:{listening.getsockname()[1]}{PATH} until Ctrl-C", err=True)
    if not given:
        click.echo(f"token: {token}", err=True)
    loop.run(serve_http(desk, listening, token))
