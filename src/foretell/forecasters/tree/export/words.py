"""A claim's link in words and in numbers, for reports."""

from collections.abc import Mapping

from foretell.forecasters.tree import expression as ex
from foretell.forecasters.tree.export.names import one_line
from foretell.forecasters.tree.influence.sensitivity import worked_out
from foretell.forecasters.tree.links import Average, Formula, InhibitedNoisyOr, Judged, Linear, Link, NoisyOr
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.whatif.edits import Unpin
from foretell.forecasters.tree.whatif.whatif import resynthesize


def number(p: float | None) -> str:
    """A probability as reports show it.

    >>> number(0.87196), number(0.0004), number(1.0), number(None)
    ('0.872', '0.0004', '1', '–')
    """
    if p is None:
        return "–"
    if 0 < p < 0.001 or 0.999 < p < 1:
        return f"{p:.4f}"
    return f"{p:.0f}" if p in (0, 1) else f"{p:.3f}"


def in_words(node: Proposition) -> str:
    """How the claim's number comes about.

    >>> in_words(Proposition(id="P0", claim="c", children=("P1",), link=Linear(weights={"P1": 0.5}, intercept=0.05)))
    '0.05 whatever happens, and 0.5 times the chance of P1.'
    """
    if not node.children:
        failed = node.grounding.error if node.grounding is not None else ""
        return f"It could not be grounded: {one_line(failed)}." if failed else "A leaf: its number is given."
    if node.link is None:
        return "No link yet."
    return _pinned(node) + _link_in_words(node.link, node)


def _pinned(node: Proposition) -> str:
    return "" if node.pinned is None else f"Pinned at {number(node.pinned)}; without the pin: "


def _link_in_words(link: Link, node: Proposition) -> str:
    match link:
        case Linear():
            parts = [f"{abs(w):g} times the chance of {id}" for id, w in link.weights.items()]
            signs = ["less " if w < 0 else "" for w in link.weights.values()]
            start = [f"{link.intercept:g} whatever happens"] if link.intercept else []
            return f"{_listed(start + [s + p for s, p in zip(signs, parts, strict=True)])}."
        case Average():
            return f"The mean of {_listed(node.children)}."
        case Formula():
            told = link.expression.strip() if "\n" not in link.expression else one_line(link.expression)
            assumed = link.assumption
            extra = f" {ex.ASSUMPTION}, {assumed.p:g} likely: {one_line(assumed.text)}" if assumed else ""
            return f"True exactly when {_spoken(told)}.{extra}"
        case NoisyOr():
            return f"{_causes(link.strengths, link.leak)}."
        case InhibitedNoisyOr():
            against = [f"{id} with chance {s:g}" for id, s in link.inhibitors.items()]
            unless = f"; it is prevented by {_listed(against)}" if against else ""
            return f"{_causes(link.strengths, link.leak)}{unless}."
        case Judged():
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


def in_numbers(tree: Tree, node: Proposition) -> str:
    """The same as arithmetic with the present values; empty for leaves and judged claims."""
    link = node.link
    if not node.children or link is None or isinstance(link, Judged):
        return ""
    p = {child: number(tree.nodes[child].p) for child in node.children}
    result = node.p
    if node.pinned is not None:
        result = resynthesize(tree, [Unpin(id=node.id)]).nodes[node.id].p
    return f"{_sum(link, p)} = {number(result)}" + _sharing(tree, node)


def _sum(link: Link, p: Mapping[str, str]) -> str:
    match link:
        case Linear():
            parts = [f"{'−' if w < 0 else '+'} {abs(w):g} × {p[id]}" for id, w in link.weights.items()]
            start = f"{link.intercept:g} " if link.intercept else ""
            joined = (start + " ".join(parts)).removeprefix("+ ")
            return joined.replace("-", "−")
        case Average():
            return f"({' + '.join(p.values())}) / {len(p)}"
        case Formula():
            values = {**p, ex.ASSUMPTION: f"{link.assumption.p:g}" if link.assumption else "–"}
            return f"P({ex.to_text(_valued(ex.parse(link.expression), values))})"
        case NoisyOr():
            return _noisy(link.strengths, link.leak, p)
        case InhibitedNoisyOr():
            blocks = "".join(f" × (1 − {s:g} × {p[id]})" for id, s in link.inhibitors.items())
            caused = _noisy(link.strengths, link.leak, p)
            return f"[{caused}]{blocks}" if blocks else caused
        case Judged():
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
    if isinstance(node.link, Linear | Average):
        return ""
    circuit, _ = worked_out(tree)
    if all(child in circuit.pinnable for child in node.children):
        return ""
    return ", worked out case by case, since branches beneath share claims"
