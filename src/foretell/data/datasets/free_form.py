"""Questions that are answered in words or with a number of one's own instead of options.

Such a question is asked like any other: for the probability of its only target, that the answer is right. The answer
itself stands in the reasons, behind `Answer:`, and is judged afterwards, so that every forecaster that writes reasons
can be asked.
"""

import re

from foretell.patterns import pattern
from foretell.questions.question import Target

FREE_FORM = "free-form"
"""Subtype of such a question."""
RIGHT = "right"
RIGHT_TARGET = Target(id=RIGHT, label="the answer that you give is right")
HOW_TO_ANSWER = (
    "No options are given. In your reasons, write your best answer on a line of its own, as short as it can be: "
    "`Answer: …` (for a list, its items in order, separated by semicolons). State the probability that this answer is "
    "right."
)
_ANSWER = pattern(
    # Not after a dash: evidence, which may quote anything, is listed with dashes.
    r"(?:^[ \t>*_`#]*|(?<=[.!?])\s+)(?:final\s+)?answer[*_`]*\s*[:：][*_`\s]*(\S.*?)[*_`\s]*$",
    re.IGNORECASE | re.MULTILINE,
)
_BOXED = pattern(r"\\boxed\{([^{}]*)\}")


def stated_answer(reasons: str) -> str:
    r"""Return the last answer that is stated in a text, behind `Answer:` or in `\boxed{}`; empty if there is none.

    >>> stated_answer("It was close.\n**Answer:** Ada Lovelace"), stated_answer(r"So \boxed{A, C}."), stated_answer("?")
    ('Ada Lovelace', 'A, C', '')
    """
    found = [(match.start(), match[1].strip()) for form in (_ANSWER, _BOXED) for match in form.finditer(reasons)]
    return max(found, default=(0, ""))[1]
