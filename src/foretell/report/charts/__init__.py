"""Charts as inline SVG: each function takes numbers and returns a `Chart`."""

from foretell.interface import offer

HOMES = {
    "foretell.report.charts.calibration": "conservatism_plot correctness_histogram reliability_diagram",
    "foretell.report.charts.groups": "MOST_ROWS verdict_heatmap distance_heatmap question_set score_by_group",
    "foretell.report.charts.ranking": "ForestRow FrontierPoint TornadoRow forest_plot frontier pareto tornado_plot",
    "foretell.report.charts.svg": (
        "Chart ChartScale SeriesStyle empty figure line mark rect responsive series_style series_styles text"
    ),
    "foretell.report.charts.timelines": (
        "DatedLines MOST_LINES MarketHistory Trajectory dated_plot history_plot mean_course paths_plot stages_plot "
        "trajectory_plot"
    ),
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
