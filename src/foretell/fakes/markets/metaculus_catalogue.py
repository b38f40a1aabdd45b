"""The catalogue of a fake Metaculus: posts of every kind, as sent."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, cast

Answer = tuple[int, Any]
SHOWN_IN_LISTS = 3


@dataclass(frozen=True, kw_only=True)
class FakeAsked:
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
    scale: "FakeScale | None" = None


@dataclass(frozen=True, kw_only=True)
class FakeScale:
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


def asked_body(asked: FakeAsked) -> dict[str, Any]:
    """A question as sent."""
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
        "actual_resolve_time": asked.resolved,
        "resolution": asked.resolution,
        "aggregations": {"recency_weighted": {"history": [], "latest": latest}},
        "question_weight": 1.0,
        **(asked.scale.fields() if asked.scale else {}),
    }


def post_body(id: int, title: str, *asked: FakeAsked, category: str = "Politics", people: int = 40) -> dict[str, Any]:
    """A post as sent: with one question, or a group of several."""
    body: dict[str, Any] = {
        "id": id,
        "title": title,
        "status": asked[0].status if asked else "open",
        "nr_forecasters": people,
        "projects": {"category": [{"name": category, "slug": category.lower()}], "tournament": [{"name": "Cup"}]},
    }
    if len(asked) == 1 and not asked[0].label:
        return body | {"question": asked_body(asked[0])}
    group = {"questions": [asked_body(one) for one in asked], "resolution_criteria": "Each as reported."}
    return body | {"group_of_questions": {**group, "description": "", "fine_print": ""}}


class MetaculusCatalogue:
    """Serves posts given as the site would send them alone."""

    def __init__(self, posts: Iterable[Mapping[str, Any]] = (), *, takes_ids: bool = True) -> None:
        """`takes_ids` is off for a list that pays no heed to the ids asked for."""
        self.posts = [dict(post) for post in posts]
        self.takes_ids = takes_ids

    def answer(self, path: str, query: Mapping[str, str]) -> Answer | None:
        """Status and body; None for what is no part of the catalogue. Repeated names come joined by commas."""
        name = path.strip("/").rpartition("/")[2]
        if name == "posts":
            return 200, self._list(query)
        found = next((post for post in self.posts if str(post.get("id")) == name), None)
        return None if found is None else (200, found)

    def _list(self, query: Mapping[str, str]) -> dict[str, Any]:
        ids = query["ids"].split(",") if "ids" in query and self.takes_ids else None
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
