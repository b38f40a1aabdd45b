from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.tools.addresses import Address, UnreadableAddress, address_of, places_in, urls_in

HOSTILE = ("http://127.0.0.1/", "https://[::1]/", "http://2130706433/", "http://0x7f.1/", "a\\b.com", "https://", "a b")


@pytest.mark.parametrize("url", HOSTILE)
def test_ambiguous_address_is_unreadable(url: str) -> None:
    with pytest.raises(UnreadableAddress):
        address_of(url)


def test_repeatedly_encoded_address_is_unreadable() -> None:
    url = "https://a.org/" + "%25" * 1 + "25" * 20 + "41"
    with pytest.raises(UnreadableAddress):
        places_in(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/a",
        "HTTP://EXAMPLE.ORG:80/a/",
        "//example.org/a",
        "example.org/a",
        "https:example.org/a",
        "https:/example.org/a#x",
        "https://u:p@www.example.org./a",
        "https://m.example.org//a/",
        "https://example.org/%61",
        "https://example.org/amp/a",
    ],
)
def test_spelling_variants_give_the_same_address(url: str) -> None:
    assert address_of(url) == Address(host="example.org", path="/a")


def test_file_urls_have_no_address() -> None:
    assert address_of("file:///home/me/a%20b.txt") is None
    assert address_of("corpus://7") is None


def test_nested_addresses_keep_path_and_parameters() -> None:
    places = places_in("https://g.example/url?q=https%3A%2F%2Fa.org%2Fwatch%3Fv%3D1")
    assert Address(host="a.org", path="/watch", params=frozenset({("v", "1")})) in places


def test_urls_in_text_are_found_without_punctuation() -> None:
    text = (
        "See [the table](https://a.org/t_(x)), (https://b.org/y). Also www.c.org/z! Mail me@d.org; e.g. 3.5/4 and U.S."
    )
    assert urls_in(text) == ["https://a.org/t_(x)", "https://b.org/y", "www.c.org/z"]


@given(st.text(max_size=80))
@settings(max_examples=200)
def test_any_text_is_parsed_or_refused(url: str) -> None:
    with suppress(UnreadableAddress):
        places_in(url)
