"""Times and cutoffs. All datetimes are aware and in UTC, and only `AsOf` compares dates."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Annotated, Any, Literal

from foretell.frozen import frozen
from foretell.questions.errors import WrongValue
from foretell.questions.field_checks import check_fields

AsOfMode = Literal["live", "backtest"]
Clock = Callable[[], datetime]
"""Returns the current time. A simulation has its own clock."""


def instant(value: str | date | datetime) -> datetime:
    """Read a date or time as UTC. A date means its midnight. Raises ValueError if a time has no time zone.

    >>> instant("2025-10-26").isoformat()
    '2025-10-26T00:00:00+00:00'
    >>> instant("2025-10-26T12:00:00+02:00").isoformat()
    '2025-10-26T10:00:00+00:00'
    >>> instant("2025-10-26T12:00:00")
    Traceback (most recent call last):
    ...
    ValueError: '2025-10-26T12:00:00' has no time zone; write e.g. 2025-10-26T12:00:00Z
    """
    if isinstance(value, datetime) and value.tzinfo is UTC:
        return value
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value) if len(value) == 10 else datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(
                f"{value!r} is not an ISO date or time such as 2025-10-26 or 2025-10-26T12:00:00Z"
            ) from None
    if not isinstance(value, datetime):
        if not isinstance(value, date):  # pyright: ignore[reportUnnecessaryIsInstance] - may come from a JSON file
            raise ValueError(f"{value!r} is not a date; write it as text such as 2025-10-26")
        return datetime.combine(value, time.min, UTC)
    if value.tzinfo is None:
        text = value.isoformat()
        if value != value:  # pandas writes a missing time so.
            raise ValueError("NaT is not a date; leave it out")
        raise ValueError(f"{text!r} has no time zone; write e.g. {text}Z")
    return value.astimezone(UTC)


def read_moments(value: Any, *names: str) -> None:
    """Store dates of a frozen dataclass in UTC; None stays. Raises `WrongValue`."""
    for name in names:
        if (given := value.__dict__[name]) is not None:
            try:
                value.__dict__[name] = instant(given)
            except ValueError as error:
                raise WrongValue(type(value).__name__, name, str(error)) from None


class _ParsedByInstant:
    """Makes pydantic parse datetimes with `instant`."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(instant, handler(source))


Moment = str | date | datetime
"""What `instant` reads. Classes with a `UtcDatetime` accept it, and say so in an `__init__` for type checkers."""
UtcDatetime = Annotated[datetime, _ParsedByInstant]
"""A datetime in UTC; in files also a date."""


def end_of_day(day: date) -> datetime:
    """Return the end of a calendar day in UTC."""
    return datetime.combine(day, time.max, UTC)


@frozen
class AsOf:
    """The cutoff of a forecast, which may use only what was known at `at`.

    In a backtest, anything without a date is rejected, because it may be too new.

    Args:
        at: The time, as text in ISO form, a date or a datetime.
        mode: "backtest", or "live" for a question that is asked now.

    >>> cutoff = AsOf.day("2025-10-26")
    >>> cutoff.admits(instant("2025-10-26T09:30:00Z")), cutoff.admits(instant("2025-10-27")), cutoff.admits(None)
    (True, False, False)
    """

    at: UtcDatetime
    mode: AsOfMode = "backtest"

    if TYPE_CHECKING:

        def __init__(self, *, at: Moment, mode: AsOfMode = "backtest") -> None: ...

    def __post_init__(self) -> None:
        read_moments(self, "at")
        check_fields(self)

    @classmethod
    def day(cls, day: str | date, mode: AsOfMode = "backtest") -> "AsOf":
        """The cutoff at the end of a calendar day, so that the day's own data is known."""
        return cls(at=end_of_day(cls(at=day).at.date()), mode=mode)

    def admits(self, published: datetime | None) -> bool:
        """Return whether something published at that time may be seen."""
        if published is None:
            return self.mode == "live"
        return instant(published) <= self.at

    def admits_day(self, day: date) -> bool:
        """Return whether something with only a date may be seen. The whole day must be over by the cutoff."""
        return end_of_day(day) <= self.at

    def __str__(self) -> str:
        """The form used in file names and tables."""
        return self.at.isoformat(timespec="seconds")


NO_CUTOFF = AsOf.day("9999-12-31", mode="live")
"""A time that admits everything, whatever its date."""
