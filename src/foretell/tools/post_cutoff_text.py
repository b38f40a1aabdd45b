"""Finds and removes passages of a question's own text that reveal events after the question's date.

Questions name future days: deadlines, schedules, "by 31 December". Those are not leaks. Leaks are later dates on which
a part of the text was written ("Updated June 7, 2024: …"), later events described as past, rows of later numbers, and
addresses with a later date.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import compress
from operator import not_

from foretell.data.datasets.question_set import LeakyQuestions
from foretell.data.untrusted import for_terminal, reworded
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, Target
from foretell.tools.addresses import UnreadableAddress, address_of, closed_platforms
from foretell.tools.dates.addresses import late_address
from foretell.tools.dates.find import FoundDate, find_in_folded
from foretell.tools.dates.folding import fold, lower, unfolded
from foretell.tools.dates.stamps import MOST_LATE_DATES, is_after, late_stamps
from foretell.tools.dates.words import TOKEN, is_stamp

CUT_MARK = "[a passage written later is left out]"
"""Replaces post-cutoff sentences."""
LONGEST_SHOWN = 200
LONGEST_READ = 60_000
"""Maximum characters of a text that are checked. The rest counts as post-cutoff text."""
FACT_FIELDS = ("criteria", "background", "unit")
"""Fields that state facts. The question itself and its options may be statements in any tense."""
MOST_FOUND = 20
"""Maximum number of passages reported per text. More are found after these are cut."""
_REACH = 400
"""Characters of a sentence that are checked on each side of a date."""
_SENTENCE_END = pattern(r"(?<=[.!?])[\"'”’)*]{0,3}\s+(?=[^\sa-z])|\n")
_PARAGRAPH_END = pattern(r"\n[ \t]*\n")
_ADDRESS = pattern(r"https?://[^\s<>\"')\]#]{1,400}")
"""An address without its fragment, which names a section and not a day."""
_WHOLE_ADDRESS = pattern(r"https?://[^\s<>\"')\]]{1,400}")
_AHEAD_WORDS = r"""
will would shall should must if whether before until till between after through throughout resolves? resolving
resolution any expect\w* schedul\w* due deadline to\sbe might may(?=\s[a-z]{2,}\s) could can cannot plan\w* unless when
once following starting no\slater prior closes? ends? next upcoming target\w* set\s(?:to|for|a) expir\w* within during
forecast\w* predict\w* project\w* propos\w* slated bets? assum\w* suppos\w* hypothe\w* example e\.g upon otherwise else
needs? require\w* counts? eligible valid last\sday first\sday be begins? starts? aim\w* pledg\w* promis\w* intend\w*
option\w* as\sof estimat\w* anticipat\w* postpon\w* delay\w* moved extend\w* takes? enters? comes? goes opens? meets?
votes? hosts? faces? returns? remains? stays? runs? matures? effective decides? determines? settles?
is\s(?:on|at|for|in|used) on\ssale
"""
_AHEAD = pattern(rf"\?|\b(?:{'|'.join(_AHEAD_WORDS.split())})\b")
"""Words of plans, conditions and questions. A sentence with one of them does not describe the past."""
_BY = pattern(
    r"\b(?:by|from|since|on or about|to|for|of|[a-z]{2,12}ing)\s+(?:the\s+)?(?:end\s+of\s+)?(?:[a-z]{3,9},?\s+)?$"
)
"""Words right before a date that mark a deadline or the start of a period."""
_CONDITION = pattern(r"\b(?:if|whether|will|would|unless|through|between|until|before|si|wenn|ob|falls)\b")
_SOURCE = pattern(
    r"[a-z0-9)\"']\s+(?:published|released|issued|posted|reported)\s+(?:on\s+|in\s+)?(?:[a-z]{3,9},?\s+)?$"
)
"""A source that decides the question and is named by its publication day: "the table published on 1 July 2026"."""
_NOTE = pattern(
    r"^\W{0,6}(?:fine print|clarif\w*|comment\w*|note|post-?mortem|addend\w*|errat\w*|amend\w*|remark|added|admin"
    r"|p\.?s\b|moderator|creator|author|chang\w*)\b[^.!?\n]{0,60}$"
)
_NOTE_END = pattern(r"^\W{0,3}[:\-]")
"""What follows the date of a remark that begins with it."""
_TOLD = pattern(
    r"\b(?:was|were|did|had|has|cut|won|lost|said|rose|fell|beat|became|began|came|went|took|gave|made|held|met|left"
    r"|voted|died|hit|saw|got|led|sold|bought|paid|broke|chose|drew|grew|kept|ran|sent|shot|stood|struck|told|wrote"
    r"|[a-z]{3,15}(?<!ne)(?<!ee)(?<!spe)ed)\b"
)
"""Verbs for something that has happened."""
_AS_ANNOUNCED = pattern(r", as (?:was |already |officially |has been |later )?[a-z]{3,12}ed (?:[a-z]{2,12} ){0,6}$")
"""The time of an announcement, which is not part of a statement: "Yes, as announced on"."""
_NUMBER_ROW = pattern(r"\W{0,4}(?:19|20)\d\d-\d\d-\d\d[\s:,;|=]{1,4}[-+$€£]?\d[\d.,]{0,20}\s?%?\W{0,4}")
"""A line with a day and a number."""


@frozen
class PostCutoffPassage:
    """A passage in a question's text that was written after the question's date, or describes later days as past."""

    field: str
    """question, criteria, background, unit, last value, or "option" with the option's id."""
    found: str
    """The date with a few words before it."""
    sentence: str

    def __str__(self) -> str:
        """Return a readable description on one line.

        >>> print(PostCutoffPassage(field="background", found="Updated June 7", sentence="Updated June 7, 2024: yes."))
        background: “Updated June 7” in “Updated June 7, 2024: yes.”
        """
        return for_terminal(f"{self.field}: “{self.found}” in “{self.sentence}”")


