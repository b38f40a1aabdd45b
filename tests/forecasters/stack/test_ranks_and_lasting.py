import numpy as np
import pytest
from tests.forecasters.stack.made import NOTHING, asked, past_of

from foretell.forecasters.stack import RankModel
from foretell.forecasters.stack.wikipedia import PRIOR_EVENTS, PRIOR_YEARS, RareChanges


def player(name: str, due: str, rank: float = 8.0, **more):
    return asked("wikipedia", "fide_rank", name, due, value=rank, **more)


def chances(family, question, past=NOTHING):
    return family.estimate(question, past, question.due.date()).p


def test_a_place_is_kept_until_the_next_list() -> None:
    p = chances(RankModel(), player("Ann", "2025-11-09"))
    assert (np.diff(p) < 0).all()
    within = chances(RankModel(), player("Ann", "2025-11-09", days=(7,)))[0]
    across = chances(RankModel(), player("Ann", "2025-10-26", days=(7,)))[0]
    assert within > across + 0.1


def test_nobody_stands_above_the_first() -> None:
    assert (
        chances(RankModel(), player("Ann", "2025-11-09", 1.0)) > chances(RankModel(), player("Ann", "2025-11-09"))
    ).all()


def test_a_player_on_the_rise_is_remembered() -> None:
    rising = [(player("Ann", due), (1, 1, 1)) for due in ("2025-03-02", "2025-04-13")]
    falling = [(player("Bea", due), (0, 0, 0)) for due in ("2025-03-02", "2025-04-13")]
    past = past_of(*rising, *falling)
    ann, bea, new = (chances(RankModel(), player(name, "2025-11-09"), past) for name in ("Ann", "Bea", "Cleo"))
    assert (ann > new).all()
    assert (new > bea).all()


@pytest.mark.parametrize("subtype", ["vaccine", "fide_elo", "swimming"])
def test_the_longer_the_wait_the_likelier_the_change(subtype: str) -> None:
    p = chances(RareChanges(), asked("wikipedia", subtype, "x", "2025-10-26"))
    steps = np.diff(p)
    assert (steps < 0).all() if subtype == "swimming" else (steps > 0).all()


def test_the_rate_by_hand() -> None:
    """Two askings watched for 30 and 180 days without and with a change: k = 1, years = 30/365 + 90/365."""
    first = asked("wikipedia", "vaccine", "x", "2025-01-05")
    second = asked("wikipedia", "vaccine", "y", "2025-01-05")
    past = past_of((first, (0, 0)), (second, (0, 0, 1, 1)))
    question = asked("wikipedia", "vaccine", "z", "2025-10-26", days=(365,))
    years = PRIOR_YEARS + (30 + 90) / 365
    expected = 1 - (1 + 1 / years) ** -(PRIOR_EVENTS + 1)
    assert chances(RareChanges(), question, past) == pytest.approx([expected])


def test_a_record_that_still_stands_is_no_change() -> None:
    kept = past_of(*[(asked("wikipedia", "swimming", f"s{i}", "2025-01-05"), (1, 1, 1, 1)) for i in range(40)])
    question = asked("wikipedia", "swimming", "z", "2025-10-26")
    assert (chances(RareChanges(), question, kept) > chances(RareChanges(), question)).all()


def test_each_covers_its_own_templates() -> None:
    assert RankModel().covers(player("Ann", "2025-11-09"))
    assert not RankModel().covers(asked("wikipedia", "vaccine", "x", "2025-11-09"))
    assert not RareChanges().covers(player("Ann", "2025-11-09"))
