"""Where a forecaster loses: the analysis as a value, and as a page."""

from foretell.arena.report.error_analysis.analysis import BinGap, Case, ErrorAnalysis, error_analysis
from foretell.arena.report.error_analysis.page import error_analysis_page

__all__ = ["BinGap", "Case", "ErrorAnalysis", "error_analysis", "error_analysis_page"]
