"""Recorded answers of outside services, replayed to the adapters, and the claims that are checked on them."""

import json
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, cast

from fakes.answers import respond
from foretell.outgoing.client import Answer, FunctionTransport, HttpRequest

FOLDER = Path(os.environ.get("FORETELL_SERVICE_RECORDINGS", Path(__file__).parents[3] / "shared/data/wire/services"))


@dataclass(frozen=True, kw_only=True)
class Check:
    """One claim about a service, and the recordings that show it."""

    service: str
    what: str
    """The claim in words, as shown in the table."""
    function: Callable[[], None] | Callable[[], Awaitable[None]]
    """Raises if the claim is false."""
    recordings: tuple[str, ...] = ()
    """Names of files in the service's folder without their suffix; `*` stands for any text."""
    module: str = ""
    """A package that the check needs, such as an official client; without it the check is skipped."""

    @property
    def name(self) -> str:
        """Name in test output."""
        return f"{self.service}: {self.what}"

    @property
    def files(self) -> tuple[str, ...]:
        """The recordings that exist."""
        return tuple(name for name in names(self.service) if any(fnmatch(name, pattern) for pattern in self.recordings))


@cache
def names(service: str) -> tuple[str, ...]:
    """All recordings of a service, without their suffix."""
    return tuple(sorted(file.stem for file in (FOLDER / service).glob("*.json")))


def recording(service: str, name: str) -> dict[str, Any]:
    """One exchange: its url, params, status, headers and body."""
    return cast("dict[str, Any]", json.loads((FOLDER / service / f"{name}.json").read_text()))


def spec_file(service: str, pattern: str) -> Path:
    """The file of a service's official specification that matches the pattern."""
    (file,) = (FOLDER / service / "spec").glob(pattern)
    return file


def answer(service: str, name: str) -> Answer:
    """The recorded answer as an HTTP response."""
    exchange = recording(service, name)
    body = exchange["body"]
    dropped = {"content-encoding", "content-length", "transfer-encoding"}
    headers = {
        k: v for k, v in cast("Mapping[str, str]", exchange["headers"] or {}).items() if k.lower() not in dropped
    }
    status = int(exchange["status"] or 200)
    if isinstance(body, str):
        return respond(status, text=body, headers=headers)
    return respond(status, json=body, headers=headers)


def replay(answers: Mapping[str, Answer], seen: list[HttpRequest] | None = None) -> FunctionTransport:
    """A transport with these answers, by the end of the path; anything else is 404.

    Requests are appended to `seen`, so that they can be held against the official specification.
    """

    def handle(request: HttpRequest) -> Answer:
        if seen is not None:
            seen.append(request)
        for end, response in answers.items():
            if request.url.path.endswith(end):
                return response
        return respond(404, json={"message": f"nothing is recorded at {request.url.path}"})

    return FunctionTransport(handle)
