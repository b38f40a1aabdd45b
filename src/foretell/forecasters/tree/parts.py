"""How a claim follows from its children, in words and numbers, for pages, reports and terminals."""

from collections.abc import Iterator, Mapping
from typing import Any

from foretell.forecasters.tree.arithmetic.circuit import rerun
from foretell.forecasters.tree.arithmetic.evaluation import circuit_and_values
from foretell.forecasters.tree.arithmetic.sensitivity import with_input
from foretell.forecasters.tree.case_checks import CheckResult, check_results
from foretell.forecasters.tree.case_links import (
    ALL,
    BUT,
    GIVEN,
    NONE,
    ONLY,
    CasesLink,
    ChainedCasesLink,
    SplitLink,
    number_in_words,
    situation_weights,
)
from foretell.forecasters.tree.cases import HELPS, CaseWords, situations, stated_situations
from foretell.forecasters.tree.closing import CHILD, LEAF, closing_values
from foretell.forecasters.tree.proposition import Tree, cited_evidence
from foretell.frozen import frozen
from foretell.number_text import brief_percent
from foretell.questions.forecast import Reconciliation, gap_between

LARGEST = 5
"""Number of situations that are shown with what they add to the probability; the others are added up."""
THEN = "then"
AFTER: Mapping[str, str] = {"any": "else"}
"""The word before the chance of a child after the earlier ones: all of them came true, or none did."""
SMALLEST = 0.0005
"""Contributions below this are added to those of the other situations."""


@frozen
class ChildPart:
    """One child of a claim, and what the claim would be without or with it."""

    id: str
    claim: str
    p: float
    helps: bool | None = None
    """Whether it counts in the claim's favour; None if its rule does not say so."""
    then: float | None = None
    """Its chance if all children before it in the chain have come true, or none has if one is enough."""
    bounds: tuple[float, float] | None = None
    """What `then` can be, given the chances of the children."""
    so_far: float | None = None
    """Chance that the chain still holds after it."""
    without: float | None = None
    """The stated chance of the claim if all other children are favourable and this one is not."""
    if_false: float | None = None
    if_true: float | None = None
    """The claim's probability if the child is false (`if_false`) and if it is true (`if_true`)."""

    @property
    def width(self) -> float:
        """How far the claim moves with the child."""
        return 0.0 if self.if_true is None or self.if_false is None else abs(self.if_true - self.if_false)


@frozen
class CaseRow:
    """An imagined situation of the children, and the chance of the claim in it."""

    name: str
    """The case and its child, such as `all` or `only:P1`, as a what-if names it."""
    words: str
    favourable: tuple[str, ...]
    """The children that are favourable."""
    chance: float


@frozen
class SumRow:
    """What a situation adds to the probability of the claim."""

    words: str
    likely: float
    """Probability of the situation."""
    chance: float
    """Chance of the claim in it."""

    @property
    def adds(self) -> float:
        """Its contribution."""
        return self.likely * self.chance


@frozen
class ClaimParts:
    """How a claim follows from its children."""

    heading: str
    """What the children are, such as "four conditions in sequence"; empty if `how` alone says it."""
    how: str
    kind: str
    children: tuple[ChildPart, ...]
    cases: tuple[CaseRow, ...] = ()
    """The cases that were stated."""
    filled: int = 0
    """How many situations follow from the kind, because they were not stated."""
    sums: tuple[SumRow, ...] = ()
    """The situations that contribute most, and all others together."""
    outside: str = ""
    """What else decides."""

    @property
    def turns_on(self) -> ChildPart | None:
        """The child with which the claim moves most; None if it moves with none."""
        widest = max(self.children, key=lambda child: child.width)
        return widest if widest.width > 0 else None

    @property
    def turning_point(self) -> str:
        """What the claim would be with that child certain and failed, in words; empty if there is none."""
        child = self.turns_on
        if child is None or child.if_true is None or child.if_false is None:
            return ""
        ends = (("certain", child.if_true), ("fails", child.if_false))
        return "   ".join(f"{child.id} {word}: {brief_percent(p)}" for word, p in ends)

    @property
    def chained(self) -> bool:
        """Whether the children depend on each other."""
        return any(child.then is not None for child in self.children)

    @property
    def after(self) -> str:
        """The word before a chance that holds after the earlier children."""
        return AFTER.get(self.kind, THEN)


