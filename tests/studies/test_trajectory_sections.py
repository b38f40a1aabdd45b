"""Sections of the study of trajectories: Brier score by step, tools by source, medians, and time spans, by hand."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from foretell.metrics import Resampling
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError
from foretell.questions.question import Question, Target
from foretell.questions.trace import BeliefRevised, Failed, ForecastMade, ModelCalled, ToolUsed, TraceEvent
from foretell.report.charts.groups import stacked_bars
from foretell.report.charts.timelines import MOST_SPANS, DatedSpan, spans_plot
from foretell.studies.agent_statistics import medians_section, tools_section
from foretell.studies.belief_steps import carried_forward, steps_section
from foretell.studies.cases import TracedTrial
from foretell.studies.question_spans import question_span, spans_section

QUICK = Resampling(draws=100)
SNOW = Question(
    id="snow",
    source="weather",
    text="Will it snow?",
    due=instant("2025-10-26"),
    opens_at=instant("2025-10-01"),
    closes_at=instant("2025-12-10"),
    targets=(Target(id="yes"),),
)
RATE = Question(
    id="rate",
    source="fred",
    text="Will the rate rise?",
    due=instant("2025-10-26"),
    kind="dataset",
    targets=(Target(id="2025-11-05", resolves_at=instant("2025-11-05")),),
)


def trial(
    question: Question, *beliefs: float, answer: float | None, outcome: float | None = 1.0, tool: str = "web_search"
) -> TracedTrial:
    """Return a trial with a search after every belief but the last, and an answer unless it failed."""
    target = question.targets[0].id
    events: list[TraceEvent] = []
    for step, p in enumerate(beliefs):
        evidence = {"evidence_for": [{"claim": "a"}] * step, "evidence_against": [{"claim": "b"}]}
        events.append(ModelCalled(role="agent", model="m", key="k", input_tokens=100, output_tokens=10))
        events.append(BeliefRevised(step=step, p={target: p}, reason="r", belief=evidence))
        if step < len(beliefs) - 1:
            events.append(ToolUsed(step=step + 1, tool=tool, arguments={}, result="r"))
    if answer is None:
        events.append(Failed(error="broken"))
    else:
        events.append(ToolUsed(step=len(beliefs), tool="submit", arguments={"p": {target: answer}}, result=""))
        events.append(ForecastMade(p={target: answer}, how="submitted"))
    outcomes = {} if outcome is None else {target: outcome}
    return TracedTrial(question=question.id, trace=events, asked=question, outcomes=outcomes, characters=120)


def test_an_answer_is_carried_forward_and_nothing_stated_is_one_half():
    p = carried_forward(trial(SNOW, 0.4, 0.6, answer=0.7), "yes", 4)
    assert p is not None
    assert p.tolist() == [0.4, 0.6, 0.7, 0.7, 0.7]
    silent = TracedTrial(question="snow", trace=[ForecastMade(p={"yes": 0.9}, how="submitted")], asked=SNOW)
    late = replace(silent, trace=[ToolUsed(step=2, tool="submit", arguments={}, result=""), *silent.trace])
    answer = carried_forward(late, "yes", 3)
    assert answer is not None
    assert answer.tolist() == [0.5, 0.5, 0.9, 0.9]
    assert carried_forward(trial(SNOW, 0.4, answer=None), "yes", 2) is None
    options = Question(
        id="q", source="s", text="?", due=instant("2025-10-26"), exclusivity="exactly one",
        targets=(Target(id="a"), Target(id="b"), Target(id="c")),
    )  # fmt: skip
    chosen = replace(late, asked=options, trace=[late.trace[0], ForecastMade(p=dict(a=0.8, b=0.1, c=0.1), how="s")])
    first = carried_forward(chosen, "b", 2)
    assert first is not None
    assert first.tolist() == pytest.approx([1 / 3, 1 / 3, 0.1])


def test_brier_by_step_is_that_of_the_mean_of_the_trials():
    trials = [trial(SNOW, 0.4, 0.6, answer=0.8), trial(SNOW, 0.6, answer=0.6), trial(RATE, 0.5, answer=0.9, outcome=0)]
    other = [trial(SNOW, 0.5, answer=0.2), trial(RATE, 0.5, answer=0.8, outcome=0)]
    study = steps_section({"mine": trials, "other": other}, QUICK)
    steps = study.table("Brier score by step")
    snow = [(1 - p) ** 2 for p in (0.5, 0.6, 0.7)]
    assert steps.numbers("mine") == pytest.approx(
        {"0": (snow[0] + 0.25) / 2, "1": (snow[1] + 0.81) / 2, "2": (snow[2] + 0.81) / 2}
    )
    differ = study.table("Questions on which runs differ most")
    assert [row.name for row in differ.rows] == ["Will it snow?", "Will the rate rise?"]
    assert differ.numbers("other: last")["Will it snow?"] == pytest.approx(0.64)
    assert [chart.name for chart in study.charts] == ["steps", "steps-1", "steps-2"]
    for chart in study.charts:
        ElementTree.fromstring(chart.chart.svg)
    assert "is 0.250 before research" in study.text


def test_steps_need_outcomes_and_steps():
    with pytest.raises(InputError, match="none of the questions has an outcome"):
        steps_section({"mine": [trial(SNOW, 0.4, answer=0.8, outcome=None)]}, QUICK)
    single = TracedTrial(
        question="snow", trace=[ForecastMade(p={"yes": 0.5}, how="one prompt")], asked=SNOW, outcomes={"yes": 1.0}
    )
    with pytest.raises(InputError, match="no trial took a step"):
        steps_section({"mine": [single]}, QUICK)


def test_tools_are_counted_by_source():
    trials = [
        trial(SNOW, 0.4, 0.5, 0.6, answer=0.8),
        trial(SNOW, 0.6, answer=0.6),
        trial(RATE, 0.5, 0.5, answer=0.9, tool="fetch_series"),
    ]
    study = tools_section({"mine": trials})
    tools = study.table("Tools by source")
    assert tools.column("web_search") == {"fred": 0.0, "weather": 1.0}
    assert tools.column("fetch_series") == {"fred": 1.0, "weather": 0.0}
    assert tools.column("n") == {"fred": 1, "weather": 2}
    assert "<title>fred, fetch_series: 1.0</title>" in study.charts[0].chart.svg
    with pytest.raises(InputError, match="no trial used a tool"):
        tools_section({"mine": trials[1:2]})
    assert "No uses" in stacked_bars({"a": {"b": 0.0}}, label="uses").svg


def test_medians_have_the_columns_of_the_paper_by_run_and_kind():
    trials = [trial(SNOW, 0.4, 0.5, 0.6, answer=0.8), trial(SNOW, 0.6, answer=0.6), trial(RATE, 0.5, answer=0.9)]
    medians = medians_section({"mine": trials}).table("Medians per trial")
    assert [column.label for column in medians.columns] == ["n", "steps", "tok-in", "tok-out", "chars/step", "evidence"]
    assert {row.name: row.values for row in medians.rows} == {
        "mine, dataset": (1, 1, 100, 10, 120.0, 1),
        "mine, market": (2, 2.0, 200.0, 20.0, 80.0, 2.0),
    }
    unknown = [replace(each, characters=None) for each in trials[:2]]
    assert medians_section({"mine": unknown}).table("Medians per trial").column("chars/step") == {"mine": None}
    with pytest.raises(InputError, match="no trial took a step"):
        medians_section({"mine": [replace(trials[0], trace=[Failed(error="x")])]})


def test_spans_of_questions_form_a_time_line():
    trials = [trial(SNOW, 0.4, answer=0.8), trial(SNOW, 0.4, answer=0.8), trial(RATE, 0.5, answer=0.9)]
    endless = Question(id="when", source="own", text="When?", due=instant("2025-10-26"))
    study = spans_section({"mine": [*trials, trial(endless, 0.5, answer=0.5)]})
    spans = study.table("Time spans of the questions")
    assert spans.column("questions") == {"all": 2, "weather": 1, "fred": 1}
    assert spans.numbers("most days") == {"all": 70, "weather": 70, "fred": 10}
    assert study.notes == ("1 question has no end.",)
    assert "1 Oct 2025 to 10 Dec 2025, 70 days" in study.charts[0].chart.svg
    ElementTree.fromstring(study.charts[0].chart.svg)
    with pytest.raises(InputError, match="no question says when it ends"):
        spans_section({"mine": [trial(endless, 0.5, answer=0.5)]})


def test_of_many_spans_some_are_drawn():
    span = question_span(SNOW)
    assert span is not None
    many = [DatedSpan(name=f"q{n}", start=span.start, end=span.end) for n in range(200)]
    picture = spans_plot(many, "Spans")
    assert picture.svg.count(" days</title>") == MOST_SPANS
    assert "60 of 200" in picture.svg
    assert "No time span" in spans_plot([], "Spans").svg
