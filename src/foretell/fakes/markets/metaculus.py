"""A stand-in for Metaculus posts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from foretell.fakes.markets.metaculus_catalogue import MetaculusCatalogue
from foretell.fakes.markets.metaculus_inbox import MetaculusInbox
from foretell.fakes.markets.trouble import Trouble, query_of
from foretell.fakes.server import FakeServer, Request, Response


@dataclass(frozen=True, kw_only=True)
class FakeCrowd:
    """A community prediction from a Unix second on."""

    since: float
    centers: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class FakeQuestion:
    """A question inside a post."""

    id: int
    history: tuple[FakeCrowd, ...]
    kind: str = "binary"
    options: tuple[str, ...] | None = None
    all_options: tuple[str, ...] | None = None
    revealed: str | None = None
    shown: bool = True
    """Whether the account's tier may see the community prediction."""


class FakeMetaculus:
    """Answers `/posts/<id>/`; several questions make a group. With an inbox it also takes forecasts and comments."""

    def __init__(
        self,
        posts: Mapping[str, tuple[FakeQuestion, ...]],
        *,
        token: str,
        canary: str = "",
        forbidden: frozenset[str] = frozenset(),
    ) -> None:
        self.posts = posts
        self.token = token
        self.canary = canary
        self.forbidden = forbidden
        self.catalogue = MetaculusCatalogue()
        self.trouble = Trouble()
        self.inbox: MetaculusInbox | None = None

    def having(self, catalogue: MetaculusCatalogue, trouble: Trouble | None = None) -> Self:
        """The same, with a catalogue, and perhaps in trouble."""
        self.catalogue, self.trouble = catalogue, trouble or self.trouble
        return self

    def taking(self, inbox: MetaculusInbox) -> Self:
        """The same, with an inbox for posts of the catalogue."""
        self.inbox = inbox
        return self

    def server(self) -> FakeServer:
        """A server that answers so."""
        server = FakeServer()
        server.route("GET", "*", self._respond)
        if self.inbox is not None:
            server.route("POST", "*", self._take)
        return server

    def _take(self, request: Request) -> Response:
        inbox = self.inbox
        assert inbox is not None
        if request.headers.get("authorization") != f"Token {self.token}":
            return self.trouble.response(request, 401, {"detail": "Invalid token."})
        return inbox.mishaps.response(request, lambda sent: inbox.take(sent, self.catalogue.posts))

    def _respond(self, request: Request) -> Response:
        return self.trouble.response(request, *self.answer(request.path, request.headers, query_of(request)))

    def answer(self, path: str, headers: Mapping[str, str], query: Mapping[str, str] | None = None) -> tuple[int, Any]:
        """Status and body."""
        if headers.get("authorization") != f"Token {self.token}":
            return 401, {"detail": f"Invalid token {headers.get('authorization')}."}
        post = path.strip("/").rpartition("/")[2]
        if self.inbox is not None and (mine := self.inbox.answer(path, query or {})) is not None:
            return mine
        if post in self.forbidden:
            return 403, {"detail": "You do not have permission to perform this action."}
        if post not in self.posts and (told := self.catalogue.answer(path, query or {})) is not None:
            return told if self.inbox is None or post == "posts" else (told[0], self.inbox.shown(told[1]))
        if post not in self.posts:
            return 404, {"detail": "Not found."}
        questions = [self._question(question) for question in self.posts[post]]
        told = {name: self.canary for name in ("status", "resolved", "actual_close_time", "nr_forecasters")}
        if len(questions) == 1:
            return 200, {"id": int(post), "question": questions[0], **told}
        return 200, {"id": int(post), "question": None, "group_of_questions": {"questions": questions}, **told}

    def _question(self, question: FakeQuestion) -> dict[str, Any]:
        history = [
            {
                "start_time": crowd.since,
                "end_time": None,
                "centers": list(crowd.centers),
                "forecaster_count": self.canary,
            }
            for crowd in question.history
        ]
        told = ("status", "resolution", "actual_close_time", "actual_resolve_time", "my_forecasts")
        return {
            "id": question.id,
            "type": question.kind,
            "options": None if question.options is None else list(question.options),
            "all_options_ever": None if question.all_options is None else list(question.all_options),
            "cp_reveal_time": question.revealed,
            "aggregations": {"recency_weighted": {"history": history, "latest": self.canary}}
            if question.shown
            else None,
            **{name: self.canary for name in told},
        }
