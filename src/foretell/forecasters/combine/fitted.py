"""What every learnt rule shares: it is a value, knows what it was trained on, and refuses to judge that."""

from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, Protocol

import numpy as np

from foretell.evaluate.arrays import Floats
from foretell.forecasters.combine.rows import Examples, Rows


class TrainedOnIt(ValueError):
    """A fitted rule was asked about what it had learnt from, or about a time it had already seen the end of."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """What a rule learnt from: its askings, and the last day on which one of their answers became known."""

    askings: tuple[str, ...] = ()
    """question@due, sorted, each once."""
    first_due: date | None = None
    last_known: date | None = None
    n: int = 0
    """Targets."""

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

    def refuse(self, rows: Rows, *, time: bool = True) -> None:
        """Raise `TrainedOnIt` for an asking seen in training and, with `time`, for one asked before training's end."""
        seen = np.isin(rows.asking, np.asarray(self.askings, dtype=str)) if self.askings else np.zeros(len(rows), bool)
        if seen.any():
            raise TrainedOnIt(f"{rows.asking[seen][0]} is among the {len(self.askings)} askings it was fitted on")
        if not time or self.last_known is None:
            return
        early = rows.due <= np.datetime64(self.last_known, "D")
        if early.any():
            first = rows.asking[early][0]
            raise TrainedOnIt(f"{first} was asked before {self.last_known}, and it learnt from outcomes of that day")


class Fitted(Protocol):
    """A rule with its numbers. Written as JSON through `foretell.forecasters.combine.saving`."""

    @property
    def training(self) -> Training:
        """What it learnt from."""
        ...

    def probabilities(self, rows: Rows) -> Floats:
        """One probability per row; NaN only where a row has no trial. Does not check: call `apply` instead."""
        ...


class Method(Protocol):
    """A way to learn a rule from examples."""

    @property
    def name(self) -> str:
        """As shown in tables and written into files."""
        ...

    def fit(self, examples: Examples) -> Fitted:
        """The rule learnt from the examples; with none, or with one class only, a finite documented rule."""
        ...


def one_sided(examples: Examples) -> bool:
    """Whether the answered examples all came out alike, or there is none: then nothing about calibration is known.

    The calibration rules are the identity in that case, whatever their form would make of it.
    """
    counted = ~np.isnan(examples.rows.raw) & (examples.weight > 0)
    return len(np.unique(examples.outcome[counted])) < 2


Check = Literal["time", "ids"]


def apply(fitted: Fitted, rows: Rows, *, check: Check = "time") -> Floats:
    """The rule's probabilities, refused for what it was trained on.

    `check="ids"` refuses only the askings themselves and lets a later training set speak about earlier questions: good
    for a consistency check between two rounds, not for a number to publish.
    """
    fitted.training.refuse(rows, time=check == "time")
    return fitted.probabilities(rows)


Parameters = dict[str, Any]
