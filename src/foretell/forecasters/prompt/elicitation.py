"""Ways to elicit probabilities from a model, as data: the prompts, what they ask for, how replies become numbers.

The first eight are those of Prophet Arena (2025, appendix D.3); `scaffold` asks for the reasons part by part first
(appendix D.7).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, cast

from foretell.forecasters.agent.answer_format import read_number, target_keys
from foretell.forecasters.forecaster import prompt_template
from foretell.forecasters.prompt.prediction_context import PredictionContext
from foretell.forecasters.prompt.rendering import ContextView, render
from foretell.models.model import Message, SystemMessage, UserMessage
from foretell.models.structured_output import UnusableReply, closed_object, without_repeats
from foretell.questions.errors import InputError
from foretell.questions.question import Exclusivity, Question

# Parsing what a model says about outcomes: match them by name, accept any common notation, and never guess.

LONGEST_RATIONALE = 6_000
NAMED = 5
"""Maximum number of outcomes named in one error message."""
MOST_ENTRIES = 5_000
YES, NO = frozenset({"yes", "true", "y", "1"}), frozenset({"no", "false", "n", "0"})


@dataclass(frozen=True, kw_only=True)
class ElicitedAnswer:
    """The parsed content of one reply."""

    p: Mapping[str, float]
    """Values by target id: probabilities, or 0 and 1 if a decision was asked for."""
    rationale: str = ""
    confidence: Mapping[str, float] = field(default_factory=dict[str, float])
    """Confidence by target id, if it was asked for."""
    notes: tuple[str, ...] = ()
    """What had to be repaired."""


@dataclass(frozen=True, kw_only=True)
class OutcomeNames:
    """The outcomes of a question under all names that a model may use for them."""

    keys: Mapping[str, str]
    """Target id by the key given to the model."""
    names: Mapping[str, str]
    """Target id by key, id or label as written."""
    folded: Mapping[str, str]
    """Target id by normalised name (see `_fold`), if that name is unambiguous."""
    exclusivity: Exclusivity

    @classmethod
    def of(cls, question: Question) -> "OutcomeNames":
        """The names of a question's outcomes. If there is only one outcome it may also be called yes."""
        keys = target_keys(question)
        pairs = [(key, target.id) for key, target in zip(keys, question.targets, strict=True)]
        pairs += [(target.id, target.id) for target in question.targets]
        pairs += [(target.label, target.id) for target in question.targets if target.label]
        if len(question.targets) == 1:
            pairs.append(("yes", question.targets[0].id))
        folds = [(_fold(name), target) for name, target in pairs if _fold(name)]
        return cls(keys=keys, names=_only(pairs), folded=_only(folds), exclusivity=question.exclusivity)

    def find(self, name: str) -> str | None:
        """The target that a name stands for; None if the name is unknown or ambiguous."""
        return self.keys.get(name) or self.names.get(name) or self.folded.get(_fold(name))


def read_probabilities(said: Mapping[str, Any], outcomes: OutcomeNames) -> ElicitedAnswer:
    """Return one probability for every outcome, or raise `UnusableReply` with what is wrong.

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
    """Return yes or no for every outcome, with the confidence if that was asked for; or raise `UnusableReply`."""
    found, notes = _by_target(_entries(said, ("answers", "answer", "decisions", "votes"), outcomes), outcomes)
    p = _each(found, outcomes, _vote)
    sure = _each(found, outcomes, _confidence) if confident else {}
    return ElicitedAnswer(p=p, confidence=sure, rationale=rationale_in(said), notes=notes)


def _each(found: Mapping[str, Any], outcomes: OutcomeNames, read: Callable[[Any], float]) -> dict[str, float]:
    """The value of each outcome as a number, or `UnusableReply` with the first ones that cannot be parsed."""
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
    """The rationale as one text, in whatever form it was written."""
    given = next((said[name] for name in ("rationale", "reason", "reasoning") if name in said), "")
    if isinstance(given, Mapping):
        given = "\n".join(f"{name}: {part}" for name, part in cast("Mapping[str, Any]", given).items())
    if isinstance(given, list):
        given = "\n".join(str(part) for part in cast("list[Any]", given)[:100])
    return given.strip()[:LONGEST_RATIONALE] if isinstance(given, str) else ""


def _entries(said: Mapping[str, Any], fields: Sequence[str], outcomes: OutcomeNames) -> Mapping[str, Any]:
    """Values by name: from the expected field, a list of pairs, or the top level of the answer."""
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
    """Convert [{"outcome": …, "probability": …}, …] to a mapping."""
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
    """Values by target, and notes; every target must be present, and none with two different values."""
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
    """Parse a finite number, also given as text, as "35 %" or inside an object; the error says what is wrong."""
    return read_number(_inner(value, "probability", "p", "value"))


def _inner(value: Any, *names: str) -> Any:
    """The value of an object under the first of these names that it has; return anything else as it is."""
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
    """Normalise case, spaces and surrounding punctuation; the inside stays: 3.10 is not 310, and −5 is not 5."""
    return " ".join(name.casefold().split()).lstrip("`'\"*_ ").rstrip("`'\"*_.,:;!? ")


def _only(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Targets by name, for the names that stand for exactly one target."""
    found: dict[str, set[str]] = {}
    for name, target in pairs:
        found.setdefault(name, set()).add(target)
    return {name: next(iter(targets)) for name, targets in found.items() if len(targets) == 1}


