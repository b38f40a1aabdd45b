"""The last resort before a trial is given up: a probability in plain text, if there is only one way to read it."""

import re
from collections.abc import Iterable

from foretell.forecasters.agent.form import Form, Stated, as_probability
from foretell.forecasters.agent.reading import LONGEST_REPLY, Unusable, read_object
from foretell.llm.message import Reply

_NUMBER = r"(?<![\d.])(\d{1,3}(?:\.\d+)?\s*%|0?\.\d+|1\.0+)(?![\d.]*\d)"
_SAID = re.compile(
    r"""\b(?:probability|chance|likelihood|p|(?:my|final)\s+(?:answer|forecast|estimate|prediction))\b["'*]*"""
    r"""(?:\s+(?:of|that|for|it|this|yes|resolves?|is|at|to|be|would|about|around|roughly))*"""
    rf"""\s*[=:≈~]?\s*["'*]*\s*{_NUMBER}""",
    re.IGNORECASE,
)
_NEAR = re.compile(rf"\b(?:probability|chance|likelihood|odds)[^.\d%]{{0,60}}{_NUMBER}", re.IGNORECASE)
"""Says nothing by itself, but a second number here makes the text ambiguous."""
_CHANCE = re.compile(rf"{_NUMBER}\s+(?:chance|probability|likelihood)\b", re.IGNORECASE)
_ALONE = re.compile(rf"[\s*`\"]*{_NUMBER}[\s*`\".]*")


def salvaged(replies: Iterable[Reply], form: Form) -> Stated | None:
    """The number in the first reply, the latest given first, that states every target in exactly one way.

    >>> from foretell.questions import Question, Target
    >>> q = Question(id="q", source="own", text="?", due="2025-10-26", targets=(Target(id="yes"),))
    >>> salvaged([Reply(text="I put the probability at 35% for now.")], Form.of(q)).p
    {'yes': 0.35}
    >>> salvaged([Reply(text="The chance was 20%; now the probability is 70%.")], Form.of(q)) is None
    True
    """
    for reply in replies:
        for text in (*(call.arguments for call in reply.calls), reply.text):
            if (found := _in_json(text, form)) is not None:
                return found
        if (found := _in_words(reply.text, form)) is not None:
            return found
    return None


def _in_json(text: str, form: Form) -> Stated | None:
    try:
        stated = form.read(read_object(text))
    except Unusable:
        return None
    return None if form.missing(stated.p) else stated


def _in_words(text: str, form: Form) -> Stated | None:
    """Only for one target: which of several a number in prose belongs to is a guess."""
    if len(form.targets) != 1 or form.thresholds is not None:
        return None
    text = text[:LONGEST_REPLY]
    alone = _ALONE.fullmatch(text)
    said = [alone[1]] if alone else [*_SAID.findall(text), *_CHANCE.findall(text)]
    try:
        numbers = {as_probability(number) for number in [*said, *_NEAR.findall(text)]} if said else set[float]()
    except ValueError:
        return None
    target = next(iter(form.targets.values()))
    return Stated(p={target: numbers.pop()}) if len(numbers) == 1 else None
