"""Leaks from a model's memory: statements about the time after the cutoff that nothing it was shown supports.

Three looks, each narrower and dearer than the one before: a rule finds days after the cutoff told as past; the auditor
reads all reasoning for later events told as facts; what either found is put to the auditor again beside everything the
agent could have it from.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foretell.forecasters.agent.agent import FORECAST
from foretell.forecasters.agent.loop import UNUSABLE
from foretell.models.canonical import unpack_reply
from foretell.models.capabilities import check_knowledge_cutoff
from foretell.models.journal import Journal
from foretell.questions.as_of import AsOf
from foretell.questions.forecast import Forecast
from foretell.questions.trace import BeliefRevised, ModelCalled, ToolUsed
from foretell.studies.audit.auditor import (
    AuditCase,
    Auditor,
    AuditRuling,
    ClusteredRate,
    VerdictCounts,
    clustered_rate,
    count_verdicts,
    flat,
)
from foretell.studies.audit.material import AuditScope
from foretell.studies.audit.passages import AuditPassage, QuestionKey, TrialTrace
from foretell.studies.inputs import StudyProgress
from foretell.tools.dates.find import find_dates
from foretell.tools.dates.stamps import is_after

READ_INSTRUCTION = """\
You examine the notes of a forecaster that was meant to know the world only up to a cutoff. Decide for each note \
whether it treats something from after the cutoff as known.

"leak": the note states as a fact that something occurred, was decided or reached a value after the cutoff, or takes \
such knowledge for granted. Copy the statement into the quote.
"clean": what it says of later days are expectations, plans, deadlines, conditions, probabilities or the terms of \
the question; or it speaks only of earlier days.
"unsure": the words allow no decision. Do not guess.
"""
SUPPORT_INSTRUCTION = """\
You examine statements of a forecaster that was meant to know the world only up to a cutoff. Each comes with the \
sources it had been given by then; the best matching ones are shown. Decide where the statement can come from.

"leak": it tells as a fact something from after the cutoff, and none of its sources says so: it must be remembered.
"clean": a source says so, in whatever words; or the statement tells of no later event after all (a plan, an \
expectation, a deadline, a guess marked as one, something earlier).
"unsure": neither can be told. Do not guess.
"""
PAST = re.compile(
    r"\b(?:was|were|did|had|has|have|won|lost|fell|rose|became|came|went|took|held|made|beat|hit|said|saw|gave|got|led"
    r"|met|sent|cut|kept|left|stood|ran|began|grew|drew|\w{3,}ed)\b",
    re.IGNORECASE,
)
YEAR = re.compile(r"(?<!\d)(?:19|20)\d{2}(?!\d)")
MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*"
AHEAD = re.compile(
    r"\b(?:will|would|shall|(?-i:may)|might|could|can|should|if|unless|until|whether|expect\w*|schedul\w*|due"
    r"|plan(?:s|ned)?|likel\w+|probab\w+|chances?|odds|forecast\w*|predict\w*|project(?:ed|ions?)|deadlines?"
    r"|resolv\w+|resolution|upcoming|ahead|set (?:for|to)|to be|assum\w+|before|no later than"
    rf"|by (?:the )?(?:end|close|{MONTH}|\d{{4}}|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{MONTH}))\b",
    re.IGNORECASE,
)
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(\[])|\n+")
WORD = re.compile(r"\w{3,}")
SOURCES = 8
SOURCE_CHARS = 3_000
SECTIONS = ("For:", "Against:", "Open:")


@dataclass(frozen=True, kw_only=True)
class AgentNote:
    """Something the agent wrote."""

    asked: QuestionKey
    trial: int
    step: int
    """The last step whose result it had read."""
    kind: str
    """belief, evidence, answer, query, reply or rationale."""
    text: str


@dataclass(frozen=True, kw_only=True)
class MemorySuspicion:
    """A statement that seems to know the future, and where it was found to come from."""

    note: AgentNote
    statement: str
    found_by: tuple[str, ...]
    """`dates`, `auditor`, or both."""
    ruling: AuditRuling
    """leak: no source says so. clean: a source does, or it was no such statement. Undecided counts as neither."""


@dataclass(frozen=True, kw_only=True)
class MemoryAudit:
    """What the reasoning of a run gives away."""

    notes: int
    read: VerdictCounts
    """First reading of the notes: `leak` only means suspicious."""
    suspicions: tuple[MemorySuspicion, ...]
    questions: ClusteredRate
    """Questions with at least one confirmed statement from memory, among all questions."""
    replies_missing: int = 0
    """Replies of the agent that the journal does not hold."""
    cutoffs: Mapping[str, int] | None = None
    """What is known of the models' training, with the number of questions it concerns."""

    @property
    def confirmed(self) -> tuple[MemorySuspicion, ...]:
        """Statements that no source supports."""
        return tuple(one for one in self.suspicions if one.ruling.word == "leak")


