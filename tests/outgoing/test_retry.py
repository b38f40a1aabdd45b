"""The rule for retries."""

import random
from math import inf

import pytest

from foretell.outgoing.retry import RetryRule, may_pass


@pytest.mark.parametrize("seed", range(20))
def test_pauses_double_up_to_the_longest_and_are_drawn_from_their_upper_half(seed: int) -> None:
    rule, rng = RetryRule(attempts=10_000, first_pause=0.5, longest_pause=8.0), random.Random(seed)
    for attempt, most in ((1, 0.5), (2, 1.0), (4, 4.0), (5, 8.0), (6, 8.0), (9_999, 8.0)):
        pause = rule.pause(attempt, rng=rng)
        assert pause is not None
        assert most / 2 <= pause <= most


def test_wait_requested_by_the_server_is_kept_with_jitter() -> None:
    rule = RetryRule(attempts=3, first_pause=0.5, longest_pause=1.0, longest_wait=60.0)
    waits = [rule.pause(1, asked=30.0, rng=random.Random(seed)) for seed in range(50)]
    assert all(wait is not None and 30.0 <= wait <= 30.5 for wait in waits)
    assert len(set(waits)) > 10, "clients that were rejected together do not retry together"
    assert rule.pause(1, asked=0.0) == 0.0


def test_no_retry_after_the_limits() -> None:
    rule = RetryRule(attempts=3, first_pause=1.0, longest_wait=60.0)
    assert [rule.pause(attempt, asked=0.0) for attempt in (1, 2, 3, 4)] == [0.0, 0.0, None, None]
    assert (rule.pause(1, asked=60.1), rule.pause(1, left=0.4)) == (None, None)
    assert rule.pause(1, asked=59.0, left=58.0) is None
    assert rule.pause(1, asked=59.0, left=inf) is not None
    assert RetryRule(attempts=1).pause(1) is None


def test_statuses_worth_a_retry() -> None:
    assert {status for status in range(100, 600) if may_pass(status)} == {408, 425, 429, *range(500, 600)}
