"""Find by rules, without a model, why a question could not be resolved as it stands.

A rule applies only where two careful readers could settle the question differently. What the criteria define is not
questioned, and a question that a market or a series decides needs no more words.
"""

import re
from collections.abc import Callable, Iterator
from datetime import date
from functools import cached_property
from typing import Literal

from foretell.data.markets.market import market_ref
from foretell.forecasters.base_rates.same_question import LONGEST, sense
from foretell.forecasters.base_rates.wording import DateMention, mentions
from foretell.forecasters.series.typed_question import asked_span, price_question, weather_question
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.question import Question
from foretell.runs.public_answer import OPEN_QUESTION

ProblemKind = Literal[
    "deadline", "deadline passed", "by", "time zone", "vague", "opinion", "several", "alternatives", "unnamed", "open",
    "source", "unit",
]  # fmt: skip
ASKED = "asked"
"""The source of a question that a user typed."""
DEFINED = 60
"""Characters of criteria, without addresses and the phrase that names a market, from which they define the words."""
UNRESOLVABLE = "The question cannot be resolved as it stands: {}. The option sharpen proposes a wording."


@frozen
class QuestionProblem:
    """Why two careful readers could settle a question differently."""

    kind: ProblemKind
    text: str


def problems_of(question: Question) -> tuple[str, ...]:
    """Return why the question cannot be resolved as it stands; empty if it can.

    >>> problems_of(Question(id="q", source="asked", text="Will Oslo change significantly soon?", due="2026-11-01"))
    ('it names no deadline', '"significantly" is not defined', '"soon" is not defined')
    >>> problems_of(Question(id="q", source="asked", text="Will it snow in Oslo before 2027?", due="2026-11-01"))
    ()
    """
    return tuple(problem.text for problem in find_problems(question))


def unresolvable_note(question: Question) -> tuple[str, ...]:
    """Return a note for the reader of an answer; empty if the question can be resolved as it stands."""
    problems = problems_of(question)
    return (UNRESOLVABLE.format("; ".join(problems)),) if problems else ()


def find_problems(question: Question) -> tuple[QuestionProblem, ...]:
    """Return the problems of a question with their kinds, each once."""
    if question.series is not None or market_ref(question) is not None:
        return ()
    read = _Read(question)
    found = [QuestionProblem(kind=kind, text=text) for kind, rule in _RULES for text in rule(read)]
    return tuple(dict.fromkeys(found))


_BOILERPLATE = pattern(
    r"https?://\S+|Resolves to the outcome of the question found at|Resolves to the value", re.IGNORECASE
)


_DEFINES = pattern(r"\b(?:resolves?|counts?|counted|defined|definition|considered|qualif(?:y|ies))\b", re.IGNORECASE)
_DEFINED_HERE = pattern(r"\bas defined\b|\bdefined as\b|\b(?:see|read) (?:the )?description\b", re.IGNORECASE)


@frozen(kw_only=False)
class _Read:
    """A question, and the parts of it that the rules look at."""

    question: Question

    @cached_property
    def text(self) -> str:
        return " ".join(self.question.text[:LONGEST].split())

    @cached_property
    def due(self) -> date:
        return self.question.due.date()

    @cached_property
    def ends(self) -> date | None:
        """The last day that counts, if it is given beside the text."""
        days = [target.resolves_at for target in self.question.targets if target.resolves_at is not None]
        last = max(days, default=self.question.closes_at)
        return None if last is None else last.date()

    @cached_property
    def dates(self) -> tuple[DateMention, ...]:
        return mentions(self.text, self.due)

    @cached_property
    def defined(self) -> bool:
        """Whether the criteria, or what is said beside them, define the words of the text."""
        background = self.question.background if _DEFINES.search(self.question.background) else ""
        told = _BOILERPLATE.sub("", f"{self.question.criteria} {background}").strip()
        return len(told) >= DEFINED or _DEFINED_HERE.search(self.question.text) is not None

    @cached_property
    def whole(self) -> str:
        return f"{self.text}\n{self.question.criteria}"

    @cached_property
    def unquoted(self) -> str:
        """The text without what stands in quotation marks, which is meant literally."""
        return re.sub(r"(?<!\w)[\"“'‘][^\"”’']{2,60}[\"”’'](?!\w)", "", self.text)

    @cached_property
    def named(self) -> bool:
        """Whether the text names anybody or anything."""
        return bool(_PROPER.search(self.text)) or bool(sense(self.text, self.due, self.ends).names)

    @cached_property
    def number(self) -> bool:
        return self.question.range is not None or bool(sense(self.text, self.due, self.ends).numbers)

    @cached_property
    def yes_or_no(self) -> bool:
        return len(self.question.targets) == 1 and self.question.range is None

    @cached_property
    def decided_by_series(self) -> bool:
        """Whether a public series of weather or prices answers it."""
        number = self.question.range is not None
        return any(
            reader(self.text, self.due, self.ends, number=number) is not None
            for reader in (weather_question, price_question)
        )


