"""Revise a forecast: from the last one as the prior, by the new evidence alone."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from foretell.data.untrusted import for_prompt
from foretell.forecasters.agent.answer_format import AnswerFormat
from foretell.forecasters.forecaster import Context, prompt_template
from foretell.forecasters.news.judge import NewsText, listed_texts, text_ids
from foretell.forecasters.tree.grow.prompting import TEXT, StructuredRequest, TreeQuestion, sections
from foretell.frozen import frozen
from foretell.models.structured_output import UnusableReply, closed_object
from foretell.questions.forecast import Numeric
from foretell.questions.question import Question

LONGEST_REASON = 4_000
"""Maximum characters of the last forecast's reasons in a prompt, and of the new ones that are stored."""
LESS, NONE = "less", "none"


@frozen
class PriorForecast:
    """The last forecast of a question."""

    p: Mapping[str, float]
    """Target → probability, before the price of a market was counted."""
    at: datetime
    reason: str = ""
    distribution: Numeric | None = None
    """For a question about a number or a date."""


@frozen
class RevisedForecast:
    """A forecast after new evidence."""

    p: Mapping[str, float]
    reason: str
    favours: tuple[str, ...]
    """For each piece of evidence the target that it makes more likely; empty if there is none."""
    distribution: Numeric | None = None


async def revise_forecast(
    question: Question, prior: PriorForecast, evidence: Sequence[NewsText], context: Context, *, slot: str
) -> RevisedForecast:
    """Ask the role `agent` for the forecast that follows from the prior and the new evidence.

    Raises `ModelError` if the model gives no usable answer, among them `BudgetExceeded` before anything is sent.
    """
    form, ids = AnswerFormat.of(question), text_ids(evidence)
    keys = list(form.targets)
    piece = closed_object(
        {
            "id": {"type": "string", "enum": ids},
            "favours": {"type": "string", "enum": [*keys, LESS, NONE]},
            "weight": TEXT,
        }
    )
    now = context.as_of.at
    left = "" if question.closes_at is None else f" The question closes on {question.closes_at.date().isoformat()}."
    request = StructuredRequest(
        role="agent",
        slot=slot,
        system=prompt_template("news/prompts", "revise").substitute(
            today=f"Today is {now.date().isoformat()}.{left}", answers=", ".join(f"`{key}`" for key in keys)
        ),
        user=sections(
            *TreeQuestion(question=question, as_of=context.as_of, whole=True).sections(),
            ("Names of the answers", "" if len(keys) < 2 else _names(question, form)),
            ("The last forecast", f"Made on {prior.at.date().isoformat()}: {_stated(prior, form)}"),
            ("Its reasons", for_prompt(prior.reason)[:LONGEST_REASON]),
            ("New evidence", listed_texts(evidence)),
        ),
        schema=closed_object(
            {"evidence": {"type": "array", "items": piece}, "reason": TEXT, form.field: form.schema()}
        ),
    )
    return await request.ask(context, lambda answer: _revised(answer, form, ids))


def _names(question: Question, form: AnswerFormat) -> str:
    labels = {target.id: target.label or target.id for target in question.targets}
    return "\n".join(f"- `{key}`: {labels[id]}" for key, id in form.targets.items())


def _stated(prior: PriorForecast, form: AnswerFormat) -> str:
    if form.thresholds is not None and prior.distribution is None:
        return ", ".join(f"{form.named(id)}: {p:.3f}" for id, p in prior.p.items())
    return json.dumps(form.write({id: round(p, 4) for id, p in prior.p.items()}, prior.distribution))


def _revised(answer: Mapping[str, Any], form: AnswerFormat, ids: Sequence[str]) -> RevisedForecast:
    numbers = form.read(answer)
    missing = form.missing(numbers.p)
    if numbers.problems or missing:
        problem = "; ".join(numbers.problems) or f"{', '.join(missing)} has no probability"
        raise UnusableReply(f"{form.field}: {problem}")
    favoured: dict[str, str] = {}
    for row in answer["evidence"]:
        favoured[row["id"]] = form.targets.get(row["favours"], "")
    return RevisedForecast(
        p=form.coherent(numbers.p),
        reason=str(answer["reason"]).strip()[:LONGEST_REASON],
        favours=tuple(favoured.get(id, "") for id in ids),
        distribution=numbers.distribution,
    )
