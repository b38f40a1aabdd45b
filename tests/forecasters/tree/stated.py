"""Stated cases of P1, P2, … as in the acceptance tests of the design, and their trees."""

from collections.abc import Sequence
from typing import Any

from tests.forecasters.tree.random_trees import claim, tree_of

from foretell.forecasters.tree.case_links import SplitLink, cases_link
from foretell.forecasters.tree.cases import StatedCases
from foretell.forecasters.tree.links import Link
from foretell.forecasters.tree.proposition import Tree


def by_child(numbers: Sequence[float]) -> dict[str, float]:
    return {f"P{place}": number for place, number in enumerate(numbers, start=1)}


def stated(
    kind: str,
    *,
    none: float,
    all: float,
    only: Sequence[float] = (),
    but: Sequence[float] = (),
    hinders: Sequence[str] = (),
    given: Sequence[float] = (),
    **fields: Any,
) -> StatedCases:
    children = list(by_child(only))
    return StatedCases(
        kind=kind,
        direction={child: "hinders" if child in hinders else "helps" for child in children},
        none=none,
        all=all,
        only=by_child(only),
        but=by_child(but),
        given=by_child(given),
        **fields,
    )


def leaves_under(link: Link, p: Sequence[float]) -> Tree:
    children = by_child(p)
    top = claim("P0", children=tuple(children), link=link)
    return tree_of(top, *(claim(child, p=chance) for child, chance in children.items()))


def tree_by_cases(cases: StatedCases, p: Sequence[float]) -> Tree:
    return leaves_under(cases_link(cases, by_child(p)), p)


NEEDED = (0.65, 0.45, 0.30, 0.85)
GIVEN = (0.65, 0.69, 0.50, 0.90)


def needed(given: Sequence[float] = GIVEN) -> StatedCases:
    """Return four conditions that must all come true."""
    return stated("all", none=0.0, all=0.97, only=[0.0] * 4, but=[0.05, 0.0, 0.0, 0.05], given=given)


OPTIONS = SplitLink(
    options=("A", "B", "C"),
    then={"P1": (0.78, 0.17, 0.05), "P2": (0.22, 0.70, 0.08), "P3": (0.20, 0.15, 0.65)},
)
SCENARIOS = (0.50, 0.35, 0.15)
