"""Keys are hidden in what servers reply, whole or in part."""

import pytest

from foretell.questions.server_replies import PART, redacted

KEY = "sk-0123456789abcdefgh"


@pytest.mark.parametrize("start", range(len(KEY) - PART + 1))
def test_every_part_of_a_key_is_hidden_also_its_beginning_and_its_end(start: int):
    part = KEY[start : start + PART]
    assert redacted(f"the key {part} is wrong", [KEY]) == "the key ••• is wrong"


def test_shorter_pieces_are_ordinary_text():
    assert redacted(f"the key {KEY[-PART + 1 :]} is wrong", [KEY]) == f"the key {KEY[-PART + 1 :]} is wrong"