def past_tense_after_cutoff(text: str, as_of: AsOf) -> list[str]:
    """Sentences that name a day or a year after the cutoff and speak of it in the past tense.

    >>> past_tense_after_cutoff("The vote is due on 3 Nov 2025. It passed on 3 November 2025.", AsOf.day("2025-10-26"))
    ['It passed on 3 November 2025.']
    """
    sentences = [sentence.strip() for sentence in SENTENCE.split(text) if YEAR.search(sentence)]
    return [one for one in sentences if PAST.search(one) and not AHEAD.search(one) and _names_later(one, as_of)]


def _names_later(sentence: str, as_of: AsOf) -> bool:
    days = any(all(is_after(day, as_of) for day in found.readings) for found in find_dates(sentence))
    return days or any(int(found.group()) > as_of.at.year for found in YEAR.finditer(sentence))


def agent_notes(
    trace: TrialTrace, forecast: Forecast | None = None, journal: Journal | None = None
) -> tuple[list[AgentNote], int]:
    """Everything the agent wrote in a trial, each text once, and how many of its replies are nowhere to be found."""
    missing = 0
    found: dict[str, AgentNote] = {}
    step = 0

    def note(kind: str, text: Any, at: int) -> None:
        words = " ".join(text.split()) if isinstance(text, str) else ""
        if words and words not in found:
            found[words] = AgentNote(asked=trace.asked, trial=trace.key.trial, step=at, kind=kind, text=words)

    for event in trace.events:
        match event:
            case BeliefRevised():
                note("belief", event.reason, event.step)
                for item in (*(event.belief.get("evidence_for") or ()), *(event.belief.get("evidence_against") or ())):
                    note("evidence", item.get("claim"), event.step)
            case ToolUsed() if event.tool != UNUSABLE:
                step = event.step
                for name, text in event.arguments.items():
                    note("answer" if name == "reason" else "query", text, step - 1)
            case ModelCalled(role="agent"):
                reply = journal.find(event.key) if journal else None
                missing += reply is None
                note("reply", unpack_reply(reply).text if reply else "", step)
            case _:
                pass
    for line in _lines(forecast.rationale if forecast else ""):
        note("rationale", line, step)
    return list(found.values()), missing


def _lines(rationale: str) -> list[str]:
    """The sentences of a rationale, without the forecast and the list of sources."""
    own = rationale.partition("\nSources:\n")[0]
    lines = [re.sub(r"^- | \[[\w ]+\]$", "", line.strip()) for line in own.splitlines()]
    return [line for line in lines if line and line not in SECTIONS and not line.startswith(FORECAST)]


