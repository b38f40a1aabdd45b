"""Do probabilities fit each other? Checks that need no outcome (Prophet Arena, appendix D.4).

Scores count what holds (1 is consistent). Gaps say by how much it fails (0 is consistent), and so still
tell forecasters apart where nearly all of them pass.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from foretell.evaluate.arrays import Floats, as_floats, as_probabilities, group_sums, same_shape
from foretell.evaluate.clusters import factorise

ROUNDING = 1e-9
"""Slack for sums such as 0.1 + 0.2 that miss their value by a rounding error."""


def logical_chain_score(chains: Sequence[npt.ArrayLike]) -> float:
    """Mean over chains of the share of steps that obey S_t → S_t+1, i.e. p_t ≤ p_t+1 (PA Eq. 9).

    Each chain lists probabilities from the strongest claim to the weakest ("above 220" before "above 200").
    Pass the maximal chains of one event, then average events; one list of all chains weighs chains equally.

    >>> logical_chain_score([[0.1, 0.3, 0.2], [0.5, 0.5]])
    0.75
    """
    if not len(chains):
        raise ValueError("chains is empty: there is nothing to score")
    steps = (np.diff(_chain(chain, f"chains[{i}]")) for i, chain in enumerate(chains))
    return float(np.mean([np.mean(step >= -ROUNDING) for step in steps]))


def chain_gap(chain: npt.ArrayLike) -> float:
    """Largest amount by which a claim is held likelier than one it implies, max over s<t of (p_s − p_t)⁺.

    >>> round(chain_gap([0.1, 0.3, 0.2, 0.25]), 3)
    0.1
    """
    return worst_fall(_chain(chain, "chain"))


def exclusivity_score(p: npt.ArrayLike, event: npt.ArrayLike, *, tolerance: float = 0.02) -> float:
    """Share of events whose exclusive and exhaustive outcomes sum to 1 within `tolerance` (PA Eq. 10).

    The paper names no tolerance; 0.02 forgives percent-rounding and little else.

    >>> exclusivity_score([0.5, 0.5, 0.7, 0.7], ["a", "a", "b", "b"])
    0.5
    """
    if not tolerance >= 0:
        raise ValueError(f"tolerance must be >= 0, it is {tolerance}")
    return float(np.mean(np.abs(exclusivity_gaps(p, event)) <= tolerance + ROUNDING))


def exclusivity_gaps(p: npt.ArrayLike, event: npt.ArrayLike) -> Floats:
    """Σp − 1 of each event, in the sorted order of event labels; above 0 when too much is promised.

    >>> exclusivity_gaps([0.5, 0.5, 0.7, 0.7], ["a", "a", "b", "b"]).round(2)
    array([0. , 0.4])
    """
    p = np.atleast_1d(as_probabilities(p))
    events = factorise(event, "event")
    same_shape(p=p, event=events.codes)
    return group_sums(events.codes, p, events.n) - 1


def complement_gaps(p: npt.ArrayLike, p_not: npt.ArrayLike) -> Floats:
    """P(A) + P(not A) − 1 for claims asked both ways: above 0 is a leaning to say yes.

    >>> complement_gaps([0.7, 0.4], [0.4, 0.6]).round(2)
    array([0.1, 0. ])
    """
    p, p_not = as_probabilities(p), as_probabilities(p_not, "p_not")
    same_shape(p=p, p_not=p_not)
    return p + p_not - 1


def horizon_gaps(p: npt.ArrayLike, horizon: npt.ArrayLike, question: npt.ArrayLike) -> Floats:
    """Worst fall of p with a longer horizon, per question of the kind "will it happen by …".

    Such probabilities can only rise with the horizon. One row per (question, horizon); results are in the
    sorted order of question labels. A question with one horizon has gap 0.

    >>> horizon_gaps([0.3, 0.2, 0.6, 0.5], [30, 90, 90, 30], ["a", "a", "b", "b"]).round(2)
    array([0.1, 0. ])
    """
    p, horizon = np.atleast_1d(as_probabilities(p)), np.atleast_1d(as_floats(horizon, "horizon"))
    questions = factorise(question, "question")
    same_shape(p=p, horizon=horizon, question=questions.codes)
    order = np.lexsort((p, horizon, questions.codes))
    starts = np.searchsorted(questions.codes[order], np.arange(1, questions.n))
    return np.array([worst_fall(part) for part in np.split(p[order], starts)])


def worst_fall(p: Floats) -> float:
    """Worst fall along a sequence that ought not to fall.

    >>> worst_fall(np.array([0.5, 0.25]))
    0.25
    """
    return float(np.max(np.maximum.accumulate(p) - p))


def _chain(chain: npt.ArrayLike, name: str) -> Floats:
    p = as_probabilities(chain, name)
    if p.ndim != 1 or len(p) < 2:
        raise ValueError(f"{name} needs at least two claims in a row, it has shape {p.shape}")
    return p
