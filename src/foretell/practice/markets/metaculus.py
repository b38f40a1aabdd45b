"""Metaculus for practice: posts of every kind, community predictions, and an inbox for forecasts and comments.

Formats, rules and refusals follow the site's own source code of 2026-08-20.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, cast

from foretell.practice.server import (
    Middleware,
    PracticeServer,
    PracticeService,
    ServerRequest,
    ServerResponse,
    StatusAndBody,
    json_response,
    sent_page,
)

SHOWN_IN_LISTS = 3


class MetaculusCatalogue:
    """Posts, each given as the site would send it on its own; all are in each of the tournaments.

    If no tournaments are given, every name counts as one.
    """

    def __init__(self, posts: Iterable[Mapping[str, Any]] = (), tournaments: Sequence[str] = ()) -> None:
        self.posts = [dict(post) for post in posts]
        self.tournaments = tuple(tournaments)

    def answer(self, path: str, query: Mapping[str, str]) -> StatusAndBody | None:
        """Return the status and body; None if the path is not part of the catalogue."""
        name = path.strip("/").rpartition("/")[2]
        if name == "posts":
            unknown = [name for name in query.get("tournaments", "").split(",") if self._no_tournament(name)]
            here = f"; there are {', '.join(self.tournaments)}" if self.tournaments else ""
            return (400, [f"Tournament `{unknown[0]}` does not exist{here}"]) if unknown else (200, self._list(query))
        post = next((post for post in self.posts if str(post.get("id")) == name), None)
        return None if post is None else (200, post)

    def _no_tournament(self, name: str) -> bool:
        """Whether there is no such tournament; the name of a post is none."""
        unknown = bool(name and self.tournaments) and name not in self.tournaments
        return unknown or any(str(post.get("id")) == name.partition("#")[0] for post in self.posts)

    def _list(self, query: Mapping[str, str]) -> dict[str, Any]:
        wanted = {name: query[name].split(",") for name in ("ids", "statuses", "forecast_type") if name in query}
        tournaments = query["tournaments"].split(",") if "tournaments" in query else None
        fitting = [
            post
            for post in self.posts
            if post.get("status") in wanted.get("statuses", [post.get("status")])
            and str(post.get("id")) in wanted.get("ids", [str(post.get("id"))])
            and set(_kinds(post)) & set(wanted.get("forecast_type", _kinds(post)))
            and (tournaments is None or set(tournaments) & set(_slugs(post, tournaments)))
        ]
        start, size = int(query.get("offset", "0")), min(int(query.get("limit", "20")), 100)
        more = f"https://next.example/?offset={start + size}" if start + size < len(fitting) else None
        return {"next": more, "previous": None, "results": [_cut(post) for post in fitting[start : start + size]]}


def _kinds(post: Mapping[str, Any]) -> list[str]:
    """Return a post's values for the parameter `forecast_type`: its question's type, or how it contains several."""
    several = [name for name in ("group_of_questions", "conditional", "notebook") if post.get(name)]
    return several or [str((post.get("question") or {}).get("type"))]


def _slugs(post: Mapping[str, Any], default: list[str]) -> list[str]:
    projects = (post.get("projects") or {}).get("tournament", [])
    return [slug for project in projects if (slug := project.get("slug"))] or default


def _cut(post: Mapping[str, Any]) -> dict[str, Any]:
    """Return a post as lists show it: in a large group, only the first questions have a community prediction."""
    shown = deepcopy(dict(post))
    group = cast("dict[str, Any]", shown.get("group_of_questions") or {})
    for question in cast("list[dict[str, Any]]", group.get("questions", []))[SHOWN_IN_LISTS:]:
        question["aggregations"] = None
    return shown


FIELDS = {
    "binary": "probability_yes",
    "multiple_choice": "probability_yes_per_category",
    "numeric": "continuous_cdf",
    "discrete": "continuous_cdf",
    "date": "continuous_cdf",
}
"""Type of question → the field that its forecast must contain."""


def refusal(question: Mapping[str, Any], forecast: Mapping[str, Any]) -> str:
    """Return why Metaculus rejects a forecast; empty if it accepts it.

    It is written independently of the client code that follows these rules.
    """
    field = FIELDS[question["type"]]
    others = [name for name in set(FIELDS.values()) - {field} if forecast.get(name) is not None]
    if others or forecast.get(field) is None:
        return f"Only {field} should be provided for {question['type']} questions"
    if field == "probability_yes":
        good = 0.001 <= float(forecast[field]) <= 0.999
        return "" if good else "probability_yes should be between 0.001 and 0.999 (inclusive)"
    if field == "probability_yes_per_category":
        return _choice(forecast[field], question["options"], question.get("all_options_ever") or question["options"])
    return _continuous([float(value) for value in forecast[field]], question)


def _choice(forecast: Mapping[str, float | None], options: list[str], ever: list[str]) -> str:
    if not set(options) <= set(forecast):
        return f"Forecast must reflect current options: {options}"
    if not set(forecast) <= set(ever):
        return "Forecast contains probabilities for unknown options"
    for option, p in forecast.items():
        if option in options and (p is None or not 0.001 <= p <= 0.999):
            return "Probabilities for current options must be between 0.001 and 0.999"
        if option not in options and p is not None:
            return f"Probability for inactive option '{option}' must be null or absent"
    total = sum(p for p in forecast.values() if p is not None)
    # This is the tolerance of numpy.isclose.
    return "" if abs(total - 1) <= 1e-8 + 1e-5 else f"Forecast values must sum to 1.0. Received {dict(forecast)}"


def _continuous(cdf: list[float], question: Mapping[str, Any]) -> str:
    bins = question.get("inbound_outcome_count") or 200
    if len(cdf) != bins + 1:
        return f"CDF Invalid: continuous_cdf for question {question['id']} must have {bins + 1} values."
    cdf = [round(value, 10) for value in cdf]
    steps = [round(b - a, 9) for a, b in pairwise(cdf)]
    least, most = round(0.01 / bins, 9), 0.2 * 200 / bins
    lower, upper = question["open_lower_bound"], question["open_upper_bound"]
    rules = {
        f"must be increasing by at least {least} at every step": min(steps) >= least,
        f"must be increasing by no more than {most} at every step": max(steps) <= most,
        "at lower bound must be at least 0.001 due to lower bound being open": not lower or cdf[0] >= 0.001,
        "must be 0.0 at its beginning for questions with a closed lower bound": lower or cdf[0] == 0.0,
        "at upper bound must be at most 0.999 due to upper bound being open": not upper or cdf[-1] <= 0.999,
        "at upper bound must be 1.00 due to upper bound being closed": upper or cdf[-1] == 1.0,
    }
    violated = [rule for rule, holds in rules.items() if not holds]
    return f"CDF Invalid: continuous_cdf {'; '.join(violated)}" if violated else ""


FORECAST = "questions/forecast"
WITHDRAW = "questions/withdraw"
COMMENT = "comments/create"


@dataclass(kw_only=True)
class MetaculusInbox:
    """One account's forecasts and comments, checked as strictly as on the real site."""

    now: Callable[[], datetime]
    """Its clock; closed questions accept nothing."""
    account: Mapping[str, Any] = field(default_factory=lambda: {"id": 7, "username": "practice-bot", "is_bot": True})
    forecasts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """All forecasts that were accepted, in order."""
    comments: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def take(self, request: ServerRequest, posts: Iterable[Mapping[str, Any]]) -> StatusAndBody:
        """Handle a forecast, withdrawal or comment; return the status and body."""
        path, known = request.path.strip("/"), list(posts)
        try:
            body = request.json()
        except ValueError:
            return 400, {"detail": "JSON parse error"}
        if path.endswith(FORECAST):
            return self._forecast(body, {question["id"]: question for post in known for question in questions_of(post)})
        if path.endswith(WITHDRAW):
            return self._withdraw(body)
        if path.endswith(COMMENT):
            return self._comment(body, {post["id"] for post in known})
        return 404, {"detail": "Not found."}

    def answer(self, path: str, query: Mapping[str, str]) -> StatusAndBody | None:
        """Return the account or its comments, to read back; None if the path is something else."""
        name = path.strip("/")
        if name.endswith("users/me"):
            return 200, dict(self.account)
        if not name.endswith("comments"):
            return None
        private = query.get("is_private") == "true"
        comments = [
            comment
            for comment in reversed(self.comments)
            if str(comment["on_post"]) == query.get("post")
            and str(comment["author"]["id"]) == query.get("author")
            and comment["is_private"] == private
        ]
        return 200, {"next": None, "previous": None, "results": comments[: int(query.get("limit", "10"))]}

    def answered(self, post: Mapping[str, Any]) -> bool:
        """Whether the account has forecast on a question of the post."""
        sent = {forecast["question"] for forecast in self.forecasts}
        return any(question["id"] in sent for question in questions_of(post))

    def shown(self, post: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a post with the account's own forecasts included."""
        post = deepcopy(dict(post))
        for question in questions_of(post):
            mine = [
                self._own(question, forecast) for forecast in self.forecasts if forecast["question"] == question["id"]
            ]
            question["my_forecasts"] = {"history": mine, "latest": mine[-1] if mine else None, "score_data": {}}
        return post

    def _own(self, question: Mapping[str, Any], forecast: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "question_id": question["id"],
            "author_id": self.account["id"],
            "start_time": 1.0,
            "end_time": forecast.get("withdrawn_at"),
            "forecast_values": _values(question, forecast),
            "distribution_input": None,
        }

    def _withdraw(self, body: Any) -> StatusAndBody:
        for entry in cast("list[dict[str, Any]]", body):
            standing = [forecast for forecast in self.forecasts if forecast["question"] == entry.get("question")]
            if not standing:
                return 400, [f"Wrong question id {entry.get('question')}"]
            standing[-1]["withdrawn_at"] = self.now().timestamp()
        return 201, {}

    def _forecast(self, body: Any, questions: Mapping[Any, Mapping[str, Any]]) -> StatusAndBody:
        """Accept all forecasts or none."""
        if not isinstance(body, list):
            return 400, {"non_field_errors": [f'Expected a list of items but got type "{type(body).__name__}".']}
        entries = cast("list[dict[str, Any]]", body)
        if not entries:
            return 400, ["At least one forecast is required"]
        problems = [self._problem(entry, questions) for entry in entries]
        if any(problems):
            return 400, [{"non_field_errors": [problem]} if problem else {} for problem in problems]
        for entry in entries:
            if self._closed(questions[entry["question"]]):
                return 405, {"error": f"Question {entry['question']} is already closed to forecasting !"}
        self.forecasts += [dict(entry) for entry in entries]
        return 201, {}

    def _problem(self, entry: Mapping[str, Any], questions: Mapping[Any, Mapping[str, Any]]) -> str:
        question = questions.get(entry.get("question"))
        if question is None:
            hint = "Check if you are forecasting with the Post Id accidentally instead."
            return f"question with id {entry.get('question')} does not exist. {hint}"
        if entry.get("end_time") and datetime.fromisoformat(entry["end_time"]) <= self.now():
            return "Forecast end_time mut be in the future"
        return refusal(question, entry)

    def _closed(self, question: Mapping[str, Any]) -> bool:
        now, ends = self.now(), datetime.fromisoformat(question["scheduled_close_time"])
        early = question.get("actual_close_time")
        return ends < now or (early is not None and datetime.fromisoformat(early) < now)

    def _comment(self, body: Any, posts: set[Any]) -> StatusAndBody:
        if not isinstance(body, dict) or cast("dict[str, Any]", body).get("on_post") not in posts:
            return 400, {"on_post": ["Post does not exist"]}
        comment = cast("dict[str, Any]", body)
        if not comment.get("text"):
            return 400, {"text": ["Comment text is required"]}
        stored = {
            "id": 1000 + len(self.comments),
            "author": dict(self.account),
            "parent_id": None,
            "root_id": None,
            "created_at": self.now().isoformat(),
            "on_post": comment["on_post"],
            "text": comment["text"],
            "is_private": bool(comment.get("is_private", False)),
            "included_forecast": bool(comment.get("included_forecast", False)),
        }
        self.comments.append(stored)
        return 201, stored


def questions_of(post: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the questions inside a post."""
    if post.get("question"):
        yield post["question"]
    yield from (post.get("group_of_questions") or {}).get("questions", [])
    conditional = post.get("conditional") or {}
    yield from (conditional[name] for name in conditional if name in ("question_yes", "question_no"))


def _values(question: Mapping[str, Any], forecast: Mapping[str, Any]) -> list[float | None]:
    if question["type"] == "binary":
        return [1 - forecast["probability_yes"], forecast["probability_yes"]]
    if question["type"] == "multiple_choice":
        order = question.get("all_options_ever") or question["options"]
        return [forecast["probability_yes_per_category"].get(option) for option in order]
    return list(forecast["continuous_cdf"])


class PracticeMetaculus(PracticeService):
    """Serves `/posts/` and `/posts/<id>/`. With an inbox it also accepts forecasts and comments."""

    def __init__(
        self, catalogue: MetaculusCatalogue | None = None, *, token: str, inbox: MetaculusInbox | None = None
    ) -> None:
        self.catalogue = catalogue or MetaculusCatalogue()
        self.token = token
        self.inbox = inbox

    def server(self, middleware: Middleware | None = None) -> PracticeServer:
        """Create the server, which also has a page for every question, with what was sent for it."""
        server = super().server(middleware)
        server.route("GET", "/questions/*", self.page)
        return server

    def page(self, request: ServerRequest) -> ServerResponse:
        """Return the page of a post, as a browser opens it: no token is needed."""
        number = request.path.strip("/").split("/")[-1]
        post = next((post for post in self.catalogue.posts if str(post["id"]) == number), None)
        if post is None:
            return json_response({"detail": "Not found."}, 404)
        own = {question["id"] for question in questions_of(deepcopy(dict(post)))}
        inbox = self.inbox or MetaculusInbox(now=lambda: datetime.now(UTC))
        sent = [
            ("Forecast", json.dumps({name: value for name, value in forecast.items() if value is not None}))
            for forecast in inbox.forecasts
            if forecast["question"] in own
        ]
        for comment in inbox.comments:
            if str(comment["on_post"]) == number:
                sent.append(("Private comment" if comment["is_private"] else "Comment", comment["text"]))
        text = str((post.get("question") or {}).get("resolution_criteria") or "")
        return sent_page(str(post.get("title", number)), text, sent)

    def get(self, request: ServerRequest) -> StatusAndBody:
        """Return the status and body of the answer."""
        authorization = request.headers.get("authorization")
        if authorization != f"Token {self.token}":
            return 401, {"detail": f"Invalid token {authorization}."}
        if self.inbox is not None and (mine := self.inbox.answer(request.path, request.query)) is not None:
            return mine
        return self._posts(request)

    def _posts(self, request: ServerRequest) -> StatusAndBody:
        """Return a post or a list of posts.

        With an inbox, posts include the account's forecasts, and a list can leave out the posts it has answered.
        """
        catalogue, inbox = self.catalogue, self.inbox
        account, lists = request.query.get("not_forecaster_id"), request.path.rstrip("/").endswith("/posts")
        if inbox is not None and account is not None and lists:
            if account != str(inbox.account["id"]):
                return 403, {"detail": "You do not have permission to perform this action."}
            catalogue = MetaculusCatalogue(
                (post for post in catalogue.posts if not inbox.answered(post)), catalogue.tournaments
            )
        answer = catalogue.answer(request.path, request.query)
        if answer is None:
            return 404, {"detail": "Not found."}
        status, body = answer
        if inbox is None or not isinstance(body, dict):
            return answer
        return status, body | {"results": [*map(inbox.shown, body["results"])]} if lists else inbox.shown(body)

    def post(self, request: ServerRequest) -> StatusAndBody:
        """Accept a forecast or a comment."""
        if request.headers.get("authorization") != f"Token {self.token}":
            return 401, {"detail": "Invalid token."}
        if self.inbox is None:
            return super().post(request)
        return self.inbox.take(request, self.catalogue.posts)
