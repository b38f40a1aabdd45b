"""Ways to elicit probabilities from a model, as data: the prompts, what they ask for, how replies become numbers.

The first eight are those of Prophet Arena (2025, appendix D.3); `scaffold` asks for the reasons part by part first
(appendix D.7).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from string import Template
from typing import Any, Literal

from foretell.forecasters.prompt.answers import (
    ElicitedAnswer,
    OutcomeNames,
    Reader,
    read_probabilities,
    read_votes,
)
from foretell.forecasters.prompt.prediction_context import PredictionContext
from foretell.forecasters.prompt.rendering import ContextView, render
from foretell.models.model import Message, SystemMessage, UserMessage
from foretell.models.structured_output import closed_object, without_repeats
from foretell.questions.errors import InputError

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


@cache
def wording(name: str) -> Template:
    """Load a prompt text by its name."""
    text = files("foretell.forecasters.prompt").joinpath("wording", f"{name}.md").read_text(encoding="utf-8")
    return Template(text.strip())


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
