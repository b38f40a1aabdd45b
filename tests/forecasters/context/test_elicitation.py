"""Ways of asking as data: which calls they make, and how replies become one number."""

import pytest

from foretell.forecasters.prompt import ELICITATIONS, Elicitation, ElicitationCall, ElicitedAnswer, read_elicitation
from foretell.questions import InputError


def answers(way: Elicitation, *said: ElicitedAnswer | None) -> list[tuple[ElicitationCall, ElicitedAnswer]]:
    return [(ask, one) for ask, one in zip(way.asks(), said, strict=False) if one is not None]


def p(value: float, confidence: float | None = None) -> ElicitedAnswer:
    return ElicitedAnswer(p={"a": value}, confidence={} if confidence is None else {"a": confidence})


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("default", 1),
        ("concise", 1),
        ("verbose", 1),
        ("rewrite", 1),
        ("ensemble", 4),
        ("bi-directional", 2),
        ("self-consistency", 10),
        ("weighted self-consistency", 10),
        ("scaffold", 1),
    ],
)
def test_every_way_makes_its_calls_under_names_of_their_own(name: str, calls: int) -> None:
    asks = ELICITATIONS[name].asks()
    assert len(asks) == len({ask.name for ask in asks}) == calls


def test_an_ensemble_is_the_mean_of_its_wordings() -> None:
    way = ELICITATIONS["ensemble"]
    assert way.pool(answers(way, p(0.1), p(0.2), p(0.3), p(0.6))) == pytest.approx({"a": 0.3})
    assert way.pool(answers(way, p(0.1), None, None, p(0.3))) == pytest.approx({"a": 0.2})
    assert way.pool(answers(way, None, None, None, p(0.3))) is None


def test_both_directions_meet_in_the_middle_and_both_are_needed() -> None:
    way = ELICITATIONS["bi-directional"]
    assert way.pool(answers(way, p(0.7), p(0.4))) == pytest.approx({"a": 0.65})
    assert way.pool(answers(way, p(0.7))) is None
    assert way.pool(answers(way, None, p(0.4))) is None


def test_votes_are_counted() -> None:
    way = ELICITATIONS["self-consistency"]
    assert way.pool(answers(way, *[p(1.0)] * 3, *[p(0.0)] * 7)) == pytest.approx({"a": 0.3})
    assert way.pool(answers(way, *[p(1.0)] * 3, *[None] * 5, *[p(0.0)] * 2)) == pytest.approx({"a": 0.6})
    assert way.pool(answers(way, *[p(1.0)] * 3, *[None] * 7)) is None


def test_votes_by_confidence() -> None:
    way = ELICITATIONS["weighted self-consistency"]
    votes = [p(1.0, 0.9)] * 2 + [p(0.0, 0.1)] * 8
    assert way.pool(answers(way, *votes)) == pytest.approx({"a": 1.8 / 2.6})
    assert way.pool(answers(way, *[p(1.0, 0.0)] * 2, *[p(0.0, 0.0)] * 8)) == pytest.approx({"a": 0.2})


def test_nothing_is_pooled_from_nothing() -> None:
    assert all(way.pool([]) is None for way in ELICITATIONS.values())


@pytest.mark.parametrize(
    "given", [{"wordings": ()}, {"votes": -1}, {"votes": 3, "complement": True}, {"weighted": True}]
)
def test_ways_that_contradict_themselves_are_refused(given: dict) -> None:
    with pytest.raises(ValueError):
        Elicitation(name="odd", **given)


def test_names_may_be_hyphenated_and_unknown_ones_are_told() -> None:
    assert read_elicitation("weighted-self-consistency").weighted
    with pytest.raises(InputError, match="ways are default, concise"):
        read_elicitation("shouting")
