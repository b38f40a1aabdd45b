"""Decides whether a date is that of its text or of a part of it, by words, layout or the sentence around it."""

from foretell.patterns import pattern
from foretell.tools.dates.places import LONGEST_LEAD, WORDS, DatePlace, looks_ahead
from foretell.tools.dates.report_heads import (
    dates_a_deed,
    gives_a_figure,
    gives_a_score,
    heads_a_message,
    heads_a_report,
    heads_what_follows,
    is_noted,
    is_posted,
    is_rated,
    is_signed,
)
from foretell.tools.dates.stamp_words import (
    begins_with_stamp_word,
    has_stamp_word_after,
    has_stamp_word_before,
    is_as_of,
    is_labelled,
)
from foretell.tools.dates.tenses import describes_past, is_edge, is_plan
from foretell.tools.dates.words import PLAN_KEY, SCHEDULED

# Dates written by programs: fields of page data, times with seconds, file names, emails and builds.

_SECONDS_AFTER = pattern(
    r"^(?:t|\s|,\s?|:|\st)\s?\d{2}:\d{2}(?::\d{2}|z|[+-]\d{2}:\d{2}(?! ?(?:utc|gmt|uhr|[a-z]{2,3}t)\b))|^t\d{4,6}"
)
_MAIL_DATE = pattern(r"^date: (?:[a-z]{3}, )?$")
_BUILD = pattern(r"\b(?:build|rev|snapshot|nightly)[ .:#-]{1,2}$")
_SENTENCE_LEAD = 16
_BRACKETED_TIME = pattern(r"\[[^\[\]\n]{6,20},? \d{1,2}:\d{2}(?::\d{2})?(?: ?[ap]m)?\](?! ?(?:vs?|v\.)\b)")
_SECONDS_BEFORE = pattern(r"\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?z?[ ,]{1,2}$")
_CLOCK_WITHIN = pattern(r"\d{2}:\d{2}:\d{2}|\d{14}")
_KEY = pattern(r"[\"'<\s]?(?P<key>[a-z@][a-z_:.@/-]{0,40})[\"']?\s?(?P<sign>[:=>])\s?[\"'(]{0,2}$")
_STAMP_KEY = pattern(
    r"date(?!s)|datum|fecha|data$|creat|modif|updat|publi|lastmod|observ|snapshot|as_?of|retriev|fetch|access|crawl"
    r"|stamp"
    r"|^ts$|time$|^day$|^[xt]$|saved|built|build|revis|version|sent|receiv|filed|decided|signed|record|taken|aired"
    r"|resolved|settled|closed|ended|finish|complet|died|death|scan|print|tdrc|tdor|posted|seen|_at$|_on$|issued"
)
_STAMP_META = pattern(r"=.?[\w:.-]{0,40}(?:modif|publi|updat|creat|\bdate\b|issued)[\w:.-]{0,20}[\"'\s]")
_EVENT_NEAR = pattern(
    r"\bvenue|\bwhere\b|\blocation\b|\btime:|\btickets?|\bplace:|\bort:|\blieu\b|\blugar\b|\bdoors\b|event"
)
_FILE_BEFORE = pattern(r"(?:^|[\s\"'(/:=])[\w.%+-]{0,80}$")
_FILE_AFTER = pattern(
    r"^(?: (?:at|um|a|в|om|kl) \d\d[.:]\d\d(?:[.:]\d\d)?)?[\w%+-]{0,30}(?:\.tar)?\.(?:"
    r"pdf|xlsx?|csv|tsv|docx?|pptx?|odt|jpe?g|png|gif|webp|heic|tiff?|mp[34]|mov|wav|zip|gz|json|xml|html?"
    r"|txt|md|log|parquet|eml)\b"
)
_ANY_FILE_BEFORE, _ANY_FILE_AFTER = pattern(r"[a-z]\w{0,60}[_-]$"), pattern(r"^[\w-]{0,30}\.[a-z]\w{1,4}\b")
_SIZE_AFTER = pattern(r"^\s+\d\d:\d\d(?::\d\d)?\s+\d[\d.,]*\s?[kmg]?b?\s*$")
"""A time and a size, as in a directory listing."""
_HASH_AFTER = pattern(r"^[\s,]{1,3}\(?(?=[a-f]{0,39}\d)(?=\d{0,39}[a-f])[0-9a-f]{7,40}\b")
_HASH_BEFORE = pattern(r"(?:^|[\s*])(?=[a-f]{0,39}\d)(?=\d{0,39}[a-f])[0-9a-f]{7,40}[\s,(]{1,3}$")


def is_keyed(place: DatePlace) -> bool:
    """Whether the date is the value of a field that says when something was done."""
    if place.segment.startswith("<meta") and _STAMP_META.search(place.segment):
        return True
    key = _KEY.search(place.segment) if any(map(place.segment[-4:].__contains__, ":=>")) else None
    if key is None or _STAMP_KEY.search(key["key"]) is None or PLAN_KEY.search(place.segment):
        return False
    word = key["key"].strip(" \"'<")
    if looks_ahead(place.segment[: key.start()][-20:]):
        return False
    if word in ("date", "datum", "data", "fecha", "time") and key["sign"] == ":" and '"' not in place.segment:
        if len(WORDS.findall(place.before)) > 2:
            return False
        near = place.low[max(0, place.line_start - 200) : place.line_end + 200]
        return not (_EVENT_NEAR.search(near) or SCHEDULED.search(place.before) or place.under_a_plan)
    return not place.under_a_plan


