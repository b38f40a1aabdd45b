"""Ways to elicit probabilities from a model: the prompts, the kinds of answers, and how replies are parsed.

The first eight are those of Prophet Arena (2025, appendix D.3); `scaffold` asks for structured reasons first (appendix
D.7).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, Literal, cast

from foretell.forecasters.agent.answer_format import read_number, target_keys
from foretell.forecasters.agent.prompts import memory_rule
from foretell.forecasters.forecaster import prompt_template
from foretell.forecasters.prompt.prediction_context import PredictionContext
from foretell.forecasters.prompt.rendering import ContextView, render
from foretell.frozen import frozen
from foretell.models.model import Message, SystemMessage, UserMessage
from foretell.models.structured_output import UnusableReply, closed_object, without_repeats
from foretell.questions.as_of import AsOfMode
from foretell.questions.errors import InputError
from foretell.questions.forecast import check_sides
from foretell.questions.question import Exclusivity, Question

# Parsing a model's answers: outcomes are matched by name, common notations are accepted, ambiguous ones are not.

LONGEST_RATIONALE = 6_000
NAMED = 5
"""Maximum number of outcomes named in one error message."""
MOST_ENTRIES = 5_000
YES, NO = frozenset({"yes", "true", "y", "1"}), frozenset({"no", "false", "n", "0"})


@frozen
class ElicitedAnswer:
    """The parsed content of one reply."""

    p: Mapping[str, float]
    """Values by target id: probabilities, or 0 and 1 if a decision was asked for."""
    rationale: str = ""
    confidence: Mapping[str, float] = field(default_factory=dict[str, float])
    """Confidence by target id, if it was asked for."""
    notes: tuple[str, ...] = ()
    """What had to be repaired."""


@frozen
class OutcomeNames:
    """The outcomes of a question by all names that a model may use for them."""

    keys: Mapping[str, str]
    """Target id by the key given to the model."""
    names: Mapping[str, str]
    """Target id by key, id or label as written."""
    folded: Mapping[str, str]
    """Target id by normalised name (see `_fold`), if that name is unambiguous."""
    exclusivity: Exclusivity

    @classmethod
    def of(cls, question: Question) -> "OutcomeNames":
        """Return the names of a question's outcomes. A single outcome may also be called yes."""
        keys = target_keys(question)
        pairs = [(key, target.id) for key, target in zip(keys, question.targets, strict=True)]
        pairs += [(target.id, target.id) for target in question.targets]
        pairs += [(target.label, target.id) for target in question.targets if target.label]
        if len(question.targets) == 1:
            pairs.append(("yes", question.targets[0].id))
        folds = [(_fold(name), target) for name, target in pairs if _fold(name)]
        return cls(keys=keys, names=_only(pairs), folded=_only(folds), exclusivity=question.exclusivity)

    def find(self, name: str) -> str | None:
        """Return the target with a name; None if the name is unknown or ambiguous."""
        return self.keys.get(name) or self.names.get(name) or self.folded.get(_fold(name))


def read_probabilities(reply: Mapping[str, Any], outcomes: OutcomeNames) -> ElicitedAnswer:
    """Return one probability for every outcome. Raises `UnusableReply` if the answer is invalid.

    Accepted, with a note: other spellings, lists of pairs, numbers as text, percentages, unknown outcomes.

    >>> from foretell.questions.question import Target
    >>> q = Question(id="q", source="own", text="?", due="2026-01-10", targets=(Target(id="A"), Target(id="B")))
    >>> read_probabilities({"probabilities": {"a": "30 %", "B": 0.5, "C": 1}}, OutcomeNames.of(q)).p
    {'A': 0.3, 'B': 0.5}
    """
    entries = _entries(reply, ("probabilities", "probability", "p"), outcomes)
    values, notes = _by_target(entries, outcomes)
    numbers, number_notes = _probabilities(values, outcomes)
    _check_no(entries, numbers, outcomes)
    if outcomes.exclusivity == "exactly one" and not sum(numbers.values()) > 0:
        raise UnusableReply("exactly one outcome comes true, so they cannot all have probability 0")
    p = {target: numbers[target] for target in outcomes.keys.values()}
    return ElicitedAnswer(p=p, rationale=rationale_in(reply), notes=(*notes, *number_notes))


