"""What an agent wrote, searched for knowledge it cannot have read."""

import asyncio
import json

import pytest

from foretell.models import Journal, JournalEntry, JournalRequest, Reply, pack_reply
from foretell.models.providers import ScriptedModel
from foretell.questions import AsOf, BeliefRevised, Forecast, ModelCalled, Question, Target, ToolUsed
from foretell.runs import CellKey
from foretell.studies.audit import (
    READ_INSTRUCTION,
    SUPPORT_INSTRUCTION,
    Auditor,
    AuditPassage,
    AuditScope,
    TextLocation,
    TrialTrace,
    agent_notes,
    audit_memory,
    past_tense_after_cutoff,
    training_cutoff_notes,
)

CUTOFF = AsOf.day("2025-10-26")
QUESTION = Question(
    id="q0",
    source="own",
    text="Will it pass?",
    background="Vote planned.",
    due="2025-10-26",
    targets=(Target(id="yes"),),
)
ASKED = ("q0", QUESTION.due.isoformat())
SCOPE = AuditScope(questions={ASKED: QUESTION})
KEY = CellKey(run="r", question="q0", due=ASKED[1], trial=0)


@pytest.mark.parametrize(
    "text",
    [
        "The bill passed on 3 November 2025.",
        "On 2025-11-16 the vote was lost.",
        "Prices fell in December 2025.",
        "In 2026 she won the seat.",
        "It was approved by 357 deputies on August 6, 2026.",
        "Canada's candidate resigned on 4 May 2026.",
    ],
)
def test_later_days_told_as_past_are_found(text):
    assert past_tense_after_cutoff(f"Some background from 2024. {text} More.", CUTOFF) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "The vote is scheduled for 3 November 2025.",
        "It will have passed by 3 November 2025.",
        "The term was extended until 6 February 2026.",
        "The bill passed on 3 October 2025.",
        "If it passed on 3 November 2025, the question would resolve yes.",
        "The deadline was set for December 2025.",
        "The meeting on 3 November 2025 is expected to be dull.",
        "3 November 2025",
    ],
)
def test_plans_conditions_and_earlier_days_are_not(text):
    assert past_tense_after_cutoff(text, CUTOFF) == []


def events(*happened):
    return TrialTrace(key=KEY, question=QUESTION, events=happened)


def believed(step, reason, **evidence):
    return BeliefRevised(step=step, p={"yes": 0.5}, reason=reason, belief=evidence)


def test_every_text_is_read_once_and_with_its_step():
    journal = Journal(":memory:")
    request = JournalRequest(key="ab" * 32, kind="model")
    journal.intend(request)
    journal.keep(request, JournalEntry(body=pack_reply(Reply(text="Thinking aloud."))))
    called = {"role": "agent", "model": "openai:gpt-5.4"}
    trace = events(
        ModelCalled(key=request.key, **called),
        believed(0, "A start.", evidence_for=[{"claim": "Polls moved.", "source_id": ""}]),
        ToolUsed(step=1, tool="web_search", arguments={"query": "bill vote result", "limit": 3}, result=""),
        ModelCalled(key="cd" * 32, **called),
        ModelCalled(key="ef" * 32, role="filter", model="openai:gpt-5.4"),
        believed(1, "A start.", evidence_against=None),
        ToolUsed(step=2, tool="(unusable reply)", arguments={"attempt": "x"}, result=""),
        ToolUsed(step=2, tool="submit", arguments={"p": {"yes": 0.5}, "reason": "Enough."}, result=""),
    )
    case = "For:\n- Polls moved. [no source]\n- New. [page_1]"
    told = f"Forecast: yes 0.500 (submitted).\n\nEnough.\n\n{case}\n\nSources:\n[page_1] x"
    forecast = Forecast(question_id="q0", forecaster="full", as_of=CUTOFF, p={"yes": 0.5}, rationale=told)
    notes, missing = agent_notes(trace, forecast, journal)
    journal.close()
    assert [(note.kind, note.step, note.text) for note in notes] == [
        ("reply", 0, "Thinking aloud."),
        ("belief", 0, "A start."),
        ("evidence", 0, "Polls moved."),
        ("query", 0, "bill vote result"),
        ("answer", 1, "Enough."),
        ("rationale", 2, "New."),
    ]
    assert missing == 1


