# ruff: noqa: E501 (tables of words)
"""Years and parts of years that are told as past: "closed two plants in 2026", "in late 2026", "won the 2026 final"."""

import re
from datetime import date

from foretell.questions.as_of import AsOf
from foretell.tools.dates.find import FoundDate, find_in_folded
from foretell.tools.dates.folding import fold, lower, written
from foretell.tools.dates.stamps import MOST_LATE_DATES, is_after
from foretell.tools.dates.tenses import is_told_in_sentence

_YEAR = re.compile(r"20[2-4][0-9](?![0-9%]|[.,:/][0-9]|-[0-9])")
_NO_YEAR_BEFORE = frozenset("0123456789.,:/$€£#-")
_WORD = re.compile(r"[^\W\d_]+")
_REACH = 48
_IN_WORDS = (
    "in during throughout since after im seit während en dans depuis durant desde em durante nel nell dal sinds sedan siden "
    "under i v w we в во у през vuonna vuodesta aastal anul året jahr jahre année año ano anno roku roce godine godini leta "
    "gada году року годзе έτος το από pada tahun sejak năm trong في عام سنة منذ در سال בשנת מאז ב साल वर्ष सन ปี"
)
_IN = frozenset(lower(fold(_IN_WORDS)).split())
"""Words right before a year that something happened in."""
_IN_AFTER = re.compile(
    fold(r"^(?:'?-?(?:da|de|ta|te|ban|ben)\b|-(?:an|en|aan)\b|\s?[年년](?!\s?(?:度|\d))| में| সালে| წელს| թվականին)")
)
"""Endings and words right after such a year."""
_OPENS = re.compile(r"(?:^|[.!?\n]\s*)$")
_SUBJECT = re.compile(
    r" (?:was|were|saw|brought|proved|turned out|marked)\b(?! (?:meant|supposed|to|set|due|expected)\b)"
)
"""What is told of a year itself: "2026 saw fewer strikes"."""
_PART_WORDS = {
    1: "early beginning start anfang début principios comienzos início inicio inizio inizi begin början starten początek "
    "początku počátku začátku начале початку elején başında",
    6: "mid middle mitte mi mediados meados metà medio mitten połowie polovině середине середині közepén ortasında",
    10: "late ende",
    12: "end fin finales final fine eind einde slutet slutningen koniec końcu końca konci konce конце кінці végén végére "
    "sonunda sonuna lopussa lopulla lõpus",
}
_PARTS = {word: month for month, words in _PART_WORDS.items() for word in lower(fold(words)).split()}
"""The month from which on each part of a year begins."""
_SMALL = frozenset(
    lower(fold("of the de del di des do du da van von av af år jahres roku roce года году року r année")).split()
)
_WON = re.compile(
    lower(
        fold(
            r"\b(?:won|beat|defeated|crowned|clinched|winners?|champions?|victory|triumph\w*|gewann|gewonnen|siegte|sieger(?:in)?"
            r"|gagne|remporte|vainqueur|gano|gana|venci[oó]|ganador\w*|campe[oó]n\w*|venceu|ganhou|vinse|vinto|vincitore"
            r"|won|wint|winnaar|vann|vandt|vant|voitti|wygra[lł]\w*|zwyciężył\w*|vyhr[aá]l\w*|v[ií]t[eě]z\w*|выиграл\w*|победил\w*|победитель"
            r"|виграл\w*|переміг|megnyerte|nyerte|castigat|kazandi|κερδισε|juara|menang|vo dich)\b|優勝|冠军|夺冠|우승"
        )
    )
)
_NOT_WON = re.compile(
    r"\b(?:bids?|hosts?|hosting|rights?|place|spot|berth|qualif\w*|promotion|contract|nomination|ticket|primary|odds"
    r"|favou?rites?|to win|could|would|will|if)\b"
)
_ENDED = re.compile(
    lower(
        fold(
            r"\b(?:ended|finished|closed|closing|beendete|beendeten|schloss|termin[eéoó]|a termine|cl[oô]ture|cerr[oó]|fechou|encerrou"
            r"|chiuso|eindigde|sloot|avslutade|avsluttet|sluttede|zakończył\w*|skončil\w*|завершил\w*|закончил\w*)"
            r"(?: (?:the|out|das|das jahr|year|l'annee|el|ano|o|il|anno|het|jaar|aret|rok|год)){0,3} $"
        )
    )
)
"""What was told of a year at its end."""
_LAST_MONTH = 12
_YEARS_AHEAD = 3
"""From how many years ahead on a year is one of targets, bonds and games, whatever the tense."""


def late_year(text: str, as_of: AsOf) -> str | None:
    """Return a year, or a part of one, that was to come at the cutoff and that the text tells something of, or None.

    >>> late_year("The firm closed two plants in 2026.", AsOf.day("2025-04-10"))
    'closed two plants in 2026'
    >>> late_year("The firm cut its forecast for 2026. It plans to close two plants in 2026.", AsOf.day("2025-04-10"))
    """
    plain = fold(text)
    low = lower(plain)
    now = as_of.at.year
    dated: list[FoundDate] | None = None
    for one in list(_YEAR.finditer(low))[:MOST_LATE_DATES]:
        if not now <= int(one[0]) < now + _YEARS_AHEAD or low[max(0, one.start() - 1) : one.start()] in _NO_YEAR_BEFORE:
            continue
        dated = find_in_folded(low) if dated is None else dated
        if any(found.start <= one.start() < found.end for found in dated):
            continue
        if _is_told(text, plain, low, one, as_of):
            return " ".join(plain[max(plain.rfind("\n", 0, one.start()) + 1, one.start() - 22) : one.end()].split())
    return None


def _is_told(text: str, plain: str, low: str, one: re.Match[str], as_of: AsOf) -> bool:
    before, after = low[max(0, one.start() - _REACH) : one.start()], low[one.end() : one.end() + _REACH]
    year = int(one[0])
    if _ENDED.search(before) and is_after(date(year, _LAST_MONTH, 15), as_of):
        return True
    first = _first_day(before, after, year)
    if first is not None and is_after(first, as_of):
        return is_told_in_sentence(*written(text, plain, one.start(), one.end()))
    near = re.split(r"[.;:\n]", before)[-1] + one[0] + re.split(r"[.;,\n]", after)[0]
    if year > as_of.at.year and _WON.search(near) and not _NOT_WON.search(near):
        return is_told_in_sentence(*written(text, plain, one.start(), one.end()))
    return False


def _first_day(before: str, after: str, year: int) -> date | None:
    """Return the day on which the year, or the named part of it, begins, if something may have happened in it."""
    words = _WORD.findall(before)
    place = len(words) - 1
    while place >= 0 and words[place] in _SMALL:
        place -= 1
    if place >= 0 and (month := _PARTS.get(words[place])) is not None:
        return date(year, month, 1)
    inside = bool(words) and before[-1:] in " -" and words[-1] in _IN
    return (
        date(year, 1, 1)
        if inside or _IN_AFTER.match(after) or (_OPENS.search(before) and _SUBJECT.match(after))
        else None
    )
