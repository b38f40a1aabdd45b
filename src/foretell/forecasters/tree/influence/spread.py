"""How unsure the root is, given how unsure its leaves are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from foretell.forecasters.tree.arithmetic.circuit import Circuit, run_many, slopes
from foretell.forecasters.tree.influence.sensitivity import insist_on_inputs, worked_out
from foretell.forecasters.tree.proposition import Tree
from foretell.questions.problems import InputError

if TYPE_CHECKING:
    import numpy as np

    from foretell.forecasters.tree.arithmetic.circuit import Floats

EXACT_UP_TO = 12
"""Uncertain inputs for which the spread is worked out over all combinations."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How unsure the root's probability is, given how unsure the inputs' are."""

    p: float
    first_order: float
    """Standard deviation √(Σᵢⱼ ∂ᵢ·∂ⱼ·covᵢⱼ), the tangent's answer; exact for linear trees."""
    exact: float | None
    """Standard deviation for independent errors, curvature included; None for more than 12 uncertain inputs."""
    contributions: Mapping[str, float]
    """(∂P/∂c)²·σ² of each input."""
    low: float | None = None
    high: float | None = None
    """5 % and 95 % points over draws from beta distributions, where draws were asked for."""


def spread(
    tree: Tree,
    sd: Mapping[str, float],
    *,
    correlation: float = 0.0,
    draws: int = 0,
    rng: "np.random.Generator | None" = None,
) -> Spread:
    """How unsure the root is when the inputs in `sd` have these standard deviations.

    `correlation` is that between the errors of any two inputs; it enters the first-order answer only. With `draws` and
    `rng`, percentiles come from beta distributions with each input's mean and standard deviation, drawn independently.
    """
    circuit, values = worked_out(tree)
    insist_on_inputs(circuit, sd)
    place = circuit.claims[tree.root]
    slope = slopes(circuit.ops, values, place)
    parts = {name: slope[circuit.where[name]] * s for name, s in sd.items()}
    squares = sum(part * part for part in parts.values())
    variance = squares + correlation * (sum(parts.values()) ** 2 - squares)
    low, high = _percentiles(circuit, values, sd, draws, rng) if draws and rng is not None else (None, None)
    return Spread(
        p=values[place],
        first_order=max(variance, 0.0) ** 0.5,
        exact=_exact_spread(circuit, values, sd) if len(sd) <= EXACT_UP_TO else None,
        contributions={name: part * part for name, part in parts.items()},
        low=low,
        high=high,
    )


def _exact_spread(circuit: Circuit, values: Sequence[float], sd: Mapping[str, float]) -> float:
    """Over all combinations of mean ± σ.

    P is linear in each input, so P² is quadratic in each, and two points at ± σ have the first two moments of any
    distribution with that mean and variance: its mean over the 2ᵏ combinations is exact.
    """
    import numpy as np

    count = 2 ** len(sd)
    worlds = np.arange(count)
    moved = {
        name: values[circuit.where[name]] + s * np.where(worlds >> i & 1, 1.0, -1.0)
        for i, (name, s) in enumerate(sd.items())
    }
    found = run_many(circuit, {**_now(circuit, values, count), **moved}, count, capped=False)
    return float(np.std(found[circuit.claims[circuit.root]]))


def _percentiles(
    circuit: Circuit, values: Sequence[float], sd: Mapping[str, float], draws: int, rng: "np.random.Generator"
) -> tuple[float, float]:
    import numpy as np

    worlds = _now(circuit, values, draws)
    for name, s in sd.items():
        mean = values[circuit.where[name]]
        if s > 0 and 0 < mean < 1:
            size = mean * (1 - mean) / s**2 - 1
            if size <= 0:
                most = (mean * (1 - mean)) ** 0.5
                raise InputError(f"a chance of {mean:g} cannot be unsure by {s:g}", hint=f"at most {most:.3g}")
            worlds[name] = rng.beta(mean * size, (1 - mean) * size, draws)
    found = run_many(circuit, worlds, draws)[circuit.claims[circuit.root]]
    low, high = np.quantile(found, [0.05, 0.95])
    return float(low), float(high)


def _now(circuit: Circuit, values: Sequence[float], count: int) -> "dict[str, Floats]":
    """Every input as it is, as often as there are worlds."""
    import numpy as np

    return {name: np.full(count, values[at]) for name, at in circuit.where.items()}
