"""Layouts that say when something was written: datelines, bylines, posts, captions, deeds, and results of a day."""

from foretell.patterns import pattern
from foretell.tools.dates.find import weekdays
from foretell.tools.dates.places import (
    CLOCK_AFTER,
    LONGEST_HEAD_LINE,
    LONGEST_LEAD,
    SPAN_BEFORE,
    SPAN_HEAD,
    WORDS,
    YEAR,
    DatePlace,
    looks_ahead,
)
from foretell.tools.dates.words import FIXTURE, PLANNED, SCHEDULED, SMALL, TOKEN, WILL, is_document, is_future, is_stamp

_CITY_BEFORE = pattern(
    r"^[\W_]{0,8}(?:\([^)\n]{2,30}\)\s?)?[^\W\d_][^\d\n|:;?!()]{1,40}?(?:\([^)\n]{2,25}\))?\s?[,/:-]?\s?"
    r"(?:[^\W\d_]{2,12}\.?,?\s+)?$|^[^\W\d_]{3,20}(?: [^\W\d_]{3,20})?(?:\. |--?\([^)\n]{2,25}\)--?)$"
)
_BRACKETED_CITY, _BRACKETED_AGENCY = (
    pattern(r"^\W{0,3}\([a-z][\w .-]{2,30}, $"),
    pattern(r"^,? [a-z][\w ]{1,20}\)"),
)
_AGENCY_AFTER = pattern(
    r"^[\s,.]{0,4}(?:\([^)\n]{2,30}\)\s?(?:--?|:)|/[^/\n]{2,30}/|(?:--?|:)\s?\([^)\n]{2,30}\)|\s--?\s|--\s|(?<=\.)\s[^\W\d_]{2,10}\.\s)"
)
_BYLINE = pattern(
    r"^[\W_]{0,8}(?:by|von|par|por|di|door|av|af|od|autor|auteur|author|oleh|автор|от|yazan|ecrit par|text|reporter"
    r"|記者|기자)\s?:?\s+[^\n]{2,60}$"
)
_BRACKET_BEFORE = pattern(r"^[^\n(\[]{0,30}[(\[]\s*$")
_BRACKET_AFTER = pattern(r"^(?:[,\s]{1,2}\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]m)?)?\s{0,3}[)\]]\s{0,3}\S[^(]*$")
_SEPARATOR_BEFORE, _SEPARATOR_AFTER = pattern(r"[|·•]\s{0,4}$"), pattern(r"^\s{0,4}[|·•]")
_HEAD_LINES, _HEAD_CHARACTERS = 3, 300
_META = pattern(
    r"\b(?:\d[km]? views?|\d likes?|comments?|repl(?:y|ies)|\d shares?|\d points?|\d plays?|re(?:post|tweet)s?"
    r"|followers|subscribers|min read"
    r"|\d+ min(?:s\b|\b|utes?(?= (?:read|listen|watch|audio|video)))"
    r"|episode|ep\.|transcript|podcast|show notes|newsletter|press release|immediate release"
    r"|statement"
    r"|photo\w*|foto\w*|image|picture|bild|credit|letter|remarks|graphic|chart|figure|source|quelle|fuente|fonte"
    r"|box score|match report|duration|listen|watch"
    r"|permalink|thread started|edited|attendance|joined|member since|current draft|this version|working paper"
    r"|official journal"
    r"|notice|memo"
    r"|s\d{1,2} ?e\d{1,3})\b|источник|фото|出所|来源|來源|출처|@\w{3,}|・|件の"
)
_REPORT_BEFORE = pattern(
    r"\b(?:ranking|rankings|standings|turnout|statement|minutes|transcript|call|newsletter|snapshot|report|box score"
    r"|show notes|spieltag|kurs|schlusskurs|cours|result|results|episode|journal|release|gazette|bulletin|revision"
    r"|cached"
    r"|verdict|decision|ruling|judgment|order|opinion|medal|match|photo|price|close|quote|version|status|value"
    r"|observation|page|score|settled|dated|crawl|crawled|brief|briefing|notes|review|chart|data|verdict)"
    r"(?:\W{0,3}\b(?:of|after|vom|du|del|dated|as of|as at|from|at|in)\b|\s?[:,-])\W{0,4}(?:[a-z]{3,9},?\s)?$"
    r"|\b(?:history|results?|outcome|status|decision|price|close|quote|chart|data|graphic|version"
    r"|approved)[^(\n]{0,20}\($"
    r"|\b(?:verdict|ranking|standings|turnout|attendance|kurs|schlusskurs|medal|snapshot|minutes|transcript"
    r"|current date) $"
)
_NOW = pattern(
    r"(?:\btoday(?:'s date)?|\bit is(?: now|(?= (?:mon|tues|wednes|thurs|fri|satur|sun)day))"
    r"|\bcurrent date|\bserver time|\bsession started|\bheute ist|\bnous sommes"
    r"|\boggi e"
    r"|\bhoy es|\bhoje e|\bdzis jest|сегодня|今日は|今天是|오늘은)[\s,':a-z]{0,16}$"
)
_LONGEST_NOW = 40
_VERSION_BEFORE = pattern(
    r"(?:\bv?\d{1,4}(?:\.\d{1,6}){1,3}\S{0,8}|\bversion|\brelease notes?|\bwhat's new"
    r"|\bchangelog)[\])]?[\s:,/(-]{0,4}(?:(?:on|vom|du|del|of|from|van|от|z dnia)\s)?$"
)
_ROUND_CLOCK_AFTER = pattern(r"^,? (?:at |um |a las |kl\.? )?\d{1,2}[:.][0134][05](?! ?[ap]m\b)\b")
"""A time of day typical of scheduled events, which a report would not give."""
_CHAT_AFTER = pattern(r"^,?\s\d{1,2}:\d{2}(?::\d{2})?(?:\s?[APap][Mm])?\]?\s?[->]?\s?[A-Z][a-z]+(?: [A-Z][a-z]+)?:\s")
_HEADING = pattern(r"^\s{0,3}(?:#{1,6}|\*\*|==+)\s?$")
_AUTHOR_AFTER = pattern(r"^[\s,]{1,4}[^\n<]{2,40}<[^\s<>@]{1,40}@")
_WROTE_AFTER = pattern(
    r"^[^\n:]{0,60}(?:\d:\d[^\n:]{0,60})?\b(?:wrote|said|replied|commented|posted"
    r"|ha scritto|schrieb|escribio|scrisse|a ecrit|escreveu|schreef|skrev"
    r"|napisal\w*|napsal\w*|kirjoitti|yazdi|написал\w*|написав\w*|a scris|irta|viet|menulis)\b[^\n:]{0,60}:"
)
_NAME_AFTER = pattern(r"^[^\n:\d]{0,14}\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]m)?,?\s[^\n:]{1,60}:\s?$")
"""How an email names the person it replies to, in any language: "14 окт. 2024 г. в 09:05, Lee:"."""
_CITY_ALONE = pattern(
    r"^\W{0,4}(?:(?:fait|done|dado|given) (?:a|at|en) )?[A-Z][\w.'-]{2,20}(?: [A-Z][\w.'-]{2,20}){0,2}, (?:den |am "
    r"|this |le "
    r"|a |the |el |il )?$"
)
_CLOCK_BEFORE = pattern(r"(?<![\d:-])\d{1,2}:\d{2}(?: ?[ap]\.?m\.?)?(?: uhr)?(?:,| -| ·| \||)\s$")
_ODD_MINUTE_AFTER = pattern(r",? (?:at |um |a |в |as |kl\.? ?)?\d{1,2}:\d[1-46-9](?: ?[ap]m)?(?=\n|$)")
"""A time of day that ends its line and is unusual for an event."""
_NOTE_BEFORE = pattern(r"[(\[](?P<words>[a-z][^()\[\]\n]{2,50})$")
_NOTE_AFTER = pattern(r"\.?[)\]]")
_WRITINGS = frozenset(
    (
        "blog",
        "post",
        "column",
        "editorial",
        "diary",
        "letter",
        "mail",
        "email",
        "tweet",
        "forum",
        "developing",
        "breaking",
    )
)
_NAME_BEFORE = pattern(
    r"^\W{0,3}[A-Z][\w.'-]{1,20}(?: [A-Z][\w.'-]{0,20}){0,2},? (?:le |am |el |il |on |op |den |em |a |w dniu )?$"
)
_CLOCK_AND_COLON = pattern(r"^,? (?:à|a|at|um|a las|alle|om|kl\.?|o|в)? ?\d{1,2}[:.h]\d\d(?: ?[ap]m| uhr)?(?: ?:| -)\s")
"""After the date of a comment and its author's name: the time of day, and a colon or dash."""
_DATED = pattern(
    r"[†✝]\s{0,2}$|(?<=; )d\. $|\b(?:19|20)\d\d[^\n\d]{0,30}[,;(] ?d\.? $"
    r"|\bd\.? ?d\.? $|\b(?:on |and now, |dated )?this (?:the )?$"
    r"|\b(?:fait|done|given|hecho|dado|dato|fatto|feito|geschehen|gedaan|sporzadzono|dano) (?:a|at|en|zu|te|em|w|v|in)"
    r" [a-z][\w .'-]{2,30}, (?:le |on |this |el |am |den |op |il |dne |dnia |em )?$"
)
"""The sign of death, the Dutch "d.d.", and how deeds are dated: "this 5th day of", "Fait a Lyon, le"."""
_REPORT_OF = pattern(
    r"^\W{0,4}(?:(?:[\w-]+ ){1,2}results?,|(?:approved |draft |official )?"
    r"(?:minutes|transcript|results?|recap|proceedings|resultats|compte rendu"
    r"|resultados|acta|ata|risultati|verbale|protokoll|niederschrift|ergebnisse?|notulen|uitslagen|protokol|wyniki|zapis|vysledky|bollettino|boletin|bulletin|raporto"
    r"|(?:climate|daily|weekly|situation|market|weather|status|auction|sale) report for|sale of|auction of"
    r"|протокол|результаты|итоги|sonuclari|tutanak|referat|poytakirja|jegyzokonyv)\b)[^\n\d]{0,90}$"
)


