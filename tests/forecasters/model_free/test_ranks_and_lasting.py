import numpy as np
import pytest
from tests.forecasters.model_free.simulated import NOTHING, dataset_question, past_of

from foretell.forecasters.model_free.wikipedia import PRIOR_EVENTS, PRIOR_YEARS, RankModel, RareChanges


def player(name: str, due: str, rank: float = 8.0, **more):
    return dataset_question("wikipedia", "fide_rank", name, due, value=rank, **more)


def chances(family, question, past=NOTHING):
    return family.estimate(question, past, question.due.date()).p


def test_rank_is_kept_until_the_next_list() -> None:
    p = chances(RankModel(), player("Ann", "2025-11-09"))
    assert (np.diff(p) < 0).all()
    within = chances(RankModel(), player("Ann", "2025-11-09", days=(7,)))[0]
    across = chances(RankModel(), player("Ann", "2025-10-26", days=(7,)))[0]
    assert within > across + 0.1
    ends = {due: chances(RankModel(), player("Ann", due, days=(7,)))[0] for due in ("2025-11-20", "2025-11-23")}
    assert within == ends["2025-11-20"] > ends["2025-11-23"] > across, "a list may be published on the last two days"


def test_early_lists_are_learnt() -> None:
    late = [player(str(n), "2025-06-22", days=(7,)) for n in range(20)]
    new = player("Ann", "2025-11-23", days=(7,))
    kept, lost = (chances(RankModel(), new, past_of(*((q, (y,)) for q in late)))[0] for y in (1, 0))
    assert kept > chances(RankModel(), new)[0] > lost


def test_first_rank_is_kept_more_often_than_others() -> None:
    assert (
        chances(RankModel(), player("Ann", "2025-11-09", 1.0)) > chances(RankModel(), player("Ann", "2025-11-09"))
    ).all()


def test_past_outcomes_of_a_player_change_the_estimate() -> None:
    rising = [(player("Ann", due), (1, 1, 1)) for due in ("2025-03-02", "2025-04-13")]
    falling = [(player("Bea", due), (0, 0, 0)) for due in ("2025-03-02", "2025-04-13")]
    past = past_of(*rising, *falling)
    ann, bea, new = (chances(RankModel(), player(name, "2025-11-09"), past) for name in ("Ann", "Bea", "Cleo"))
    assert (ann > new).all()
    assert (new > bea).all()


@pytest.mark.parametrize("subtype", ["vaccine", "fide_elo", "swimming"])
def test_change_is_likelier_with_a_longer_horizon(subtype: str) -> None:
    p = chances(RareChanges(), dataset_question("wikipedia", subtype, "x", "2025-10-26"))
    steps = np.diff(p)
    assert (steps < 0).all() if subtype == "swimming" else (steps > 0).all()


def test_rate_of_change_matches_a_value_computed_by_hand() -> None:
    """Two askings observed for 30 and 180 days, without and with a change: k = 1, years = 30/365 + 90/365."""
    first = dataset_question("wikipedia", "vaccine", "x", "2025-01-05")
    second = dataset_question("wikipedia", "vaccine", "y", "2025-01-05")
    past = past_of((first, (0, 0)), (second, (0, 0, 1, 1)))
    question = dataset_question("wikipedia", "vaccine", "z", "2025-10-26", days=(365,))
    years = PRIOR_YEARS + (30 + 90) / 365
    expected = 1 - (1 + 1 / years) ** -(PRIOR_EVENTS + 1)
    assert chances(RareChanges(), question, past) == pytest.approx([expected])


def test_unbroken_record_counts_as_no_change() -> None:
    past = past_of(
        *[(dataset_question("wikipedia", "swimming", f"s{i}", "2025-01-05"), (1, 1, 1, 1)) for i in range(40)]
    )
    question = dataset_question("wikipedia", "swimming", "z", "2025-10-26")
    assert (chances(RareChanges(), question, past) > chances(RareChanges(), question)).all()


def test_models_cover_only_their_own_templates() -> None:
    assert RankModel().covers(player("Ann", "2025-11-09"))
    assert not RankModel().covers(dataset_question("wikipedia", "vaccine", "x", "2025-11-09"))
    assert not RareChanges().covers(player("Ann", "2025-11-09"))
