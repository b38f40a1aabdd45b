"""The last resort before a trial is given up: a probability in plain text, if there is only one way to read it."""

import re
from collections.abc import Iterable

from foretell.forecasters.agent.form import Form, Stated, as_probability
from foretell.forecasters.agent.reading import LONGEST_REPLY, Unusable, read_object
from foretell.forecasters.agent.statement import BELIEF

_NUMBER = r"(?<![\d.])(\d{1,3}(?:\.\d+)?\s*%|0?\.\d+|1\.0+)(?![\d.]*\d)"
_SAID = re.compile(
    r"""\b(?:probability|chance|likelihood|p|(?:my|final)\s+(?:answer|forecast|estimate|prediction))\b["'*]*"""
    r"""(?:\s+(?:of|that|for|it|this|yes|resolves?|is|at|to|be|would|about|around|roughly))*"""
    rf"""\s*[=:≈~]?\s*["'*]*\s*{_NUMBER}""",
    re.IGNORECASE,
)
_CHANCE = re.compile(rf"{_NUMBER}\s+(?:chance|probability|likelihood)\b", re.IGNORECASE)
_ALONE = re.compile(rf"[\s*`\"]*{_NUMBER}[\s*`\".]*")


def salvaged(texts: Iterable[str], form: Form) -> Stated | None:
    """The first text, the latest given first, that states every target in exactly one way; None where none does.

    >>> from foretell.questions import Question, Target
    >>> q = Question(id="q", source="own", text="?", due="2025-10-26", targets=(Target(id="yes"),))
    >>> salvaged(["I put the probability at 35% for now."], Form.of(q)).p
    {'yes': 0.35}
    >>> salvaged(["The chance is 20% to begin with, then the probability is 70%."], Form.of(q)) is None
    True
    """
    for text in texts:
        found = _in_json(text, form) or _in_words(text, form)
        if found is not None:
            return found
    return None


def _in_json(text: str, form: Form) -> Stated | None:
    try:
        said = read_object(text)
    except Unusable:
        return None
    inner = said.get(BELIEF)
    for place in (said, inner):
        stated = form.read(place) if isinstance(place, dict) else None
        if stated is not None and not form.missing(stated.p):
            return stated
    return None


def _in_words(text: str, form: Form) -> Stated | None:
    """Only for one target: which of several a number in prose belongs to is a guess."""
    if len(form.targets) != 1 or form.thresholds is not None:
        return None
    text = text[:LONGEST_REPLY]
    alone = _ALONE.fullmatch(text)
    said = {alone[1]} if alone else {*_SAID.findall(text), *_CHANCE.findall(text)}
    try:
        numbers = {as_probability(number) for number in said}
    except ValueError:
        return None
    target = next(iter(form.targets.values()))
    return Stated(p={target: numbers.pop()}) if len(numbers) == 1 else None
