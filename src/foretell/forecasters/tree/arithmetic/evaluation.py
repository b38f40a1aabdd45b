"""Compute the probabilities of a tree."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from foretell.forecasters.tree.arithmetic.circuit import Circuit
from foretell.forecasters.tree.arithmetic.compiler import compile_tree
from foretell.forecasters.tree.links import JudgedLink
from foretell.forecasters.tree.proposition import Proposition, Tree, TreeLayout, layout, post_order
from foretell.forecasters.tree.text import TreeProblem, raise_errors
from foretell.forecasters.tree.validation import result_problems, tree_problems, written_problems
from foretell.frozen import frozen


@frozen
class TreeEvaluation:
    """A valid tree in which every parent has its probability, with warnings about the tree."""

    tree: Tree
    warnings: tuple[TreeProblem, ...] = ()

    @property
    def p(self) -> float:
        """The root's probability."""
        p = self.tree.nodes[self.tree.root].p
        return self.tree.missing if p is None else p

    @property
    def row(self) -> Mapping[str, float]:
        """The probability of each option; empty if the root is true or false."""
        return self.tree.nodes[self.tree.root].row


@frozen
class Results:
    """Computed probabilities: of claims, and of the options of claims that answer several."""

    p: Mapping[str, float]
    rows: Mapping[str, Mapping[str, float]]

    @classmethod
    def of(cls, circuit: Circuit, values: Sequence[float], claims: Iterable[str] | None = None) -> "Results":
        """Read the results of some claims (default: all) from those of the operations."""
        wanted = list(circuit.claims if claims is None else claims)
        rows = {claim: circuit.rows[claim] for claim in wanted if claim in circuit.rows}
        return cls(
            p={claim: values[circuit.claims[claim]] for claim in wanted},
            rows={claim: {option: values[place] for option, place in row.items()} for claim, row in rows.items()},
        )


@frozen(kw_only=False)
class EvaluationCache:
    """Intermediate results of evaluating a tree, kept for what-if."""

    plan: TreeLayout
    circuit: Circuit | None = None
    values: Sequence[float] = ()
    """Result of every operation of the circuit."""


def with_cache(tree: Tree, known: EvaluationCache) -> Tree:
    """Store `known` on the tree for the next what-if, and return the tree."""
    object.__setattr__(tree, "cache", known)
    return tree


def cache_of(tree: Tree) -> EvaluationCache | None:
    """Return what was stored on the tree; None if it was not computed yet."""
    return tree.cache if isinstance(tree.cache, EvaluationCache) else None


def circuit_and_values(tree: Tree) -> tuple[Circuit, Sequence[float]]:
    """Return the tree's operations and their results at its current values, from the cache if possible."""
    known = cache_of(tree) or EvaluationCache(layout(tree))
    if known.circuit is not None:
        return known.circuit, known.values
    circuit = compile_tree(tree, plan=known.plan)
    values = circuit.run()
    with_cache(tree, EvaluationCache(known.plan, circuit, values))
    return circuit, values


def evaluate(tree: Tree) -> TreeEvaluation:
    """Validate the tree and compute every parent's probability; raises `InvalidTree`.

    >>> from foretell.forecasters.tree.links import FormulaLink
    >>> leaves = {id: Proposition(id=id, claim=id, p=p) for id, p in (("P1", 0.5), ("P2", 0.9), ("P3", 0.9))}
    >>> twice = FormulaLink(expression="(P1 AND P2) OR (P1 AND P3)")
    >>> top = Proposition(id="P0", claim="top", children=("P1", "P2", "P3"), link=twice)
    >>> round(evaluate(Tree(root="P0", nodes={"P0": top, **leaves})).p, 12)
    0.495
    """
    problems = tree_problems(tree)
    raise_errors(problems)
    plan = layout(tree)
    circuit = compile_tree(tree, plan=plan)
    values = circuit.run()
    problems += result_problems(tree, circuit, values)
    raise_errors(problems)
    problems += written_problems(tree, circuit, values)
    done = with_numbers(tree, plan.order, Results.of(circuit, values))
    return TreeEvaluation(tree=with_cache(done, EvaluationCache(plan, circuit, values)), warnings=tuple(problems))


def evaluated(tree: Tree) -> Tree:
    """The tree with p and `incomplete` set on every parent."""
    return evaluate(tree).tree


def with_numbers(tree: Tree, claims: Iterable[str], results: Results) -> Tree:
    """Set the parents' probabilities and those of their options, and update `incomplete`.

    `claims` are those that may have changed, children first; a claim without a new probability keeps its own.
    """
    nodes = dict(tree.nodes)
    for claim in claims:
        node = nodes[claim]
        number = results.p.get(claim, node.p) if node.children else node.p
        row = results.rows.get(claim, {}) if claim in results.p else node.row
        lacking = _lacking(node, nodes)
        if number != node.p or lacking != node.incomplete or row != node.row:
            nodes[claim] = replace(node, p=number, row=row, incomplete=lacking)
    return replace(tree, nodes=nodes)


def _lacking(node: Proposition, nodes: Mapping[str, Proposition]) -> tuple[str, ...]:
    """Claims at or below this one that have no probability."""
    if not node.children:
        return (node.id,) if node.p is None else ()
    if node.pinned is not None:
        return ()
    if node.link is None:
        return (node.id,)
    return tuple(dict.fromkeys(lack for child in node.children for lack in nodes[child].incomplete))


def stale_claims(tree: Tree) -> list[str]:
    """Parents whose link must be judged again, children first.

    These are parents that were judged as a whole before something below them changed, and parents whose link was judged
    from an earlier wording.
    """
    stale: list[str] = []
    for claim in post_order(tree):
        node = tree.nodes[claim]
        judged = isinstance(node.link, JudgedLink) and node.link.stale
        if node.children and node.pinned is None and (judged or node.stale):
            stale.append(claim)
    return stale
