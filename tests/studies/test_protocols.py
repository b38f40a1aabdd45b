"""Data leakage under each protocol: changing data that a rule must not use does not change its forecasts."""

from dataclasses import replace

import numpy as np
import pytest
from tests.studies.made_trials import grown, made

from foretell.forecasters.combine.rows import Examples
from foretell.operations.requests.scoring import CALIBRATION_METHODS
from foretell.questions.errors import InputError
from foretell.studies.configurations import (
    METHODS,
    PROTOCOLS,
    REFITS,
    baseline_forecasts,
    build_method,
    fit_under_protocol,
)

ROUNDS = 4


@pytest.fixture(scope="module")
def examples() -> Examples:
    return grown(made(rounds=ROUNDS, size=24), 2.0)


def flipped(examples: Examples, which: np.ndarray) -> Examples:
    return replace(examples, outcome=np.where(which, 1 - examples.outcome, examples.outcome))


def test_the_command_offers_all_methods():
    assert set(METHODS) == set(CALIBRATION_METHODS)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_method_answers_under_every_protocol(name: str, protocol, examples: Examples):
    under_protocol = fit_under_protocol(build_method(name), examples, protocol)
    assert np.isfinite(under_protocol.p).all()
    assert ((under_protocol.p >= 0) & (under_protocol.p <= 1)).all()
    assert (under_protocol.past <= len(examples)).all()


@pytest.mark.parametrize("name", METHODS)
def test_later_outcomes_do_not_change_past_only_forecasts(name: str, examples: Examples):
    days = np.unique(examples.rows.due)
    for day in days:
        early = examples.rows.due <= day
        later = flipped(examples, examples.known_on >= day)
        before, after = (fit_under_protocol(build_method(name), e, "past only").p for e in (examples, later))
        np.testing.assert_array_equal(before[early], after[early])


@pytest.mark.parametrize("name", METHODS)
def test_left_out_question_does_not_change_its_own_rule(name: str, examples: Examples):
    mine = examples.rows.question == examples.rows.question[7]
    before, after = (
        fit_under_protocol(build_method(name), e, "question out").p for e in (examples, flipped(examples, mine))
    )
    np.testing.assert_allclose(before[mine], after[mine], atol=1e-8)


def test_event_out_still_learns_from_other_dates_of_the_question(examples: Examples):
    """As in the paper, the other date of the same series is in the training set."""
    at = int(np.flatnonzero(examples.rows.kind == "dataset")[0])
    other = (examples.rows.question == examples.rows.question[at]) & (np.arange(len(examples)) != at)
    before, after = (
        fit_under_protocol(build_method("platt"), e, "event out").p[at] for e in (examples, flipped(examples, other))
    )
    assert before != after


def test_past_counts_earlier_examples(examples: Examples):
    past = fit_under_protocol(build_method("platt"), examples, "past only").past
    first = examples.rows.due == examples.rows.due.min()
    assert (past[first] == 0).all()
    due = examples.rows.due[-1]
    assert past[-1] == np.sum((examples.known_on < due) & (examples.rows.due < due))


def test_rare_refits_over_many_rounds_use_only_the_past():
    examples = made(rounds=REFITS + 6, size=4)
    later = flipped(examples, examples.known_on >= np.median(examples.rows.due.astype(int)).astype("M8[D]"))
    early = examples.rows.due <= np.median(examples.rows.due.astype(int)).astype("M8[D]")
    before, after = (fit_under_protocol(build_method("platt"), e, "past only") for e in (examples, later))
    np.testing.assert_array_equal(before.p[early], after.p[early])
    assert len(np.unique(before.past)) <= REFITS


def test_first_round_without_a_past(examples: Examples):
    """Learned rules leave the first round unchanged; the default already uses the price."""
    first = examples.rows.due == examples.rows.due.min()
    raw = examples.rows.raw[first]
    for name in ("platt", "hierarchical", "isotonic", "beta", "shrink", "bayes-shrink", "paper"):
        np.testing.assert_array_equal(fit_under_protocol(build_method(name), examples, "past only").p[first], raw)
    blended = fit_under_protocol(build_method("default"), examples, "past only").p[first]
    market = examples.rows.kind[first] == "market"
    apart = np.abs(blended - examples.rows.price[first])[market] < np.abs(raw - examples.rows.price[first])[market]
    assert apart.all()


def test_baseline_forecasts(examples: Examples):
    baselines = baseline_forecasts(examples)
    assert list(baselines) == ["market price", "base rate", "market price, else base rate", "always 0.5"]
    np.testing.assert_array_equal(baselines["market price"], examples.rows.price)
    dataset = examples.rows.kind == "dataset"
    np.testing.assert_array_equal(baselines["base rate"][dataset], 0.45)
    market = examples.take(~dataset)
    assert list(baseline_forecasts(market)) == ["market price", "base rate", "always 0.5"]
    first = market.rows.due == market.rows.due.min()
    assert (baseline_forecasts(market)["base rate"][first] == 0.5).all(), (
        "counted from the past, of which there is none yet"
    )


def test_unknown_method_is_refused():
    with pytest.raises(InputError, match="no combiner is called 'plat'"):
        build_method("plat")
