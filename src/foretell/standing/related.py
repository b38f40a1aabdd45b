"""Standing questions whose probabilities depend on each other: found by their wording or declared, and made coherent.

The rules are conservative. Questions are ordered only if they ask the same but for one number or one deadline, and
exclude each other only if they name two people for one office. Anything else is declared in `watch.related`.
"""

import logging
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from itertools import combinations, pairwise
from typing import Literal

from foretell.forecasters.base_rates.same_question import QuestionSense, compare, sense
from foretell.forecasters.combine.claims import (
    NEGATED,
    ClaimTemplate,
    Deadline,
    Order,
    OrderedClaims,
    Strike,
    orders,
    read_claim,
)
from foretell.forecasters.combine.coherence import question_orders
from foretell.forecasters.combine.relations import (
    COHERENT,
    ConditionalClaims,
    ExclusiveClaims,
    Irreconcilable,
    Relation,
    connected,
    implication,
    reconciled,
)
from foretell.frozen import frozen
from foretell.metrics.transforms import logit
from foretell.patterns import pattern
from foretell.questions.errors import InputError, known_names
from foretell.questions.question import Question
from foretell.standing.record import StandingBelief, StandingQuestion

log = logging.getLogger(__name__)

GroupKind = Literal["thresholds", "dates", "nested", "implies", "exclusive", "conditional"]
ITSELF = "this"
"""Name of the question itself in the relations that are declared with it."""


_ID = pattern(r"[\w.-]+")


@frozen
class RelatedGroup:
    """Questions related in one way. A claim is the id of a question or, if it has several targets, `id:target`."""

    kind: GroupKind
    relation: Relation
    origin: Literal["wording", "declared", "question"]
    """How it is known. A question's own targets are a group if one of them is related to another question."""

    @property
    def claims(self) -> tuple[str, ...]:
        """The claims, from the least likely to the most likely if they are ordered."""
        if isinstance(self.relation, OrderedClaims):
            level = dict(zip(self.relation.names, self.relation.level, strict=True))
            return tuple(sorted(self.relation.names, key=lambda name: (level[name], name)))
        return self.relation.names

    @property
    def questions(self) -> tuple[str, ...]:
        """The ids of the questions."""
        return tuple(dict.fromkeys(claim.partition(":")[0] for claim in self.claims))

    def __str__(self) -> str:
        """The relation in words.

        >>> print(RelatedGroup(kind="implies", relation=implication("a", "b"), origin="declared"))
        a implies b
        """
        match self.relation:
            case ConditionalClaims(both=both, given=given, condition=condition):
                return f"{both} = {given} * {condition}"
            case ExclusiveClaims(names=names, rule=rule):
                return f"{rule} of {', '.join(names)}"
            case OrderedClaims():
                return f"{self.kind}: {', '.join(self.claims)}"
            case _:
                pairs = self.relation.implications
                chain = tuple(pairwise(self.claims)) == pairs
                return " implies ".join(self.claims) if chain else ", ".join(f"{a} implies {b}" for a, b in pairs)


def claim_name(id: str, target: str, targets: int) -> str:
    """Return the name of a target in a group."""
    return id if targets == 1 else f"{id}:{target}"


def related_groups(questions: Iterable[StandingQuestion]) -> list[RelatedGroup]:
    """Return the groups of related questions, found and declared. Only questions that are open or paused are related.

    Raises:
        InputError: If a declared relation cannot be read or names an unknown question.
    """
    live = sorted((q for q in questions if q.state in ("open", "paused")), key=lambda q: q.id)
    found = [*_ordered_groups(live), *_series_groups(live), *_office_groups(live)]
    declared = [group for standing in live for group in declared_groups(standing, live)]
    # What is declared twice, or by wording and by series, is one group.
    groups = list({frozenset(group.claims): group for group in (*found, *declared)}.values())
    related = {id for group in groups for id in group.questions}
    own = [group for standing in live if standing.id in related for group in _own_groups(standing)]
    return [*groups, *own]


