"""Check stated cases before they become a link: what is sent back, in words, and what happens if it does not help.

No check shows the value that the cases give, so that nobody bends them towards it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import inf, isfinite
from typing import Literal

from foretell.forecasters.tree.case_links import SUM_LIMIT, CasesLink, SplitLink, cases_link
from foretell.forecasters.tree.cases import (
    HELPS,
    HINDERS,
    KINDS,
    MOST_CHILDREN,
    CaseWords,
    GivenStep,
    StatedCases,
    cases_in_words,
    given_steps,
    kind_in_words,
    misfits,
    situations,
    stated_situations,
)
from foretell.forecasters.tree.links import Link
from foretell.forecasters.tree.text import enumeration
from foretell.frozen import frozen
from foretell.number_text import brief_percent

FIT = 0.15
"""Largest difference between a stated case and what its kind makes of it."""
SLACK = 0.02
"""By how much `given` may be outside its bounds."""
DECISIVE = 0.1
"""Smallest difference between `all` and `none`."""
NEEDS_OUTSIDE = (0.5, 0.3)
"""If `all` is below the first or `none` above the second, something else decides, which must be named."""
SMALLEST_MOVE = 0.02
"""A child that never moves the claim by as much is noted."""

MISFIT = "does not fit the stated cases"
"""Words of the note on a kind that did not fit, after which the answer must be reconciled with the direct estimate."""

CheckName = Literal["complete", "monotone", "decisive", "outside", "kind", "given", "evidence"]
MOST_SENT: Mapping[CheckName, int] = {"kind": 2, "given": 1, "evidence": 1}
"""How often a reply that fails a check is sent back before it is accepted with a change or a note. Replies that fail
another check are never accepted."""


@frozen
class CaseProblem:
    """A check that failed."""

    check: CheckName
    text: str
    """The sentence that is sent back."""


@frozen
class CasesVerdict:
    """The result of all checks: a link, or what has to be sent back."""

    link: CasesLink | None
    """The link, if the cases are accepted."""
    problems: tuple[CaseProblem, ...] = ()
    """What is sent back, if they are not."""
    notes: tuple[str, ...] = ()
    """What was changed or is worth knowing, if they are accepted."""
    reconcile: bool = False
    """Whether the answer must be reconciled with the direct estimate, however near the two are."""

    @property
    def text(self) -> str:
        """All sentences that are sent back."""
        return " ".join(problem.text for problem in self.problems)


def judge_cases(
    cases: StatedCases,
    p: Mapping[str, float],
    *,
    evidence: Mapping[str, Collection[str]] | None = None,
    sent: Mapping[str, int] | None = None,
    names: Mapping[str, str] | None = None,
) -> CasesVerdict:
    """Check stated cases, and build their link if they are accepted.

    `p` holds the chance that each child is true, `evidence` the ids of the evidence that it cites, `sent` how often a
    reply was already sent back because of each check, and `names` how to call the children.
    """
    words = CaseWords(cases, names or {})
    if problems := tuple(_incomplete(words)):
        return CasesVerdict(link=None, problems=problems)
    problems = _failed_checks(words, p, evidence or {})
    before = sent or {}
    if any(before.get(problem.check, 0) < MOST_SENT.get(problem.check, inf) for problem in problems):
        return CasesVerdict(link=None, problems=tuple(problems))
    failed = {problem.check for problem in problems}
    notes = [_accepted(check, words, p) for check in MOST_SENT if check in failed]
    misfit = "kind" in failed
    link = cases_link(replace(cases, kind="weigh", given={}, order=()) if misfit else cases, p)
    if link.kind in ("all", "any") and not cases.given and len(cases.children) > 1 and "evidence" not in failed:
        notes.append("the children are taken as independent")
    return CasesVerdict(link=link, notes=(*notes, *_idle(link, words)), reconcile=misfit)


def _failed_checks(
    words: CaseWords, p: Mapping[str, float], evidence: Mapping[str, Collection[str]]
) -> list[CaseProblem]:
    """Return what the checks of complete cases found."""
    problems = [*_unordered(words), *_undecided(words), *_unfit(words)]
    return [*problems, *_out_of_bounds(words, p), *_shared_evidence(words, evidence)]


def _accepted(check: CheckName, words: CaseWords, p: Mapping[str, float]) -> str:
    """Return the note on a check that failed although it was sent back."""
    cases = words.cases
    if check == "kind":
        return f"{cases.kind} {MISFIT}, so each child counts as stated (weigh)"
    if check == "evidence":
        return "children that cite the same evidence are taken as independent"
    chances = [
        f"{words.name(step.child)} {step.given:.2f} instead of {step.stated:.2f}"
        for step in given_steps(cases, p)
        if step.stated is not None and abs(step.stated - step.given) > SLACK
    ]
    return f"given the earlier children, the nearest possible chance is used: {enumeration(chances)}"


# The checks, each on its own.


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _incomplete(words: CaseWords) -> Iterator[CaseProblem]:
    """Check that everything is there and every number is a chance; otherwise no other check is possible."""
    texts = list(_wrong_structure(words.cases))
    if not texts:
        texts = [*_missing_cases(words), *_wrong_numbers(words)]
    yield from (CaseProblem(check="complete", text=text) for text in texts)


def _wrong_structure(cases: StatedCases) -> Iterator[str]:
    children = cases.children
    if cases.kind not in KINDS:
        yield f"The kind {cases.kind!r} is none of {', '.join(KINDS)}."
    if not 1 <= len(children) <= MOST_CHILDREN:
        yield f"There are {len(children)} children, but there must be 1 to {MOST_CHILDREN}."
    for child, direction in cases.direction.items():
        if direction not in (HELPS, HINDERS):
            yield f"Say whether {child} {HELPS} or {HINDERS}, not {direction!r}."
    if cases.kind == "at_least" and not (cases.k is not None and 1 <= cases.k <= len(children)):
        yield f"Say as k how many of the children are needed: 1 to {len(children)}."
    if cases.order and sorted(cases.order) != sorted(children):
        yield f"The order must name each of {', '.join(children)} once."
    for name, stated in (("only", cases.only), ("but", cases.but), ("given", cases.given)):
        for child in stated:
            if child not in children:
                yield f"{child} in {name} is not a child; the children are {', '.join(children)}."


def _missing_cases(words: CaseWords) -> Iterator[str]:
    cases, n = words.cases, len(words.cases.children)
    for name, situation in (("none", frozenset[str]()), ("all", frozenset(cases.children))):
        if getattr(cases, name) is None:
            yield f"The case `{name}` is missing: the chance of the claim {words.situation(situation)}."
    # With two children, only one is all but the other; with one child, `none` and `all` are all there is.
    for name, needed in (("only", n > 1), ("but", n > 2)):
        stated: Mapping[str, float | None] = getattr(cases, name)
        missing = [child for child in cases.children if needed and child not in stated]
        if missing:
            yield f"The case `{name}` is missing for {', '.join(missing)}; give null if it cannot happen."


def _wrong_numbers(words: CaseWords) -> Iterator[str]:
    cases = words.cases
    numbers = {"none": cases.none, "all": cases.all}
    for name in ("only", "but", "given"):
        numbers |= {f"{name} of {child}": value for child, value in getattr(cases, name).items()}
    for name, value in numbers.items():
        if value is not None and not (isfinite(value) and 0 <= value <= 1):
            yield f"The case {name} is {value:g}, but it must be between 0 and 1."
    if len(cases.children) == 2:
        for child, other in (cases.children, reversed(cases.children)):
            alone, without = cases.only.get(child), cases.but.get(other)
            if alone is not None and without is not None and abs(alone - without) > 0.005:
                same = words.situation(frozenset({child}))
                twice = f"{brief_percent(alone)} as only, {brief_percent(without)} as but"
                yield f"The chance {same} is stated twice: {twice}."


def _unordered(words: CaseWords) -> Iterator[CaseProblem]:
    """Check that one favourable child does not hurt, and that one unfavourable child does not help."""
    cases, stated = words.cases, stated_situations(words.cases)
    whole, empty = frozenset(cases.children), frozenset[str]()
    pairs = [(empty, situation) for situation in stated] + [(situation, whole) for situation in stated]
    for lower, upper in dict.fromkeys(pairs):
        if stated[lower] > stated[upper] + 1e-9:
            yield CaseProblem(
                check="monotone",
                text=_sentence(
                    f"{words.situation(lower)} you give the claim {brief_percent(stated[lower])}, but "
                    f"{words.situation(upper)} only {brief_percent(stated[upper])}. More in its favour cannot make it "
                    "less likely: change one of the two, or the direction of a child."
                ),
            )


def _undecided(words: CaseWords) -> Iterator[CaseProblem]:
    """Check that the children decide the claim, or that the reply says what else does."""
    cases = words.cases
    assert cases.all is not None
    assert cases.none is not None
    whole, empty = frozenset(cases.children), frozenset[str]()
    if 0 <= cases.all - cases.none < DECISIVE - 1e-9:
        yield CaseProblem(
            check="decisive",
            text=_sentence(
                f"{words.situation(whole)} the claim has {brief_percent(cases.all)}, and {words.situation(empty)} "
                f"{brief_percent(cases.none)}: the children do not decide it. State how much they matter, or "
                "what decides it."
            ),
        )
    if not cases.outside.strip():
        for situation, value, needed in (
            (whole, cases.all, cases.all < NEEDS_OUTSIDE[0]),
            (empty, cases.none, cases.none > NEEDS_OUTSIDE[1]),
        ):
            if needed:
                case = f"{words.situation(situation)} the claim still has {brief_percent(value)}"
                yield CaseProblem(check="outside", text=_sentence(f"{case}: say in `outside` what else decides."))


def _unfit(words: CaseWords) -> Iterator[CaseProblem]:
    """Check that the kind reproduces the stated cases."""
    cases = words.cases
    if any(difference > FIT + 1e-9 for difference in misfits(cases).values()):
        yield CaseProblem(
            check="kind",
            text=(
                f"You called it `{cases.kind}`: {kind_in_words(cases.kind, cases.k)}. But your cases say: "
                f"{cases_in_words(cases, words.names)} Change the cases or the kind; `weigh` fits any cases."
            ),
        )


def _out_of_bounds(words: CaseWords, p: Mapping[str, float]) -> Iterator[CaseProblem]:
    """Check that the chances given earlier children are possible with the children's own chances."""
    cases = words.cases
    if not cases.given or cases.kind not in ("all", "any"):
        return
    earlier: list[str] = []
    for step in given_steps(cases, p):
        if step.stated is not None and not step.low - SLACK <= step.stated <= step.high + SLACK:
            yield CaseProblem(check="given", text=_impossible(words, step, earlier))
        earlier.append(words.name(step.child))


