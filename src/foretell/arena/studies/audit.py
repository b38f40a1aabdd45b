"""The leak audit: a second model reads again everything the fence decided on, and says how often it was wrong."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from foretell.arena.studies.auditor import Auditor, Case, Progress, Ruling
from foretell.arena.studies.leak_rates import Judged, Matrix, Rate, Tally, matrix, rate, tally
from foretell.arena.studies.sightings import NUMBERS, Asked, Passage, Seen
from foretell.llm.canonical import content_key
from foretell.questions.clock import AsOf, Mode
from foretell.questions.question import Question
from foretell.tools.clamp import clamp_text

INSTRUCTION = """\
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
class Finding:
    """A passage with its ruling."""

    passage: Passage
    ruling: Ruling
    by: str = "auditor"
    """Who ruled: the auditor, or the row check for dated numbers."""


@dataclass(frozen=True, kw_only=True)
class MaterialAudit:
    """What the auditor makes of the material of a run."""

    findings: tuple[Finding, ...]
    whole: Matrix
    """Everything kept against everything dropped, whichever layer did it."""
    content: Matrix
    """Only what reached the content filter: the part of the fence that is a model."""
    by_layer: Mapping[str, Tally]
    """Verdicts on what each layer dropped."""
    by_source: Mapping[str, Matrix]
    """By source of the question."""
    by_tool: Mapping[str, Matrix]
    numbers: Tally
    """Tables of dated numbers that were shown, checked row by row."""
    questions: Tally
    """The questions' own words: the fence never sees them, yet they may have been edited later."""
    exposed: Rate
    """Questions that saw at least one leak or undecided text, among all questions of the run."""
    touched: frozenset[Asked] = frozenset()
    """Those questions."""
    judged: int = 0
    drawn_from: int = 0
    """Texts there were; more than `judged` in a sample."""
    shown: int = 0
    """Texts among them that the agent saw."""
    without_text: Mapping[str, int] = field(default_factory=dict[str, int])
    cuts: int = 0

    @property
    def undetected(self) -> tuple[Finding, ...]:
        """Leaks that reached the agent."""
        return tuple(one for one in self.findings if one.ruling.word == "leak" and one.passage.decision == "kept")

    @property
    def undecided(self) -> tuple[Finding, ...]:
        """What stayed open."""
        return tuple(one for one in self.findings if one.ruling.word == "undecided")

    @property
    def sampled(self) -> bool:
        """Whether some texts were left out."""
        return self.judged < self.drawn_from


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What a run asked, and in which mode."""

    questions: Mapping[Asked, Question]
    """Every asking of the run that came to an end."""
    mode: Mode = "backtest"

    def as_of(self, asked: Asked) -> AsOf:
        """The cutoff of an asking."""
        return self.questions[asked].as_of_in(self.mode)


QUESTION = "question"
"""Stands for the tool where the text is the question itself."""


async def audit_material(
    seen: Seen, scope: Scope, auditor: Auditor, *, sample: int | None = None, progress: Progress | None = None
) -> MaterialAudit:
    """Judge the passages of a run, and its questions' own words. A sample is drawn by content: larger ones hold it."""
    read = [one for one in seen.passages if one.tool not in NUMBERS]
    chosen = drawn(read, sample)
    asked = [_statement(key, question) for key, question in scope.questions.items() if question.text]
    cases = [_case(one, scope) for one in (*chosen, *asked)]
    rulings = await auditor.judge(cases, progress)
    findings = [Finding(passage=p, ruling=r) for p, r in zip((*chosen, *asked), rulings, strict=True)]
    rows = [check_rows(one, scope.as_of(one.asked)) for one in seen.passages if one.tool in NUMBERS]
    return _summary([*findings, *rows], seen, scope, drawn_from=len(read))


def drawn(passages: Sequence[Passage], count: int | None) -> list[Passage]:
    """So many passages, chosen by a hash of their content, which is as good as chance and the same every time."""
    if count is None or count >= len(passages):
        return list(passages)
    ranked = sorted(passages, key=lambda one: content_key([*one.asked, one.decision, one.title, one.text]))
    chosen = {id(one) for one in ranked[:count]}
    return [one for one in passages if id(one) in chosen]


def check_rows(passage: Passage, as_of: AsOf) -> Finding:
    """Whether a table of dated numbers ends at the cutoff: a rule decides that better than any reader."""
    _, late = clamp_text(passage.text, as_of)
    if late:
        ruling = Ruling(word="leak", reason="a row after the cutoff", quote=late[0])
    else:
        ruling = Ruling(word="clean", reason="no row after the cutoff")
    return Finding(passage=passage, ruling=ruling, by="rows")


def _statement(asked: Asked, question: Question) -> Passage:
    text = "\n\n".join(filter(None, (question.criteria, question.background)))
    return Passage(asked=asked, decision="kept", tool=QUESTION, title=question.text, text=text, where=question.url)


def _case(passage: Passage, scope: Scope) -> Case:
    return Case(
        instruction=INSTRUCTION,
        as_of=scope.as_of(passage.asked),
        question=scope.questions[passage.asked].text,
        title=passage.title,
        text=passage.text,
    )


def _summary(findings: Sequence[Finding], seen: Seen, scope: Scope, *, drawn_from: int) -> MaterialAudit:
    texts = [one for one in findings if one.by == "auditor" and one.passage.tool != QUESTION]
    layers = sorted({one.passage.layer for one in texts if one.passage.layer})

    def sources(one: Finding) -> str:
        return scope.questions[one.passage.asked].source

    def judged(some: Sequence[Finding]) -> Matrix:
        return matrix([_judged(one, scope) for one in some])

    shown = [one for one in findings if one.passage.tool != QUESTION and one.passage.decision == "kept"]
    touched = frozenset(one.passage.asked for one in shown if one.ruling.word != "clean")
    return MaterialAudit(
        findings=tuple(findings),
        whole=judged(texts),
        content=judged([one for one in texts if one.passage.layer in ("", "content")]),
        by_layer={layer: tally(one.ruling.word for one in texts if one.passage.layer == layer) for layer in layers},
        by_source={name: judged(part) for name, part in _by(texts, sources).items()},
        by_tool={name: judged(part) for name, part in _by(texts, lambda one: one.passage.tool).items()},
        numbers=tally(one.ruling.word for one in findings if one.by == "rows"),
        questions=tally(one.ruling.word for one in findings if one.passage.tool == QUESTION),
        exposed=rate([key in touched for key in scope.questions], [q.cluster for q in scope.questions.values()]),
        touched=touched,
        judged=len(texts),
        drawn_from=drawn_from,
        shown=sum(one.decision == "kept" and one.tool not in NUMBERS for one in seen.passages),
        without_text=seen.without_text,
        cuts=seen.cuts,
    )


def _judged(finding: Finding, scope: Scope) -> Judged:
    cluster = scope.questions[finding.passage.asked].cluster
    return Judged(decision=finding.passage.decision, word=finding.ruling.word, cluster=cluster)


def _by(findings: Sequence[Finding], name: Callable[[Finding], str]) -> dict[str, list[Finding]]:
    groups: dict[str, list[Finding]] = {}
    for one in findings:
        groups.setdefault(name(one), []).append(one)
    return dict(sorted(groups.items()))
