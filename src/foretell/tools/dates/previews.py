"""Statements about days to come: expectations, prices, polls, purposes, and events that something is for.

Their verbs may be in the past: "traders pared bets on a cut in June", "threatened to stop work on 1 May". Their date is
not that of the verb, and whether they reveal anything is for the content filter to decide.
"""

from collections.abc import Sequence
from itertools import pairwise

from foretell.patterns import pattern
from foretell.tools.dates.find import weekdays
from foretell.tools.dates.languages import CLAUSE, Language, matches_at

_OTHER_CLAUSE_WORDS = "and und et och og και и than as despite although while but als wie mais pero"
_OTHER_CLAUSE = CLAUSE | frozenset(_OTHER_CLAUSE_WORDS.split())
"""Signs and words after which another clause or a comparison begins: "cut on 6 June as expected"."""
NEAR_BEFORE = 6
"""How many words before a date are searched for words of deadlines, ranges and purposes."""


def is_preview(language: Language, sentence: str, left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether the date between two parts of a sentence is not that of what the sentence reports.

    `sentence` ends before the date and has its capitals; `left` are its words, and `right` those after the date.
    """
    if _is_for_an_event(language, left) or _is_of_infinitive(language, left, right):
        return True
    if language.code == "en" and (_is_of_another_verb(sentence, left, right) or _is_noun(left, right)):
        return True
    start = max((place + 1 for place, word in enumerate(left) if word in _OTHER_CLAUSE), default=0)
    end = next((place for place, word in enumerate(right) if word in _OTHER_CLAUSE), len(right))
    clause = [*left[start:], *right[:end]]
    if _is_awaited(language, clause) or (language.code == "en" and _is_estimated(clause)):
        return True
    return _has_another_time(language, [*left[start:-1], *right[1:end]])


def _is_awaited(language: Language, clause: Sequence[str]) -> bool:
    """Whether the date's own clause is about an expectation, a price or a poll."""
    return any(matches_at(language, language.awaited, clause, place) for place in range(len(clause)))


_ESTIMATE_WORDS = """
model models nowcast nowcasts poll polls survey surveys simulation simulations projection projections tracker trackers
average averages estimate estimates forecast forecasts seers pundits odds prices markets contract contracts
"""
_ESTIMATES = frozenset(_ESTIMATE_WORDS.split())
_ESTIMATED_WORDS = """
had has have gave give gives put puts showed show shows saw see left leave leaves pointed point suggested suggest
suggests placed implied found imply moved led leads favoured favored
"""
_ESTIMATED = frozenset(_ESTIMATED_WORDS.split())


def _is_estimated(clause: Sequence[str]) -> bool:
    """Whether a model, a poll or a price says how the date turns out: "the model had them on 108 seats on 4 July"."""
    return any(
        word in _ESTIMATES and not _ESTIMATED.isdisjoint(clause[place + 1 : place + _ESTIMATE_REACH])
        for place, word in enumerate(clause)
    )


_ESTIMATE_REACH = 8
"""Within how many words its verb follows a word for an estimate."""

_INFINITIVE = pattern(r"\b([a-z]+) to ([a-z]{2,})\b(?![^,;:()–—]*[,;:()–—])")
_NO_INFINITIVE_WORDS = """
the an its his her their our my your this that these those it them him us me all one two three four five six seven
eight nine ten about almost nearly more less power work office court prison hospital parliament congress zero normal
life death war earth school church town air land just under over
"""
_NO_INFINITIVE = frozenset(_NO_INFINITIVE_WORDS.split())
"""Words after "to" that are not verbs."""
_DONE_BEFORE_TO_WORDS = """
managed failed began started continued refused came went seemed proved able forced helped used had on according thanks
close led response compared contrary up subject addition similar equal related next down back returned fell rose
dropped climbed jumped slid moved sold sent told gave lost woke turned switched succumbed added spread stuck came
"""
_DONE_BEFORE_TO = frozenset(_DONE_BEFORE_TO_WORDS.split())
"""Words before "to" after which the verb has happened, or is none."""
_WHICH_PRESENT = pattern(
    r"\b(?:(?:which|who) ([a-z]+(?<!s)s|open|begin|start|take|run|end|vote|are)"
    r"|that (vote|join|takes|hits|opens|begins|starts|ends|runs|comes|goes|votes|closes|expires|is|are))\b[^,;:()–—]*$"
)
_ABOUT_AN_EVENT = pattern(
    r"\b(?:because of|over|against|towards?) (?:the|an?|its|their) (?:[a-z'-]+ ){1,3}(?:on|in|of) $"
    r"|\b(?:about|pending) (?:[\w'-]+ ){1,7}(?:on|in|of) (?:the )?$"
)
_FOR_WORDS = {
    "en": "for before", "de": "für vor", "fr": "pour avant", "es": "para antes", "it": "per prima", "pt": "para antes",
    "nl": "voor vóór", "sv": "för inför före", "da": "for før inden", "no": "for før", "ru": "к на перед",
    "uk": "до на перед", "pl": "na przed", "cs": "na před",
}  # fmt: skip
_FOR = {code: frozenset(words.split()) for code, words in _FOR_WORDS.items()}
"""Words before an event that is still to come when something is done for it, or done before it."""
_CASES = frozenset(("pl", "ru", "uk", "cs"))
"""Languages in which no preposition stands between an event and its date."""
_TIMES_WORDS = "time times day days week weeks month months year years hour hours mal jahre fois ans vez años volta"
_TIMES = frozenset(_TIMES_WORDS.split())
"""Words after "for" that are not events: "for the first time in June"."""
_TRADED = frozenset(("contract", "contracts", "futures", "delivery", "option", "options", "expiry"))
_OPTIONS = frozenset(("calls", "puts", "call", "put", "straddle", "straddles", "strike"))
"""Words right after the month in which options expire."""
_NO_PRESENT = frozenset(("was", "has"))
"""Words in -s that are not verbs in the present."""
_DATE_WORDS = "on in at of by from since until till before after to the during for through about around mid late early"
BEFORE_DATE = frozenset(_DATE_WORDS.split())


def _is_of_another_verb(before: str, left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether the date belongs to an infinitive, to a relative clause in the present, or is itself an object.

    "threatened to stop work on 1 May", "passed the act that takes force on 1 August", "picked 1 May for the launch".
    """
    if (purpose := list(_INFINITIVE.finditer(before))) and purpose[-1][1] not in _DONE_BEFORE_TO:
        verb = purpose[-1][2]
        if verb not in _NO_INFINITIVE and not verb.endswith("ing") and (not verb.endswith("s") or verb.endswith("ss")):
            return True
    if (present := _WHICH_PRESENT.search(before)) is not None and present[1] not in _NO_PRESENT:
        return True
    if right[:1] and right[0] in _OPTIONS:
        return True
    if before.endswith("date of ") or _ABOUT_AN_EVENT.search(before) or not _TRADED.isdisjoint(right[:NEAR_BEFORE]):
        return True
    return bool(left) and right[:1] in (["for"], ["as"]) and left[-1] not in BEFORE_DATE | CLAUSE | weekdays()


_NO_DEEDS = frozenset(("set", "chosen", "only", "never", "not", "also", "always", "still", "likely", "seen"))
"""Words after "was" that say something of a day itself, like participles in -ed: "23 March 2025 was mentioned"."""


def _is_noun(left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether the date is not that of a verb but itself a subject or an object.

    "23 March 2025 was mentioned by two ministers", "he thought 15 August 2025 a strange date".
    """
    before = left[-1] if left else ","
    if len(right) > 1 and right[0] in ("was", "is") and left[:1] in (["a"], ["an"]) and CLAUSE.isdisjoint(left):
        # Something that may happen has an indefinite article: "a shutdown on 14 March was never likely".
        return right[1] in _NO_DEEDS
    if len(right) < 2 or before in BEFORE_DATE | weekdays() or before in "–—(":
        return False
    if left and before == "," and right[0].endswith("ed"):
        return True
    if right[0] in ("was", "is", "had"):
        return right[1].endswith("ed") or right[1] in _NO_DEEDS
    return right[0] in ("a", "an") and before not in CLAUSE


_INFINITIVE_ENDINGS = {
    "es": ("ar", "er", "ir", "arse", "erse", "irse"), "pt": ("ar", "er", "ir"), "it": ("are", "ere", "ire", "rsi"),
    "fr": ("er", "ir", "re"), "ru": ("ать", "ять", "ить", "еть", "уть", "ться", "тись"),
    "uk": ("ати", "ити", "іти", "яти", "тися"), "pl": ("ać", "ić", "yć", "eć", "ąć"),
}  # fmt: skip
_BEFORE_INFINITIVE = {
    "es": "a de para", "pt": "a de para por", "it": "di a ad per da",
    "fr": "de d à se s pour doit doivent devait va vont",
}  # fmt: skip
"""Words before an infinitive, in languages in which many nouns have the same endings."""
_PARTICLES = {
    "de": pattern(
        r"\bzu \w+e?n$|\b(?:ab|an|auf|aus|bei|ein|vor|zurück|nach|um|zusammen|teil|fort|weg|mit|fest)zu\w+e?n$"
    ),
    "nl": pattern(r"\bte \w+e?n$"),
}
"""Infinitives that end the clause of the date."""
_DONE_WORDS = """
logró lograron consiguió consiguieron pudo pudieron acaba acaban acabó volvió volvieron llegó conseguiu pôde voltou
è riuscito riuscita riusciti vient viennent réussi pu dû failli fini commencé continué смог смогла смогли удалось начал
начала начали стал стала стали успел успела успели продолжил зміг вдалося почав zdołał udało zaczął zaczęła zaczęli
"""
_DONE = frozenset(_DONE_WORDS.split())
"""Words with an infinitive for what has happened: "logró ganar", "vient de baisser"."""


def _is_of_infinitive(language: Language, left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether the date's verb is an infinitive: "acordaron reunirse el 2 de junio", "am 26. April zu entscheiden"."""
    endings, leads = _INFINITIVE_ENDINGS.get(language.code), _BEFORE_INFINITIVE.get(language.code, "").split()
    clause = left[max((place + 1 for place, word in enumerate(left) if word in CLAUSE), default=0) :]
    if (particle := _PARTICLES.get(language.code)) is not None:
        rest = " ".join(right[: next((place for place, word in enumerate(right) if word in CLAUSE), len(right))])
        told = any(matches_at(language, language.told, clause, place) for place in range(len(clause)))
        return not told and particle.search(rest) is not None
    if endings is None:
        return False
    if not _DONE.isdisjoint(clause):
        return False
    for place in range(len(clause) - 1, 0, -1):
        word, lead = clause[place], clause[place - 1]
        led = not leads or lead in leads or word.endswith("se") or matches_at(language, language.told, [lead], 0)
        if led and len(word) > _SHORT_INFINITIVE and word.endswith(endings):
            return True
        if matches_at(language, language.told, [word], 0):
            return False
    return False


_SHORT_INFINITIVE = 4
"""Up to how many letters a word with the ending of an infinitive is too often another word."""


def _is_for_an_event(language: Language, left: Sequence[str]) -> bool:
    """Whether the date is that of an event that something is for: "candidates for the vote on 6 June"."""
    words = _FOR.get(language.code, frozenset())
    # The event is named between, and in most languages a preposition follows it.
    last = len(left) - (1 if language.code in _CASES else 2)
    first = max(0, len(left) - (_NEAR_EVENT if language.code == "en" else NEAR_BEFORE))
    place = max((place for place in range(first, last) if left[place] in words), default=-1)
    if place < len(left) - NEAR_BEFORE and left[place + 1 : place + 2] not in _EVENT_STARTS:
        return False
    between = left[place + 1 :]
    if place >= 0 and left[place] in _AT_TOO and between[0].endswith(_AT_ENDINGS):
        return False
    return place > 0 and CLAUSE.isdisjoint(between) and _TIMES.isdisjoint(between)


_AT_TOO = frozenset(("на", "na"))
_AT_ENDINGS = ("ах", "ях", "ании", "ении", "ach", "iu", "cie")
"""Slavic nouns after which "на" means "at": "победила на выборах"."""
_NEAR_EVENT = 9
"""How many words before a date are searched for an event with an article: "for their game in São Paulo on"."""
_EVENT_STARTS = (["the"], ["a"], ["an"], ["its"], ["his"], ["her"], ["their"])


def _has_another_time(language: Language, clause: Sequence[str]) -> bool:
    """Whether the clause says when its verb happened: "agreed on Tuesday to vote on 6 June"."""
    if any(len(word) > _SHORT_DAY and word in weekdays() for word in clause):
        return True
    if language.code != "en":
        return False
    # "Down 4 percent on a year earlier" compares.
    return any(
        pair in _OTHER_TIMES and not (place > 1 and clause[place - 1] == "a" and clause[place - 2] in _COMPARING)
        for place, pair in enumerate(pairwise(clause))
    )


_COMPARING = frozenset(("on", "than", "from", "over", "against", "versus"))


_SHORT_DAY = 4
"""Up to how many letters the name of a weekday may also be another word."""
_OTHER_TIMES = frozenset(
    {("last", span) for span in ("week", "month", "year", "night", "summer", "autumn", "winter", "spring")}
    | {("this", span) for span in ("week", "month", "morning")}
    | {
        (f"{span}{plural}", ago)
        for span in ("day", "week", "month", "year")
        for plural in ("", "s")
        for ago in ("ago", "earlier")
    }
)
