"""Metrics computed directly from their definitions, to compare with those computed from sums."""

import numpy as np

from foretell.metrics import RISK_NEUTRAL_BETTOR, payoff


def event_weights(event):
    """1/m for every row of an event that has m rows."""
    _, code, size = np.unique(event, return_inverse=True, return_counts=True)
    return 1 / size[code]


def average_return(paid, weight=None):
    paid = np.asarray(paid, float)
    weight = np.where(np.isnan(paid), 0.0, np.ones(len(paid)) if weight is None else weight)
    return np.average(np.nan_to_num(paid), weights=weight)


def sharpe(paid, weight=None):
    paid = np.asarray(paid, float)
    known = ~np.isnan(paid)
    w, x = (np.ones(len(paid)) if weight is None else np.asarray(weight, float))[known], paid[known] - 1
    mean = np.average(x, weights=w)
    square, freedom = w @ (x - mean) ** 2, w.sum() - w @ w / w.sum()
    return mean / np.sqrt(square / freedom) if freedom > 1e-9 and square > 1e-12 * (w @ x**2) else np.nan


def sides(p, outcome, yes_price, no_price, weight=None, bettor=RISK_NEUTRAL_BETTOR):
    """Return of a dollar staked on Yes, and on No."""
    yes, no = (np.nan_to_num(side) for side in bettor.stakes(p, yes_price, no_price))
    paid = np.nan_to_num(payoff(p, outcome, yes_price, no_price, bettor))
    weight, won = np.ones(len(yes)) if weight is None else np.asarray(weight), np.asarray(outcome) == 1
    return [
        (weight * there) @ paid / (weight @ staked) if weight @ staked > 0 else np.nan
        for there, staked in ((won, yes), (~won, no))
    ]
