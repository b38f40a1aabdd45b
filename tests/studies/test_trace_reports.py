"""Traces as tables and charts: trajectories by run, pushes and pilots; and bounded concurrency of cases."""

import asyncio
from math import nan
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretell.metrics import Interval, Resampling, rate_interval
from foretell.questions.trace import BeliefRevised, Failed, ForecastMade, ModelCalled, ToolUsed, TraceEvent
from foretell.report.charts.timelines import MOST_LINES, mean_course, paths_plot
from foretell.report.document import study_page
from foretell.studies.cases import TracedTrial
from foretell.studies.inputs import AT_ONCE, gather_bounded
from foretell.studies.intervention import PushPair, intervention_study
from foretell.studies.pilot import judge_pilot
from foretell.studies.trajectories import trajectory_study

QUICK = Resampling(draws=200)


def believe(step: int, p: float) -> BeliefRevised:
    return BeliefRevised(step=step, p={"yes": p}, reason="r", belief={})


def trial(*beliefs: float, answer: float | None = None, dollars: float | None = 0.5) -> list[TraceEvent]:
    """Return a trace with a search after every belief but the last, and an answer."""
    events: list[TraceEvent] = []
    for step, p in enumerate(beliefs):
        events += [ModelCalled(role="agent", model="m", key="k", input_tokens=9, output_tokens=1, dollars=dollars)]
        events += [believe(step, p)]
        if step < len(beliefs) - 1:
            events += [ToolUsed(step=step, tool="web_search", arguments={"query": "q"}, result="r")]
    if answer is None:
        return [*events, Failed(error="broken")]
    submit = ToolUsed(step=len(beliefs), tool="submit", arguments={"p": {"yes": answer}}, result="")
    return [*events, submit, ForecastMade(p={"yes": answer}, how="submitted")]


def estimate(value: object) -> float:
    assert isinstance(value, Interval)
    return value.estimate


def test_trajectories_match_hand_computation():
    trials = [
        TracedTrial(question="a", trace=trial(0.2, 0.5, 0.4, answer=0.4)),
        TracedTrial(question="a", trace=trial(0.2, 0.3, answer=0.6)),
        TracedTrial(question="b", trace=trial(0.5)),
        TracedTrial(question="b", trace=[ForecastMade(p={"yes": 0.5}, how="one prompt")]),
    ]
    study = trajectory_study({"mine": trials}, QUICK)
    goes = study.table("How trials go").rows[0].values
    assert goes[:2] == (4, 2)
    assert estimate(goes[2]) == 0.75
    assert estimate(goes[3]) == 0.5
    moves = study.table("How beliefs move").rows[0].values
    assert moves[0] == 3
    assert estimate(moves[2]) == pytest.approx((0.2 + 0.1 + 0) / 3)
    assert estimate(moves[3]) == pytest.approx((0.4 + 0.1 + 0) / 3)
    assert estimate(moves[4]) == 0.5
    assert moves[5] == pytest.approx(0.3)
    tools = {entry.name: estimate(entry.values[0]) for entry in study.table("Tools").rows}
    assert tools == {"web_search": 0.75, "all tools": 0.75}
    assert study.table("Cost per trial").rows[0].values[4] == 3.0
    assert {entry.name: entry.values for entry in study.table("How trials end").rows} == {
        "submitted": (2,),
        "failed": (1,),
        "one prompt": (1,),
    }
    assert study.notes == ("mine: 1 × broken",)
    assert study.text.startswith("3 of 4 trials ended in a forecast, 2 of them submitted")
    assert "1 of 2 answers agree" in study.text


def test_a_run_without_a_trial_is_refused():
    with pytest.raises(ValueError, match="without a trial"):
        trajectory_study({"mine": []})


def test_trials_without_belief_or_price_leave_dashes():
    study = trajectory_study({"mine": [TracedTrial(question="a", trace=[Failed(error="x")])]}, QUICK)
    assert study.table("How beliefs move").rows[0].values == (0, None, None, None, None, None)
    assert "–" in study_page(study)


def pair(question: str, untouched: tuple[float, ...], pushed: tuple[float, ...], to: float) -> PushPair:
    first, second = (trial(*path, answer=path[-1]) for path in (untouched, pushed))
    return PushPair(question_id=question, target="yes", step=1, to=to, untouched=first, pushed=second)


