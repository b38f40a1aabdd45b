"""Decides whether two questions ask the same: about whom or what, which number, until when, and in which direction.

Similarity of words is not enough. A market on another year, threshold or person has almost the same words but does not
answer the question, so each of these is compared separately, and one difference is enough.
"""

import re
from datetime import date, timedelta
from functools import lru_cache

from foretell.forecasters.base_rates.wording import MASK, DateMention, deadline, masked, mentions
from foretell.frozen import frozen
from foretell.patterns import pattern

LONGEST = 600
"""Maximum number of characters read: the question is in the first lines of its text."""
MANY_NAMES = 6
"""Number of differing names from which they are not listed."""
SAME = 0.75
"""Similarity from which a question without other differences counts as the same (benchmarks/reports/asking.md)."""
RELATED = 0.4
"""Similarity from which a question is shown beside the one asked."""
NEXT_DAY = timedelta(days=1)
NEAR_DAYS = 3
"""Days by which deadlines may differ, because markets close a little before or after the day they ask about."""
NEAR_SHARE = 0.04
"""The same tolerance, as a share of the time that is left."""
CLOSING_DAYS, CLOSING_SHARE = 16, 0.1
"""The tolerances if a text names no date and only its market's closing day is known."""
SHARED_WORDS = 2
"""Number of words besides names that two questions must share before one of them may have an extra word."""
HEAVY = 2.0
"""Weight of a name in the similarity; other words have weight one."""


def word_set(words: str) -> frozenset[str]:
    """The set of words of a text."""
    return frozenset(words.split())


_STOP = word_set(
    "a about after again against all also an and any are as at be became become been before being between but "
    "by can could did do does during each either ever for from had has have he her here his how if in into is "
    "it its least less many may might more most much must next no not of off on once one only or other our own "
    "per shall she should so some still such than that the their them then there these they this those through "
    "to too until up upon was we were what when where whether which while who whom whose will with within "
    "without would yet you your yes market question resolve resolved according announce announced officially "
    "official there's happen occur take place end year month week day date year's following another new "
    "current currently early late remain stay stays continue keep keeps retain longer person christmas eve halloween"
)
_ALIKE = {
    "usa": "us", "america": "us", "american": "us", "britain": "uk", "british": "uk",
    "btc": "bitcoin", "eth": "ethereum", "gop": "republican", "dem": "democrat",
    "democratic": "democrat", "fomc": "fed", "percent": "%", "ukrainian": "ukraine",
    "russian": "russia", "israeli": "israel", "iranian": "iran", "chinese": "china", "german": "germany",
    "french": "france", "japanese": "japan", "canadian": "canada", "venezuelan": "venezuela", "syrian": "syria",
    "winner": "win", "won": "win",
    "victory": "win", "elected": "elect", "election": "elect",
    "leave": "quit", "resign": "quit", "resignation": "quit", "oust": "quit", "depart": "quit", "remove": "quit",
    "cease": "quit", "die": "death", "dead": "death", "recession": "recess",
    "invasion": "invade", "acquisition": "acquire", "launched": "launch", "fired": "quit",
    "out": "quit", "create": "form", "largest": "top", "best": "top", "biggest": "top",
    "worldwide": "world", "global": "world", "mayoral": "mayor", "presidential": "president", "presidency": "president",
    "hike": "raise", "lower": "cut", "decrease": "cut", "reduce": "cut", "increase": "raise", "strike": "attack",
    "championship": "champion", "parliamentary": "parliament",
}  # fmt: skip
_SHORT = {
    "united states of america": "US", "united states": "US", "u.s.a.": "US", "u.s.": "US", "united kingdom": "UK",
    "u.k.": "UK", "european union": "EU", "federal reserve": "Fed", "prime minister": "PM",
    "artificial intelligence": "AI", "supreme court": "SCOTUS", "new york city": "NYC", "step down": "quit",
    "steps down": "quit", "stepped down": "quit", "cease-fire": "ceasefire", "cease fire": "ceasefire",
}  # fmt: skip
_LONG = pattern(rf"(?<!\w)(?:{'|'.join(map(re.escape, _SHORT))})(?!\w)", re.IGNORECASE)
_UP = word_set(
    "above over exceed exceeds reach reaches hit hits top tops greater higher rise rises rising increase "
    "increases increased grow raise raises hike hikes surpass ≥ > ↑ + least more gain gains"
)
_DOWN = word_set(
    "below under fewer fall falls drop drops dip dips lower lowers decrease decreases decreased cut cuts "
    "decline shrink ≤ < ↓ less loses"
)
_DEEDS = word_set("cut cuts raise raises hike hikes lower lowers increase increases decrease decreases")
"""Words of direction that can be the subject of a question, not only compare a number."""
_STAYS = word_set("remain remains stay stays still continue continues keep keeps retain retains survive")
_ONE_WAY = word_set("invad attack acquir defeat beat nominat endors sue annex bomb buy pardon")
"""Stems of actions of one party on another, for which the order of names matters."""
LIGHT = frozenset(["attempt", "offic", "full-scal", "pric", "valu"])
"""Words that do not change the meaning of a question."""
_ORDINALS = {
    "second": 2.0, "third": 3.0, "fourth": 4.0, "fifth": 5.0, "runner-up": 2.0, "twice": 2.0, "two": 2.0, "three": 3.0,
    "four": 4.0, "five": 5.0, "six": 6.0, "ten": 10.0,
}  # fmt: skip
_NOT = word_set("not no never without neither nor cannot won't fail fails avoid avoids")
_WORD = pattern(r"[a-zA-ZÀ-ɏ][\wÀ-ɏ’'-]{0,39}|[≥≤><↑↓%]")
_NUMBER = pattern(
    r"(?<![\w.])[$€£]?(\d{1,15}(?:[,\u202f]\d{3}){0,4}(?:\.\d{1,6})?)\s?"
    r"(%|k\b|thousand\b|m\b|mn\b|million\b|bn?\b|billion\b|t\b|trillion\b)?",
    re.IGNORECASE,
)
_SCALE = {
    "k": 1e3, "t": 1e12, "m": 1e6, "mn": 1e6, "b": 1e9, "bn": 1e9, "thousand": 1e3, "million": 1e6, "billion": 1e9,
    "trillion": 1e12,
}  # fmt: skip


