"""Any numeric forecast becomes cumulative probabilities that Metaculus accepts, with the same median."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fakes.samples import SampleMetaculusScale
from foretell.forecasters.agent.answer_format import read_quantiles
from foretell.practice.markets.metaculus import refusal
from foretell.questions.forecast import Numeric
from foretell.questions.question import NumericRange
from foretell.questions.thresholds import LEVELS, date_of
from foretell.scoring.metaculus_cdf import cdf_problems, continuous_cdf, greatest_step, least_step, share_outside

WIDE = NumericRange(minimum=0, maximum=100)


@st.composite
def numerics(draw: st.DrawFn) -> Numeric:
    """Draw a distribution with few or many points, flat parts, jumps, open ends and numbers of any size."""
    n = draw(st.integers(2, 9))
    size, shift = 10.0 ** draw(st.integers(-6, 9)), draw(st.floats(-1e6, 1e6))
    steps = draw(st.lists(st.floats(1e-3, 10.0), min_size=n - 1, max_size=n - 1))
    x = shift + size * np.concatenate([[0.0], np.cumsum(steps)])
    cdf = sorted(draw(st.lists(st.floats(0, 1), min_size=n, max_size=n)))
    cdf[0] = draw(st.sampled_from([0.0, cdf[0]]))
    cdf[-1] = draw(st.sampled_from([1.0, cdf[-1]]))
    points = dict(zip(x.tolist(), cdf, strict=True))
    if len(points) < 2:
        points = {0.0: 0.0, 1.0: 1.0}
    return Numeric(x=tuple(points), cdf=tuple(points.values()))


@st.composite
def scales(draw: st.DrawFn) -> NumericRange:
    low, width = draw(st.floats(-1e5, 1e5)), 10.0 ** draw(st.integers(-2, 7))
    zero = draw(st.sampled_from([None, None, low - width / 50, low + 2 * width]))
    return NumericRange(
        minimum=low,
        maximum=low + width,
        zero_point=zero,
        open_lower=draw(st.booleans()),
        open_upper=draw(st.booleans()),
        outcomes=draw(st.sampled_from([200, 200, 1, 2, 11, 37, 100, 365])),
    )


def refused(cdf: list[float], scale: NumericRange) -> str:
    """Return the problems that the fake, which has its own rules, finds."""
    metaculus_scale = SampleMetaculusScale(
        low=scale.minimum,
        high=scale.maximum,
        zero=scale.zero_point,
        open_lower=scale.open_lower,
        open_upper=scale.open_upper,
        cells=scale.outcomes,
    )
    return refusal(
        {"id": 1, "type": "numeric", **metaculus_scale.fields("numeric")}, {"question": 1, "continuous_cdf": cdf}
    )


@given(numerics(), scales())
@settings(max_examples=150)
def test_any_distribution_yields_a_cdf_that_the_rules_accept(distribution: Numeric, scale: NumericRange):
    cdf = continuous_cdf(distribution, scale)
    assert refused(cdf, scale) == ""
    assert cdf_problems(cdf, scale) == ()


@st.composite
def described(draw: st.DrawFn) -> tuple[Numeric, NumericRange]:
    """Draw a distribution whose points are within the range, or anywhere beyond open ends."""
    scale = draw(scales())
    n = draw(st.integers(2, 8))
    width = scale.maximum - scale.minimum
    low = scale.minimum + width * (-1 if scale.open_lower else 0.01)
    high = scale.maximum + width * (1 if scale.open_upper else -0.01)
    shares = sorted(draw(st.lists(st.floats(0, 1), min_size=n, max_size=n)))
    x = list(dict.fromkeys(low + (high - low) * share for share in shares))
    if len(x) < 2:
        x = [low, high]
    levels = sorted([draw(st.floats(0, 0.5)), *draw(st.lists(st.floats(0.5, 1), min_size=1, max_size=n))])
    cdf = np.interp(np.linspace(0, 1, len(x)), np.linspace(0, 1, len(levels)), levels)
    return Numeric(x=tuple(x), cdf=tuple(cdf)), scale


@given(described())
@settings(max_examples=150)
def test_median_stays_in_its_bin(case: tuple[Numeric, NumericRange]):
    distribution, scale = case
    cdf = np.array(continuous_cdf(distribution, scale))
    edges = scale.edges()
    # If the middle is flat, every value in it is a median.
    median = distribution.quantile(0.5)
    middle = [x for x, c in zip(distribution.x, distribution.cdf, strict=True) if abs(c - 0.5) <= 1e-6]
    first, last = min([median, *middle]), max([median, *middle])
    before, after = np.searchsorted(edges, first, "left") - 1, np.searchsorted(edges, last, "right")
    # Half of the mass does not fit between the median and a closed end that is too near.
    room = 0.5 / greatest_step(scale.outcomes)
    assume(scale.open_lower or before >= room)
    assume(scale.open_upper or scale.outcomes - after >= room)
    assert before < 0 or cdf[min(before, scale.outcomes)] <= 0.5 + 1e-6
    assert after > scale.outcomes or cdf[max(after, 0)] >= 0.5 - 1e-6


def test_certain_forecast_is_widened_evenly_around_its_value():
    cdf = continuous_cdf(Numeric(x=(49.74, 49.76), cdf=(0, 1)), WIDE)
    steps = np.diff(cdf)
    around = int(49.75 / 0.5)
    assert steps[around - 2 : around + 3] == pytest.approx([0.2] * 5, abs=0.01)
    assert np.interp(0.5, cdf, WIDE.edges()) == pytest.approx(49.75, abs=0.01)


def test_half_of_the_mass_stays_on_either_side_of_the_median():
    cdf = continuous_cdf(Numeric(x=(10, 12, 14), cdf=(0, 0.5, 1)), WIDE)
    assert cdf[24] == pytest.approx(0.5, abs=1e-9)
    assert min(b - a for a, b in pairwise(cdf)) >= 0.00005


def test_tails_beyond_stated_quantiles_end_at_a_closed_bound_and_pass_an_open_one():
    stated = Numeric.from_quantiles({0.1: 20.0, 0.5: 50.0, 0.9: 80.0})
    closed = continuous_cdf(stated, WIDE)
    opened = continuous_cdf(stated, NumericRange(minimum=0, maximum=100, open_lower=True, open_upper=True))
    assert (closed[0], closed[-1]) == (0.0, 1.0)
    assert closed[40] == pytest.approx(0.1, abs=0.005)
    assert closed[160] == pytest.approx(0.9, abs=0.005)
    # An exponential through 0.5 at 50 and 0.1 at 80 leaves 0.1·5^(−2/3) beyond 100.
    assert 1 - opened[-1] == pytest.approx(0.1 * 5 ** (-20 / 30), rel=0.01)


def test_mass_beyond_a_closed_bound_is_conditioned_away():
    cdf = continuous_cdf(Numeric(x=(-100, 100), cdf=(0, 1)), WIDE)
    assert cdf[100] == pytest.approx(0.5, abs=1e-6)
    assert share_outside(Numeric(x=(-100, 100), cdf=(0, 1)), WIDE) == pytest.approx(0.5)


@pytest.mark.parametrize(("x", "bin"), [((-30.0, -20.0), 0), ((200.0, 300.0), 199)])
def test_distribution_outside_a_closed_range_gathers_at_its_end(x: tuple[float, float], bin: int):
    cdf = continuous_cdf(Numeric(x=x, cdf=(0, 1)), WIDE)
    assert refused(cdf, WIDE) == ""
    assert int(np.argmax(np.diff(cdf))) in range(bin - 4, bin + 5)


def test_logarithmic_and_discrete_scales_are_supported():
    log = NumericRange(minimum=1, maximum=10_000, zero_point=0)
    cdf = continuous_cdf(Numeric.from_quantiles({0.05: 50.0, 0.5: 100.0, 0.95: 200.0}), log)
    assert cdf[100] == pytest.approx(0.5, abs=1e-9)
    dice = NumericRange(minimum=0.5, maximum=6.5, outcomes=6)
    assert np.diff(continuous_cdf(Numeric(x=(0.5, 6.5), cdf=(0, 1)), dice)) == pytest.approx([1 / 6] * 6)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda cdf: cdf[:-1], "200 cumulative probabilities instead of 201"),
        (lambda cdf: [*cdf[:50], cdf[49], *cdf[51:]], "a step of 0 is less than 5e-05"),
        (lambda cdf: [0.0, *[0.5 + c / 2 for c in cdf[1:]]], "is more than 0.2"),
        (lambda cdf: [0.01, *cdf[2:], 1.0], "below a closed range is not 0"),
        (lambda cdf: [0.0, *[c * 0.99 for c in cdf[1:]]], "above a closed range is not 0"),
    ],
)
def test_violated_rules_are_named_by_foretell_and_the_fake(spoil, message: str):
    cdf = spoil(list(np.linspace(0, 1, 201)))
    assert any(message in problem for problem in cdf_problems(cdf, WIDE))
    assert refused(cdf, WIDE)


def test_open_ends_need_some_mass_outside():
    scale = NumericRange(minimum=0, maximum=1, open_lower=True, open_upper=True)
    assert len(cdf_problems(list(np.linspace(0, 1, 201)), scale)) == 2
    assert refused(list(np.linspace(0, 1, 201)), scale)


def test_step_limits_scale_with_the_number_of_bins():
    assert (least_step(200), greatest_step(200)) == (0.00005, 0.2)
    assert (least_step(10), greatest_step(10)) == (0.001, 1.0)


def test_edges_of_a_logarithmic_range_follow_the_platforms_map():
    scale = NumericRange(minimum=2.0, maximum=500.0, zero_point=-10.0)
    edges = np.array(scale.edges())
    ratio = (500.0 + 10.0) / (2.0 + 10.0)
    place = (np.log((edges - 2.0) * (ratio - 1) + 498.0) - np.log(498.0)) / np.log(ratio)
    assert place == pytest.approx(np.linspace(0, 1, 201))
    assert (edges[0], edges[-1]) == (2.0, 500.0)
    assert (np.diff(edges) > 0).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"minimum": 1, "maximum": 1},
        {"minimum": 0, "maximum": 1, "zero_point": 0.5},
        {"minimum": 0, "maximum": 1, "outcomes": 0},
    ],
)
def test_invalid_ranges_are_rejected(wrong: dict[str, float]):
    with pytest.raises(ValueError):
        NumericRange(**wrong)


# 1500 forecasts as an agent may write them, checked against an independent implementation of the platform's rules in
# whole multiples of 1e-10.


def broken_rules(cdf: list[float], scale: NumericRange) -> list[str]:
    """Return the published rules that a list violates."""
    n, unit = scale.outcomes, 10**10
    values = [round(value * unit) for value in cdf]
    least, most = 10 * round(0.01 / n * 10**9), unit * 2 * 200 // 10 / n
    problems = [] if len(values) == n + 1 else [f"{len(values)} values for {n} cells"]
    problems += [f"{a} has more than ten digits" for a, b in zip(cdf, values, strict=True) if abs(a * unit - b) > 1e-4]
    problems += [f"a step of {b - a}" for a, b in pairwise(values) if not least <= b - a <= most]
    low, high = values[0], values[-1]
    problems += [] if (low >= unit // 1000 if scale.open_lower else low == 0) else [f"{low} at the lower end"]
    room = unit - unit // 1000
    problems += [] if (high <= room if scale.open_upper else high == unit) else [f"{high} at the upper end"]
    return problems


SHAPES: dict[str, Callable[[np.random.Generator, int], npt.NDArray[np.float64]]] = {
    "normal": lambda rng, n: rng.normal(0.5, rng.uniform(0.001, 0.5), n),
    "skewed": lambda rng, n: rng.lognormal(-2, rng.uniform(0.2, 2), n),
    "heavy tails": lambda rng, n: 0.5 + 0.05 * rng.standard_t(1.5, n),
    "even": lambda rng, n: rng.uniform(rng.uniform(-1, 0.4), rng.uniform(0.6, 2), n),
    "two bumps": lambda rng, n: np.where(rng.random(n) < 0.3, rng.normal(0.1, 0.02, n), rng.normal(0.9, 0.05, n)),
    "sure": lambda rng, n: rng.uniform(0, 1) + rng.normal(0, 1e-7, n),
    "at the lower end": lambda rng, n: np.abs(rng.normal(0, 0.01, n)),
    "at the upper end": lambda rng, n: 1 - np.abs(rng.normal(0, 0.01, n)),
    "outside": lambda rng, n: rng.choice([-3.0, 4.0]) + rng.normal(0, 0.1, n),
}
"""Draw values as shares of the range."""


def random_scale(rng: np.random.Generator) -> NumericRange:
    ends: dict[str, Any] = {"open_lower": bool(rng.random() < 0.5), "open_upper": bool(rng.random() < 0.5)}
    kind = rng.choice(["number", "log", "discrete", "date"])
    if kind == "date":
        first = datetime(2026, 1, 1, tzinfo=UTC).timestamp() + rng.uniform(0, 1e8)
        return NumericRange(minimum=first, maximum=first + rng.uniform(1e5, 2e9), dates=True, **ends)
    if kind == "discrete":
        values, step = int(rng.integers(2, 200)), rng.choice([1.0, 0.5, 1000.0])
        return NumericRange(minimum=-step / 2, maximum=step * (values - 0.5), outcomes=values, whole=True, **ends)
    low = rng.uniform(-1e3, 1e3) * 10.0 ** rng.integers(-3, 6)
    width = 10.0 ** rng.uniform(-2, 8)
    zero = low - width * 10.0 ** rng.uniform(-4, 1) if kind == "log" else None
    return NumericRange(minimum=low, maximum=low + width, zero_point=zero, **ends)


def stated(rng: np.random.Generator, scale: NumericRange) -> Numeric:
    """Return quantiles as a model writes them: rounded, as dates, or as whole numbers with duplicates."""
    draws = SHAPES[str(rng.choice(list(SHAPES)))](rng, 100)
    values = scale.minimum + (scale.maximum - scale.minimum) * np.quantile(draws, list(LEVELS.values()))
    if scale.dates:
        quantiles: dict[str, Any] = {
            key: date_of(round(max(value, 0.0)) + place)
            for place, (key, value) in enumerate(zip(LEVELS, values, strict=True))
        }
    elif scale.whole:
        step = (scale.maximum - scale.minimum) / scale.outcomes
        quantiles = {key: float(np.round(value / step) * step) for key, value in zip(LEVELS, values, strict=True)}
    else:
        quantiles = {key: float(value) for key, value in zip(LEVELS, values, strict=True)}
    return read_quantiles(quantiles, dates=scale.dates, ties=scale.whole)


def test_random_forecasts_follow_the_published_rules():
    rng = np.random.default_rng(20261115)
    count = near = 0
    kinds = Counter[tuple[bool, bool, bool, bool, bool]]()
    while count < 1500:
        scale = random_scale(rng)
        try:
            distribution = stated(rng, scale)
        except ValueError:  # Two quantiles are equal after rounding, which the model would have to correct.
            continue
        cdf = continuous_cdf(distribution, scale)
        assert broken_rules(cdf, scale) == [], (distribution, scale)
        count += 1
        kinds[scale.dates, scale.whole, scale.zero_point is not None, scale.open_lower, scale.open_upper] += 1
        # What is sent says what was stated: within the range, half lies below the median, give or take two cells. What
        # was stated beyond a closed end cannot be sent.
        edges = np.array(scale.edges())
        bin = int(np.searchsorted(edges, distribution.quantile(0.5))) - 1
        inside = 5 <= bin < scale.outcomes - 5 and share_outside(distribution, scale) < 1e-3
        if scale.outcomes > 20 and inside:
            near += 1
            assert cdf[bin - 2] <= 0.5 <= cdf[bin + 3], (distribution, scale)
    assert len(kinds) == 16, "numbers, logarithmic ones, whole ones and dates, each with both ends open and closed"
    assert min(kinds.values()) >= 50
    assert near > 400