def test_pushes_match_hand_computation():
    """One push is kept completely, the other is lost at once."""
    whole = pair("a", (0.2, 0.2, 0.2), (0.8, 0.8, 0.8), 0.8)
    nothing = pair("b", (0.7, 0.6), (0.2, 0.6), 0.2)
    tried = [(whole.untouched, whole), (nothing.untouched, nothing), (trial(0.4), None)]
    study = intervention_study(tried, step=1, resampling=QUICK)
    rows = {entry.name: entry.values for entry in study.table("What is left of a push").rows}
    assert rows["1 belief later"][0] == 2
    assert estimate(rows["1 belief later"][1]) == pytest.approx(0.5)
    assert estimate(rows["2 beliefs later"][1]) == pytest.approx(1.0)
    assert estimate(rows["in the forecast"][1]) == pytest.approx(0.5)
    assert estimate(rows["in the forecast"][2]) == 0.5
    ways = {entry.name: entry.values for entry in study.table("In the forecast, by direction").rows}
    assert (ways["pushed up"][0], ways["pushed down"][0]) == (1, 1)
    assert study.notes[0].startswith("1 of 3 trials ended at step 1")
    assert study.notes[1] == "1 × broken"
    assert {picture.name for picture in study.charts} == {"left", "followed"}


def test_intervention_study_without_pushes():
    study = intervention_study([(trial(0.4), None)], step=2, resampling=QUICK)
    assert study.text == "No pair of trials could be compared."
    ElementTree.fromstring(study_page(study).removeprefix("<!DOCTYPE html>"))


def test_pilot_verdict():
    good = [TracedTrial(question=str(n), trace=trial(0.3, 0.4, answer=0.4)) for n in range(10)]
    study = judge_pilot("m", good, planned=1000, resampling=QUICK)
    assert study.passed is True
    assert study.table("What the run will cost").rows[0].values[2] == pytest.approx(1000)
    bad = [*good[:5], *(TracedTrial(question=f"b{n}", trace=trial(0.3)) for n in range(5))]
    failed = judge_pilot("m", bad, resampling=QUICK)
    assert failed.passed is False
    marks = {entry.name: entry.values[-1] for entry in failed.table("The pilot").rows}
    assert marks == {
        "trials completed": "no",
        "answers submitted": "no",
        "replies asked for again, per trial": "yes",
    }
    unpriced = [TracedTrial(question="a", trace=trial(0.3, answer=0.3, dollars=None))]
    result = judge_pilot("m", unpriced, planned=10, resampling=QUICK)
    assert result.table("What the run will cost").rows[0].values[1:] == (None, None, None)
    assert result.notes == ("1 calls have no known price and are not included in the dollars",)


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=30), st.integers(1, 5))
@settings(max_examples=40)
def test_rate_intervals_are_never_degenerate(values: list[float], size: int):
    interval = rate_interval(values, [str(n // size) for n in range(len(values))], QUICK)
    assert interval is not None
    assert 0 <= interval.low <= interval.estimate <= interval.high <= 1
    assert interval.estimate == pytest.approx(sum(values) / len(values))
    if len(set(values)) == 1:
        assert interval.low < interval.high


def test_rate_of_no_values_is_none():
    assert rate_interval([], []) is None


def test_many_paths_are_thinned_but_their_mean_is_not():
    courses = [[(0, n / 200), (1, 1 - n / 200)] for n in range(200)]
    picture = paths_plot(courses, "Many")
    assert picture.svg.count("soft") == MOST_LINES
    assert mean_course(courses) == [(0, pytest.approx(0.4975)), (1, pytest.approx(0.5025))]
    assert "200 courses" in picture.svg
    ElementTree.fromstring(picture.svg)
    assert "No step" in paths_plot([[]], "None").svg


@pytest.mark.parametrize("courses", [[[(3, 0.5)]], [[(0, -4.0), (1, 9.0)]], [[(0, 0.0)], [(1, 1.0)]]])
def test_paths_with_few_points_are_drawn(courses: list[list[tuple[int, float]]]):
    for unit in (True, False):
        svg = paths_plot(courses, "<odd>", level=0.0, unit=unit).svg
        ElementTree.fromstring(svg)
        assert str(nan) not in svg


def test_gather_bounded_keeps_order_and_limits_concurrency():
    now, peak, progress = 0, 0, list[tuple[int, int]]()

    async def work(n: int) -> int:
        nonlocal now, peak
        now += 1
        peak = max(peak, now)
        await asyncio.sleep(0.001 * (5 - n % 5))
        now -= 1
        return n * n

    results = asyncio.run(gather_bounded(range(60), work, lambda done, total: progress.append((done, total))))
    assert results == [n * n for n in range(60)]
    assert peak == AT_ONCE == 50
    assert progress == [(done, 60) for done in range(61)]


def test_gather_bounded_stops_at_the_first_error():
    finished: list[int] = []

    async def work(n: int) -> None:
        if n == 1:
            raise ValueError("one is bad")
        await asyncio.sleep(5)
        finished.append(n)

    with pytest.raises(ValueError, match="one is bad"):
        asyncio.run(gather_bounded([0, 1, 2], work))
    assert not finished
