"""The application: pages, API and live streams over one store of runs."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.metadata import version

from fastapi import FastAPI

from foretell.runs.settings import Settings
from foretell.web import static_files
from foretell.web.middleware import RequestGuard, describe_api, handle_problems
from foretell.web.security import AccessRules
from foretell.web.state import WebState

PAGES: Mapping[str, str] = {
    "login": "foretell.web.pages.home:login_router",
    "home": "foretell.web.pages.home:home_router",
    "tree": "foretell.web.pages.trees:router",
    "arena": "foretell.web.pages.arena:arena_router",
    "compare": "foretell.web.pages.arena:compare_router",
    "studies": "foretell.web.pages.home:studies_router",
    "ask": "foretell.web.pages.ask:router",
    "runs": "foretell.web.pages.runs:runs_router",
    "question": "foretell.web.pages.runs:question_router",
    "raw": "foretell.web.pages.runs:raw_router",
    "api": "foretell.web.pages.home:api_router",
}
"""Page → "module:router". A page comes into being by a line here."""


def create_app(
    settings: Settings, *, token: str | None = None, host: str = "127.0.0.1", still: bool = False
) -> FastAPI:
    """The web application over what these settings keep.

    Without a token nothing can be spent or written. `host` is where it will listen: anywhere but on this machine
    alone, reading needs the token too. A `still` one is read once, to be written to files: its pages offer nothing
    that takes a server.
    """
    access = AccessRules(token=token, host=host, still=still)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            app.state.serving.close()

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
    app.state.serving = WebState(settings=settings, access=access)
    handle_problems(app)
    app.add_middleware(RequestGuard, access=access)
    app.include_router(static_files.router)
    for place in PAGES.values():
        module, attribute = place.split(":")
        app.include_router(getattr(import_module(module), attribute))
    return app