_PROPER = pattern(r"(?<=[a-z,] )[A-Z][\w’'&.-]+")
"""A name within the text; its first word is capitalised anyway."""
_Rule = Callable[[_Read], Iterator[str]]


# Time.

_OTHER_TIME = pattern(
    r"\b(?:tonight|today|tomorrow|(?:this|next|the coming) (?:season|weekend|summer|winter|spring|autumn|fall|quarter"
    r"|term|election|session|match|game|meeting)|(?:on|this|next|by|before) (?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|EOY|EOM|EOD|Q[1-4]|(?:in|within) \d+ (?:hours?|minutes?)|\d\d?/\d\d?/(?:20)?\d\d"
    # An event that has its own end.
    r"|(?:the|its|his|her|their) (?:next|upcoming|coming|first) (?!few\b|years\b|decades?\b)\w+"
    r"|(?-i:wins? (?:the )?(?:[A-Z][\w’'.-]+ ?){1,6})(?!war\b))\b",
    re.IGNORECASE,
)
_BARE_BY = pattern(
    r"\b[Bb]y (?:20\d\d(?![\d-])|(?:January|February|March|April|May|June|July|August|September|October|November"
    r"|December)(?:,? 20\d\d)?(?!,? \d))"
)
_CLOCK = pattern(
    r"\b(?:at|by|before|until|after)\s(?:\d{1,2}(?::\d\d)?\s?(?:am|pm|a\.m\.|p\.m\.)(?!\w)"
    r"|(?:[01]?\d|2[0-3]):[0-5]\d\b(?!:)|midnight|noon)",
    re.IGNORECASE,
)
_ZONE = pattern(r"\b(?:UTC|GMT|Z|[A-Z]{0,3}[SD]?T|BST|CES?T|(?i:[\w’']+ (?:standard |daylight )?time))\b|[+-]\d\d:\d\d")


def _deadline(read: _Read) -> Iterator[str]:
    if read.ends is not None or read.dates or _OTHER_TIME.search(read.text):
        return
    if asked_span(read.text, read.due, None) or mentions(read.question.criteria, read.due):
        return
    yield "it names no deadline"


def _passed(read: _Read) -> Iterator[str]:
    stated = [mention.deadline for mention in read.dates if mention.timing == "by"]
    if stated and max(stated) < read.due and (read.ends is None or read.ends < read.due):
        yield f"its deadline, {max(stated)}, has passed"


def _by(read: _Read) -> Iterator[str]:
    if read.ends is not None or len(mentions(read.question.criteria, read.due)):
        return
    for match in _BARE_BY.finditer(read.text):
        yield f'"{match[0]}" may mean its first or its last day'


def _time_zone(read: _Read) -> Iterator[str]:
    match = _CLOCK.search(read.text)
    if match and not _ZONE.search(read.whole):
        yield f'"{match[0]}" has no time zone'


# Words without a measure. They are matched in lower case, because names such as Major League are not meant.

