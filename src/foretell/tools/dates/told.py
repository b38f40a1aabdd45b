"""Sentences that tell something as done on a day: "The bank cut its rate on 6 June 2024"."""

import re

from foretell.tools.dates.words import FUTURE_SIGN, TOKEN, WILL, AnyOf

_AHEAD = re.compile(
    r"\b(?:will|would|could|may|might|shall|should|must|can|cannot|due|if|unless|whether|schedul\w+|plan\w*|expect\w*"
    r"|until|till|deadline|next|upcoming|forecast\w*|project(?:s|ed|ion)|propos\w+|hop(?:e|es|ed)|aim\w*|ahead|before"
    r"|expires?|ends|runs|takes?|begins?|starts|opens|closes|arrives?|lapses?|falls on|matures?|returns|leaves"
    r"|resumes?|reopens?|votes|meets?|faces|(?:vote|run|open|start|return|end|close) (?:on|in|to|again)|intend\w*"
    r"|set|postpon\w+|extend\w+|delay\w*|moved|adjourn\w+|resched\w+"
    r"|slat\w+|pushed|slipped|book\w*|call\w*|fixed|pledg\w+|vow\w*|promis\w+|order\w*|invit\w+|summon\w*|sale"
    r"|ticket\w*"
    r"|is|are|be|to|for|about|likely|eligible|anniversary|term|question|resolves?|poll|bets?|odds|guidance|outlook)\b"
)
_SAID = re.compile(r"\b(?:said|says|told|announced|agreed|confirmed|warned|reported|declared|wrote|noted|added)\b")
_DONE = re.compile(
    r"\b(?:was|were|had|did|won|lost|beat|fell|rose|cut|raised|held|kept|resigned|died|ended|passed|ruled|rejected"
    r"|approved|signed|exploded|crashed|came|struck|hit|killed|arrested|elected|defeated|closed|opened|launched|landed"
    r"|collapsed|resumed|voted|lifted|lowered|hiked|dropped|climbed|jumped|gained|slid|broke|became|took|left|made|went"
    r"|gave|began|started|withdrew|acquired|bought|sold|filed|convicted|sentenced|acquitted|scored|finished|failed"
    r"|escaped|attacked|invaded|released|published|vetoed|adopted|ratified|sworn|inaugurated|appointed|fired|dismissed"
    r"|overturned|upheld|blocked|granted|denied|settled|stepped|quit|reached|completed|merged|defaulted|erupted|burned"
    r"|entered|received|issued|sank|seized|captured|freed|returned|arrived|met|announced|confirmed|said|reported"
    r"|declared|decided|ousted|toppled|declined|surged|plunged|tumbled|soared|edged|ticked|topped|exceeded)\b"
)
_ON = re.compile(
    r"(?:\bon|\bon the|\bon (?:mon|tues|wednes|thurs|fri|satur|sun)day,?|\b(?:mon|tues|wednes|thurs|fri|satur"
    r"|sun)day,?)\s?$"
)
_OPENS = re.compile(r"^[\s\"'(]{0,3}(?:on\s|in\s)?(?:the\s)?(?:[a-z]{3,9},?\s)?$")
_SINCE = re.compile(r"\b(?:since|seit(?: dem)?|depuis(?: le)?|sinds|ever since)\s$")
_UNTIL = re.compile(r"^\W{0,3}(?:until|up to|till|bis zum|jusqu'au|hasta el|fino al)\s$")
_WAS = re.compile(r"^,?\s(?:[a-z]{1,12}\s){0,3}(?:was|were|had|war|etait|era)\b")

# Past tenses of other languages, in folded letters: which sentences are of the language, and what is done in them.