def claim_parts(tree: Tree, id: str) -> ClaimParts | None:
    """Return how a claim of an evaluated tree follows from its children; None if it has none or was judged whole."""
    node = tree.nodes[id]
    link = node.link
    if not node.children or link is None or link.own_probability is not None:
        return None
    p = _children(tree, id)
    chain = _chain(link, p) if isinstance(link, ChainedCasesLink) else {}
    later = set(list(chain)[1:])
    stated = stated_situations(link.stated) if isinstance(link, CasesLink) else {}
    order = [child for child in link.stated.chain if child in p] if isinstance(link, CasesLink) else list(p)
    ends = _ends(tree, id)
    children = tuple(
        ChildPart(
            id=child,
            claim=tree.nodes[child].claim,
            p=p[child],
            helps=link.direction[child] == HELPS if isinstance(link, CasesLink) else None,
            then=chain[child].then if child in later else None,
            bounds=chain[child].bounds if child in later else None,
            so_far=chain[child].so_far if child in chain else None,
            without=stated.get(frozenset(p) - {child}) if len(p) > 1 else None,
            if_false=ends[child][0] if child in ends else None,
            if_true=ends[child][1] if child in ends else None,
        )
        for child in order
    )
    how = link.describe(node.children)
    if not isinstance(link, CasesLink):
        if not isinstance(link, SplitLink):
            return ClaimParts(heading=link.heading, how=how, kind=link.kind, children=children)
        return ClaimParts(
            heading=link.heading,
            how=how,
            kind=link.kind,
            children=children,
            cases=tuple(_scenario_cases(link)),
            sums=tuple(_scenario_sums(link, p)),
        )
    words = CaseWords(link.stated)
    cases = [
        CaseRow(
            name=_case_name(link, row),
            words=words.situation(row).removeprefix("if "),
            favourable=tuple(child for child in link.direction if child in row),
            chance=chance,
        )
        # As the table is read: all of them, all but one, only one, none.
        for row, chance in sorted(stated.items(), key=lambda case: -len(case[0]))
    ]
    return ClaimParts(
        heading=link.heading,
        how=how,
        kind=link.kind,
        children=children,
        cases=tuple(cases),
        filled=2 ** len(link.direction) - len(stated),
        sums=tuple(_sums(link, p)),
        outside=link.outside.strip(),
    )


def stated_numbers(parts: ClaimParts | None) -> dict[str, float]:
    """Return what was stated about the children of a claim, by the name that a what-if uses."""
    if parts is None:
        return {}
    chain = {f"{GIVEN}:{child.id}": child.then for child in parts.children if child.then is not None}
    return {**{row.name: row.chance for row in parts.cases}, **chain}


def claim_checks(tree: Tree, id: str) -> list[CheckResult]:
    """Return the checks of a claim by cases or scenarios with their results; empty for other claims."""
    node = tree.nodes[id]
    if node.link is None or node.pinned is not None:
        return []
    evidence = {child: cited_evidence(tree.nodes[child]) for child in node.children}
    return check_results(node.link, _children(tree, id), evidence)


def closing_numbers(tree: Tree) -> dict[str, float | None]:
    """Return what each leaf, child and case of the root alone would have to be for the tree to agree.

    The names are those of `stated_numbers`, and the ids of claims; None is for a number that no value would do. Empty
    if tree and direct estimate are not apart. Of several options the one is compared that is farthest apart.
    """
    both = tree.origin.reconciliation if tree.origin is not None else None
    if both is None or not both.apart:
        return {}
    option = max(both.direct, key=lambda id: gap_between({id: both.tree[id]}, {id: both.direct[id]}))
    row = tree.nodes[tree.root].row
    suffix = f":{option}" if row else ""
    needed: dict[str, float | None] = {}
    for value in closing_values(tree, both.direct[option], option if row else ""):
        claim = value.what in (LEAF, CHILD)
        case = f"{value.what}:{value.child}" if value.child or suffix else value.what
        needed[value.child if claim else f"{case}{suffix}"] = value.needed
    return needed


