"""The rounds in a folder with the files of ForecastBench."""

from collections.abc import Sequence
from pathlib import Path

from foretell.data.datasets.forecastbench import question_file, read_round, resolution_file
from foretell.data.datasets.question_set import QuestionSet, union


def read_rounds(folder: Path, days: Sequence[str] = ()) -> QuestionSet:
    """Read the rounds of these days, or all that are there."""
    questions = [folder / question_file(day) for day in days] or sorted((folder / "question_sets").glob("*-llm.json"))
    rounds: list[QuestionSet] = []
    for path in questions:
        outcomes = folder / resolution_file(path.name.removesuffix("-llm.json"))
        rounds.append(read_round(path, outcomes if outcomes.exists() else None))
    return union("forecastbench", rounds)