_VAGUE = pattern(
    # When.
    r"\b(?:soon|shortly|eventually|some ?day|sooner or later|at some point|in the (?:near|foreseeable|distant) future"
    r"|(?:in|within|over) (?:the )?(?:(?:next|coming) )?few (?:days|weeks|months|years)"
    # How much.
    r"|significant(?:ly)?(?! (?:other|figure|digit))|substantial(?:ly)?|considerabl[ey]|dramatic(?:ally)?"
    r"|drastic(?:ally)?|serious(?:ly)?|severe(?:ly)?|meaningful(?:ly)?|noticeabl[ey]|massive(?:ly)?|huge(?:ly)?"
    r"|major(?! (?:party|parties|general|league|hurricane|championship|tournament|in\b))|(?<!as )big(?! enough)"
    r"|important|widespread|mainstream|the (?:new )?norm|a lot|lots of|(?<!how )(?<!How )(?<!as )many(?! as)"
    # What.
    r"|something|dominant|superpower|take over|take off|under control|out of hand|(?:gain|lose) ground"
    r"|catch(?:es)? on|useful|fairly|harsh|decent|normal(?:ity)?|do (?:well|badly|poorly|better|worse)"
    r"|(?<!most )popular(?! (?:vote|front|party|name|film|song))"
    r"|an? (?:good|bad|great|terrible|strong|weak|tough|rough)(?! (?:friday|deal|grade)))\b"
)
_QUALITY = pattern(
    r"\b(?:be|become|get|go|stay|remain|feel) (?:very |really |so |too |much |more |a |an )*"
    r"(?:good|bad|better|worse|great|terrible|successful|cheap(?:er)?|expensive|low(?:er)?|high(?:er)?|cold(?:er)?|hot"
    r"|warm(?:er)?|weak(?:er)?|strong(?:er)?|stable|safe(?:r)?|dangerous|easy|easier|hard(?:er)?|relevant|irrelevant"
    r"|obsolete|rich(?:er)?|poor(?:er)?|happy|happier|success|failure|flop|hit|disaster|bust|game.changer|mess)"
    r"(?= in\b| by\b| before\b| next\b| this\b| on\b| at\b| for\b| during\b|[?.,]|$)"
)
_EXTENT = pattern(
    r"\b(?:crash|collaps|tank|plung|plummet|soar|surg|skyrocket|boom|recover|rebound|bounce back|explod"
    r"|go(?:es|ing)? (?:up|down)|come(?:s)? down|improv|worsen|slow(?:s)? down|deteriorat|stabili[sz])"
    r"(?:e|es|ed|ing|s)?\b"
)
_FALLS = pattern(r"\b(?:crash|collaps|explod)", re.IGNORECASE)
_ECONOMIC = pattern(
    r"\b(?:markets?|econom\w+|prices?|rates?|stocks?|shares?|bitcoin|btc|crypto\w*|housing|inflation|unemployment|dollar"
    r"|euro|currency|sales|relations)\b",
    re.IGNORECASE,
)
_ENDS = pattern(
    r"\b(?:wars?|conflict|crisis|pandemic|fighting|genocide)\b(?: \w+){0,4}? "
    r"(?<!the )(?<!by )(?:be over|(?:end|stop)(?:s|ed)?)\b(?! of)"
    r"|\bbubble\b(?: \w+){0,3}? (?:bursts?|pops?)\b",
    re.IGNORECASE,
)
_OUTCOME = pattern(
    r"\b(?:win|lose) the war\b|\bwork(?: out)?(?=\?|$)|\b(?:crime|prices|rates|sales|turnout) be (?:up|down)\b"
    r"|\b(?:succeed|thrive|prosper|flop)\b(?! (?:[A-Z]|as\b|in [a-z]+ing\b|him|her))"
)
_MORE = pattern(r"\b(?:more|less|as) $", re.IGNORECASE)
_COMPARED = pattern(
    r"\b(?:than|since|compared|relative to|versus|vs|from \d|as .{1,20} as|record|all[- ]time)\b", re.IGNORECASE
)