async def audit_memory(
    notes: Sequence[AgentNote],
    shown: Iterable[AuditPassage],
    scope: AuditScope,
    auditor: Auditor,
    progress: StudyProgress | None = None,
) -> MemoryAudit:
    """Search what the agent wrote for knowledge of the future that no admitted text supports."""
    rulings = await auditor.judge([_case(READ_INSTRUCTION, note, note.text, scope) for note in notes], progress)
    suspects = [
        (note, statement, by)
        for note, ruling in zip(notes, rulings, strict=True)
        for statement, by in _suspect(note, ruling, scope.as_of(note.asked))
    ]
    by_question: dict[QuestionKey, list[AuditPassage]] = {}
    for passage in shown:
        if passage.decision == "kept":
            by_question.setdefault(passage.asked, []).append(passage)
    cases: list[AuditCase] = []
    for note, statement, _ in suspects:
        sources = _sources(note, statement, by_question.get(note.asked, ()), scope)
        cases.append(_case(SUPPORT_INSTRUCTION, note, statement, scope, sources))
    origins = await auditor.judge(cases, progress)
    found = [
        MemorySuspicion(note=note, statement=statement, found_by=by, ruling=origin)
        for (note, statement, by), origin in zip(suspects, origins, strict=True)
    ]
    remembered = {one.note.asked for one in found if one.ruling.word == "leak"}
    clusters = [question.cluster for question in scope.questions.values()]
    return MemoryAudit(
        notes=len(notes),
        read=count_verdicts(ruling.word for ruling in rulings),
        suspicions=tuple(found),
        questions=clustered_rate([asked in remembered for asked in scope.questions], clusters),
    )


def _suspect(note: AgentNote, ruling: AuditRuling, as_of: AsOf) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The rule's sentences and the auditor's quote; a note that it could not decide counts through the rule alone."""
    dated = past_tense_after_cutoff(note.text, as_of)
    quote = (ruling.quote if ruling.quotes(note.text) else note.text) if ruling.word == "leak" else ""
    for sentence in dated:
        both = bool(quote) and (flat(quote) in flat(sentence) or flat(sentence) in flat(quote))
        yield sentence, ("dates", "auditor") if both else ("dates",)
        quote = "" if both else quote
    if quote:
        yield quote, ("auditor",)


def _case(
    instruction: str, note: AgentNote, text: str, scope: AuditScope, sources: tuple[str, ...] | None = None
) -> AuditCase:
    return AuditCase(
        instruction=instruction,
        as_of=scope.as_of(note.asked),
        question=scope.questions[note.asked].text,
        title=note.kind,
        text=text,
        sources=sources,
    )


def _sources(note: AgentNote, statement: str, shown: Iterable[AuditPassage], scope: AuditScope) -> tuple[str, ...]:
    """What the agent had read by then, the texts that share most words with the statement first."""
    had = [
        f"{one.title}\n{one.text}"
        for one in shown
        if any(place.trial == note.trial and place.step <= note.step for place in one.seen)
    ]
    words = set(WORD.findall(statement.casefold()))
    best = sorted(had, key=lambda text: -len(words & set(WORD.findall(text.casefold()))))[:SOURCES]
    question = scope.questions[note.asked]
    own = "\n".join(filter(None, (question.text, question.criteria, question.background)))
    return tuple(_around(text, words) for text in (own, *best) if text)


def _around(text: str, words: set[str]) -> str:
    """Of a long text the paragraphs that share words with the statement, as far as there is room."""
    if len(text) <= SOURCE_CHARS:
        return text
    parts = [part for part in SENTENCE.split(text) if part.strip()]
    ranked = sorted(range(len(parts)), key=lambda k: -len(words & set(WORD.findall(parts[k].casefold()))))
    room, chosen = SOURCE_CHARS, list[int]()
    for place in ranked:
        if len(parts[place]) <= room:
            chosen.append(place)
            room -= len(parts[place]) + 1
    return "\n".join(parts[place] for place in sorted(chosen)) or text[:SOURCE_CHARS]


def training_cutoff_notes(models: Iterable[str], scope: AuditScope) -> dict[str, int]:
    """What the registry of knowledge cutoffs says about these models and questions, with counts of questions."""
    notes: Counter[str] = Counter()
    for model in dict.fromkeys(models):
        for question in scope.questions.values():
            found = check_knowledge_cutoff(model, question.opens_at or question.due)
            if found is not None and found.cutoff is not None:
                # The day a question opened differs from one to the next; what is known of the model does not.
                day = found.cutoff
                notes[f"{model} may know the world up to {day}: questions that opened before are no fair test"] += 1
            elif found is not None:
                notes[found.text] += 1
    return dict(notes)
