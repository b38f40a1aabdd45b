"""Decides whether a date is that of its text or of a part of it: by words, by layout, or by what its sentence says."""

import re

from foretell.tools.dates.day_results import gives_a_figure, gives_a_score, heads_what_follows, is_rated
from foretell.tools.dates.machine_dates import has_seconds, heads_a_mail, is_keyed, names_a_build, names_a_file
from foretell.tools.dates.places import LONGEST_LEAD, WORDS, DatePlace
from foretell.tools.dates.report_heads import dates_a_deed, heads_a_report, is_noted, is_posted, is_signed
from foretell.tools.dates.stamp_words import (
    begins_with_stamp_word,
    has_stamp_word_after,
    has_stamp_word_before,
    is_as_of,
    is_labelled,
)
from foretell.tools.dates.tenses import is_edge, is_plan, is_told_as_done
from foretell.tools.dates.words import SCHEDULED

_FEWEST_WORDS, _SHORT_SENTENCE = 2, 4
"""Word counts beside a date: below the first there is no sentence; below the second a word of plans decides."""
NUMBER_BEFORE = re.compile(
    r"\b(?:lot|nos?|nr|section|part|item|ref|code|art|model|serial|sku|isbn|order)\b[.:#]{0,2} ?[a-z]{0,4}-?$"
)
"""Words that make 5.6.25 a number rather than a date."""
_SPAN_EDGE_AFTER = re.compile(
    r"^\s?(?:[-~]\s?|(?:to|au|bis|al|a|do|tot|till|til|until)\s)(?:[a-z]{3,9} )?\d{1,2}(?![\d:.,]?\d)"
)
_SPAN_EDGE_BEFORE = re.compile(r"(?:^|[\s(])\d{1,2}\.?(?: ?- ?|,? (?:and|und|et|e|y|og|och|en|a|i|&|au|bis|to|al) )$")
"""Days of a range or a list, which belong to events."""


def dates_its_text(place: DatePlace) -> bool:
    """Whether the date is that of the text or of a part of it."""
    if NUMBER_BEFORE.search(place.before, max(0, len(place.before) - LONGEST_LEAD)):
        return False
    edge = _SPAN_EDGE_AFTER.match(place.after) or _SPAN_EDGE_BEFORE.search(place.before)
    labelled = is_labelled(place) and not edge
    if heads_a_mail(place) or has_stamp_word_before(place) or labelled or is_as_of(place) or is_keyed(place):
        return True
    if place.found.precision != "day" or place.far:
        return False
    if dates_a_deed(place) or names_a_build(place) or is_noted(place):
        return True
    if not edge and (
        names_a_file(place) or (_is_laid_out(place) and not (place.heading_plans or is_edge(*place.written_place)))
    ):
        return True
    return _tells_what_happened(place)


def _is_laid_out(place: DatePlace) -> bool:
    """Whether the layout around the date is that of a stamp."""
    return (
        has_stamp_word_after(place)
        or heads_a_report(place)
        or has_seconds(place)
        or is_posted(place)
        or begins_with_stamp_word(place)
        or ((gives_a_figure(place) or gives_a_score(place)) and not is_plan(*place.written_place))
        or heads_what_follows(place)
        or is_signed(place)
        or is_rated(place)
    )


def _tells_what_happened(place: DatePlace) -> bool:
    """Whether the date's sentence says what happened on that day."""
    if place.low[place.found.start : place.found.end].isdigit():
        # 20240605 is as likely the number of a part or of a telephone.
        return False
    line = f"{place.before} {place.after}"
    words = len(WORDS.findall(line))
    if line.isascii() and (words < _FEWEST_WORDS or (words < _SHORT_SENTENCE and SCHEDULED.search(line))):
        return False
    return is_told_as_done(*place.written_place)
