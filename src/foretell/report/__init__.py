"""Present results: charts, HTML pages, terminal tables, Markdown, CSV."""

from foretell.interface import offer

HOMES = {
    "foretell.report.arena_report": "ArenaReport",
    "foretell.report.document": "markdown_study print_study study_page study_parts write_outputs",
    "foretell.report.html": "HtmlBlock chart_html page render_blocks",
    "foretell.report.leaderboard": ("error_analysis_page leaderboard_page markdown_board print_board scope"),
    "foretell.report.markup": (
        "EXCERPT_LENGTH clean compact element escaped join markdown markdown_text quoted_markdown sanitise_text "
        "shorten web_address"
    ),
    "foretell.report.numbers": "CellValue percent value_text",
    "foretell.report.study": (
        "RowStyle StudyChart StudyColumn StudyResult StudyRow StudyTable cell_number column count table"
    ),
    "foretell.report.terminal": "TextColumn console distinct echo show_exception show_text text_table",
    "foretell.report.theme": "DIVERGING ON_DIVERGING PALETTE SERIES",
    "foretell.report.tournament_page": "TournamentDay TournamentRow markdown_summary",
    "foretell.report.tree_report": "MOST_DRAWN picture_of",
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
