"""What all learnt rules share: a rule is a value, knows what it was trained on, and refuses to judge that."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from foretell.forecasters.combine.rows import Examples, TrialRows
from foretell.metrics.arrays import Floats, Ints


class TrainingOverlap(ValueError):
    """A fitted rule was asked about what it had learnt from, or about a time whose outcomes it had already seen."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """What a rule learnt from: its askings, and the last day on which one of their answers became known."""

    askings: tuple[str, ...] = ()
    """The askings as question@due, sorted, each once."""
    first_due: date | None = None
    last_known: date | None = None
    n: int = 0
    """Number of targets."""

    @classmethod
    def of(cls, examples: Examples) -> "Training":
        """The record of a training set."""
        if not len(examples):
            return cls()
        return cls(
            askings=tuple(map(str, np.unique(examples.rows.asking))),
            first_due=examples.rows.due.min().astype("M8[D]").item(),
            last_known=examples.known_on.max().astype("M8[D]").item(),
            n=len(examples),
        )

    def refuse(self, rows: TrialRows, *, time: bool = True) -> None:
        """Raise `TrainingOverlap` for a question seen in training; with `time`, for one asked before training's end."""
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
                f"{first} was asked before {self.last_known}, and it learnt from outcomes of that day"
            )


class FittedRule(Protocol):
    """A rule with its numbers. `foretell.forecasters.combine.saving` writes it as JSON."""

    @property
    def training(self) -> Training:
        """What the rule learnt from."""
        ...

    def probabilities(self, rows: TrialRows) -> Floats:
        """One probability per row; NaN if the rule has none to give. Call `apply` instead, which checks overlap."""
        ...


@runtime_checkable
class ExplainsItself(Protocol):
    """A fitted rule that can say how much the trials counted, and why."""

    def reason(self, rows: TrialRows) -> str:
        """An explanation in sentences; empty if the rule gave no answer."""
        ...


class CombinationMethod(Protocol):
    """A way to learn a rule from examples."""

    @property
    def name(self) -> str:
        """The name shown in tables and written to files."""
        ...

    def fit(self, examples: Examples) -> FittedRule:
        """Learn a rule from the examples; without any, or with one class only, return a finite documented rule."""
        ...


def one_sided(examples: Examples) -> bool:
    """Whether the answered examples all had the same outcome, or there are none: then calibration is unknown.

    The calibration rules are the identity in that case, whatever their form would make of it.
    """
    counted = ~np.isnan(examples.rows.raw) & (examples.weight > 0)
    return len(np.unique(examples.outcome[counted])) < 2


Check = Literal["time", "ids"]


def apply(fitted: FittedRule, rows: TrialRows, *, check: Check = "time") -> Floats:
    """The rule's probabilities; raise `TrainingOverlap` for rows it was trained on.

    `check="ids"` refuses only the askings themselves and lets a later training set judge earlier questions: good for a
    consistency check between two rounds, not for a number to publish.
    """
    fitted.training.refuse(rows, time=check == "time")
    return fitted.probabilities(rows)


# Rules fitted without each group in turn: by fitting again, or by a method's own shorter way to the same result.


@runtime_checkable
class SupportsLeaveOut(Protocol):
    """A method that can leave groups out faster than by refitting, with the same result."""

    def leave_out(self, examples: Examples, groups: Ints) -> Floats:
        """Each example's probability from the rule fitted without its group; groups are arbitrary integers."""
        ...


@runtime_checkable
class SupportsFewRules(Protocol):
    """A method that picks its rule from a short list, so that leaving groups out yields few different rules."""

    def rules_without(self, examples: Examples, groups: Ints) -> tuple[Sequence[FittedRule], Ints]:
        """The different rules fitted without a group, and for each example which of them left its group out."""
        ...


def left_out(method: CombinationMethod, examples: Examples, groups: Ints) -> Floats:
    """Each example's probability from the rule fitted without its group."""
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


# Rules one after the other: each works on what the one before it said.


@dataclass(frozen=True, kw_only=True)
class FittedRaw:
    """Returns the logit mean, which every other rule has to beat; it learnt nothing, so it refuses nothing."""

    training: Training = field(default_factory=Training)

    def probabilities(self, rows: TrialRows) -> Floats:
        """The logit mean of each row's trials."""
        return rows.raw


@dataclass(frozen=True, kw_only=True)
class FittedChain:
    """Fitted rules in the order in which they are applied; without any, the logit mean."""

    stages: tuple[FittedRule, ...] = ()
    training: Training = field(default_factory=Training)

    def probabilities(self, rows: TrialRows) -> Floats:
        """The last stage's output, each stage applied to that of the one before; NaN if no trial answered."""
        for stage in self.stages:
            rows = rows.with_trials(stage.probabilities(rows))
        return rows.raw


@dataclass(frozen=True, kw_only=True)
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
        """Each example's probability from a chain fitted without its group in any stage."""
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
    """The examples with a rule's probabilities in place of the trials."""
    return replace(examples, rows=examples.rows.with_trials(fitted.probabilities(examples.rows)))