@frozen
class QuestionSense:
    """The parsed meaning of a question."""

    words: frozenset[str]
    """Stems of the words it is about, names included, in lower case."""
    names: tuple[tuple[str, ...], ...]
    """Runs of capitalised words."""
    numbers: frozenset[float]
    until: date | None
    """The last day that counts, if the text states one or it is given."""
    stated: bool
    """Whether the text itself states that day."""
    standing: bool
    """Whether it asks about the state on a day, rather than whether something happens until then."""
    years: frozenset[int]
    """The years that its dates fall in."""
    days: frozenset[date]
    """The last days of all dates it names."""
    up: bool
    down: bool
    negated: bool
    stays: bool
    """Whether it asks whether things stay as they are."""
    order: tuple[str, ...]
    """The words of its names in the order of the text."""


@frozen
class QuestionSimilarity:
    """How similar two questions are, and how they differ."""

    similarity: float
    """Similarity of what they are about, from 0 to 1; names count double."""
    differs: tuple[str, ...]
    """Descriptions of the differences that make it another question."""

    @property
    def same(self) -> bool:
        """Whether both ask the same."""
        return not self.differs and self.similarity >= SAME

    @property
    def related(self) -> bool:
        """Whether the other question is similar enough to show."""
        return self.similarity >= RELATED


