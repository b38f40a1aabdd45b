"""The kinds of links by their name in tree files."""

from collections.abc import Mapping

from foretell.forecasters.tree.case_links import AllLink, AnyLink, AtLeastLink, SplitLink, WeighLink
from foretell.forecasters.tree.links import (
    AverageLink,
    FormulaLink,
    InhibitedNoisyOrLink,
    JudgedLink,
    LinearLink,
    Link,
    NoisyOrLink,
    ProductLogicLink,
)
from foretell.plugins import load, names
from foretell.questions.errors import InputError

BUILT_IN_LINKS: Mapping[str, type[Link]] = {
    link.kind: link
    for link in (
        LinearLink,
        FormulaLink,
        ProductLogicLink,
        NoisyOrLink,
        InhibitedNoisyOrLink,
        AverageLink,
        JudgedLink,
        AllLink,
        AnyLink,
        AtLeastLink,
        WeighLink,
        SplitLink,
    )
}


def link_kinds() -> Mapping[str, type[Link]]:
    """Link classes by kind: the built-in ones and those of installed synthesis rules."""
    rules = [load("synthesis_rules", name) for name in names("synthesis_rules")]
    return {**{rule.link.kind: rule.link for rule in rules}, **BUILT_IN_LINKS}


def link_class(kind: str) -> type[Link]:
    """Return the class of a kind of link. Raises an `InputError` with the known kinds if there is none."""
    link_type = BUILT_IN_LINKS.get(kind) or link_kinds().get(kind)
    if link_type is None:
        known = [*BUILT_IN_LINKS, *(name for name in link_kinds() if name not in BUILT_IN_LINKS)]
        raise InputError(f"{kind!r} is not a kind of link", hint=f"the kinds are {', '.join(known)}")
    return link_type
