import pytest

from foretell.forecasters.base_rates.outside_model import RateClass, RateTable, rate_table


def test_each_class_is_shrunk_to_the_wider_one() -> None:
    table = RateTable(counts={"fred": (30.0, 90.0), "fred/all": (30.0, 90.0)})
    source = (30 + 10 * 0.5) / 100
    assert table.rate(RateClass(source="fred", subtype="all")) == pytest.approx((30 + 10 * source) / 100)
    assert table.rate(RateClass(source="fred", subtype="new")) == pytest.approx(source)
    assert table.rate(RateClass(source="elsewhere")) is None


def test_counts_of_zero_have_a_low_rate_of_rises(bank_of) -> None:
    common = {"kind": "dataset", "source": "acled", "subtype": "increase", "resolves": "2025-02-04"}
    rows = [
        common | {"size": 0.0, "outcome": 0.0, "known_on": f"2025-02-{1 + i % 28:02d}", "id": f"a{i}"}
        for i in range(60)
    ]
    rows += [
        common | {"size": 5.0, "outcome": float(i % 2), "known_on": f"2025-02-{1 + i % 28:02d}", "id": f"b{i}"}
        for i in range(60)
    ]
    table = rate_table(bank_of(rows))
    zero, more = (
        table.rate(RateClass(source="acled", subtype="increase", size=size, days=30.0)) for size in (0.0, 7.0)
    )
    assert zero < 0.1 < 0.4 < more < 0.6


def test_market_questions_and_unresolved_ones_are_not_counted(bank_of) -> None:
    rows = [{"outcome": 1.0, "known_on": "2025-02-01"}, {"kind": "dataset", "source": "fred"}]
    assert rate_table(bank_of(rows)).counts == {}


def test_values_of_a_round_with_only_zeros_count_as_missing(bank_of) -> None:
    common = {"kind": "dataset", "source": "acled", "subtype": "increase", "known_on": "2025-03-01", "size": 0.0}
    quiet = [common | {"id": f"a{i}", "due": "2025-01-05", "outcome": 0.0} for i in range(20)]
    nonzero = [common | {"id": "loud", "due": "2025-01-05", "outcome": 1.0, "size": 3.0}]
    all_zero = [common | {"id": f"b{i}", "due": "2025-01-19", "outcome": 1.0} for i in range(20)]
    zero = RateClass(source="acled", subtype="increase", size=0.0).levels[-1]
    assert rate_table(bank_of(quiet + nonzero + all_zero)).counts[zero][0] == 0.0
    assert zero not in rate_table(bank_of(all_zero)).counts
