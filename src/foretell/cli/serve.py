"""Commands that run until they are stopped: web app, MCP server, workers and practice."""

import asyncio
import contextlib
import os
import secrets
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import click

from foretell.cli.commands import RequestCommand, operation_command, request_command
from foretell.cli.progress import progress_bar
from foretell.operations.requests.asking import AskRequest
from foretell.operations.requests.runs import WorkerRequest
from foretell.operations.requests.setup import McpRequest, PracticeRequest, ServeRequest
from foretell.questions.errors import InputError, MissingExtra
from foretell.report.provenance import command_text, running_command
from foretell.report.terminal import echo
from foretell.runs.event_loop import SIGNALS, on_signals

if TYPE_CHECKING:
    from types import FrameType

    from fastapi import FastAPI

    from foretell.mcp.permissions import ServerPermissions
    from foretell.runs.settings import Settings

HOST = "127.0.0.1"
OLD_TOKEN_VARIABLE = "FORETELL_MCP_TOKEN"
"""The variable of version 0.2; FORETELL_TOKEN replaces it."""
SHORTEST_TOKEN = 16
LOOK_SECONDS = 2.0
"""Seconds between two checks for what bots have sent in practice."""
WEB_PACKAGES = ("fastapi", "jinja2", "markupsafe", "starlette", "uvicorn")


@contextlib.contextmanager
def _web_extra(what: str) -> Any:
    """Raise an error that names the missing extra if a package of the web app cannot be imported."""
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in WEB_PACKAGES:
            raise
        raise MissingExtra(what, "web") from None


# foretell serve and demo.


def _serve(request: ServeRequest) -> Any:
    from foretell.runs.settings import load_settings

    with _web_extra("foretell serve"):
        import uvicorn  # noqa: F401  # pyright: ignore[reportUnusedImport] - is it installed?

        from foretell.web.app import create_app
        from foretell.web.site import write_site
    settings = load_settings()
    if request.static is not None:
        # Pages name the command that wrote them, but not a token from the environment.
        command = command_text("serve", request.model_copy(update={"token": None}))
        with running_command(command), progress_bar("pages") as reporting:
            return asyncio.run(write_site(request.static, settings, only=request.only, **reporting))
    if request.token is not None and len(request.token) < SHORTEST_TOKEN:
        raise InputError("the token is too short", column="--token", hint="use 16 characters or more")
    token = request.token or secrets.token_urlsafe(24)
    app = create_app(settings, token=token, host=request.host)
    warning = "Whoever has this link can spend what your keys allow."
    _run_app(app, (request.host, request.port), token, warning, open=request.open)
    return None


def _run_app(app: "FastAPI", place: tuple[str, int], token: str, note: str, *, open: bool) -> None:
    """Serve an application at a host and port until Ctrl-C, after printing its link and a note."""
    import uvicorn

    from foretell.data.connections import server_config
    from foretell.mcp.server import listen

    listening = listen(*place)
    listening.listen()  # Before the link is printed, so that opening it at once works.
    host = f"[{place[0]}]" if ":" in place[0] else place[0]
    link = f"http://{host}:{listening.getsockname()[1]}/login?token={token}"
    echo(f"foretell serves at {link}\nCtrl-C ends it. {note}")
    if open:
        import webbrowser

        webbrowser.open(link)
    leaving = app.state.serving.leaving

    class Leaving(uvicorn.Server):
        """A server that closes open streams when it exits instead of waiting for them."""

        def handle_exit(self, sig: int, frame: "FrameType | None") -> None:
            leaving.set()
            super().handle_exit(sig, frame)

    with listening:
        Leaving(server_config(app, app.state.serving.connections)).run(sockets=[listening])


def _then_open(create: Callable[..., None]) -> Callable[..., None]:
    """Extend the command `demo`: with --open, serve the example, which is only created if there is none."""

    def called(*, open: bool, arena: bool, **others: Any) -> None:
        from foretell.operations.example import example_home, is_complete, opened_demo
        from foretell.runs.settings import load_settings

        if not open:
            create(open=open, arena=arena, **others)
            return
        with _web_extra("foretell demo --open"):
            from foretell.web.app import create_app
        home = example_home(load_settings(), arena=bool(arena))
        if any(others.values()) or not is_complete(home):
            create(open=open, arena=arena, **others)
        token = secrets.token_urlsafe(24)
        with opened_demo(home, arena=bool(arena)) as settings:
            app = create_app(settings, token=token, host=HOST)
            _run_app(app, (HOST, 0), token, "Nothing in it costs anything.", open=True)

    return called


serve = request_command(ServeRequest, _serve, name="serve", service=True)
demo = operation_command("demo")
demo.callback = _then_open(cast("Callable[..., None]", demo.callback))


# foretell mcp.


