"""Words of publishing next to a date: "Updated 5 June", "5 June: published", "as of 5 June", "Aktualisiert: 05.06."."""

import re

from foretell.tools.dates.find import month_numbers, weekdays
from foretell.tools.dates.places import CLOCK_AFTER, LONGEST_LEAD, SPAN_BEFORE, YEAR, DatePlace, looks_ahead
from foretell.tools.dates.words import (
    ASIAN_STAMP,
    FUTURE_SIGN,
    PLAN_LABEL,
    PLANNED,
    SCHEDULED,
    SMALL,
    TOKEN,
    WILL,
    is_document,
    is_future,
    is_stamp,
)

_SHORT_LEAD = 6
_AS_OF = re.compile(
    r"(?:\bas (?:of|at)(?: (?:the )?(?:market )?close(?: of (?:trading|business))?(?: on)?)?|\bdata (?:to|through"
    r"|until)|\bcurrent (?:as of|to|through)|\bstand|\bau|\bal"
    r"|\bclose of business(?: on)?|\bthrough games (?:of|on)|\bdate:? as of|\ba fecha de|\ben date du|\ba la date du"
    r"|\balla data del|\bper il|\bper(?: den)?|\bpeildatum|\bstan na(?: dzien)?|\bke dni|\btinh den(?: ngay)?"
    r"|\bdados ate|\bdatos (?:hasta|a)|\bdonnees (?:au|jusqu'au)|\bdaten bis(?: zum)?|\bdati (?:al|fino al)"
    r"|\bgegevens tot(?: en met)?"
    r"|\bdane (?:na|do)(?: dnia)?|\bdata (?:till|til)|данные (?:на|по)|дані (?:на|станом на)"
    r"|\b(?:temporal |time |data )?coverage:? [^\n]{4,14} (?:to|-)|^\W{0,3}на"
    r"|станом на|към|по состоянию(?: на)?|時点|现在|截至|截止)(?![a-z])\W{0,4}(?:[a-z]{3,9},?\s+)?$"
)
_WORD_BEFORE = re.compile(
    r"(?:of|at|close|on|to|through|until|stand|au|al|business|da|de|du|del|il|per|den|peildatum|na|dzien|dni|ngay|ate|hasta"
    r"|a|zum|bis|met|tot|dnia|do|till|til|-)\W{0,4}(?:[a-z]{3,9},?\s+)?$"
)
"""How each "as of" phrase ends in Latin letters, which is faster to search for."""
_COUNTED = re.compile("已|累计|累計|共|达|達")
_LABEL = re.compile(r"^[\W_]{0,8}([^\W\d_]+(?:[\s'-]{1,3}[^\W\d_]+){0,6})\s{0,2}[:：]\s*$")
_ASIAN_CLOCK = re.compile(r"^[\s\d:時时分秒시분초()\[\]日曜月火水木金土,.-]{0,18}")
_CONDITION = re.compile(r"\b(?:if|whether|unless|provided that|resolves?)\b")
_CLAUSE_END = re.compile(r"\n\n|;")
_BY_WHOM = re.compile(r"\bby (?:our|an?|the) (?!end|time|deadline)")
_SENTENCE = 160
_ORDERED_AHEAD = re.compile(
    r"\bpre-?order|\bcalendar|\bagenda|\bschedule|kalender|calendrier|calendario|vorbestell|precommand"
)
_SPAN_AFTER = re.compile(r"^,? ?(?:to|until|till|and|through|bis|und|au|et|al|hasta|e|ate|tot|en|do|a|-) ")
_ASIAN_EDGE = re.compile(r"^(?:\([^)]{1,4}\))?\s?(?:[~〜]|부터|까지|から|まで|まて|至|起|で満了|て満了)")
_RUN_ON = re.compile(r"(?<=[^\W\d]{4})[.!?] (?=[^\Wa-z])")
_ON_DAY = frozenset(("on", "am", "le", "el", "il", "em", "op", "den", "dne", "dnia", "at", "in", "the"))


