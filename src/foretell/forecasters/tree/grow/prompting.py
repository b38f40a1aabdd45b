"""Ask a model for a JSON object; if a reply is unusable, ask again with the reason, a limited number of times."""

from collections.abc import Callable, Mapping, Sequence
from string import Template
from textwrap import shorten
from typing import Any, TypeVar

from foretell.forecasters.forecaster import Context, prompt_template
from foretell.forecasters.tree.proposition import Proposition
from foretell.frozen import frozen
from foretell.models.model import AssistantMessage, Message, Reply, SystemMessage, UserMessage
from foretell.models.names import ModelRole
from foretell.models.structured_output import (
    LONGEST_REPLY,
    NoUsableAnswer,
    UnusableReply,
    read_object,
    schema_errors,
)
from foretell.questions.as_of import AsOf
from foretell.questions.question import Exclusivity, Question

T = TypeVar("T")

LONGEST_REPORT = 8_000
"""Maximum length of a stored report, in characters."""
LONGEST_SENTENCE = 600


LONGEST_ERROR = 200
ATTEMPTS = 3
"""Maximum number of attempts to get a usable reply."""


@frozen
class StructuredRequest:
    """A request for one JSON object. It depends on the content and the position in the tree, never on timing."""

    role: ModelRole
    slot: str
    """Question, trial, tree, claim and purpose. Distinguishes otherwise equal requests; the same in every run."""
    system: str
    user: str
    schema: Mapping[str, Any]
    messages: tuple[Message, ...] = ()
    """Messages of the conversation after the first user message."""

    async def ask(self, context: Context, read: Callable[[Mapping[str, Any]], T]) -> T:
        """Ask, and parse the reply with `read`. Retries on `UnusableReply`; finally raises `NoUsableAnswer`."""
        model = context.model(self.role)
        messages = (SystemMessage(text=self.system), UserMessage(text=self.user, cached=True), *self.messages)
        problem = ""
        for attempt in range(ATTEMPTS):
            request = context.request(self.role, messages, slot=f"{self.slot}/{attempt}", schema=self.schema)
            reply = await model.complete(request)
            try:
                return read(read_answer(reply, self.schema))
            except UnusableReply as error:
                problem = str(error)
            # An empty reply is left out, because some providers reject it.
            if reply.text.strip():
                messages = (*messages, AssistantMessage(text=reply.text[:LONGEST_REPLY]))
            again = f"That could not be used: {problem}. Answer again, with one JSON object and nothing else."
            messages = (*messages, UserMessage(text=again))
        problem = shorten(problem, LONGEST_ERROR, placeholder=" …")
        raise NoUsableAnswer(f"no usable answer in {ATTEMPTS} attempts; the last: {problem}")


