import numpy as np
import pytest
from tests.metrics.plain import sides
from tests.scoring.made_standings import DAY, START, arena, one_asking, several

from foretell.metrics import METRICS, Bettor, MetricRows, Resampling, bin_codes, payoff, width_edges
from foretell.questions.errors import InputError
from foretell.scoring.arena_leaderboard import (
    ScoredArena,
    arena_leaderboard,
    arena_leaderboard_groups,
    read_shares,
    rebalanced_scores,
)
from foretell.scoring.event_sums import bins_of


def line(scored, name="a"):
    return next(row for row in arena_leaderboard(scored) if row.entry.name == name)


def test_an_event_counts_once_however_many_markets_it_has():
    standings = several(one_asking("x", p=(0.5, 0.5, 0.5, 0.5), outcome=(0, 0, 0, 1)), one_asking("y", p=(1.0,)))
    row = line(ScoredArena.of(standings))
    assert row.scores["brier"].estimate == pytest.approx(0.125)
    assert row.by_market["brier"].estimate == pytest.approx(0.2)
    assert row.scores["brier_index"].estimate == pytest.approx(100 * (1 - np.sqrt(0.125)))
    assert (row.events, row.markets) == (2, 5)


def two_events_with_three_forecast_times():
    late = one_asking("x", at=START + DAY, p=(0.9,))
    return several(one_asking("x", p=(0.5,)), late, one_asking("y", p=(0.8,)))


def test_an_event_counts_once_as_the_mean_over_its_forecast_times():
    row = line(ScoredArena.of(two_events_with_three_forecast_times()))
    assert row.scores["brier"].estimate == pytest.approx(((0.25 + 0.01) / 2 + 0.04) / 2)
    assert row.forecast_times == 3


def test_the_mean_is_over_forecast_times_that_were_answered():
    askings = [one_asking("x", p=(0.5,)), one_asking("x", at=START + DAY, p=(0.9,))]
    standings = several(*askings)
    standings.p[0, 0] = np.nan
    row = line(ScoredArena.of(standings))
    assert row.scores["brier"].estimate == pytest.approx(0.01)
    assert row.completion == 0.5


@pytest.mark.parametrize("quoted", [1.0, 0.6])
def test_arena_metrics_equal_the_population_metrics(quoted):
    """With one forecast time per event, both weightings are weights of rows."""
    scored = ScoredArena.of(arena(events=60, forecast_times=1, quoted=quoted))
    s = scored.arena
    size = np.bincount(s.markets.forecast_time)
    priced = np.isfinite(s.markets.price)
    n_priced = np.bincount(s.markets.forecast_time, priced)
    for name in ("good", "bad", "base rate"):
        row, p = line(scored, name), s.row(name)
        rows = MetricRows.of(p, s.markets.outcome, 1 / size[s.markets.forecast_time])
        for metric in ("brier", "brier_index", "log", "ece"):
            assert row.scores[metric].estimate == pytest.approx(METRICS[metric].population(rows))
            plain = MetricRows.of(p, s.markets.outcome)
            assert row.by_market[metric].estimate == pytest.approx(METRICS[metric].population(plain))
        q, o, yes, no = (v[priced] for v in (p, s.markets.outcome, s.markets.yes_ask, s.markets.no_ask))
        weight = 1 / n_priced[s.markets.forecast_time][priced]
        for gamma in (0.0, 0.5, 1.0):
            paid = payoff(q, o, yes, no, Bettor(gamma=gamma))
            name = f"return_gamma{gamma:g}" if gamma else "return"
            assert row.scores[name].estimate == pytest.approx(np.average(paid, weights=weight))
            assert row.by_market[name].estimate == pytest.approx(paid.mean())
        on_yes, on_no = sides(q, o, yes, no, weight)
        assert row.scores["yes_side"].estimate == pytest.approx(on_yes)
        assert row.scores["no_side"].estimate == pytest.approx(on_no)


def test_bins_equal_those_of_the_calibration_module():
    p = np.concatenate([np.arange(11) / 10, np.nextafter(np.arange(11) / 10, 0), np.random.default_rng(0).random(1000)])
    p = np.append(p, np.minimum(np.nextafter(np.arange(11) / 10, 2), 1))
    assert bins_of(p).tolist() == bin_codes(p, width_edges(10)).tolist()


