from datetime import date

import pytest

from foretell.questions.value_age import ValueAge


@pytest.mark.parametrize(
    ("age", "reason", "stale"),
    [(3, "no key", False), (4, "no key", True), (3, "", False), (40, "", False)],
)
def test_a_value_is_stale_if_it_is_older_than_usual_and_its_source_could_not_be_read(
    age: int, reason: str, stale: bool
) -> None:
    value = ValueAge(series="fred/DGS10", value=4.2, day=date(2026, 11, 5), age=age, usual=3, reason=reason)
    assert value.stale is stale
    assert ("because" in value.in_words) is stale
