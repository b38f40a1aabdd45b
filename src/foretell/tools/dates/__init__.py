"""Finds out when a text was written: dates in many languages, and which of them a text gives to itself."""

from foretell.interface import offer

HOMES = {
    "foretell.tools.dates.addresses": "late_address",
    "foretell.tools.dates.ages": "age_stamp without_age",
    "foretell.tools.dates.find": "find_dates",
    "foretell.tools.dates.records": "late_entry late_row told_state",
    "foretell.tools.dates.refusal": "date_refusal",
    "foretell.tools.dates.stamps": "MOST_LATE_DATES is_after late_stamp",
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
