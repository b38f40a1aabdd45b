"""Resolution sets: how a round came out so far. The files are rewritten in place, so versions are compared too."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from foretell.questions.resolution import Resolution
from foretell.sources.datasets.forecastbench.document import Document, identity, read_document
from foretell.sources.datasets.forecastbench.questions import YES
from foretell.sources.datasets.forecastbench.templates import MARKETS
from foretell.sources.datasets.question_set import Key, QuestionSet, key_of, tally
from foretell.sources.datasets.row import Row

UNRESOLVED = "rows not resolved yet: they hold a market price, not an outcome"
AMBIGUOUS = "rows resolved to neither 0 nor 1: no outcome"
CONTRADICTORY = "rows that contradict an earlier row of the file: no outcome"


@dataclass(frozen=True, kw_only=True)
class Revision:
    """An outcome that a later version of a resolution set changed."""

    key: Key
    before: int
    after: int | None


def read_resolution_set(path: str | Path) -> QuestionSet:
    """Read `<due>_resolution_set.json`: outcomes without their questions.

    A row that is not resolved becomes a `Resolution` without an outcome, whatever price it carries.
    """
    document = read_document(Path(path), "resolutions")
    counts: Counter[str] = Counter()
    found: dict[Key, Resolution] = {}
    for row in document.rows:
        named = identity(row)
        if named is None:
            counts["combination rows dropped"] += 1
            continue
        _add(found, _resolution(document, *named, counts), counts)
    return QuestionSet(name=f"forecastbench {document.day}", resolutions=tuple(found.values()), notes=tally(counts))


def revisions(old: Iterable[Resolution], new: Iterable[Resolution]) -> tuple[Revision, ...]:
    """Targets that had an outcome in the old version and have another, or none, in the new one.

    A target resolved for the first time is news, not a revision; one that vanished from the file is not judged.
    """
    before = {key_of(r): r.outcome for r in old if r.outcome is not None}
    later = {key_of(r): r.outcome for r in new}
    return tuple(
        Revision(key=key, before=outcome, after=later[key])
        for key, outcome in before.items()
        if key in later and later[key] != outcome
    )


def _resolution(document: Document, question_id: str, row: Row, counts: Counter[str]) -> Resolution:
    moment = row.moment("resolution_date")
    if moment is None:
        raise row.problem("resolution_date", "is missing")
    outcome = _outcome(row, counts)
    return Resolution(
        question_id=question_id,
        target_id=YES if row.text("source") in MARKETS else moment.date().isoformat(),
        due=document.due,
        outcome=outcome,
        resolved_at=moment if row.flag("resolved") else None,
        provenance=document.path.name,
    )


def _outcome(row: Row, counts: Counter[str]) -> int | None:
    resolved = row.flag("resolved")
    if resolved is None:
        raise row.problem("resolved", "is missing")
    if not resolved:
        counts[UNRESOLVED] += 1
        return None
    value = row.real("resolved_to")
    if value not in (0.0, 1.0):
        counts[AMBIGUOUS] += 1
        return None
    return int(value)


def _add(found: dict[Key, Resolution], resolution: Resolution, counts: Counter[str]) -> None:
    """Keep one row per key. Where a file contradicts itself nobody knows the outcome, so there is none."""
    earlier = found.setdefault(key_of(resolution), resolution)
    if earlier is resolution:
        return
    if earlier.outcome == resolution.outcome:
        counts["repeated rows dropped"] += 1
        return
    counts[CONTRADICTORY] += 1
    found[key_of(resolution)] = replace(earlier, outcome=None, resolved_at=None)
