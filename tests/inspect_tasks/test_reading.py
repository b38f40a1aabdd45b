"""What counts as a probability in a reply, and what does not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.inspect_tasks.logs import outcomes_of, probabilities_in
from foretell.models import UnusableReply


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
def test_readable(text: str, p: float):
    assert probabilities_in(text) == {"yes": pytest.approx(p)}


@pytest.mark.parametrize(
    "text", ["", "I cannot say.", "It fell by 3% in 2024, then rose.", "35", "probability 1.5", '{"x": 1}', "Answer: 7"]
)
def test_not_readable(text: str):
    with pytest.raises(UnusableReply):
        probabilities_in(text)


@pytest.mark.parametrize("target", ["", "Paris", "2", '{"a": 2}', "[1]", "{}"])
def test_targets_that_are_no_outcome(target: str):
    with pytest.raises(UnusableReply):
        outcomes_of(target)


@settings(deadline=None, max_examples=50)
@given(
    p=st.floats(0, 1).map(lambda p: round(p, 4)),
    words=st.sampled_from(["Probability: {}", "{}", "x\n{}", '{{"p": {}}}']),
)
def test_what_is_written_is_what_is_read(p: float, words: str):
    assert probabilities_in(words.format(f"{p:.4f}")) == {"yes": pytest.approx(p)}
