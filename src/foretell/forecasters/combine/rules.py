"""The interface of learnt rules. A rule records its training data and refuses to be applied to it."""

from collections.abc import Sequence
from dataclasses import field, replace
from datetime import date
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from foretell.forecasters.combine.rows import Examples, TrialRows
from foretell.frozen import frozen
from foretell.metrics.arrays import Floats, Ints


class TrainingOverlap(ValueError):
    """A fitted rule was applied to its training data, or to questions asked before its last training outcome."""


@frozen
class Training:
    """A rule's training data: its askings, and the last day on which one of their answers became known."""

    askings: tuple[str, ...] = ()
    """The askings as question@due, sorted, each once."""
    first_due: date | None = None
    last_known: date | None = None
    n: int = 0
    """Number of targets."""

    @classmethod
    def of(cls, examples: Examples) -> "Training":
        """Return the record of a training set."""
        if not len(examples):
            return cls()
        return cls(
            askings=tuple(map(str, np.unique(examples.rows.asking))),
            first_due=examples.rows.due.min().astype("M8[D]").item(),
            last_known=examples.known_on.max().astype("M8[D]").item(),
            n=len(examples),
        )

    def refuse(self, rows: TrialRows, *, time: bool = True) -> None:
        """Raise `TrainingOverlap` for a training question; with `time`, also for one asked before training's end."""
        seen = np.isin(rows.asking, np.asarray(self.askings, dtype=str)) if self.askings else np.zeros(len(rows), bool)
        if seen.any():
            known = f"the {len(self.askings)} dated questions it was fitted on"
            raise TrainingOverlap(f"{rows.asking[seen][0]} is among {known}")
        if not time or self.last_known is None:
            return
        early = rows.due <= np.datetime64(self.last_known, "D")
        if early.any():
            first = rows.asking[early][0]
            raise TrainingOverlap(
                f"{first} was asked before {self.last_known}, and the rule was fitted on outcomes of that day"
            )


class FittedRule(Protocol):
    """A rule with fitted parameters. `foretell.forecasters.combine.saving` writes it as JSON."""

    @property
    def training(self) -> Training:
        """The rule's training data."""
        ...

    def probabilities(self, rows: TrialRows) -> Floats:
        """Return one probability per row, or NaN. Call `apply` instead, which checks for overlap."""
        ...


@runtime_checkable
class ExplainsItself(Protocol):
    """A fitted rule that can explain the weight of the trials."""

    def reason(self, rows: TrialRows) -> str:
        """Return an explanation in sentences; empty if the rule gave no answer."""
        ...


@runtime_checkable
class WeighsTrials(Protocol):
    """A fitted rule that weighs trials against a price or a base rate."""

    def weight_of_trials(self, rows: TrialRows) -> Floats:
        """Return the weight of the trials in each answer, in log-odds; NaN without an answer."""
        ...


class CombinationMethod(Protocol):
    """A way to learn a rule from examples."""

    @property
    def name(self) -> str:
        """The name shown in tables and written to files."""
        ...

    def fit(self, examples: Examples) -> FittedRule:
        """Learn a rule from the examples. It must be finite even without examples or with one class only."""
        ...


def one_sided(examples: Examples) -> bool:
    """Whether there are no answered examples, or all have the same outcome, so that calibration is unknown.

    The calibration rules are the identity in that case.
    """
    counted = ~np.isnan(examples.rows.raw) & (examples.weight > 0)
    return len(np.unique(examples.outcome[counted])) < 2


Check = Literal["time", "ids"]


def apply(fitted: FittedRule, rows: TrialRows, *, check: Check = "time") -> Floats:
    """Return the rule's probabilities. Raises `TrainingOverlap` for rows that it was trained on.

    `check="ids"` refuses only the training askings and allows earlier questions. Use it for consistency checks between
    two rounds, not for published results.
    """
    fitted.training.refuse(rows, time=check == "time")
    return fitted.probabilities(rows)