def has_stamp_word_before(place: DatePlace) -> bool:
    """Whether a stamp word precedes the date, with only weekday, time of day and small words between."""
    start = max(0, place.found.start - 60)
    # What was published in the sentence before has its own date, if any.
    start = max((end.end() for end in _RUN_ON.finditer(place.plain, start, place.found.start)), default=start)
    before = place.low[start : place.found.start]
    if not before.isascii() and ASIAN_STAMP.search(before[-14:]):
        return not _ASIAN_EDGE.match(place.after) and not FUTURE_SIGN.search(
            before[-30:] + place.low[place.found.end : place.found.end + 20]
        )
    if (SPAN_BEFORE.search(before) and _SPAN_AFTER.match(place.after)) or _ORDERED_AHEAD.search(place.before):
        return False
    for number, token in enumerate(reversed(list(TOKEN.finditer(before)))):
        word = token[0]
        if YEAR.fullmatch(word):
            # The stamp is that of the other date.
            return False
        if place.found.precision == "day" and is_document(word):
            return _tells_of_the_past(place, start + token.start())
        if is_stamp(word) and not (word in SMALL and number == 0 and word != "update"):
            return _tells_of_the_past(place, start + token.start())
        if number == 0 and word in ("by", "out"):
            # "received by 5 June" is a deadline, and a book that is out on 5 June is to come.
            return False
        small = word.isdigit() or word in SMALL or word in weekdays() or len(word) <= 2 or bool(month_numbers(word))
        if not small and place.plain[start + token.start()].isupper():
            # Who or where: "Kommentar von Uschi am 30.06.2024".
            small = "\n" not in before[max(0, token.start() - 20) :]
        if number >= 6 or not small or (is_future(word) and word not in SMALL):
            return False
    return False


def _tells_of_the_past(place: DatePlace, stamp: int) -> bool:
    """Whether a stamp word is not part of a plan: "will be published on" is, "Published on" is not."""
    sentence = TOKEN.findall(place.sentence_before(stamp))
    if any(map(is_future, sentence[-3:])):
        return False
    if len(sentence) <= 3 or place.plain[stamp].isupper():
        return True
    return not WILL.intersection(TOKEN.findall(place.sentence_after()))


def has_stamp_word_after(place: DatePlace) -> bool:
    """Whether a stamp word follows the date, as in many Asian languages, in Turkish, and in brackets."""
    after = _CLAUSE_END.split(place.low[place.found.end : min(place.found.end + 40, place.line_end)], maxsplit=1)[0]
    if not after.isascii():
        if FUTURE_SIGN.search(after):
            return False
    elif not any(map(is_stamp, TOKEN.findall(after)[:4])):
        return False
    if looks_ahead(place.sentence_before(place.found.start)[-50:]):
        return False
    if _CONDITION.search(place.sentence_before(place.found.start, _SENTENCE)):
        return False
    if ASIAN_STAMP.match(_ASIAN_CLOCK.sub("", after)):
        return True
    tokens = TOKEN.findall(after)[:4]
    for number, word in enumerate(tokens):
        if is_stamp(word) and word not in SMALL and tokens[number + 1 : number + 2] != ["hands"]:
            return not any(map(is_future, tokens[number + 1 : number + 3]))
        if not (word.isdigit() or word in SMALL or len(word) <= 2 or word in weekdays()):
            return False
    return False


def is_labelled(place: DatePlace) -> bool:
    """Whether the line is a label and the date, with a label that has a word of publishing or is not in ASCII."""
    label = _LABEL.match(place.plain[place.line_start : place.found.start]) if place.opens_line else None
    if label is None or PLAN_LABEL.search(place.before) or TOKEN.search(CLOCK_AFTER.sub("", place.after)):
        return False
    if place.heading_plans and not is_stamp(label[1].lower()):
        return False
    if label[1].isascii() and not any(map(is_stamp, TOKEN.findall(label[1].lower()))):
        return False
    words = _BY_WHOM.sub("", place.before)
    return not (looks_ahead(words) or SCHEDULED.search(words) or PLANNED.search(words))


def is_as_of(place: DatePlace) -> bool:
    """Whether a sentence or line begins with "as of" the date and is not about a plan."""
    sentence = place.sentence_before(place.found.start)
    if sentence.isascii() and _WORD_BEFORE.search(sentence) is None:
        return False
    ends = not place.after.strip(" .)") and "as a" in sentence[-8:]
    if _AS_OF.search(sentence) is None or (len(TOKEN.findall(sentence)) > 5 and not ends):
        return False
    if place.found.precision != "day" and sentence.endswith("per "):
        return False
    if sentence.endswith(("截至", "截止")) and _COUNTED.search(place.after[:60]):
        return True
    return not (looks_ahead(f"{_AS_OF.sub('', sentence)} {place.after[:60]}") or place.under_a_plan)


def begins_with_stamp_word(place: DatePlace) -> bool:
    """Whether a short line begins with a stamp word and ends with the day: "Streamed live on Jun 5, 2024"."""
    if not place.short_line or len(place.before) > LONGEST_LEAD or place.after.strip(" .)"):
        return False
    if YEAR.search(place.before):
        return False
    words = TOKEN.findall(place.before)
    near = bool(words) and (words[-1] in _ON_DAY or len(words) <= _SHORT_LEAD)
    return near and any(map(is_stamp, words[:2])) and not (place.planned or looks_ahead(place.before))
