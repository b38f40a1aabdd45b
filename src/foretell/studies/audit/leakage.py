"""How much of a score could be leakage: a run against one without tools and one without the leakage filter.

The bound. Let C, F, U be the losses (Brier) of the run without tools, of this run and of the one without the filter,
and P that of a perfect filter.
Only questions that saw a leak can have benefited from one: their share is τ. On those, if seeing more of the future
does not hurt (U ≤ F) and honest research does not hurt (P ≤ C), the leaks gained P − F ≤ P − U ≤ C − U. If a leak
gains no more on them than having no filter gains on the average question, the run owes to leaks at most

    τ · mean(C − U),

with both factors at the upper ends of their intervals and everything undecided counted as a leak. If the run without
the filter scored worse than this one, C − F replaces C − U: P − F ≤ C − F needs only P ≤ C.
What the model remembers is in both C and F and cancels in the lead C − F. The bound does not include leaks that auditor
and filter both overlook, so the auditor must be another model.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from math import isfinite, sqrt
from typing import Any, Literal

import numpy as np

from foretell.forecasters.agent.agent import FORECAST
from foretell.forecasters.agent.loop import UNUSABLE
from foretell.frozen import frozen
from foretell.models.canonical import unpack_reply
from foretell.models.journal import Journal
from foretell.models.names import check_knowledge_cutoff
from foretell.number_text import percent
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.questions.errors import InputError
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question
from foretell.questions.trace import BeliefRevised, ModelCalled, ToolUsed
from foretell.scoring.bootstrap_options import BootstrapOptions
from foretell.scoring.join import read_table
from foretell.scoring.long_tables import Row, forecast_rows, outcome_rows
from foretell.scoring.score import ScoringOptions, compare_pair
from foretell.scoring.table import ForecastTable
from foretell.scoring.table_input import TableSource
from foretell.scoring.verdict import Verdict
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
from foretell.studies.audit.passages import (
    QUESTION,
    AuditPassage,
    AuditScope,
    MaterialAudit,
    QuestionKey,
    TrialTrace,
)
from foretell.studies.inputs import StudyProgress
from foretell.tools.dates.find import find_dates
from foretell.tools.dates.stamps import is_after

AuditArm = Literal["this run", "no tools", "no filter"]
PAIRS = (("this run", "no tools"), ("no filter", "this run"), ("no filter", "no tools"))


@frozen
class ArmDifference:
    """One arm against another on the targets that every arm answered."""

    first: str
    second: str
    brier: Verdict
    """first − second; negative is better for the first."""
    index: Verdict
    """The same in points of the Brier index; positive is better for the first."""


@frozen
class LeakExposure:
    """How many questions may have benefited from a leak."""

    share: float
    at_most: float
    """Upper end of its 95 % interval."""
    touched: frozenset[QuestionKey] = frozenset()
    whole: bool = True
    """Whether every text was judged, so that `touched` is complete."""


@frozen
class LeakBound:
    """An upper bound on the gain from leaks, as a mean over all questions."""

    brier: float
    index: float
    """The same in points of the Brier index, at the run's own level."""
    share_of_lead: float | None
    """None if there is no lead over the run without tools to explain."""