# Rules fitted without each group in turn: by refitting, or by a faster equivalent of the method.


@runtime_checkable
class SupportsLeaveOut(Protocol):
    """A method that can leave groups out faster than by refitting, with the same result."""

    def leave_out(self, examples: Examples, groups: Ints) -> Floats:
        """Return each example's probability from the rule fitted without its group; groups are arbitrary integers."""
        ...


@runtime_checkable
class SupportsFewRules(Protocol):
    """A method that picks its rule from a short list, so that leaving groups out yields few different rules."""

    def rules_without(self, examples: Examples, groups: Ints) -> tuple[Sequence[FittedRule], Ints]:
        """Return the distinct rules fitted without a group, and the index of each example's rule."""
        ...


def left_out(method: CombinationMethod, examples: Examples, groups: Ints) -> Floats:
    """Return each example's probability from the rule fitted without its group."""
    if isinstance(method, SupportsLeaveOut):
        return method.leave_out(examples, groups)
    return refitted(method, examples, groups)


def refitted(method: CombinationMethod, examples: Examples, groups: Ints) -> Floats:
    """Like `left_out`, but always by refitting without each group."""
    p = np.full(len(examples), np.nan)
    for group in np.unique(groups):
        out = groups == group
        p[out] = method.fit(examples.take(~out)).probabilities(examples.rows.take(out))
    return p


# Chains of rules: each is applied to the output of the one before.


@frozen
class FittedRaw:
    """Returns the logit mean, the baseline of all other rules. It has no training data."""

    training: Training = field(default_factory=Training)

    def probabilities(self, rows: TrialRows) -> Floats:
        """The logit mean of each row's trials."""
        return rows.raw


@frozen
class FittedChain:
    """Fitted rules in the order in which they are applied; without any, the logit mean."""

    stages: tuple[FittedRule, ...] = ()
    training: Training = field(default_factory=Training)

    def probabilities(self, rows: TrialRows) -> Floats:
        """The last stage's output, each stage applied to that of the one before; NaN if no trial answered."""
        for stage in self.stages:
            rows = rows.with_trials(stage.probabilities(rows))
        return rows.raw


@frozen
class ChainedMethod:
    """A sequence of methods, each fitted on the output of the one before it on the same examples.

    Later stages see that output as a single trial. Leaving a group out of a chain leaves it out of every stage. Without
    methods it is the logit mean.
    """

    methods: tuple[CombinationMethod, ...] = ()

    @property
    def name(self) -> str:
        """The name shown in tables."""
        return ", ".join(method.name for method in self.methods) or "raw"

    def fit(self, examples: Examples) -> FittedChain:
        """Fit all stages in turn."""
        training = Training.of(examples) if self.methods else Training()
        stages: list[FittedRule] = []
        for method in self.methods:
            stages.append(method.fit(examples))
            examples = with_rule_applied(stages[-1], examples)
        return FittedChain(stages=tuple(stages), training=training)

    def leave_out(self, examples: Examples, groups: Ints) -> Floats:
        """Return each example's probability from a chain fitted without its group in any stage."""
        if not self.methods:
            return examples.rows.raw
        first, rest = self.methods[0], ChainedMethod(methods=self.methods[1:])
        if not rest.methods:
            return left_out(first, examples, groups)
        if not isinstance(first, SupportsFewRules):
            return refitted(self, examples, groups)
        p = np.full(len(examples), np.nan)
        rules, which = first.rules_without(examples, groups)
        for i, rule in enumerate(rules):
            here = which == i
            p[here] = rest.leave_out(with_rule_applied(rule, examples), groups)[here]
        return p


def with_rule_applied(fitted: FittedRule, examples: Examples) -> Examples:
    """Return the examples with a rule's probabilities in place of the trials."""
    return replace(examples, rows=examples.rows.with_trials(fitted.probabilities(examples.rows)))
