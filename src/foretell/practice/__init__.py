"""A practice world: model, search, market and tournament servers that run on this machine."""

from foretell.interface import offer

HOMES = {
    "foretell.practice.forecastbench": "PracticeBucket serve_rounds",
    "foretell.practice.series": (
        "PracticeAcled PracticeDbnomics PracticeFred PracticeOpenMeteo PracticeYahoo SampleConflictEvent "
        "SampleDbnomicsSeries SampleFredSeries SampleFredValue SampleShare SampleShareSplit"
    ),
    "foretell.practice.server": (
        "Handler Middleware PracticeServer PracticeService ServerRequest ServerResponse StatusAndBody html_response "
        "json_response"
    ),
    "foretell.practice.services": (
        "DBNOMICS_ID FRED_ID KALSHI_ID KEY MANIFOLD_ID METACULUS_ID POLYMARKET_ID PORTS ServiceOptions TICKER "
        "PracticeInboxes all_services data_services"
    ),
    "foretell.practice.web": (
        "PageVersion SampleWebPage SampleWorld redirect sample_world search_server small_world wayback_server "
        "web_server wikipedia_server"
    ),
}
"""Module → the names that the rest of foretell uses."""

__getattr__, __dir__ = offer(__name__, HOMES)
