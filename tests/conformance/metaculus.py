"""Metaculus: recorded posts, its OpenAPI file, and practice checked against both."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, cast

import yaml
from jsonschema import Draft202012Validator

from conformance.reading import body_of, config_on, sweep
from conformance.recordings import Check, answer, recording, spec_file
from fakes.answers import respond
from foretell.data.http import AsyncHttpClient
from foretell.data.markets.listing import ListedEvent, ListingFilter, ListingReport, UnsupportedEvent
from foretell.data.markets.market import MarketRef
from foretell.data.markets.metaculus import MetaculusClient, MetaculusEvents, MetaculusPrices, split_post
from foretell.data.payload import Payload
from foretell.data.settlements.metaculus import MetaculusResolution, MetaculusSettlements, resolution_of
from foretell.outgoing.client import Answer, FunctionTransport, HttpRequest
from foretell.practice.server import ServerRequest
from foretell.practice.services import data_services
from foretell.questions.as_of import AsOf, instant
from foretell.questions.forecast import Numeric
from foretell.questions.question import NumericRange, Question
from foretell.scoring.metaculus_cdf import continuous_cdf
from foretell.tournaments.metaculus import COMMENT, FORECAST, MetaculusWriter, questions_in_post
from foretell.tournaments.submission import SEND_ONCE

SERVICE = "metaculus"
NOW = AsOf(at=instant("2025-02-02T00:00:00Z"), mode="live")
HOST = "https://www.metaculus.com/api"
TOKEN = "practice"


def _client(seen: list[HttpRequest] | None = None, **answers: Answer) -> MetaculusClient:
    paths = {f"/{path.replace('_', '/')}/": response for path, response in answers.items()}
    config = config_on(paths, seen)
    return MetaculusClient(http=config.http, token=TOKEN, retry_seconds=0.0)


async def _read(name: str) -> ListedEvent:
    """A recorded post as an event."""
    return await MetaculusEvents(_client()).read(body_of(SERVICE, name), NOW, ListingReport())


# Status, closing, range, and the community prediction of each target; checked by hand on the recordings.

POSTS: Mapping[str, tuple[str, str, NumericRange | None, Mapping[str, float | None]]] = {
    "post_30596_date_open": (
        "open",
        "2074-12-31T05:00:00Z",
        NumericRange(minimum=1735707600, maximum=3344994000, open_upper=True, dates=True),
        {">2138029200": 0.4685559233, ">2540350800": 0.3354010196, ">2942672400": 0.2324261599},
    ),
    "post_31656_numeric_upcoming": (
        "unopened",
        "2025-03-03T22:59:00Z",
        NumericRange(minimum=8e6, maximum=12e6, open_lower=True, open_upper=True),
        {">9000000": None, ">10000000": None, ">11000000": None},
    ),
    "post_31821_binary_upcoming": ("unopened", "2025-05-01T03:00:00Z", None, {"yes": None}),
    "post_31822_numeric_upcoming": (
        "unopened",
        "2025-04-29T03:59:00Z",
        NumericRange(minimum=45, maximum=110, open_upper=True),
        {">61.25": None, ">77.5": None, ">93.75": None},
    ),
    "post_31858_multiple_choice_upcoming": (
        "unopened",
        "2025-03-25T08:00:00Z",
        None,
        dict.fromkeys(("NVDA", "AAPL", "MSFT", "AMZN", "GOOG")),
    ),
    "post_34278_numeric_closed": (
        "closed",
        "2025-01-31T02:00:00Z",
        NumericRange(minimum=460, maximum=488.5, open_lower=True, open_upper=True),
        {">467.125": 0.9381021912, ">474.25": 0.9174302688, ">481.375": 0.0702190643},
    ),
    "post_34279_numeric_closed": (
        "closed",
        "2025-01-31T02:00:00Z",
        NumericRange(minimum=460, maximum=488.5, open_lower=True, open_upper=True),
        {">467.125": 0.9369651288, ">474.25": 0.9101925829, ">481.375": 0.1422909187},
    ),
    "post_34483_numeric_upcoming": (
        "unopened",
        "2025-03-20T12:00:00Z",
        NumericRange(minimum=200, maximum=1200, open_lower=True, open_upper=True),
        {">450": None, ">700": None, ">950": None},
    ),
    "post_34490_binary_upcoming": ("unopened", "2025-03-11T12:00:00Z", None, {"yes": None}),
    "post_34516_binary_open": ("open", "2026-01-01T04:59:00Z", None, {"yes": 0.75}),
    "post_34517_binary_open": ("open", "2025-07-01T03:59:00Z", None, {"yes": 0.11}),
    "post_34666_binary_closed": ("closed", "2025-02-01T16:00:00Z", None, {"yes": 0.4}),
    "post_34752_binary_upcoming": ("unopened", "2025-02-28T22:00:00Z", None, {"yes": None}),
}


async def _posts() -> None:
    for name, (status, closes, scale, targets) in POSTS.items():
        event = await _read(name)
        question = event.question
        assert question.id == f"metaculus/{name.split('_')[1]}", name
        assert (event.status, event.closes_at, question.range) == (status, instant(closes), scale), name
        shown = {t.id: None if t.snapshot is None else t.snapshot.last_price for t in question.targets}
        assert shown == targets, name
        assert question.exclusivity == ("exactly one" if "multiple_choice" in name else "independent"), name
        assert question.text
        assert question.criteria


QUESTIONS = {"30596": 30372, "31656": 31207, "31858": 31365, "34278": 33775, "34516": 34031, "34666": 34180}
"""Question ids by post id; they differ."""


def _to_submit() -> None:
    for name in POSTS:
        (question,) = questions_in_post(body_of(SERVICE, name))
        post = name.split("_")[1]
        assert question.post == int(post)
        assert question.id == QUESTIONS.get(post, question.id) != question.post
        assert question.kind in name
        # The closing time of an open question is the scheduled one; the question is still open.
        assert (question.closed(instant("2025-02-02T00:00:00Z")) == "") == name.endswith("_open"), name
    (lake,) = questions_in_post(body_of(SERVICE, "post_34278_numeric_closed"))
    assert lake.standing is not None
    assert (len(lake.standing.values), lake.standing.values[0], lake.standing.values[-1]) == (201, 0.05, 0.95)
    (moon,) = questions_in_post(body_of(SERVICE, "post_34666_binary_closed"))
    assert moon.standing is not None
    assert moon.standing.values == (0.6, 0.4)


async def _prices() -> None:
    for post, points in {
        "34516_binary_open": [(1738392830.107712 // 1, 0.61), (1738444578.829386 // 1, 0.75)],
        "34517_binary_open": [(1738397694.0, 0.57), (1738447840.0, 0.11)],
        "34666_binary_closed": [(1738423674.0, 0.4)],
    }.items():
        number = post.partition("_")[0]
        client = _client(None, **{f"posts_{number}": answer(SERVICE, f"post_{post}")})
        ref = MarketRef(platform="metaculus", id=number)
        prices = await MetaculusPrices(client).prices(ref, AsOf(at=instant("2025-02-03T00:00:00Z")))
        assert prices[-1].p == points[-1][1], post
        assert prices[-1].at.timestamp() // 1 == points[-1][0], post
        days = {point.at.date() for point in prices}
        assert len(days) == len(prices) <= 2, post


async def _aggregations() -> None:
    exchange = recording(SERVICE, "post_34516_binary_open")
    question = exchange["body"]["question"]
    methods = question["aggregations"]
    methods["unweighted"], methods["recency_weighted"] = methods["recency_weighted"], methods["unweighted"]
    for named in ("unweighted", None):
        question["default_aggregation_method"] = named
        row = Payload(url="", value=exchange["body"])
        event = await MetaculusEvents(_client()).read(row, NOW, ListingReport())
        snapshot = event.question.targets[0].snapshot
        assert snapshot is not None
        assert snapshot.last_price == 0.75


def _resolutions() -> None:
    kinds = {
        ("binary", "yes"): MetaculusResolution(kind="yes"),
        ("binary", "annulled"): MetaculusResolution(kind="annulled"),
        ("binary", "ambiguous"): MetaculusResolution(kind="ambiguous"),
        ("multiple_choice", "AAPL"): MetaculusResolution(kind="option", option="AAPL"),
        ("numeric", "77289125.94957079"): MetaculusResolution(kind="number", number=77289125.94957079),
        ("numeric", "above_upper_bound"): MetaculusResolution(kind="above_upper_bound", number=float("inf")),
        ("discrete", "below_lower_bound"): MetaculusResolution(kind="below_lower_bound", number=-float("inf")),
        ("date", "2025-06-01 00:00:00+00:00"): MetaculusResolution(kind="date", number=1748736000.0),
    }
    for (kind, resolution), expected in kinds.items():
        question = {"type": kind, "status": "resolved", "resolution": resolution}
        assert resolution_of(Payload(url="", value=question)) == expected
    for name in POSTS:
        assert resolution_of(body_of(SERVICE, name).need("question")) is None


# The official specification.


@cache
def _spec() -> dict[str, Any]:
    return cast("dict[str, Any]", yaml.safe_load(spec_file(SERVICE, "openapi_*.yml").read_text()))


def _strict(schema: Any) -> Any:
    """Convert a schema of OpenAPI 3.0 to JSON Schema, in which null is a type and `required` a list."""
    if isinstance(schema, list):
        return [_strict(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    strict = {name: _strict(value) for name, value in cast("dict[str, Any]", schema).items()}
    if isinstance(strict.get("required"), bool):
        del strict["required"]
    if strict.pop("nullable", False) is True and "type" in strict:
        strict["type"] = [strict["type"], "null"]
    return strict


def _problems(value: Any, schema: str) -> list[str]:
    whole = {"$ref": f"#/components/schemas/{schema}", "components": _strict(_spec()["components"])}
    return [error.message[:200] for error in Draft202012Validator(whole).iter_errors(value)]


NOT_IN_SPEC = {"ids"}
"""In the site's own source (PostFilterSerializer, 2026-08-20), which the specification does not repeat in full."""


