"""A claim's link in words and in numbers, for reports."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from foretell.forecasters.tree import formula as ex
from foretell.forecasters.tree.arithmetic.sensitivity import circuit_and_values
from foretell.forecasters.tree.edits import Unpin
from foretell.forecasters.tree.proposition import (
    AverageLink,
    FormulaLink,
    InhibitedNoisyOrLink,
    JudgedLink,
    LinearLink,
    Link,
    NoisyOrLink,
    Proposition,
    Tree,
)
from foretell.forecasters.tree.what_if import resynthesize

# Texts and names as other formats can bear them.

_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")


def one_line(text: str) -> str:
    r"""The text on one line, without characters that steer a terminal or turn its direction.

    >>> one_line("a\n  b\x1b[31m")
    'a b [31m'
    """
    return " ".join(_STEERING.sub(" ", text).split())


class ExportNames:
    """Plain names for ids, each its own: letters, digits and underscores only.

    >>> names = ExportNames(lower=True)
    >>> names.of("P1.2"), names.of("P1_2"), names.of("P1.2")
    ('p1_2', 'p1_2_b', 'p1_2')
    """

    def __init__(self, *, lower: bool = False) -> None:
        self._lower = lower
        self._given: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, key: str) -> str:
        """The name that stands for this key."""
        if key not in self._given:
            name = re.sub(r"\W", "_", key, flags=re.ASCII)
            self._given[key] = self._free(name.lower() if self._lower else name)
        return self._given[key]

    def _free(self, name: str) -> str:
        # No second name differs from another by case alone: some readers ignore it.
        while name.lower() in self._taken:
            name += "_b"
        self._taken.add(name.lower())
        return name


def decimal(value: float) -> str:
    """The shortest text that reads back as this number, without an exponent.

    >>> decimal(0.1), decimal(1e-07), decimal(1.0)
    ('0.1', '0.0000001', '1.0')
    """
    from decimal import Decimal

    text = f"{Decimal(repr(float(value))):f}"
    return text if "." in text else f"{text}.0"


# A tree from the top down, each claim once in full.


@dataclass(frozen=True, kw_only=True)
class OutlineLine:
    """One claim where it stands in the outline."""

    node: Proposition
    depth: int
    again: bool = False
    """It has been shown with its children further up: the same claim, used once more."""


def outline(tree: Tree) -> Iterator[OutlineLine]:
    """Claims in the order in which one would tell them; a shared claim comes back without its children."""
    shown: set[str] = set()
    stack = [(tree.root, 0)]
    while stack:
        id, depth = stack.pop()
        again = id in shown
        yield OutlineLine(node=tree.nodes[id], depth=depth, again=again)
        if not again:
            shown.add(id)
            stack.extend((child, depth + 1) for child in reversed(tree.nodes[id].children))


def claim_marks(node: Proposition) -> list[str]:
    """What a reader must know beside the number."""
    found: list[str] = []
    if node.pinned is not None:
        found.append("pinned")
    if isinstance(node.link, JudgedLink):
        found.append("judged before a change" if node.link.stale else "judged")
    if node.children and node.link is None and node.pinned is None:
        found.append("no link yet")
    if not node.children and node.p is None:
        found.append("failed" if node.grounding is not None and node.grounding.error else "not grounded")
    elif node.incomplete:
        found.append(f"without {', '.join(node.incomplete)}")
    return found


def format_probability(p: float | None) -> str:
    """A probability as reports show it.

    >>> format_probability(0.87196), format_probability(0.0004), format_probability(1.0), format_probability(None)
    ('0.872', '0.0004', '1', '–')
    """
    if p is None:
        return "–"
    if 0 < p < 0.001 or 0.999 < p < 1:
        return f"{p:.4f}"
    return f"{p:.0f}" if p in (0, 1) else f"{p:.3f}"


def link_in_words(node: Proposition) -> str:
    """How the claim's number comes about.

    >>> link = LinearLink(weights={"P1": 0.5}, intercept=0.05)
    >>> link_in_words(Proposition(id="P0", claim="c", children=("P1",), link=link))
    '0.05 whatever happens, and 0.5 times the chance of P1.'
    """
    if not node.children:
        failed = node.grounding.error if node.grounding is not None else ""
        return f"It could not be grounded: {one_line(failed)}." if failed else "A leaf: its number is given."
    if node.link is None:
        return "No link yet."
    return _pinned(node) + _link_in_words(node.link, node)


def _pinned(node: Proposition) -> str:
    return "" if node.pinned is None else f"Pinned at {format_probability(node.pinned)}; without the pin: "


def _link_in_words(link: Link, node: Proposition) -> str:
    match link:
        case LinearLink():
            parts = [f"{abs(w):g} times the chance of {id}" for id, w in link.weights.items()]
            signs = ["less " if w < 0 else "" for w in link.weights.values()]
            start = [f"{link.intercept:g} whatever happens"] if link.intercept else []
            return f"{_listed(start + [s + p for s, p in zip(signs, parts, strict=True)])}."
        case AverageLink():
            return f"The mean of {_listed(node.children)}."
        case FormulaLink():
            told = link.expression.strip() if "\n" not in link.expression else one_line(link.expression)
            assumed = link.assumption
            extra = f" {ex.ASSUMPTION}, {assumed.p:g} likely: {one_line(assumed.text)}" if assumed else ""
            return f"True exactly when {_spoken(told)}.{extra}"
        case NoisyOrLink():
            return f"{_causes(link.strengths, link.leak)}."
        case InhibitedNoisyOrLink():
            against = [f"{id} with chance {s:g}" for id, s in link.inhibitors.items()]
            unless = f"; it is prevented by {_listed(against)}" if against else ""
            return f"{_causes(link.strengths, link.leak)}{unless}."
        case JudgedLink():
            stale = " Something beneath it has changed since." if link.stale else ""
            return f"Judged as a whole from the reports on {_listed(node.children)}.{stale}"


def _causes(strengths: Mapping[str, float], leak: float) -> str:
    parts = [f"{id} with chance {s:g}" for id, s in strengths.items()]
    parts += [f"anything else with chance {leak:g}"] if leak else []
    return f"Each of these can bring it about by itself: {_listed(parts)}"


def _spoken(text: str) -> str:
    """The formula with its words in small letters; as it stands where it cannot be read."""
    try:
        shown = ex.to_text(ex.parse(text))
    except ex.FormulaError:
        return text
    return shown.replace(" AND ", " and ").replace(" OR ", " or ").replace("NOT ", "not ")


def _listed(parts: "list[str] | tuple[str, ...]") -> str:
    if len(parts) < 3:
        return ", and ".join(parts) if parts and parts[0].endswith("happens") else " and ".join(parts)
    return f"{', '.join(parts[:-1])}, and {parts[-1]}"


def link_in_numbers(tree: Tree, node: Proposition) -> str:
    """The same as arithmetic with the present values; empty for leaves and judged claims."""
    link = node.link
    if not node.children or link is None or isinstance(link, JudgedLink):
        return ""
    p = {child: format_probability(tree.nodes[child].p) for child in node.children}
    result = node.p
    if node.pinned is not None:
        result = resynthesize(tree, [Unpin(id=node.id)]).nodes[node.id].p
    return f"{_sum(link, p)} = {format_probability(result)}" + _sharing(tree, node)


def _sum(link: Link, p: Mapping[str, str]) -> str:
    match link:
        case LinearLink():
            parts = [f"{'−' if w < 0 else '+'} {abs(w):g} × {p[id]}" for id, w in link.weights.items()]
            start = f"{link.intercept:g} " if link.intercept else ""
            joined = (start + " ".join(parts)).removeprefix("+ ")
            return joined.replace("-", "−")
        case AverageLink():
            return f"({' + '.join(p.values())}) / {len(p)}"
        case FormulaLink():
            values = {**p, ex.ASSUMPTION: f"{link.assumption.p:g}" if link.assumption else "–"}
            return f"P({ex.to_text(_valued(ex.parse(link.expression), values))})"
        case NoisyOrLink():
            return _noisy(link.strengths, link.leak, p)
        case InhibitedNoisyOrLink():
            blocks = "".join(f" × (1 − {s:g} × {p[id]})" for id, s in link.inhibitors.items())
            caused = _noisy(link.strengths, link.leak, p)
            return f"[{caused}]{blocks}" if blocks else caused
        case JudgedLink():
            return ""


def _noisy(strengths: Mapping[str, float], leak: float, p: Mapping[str, str]) -> str:
    factors = [f"(1 − {leak:g})"] if leak else []
    return "1 − " + " × ".join(factors + [f"(1 − {s:g} × {p[id]})" for id, s in strengths.items()])


def _valued(item: ex.Expression, values: Mapping[str, str]) -> ex.Expression:
    """The expression with numbers in place of claims; for showing only."""
    match item:
        case ex.Var():
            return ex.Var(values.get(item.name, item.name))
        case ex.Not():
            return ex.Not(_valued(item.item, values))
        case ex.And():
            return ex.And(tuple(_valued(part, values) for part in item.items))
        case ex.Or():
            return ex.Or(tuple(_valued(part, values) for part in item.items))


def _sharing(tree: Tree, node: Proposition) -> str:
    """A word where the numbers shown do not settle it, because branches have claims in common."""
    if isinstance(node.link, LinearLink | AverageLink):
        return ""
    circuit, _ = circuit_and_values(tree)
    if all(child in circuit.pinnable for child in node.children):
        return ""
    return ", worked out case by case, since branches beneath share claims"