@frozen
class LeakageEstimate:
    """The three arms compared, and the bound on leakage."""

    n: int
    """Targets that every arm answered."""
    exposure: LeakExposure
    lead: ArmDifference | None = None
    """This run against the one without tools: the gain from research."""
    gain: ArmDifference | None = None
    """The run without the filter against this one: the gain that the filter prevents."""
    future: ArmDifference | None = None
    """The run without the filter against the one without tools: the gain from research and the future together."""
    untouched: ArmDifference | None = None
    """The lead on the questions that saw no leak: without search leakage, but on a selection of questions."""
    bound: LeakBound | None = None
    own_brier: float = field(default=float("nan"))

    def __str__(self) -> str:
        """The estimate in a few sentences."""
        sentences: list[str] = []
        if self.lead is not None:
            sentences.append(self.lead.brier.sentence)
        if self.lead is not None and self.future is not None and self.bound is not None:
            sentences += self._bound_sentences(self.lead, self.future, self.bound)
        if self.untouched is not None and self.exposure.touched:
            sentences.append(f"Where no leak was seen: {self.untouched.brier.sentence}")
        return " ".join(sentences)

    def _bound_sentences(self, lead: ArmDifference, future: ArmDifference, bound: LeakBound) -> list[str]:
        most = (
            f"Undetected leaks can account for at most {bound.brier:.4f} of the score (about {bound.index:.1f} points "
            f"of the Brier index): at most {percent(self.exposure.at_most, 1)} of the questions saw one, and on an "
            f"average question tools and the whole future were worth at most {_worth(lead, future):.4f}."
        )
        if bound.share_of_lead is None:
            return ["There is no lead that leaks could explain.", most]
        if -lead.brier.high > bound.brier:
            return [most, "The lead is larger than that, even at the low end of its interval."]
        return [
            most,
            f"That could be {percent(min(1.0, bound.share_of_lead))} of the lead: this audit cannot rule out leakage.",
        ]


def _worth(lead: ArmDifference, future: ArmDifference) -> float:
    """The most that tools and the future were worth, and at least the run's own lead."""
    ends = (-future.brier.low, -lead.brier.low)
    # Without an interval, as on a single question, any value up to the maximum Brier score is possible.
    return max(0.0, *ends) if all(map(isfinite, ends)) else 1.0


def leak_exposure(audit: MaterialAudit) -> LeakExposure:
    """Return which questions a leak may have reached. For a sample it is a bound: τ ≤ leak rate × texts a question."""
    if not audit.sampled:
        exposed = audit.exposed
        return LeakExposure(share=exposed.share, at_most=exposed.cluster_high, touched=audit.touched)
    texts = audit.shown / max(1, audit.exposed.n)
    open_share = audit.whole.kept.undecided / max(1, audit.whole.kept.n)
    high = open_share + (1 - open_share) * audit.whole.undetected.cluster_high
    # Add the leaks found in the sample, and in numbers, which are always checked.
    return LeakExposure(
        share=min(1.0, audit.whole.undetected_at_most * texts),
        at_most=min(1.0, high * texts + audit.exposed.share),
        touched=audit.touched,
        whole=False,
    )


def estimate_leakage(
    arms: Mapping[AuditArm, Sequence[Forecast]],
    questions: Sequence[Question],
    outcomes: TableSource,
    exposure: LeakExposure,
    bootstrap: BootstrapOptions | None = None,
) -> LeakageEstimate:
    """Paired differences of the available arms and, with all three, the bound.

    Every arm has one forecast per question; `outcomes` is a table as `foretell score` reads it.
    """
    how = bootstrap or BootstrapOptions.model_validate({})
    scoring = ScoringOptions(baselines=False, resampling=how.resampling, cluster=how.cluster)
    named = [replace(forecast, forecaster=arm) for arm, forecasts in arms.items() for forecast in forecasts]
    rows = forecast_rows(named, questions)
    table = _common(rows, outcomes)
    gaps = {pair: _gap(table, pair, scoring) for pair in PAIRS if set(pair) <= set(table.forecasters)}
    lead, gain, future = (gaps.get(pair) for pair in PAIRS)
    p = table.p_of("this run")
    there = np.isfinite(p)
    loss = float(np.average((p - table.targets.outcome)[there] ** 2, weights=table.targets.weight[there]))
    untouched = bound = None
    if lead is not None and exposure.whole:
        untouched = _clean_lead(_unexposed_rows(rows, questions, exposure), outcomes, scoring)
    if lead is not None and future is not None:
        # The loss without leaks cannot exceed one.
        most, ahead = min(exposure.at_most * _worth(lead, future), 1.0 - loss), -lead.brier.diff
        index = 100 * (sqrt(loss + most) - sqrt(loss))
        bound = LeakBound(brier=most, index=index, share_of_lead=most / ahead if ahead > 0 else None)
    return LeakageEstimate(
        n=int(there.sum()),
        exposure=exposure,
        lead=lead,
        gain=gain,
        future=future,
        untouched=untouched,
        bound=bound,
        own_brier=loss,
    )


