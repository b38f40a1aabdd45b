"""What time alone changes: an event that has to happen by a deadline gets less likely while nothing happens.

If the chance of the event were the same on every day that is left, a probability p would become 1 - (1 - p)^f with the
share f of the time that is left. Many events come late in their time, some happen unnoticed, and deadlines hurry: the
square root of f is used, which moves a forecast by less, and most shortly before the deadline. Two steps are the same
as one, so that no time is counted twice. A forecast above one half is left alone: what it expects may have happened
already, or has a day of its own.
"""

from collections.abc import Mapping
from datetime import datetime
from math import sqrt

from foretell.forecasters.combine.claims import DEADLINE, NEGATED, TEMPORARY
from foretell.questions.question import Question

MOST = 0.5
"""Probability above which time alone changes nothing."""


def has_to_happen(question: Question) -> bool:
    """Whether a yes-or-no question asks if something happens by a deadline, as opposed to what is so on a day.

    >>> from foretell.questions.question import Target
    >>> def asked(text):
    ...     return Question(id="q", source="asked", text=text, due="2026-01-01", targets=(Target(id="yes"),))
    >>> has_to_happen(asked("Will the bridge open by May 2026?"))
    True
    >>> has_to_happen(asked("Will the bridge be open on 1 May 2026?"))
    False
    >>> has_to_happen(asked("Will the bridge remain closed before 1 May 2026?"))
    False
    """
    text = question.text
    plain = question.series is None and question.range is None and [each.id for each in question.targets] == ["yes"]
    return plain and bool(DEADLINE.search(text)) and not (NEGATED.search(text) or TEMPORARY.search(text))


def after_time(p: Mapping[str, float], made: datetime, now: datetime, deadline: datetime) -> dict[str, float]:
    """Return the probabilities after time in which nothing happened.

    >>> from foretell.questions.as_of import instant
    >>> first, last = instant("2026-01-01"), instant("2026-01-17")
    >>> after_time({"yes": 0.36}, first, instant("2026-01-13"), last)
    {'yes': 0.2}
    """
    left = max(0.0, min(1.0, (deadline - now) / (deadline - made))) if deadline > made else 1.0
    return {target: value if value > MOST else round(1 - (1 - value) ** sqrt(left), 6) for target, value in p.items()}
