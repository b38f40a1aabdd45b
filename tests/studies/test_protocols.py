"""What a rule may have seen: changing what it must not know may not change what it says."""

from dataclasses import replace

import numpy as np
import pytest
from tests.studies.made_trials import grown, made

from foretell.forecasters.combine import Examples
from foretell.operations.requests.scoring import CALIBRATION_METHODS
from foretell.questions import InputError
from foretell.studies import build_method
from foretell.studies.configurations import METHODS, PROTOCOLS, REFITS, baseline_forecasts, fit_under_protocol

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
    found = fit_under_protocol(build_method(name), examples, protocol)
    assert np.isfinite(found.p).all()
    assert ((found.p >= 0) & (found.p <= 1)).all()
    assert (found.past <= len(examples)).all()


@pytest.mark.parametrize("name", METHODS)
def test_past_only_knows_no_outcome_that_came_later(name: str, examples: Examples):
    days = np.unique(examples.rows.due)
    for day in days:
        early = examples.rows.due <= day
        later = flipped(examples, examples.known_on >= day)
        before, after = (fit_under_protocol(build_method(name), e, "past only").p for e in (examples, later))
        np.testing.assert_array_equal(before[early], after[early])


@pytest.mark.parametrize("name", METHODS)
def test_a_question_left_out_does_not_teach_its_own_rule(name: str, examples: Examples):
    mine = examples.rows.question == examples.rows.question[7]
    before, after = (
        fit_under_protocol(build_method(name), e, "question out").p for e in (examples, flipped(examples, mine))
    )
    np.testing.assert_allclose(before[mine], after[mine], atol=1e-8)


def test_leaving_single_events_out_lets_other_dates_of_the_question_teach(examples: Examples):
    """What the paper does: the other date of the same series is in the training set."""
    at = int(np.flatnonzero(examples.rows.kind == "dataset")[0])
    other = (examples.rows.question == examples.rows.question[at]) & (np.arange(len(examples)) != at)
    before, after = (
        fit_under_protocol(build_method("platt"), e, "event out").p[at] for e in (examples, flipped(examples, other))
    )
    assert before != after


def test_past_counts(examples: Examples):
    found = fit_under_protocol(build_method("platt"), examples, "past only").past
    first = examples.rows.due == examples.rows.due.min()
    assert (found[first] == 0).all()
    due = examples.rows.due[-1]
    assert found[-1] == np.sum((examples.known_on < due) & (examples.rows.due < due))


def test_many_rounds_are_refitted_a_few_times_and_still_know_only_the_past():
    examples = made(rounds=REFITS + 6, size=4)
    later = flipped(examples, examples.known_on >= np.median(examples.rows.due.astype(int)).astype("M8[D]"))
    early = examples.rows.due <= np.median(examples.rows.due.astype(int)).astype("M8[D]")
    before, after = (fit_under_protocol(build_method("platt"), e, "past only") for e in (examples, later))
    np.testing.assert_array_equal(before.p[early], after.p[early])
    assert len(np.unique(before.past)) <= REFITS


def test_before_there_is_a_past(examples: Examples):
    """Learnt rules leave the first round as it is; the default already leans on the price."""
    first = examples.rows.due == examples.rows.due.min()
    raw = examples.rows.raw[first]
    for name in ("platt", "hierarchical", "isotonic", "beta", "shrink", "bayes-shrink", "paper"):
        np.testing.assert_array_equal(fit_under_protocol(build_method(name), examples, "past only").p[first], raw)
    blended = fit_under_protocol(build_method("default"), examples, "past only").p[first]
    market = examples.rows.kind[first] == "market"
    apart = np.abs(blended - examples.rows.price[first])[market] < np.abs(raw - examples.rows.price[first])[market]
    assert apart.all()


def test_yardsticks(examples: Examples):
    found = baseline_forecasts(examples)
    assert list(found) == ["crowd price", "base rate", "crowd, else base rate", "always 0.5"]
    np.testing.assert_array_equal(found["crowd price"], examples.rows.price)
    dataset = examples.rows.kind == "dataset"
    np.testing.assert_array_equal(found["base rate"][dataset], 0.45)
    market = examples.take(~dataset)
    assert list(baseline_forecasts(market)) == ["crowd price", "base rate", "always 0.5"]
    first = market.rows.due == market.rows.due.min()
    assert (baseline_forecasts(market)["base rate"][first] == 0.5).all(), (
        "counted from the past, of which there is none yet"
    )


def test_an_unknown_method():
    with pytest.raises(InputError, match="no combiner is called 'plat'"):
        build_method("plat")
