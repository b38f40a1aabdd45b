"""A tree as a ProbLog program (De Raedt, Kimmig, Toivonen 2007), which gives the same probabilities.

A leaf is a probabilistic fact, a formula a rule, a cause of a noisy-or a probabilistic rule, and a linear link an
annotated disjunction that picks the child, or the intercept, which decides.
"""

from collections.abc import Iterable, Iterator, Mapping

from foretell.forecasters.tree import expression as ex
from foretell.forecasters.tree.export.names import Names, decimal, one_line
from foretell.forecasters.tree.links import Average, Formula, InhibitedNoisyOr, Linear, NoisyOr
from foretell.forecasters.tree.proposition import Proposition, Tree
from foretell.forecasters.tree.scaling import insist_on_bayes_net
from foretell.forecasters.tree.walk import has_own_value, own_value, post_order


def to_problog(tree: Tree, *, queries: Iterable[str] | None = None) -> str:
    """The program; it asks for the root unless other claims are named.

    Linear links that are no conditional chance have no program: `InvalidTree` names them and offers scaling.
    """
    insist_on_bayes_net(tree)
    writer = _Writer(tree)
    lines: list[str] = []
    for claim in post_order(tree):
        node = tree.nodes[claim]
        lines.append(f"% {claim}: {one_line(node.claim)}")
        lines.extend(writer.clauses(node))
    lines.extend(f"query({writer.names.of(claim)})." for claim in (queries or [tree.root]))
    return "\n".join(lines) + "\n"


def problog_names(tree: Tree) -> dict[str, str]:
    """The atom that stands for each claim."""
    names = _Writer(tree).names
    return {claim: names.of(claim) for claim in tree.nodes}


class _Writer:
    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.names = Names(lower=True)
        # Claims come first, so that no auxiliary atom takes a claim's name.
        for claim in tree.nodes:
            self.names.of(claim)

    def clauses(self, node: Proposition) -> Iterator[str]:
        atom, link = self.names.of(node.id), node.link
        if has_own_value(node):
            yield f"{decimal(own_value(node, self.tree.missing))}::{atom}."
        elif isinstance(link, Linear):
            yield from self._picked(node, link.intercept, link.weights)
        elif isinstance(link, Average):
            yield from self._picked(node, 0.0, {child: 1 / len(node.children) for child in node.children})
        elif isinstance(link, Formula):
            yield from self._formula(node, link)
        elif isinstance(link, NoisyOr):
            yield from self._causes(atom, link.strengths, link.leak)
        elif isinstance(link, InhibitedNoisyOr):
            yield from self._inhibited(node, link)

    def _picked(self, node: Proposition, intercept: float, weights: Mapping[str, float]) -> Iterator[str]:
        atom = self.names.of(node.id)
        chances = _adding_up({"": intercept, **weights})
        picks = {child: self.names.of(f"{node.id} picks {child}") for child in chances}
        if picks:
            yield "; ".join(f"{decimal(chance)}::{picks[child]}" for child, chance in chances.items()) + "."
        for child, pick in picks.items():
            yield f"{atom} :- {pick}, {self.names.of(child)}." if child else f"{atom} :- {pick}."
        if not picks:
            yield f"0.0::{atom}."

    def _formula(self, node: Proposition, link: Formula) -> Iterator[str]:
        assumed = self.names.of(f"{node.id}:{ex.ASSUMPTION}")
        if link.assumption is not None:
            yield f"% {ex.ASSUMPTION} of {node.id}: {one_line(link.assumption.text)}"
            yield f"{decimal(link.assumption.p)}::{assumed}."
        yield f"{self.names.of(node.id)} :- {self._body(ex.parse(link.expression), assumed, True)}."

    def _body(self, item: ex.Expression, assumed: str, wanted: bool) -> str:
        """The expression, or its opposite, with negation at the atoms only."""
        match item:
            case ex.Var():
                atom = assumed if item.name == ex.ASSUMPTION else self.names.of(item.name)
                return atom if wanted else f"\\+ {atom}"
            case ex.Not():
                return self._body(item.item, assumed, not wanted)
            case ex.And() | ex.Or():
                parts = [self._body(part, assumed, wanted) for part in item.items]
                return f"({(', ' if isinstance(item, ex.And) == wanted else ' ; ').join(parts)})"

    def _causes(self, atom: str, strengths: Mapping[str, float], leak: float) -> Iterator[str]:
        yield f"{decimal(leak)}::{atom}."
        for child, strength in strengths.items():
            yield f"{decimal(strength)}::{atom} :- {self.names.of(child)}."

    def _inhibited(self, node: Proposition, link: InhibitedNoisyOr) -> Iterator[str]:
        caused, blocked = self.names.of(f"{node.id} caused"), self.names.of(f"{node.id} prevented")
        yield from self._causes(caused, link.strengths, link.leak)
        yield from self._causes(blocked, link.inhibitors, 0.0)
        yield f"{self.names.of(node.id)} :- {caused}, \\+ {blocked}."


def _adding_up(chances: Mapping[str, float]) -> dict[str, float]:
    """Chances above 0 whose sum, as a machine adds them, does not exceed 1 by rounding."""
    found = {key: chance for key, chance in chances.items() if chance > 0}
    while found and sum(found.values()) > 1:
        largest = max(found, key=lambda key: found[key])
        found[largest] -= max(sum(found.values()) - 1, 1e-16)
    return found
