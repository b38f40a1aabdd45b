"""Where a fake Metaculus takes forecasts and comments, as strictly as the real one."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from foretell.fakes.markets.inbox import Mishaps
from foretell.fakes.markets.metaculus_rules import complaint
from foretell.fakes.server import Request

Answer = tuple[int, Any]
FORECAST = "questions/forecast"
COMMENT = "comments/create"


@dataclass(kw_only=True)
class MetaculusInbox:
    """One account's forecasts and comments."""

    now: datetime
    """What its clock says; closed questions take nothing."""
    account: Mapping[str, Any] = field(default_factory=lambda: {"id": 7, "username": "fake-bot", "is_bot": True})
    forecasts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Every forecast that was taken, in order."""
    comments: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    mishaps: Mishaps = field(default_factory=Mishaps)

    def take(self, request: Request, posts: Iterable[Mapping[str, Any]]) -> Answer:
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

    def answer(self, path: str, query: Mapping[str, str]) -> Answer | None:
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

    def _forecast(self, body: Any, questions: Mapping[Any, Mapping[str, Any]]) -> Answer:
        """All are taken or none."""
        if not isinstance(body, list) or not body:
            return 400, {"non_field_errors": ['Expected a list of items but got type "dict".']}
        entries = cast("list[dict[str, Any]]", body)
        for entry in entries:
            question = questions.get(entry.get("question"))
            if question is None:
                hint = "Check if you are forecasting with the Post Id accidentally instead."
                return 400, [{"non_field_errors": [f"question with id {entry.get('question')} does not exist. {hint}"]}]
            if told := complaint(question, entry):
                return 400, [{"non_field_errors": [told]}]
            if self._closed(question):
                return 405, {"error": f"Question {question['id']} is already closed to forecasting !"}
        self.forecasts += [dict(entry) for entry in entries]
        return 201, {}

    def _closed(self, question: Mapping[str, Any]) -> bool:
        ends = datetime.fromisoformat(question["scheduled_close_time"])
        early = question.get("actual_close_time")
        return ends < self.now or (early is not None and datetime.fromisoformat(early) < self.now)

    def _comment(self, body: Any, posts: set[Any]) -> Answer:
        if not isinstance(body, dict) or cast("dict[str, Any]", body).get("on_post") not in posts:
            return 400, {"on_post": ["Post Does not exist"]}
        told = cast("dict[str, Any]", body)
        if not told.get("text"):
            return 400, {"text": ["Comment text is required"]}
        kept = {
            "id": 1000 + len(self.comments),
            "author": dict(self.account),
            "on_post": told["on_post"],
            "text": told["text"],
            "is_private": bool(told.get("is_private", False)),
            "included_forecast": bool(told.get("included_forecast", False)),
        }
        self.comments.append(kept)
        return 201, kept


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
