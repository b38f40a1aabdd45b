"""What the agent is told. The texts are in `wording/`; here they are put together for a question.

Everything that changes from step to step is appended after these messages, so their bytes stay the same over a trial
and a provider can keep them in its cache.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template

from foretell.forecasters.agent.actions import ACTION, ACTIONS, TOOL, AgentToolset
from foretell.forecasters.agent.answer_format import AnswerFormat
from foretell.forecasters.agent.belief import BELIEF
from foretell.forecasters.agent.settings import Clamp
from foretell.forecasters.forecaster import Context
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, Target
from foretell.tools.names import tool_hint

NOT_GIVEN = "None were given; take the question's words in their plain sense."


@dataclass(frozen=True, kw_only=True)
class StartingSignals:
    """Numbers known at the start, and where to begin."""

    crowd: Mapping[str, float] | None = None
    crowd_day: str = ""
    prior: Mapping[str, float] | None = None
    closes: str = ""
    """The day trading ends, where that was known beforehand."""
    extra: str = ""
    """More material for the question, under its own heading."""


@cache
def wording(name: str) -> Template:
    """A text by its name."""
    return Template(
        files("foretell.forecasters.agent").joinpath("wording", f"{name}.md").read_text(encoding="utf-8").strip()
    )


def system_prompt(offer: AgentToolset, *, steps: int, clamp: Clamp, by_schema: bool = False) -> str:
    """Who the model is and how it works; the same for all questions of one kind."""
    scale = "whole numbers from 0 to 100, in percent" if offer.form.percent else "numbers from 0 to 1"
    bounds = {"low": f"{clamp.low:g}", "high": f"{clamp.high:g}"}
    values = {"steps": steps, "field": offer.form.field, "scale": scale, **bounds}
    parts = [wording(name).substitute(values) for name in ("role", offer.variant.wording, "rules")]
    if by_schema:
        parts.append(schema_prompt(offer))
    return "\n\n".join(parts)


def schema_prompt(offer: AgentToolset) -> str:
    """How to act without calling tools."""
    return wording("schema").substitute(tools=_tools_as_text(offer))


def question_prompt(question: Question, as_of: AsOf, offer: AgentToolset, start: StartingSignals) -> str:
    """The question with all that decides it, as it stood on the day."""
    today = as_of.at.date().isoformat()
    crowd = prior = ""
    if start.crowd:
        when = f"On {start.crowd_day} the" if start.crowd_day else "The"
        crowd = (
            f"{when} market stood at {_numbers(start.crowd, offer.form)}. Traders know much of what you can find: "
            "leave the price only for reasons they may have missed."
        )
    if start.prior:
        prior = (
            f"Of earlier questions of this kind this share came true: {_numbers(start.prior, offer.form)}. Begin there "
            "and adjust for this case."
        )
    sections = [
        ("Question", question.text),
        ("Resolution criteria", question.criteria or NOT_GIVEN),
        ("Background", question.background),
        ("Today", f"Today is {today}." + (f" The market is to close on {start.closes}." if start.closes else "")),
        ("What to answer", _asked(question, offer.form)),
        ("Market price", crowd if offer.variant.crowd else ""),
        ("Base rate", prior if offer.variant.prior else ""),
        ("Where to begin", tool_hint(offer.by_name)),
    ]
    message = [f"# {heading}\n\n{text.strip()}" for heading, text in sections if text.strip()]
    return "\n\n".join([*message, start.extra.strip()] if start.extra.strip() else message)


def _asked(question: Question, form: AnswerFormat) -> str:
    if form.thresholds is not None:
        levels = "the quantiles of the quantity: values that it stays below with 5, 10, 25, 50, 75, 90 and 95 %"
        return f"State {levels}. They are used for these targets: {', '.join(form.thresholds)}."
    if len(form.targets) == 1:
        target = question.targets[0]
        text = f" ({target.label})" if target.label and target.label != question.text else ""
        return f"One probability, that it resolves YES{text}.{_day(target)}"
    lines = [f"- `{key}`: {_line(target)}" for key, target in zip(form.targets, question.targets, strict=True)]
    text = "Exactly one of these comes true, so" if form.exclusive else "Each stands on its own:"
    return f"{text} give one probability for every line, under its key.\n" + "\n".join(lines)


def _line(target: Target) -> str:
    return ((target.label or target.id) + "." + _day(target)).replace("..", ".").replace("?.", "?")


def _day(target: Target) -> str:
    return f" Decided on {target.resolves_at.date().isoformat()}." if target.resolves_at else ""


def _numbers(p: Mapping[str, float], form: AnswerFormat) -> str:
    if len(form.targets) == 1:
        return f"{next(iter(p.values())):.3g}"
    return ", ".join(f"`{key}` {p[id]:.3g}" for key, id in form.targets.items() if id in p)


def _tools_as_text(offer: AgentToolset) -> str:
    lines: list[str] = []
    for spec in offer.tools:
        own = {name: part for name, part in spec.parameters.get("properties", {}).items() if name != BELIEF}
        arguments = json.dumps(own, ensure_ascii=False) if own else "none"
        lines.append(f"- `{spec.name}`: {spec.description} Arguments: {arguments}")
    if offer.variant.belief:
        lines.append(f"\nBeside `{ACTION}` stands `{BELIEF}`.")
    if offer.variant.parallel:
        lines.append(
            f"\nTo call several at once, give a list `{ACTIONS}` in place of `{ACTION}`, each with its `{TOOL}`."
        )
    return "\n".join(lines)


# What is known before any research: the market's price and the base rate, both as of the cutoff.


def crowd_of(question: Question, as_of: AsOf) -> tuple[dict[str, float] | None, str]:
    """Prices by target and the day of the oldest; a snapshot taken after the cutoff is not the crowd of that day."""
    known = {t.id: t.snapshot for t in question.targets if t.snapshot is not None and as_of.admits(t.snapshot.at)}
    prices = {id: shot.price for id, shot in known.items() if shot.price is not None}
    if not prices:
        return None, ""
    return prices, min(known[id].at for id in prices).date().isoformat()


def prior_of(question: Question, context: Context) -> dict[str, float] | None:
    """Base rates by target, for questions about data sets; markets have their price."""
    if question.kind != "dataset":
        return None
    rates = {t.id: context.past.rate(question, t, context.as_of) for t in question.targets}
    known = {id: rate for id, rate in rates.items() if rate is not None}
    return known or None