def related_questions(questions: Iterable[StandingQuestion]) -> dict[str, set[str]]:
    """Return the ids of the questions related to each one, found or declared, whatever became of them since.

    Unlike `related_groups`, it reads only the ids in a declared relation, so that it never fails.
    """
    asked = sorted(questions, key=lambda q: q.id)
    related = {standing.id: set[str]() for standing in asked}
    found = (*_ordered_groups(asked), *_series_groups(asked), *_office_groups(asked))
    sets = [set(group.questions) for group in found]
    for standing in asked:
        words = {word for text in _declared_texts(standing) for word in _ID.findall(text)}
        sets += [words & related.keys() | {standing.id}]
    for ids in sets:
        for id in ids:
            related[id] |= ids - {id}
    return related


def made_coherent(beliefs: Mapping[str, StandingBelief], groups: Sequence[RelatedGroup]) -> dict[str, dict[str, float]]:
    """Return coherent probabilities by question and target, for the questions whose probabilities had to change.

    They are the nearest ones: Σ w·KL is smallest, where 1/w is the variance of a forecast's log-odds (`sureness`).
    Groups of which a question has no belief yet hold among the others. If declared relations contradict each other,
    nothing changes for their questions, and a warning is logged.

    Args:
        beliefs: The newest belief of each question. Its `p` counts, not what was made coherent before.
        groups: The groups that the questions are in.
    """
    p: dict[str, float] = {}
    weight: dict[str, float] = {}
    of: dict[str, tuple[str, str]] = {}
    for id, belief in beliefs.items():
        for target, value in belief.p.items():
            name = claim_name(id, target, len(belief.p))
            p[name], of[name] = value, (id, target)
            weight[name] = sureness(value, belief.ranges.get(target), belief.trials)
    relations = [relation for group in groups if (relation := _among(group.relation, p)) is not None]
    changed: dict[str, dict[str, float]] = {}
    for part in connected(relations):
        names = {name for relation in part for name in relation.names}
        try:
            after = reconciled({name: p[name] for name in names}, part, weight).p
        except Irreconcilable as error:
            log.warning("related questions are left as they are: %s", error)
            continue
        for name in names:
            if abs(after[name] - p[name]) > COHERENT:
                id, target = of[name]
                changed.setdefault(id, dict(beliefs[id].p))[target] = after[name]
    return changed


WIDTH_80 = 2 * 1.2815515655446004
"""Width of an 80% interval of a normal distribution, in standard deviations."""
LEAST_SD = 0.05
"""Smallest standard deviation of log-odds, so that an interval without width does not fix a forecast."""


def sureness(p: float, interval: tuple[float, float] | None, trials: int = 1) -> float:
    """Return the weight of a forecast: one over the variance of its log-odds.

    It follows from the width of the 80% interval. Without one, a trial has a standard deviation of 1.

    >>> sureness(0.5, None, trials=4), round(sureness(0.5, (0.2173, 0.7827)), 3)
    (4.0, 1.0)
    """
    if interval is None:
        return float(max(1, trials))
    low, high = logit([min(interval), max(interval)])
    return 1 / max(LEAST_SD, float(high - low) / WIDTH_80) ** 2


def _among(relation: Relation, known: Collection[str]) -> Relation | None:
    """Return what a relation says about the claims that have a probability; None if that is nothing."""
    places = [place for place, name in enumerate(relation.names) if name in known]
    names = tuple(relation.names[place] for place in places)
    if len(names) == len(relation.names):
        return relation
    match relation:
        case ConditionalClaims():
            # P(both) is at most P(condition); nothing follows about P(given) alone.
            pair = (relation.both, relation.condition)
            return implication(*pair) if set(pair) <= set(names) else None
        case ExclusiveClaims():
            return ExclusiveClaims(names=names) if len(names) > 1 else None
        case OrderedClaims():
            level, flipped = (tuple(column[place] for place in places) for column in (relation.level, relation.flipped))
            return replace(relation, names=names, level=level, flipped=flipped) if len(names) > 1 else None
        case _:
            # Implications through a claim that is missing still hold.
            pairs = _through(relation.implications, set(relation.names) - set(names))
            return replace(relation, names=names, implications=pairs) if pairs else None