def _vague(read: _Read) -> Iterator[str]:
    if read.defined:
        return
    compared = _COMPARED.search(read.text) is not None
    for match in _VAGUE.finditer(read.unquoted):
        if not (compared and _MORE.search(read.unquoted[: match.start()])):
            yield f'"{match[0]}" is not defined'
    if compared:
        return
    for form in (_ENDS, _OUTCOME, *(() if read.number else (_QUALITY,))):
        if match := form.search(read.unquoted):
            yield f'what counts as "{match[0]}" is not defined'
    extent = None if read.number else _EXTENT.search(read.unquoted)
    if extent and (_ECONOMIC.search(read.text) or not _FALLS.match(extent[0])):
        yield f'it does not say how much, or compared with what, counts as "{extent[0]}"'


_OPINION = pattern(
    r"\bshould (?:i|we|you|one|they|he|she|the)\b"
    r"|\b(?:do|does|did) (?:you|people|anyone) (?:think|believe|like|want)\b"
    r"|\b(?:is|are|was|were|be|become|remembered as) (?:(?-i:[A-Z])[\w.’'-]* ){0,4}(?:the )?"
    r"(?:best|worst|greatest|coolest|prettiest|smartest)"
    r"(?! (?:picture|actor|actress|director|film|song|album|selling|artist|new|record|animated|rated|supporting"
    r"|original))(?!-)\b"
    r"|\bworth (?:it|the)\b|\b(?:over|under)rated\b|\boverhyped\b|\bdeserves?\b|\bbe remembered as\b"
    r"|\bgo(?:es)? too far\b"
    r"|\b(?:is|are|was|were|be) (?:it )?(?:beautiful|ugly|boring|fun|funny|evil|fair|unfair|moral|immoral|right|wrong"
    r"|overpriced|justified|nice|cool)\b(?! (?:wing|now))",
    re.IGNORECASE,
)


def _opinion(read: _Read) -> Iterator[str]:
    match = None if read.defined else _OPINION.search(read.text)
    if match:
        yield f'"{match[0]}" asks for an opinion that nobody can settle'


# What is asked.

_SEVERAL = pattern(r"\?\s+\S.*\?|[,;]? and (?:will|is|are|does) (?!be\b)[\w’' -]{2,60}", re.IGNORECASE)
_ALTERNATIVES = pattern(
    r"^(?:will|is|are|does|do|did|was) (?:the )?[\w.’'-]+(?: [\w.’'-]+){0,3} or "
    r"(?:the )?[\w.’'-]+(?: [\w.’'-]+){0,3}? "
    r"(?:wins?|(?:come|happen) first|finish|score more|grow faster|perform better"
    r"|be (?:the |remembered |considered )?(?:next|first|better|bigger|more|best|winner|as))\b",
    re.IGNORECASE,
)
_PRONOUN = pattern(
    r"^(?:(?:so|and|but),? )?(?:will|is|are|does|do|did|has|have|can|would|could) "
    r"(?:he|she|they|this|that|these|those"
    r"|it(?! (?:going to )?(?:ever )?(?:rain|snow|hail|freeze|storm|take|be)\b))\b"
    # A title such as "It Follows", or "this week".
    r"(?! (?-i:[A-Z]))(?! (?:week|month|year|season|summer|winter|decade))",
    re.IGNORECASE,
)
_WHICH = pattern(
    r"\b(?:the|a) ((?:peace |housing |stock |next |new |prime )*"
    r"(?:company|startup|start-up|movie|film|game|minister|vote|team|match|bill|ceo|president|election|economy|market"
    r"|war|talks|government|strike|deal|law|king|queen|school|bank|trial|project))\b"
)
_WEATHER = pattern(
    r"\b(?:will|does|is) it (?:ever )?(?:rain|snow|hail|freeze|storm|be (?:cold|hot|warm|sunny|rainy|cloudy|windy))",
    re.IGNORECASE,
)
_PLACE = pattern(
    r"\b(?:in|at|on|over|near|across) (?:the |my |our )*"
    r"(?!(?:January|February|March|April|May|June|July|August|September|October|November|December|Christmas"
    r"|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)\b)[A-ZÀ-Þ]\w+|\bhere\b"
)
_SOURCE_NAMED = pattern(
    r"according to|report(?:ed|s) by|published by|announced by|https?://|\bdata (?:from|by|of)\b"
    r"|as (?:measured|listed|shown|reported|determined)|(?-i:\bper [A-Z])"
    r"|\bin the \w+ (?:poll|survey|index|report)\b|silver bulletin|gallup|real ?clear|\brcp\b|538|fivethirtyeight"
    r"|yougov|ipsos|reuters|\baaa\b|\beia\b|zillow|case-shiller|forbes|bloomberg|\bacled\b|wikipedia",
    re.IGNORECASE,
)
_MEASURED: dict[str, re.Pattern[str]] = {
    "approval": pattern(r"\b(?:job approval|approval (?:ratings?|numbers|rate)|favou?rability)\b", re.IGNORECASE),
    "polls": pattern(
        r"\b(?:lead|ahead|first) in (?:the )?polls\b|\bpolls? (?:above|below|over|under|at)\b", re.IGNORECASE
    ),
    "casualties": pattern(r"\b(?:death toll|casualties|people (?:die|be killed|killed)|deaths from)\b", re.IGNORECASE),
    "wealth": pattern(r"\bnet worth\b|\brichest (?:person|man|woman)\b|\b(?:trillion|billion)aire\b", re.IGNORECASE),
    "oil": pattern(
        r"\boil prices?\b|\bprice of oil\b|\boil (?:be )?(?:above|below|over|under|hit|reach)\b", re.IGNORECASE
    ),
    "homes": pattern(r"\b(?:house|housing|home|apartment) prices?\b|\brents\b", re.IGNORECASE),
    "fuel": pattern(r"\b(?:gas|petrol|gasoline|diesel) prices?\b", re.IGNORECASE),
    "inflation": pattern(r"(?<!expected )(?<!breakeven )\binflation\b(?! reduction|-)", re.IGNORECASE),
}
_EXACT = pattern(r"\b(?:brent|wti|cpi|pce|hicp|core|henry hub|ttf)\b", re.IGNORECASE)


