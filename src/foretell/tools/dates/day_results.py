"""Measurements, scores and ratings of a day: "Closing price, 5 June 2024: 88.20", "5 June 2024: Ayr 2-1 Ross"."""

import re

from foretell.tools.dates.places import CLOCK_AFTER, LONGEST_LEAD, SPAN_BEFORE, YEAR, DatePlace, looks_ahead
from foretell.tools.dates.words import FIXTURE

_CLOCK_LIKE = re.compile(r"\b(?:[01]?\d|2[0-3])[:.][0-5]\d\b")
_SCORE = re.compile(
    r"[a-z.)](?<!\bkl)(?<!\bkl\.)\s(?:\d{1,3}\s?[-:]\s?\d{1,3})(?=[\s(,.;]|$)(?!\s?(?:june|july|pm|am|uhr|h\b))"
    r"|\b[wld]\s\d{1,3}-\d{1,3}\b|\b\d-\d \d-\d\b"
    r"|\b(?:ft|final|full time|result|results?|score)\b[^\n]{0,60}[a-z]\s\d{1,3}\b"
    r"|[a-z]\s\d{1,3},?\s[a-z][a-z .]{1,20}\s\d{1,3}\s(?:final|ft)\b"
)
_FIGURE_AFTER = re.compile(
    r"^\W{0,2}[:=]\s?[$€£¥]?[-+]?\d(?!\d?[:h]\d\d)|^ --? [$€£¥]?\d{1,6}[.,]\d{1,4}(?![\d.:-])(?! ?(?:uhr|h|pm|am)\b)"
)
_DECIMAL = re.compile(r"\d[.,]\d")
_OF_DAY_BEFORE = re.compile(
    r"[^\W\d_]{3}\S{0,20}\s(?:vom|du|del|dello|della|van|z dnia|z|ze dne|ze|от|від|af den|fran den|din|of)"
    r"\s(?:the )?$"
)
_COLON_AFTER = re.compile(r"^\s?:\s")
_VOTES = re.compile(r"\d{1,2}(?:[.,]\d{1,2})?\s?%")


def gives_a_figure(place: DatePlace) -> bool:
    """Whether the line gives a figure for that day: "Closing price, 5 June 2024: 88.20"."""
    if not place.short_line or place.planned or FIXTURE.search(f"{place.before} {place.after}"):
        return False
    if _FIGURE_AFTER.match(place.after) and not (SPAN_BEFORE.search(place.before) or YEAR.search(place.before)):
        return True
    in_brackets = place.before.endswith("(") and place.after.startswith(")")
    timed = CLOCK_AFTER.match(place.after) is not None
    return (in_brackets or timed) and _DECIMAL.search(place.before) is not None


def gives_a_score(place: DatePlace) -> bool:
    """Whether the line gives a score or vote shares."""
    if not place.short_line:
        return False
    below = "" if place.after.strip(" .") else place.low[place.line_end : place.line_end + LONGEST_LEAD]
    rest = f"{place.before}|{place.after}{below}"
    if place.planned or YEAR.search(place.before):  # A poll of one day on the vote of another.
        return False
    return holds_score(rest) or (":" in place.after[:2] and _VOTES.search(_CLOCK_LIKE.sub(" ", rest)) is not None)


def is_rated(place: DatePlace) -> bool:
    """Whether the line contains the stars of a review."""
    return "★" in place.plain[place.wide_start : place.wide_end] and not place.planned


def heads_what_follows(place: DatePlace) -> bool:
    """Whether the text after the colon is about that day: "Auktion vom 8. September 2024: Zuschlag bei 4.740 Euro"."""
    named = _OF_DAY_BEFORE.search(place.before) and _COLON_AFTER.match(place.after)
    return bool(named) and not (place.planned or YEAR.search(place.before) or looks_ahead(place.before))


def holds_score(words: str) -> bool:
    """Whether folded lower-case text contains the score of a match; a time of day is not one."""
    return _SCORE.search(_CLOCK_LIKE.sub(" ", words)) is not None
