"""The tree is grown from the evidence of all trials, so the last one waits for the research of the others."""

import asyncio
from pathlib import Path

from foretell.forecasters.reason.evidence import EvidenceItem, evidence_of_all
from foretell.models.journal import Journal
from foretell.questions.question import Question, Target
from foretell.questions.trace import EvidenceFound, ForecastMade
from foretell.runs.claims import ClaimTable
from foretell.runs.executor import trial_claim
from foretell.runs.store import RunStore, TrialKey
from foretell.runs.trial_evidence import EvidenceOfTrials

ASKED = Question(id="q", source="own", text="?", due="2026-07-01", targets=(Target(id="yes"),))


def key(trial: int) -> TrialKey:
    return TrialKey(run="r", question="q", due=ASKED.due.isoformat(), trial=trial)


def found(fact: str) -> EvidenceFound:
    item = EvidenceItem(id="E1", fact=fact, source="News", source_id="page_1")
    return EvidenceFound(items=(item.encoded(),), p={"yes": 0.3}, distribution={"x": [1, 2], "cdf": [0.1, 0.9]})


def test_evidence_is_read_when_the_research_of_the_others_has_ended(tmp_path: Path):
    store, journal = RunStore(tmp_path / "runs.db"), Journal(":memory:")
    claims = ClaimTable(store.database)
    assert all(claims.take(*trial_claim(key(trial))) for trial in (1, 2))  # The first has ended.
    store.add_events([(key(0), found("Steel came.")), (key(2), found("My own."))])
    evidence = EvidenceOfTrials(run="r", store=store, journal=journal, trials=3, poll=0.001)

    async def last_trial() -> list[str]:
        reading = asyncio.create_task(evidence.of_others(ASKED, 2))
        await asyncio.sleep(0.02)
        assert not reading.done(), "the second trial is still researching"
        store.add_events([(key(1), found("Votes were counted.")), (key(1), ForecastMade(p={"yes": 0.5}, how="x"))])
        items = [item for each in await reading for item in each["items"]]
        return [str(item) for item in evidence_of_all([EvidenceItem(id="E1", fact="My own.")], items)]

    expected = ["E1 for: My own.", "E2 for: Steel came. (News)", "E3 for: Votes were counted. (News)"]
    assert asyncio.run(last_trial()) == expected
    store.add_events([(key(0), found("Later news."))])
    again = asyncio.run(evidence.of_others(ASKED, 2))
    facts = [(item["fact"], each["p"]) for each in again for item in each["items"]]
    same = [("Steel came.", {"yes": 0.3}), ("Votes were counted.", {"yes": 0.3})]
    assert facts == same, "a resumed trial reads the same"
    assert [each["distribution"] for each in again] == [{"x": [1, 2], "cdf": [0.1, 0.9]}] * 2
    store.close()
    journal.close()