def _hold_against_spec(request: HttpRequest) -> str:
    """Return the path of the specification for a request; fail if a parameter is not declared."""
    path = next(
        path
        for path in _spec()["paths"]
        if re.fullmatch(re.sub(r"\{\w+\}", r"[^/]+", path), request.url.path) and "{" not in request.url.path
    )
    operation = _spec()["paths"][path][request.method.lower()]
    known = {item["name"]: item["schema"] for item in operation.get("parameters", ()) if item["in"] == "query"}
    for name, value in request.url.query.items():
        if name in NOT_IN_SPEC:
            continue
        base = re.sub(r"__(gte|lte|lt)$", "__gt", name)
        assert base in known, f"{path} has no parameter {name}"
        _fits(value, known[base], name)
    return path


def _fits(value: str, schema: Mapping[str, Any], name: str) -> None:
    schema = schema["items"] if schema["type"] == "array" else schema
    assert schema["type"] != "integer" or value.isdigit(), name
    assert schema["type"] != "boolean" or value in ("true", "false"), name
    assert "enum" not in schema or value.removeprefix("-") in [
        str(choice).removeprefix("-") for choice in schema["enum"]
    ], name
    assert schema.get("format") != "date-time" or instant(value), name


async def _requests() -> None:
    seen: list[HttpRequest] = []
    page = respond(200, json={"next": None, "previous": None, "results": []})
    client = _client(seen, posts=page, posts_34516=answer(SERVICE, "post_34516_binary_open"), comments=page)
    for status in ("open", "closed", "resolved", "unopened"):
        wanted = ListingFilter(as_of=NOW, status=cast("Any", status), closes_after=NOW.at)
        kinds = ("binary", "multiple_choice", "numeric", "discrete", "date", "conditional", "group_of_questions")
        await (
            MetaculusEvents(client, tournaments=("minibench", "33121"), kinds=kinds, unanswered_by="7")
            .events(wanted)
            .all()
        )
    question = (await MetaculusEvents(client).event("34516", NOW)).question
    await MetaculusSettlements(client).settlements([question])
    sending = AsyncHttpClient(limits=SEND_ONCE, transport=FunctionTransport(_accept(seen)))
    writer = MetaculusWriter(client=client, http=sending, token=TOKEN)
    await writer.comments(34516, "7", private=True)
    await writer.forecast([{"question": 34031, "probability_yes": 0.4}])
    await writer.comment({"on_post": 34516, "text": "Why.", "is_private": True, "included_forecast": True})
    assert {_hold_against_spec(request) for request in seen} == {
        "/api/posts/",
        "/api/posts/{postId}/",
        "/api/comments/",
        f"/api{FORECAST}",
        f"/api{COMMENT}",
    }
    assert {request.headers["authorization"] for request in seen} == {f"Token {TOKEN}"}


