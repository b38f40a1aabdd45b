import pytest
from tests.tools.doubles import question

from foretell.questions import Target
from foretell.tools import Blocklist, is_encyclopedia, is_living


def closed(address: str, **fields: object) -> bool:
    return Blocklist.of(question(**fields)).check(address) is not None


def test_platforms_are_closed_to_every_question() -> None:
    assert closed("https://polymarket.com/event/x", source="fred")
    assert closed("https://www.metaculus.com/questions/1/", source="acled")
    assert not closed("https://notpolymarket.com/event/x")


def test_a_named_page_closes_itself_and_what_lies_below_but_not_its_neighbours() -> None:
    criteria = "By https://stats.example/a/table?year=2025 in the end."
    assert closed("https://stats.example/a/table?x=1&year=2025", criteria=criteria)
    assert closed("https://stats.example/a/table/more?year=2025", criteria=criteria)
    assert not closed("https://stats.example/a/table-2?year=2025", criteria=criteria)
    assert not closed("https://stats.example/a/table?year=2024", criteria=criteria)


def test_a_named_home_page_closes_the_site_but_only_the_front_of_a_large_publisher() -> None:
    background = "See https://lmboard.example and https://www.reuters.com/."
    assert closed("https://lmboard.example/any/page", background=background)
    assert closed("https://www.reuters.com", background=background)
    assert not closed("https://www.reuters.com/world/story", background=background)


@pytest.mark.parametrize("field", ["text", "criteria", "background", "url"])
def test_every_part_of_a_question_is_read_for_addresses(field: str) -> None:
    assert closed("https://answer.example/x", **{field: "Look: https://answer.example/x"})


def test_labels_of_targets_are_read_too() -> None:
    target = Target(id="a", label="As on https://answer.example/x")
    assert closed("https://answer.example/x", targets=(target,))


def test_a_page_that_is_only_closed_today_may_be_read_in_an_old_version() -> None:
    blocked = Blocklist.of(question(source="fred")).check("https://fred.stlouisfed.org/series/X")
    assert blocked is not None
    assert blocked.unless_stored
    platform = Blocklist().check("https://kalshi.com/markets/x")
    assert platform is not None
    assert not platform.unless_stored


def test_living_pages_and_encyclopedias() -> None:
    assert is_living("https://en.wikipedia.org/wiki/X")
    assert is_living("https://chess.fandom.com/wiki/X")
    assert not is_living("https://wikileaks.example/x")
    assert is_encyclopedia("https://de.m.wikipedia.org/wiki/X")
    assert not is_encyclopedia("https://web.archive.org/web/2025/https://en.wikipedia.org/wiki/X")
