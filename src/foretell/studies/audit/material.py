"""The leak audit: a second model reads again everything the fence decided on, and says how often it was wrong."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from foretell.models.canonical import content_key
from foretell.questions.as_of import AsOf, AsOfMode
from foretell.questions.question import Question
from foretell.studies.audit.auditor import (
    AuditCase,
    AuditedText,
    Auditor,
    AuditRuling,
    ClusteredRate,
    FenceMatrix,
    VerdictCounts,
    clustered_rate,
    count_verdicts,
    fence_matrix,
)
from foretell.studies.audit.passages import NUMBERS, AuditPassage, QuestionKey, ShownMaterial
from foretell.studies.inputs import StudyProgress
from foretell.tools.rules import clamp_text

MATERIAL_INSTRUCTION = """\
You examine a finished experiment. A forecaster was meant to know the world only as it was up to a cutoff. You get \
texts that came up in its research: some it was given, others were withheld, and you are not told which. Decide for \
each one whether a reader could learn from it how the world went on after the cutoff.

"leak": at least one statement in the text could not have been made by the cutoff, because it reports something that \
occurred, was measured, decided, said or published later, and it tells something about the world of that later time. \
It does not matter whether it concerns the question. Copy the decisive words into the quote.

"clean": every statement could have been made by the cutoff. In particular clean are:
- appointments, calendars, deadlines, announced plans, expectations, forecasts, odds and polls about later days, \
however precise, as long as they are not told as having come about;
- a later date by itself, in a link, a label, a file name or a page footer, with nothing said about what happened then;
- what holds in every year: climate, rules, usual dates, encyclopedic background;
- anything older than the cutoff, however much it helps.

"unsure": the words allow no decision. Do not guess.

You may use what you know of history to recognise a statement as later, but the statement must stand in the text.
"""


@dataclass(frozen=True, kw_only=True)
class AuditFinding:
    """A passage with its ruling."""

    passage: AuditPassage
    ruling: AuditRuling
    by: str = "auditor"
    """Who ruled: the auditor, or the row check for dated numbers."""


@dataclass(frozen=True, kw_only=True)
class MaterialAudit:
    """What the auditor makes of the material of a run."""

    findings: tuple[AuditFinding, ...]
    whole: FenceMatrix
    """Everything kept against everything dropped, whichever layer did it."""
    content: FenceMatrix
    """Only what reached the content filter: the part of the fence that is a model."""
    by_layer: Mapping[str, VerdictCounts]
    """Verdicts on what each layer dropped."""
    by_source: Mapping[str, FenceMatrix]
    """By source of the question."""
    by_tool: Mapping[str, FenceMatrix]
    numbers: VerdictCounts
    """Tables of dated numbers that were shown, checked row by row."""
    questions: VerdictCounts
    """The questions' own words: the fence never sees them, yet they may have been edited later."""
    exposed: ClusteredRate
    """Questions that saw at least one leak or undecided text, among all questions of the run."""
    touched: frozenset[QuestionKey] = frozenset()
    """Those questions."""
    judged: int = 0
    drawn_from: int = 0
    """Texts there were; more than `judged` in a sample."""
    shown: int = 0
    """Texts among them that the agent saw."""
    without_text: Mapping[str, int] = field(default_factory=dict[str, int])
    cuts: int = 0

    @property
    def undetected(self) -> tuple[AuditFinding, ...]:
        """Leaks that reached the agent."""
        return tuple(one for one in self.findings if one.ruling.word == "leak" and one.passage.decision == "kept")

    @property
    def undecided(self) -> tuple[AuditFinding, ...]:
        """What stayed open."""
        return tuple(one for one in self.findings if one.ruling.word == "undecided")

    @property
    def sampled(self) -> bool:
        """Whether some texts were left out."""
        return self.judged < self.drawn_from


@dataclass(frozen=True, kw_only=True)
class AuditScope:
    """What a run asked, and in which mode."""

    questions: Mapping[QuestionKey, Question]
    """Every asking of the run that came to an end."""
    mode: AsOfMode = "backtest"

    def as_of(self, asked: QuestionKey) -> AsOf:
        """The cutoff of an asking."""
        return self.questions[asked].as_of_in(self.mode)


QUESTION = "question"
"""Stands for the tool where the text is the question itself."""


