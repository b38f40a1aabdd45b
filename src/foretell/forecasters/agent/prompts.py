"""The agent's prompts. The texts are in `wording/`; this module assembles them for a question.

Everything that changes from step to step is appended after these messages, so their bytes stay the same throughout a
trial and a provider can cache them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from foretell.data.markets.market import market_ref
from foretell.forecasters.agent.actions import ACTION, ACTIONS, TOOL, AgentToolset
from foretell.forecasters.agent.answer_format import AnswerFormat
from foretell.forecasters.agent.belief import BELIEF
from foretell.forecasters.agent.settings import Clamp
from foretell.forecasters.forecaster import Context, prompt_template
from foretell.questions.as_of import AsOf, instant
from foretell.questions.question import Exclusivity, Question, Target
from foretell.tools.tool import SUBMIT, tool_hint

NOT_GIVEN = "None were given; take the question's words in their plain sense."
HEADS: Mapping[Exclusivity, str] = {
    "exactly one": "Exactly one of these comes true, so",
    "at most one": "At most one of these comes true, and possibly none:",
    "independent": "Each stands on its own:",
}
"""How the list of several targets begins, by exclusivity."""
COMMUNITIES = ("metaculus", "infer")
"""Platforms whose crowd states forecasts and does not trade."""


@dataclass(frozen=True, kw_only=True)
class StartingSignals:
    """Numbers known at the start, from which the agent begins, and additional material."""

    crowd: Mapping[str, float] | None = None
    crowd_day: str = ""
    prior: Mapping[str, float] | None = None
    prior_cases: int = 0
    """Number of resolved cases behind the base rate; 0 if unknown."""
    closes: str = ""
    """The day on which trading ends or the answer is known, if that was known beforehand."""
    extra: str = ""
    """Additional material for the question, under its own heading."""


wording = partial(prompt_template, "agent/wording")


def system_prompt(offer: AgentToolset, *, steps: int, clamp: Clamp, by_schema: bool = False, live: bool = False) -> str:
    """The model's role and how it works; the same for all questions of one kind."""
    values = {"steps": steps, "field": offer.form.field, "scale": _scale(offer.form, clamp)}
    values["where"] = "the schema" if by_schema else f"`{SUBMIT}`"
    parts = [wording(name).substitute(values) for name in ("role", offer.variant.wording, "rules")]
    rules = ["rule_live" if live else "rule_past", *(["rule_tools"] if offer.variant.tools else [])]
    parts[-1] = "\n".join([parts[-1], *(wording(name).substitute() for name in rules)])
    if by_schema:
        parts.append(schema_prompt(offer))
    return "\n\n".join(parts)


def schema_prompt(offer: AgentToolset) -> str:
    """Instructions for acting without tool calls."""
    return wording("schema").substitute(tools=_tools_as_text(offer))


def _scale(form: AnswerFormat, clamp: Clamp) -> str:
    if form.thresholds is not None:
        if form.dates:
            return "Quantiles are dates such as 2027-01-31, in UTC, each later than the one before it."
        order = "none smaller than" if form.whole_steps else "each larger than"
        return f"Quantiles are plain numbers in the unit of the question, {order} the one before it."
    scale = "whole numbers from 0 to 100, in percent" if form.percent else "numbers from 0 to 1"
    # Of several options that exclude each other the smallest may go lower: what holds for all is said.
    bounds = (
        f"between {clamp.low:g} and {clamp.high:g} (of 1)" if form.exclusivity == "independent" else "away from 0 and 1"
    )
    return f"Probabilities are {scale}. Say what you think: the final answer is kept {bounds} for you."


def question_prompt(question: Question, as_of: AsOf, offer: AgentToolset, start: StartingSignals) -> str:
    """The question with everything that decides it, as of the day; it says only what is true of this question."""
    hint = tool_hint(offer.by_name, question.source) if offer.variant.tools else ""
    sections = [
        ("Question", question.text),
        ("Resolution criteria", question.criteria or NOT_GIVEN),
        ("Background", question.background),
        ("Facts", "\n".join(f"- {line}" for line in _facts(question, as_of, offer, start))),
        ("What to answer", _asked(question, as_of, offer.form)),
        ("Where to begin", hint),
    ]
    message = [f"# {heading}\n\n{text.strip()}" for heading, text in sections if text.strip()]
    return "\n\n".join([*message, start.extra.strip()] if start.extra.strip() else message)


