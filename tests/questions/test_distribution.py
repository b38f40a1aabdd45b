import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.questions import Categorical, Numeric

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


@given(pairs=steps, level=st.floats(0.001, 0.999))
def test_quantile_inverts_the_cdf(pairs, level):
    d = numeric(pairs)
    if level <= d.cdf[-1]:
        assert d.below(d.quantile(level)) == pytest.approx(level, abs=1e-9)


def test_open_tails_keep_their_mass():
    d = Numeric(x=(0, 10), cdf=(0.1, 0.8))
    assert d.below(-1) == 0
    assert d.below(0) == 0.1
    assert d.above(10) == pytest.approx(0.2)


@pytest.mark.parametrize(
    "bad", [{"x": (0, 0), "cdf": (0, 1)}, {"x": (0, 1), "cdf": (0.5, 0.4)}, {"x": (0,), "cdf": (0,)}]
)
def test_broken_distributions_are_refused(bad):
    with pytest.raises(ValueError):
        Numeric(**bad)


def test_options_must_sum_to_one_unless_asked_to_normalise():
    with pytest.raises(ValueError, match="sum"):
        Categorical(p={"a": 0.5, "b": 0.6})
    assert Categorical(p={"a": 1, "b": 3}, normalise=True).p == {"a": 0.25, "b": 0.75}
