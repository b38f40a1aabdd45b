"""The belief: evidence accumulates, sources must exist, and ambiguous numbers are rejected."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.forecasters.agent.answer_format import AnswerFormat
from foretell.forecasters.agent.belief import belief_schema, read_statement, starting_belief
from foretell.forecasters.combine.clamp import Clamp
from foretell.models.structured_output import schema_errors
from foretell.questions.as_of import instant
from foretell.questions.forecast import Categorical, Numeric
from foretell.questions.question import EXCLUSIVITIES, NumericRange, Question, Target, scaled
from foretell.questions.trace import BeliefRevised
from foretell.scoring.metaculus_cdf import continuous_cdf


def form(*ids, **more):
    targets = tuple(Target(id=id) for id in ids or ("yes",))
    return AnswerFormat.of(Question(id="q", source="own", text="?", due="2025-10-26", targets=targets, **more))


def number_of(*ids):
    targets = tuple(Target(id=id) for id in ids)
    return Question(id="n", source="own", text="How many?", due="2025-10-26", targets=targets, subtype="numeric")


def revised(belief, fields, answer_format=None, sources=(), step=1):
    answer_format = answer_format or form()
    return belief.revise(read_statement(fields, answer_format), answer_format, step=step, sources=sources)


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


def test_repeated_claim_counts_once_and_ids_are_not_reused():
    belief, _ = revised(
        starting_belief(form()), {"p": 0.4, "evidence_for": [claim("The vote is set.", "s1")]}, sources=("s1",)
    )
    belief, _ = revised(belief, {"p": 0.4, "evidence_for": [claim("the vote  is set", "s1")]}, sources=("s1",))
    assert len(belief.evidence_for) == 1
    belief, _ = revised(belief, {"p": 0.4, "retract": ["e1"], "evidence_for": [claim("Other")]})
    assert [item.id for item in belief.evidence_for] == ["e2"]


def test_unknown_sources_are_removed_recorded_and_reported_to_the_model(harness, call_tool, make_belief):
    made_up = [claim("Trust me.", "search_9_result_9"), claim("It says so.", "question")]
    harness.run(
        [
            call_tool("web_search", {"query": "a"}, belief=make_belief(0.4, evidence_for=made_up)),
            call_tool("submit", {"p": 0.4, "reason": "r"}, belief=make_belief(0.4)),
        ]
    )
    first = harness.of(BeliefRevised)[0].belief
    assert [item["source_id"] for item in first["evidence_for"]] == ["", "question"]
    assert first["unknown_sources"] == ["search_9_result_9"]
    assert "no result has the id search_9_result_9" in harness.requests[1].messages[-1].text


def test_invalid_number_keeps_the_previous_one():
    belief, _ = revised(starting_belief(form()), {"p": 0.4})
    belief, notes = revised(belief, {"p": 40})
    assert belief.p == {"yes": 0.4}
    assert "40" in notes[0]


def test_incomplete_numbers_do_not_form_a_belief_but_can_revise_one():
    dates = form("a", "b")
    belief, _ = revised(starting_belief(dates), {"p": {"a": 0.2}}, dates)
    assert not belief.formed
    belief, _ = revised(belief, {"p": {"a": 0.2, "b": 0.3}}, dates)
    belief, notes = revised(belief, {"p": {"b": 0.6}}, dates)
    assert belief.p == {"a": 0.2, "b": 0.6}
    assert notes == ("p of a is missing",)


def test_exclusive_options_are_scaled_and_stated_numbers_are_recorded():
    options = form("x", "y", "z", exclusivity="exactly one")
    belief, _ = revised(starting_belief(options), {"p": {"x": 0.6, "y": 0.6, "z": 0.8}}, options)
    assert belief.p == pytest.approx({"x": 0.3, "y": 0.3, "z": 0.4})
    assert belief.stated == {"x": 0.6, "y": 0.6, "z": 0.8}
    zero, notes = revised(starting_belief(options), {"p": {"x": 0, "y": 0, "z": 0}}, options)
    assert not zero.formed
    assert "cannot all have p = 0" in notes[0]


def test_starting_belief_is_the_price_else_the_base_rate_else_even_chances():
    assert starting_belief(form(), price={"yes": 0.2}, prior={"yes": 0.3}).p == {"yes": 0.2}
    assert starting_belief(form(), prior={"yes": 0.3}).p == {"yes": 0.3}
    assert starting_belief(form("x", "y", exclusivity="exactly one")).p == {"x": 0.5, "y": 0.5}
    assert not starting_belief(form()).formed


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=40).filter(lambda p: sum(p) > 0),
    st.floats(0, 0.1),
    st.sampled_from(EXCLUSIVITIES),
)
def test_clamped_probabilities_are_bounded_and_have_a_valid_sum(p, low, exclusivity):
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
def test_written_answers_are_read_back_and_match_the_schema(ids, data):
    answer_format = form(*ids)
    p = {id: data.draw(st.floats(0, 1)) for id in ids}
    answer = answer_format.write(p)
    assert answer_format.read({"p": answer}).p == p
    assert schema_errors(answer, answer_format.schema()) == []


def test_unusual_target_ids_get_keys_that_every_provider_accepts():
    answer_format = form("Trump & Co", "Other (%)")
    assert list(answer_format.targets) == ["target_1", "target_2"]
    assert "Trump & Co" in str(answer_format.schema())


def test_exclusive_options_have_a_categorical_distribution(harness, call_tool, make_belief):
    harness.question = Question(
        id="o",
        source="own",
        text="?",
        due="2025-10-26",
        targets=(Target(id="x"), Target(id="y")),
        exclusivity="exactly one",
    )
    forecast = harness.run(
        [call_tool("submit", {"p": {"x": 0.9, "y": 0.9}, "reason": "r"}, belief=make_belief({"x": 0.5, "y": 0.5}))]
    )
    assert forecast.p == pytest.approx({"x": 0.5, "y": 0.5})
    assert forecast.distribution == Categorical(p={"x": 0.5, "y": 0.5})


def test_numeric_questions_are_answered_with_quantiles(harness, call_tool, make_belief):
    harness.question = number_of(">10", "<=5")
    quantiles = {"q05": 0, "q10": 2, "q25": 5, "q50": 8, "q75": 10, "q90": 20, "q95": 30}
    forecast = harness.run([call_tool("submit", {"quantiles": quantiles, "reason": "r"})])
    assert forecast.p == pytest.approx({">10": 0.25, "<=5": 0.25})
    assert isinstance(forecast.distribution, Numeric)
    assert forecast.distribution.quantile(0.5) == 8
    request = harness.requests[0]
    assert "quantiles" in str(request.tools[-1].parameters["required"])


def test_decreasing_quantiles_are_rejected_and_asked_for_again(harness, call_tool):
    harness.question = number_of(">10")
    bad = call_tool("submit", {"quantiles": {"q10": 3, "q50": 2, "q90": 5}, "reason": "r"})
    good = call_tool("submit", {"quantiles": {"q10": 1, "q50": 2, "q90": 5}, "reason": "r"})
    assert harness.run([bad, good]).p == {">10": 0.05}
    assert "larger than the one before" in harness.requests[1].messages[-1].text


def test_date_questions_use_dates_in_prompts_and_seconds_in_forecasts(harness, call_tool):
    days = [instant(day).timestamp() for day in ("2026-01-01", "2030-01-01")]
    scale = NumericRange(minimum=days[0], maximum=days[1], open_upper=True, dates=True)
    harness.question = replace(number_of(f">{instant('2027-01-01').timestamp():.0f}"), subtype="date", range=scale)
    levels = ("q05", "q10", "q25", "q50", "q75", "q90", "q95")
    months = ("2026-03", "2026-05", "2026-08", "2027-01", "2027-06", "2028-01", "2031-12")
    falling = dict(zip(levels, (f"{month}-01" for month in reversed(months)), strict=True))
    good = dict(zip(levels, (f"{month}-01" for month in months), strict=True)) | {"q95": "2031-12-01T12:00:00Z"}
    wrong = good | {"q50": "next year"}
    replies = [call_tool("submit", {"quantiles": quantiles, "reason": "r"}) for quantiles in (falling, wrong, good)]
    forecast = harness.run(replies)
    assert list(forecast.p.values()) == [0.5]
    assert forecast.distribution.quantile(0.5) == instant("2027-01-01").timestamp()
    assert forecast.distribution.quantile(0.95) == instant("2031-12-01T12:00:00Z").timestamp()
    texts = [request.messages[-1].text for request in harness.requests]
    assert "later than the one before" in texts[1]
    assert "'next year', not a date" in texts[2]
    assert "State quantiles: the dates before which it happens" in texts[0]
    assert ">2027-01-01" in texts[0], "the prompt has no seconds"
    schema = harness.requests[0].tools[-1].parameters["properties"]["quantiles"]
    assert schema["properties"]["q05"]["type"] == "string"
    form = AnswerFormat.of(harness.question)
    assert form.write(forecast.p, forecast.distribution)["q50"] == "2027-01-01"


def test_quantiles_of_whole_numbers_may_be_equal(harness, call_tool):
    scale = NumericRange(minimum=-0.5, maximum=10.5, outcomes=11, whole=True)
    harness.question = replace(number_of(">2.5", ">3.5"), range=scale)
    stated = {"q05": 2, "q10": 3, "q25": 3, "q50": 3, "q75": 3, "q90": 4, "q95": 6}
    forecast = harness.run([call_tool("submit", {"quantiles": stated, "reason": "r"})])
    steps = np.diff(continuous_cdf(forecast.distribution, scale))
    assert np.argmax(steps) == 3
    assert steps[3] > 0.6, "probability between equal quantiles is on their value"
    assert forecast.p[">2.5"] - forecast.p[">3.5"] > 0.6


def test_belief_schema_matches_what_the_parser_accepts(make_belief):
    assert schema_errors(make_belief(0.4), belief_schema(form())) == []
