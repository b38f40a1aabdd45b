"""Every example judged by a rule that did not see it: left out by question or event, or asked before it was known."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from foretell.evaluate.arrays import Floats, Ints
from foretell.forecasters.combine.chain import Chain, said_by
from foretell.forecasters.combine.fitted import Check, Method, apply
from foretell.forecasters.combine.left_out import left_out
from foretell.forecasters.combine.rows import Examples, Rows, Strings

GROUPINGS = ("event", "question", "cluster", "asking", "due", "resolved_on", "source", "subtype", "kind")
"""What may be left out together: `event` is each row alone, `asking` one question on one day with all its targets."""


def groups_by(examples: Examples, by: str) -> Ints:
    """The group of every example as a number from 0, groups in alphabetical order of what they share."""
    if by not in GROUPINGS:
        raise ValueError(f"by = {by!r} is not one of {', '.join(GROUPINGS)}")
    if by == "event":
        return np.arange(len(examples))
    column = examples.known_on if by == "resolved_on" else getattr(examples.rows, by)
    return np.unique(column, return_inverse=True)[1].astype(np.int64)


def leave_one_out(method: Method, examples: Examples, *, by: str = "question") -> Floats:
    """Each example's probability from the rule fitted without all that shares its question (or event, day, …).

    Whatever the method tunes, it tunes without the group. `by="event"` is what BLF 2026 does: it leaves other dates of
    the same question, and the same question asked again, in the training set.
    """
    return left_out(method, examples, groups_by(examples, by))


def leave_last_out(chain: Chain, examples: Examples, *, by: str = "event") -> Floats:
    """As `leave_one_out`, but only the last stage leaves groups out; the others are fitted on everything.

    This is the protocol of BLF 2026, whose shrinkage was tuned on the questions it was scored on: for reproducing its
    tables, not for a number to publish.
    """
    for method in chain.methods[:-1]:
        examples = said_by(method.fit(examples), examples)
    return leave_one_out(chain.methods[-1], examples, by=by) if chain.methods else examples.rows.raw


def raw(rows: Rows) -> Floats:
    """The logit mean: what is said where nothing can be learnt yet."""
    return rows.raw


@dataclass(frozen=True, kw_only=True)
class Rolled:
    """What was said on each day by a rule that knew only what was known by then."""

    p: Floats
    past: Ints
    """How many examples the rule for each row had learnt from; 0 where the fallback spoke."""


def rolling(method: Method, examples: Examples, *, fallback: Callable[[Rows], Floats] = raw) -> Rolled:
    """For each due date, the rule fitted on examples asked before it whose answers were known before it.

    Where there are none yet, `fallback` speaks. Every fitted rule checks that it is not asked about its own past.
    """
    p, past = np.full(len(examples), np.nan), np.zeros(len(examples), np.int64)
    for due in np.unique(examples.rows.due):
        today = examples.rows.due == due
        rows = examples.rows.take(today)
        known = examples.take((examples.known_on < due) & (examples.rows.due < due))
        past[today] = len(known)
        p[today] = apply(method.fit(known), rows) if len(known) else fallback(rows)
    return Rolled(p=p, past=past)


def across(method: Method, train: Examples, test: Examples, *, check: Check = "ids") -> Floats:
    """The test set's probabilities from a rule fitted on the training set, less the targets that are in both.

    A target asked about in both rounds has one outcome: known, it would not have been asked about again. With
    `check="ids"` the training set may be the later one.
    """
    other = train.take(~np.isin(_event(train.rows), _event(test.rows)))
    return apply(method.fit(other), test.rows, check=check)


def _event(rows: Rows) -> Strings:
    return np.char.add(np.char.add(rows.question.astype(str), "\n"), rows.target.astype(str))
