"""Evidence that the trials of a run leave to each other."""

import asyncio
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

from foretell.frozen import frozen
from foretell.models.canonical import content_key
from foretell.models.journal import Journal
from foretell.questions.question import Question
from foretell.questions.trace import EvidenceFound
from foretell.runs.claims import ClaimTable
from foretell.runs.executor import trial_claim
from foretell.runs.store import RunStore, TrialKey

LONGEST_WAIT = 600.0
"""Seconds to wait for the research of other trials: as long as research usually may take."""


@frozen
class EvidenceOfTrials:
    """Reads what the trials on a question found.

    What was read is recorded in the journal, because it depends on how far the other trials were, and a resumed or
    replayed trial has to make the same requests.
    """

    run: str
    store: RunStore
    journal: Journal
    trials: int
    """Number of trials on each question."""
    poll: float = 0.25
    """Seconds between two looks at the other trials."""

    async def of_others(self, question: Question, trial: int) -> Sequence[Mapping[str, Any]]:
        """Return the evidence and the estimate of each other trial, once those under way have ended their research."""

        async def produce() -> list[Mapping[str, Any]]:
            end = monotonic() + LONGEST_WAIT
            while await self.store.aside(self._researching, question, trial) and monotonic() < end:
                await asyncio.sleep(self.poll)
            return await self.store.aside(self._read, question, trial)

        request = ["evidence and estimate", self.run, question.id, question.due.isoformat(), trial]
        return await self.journal.once_json(content_key(request), "evidence", produce)

    def _researching(self, question: Question, trial: int) -> set[int]:
        """Return the other trials that a process works on and that have not left their evidence yet."""
        own = TrialKey(run=self.run, question=question.id, due=question.due.isoformat(), trial=trial)
        names = {trial_claim(own._replace(trial=number)): number for number in range(self.trials) if number != trial}
        # Claims are read first: a trial stores what it found before it ends its claim.
        held = ClaimTable(self.store.database).held(trial_claim(own)[0])
        left = {
            key.trial
            for _, key, _ in self.store.events(self.run, question.id, kinds=(EvidenceFound,))
            if key.due == own.due
        }
        return {number for (_, name), number in names.items() if name in held} - left

    def _read(self, question: Question, trial: int) -> list[Mapping[str, Any]]:
        due = question.due.isoformat()
        events = self.store.events(self.run, question.id, kinds=(EvidenceFound,))
        # The newest of each trial, because a trial may have been repeated after a failure.
        found = {
            key.trial: {
                "items": [dict(item) for item in event.items],
                "p": dict(event.p),
                "distribution": event.distribution,
            }
            for _, key, event in events
            if isinstance(event, EvidenceFound) and key.due == due and key.trial != trial
        }
        return [found[number] for number in sorted(found)]