# What is known of a question: every line only where it is true.


def crowd_name(question: Question) -> str:
    """What to call those who put a price on the question; empty if nobody does.

    >>> crowd_name(Question(id="q", source="asked", text="?", due="2026-01-10")) or "nobody"
    'nobody'
    """
    if question.kind != "market":
        return ""
    if question.source in COMMUNITIES:
        return "community forecast"
    priced = any(target.snapshot is not None for target in question.targets)
    return "market" if priced or market_of(question) else ""


def market_of(question: Question) -> str:
    """The platform on which the question is traded, from the first target with a known market; empty if none."""
    refs = (market_ref(question, target) for target in question.targets)
    return next((ref.platform for ref in refs if ref is not None), "")


def days_left(at: datetime, as_of: AsOf) -> str:
    """Format a day and how far away it is.

    >>> days_left(instant("2026-01-20"), AsOf.day(instant("2026-01-10").date(), "live"))
    '2026-01-20, in 10 days'
    """
    days = (at.date() - as_of.at.date()).days
    return at.date().isoformat() + (f", in {days} day{'s' * (days > 1)}" if days > 0 else ", today" * (days == 0))


def _facts(question: Question, as_of: AsOf, offer: AgentToolset, start: StartingSignals) -> Iterator[str]:
    yield f"Today is {as_of.at.date().isoformat()}."
    if (day := _common_day(question)) is not None:
        yield f"It is decided on {days_left(day, as_of)}."
    crowd = crowd_name(question)
    if start.closes and (day is None or start.closes != day.date().isoformat()):
        what = {"market": "The market is to close on", "": "The answer is known by"}
        yield f"{what.get(crowd, 'Forecasts are taken until')} {days_left(instant(start.closes), as_of)}."
    if platform := market_of(question):
        yield f"It is asked on {platform}."
    if (ref := question.series) is not None:
        against = f"{ref.threshold:g}" if ref.threshold is not None else f"its last value by {question.due.date()}"
        yield f"It is decided by the series {ref.provider}/{ref.id}: yes if it is {ref.comparison} {against}."
    if unit := _unit(question, offer.form):
        yield f"The unit is: {unit}."
    if (last := question.last_value) is not None:
        meaning = f" ({last.meaning})" if last.meaning else ""
        yield f"Last known value: {last.value:g}, of {last.at.date().isoformat()}{meaning}."
    if start.crowd and offer.variant.crowd:
        yield _price(start, as_of, offer.form, crowd or "market")
    if start.prior and offer.variant.prior:
        cases = f" (from about {start.prior_cases:,} independent cases)" if start.prior_cases else ""
        numbers = _numbers(start.prior, offer.form)
        yield f"Of earlier questions of this kind this share came true: {numbers}{cases}. Begin there and adjust."


def _price(start: StartingSignals, as_of: AsOf, form: AnswerFormat, crowd: str) -> str:
    when = "The"
    if start.crowd_day:
        age = (as_of.at.date() - instant(start.crowd_day).date()).days
        ago = f", {age} day{'s' * (age > 1)} ago," if age > 0 else ""
        when = f"On {start.crowd_day}{ago} the"
    advice = "It holds much of what you can find: leave it only for reasons that others may have missed."
    return f"{when} {crowd} stood at {_numbers(start.crowd or {}, form)}. {advice}"


def _common_day(question: Question) -> datetime | None:
    """The day on which all targets are decided; None if they are decided on different days."""
    days = {target.resolves_at for target in question.targets}
    return next(iter(days)) if len(days) == 1 else None


def _unit(question: Question, form: AnswerFormat) -> str:
    """The unit of a numeric question, taken from the labels of its thresholds."""
    if form.thresholds is None:
        return ""
    return next(
        (rest for t in question.targets if t.label and (rest := t.label.removeprefix(t.id).strip()) != t.label), ""
    )


