"""The tools by name, and how the ids of their results begin."""

WEB_SEARCH = "web_search"
SUMMARIZE_RESULTS = "summarize_results"
LOOKUP_URL = "lookup_url"
FETCH_SERIES = "fetch_series"
FETCH_PRICES = "fetch_prices"
FETCH_WIKIPEDIA = "fetch_wikipedia"
SUBMIT = "submit"

PREFIXES = {
    WEB_SEARCH: "search",
    SUMMARIZE_RESULTS: "summary",
    LOOKUP_URL: "page",
    FETCH_SERIES: "series",
    FETCH_PRICES: "prices",
    FETCH_WIKIPEDIA: "wikipedia",
}