def chances_in_chain(tree: Tree, id: str) -> dict[str, str]:
    """Return the chance of every child of a claim that depends on earlier ones, in words such as "then 69 %"."""
    node = tree.nodes[id]
    if not isinstance(node.link, ChainedCasesLink):
        return {}
    word = AFTER.get(node.link.kind, THEN)
    after_first = list(_chain(node.link, _children(tree, id)).items())[1:]
    return {child: f"{word} {brief_percent(place.then)}" for child, place in after_first}


def _children(tree: Tree, id: str) -> dict[str, float]:
    """Return the probabilities of the children of a claim."""
    children = tree.nodes[id].children
    return {child: tree.missing if (own := tree.nodes[child].p) is None else own for child in children}


@frozen
class _ChainPlace:
    """A child in its place in a chain."""

    then: float
    """Its chance if the chain holds before it."""
    bounds: tuple[float, float]
    so_far: float
    """Chance that the chain holds after it."""


def _chain(link: ChainedCasesLink, p: Mapping[str, float]) -> dict[str, _ChainPlace]:
    """Return the places of the children in their chain; empty if they do not depend on each other."""
    places: dict[str, _ChainPlace] = {}
    prefix = 1.0
    for step in link.chain(p):
        own = p[step.child]
        bounds = (max(0.0, (own + prefix - 1.0) / prefix), min(1.0, own / prefix)) if prefix > 0 else (0.0, 1.0)
        prefix *= step.holds if step.stays else 1.0 - step.holds
        places[step.child] = _ChainPlace(then=step.holds, bounds=bounds, so_far=prefix)
    return places


def _ends(tree: Tree, id: str) -> dict[str, tuple[float, float]]:
    """Return the claim's probability with each child at 0 and at 1; without children that cannot be set."""
    circuit, values = circuit_and_values(tree)
    place = circuit.claims[id]

    def claim_at(child: str, p: float) -> float:
        if child in circuit.input_places:
            return with_input(circuit, values, child, p)[place]
        return rerun(circuit, values, {}, {circuit.claims[child]: p})[place]

    settable = circuit.input_places.keys() | circuit.pinnable
    return {
        child: (claim_at(child, 0.0), claim_at(child, 1.0)) for child in tree.nodes[id].children if child in settable
    }


def _sums(link: CasesLink, p: Mapping[str, float]) -> Iterator[SumRow]:
    """Yield the situations that contribute most, and all others as one row."""
    rows = [
        SumRow(words=link.situation_name(row), likely=likely, chance=chance)
        for row, likely, chance in zip(
            situations(link.stated.children), situation_weights(link, p), link.chances, strict=True
        )
    ]
    rows.sort(key=lambda row: -row.adds)
    shown = [row for row in rows[:LARGEST] if row.adds >= SMALLEST] or rows[:1]
    yield from shown
    others = rows[len(shown) :]
    if others:
        likely = sum(row.likely for row in others)
        mean = sum(row.adds for row in others) / likely if likely > 0 else 0.0
        yield SumRow(words=f"the other {len(others)}", likely=likely, chance=mean)


def _case_name(link: CasesLink, situation: frozenset[str]) -> str:
    """Return the name of a stated case: none, all, only one child, or all but one."""
    missing = [child for child in link.direction if child not in situation]
    if not situation or not missing:
        return ALL if situation else NONE
    return f"{ONLY}:{next(iter(situation))}" if len(situation) == 1 else f"{BUT}:{missing[0]}"