def test_groups_add_up_to_the_whole():
    scored = ScoredArena.of(arena(events=90, drop=0.1))
    for by in ("category", "platform"):
        groups = arena_leaderboard_groups(scored, by)
        assert sum(group.events for group in groups) == 90
        for name in scored.arena.names:
            mine = [
                (row.events, row.scores["brier"].estimate) for g in groups for row in g.lines if row.entry.name == name
            ]
            mean = np.average([b for _, b in mine], weights=[n for n, _ in mine])
            assert mean == pytest.approx(line(scored, name).scores["brier"].estimate)


def test_lead_times_split_the_forecast_times():
    scored = ScoredArena.of(arena(events=50, forecast_times=3))
    groups = arena_leaderboard_groups(scored, "lead time")
    assert [group.name for group in groups] == ["12–24 h", "1–3 d"]
    assert sum(row.forecast_times for g in groups for row in g.lines if row.entry.name == "good") == 150


def test_unknown_grouping_is_refused():
    with pytest.raises(InputError, match="cannot be grouped by 'colour'"):
        arena_leaderboard_groups(ScoredArena.of(arena(events=10)), "colour")


def test_an_arena_without_outcomes_is_an_error():
    standings = several(one_asking(outcome=(None,)))
    with pytest.raises(InputError, match=r"nothing .* has resolved"):
        ScoredArena.of(standings)


def test_rebalanced_scores_match_a_hand_computation():
    scored = ScoredArena.of(arena(events=100))
    groups = {
        g.name: {row.entry.name: row.scores["brier"].estimate for row in g.lines}
        for g in arena_leaderboard_groups(scored, "category")
    }
    half, equal = rebalanced_scores(scored)
    assert equal.scores["good"].estimate == pytest.approx(np.mean([g["good"] for g in groups.values()]))
    assert half.scores["good"].estimate == pytest.approx(
        sum(half.shares[name] * g["good"] for name, g in groups.items())
    )
    assert max(half.shares.values()) == 0.5
    own = rebalanced_scores(scored, {"sports only": {"Sports": 1.0}})
    assert own[0].scores["bad"].estimate == pytest.approx(groups["Sports"]["bad"])
    with pytest.raises(InputError, match="'Chess'"):
        rebalanced_scores(scored, {"x": {"Chess": 1.0}})
    (table5,) = rebalanced_scores(scored, {"moderate": read_shares("sports=0.5,other=0.5")})
    others = scored.resample(~scored.arena.events.category.mask("Sports")).draws_of(METRICS["brier"]).estimate
    rest = float(others[scored.arena.names.index("bad")])
    assert table5.scores["bad"].estimate == pytest.approx((groups["Sports"]["bad"] + rest) / 2)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Sports=0.5", "sum to 1"),
        ("Sports=1.5,other=-0.5", "sum to 1"),
        ("Sports=half,other=0.5", "a number"),
        ("Sports=0.5,Sports=0.5", "each category once"),
        ("1", "each category once"),
    ],
)
def test_shares_that_cannot_be_used_are_refused(text: str, problem: str):
    with pytest.raises(InputError, match=problem):
        read_shares(text)


def test_intervals_contain_their_estimates_and_are_repeatable():
    standings = arena(events=80)
    first, second = arena_leaderboard(ScoredArena.of(standings)), arena_leaderboard(ScoredArena.of(standings))
    for a, b in zip(first, second, strict=True):
        assert a == b
        for interval in a.scores.values():
            assert interval.low - 1e-9 <= interval.estimate <= interval.high + 1e-9


def test_constant_scores_have_intervals_of_zero_width():
    half = line(ScoredArena.of(arena(events=400, forecast_times=1)), "always 0.5").scores["brier"]
    assert (half.low, half.estimate, half.high) == (0.25, 0.25, 0.25)


def test_coverage_of_the_interval():
    """Over made-up arenas whose expected Brier score is known, 95 % intervals contain it about that often."""
    rng, hits, times = np.random.default_rng(0), 0, 60
    for seed in range(times):
        parts = [
            one_asking(f"e{i}", at=START + i * DAY, p=(float(p),), outcome=(int(rng.random() < p),))
            for i, p in enumerate(rng.random(120))
        ]
        scored = ScoredArena.of(several(*parts), resampling=Resampling(draws=300))
        drawn = scored.resample(columns=("brier", "weight")).draws_of(METRICS["brier"])
        interval = drawn.intervals(scored.resampling)["a"]
        hits += interval.low <= 1 / 6 <= interval.high
        assert interval.n_clusters == 120, seed
    assert 0.85 <= hits / times <= 1
