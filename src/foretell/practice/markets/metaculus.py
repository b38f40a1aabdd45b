"""Metaculus for practice: posts of every kind, community predictions, and an inbox for forecasts and comments."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, cast

from foretell.practice.server import PracticeService, ServerRequest, StatusAndBody

SHOWN_IN_LISTS = 3


@dataclass(frozen=True, kw_only=True)
class SampleMetaculusQuestion:
    """A question inside a post; times written out."""

    id: int
    title: str
    kind: str = "binary"
    label: str = ""
    status: str = "open"
    centers: tuple[float | None, ...] | None = None
    options: tuple[str, ...] | None = None
    ever: tuple[str, ...] | None = None
    opens: str = "2026-01-01T00:00:00Z"
    closes: str = "2027-01-01T00:00:00Z"
    resolves: str = "2027-02-01T00:00:00Z"
    revealed: str | None = None
    resolution: str | None = None
    resolved: str | None = None
    scale: "SampleMetaculusScale | None" = None
    history: "tuple[SampleCommunityPrediction, ...]" = ()
    visible: bool = True
    """Whether the account may see the community prediction."""


@dataclass(frozen=True, kw_only=True)
class SampleCommunityPrediction:
    """A community prediction from a Unix second on."""

    since: float
    centers: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class SampleMetaculusScale:
    """The range of a question about a number; dates in Unix seconds."""

    low: float
    high: float
    zero: float | None = None
    open_lower: bool = False
    open_upper: bool = False
    cells: int | None = None
    """None leaves the count out, as old questions do: there are 200 then."""

    def fields(self) -> dict[str, Any]:
        """As sent."""
        return {
            "scaling": {"range_min": self.low, "range_max": self.high, "zero_point": self.zero},
            "open_lower_bound": self.open_lower,
            "open_upper_bound": self.open_upper,
            "inbound_outcome_count": self.cells,
        }


def metaculus_question_body(asked: SampleMetaculusQuestion) -> dict[str, Any]:
    """A question as sent."""
    history = [
        {"start_time": one.since, "end_time": None, "centers": list(one.centers), "forecaster_count": 40}
        for one in asked.history
    ]
    latest = {"start_time": 1.0, "end_time": None, "centers": list(asked.centers)} if asked.centers else None
    return {
        "id": asked.id,
        "title": asked.title,
        "label": asked.label,
        "type": asked.kind,
        "status": asked.status,
        "description": "What is known so far.",
        "resolution_criteria": "Resolves as reported.",
        "fine_print": "",
        "options": None if asked.options is None else list(asked.options),
        "all_options_ever": None if asked.ever is None else list(asked.ever),
        "open_time": asked.opens,
        "cp_reveal_time": asked.revealed,
        "scheduled_close_time": asked.closes,
        "scheduled_resolve_time": asked.resolves,
        "actual_close_time": None,
        "actual_resolve_time": asked.resolved,
        "resolution": asked.resolution,
        "aggregations": {"recency_weighted": {"history": history, "latest": latest}} if asked.visible else None,
        "my_forecasts": {"history": [], "latest": None},
        "question_weight": 1.0,
        **(asked.scale.fields() if asked.scale else {}),
    }


def metaculus_post_body(
    id: int, title: str, *asked: SampleMetaculusQuestion, category: str = "Politics", people: int = 40
) -> dict[str, Any]:
    """A post as sent: with one question, or a group of several."""
    body: dict[str, Any] = {
        "id": id,
        "title": title,
        "status": asked[0].status if asked else "open",
        "nr_forecasters": people,
        "resolved": bool(asked) and asked[0].resolution is not None,
        "actual_close_time": None,
        "projects": {"category": [{"name": category, "slug": category.lower()}], "tournament": [{"name": "Cup"}]},
    }
    if not asked:
        return body | {"question": None}
    if len(asked) == 1 and not asked[0].label:
        return body | {"question": metaculus_question_body(asked[0])}
    group = {"questions": [metaculus_question_body(one) for one in asked], "resolution_criteria": "Each as reported."}
    return body | {"group_of_questions": {**group, "description": "", "fine_print": ""}}


class MetaculusCatalogue:
    """Posts, given as the site would send each alone."""

    def __init__(self, posts: Iterable[Mapping[str, Any]] = ()) -> None:
        self.posts = [dict(post) for post in posts]

    def answer(self, path: str, query: Mapping[str, str]) -> StatusAndBody | None:
        """Status and body; None for what is no part of the catalogue."""
        name = path.strip("/").rpartition("/")[2]
        if name == "posts":
            return 200, self._list(query)
        found = next((post for post in self.posts if str(post.get("id")) == name), None)
        return None if found is None else (200, found)

    def _list(self, query: Mapping[str, str]) -> dict[str, Any]:
        ids = query["ids"].split(",") if "ids" in query else None
        fitting = [
            post
            for post in self.posts
            if query.get("statuses", post.get("status")) == post.get("status")
            and (ids is None or str(post.get("id")) in ids)
        ]
        start, size = int(query.get("offset", "0")), min(int(query.get("limit", "20")), 100)
        more = f"https://next.example/?offset={start + size}" if start + size < len(fitting) else None
        return {"next": more, "previous": None, "results": [_cut(post) for post in fitting[start : start + size]]}


def _cut(post: Mapping[str, Any]) -> dict[str, Any]:
    """As lists show it: of a large group the community prediction of the first questions only."""
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
"""What a forecast must hold, by the type of the question."""


def refusal(question: Mapping[str, Any], forecast: Mapping[str, Any]) -> str:
    """Why Metaculus refuses a forecast; empty if it does not. Written apart from the code that keeps to the rules."""
    field = FIELDS[question["type"]]
    others = [name for name in set(FIELDS.values()) - {field} if forecast.get(name) is not None]
    if others or forecast.get(field) is None:
        return f"Only {field} should be provided for {question['type']} questions"
    if field == "probability_yes":
        good = 0.001 <= float(forecast[field]) <= 0.999
        return "" if good else "probability_yes should be between 0.001 and 0.999"
    if field == "probability_yes_per_category":
        return _choice(forecast[field], question["options"])
    return _continuous([float(value) for value in forecast[field]], question)


def _choice(forecast: Mapping[str, float | None], options: list[str]) -> str:
    given = {option: p for option, p in forecast.items() if p is not None}
    if set(given) != set(options):
        return "Forecast must include all options"
    # As close to one as numpy.isclose wants it.
    good = all(0.001 <= p <= 0.999 for p in given.values()) and abs(sum(given.values()) - 1) <= 1e-8 + 1e-5
    return "" if good else "All probabilities must be between 0.001 and 0.999 and sum to 1.0"


def _continuous(cdf: list[float], question: Mapping[str, Any]) -> str:
    cells = question.get("inbound_outcome_count") or 200
    if len(cdf) != cells + 1:
        return f"CDF Invalid: continuous_cdf for question {question['id']} must have {cells + 1} values."
    cdf = [round(value, 10) for value in cdf]
    steps = [round(b - a, 10) for a, b in pairwise(cdf)]
    least, most = round(0.01 / cells, 9), 0.2 * 200 / cells
    rules = {
        f"must be increasing by at least {least} at every step": min(steps) >= least,
        f"must be increasing by no more than {most} at every step": max(steps) <= most,
        "at lower bound must be at least 0.001": not question["open_lower_bound"] or cdf[0] >= 0.001,
        "at lower bound must be 0.00": question["open_lower_bound"] or cdf[0] == 0.0,
        "at upper bound must be at most 0.999": not question["open_upper_bound"] or cdf[-1] <= 0.999,
        "at upper bound must be 1.00": question["open_upper_bound"] or cdf[-1] == 1.0,
    }
    broken = [rule for rule, holds in rules.items() if not holds]
    return f"CDF Invalid: continuous_cdf {'; '.join(broken)}" if broken else ""


FORECAST = "questions/forecast"
COMMENT = "comments/create"


@dataclass(kw_only=True)
class MetaculusInbox:
    """One account's forecasts and comments, checked as strictly as by the real site."""

    now: Callable[[], datetime]
    """Its clock; closed questions take nothing."""
    account: Mapping[str, Any] = field(default_factory=lambda: {"id": 7, "username": "practice-bot", "is_bot": True})
    forecasts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Every forecast that was taken, in order."""
    comments: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def take(self, request: ServerRequest, posts: Iterable[Mapping[str, Any]]) -> StatusAndBody:
        """Status and body for something sent."""
        path, known = request.path.strip("/"), list(posts)
        try:
            body = request.json()
        except ValueError:
            return 400, {"detail": "JSON parse error"}
        if path.endswith(FORECAST):
            return self._forecast(body, {one["id"]: one for post in known for one in questions_of(post)})
        if path.endswith(COMMENT):
            return self._comment(body, {post["id"] for post in known})
        return 404, {"detail": "Not found."}

    def answer(self, path: str, query: Mapping[str, str]) -> StatusAndBody | None:
        """What can be read back; None for what is no part of it."""
        name = path.strip("/")
        if name.endswith("users/me"):
            return 200, dict(self.account)
        if not name.endswith("comments"):
            return None
        private = query.get("is_private") == "true"
        found = [
            comment
            for comment in reversed(self.comments)
            if str(comment["on_post"]) == query.get("post")
            and str(comment["author"]["id"]) == query.get("author")
            and comment["is_private"] == private
        ]
        return 200, {"next": None, "previous": None, "results": found[: int(query.get("limit", "10"))]}

    def shown(self, post: Mapping[str, Any]) -> Mapping[str, Any]:
        """A post with the account's own forecasts in it."""
        for question in questions_of(post):
            mine = [one for one in self.forecasts if one["question"] == question["id"]]
            values = [_values(question, one) for one in mine[-1:]]
            latest = {"start_time": 1.0, "end_time": None, "forecast_values": values[0]} if values else None
            question["my_forecasts"] = {"history": [], "latest": latest}
        return post

    def _forecast(self, body: Any, questions: Mapping[Any, Mapping[str, Any]]) -> StatusAndBody:
        """All are taken or none."""
        if not isinstance(body, list) or not body:
            return 400, {"non_field_errors": ['Expected a list of items but got type "dict".']}
        entries = cast("list[dict[str, Any]]", body)
        for entry in entries:
            question = questions.get(entry.get("question"))
            if question is None:
                hint = "Check if you are forecasting with the Post Id accidentally instead."
                return 400, [{"non_field_errors": [f"question with id {entry.get('question')} does not exist. {hint}"]}]
            if problem := refusal(question, entry):
                return 400, [{"non_field_errors": [problem]}]
            if self._closed(question):
                return 405, {"error": f"Question {question['id']} is already closed to forecasting !"}
        self.forecasts += [dict(entry) for entry in entries]
        return 201, {}

    def _closed(self, question: Mapping[str, Any]) -> bool:
        now, ends = self.now(), datetime.fromisoformat(question["scheduled_close_time"])
        early = question.get("actual_close_time")
        return ends < now or (early is not None and datetime.fromisoformat(early) < now)

    def _comment(self, body: Any, posts: set[Any]) -> StatusAndBody:
        if not isinstance(body, dict) or cast("dict[str, Any]", body).get("on_post") not in posts:
            return 400, {"on_post": ["Post Does not exist"]}
        comment = cast("dict[str, Any]", body)
        if not comment.get("text"):
            return 400, {"text": ["Comment text is required"]}
        stored = {
            "id": 1000 + len(self.comments),
            "author": dict(self.account),
            "on_post": comment["on_post"],
            "text": comment["text"],
            "is_private": bool(comment.get("is_private", False)),
            "included_forecast": bool(comment.get("included_forecast", False)),
        }
        self.comments.append(stored)
        return 201, stored


