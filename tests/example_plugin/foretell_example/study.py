"""A study."""

from foretell.report.study_result import StudyResult
from foretell.studies.inputs import StudyOptions


def study(inputs: object, options: StudyOptions) -> StudyResult:
    """Can another package add a study?"""
    return StudyResult(name="example_study", title="An example", sentences=("It can.",), tables=())
