"""Indices and paired differences: by hand where possible, and with questions as clusters."""

from dataclasses import replace

import numpy as np
import pytest
from tests.studies.made_trials import made

from foretell.forecasters.combine.rows import UNKNOWN_DAY, Examples
from foretell.metrics import Resampling
from foretell.scoring.baselines import OVERALL
from foretell.scoring.verdict import Verdict
from foretell.studies.scores import (
    brier_of,
    groups_of,
    index_of,
    mean_gain,
    mean_index,
    paired_gains,
    paired_verdict,
    rule_score_table,
    rule_scores,
)

QUICK = Resampling(draws=200)


def gap(first: np.ndarray, second: np.ndarray, examples: Examples, group: str = OVERALL) -> Verdict:
    verdict = paired_verdict(first, second, examples, ("first", "second"), group, QUICK)
    assert verdict is not None
    return verdict


@pytest.fixture
def examples() -> Examples:
    return made()


def test_overall_is_the_mean_of_the_kinds_and_not_of_the_targets():
    examples = made(rounds=1, size=4)
    score = np.where(examples.rows.kind == "market", 0.04, 0.25)
    assert index_of(score, examples, "market") == pytest.approx(80)
    assert index_of(score, examples, "dataset") == pytest.approx(50)
    assert index_of(score, examples) == pytest.approx(65), "six targets, four of them dataset: their mean would be 57.7"


def test_scores_hold_indices_and_verdicts_against_the_reference(examples: Examples):
    raw, half = brier_of(examples.rows.raw, examples), np.full(len(examples), 0.25)
    first, second = rule_scores({"raw": raw, "half": half}, examples, "raw", QUICK)
    assert first.verdicts == {}
    assert set(second.verdicts) == {"market", "dataset", OVERALL}
    for group in ("market", "dataset", OVERALL):
        assert first.index[group].estimate == pytest.approx(index_of(raw, examples, group))
        expected = index_of(half, examples, group) - index_of(raw, examples, group)
        verdict = second.verdicts[group]
        assert (verdict.first, verdict.second, verdict.metric) == ("half", "raw", "brier_index")
        assert verdict.diff == pytest.approx(expected)
        assert verdict.low < verdict.diff < verdict.high
        assert verdict.first_score.estimate - verdict.second_score.estimate == pytest.approx(verdict.diff)
    assert second.index[OVERALL].low <= 50 <= second.index[OVERALL].high


def test_a_question_asked_again_is_one_cluster(examples: Examples):
    apart = replace(examples, known_on=np.datetime64("2025-06-01") + np.arange(len(examples)))
    rule_score = rule_scores({"raw": brier_of(apart.rows.raw, apart)}, apart, "raw", QUICK)[0]
    assert rule_score.index["market"].n_clusters == len(
        np.unique(examples.rows.question[examples.rows.kind == "market"])
    )
    assert rule_score.index["market"].n_clusters == 3 * 20 - 2, "the first market of each of three rounds is the same"


def test_days_that_questions_share_are_resampled_too(examples: Examples):
    market = examples.take(examples.rows.kind == "market")
    rule_score = rule_scores({"raw": brier_of(market.rows.raw, market)}, market, "raw", QUICK)[0]
    assert rule_score.index[OVERALL].n_clusters == len(np.unique(market.known_on)) == 3 * 5, (
        "days on which it was known"
    )


def test_unknown_days_are_not_shared_days(examples: Examples):
    market = examples.take(examples.rows.kind == "market")
    some = replace(market, known_on=np.where(np.arange(len(market)) == 0, UNKNOWN_DAY, market.known_on))
    rule_score = rule_scores({"raw": brier_of(some.rows.raw, some)}, some, "raw", QUICK)[0]
    assert rule_score.index[OVERALL].n_clusters == len(np.unique(some.rows.question)), "as on a board"


def test_rule_that_leaves_a_kind_out_has_no_overall_index(examples: Examples):
    scores = {"raw": brier_of(examples.rows.raw, examples), "crowd": brier_of(examples.rows.price, examples)}
    market_rule = rule_scores(scores, examples, "raw", QUICK)[1]
    assert set(market_rule.index) == {"market"}
    assert market_rule.completion == pytest.approx(np.mean(examples.rows.kind == "market"))
    entry = rule_score_table("t", [market_rule], groups_of(examples)).rows[0]
    assert entry.values[2:5] == (None, None, None)


def test_single_kind_has_only_the_overall_group(examples: Examples):
    market = examples.take(examples.rows.kind == "market")
    assert groups_of(market) == (OVERALL,)
    rule_score = rule_scores({"raw": brier_of(market.rows.raw, market)}, market, "raw", QUICK)[0]
    assert rule_score.index[OVERALL].estimate == pytest.approx(index_of(brier_of(market.rows.raw, market), market))


def test_weights_change_scores(examples: Examples):
    score = brier_of(examples.rows.raw, examples)
    doubled = replace(examples, weight=np.where(score > 0.25, 2.0, 1.0))
    assert index_of(score, doubled) < index_of(score, examples)
    assert rule_scores({"raw": score}, doubled, "raw", QUICK)[0].index[OVERALL].estimate == pytest.approx(
        index_of(score, doubled)
    )


def test_mean_gain_is_the_mean_of_the_gains(examples: Examples):
    rng = np.random.default_rng(0)
    first, second = ([rng.random(len(examples)) for _ in range(3)] for _ in range(2))
    for group in groups_of(examples):
        each = [gap(a, b, examples, group).diff for a, b in zip(first, second, strict=True)]
        assert mean_gain(first, second, examples, QUICK, group=group).diff == pytest.approx(np.mean(each))


def test_mean_gain_compares_each_pair_on_what_both_answered(examples: Examples):
    rng = np.random.default_rng(0)
    a, b, c, d = (rng.random(len(examples)) for _ in range(4))
    a[:5] = np.nan
    gaps = [gap(*pair, examples).diff for pair in ((a, b), (c, d))]
    assert mean_gain([a, c], [b, d], examples, QUICK).diff == pytest.approx(np.mean(gaps))
    with pytest.raises(ValueError, match="cannot be paired"):
        mean_gain([a, c], [b], examples, QUICK)


def test_mean_index_matches_hand_computation():
    assert mean_index(np.array([[1.0, 4.0, 4.0, 4.0], [0.0, 1.0, 4.0, 4.0]])).tolist() == [25.0, 75.0]
    assert mean_index(np.array([1.0, 0.0, 4.0, 0.0])) == 50.0, "a rule without weight does not count"


def test_swapped_difference_changes_sign(examples: Examples):
    rng = np.random.default_rng(1)
    a, b = rng.random(len(examples)), rng.random(len(examples))
    first, second = gap(a, b, examples), gap(b, a, examples)
    turned = second.swapped()
    assert (first.diff, first.low, first.high) == pytest.approx((turned.diff, turned.low, turned.high))
    assert (turned.first, turned.second) == ("second", "first")
    assert turned.says == first.says


def test_gains_over_configurations(examples: Examples):
    before = {"x": np.full(len(examples), 0.25), "y": np.full(len(examples), 0.25)}
    after = {"x": np.full(len(examples), 0.16), "y": np.full(len(examples), 0.36)}
    gains = paired_gains(after, before, {"x": examples, "y": examples}, QUICK)
    assert gains.mean.diff == pytest.approx(0)
    assert gains.worst[0] == "y"
    assert gains.worst[1].diff == pytest.approx(-10)
    assert (gains.better, gains.clearly_worse) == (1, 1)
    assert "1 of 2 lose by more than chance" in str(gains)
