"""The FastAPI application: pages, JSON API and live streams on top of one run store."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI

from foretell.runs.settings import Settings
from foretell.web import moved, static_files
from foretell.web.middleware import RequestGuard, describe_api, handle_problems
from foretell.web.pages import arena, ask, compare, home, question, record, runs, setup, tree_edits, trees
from foretell.web.security import AccessRules, private_text_filter
from foretell.web.state import WebState

PAGES = (static_files, home, setup, trees, tree_edits, arena, compare, ask, record, runs, question, moved)
"""Modules with a router. To add a page module, list it here."""


def create_app(
    settings: Settings, *, token: str | None = None, host: str = "127.0.0.1", still: bool = False
) -> FastAPI:
    """Create the web application for the data of these settings.

    Without a token, nothing can be spent or written. `host` is the address the server will listen on; unless it is a
    loopback address, reading requires the token too. With `still`, the pages are read once and written to files, so
    they offer nothing that needs a server.
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
    routes = {str(getattr(route, "path", "")).split("/")[1] for page in PAGES for route in page.router.routes}
    app.state.hide = private_text_filter(settings.addresses.values(), routes)
    app.add_middleware(RequestGuard, access=access, open_connections=state.connections, hide=app.state.hide)
    for page in PAGES:
        # `include_router` would build every route again, which takes longer than rendering a page.
        app.router.routes.extend(page.router.routes)
    return app
