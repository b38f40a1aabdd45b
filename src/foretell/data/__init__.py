"""The outside world apart from models: HTTP, search, pages, series, markets, question sets."""

from foretell.interface import offer

HOMES = {
    "foretell.data.connections": "server_config",
    "foretell.data.corpus": "Corpus CorpusDocument read_documents",
    "foretell.data.dates": "EARLIEST parse_stated_date",
    "foretell.data.files": "DownloadCache LockHeld home_folder locked open_duckdb write_atomically",
    "foretell.data.http": ("AsyncHttpClient HttpLimits HttpResponse NotFound Progress REDIRECT_STATUS SourceError"),
    "foretell.data.known_services": "KNOWN_SERVICES ServiceLimit at_once parse_pace",
    "foretell.data.pace": "KnownService ServiceAccess ServiceAddresses ServiceStore ServiceTurns",
    "foretell.data.pages": (
        "Page PageUnavailable PublicAddressGuard WaybackPages WebPages read_captures read_page stored_at "
        "versions_differ"
    ),
    "foretell.data.payload": "MalformedPayload Payload readable",
    "foretell.data.service": "JsonService ServiceConfig needs_key",
    "foretell.data.untrusted": (
        "UNSAFE for_csv for_file_name for_json for_log for_prompt for_terminal question_for_prompt rows_as_csv"
    ),
    "foretell.data.wikipedia": "ArticleRevision Wikipedia article_headings wikitext_to_text",
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