@lru_cache(maxsize=1 << 14)
def sense(text: str, due: date, closes: date | None = None) -> QuestionSense:
    """Parse a text as of a day; `closes` is used if it names no date.

    >>> parsed = sense("Will Bitcoin hit $150k by 31 December 2026?", date(2026, 11, 1))
    >>> sorted(parsed.words), parsed.numbers, parsed.until.isoformat(), parsed.up
    (['bitcoin'], frozenset({150000.0}), '2026-12-31', True)
    """
    text = _LONG.sub(lambda match: _SHORT[match[0].lower()], " ".join(text.split())[:LONGEST])
    dates = mentions(text, due)
    last = deadline(dates, due)
    dated = masked(text, dates).replace(MASK, " ")
    plain = _NUMBER.sub(" ", dated)
    lowered = {word.lower().strip("’'-") for word in _WORD.findall(plain)}
    # A year that is part of a name, as in "the 2026 World Cup", is a weaker deadline than the market's closing day.
    stated = last is not None and (last.timing != "none" or closes is None)
    names = _names(plain)
    return QuestionSense(
        words=frozenset(filter(None, (_stem(word) for word in _WORD.findall(plain)))),
        names=names,
        numbers=frozenset(_numbers(dated)) | {_ORDINALS[word] for word in lowered if word in _ORDINALS},
        until=last.deadline if last is not None and stated else closes,
        stated=stated,
        standing=last is not None and last.timing == "at" and last.first == last.last,
        years=frozenset(year for mention in dates for year in _years(mention)),
        days=frozenset(mention.deadline for mention in dates),
        up=bool(lowered & _UP),
        down=bool(lowered & _DOWN),
        negated=bool(lowered & _NOT),
        stays=bool(lowered & _STAYS),
        order=tuple(stem for name in names for word in name if (stem := _stem(word))),
    )


def compare(question: QuestionSense, other: QuestionSense, due: date) -> QuestionSimilarity:
    """Return how similar another question is to the one asked, and how they differ."""
    differs: list[str] = []
    if question.numbers != other.numbers:
        theirs = ", ".join(f"{number:,.10g}" for number in sorted(other.numbers))
        differs.append(f"another number ({theirs})" if theirs else "it names no number")
    if (date_problem := _other_date(question, other, due)) is not None:
        differs.append(date_problem)
    if question.up != other.up and question.down != other.down:
        differs.append("a different direction")
    if question.negated != other.negated:
        differs.append("one of the two is a negation")
    elif question.stays != other.stays and "quit" in question.words | other.words:
        differs.append("it asks the opposite")
    if question.numbers and question.stated and other.stated and question.standing != other.standing:
        differs.append("on a day" if other.standing else "at any time until a day")
    missing, added = _missing(question, other), _missing(other, question)
    if len(missing) + len(added) >= MANY_NAMES:
        differs.append("it is about somebody else")
    elif missing or added:
        differs += [f"it is about {', '.join(dict.fromkeys(added))}"] if added else []
        differs += [f"it does not name {', '.join(dict.fromkeys(missing))}"] if missing else []
    elif (problem := _other_words(question, other)) is not None:
        differs.append(problem)
    return QuestionSimilarity(similarity=_similarity(question, other), differs=tuple(differs))


def coverage(question: QuestionSense, other: QuestionSense) -> float:
    """Return how much of another text the question covers, for titles of lists; more shared words score higher."""
    return len(question.words & other.words) / (len(other.words) + 1)


def _similarity(one: QuestionSense, other: QuestionSense) -> float:
    names = {_stem(word) for who in (*one.names, *other.names) for word in who}

    def weight(words: frozenset[str]) -> float:
        return sum(HEAVY if word in names else 1.0 for word in words)

    total = weight(one.words) + weight(other.words)
    return 2 * weight(one.words & other.words) / total if total else 0.0


def _other_date(question: QuestionSense, other: QuestionSense, due: date) -> str | None:
    if question.years and other.years and max(question.years) != max(other.years):
        return f"another year ({', '.join(map(str, sorted(other.years)))})"
    if question.days and other.days and all(abs(a - b) > NEXT_DAY for a in question.days for b in other.days):
        return f"another day ({max(other.days)})"
    if question.until is None:
        return f"until {other.until}, and the question names no day" if other.stated else None
    if other.until is None:
        return "it names no day"
    both = question.stated and other.stated
    days, share = (NEAR_DAYS, NEAR_SHARE) if both else (CLOSING_DAYS, CLOSING_SHARE)
    left = max((max(question.until, other.until) - due).days, 0)
    near = timedelta(days=max(days, share * left))
    return None if abs(question.until - other.until) <= near else f"another day ({other.until})"


