"""The agent's prompts, assembled for a question. The texts are in `wording/`.

These messages do not change during a trial, so that a provider can cache them. Everything else is appended after them.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial

from foretell.data.markets.market import market_ref
from foretell.forecasters.agent.actions import ACTION, ACTIONS, MOST_ACTIONS, TOOL, AgentToolset
from foretell.forecasters.agent.answer_format import AnswerFormat
from foretell.forecasters.agent.belief import BELIEF
from foretell.forecasters.combine.clamp import Clamp
from foretell.forecasters.forecaster import Context, prompt_template
from foretell.frozen import frozen
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
"""Platforms whose users state forecasts and do not trade."""
PRICE_RULE = "It holds much of what you can find: leave it only for reasons that others may have missed."
"""What every prompt says about a market price."""


@frozen
class StartingSignals:
    """The numbers that the agent starts from, and additional material."""

    price: Mapping[str, float] | None = None
    price_day: str = ""
    prior: Mapping[str, float] | None = None
    prior_cases: int = 0
    """Number of resolved cases behind the base rate; 0 if unknown."""
    prior_shown: bool = True
    """Whether the base rate is among the facts; not if `extra` has the outside view."""
    closes: str = ""
    """The day on which trading ends or the answer is known, if that was known beforehand."""
    extra: str = ""
    """Additional material for the question, under its own heading."""


wording = partial(prompt_template, "agent/wording")


def system_prompt(
    toolset: AgentToolset, *, steps: int, clamp: Clamp, by_schema: bool = False, live: bool = False
) -> str:
    """Return the system prompt, which is the same for all questions of one kind."""
    form, variant = toolset.form, toolset.variant
    values = {"steps": steps, "field": form.field, "scale": _scale(form, clamp), "sides": _sides(form)}
    values |= {"where": "the schema" if by_schema else f"`{SUBMIT}`", "calls": variant.calls or MOST_ACTIONS}
    # A question about a quantity is not taken apart.
    built = "" if form.thresholds is not None else f" {wording('scout_structure').substitute()}"
    values["built"] = built
    role = "role" if form.thresholds is None else "role_number"
    parts = [wording(name).substitute(values) for name in (role, variant.wording, "rules")]
    rules = [memory_rule(live=live, tools=variant.tools), *([wording("rule_tools").substitute()] * variant.tools)]
    parts[-1] = "\n".join([parts[-1], *rules])
    if by_schema:
        parts.append(schema_prompt(toolset))
    return "\n\n".join(parts)


def memory_rule(*, live: bool, tools: bool) -> str:
    """Return the rule about what a model remembers; without tools it cannot check what has changed since."""
    past_or_live = ("rule_live" if tools else "rule_live_alone") if live else "rule_past"
    return wording(past_or_live).substitute()


def _sides(form: AnswerFormat) -> str:
    """What evidence is for and against, by the kind of question."""
    if form.thresholds is not None:
        return "facts for a later date, and for an earlier one" if form.dates else "facts for more, and for less"
    if len(form.targets) == 1:
        return "facts for YES, and for NO"
    return "facts that make an answer likelier, and that make it less likely; name the answer in each of them"


def schema_prompt(toolset: AgentToolset) -> str:
    """Return instructions for acting without tool calls."""
    return wording("schema").substitute(tools=_tools_as_text(toolset))


def _scale(form: AnswerFormat, clamp: Clamp) -> str:
    if form.thresholds is not None:
        if form.dates:
            return "Quantiles are dates such as 2027-01-31, in UTC, each later than the one before it."
        order = "none smaller than" if form.whole_steps else "each larger than"
        return f"Quantiles are plain numbers in the unit of the question, {order} the one before it."
    scale = "whole numbers from 0 to 100, in percent" if form.percent else "numbers from 0 to 1"
    # Exclusive options may have a lower bound, so the exact bounds are stated only for independent ones.
    bounds = (
        f"between {clamp.low:g} and {clamp.high:g} (of 1)" if form.exclusivity == "independent" else "away from 0 and 1"
    )
    return f"Probabilities are {scale}. Say what you think: the final answer is kept {bounds} for you."


def question_prompt(question: Question, as_of: AsOf, toolset: AgentToolset, start: StartingSignals) -> str:
    """Return the prompt about a question: its text, criteria, background and known facts."""
    hint = tool_hint(toolset.by_name, question.source) if toolset.variant.tools else ""
    sections = [
        ("Question", question.text),
        ("Resolution criteria", question.criteria or NOT_GIVEN),
        ("Background", question.background),
        ("Facts", "\n".join(f"- {line}" for line in _facts(question, as_of, toolset, start))),
        ("What to answer", _asked(question, as_of, toolset.form)),
        ("Where to begin", hint),
    ]
    message = [f"# {heading}\n\n{text.strip()}" for heading, text in sections if text.strip()]
    return "\n\n".join([*message, start.extra.strip()] if start.extra.strip() else message)


# Known facts about a question. A line is included only if it applies.


def market_name(question: Question) -> str:
    """Return the word for others' forecasts on the question, such as "market"; empty if there are none.

    >>> market_name(Question(id="q", source="asked", text="?", due="2026-01-10"))
    ''
    """
    if question.kind != "market":
        return ""
    if question.source in COMMUNITIES:
        return "community forecast"
    priced = any(target.snapshot is not None for target in question.targets)
    return "market" if priced or market_of(question) else ""


def market_of(question: Question) -> str:
    """Return the platform on which the question is traded; empty if none."""
    refs = (market_ref(question, target) for target in question.targets)
    return next((ref.platform for ref in refs if ref is not None), "")


def days_left(at: datetime, as_of: AsOf) -> str:
    """Format a day and how far away it is.

    >>> days_left(instant("2026-01-20"), AsOf.day(instant("2026-01-10").date(), "live"))
    '2026-01-20, in 10 days'
    """
    days = (at.date() - as_of.at.date()).days
    return at.date().isoformat() + (f", in {days} day{'s' * (days > 1)}" if days > 0 else ", today" * (days == 0))


def _facts(question: Question, as_of: AsOf, toolset: AgentToolset, start: StartingSignals) -> Iterator[str]:
    yield f"Today is {as_of.at.date().isoformat()}."
    if (day := _common_day(question)) is not None:
        yield f"It is decided on {days_left(day, as_of)}."
    market = market_name(question)
    if start.closes and (day is None or start.closes != day.date().isoformat()):
        what = {"market": "The market is to close on", "": "The answer is known by"}
        yield f"{what.get(market, 'Forecasts are taken until')} {days_left(instant(start.closes), as_of)}."
    if platform := market_of(question):
        yield f"It is asked on {platform}."
    if (ref := question.series) is not None:
        against = f"{ref.threshold:g}" if ref.threshold is not None else f"its last value by {question.due.date()}"
        yield f"It is decided by the series {ref.provider}/{ref.id}: yes if it is {ref.comparison} {against}."
    if unit := _unit(question, toolset.form):
        yield f"The unit is: {unit}."
    if (last := question.last_value) is not None:
        meaning = f" ({last.meaning})" if last.meaning else ""
        yield f"Last known value: {last.value:g}, of {last.at.date().isoformat()}{meaning}."
    if start.price and toolset.variant.market_price:
        yield _price(start, as_of, toolset.form, market or "market")
    if start.prior and start.prior_shown and toolset.variant.prior:
        cases = f" (from about {start.prior_cases:,} independent cases)" if start.prior_cases else ""
        numbers = _numbers(start.prior, toolset.form)
        yield f"Of earlier questions of this kind this share came true: {numbers}{cases}. Begin there and adjust."


def _price(start: StartingSignals, as_of: AsOf, form: AnswerFormat, market: str) -> str:
    when = "The"
    if start.price_day:
        age = (as_of.at.date() - instant(start.price_day).date()).days
        ago = f", {age} day{'s' * (age > 1)} ago," if age > 0 else ""
        when = f"On {start.price_day}{ago} the"
    return f"{when} {market} stood at {_numbers(start.price or {}, form)}. {PRICE_RULE}"


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
        how = "never" if form.never else "date" if form.dates else "number"
        spread = wording(f"spread_{how}").substitute()
        return f"State quantiles: {kind} with 5, 10, 25, 50, 75, 90 and 95 %. {used} {spread}"
    if len(form.targets) == 1:
        target = question.targets[0]
        text = f" ({target.label})" if target.label and target.label != question.text else ""
        return f"One probability, that it resolves YES{text}."
    same = _common_day(question) is not None
    descriptions = [_line(target, "" if same else _day(target, as_of)) for target in question.targets]
    lines = [
        f"- `{key}`" + ("" if line == f"{key}." else f": {line}")
        for key, line in zip(form.targets, descriptions, strict=True)
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


def _tools_as_text(toolset: AgentToolset) -> str:
    lines: list[str] = []
    for spec in toolset.tools:
        own = {name: part for name, part in spec.parameters.get("properties", {}).items() if name != BELIEF}
        # Only a summary: the schema is sent as well.
        arguments = [
            f"`{name}`" + (f" ({part['description']})" if "description" in part else "") for name, part in own.items()
        ]
        lines.append(f"- `{spec.name}`: {spec.description} Arguments: {', '.join(arguments) or 'none'}")
    if toolset.variant.belief:
        lines.append(f"\nBefore `{ACTION}` stands `{BELIEF}`.")
    if toolset.variant.parallel:
        lines.append(
            f"\nTo call several at once, give a list `{ACTIONS}` in place of `{ACTION}`, each with its `{TOOL}`."
        )
    return "\n".join(lines)


# Starting signals: the market price and the base rate, both as of the cutoff.


def price_of(question: Question, as_of: AsOf) -> tuple[dict[str, float] | None, str]:
    """Return prices by target and the day of the oldest one; snapshots taken after the cutoff are left out."""
    known = {t.id: t.snapshot for t in question.targets if t.snapshot is not None and as_of.admits(t.snapshot.at)}
    prices = {id: snapshot.price for id, snapshot in known.items() if snapshot.price is not None}
    if not prices:
        return None, ""
    return prices, min(known[id].at for id in prices).date().isoformat()


def prior_of(question: Question, context: Context) -> tuple[dict[str, float] | None, int]:
    """Return base rates by target and the number of cases behind them; none for market questions."""
    if question.kind != "dataset":
        return None, 0
    rates = {t.id: context.past.rate(question, t, context.as_of) for t in question.targets}
    known = {id: rate for id, rate in rates.items() if rate is not None}
    return known or None, context.past.cases(question, context.as_of) if known else 0
