"""Summaries of runs' scores that are stored with the runs, so that a list of runs need not score them."""

import json
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from foretell.questions.errors import InputError
from foretell.runs.outcomes import RunOutcomes
from foretell.runs.store import RunRow, RunStore

SUMMARY_VERSION = 3
"""Version of the stored summary; raised if its content changes."""
UNDECIDED = {"decided": 0} | dict.fromkeys(
    ("brier_index", "price", "base_rate", "brier", "calibration_error", "against_price", "against_base_rate")
)
"""The summary of a run whose questions have no outcome yet."""


class StoredScores:
    """Stored summaries of runs' scores, recomputed only if an answer or an outcome has come in."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._outcomes = RunOutcomes(store)

    def of(self, rows: Sequence[RunRow], *, combined: bool = False) -> dict[str, dict[str, Any]]:
        """Return `RunScores.summary` by run; with `combined`, what a run's page shows in addition is stored too."""
        counts, saved = self._outcomes.count(), self._store.summaries()
        summaries: dict[str, dict[str, Any]] = {}
        for row in rows:
            decided, when = counts.get(row.id, (0, ""))
            if not decided:
                if combined:
                    from foretell.scoring.run_answers import answers_of_run

                    answers_of_run(self._store, row, self._store.questions(row.id), combined=True)
                summaries[row.id] = dict(UNDECIDED)
                continue
            state = f"{SUMMARY_VERSION} {row.state_of_answers} {decided} {when} {row.spec.get('combine')}"
            seen, text = saved.get(row.id, ("", ""))
            summary = _parse_summary(text) if seen == state else None
            if summary is None:
                summary = self._score(row, combined=combined)
                self._store.keep_summary(row.id, state, json.dumps(summary))
            summaries[row.id] = summary
        return summaries

    def _score(self, row: RunRow, *, combined: bool = True) -> dict[str, Any]:
        from foretell.scoring.run_scores import score_run

        return score_run(self._store, row, combined=combined).summary()


def keep_summary(place: str | Path, run: str) -> None:
    """Store the summary of a run that has ended, so that the first list or page that shows it need not compute it."""
    # A damaged row is reported where the run is shown, and its other answers are stored already.
    with closing(RunStore(place)) as store, suppress(InputError):
        StoredScores(store).of([row for row in (store.run(run),) if row is not None], combined=True)


def _parse_summary(text: str) -> dict[str, Any] | None:
    """Parse a stored summary; None if it cannot be read and must be recomputed."""
    try:
        summary = json.loads(text)
    except (ValueError, TypeError):
        return None
    return summary if isinstance(summary, dict) else None
