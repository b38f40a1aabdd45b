"""Which of several claims must be likelier than which, by their wording alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from foretell.forecasters.combine.coherence.claims import Claim
from foretell.forecasters.combine.coherence.deadlines import Deadline
from foretell.forecasters.combine.coherence.strikes import Strike

Key = tuple[float, int]
Slot = Strike | Deadline


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Claims in one line: the higher its level, the likelier a claim; claims on one level are the same claim."""

    rule: Literal["ladder", "by date"]
    names: tuple[str, ...]
    level: tuple[int, ...]
    flipped: tuple[bool, ...]
    """Where the claim's complement stands in the line: "below 5" among "above …"."""


@dataclass(frozen=True, kw_only=True)
class Nested:
    """Claims that differ in several places: only some can be compared."""

    names: tuple[str, ...]
    implications: tuple[tuple[str, str], ...]
    """Each of which the first cannot be true without the second."""
    rule: Literal["nested"] = "nested"


Order = Chain | Nested


def orders(claims: Mapping[str, Claim]) -> list[Order]:
    """All orders among claims that share their wording but for strikes or deadlines.

    Claims about the two sides of a value are put in one line only where they are bare.
    """
    alike: dict[tuple[str, tuple[bool, ...]], list[str]] = {}
    for name, claim in claims.items():
        sides = () if claim.bare else tuple(_flipped(slot) for slot in claim.slots)
        alike.setdefault((claim.template, sides), []).append(name)
    found = (_order([(name, claims[name]) for name in names]) for names in alike.values() if len(names) > 1)
    return [order for order in found if order is not None]


def _order(claims: Sequence[tuple[str, Claim]]) -> Order | None:
    columns = list(zip(*(claim.slots for _, claim in claims), strict=True))
    moving = [column for column in columns if len({_key(slot) for slot in column}) > 1 or _two_sided(column)]
    if not moving:
        return None
    if any(isinstance(column[0], Deadline) for column in moving) and not claims[0][1].lasting:
        return None
    names = tuple(name for name, _ in claims)
    return _chain(names, moving[0]) if len(moving) == 1 else _nested(names, moving)


def _chain(names: tuple[str, ...], column: Sequence[Slot]) -> Chain:
    keys = [_key(slot) for slot in column]
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys), reverse=True))}
    return Chain(
        rule="by date" if isinstance(column[0], Deadline) else "ladder",
        names=names,
        level=tuple(ranks[key] for key in keys),
        flipped=tuple(_flipped(slot) for slot in column),
    )


def _nested(names: tuple[str, ...], columns: Sequence[Sequence[Slot]]) -> Nested | None:
    strength = [[_key(slot) for slot in column] for column in columns]
    places = [{key: place for place, key in enumerate(sorted(set(column)))} for column in strength]
    table = np.array([[place[key] for key in column] for place, column in zip(places, strength, strict=True)])
    table[[_flipped(column[0]) for column in columns]] *= -1
    stronger = np.all(table[:, :, None] >= table[:, None, :], axis=0) & ~np.eye(len(names), dtype=np.bool_)
    # Between claims that are the same both directions hold; else a step that goes through a third claim is left out.
    strict = stronger & ~stronger.T
    direct = stronger & ~((strict.astype(int) @ strict.astype(int)) > 0)
    pairs = tuple((names[i], names[j]) for i, j in np.argwhere(direct).tolist())
    return Nested(names=names, implications=pairs) if pairs else None


def _key(slot: Slot) -> Key:
    """The larger, the less likely what stands in the line: the claim, or for `below` its complement."""
    if isinstance(slot, Deadline):
        return -float(slot.day.toordinal()), 0
    if slot.side == "dip":
        return -slot.value, 0
    above = slot.included != slot.below
    return slot.value, 0 if above else 1


def _flipped(slot: Slot) -> bool:
    return isinstance(slot, Strike) and slot.below


def _two_sided(column: Sequence[Slot]) -> bool:
    return len({_flipped(slot) for slot in column}) > 1
