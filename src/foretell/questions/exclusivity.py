"""How many targets of a question can come true together, and what that asks of their probabilities."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

Exclusivity = Literal["exactly one", "at most one", "independent"]
"""Of the targets exactly one comes true; one or none does; or each by itself, so that none, some or all may."""
NONE_OF_THEM = "none of them"
"""What is shown as one case more where at most one target comes true."""
EXCLUSIVITIES: tuple[Exclusivity, ...] = get_args(Exclusivity)


def read_exclusivity(given: Any) -> Exclusivity:
    """From text, also with hyphens, or from the yes or no of older files; anything else is a `ValueError`.

    >>> read_exclusivity("at-most-one"), read_exclusivity(True), read_exclusivity(False)
    ('at most one', 'exactly one', 'independent')
    """
    if isinstance(given, bool):
        return "exactly one" if given else "independent"
    text = " ".join(given.lower().replace("-", " ").replace("_", " ").split()) if isinstance(given, str) else None
    if text not in EXCLUSIVITIES:
        raise ValueError(f"{given!r} is not one of {', '.join(EXCLUSIVITIES)}")
    return text


def with_some_left_out(exclusivity: Exclusivity) -> Exclusivity:
    """What holds of some of the targets: where exactly one of all comes true, it may be one that was left out.

    >>> with_some_left_out("exactly one"), with_some_left_out("independent")
    ('at most one', 'independent')
    """
    return "at most one" if exclusivity == "exactly one" else exclusivity


def even_chance(exclusivity: Exclusivity, targets: int) -> float:
    """The probability of each of so many targets where nothing tells them apart; "none of them" is one case more.

    >>> even_chance("exactly one", 4), even_chance("at most one", 4), even_chance("independent", 4)
    (0.25, 0.2, 0.5)
    """
    cases = {"exactly one": targets, "at most one": targets + 1, "independent": 2}
    return 1 / cases[exclusivity]


def probability_of_none(p: Mapping[str, float], exclusivity: Exclusivity) -> float | None:
    """The probability that none of all targets comes true, where their own tell it: of at most one, what is left.

    >>> probability_of_none({"a": 0.5, "b": 0.25}, "at most one")
    0.25
    """
    return max(0.0, 1.0 - sum(p.values())) if exclusivity == "at most one" else None


def scaled(p: Mapping[str, float], exclusivity: Exclusivity) -> dict[str, float]:
    """The probabilities of all targets divided by their sum: always of exactly one, above one of at most one.

    >>> scaled({"a": 0.4, "b": 0.4}, "exactly one"), scaled({"a": 0.4, "b": 0.4}, "at most one")
    ({'a': 0.5, 'b': 0.5}, {'a': 0.4, 'b': 0.4})
    >>> scaled({"a": 1, "b": 1}, "at most one"), scaled({"a": 1, "b": 1}, "independent")
    ({'a': 0.5, 'b': 0.5}, {'a': 1, 'b': 1})
    """
    total = sum(p.values())
    if len(p) < 2 or exclusivity == "independent" or (exclusivity == "at most one" and total <= 1):
        return dict(p)
    if total <= 0:
        return dict.fromkeys(p, even_chance(exclusivity, len(p)))
    return {target: value / total for target, value in p.items()}
