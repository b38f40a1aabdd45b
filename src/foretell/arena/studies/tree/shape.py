"""How a made-up tree hangs together, before anything is said about numbers."""

from collections.abc import Mapping

import numpy as np

from foretell.forecasters.tree.growing.draft import ROOT, child_id, depth_of

Shape = Mapping[str, tuple[str, ...]]
"""By claim, its children; leaves have none."""


def draw_shape(
    leaves: int, rng: np.random.Generator, *, children: tuple[int, int] = (2, 4), shared: float = 0.0
) -> Shape:
    """A tree with at least so many leaves, taken apart from the top down as an analyzer does: shallow claims first.

    Each parent has a random number of children within the bounds. With `shared`, a parent's last child is with that
    chance a leaf that serves another parent already: one claim, used twice.

    >>> shape = draw_shape(5, np.random.default_rng(0))
    >>> list(shape)[:3], sum(not below for below in shape.values()) >= 5
    (['P0', 'P1', 'P2'], True)
    """
    if leaves < 1 or not 2 <= children[0] <= children[1]:
        raise ValueError(f"no tree has {leaves} leaves and {children[0]} to {children[1]} children")
    found: dict[str, tuple[str, ...]] = {ROOT: ()}
    open_ends, sealed = [ROOT], list[str]()
    while len(open_ends) + len(sealed) < leaves:
        shallow = min(map(depth_of, open_ends))
        parent = _taken([claim for claim in open_ends if depth_of(claim) == shallow], rng)
        open_ends.remove(parent)
        count = int(rng.integers(children[0], children[1] + 1))
        new = [child_id(parent, place) for place in range(1, count + 1)]
        if open_ends and rng.random() < shared:
            # It stays a leaf from now on, so that no claim comes to rest on itself.
            new[-1] = _taken(open_ends, rng)
            open_ends.remove(new[-1])
            sealed.append(new[-1])
        found[parent] = tuple(new)
        open_ends += [claim for claim in new if claim not in found]
        found |= {claim: () for claim in new if claim not in found}
    return found


def _taken(claims: list[str], rng: np.random.Generator) -> str:
    return claims[int(rng.integers(len(claims)))]