def heads_a_report(place: DatePlace) -> bool:
    """Whether it is in a dateline or byline, alone with a time, or between separators at the head of a text."""
    if not place.opens_line:
        return False
    before, after = place.before, place.after
    ahead = looks_ahead(before)
    in_head = place.line_start <= _HEAD_CHARACTERS and place.low.count("\n", 0, place.line_start) <= _HEAD_LINES
    if in_head and not ahead and _BYLINE.match(before):
        return True
    if ahead or SCHEDULED.search(before) or FIXTURE.search(before) or (place.short_line and SCHEDULED.search(after)):
        return False
    if _AGENCY_AFTER.match(after) and (_CITY_BEFORE.match(before) or after.lstrip()[:1] in ("(", "/")):
        return True
    if _BRACKETED_CITY.match(before) and _BRACKETED_AGENCY.match(after):
        return True
    if _BRACKET_BEFORE.match(before) and _BRACKET_AFTER.match(after):
        return True
    if (in_head or CLOCK_AFTER.match(after)) and _stands_alone(place):
        return True
    separated = _SEPARATOR_BEFORE.search(before) or _SEPARATOR_AFTER.match(after)
    line = place.low[place.line_start : place.line_end]
    # Several dates in a line are those of events.
    alone = len(line) < LONGEST_HEAD_LINE and len(YEAR.findall(line)) < 2
    return in_head and bool(separated) and alone and not (place.in_table or SCHEDULED.search(line))