async def _mcp(request: McpRequest) -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise MissingExtra("serving assistants", "mcp")
    permissions = _permissions(request)
    if not request.http:
        from foretell.mcp.server import serve_stdio

        await serve_stdio(permissions)
        return
    from foretell.mcp.server import PATH, listen, serve_http

    chosen = os.environ.get("FORETELL_TOKEN", "")
    if not chosen and (chosen := os.environ.get(OLD_TOKEN_VARIABLE, "")):
        echo(f"note: {OLD_TOKEN_VARIABLE} is now FORETELL_TOKEN", err=True)
    if chosen and len(chosen) < SHORTEST_TOKEN:
        problem = f"FORETELL_TOKEN is shorter than {SHORTEST_TOKEN} characters"
        raise InputError(problem, hint="use a long random one")
    token = chosen or secrets.token_urlsafe(32)
    listening = listen(HOST, request.port)
    echo(f"serving http://{HOST}:{listening.getsockname()[1]}{PATH} until Ctrl-C", err=True)
    if not chosen:
        echo(f"token: {token}", err=True)
    await serve_http(permissions, listening, token)


def _permissions(request: McpRequest) -> "ServerPermissions":
    from dataclasses import replace

    from foretell.mcp.permissions import ReadableFiles, ServerPermissions
    from foretell.models.budget import Budget
    from foretell.models.names import ModelName
    from foretell.plugins import load
    from foretell.request import environment_values
    from foretell.runs.settings import load_settings

    dollars, settings = request.allow_spending, load_settings()
    usual = environment_values(AskRequest)
    models = request.models or tuple(filter(None, [usual.get("model")]))
    for model in models:
        ModelName.read(model)
    search = request.search or usual.get("search", ())
    for engine in search:
        load("search_engines", engine)
    if dollars is not None and not models:
        raise InputError("there is nothing to spend on", column="--allow-spending", hint="name a --model")
    budget = None if dollars is None else Budget("server", dollars=dollars)
    return ServerPermissions(
        settings=replace(settings, budget=budget),
        models=models,
        search=search or (("local",) if settings.corpus.is_file() else ()),
        files=ReadableFiles.under(request.files),
    )


class McpCommand(RequestCommand):
    """The command `mcp`, whose help names the tools that the server offers."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names of the tools."""
        from foretell.mcp.tools import TOOLS

        with formatter.section("Tools"):
            formatter.write_text(", ".join(tool.name for tool in TOOLS))


_command = request_command(McpRequest, _mcp, name="mcp", service=True)
mcp = McpCommand(_command.name, params=_command.params, callback=_command.callback, help=_command.help)


# foretell worker.


async def _worker(request: WorkerRequest) -> None:
    from foretell.runs.settings import load_settings
    from foretell.runs.shared_runs import cluster_status, run_worker, shared_url
    from foretell.runs.worker import WorkerCapacity, WorkerSignals

    settings = load_settings()
    shared_url(settings)
    if request.status:
        for line in (await cluster_status(settings)).lines():
            echo(line)
        return
    signals = WorkerSignals()
    running = asyncio.get_running_loop()

    def stop() -> None:
        """Finish the current work on the first signal, leave on the second, and end the process on the third."""
        if signals.rest.is_set():
            signals.leave.set()
            for sign in SIGNALS:
                running.remove_signal_handler(sign)
        signals.rest.set()

    on_signals(stop)
    echo(f"up to {request.concurrency} trials at a time; Ctrl-C to finish and leave", err=True)
    capacity = WorkerCapacity(here=request.concurrency, everywhere=settings.workers_concurrency)
    done = await run_worker(settings, capacity, signals, idle=request.idle)
    echo(f"{done.done} trials, {done.failed} failed, {done.money} in {done.calls} calls")


worker = request_command(WorkerRequest, _worker, name="worker", service=True)


# foretell practice.


async def _practice(request: PracticeRequest) -> None:
    from foretell.operations.practice import run_in_practice
    from foretell.runs.settings import load_settings

    settings = load_settings()
    if request.command:
        sys.exit(await run_in_practice(request, settings, lambda line: echo(line, err=True)))
    await _serve_practice(request, settings)


async def _serve_practice(request: PracticeRequest, settings: "Settings") -> None:
    from foretell.data.files import write_atomically
    from foretell.operations.practice import TRY_NEXT, open_practice, save_received, shell_lines
    from foretell.practice.services import PracticeInboxes

    stopped, inboxes = asyncio.Event(), PracticeInboxes()
    on_signals(stopped.set)
    if request.env_file is not None:
        # Do not leave an old file for a process that waits for the new one.
        request.env_file.unlink(missing_ok=True)
    async with open_practice(request, settings, inboxes) as environment:
        lines = shell_lines(environment)
        echo(lines, nl=False)
        if request.env_file is not None:
            write_atomically(request.env_file, lines.encode(), private=True)
        echo(f"Serving until Ctrl-C. In a shell with the lines above, try: {TRY_NEXT}", err=True)
        shown = ""
        while not stopped.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), LOOK_SECONDS)
            if (received := save_received(inboxes, settings)) != shown:
                shown = received
                echo(shown, err=True)


practice = request_command(PracticeRequest, _practice, name="practice", service=True)
