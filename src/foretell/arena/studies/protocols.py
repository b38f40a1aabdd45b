"""Rules by name, and the protocols under which they are judged: from the honest one to what nobody should publish."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Literal

import numpy as np

from foretell.arena.anchors import ALWAYS_HALF, BASE_RATE, CROWD, base_rate
from foretell.arena.table import Labels, Targets
from foretell.evaluate.arrays import Floats
from foretell.forecasters.combine.crossfit import groups_by, raw, rolling
from foretell.forecasters.combine.default import UNTAUGHT, Default
from foretell.forecasters.combine.fitted import Method, apply
from foretell.forecasters.combine.left_out import LeavesOut, left_out
from foretell.forecasters.combine.rows import Examples, Rows
from foretell.questions.problems import InputError

METHODS: Mapping[str, str] = {
    "default": "foretell.forecasters.combine.default:Default",
    "platt": "foretell.forecasters.combine.platt:Platt",
    "hierarchical": "foretell.forecasters.combine.platt:HierarchicalPlatt",
    "isotonic": "foretell.forecasters.combine.isotonic:Isotonic",
    "beta": "foretell.forecasters.combine.beta:Beta",
    "shrink": "foretell.forecasters.combine.shrink:Shrink",
    "bayes-shrink": "foretell.forecasters.combine.bayes_shrink:BayesShrink",
    "paper": "foretell.arena.studies.protocols:paper",
}
"""Name → "module:attribute" of what makes the method."""

Protocol = Literal["past only", "question out", "event out", "in-sample"]
PROTOCOLS: Mapping[Protocol, str] = {
    "past only": "each round by a rule fitted on what was asked and known before it: what a user would have had",
    "question out": "each question by a rule fitted on all other questions, later ones among them",
    "event out": "each target by a rule fitted on all others, its question's other dates among them (BLF 2026)",
    "in-sample": "fitted on the very targets it is scored on: flattered, shown for contrast only",
}
"""From the most honest on: a narrow terminal drops columns at the end."""
MODEL_FREE = "crowd, else base rate"
FOLDS, REFITS = 10, 24
"""Parts in which slow methods leave questions out, and how often a rule is fitted again on the way through time."""
YARDSTICKS = (CROWD, BASE_RATE, MODEL_FREE, ALWAYS_HALF)


def build_method(name: str) -> Method:
    """The method of that name.

    >>> build_method("hierarchical").name
    'platt by source'
    """
    if name not in METHODS:
        raise InputError(f"no method is called {name!r}", hint=f"there are {', '.join(METHODS)}")
    module, attribute = METHODS[name].split(":")
    return getattr(import_module(module), attribute)()


def paper() -> Method:
    """The combination of BLF 2026: shrinkage to price or prior, then Platt scaling with an offset per source."""
    from foretell.forecasters.combine.chain import Chain
    from foretell.forecasters.combine.platt import HierarchicalPlatt
    from foretell.forecasters.combine.shrink import Shrink

    return Chain(methods=(Shrink(), HierarchicalPlatt()))


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What a rule says of every target under a protocol."""

    p: Floats
    past: Floats
    """How many examples the rule for each target had learnt from."""


def judged(method: Method, examples: Examples, protocol: Protocol) -> Judged:
    """The rule's probabilities under the protocol; NaN where no trial answered.

    Methods that know no shortcut leave questions out in at most `FOLDS` parts: no question is ever judged by a rule
    that saw it, but the rule saw a few others less.
    """
    if protocol == "in-sample":
        p = method.fit(examples).probabilities(examples.rows)
        return Judged(p=p, past=np.full(len(examples), float(len(examples))))
    if protocol == "past only":
        return _past_only(method, examples)
    return _left_out(method, examples, "event" if protocol == "event out" else "question")


def _past_only(method: Method, examples: Examples) -> Judged:
    """Round after round; where there are many, a rule serves several rounds before it is fitted again."""
    # Before there is a past the logit mean speaks; only the default has a rule of its own for that.
    untaught = UNTAUGHT.probabilities if isinstance(method, Default) else raw
    days = np.unique(examples.rows.due)
    if len(days) <= REFITS:
        found = rolling(method, examples, fallback=untaught)
        return Judged(p=found.p, past=found.past.astype(np.float64))
    p, past = np.full(len(examples), np.nan), np.zeros(len(examples))
    for stretch in np.array_split(days, REFITS):
        now = np.isin(examples.rows.due, stretch)
        known = examples.take((examples.known_on < stretch[0]) & (examples.rows.due < stretch[0]))
        rows = examples.rows.take(now)
        p[now], past[now] = apply(method.fit(known), rows) if len(known) else untaught(rows), len(known)
    return Judged(p=p, past=past)


def _left_out(method: Method, examples: Examples, by: str) -> Judged:
    groups = groups_by(examples, by)
    if not isinstance(method, LeavesOut):
        groups = np.random.default_rng(0).permutation(int(groups.max(initial=0)) + 1)[groups] % FOLDS
    past = len(examples) - np.bincount(groups)[groups].astype(np.float64)
    return Judged(p=left_out(method, examples, groups), past=past)


def yardsticks(examples: Examples) -> dict[str, Floats]:
    """What needs no forecaster: the crowd's price, past-only base rates, both together, and 0.5."""
    rows = examples.rows
    rate = np.where(np.isnan(rows.prior), base_rate(_targets(examples)), rows.prior)
    columns = {
        CROWD: rows.price,
        BASE_RATE: rate,
        MODEL_FREE: np.where(np.isnan(rows.price), rate, rows.price),
        ALWAYS_HALF: np.full(len(rows), 0.5),
    }
    priced = np.isfinite(rows.price)
    if not priced.any() or priced.all():
        del columns[MODEL_FREE]
    return {name: p for name, p in columns.items() if np.isfinite(p).any()}


def _targets(examples: Examples) -> Targets:
    rows, nothing = examples.rows, np.full(len(examples), np.nan)
    return Targets(
        outcome=examples.outcome,
        weight=examples.weight,
        question=_labels(rows.question),
        target=_labels(rows.target),
        price=rows.price,
        yes_ask=nothing,
        no_ask=nothing,
        groups=_groups(examples, rows),
    )


def _groups(examples: Examples, rows: Rows) -> dict[str, Labels]:
    days = {"due": rows.due, "resolved_on": examples.known_on}
    return {"source": _labels(rows.source)} | {k: _labels(np.datetime_as_string(v, "D")) for k, v in days.items()}


def _labels(column: "np.ndarray") -> Labels:
    names, codes = np.unique(column.astype(str), return_inverse=True)
    return Labels(codes=codes.astype(np.int64), names=tuple(names.tolist()))