def post_cutoff_passages(question: Question, as_of: AsOf | None = None) -> tuple[PostCutoffPassage, ...]:
    """Return all post-cutoff passages of a question, as of the time the question is asked in a backtest."""
    cutoff = as_of or question.as_of
    return tuple(
        PostCutoffPassage(field=name, found=date_text, sentence=_shown(text, place))
        for name, text in _texts(question)
        for place, date_text in _late_places(text, cutoff, states_facts=name in FACT_FIELDS)
    )


def without_post_cutoff_passages(question: Question, as_of: AsOf | None = None) -> Question:
    """Return the question with a mark in place of each post-cutoff sentence and the rest of its paragraph."""
    cutoff = as_of or question.as_of
    unit = question.range.unit if question.range is not None else ""
    if unit != (shortened := _cut(unit, cutoff, states_facts=True)):
        # Labels and background repeat the unit within sentences.
        question = reworded(question, lambda text: text.replace(unit, shortened))
    cut = {name: _cut(getattr(question, name), cutoff, states_facts=True) for name in ("criteria", "background")}
    return replace(reworded(question, lambda text: _cut(text, cutoff, states_facts=False)), **cut)


def tells_later_events(text: str, as_of: AsOf) -> bool:
    """Whether a text written for a question was written after the cutoff, or describes later days as past.

    >>> tells_later_events("The bank cut its rate on 6 June 2024.", AsOf.day("2024-04-01"))
    True
    """
    return bool(_late_places(text, as_of, states_facts=True))


def split_leaky(
    questions: Sequence[Question], leaky_questions: LeakyQuestions
) -> tuple[list[Question], list[Question]]:
    """Return the questions to ask in a backtest, and those left out because their own text was written later."""
    late = [leaky_questions != "keep" and bool(post_cutoff_passages(question)) for question in questions]
    if leaky_questions == "exclude":
        return list(compress(questions, map(not_, late))), list(compress(questions, late))
    return [without_post_cutoff_passages(q) if cut else q for q, cut in zip(questions, late, strict=True)], []


def _name(target: Target) -> str:
    """Return an option's id as text, or "" if it is only the day the option resolves on, which reveals nothing."""
    day = target.resolves_at
    return "" if day is not None and target.id == day.date().isoformat() else target.id


def _texts(question: Question) -> Iterator[tuple[str, str]]:
    """Yield every text of a question that a model reads, with the name of its field."""
    yield "question", question.text
    yield "criteria", question.criteria
    yield "background", question.background
    yield from ((f"option {target.id}", target.label or _name(target)) for target in question.targets)
    if question.range is not None:
        yield "unit", question.range.unit
    if question.last_value is not None:
        yield "last value", question.last_value.meaning


def _shown(text: str, place: int) -> str:
    start, end = _sentence(text, place, place)
    sentence = " ".join(text[start:end].split())
    return sentence if len(sentence) <= LONGEST_SHOWN else f"{sentence[: LONGEST_SHOWN - 1]}…"


def _cut(text: str, as_of: AsOf, *, states_facts: bool) -> str:
    for _ in range(5):
        places = _late_places(text, as_of, states_facts=states_facts)
        if not places:
            return text
        pieces: list[str] = []
        reached = 0
        for place, _ in places:
            if place < reached:
                continue
            start, end = max(reached, _sentence(text, place, place)[0]), _PARAGRAPH_END.search(text, place)
            pieces += [text[reached:start], CUT_MARK]
            reached = end.start() if end is not None else len(text)
        text = "".join([*pieces, text[reached:]])
    return CUT_MARK