def questions_of(post: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The questions inside a post."""
    if post.get("question"):
        yield post["question"]
    yield from (post.get("group_of_questions") or {}).get("questions", [])


def _values(question: Mapping[str, Any], forecast: Mapping[str, Any]) -> list[float | None]:
    if question["type"] == "binary":
        return [1 - forecast["probability_yes"], forecast["probability_yes"]]
    if question["type"] == "multiple_choice":
        order = question.get("all_options_ever") or question["options"]
        return [forecast["probability_yes_per_category"].get(option) for option in order]
    return list(forecast["continuous_cdf"])


class PracticeMetaculus(PracticeService):
    """Answers `/posts/` and `/posts/<id>/`. With an inbox it also takes forecasts and comments."""

    def __init__(
        self, catalogue: MetaculusCatalogue | None = None, *, token: str, inbox: MetaculusInbox | None = None
    ) -> None:
        self.catalogue = catalogue or MetaculusCatalogue()
        self.token = token
        self.inbox = inbox

    def get(self, request: ServerRequest) -> StatusAndBody:
        """Status and body."""
        given = request.headers.get("authorization")
        if given != f"Token {self.token}":
            return 401, {"detail": f"Invalid token {given}."}
        if self.inbox is not None and (mine := self.inbox.answer(request.path, request.query)) is not None:
            return mine
        found = self.catalogue.answer(request.path, request.query)
        if found is None:
            return 404, {"detail": "Not found."}
        if self.inbox is not None and not request.path.rstrip("/").endswith("/posts"):
            return found[0], self.inbox.shown(found[1])
        return found

    def post(self, request: ServerRequest) -> StatusAndBody:
        """Take a forecast or a comment."""
        if request.headers.get("authorization") != f"Token {self.token}":
            return 401, {"detail": "Invalid token."}
        if self.inbox is None:
            return super().post(request)
        return self.inbox.take(request, self.catalogue.posts)
