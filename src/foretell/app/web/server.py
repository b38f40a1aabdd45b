"""The application: pages, API and live streams over one store of runs."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.metadata import version

from fastapi import FastAPI

from foretell.app.settings import Settings
from foretell.app.web import statics
from foretell.app.web.description import described
from foretell.app.web.guard import Guard
from foretell.app.web.problem import handle_problems
from foretell.app.web.security import Access
from foretell.app.web.serving import Serving

PAGES: Mapping[str, str] = {
    "login": "foretell.app.web.pages.login:router",
    "home": "foretell.app.web.pages.home:router",
    "tree": "foretell.app.web.pages.tree:router",
    "arena": "foretell.app.web.pages.arena:router",
    "compare": "foretell.app.web.pages.compare:router",
    "studies": "foretell.app.web.pages.studies:router",
    "ask": "foretell.app.web.pages.ask:router",
    "runs": "foretell.app.web.pages.runs:router",
    "question": "foretell.app.web.pages.question:router",
    "raw": "foretell.app.web.pages.raw:router",
    "api": "foretell.app.web.pages.api:router",
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
    access = Access(token=token, host=host, still=still)

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
    app.openapi = lambda: described(app)
    app.state.serving = Serving(settings=settings, access=access)
    handle_problems(app)
    app.add_middleware(Guard, access=access)
    app.include_router(statics.router)
    for place in PAGES.values():
        module, attribute = place.split(":")
        app.include_router(getattr(import_module(module), attribute))
    return app