def _common(rows: Sequence[Row], outcomes: TableSource) -> ForecastTable:
    """The arms on the resolved targets that all of them answered."""
    table = read_table(list(rows), outcomes)
    shared = np.all([np.isfinite(table.p_of(name)) for name in table.forecasters], axis=0)
    if not shared.any():
        raise InputError("the runs share no resolved target", hint="compare runs over the same questions")
    common = shared[table.target]
    return replace(table, forecaster=table.forecaster[common], target=table.target[common], p=table.p[common])


def _gap(table: ForecastTable, pair: tuple[str, str], scoring: ScoringOptions) -> ArmDifference:
    brier, index = (
        compare_pair(table, *pair, replace(scoring, metric=metric)).verdicts[0] for metric in ("brier", "brier_index")
    )
    return ArmDifference(first=pair[0], second=pair[1], brier=brier, index=index)


def _unexposed_rows(rows: Sequence[Row], questions: Sequence[Question], exposure: LeakExposure) -> list[Row]:
    """The rows of questions that saw no leak, without the arm that had no filter, which saw everything."""
    touched = [question for question in questions if (question.id, question.due.isoformat()) in exposure.touched]
    hit = {(row["question"], row["due"]) for row in outcome_rows(touched, ())}
    return [row for row in rows if (row["question"], row["due"]) not in hit and row["forecaster"] != "no filter"]


def _clean_lead(rows: Sequence[Row], outcomes: TableSource, scoring: ScoringOptions) -> ArmDifference | None:
    if {row["forecaster"] for row in rows} != {"this run", "no tools"}:
        return None
    try:
        return _gap(_common(rows, outcomes), ("this run", "no tools"), scoring)
    except InputError:
        return None


# Leaks from a model's memory: statements about the time after the cutoff that nothing it was shown supports.
#
# Three steps, each narrower and more expensive than the one before. A rule finds days after the cutoff in the past
# tense. The auditor reads all reasoning for later events that are stated as facts. The auditor then judges everything
# that either found, together with all sources the agent had.


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
sources it had been given by then, as it read them, the best matching ones first. Decide where the statement can \
come from.

"leak": it tells as a fact something from after the cutoff, and none of its sources says so: it must be remembered.
"clean": a source says so, in whatever words; or the statement tells of no later event after all (a plan, an \
expectation, a deadline, a guess marked as one, something earlier).
"unsure": neither can be told. Do not guess.
"""
PAST = pattern(
    r"\b(?:was|were|did|had|has|have|won|lost|fell|rose|became|came|went|took|held|made|beat|hit|said|saw|gave|got|led"
    r"|met|sent|cut|kept|left|stood|ran|began|grew|drew|\w{3,}ed)\b",
    re.IGNORECASE,
)
YEAR = pattern(r"(?<!\d)(?:19|20)\d{2}(?!\d)")
MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*"
AHEAD = pattern(
    r"\b(?:will|would|shall|(?-i:may)|might|could|can|should|if|unless|until|whether|expect\w*|schedul\w*|due"
    r"|plan(?:s|ned)?|likel\w+|probab\w+|chances?|odds|forecast\w*|predict\w*|project(?:ed|ions?)|deadlines?"
    r"|resolv\w+|resolution|upcoming|ahead|set (?:for|to)|to be|assum\w+|before|no later than"
    rf"|by (?:the )?(?:end|close|{MONTH}|\d{{4}}|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{MONTH}))\b",
    re.IGNORECASE,
)
SENTENCE = pattern(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(\[])|\n+")
WORD = pattern(r"\w{3,}")
SOURCES_CHARS = 120_000
"""Characters of sources up to which all are shown as the agent read them; of more, the best matching ones."""
SOURCE_CHARS = 3_000
"""Characters of a source that no longer fits whole."""
SECTIONS = ("For:", "Against:", "Open:")


@frozen
class AgentNote:
    """Something the agent wrote."""

    asked: QuestionKey
    trial: int
    step: int
    """The last step whose result it had read."""
    kind: str
    """belief, evidence, answer, query, reply or rationale."""
    text: str


@frozen
class MemorySuspicion:
    """A statement that seems to know the future, and the ruling on where it comes from."""

    note: AgentNote
    statement: str
    found_by: tuple[str, ...]
    """`dates`, `auditor`, or both."""
    ruling: AuditRuling
    """leak: no source says so. clean: a source does, or it was no such statement. Undecided counts as neither."""


@frozen
class MemoryAudit:
    """Findings on the model's memory in the agent's reasoning."""

    notes: int
    read: VerdictCounts
    """First reading of the notes: `leak` only means suspicious."""
    suspicions: tuple[MemorySuspicion, ...]
    questions: ClusteredRate
    """Questions with at least one confirmed statement from memory, among all questions."""
    replies_missing: int = 0
    """Replies of the agent that are missing from the journal."""
    cutoffs: Mapping[str, int] | None = None
    """Notes on the models' knowledge cutoffs, with the number of questions each concerns."""

    @property
    def confirmed(self) -> tuple[MemorySuspicion, ...]:
        """Statements that no source supports."""
        return tuple(suspicion for suspicion in self.suspicions if suspicion.ruling.word == "leak")


