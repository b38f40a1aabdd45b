"""Statistics of traces, from events written by hand."""

from math import isnan

import pytest

from foretell.questions.trace import BeliefRevised, Failed, ForecastMade, ModelCalled, ToolUsed
from foretell.studies.cases import TracedTrial
from foretell.studies.trace_summary import failure_counts, summarise_trace
from foretell.studies.trajectories import trajectory_study


def believed(step, p):
    return BeliefRevised(step=step, p={"yes": p}, reason="", belief={})


def used(step, tool, failed=False, **arguments):
    return ToolUsed(step=step, tool=tool, arguments=arguments, result="", failed=failed)


ASKED = ModelCalled(role="agent", model="m", key="k", input_tokens=100, output_tokens=10, dollars=0.02)
GOOD = [
    ASKED,
    believed(0, 0.5),
    used(1, "web_search"),
    ASKED,
    believed(1, 0.8),
    used(2, "lookup_url", failed=True),
    ASKED,
    believed(2, 0.6),
    used(3, "submit", p={"yes": 0.6}),
    ForecastMade(p={"yes": 0.6}, how="submitted"),
]
TORN = [ASKED, believed(0, 0.2), used(1, "submit", p={"yes": 0.4}), ForecastMade(p={"yes": 0.4}, how="submitted")]
BROKEN = [ASKED, used(1, "(unusable reply)", failed=True), Failed(error="no probability was stated")]


def test_summary_of_one_trial():
    summary = summarise_trace(GOOD)
    assert [(step, p["yes"]) for step, p in summary.path.items()] == [(0, 0.5), (1, 0.8), (2, 0.6)]
    assert dict(summary.tools) == {"web_search": 1, "lookup_url": 1}
    assert (summary.steps, summary.failed_uses, summary.unusable, summary.calls) == (2, 1, 0, 3)
    assert summary.moved == pytest.approx(0.1)
    assert summary.travelled == pytest.approx(0.5)
    assert summary.gap == pytest.approx(0.0)
    assert summary.dollars == pytest.approx(0.06)


def test_summaries_of_many_trials():
    trials = [TracedTrial(question=str(i), trace=trace) for i, trace in enumerate([GOOD, TORN, BROKEN])]
    study = trajectory_study({"mine": trials})
    goes = {label: study.table("How trials go").numbers(label)["mine"] for label in ("n", "submitted", "again")}
    assert goes == pytest.approx({"n": 3, "submitted": 2 / 3, "again": 1 / 3})
    assert study.table("How trials end").column("mine") == {"submitted": 2, "failed": 1}
    assert study.table("Tools").numbers("mine") == pytest.approx(
        {"web_search": 1 / 3, "lookup_url": 1 / 3, "all tools": 2 / 3}
    )
    beliefs = study.table("How beliefs move")
    assert beliefs.numbers("consistent")["mine"] == pytest.approx(0.5)
    assert beliefs.numbers("largest gap")["mine"] == pytest.approx(0.2)
    assert study.table("Cost per trial").numbers("tokens")["mine"] == pytest.approx(110 * 5 / 3)
    assert failure_counts([GOOD, BROKEN]) == {"no probability was stated": 1}


def test_consistency_is_missing_without_beliefs():
    plain = [used(1, "submit", p={"yes": 0.4}), ForecastMade(p={"yes": 0.4}, how="submitted")]
    assert isnan(summarise_trace(plain).gap)