def _accept(seen: list[HttpRequest]) -> Any:
    def handle(request: HttpRequest) -> Answer:
        seen.append(request)
        return respond(201, json={"id": 1})

    return handle


def _forecasts() -> None:
    """Check the request for each kind of question."""
    stated = Numeric.from_quantiles({0.1: 3.0, 0.5: 5.0, 0.9: 9.0})
    ranges = (NumericRange(minimum=0, maximum=10), NumericRange(minimum=-0.5, maximum=10.5, outcomes=11, whole=True))
    bodies = [
        {"question": 1, "probability_yes": 0.63},
        {"question": 2, "probability_yes_per_category": {"A": 0.5, "B": 0.5}},
        *({"question": 3, "continuous_cdf": continuous_cdf(stated, scale)} for scale in ranges),
    ]
    for body in bodies:
        assert _problems(body, "Forecast") == []
    assert _problems({"question": 1}, "Forecast")
    examples = _spec()["paths"]["/api/questions/forecast/"]["post"]["requestBody"]["content"]["application/json"]
    for example in examples["examples"].values():
        for body in example["value"]:
            assert _problems(body, "Forecast") == []


# Practice.


def _ask(
    site: Any, path: str, method: str = "GET", body: Any = None, token: str = TOKEN, **query: str
) -> tuple[int, Any]:
    headers = {"authorization": f"Token {token}"}
    content = json.dumps(body).encode()
    request = ServerRequest(method=method, path=path, target=path, query=query, headers=headers, body=content)
    return site.get(request) if method == "GET" else site.post(request)


