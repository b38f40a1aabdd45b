"""Elicitations: the calls they make, and how their answers are pooled."""

import pytest

from foretell.forecasters.prompt.elicitation import (
    ELICITATIONS,
    Elicitation,
    ElicitationCall,
    ElicitedAnswer,
    read_elicitation,
)
from foretell.questions.errors import InputError


def answers(elicitation: Elicitation, *replies: ElicitedAnswer | None) -> list[tuple[ElicitationCall, ElicitedAnswer]]:
    return [(ask, answer) for ask, answer in zip(elicitation.asks(), replies, strict=False) if answer is not None]


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
def test_every_elicitation_makes_its_calls_under_distinct_names(name: str, calls: int) -> None:
    asks = ELICITATIONS[name].asks()
    assert len(asks) == len({ask.name for ask in asks}) == calls


def test_ensemble_is_the_mean_of_its_wordings() -> None:
    elicitation = ELICITATIONS["ensemble"]
    assert elicitation.pool(answers(elicitation, p(0.1), p(0.2), p(0.3), p(0.6))) == pytest.approx({"a": 0.3})
    assert elicitation.pool(answers(elicitation, p(0.1), None, None, p(0.3))) == pytest.approx({"a": 0.2})
    assert elicitation.pool(answers(elicitation, None, None, None, p(0.3))) is None


def test_bi_directional_averages_both_directions_and_needs_both() -> None:
    elicitation = ELICITATIONS["bi-directional"]
    assert elicitation.pool(answers(elicitation, p(0.7), p(0.4))) == pytest.approx({"a": 0.65})
    assert elicitation.pool(answers(elicitation, p(0.7))) is None
    assert elicitation.pool(answers(elicitation, None, p(0.4))) is None


def test_self_consistency_is_the_share_of_yes_votes() -> None:
    elicitation = ELICITATIONS["self-consistency"]
    assert elicitation.pool(answers(elicitation, *[p(1.0)] * 3, *[p(0.0)] * 7)) == pytest.approx({"a": 0.3})
    assert elicitation.pool(answers(elicitation, *[p(1.0)] * 3, *[None] * 5, *[p(0.0)] * 2)) == pytest.approx(
        {"a": 0.6}
    )
    assert elicitation.pool(answers(elicitation, *[p(1.0)] * 3, *[None] * 7)) is None


def test_weighted_self_consistency_weights_votes_by_confidence() -> None:
    elicitation = ELICITATIONS["weighted self-consistency"]
    votes = [p(1.0, 0.9)] * 2 + [p(0.0, 0.1)] * 8
    assert elicitation.pool(answers(elicitation, *votes)) == pytest.approx({"a": 1.8 / 2.6})
    assert elicitation.pool(answers(elicitation, *[p(1.0, 0.0)] * 2, *[p(0.0, 0.0)] * 8)) == pytest.approx({"a": 0.2})


def test_pooling_without_answers_gives_none() -> None:
    assert all(elicitation.pool([]) is None for elicitation in ELICITATIONS.values())


@pytest.mark.parametrize(
    "options", [{"wordings": ()}, {"votes": -1}, {"votes": 3, "complement": True}, {"weighted": True}]
)
def test_contradictory_options_raise_errors(options: dict) -> None:
    with pytest.raises(ValueError):
        Elicitation(name="odd", **options)


def test_names_may_be_hyphenated_and_unknown_ones_raise_errors() -> None:
    assert read_elicitation("weighted-self-consistency").weighted
    with pytest.raises(InputError, match="ways are default, concise"):
        read_elicitation("shouting")
