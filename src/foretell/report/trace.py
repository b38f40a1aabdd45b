"""Answers, and one trace event, as a line of text: for the terminal, the pages, comments and assistants."""

import json
from typing import Any

from foretell.questions import trace as kinds
from foretell.questions.forecast import Forecast, Numeric
from foretell.questions.question import Question
from foretell.questions.trace import TraceEvent


def describe_event(event: TraceEvent, width: int = 400) -> str:
    """One event in a line or two."""
    match event:
        case kinds.ModelCalled():
            cost = "" if event.dollars is None else f" ${event.dollars:.4f}"
            return f"  {event.role}: {event.input_tokens} → {event.output_tokens} tokens{cost}"
        case kinds.ToolUsed():
            return f"{event.step}. {event.tool}({_arguments(event.arguments)})\n   {_short(event.result, width)}"
        case kinds.LeakBlocked():
            return f"  withheld ({event.layer}): {event.reason} {event.url}".rstrip()
        case kinds.BeliefRevised():
            p = ", ".join(f"{target} {value:.0%}" for target, value in event.p.items())
            return f"  belief: {p}; {_short(event.reason, width)}"
        case kinds.NodeAnalyzed() | kinds.NodeGrounded() | kinds.NodeSynthesized() | kinds.TreeGrown():
            return _describe_tree_event(event, width)
        case kinds.ForecastMade():
            p = ", ".join(f"{target} {value:.0%}" for target, value in event.p.items())
            return f"answer: {p} ({event.how})"
        case kinds.Failed():
            return f"failed: {event.error}"


def _describe_tree_event(event: TraceEvent, width: int) -> str:
    """What happened to a tree of claims."""
    match event:
        case kinds.NodeAnalyzed():
            lines = [f"  {id}: {_short(event.claims.get(id, ''), width)}" for id in event.added]
            return "\n".join([f"{event.node} was taken apart into {len(event.added)} claims", *lines])
        case kinds.NodeGrounded():
            value = "no probability" if event.p is None else f"{event.p:.0%}"
            return f"{event.node} grounded by {event.grounder}: {value} {_short(event.error, width)}".rstrip()
        case kinds.NodeSynthesized():
            value = "no probability" if event.p is None else f"{event.p:.0%}"
            return f"{event.node} put together: {value} by {json.dumps(event.link, ensure_ascii=False)[:width]}"
        case kinds.TreeGrown():
            return f"the tree for {event.tree} is finished: {len(event.document.get('nodes', ()))} claims"
        case _:
            return ""


def _arguments(arguments: Any) -> str:
    return ", ".join(f"{name}={str(value)[:80]!r}" for name, value in arguments.items() if name != "updated_belief")


def _short(text: str, width: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


# Answers as the terminal and comments write them.


def answer_text(forecast: Forecast, question: Question | None) -> str:
    """A forecast in a few words.

    >>> from foretell.questions.as_of import AsOf
    >>> answer_text(Forecast(question_id="q", forecaster="f", as_of=AsOf.day("2026-11-15"), p={"yes": 0.344}), None)
    '34.4%'
    """
    scale = None if question is None else question.range
    if isinstance(forecast.distribution, Numeric):
        values = [forecast.distribution.quantile(level) for level in (0.1, 0.5, 0.9)]
        if scale is None or not scale.dates:
            values = [float(f"{value:.4g}") for value in values]
        low, middle, high = (str(value) if scale is None else scale.write(value) for value in values)
        return f"{middle} (8 in 10: {low} to {high})"
    if len(forecast.p) == 1:
        return f"{next(iter(forecast.p.values())):.1%}"
    labels = {} if question is None else {target.id: target.label or target.id for target in question.targets}
    ranked = sorted(forecast.p.items(), key=lambda one: -one[1])
    return ", ".join(f"{labels.get(id, id)} {p:.1%}" for id, p in ranked)
