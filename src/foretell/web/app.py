"""The application: pages, API and live streams over one store of runs."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI

from foretell.runs.settings import Settings
from foretell.web import static_files
from foretell.web.middleware import RequestGuard, describe_api, handle_problems
from foretell.web.pages import arena, ask, find, home, question, runs, tournaments, tree_edits, trees
from foretell.web.security import AccessRules
from foretell.web.state import WebState

PAGES = (static_files, home, find, trees, tree_edits, arena, tournaments, ask, runs, question)
"""Modules with a router. A page comes into being by a line here."""


def create_app(
    settings: Settings, *, token: str | None = None, host: str = "127.0.0.1", still: bool = False
) -> FastAPI:
    """The web application over what these settings keep.

    Without a token nothing can be spent or written. `host` is where it will listen: anywhere but on this machine
    alone, reading needs the token too. A `still` one is read once, to be written to files: its pages offer nothing
    that takes a server.
    """
    access = AccessRules(token=token, host=host, still=still)
    state = WebState(settings=settings, access=access)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            state.close()

    app = FastAPI(
        title="foretell",
        version=version("foretell"),
        description="Runs, questions and forecasts of this machine. Reading is free; what spends or writes is a POST "
        "with `Authorization: Bearer TOKEN`.",
        docs_url=None,
        redoc_url=None,
        lifespan=life,
    )
    app.openapi = lambda: describe_api(app)
    app.state.serving = state
    handle_problems(app)
    app.add_middleware(RequestGuard, access=access, open_connections=state.connections)
    for page in PAGES:
        app.include_router(page.router)
    return app
