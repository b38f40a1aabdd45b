"""The web application: pages, JSON API, live updates, and a static site generated from them."""

from foretell.interface import offer

HOMES = {
    "foretell.web.app": "create_app",
    "foretell.web.background_runs": "BackgroundRuns",
    "foretell.web.middleware": "MAX_BODY_BYTES",
    "foretell.web.security": "AccessRules COOKIE",
    "foretell.web.site": "WrittenSite file_of write_site",
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
