"""What simulated models answer depends on the question and the trial, and not on the day."""

import pytest

from foretell.practice.models.formats import ModelQuery
from foretell.practice.models.scripts import _part_chance, conversation_seed

CLAIM = "# Claim\n\nThe port opens.\n\nAbout {} of questions like this came true, worth about 4 past cases.\n- {}\n\n"


def query(text: str = "", **body: object) -> ModelQuery:
    return ModelQuery(format="responses", hash="0", json=body, model="practice", words=text, last=text)


@pytest.mark.parametrize(
    ("body", "seed"),
    [({"seed": 3}, 3), ({"prompt_cache_key": "9c184d74-3"}, "3"), ({"prompt_cache_key": "9c184d74"}, None), ({}, None)],
)
def test_trials_are_distinguished_by_their_seed_alone(body: dict[str, object], seed: object) -> None:
    assert conversation_seed(query(**body)) == seed


def test_past_cases_do_not_change_the_chance_of_a_claim() -> None:
    today, tomorrow = (
        query(CLAIM.format(*past) + "# What is asked\n\nDoes it open?")
        for past in (("17 % (80 % interval 4.1 % to 49 %)", "A port: yes"), ("<1 % (80 % interval 0 % to 4 %)", "None"))
    )
    other = query(CLAIM.replace("opens", "closes") + "# What is asked\n\nDoes it open?")
    assert _part_chance(today, "Claim") == _part_chance(tomorrow, "Claim") != _part_chance(other, "Claim")
