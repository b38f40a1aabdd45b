"""Commands that run until they are stopped: web app, MCP server, workers, arenas and the practice world."""

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from foretell.cli.commands import request_command
from foretell.cli.progress import progress_bar
from foretell.operations.requests.asking import AskRequest
from foretell.operations.requests.runs import WorkerRequest
from foretell.operations.requests.setup import McpRequest, PracticeRequest, ServeRequest, SiteRequest
from foretell.operations.requests.tournaments import ArenaRunRequest
from foretell.questions.errors import InputError, MissingExtra
from foretell.report.terminal import echo

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import FrameType

    from fastapi import FastAPI

    from foretell.arena.live import LiveArena
    from foretell.mcp.permissions import ServerPermissions
    from foretell.runs.settings import Settings

MCP_TOKEN_VARIABLE = "FORETELL_MCP_TOKEN"
SHORTEST_TOKEN = 16
WEB_PACKAGES = ("fastapi", "jinja2", "markupsafe", "starlette", "uvicorn")
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def on_signals(stop: Callable[[], None]) -> None:
    """Call a function when the process receives SIGINT or SIGTERM."""
    for sign in SIGNALS:
        with contextlib.suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(sign, stop)


@contextlib.contextmanager
def _web_extra(what: str) -> Any:
    """Raise an error that names the missing extra if a package of the web app cannot be imported."""
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in WEB_PACKAGES:
            raise
        raise MissingExtra(what, "web") from None


# foretell serve and site.


def _serve(request: ServeRequest) -> None:
    from foretell.runs.settings import load_settings

    with _web_extra("foretell serve"):
        import uvicorn  # noqa: F401  # pyright: ignore[reportUnusedImport] - is it there?

        from foretell.web.app import create_app
    if request.token is not None and len(request.token) < SHORTEST_TOKEN:
        raise InputError("the token is short enough to be guessed", column="--token", hint="16 characters or more")
    if request.home is not None and not request.example:
        raise InputError("a home is named only with --example", column="--home", hint="yours is FORETELL_HOME")
    token = request.token or secrets.token_urlsafe(24)
    with contextlib.ExitStack() as stack:
        settings = stack.enter_context(_example(request)) if request.example else load_settings()
        _run_app(create_app(settings, token=token, host=request.host), request, token)


@contextlib.contextmanager
def _example(request: ServeRequest) -> "Generator[Settings]":
    """Yield the settings of the example, creating it first if needed; none of the user's own data is visible in it."""
    from foretell.operations.example import example_home, is_complete, make_example, serving_example
    from foretell.operations.practice import practice_environment
    from foretell.runs.settings import load_settings

    home = example_home(load_settings()) if request.home is None else request.home.absolute()
    if not is_complete(home):
        echo(f"making the example in {home}, about a minute", err=True)
        asyncio.run(make_example(home, tell=lambda line: echo(line, err=True)))
    with serving_example(home) as settings:
        for name, value in practice_environment(settings.addresses, home).items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        yield load_settings()


def _run_app(app: "FastAPI", request: ServeRequest, token: str) -> None:
    import uvicorn

    from foretell.data.connections import server_config
    from foretell.mcp.server import listen

    listening = listen(request.host, request.port)
    listening.listen()  # Before the link is printed: whoever opens it at once is not refused.
    name = f"[{request.host}]" if ":" in request.host else request.host
    link = f"http://{name}:{listening.getsockname()[1]}/login?token={token}"
    spends = (
        "Nothing in it costs anything." if request.example else "Whoever has this link can spend what your keys allow."
    )
    echo(f"foretell serves {'an example ' if request.example else ''}at {link}\nCtrl-C ends it. {spends}")
    if request.open:
        import webbrowser

        webbrowser.open(link)
    leaving = app.state.serving.leaving

    class Leaving(uvicorn.Server):
        """A server that tells open streams to close when it exits, so that it need not wait for them."""

        def handle_exit(self, sig: int, frame: "FrameType | None") -> None:
            leaving.set()
            super().handle_exit(sig, frame)

    with listening:
        Leaving(server_config(app, app.state.serving.connections)).run(sockets=[listening])


def _site(request: SiteRequest) -> Any:
    from foretell.runs.settings import load_settings

    with _web_extra("foretell site"):
        from foretell.web import app  # noqa: F401  # pyright: ignore[reportUnusedImport] - is the extra there?
        from foretell.web.site import write_site
    with progress_bar("pages") as reporting:
        return asyncio.run(write_site(request, load_settings(), **reporting))


serve = request_command(ServeRequest, _serve, name="serve", service=True)
site = request_command(SiteRequest, _site, name="site")


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
    from foretell.mcp.server import HOST, PATH, listen, serve_http

    given = os.environ.get(MCP_TOKEN_VARIABLE, "")
    if given and len(given) < SHORTEST_TOKEN:
        problem = f"{MCP_TOKEN_VARIABLE} is shorter than {SHORTEST_TOKEN} characters"
        raise InputError(problem, hint="take a long random one")
    token = given or secrets.token_urlsafe(32)
    listening = listen(HOST, request.port)
    echo(f"serving http://{HOST}:{listening.getsockname()[1]}{PATH} until Ctrl-C", err=True)
    if not given:
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


mcp = request_command(McpRequest, _mcp, name="mcp", service=True)


# foretell worker and foretell arena run.


async def _worker(request: WorkerRequest) -> None:
    from foretell.operations.shared_runs import cluster_status, run_worker, shared_url
    from foretell.runs.settings import load_settings
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
    echo(f"up to {request.concurrency} trials at the same time; Ctrl-C to finish and leave", err=True)
    capacity = WorkerCapacity(here=request.concurrency, everywhere=settings.workers_concurrency)
    done = await run_worker(settings, capacity, signals, idle=request.idle)
    echo(f"{done.done} cells, {done.failed} failed, {done.money} in {done.calls} calls")


async def _arena_run(request: ArenaRunRequest) -> None:
    from foretell.operations.arena import run_arena

    def begin(arena: "LiveArena", stop: asyncio.Event) -> None:
        on_signals(stop.set)
        echo(f"arena {arena.name}: {len(arena.spec.entries)} entries; Ctrl-C to leave", err=True)

    await run_arena(request, echo, begin)


worker = request_command(WorkerRequest, _worker, name="worker", service=True)
arena_run = request_command(ArenaRunRequest, _arena_run, name="run", service=True)


# foretell practice.


async def _practice(request: PracticeRequest) -> None:
    from foretell.operations.practice import run_in_practice
    from foretell.runs.settings import load_settings

    settings = load_settings()
    if request.command:
        sys.exit(await run_in_practice(request, settings))
    await _serve_practice(request, settings)


async def _serve_practice(request: PracticeRequest, settings: "Settings") -> None:
    from foretell.data.files import write_atomically
    from foretell.operations.practice import TRY_NEXT, open_practice, shell_lines

    stopped = asyncio.Event()
    on_signals(stopped.set)
    if request.env_file is not None:
        # Do not leave an old file for a process that waits for the new one.
        request.env_file.unlink(missing_ok=True)
    async with open_practice(request, settings) as environment:
        lines = shell_lines(environment)
        echo(lines, nl=False)
        if request.env_file is not None:
            write_atomically(request.env_file, lines.encode(), private=True)
        echo(f"Serving until Ctrl-C. In a shell with the lines above, try: {TRY_NEXT}", err=True)
        await stopped.wait()


practice = request_command(PracticeRequest, _practice, name="practice", service=True)
