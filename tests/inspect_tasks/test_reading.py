"""Which replies contain a probability, and which are refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.inspect_tasks.logs import outcomes_of, probabilities_in
from foretell.models.structured_output import UnusableReply


@pytest.mark.parametrize(
    ("text", "p"),
    [
        ("0.35", 0.35),
        ("35%", 0.35),
        ("**35 %**", 0.35),
        ("Some reasons.\n\n.5", 0.5),
        ("On balance my estimate is 12%.", 0.12),
        ("Final answer: 0.07", 0.07),
        ('{"rationale": "x", "probability": 0.2}', 0.2),
        ('{"probabilities": {"Yes": 0.2, "No": 0.8}}', 0.2),
        ("```json\n{'p': 1}\n```", 1.0),
    ],
)
def test_probability_is_parsed_from_supported_formats(text: str, p: float):
    assert probabilities_in(text) == {"yes": pytest.approx(p)}


@pytest.mark.parametrize(
    "text", ["", "I cannot say.", "It fell by 3% in 2024, then rose.", "35", "probability 1.5", '{"x": 1}', "Answer: 7"]
)
def test_reply_without_a_clear_probability_is_refused(text: str):
    with pytest.raises(UnusableReply):
        probabilities_in(text)


@pytest.mark.parametrize("target", ["", "Paris", "2", '{"a": 2}', "[1]", "{}"])
def test_target_that_is_not_an_outcome_is_refused(target: str):
    with pytest.raises(UnusableReply):
        outcomes_of(target)


@settings(max_examples=50)
@given(
    p=st.floats(0, 1).map(lambda p: round(p, 4)),
    words=st.sampled_from(["Probability: {}", "{}", "x\n{}", '{{"p": {}}}']),
)
def test_written_probability_is_parsed_exactly(p: float, words: str):
    assert probabilities_in(words.format(f"{p:.4f}")) == {"yes": pytest.approx(p)}
