"""Array types of the package, and the checks that every score runs once on its inputs.

Each `as_*` function either returns a float64 array that is safe to compute with, or raises a `ValueError` that names
the argument and the first offending position. The array may share memory with the input; no function of this package
writes into it.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def as_floats(values: npt.ArrayLike, name: str) -> Floats:
    """Float64 array of any shape with at least one element and no NaN; infinities pass."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers without gaps: {error}") from error
    if array.size == 0:
        raise ValueError(f"{name} is empty: there is nothing to score")
    reject(np.isnan(array), array, name, "is missing (NaN)")
    return array


def as_vector(values: npt.ArrayLike, name: str) -> Floats:
    """One-dimensional form of `as_floats`; a bare number becomes a vector of length one."""
    array = np.atleast_1d(as_floats(values, name))
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, it has shape {array.shape}")
    return array


def as_probabilities(p: npt.ArrayLike, name: str = "p") -> Floats:
    """Probabilities as a float64 array, each within [0, 1]; the shape is kept."""
    array = as_floats(p, name)
    reject((array < 0) | (array > 1), array, name, "lies outside [0, 1]")
    return array


def as_outcomes(y: npt.ArrayLike, name: str = "outcome") -> Floats:
    """Outcomes as float64 numbers within [0, 1]; booleans, integers and floats are accepted.

    An outcome between 0 and 1 is the share that came true: what a market paid out for Yes. A question that has not been
    resolved has no score, so NaN raises instead of being skipped.
    """
    array = as_floats(y, name)
    reject((array < 0) | (array > 1), array, name, "lies outside [0, 1]")
    return array


def as_pairs(p: npt.ArrayLike, outcome: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return probabilities and their outcomes, both checked and of the same shape."""
    probabilities, outcomes = as_probabilities(p), as_outcomes(outcome)
    same_shape(p=probabilities, outcome=outcomes)
    return probabilities, outcomes


def as_distributions(p: npt.ArrayLike, name: str = "p") -> Floats:
    """Rows of option probabilities, shape (questions, options); each row sums to 1 within 1e-6.

    NaN marks an option that a question does not have, so questions of different sizes fit one matrix.
    """
    array = np.atleast_2d(np.asarray(p, dtype=np.float64))
    present = ~np.isnan(array)
    if array.ndim != 2 or not present.any():
        raise ValueError(f"{name} must be a non-empty matrix (questions, options), it has shape {array.shape}")
    filled = np.where(present, array, 0.0)
    reject((filled < 0) | (filled > 1), array, name, "lies outside [0, 1]")
    total = filled.sum(axis=1)
    reject(np.abs(total - 1) > 1e-6, total, f"sum of {name}", "is not 1")
    return array


def as_weights(w: npt.ArrayLike | None, n: int, name: str = "weight") -> Floats:
    """Finite weights >= 0 of length `n` with a positive sum; None means a weight of 1 each."""
    if w is None:
        if n < 1:
            raise ValueError(f"{name} is empty: there is nothing to score")
        return np.ones(n)
    array = as_vector(w, name)
    if len(array) != n:
        raise ValueError(f"{name} has length {len(array)}, expected {n}")
    reject((array < 0) | np.isinf(array), array, name, "is not a finite number >= 0")
    if not array.any():
        raise ValueError(f"{name} sums to zero: there is nothing to score")
    return array


def same_shape(**arrays: npt.NDArray[np.generic]) -> None:
    """Raise unless all arrays have one shape; keyword names appear in the message."""
    shapes = {name: array.shape for name, array in arrays.items()}
    if len(set(shapes.values())) > 1:
        raise ValueError("shapes differ: " + ", ".join(f"{name} {shape}" for name, shape in shapes.items()))


def reject(bad: Bools, array: Floats, name: str, complaint: str) -> None:
    """Raise a ValueError about the first element flagged in `bad`; do nothing if none is."""
    if not bad.any():
        return
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    place = f"{name}[{', '.join(map(str, index))}]" if index else name
    raise ValueError(f"{place} = {array[index]} {complaint}")


def group_sums(codes: npt.NDArray[np.signedinteger], column: Floats, groups: int) -> Floats:
    """Sum of `column` within each code 0..groups−1."""
    return np.bincount(codes, weights=column, minlength=groups).astype(np.float64, copy=False)
