"""The web application: pages, JSON API, live updates, and the static site made from them."""

from foretell.interface import offer

HOMES = {
    "foretell.web.app": "create_app",
    "foretell.web.background_runs": "BackgroundRuns",
    "foretell.web.middleware": "MAX_BODY_BYTES",
    "foretell.web.security": "AccessRules COOKIE",
    "foretell.web.site": "WrittenSite file_of write_site",
}
"""Module → what the rest of the house uses of it."""

__getattr__, __dir__ = offer(__name__, HOMES)