async def audit_material(
    seen: ShownMaterial,
    scope: AuditScope,
    auditor: Auditor,
    *,
    sample: int | None = None,
    progress: StudyProgress | None = None,
) -> MaterialAudit:
    """Judge the passages of a run, and its questions' own words. A sample is drawn by content: larger ones hold it."""
    read = [one for one in seen.passages if one.tool not in NUMBERS]
    passages = draw_sample(read, sample)
    for asked, question in scope.questions.items():
        if question.text:
            text = "\n\n".join(filter(None, (question.criteria, question.background)))
            passages.append(
                AuditPassage(
                    asked=asked, decision="kept", tool=QUESTION, title=question.text, text=text, where=question.url
                )
            )
    cases = [
        AuditCase(
            instruction=MATERIAL_INSTRUCTION,
            as_of=scope.as_of(one.asked),
            question=scope.questions[one.asked].text,
            title=one.title,
            text=one.text,
        )
        for one in passages
    ]
    rulings = await auditor.judge(cases, progress)
    findings = [AuditFinding(passage=p, ruling=r) for p, r in zip(passages, rulings, strict=True)]
    rows = [check_rows(one, scope.as_of(one.asked)) for one in seen.passages if one.tool in NUMBERS]
    return _summary([*findings, *rows], seen, scope, drawn_from=len(read))


def draw_sample(passages: Sequence[AuditPassage], count: int | None) -> list[AuditPassage]:
    """So many passages, chosen by a hash of their content, which is as good as chance and the same every time."""
    if count is None or count >= len(passages):
        return list(passages)
    ranked = sorted(passages, key=lambda one: content_key([*one.asked, one.decision, one.title, one.text]))
    chosen = {id(one) for one in ranked[:count]}
    return [one for one in passages if id(one) in chosen]


def check_rows(passage: AuditPassage, as_of: AsOf) -> AuditFinding:
    """Whether a table of dated numbers ends at the cutoff: a rule decides that better than any reader."""
    _, late = clamp_text(passage.text, as_of)
    if late:
        ruling = AuditRuling(word="leak", reason="a row after the cutoff", quote=late[0])
    else:
        ruling = AuditRuling(word="clean", reason="no row after the cutoff")
    return AuditFinding(passage=passage, ruling=ruling, by="rows")


def _summary(
    findings: Sequence[AuditFinding], seen: ShownMaterial, scope: AuditScope, *, drawn_from: int
) -> MaterialAudit:
    texts = [one for one in findings if one.by == "auditor" and one.passage.tool != QUESTION]
    shown = [one for one in findings if one.passage.tool != QUESTION and one.passage.decision == "kept"]
    touched = frozenset(one.passage.asked for one in shown if one.ruling.word != "clean")

    def matrix(some: Iterable[AuditFinding]) -> FenceMatrix:
        return fence_matrix(
            [
                AuditedText(
                    decision=one.passage.decision,
                    word=one.ruling.word,
                    cluster=scope.questions[one.passage.asked].cluster,
                )
                for one in some
            ]
        )

    def counts(holds: Callable[[AuditFinding], bool]) -> VerdictCounts:
        return count_verdicts(one.ruling.word for one in findings if holds(one))

    def by(name: Callable[[AuditFinding], str]) -> dict[str, list[AuditFinding]]:
        groups: dict[str, list[AuditFinding]] = {}
        for one in texts:
            groups.setdefault(name(one), []).append(one)
        return dict(sorted(groups.items()))

    sources, tools = by(lambda one: scope.questions[one.passage.asked].source), by(lambda one: one.passage.tool)
    layers = {name: part for name, part in by(lambda one: one.passage.layer).items() if name}
    return MaterialAudit(
        findings=tuple(findings),
        whole=matrix(texts),
        content=matrix(one for one in texts if one.passage.layer in ("", "content")),
        by_layer={name: count_verdicts(one.ruling.word for one in part) for name, part in layers.items()},
        by_source={name: matrix(part) for name, part in sources.items()},
        by_tool={name: matrix(part) for name, part in tools.items()},
        numbers=counts(lambda one: one.by == "rows"),
        questions=counts(lambda one: one.passage.tool == QUESTION),
        exposed=clustered_rate(
            [key in touched for key in scope.questions], [q.cluster for q in scope.questions.values()]
        ),
        touched=touched,
        judged=len(texts),
        drawn_from=drawn_from,
        shown=sum(one.decision == "kept" and one.tool not in NUMBERS for one in seen.passages),
        without_text=seen.without_text,
        cuts=seen.cuts,
    )
