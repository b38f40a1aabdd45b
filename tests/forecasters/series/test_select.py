import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.forecasters.series.auto import Expectation, auto, choices
from foretell.forecasters.series.changes import walk
from foretell.forecasters.series.climatology import climatology
from foretell.forecasters.series.history import SeriesQuery

HORIZONS = np.array([7, 30, 90, 365, 3650], "m8[D]")
MODELS = {"walk": walk, "auto": auto}


def noise(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(n)


def daily(values: np.ndarray, start: str = "2015-01-01") -> np.ndarray:
    return np.datetime64(start) + np.arange(len(values)).astype("m8[D]")


@st.composite
def any_series(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Days and values of a random walk, white noise, steps or a constant, at common spacings."""
    n = draw(st.integers(1, 200))
    seed = draw(st.integers(0, 10_000))
    kind = draw(st.sampled_from(["walk", "white", "steps", "constant", "positive"]))
    moves = noise(n, seed)
    values = {
        "walk": np.cumsum(moves),
        "white": moves,
        "steps": np.cumsum(np.where(np.abs(moves) > 1.5, np.sign(moves) * 0.25, 0.0)),
        "constant": np.full(n, 3.5),
        "positive": np.exp(np.cumsum(0.02 * moves)),
    }[kind]
    spacing = draw(st.sampled_from(["D", "B", "W", "M", "Q", "Y"]))
    if spacing == "B":
        all_days = np.datetime64("2015-01-05") + np.arange(2 * n + 7).astype("m8[D]")
        return all_days[np.is_busday(all_days)][:n], values
    if spacing in "DW":
        return np.datetime64("2015-01-05") + np.arange(n) * np.timedelta64(1 if spacing == "D" else 7, "D"), values
    months = {"M": 1, "Q": 3, "Y": 12}[spacing]
    return (np.datetime64("1960-01", "M") + months * np.arange(n)).astype("M8[D]"), values


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
@given(series=any_series(), shift=st.floats(-5, 5), late=st.integers(0, 40))
@settings(max_examples=20)
def test_probabilities_are_valid_and_decrease_with_the_threshold(model, series, shift: float, late: int) -> None:
    days, values = series
    due = days[-1] + np.timedelta64(late, "D")
    thresholds = np.sort([values[-1], values[-1] + shift, values[-1] + 2 * shift])
    above = []
    for threshold in thresholds:
        chances = model(SeriesQuery(days, values, due, due + HORIZONS, float(threshold)))
        assert np.isfinite(chances.above).all()
        assert ((chances.above >= 0) & (chances.above <= 1) & (chances.below >= 0) & (chances.below <= 1)).all()
        assert chances.above + chances.below + chances.atom == pytest.approx(1.0)
        above.append(chances.above)
    assert (np.diff(above, axis=0) <= 1e-12).all()


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
@given(series=any_series(), cut=st.floats(0.1, 0.95), seed=st.integers(0, 1000))
@settings(max_examples=15)
def test_later_values_do_not_change_forecasts(model, series, cut: float, seed: int) -> None:
    days, values = series
    known = max(1, int(cut * len(days)))
    due = days[known - 1]
    other = np.concatenate([values[:known], 100 * noise(len(values) - known, seed)])
    whole, changed = (
        model(SeriesQuery(days, values, due, due + HORIZONS)),
        model(SeriesQuery(days, other, due, due + HORIZONS)),
    )
    cut_off = model(SeriesQuery(days[:known], values[:known], due, due + HORIZONS))
    assert whole.above.tolist() == changed.above.tolist() == cut_off.above.tolist()


def test_same_question_twice_gives_the_same_answer() -> None:
    values = np.cumsum(noise(900, 3))
    due = daily(values)[-1]
    assert auto(SeriesQuery(daily(values), values, due, due + HORIZONS)).above.tolist() == (
        auto(SeriesQuery(daily(values), values, due, due + HORIZONS)).above.tolist()
    )


def test_constant_series_is_expected_to_stay_constant() -> None:
    values = np.full(3000, 5.0)
    due = daily(values)[-1]
    chances = auto(SeriesQuery(daily(values), values, due, due + HORIZONS))
    assert (chances.above[:3] < 0.2).all()
    assert chances.atom[0] > 0.9
    far = auto(SeriesQuery(daily(values), values, due, due + HORIZONS, 4.0))
    assert (far.above > 0.9).all()


def test_policy_rate_mostly_stays_constant() -> None:
    # Moves once in 60 days: after a week it is almost surely the same, after a year almost surely not.
    values = np.repeat(np.cumsum(np.where(noise(60, 1) > 0, 0.25, -0.25)), 60)
    due = daily(values)[-1]
    chances = walk(SeriesQuery(daily(values), values, due, due + HORIZONS))
    assert chances.atom[0] == pytest.approx(1 - 7 / 60, abs=0.06)
    assert chances.atom[3] < 0.2


def test_monthly_series_cannot_change_before_its_next_value() -> None:
    days = (np.datetime64("2000-01", "M") + np.arange(120)).astype("M8[D]")
    chances = auto(
        SeriesQuery(
            days, np.cumsum(noise(120, 4)), np.datetime64("2009-12-05"), np.array(["2009-12-20", "2010-01-02"], "M8[D]")
        )
    )
    assert (chances.above[0], chances.atom[0]) == (0.0, 1.0)
    assert 0.1 < chances.above[1] < 0.9


def test_irregular_series_may_change_after_its_shortest_past_interval() -> None:
    gaps = np.tile([10, 20, 30, 40], 30)
    days = np.datetime64("2000-01-01") + np.concatenate([[0], np.cumsum(gaps)])
    due = days[-1] + np.timedelta64(12, "D")
    within = due + np.array([3, 12], "m8[D]")
    chances = auto(SeriesQuery(days, np.cumsum(noise(len(days), 4)), due, within))
    assert chances.atom[0] == 1.0, "after twelve days without a value, none came before the twentieth"
    assert chances.atom[1] == pytest.approx(2 / 3, abs=0.02), "one in three came by the 24th day"


def test_spread_of_a_walk_grows_with_the_root_of_the_horizon() -> None:
    from scipy.special import ndtri

    values = np.cumsum(noise(3000, 5))
    due = daily(values)[-1]
    chances = walk(SeriesQuery(daily(values), values, due, due + HORIZONS[[0, 2]], float(values[-1] + 5)))
    z = ndtri(chances.above)
    assert z[0] / z[1] == pytest.approx(np.sqrt(90 / 7), rel=0.35)


def test_white_noise_returns_to_its_mean() -> None:
    values = noise(2500, 6)
    values[-1] = 2.0
    due = daily(values)[-1]
    chosen = choices(SeriesQuery(daily(values), values, due, due + HORIZONS[:3]))
    assert all(c.above < 0.15 for c in chosen)


def test_seasonal_series_are_forecast_by_their_season() -> None:
    when = np.arange("2008-01-01", "2018-01-15", dtype="M8[D]")
    values = 10 * np.sin(2 * np.pi * when.astype(int) / 365.2425) + noise(len(when), 7)
    due = when[-1]
    peak, chosen = (
        due + np.array([90, 365], "m8[D]"),
        choices(SeriesQuery(when, values, due, due + np.array([90, 365], "m8[D]"))),
    )
    assert chosen[0].weights["season"] > 0.95
    assert chosen[0].above > 0.97
    assert climatology(SeriesQuery(when, values, due, peak)).above[0] > 0.97
    assert 0.05 < chosen[1].above < 0.95


@pytest.mark.parametrize("interval", [1, 7])
def test_patterns_within_the_month_are_used(interval: int) -> None:
    when = np.arange("2010-01-03", "2018-01-28", dtype="M8[D]")
    last = (when + np.timedelta64(10, "D")).astype("M8[M]") != when.astype("M8[M]")
    wandering = np.cumsum(noise(len(when), 12)) * 0.1
    values, days = (wandering + 3.0 * last)[::interval], when[::interval]
    due = days[-1] - np.timedelta64(7, "D")
    before, after = np.datetime64("2018-01-28"), np.datetime64("2018-02-04")
    rising = auto(SeriesQuery(days, values, due, np.array([before]))).above[0]
    falling = auto(SeriesQuery(days, values, before, np.array([after]))).above[0]
    assert rising > 0.7
    assert falling < 0.3
    # Without such a pattern the forecast stays near one half.
    quiet = wandering[::interval]
    assert abs(auto(SeriesQuery(days, quiet, due, np.array([before]))).above[0] - 0.5) < 0.12


def test_persistent_changes_are_expected_to_continue() -> None:
    moves = np.convolve(noise(4000, 8), np.ones(120) / 120, mode="valid")
    values = np.cumsum(moves)
    days = daily(values)
    losses = []
    for end in range(1500, len(values) - 31, 90):
        p = auto(SeriesQuery(days, values, days[end], days[end] + HORIZONS[1:2])).above[0]
        losses.append((p - (values[end + 30] > values[end])) ** 2)
    assert np.mean(losses) < 0.18


def test_unpredictable_series_is_forecast_near_one_half() -> None:
    values = np.cumsum(noise(2500, 9))
    due = daily(values)[-1]
    assert np.abs(auto(SeriesQuery(daily(values), values, due, due + HORIZONS)).above - 0.5).max() < 0.12


@pytest.mark.parametrize("kind", ["a random walk", "trending", "mean-reverting", "seasonal"])
def test_series_is_named_by_the_model_that_predicted_it(kind: str) -> None:
    n = 4000
    values = {
        "a random walk": np.cumsum(noise(n, 21)),
        "trending": np.cumsum(0.15 + noise(n, 22)),
        "mean-reverting": noise(n, 23),
        "seasonal": 10 * np.sin(2 * np.pi * np.arange(n) / 365.2425) + noise(n, 24),
    }[kind]
    due = daily(values)[-1]
    assert choices(SeriesQuery(daily(values), values, due, due + HORIZONS[:1]))[0].series_class == kind


def test_prices_are_expected_to_drift_upward_over_years() -> None:
    values = np.exp(np.cumsum(0.01 * noise(30, 10)))
    due = daily(values)[-1]
    week, year = auto(
        SeriesQuery(daily(values), values, due, due + HORIZONS[[0, 3]]), expected=Expectation(drift=0.3)
    ).above
    flat = auto(SeriesQuery(daily(values), values, due, due + HORIZONS[[0, 3]])).above
    assert week - flat[0] < year - flat[1]
    assert year > flat[1] + 0.05


def test_climatology_of_a_short_record_raises_an_error() -> None:
    values = noise(400, 11)
    due = daily(values)[-1]
    with pytest.raises(ValueError, match="three years"):
        climatology(SeriesQuery(daily(values), values, due, due + HORIZONS))


def test_leap_day_gives_valid_probabilities() -> None:
    values = np.cumsum(noise(2000, 12))
    days = np.datetime64("2024-02-29") - np.arange(2000)[::-1].astype("m8[D]")
    chances = auto(
        SeriesQuery(days, values, np.datetime64("2024-02-29"), np.array(["2025-02-28", "2028-02-29"], "M8[D]"))
    )
    assert ((chances.above > 0.2) & (chances.above < 0.8)).all()


@pytest.mark.parametrize("step", [7, 31])
def test_unpublished_reference_value_is_not_replaced_by_the_last_value(step: int) -> None:
    """Noise around a mean falls back after a known high value, but not after an unknown one."""
    gap = np.timedelta64(step, "D")
    days = np.datetime64("2025-10-25") - gap * np.arange(600)[::-1]
    values = np.random.default_rng(2).normal(100.0, 5.0, len(days))
    values[-1] = 112.0
    due, end = np.datetime64("2025-10-26"), np.datetime64("2025-10-26") + gap
    on_time = choices(SeriesQuery(days, values, due, np.array([end])))[0]
    late = choices(SeriesQuery(days - gap, values, due, np.array([end])))[0]
    assert on_time.above < 0.2
    assert 0.35 < late.above < 0.65
    # A fixed threshold does not depend on the date of the last value.
    fixed = choices(SeriesQuery(days - gap, values, due, np.array([end]), threshold=112.0))[0]
    assert fixed.above < 0.2