def _stands_alone(place: DatePlace) -> bool:
    """Whether the line holds only a day and a time, and what follows is not an agenda item."""
    words = WORDS.findall(f"{place.before} {CLOCK_AFTER.sub('', place.after, count=1)}")
    if not all(word in SMALL or word in weekdays() for word in words):
        return False
    follows = place.low[place.line_end : place.line_end + 120].split(".")[0]
    if FIXTURE.search(follows[:80]) and not holds_score(follows):
        return False
    ahead = SCHEDULED.search(follows[:40]) or WILL.intersection(TOKEN.findall(follows))
    return not (ahead or place.under_a_plan)


def is_posted(place: DatePlace) -> bool:
    """Whether it dates a post, podcast, caption, press release, version, letter or email, or is called "today"."""
    if _NOW.search(place.before, max(0, len(place.before) - _LONGEST_NOW)):
        return True
    if not place.opens_line or place.planned or FIXTURE.search(f"{place.before} {place.after}"):
        return False
    if _VERSION_BEFORE.search(place.before) or _AUTHOR_AFTER.match(place.after) or _WROTE_AFTER.match(place.after):
        return True
    if _HEADING.match(place.before) and len(place.after) < 40:
        return True
    if not place.short_line:
        return False
    beside = place.low[place.line_end : min(place.wide_end, place.line_end + LONGEST_LEAD)]
    if _ROUND_CLOCK_AFTER.match(place.after) and not holds_score(place.after):
        return False
    if _REPORT_BEFORE.search(place.before, max(0, len(place.before) - LONGEST_LEAD)) or _META.search(
        f"{place.before} {place.after} {beside}"
    ):
        return True
    alone = not place.after.strip(" .")
    return alone and _CITY_ALONE.match(place.plain[place.line_start : place.date.start]) is not None


def heads_a_message(place: DatePlace) -> bool:
    """Whether the line names the author and time of an email, chat message or comment."""
    if not place.opens_line or place.planned or FIXTURE.search(f"{place.before} {place.after}"):
        return False
    if _CLOCK_AND_COLON.match(place.after) and _NAME_BEFORE.match(place.plain[place.line_start : place.date.start]):
        return True
    if len(TOKEN.findall(place.before)) <= 1 and _NAME_AFTER.match(place.after):
        return True
    chat = _CHAT_AFTER.match(place.plain[place.date.end : place.line_end])
    return chat is not None and not place.before.strip(" [")