Reader = Callable[[Mapping[str, Any]], ElicitedAnswer]


# Ways of asking.

Kind = Literal["probability", "complement", "vote", "confident"]
"""What is asked about every outcome: the probability of yes or of no, a yes/no decision, or one with confidence."""
ASKED: tuple[Kind, ...] = ("probability", "complement", "vote", "confident")
ENOUGH = 0.5
"""Minimum share of the replies of one kind that must be usable."""


@dataclass(frozen=True, kw_only=True)
class ElicitationCall:
    """One call to the model: which text, which kind of answer, and a number."""

    wording: str
    """Name of the text that asks."""
    kind: Kind = "probability"
    number: int = 0
    """Distinguishes calls with the same text."""

    @property
    def name(self) -> str:
        """The name in journals: the same call has the same name in every run."""
        return f"{self.kind} {self.wording} {self.number}"


@dataclass(frozen=True, kw_only=True)
class Elicitation:
    """One way of asking. Variants differ in these values and in nothing else.

    >>> [ask.name for ask in Elicitation(name="both ways", complement=True).asks()]
    ['probability default 0', 'complement default 0']
    """

    name: str
    wordings: tuple[str, ...] = ("default",)
    """Names of the prompt texts. Each is asked once, and their probabilities are averaged."""
    complement: bool = False
    """Also ask how likely each outcome does not come true, and take ½(p + 1 − p°)."""
    votes: int = 0
    """Number of decisions to ask for instead of probabilities; the probability is the share of yes."""
    weighted: bool = False
    """Weight every vote by its confidence: Σ c·yes / Σ c (after Taubenfeld et al. 2025, without their softmax)."""

    def __post_init__(self) -> None:
        if not self.wordings or self.votes < 0:
            raise ValueError("an elicitation needs at least one wording and no negative number of votes")
        if self.votes and (self.complement or len(self.wordings) > 1):
            raise ValueError("votes are asked for with one wording and in one direction")
        if self.weighted and not self.votes:
            raise ValueError("only votes have weights")

    def asks(self) -> tuple[ElicitationCall, ...]:
        """All calls to make, in order; they do not see each other."""
        if self.votes:
            kind: Kind = "confident" if self.weighted else "vote"
            return tuple(ElicitationCall(wording=self.wordings[0], kind=kind, number=n) for n in range(self.votes))
        kinds: tuple[Kind, ...] = ("probability", "complement") if self.complement else ("probability",)
        return tuple(ElicitationCall(wording=wording, kind=kind) for wording in self.wordings for kind in kinds)

    def pool(self, answers: Sequence[tuple[ElicitationCall, ElicitedAnswer]]) -> dict[str, float] | None:
        """Pool the answers to one probability for every outcome; None if too few calls were answered."""
        groups = {kind: [answer for ask, answer in answers if ask.kind == kind] for kind in ASKED}
        for kind in {ask.kind for ask in self.asks()}:
            wanted = sum(ask.kind == kind for ask in self.asks())
            if not groups[kind] or len(groups[kind]) < ENOUGH * wanted:
                return None
        if self.votes:
            return _shares(groups["confident"] or groups["vote"])
        yes = _mean(groups["probability"])
        if not self.complement:
            return yes
        no = _mean(groups["complement"])
        return {target: (p + 1 - no[target]) / 2 for target, p in yes.items()}


