"""Studies: which there are, and which were kept on this machine."""

from dataclasses import dataclass

from foretell.app.kept_studies import kept_studies
from foretell.app.settings import Settings
from foretell.arena.studies.catalog import STUDIES


@dataclass(frozen=True, kw_only=True)
class StudyLine:
    """One study by name."""

    name: str
    asks: str
    """What it asks, in a line."""
    kept: bool
    command: str


@dataclass(frozen=True, kw_only=True)
class Studies:
    """All of them, kept ones first."""

    studies: tuple[StudyLine, ...]


def list_studies(settings: Settings) -> Studies:
    """Every study of the catalogue, and whatever else was kept."""
    kept = kept_studies(settings)
    asks = {name: told for name, (_, told) in STUDIES.items()}
    found = [
        StudyLine(name=name, asks=asks.get(name, ""), kept=name in kept, command=_command(name))
        for name in dict.fromkeys([*kept, *asks])
    ]
    return Studies(studies=tuple(found))


def _command(name: str) -> str:
    words = name.replace("tree-", "tree ", 1) if name.startswith("tree-") else name
    return f"foretell study {words} --keep"
