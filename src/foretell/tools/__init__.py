"""The tools an agent may call, and the fence that keeps the future out."""

from foretell.interface import offer

HOMES = {
    "foretell.tools.addresses": (
        "Address Blocklist UnreadableAddress address_of is_encyclopedia is_living places_in urls_in"
    ),
    "foretell.tools.fence": "AdmittedSource FencedTools Observation SourceStore",
    "foretell.tools.journal": "JournaledTool material_from_json material_to_json note_event",
    "foretell.tools.late_text": "CUT_MARK late_passages split_late tells_late without_late_passages",
    "foretell.tools.leak_filter": "Excerpt INSTRUCTION LeakFilter LeakVerdict read_verdicts",
    "foretell.tools.rules": "FenceRules clamp_prices clamp_series clamp_text has_rows",
    "foretell.tools.series": "FetchPrices FetchSeries FetchWeather about_weather shown_places",
    "foretell.tools.tool": (
        "ANY_SOURCE HINTS LeakRefused PREFIXES Refusal SUBMIT SourceItem TOOLS Tool ToolFailed ToolMaterial "
        "WEB_SEARCH offered_tools required_text tool_hint"
    ),
    "foretell.tools.web": "FetchWikipedia LookupUrl SEARCH_SPEC SummarizeResults WebSearch",
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
