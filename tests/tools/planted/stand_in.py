"""The stand-in of `foretell audit --filter` as a filter model. It tests the pipeline, not the quality of a model."""

from datetime import date

from tests.tools.doubles import Judge

from foretell.questions.as_of import AsOf
from foretell.studies.audit.leaks import tells_nothing_late


def keeps(title: str, text: str, cutoff: str) -> bool:
    """Return False if a sentence describes a day after the cutoff as past."""
    return tells_nothing_late(title, text, AsOf.day(date.fromisoformat(cutoff)))


def stand_in() -> Judge:
    return Judge(keeps)