def auditor_that(suspects=(), remembers=(), open_=()):
    """Suspects notes with certain words, and finds certain statements in no source."""
    asked = {READ_INSTRUCTION: [], SUPPORT_INSTRUCTION: []}

    def reply(request):
        instruction = READ_INSTRUCTION if request.messages[0].text.startswith(READ_INSTRUCTION) else SUPPORT_INSTRUCTION
        texts = json.loads(request.messages[-1].text.partition("Texts:\n")[2])
        asked[instruction] += texts
        marks = suspects if instruction == READ_INSTRUCTION else remembers
        verdicts = []
        for one in texts:
            hit = next((mark for mark in marks if mark in one["text"]), "")
            word = "unsure" if any(mark in one["text"] for mark in open_) else "leak" if hit else "clean"
            verdicts.append({"id": one["id"], "verdict": word, "quote": hit, "reason": "so"})
        return json.dumps({"verdicts": verdicts})

    return Auditor(model=ScriptedModel(reply), name="scripted:x"), asked


def scan(auditor, *reasons, shown=()):
    notes, _ = agent_notes(events(*(believed(step, reason) for step, reason in enumerate(reasons))))
    return asyncio.run(audit_memory(notes, shown, SCOPE, auditor))


def test_what_either_look_finds_is_put_to_the_auditor_beside_the_sources():
    auditor, asked = auditor_that(suspects=["since she resigned"], remembers=["passed on"])
    found = scan(auditor, "It passed on 3 November 2025.", "Unlikely, since she resigned.", "Nothing new.")
    assert found.notes == 3
    assert [(one.statement, one.found_by, one.ruling.word) for one in found.suspicions] == [
        ("It passed on 3 November 2025.", ("dates",), "leak"),
        ("since she resigned", ("auditor",), "clean"),
    ]
    assert len(found.confirmed) == 1
    assert (found.questions.count, found.questions.n) == (1, 1)
    assert all("Vote planned." in "".join(one["sources"]) for one in asked[SUPPORT_INSTRUCTION])


def test_one_statement_found_both_ways_is_one_suspicion():
    auditor, _ = auditor_that(suspects=["passed on 3 November 2025"], remembers=["passed"])
    (one,) = scan(auditor, "Well. It passed on 3 November 2025.").suspicions
    assert one.found_by == ("dates", "auditor")


def test_only_what_was_seen_by_then_in_the_same_trial_counts_as_a_source():
    def shown(title, trial, step, decision="kept"):
        sightings = (TextLocation(trial=trial, step=step),)
        return AuditPassage(
            asked=ASKED, decision=decision, tool="web_search", title=title, text="passed", seen=sightings
        )

    texts = [shown("SEEN", 0, 1), shown("LATER", 0, 2), shown("OTHER", 1, 1), shown("DROPPED", 0, 1, "dropped")]
    auditor, asked = auditor_that()
    scan(auditor, "A start.", "It passed on 3 November 2025.", shown=texts)
    (one,) = asked[SUPPORT_INSTRUCTION]
    assert [name for name in ("SEEN", "LATER", "OTHER", "DROPPED") if name in "".join(one["sources"])] == ["SEEN"]


def test_long_sources_are_cut_around_the_statement():
    text = "\n".join([*(f"Filler line {n} on something else." for n in range(400)), "Deputies approved the bill."])
    passage = AuditPassage(
        asked=ASKED, decision="kept", tool="t", title="", text=text, seen=(TextLocation(trial=0, step=0),)
    )
    auditor, asked = auditor_that()
    scan(auditor, "Deputies approved the bill on 3 November 2025.", shown=[passage])
    sent = "".join(asked[SUPPORT_INSTRUCTION][0]["sources"])
    assert "Deputies approved the bill." in sent
    assert len(sent) < 4000


def test_undecided_statements_are_neither_confirmed_nor_cleared():
    auditor, _ = auditor_that(open_=["passed"])
    found = scan(auditor, "It passed on 3 November 2025.")
    assert found.read.undecided == 1
    assert [one.ruling.word for one in found.suspicions] == ["undecided"]
    assert found.confirmed == ()


def test_an_invented_quote_does_not_narrow_what_is_checked():
    def reply(request):
        texts = json.loads(request.messages[-1].text.partition("Texts:\n")[2])
        rows = [{"id": one["id"], "verdict": "leak", "quote": "never said", "reason": "so"} for one in texts]
        return json.dumps({"verdicts": rows})

    (one,) = scan(Auditor(model=ScriptedModel(reply), name="scripted:x"), "She resigned.").suspicions
    assert one.statement == "She resigned."


def test_the_registry_of_knowledge_cutoffs_speaks_once_per_model():
    early = Question(id="q1", source="own", text="?", due="2025-01-15", targets=(Target(id="yes"),))
    scope = AuditScope(questions={ASKED: QUESTION, ("q1", early.due.isoformat()): early})
    told = training_cutoff_notes(["openai:gpt-5.4", "openai:gpt-5.4", "openai:unheard-of", "scripted:x"], scope)
    assert told == {
        "openai:gpt-5.4 may know the world up to 2025-08-31: questions that opened before are no fair test": 1,
        "the knowledge cutoff of openai:unheard-of is unknown": 2,
    }
