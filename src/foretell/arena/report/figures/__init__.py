"""Figures: each function takes numbers and returns a `Figure`."""

from foretell.arena.report.figures.conservatism import conservatism_plot
from foretell.arena.report.figures.forest import ForestRow, forest_plot
from foretell.arena.report.figures.frontier import FrontierPoint, frontier, pareto
from foretell.arena.report.figures.groups import score_by_group
from foretell.arena.report.figures.heatmap import difference_heatmap
from foretell.arena.report.figures.histogram import correctness_histogram
from foretell.arena.report.figures.questions import question_set
from foretell.arena.report.figures.reliability import reliability_diagram

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
