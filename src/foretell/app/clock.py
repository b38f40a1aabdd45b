"""What time it is: this machine's clock, or for simulations a file that whoever drives them writes."""

from datetime import UTC, datetime
from pathlib import Path

from foretell.app.settings import Settings
from foretell.arena.live.schedule import Clock
from foretell.questions.clock import instant
from foretell.questions.problems import InputError

FILE = "file:"


def clock_of(settings: Settings) -> Clock:
    """The clock that FORETELL_CLOCK names: `file:PATH` for a file with an ISO moment, read anew at every look."""
    if not settings.clock:
        return lambda: datetime.now(UTC)
    if not settings.clock.startswith(FILE):
        raise InputError(f"cannot read the clock {settings.clock!r}", path="FORETELL_CLOCK", hint="write file:PATH")
    path = Path(settings.clock.removeprefix(FILE))

    def told() -> datetime:
        try:
            return instant(path.read_text(encoding="utf-8").strip())
        except FileNotFoundError:
            raise InputError("no such file", path=path, hint="FORETELL_CLOCK names it") from None
        except ValueError as error:
            raise InputError(str(error), path=path, hint="FORETELL_CLOCK names it") from None

    told()
    return told
