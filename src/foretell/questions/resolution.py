"""Outcomes. They are joined to forecasts only for scoring; no forecaster or tool may import this module."""

from numbers import Integral
from typing import TYPE_CHECKING

from foretell.frozen import frozen
from foretell.questions.as_of import Moment, UtcDatetime, read_moments
from foretell.questions.errors import WrongValue
from foretell.questions.field_checks import check_fields, shown


@frozen
class Resolution:
    """The outcome of one target.

    Args:
        question_id: The id of the question.
        target_id: The id of its target.
        outcome: 1 if it came true, 0 if not; None if it is known to be unresolved, which is never scored.
        due: The round of the question, if the outcome depends on it (such as a rise since that day).
        payoff: Dollars that choosing this option would have returned, for tasks with utilities.
        resolved_at: When the outcome was known.
        provenance: Where it comes from.

    Raises:
        WrongValue: If the outcome is another number, or a field has a value of another type.

    >>> Resolution(question_id="snow", target_id="yes", outcome=1).outcome
    1
    """

    question_id: str
    target_id: str
    outcome: int | None
    due: UtcDatetime | None = None
    payoff: float | None = None
    resolved_at: UtcDatetime | None = None
    provenance: str = ""

    if TYPE_CHECKING:

        def __init__(  # noqa: PLR0913 - the fields
            self,
            *,
            question_id: str,
            target_id: str,
            outcome: int | None,
            due: Moment | None = None,
            payoff: float | None = None,
            resolved_at: Moment | None = None,
            provenance: str = "",
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.outcome is not None and not (isinstance(self.outcome, Integral) and self.outcome in (0, 1)):
            of = f"outcome of {self.question_id}/{self.target_id}"
            raise WrongValue("Resolution", "outcome", f"{of} is {shown(self.outcome)}", "0, 1 or None")
        read_moments(self, "due", "resolved_at")
        check_fields(self)


@frozen
class Reference:
    """What answers in words or numbers to a question are judged against."""

    question_id: str
    answers: tuple[str, ...]
    """The right answer, or the right list in its order."""
    spread: float | None = None
    """The deviation of a number at which an answer is worth nothing; None if the set states none."""
    options: bool = False
    """Whether the answers are options of the question, which are compared as they are."""
    level: int | None = None
    """The level of a FutureX question, from 1 to 4."""