def is_signed(place: DatePlace) -> bool:
    """Whether a time of day precedes the date, as in logs and signatures: "14:26, 16. Juni 2022"."""
    clock = _CLOCK_BEFORE.search(place.before) or _ODD_MINUTE_AFTER.match(place.low, place.date.end)
    return clock is not None and not (place.planned or looks_ahead(place.before[-40:]))


def is_noted(place: DatePlace) -> bool:
    """Whether the date ends a note in brackets that says when something was written: "(Blog, May 8 2024.)"."""
    note = _NOTE_BEFORE.search(place.low, max(0, place.date.start - LONGEST_LEAD), place.date.start)
    if note is None or not _NOTE_AFTER.match(place.low, place.date.end):
        return False
    words = TOKEN.findall(note["words"])
    is_writing = is_stamp(words[0]) or is_document(words[0]) or words[0] in _WRITINGS
    return is_writing and not any(map(is_future, words)) and not PLANNED.search(note["words"])


def dates_a_deed(place: DatePlace) -> bool:
    """Whether it dates a deed, a death or minutes: "Fait à Lyon, le", "Minutes of the meeting of"."""
    if _DATED.search(place.before):
        return True
    before = SPAN_HEAD.sub("", place.before)
    return place.opens_line and _REPORT_OF.match(before) is not None and not looks_ahead(before)


# Measurements, scores and ratings of a day: "Closing price, 5 June 2024: 88.20", "5 June 2024: Ayr 2-1 Ross".

_CLOCK_LIKE = pattern(r"\b(?:[01]?\d|2[0-3])[:.][0-5]\d\b")
_SCORE = pattern(
    r"[a-z.)](?<!\bkl)(?<!\bkl\.)\s(?:\d{1,3}\s?[-:]\s?\d{1,3})(?=[\s(,.;]|$)(?!\s?(?:june|july|pm|am|uhr|h\b))"
    r"|\b[wld]\s\d{1,3}-\d{1,3}\b|\b\d-\d \d-\d\b"
    r"|\b(?:ft|final|full time|result|results?|score)\b[^\n]{0,60}[a-z]\s\d{1,3}\b"
    r"|[a-z]\s\d{1,3},?\s[a-z][a-z .]{1,20}\s\d{1,3}(?:\s(?:final|ft)\b|(?=\W*$))"
)
_FIGURE_AFTER = pattern(
    r"^\W{0,2}[:=]\s?[$€£¥]?[-+]?\d(?!\d?[:h]\d\d)|^ --? [$€£¥]?\d{1,6}[.,]\d{1,4}(?![\d.:-])(?! ?(?:uhr|h|pm|am)\b)"
)
_CLOSE_BEFORE = pattern(r"\d[.,]\d[^\n]{0,40}\b(?:closed?|settled?|last|fixing|schluss|cloture|cierre)[\s:,(]{1,3}$")
"""A price before the day on which it was the last one."""
_DECIMAL = pattern(r"\d[.,]\d")
_OF_DAY_BEFORE = pattern(
    r"[^\W\d_]{3}\S{0,20}\s(?:vom|du|del|dello|della|van|z dnia|z|ze dne|ze|от|від|af den|fran den|din|of)"
    r"\s(?:the )?$"
)
_COLON_AFTER = pattern(r"^\s?:\s")
_VOTES = pattern(r"\d{1,2}(?:[.,]\d{1,2})?\s?%")


def gives_a_figure(place: DatePlace) -> bool:
    """Whether the line gives a figure for that day: "Closing price, 5 June 2024: 88.20"."""
    if not place.short_line or place.planned or FIXTURE.search(f"{place.before} {place.after}"):
        return False
    if _FIGURE_AFTER.match(place.after) and not (SPAN_BEFORE.search(place.before) or YEAR.search(place.before)):
        return True
    in_brackets = place.before.endswith("(") and place.after.startswith(")")
    timed = CLOCK_AFTER.match(place.after) is not None
    closed = not place.after.strip(" .)") and _CLOSE_BEFORE.search(place.before) is not None
    return closed or ((in_brackets or timed) and _DECIMAL.search(place.before) is not None)


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
    has_heading = _OF_DAY_BEFORE.search(place.before) and _COLON_AFTER.match(place.after)
    return bool(has_heading) and not (place.planned or YEAR.search(place.before) or looks_ahead(place.before))


def holds_score(words: str) -> bool:
    """Whether folded lower-case text contains the score of a match; a time of day is not one."""
    return _SCORE.search(_CLOCK_LIKE.sub(" ", words)) is not None
