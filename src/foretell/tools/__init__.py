"""The tools an agent may call, and the fence that keeps the future out."""

from foretell.interface import offer

HOMES = {
    "foretell.tools.addresses": "Address UnreadableAddress address_of places_in urls_in",
    "foretell.tools.blocklist": "Blocklist is_encyclopedia is_living",
    "foretell.tools.fence": "AdmittedSource FencedTools Observation SourceStore",
    "foretell.tools.journal": "JournaledTool material_from_json material_to_json note_event",
    "foretell.tools.late_text": "CUT_MARK late_passages split_late tells_late without_late_passages",
    "foretell.tools.leak_filter": "Excerpt INSTRUCTION LeakFilter LeakVerdict read_verdicts",
    "foretell.tools.names": "ANY_SOURCE HINTS PREFIXES SUBMIT TOOLS WEB_SEARCH offered_tools tool_hint",
    "foretell.tools.prices": "FetchPrices",
    "foretell.tools.rules": "FenceRules clamp_prices clamp_series clamp_text has_rows",
    "foretell.tools.series": "FetchSeries FetchWeather about_weather shown_places",
    "foretell.tools.tool": "LeakRefused Refusal SourceItem Tool ToolFailed ToolMaterial required_text",
    "foretell.tools.web": "LookupUrl SEARCH_SPEC SummarizeResults WebSearch",
    "foretell.tools.wikipedia": "FetchWikipedia",
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
