"""Two configurations side by side: runs over the same questions, or entries of an arena."""

from collections.abc import Mapping
from dataclasses import dataclass

from foretell.app.settings import Settings
from foretell.app.stored_runs import run_table
from foretell.app.web.views.arena import Boards
from foretell.arena.comparison import comparison_study
from foretell.arena.scoring import Scoring
from foretell.arena.standings.as_table import as_table
from foretell.arena.store import RunRow, Store
from foretell.arena.study import Study
from foretell.evaluate.bootstrap import Resampling

DRAWS = Resampling(draws=1000)
MOST = 200


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Somebody who can be compared."""

    id: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Between whom one can choose."""

    arena: str
    """Empty: runs of this machine."""
    choices: tuple[Choice, ...]


def run_choices(store: Store) -> Choices:
    """Runs that have forecasts, the newest first."""
    found = [Choice(id=row.id, name=f"{_who(row)} · {row.id}") for row in store.runs() if row.done]
    return Choices(arena="", choices=tuple(found[:MOST]))


def _who(row: RunRow) -> str:
    return str(row.spec.get("models", {}).get("agent") or row.spec.get("forecaster", ""))


def entry_choices(boards: Boards, arena: str) -> Choices:
    """Entries of an arena."""
    names = boards.standings(arena).names
    return Choices(arena=arena, choices=tuple(Choice(id=name, name=name) for name in names))


def compare_runs(settings: Settings, first: str, second: str) -> Study:
    """Two runs, trials combined as each run says; an `InputError` where they share nothing that has come out."""
    table, names, texts = run_table(settings, (first, second))
    return comparison_study(table, names[0], names[1], texts=texts, scoring=Scoring(resampling=DRAWS, by=("source",)))


def compare_entries(boards: Boards, arena: str, first: str, second: str, texts: Mapping[str, str]) -> Study:
    """Two entries of an arena on every market both answered."""
    table = as_table(boards.standings(arena))
    scoring = Scoring(resampling=DRAWS, by=("category",), metric="brier")
    return comparison_study(table, first, second, texts=texts, scoring=scoring)
