"""The numbers of the leaderboard as functions of sums."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from foretell.arena.standings.bets import GAMMAS
from foretell.arena.standings.sums import AT, BINS
from foretell.evaluate.arrays import Floats
from foretell.evaluate.bootstrap import brier_index_from_sums, mean_from_sums
from foretell.evaluate.metric import ece_from_sums
from foretell.evaluate.returns import sharpe_from_sums


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One number, how it is written, and which way is better."""

    name: str
    label: str
    meaning: str
    columns: tuple[str, ...]
    """What it is made of; always with the weight of all forecasts."""
    from_sums: Callable[[Floats], Floats]
    """Sums (…, all columns) → numbers (…); NaN where there is nothing to count."""
    low_is_better: bool = False
    decimals: int = 3


_ECE = (*(f"ece{b}" for b in range(BINS)), "n")
_SHARPE = ("return0", "square", "priced", "priced_square")
_NO = ("return0", "won_yes", "priced", "yes")


def _at(*names: str) -> list[int]:
    return [AT[name] for name in names]


def _mean(column: str, weight: str) -> Callable[[Floats], Floats]:
    places = _at(column, weight)
    return lambda sums: mean_from_sums(sums[..., places])


def _index(sums: Floats) -> Floats:
    return brier_index_from_sums(sums[..., _at("brier", "n")])


def _ece(sums: Floats) -> Floats:
    return ece_from_sums(sums[..., _at(*_ECE)])


def _sharpe(sums: Floats) -> Floats:
    """With the excess x = payoff − 1 over the dollar kept: Σwx and Σwx² from the sums of payoffs and squares."""
    paid, square, weight, weight_square = (sums[..., place] for place in _at(*_SHARPE))
    return sharpe_from_sums(np.stack([weight, paid - weight, square - 2 * paid + weight, weight_square], axis=-1))


def _no_side(sums: Floats) -> Floats:
    paid, won_yes, weight, yes = (sums[..., place] for place in _at(*_NO))
    return mean_from_sums(np.stack([paid - won_yes, weight - yes], axis=-1))


_RISK = {0.0: "all in", 0.5: "half way", 1.0: "log wealth"}
MEASURES: dict[str, Measure] = {
    one.name: one
    for one in (
        Measure(
            name="brier",
            label="Brier",
            meaning="mean squared error of the probabilities; 0.25 is always-0.5",
            columns=("brier", "n"),
            from_sums=_mean("brier", "n"),
            low_is_better=True,
        ),
        Measure(
            name="bi",
            label="BI",
            meaning="Brier index 100·(1 − √Brier); 50 is always-0.5, 100 is perfect",
            columns=("brier", "n"),
            from_sums=_index,
            decimals=1,
        ),
        Measure(
            name="log",
            label="Log",
            meaning="mean log of the probability given to what happened, never less than 0.001; 0 is perfect",
            columns=("log", "n"),
            from_sums=_mean("log", "n"),
        ),
        Measure(
            name="ece",
            label="ECE",
            meaning="calibration error: mean gap of forecast and frequency over ten bins; 0 is perfect",
            columns=_ECE,
            from_sums=_ece,
            low_is_better=True,
        ),
        *(
            Measure(
                name=f"return{gamma:g}",
                label=f"Return γ={gamma:g}",
                meaning=f"worth of a dollar bet on each market at its asks, risk aversion {gamma:g} ({_RISK[gamma]}); "
                "1 is break-even",
                columns=("n", f"return{gamma:g}", "priced"),
                from_sums=_mean(f"return{gamma:g}", "priced"),
            )
            for gamma in GAMMAS
        ),
        *(
            Measure(
                name=f"net{gamma:g}",
                label=f"Net γ={gamma:g}",
                meaning=f"the same with risk aversion {gamma:g} after the platform's fees",
                columns=("n", f"net{gamma:g}", "priced"),
                from_sums=_mean(f"net{gamma:g}", "priced"),
            )
            for gamma in GAMMAS
        ),
        Measure(
            name="sharpe",
            label="Sharpe",
            meaning="mean over spread of the risk-neutral return above the dollar kept (R_b = 1)",
            columns=("n", *_SHARPE),
            from_sums=_sharpe,
        ),
        Measure(
            name="yes_side",
            label="Yes bets",
            meaning="what a dollar came to where the risk-neutral bettor bought Yes",
            columns=("n", "won_yes", "yes"),
            from_sums=_mean("won_yes", "yes"),
        ),
        Measure(
            name="no_side",
            label="No bets",
            meaning="what a dollar came to where the risk-neutral bettor bought No",
            columns=("n", *_NO),
            from_sums=_no_side,
        ),
    )
}
"""By name, in the order of the table."""
MAIN = "brier"
"""Ranks the board."""
