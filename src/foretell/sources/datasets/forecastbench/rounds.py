"""Whole rounds: questions joined with what is known of their outcomes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from foretell.questions.problems import InputError
from foretell.sources.datasets.forecastbench.questions import read_question_set
from foretell.sources.datasets.forecastbench.resolutions import read_resolution_set
from foretell.sources.datasets.question_set import QuestionSet, tally, union


def question_file(day: str) -> str:
    """The published path of a round's questions, below the data sets' root."""
    return f"question_sets/{day}-llm.json"


def resolution_file(day: str) -> str:
    """The published path of a round's outcomes."""
    return f"resolution_sets/{day}_resolution_set.json"


def read_round(questions: str | Path, resolutions: str | Path | None = None) -> QuestionSet:
    """One round from its question file and, where there is one, its resolution file."""
    asked = read_question_set(questions)
    return asked if resolutions is None else join(asked, read_resolution_set(resolutions))


def read_rounds(directory: str | Path, days: Sequence[str] | None = None) -> QuestionSet:
    """All rounds, or the named ones, of a directory that holds `question_sets/` and `resolution_sets/`."""
    root = Path(directory)
    found = sorted(path.name.removesuffix("-llm.json") for path in root.glob("question_sets/????-??-??-llm.json"))
    wanted = found if days is None else list(days)
    missing = [day for day in wanted if day not in found]
    if missing or not wanted:
        problem = f"round {missing[0]} is not there" if missing else "holds no question sets"
        raise InputError(problem, path=root, hint=f"rounds here: {', '.join(found) or 'none'}; see foretell data pull")
    return union("forecastbench", [_round_in(root, day) for day in wanted])


def join(asked: QuestionSet, outcomes: QuestionSet) -> QuestionSet:
    """Questions with their outcomes; rows that answer nothing asked are dropped and counted."""
    if outcomes.resolutions and asked.questions and outcomes.resolutions[0].due != asked.questions[0].due:
        raise InputError(f"the outcomes are of {outcomes.name}, the questions of {asked.name}")
    targets = {q.id: {t.id for t in q.targets} for q in asked.questions}
    counts: Counter[str] = Counter()
    kept = [r for r in outcomes.resolutions if r.target_id in targets.get(r.question_id, ())]
    for resolution in outcomes.resolutions:
        if resolution.question_id not in targets:
            counts["outcomes without a question dropped"] += 1
        elif resolution.target_id not in targets[resolution.question_id]:
            counts["outcomes for a date that was not asked dropped"] += 1
    return replace(asked, resolutions=tuple(kept), notes=asked.notes + outcomes.notes + tally(counts))


def _round_in(root: Path, day: str) -> QuestionSet:
    outcomes = root / resolution_file(day)
    return read_round(root / question_file(day), outcomes if outcomes.exists() else None)