def read_answer(reply: Reply, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Parse the JSON object in a reply. Raises `UnusableReply` with the reason if it does not match the schema."""
    if reply.finish == "refusal":
        raise UnusableReply(
            "it was declined; this is an analysis of public matters, and a rough answer is better than none"
        )
    text = reply.text.strip() or (reply.calls[0].arguments if reply.calls else "")
    if not text:
        raise UnusableReply("it was empty" + (": the length limit was reached" * (reply.finish == "length")))
    # Unknown top-level fields are ignored; unknown names inside a field are errors.
    answer = {name: value for name, value in read_object(text).items() if name in schema["properties"]}
    if wrong := schema_errors(answer, schema):
        raise UnusableReply("; ".join(wrong[:8]))
    return answer


def read_report(answer: Mapping[str, Any]) -> tuple[str, str]:
    """Return the report and the key factor, both truncated."""
    report, factor = (str(answer.get(name) or "").strip() for name in ("report", "key_factor"))
    return report[:LONGEST_REPORT], factor[:LONGEST_SENTENCE]


TEXT: Mapping[str, Any] = {"type": "string"}
NUMBER: Mapping[str, Any] = {"type": "number"}
CHANCE: Mapping[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}


# How a tree's question and claims are described in prompts.

LONGEST_CRITERIA = 3_000
LONGEST_BACKGROUND = 4_000
DEEPEST_SHOWN = 8
"""Maximum number of claims of a path in a prompt; the root and the nearest claims are kept."""
MOST_SHOWN = 20
"""Maximum number of siblings, and of possible answers, in a prompt."""
ANSWERS: Mapping[Exclusivity, str] = {
    "exactly one": "Exactly one of these comes true:",
    "at most one": "At most one of these comes true, and possibly none:",
    "independent": "Each of these may come true or not:",
}


@frozen
class TreeQuestion:
    """The question behind a tree, seen as of a cutoff, and how models are asked about it."""

    question: Question
    as_of: AsOf
    claim: str = ""
    """The root claim."""
    target: str = ""
    """The id of the target that the root claim is about."""
    slot: str = ""
    """Distinguishes this tree from others of the same question and trial."""
    whole: bool = False
    """Whether one tree answers all targets of the question."""

    @property
    def today(self) -> str:
        """The date of the cutoff, in ISO format."""
        return self.as_of.at.date().isoformat()

    @property
    def rule_values(self) -> dict[str, str]:
        """Values of the prompt `rules`: the day, and the rule about memories, which differs in a backtest."""
        memory = "rules_live" if self.as_of.mode == "live" else "rules_past"
        return {"today": self.today, "memory": fill_prompts(memory)}

    def sections(self) -> tuple[tuple[str, str], ...]:
        """Return the texts that define the question, each with its heading; long ones are truncated."""
        question = self.question
        return (
            ("What is asked", question.text),
            ("Resolution criteria", question.criteria[:LONGEST_CRITERIA]),
            ("Background", question.background[:LONGEST_BACKGROUND]),
            ("Possible answers", self._answers()),
        )

    def _answers(self) -> str:
        """List the possible answers, if they are mutually exclusive or one tree answers all of them."""
        if self.question.exclusivity == "independent" and not self.whole:
            return ""
        labels = [target.label or target.id for target in self.question.targets]
        lines = [f"- {label[:LONGEST_SENTENCE]}" for label in labels[:MOST_SHOWN]]
        more = [f"- and {len(labels) - MOST_SHOWN} more"] if len(labels) > MOST_SHOWN else []
        return "\n".join([ANSWERS[self.question.exclusivity], *lines, *more])


@frozen
class ClaimSurroundings:
    """The ancestors and siblings of a claim; never the rest of the tree.

    This bounds what a model reads about the surroundings, however large the tree grows.
    """

    path: tuple[str, ...] = ()
    """Claims from the root down to the parent."""
    siblings: tuple[str, ...] = ()

    @classmethod
    def of(cls, nodes: Mapping[str, Proposition], parents: Mapping[str, Sequence[str]], id: str) -> "ClaimSurroundings":
        """Return the surroundings of a claim; if a claim has several parents, only the first counts."""
        above = list(parents[id][:1])
        siblings = [child for parent in above for child in nodes[parent].children if child != id]
        while above and (higher := parents[above[-1]][:1]):
            above += higher
        path = tuple(nodes[ancestor].claim for ancestor in reversed(above))
        return cls(path=path, siblings=tuple(nodes[sibling].claim for sibling in siblings))

    def above(self) -> tuple[str, str]:
        """Return a heading and the ancestors, as prompt text."""
        shown = self.path
        if len(shown) > DEEPEST_SHOWN:
            shown = (shown[0], "…", *shown[-DEEPEST_SHOWN + 2 :])
        return "Claims above, from the whole to the part", "\n".join(f"- {claim}" for claim in shown)

    def beside(self) -> tuple[str, str]:
        """Return a heading and the siblings, as prompt text."""
        shown = "\n".join(f"- {claim}" for claim in self.siblings[:MOST_SHOWN])
        return "Claims beside it, examined by others", shown


# Prompt texts are Markdown files in the folder `prompts`.

PromptText = str | Template
"""The name of a text in the folder `prompts`, or, for rules of other packages, a template with the text itself."""


def fill_prompts(*texts: PromptText, **values: object) -> str:
    """Concatenate prompt texts and fill in their placeholders."""
    templates = [text if isinstance(text, Template) else prompt_template("tree/prompts", text) for text in texts]
    return "\n\n".join(template.substitute(values) for template in templates)


def sections(*parts: tuple[str, str]) -> str:
    """Format headings with their texts, omitting empty ones.

    >>> print(sections(("Claim", "It rains."), ("Background", " ")))
    # Claim
    <BLANKLINE>
    It rains.
    """
    return "\n\n".join(f"# {heading}\n\n{text.strip()}" for heading, text in parts if text.strip())
