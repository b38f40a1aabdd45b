"""The data layer: numbers are cut at the cutoff point by point, whatever their source promised."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from foretell.questions.clock import AsOf
from foretell.sources.market import PricePoint
from foretell.sources.series import Series

ROW = re.compile(r"^\s*[|\"'\[(]*(?P<day>\d{4}-\d{2}-\d{2})(?P<clock>[T ]\d{2}:\d{2}(?::\d{2})?Z?)?(?=[\s,;:|=\t\"'])")
TOLD_LATER = re.compile(
    r"^\W*(?:\w+[ _-])?(?:status|state|closed|active|is[ _]?resolved|resolv(?:ed|es)\w*|resolution\w*|result"
    r"|outcome|winner|settle(?:d|ment)\w*|expir\w+|close[sd]?[ _]?(?:time|date|at|on)?|end[ _]?(?:date|time)"
    r"|volume\w*|liquidity|open[ _]?interest|traders?|bettors?|last[ _]?(?:price|trade)\w*|updated\w*)\b"
    r"[^:=\n]{0,20}[:=]",
    re.IGNORECASE,
)
"""Fields of a market that hold what became known later: whether it is over, how it ended, how much was traded."""


def clamp_series(series: Series, as_of: AsOf) -> tuple[Series, int]:
    """The series up to the cutoff, and how many later points there were."""
    known = series.until(as_of)
    return known, len(series) - len(known)


def clamp_prices(points: Sequence[PricePoint], as_of: AsOf) -> tuple[list[PricePoint], int]:
    """The prices up to the cutoff, oldest first, and how many later or unreadable ones there were."""
    known = sorted((point for point in points if _admitted(point.at, as_of)), key=lambda point: point.at)
    return known, len(points) - len(known)


def _admitted(moment: datetime, as_of: AsOf) -> bool:
    try:
        return as_of.admits(moment)
    except ValueError:
        return False


def clamp_text(text: str, as_of: AsOf) -> tuple[str, list[str]]:
    r"""The text without dated rows after the cutoff and without fields told later, and the lines left out.

    >>> clamp_text("2025-10-26,3.1\n2025-10-27,3.2\nVolume: 9", AsOf.day("2025-10-26"))
    ('2025-10-26,3.1', ['2025-10-27,3.2', 'Volume: 9'])
    """
    lines = text.splitlines()
    late = [line for line in lines if TOLD_LATER.match(line) or _is_late(line, as_of)]
    return "\n".join(line for line in lines if line not in late), late


def has_rows(text: str) -> bool:
    """Whether any dated row is left."""
    return any(ROW.match(line) for line in text.splitlines())


def _is_late(line: str, as_of: AsOf) -> bool:
    row = ROW.match(line)
    if row is None:
        return False
    try:
        if row["clock"] is None:
            return not as_of.admits_day(datetime.fromisoformat(row["day"]).date())
        moment = datetime.fromisoformat(row["day"] + row["clock"].rstrip("Z").replace(" ", "T"))
    except ValueError:
        return True
    return not as_of.admits(moment.replace(tzinfo=UTC))
