import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.questions.forecast import Categorical, Numeric, common_ends

steps = st.lists(st.tuples(st.floats(0.01, 5), st.floats(0, 1)), min_size=2, max_size=12)


def numeric(pairs: list[tuple[float, float]]) -> Numeric:
    x, total, cdf = [0.0], sum(m for _, m in pairs) + 1e-9, [0.0]
    for width, mass in pairs:
        x.append(x[-1] + width)
        cdf.append(min(1.0, cdf[-1] + mass / total))
    return Numeric(x=tuple(x), cdf=tuple(cdf))


@given(pairs=steps, a=st.floats(-1, 60), b=st.floats(-1, 60))
def test_cdf_is_monotone_and_bounded(pairs, a, b):
    d = numeric(pairs)
    assert 0 <= d.below(min(a, b)) <= d.below(max(a, b)) <= 1


def test_a_tiny_share_is_not_lost_at_the_last_point():
    d = Numeric(x=(0.0, 1.0, 2.0), cdf=(0.0, 7e-121, 7e-121))
    assert 0 < d.below(1.0) <= d.below(2.0) <= d.below(3.0)


@given(pairs=steps, level=st.floats(0.001, 0.999))
def test_quantile_inverts_the_cdf(pairs, level):
    d = numeric(pairs)
    if level <= d.cdf[-1]:
        assert d.below(d.quantile(level)) == pytest.approx(level, abs=1e-9)


STATED = Numeric.from_quantiles({0.05: 60, 0.1: 64, 0.25: 70, 0.5: 75, 0.75: 81, 0.9: 88, 0.95: 93})


def test_tails_fall_by_half_per_distance_of_the_last_quantiles():
    assert STATED.above(93) == pytest.approx(0.05)
    assert STATED.above(98) == pytest.approx(0.025)
    assert STATED.above(100) == pytest.approx(0.0189, abs=1e-4)
    assert STATED.above(150) < 1e-4
    assert STATED.below(56) == pytest.approx(0.025)
    assert STATED.below(-1e6) == 0
    assert STATED.quantile(0.975) == pytest.approx(98)
    assert STATED.quantile(0.025) == pytest.approx(56)


def test_a_range_cuts_tails_and_keeps_the_stated_quantiles():
    cut = STATED.within(58, 100)
    assert (cut.x, cut.cdf) == (STATED.x, STATED.cdf)
    assert (cut.below(58), cut.above(100), cut.above(200)) == (0, 0, 0)
    assert 0 < cut.above(98) < STATED.above(98)
    assert cut.quantile(1) == 100
    assert cut.quantile(0) == 58
    narrow = STATED.within(70, 81)
    assert (narrow.below(70), narrow.below(75), narrow.below(81)) == pytest.approx((0, 0.5, 1))
    assert STATED.within(None, None) == STATED
    assert STATED.within(1000, 2000) == STATED, "nothing of it is in the range"


def test_several_distributions_end_where_the_last_of_them_ends():
    exact, cut = Numeric(x=(0, 10), cdf=(0, 1)), STATED.within(58, 100)
    assert common_ends([exact]) == (0, 10)
    assert common_ends([exact, cut]) == (0, 100)
    assert common_ends([exact, STATED]) == (None, None), "the tails of one never end"


def test_never_is_above_every_date():
    never = Numeric.from_quantiles({0.1: 1.0, 0.5: 2.0, 0.9: 5.0}, never=0.4)
    assert never.below(2.0) == pytest.approx(0.3)
    assert never.above(5.0) == pytest.approx(0.4 + 0.06)
    assert never.above(1e9) == pytest.approx(0.4)
    assert never.quantile(0.7) == float("inf")
    with pytest.raises(ValueError, match="never"):
        Numeric(x=(0, 1), cdf=(0, 0.5), never=1)


@given(pairs=steps, low=st.floats(-5, 20), width=st.floats(0.1, 30))
def test_nothing_of_a_cut_distribution_is_outside(pairs, low, width):
    d = numeric(pairs)
    cut = d.within(low, low + width)
    if cut != d:
        assert cut.below(low - 1e-6) == pytest.approx(0, abs=1e-9)
        assert cut.above(low + width + 1e-6) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    "bad", [{"x": (0, 0), "cdf": (0, 1)}, {"x": (0, 1), "cdf": (0.5, 0.4)}, {"x": (0,), "cdf": (0,)}]
)
def test_invalid_distributions_are_rejected(bad):
    with pytest.raises(ValueError):
        Numeric(**bad)


def test_options_must_sum_to_one_unless_normalised():
    with pytest.raises(ValueError, match="sum"):
        Categorical(p={"a": 0.5, "b": 0.6})
    assert Categorical(p={"a": 1, "b": 3}, normalise=True).p == {"a": 0.25, "b": 0.75}