def _scenario_cases(link: SplitLink) -> Iterator[CaseRow]:
    """Yield what follows from each scenario, for each option if there are several."""
    for option in link.options or ("",):
        for (case, child), chance in link.stated_chances(option).items():
            words = f"{child} happens" if child else "none of them happens"
            yield CaseRow(
                name=":".join([case, child, option] if option else filter(None, [case, child])),
                words=f"{option}, if {words}" if option else words,
                favourable=(child,) if child else (),
                chance=chance,
            )


def _scenario_sums(link: SplitLink, p: Mapping[str, float]) -> Iterator[SumRow]:
    yield from (SumRow(words=child, likely=p[child], chance=row[0]) for child, row in link.then.items())
    left = max(0.0, 1.0 - sum(p[child] for child in link.then))
    if left >= SMALLEST:
        yield SumRow(words="none of them", likely=left, chance=link.rest[0])


def reconciliation_parts(tree: Tree) -> dict[str, Any] | None:
    """Return the tree beside the direct estimate when it was grown, as JSON; None if there was no direct estimate."""
    both = tree.origin.reconciliation if tree.origin is not None else None
    if both is None:
        return None
    weights = {"direct": 1 - both.weight, "tree": both.weight}
    return {**both.to_dict(), "weights": dict.fromkeys(both.tree, weights), "report": both.report}


# The same as lines of text.


def reasoning_lines(tree: Tree, both: Reconciliation | None = None) -> list[str]:
    """Return what the tree's answer rests on: kind, tree and direct estimate, children, and what it turns on.

    `both` is the reconciliation with the direct estimate, by default the one of the time when the tree was grown.
    """
    both = both or (tree.origin.reconciliation if tree.origin is not None else None)
    parts = claim_parts(tree, tree.root)
    heading = parts.heading if parts is not None else ""
    lines = list(_value_lines(tree, both, heading))
    if parts is None or not heading:
        return [*lines, *(f"  {line}" for line in change_lines(both))]
    children = [
        f"{child.id} {brief_percent(child.p)}"
        if child.then is None
        else f"{child.id} {parts.after} {brief_percent(child.then)}"
        for child in parts.children
    ]
    lines.append(f"  {'   '.join(children)}")
    lines += [f"  {parts.turning_point}"] if parts.turning_point else []
    return [*lines, *(f"  {line}" for line in change_lines(both))]


def change_lines(both: Reconciliation | None) -> list[str]:
    """Return what was changed to reconcile tree and direct estimate, and why; empty if nobody was asked."""
    if both is None or not both.asked:
        return []
    changes = [f"changed: {change}" for change in both.changes] or ["nothing was changed"]
    return [*changes, *([f"on the difference: {both.report}"] if both.report else [])]


def numbers_in_words(tree: Tree, both: Reconciliation | None) -> str:
    """Return the tree's distribution of a number beside the direct one; empty if the tree is about no number."""
    root = tree.nodes[tree.root].link
    if not isinstance(root, SplitLink) or (mixture := root.mixture(_children(tree, tree.root))) is None:
        return ""
    text = number_in_words(mixture, dates=root.dates)
    if both is None or both.direct_distribution is None:
        return text
    return f"tree {text}, direct {number_in_words(both.direct_distribution, dates=root.dates)} ({both.verdict})"


def _value_lines(tree: Tree, both: Reconciliation | None, heading: str) -> Iterator[str]:
    """Yield the tree's value beside the direct estimate."""
    before = f"{heading}: " if heading else ""
    root = tree.nodes[tree.root]
    if numbers := numbers_in_words(tree, both):
        yield f"{before}{numbers}"
    elif both is None:
        if heading and root.p is not None:
            yield f"{before}{brief_percent(root.p)}"
    elif len(both.tree) == 1:
        (target,) = both.tree
        yield f"{before}{both.in_words(target)}{_since(root.p, both.tree[target])}"
    else:
        yield f"{before}{both.verdict}"
        yield from (f"  {target}: {both.in_words(target)}" for target in both.tree)


def _since(now: float | None, grown: float) -> str:
    """Return the value of a tree that was changed since it was grown."""
    return "" if now is None or abs(now - grown) < SMALLEST else f"; the tree now gives {brief_percent(now)}"