def read_votes(reply: Mapping[str, Any], outcomes: OutcomeNames, *, confident: bool = False) -> ElicitedAnswer:
    """Return yes or no for every outcome, and the confidence if asked for. Raises `UnusableReply` if invalid."""
    values, notes = _by_target(_entries(reply, ("answers", "answer", "decisions", "votes"), outcomes), outcomes)
    p = _each(values, outcomes, _vote)
    sure = _each(values, outcomes, _confidence) if confident else {}
    return ElicitedAnswer(p=p, confidence=sure, rationale=rationale_in(reply), notes=notes)


def _each(values: Mapping[str, Any], outcomes: OutcomeNames, read: Callable[[Any], float]) -> dict[str, float]:
    """Return the value of each outcome as a number. Raises `UnusableReply` if one cannot be parsed."""
    numbers: dict[str, float] = {}
    wrong: list[str] = []
    for key, target in outcomes.keys.items():
        try:
            numbers[target] = read(values[target])
        except ValueError as problem:
            wrong.append(f"{key} {problem}")
    if wrong:
        raise UnusableReply("; ".join(wrong[:NAMED]))
    return numbers


def rationale_in(reply: Mapping[str, Any]) -> str:
    """Return the rationale as one text; lists and objects are joined."""
    rationale = next((reply[name] for name in ("rationale", "reason", "reasoning") if name in reply), "")
    if isinstance(rationale, Mapping):
        rationale = "\n".join(f"{name}: {part}" for name, part in cast("Mapping[str, Any]", rationale).items())
    if isinstance(rationale, list):
        rationale = "\n".join(str(part) for part in cast("list[Any]", rationale)[:100])
    return rationale.strip()[:LONGEST_RATIONALE] if isinstance(rationale, str) else ""


def _entries(reply: Mapping[str, Any], fields: Sequence[str], outcomes: OutcomeNames) -> Mapping[str, Any]:
    """Return values by name, from the expected field, a list of pairs, or the top level of the answer."""
    values = next((reply[name] for name in fields if reply.get(name) is not None), None)
    if values is None:
        known = {name: part for name, part in reply.items() if outcomes.find(name) is not None}
        values = known and known | {name: part for name, part in reply.items() if _fold(name) == "no"}
        if not values:
            raise UnusableReply(f"`{fields[0]}` is missing")
    if isinstance(values, list):
        values = _paired(cast("list[Any]", values), fields[0])
    if not isinstance(values, Mapping):
        if len(outcomes.keys) > 1:
            raise UnusableReply(f"`{fields[0]}` must be an object with one entry for every outcome")
        return {next(iter(outcomes.keys)): values}
    entries = cast("Mapping[Any, Any]", values)
    if len(entries) > MOST_ENTRIES:
        raise UnusableReply(f"`{fields[0]}` has {len(entries)} entries")
    return {str(name): part for name, part in entries.items()}


def _check_no(entries: Mapping[str, Any], numbers: Mapping[str, float], outcomes: OutcomeNames) -> None:
    """Raise `UnusableReply` if the only outcome has a probability and so has no, and both do not sum to 1."""
    no = next((part for name, part in entries.items() if _fold(name) == "no" and outcomes.find(name) is None), None)
    if no is None or len(numbers) != 1:
        return
    (yes,) = numbers.values()
    try:
        stated = _number(no)
        check_sides(yes, stated / 100 if stated > 1 else stated)
    except ValueError as error:
        raise UnusableReply(str(error)) from None


def _paired(items: list[Any], field: str) -> dict[str, Any]:
    """Convert [{"outcome": …, "probability": …}, …] to a mapping."""
    pairs: dict[str, Any] = {}
    for item in items[: MOST_ENTRIES + 1]:
        row = cast("Mapping[str, Any]", item) if isinstance(item, Mapping) else {}
        name = next((row[key] for key in ("outcome", "name", "key", "id") if isinstance(row.get(key), str)), None)
        if name is None or name in pairs:
            raise UnusableReply(f"`{field}` must be an object with one entry for every outcome, not a list")
        rest = {key: part for key, part in row.items() if part != name}
        number = next((rest[key] for key in ("probability", "p", "value") if key in rest), None)
        pairs[name] = rest if number is None else number
    return pairs


