"""Costs of pieces of work, one after the other and side by side."""

from dataclasses import asdict, replace

from foretell.questions.forecast import Cost

FIRST = Cost(dollars=0.5, reused=0.125, input_tokens=10, output_tokens=3, seconds=4.0, calls=2, unpriced=1, uncounted=5)
SECOND = Cost(dollars=0.25, reused=0.5, input_tokens=7, output_tokens=11, seconds=1.0, calls=3, unpriced=2, uncounted=1)


def test_consecutive_costs_add_up_in_every_field():
    assert asdict(FIRST + SECOND) == {name: value + asdict(SECOND)[name] for name, value in asdict(FIRST).items()}


def test_concurrent_costs_take_as_long_as_the_longest():
    assert Cost.side_by_side([FIRST, SECOND]) == replace(FIRST + SECOND, seconds=4.0)
    assert Cost.side_by_side([SECOND]) == SECOND
    assert Cost.side_by_side([]) == Cost()
