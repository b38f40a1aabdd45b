"""What is on this machine, for the first page."""

from dataclasses import dataclass
from pathlib import Path

from foretell.app.settings import KEYS, Settings
from foretell.app.web.views.arena import list_arenas
from foretell.app.web.views.runs import RunLine, list_runs
from foretell.arena.store import Store
from foretell.arena.studies.catalog import STUDIES

MODELS = ("openai", "anthropic", "google", "openrouter")
NEWEST = 8


@dataclass(frozen=True, kw_only=True)
class Home:
    """The first page."""

    runs: tuple[RunLine, ...]
    """The newest ones."""
    run_count: int
    trees: int
    arenas: int
    studies: int
    providers: tuple[str, ...]
    """Of models that there is a key for."""
    missing: tuple[str, ...]
    """Environment variables that would bring one."""


def home(store: Store, settings: Settings) -> Home:
    """What there is."""
    found = list_runs(store, limit=NEWEST)
    providers = tuple(name for name in MODELS if name in settings.services)
    return Home(
        runs=found.runs,
        run_count=found.total,
        trees=_files(settings.home / "trees", "*.json"),
        arenas=len(list_arenas(store).arenas),
        studies=len(STUDIES),
        providers=providers,
        missing=tuple(KEYS[name][0] for name in MODELS if name not in providers),
    )


def _files(folder: Path, pattern: str) -> int:
    return sum(1 for _ in folder.rglob(pattern)) if folder.is_dir() else 0
