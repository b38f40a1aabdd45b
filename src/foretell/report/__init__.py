"""How results look: charts, HTML pages, terminal tables, Markdown, CSV."""

from foretell.interface import offer

HOMES = {
    "foretell.report.arena_report": "ArenaReport",
    "foretell.report.document": "find_chromium write_pdf",
    "foretell.report.headline": "pair_headline scope",
    "foretell.report.html": "HtmlBlock chart_html page render_blocks",
    "foretell.report.leaderboard": "error_analysis_page leaderboard_page markdown_board print_board print_pair",
    "foretell.report.markup": "clean compact element escaped join markdown_text shorten",
    "foretell.report.numbers": "CellValue bracket number percent plural signed value_text",
    "foretell.report.outputs": "write_outputs",
    "foretell.report.prose": "EXCERPT_LENGTH markdown quoted_markdown sanitise_text web_address",
    "foretell.report.study": (
        "RowStyle StudyChart StudyColumn StudyResult StudyRow StudyTable cell_number chart_titles study_from_dict"
    ),
    "foretell.report.study_report": "markdown_study print_study study_page study_parts",
    "foretell.report.terminal": "TextColumn console distinct echo show_exception show_text text_table",
    "foretell.report.theme": "DIVERGING ON_DIVERGING PALETTE SERIES",
    "foretell.report.tournament_page": "TournamentDay TournamentRow markdown_summary",
    "foretell.report.tree_report": "MOST_DRAWN picture_of",
}
"""Module → what the rest of the house uses of it."""

__getattr__, __dir__ = offer(__name__, HOMES)
