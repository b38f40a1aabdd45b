"""The sections of a study, run one by one and joined into one result."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from foretell.questions.errors import InputError
from foretell.report.study import StudyChart, StudyTable
from foretell.report.study_result import StudyResult
from foretell.request import setting

SECTION: Any = setting(None, "Only this section of the study (default: all that the input allows).")
"""The field `section` of a study's options; its type lists the sections."""


def run_sections(
    name: str, title: str, sections: Mapping[str, Callable[[], StudyResult]], chosen: str | None
) -> StudyResult:
    """Run the chosen section, or all of them, and return one result.

    A section that the input does not allow raises an `InputError`; a note then says why it was left out. Raises that
    error if the section was chosen, or if no section is possible.
    """
    results: dict[str, StudyResult] = {}
    problems: dict[str, InputError] = {}
    for section, run in sections.items():
        if chosen in (None, section):
            try:
                results[section] = run()
            except InputError as error:
                problems[section] = error
    if not results:
        raise next(iter(problems.values()))
    left_out = [f"Section {section} was left out: {error}." for section, error in problems.items()]
    return replace(_joined(name, title, results), notes=(*_notes(results), *left_out))


def _joined(name: str, title: str, results: Mapping[str, StudyResult]) -> StudyResult:
    tables: list[StudyTable] = []
    charts: list[StudyChart] = []
    settings: dict[str, Any] = {}
    for section, result in results.items():
        for table in result.tables:
            if table not in tables:
                taken = any(table.title == other.title for other in tables)
                tables.append(replace(table, title=f"{table.title} ({section})") if taken else table)
        for chart in result.charts:
            taken = any(chart.name == other.name for other in charts)
            charts.append(replace(chart, name=f"{section}-{chart.name}") if taken else chart)
        settings = {**result.settings, **settings}
    return StudyResult(
        name=name,
        title=title,
        sentences=tuple(sentence for result in results.values() for sentence in result.sentences),
        tables=tuple(tables),
        charts=tuple(charts),
        settings=settings,
    )


def _notes(results: Mapping[str, StudyResult]) -> Sequence[str]:
    return list(dict.fromkeys(note for result in results.values() for note in result.notes))
