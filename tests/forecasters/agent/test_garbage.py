"""For any model output, a trial ends within its limits with a forecast for every target, or with a failure."""

import json
from math import isfinite

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foretell.forecasters.agent.agent import BeliefAgent
from foretell.forecasters.agent.settings import VARIANTS, AgentSettings
from foretell.models.model import BudgetExceeded, ModelError, Reply, ToolCall
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question, Target
from foretell.questions.trace import ModelCalled

BINARY = Question(id="b", source="own", text="?", due="2025-10-26", targets=(Target(id="yes"),))
DATES = Question(id="d", source="own", text="?", due="2025-10-26", targets=(Target(id="a b"), Target(id="c")))
OPTIONS = Question(
    id="o",
    source="own",
    text="?",
    due="2025-10-26",
    targets=tuple(Target(id=x) for x in "xyz"),
    exclusivity="exactly one",
)
NUMBER = Question(
    id="n", source="own", text="?", due="2025-10-26", targets=(Target(id=">3"), Target(id="<1")), subtype="numeric"
)
WORDS = ["p", "tool", "name", "arguments", "action", "actions", "updated_belief", "query", "reason", "quantiles", "q50"]
WORDS += ["evidence_for", "claim", "source_id", "retract", "open_questions", "confidence", "x", "t1", "q05", "q95"]

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.just(10**400),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["0.3", "35%", "1e999", "submit", "web_search", "\ud800", "NaN", "high"]),
    st.floats(0, 1),
)
keys = st.one_of(st.sampled_from(WORDS), st.text(max_size=5))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=5)),
    max_leaves=15,
)
objects = st.dictionaries(keys, values, max_size=6)
texts = st.one_of(
    st.text(max_size=60),
    st.builds(json.dumps, values),
    st.builds(json.dumps, objects),
    st.builds(lambda o, n: json.dumps(o)[:n], objects, st.integers(0, 80)),
    st.sampled_from(["", "[" * 5000, "{" * 5000, '{"a":' * 2000, "9" * 5000, '{"p": NaN}', '{"p": 1e999}', "\x00"]),
)
calls = st.builds(
    ToolCall, id=st.text(max_size=3), name=st.sampled_from(["submit", "web_search", "", "x" * 300]), arguments=texts
)
replies = st.builds(
    Reply,
    text=texts,
    calls=st.lists(calls, max_size=3).map(tuple),
    finish=st.sampled_from(["stop", "tool", "length", "refusal"]),
)
lines = st.one_of(replies, replies, replies, st.sampled_from([ModelError("down"), BudgetExceeded("spent")]))


class RepeatingModel:
    """Repeats the given replies and errors."""

    def __init__(self, script):
        self.script = script
        self.calls = 0

    async def complete(self, request):
        self.calls += 1
        line = self.script[(self.calls - 1) % len(self.script)]
        if isinstance(line, Exception):
            raise line
        return line


@pytest.mark.parametrize("variant", list(VARIANTS))
@pytest.mark.parametrize("question", [BINARY, DATES, OPTIONS, NUMBER], ids=lambda question: question.id)
@given(script=st.lists(lines, min_size=1, max_size=4), reply_format=st.sampled_from(["tools", "schema"]))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_invalid_output_ends_in_a_forecast_or_a_failure(new_harness, variant, question, script, reply_format):
    limits = AgentSettings(steps=3, retries=1, reply_format=reply_format)
    harness = new_harness(question=question, agent=BeliefAgent(variant=VARIANTS[variant], settings=limits))
    model = RepeatingModel(script)
    answer = harness.run(model)
    assert isinstance(answer, Forecast | Failure)
    assert model.calls <= 3 * 2 + 1
    assert len(harness.of(ModelCalled)) <= model.calls
    if isinstance(answer, Forecast):
        assert set(answer.p) == {target.id for target in question.targets}
        assert all(isfinite(p) and 0 <= p <= 1 for p in answer.p.values())
        if question.exclusivity == "exactly one":
            assert sum(answer.p.values()) == pytest.approx(1)
        else:
            assert all(0.05 <= p <= 0.95 for p in answer.p.values())
    json.dumps([vars(event) for event in harness.events], allow_nan=False).encode()
