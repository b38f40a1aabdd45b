"""The value of a series that a forecast stands on, and how old it is on the due date."""

from datetime import date

from foretell.frozen import frozen
from foretell.number_text import plural


@frozen
class ValueAge:
    """The newest value that a forecast could use, and whether its source could have given a newer one.

    >>> old = ValueAge(series="fred/DGS10", value=4.2, day=date(2026, 11, 5), age=10, usual=3, reason="no key")
    >>> old.in_words
    'value of 10 days ago (4.2 on 2026-11-05; no newer one because no key)'
    >>> old.stale
    True
    """

    series: str
    """Provider and id."""
    value: float
    day: date
    age: int
    """Days from the value's day to the due date."""
    usual: int
    """Age that the usual interval and delay of the source explain."""
    reason: str = ""
    """Why the source could not be read; empty if it was read, so that it had nothing newer."""

    @property
    def stale(self) -> bool:
        """Whether the source could have given a newer value, but could not be read."""
        return bool(self.reason) and self.age > self.usual

    @property
    def in_words(self) -> str:
        """Say how old the value is, what it is, and why there is no newer one if it is stale."""
        ago = "the due date" if self.age <= 0 else f"{plural(self.age, 'day')} ago"
        why = f"; no newer one because {self.reason}" if self.stale else ""
        return f"value of {ago} ({self.value:g} on {self.day}{why})"
