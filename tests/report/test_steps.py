"""The chart of what trials did when."""

import re

from foretell.report.charts.steps import TimedStep, TimedTrial, steps_plot


def step(start: float, end: float, kind: str = "tool", **more: bool) -> TimedStep:
    return TimedStep(kind=kind, start=start, end=end, text=f"{kind} at {start}", **more)


def bars(trial: TimedTrial) -> list[tuple[float, float]]:
    """The vertical place and the width of each bar of the wide drawing, without those of the legend."""
    svg = steps_plot([trial]).svg
    found = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"[^>]*><title>', svg)
    return [(float(y), float(width)) for _, y, width in found]


def test_width_is_proportional_to_time_and_concurrent_steps_have_lanes():
    drawn = bars(TimedTrial(name="trial 1", steps=[step(0, 4, "model"), step(4, 6), step(4, 5), step(6, 8)]))
    assert len({y for y, _ in drawn}) == 2
    assert drawn[1][0] != drawn[2][0], "at the same time"
    assert drawn[0][0] == drawn[1][0] == drawn[3][0]
    assert round(drawn[0][1] / drawn[2][1], 1) == 4.0


def test_very_short_steps_and_very_many_at_once_are_drawn():
    many = bars(TimedTrial(name="trial 1", steps=[step(0, 100), *(step(1, 2) for _ in range(40))]))
    assert len(many) == 41
    assert min(width for _, width in many) >= 1
    assert len({y for y, _ in many}) <= 6


def test_every_tick_of_the_axis_has_a_label_of_its_own():
    lengths = (0.002, 0.04, 0.3, 0.5, 1.2, 1.9, 2, 9.97, 75, 5000, 200_000)
    repeated: list[tuple[float, list[str]]] = []
    for seconds in lengths:
        svg = steps_plot([TimedTrial(name="trial 1", steps=[step(0, seconds)])]).svg
        labels = re.findall(r">([\d:.]+)</text>", svg)
        if len(labels) < 3 or len(labels) > len(set(labels)):
            repeated.append((seconds, labels))
    assert repeated == []


def test_nothing_is_claimed_without_a_time():
    assert "No step" in steps_plot([TimedTrial(name="trial 1", steps=[])]).svg
