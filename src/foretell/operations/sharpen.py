"""Let a model make a typed question resolvable, and show or ask the wording that it proposes."""

import shlex
from dataclasses import field, replace
from typing import Any

from foretell.frozen import frozen
from foretell.models.budget import Budget
from foretell.models.journal import Journal
from foretell.models.ledger import Money
from foretell.models.model import ModelError
from foretell.operations.requests.asking import AskRequest
from foretell.operations.typed_question import typed_question, typed_run_spec
from foretell.questions.codec import plain_data
from foretell.questions.errors import NoAnswer
from foretell.questions.question import Question
from foretell.report.result import Result
from foretell.runs.runtime import models_of_run, open_runtime
from foretell.runs.settings import Settings, clock_of
from foretell.standing.question_checks import problems_of
from foretell.standing.record import Sharpening
from foretell.standing.sharpen import criteria_of, propose_wording

PARTS = {
    "decides": "decided by",
    "no_means": "no means",
    "edge_cases": "edge cases",
    "base_rate_class": "base rate",
}
"""What a wording states besides the question, and how it is headed."""


@frozen
class SharpenedQuestion(Result):
    """A question as typed, and the wording that a model proposes. Nothing was forecast."""

    question: Question
    sharpening: Sharpening
    problems: tuple[str, ...] = ()
    """Why the question could not be resolved as it was typed."""
    command_line: str
    """The command that asks the proposed wording; edit it if something else was meant."""
    paid: Money = field(default_factory=Money)

    @property
    def fields(self) -> dict[str, str]:
        """The proposed wording as fields of a request to ask."""
        closes = self.sharpening.closes
        return {
            "question": self.sharpening.text,
            "criteria": criteria_of(self.question.criteria, self.sharpening),
            **({} if closes is None else {"closes": closes.date().isoformat()}),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the proposal as plain data."""
        return {
            "question": self.question.text,
            "problems": list(self.problems),
            "sharpening": plain_data(self.sharpening),
            "command": self.command_line,
            **self.paid.to_dict(),
        }

    def __str__(self) -> str:
        return "\n".join([*sharpening_lines(self.sharpening), "", "To ask it, changed as you like:", self.command_line])


def sharpening_lines(sharpening: Sharpening) -> list[str]:
    """Return a proposed wording as lines of text."""
    closes = sharpening.closes
    lines = [sharpening.text, *([f"  known by: {closes.date()}"] if closes is not None else [])]
    for name, heading in PARTS.items():
        value: Any = getattr(sharpening, name)
        lines += [f"  {heading}: {text}" for text in (value if isinstance(value, tuple) else (value,)) if text]
    return lines


async def sharpen_typed(
    request: AskRequest, settings: Settings, journal: Journal
) -> tuple[SharpenedQuestion, Settings]:
    """Return the wording that the model of a request proposes, and settings with what is left of the budget.

    The journal has to stay open as long as these settings are used.

    Raises:
        NoAnswer: The model gave no usable proposal.
    """
    now = clock_of(settings)()
    spec, question = typed_run_spec(request, {"combine": "default"}, now), typed_question(request, now)
    budget = Budget("ask", dollars=spec.budget.run, within=settings.budget)
    within = replace(settings, budget=budget)
    budget.use(journal.ledger)
    async with open_runtime(spec, within, journal, budget=budget) as runtime:
        roles = models_of_run(spec)
        model, sampling = runtime.router.within(budget), roles.setting("agent")
        try:
            sharpening = await propose_wording(question, model, roles.name("agent"), settings=sampling)
        except ModelError as error:
            raise NoAnswer(f"no wording was proposed: {error}", hint="ask without --sharpen") from None
    result = SharpenedQuestion(
        question=question,
        sharpening=sharpening,
        problems=problems_of(question),
        command_line=_command(accepted(request, sharpening)),
        paid=budget.money,
    )
    return result, within


def accepted(request: AskRequest, sharpening: Sharpening) -> AskRequest:
    """Return the request that asks the proposed wording."""
    closes = sharpening.closes.date().isoformat() if sharpening.closes is not None else request.closes
    criteria = criteria_of(request.criteria, sharpening)
    changed = {"question": sharpening.text, "closes": closes, "criteria": criteria, "sharpen": None}
    return request.model_copy(update=changed)


def _command(request: AskRequest) -> str:
    """Return the command that asks a question, without the settings that the user has given already."""
    words = ["foretell", "ask", request.question, "--closes", request.closes or "", "--criteria", request.criteria]
    for option in request.options:
        words += ["--option", option]
    if request.range is not None:
        words += ["--range", str(request.range)]
    return shlex.join([*words, *(["--model", request.model] if isinstance(request.model, str) else [])])
