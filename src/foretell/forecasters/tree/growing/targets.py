"""Which targets of a question are analysed, and what that makes of the others."""

from collections.abc import Mapping

from foretell.questions.question import Question, Target


def analysed(question: Question, *, shortcut: bool) -> tuple[Target, ...]:
    """The targets to analyse: of two exclusive ones only the first, with the shortcut."""
    two = question.exclusive and len(question.targets) == 2
    return question.targets[:1] if two and shortcut else question.targets


def probabilities(question: Question, found: Mapping[str, float]) -> dict[str, float]:
    """By target: as found, options of which exactly one comes true divided by their sum.

    >>> from foretell.questions.question import Target
    >>> q = Question(id="q", source="own", text="Who wins?", due="2025-10-26", exclusive=True,
    ...              targets=(Target(id="a"), Target(id="b")))
    >>> probabilities(q, {"a": 0.75}), probabilities(q, {"a": 0.75, "b": 0.75})
    ({'a': 0.75, 'b': 0.25}, {'a': 0.5, 'b': 0.5})
    """
    if not question.exclusive or len(question.targets) < 2:
        return dict(found)
    if len(found) == 1:
        first, other = (target.id for target in question.targets)
        return {first: found[first], other: 1.0 - found[first]}
    total = sum(found.values())
    return {target: value / total if total else 1.0 / len(found) for target, value in found.items()}
