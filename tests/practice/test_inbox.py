"""Practice platforms reject what the real platforms reject."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from fakes.markets import FakeProphetArena
from fakes.samples import SampleMetaculusQuestion, SampleMetaculusScale, metaculus_post_body, prophet_arena_body
from foretell.practice.markets.metaculus import MetaculusInbox
from foretell.practice.server import ServerRequest

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
FLAT = [n / 200 for n in range(201)]
POSTS = [
    metaculus_post_body(101, "Will it?", SampleMetaculusQuestion(id=1, title="Will it?")),
    metaculus_post_body(
        102, "Who?", SampleMetaculusQuestion(id=2, title="Who?", kind="multiple_choice", options=("Ann", "Bob"))
    ),
    metaculus_post_body(
        103,
        "How many?",
        SampleMetaculusQuestion(id=3, title="How many?", kind="numeric", scale=SampleMetaculusScale(low=0, high=9)),
    ),
    metaculus_post_body(104, "Over?", SampleMetaculusQuestion(id=4, title="Over?", closes="2026-10-01T00:00:00Z")),
]


def post_request(path: str, body: Any, key: str = "") -> ServerRequest:
    headers = {"authorization": key}
    return ServerRequest(
        method="POST", path=path, target=path, query={}, headers=headers, body=json.dumps(body).encode()
    )


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ([{"question": 1, "probability_yes": 0.5}], 201),
        ({"question": 1, "probability_yes": 0.5}, 400),
        ([], 400),
        ([{"question": 101, "probability_yes": 0.5}], 400),
        ([{"question": 1, "probability_yes": 0.0005}], 400),
        ([{"question": 1, "probability_yes": 0.5, "continuous_cdf": FLAT}], 400),
        ([{"question": 2, "probability_yes_per_category": {"Ann": 0.5, "Bob": 0.5}}], 201),
        ([{"question": 2, "probability_yes_per_category": {"Ann": 0.5, "Bob": 0.4}}], 400),
        ([{"question": 2, "probability_yes_per_category": {"Ann": 0.999}}], 400),
        ([{"question": 3, "continuous_cdf": FLAT}], 201),
        ([{"question": 3, "continuous_cdf": FLAT[:-1]}], 400),
        ([{"question": 3, "continuous_cdf": [0.5 + c / 2 for c in FLAT]}], 400),
        ([{"question": 4, "probability_yes": 0.5}], 405),
        ([{"question": 1, "probability_yes": 0.5}, {"question": 4, "probability_yes": 0.5}], 405),
    ],
)
def test_metaculus_accepts_valid_forecasts_only(body: Any, status: int):
    inbox = MetaculusInbox(now=lambda: NOW)
    assert inbox.take(post_request("/api/questions/forecast/", body), POSTS)[0] == status
    assert len(inbox.forecasts) == (1 if status == 201 else 0)


def test_metaculus_accepts_valid_comments_only():
    inbox = MetaculusInbox(now=lambda: NOW)
    for body, status in (
        ({"on_post": 101, "text": "Why.", "is_private": True}, 201),
        ({"on_post": 1, "text": "Why."}, 400),
        ({"on_post": 101, "text": ""}, 400),
    ):
        assert inbox.take(post_request("/api/comments/create/", body), POSTS)[0] == status
    assert inbox.take(post_request("/api/elsewhere/", {}), POSTS)[0] == 404
    query = {"post": "101", "author": "7"}
    shown = inbox.answer("/api/comments/", query | {"is_private": "true"})
    assert shown is not None
    assert [comment["text"] for comment in shown[1]["results"]] == ["Why."]
    assert inbox.answer("/api/comments/", query) == (200, {"next": None, "previous": None, "results": []})


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, 200),
        ({"agent": "stranger"}, 404),
        ({"event": "nothing"}, 404),
        ({"event": "over"}, 422),
        ({"probabilities": {"Ann": 0.5}}, 422),
        ({"probabilities": {"ANN": 0.9, "bob": 0.9}}, 200),
        ({"probabilities": {"Ann": 1.5, "Bob": 0.5}}, 422),
        ({"probabilities": [0.5]}, 422),
    ],
)
def test_prophet_arena_accepts_valid_forecasts_only(change: dict[str, Any], status: int):
    over = prophet_arena_body("over", "Over?", {"Ann": None, "Bob": None}, close_at="2026-10-01T00:00:00Z")
    fake = FakeProphetArena([prophet_arena_body("who", "Who?", {"Ann": None, "Bob": None}), over], key="k")
    fake.agents = {"me"}
    body = {"agent": "me", "event": "who", "probabilities": {"Ann": 0.5, "Bob": 0.5}} | change
    assert fake.post(post_request("/forecasts", body, "Bearer other"))[0] == 401
    assert fake.post(post_request("/forecasts", body, "Bearer k"))[0] == status
    if status == 200:
        assert fake.post(post_request("/forecasts", body, "Bearer k"))[1]["replaces_previous"]