def _mean(answers: Sequence[ElicitedAnswer]) -> dict[str, float]:
    return {target: sum(one.p[target] for one in answers) / len(answers) for target in answers[0].p}


def _shares(answers: Sequence[ElicitedAnswer]) -> dict[str, float]:
    """The weighted share of yes; if all weights are zero, all votes count equally."""
    return {
        target: _share([(one.p[target], one.confidence.get(target, 1.0)) for one in answers]) for target in answers[0].p
    }


def _share(votes: Iterable[tuple[float, float]]) -> float:
    votes = list(votes)
    weight = sum(w for _, w in votes)
    return sum(yes * w for yes, w in votes) / weight if weight > 0 else sum(yes for yes, _ in votes) / len(votes)


PROMPTS = ("default", "concise", "verbose", "rewrite")
ELICITATIONS: Mapping[str, Elicitation] = {
    one.name: one
    for one in (
        *(Elicitation(name=wording, wordings=(wording,)) for wording in PROMPTS),
        Elicitation(name="ensemble", wordings=PROMPTS),
        Elicitation(name="bi-directional", complement=True),
        Elicitation(name="self-consistency", votes=10),
        Elicitation(name="weighted self-consistency", votes=10, weighted=True),
        Elicitation(name="scaffold", wordings=("scaffold",)),
    )
}


def read_elicitation(given: str | Elicitation) -> Elicitation:
    """Look up an elicitation by name; spaces may be written as hyphens."""
    if isinstance(given, Elicitation):
        return given
    by_name = {name.replace(" ", "-"): one for name, one in ELICITATIONS.items()}
    found = by_name.get(str(given).replace(" ", "-"))
    if found is None:
        raise InputError(f"there is no way of asking {given!r}", hint=f"ways are {', '.join(by_name)}")
    return found


# What a model is sent: an instruction by wording and kind of answer, and the context as it is rendered for all.

THOUGHTS = "your thoughts, in full, before any number"
REPORT = "the five parts, each under its name, in a few sentences"
EXAMPLES: Mapping[Kind, str] = {
    "probability": "<number>",
    "complement": "<number>",
    "vote": '"<yes or no>"',
    "confident": '{"answer": "<yes or no>", "confidence": <number>}',
}
MOST_SHOWN = 3
"""Maximum number of outcomes in the example of an answer."""


wording = partial(prompt_template, "prompt/wording")


@dataclass(frozen=True, kw_only=True)
class PromptCall:
    """One question about one context, ready to be sent, with the parser for its reply."""

    messages: tuple[Message, ...]
    schema: Mapping[str, Any]
    read: Reader


def call_of(ask: ElicitationCall, context: PredictionContext, view: ContextView) -> PromptCall:
    """Prepare a call. The second message is the same for all models, wordings and kinds of answer."""
    outcomes = OutcomeNames.of(context.question)
    messages = (SystemMessage(text=_instruction(ask, outcomes)), UserMessage(text=render(context, view), cached=True))
    return PromptCall(messages=messages, schema=_schema(ask.kind, outcomes), read=_reader(ask.kind, outcomes))


def _instruction(ask: ElicitationCall, outcomes: OutcomeNames) -> str:
    names = list(outcomes.keys)
    shown = ", ".join(f'"{name}": {EXAMPLES[ask.kind]}' for name in names[:MOST_SHOWN])
    example = f"{shown}, …" if len(names) > MOST_SHOWN else shown
    length = REPORT if ask.wording == "scaffold" else THOUGHTS
    form = wording(f"answer_{ask.kind}").substitute(example=example, length=length)
    return f"{wording(ask.wording).substitute()}\n\n{form}"


def _schema(kind: Kind, outcomes: OutcomeNames) -> dict[str, Any]:
    number: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}
    decision: dict[str, Any] = {"type": "string", "enum": ["yes", "no"]}
    one = {
        "probability": number,
        "complement": number,
        "vote": decision,
        "confident": closed_object({"answer": decision, "confidence": number}),
    }[kind]
    field = "answers" if kind in ("vote", "confident") else "probabilities"
    answers = closed_object(dict.fromkeys(outcomes.keys, one))
    return without_repeats(closed_object({"rationale": {"type": "string"}, field: answers}))


def _reader(kind: Kind, outcomes: OutcomeNames) -> Reader:
    if kind in ("vote", "confident"):
        return partial(read_votes, outcomes=outcomes, confident=kind == "confident")
    return partial(read_probabilities, outcomes=outcomes)
