"""The agent's notes are searched for knowledge that no source contains."""

import asyncio
import json

import pytest

from foretell.models.canonical import pack_reply
from foretell.models.journal import Journal, JournalEntry, JournalRequest
from foretell.models.model import Reply
from foretell.models.providers.scripted import ScriptedModel
from foretell.questions.as_of import AsOf
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Target
from foretell.questions.trace import BeliefRevised, ModelCalled, ToolUsed
from foretell.runs.store import TrialKey
from foretell.studies.audit.auditor import Auditor
from foretell.studies.audit.leakage import (
    READ_INSTRUCTION,
    SOURCES_CHARS,
    SUPPORT_INSTRUCTION,
    agent_notes,
    audit_memory,
    past_tense_after_cutoff,
    training_cutoff_notes,
)
from foretell.studies.audit.passages import AuditPassage, AuditScope, TextLocation, TrialTrace

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
KEY = TrialKey(run="r", question="q0", due=ASKED[1], trial=0)


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
def test_past_tense_about_later_days_is_found(text):
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
def test_plans_conditions_and_earlier_days_are_not_suspicious(text):
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
    rationale = f"Forecast: yes 0.500 (submitted).\n\nEnough.\n\n{case}\n\nSources:\n[page_1] x"
    forecast = Forecast(question_id="q0", forecaster="full", as_of=CUTOFF, p={"yes": 0.5}, rationale=rationale)
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
    """Return an auditor that suspects notes with certain words, and finds certain statements in no source."""
    requests = {READ_INSTRUCTION: [], SUPPORT_INSTRUCTION: []}

    def reply(request):
        instruction = READ_INSTRUCTION if request.messages[0].text.startswith(READ_INSTRUCTION) else SUPPORT_INSTRUCTION
        texts = json.loads(request.messages[-1].text.partition("Texts:\n")[2])
        requests[instruction] += texts
        marks = suspects if instruction == READ_INSTRUCTION else remembers
        verdicts = []
        for text in texts:
            hit = next((mark for mark in marks if mark in text["text"]), "")
            word = "unsure" if any(mark in text["text"] for mark in open_) else "leak" if hit else "clean"
            verdicts.append({"id": text["id"], "verdict": word, "quote": hit, "reason": "so"})
        return json.dumps({"verdicts": verdicts})

    return Auditor(model=ScriptedModel(reply), name="scripted:x"), requests


def scan(auditor, *reasons, shown=()):
    notes, _ = agent_notes(events(*(believed(step, reason) for step, reason in enumerate(reasons))))
    return asyncio.run(audit_memory(notes, shown, SCOPE, auditor))


def test_findings_of_rule_and_auditor_are_judged_with_the_sources():
    auditor, requests = auditor_that(suspects=["since she resigned"], remembers=["passed on"])
    audit = scan(auditor, "It passed on 3 November 2025.", "Unlikely, since she resigned.", "Nothing new.")
    assert audit.notes == 3
    assert [(suspicion.statement, suspicion.found_by, suspicion.ruling.word) for suspicion in audit.suspicions] == [
        ("It passed on 3 November 2025.", ("dates",), "leak"),
        ("since she resigned", ("auditor",), "clean"),
    ]
    assert len(audit.confirmed) == 1
    assert (audit.questions.count, audit.questions.n) == (1, 1)
    assert all("Vote planned." in "".join(case["sources"]) for case in requests[SUPPORT_INSTRUCTION])


def test_statement_found_by_rule_and_auditor_is_one_suspicion():
    auditor, _ = auditor_that(suspects=["passed on 3 November 2025"], remembers=["passed"])
    (suspicion,) = scan(auditor, "Well. It passed on 3 November 2025.").suspicions
    assert suspicion.found_by == ("dates", "auditor")


def test_only_texts_seen_earlier_in_the_same_trial_are_sources():
    def passage(title, trial, step, decision="kept"):
        sightings = (TextLocation(trial=trial, step=step),)
        return AuditPassage(
            asked=ASKED, decision=decision, tool="web_search", title=title, text="passed", seen=sightings
        )

    texts = [passage("SEEN", 0, 1), passage("LATER", 0, 2), passage("OTHER", 1, 1), passage("DROPPED", 0, 1, "dropped")]
    auditor, requests = auditor_that()
    scan(auditor, "A start.", "It passed on 3 November 2025.", shown=texts)
    (case,) = requests[SUPPORT_INSTRUCTION]
    assert [name for name in ("SEEN", "LATER", "OTHER", "DROPPED") if name in "".join(case["sources"])] == ["SEEN"]


