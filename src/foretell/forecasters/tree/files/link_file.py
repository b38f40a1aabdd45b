"""Links as JSON objects."""

from collections.abc import Mapping
from typing import Any

from foretell.forecasters.tree.files.fields import Fields
from foretell.forecasters.tree.links import (
    Assumption,
    Average,
    Formula,
    InhibitedNoisyOr,
    Judged,
    Linear,
    Link,
    NoisyOr,
)

KINDS: Mapping[str, type] = {
    "linear": Linear,
    "formula": Formula,
    "noisy_or": NoisyOr,
    "inhibited_noisy_or": InhibitedNoisyOr,
    "average": Average,
    "judged": Judged,
}


def kind_of(link: Link) -> str:
    """The name of a link's kind, as in files."""
    return next(name for name, kind in KINDS.items() if isinstance(link, kind))


def link_to_dict(link: Link) -> dict[str, Any]:
    """The link as plain JSON.

    >>> link_to_dict(Linear(weights={"P1": 0.4, "P2": 0.5}, intercept=0.05))
    {'kind': 'linear', 'intercept': 0.05, 'weights': {'P1': 0.4, 'P2': 0.5}}
    """
    body: dict[str, Any] = {"kind": kind_of(link)}
    match link:
        case Linear():
            body |= {"intercept": link.intercept, "weights": dict(link.weights)}
        case Formula():
            body |= {"expression": link.expression}
            if link.assumption is not None:
                body |= {"assumption": {"text": link.assumption.text, "p": link.assumption.p}}
        case NoisyOr():
            body |= {"leak": link.leak, "strengths": dict(link.strengths)}
        case InhibitedNoisyOr():
            body |= {"leak": link.leak, "strengths": dict(link.strengths), "inhibitors": dict(link.inhibitors)}
        case Average():
            pass
        case Judged():
            body |= {"p": link.p} | ({"stale": True} if link.stale else {})
    return body


def read_link(fields: Fields) -> Link | None:
    """The link an object describes; None, with the reason among the problems, where it describes none."""
    kind = fields.text("kind", None)
    link = _READERS[kind](fields) if kind in _READERS else None
    if link is None:
        if kind:
            fields.wrong("kind", f"{kind!r} is no kind of link", f"the kinds are {', '.join(KINDS)}")
        return None
    fields.done()
    return link


def _linear(fields: Fields) -> Link:
    return Linear(intercept=fields.number("intercept", 0.0) or 0.0, weights=fields.numbers("weights", required=True))


def _formula(fields: Fields) -> Link:
    assumption = None
    inner = fields.inner("assumption")
    if inner is not None:
        assumption = Assumption(text=inner.text("text"), p=inner.number("p", 0.5, required=True) or 0.0)
        inner.done()
    return Formula(expression=fields.text("expression", None), assumption=assumption)


def _noisy_or(fields: Fields) -> Link:
    return NoisyOr(strengths=fields.numbers("strengths", required=True), leak=fields.number("leak") or 0.0)


def _inhibited(fields: Fields) -> Link:
    return InhibitedNoisyOr(
        strengths=fields.numbers("strengths", required=True),
        inhibitors=fields.numbers("inhibitors"),
        leak=fields.number("leak") or 0.0,
    )


def _average(_: Fields) -> Link:
    return Average()


def _judged(fields: Fields) -> Link:
    return Judged(p=fields.number("p", required=True) or 0.0, stale=fields.flag("stale"))


_READERS = {
    "linear": _linear,
    "formula": _formula,
    "noisy_or": _noisy_or,
    "inhibited_noisy_or": _inhibited,
    "average": _average,
    "judged": _judged,
}