def past_tense_after_cutoff(text: str, as_of: AsOf) -> list[str]:
    """Sentences that name a date after the cutoff and use the past tense.

    >>> past_tense_after_cutoff("The vote is due on 3 Nov 2025. It passed on 3 November 2025.", AsOf.day("2025-10-26"))
    ['It passed on 3 November 2025.']
    """
    sentences = [sentence.strip() for sentence in SENTENCE.split(text) if YEAR.search(sentence)]
    return [
        sentence
        for sentence in sentences
        if PAST.search(sentence) and not AHEAD.search(sentence) and _names_later(sentence, as_of)
    ]


def _names_later(sentence: str, as_of: AsOf) -> bool:
    days = any(all(is_after(day, as_of) for day in date.readings) for date in find_dates(sentence))
    return days or any(int(year.group()) > as_of.at.year for year in YEAR.finditer(sentence))


def agent_notes(
    trace: TrialTrace, forecast: Forecast | None = None, journal: Journal | None = None
) -> tuple[list[AgentNote], int]:
    """Everything the agent wrote in a trial, each text once, and how many of its replies are missing."""
    missing = 0
    notes: dict[str, AgentNote] = {}
    step = 0

    def note(kind: str, text: Any, at: int) -> None:
        words = " ".join(text.split()) if isinstance(text, str) else ""
        if words and words not in notes:
            notes[words] = AgentNote(asked=trace.asked, trial=trace.key.trial, step=at, kind=kind, text=words)

    for event in trace.events:
        match event:
            case BeliefRevised():
                note("belief", event.reason, event.step)
                for item in (*(event.belief.get("evidence_for") or ()), *(event.belief.get("evidence_against") or ())):
                    note("evidence", item.get("claim"), event.step)
            case ToolUsed() if event.tool != UNUSABLE:
                # Steps count anew in the research of a leaf, which follows all that was read before.
                had_read = event.step - 1 if event.step >= step else step
                step = max(step, event.step)
                for name, text in event.arguments.items():
                    note("answer" if name == "reason" else "query", text, had_read)
            case ModelCalled(role="agent"):
                reply = journal.find(event.key) if journal else None
                missing += reply is None
                note("reply", unpack_reply(reply).text if reply else "", step)
            case _:
                pass
    for line in _lines(forecast.rationale if forecast else ""):
        note("rationale", line, step)
    return list(notes.values()), missing


def _lines(rationale: str) -> list[str]:
    """The sentences of a rationale, without the forecast and the list of sources."""
    own = rationale.partition("\nSources:\n")[0]
    lines = [re.sub(r"^- | \[[\w ]+\]$", "", line.strip()) for line in own.splitlines()]
    return [line for line in lines if line and line not in SECTIONS and not line.startswith(FORECAST)]


