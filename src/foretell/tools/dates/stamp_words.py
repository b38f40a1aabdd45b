"""Words of publishing next to a date: "Updated 5 June", "5 June: published", "as of 5 June", "Aktualisiert: 05.06."."""

from foretell.patterns import pattern
from foretell.tools.dates.find import month_numbers, weekdays
from foretell.tools.dates.places import CLOCK_AFTER, LONGEST_LEAD, SPAN_BEFORE, YEAR, DatePlace, looks_ahead
from foretell.tools.dates.tenses import is_plan
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
_AS_OF = pattern(
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
_WORD_BEFORE = pattern(
    r"(?:of|at|close|on|to|through|until|stand|au|al|business|da|de|du|del|il|per|den|peildatum|na|dzien|dni|ngay|ate|hasta"
    r"|a|zum|bis|met|tot|dnia|do|till|til|-)\W{0,4}(?:[a-z]{3,9},?\s+)?$"
)
"""How each "as of" phrase ends in Latin letters, which is faster to search for."""
_COUNTED = pattern("已|累计|累計|共|达|達")
_LABEL = pattern(r"^[\W_]{0,8}([^\W\d_]+(?:[\s'-]{1,3}[^\W\d_]+){0,6})\s{0,2}[:：]\s*$")
_ASIAN_CLOCK = pattern(r"^[\s\d:時时分秒시분초()\[\]日曜月火水木金土,.-]{0,18}")
_MOMENT = pattern(r"[,\s]{1,3}(?:at )?\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]\.?m\.?)?(?:\s?[a-z]{2,5})?[\s.)]*")
"""The time of day after a date, and nothing else."""
_CONDITION = pattern(r"\b(?:if|whether|unless|provided that|resolves?)\b")
_CLAUSE_END = pattern(r"\n\n|;")
_BY_WHOM = pattern(r"\bby (?:our|an?|the) (?!end|time|deadline)")
_SENTENCE = 160
_ORDERED_AHEAD = pattern(
    r"\bpre-?order|\bcalendar|\bagenda|\bschedule|kalender|calendrier|calendario|vorbestell|precommand"
)
_SPAN_AFTER = pattern(r"^,? ?(?:to|until|till|and|through|bis|und|au|et|al|hasta|e|ate|tot|en|do|a|-) ")
_ASIAN_EDGE = pattern(r"^(?:\([^)]{1,4}\))?\s?(?:[~〜]|부터|까지|から|まで|まて|至|起|で満了|て満了)")
_RUN_ON = pattern(r"(?<=[^\W\d]{4})[.!?] (?=[^\Wa-z])")
_ON_DAY = frozenset(("on", "am", "le", "el", "il", "em", "op", "den", "dne", "dnia", "at", "in", "the"))


def has_stamp_word_before(place: DatePlace) -> bool:
    """Whether a stamp word precedes the date, with only weekday, time of day and small words between."""
    start = max(0, place.date.start - 60)
    # Something published in the sentence before has its own date, if any.
    start = max((end.end() for end in _RUN_ON.finditer(place.plain, start, place.date.start)), default=start)
    before = place.low[start : place.date.start]
    if not before.isascii() and ASIAN_STAMP.search(before[-14:]):
        return not _ASIAN_EDGE.match(place.after) and not FUTURE_SIGN.search(
            before[-30:] + place.low[place.date.end : place.date.end + 20]
        )
    if (
        before.endswith("date of ")
        or (SPAN_BEFORE.search(before) and _SPAN_AFTER.match(place.after))
        or _ORDERED_AHEAD.search(place.before)
    ):
        return False
    for number, token in enumerate(reversed(list(TOKEN.finditer(before)))):
        word = token[0]
        if YEAR.fullmatch(word):
            # The stamp belongs to the other date.
            return False
        if place.date.precision == "day" and is_document(word):
            planned = place.among_plans or (bool(place.text) and is_plan(*place.original_span))
            return not planned and _tells_of_the_past(place, start + token.start())
        if is_stamp(word) and not (word in SMALL and number == 0 and word != "update"):
            return not place.among_plans and _tells_of_the_past(place, start + token.start())
        if number == 0 and word in ("by", "out"):
            # "received by 5 June" is a deadline, and "out on 5 June" is a future release.
            return False
        small = word.isdigit() or word in SMALL or word in weekdays() or len(word) <= 2 or bool(month_numbers(word))
        if not small and place.plain[start + token.start()].isupper():
            # An author or place: "Kommentar von Uschi am 30.06.2024".
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
    after = _CLAUSE_END.split(place.low[place.date.end : min(place.date.end + 40, place.line_end)], maxsplit=1)[0]
    if not after.isascii():
        if FUTURE_SIGN.search(after):
            return False
    elif not any(map(is_stamp, TOKEN.findall(after)[:4])):
        return False
    if place.among_plans or looks_ahead(place.sentence_before(place.date.start)[-50:]):
        return False
    if _CONDITION.search(place.sentence_before(place.date.start, _SENTENCE)):
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
    label = _LABEL.match(place.plain[place.line_start : place.date.start]) if place.opens_line else None
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
    sentence = place.sentence_before(place.date.start)
    if sentence.isascii() and _WORD_BEFORE.search(sentence) is None:
        return False
    timed = _MOMENT.fullmatch(place.after) is not None
    ends = timed or (not place.after.strip(" .)") and "as a" in sentence[-8:])
    if _AS_OF.search(sentence) is None or (len(TOKEN.findall(sentence)) > 5 and not ends):
        return False
    if sentence.endswith("per ") and place.date.precision != "day":
        return False
    if sentence.endswith((" al ", " au ")) and place.line_plans:
        # "Lleva la jornada al 31 de diciembre": the day that something is moved to.
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
