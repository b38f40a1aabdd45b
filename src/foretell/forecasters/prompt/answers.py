"""Reading what a model says about outcomes: by name, in any usual way of writing, and never by guessing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from foretell.forecasters.agent.answer_format import read_number, target_keys
from foretell.models.structured_output import UnusableReply
from foretell.questions.question import Exclusivity, Question

LONGEST_RATIONALE = 6_000
NAMED = 5
"""Outcomes named in one complaint."""
MOST_ENTRIES = 5_000
YES, NO = frozenset({"yes", "true", "y", "1"}), frozenset({"no", "false", "n", "0"})


@dataclass(frozen=True, kw_only=True)
class ElicitedAnswer:
    """What one reply says."""

    p: Mapping[str, float]
    """By target id: probabilities, or 0 and 1 where a decision was asked for."""
    rationale: str = ""
    confidence: Mapping[str, float] = field(default_factory=dict[str, float])
    """By target id, where it was asked for."""
    notes: tuple[str, ...] = ()
    """What had to be repaired."""


@dataclass(frozen=True, kw_only=True)
class OutcomeNames:
    """The outcomes of a question under all names a model may use for them."""

    keys: Mapping[str, str]
    """Target id by the key the model was told."""
    names: Mapping[str, str]
    """Target id by key, id or label as written."""
    folded: Mapping[str, str]
    """Target id by name without case and dressing, where that names only one."""
    exclusivity: Exclusivity

    @classmethod
    def of(cls, question: Question) -> "OutcomeNames":
        """Those of a question. An only outcome may also be called yes."""
        keys = target_keys(question)
        pairs = [(key, target.id) for key, target in zip(keys, question.targets, strict=True)]
        pairs += [(target.id, target.id) for target in question.targets]
        pairs += [(target.label, target.id) for target in question.targets if target.label]
        if len(question.targets) == 1:
            pairs.append(("yes", question.targets[0].id))
        folds = [(_fold(name), target) for name, target in pairs if _fold(name)]
        return cls(keys=keys, names=_only(pairs), folded=_only(folds), exclusivity=question.exclusivity)

    def find(self, name: str) -> str | None:
        """The target a name stands for; None where it stands for none, or for several."""
        return self.keys.get(name) or self.names.get(name) or self.folded.get(_fold(name))


def read_probabilities(said: Mapping[str, Any], outcomes: OutcomeNames) -> ElicitedAnswer:
    """One probability for every outcome, or `UnusableReply` with everything that is wrong.

    Repaired and noted: names in other spelling, lists of pairs, text, percentages, outcomes that nobody asked for.

    >>> from foretell.questions.question import Target
    >>> q = Question(id="q", source="own", text="?", due="2026-01-10", targets=(Target(id="A"), Target(id="B")))
    >>> read_probabilities({"probabilities": {"a": "30 %", "B": 0.5, "C": 1}}, OutcomeNames.of(q)).p
    {'A': 0.3, 'B': 0.5}
    """
    found, notes = _by_target(_entries(said, ("probabilities", "probability", "p"), outcomes), outcomes)
    numbers, more = _probabilities(found, outcomes)
    if outcomes.exclusivity == "exactly one" and not sum(numbers.values()) > 0:
        raise UnusableReply("exactly one outcome comes true, so they cannot all have probability 0")
    p = {target: numbers[target] for target in outcomes.keys.values()}
    return ElicitedAnswer(p=p, rationale=rationale_in(said), notes=(*notes, *more))


def read_votes(said: Mapping[str, Any], outcomes: OutcomeNames, *, confident: bool = False) -> ElicitedAnswer:
    """Yes or no for every outcome, with how sure the model is where it was asked; or `UnusableReply`."""
    found, notes = _by_target(_entries(said, ("answers", "answer", "decisions", "votes"), outcomes), outcomes)
    p = _each(found, outcomes, _vote)
    sure = _each(found, outcomes, _confidence) if confident else {}
    return ElicitedAnswer(p=p, confidence=sure, rationale=rationale_in(said), notes=notes)


def _each(found: Mapping[str, Any], outcomes: OutcomeNames, read: Callable[[Any], float]) -> dict[str, float]:
    """What is said of each outcome as a number, or `UnusableReply` with the first that cannot be read."""
    numbers: dict[str, float] = {}
    wrong: list[str] = []
    for key, target in outcomes.keys.items():
        try:
            numbers[target] = read(found[target])
        except ValueError as problem:
            wrong.append(f"{key} {problem}")
    if wrong:
        raise UnusableReply("; ".join(wrong[:NAMED]))
    return numbers


def rationale_in(said: Mapping[str, Any]) -> str:
    """The reasons, however they were written."""
    given = next((said[name] for name in ("rationale", "reason", "reasoning") if name in said), "")
    if isinstance(given, Mapping):
        given = "\n".join(f"{name}: {part}" for name, part in cast("Mapping[str, Any]", given).items())
    if isinstance(given, list):
        given = "\n".join(str(part) for part in cast("list[Any]", given)[:100])
    return given.strip()[:LONGEST_RATIONALE] if isinstance(given, str) else ""


def _entries(said: Mapping[str, Any], fields: Sequence[str], outcomes: OutcomeNames) -> Mapping[str, Any]:
    """Names with what is said of them: under its field, as a list of pairs, or at the top of the answer."""
    given = next((said[name] for name in fields if said.get(name) is not None), None)
    if given is None:
        given = {name: part for name, part in said.items() if outcomes.find(name) is not None}
        if not given:
            raise UnusableReply(f"`{fields[0]}` is missing")
    if isinstance(given, list):
        given = _paired(cast("list[Any]", given), fields[0])
    if not isinstance(given, Mapping):
        if len(outcomes.keys) > 1:
            raise UnusableReply(f"`{fields[0]}` must be an object with one entry for every outcome")
        return {next(iter(outcomes.keys)): given}
    entries = cast("Mapping[Any, Any]", given)
    if len(entries) > MOST_ENTRIES:
        raise UnusableReply(f"`{fields[0]}` has {len(entries)} entries")
    return {str(name): part for name, part in entries.items()}


def _paired(items: list[Any], text: str) -> dict[str, Any]:
    """[{"outcome": …, "probability": …}, …] as a mapping."""
    pairs: dict[str, Any] = {}
    for item in items[: MOST_ENTRIES + 1]:
        row = cast("Mapping[str, Any]", item) if isinstance(item, Mapping) else {}
        name = next((row[key] for key in ("outcome", "name", "key", "id") if isinstance(row.get(key), str)), None)
        if name is None or name in pairs:
            raise UnusableReply(f"`{text}` must be an object with one entry for every outcome, not a list")
        rest = {key: part for key, part in row.items() if part != name}
        number = next((rest[key] for key in ("probability", "p", "value") if key in rest), None)
        pairs[name] = rest if number is None else number
    return pairs


def _by_target(entries: Mapping[str, Any], outcomes: OutcomeNames) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What is said of each target; every one must be there, and none in two ways."""
    found: dict[str, Any] = {}
    extra = respelt = 0
    for name, said in entries.items():
        target = outcomes.find(name)
        if target is None:
            extra += 1
            continue
        if target in found and found[target] != said:
            raise UnusableReply(f"{name[:60]!r} is there twice, with different numbers")
        respelt += outcomes.keys.get(name) != target
        found[target] = said
    missing = [key for key, target in outcomes.keys.items() if target not in found]
    if missing:
        text = ", ".join(f"`{key}`" for key in missing[:NAMED]) + (" and others" if len(missing) > NAMED else "")
        raise UnusableReply(f"{text} missing; give exactly the outcomes that are listed, under their names")
    notes = [f"{extra} outcomes that nobody asked about left out"] if extra else []
    return found, (*notes, *([f"{respelt} outcomes named in another way"] if respelt else []))


