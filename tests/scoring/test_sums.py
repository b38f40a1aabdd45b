import numpy as np
import pytest
from tests.metrics.plain import sides
from tests.scoring.made_standings import DAY, START, arena, one_asking, several

from foretell.metrics import METRICS, Bettor, MetricRows, Resampling, bin_codes, payoff, width_edges
from foretell.questions import InputError
from foretell.scoring import ScoredArena, arena_leaderboard_groups, rebalanced_scores
from foretell.scoring.arena_leaderboard import arena_leaderboard
from foretell.scoring.event_sums import bins_of


def line(scored, name="a"):
    return next(one for one in arena_leaderboard(scored) if one.entry.name == name)


def test_an_event_counts_once_however_many_markets_it_has():
    standings = several(one_asking("x", p=(0.5, 0.5, 0.5, 0.5), outcome=(0, 0, 0, 1)), one_asking("y", p=(1.0,)))
    found = line(ScoredArena.of(standings))
    assert found.scores["brier"].estimate == pytest.approx(0.125)
    assert found.by_market["brier"].estimate == pytest.approx(0.2)
    assert found.scores["brier_index"].estimate == pytest.approx(100 * (1 - np.sqrt(0.125)))
    assert (found.events, found.markets) == (2, 5)


def moments_of_two():
    late = one_asking("x", at=START + DAY, p=(0.9,))
    return several(one_asking("x", p=(0.5,)), late, one_asking("y", p=(0.8,)))


def test_an_event_counts_once_as_the_mean_over_its_moments():
    found = line(ScoredArena.of(moments_of_two()))
    assert found.scores["brier"].estimate == pytest.approx(((0.25 + 0.01) / 2 + 0.04) / 2)
    assert found.moments == 3


def test_the_mean_is_over_moments_that_were_answered():
    askings = [one_asking("x", p=(0.5,)), one_asking("x", at=START + DAY, p=(0.9,))]
    standings = several(*askings)
    standings.p[0, 0] = np.nan
    found = line(ScoredArena.of(standings))
    assert found.scores["brier"].estimate == pytest.approx(0.01)
    assert found.completion == 0.5


@pytest.mark.parametrize("quoted", [1.0, 0.6])
def test_every_number_is_that_of_evaluate(quoted):
    """With one moment per event both ways of weighing are plain weights of rows."""
    scored = ScoredArena.of(arena(events=60, moments=1, quoted=quoted))
    s = scored.arena
    size = np.bincount(s.markets.moment)
    priced = np.isfinite(s.markets.price)
    n_priced = np.bincount(s.markets.moment, priced)
    for name in ("good", "bad", "base rate"):
        found, p = line(scored, name), s.row(name)
        rows = MetricRows.of(p, s.markets.outcome, 1 / size[s.markets.moment])
        for metric in ("brier", "brier_index", "log", "ece"):
            assert found.scores[metric].estimate == pytest.approx(METRICS[metric].population(rows))
            plain = MetricRows.of(p, s.markets.outcome)
            assert found.by_market[metric].estimate == pytest.approx(METRICS[metric].population(plain))
        q, o, yes, no = (v[priced] for v in (p, s.markets.outcome, s.markets.yes_ask, s.markets.no_ask))
        weight = 1 / n_priced[s.markets.moment][priced]
        for gamma in (0.0, 0.5, 1.0):
            paid = payoff(q, o, yes, no, Bettor(gamma=gamma))
            name = f"return_gamma{gamma:g}" if gamma else "return"
            assert found.scores[name].estimate == pytest.approx(np.average(paid, weights=weight))
            assert found.by_market[name].estimate == pytest.approx(paid.mean())
        on_yes, on_no = sides(q, o, yes, no, weight)
        assert found.scores["yes_side"].estimate == pytest.approx(on_yes)
        assert found.scores["no_side"].estimate == pytest.approx(on_no)


def test_bins_are_those_of_evaluate():
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
                (one.events, one.scores["brier"].estimate) for g in groups for one in g.lines if one.entry.name == name
            ]
            mean = np.average([b for _, b in mine], weights=[n for n, _ in mine])
            assert mean == pytest.approx(line(scored, name).scores["brier"].estimate)


def test_lead_times_split_the_moments():
    scored = ScoredArena.of(arena(events=50, moments=3))
    groups = arena_leaderboard_groups(scored, "lead time")
    assert [group.name for group in groups] == ["12–24 h", "1–3 d"]
    assert sum(one.moments for g in groups for one in g.lines if one.entry.name == "good") == 150


def test_unknown_grouping_is_refused():
    with pytest.raises(InputError, match="cannot be grouped by 'colour'"):
        arena_leaderboard_groups(ScoredArena.of(arena(events=10)), "colour")


def test_nothing_resolved_is_said_so():
    standings = several(one_asking(outcome=(None,)))
    with pytest.raises(InputError, match=r"nothing .* has resolved"):
        ScoredArena.of(standings)


def test_rebalancing_by_hand():
    scored = ScoredArena.of(arena(events=100))
    groups = {
        g.name: {one.entry.name: one.scores["brier"].estimate for one in g.lines}
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


def test_intervals_hold_their_numbers_and_are_repeatable():
    standings = arena(events=80)
    first, second = arena_leaderboard(ScoredArena.of(standings)), arena_leaderboard(ScoredArena.of(standings))
    for a, b in zip(first, second, strict=True):
        assert a == b
        for interval in a.scores.values():
            assert interval.low - 1e-9 <= interval.estimate <= interval.high + 1e-9


def test_what_does_not_vary_has_no_width():
    half = line(ScoredArena.of(arena(events=400, moments=1)), "always 0.5").scores["brier"]
    assert (half.low, half.estimate, half.high) == (0.25, 0.25, 0.25)


def test_coverage_of_the_interval():
    """Over made-up arenas whose expected Brier score is known, 95 % intervals hold it about that often."""
    rng, hits, times = np.random.default_rng(0), 0, 60
    for seed in range(times):
        parts = [
            one_asking(f"e{i}", at=START + i * DAY, p=(float(p),), outcome=(int(rng.random() < p),))
            for i, p in enumerate(rng.random(120))
        ]
        scored = ScoredArena.of(several(*parts), resampling=Resampling(draws=300))
        drawn = scored.resample(columns=("brier", "weight")).draws_of(METRICS["brier"])
        found = drawn.intervals(scored.resampling)["a"]
        hits += found.low <= 1 / 6 <= found.high
        assert found.n_clusters == 120, seed
    assert 0.85 <= hits / times <= 1