def has_seconds(place: DatePlace) -> bool:
    """Whether the date has seconds or a time zone, as programs write it, and is not the time of a plan."""
    clocked = (
        _SECONDS_AFTER.match(place.after)
        or _SECONDS_BEFORE.search(place.before)
        or _CLOCK_WITHIN.search(place.low, place.date.start, place.date.end)
    )
    if not clocked:
        return False
    key = f"{place.before[-_SENTENCE_LEAD:]} {place.segment}"
    return not (PLAN_KEY.search(key) or looks_ahead(place.segment) or place.under_a_plan)


def names_a_file(place: DatePlace) -> bool:
    """Whether the date is part of a file name, or next to the hash of a commit."""
    if _HASH_AFTER.match(place.after) or _HASH_BEFORE.search(place.before):
        return True
    if _SIZE_AFTER.match(place.after) or (_ANY_FILE_AFTER.match(place.after) and _ANY_FILE_BEFORE.search(place.before)):
        return True
    file_name = _FILE_AFTER.match(place.after) and _FILE_BEFORE.search(place.before)
    return bool(file_name) and not place.planned


def heads_a_mail(place: DatePlace) -> bool:
    """Whether the line is the date line of an email."""
    return bool(_MAIL_DATE.match(place.before) and _SECONDS_AFTER.match(place.after))


def names_a_build(place: DatePlace) -> bool:
    """Whether the date is a build number."""
    return _BUILD.search(place.before) is not None


# The decision.

_FEWEST_WORDS, _SHORT_SENTENCE, _FEWEST_OF_A_SENTENCE = 2, 4, 8
"""Word counts next to a date: below the first there is no sentence; below the second a word of plans decides."""
_LABELLED = pattern(r"[^:\n\d]{3,40}:")
"""The label before a list of dates."""
NUMBER_BEFORE = pattern(
    r"\b(?:lot|nos?|nr|section|part|item|ref|code|art|model|serial|sku|isbn|order)\b[.:#]{0,2} ?[a-z]{0,4}-?$"
)
"""Words that make 5.6.25 a number rather than a date."""
_SPAN_EDGE_AFTER = pattern(
    r"^\s?(?:[-~]\s?|(?:to|au|bis|al|a|do|tot|till|til|until)\s)(?:[a-z]{3,9} )?\d{1,2}(?![\d:.,]?\d)"
)
_SPAN_EDGE_BEFORE = pattern(r"(?:^|[\s(])\d{1,2}\.?(?: ?- ?|,? (?:and|und|et|e|y|og|och|en|a|i|&|au|bis|to|al) )$")
"""Days of a range or a list, which belong to events."""


def dates_its_text(place: DatePlace) -> bool:
    """Whether the date is that of the text or of a part of it."""
    if NUMBER_BEFORE.search(place.before, max(0, len(place.before) - LONGEST_LEAD)):
        return False
    if place.result is not None:
        return place.result == "given"
    if _BRACKETED_TIME.match(place.low, place.date.start - 1) and not place.line_plans:
        return True
    edge = _SPAN_EDGE_AFTER.match(place.after) or _SPAN_EDGE_BEFORE.search(place.before)
    labelled = is_labelled(place) and not edge
    if heads_a_mail(place) or has_stamp_word_before(place) or labelled or is_as_of(place) or is_keyed(place):
        return True
    if place.date.precision != "day" or place.far:
        return False
    if dates_a_deed(place) or names_a_build(place) or is_noted(place):
        return True
    if not edge and (
        names_a_file(place) or (_is_laid_out(place) and not (place.heading_plans or is_edge(*place.original_span)))
    ):
        return True
    return _tells_what_happened(place)


def _is_laid_out(place: DatePlace) -> bool:
    """Whether the layout around the date is that of a stamp."""
    return (
        has_stamp_word_after(place)
        or heads_a_report(place)
        or has_seconds(place)
        or heads_a_message(place)
        or (is_posted(place) and not (_has_a_verb(place) and is_plan(*place.original_span)))
        or begins_with_stamp_word(place)
        or ((gives_a_figure(place) or gives_a_score(place)) and not is_plan(*place.original_span))
        or heads_what_follows(place)
        or is_signed(place)
        or is_rated(place)
    )


def _has_a_verb(place: DatePlace) -> bool:
    """Whether the line is long enough to be a sentence."""
    return len(WORDS.findall(f"{place.before} {place.after}")) >= _FEWEST_OF_A_SENTENCE


def _tells_what_happened(place: DatePlace) -> bool:
    """Whether the date's sentence says what happened on that day."""
    if place.low[place.date.start : place.date.end].isdigit():
        # 20240605 may also be a part number or a telephone number.
        return False
    line = f"{place.before} {place.after}"
    words = len(WORDS.findall(line))
    if words < _FEWEST_OF_A_SENTENCE and (place.heading_plans or (place.among_plans and _LABELLED.match(place.before))):
        return False
    if line.isascii() and (words < _FEWEST_WORDS or (words < _SHORT_SENTENCE and SCHEDULED.search(line))):
        return False
    return describes_past(*place.original_span)
