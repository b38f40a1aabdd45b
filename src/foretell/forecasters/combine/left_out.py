"""Rules fitted without each group in turn: by fitting again, or by a method's own shorter way to the same result."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from foretell.evaluate.arrays import Floats, Ints
from foretell.forecasters.combine.fitted import Fitted, Method
from foretell.forecasters.combine.rows import Examples


@runtime_checkable
class LeavesOut(Protocol):
    """A method with a faster way to leave groups out than fitting again, and with the same result."""

    def leave_out(self, examples: Examples, groups: Ints) -> Floats:
        """Each example's probability from the rule fitted without its group, groups being any integers."""
        ...


@runtime_checkable
class FewRules(Protocol):
    """A method that picks its rule from a short list, so that leaving groups out yields few different rules."""

    def rules_without(self, examples: Examples, groups: Ints) -> tuple[Sequence[Fitted], Ints]:
        """The different rules fitted without a group, and for each example which of them left its group out."""
        ...


def left_out(method: Method, examples: Examples, groups: Ints) -> Floats:
    """Each example's probability from the rule fitted without its group."""
    if isinstance(method, LeavesOut):
        return method.leave_out(examples, groups)
    return refitted(method, examples, groups)


def refitted(method: Method, examples: Examples, groups: Ints) -> Floats:
    """The same by fitting again without each group, whatever else the method can do."""
    p = np.full(len(examples), np.nan)
    for group in np.unique(groups):
        out = groups == group
        p[out] = method.fit(examples.take(~out)).probabilities(examples.rows.take(out))
    return p
