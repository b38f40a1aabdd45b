"""The stand-in of `foretell audit --filter` as a filter model: it shows that the road works, not how well one reads."""

from datetime import date

from tests.tools.doubles import Judge

from foretell.questions import AsOf
from foretell.studies.audit.leaks import tells_nothing_late


def keeps(title: str, text: str, cutoff: str) -> bool:
    """KEEP unless a sentence tells, as done, something about a day after the cutoff."""
    return tells_nothing_late(title, text, AsOf.day(date.fromisoformat(cutoff)))


def stand_in() -> Judge:
    return Judge(keeps)