@lru_cache(maxsize=20_000)
def _late_places(text: str, as_of: AsOf, *, states_facts: bool) -> tuple[tuple[int, str], ...]:
    """Return the positions of post-cutoff passages in a text, with their dates as written.

    Cached, because rounds contain the same texts repeatedly.
    """
    checked = text[:LONGEST_READ]
    plain = fold(checked)
    low = lower(plain)
    # Addresses are judged separately, because a section named after a future day does not date the text.
    addresses = [range(*match.span()) for match in _WHOLE_ADDRESS.finditer(plain)]
    late_by_place = {
        place: shown
        for place, shown in late_stamps(checked, as_of)
        if not _conditional(plain, place) and not any(place in address for address in addresses)
    }
    if not states_facts:
        late_by_place = {place: shown for place, shown in late_by_place.items() if not _stated(plain, place)}
    late = [
        found_date for found_date in find_in_folded(low) if all(is_after(day, as_of) for day in found_date.readings)
    ]
    for found_date in late[:MOST_LATE_DATES]:
        if any(found_date.start in address for address in addresses):
            continue
        if _is_late_fact(plain, low, found_date) if states_facts else _as_announced(plain, low, found_date):
            late_by_place.setdefault(
                found_date.start, " ".join(plain[max(0, found_date.start - 30) : found_date.end].split())
            )
    if len(late) > MOST_LATE_DATES:
        late_by_place[late[MOST_LATE_DATES].start] = f"more than {MOST_LATE_DATES} dates after the cutoff"
    for address in _ADDRESS.finditer(plain):
        if not _names_a_question(address[0]) and (dated := late_address(address[0], as_of)) is not None:
            late_by_place.setdefault(address.start(), dated)
    places = [(unfolded(checked, plain, place), shown) for place, shown in sorted(late_by_place.items())[:MOST_FOUND]]
    return (*places, (LONGEST_READ, f"more than {LONGEST_READ:,} characters")) if text != checked else tuple(places)


def _names_a_question(url: str) -> bool:
    """Whether an address belongs to a forecasting platform, whose addresses repeat the question and its deadline."""
    try:
        address = address_of(url)
    except UnreadableAddress:
        return False
    return address is not None and closed_platforms().over(address) is not None


def _conditional(plain: str, place: int) -> bool:
    """Whether a stamp's date was known in advance, as in "if … from 3 to 9 May 2026 (as checked on …)"."""
    start, end = _sentence(plain, place, place)
    before = lower(_ADDRESS.sub(" ", plain[start:place]))
    return bool(_CONDITION.search(before) or _SOURCE.search(before)) or plain[start:end].rstrip().endswith("?")


def _stated(plain: str, place: int) -> bool:
    """Whether a date is part of a statement, rather than of a line that begins with "Updated" or with the date."""
    start, _ = _sentence(plain, place, place)
    words = TOKEN.findall(lower(plain[start:place]))
    return len(words) > 2 and not is_stamp(words[0])


def _is_late_fact(plain: str, low: str, found_date: FoundDate) -> bool:
    """Whether a date belongs to something described as past, or to a row of numbers."""
    return _describes_past(plain, found_date) or _NUMBER_ROW.fullmatch(_line_at(low, found_date.start)) is not None


def _as_announced(plain: str, low: str, found_date: FoundDate) -> bool:
    """Whether a statement contains the date of its announcement, which is not part of the question."""
    before = low[max(0, found_date.start - 60) : found_date.start]
    return _AS_ANNOUNCED.search(before) is not None and not _conditional(plain, found_date.start)


def _describes_past(plain: str, found_date: FoundDate) -> bool:
    """Whether the sentence around a date says what happened on it, and neither asks nor plans anything."""
    start, end = _sentence(plain, found_date.start, found_date.end)
    before, after = lower(plain[start : found_date.start]), lower(plain[found_date.end : end])
    sentence = f"{before} {after}"
    if _NOTE.match(before) and _NOTE_END.match(plain[found_date.end : found_date.end + 5]):
        return True
    if _BY.search(before) or _AHEAD.search(sentence) or (found_date.precision != "day" and not before.endswith("in ")):
        return False
    return _TOLD.search(sentence) is not None


def _sentence(text: str, start: int, end: int) -> tuple[int, int]:
    """Return start and end of the sentence around a position, within the range that is checked."""
    first = max(0, start - _REACH)
    starts = [match.end() for match in _SENTENCE_END.finditer(text, first, start)]
    ends = _SENTENCE_END.search(text, end, end + _REACH)
    return starts[-1] if starts else first, ends.start() if ends is not None else min(len(text), end + _REACH)


def _line_at(text: str, place: int) -> str:
    return text[text.rfind("\n", 0, place) + 1 :][:_REACH].split("\n", 1)[0]
