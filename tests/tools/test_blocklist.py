import pytest
from tests.tools.doubles import question

from foretell.questions.question import Target
from foretell.tools.addresses import Blocklist, is_encyclopedia, is_living


def closed(address: str, **fields: object) -> bool:
    return Blocklist.of(question(**fields)).check(address) is not None


def test_platforms_are_closed_to_every_question() -> None:
    assert closed("https://polymarket.com/event/x", source="fred")
    assert closed("https://www.metaculus.com/questions/1/", source="acled")
    assert not closed("https://notpolymarket.com/event/x")


def test_named_page_closes_itself_and_pages_below_it() -> None:
    criteria = "By https://stats.example/a/table?year=2025 in the end."
    assert closed("https://stats.example/a/table?x=1&year=2025", criteria=criteria)
    assert closed("https://stats.example/a/table/more?year=2025", criteria=criteria)
    assert not closed("https://stats.example/a/table-2?year=2025", criteria=criteria)
    assert not closed("https://stats.example/a/table?year=2024", criteria=criteria)


def test_named_home_page_closes_the_site_or_a_publishers_front_page() -> None:
    background = "See https://lmboard.example and https://www.reuters.com/."
    assert closed("https://lmboard.example/any/page", background=background)
    assert closed("https://www.reuters.com", background=background)
    assert not closed("https://www.reuters.com/world/story", background=background)


@pytest.mark.parametrize("field", ["text", "criteria", "background", "url"])
def test_all_fields_of_a_question_are_searched_for_addresses(field: str) -> None:
    assert closed("https://answer.example/x", **{field: "Look: https://answer.example/x"})


def test_target_labels_are_searched_for_addresses() -> None:
    target = Target(id="a", label="As on https://answer.example/x")
    assert closed("https://answer.example/x", targets=(target,))


def test_stored_version_of_a_named_page_may_be_read() -> None:
    blocked = Blocklist.of(question(source="fred")).check("https://fred.stlouisfed.org/series/X")
    assert blocked is not None
    assert blocked.unless_stored
    platform = Blocklist().check("https://kalshi.com/markets/x")
    assert platform is not None
    assert not platform.unless_stored


def test_continually_rewritten_pages_and_encyclopedias_are_recognized() -> None:
    assert is_living("https://en.wikipedia.org/wiki/X")
    assert is_living("https://chess.fandom.com/wiki/X")
    assert not is_living("https://wikileaks.example/x")
    assert is_encyclopedia("https://de.m.wikipedia.org/wiki/X")
    assert not is_encyclopedia("https://web.archive.org/web/2025/https://en.wikipedia.org/wiki/X")
