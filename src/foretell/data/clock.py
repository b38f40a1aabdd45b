"""The current time, from this machine's clock or, in simulations, from a file."""

from datetime import UTC, datetime
from pathlib import Path

from foretell.questions.as_of import Clock, instant
from foretell.questions.errors import InputError

CLOCK_VARIABLE = "FORETELL_CLOCK"
CLOCK_FILE_PREFIX = "file:"


def open_clock(name: str) -> Clock:
    """Return the clock that FORETELL_CLOCK names: `file:PATH` for a file with an ISO time, read again at every use.

    An empty name means this machine's clock.
    """
    if not name:
        return lambda: datetime.now(UTC)
    if not name.startswith(CLOCK_FILE_PREFIX):
        raise InputError(f"cannot read the clock {name!r}", path=CLOCK_VARIABLE, hint="write file:PATH")
    path = Path(name.removeprefix(CLOCK_FILE_PREFIX))

    def read() -> datetime:
        try:
            return instant(path.read_text(encoding="utf-8").strip())
        except FileNotFoundError:
            raise InputError("no such file", path=path, hint=f"{CLOCK_VARIABLE} names it") from None
        except ValueError as error:
            raise InputError(str(error), path=path, hint=f"{CLOCK_VARIABLE} names it") from None

    read()
    return read