_DONE_ELSEWHERE = tuple(
    (re.compile(written), re.compile(done))
    for written, done in (
        (
            r"\b(?:am|vom|den|dem)\s\W?$|^\W?(?:am|vom)\s",
            r"\b(?:hat|haben|wurde|wurden|war|waren)\b[^.]{0,90}\b(?:ge\w{2,}|\w{2,}ge\w{2,}|\w{3,}(?:iert|worden))\b"
            r"|^\W?\s?(?:\w{3,}te|sank|stieg|fiel|starb|gewann|verlor|trat|hob|nahm|kam|brach|begann|schloss|wies)\b",
        ),
        (
            r"\ble\s$",
            r"\b(?:a|ont|avait)\s(?:\w{2,9}\s)?\w{2,}(?:e|ee|es|i|u|is|it|us|ert)\b"
            r"|\b(?:est|sont) (?:mort|decede|tombe|entre|devenu)e?s?\b",
        ),
        (
            r"\b(?:el|dia)\s$",
            r"\b(?:bajo|subio|gano|perdio|murio|aprobo|recorto|firmo|cayo|dimitio|renuncio|voto|rechazo|decidio"
            r"|redujo|elevo"
            r"|mantuvo|fallecio|vencio|derroto|cerro|fue (?:elegid|detenid|aprobad)\w|ha (?:bajad|subid|ganad"
            r"|aprobad|firmad)o)\b",
        ),
        (
            r"\b(?:il|l')\s?$",
            r"\b(?:ha|hanno)\s(?:\w{2,9}\s)?\w{2,}(?:ato|uto|ito|so|tto|sto)\b|\be (?:stat|mort|cadut)[oa]\b",
        ),
        (
            r"\b(?:em|dia)\s$",
            r"\b\w{3,}(?:ou|iu)\b|\b(?:morreu|venceu|perdeu|foi (?:eleit|pres|aprovad|assinad)[oa])\b",
        ),
        (r"\bop\s$", r"^\s\w{4,}(?:de|te)\s|\b(?:heeft|hebben|werd|werden)\b"),
        (r"\bden\s$", r"^\s\w{4,}(?:de|te)\s|\b(?:har|hade|blev)\s\w{3,}(?:t|ts|d|dt)\b"),
    )
)
"""By the word before the date."""
_DONE_BY_MONTH = tuple(
    (re.compile(months), re.compile(done))
    for months, done in (
        (
            "stycznia|lutego|marca|kwietnia|maja|czerwca|lipca|sierpnia|wrzesnia|pazdziernika|listopada|grudnia",
            r"\b\w{4,}(?:yl|il|al|yla|ila|ala|ylo|ilo|alo|yli|ili|ali|eli)\b",
        ),
        (
            "ocak|subat|mart|nisan|mayis|haziran|temmuz|agustos|eylul|ekim|kasim|aralik",
            r"\b\w{3,}(?:di|du|ti|tu)\b\W{0,2}$",
        ),
        ("[а-я]", r"\b\w{3,}(?:ил|ал|ел|ыл|ила|ала|ела|ило|ало|или|али|ели|лся|лась|лось|лись)\b"),
    )
)
"""By the name of the month."""
_DONE_ASIA = re.compile(
    r"(?:した|された|った|なった|れた|いた|んだ)[。.]?\s?$|了[。.]?\s?$|已经|宣布|[했됐였었았]다[.]?\s?$|[했됐였었았]습니다[.]?\s?$"
)
_PLANNED_ELSEWHERE = AnyOf(
    r"angesetzt|verschob|geplant|festgelegt|terminier|verlanger|kundigt|angekundigt|einberuf|rief|ladt|\bbis\b"
    r"|\bab\b|prevu"
    r"|fixe|reporte|prolonge|annonc|convoque|avant|jusqu|prochain|previst|fijad|aplazad|convoc|anunci|hasta|antes|desde"
    r"|prorrog|fissat|rinviat|convocat|entro|prossim|marcad|adiad|ate\b|gepland|uitgesteld|aangekondigd|volgend|planer"
    r"|inplaner|uppskjut|zaplanow|przeloz|wyznacz|ogłosil|oglosil|zapowied|planovan|odloz|назнач|отлож|перенес|объяви"
    r"|заплан|продл|призна|ertele|planlan|acikla|olacak|ecek\b|acak\b"
)


def is_told_as_done(before: str, day: str, after: str) -> bool:
    """Whether a sentence tells, as done, what happened on a day; plans and conditions do not.

    >>> is_told_as_done("the bank cut its rate on ", "6 june 2024", ".")
    True
    >>> is_told_as_done("the vote was postponed to a session on ", "6 june 2024", ".")
    False
    """
    if _SINCE.search(before):
        return True
    if _UNTIL.search(before) and _WAS.search(after):
        return True
    if FUTURE_SIGN.search(before) or FUTURE_SIGN.search(after) or WILL.intersection(TOKEN.findall(f"{before} {after}")):
        return False
    return _in_english(before, after) or _elsewhere(before, day, after)


def _in_english(before: str, after: str) -> bool:
    if _OPENS.match(before):
        # On that day, something was done: look at the next words.
        clause = " ".join(after.split()[:12])
        done = _DONE.search(clause)
        return (
            done is not None
            and _AHEAD.search(clause[: done.start()]) is None
            and not _planned_after(clause[done.end() :])
        )
    on = _ON.search(before)
    if on is None:
        return False
    clause = " ".join(before[: on.start()].split()[-14:])
    found = list(_DONE.finditer(clause))
    if not found or len(clause[found[-1].end() :].split()) > 7:
        return False
    attached = not clause[found[-1].end() :].strip()
    if _AHEAD.search(clause[found[-1].end() :]) or (_SAID.search(clause) and not attached):
        return False
    return not _planned_after(clause[: found[-1].start()])


_PLANNED_AROUND = re.compile(
    r"\b(?:will|would|could|may|might|should|must|if|unless|plan\w*|expect\w*|schedul\w+|postpon\w+|due|until|deadline"
    r"|adjourn\w+|extend\w+|forecast\w*|hop(?:e|es|ed)|is|are|be|next|slat\w+|set (?:to|for)|intend\w*|propos\w+"
    r"|(?:was|were) to)\b"
)


def _planned_after(words: str) -> bool:
    return _PLANNED_AROUND.search(words) is not None


def _elsewhere(before: str, day: str, after: str) -> bool:
    if not after.isascii() and _DONE_ASIA.search(after):
        return True
    if _PLANNED_ELSEWHERE.search(before) or _PLANNED_ELSEWHERE.search(after):
        return False
    whole = f"{before} {after}"
    if any(written.search(before) and (done.search(after) or done.search(whole)) for written, done in _DONE_ELSEWHERE):
        return True
    return any(months.search(day) and done.search(whole) for months, done in _DONE_BY_MONTH)