async def audit_memory(
    notes: Sequence[AgentNote],
    passages: Iterable[AuditPassage],
    scope: AuditScope,
    auditor: Auditor,
    progress: StudyProgress | None = None,
) -> MemoryAudit:
    """Search the agent's notes for knowledge of the future that no admitted text supports."""
    rulings = await auditor.judge([_case(READ_INSTRUCTION, note, note.text, scope) for note in notes], progress)
    suspects = [
        (note, statement, by)
        for note, ruling in zip(notes, rulings, strict=True)
        for statement, by in _suspect(note, ruling, scope.as_of(note.asked))
    ]
    by_question: dict[QuestionKey, list[AuditPassage]] = {}
    for passage in passages:
        if passage.decision == "kept":
            by_question.setdefault(passage.asked, []).append(passage)
    cases: list[AuditCase] = []
    for note, statement, _ in suspects:
        sources = _sources(note, statement, by_question.get(note.asked, ()), scope)
        cases.append(_case(SUPPORT_INSTRUCTION, note, statement, scope, sources))
    origins = await auditor.judge(cases, progress)
    memory_suspicions = [
        MemorySuspicion(note=note, statement=statement, found_by=by, ruling=origin)
        for (note, statement, by), origin in zip(suspects, origins, strict=True)
    ]
    remembered = {
        memory_suspicion.note.asked for memory_suspicion in memory_suspicions if memory_suspicion.ruling.word == "leak"
    }
    clusters = [question.cluster for question in scope.questions.values()]
    return MemoryAudit(
        notes=len(notes),
        read=count_verdicts(ruling.word for ruling in rulings),
        suspicions=tuple(memory_suspicions),
        questions=clustered_rate([key in remembered for key in scope.questions], clusters),
    )


def _suspect(note: AgentNote, ruling: AuditRuling, as_of: AsOf) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Suspicious statements of a note: sentences found by the date rule, and the auditor's quote."""
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


def _sources(note: AgentNote, statement: str, passages: Iterable[AuditPassage], scope: AuditScope) -> tuple[str, ...]:
    """Return what the agent had read by then; texts that share the most words with the statement come first."""
    read = [
        passage
        for passage in passages
        if any(place.trial == note.trial and place.step <= note.step for place in passage.seen)
    ]
    words = set(WORD.findall(statement.casefold()))
    texts = [f"{passage.title}\n{passage.text}" for passage in read if passage.tool != QUESTION]
    best = sorted(texts, key=lambda text: -len(words & set(WORD.findall(text.casefold()))))
    question = scope.questions[note.asked]
    prompt = next((passage.text for passage in read if passage.tool == QUESTION), "")
    own = prompt or "\n".join(filter(None, (question.text, question.criteria, question.background)))
    return _fitting([text for text in (own, *best) if text], words)


def _fitting(texts: Sequence[str], words: set[str]) -> tuple[str, ...]:
    """All texts as far as there is room: whole, or around the words of the statement, the first ones whole first."""
    room, sources = SOURCES_CHARS, list[str]()
    for text in texts:
        if len(cut := _around(text, words)) > room:
            break
        sources.append(cut)
        room -= len(cut)
    for place, cut in enumerate(sources):
        more = len(texts[place]) - len(cut)
        if more <= room:
            sources[place] = texts[place]
            room -= more
    return tuple(sources)


def _around(text: str, words: set[str]) -> str:
    """The paragraphs of a long text that share words with the statement, as far as there is room."""
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
    """Return notes on the knowledge cutoffs of these models, with the number of questions each concerns."""
    notes: Counter[str] = Counter()
    for model in dict.fromkeys(models):
        for question in scope.questions.values():
            knowledge_cutoff = check_knowledge_cutoff(model, question.opens_at or question.due)
            if knowledge_cutoff is not None and knowledge_cutoff.cutoff is not None:
                # Questions opened on different days, but the cutoff of the model is the same.
                day = knowledge_cutoff.cutoff
                notes[f"{model} may know the world up to {day}: questions that opened before are not a fair test"] += 1
            elif knowledge_cutoff is not None:
                notes[knowledge_cutoff.text] += 1
    return dict(notes)
