"""Reading JSON of other servers, with clear errors."""

import json
import traceback
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.data.http import HttpResponse
from foretell.data.payload import MalformedPayload, Payload

URL = "https://example.org/x"


def of(value: Any) -> Payload:
    return Payload.of(HttpResponse(status=200, body=json.dumps(value).encode(), hops=(URL,)))


def test_values_are_converted() -> None:
    root = of(
        {"a": {"b": ["1.5", 2]}, "t": 86400, "ms": 86400000, "d": "2026-01-02", "in": "[1]", "none": None, "id": 7}
    )
    assert [item.number() for item in root.need("a").need("b").items()] == [1.5, 2.0]
    assert root.need("t").unix_time() == root.need("ms").unix_time(per_second=1000) == datetime(1970, 1, 2, tzinfo=UTC)
    assert root.need("d").day() == date(2026, 1, 2)
    assert root.need("in").embedded().items()[0].number() == root.need("a").need("b").embedded().items()[1].number() - 1
    assert (root.get("none"), root.get("absent"), root.present("none"), root.has("none")) == (None, None, None, True)
    assert (root.need("id").name(), root.need("d").text()) == ("7", "2026-01-02")
    assert [member.path for member in root.need("a").members().values()] == ["a.b"]


@pytest.mark.parametrize(
    ("complain", "message"),
    [
        (lambda root: root.need("x"), "field x is missing"),
        (lambda root: root.present("x"), "field x is missing"),
        (lambda root: root.need("o").need("x"), r"field o\.x is missing"),
        (lambda root: root.need("l").items()[0].text(), r"field l\[0\] is not a text"),
        (lambda root: root.need("l").need("x"), "field l is not an object"),
        (lambda root: root.need("o").items(), "field o is not a list"),
        (lambda root: root.need("yes").number(), "field yes is not a number"),
        (lambda root: root.need("yes").name(), "field yes is not an identifier"),
        (lambda root: root.need("big").unix_time(), "field big is not a time"),
        (lambda root: root.need("big").probability(), "field big is not a probability"),
        (lambda root: root.need("s").number(), "field s is not a finite number"),
        (lambda root: root.need("nan").number(), "field nan is not a finite number"),
        (lambda root: root.need("s").day(), "field s is not a date"),
        (lambda root: root.need("s").embedded(), "field s is not JSON inside a string"),
        (lambda root: root.items(), "the whole response"),
    ],
)
def test_errors_name_the_field_and_do_not_quote_its_value(complain: Any, message: str) -> None:
    root = of({"o": {}, "l": [1], "yes": True, "big": 1e300, "s": "secret result", "nan": float("nan")})
    with pytest.raises(MalformedPayload, match=message) as caught:
        complain(root)
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    assert URL in str(caught.value)


@pytest.mark.parametrize(
    "body", [b"secret result", b"\xff\xfe{", b"", b"[" * 100_000], ids=["text", "bytes", "", "deep"]
)
def test_a_response_that_is_not_json_is_not_quoted(body: bytes) -> None:
    with pytest.raises(MalformedPayload, match="not JSON") as caught:
        Payload.of(HttpResponse(status=200, body=body, hops=(URL,)))
    assert caught.value.__context__ is None


@settings(max_examples=100)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
        max_leaves=5,
    )
)
def test_any_value_is_converted_or_raises_malformed_payload(value: Any) -> None:
    for read in (Payload.number, Payload.probability, Payload.unix_time, Payload.day, Payload.items, Payload.embedded):
        try:
            read(of(value))
        except MalformedPayload:
            continue
