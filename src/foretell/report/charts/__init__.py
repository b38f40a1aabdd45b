"""Figures: each function takes numbers and returns a `Figure`."""

from foretell.report.charts.calibration import conservatism_plot, correctness_histogram, reliability_diagram
from foretell.report.charts.groups import question_set, score_by_group
from foretell.report.charts.heatmap import difference_heatmap
from foretell.report.charts.ranking import ForestRow, FrontierPoint, forest_plot, frontier, pareto

__all__ = [
    "ForestRow",
    "FrontierPoint",
    "conservatism_plot",
    "correctness_histogram",
    "difference_heatmap",
    "forest_plot",
    "frontier",
    "pareto",
    "question_set",
    "reliability_diagram",
    "score_by_group",
]