def _missing(one: QuestionSense, other: QuestionSense) -> list[str]:
    """Return the names of one that do not occur in the other; the last word of a name is enough."""
    missing: list[str] = []
    for name in one.names:
        stems = [stem for word in name if (stem := _stem(word))]
        if not stems or stems == ["us"]:
            continue
        known = [stem in other.words for stem in stems]
        if not known[-1] or (not all(known) and _another_first_name(stems, other)):
            missing.append(" ".join(name))
    return missing


def _other_words(question: QuestionSense, other: QuestionSense) -> str | None:
    """Describe the difference in words other than names, if any: one side may have one extra word, but not both."""
    first = {word for name in (*question.names, *other.names) for part in name[:-1] if (word := _stem(part))}
    lacking, more = question.words - other.words - LIGHT, other.words - question.words - LIGHT
    if lacking & first and more & first:
        return f"it is about {', '.join(sorted(more & first))}"
    mine, theirs = lacking - first, more - first
    both = question.words & other.words
    named = {word for name in (*question.names, *other.names) for part in name if (word := _stem(part))}
    most = 1 if len(both - named) >= SHARED_WORDS else 0
    if (mine and theirs) or len(mine | theirs) > most:
        return (
            f"it mentions {', '.join(sorted(theirs)[:4])}"
            if theirs
            else f"it does not mention {', '.join(sorted(mine)[:4])}"
        )
    if both & _ONE_WAY and _order(question, both) != _order(other, both):
        return "who does it to whom"
    return None


def _order(question: QuestionSense, both: frozenset[str]) -> list[str]:
    return list(dict.fromkeys(word for word in question.order if word in both))


def _another_first_name(stems: list[str], other: QuestionSense) -> bool:
    """Whether the other text has the same last name with another first name."""
    for name in other.names:
        theirs = [stem for word in name if (stem := _stem(word))]
        if theirs and theirs[-1] == stems[-1] and set(theirs) - set(stems) and set(stems) - set(theirs):
            return True
    return False


@lru_cache(maxsize=1 << 14)
def _stem(word: str) -> str:
    """Return the stem of a word; empty for a stop word."""
    word = word.lower().replace("’", "'").removesuffix("'s").strip("'-.")
    if word in _STOP or word in _NOT or (word in _UP | _DOWN and word not in _DEEDS):
        return ""
    word = _ALIKE.get(word, word)
    for ending in ("ing", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word.removesuffix(ending) + ("y" if ending == "ies" else "")
            break
    return _ALIKE.get(word, word).removesuffix("e") if len(word) > 4 else _ALIKE.get(word, word)


_NAME = pattern(r"(?:[A-ZÀ-Þ][\w’'.-]{0,39})(?:\s+(?:(?:of|de|da|van|von|the|and)\s+)?[A-ZÀ-Þ][\w’'.-]{0,39}){0,5}")


def _names(text: str) -> tuple[tuple[str, ...], ...]:
    names: list[tuple[str, ...]] = []
    for match in _NAME.finditer(text):
        words = [word for part in match[0].split() if (word := part.strip(".,’'-"))]
        name = tuple(word for word in words if word[0].isupper() and _stem(word))
        if name:
            names.append(name)
    return tuple(names)


def _numbers(text: str) -> list[float]:
    numbers: list[float] = []
    for match in _NUMBER.finditer(text):
        number = float(match[1].replace(",", "").replace("\u202f", ""))
        numbers.append(number * _SCALE.get((match[2] or "").lower(), 1.0))
    return numbers


def _years(mention: DateMention) -> range:
    """Return the years of a date; for "before 2026" the year that ends then."""
    return range(min(mention.first, mention.deadline).year, mention.deadline.year + 1)