def _several(read: _Read) -> Iterator[str]:
    if not read.defined and _SEVERAL.search(read.text) and read.yes_or_no:
        yield "it makes several claims, and does not say whether all of them must come true"


def _alternatives(read: _Read) -> Iterator[str]:
    if read.yes_or_no and not read.defined and _ALTERNATIVES.search(read.text) and " either " not in read.text.lower():
        yield "it asks which of two, so yes and no have no meaning (name the outcomes with --option)"


def _unnamed(read: _Read) -> Iterator[str]:
    if read.defined:
        return
    if match := _PRONOUN.search(read.text):
        yield f'it does not say who or what "{match[0].split()[-1]}" is'
    if _WEATHER.search(read.text) and not _PLACE.search(read.text):
        yield "it names no place"
    if not read.named and (match := _WHICH.search(read.text)):
        yield f"it does not say which {match[1]}"


def _open(read: _Read) -> Iterator[str]:
    match = OPEN_QUESTION.match(read.text) if [target.id for target in read.question.targets] == ["yes"] else None
    if match:
        yield f"it asks {match[0].lower()}, which yes or no do not answer (name outcomes with --option, or a --range)"


def _source(read: _Read) -> Iterator[str]:
    if read.defined or _SOURCE_NAMED.search(read.whole) or _EXACT.search(read.whole) or read.decided_by_series:
        return
    for form in _MEASURED.values():
        if match := form.search(read.unquoted):
            yield f'sources differ on "{match[0]}", and it names none'


def _unit(read: _Read) -> Iterator[str]:
    weather = weather_question(read.text, read.due, read.ends, number=read.question.range is not None)
    if weather is not None and weather.scale_unstated and not read.defined and not re.search(r"°|\b[CF]\b", read.whole):
        yield "it does not say whether degrees are Celsius or Fahrenheit"


_RULES: tuple[tuple[ProblemKind, _Rule], ...] = (
    ("deadline", _deadline), ("deadline passed", _passed), ("by", _by), ("time zone", _time_zone), ("open", _open),
    ("unnamed", _unnamed), ("several", _several), ("alternatives", _alternatives), ("opinion", _opinion),
    ("vague", _vague), ("source", _source), ("unit", _unit),
)  # fmt: skip