def _through(pairs: Sequence[tuple[str, str]], missing: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return the implications between the other claims, also those that lead through missing ones."""
    left = set(pairs)
    for claim in missing:
        into, out = ({pair for pair in left if pair[side] == claim} for side in (1, 0))
        left = (left - into - out) | {(a, b) for a, _ in into for _, b in out if a != b}
    return tuple(sorted(left))


_KINDS: dict[str, GroupKind] = {"ladder": "thresholds", "by date": "dates", "nested": "nested"}

# Groups by wording: the same question but for a number or a deadline.


def _ordered_groups(questions: Sequence[StandingQuestion]) -> list[RelatedGroup]:
    claims = {
        standing.id: claim
        for standing in questions
        if len(standing.question.targets) == 1 and (claim := _question_claim(standing.question)) is not None
    }
    return [
        RelatedGroup(
            kind=_KINDS[order.rule],
            relation=order,
            origin="wording",
        )
        for order in orders(_same_templates(questions, claims))
    ]


def _question_claim(question: Question) -> ClaimTemplate | None:
    """Return the claim of a yes-or-no question. Its template includes the criteria and, without a deadline, the day."""
    claim = read_claim(question.text, question.due.date())
    if claim is None:
        return None
    day = _day(question)
    dated = any(isinstance(slot, Deadline) for slot in claim.slots)
    when = "" if dated or day is None else day.date().isoformat()
    return replace(claim, template=f"{claim.template}\0{when}\0{_masked(question.criteria)}")


def _day(question: Question) -> datetime | None:
    """Return when a yes-or-no question resolves."""
    (target,) = question.targets
    return target.resolves_at or question.closes_at


_MONTHS = pattern(r"\b(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\b|\d[\d.,:]*", re.IGNORECASE)


def _masked(criteria: str) -> str:
    """Return criteria without numbers and months, which repeat those of the question."""
    return " ".join(_MONTHS.sub("#", criteria).casefold().split())


def _same_templates(
    questions: Sequence[StandingQuestion], claims: Mapping[str, ClaimTemplate]
) -> dict[str, ClaimTemplate]:
    """Return the claims with one template for those that ask the same in other words, but for a number."""
    asked = {standing.id: standing.question for standing in questions if standing.id in claims}
    alike: dict[str, list[str]] = {}
    for id, claim in claims.items():
        alike.setdefault(claim.template, []).append(id)
    # Only groups that agree in all of this can ask the same. With hundreds of questions, most agree with no other.
    comparable: dict[tuple[object, ...], list[list[str]]] = {}
    for ids in alike.values():
        keys = {_but_for_wording(asked[id], claims[id]) for id in ids}
        if len(keys) == 1 and (key := keys.pop()) is not None:
            comparable.setdefault(key, []).append(ids)
    result = dict(claims)
    for groups in comparable.values():
        senses = {id: _sense(asked[id]) for ids in groups for id in ids} if len(groups) > 1 else {}
        for one, other in combinations(range(len(groups)), 2):
            first, second = groups[one], groups[other]
            pairs = [(a, b) for a in first for b in second]
            due = [max(asked[a].due, asked[b].due).date() for a, b in pairs]
            if pairs and all(compare(senses[a], senses[b], day).same for (a, b), day in zip(pairs, due, strict=True)):
                template = min(claims[first[0]].template, claims[second[0]].template)
                groups[one], groups[other] = [], [*first, *second]
                result |= {id: replace(claims[id], template=template) for id in (*first, *second)}
    return result


def _but_for_wording(question: Question, claim: ClaimTemplate) -> tuple[object, ...] | None:
    """Return what must agree if two questions in different words ask the same but for one number.

    None if there is not exactly one number.
    """
    if sum(isinstance(slot, Strike) for slot in claim.slots) != 1:
        return None
    return (*_shape(claim), _masked(question.criteria), _sense(question).until)


def _shape(claim: ClaimTemplate) -> list[tuple[str, str]]:
    """Return what must agree: the side and unit of the number, and the deadline."""
    return sorted(
        (str(slot.day), slot.kind) if isinstance(slot, Deadline) else (slot.side, slot.kind) for slot in claim.slots
    )


def _sense(question: Question) -> QuestionSense:
    """Return what a question asks, without its numbers."""
    closes: date | None = question.closes_at.date() if question.closes_at else None
    return replace(sense(question.text, question.due.date(), closes), numbers=frozenset())


# Groups by series: thresholds of one number on one day.


def _series_groups(questions: Sequence[StandingQuestion]) -> list[RelatedGroup]:
    series: dict[tuple[object, ...], dict[str, float]] = {}
    for standing in questions:
        ref = standing.question.series
        if ref is None or ref.threshold is None:
            continue
        targets = standing.question.targets
        for target in targets:
            day = target.resolves_at or standing.question.closes_at
            if day is not None:
                key = (ref.provider, ref.id, ref.comparison, day.date())
                series.setdefault(key, {})[claim_name(standing.id, target.id, len(targets))] = ref.threshold
    return [
        RelatedGroup(
            kind="thresholds",
            relation=OrderedClaims(
                rule="ladder",
                names=tuple(values),
                level=tuple(
                    sorted(set(values.values()), reverse=comparison != "below").index(value)
                    for value in values.values()
                ),
                flipped=(False,) * len(values),
            ),
            origin="wording",
        )
        for (_, _, comparison, _), values in series.items()
        if len(values) > 1
    ]


# Groups by office: several people, of whom one gets it.

_PERSON = r"(?P<person>[A-ZÀ-Þ][\w’'.-]*(?:\s(?:(?:de|da|di|van|von|der|den|la|le|bin|al)\s)*[A-ZÀ-Þ][\w’'.-]*){1,4})"
_OFFICE = pattern(
    rf"^Will\s{_PERSON}\s(?P<rest>(?:become|be)\sthe\snext\s.+|be\selected\s(?:as\s)?(?:the\s)?(?:next\s)?"
    r"(?:president|prime minister|chancellor|mayor|governor|pope|speaker|secretary[ -]general)\b.+"
    r"|(?:win|receive|get)\sthe\s.*\bnomination\b.+)$"
)
_SEVERAL = pattern(r"\b(?:or|and|either|one of|co-\w+|joint\w*|interim|acting|party|senators|members)\b", re.IGNORECASE)


def _office_groups(questions: Sequence[StandingQuestion]) -> list[RelatedGroup]:
    offices: dict[tuple[str, ...], dict[str, str]] = {}
    for standing in questions:
        question = standing.question
        text = " ".join(question.text.split())
        match = _OFFICE.match(text)
        if match is None or len(question.targets) > 1 or _SEVERAL.search(text) or NEGATED.search(text):
            continue
        day = _day(question)
        # The criteria may name the person too.
        criteria = _masked(question.criteria.replace(match["person"], "#"))
        key = (str(match["rest"]).casefold().rstrip(" ?"), "" if day is None else day.date().isoformat(), criteria)
        offices.setdefault(key, {})[standing.id] = match["person"]
    groups: list[RelatedGroup] = []
    for people in offices.values():
        # Two names that share a word may be one person's.
        names = [
            id for id, name in people.items() if all(_apart(name, people[other]) for other in people if other != id)
        ]
        if len(names) > 1:
            groups.append(
                RelatedGroup(kind="exclusive", relation=ExclusiveClaims(names=tuple(names)), origin="wording")
            )
    return groups


def _apart(one: str, other: str) -> bool:
    """Return whether two names share no word."""
    words, others = ({word.strip(".").casefold() for word in name.split()} for name in (one, other))
    return not words & others


def _own_groups(standing: StandingQuestion) -> list[RelatedGroup]:
    """Return the relations between the targets of one question."""
    question, id = standing.question, standing.id
    if len(question.targets) == 1:
        return []
    names = {target.id: claim_name(id, target.id, 2) for target in question.targets}
    if question.exclusivity != "independent":
        relation = ExclusiveClaims(names=tuple(names.values()), rule=question.exclusivity)
        return [RelatedGroup(kind="exclusive", relation=relation, origin="question")]
    return [
        RelatedGroup(kind=_KINDS[order.rule], relation=_renamed(order, names), origin="question")
        for order in question_orders(question)
    ]


def _renamed(order: Order, names: Mapping[str, str]) -> Order:
    renamed = tuple(names[name] for name in order.names)
    if isinstance(order, OrderedClaims):
        return replace(order, names=renamed)
    return replace(order, names=renamed, implications=tuple((names[a], names[b]) for a, b in order.implications))


# Declared relations.

FORMS = "write `A implies B`, `exactly one of A, B`, `at most one of A, B`, or `BOTH = GIVEN * CONDITION`"


def declared_groups(standing: StandingQuestion, questions: Iterable[StandingQuestion]) -> list[RelatedGroup]:
    """Return the relations that `watch.related` of a question declares.

    Each is a text: `A implies B`, also longer; `exactly one of A, B, C`; `at most one of A, B, C`; or
    `BOTH = GIVEN * CONDITION` for P(A and B) = P(A given B) · P(B). A claim is the id of a question, the beginning of
    one, or `this`; with several targets, `id:target`.

    Raises:
        InputError: If a relation cannot be read, or names a question or target that does not exist.
    """
    known = {other.id: other for other in (*questions, standing)}
    return [_declared(text, standing.id, known) for text in _declared_texts(standing)]


def _declared_texts(standing: StandingQuestion) -> list[str]:
    declared = standing.settings.get("watch", {}).get("related", ())
    return [declared] if isinstance(declared, str) else [str(text) for text in declared]


def _declared(text: str, itself: str, known: Mapping[str, StandingQuestion]) -> RelatedGroup:
    def claims(parts: Iterable[str], least: int) -> tuple[str, ...]:
        names = tuple(_claim(part, itself, known, text) for part in parts)
        if len(names) < least or len(set(names)) < len(names):
            raise _unreadable(text, "names too few claims, or one twice")
        return names

    words = " ".join(text.split())
    if match := re.fullmatch(r"(exactly|at most) one of (.+)", words, re.IGNORECASE):
        rule = "exactly one" if match[1].lower() == "exactly" else "at most one"
        relation = ExclusiveClaims(names=claims(match[2].split(","), 2), rule=rule)
        return RelatedGroup(kind="exclusive", relation=relation, origin="declared")
    if match := re.fullmatch(r"(.+?) = (.+?) \* (.+)", words):
        both, given, condition = claims(match.groups(), 3)
        product = ConditionalClaims(both=both, given=given, condition=condition)
        return RelatedGroup(kind="conditional", relation=product, origin="declared")
    if " implies " in words:
        chain = implication(*claims(words.split(" implies "), 2))
        return RelatedGroup(kind="implies", relation=chain, origin="declared")
    raise _unreadable(text, "is not a relation")


def _claim(text: str, itself: str, known: Mapping[str, StandingQuestion], whole: str) -> str:
    id, _, target = text.strip().partition(":")
    id = itself if id == ITSELF else id
    matches = [name for name in known if name == id] or [name for name in known if id and name.startswith(id)]
    if len(matches) != 1:
        several = f"{id!r} is the beginning of several questions" if matches else f"no question {id!r} is watched"
        raise _unreadable(whole, several, hint=known_names(id, sorted(known)))
    targets = [each.id for each in known[matches[0]].question.targets]
    if len(targets) == 1 and target in ("", targets[0]):
        return matches[0]
    if target not in targets:
        hint = f"write {matches[0]}:TARGET; {known_names(target, targets)}"
        raise _unreadable(whole, f"{matches[0]} has no target {target!r}", hint=hint)
    return claim_name(matches[0], target, len(targets))


def _unreadable(text: str, problem: str, hint: str = FORMS) -> InputError:
    return InputError(f"{text!r}: {problem}", column="watch.related", hint=hint)