def long_text(statement=""):
    return "\n".join([*(f"Filler line {n} on something else." for n in range(400)), statement])


def read_by_agent(*texts):
    seen = (TextLocation(trial=0, step=0),)
    return [AuditPassage(asked=ASKED, decision="kept", tool="t", title="", text=text, seen=seen) for text in texts]


def test_auditor_reads_all_sources_as_the_agent_read_them():
    texts = [f"Source {n} begins.\n{long_text()}\nSource {n} ends." for n in range(8)]
    auditor, requests = auditor_that()
    scan(auditor, "It passed on 3 November 2025.", shown=read_by_agent(*texts, "Nothing in common.", "They voted yes."))
    sent = requests[SUPPORT_INSTRUCTION][0]["sources"]
    for n in range(8):
        assert any(f"Source {n} begins." in text and f"Source {n} ends." in text for text in sent)
    assert sum("They voted yes." in text for text in sent) == 1


def test_of_too_many_sources_the_best_come_first_and_others_are_cut_around_the_statement():
    texts = [long_text(f"Deputies approved the bill, part {n}.") for n in range(12)]
    auditor, requests = auditor_that()
    scan(auditor, "Deputies approved the bill on 3 November 2025.", shown=read_by_agent(*texts))
    sent = requests[SUPPORT_INSTRUCTION][0]["sources"]
    assert sum(map(len, sent)) <= SOURCES_CHARS
    assert {len(text) > 4000 for text in sent[1:]} == {True, False}
    assert all(any(f"Deputies approved the bill, part {n}." in text for text in sent) for n in range(12))


def test_an_answer_had_read_what_its_leaves_and_the_scout_had_read():
    trace = events(
        ToolUsed(step=4, tool="web_search", arguments={"query": "scouting"}, result=""),
        ToolUsed(step=4, tool="web_search", arguments={"query": "scouting more"}, result=""),
        ToolUsed(step=1, tool="web_search", arguments={"query": "a leaf"}, result=""),
    )
    forecast = Forecast(question_id="q0", forecaster="reason", as_of=CUTOFF, p={"yes": 0.5}, rationale="So it goes.")
    notes, _ = agent_notes(trace, forecast)
    assert [(note.text, note.step) for note in notes] == [
        ("scouting", 3),
        ("scouting more", 3),
        ("a leaf", 4),
        ("So it goes.", 4),
    ]


def test_undecided_statements_are_neither_confirmed_nor_cleared():
    auditor, _ = auditor_that(open_=["passed"])
    audit = scan(auditor, "It passed on 3 November 2025.")
    assert audit.read.undecided == 1
    assert [suspicion.ruling.word for suspicion in audit.suspicions] == ["undecided"]
    assert audit.confirmed == ()


def test_an_invented_quote_does_not_narrow_what_is_checked():
    def reply(request):
        texts = json.loads(request.messages[-1].text.partition("Texts:\n")[2])
        rows = [{"id": text["id"], "verdict": "leak", "quote": "never said", "reason": "so"} for text in texts]
        return json.dumps({"verdicts": rows})

    (suspicion,) = scan(Auditor(model=ScriptedModel(reply), name="scripted:x"), "She resigned.").suspicions
    assert suspicion.statement == "She resigned."


def test_knowledge_cutoff_is_noted_once_per_model():
    early = Question(id="q1", source="own", text="?", due="2025-01-15", targets=(Target(id="yes"),))
    scope = AuditScope(questions={ASKED: QUESTION, ("q1", early.due.isoformat()): early})
    cutoff_notes = training_cutoff_notes(["openai:gpt-5.4", "openai:gpt-5.4", "openai:unheard-of", "scripted:x"], scope)
    (known, questions), (unknown, all_questions) = cutoff_notes.items()
    assert "openai:gpt-5.4 may know the world up to 2025-08-31" in known
    assert "openai:unheard-of is unknown" in unknown
    assert (questions, all_questions) == (1, 2)