def _impossible(words: CaseWords, step: GivenStep, earlier: Sequence[str]) -> str:
    child, stated = words.name(step.child), f"{step.stated:.2f}"
    if not earlier:
        return f"{child} comes first, so its `given` is its own chance of being favourable, {step.p:.2f}, not {stated}."
    others = enumeration(earlier)
    if words.cases.kind == "all":
        condition = f"if {others} {'is' if len(earlier) == 1 else 'are'} favourable"
    else:
        condition = f"if {others} is not favourable" if len(earlier) == 1 else f"if none of {others} is favourable"
    return (
        f"{child} cannot be favourable with {stated} {condition}: with the chances of the children, that chance is "
        f"between {step.low:.2f} and {step.high:.2f}."
    )


def _shared_evidence(words: CaseWords, evidence: Mapping[str, Collection[str]]) -> Iterator[CaseProblem]:
    """Ask whether one event moves children that cite the same evidence."""
    cases = words.cases
    if cases.given or cases.kind not in ("all", "any"):
        return
    for child, other in combinations(cases.children, 2):
        shared = sorted(set(evidence.get(child, ())) & set(evidence.get(other, ())))
        if shared:
            yield CaseProblem(
                check="evidence",
                text=(
                    f"{words.name(child)} and {words.name(other)} cite the same evidence ({', '.join(shared)}): does "
                    "one event move both? If so, state `given`; otherwise give the same answer again."
                ),
            )


