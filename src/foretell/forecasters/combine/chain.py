"""Rules one after the other: each works on what the one before it said."""

from dataclasses import dataclass, field, replace

import numpy as np

from foretell.evaluate.arrays import Floats, Ints
from foretell.forecasters.combine.fitted import Fitted, Method, Training
from foretell.forecasters.combine.left_out import FewRules, left_out, refitted
from foretell.forecasters.combine.rows import Examples, Rows


@dataclass(frozen=True, kw_only=True)
class FittedChain:
    """Fitted rules in the order in which they are applied; without any, the logit mean."""

    stages: tuple[Fitted, ...] = ()
    training: Training = field(default_factory=Training)

    def probabilities(self, rows: Rows) -> Floats:
        """What the last stage says of what the others made of the trials; NaN where no trial answered."""
        for stage in self.stages:
            rows = rows.with_trials(stage.probabilities(rows))
        return rows.raw


@dataclass(frozen=True, kw_only=True)
class Chain:
    """A method of several methods, each fitted on the output of the one before it on the same examples.

    To later stages the output is a single trial. Leaving a group out of a chain leaves it out of every stage.

    >>> from foretell.forecasters.combine.platt import HierarchicalPlatt
    >>> from foretell.forecasters.combine.shrink import Shrink
    >>> Chain(methods=(Shrink(), HierarchicalPlatt())).name
    'shrink, platt by source'
    """

    methods: tuple[Method, ...]

    @property
    def name(self) -> str:
        """As shown in tables."""
        return ", ".join(method.name for method in self.methods) or "raw"

    def fit(self, examples: Examples) -> FittedChain:
        """All stages, fitted in turn."""
        training = Training.of(examples)
        stages: list[Fitted] = []
        for method in self.methods:
            stages.append(method.fit(examples))
            examples = said_by(stages[-1], examples)
        return FittedChain(stages=tuple(stages), training=training)

    def leave_out(self, examples: Examples, groups: Ints) -> Floats:
        """Each example's probability from a chain fitted without its group in any stage."""
        if not self.methods:
            return examples.rows.raw
        first, rest = self.methods[0], Chain(methods=self.methods[1:])
        if not self.methods[1:]:
            return left_out(first, examples, groups)
        if not isinstance(first, FewRules):
            return refitted(self, examples, groups)
        p = np.full(len(examples), np.nan)
        rules, which = first.rules_without(examples, groups)
        for i, rule in enumerate(rules):
            here = which == i
            p[here] = rest.leave_out(said_by(rule, examples), groups)[here]
        return p


def said_by(fitted: Fitted, examples: Examples) -> Examples:
    """The examples with a rule's probabilities in place of the trials."""
    return replace(examples, rows=examples.rows.with_trials(fitted.probabilities(examples.rows)))