def _practice_posts() -> None:
    site = data_services(datetime.now(UTC), TOKEN)["metaculus"]
    status, page = _ask(site, "/api/posts/", limit="100")
    kinds = {question["type"] for post in page["results"] for question in _questions(post)}
    assert (status, kinds) == (200, {"binary", "multiple_choice", "numeric", "discrete", "date"})
    assert {name for post in page["results"] for name in ("group_of_questions", "conditional") if post.get(name)} == {
        "group_of_questions",
        "conditional",
    }
    # The real site sends null in fields that are not nullable in the file, as recorded posts show.
    for post in page["results"]:
        assert {problem for problem in _problems(post, "Post") if not problem.startswith("None is not")} == set()
    recorded = set(recording(SERVICE, "post_34278_numeric_closed")["body"]["question"])
    lacking = recorded - set(next(_questions(page["results"][2])))
    assert lacking <= {
        "created_at",
        "group_variable",
        "possibilities",
        "resolution_set_time",
        "include_bots_in_aggregates",
    }


def _questions(post: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield from filter(None, [post.get("question")])
    yield from (post.get("group_of_questions") or {}).get("questions", [])
    pair = post.get("conditional") or {}
    yield from (pair[name] for name in ("question_yes", "question_no") if name in pair)


def _practice_inbox() -> None:
    site = data_services(datetime.now(UTC), TOKEN)["metaculus"]
    assert _ask(site, "/api/posts/", token="another")[0] == 401
    flat = [0.0, *(round(n / 200 * 0.995, 10) for n in range(1, 201))]
    for body, status, message in (
        ([{"question": 9101, "probability_yes": 0.5}], 201, ""),
        ([{"question": 9101, "probability_yes": 0.9999}], 400, "between 0.001 and 0.999 (inclusive)"),
        ({"question": 9101, "probability_yes": 0.5}, 400, "Expected a list of items"),
        ([{"question": 9001, "probability_yes": 0.5}], 400, "Post Id accidentally"),
        ([{"question": 9102, "probability_yes_per_category": {"Red": 0.5, "Blue": 0.5}}], 400, "current options"),
        ([{"question": 9103, "continuous_cdf": flat}], 201, ""),
        ([{"question": 9103, "continuous_cdf": flat[:-1]}], 400, "must have 201 values"),
        ([{"question": 9104, "continuous_cdf": flat}], 400, "must have 10 values"),
        ([{"question": 9131, "probability_yes": 0.5}, {"question": 9132, "probability_yes": 0.4}], 201, ""),
    ):
        answer = _ask(site, "/api/questions/forecast/", "POST", body)
        assert answer[0] == status, (body, answer)
        assert message in json.dumps(answer[1])
    comment = {"on_post": 9001, "text": "Why.", "is_private": True, "included_forecast": True}
    status, created = _ask(site, "/api/comments/create/", "POST", comment)
    assert (status, _problems(created, "Comment")) == (201, [])
    left = _ask(site, "/api/posts/", not_forecaster_id="7", limit="100")[1]["results"]
    assert not {9001, 9003, 9031} & {post["id"] for post in left}
    assert _ask(site, "/api/posts/", not_forecaster_id="8")[0] == 403
    mine = _ask(site, "/api/posts/9001/")[1]["question"]["my_forecasts"]["latest"]
    assert mine["forecast_values"] == [0.5, 0.5]


# All other recordings.


def _any(name: str) -> None:
    row = body_of(SERVICE, name)
    if (recording(SERVICE, name)["status"] or 200) >= 400 or not isinstance(row.value, dict | list):
        return
    rows = row.items() if isinstance(row.value, list) else row.rows("results") if row.has("results") else [row]
    for post in rows:
        if not {"question", "group_of_questions", "conditional", "notebook"} & set(post.value):
            assert post.has("id"), name
            continue
        for part in split_post(post):
            event = _finished(MetaculusEvents(_client()).read(part, NOW, ListingReport()))
            assert event is None or isinstance(event.question, Question)
        for question in questions_in_post(post):
            assert question.scale is None or len(question.scale.edges()) == question.scale.outcomes + 1


def _finished(reading: Any) -> ListedEvent | None:
    """Return the result of a coroutine that does not wait; None for posts that are left out with a reason."""
    try:
        reading.send(None)
    except StopIteration as done:
        return done.value
    except UnsupportedEvent:
        return None
    raise AssertionError("a post that is at hand is read without asking anybody")


def _recorded_dates() -> None:
    assert recording(SERVICE, "post_30596_date_open")["body"]["question"]["scaling"]["zero_point"] is None
    scale = POSTS["post_30596_date_open"][2]
    assert scale is not None
    assert (scale.write(scale.minimum), scale.write(scale.maximum)) == ("2025-01-01", "2075-12-31")
    assert timedelta(seconds=scale.maximum - scale.minimum).days == 18626


CHECKS = [
    Check(
        service=SERVICE,
        what="13 posts: status, closing, range with its open ends, and what the community thinks of every target",
        recordings=tuple(POSTS),
        function=_posts,
    ),
    Check(
        service=SERVICE,
        what="what a forecast must fit: the question's own number, its kind, whether it is open, the standing forecast",
        recordings=tuple(POSTS),
        function=_to_submit,
    ),
    Check(
        service=SERVICE,
        what="the history of the community prediction, day by day",
        recordings=("post_345*_binary_open", "post_34666_binary_closed"),
        function=_prices,
    ),
    Check(
        service=SERVICE,
        what="the community prediction by the method that the question names, else by the other",
        recordings=("post_34516_binary_open",),
        function=_aggregations,
    ),
    Check(
        service=SERVICE,
        what="dates in Unix seconds",
        recordings=("post_30596_date_open",),
        function=_recorded_dates,
    ),
    Check(
        service=SERVICE,
        what="resolutions of every kind as values; questions that have none",
        recordings=tuple(POSTS),
        function=_resolutions,
    ),
    Check(
        service=SERVICE,
        what="our requests fit the OpenAPI file of 2026-08-20",
        recordings=("post_34516_binary_open",),
        function=_requests,
    ),
    Check(
        service=SERVICE,
        what="our forecasts and the file's own examples fit its schema",
        recordings=("post_34516_binary_open",),
        function=_forecasts,
    ),
    Check(
        service=SERVICE,
        what="posts of the practice site fit the OpenAPI file and have the fields of recorded ones",
        recordings=("post_34278_numeric_closed",),
        function=_practice_posts,
    ),
    Check(
        service=SERVICE,
        what="the practice site takes forecasts and comments by the published rules, and lists what is unanswered",
        recordings=("post_34516_binary_open",),
        function=_practice_inbox,
    ),
    Check(
        service=SERVICE,
        what="whatever was recorded is read or refused with a reason",
        recordings=("*",),
        function=lambda: sweep(SERVICE, _any),
    ),
]
