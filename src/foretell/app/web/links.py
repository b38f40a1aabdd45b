"""Where everything is. Templates know kinds of places and ids; only this table knows addresses."""

from collections.abc import Mapping
from typing import Protocol
from urllib.parse import quote, urlencode

PLACES: Mapping[str, str] = {
    "home": "/",
    "login": "/login",
    "logout": "/logout",
    "ask": "/ask",
    "runs": "/runs",
    "run": "/runs/{}",
    "stop": "/runs/{}/stop",
    "resume": "/runs/{}/resume",
    "question": "/runs/{}/questions/{}",
    "raw": "/runs/{}/raw/{}",
    "run-stream": "/api/runs/{}/stream",
    "question-stream": "/api/runs/{}/questions/{}/stream",
    "arenas": "/arena",
    "arena": "/arena/{}",
    "events": "/arena/{}/events",
    "event": "/arena/{}/event/{}",
    "compare": "/compare",
    "studies": "/studies",
    "study": "/studies/{}",
    "trees": "/trees",
    "tree": "/trees/view/{}",
    "claim": "/trees/claim/{}/{}",
    "notebook": "/trees/notebook/{}/{}",
    "tree-scenario": "/trees/scenario/{}",
    "tree-export": "/api/tree/export/{}/{}",
    "api": "/api",
    "openapi": "/openapi.json",
}
"""Kind → address with one gap per id. Ids may hold slashes and anything else: they are quoted whole."""

NAV: tuple[tuple[str, str], ...] = (
    ("home", "Home"),
    ("ask", "Ask"),
    ("runs", "Runs"),
    ("trees", "Trees"),
    ("arenas", "Arenas"),
    ("studies", "Studies"),
    ("compare", "Compare"),
)
"""Kind and title of what the head of every page leads to, in this order."""


class Href(Protocol):
    """Makes a link: the server's is `served`; a static site has one that leads to its own files."""

    def __call__(self, kind: str, *ids: object, **query: object) -> str:
        """The address of a place; query parameters that are None are left out."""
        ...


def served(kind: str, *ids: object, **query: object) -> str:
    """An address on this server.

    >>> served("question", "3f2a", "own/1", due="2026-07-01")
    '/runs/3f2a/questions/own%2F1?due=2026-07-01'
    """
    path = PLACES[kind].format(*(quote(str(one), safe="") for one in ids))
    told = {name: str(value) for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(told)}" if told else path
