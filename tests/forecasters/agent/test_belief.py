"""The belief: evidence adds up, sources must exist, and numbers are read in one way or not at all."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.forecasters.agent import AnswerFormat, Clamp, starting_belief
from foretell.forecasters.agent.belief import belief_schema, read_statement
from foretell.models import schema_errors
from foretell.questions import (
    EXCLUSIVITIES,
    BeliefRevised,
    Categorical,
    Numeric,
    NumericRange,
    Question,
    Target,
    instant,
    scaled,
)
from foretell.submit.metaculus import continuous_cdf


def form(*ids, **more):
    targets = tuple(Target(id=id) for id in ids or ("yes",))
    return AnswerFormat.of(Question(id="q", source="own", text="?", due="2025-10-26", targets=targets, **more))


def number_of(*targets):
    asked = tuple(Target(id=id) for id in targets)
    return Question(id="n", source="own", text="How many?", due="2025-10-26", targets=asked, subtype="numeric")


def revised(belief, said, at=None, sources=(), step=1):
    at = at or form()
    return belief.revise(read_statement(said, at), at, step=step, sources=sources)


def claim(text, source=""):
    return {"claim": text, "source_id": source}


def test_evidence_accumulates_until_it_is_retracted():
    belief = starting_belief(form())
    belief, _ = revised(belief, {"p": 0.4, "evidence_for": [claim("A", "s1")]}, sources=("s1",))
    belief, notes = revised(belief, {"p": 0.5, "evidence_against": [claim("B", "s1")]}, sources=("s1",))
    assert [item.claim for item in belief.evidence_for] == ["A"]
    assert [(item.id, item.claim) for item in belief.evidence_against] == [("e2", "B")]
    assert "recorded e2" in notes
    belief, notes = revised(belief, {"p": 0.5, "retract": ["e1", "e7"]})
    assert belief.evidence_for == ()
    assert "nothing to retract under e7" in notes


def test_a_claim_stated_again_counts_once_and_ids_are_not_used_twice():
    belief, _ = revised(
        starting_belief(form()), {"p": 0.4, "evidence_for": [claim("The vote is set.", "s1")]}, sources=("s1",)
    )
    belief, _ = revised(belief, {"p": 0.4, "evidence_for": [claim("the vote  is set", "s1")]}, sources=("s1",))
    assert len(belief.evidence_for) == 1
    belief, _ = revised(belief, {"p": 0.4, "retract": ["e1"], "evidence_for": [claim("Other")]})
    assert [item.id for item in belief.evidence_for] == ["e2"]


def test_sources_that_do_not_exist_are_stripped_recorded_and_told(desk, say, think):
    made_up = [claim("Trust me.", "search_9_result_9"), claim("It says so.", "question")]
    desk.run(
        [
            say("web_search", {"query": "a"}, belief=think(0.4, evidence_for=made_up)),
            say("submit", {"p": 0.4, "reason": "r"}, belief=think(0.4)),
        ]
    )
    first = desk.of(BeliefRevised)[0].belief
    assert [item["source_id"] for item in first["evidence_for"]] == ["", "question"]
    assert first["unknown_sources"] == ["search_9_result_9"]
    assert "no result has the id search_9_result_9" in desk.requests[1].messages[-1].text


def test_an_unreadable_number_keeps_the_old_one():
    belief, _ = revised(starting_belief(form()), {"p": 0.4})
    belief, notes = revised(belief, {"p": 40})
    assert belief.p == {"yes": 0.4}
    assert "40" in notes[0]


def test_half_of_the_dates_do_not_form_a_belief_but_revise_one():
    dates = form("a", "b")
    belief, _ = revised(starting_belief(dates), {"p": {"a": 0.2}}, dates)
    assert not belief.formed
    belief, _ = revised(belief, {"p": {"a": 0.2, "b": 0.3}}, dates)
    belief, notes = revised(belief, {"p": {"b": 0.6}}, dates)
    assert belief.p == {"a": 0.2, "b": 0.6}
    assert notes == ("p of a is missing",)


def test_exclusive_options_are_scaled_and_both_versions_kept():
    options = form("x", "y", "z", exclusivity="exactly one")
    belief, _ = revised(starting_belief(options), {"p": {"x": 0.6, "y": 0.6, "z": 0.8}}, options)
    assert belief.p == pytest.approx({"x": 0.3, "y": 0.3, "z": 0.4})
    assert belief.stated == {"x": 0.6, "y": 0.6, "z": 0.8}
    zero, notes = revised(starting_belief(options), {"p": {"x": 0, "y": 0, "z": 0}}, options)
    assert not zero.formed
    assert "cannot all have p = 0" in notes[0]


def test_start_is_the_crowd_before_the_prior_before_an_even_start():
    assert starting_belief(form(), crowd={"yes": 0.2}, prior={"yes": 0.3}).p == {"yes": 0.2}
    assert starting_belief(form(), prior={"yes": 0.3}).p == {"yes": 0.3}
    assert starting_belief(form("x", "y", exclusivity="exactly one")).p == {"x": 0.5, "y": 0.5}
    assert not starting_belief(form()).formed


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=40).filter(lambda p: sum(p) > 0),
    st.floats(0, 0.1),
    st.sampled_from(EXCLUSIVITIES),
)
def test_clamped_probabilities_are_bounded_and_fit_each_other(p, low, exclusivity):
    clamp = Clamp(low=low, high=1 - low)
    clamped = clamp.apply(scaled({str(i): x for i, x in enumerate(p)}, exclusivity), exclusivity)
    assert all(0 <= x <= 1 for x in clamped.values())
    if exclusivity == "exactly one":
        assert sum(clamped.values()) == pytest.approx(1)
    elif exclusivity == "at most one":
        assert sum(clamped.values()) <= 1 + 1e-9
    else:
        assert all(low <= x <= 1 - low for x in clamped.values())


@pytest.mark.parametrize("ids", [("yes",), ("a", "b"), ("odd id!", "other")])
@given(st.data())
def test_what_is_written_is_read_back_and_fits_the_schema(ids, data):
    at = form(*ids)
    p = {id: data.draw(st.floats(0, 1)) for id in ids}
    written = at.write(p)
    assert at.read({"p": written}).p == p
    assert schema_errors(written, at.schema()) == []


def test_odd_target_ids_get_keys_every_provider_takes():
    at = form("Trump & Co", "Other (%)")
    assert list(at.targets) == ["target_1", "target_2"]
    assert "Trump & Co" in str(at.schema())


def test_options_come_with_their_distribution(desk, say, think):
    desk.question = Question(
        id="o",
        source="own",
        text="?",
        due="2025-10-26",
        targets=(Target(id="x"), Target(id="y")),
        exclusivity="exactly one",
    )
    forecast = desk.run([say("submit", {"p": {"x": 0.9, "y": 0.9}, "reason": "r"}, belief=think({"x": 0.5, "y": 0.5}))])
    assert forecast.p == pytest.approx({"x": 0.5, "y": 0.5})
    assert forecast.distribution == Categorical(p={"x": 0.5, "y": 0.5})


def test_numeric_questions_are_answered_by_quantiles(desk, say, think):
    desk.question = number_of(">10", "<=5")
    quantiles = {"q05": 0, "q10": 2, "q25": 5, "q50": 8, "q75": 10, "q90": 20, "q95": 30}
    forecast = desk.run([say("submit", {"quantiles": quantiles, "reason": "r"})])
    assert forecast.p == pytest.approx({">10": 0.25, "<=5": 0.25})
    assert isinstance(forecast.distribution, Numeric)
    assert forecast.distribution.quantile(0.5) == 8
    request = desk.requests[0]
    assert "quantiles" in str(request.tools[-1].parameters["required"])


def test_quantiles_that_fall_are_sent_back(desk, say):
    desk.question = number_of(">10")
    bad = say("submit", {"quantiles": {"q10": 3, "q50": 2, "q90": 5}, "reason": "r"})
    good = say("submit", {"quantiles": {"q10": 1, "q50": 2, "q90": 5}, "reason": "r"})
    assert desk.run([bad, good]).p == {">10": 0.05}
    assert "larger than the one before" in desk.requests[1].messages[-1].text


def test_dates_are_asked_as_dates_and_kept_in_seconds(desk, say):
    days = [instant(day).timestamp() for day in ("2026-01-01", "2030-01-01")]
    scale = NumericRange(minimum=days[0], maximum=days[1], open_upper=True, dates=True)
    desk.question = replace(number_of(f">{instant('2027-01-01').timestamp():.0f}"), subtype="date", range=scale)
    levels = ("q05", "q10", "q25", "q50", "q75", "q90", "q95")
    months = ("2026-03", "2026-05", "2026-08", "2027-01", "2027-06", "2028-01", "2031-12")
    falling = dict(zip(levels, (f"{month}-01" for month in reversed(months)), strict=True))
    good = dict(zip(levels, (f"{month}-01" for month in months), strict=True)) | {"q95": "2031-12-01T12:00:00Z"}
    wrong = good | {"q50": "next year"}
    said = [say("submit", {"quantiles": one, "reason": "r"}) for one in (falling, wrong, good)]
    forecast = desk.run(said)
    assert list(forecast.p.values()) == [0.5]
    assert forecast.distribution.quantile(0.5) == instant("2027-01-01").timestamp()
    assert forecast.distribution.quantile(0.95) == instant("2031-12-01T12:00:00Z").timestamp()
    told = [request.messages[-1].text for request in desk.requests]
    assert "later than the one before" in told[1]
    assert "'next year', not a date" in told[2]
    assert "State quantiles: the dates before which it happens" in told[0]
    assert ">2027-01-01" in told[0], "nobody is shown seconds"
    schema = desk.requests[0].tools[-1].parameters["properties"]["quantiles"]
    assert schema["properties"]["q05"]["type"] == "string"
    form = AnswerFormat.of(desk.question)
    assert form.write(forecast.p, forecast.distribution)["q50"] == "2027-01-01"


def test_of_whole_numbers_several_quantiles_may_be_the_same(desk, say):
    scale = NumericRange(minimum=-0.5, maximum=10.5, outcomes=11, whole=True)
    desk.question = replace(number_of(">2.5", ">3.5"), range=scale)
    stated = {"q05": 2, "q10": 3, "q25": 3, "q50": 3, "q75": 3, "q90": 4, "q95": 6}
    forecast = desk.run([say("submit", {"quantiles": stated, "reason": "r"})])
    steps = np.diff(continuous_cdf(forecast.distribution, scale))
    assert np.argmax(steps) == 3
    assert steps[3] > 0.6, "what lies between equal quantiles is on their value"
    assert forecast.p[">2.5"] - forecast.p[">3.5"] > 0.6


def test_belief_schema_is_what_reading_understands(think):
    assert schema_errors(think(0.4), belief_schema(form())) == []
