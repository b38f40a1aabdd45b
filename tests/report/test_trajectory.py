import xml.etree.ElementTree as ET

from foretell.report.charts.timelines import Trajectory, stages_plot, trajectory_plot


def test_every_trial_is_a_line_with_a_mark_per_step_and_one_for_its_answer() -> None:
    trials = [
        Trajectory(name="trial 1", points=[(0, 0.5), (1, 0.4), (2, 0.3)], final=0.25),
        Trajectory(name="trial 2", points=[(1, 0.6)]),
    ]
    drawn = ET.fromstring(trajectory_plot(trials, "Belief", combined=0.28).svg)
    tips = [element.text or "" for element in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert [tip for tip in tips if tip.startswith("trial 1")] == [
        "trial 1, step 0: 50 %",
        "trial 1, step 1: 40 %",
        "trial 1, step 2: 30 %",
        "trial 1 answered 25 %",
    ]
    assert "28 %" in "".join(drawn.itertext())
    assert "trial 1 25 %; trial 2 60 %" in drawn.attrib["aria-label"]


def test_the_axis_shows_the_tool_that_all_trials_used_at_a_step() -> None:
    points = [(0, 0.5), (1, 0.4), (2, 0.3), (3, 0.2)]
    trials = [
        Trajectory(name="a", points=points, tools={1: "web_search", 2: "fetch_series", 3: "lookup_url"}),
        Trajectory(name="b", points=points, tools={1: "web_search", 2: "web_search"}),
    ]
    drawn = ET.fromstring(trajectory_plot(trials, "Belief").svg)
    texts = [element.text for element in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[texts.index("start") :][:4] == ["start", "search", "2", "page"]


def test_an_empty_trajectory_has_a_message() -> None:
    assert "No belief yet" in trajectory_plot([Trajectory(name="a", points=[])], "x").svg
    assert "No answer yet" in stages_plot([], 0).svg


def test_names_are_escaped_in_the_chart() -> None:
    nasty = "<script>alert(1)</script>\u202e\x00"
    for svg in (
        trajectory_plot([Trajectory(name=nasty, points=[(1, 0.5)])], nasty).svg,
        stages_plot([(nasty, 0.5), ("b", 1.0)], 1).svg,
    ):
        ET.fromstring(svg)
        assert "<script" not in svg
        assert "\u202e" not in svg
        assert "style=" not in svg
