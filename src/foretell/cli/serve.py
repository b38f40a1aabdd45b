"""foretell serve: what is on this machine, in a browser."""

import os
from typing import TYPE_CHECKING

import click

from foretell.cli.options import prints_result, progress_bar
from foretell.cli.request_options import request_options
from foretell.operations.requests import McpRequest, ServeRequest, SiteRequest

if TYPE_CHECKING:
    from types import FrameType

    from fastapi import FastAPI

    from foretell.mcp.permissions import ServerPermissions
    from foretell.operations.result import Result


MCP_TOKEN_VARIABLE = "FORETELL_MCP_TOKEN"
SHORTEST_TOKEN = 16


@click.command()
@request_options(McpRequest)
def mcp(request: McpRequest) -> None:
    """Serve foretell to assistants over the Model Context Protocol.

    Tools: ask, grow_tree, what_if, score, search_as_of, list_runs, show_run. Nothing is spent unless you allow it:

      foretell mcp --allow-spending 2 --model openai:NAME --search brave --files ~/forecasts

    The limit holds for all calls of this process together. Over --http every request needs the token, which is taken
    from FORETELL_MCP_TOKEN or made up and printed.
    """
    from importlib.util import find_spec

    from foretell.questions.errors import MissingExtra

    if find_spec("mcp") is None:
        raise MissingExtra("serving assistants", "mcp")
    permissions = _permissions(request)
    if request.http:
        _serve_mcp_http(permissions, request.port)
    else:
        from foretell.mcp.server import serve_stdio
        from foretell.runs import event_loop

        event_loop.run(serve_stdio(permissions))


def _permissions(request: McpRequest) -> "ServerPermissions":
    from dataclasses import replace

    from foretell.mcp.permissions import ReadableFiles, ServerPermissions
    from foretell.models.budget import Budget
    from foretell.models.names import ModelName
    from foretell.operations.ask import default_search_engines
    from foretell.questions.errors import InputError
    from foretell.runs.services import SEARCH_ENGINES
    from foretell.runs.settings import load_settings

    dollars = request.allow_spending
    named = request.models or tuple(filter(None, [os.environ.get("FORETELL_MODEL")]))
    for model in named:
        ModelName.read(model)
    search = request.search or default_search_engines()
    if unknown := [engine for engine in search if engine not in SEARCH_ENGINES]:
        raise InputError(f"there is no search engine {unknown[0]!r}", hint=f"engines are {', '.join(SEARCH_ENGINES)}")
    if dollars is not None and not named:
        raise InputError("there is nothing to spend on", column="--allow-spending", hint="name a --model")
    settings = load_settings()
    purse = None if dollars is None else Budget("server", dollars=dollars)
    usual = search or (("local",) if settings.corpus.is_file() else ())
    return ServerPermissions(
        settings=replace(settings, purse=purse), models=named, search=usual, files=ReadableFiles.under(request.files)
    )


def _serve_mcp_http(permissions: "ServerPermissions", port: int) -> None:
    import secrets

    from foretell.mcp.http_server import HOST, PATH, listen, serve_http
    from foretell.questions.errors import InputError
    from foretell.runs import event_loop

    given = os.environ.get(MCP_TOKEN_VARIABLE, "")
    if given and len(given) < SHORTEST_TOKEN:
        raise InputError(
            f"{MCP_TOKEN_VARIABLE} is shorter than {SHORTEST_TOKEN} characters", hint="take a long random one"
        )
    token = given or secrets.token_urlsafe(32)
    listening = listen(port)
    click.echo(f"serving http://{HOST}:{listening.getsockname()[1]}{PATH} until Ctrl-C", err=True)
    if not given:
        click.echo(f"token: {token}", err=True)
    event_loop.run(serve_http(permissions, listening, token))


@click.command()
@request_options(ServeRequest)
def serve(request: ServeRequest) -> None:
    """Show runs, questions and arenas in a browser, and ask there.

    Only this machine can reach it unless --host says otherwise. Looking is free; whatever spends money or writes needs
    the token, which the printed link carries. Everything shown is also JSON: see /openapi.json.
    """
    import secrets

    from foretell.questions.errors import InputError, MissingExtra
    from foretell.runs.settings import load_settings

    try:
        from foretell.web.app import create_app
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("fastapi", "jinja2", "markupsafe", "starlette"):
            raise
        raise MissingExtra("foretell serve", "web") from None
    if request.token is not None and len(request.token) < SHORTEST_TOKEN:
        raise InputError("the token is short enough to be guessed", column="--token", hint="16 characters or more")
    token = request.token or secrets.token_urlsafe(24)
    app = create_app(load_settings(), token=token, host=request.host)
    _run(app, request.host, request.port, token, opened=request.open)


def _run(app: "FastAPI", host: str, port: int, token: str, *, opened: bool) -> None:
    import socket

    from foretell.questions.errors import InputError, MissingExtra

    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("foretell serve", "web") from None
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise InputError(
            f"cannot listen at {host}, port {port}: {error.strerror}", hint="name another --port"
        ) from None
    name = f"[{host}]" if ":" in host else host
    link = f"http://{name}:{listening.getsockname()[1]}/login?token={token}"
    click.echo(f"foretell serves at {link}\nCtrl-C ends it. Whoever has this link can spend what your keys allow.")
    if opened:
        import webbrowser

        webbrowser.open(link)
    # No access log: the login link carries the token.
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=2)
    leaving = app.state.serving.leaving

    class Leaving(uvicorn.Server):
        """Tells open streams to let go when it is told to end, so that nobody waits for them."""

        def handle_exit(self, sig: int, frame: "FrameType | None") -> None:
            leaving.set()
            super().handle_exit(sig, frame)

    with listening:
        Leaving(config).run(sockets=[listening])


@click.command()
@request_options(SiteRequest)
@prints_result()
def site(request: SiteRequest) -> "Result":
    """Write the pages that `foretell serve` shows into FOLDER, as a site that opens from disk.

    Trees keep their what-if. Nothing in it needs a server or the network: put it on any static host, or send it along.
    """
    import asyncio

    from foretell.questions.errors import MissingExtra
    from foretell.runs.settings import load_settings

    try:
        from foretell.web import app  # noqa: F401  # pyright: ignore[reportUnusedImport] - is the extra there?
        from foretell.web.site import SiteSelection, write_site
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("fastapi", "jinja2", "markupsafe", "starlette"):
            raise
        raise MissingExtra("foretell site", "web") from None
    chosen = SiteSelection(runs=request.runs, trees=request.trees, arenas=request.arenas, most=request.most)
    with progress_bar("pages") as progress:
        return asyncio.run(write_site(request.folder, load_settings(), chosen=chosen, progress=progress))
