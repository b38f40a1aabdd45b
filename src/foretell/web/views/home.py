"""What is on this machine, for the first page."""

from dataclasses import dataclass
from pathlib import Path

from foretell.operations.saved_studies import saved_studies
from foretell.plugins import names
from foretell.runs.settings import KEYS, Settings
from foretell.runs.store import RunStore
from foretell.studies.registry import study_questions
from foretell.web.views.arena import list_arenas
from foretell.web.views.runs import RunRowView, list_runs

MODEL_PROVIDERS = ("openai", "anthropic", "google", "openrouter")
NEWEST_RUNS = 8


@dataclass(frozen=True, kw_only=True)
class HomeView:
    """The first page."""

    runs: tuple[RunRowView, ...]
    """The newest ones."""
    run_count: int
    trees: int
    arenas: int
    studies: int
    providers: tuple[str, ...]
    """Of models that there is a key for."""
    missing: tuple[str, ...]
    """Environment variables that would bring one."""


def home_view(store: RunStore, settings: Settings) -> HomeView:
    """What there is."""
    found = list_runs(store, limit=NEWEST_RUNS)
    providers = tuple(name for name in MODEL_PROVIDERS if name in settings.services)
    return HomeView(
        runs=found.runs,
        run_count=found.total,
        trees=_files(settings.home / "trees", "*.json"),
        arenas=len(list_arenas(store).arenas),
        studies=len(names("studies")),
        providers=providers,
        missing=tuple(KEYS[name][0] for name in MODEL_PROVIDERS if name not in providers),
    )


def _files(folder: Path, pattern: str) -> int:
    return sum(1 for _ in folder.rglob(pattern)) if folder.is_dir() else 0


# Studies: which there are, and which were kept on this machine.


@dataclass(frozen=True, kw_only=True)
class StudyRowView:
    """One study by name."""

    name: str
    asks: str
    """What it asks, in a line."""
    kept: bool
    command: str


@dataclass(frozen=True, kw_only=True)
class StudyList:
    """All of them, kept ones first."""

    studies: tuple[StudyRowView, ...]


def list_studies(settings: Settings) -> StudyList:
    """Every registered study, and whatever else was kept."""
    kept = saved_studies(settings)
    asks = study_questions()
    found = [
        StudyRowView(name=name, asks=asks.get(name, ""), kept=name in kept, command=_command(name))
        for name in dict.fromkeys([*kept, *asks])
    ]
    return StudyList(studies=tuple(found))


def _command(name: str) -> str:
    """How to run it; empty for what was kept under a name that is no study of this version."""
    return f"foretell study {name} --keep" if name in names("studies") else ""