def _asked(question: Question, as_of: AsOf, form: AnswerFormat) -> str:
    if form.thresholds is not None:
        kind = "the dates before which it happens" if form.dates else "the values that the quantity stays below"
        used = f"They are used for these targets: {', '.join(map(form.named, form.thresholds))}."
        spread = wording("spread_date" if form.dates else "spread_number").substitute()
        return f"State quantiles: {kind} with 5, 10, 25, 50, 75, 90 and 95 %. {used} {spread}"
    if len(form.targets) == 1:
        target = question.targets[0]
        text = f" ({target.label})" if target.label and target.label != question.text else ""
        return f"One probability, that it resolves YES{text}."
    same = _common_day(question) is not None
    told = [_line(target, "" if same else _day(target, as_of)) for target in question.targets]
    lines = [
        f"- `{key}`" + ("" if line == f"{key}." else f": {line}") for key, line in zip(form.targets, told, strict=True)
    ]
    spread = form.exclusivity.replace(" ", "_")
    if form.exclusivity == "independent" and not same and _at_dates(question):
        spread = "dates"
    how = wording(f"spread_{spread}").substitute(whole=form.whole)
    return f"{HEADS[form.exclusivity]} give one probability for every line, under its key. {how}\n" + "\n".join(lines)


def _at_dates(question: Question) -> bool:
    days = [target.resolves_at for target in question.targets]
    return None not in days and len(set(days)) == len(days)


def _line(target: Target, day: str) -> str:
    return f"{target.label or target.id}.{day}".replace("..", ".").replace("?.", "?")


def _day(target: Target, as_of: AsOf) -> str:
    return f" Decided on {days_left(target.resolves_at, as_of)}." if target.resolves_at else ""


def _numbers(p: Mapping[str, float], form: AnswerFormat) -> str:
    if len(set(p.values())) == 1 and len(p) == len(form.targets):
        return f"{next(iter(p.values())):.3g}"
    return ", ".join(f"`{form.named(id)}` {p[id]:.3g}" for id in form.targets.values() if id in p)


def _tools_as_text(offer: AgentToolset) -> str:
    lines: list[str] = []
    for spec in offer.tools:
        own = {name: part for name, part in spec.parameters.get("properties", {}).items() if name != BELIEF}
        # In short: the schema that goes along holds the rest.
        arguments = [
            f"`{name}`" + (f" ({part['description']})" if "description" in part else "") for name, part in own.items()
        ]
        lines.append(f"- `{spec.name}`: {spec.description} Arguments: {', '.join(arguments) or 'none'}")
    if offer.variant.belief:
        lines.append(f"\nBefore `{ACTION}` stands `{BELIEF}`.")
    if offer.variant.parallel:
        lines.append(
            f"\nTo call several at once, give a list `{ACTIONS}` in place of `{ACTION}`, each with its `{TOOL}`."
        )
    return "\n".join(lines)


# What is known before any research: the market's price and the base rate, both as of the cutoff.


def crowd_of(question: Question, as_of: AsOf) -> tuple[dict[str, float] | None, str]:
    """Prices by target and the day of the oldest one; snapshots taken after the cutoff are left out."""
    known = {t.id: t.snapshot for t in question.targets if t.snapshot is not None and as_of.admits(t.snapshot.at)}
    prices = {id: shot.price for id, shot in known.items() if shot.price is not None}
    if not prices:
        return None, ""
    return prices, min(known[id].at for id in prices).date().isoformat()


def prior_of(question: Question, context: Context) -> tuple[dict[str, float] | None, int]:
    """Base rates by target and the number of cases behind them, for data-set questions; markets have their price."""
    if question.kind != "dataset":
        return None, 0
    rates = {t.id: context.past.rate(question, t, context.as_of) for t in question.targets}
    known = {id: rate for id, rate in rates.items() if rate is not None}
    return known or None, context.past.cases(question, context.as_of) if known else 0