def _probabilities(found: Mapping[str, Any], outcomes: OutcomeNames) -> tuple[dict[str, float], tuple[str, ...]]:
    numbers = _each(found, outcomes, _number)
    if all(0 <= number <= 1 for number in numbers.values()):
        return numbers, ()
    # Whole numbers up to 100, or fractions of options that sum to a hundred, can only be percentages; 1.2 alone may be
    # anything.
    values = numbers.values()
    whole = all(number % 1 == 0 for number in values) or (
        outcomes.exclusivity != "independent" and abs(sum(values) - 100) <= 1
    )
    if whole and all(0 <= number <= 100 for number in values):
        return {target: number / 100 for target, number in numbers.items()}, ("percentages read as such",)
    off = next(key for key, target in outcomes.keys.items() if not 0 <= numbers[target] <= 1)
    raise UnusableReply(f"{off} is {numbers[outcomes.keys[off]]:g}; probabilities are numbers from 0 to 1")


def _number(value: Any) -> float:
    """A finite number, also as text, as "35 %" or inside an object; anything else is refused in words."""
    return read_number(_inner(value, "probability", "p", "value"))


def _inner(value: Any, *names: str) -> Any:
    """What an object holds under the first of the names it has; anything else as it is."""
    if not isinstance(value, Mapping):
        return value
    inner = cast("Mapping[str, Any]", value)
    return next((inner[name] for name in names if name in inner), None)


def _vote(said: Any) -> float:
    said = _inner(said, "answer", "decision", "vote")
    word = _fold(str(said)) if isinstance(said, str | int | bool) else ""
    if word in YES or word in NO:
        return float(word in YES)
    raise ValueError(f"is {repr(said)[:40]}, not yes or no")


def _confidence(said: Any) -> float:
    given = cast("Mapping[str, Any]", said).get("confidence") if isinstance(said, Mapping) else None
    try:
        number = _number(given)
    except ValueError:
        raise ValueError("has no confidence from 0 to 1") from None
    number = number / 100 if 1 < number <= 100 and number % 1 == 0 else number
    if not 0 <= number <= 1:
        raise ValueError(f"has the confidence {number:g}, not one from 0 to 1")
    return number


def _fold(name: str) -> str:
    """Without case, doubled blanks and dressing. What stands inside stays: 3.10 is not 310, and −5 is not 5."""
    return " ".join(name.casefold().split()).lstrip("`'\"*_ ").rstrip("`'\"*_.,:;!? ")


def _only(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Names that stand for one target and no other."""
    found: dict[str, set[str]] = {}
    for name, target in pairs:
        found.setdefault(name, set()).add(target)
    return {name: next(iter(targets)) for name, targets in found.items() if len(targets) == 1}


Reader = Callable[[Mapping[str, Any]], ElicitedAnswer]
