"""The rules on generated leaks and clean texts, beside no filter at all."""

import pytest

pytest.importorskip("babel", reason="writes dates in many languages")

from tests.tools.adversarial.cases import all_cases
from tests.tools.adversarial.measure import BEGIN, END, PAGE, stopped, table


def test_rules_alone_stop_nine_leaks_in_ten_and_hardly_a_clean_text() -> None:
    leaks = [case for case in all_cases() if case.must == "drop"]
    clean = [case for case in all_cases() if case.must == "keep"]
    assert len(leaks) > 2_000
    assert len(clean) > 1_000
    for tuned in (True, False):
        part = [case for case in leaks if case.tuned is tuned]
        assert sum(map(stopped, part)) >= 0.9 * len(part)
    assert sum(map(stopped, clean)) <= 0.02 * len(clean)


def test_the_table_in_the_docs_is_what_was_measured() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.split(BEGIN)[1].split(END)[0].strip() == table(all_cases())