def _by_target(entries: Mapping[str, Any], outcomes: OutcomeNames) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return values by target, and notes. Every target must be present, and none with two different values."""
    values: dict[str, Any] = {}
    extra = respelt = 0
    for name, value in entries.items():
        target = outcomes.find(name)
        if target is None:
            extra += 1
            continue
        if target in values and values[target] != value:
            raise UnusableReply(f"{name[:60]!r} is there twice, with different numbers")
        respelt += outcomes.keys.get(name) != target
        values[target] = value
    missing = [key for key, target in outcomes.keys.items() if target not in values]
    if missing:
        text = ", ".join(f"`{key}`" for key in missing[:NAMED]) + (" and others" if len(missing) > NAMED else "")
        raise UnusableReply(f"{text} missing; give exactly the outcomes that are listed, under their names")
    notes = [f"{extra} unknown outcomes ignored"] if extra else []
    return values, (*notes, *([f"{respelt} outcomes under other names"] if respelt else []))


def _probabilities(entries: Mapping[str, Any], outcomes: OutcomeNames) -> tuple[dict[str, float], tuple[str, ...]]:
    numbers = _each(entries, outcomes, _number)
    if all(0 <= number <= 1 for number in numbers.values()):
        return numbers, ()
    # Whole numbers up to 100, or exclusive options that sum to 100, must be percentages; 1.2 alone is ambiguous.
    values = numbers.values()
    whole = all(number % 1 == 0 for number in values) or (
        outcomes.exclusivity != "independent" and abs(sum(values) - 100) <= 1
    )
    if whole and all(0 <= number <= 100 for number in values):
        return {target: number / 100 for target, number in numbers.items()}, ("percentages converted",)
    off = next(key for key, target in outcomes.keys.items() if not 0 <= numbers[target] <= 1)
    raise UnusableReply(f"{off} is {numbers[outcomes.keys[off]]:g}; probabilities are numbers from 0 to 1")


def _number(value: Any) -> float:
    """Parse a finite number, also as text, as "35 %" or inside an object."""
    return read_number(_inner(value, "probability", "p", "value"))


def _inner(value: Any, *names: str) -> Any:
    """Return the value of an object under the first of these names; any other value unchanged."""
    if not isinstance(value, Mapping):
        return value
    inner = cast("Mapping[str, Any]", value)
    return next((inner[name] for name in names if name in inner), None)


def _vote(value: Any) -> float:
    value = _inner(value, "answer", "decision", "vote")
    word = _fold(str(value)) if isinstance(value, str | int | bool) else ""
    if word in YES or word in NO:
        return float(word in YES)
    raise ValueError(f"is {repr(value)[:40]}, not yes or no")


def _confidence(value: Any) -> float:
    confidence = cast("Mapping[str, Any]", value).get("confidence") if isinstance(value, Mapping) else None
    try:
        number = _number(confidence)
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
    """Return targets by name, for the names of exactly one target."""
    targets_by_name: dict[str, set[str]] = {}
    for name, target in pairs:
        targets_by_name.setdefault(name, set()).add(target)
    return {name: next(iter(targets)) for name, targets in targets_by_name.items() if len(targets) == 1}


Reader = Callable[[Mapping[str, Any]], ElicitedAnswer]


# Elicitations.

Kind = Literal["probability", "complement", "vote", "confident"]
"""The kind of answer for every outcome: probability of yes or of no, yes/no decision, or decision with confidence."""
ASKED: tuple[Kind, ...] = ("probability", "complement", "vote", "confident")
ENOUGH = 0.5
"""Minimum share of the replies of one kind that must be usable."""


@frozen
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


@frozen
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
        """Return all calls to make, in order; they are independent."""
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
    return {target: sum(answer.p[target] for answer in answers) / len(answers) for target in answers[0].p}


def _shares(answers: Sequence[ElicitedAnswer]) -> dict[str, float]:
    """Return the weighted share of yes; if all weights are zero, all votes count equally."""
    return {
        target: _share([(answer.p[target], answer.confidence.get(target, 1.0)) for answer in answers])
        for target in answers[0].p
    }


def _share(votes: Iterable[tuple[float, float]]) -> float:
    votes = list(votes)
    weight = sum(w for _, w in votes)
    return sum(yes * w for yes, w in votes) / weight if weight > 0 else sum(yes for yes, _ in votes) / len(votes)


PROMPTS = ("default", "concise", "verbose", "rewrite")
ELICITATIONS: Mapping[str, Elicitation] = {
    elicitation.name: elicitation
    for elicitation in (
        *(Elicitation(name=wording, wordings=(wording,)) for wording in PROMPTS),
        Elicitation(name="ensemble", wordings=PROMPTS),
        Elicitation(name="bi-directional", complement=True),
        Elicitation(name="self-consistency", votes=10),
        Elicitation(name="weighted self-consistency", votes=10, weighted=True),
        Elicitation(name="scaffold", wordings=("scaffold",)),
    )
}


def read_elicitation(value: str | Elicitation) -> Elicitation:
    """Look up an elicitation by name; spaces may be written as hyphens."""
    if isinstance(value, Elicitation):
        return value
    by_name = {name.replace(" ", "-"): elicitation for name, elicitation in ELICITATIONS.items()}
    elicitation = by_name.get(str(value).replace(" ", "-"))
    if elicitation is None:
        raise InputError(f"there is no way of asking {value!r}", hint=f"ways are {', '.join(by_name)}")
    return elicitation


# The prompt: an instruction by wording and kind of answer, and the rendered context.

THOUGHTS = "your thoughts, in full, before any number"
REPORT = "the five parts, each under its name, in a few sentences"
EXAMPLES: Mapping[Kind, str] = {
    "probability": "<number>",
    "complement": "<number>",
    "vote": '"<yes or no>"',
    "confident": '{"answer": "<yes or no>", "confidence": <number>}',
}
TASKS: Mapping[Kind, str] = {
    "probability": "Give the probability of every outcome that is listed.",
    "complement": "Give the probability of the opposite of every outcome that is listed.",
    "vote": "Decide for every outcome that is listed whether it comes true.",
    "confident": "Decide for every outcome that is listed whether it comes true, and say how sure you are.",
}
"""What is asked for, by the kind of answer."""
SCORED_PROBABILITIES = (
    "Your probabilities are scored by their squared distance from what happens. Neither boldness nor caution is "
    "rewarded: write the number you would bet at in both directions."
)
SCORED_DECISIONS = "Your decisions are compared with what happens."
MOST_SHOWN = 3
"""Maximum number of outcomes in the example of an answer."""


wording = partial(prompt_template, "prompt/wording")


@frozen
class PromptCall:
    """A request about one context, with the parser for its reply."""

    messages: tuple[Message, ...]
    schema: Mapping[str, Any]
    read: Reader


def call_of(
    ask: ElicitationCall, context: PredictionContext, view: ContextView, mode: AsOfMode | None = None
) -> PromptCall:
    """Prepare a call. The second message is the same for all models, wordings and kinds of answer.

    `mode` is that of the forecast, if it is not the one in which the context was gathered.
    """
    outcomes = OutcomeNames.of(context.question)
    live = (mode or context.as_of.mode) == "live"
    messages = (
        SystemMessage(text=_instruction(ask, outcomes, live=live)),
        UserMessage(text=render(context, view), cached=True),
    )
    return PromptCall(messages=messages, schema=_schema(ask.kind, outcomes), read=_reader(ask.kind, outcomes))


def _instruction(ask: ElicitationCall, outcomes: OutcomeNames, *, live: bool) -> str:
    names = list(outcomes.keys)
    shown = ", ".join(f'"{name}": {EXAMPLES[ask.kind]}' for name in names[:MOST_SHOWN])
    example = f"{shown}, …" if len(names) > MOST_SHOWN else shown
    length = REPORT if ask.wording == "scaffold" else THOUGHTS
    form = wording(f"answer_{ask.kind}").substitute(example=example, length=length)
    scored = SCORED_DECISIONS if ask.kind in ("vote", "confident") else SCORED_PROBABILITIES
    task = wording(ask.wording).substitute(task=TASKS[ask.kind], scored=scored)
    return f"{task}\n\n{form}\n{memory_rule(live=live, tools=False)}"


def _schema(kind: Kind, outcomes: OutcomeNames) -> dict[str, Any]:
    number: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}
    decision: dict[str, Any] = {"type": "string", "enum": ["yes", "no"]}
    answer = {
        "probability": number,
        "complement": number,
        "vote": decision,
        "confident": closed_object({"answer": decision, "confidence": number}),
    }[kind]
    field = "answers" if kind in ("vote", "confident") else "probabilities"
    answers = closed_object(dict.fromkeys(outcomes.keys, answer))
    return without_repeats(closed_object({"rationale": {"type": "string"}, field: answers}))


def _reader(kind: Kind, outcomes: OutcomeNames) -> Reader:
    if kind in ("vote", "confident"):
        return partial(read_votes, outcomes=outcomes, confident=kind == "confident")
    return partial(read_probabilities, outcomes=outcomes)