def _idle(link: CasesLink, words: CaseWords) -> Iterator[str]:
    """Note children that move nothing."""
    rows = dict(zip(situations(link.stated.children), link.chances, strict=True))
    for child in link.direction:
        moves = (abs(p - rows[row - {child}]) for row, p in rows.items() if child in row)
        if max(moves) < SMALLEST_MOVE:
            yield f"{words.name(child)} moves the claim by less than {brief_percent(SMALLEST_MOVE)}"


# Scenarios.


def scaled_scenarios(p: Mapping[str, float]) -> tuple[Mapping[str, float], str]:
    """Return the chances of exclusive scenarios, scaled to 1 if they add up to more, and a note if it is much more.

    >>> scaled_scenarios({"P1": 0.9, "P2": 0.3})
    ({'P1': 0.75, 'P2': 0.25}, 'the scenarios added up to 1.20 and were scaled to 1')
    """
    total = sum(p.values())
    if total <= 1.0:
        return p, ""
    note = f"the scenarios added up to {total:.2f} and were scaled to 1" if total > SUM_LIMIT else ""
    return {child: chance / total for child, chance in p.items()}, note


# The checks of a claim as a list, for pages.


@frozen
class CheckResult:
    """A check of the stated cases of a claim, and what it found."""

    check: str
    problems: tuple[str, ...] = ()
    """What is wrong; empty if the check is passed."""


CHECKS: Mapping[CheckName, str] = {
    "complete": "every case is stated, with a chance from 0 to 1",
    "monotone": "more in its favour never makes it less likely",
    "kind": f"the kind gives the stated cases within {brief_percent(FIT)}",
    "given": "the chances in sequence are possible",
    "decisive": f"the children move it by {brief_percent(DECISIVE)} or more",
    "outside": "what else decides is named where it matters",
    "evidence": "children that cite the same evidence are judged in sequence",
}
"""What each check asks for."""
IDLE = f"every child moves it by {brief_percent(SMALLEST_MOVE)} or more"
SUM = "the scenarios add up to at most 1"


def check_results(link: Link, p: Mapping[str, float], evidence: Mapping[str, Collection[str]]) -> list[CheckResult]:
    """Return every check of a claim by cases or scenarios; empty for other links."""
    if isinstance(link, SplitLink):
        _, note = scaled_scenarios(p)
        problem = (note.replace("were scaled", "must be scaled"),) if note else ()
        return [CheckResult(check=SUM, problems=problem)]
    if not isinstance(link, CasesLink):
        return []
    words = CaseWords(link.stated)
    problems = list(_incomplete(words)) or _failed_checks(words, p, evidence)
    results = [
        CheckResult(check=text, problems=tuple(problem.text for problem in problems if problem.check == check))
        for check, text in CHECKS.items()
    ]
    return [*results, CheckResult(check=IDLE, problems=tuple(_idle(link, words)))]
