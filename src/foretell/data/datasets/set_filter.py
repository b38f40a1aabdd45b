"""Which part of a question set is wanted: the same options for files, data sets, markets and tournaments."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal

from foretell.questions.as_of import instant

SetStatus = Literal["unopened", "open", "closed", "resolved"]
LateText = Literal["quarantine", "keep", "cut"]
"""What is done in a backtest with a question whose own text was written after the moment it is asked."""


@dataclass(frozen=True, kw_only=True)
class SetFilter:
    """What is wanted of a question set. Where an option has no meaning for a set, the set refuses it."""

    rounds: tuple[str, ...] = ()
    """Due dates of the rounds wanted; all of them where none is named."""
    limit: int | None = None
    """Only the first so many, for a cheap first look."""
    closes_after: str | None = None
    """Only what ends on this day or later."""
    closes_before: str | None = None
    """Only what ends by this day."""
    category: str = ""
    """Only this category, or what a market tags so; upper and lower case are the same."""
    status: SetStatus | None = None
    """Of a market's events; open where nothing is said."""
    minimum_volume: float = 0.0
    """Of a market's events, in its own unit; an event whose volume is not told reaches no minimum."""
    again: float | None = None
    """Days after which a question that is asked "now" is asked anew; None asks it once."""
    late_text: LateText = "quarantine"
    """In a backtest, of questions whose own text tells of days after they are asked: leave them out, keep them as they
    are, or cut what was written later."""

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"limit = {self.limit} is not a number of questions")
        if self.again is not None and not self.again > 0:
            raise ValueError(f"again = {self.again:g} is not a number of days")
        if self.minimum_volume < 0:
            raise ValueError("a minimum cannot be below 0")
        after, before = self.window
        if after and before and after > before:
            raise ValueError("closes_after is later than closes_before")

    @property
    def window(self) -> tuple[datetime | None, datetime | None]:
        """Between which moments a question must end."""
        return (
            instant(self.closes_after) if self.closes_after else None,
            instant(self.closes_before) if self.closes_before else None,
        )

    def changed(self) -> dict[str, Any]:
        """The options that are not at their default, by name."""
        return {one.name: value for one in fields(SetFilter) if (value := getattr(self, one.name)) != one.default}
