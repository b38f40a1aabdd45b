"""Why a forecast was wrong: whether research had found the fact that decided, read it rightly, and let it count.

The deciding fact is what the resolver quoted when the outcome was confirmed. Rules look for it among what the looks at
the question found; no model is asked. How often research found it is a score of its own, apart from the forecasts.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from statistics import fmean, median
from typing import Literal
from urllib.parse import urlsplit

from foretell.forecasters.tree.wording import stems
from foretell.frozen import frozen
from foretell.number_text import brief_percent, plural, signed
from foretell.standing.own_record import OwnRecord, ScoredQuestion, accepted_proposal
from foretell.standing.record import Look, NewEvidence, NoOutcome, OutcomeReading

Fault = Literal["not found", "misread", "counted too little", "nothing wrong"]
FAULTS: Mapping[Fault, str] = {
    "not found": "the fact was public",
    "misread": "found, read wrongly",
    "counted too little": "found, hardly moved the forecast",
    "nothing wrong": "found and counted, or not public in time",
}
"""What may have gone wrong, in the order of the steps of research, and what it means."""
ARITHMETIC = "arithmetic"
"""The reader of a series or a market: what decides is a number, which nobody can find beforehand."""
LIKE = 0.75
"""Share of the words of a quote that a text must contain to report the same fact."""
FEWEST_WORDS = 4
"""Quotes with fewer words are compared by address alone."""
BAD = 0.25
"""Brier score above which a forecast is worse than always 0.5."""
USUAL_MOVE = 0.1
"""How far a fact moves a forecast before there is a record of that."""
TOO_LITTLE = 0.5
"""A fact counted too little if it moved the forecast by less than this share of what facts usually move it by."""
PRICE_LED = 0.15
"""How far the price must have moved towards the outcome, without the forecast, to show that something was public."""
MOST_WORST = 12
"""Maximum number of questions with the worst scores whose faults are counted."""
NO_OUTCOMES: tuple[NoOutcome, ...] = ("not yet", "cancelled", "ambiguous", "cannot tell")


@frozen
class FoundFact:
    """The evidence that reports the deciding fact, and the look that found it."""

    evidence: NewEvidence
    look: Look


@frozen
class PostMortem:
    """What went wrong with one forecast, if anything."""

    question: ScoredQuestion
    fault: Fault
    why: str
    """One or two sentences."""
    decided_by: OutcomeReading | None = None
    """The quote that reports the deciding fact; None if the outcome was not found in a text."""
    fact: FoundFact | None = None
    moved: float | None = None
    """How far the fact moved the forecast towards the outcome; None if it was not counted."""
    missed: bool = False
    """Whether a look could have found the fact and none did."""

    @property
    def found(self) -> bool | None:
        """Whether research found the deciding fact, before or after it decided; None if no look could have found it."""
        return True if self.fact is not None else False if self.missed else None

    @property
    def ahead(self) -> float | None:
        """Brier score of the price minus that of the forecast: above 0 the forecast is better. None without a price."""
        price = self.question.price_brier
        return None if price is None else price - self.question.brier


@frozen
class ResearchScore:
    """How often research found the deciding fact, where it could, and how good the forecasts were then."""

    found: int
    not_found: int
    unknowable: int
    """Questions decided by a number, or by a fact that was published after the last look."""
    brier_found: float | None
    """Mean Brier score of the questions whose fact was found; None if there is none."""
    brier_not_found: float | None

    @property
    def findable(self) -> int:
        """Number of questions whose deciding fact could be found."""
        return self.found + self.not_found


@frozen
class PostMortems:
    """Post-mortems of all scored questions, worst forecast first."""

    all: tuple[PostMortem, ...]

    @cached_property
    def worst(self) -> tuple[PostMortem, ...]:
        """Those whose forecast was worse than always 0.5, at most twelve."""
        return tuple(each for each in self.all if each.question.brier > BAD)[:MOST_WORST]

    @cached_property
    def faults(self) -> dict[Fault, int]:
        """How often each fault occurs among the worst."""
        counts = Counter(each.fault for each in self.worst)
        return {fault: counts[fault] for fault in FAULTS}

    @cached_property
    def best(self) -> tuple[PostMortem, ...]:
        """Those that were most ahead of the price, or best if no question has a price; none that was bad or behind."""
        good = [each for each in reversed(self.all) if each.question.brier < BAD]
        if all(each.ahead is None for each in self.all):
            return tuple(good)
        ahead = [(each.ahead, each) for each in good if each.ahead is not None and each.ahead > 0]
        return tuple(each for _, each in sorted(ahead, key=lambda pair: -pair[0]))

    @cached_property
    def research(self) -> ResearchScore:
        """How often research found the deciding fact."""
        scores = {state: [each.question.brier for each in self.all if each.found is state] for state in (True, False)}
        return ResearchScore(
            found=len(scores[True]),
            not_found=len(scores[False]),
            unknowable=sum(each.found is None for each in self.all),
            brier_found=fmean(scores[True]) if scores[True] else None,
            brier_not_found=fmean(scores[False]) if scores[False] else None,
        )

    def of(self, id: str) -> PostMortem | None:
        """Return the post-mortem of a question; None if it is not scored."""
        return next((each for each in self.all if each.question.id == id), None)


def post_mortems(record: OwnRecord) -> PostMortems:
    """Return the post-mortems of all scored questions."""
    moves = [abs(update.move) for question in record.scored for update in question.updates if update.move]
    usual = median(moves) if moves else USUAL_MOVE
    each = (post_mortem(question, usual) for question in record.scored)
    return PostMortems(all=tuple(sorted(each, key=lambda one: (-one.question.brier, one.question.id))))


def post_mortem(question: ScoredQuestion, usual_move: float = USUAL_MOVE) -> PostMortem:
    """Return what went wrong with a forecast; `usual_move` is how far a fact usually moves one."""
    readings = _readings(question)
    quoted = [reading for reading in readings if reading.reader != ARITHMETIC]
    found = _found(question, readings)
    if found is not None and found[1].look.at < question.known_at:
        return _of_found(question, found[0], found[1], usual_move)
    decided_by, fact = quoted[0] if quoted else None, found[1] if found is not None else None
    missed = found is None and _looked_after(question, quoted)
    ended = PostMortem(question=question, fault="nothing wrong", why="", decided_by=decided_by, fact=fact)
    if (why := _public_before(question, quoted) or _price_led(question)) is not None:
        return replace(ended, fault="not found", why=why, missed=found is None)
    return replace(ended, why=_chance(question, readings), missed=missed)


def reports_quote(quote: str, text: str) -> bool:
    """Whether a text contains nearly all words of a quote.

    >>> quote = "Marl Trader was loaded at berth 3 on Monday."
    >>> reports_quote(quote, "On Monday, Marl Trader was being loaded at berth 3.")
    True
    >>> reports_quote(quote, "Marl Trader waits outside the port.")
    False
    """
    words = set(stems(quote))
    return len(words) >= FEWEST_WORDS and len(words & set(stems(text))) >= LIKE * len(words)


def _readings(question: ScoredQuestion) -> list[OutcomeReading]:
    """Return the readings that found the confirmed outcome."""
    proposal = accepted_proposal(question.record)
    return [each for each in proposal.readings if each.outcome not in NO_OUTCOMES] if proposal is not None else []


def _found(question: ScoredQuestion, readings: Sequence[OutcomeReading]) -> tuple[OutcomeReading, FoundFact] | None:
    """Return the first evidence that reports a deciding fact, with the quote that it reports."""
    looks = {look.number: look for look in question.record.looks}
    found = [(look, evidence) for look in looks.values() for evidence in look.news]
    found += [(looks[b.look], e) for b in question.record.beliefs if b.look in looks for e in b.evidence]
    for look, evidence in sorted(found, key=lambda pair: pair[0].at):
        for reading in readings:
            same_page = bool(reading.url) and _page(reading.url) == _page(evidence.url)
            if same_page or reports_quote(reading.quote, evidence.text):
                return reading, FoundFact(evidence=evidence, look=look)
    return None


def _page(url: str) -> str:
    parts = urlsplit(url)
    return (
        f"{parts.netloc.removeprefix('www.')}{parts.path.rstrip('/')}?{parts.query}".casefold() if parts.netloc else ""
    )


def _of_found(question: ScoredQuestion, reading: OutcomeReading, fact: FoundFact, usual_move: float) -> PostMortem:
    day = _day(fact.look.at)
    update = next((each for each in question.updates if each.belief.look == fact.look.number), None)
    first = question.first.look == fact.look.number
    target = question.leading
    towards = 1 if question.outcome.get(target) else -1
    moved: float | None = None
    if update is not None:
        before, after = update.before.answer.get(target), update.belief.answer.get(target)
        moved = towards * (after - before) if before is not None and after is not None else None
    ended = PostMortem(
        question=question, fault="nothing wrong", why=f"Found on {day}.", decided_by=reading, fact=fact, moved=moved
    )
    wrong_way = _favours_wrong(question, fact.evidence) or (moved is not None and moved < 0)
    if question.brier <= BAD:
        effect = f"Found on {day}, which moved the forecast by {_points(moved)}." if moved is not None else ended.why
        return replace(ended, why=effect)
    if wrong_way:
        effect = "" if moved is None or moved >= 0 else f" The forecast moved the wrong way by {_points(-moved)}."
        return replace(ended, fault="misread", why=f"Found on {day}, but read as the opposite.{effect}")
    if moved is None and not first:
        kind = "judged not to bear on the question" if fact.look.bears is False else "not counted"
        return replace(ended, fault="counted too little", why=f"Found on {day}, but {kind}.")
    if moved is not None and moved < TOO_LITTLE * usual_move:
        text = f"Found on {day}. It moved the forecast by {_points(moved)}; facts have usually moved one by "
        return replace(ended, fault="counted too little", why=f"{text}{_points(usual_move)}.")
    return replace(ended, why=f"Found on {day} and counted. {_stayed(question)}")


def _favours_wrong(question: ScoredQuestion, evidence: NewEvidence) -> bool:
    """Whether evidence was read as making something likelier that did not come true."""
    return bool(evidence.favours) and question.outcome.get(evidence.favours, 1) == 0


def _public_before(question: ScoredQuestion, quoted: Sequence[OutcomeReading]) -> str | None:
    """Say when the deciding fact was published, if a look before the outcome could have found it; None if not."""
    looks = [look for look in question.record.looks if look.at < question.known_at]
    dates = [reading.published for reading in quoted if reading.published is not None]
    later = [(date, sum(look.at >= date for look in looks)) for date in dates]
    date, count = min(((date, count) for date, count in later if count), default=(None, 0))
    if date is None:
        return None
    looked = "The later look" if count == 1 else f"{count} later looks"
    return f"Research had not found the deciding fact, published on {_day(date)}. {looked} did not find it."


def _looked_after(question: ScoredQuestion, quoted: Sequence[OutcomeReading]) -> bool:
    """Whether there was a look after a quoted source was published."""
    dates = [reading.published for reading in quoted if reading.published is not None]
    return any(look.at >= date for look in question.record.looks for date in dates)


def _price_led(question: ScoredQuestion) -> str | None:
    """Say how far the price moved towards the outcome after the last forecast, if no look found why; None if not."""
    target, price = question.leading, question.prices.get(question.leading)
    before = question.last.prices.get(target)
    if question.brier <= BAD or price is None or before is None or question.price_brier is None:
        return None
    towards = price - before if question.outcome.get(target) else before - price
    if towards < PRICE_LED:
        return None
    return (
        f"The price moved from {brief_percent(before)} to {brief_percent(price)} after the last forecast, "
        "and no look found why."
    )


def _chance(question: ScoredQuestion, readings: Sequence[OutcomeReading]) -> str:
    """Say that there was nothing to find, and how likely the outcome was according to forecast and price."""
    if any(reading.reader == ARITHMETIC for reading in readings):
        text = "Decided by a number that was published at the end."
    elif readings:
        text = "The deciding fact was not public before the outcome was known."
    else:
        text = "No source was quoted, so no deciding fact is known."
    return f"{text} {_stayed(question)}" if question.brier > BAD else text


def _stayed(question: ScoredQuestion) -> str:
    """Compare the forecast with price and base rate where it was wrong."""
    target = question.leading
    others = {"the price": question.prices.get(target), "the base rate": question.base_rates.get(target)}
    p = question.last.answer[target]
    same = [name for name, value in others.items() if value is not None and (value - 0.5) * (p - 0.5) > 0]
    chance = p if question.outcome.get(target) else 1 - p
    says = f" {' and '.join(same).capitalize()} said the same." if same else ""
    return f"At {brief_percent(chance)} it happens {_times(chance)}.{says}"


def _times(chance: float) -> str:
    """Format a small chance as once in so many times.

    >>> _times(0.24), _times(0.02), _times(0.4)
    ('one time in four', 'one time in 50', 'two times in five')
    """
    words = {1: "one time in one", 2: "one time in two", 3: "one time in three", 4: "one time in four"}
    words |= {5: "one time in five", 6: "one time in six", 7: "one time in seven", 8: "one time in eight"}
    if 0.36 <= chance <= 0.44:
        return "two times in five"
    often = round(1 / max(chance, 0.001))
    return words.get(often, f"one time in {often}")


def _points(move: float) -> str:
    return plural(round(100 * abs(move)), "point") if move >= 0 else f"{signed(100 * move, 0)} points"


def _day(at: datetime) -> str:
    at = at.astimezone(UTC)
    return f"{at.day} {at:%B}"
