"""How a claim depends on its inputs: slopes, importance, tornado bars, beta paths, and spread."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod

from foretell.forecasters.tree.arithmetic.circuit import Circuit, rerun, slopes
from foretell.forecasters.tree.arithmetic.evaluation import circuit_and_values
from foretell.forecasters.tree.proposition import Proposition, Tree, has_own_value
from foretell.frozen import frozen
from foretell.questions.errors import InputError


@frozen
class Sensitivity:
    """How a claim depends on one input: a leaf, a pinned or judged claim, or an assumption ("P1:PA")."""

    id: str
    claim: str
    p: float
    slope: float
    """∂P(claim)/∂p. If P is linear in the input, also P if the input is true minus P if it is false."""
    importance: float
    """d²·p·(1 − p), where d is P if the input is true minus P if it is false: the expected squared change of P when the
    truth of the input becomes known."""
    share: float
    """Share of the total importance, as a fraction."""


def sensitivities(tree: Tree) -> list[Sensitivity]:
    """Return how the root depends on each input, most important first."""
    circuit, values = circuit_and_values(tree)
    root = circuit.claims[tree.root]
    slope = slopes(circuit.ops, values, root)
    rows: list[tuple[str, float, float]] = []
    weights: dict[str, float] = {}
    for name, place in circuit.input_places.items():
        p, own = values[place], slope[place]
        difference = own
        if name in circuit.curved or any(name in group for group in circuit.exclusive):
            low, high = (with_input(circuit, values, name, end)[root] for end in (0.0, 1.0))
            difference = high - low
            # An input that takes from those it excludes moves P on a straight line, unless it is read by its odds.
            own = own if name in circuit.curved else difference
        if own != 0.0 or difference != 0.0:
            rows.append((name, p, own))
            weights[name] = difference * difference * p * (1 - p)
    total = sum(weights.values())
    rated = [
        Sensitivity(
            id=name,
            claim=input_text(tree, name),
            p=p,
            slope=s,
            importance=weights[name],
            share=weights[name] / total if total > 0 else 0.0,
        )
        for name, p, s in rows
    ]
    return sorted(rated, key=lambda sensitivity: (-sensitivity.importance, -abs(sensitivity.slope), sensitivity.id))


def with_input(circuit: Circuit, values: Sequence[float], name: str, p: float) -> list[float]:
    """Return the results with one input set; inputs that it excludes share what is left to them."""
    inputs = {other: values[place] for other, place in circuit.input_places.items()}
    return rerun(circuit, values, circuit.changes(name, p, inputs))


def input_text(tree: Tree, name: str) -> str:
    """Return the text of an input: the claim, or the assumption."""
    if name in tree.nodes:
        return tree.nodes[name].claim
    node = name.partition(":")[0]
    link = tree.nodes[node].link
    assumption = link.assumptions(node).get(name) if link is not None else None
    return assumption.text if assumption is not None else ""


def child_slopes(tree: Tree, claim: str) -> dict[str, float]:
    """Slope of a claim with respect to each child; empty for a leaf or a claim judged as a whole.

    Children are treated as independent of each other, as the link reads them.
    """
    node = tree.nodes[claim]
    if not node.children or node.link is None or node.link.own_probability is not None:
        return {}
    bare = {id: Proposition(id=id, claim=id, p=tree.nodes[id].p) for id in node.children}
    part = replace(tree, root=claim, nodes={claim: replace(node, pinned=None), **bare})
    circuit, values = circuit_and_values(part)
    slope = slopes(circuit.ops, values, circuit.claims[claim])
    return {id: slope[circuit.claims[id]] for id in node.children}


@frozen
class TornadoBar:
    """One bar of a tornado chart: the claim's probability with the input at both ends of its range."""

    id: str
    claim: str
    p: float
    at_low: float
    at_high: float
    low: float
    high: float
    """The input's range: `low` to `high` is 0 to 1, or one standard deviation to each side, clamped to [0, 1]."""

    @property
    def width(self) -> float:
        """Length of the bar."""
        return abs(self.at_high - self.at_low)


def tornado(tree: Tree, sd: Mapping[str, float] | None = None) -> list[TornadoBar]:
    """Compute the root's probability with each input at 0 and at 1, widest bar first.

    With `sd`, only the inputs in it are moved, each by its standard deviation to both sides, clamped to [0, 1].
    """
    circuit, values = circuit_and_values(tree)
    _require_inputs(circuit, sd or {})
    place = circuit.claims[tree.root]
    bars: list[TornadoBar] = []
    for name, at in circuit.input_places.items():
        if sd is not None and name not in sd:
            continue
        p = values[at]
        low, high = (max(0.0, p - sd[name]), min(1.0, p + sd[name])) if sd else (0.0, 1.0)
        ends = [with_input(circuit, values, name, end)[place] for end in (low, high)]
        if ends[0] != ends[1]:
            claim = input_text(tree, name)
            bars.append(TornadoBar(id=name, claim=claim, p=p, at_low=ends[0], at_high=ends[1], low=low, high=high))
    return sorted(bars, key=lambda bar: (-bar.width, bar.id))


@frozen
class Driver:
    """An input that pushes the answer up or down."""

    id: str
    claim: str
    p: float
    slope: float
    share: float
    pull: float
    """Change of the answer compared to this input at ½."""
    if_false: float
    if_true: float
    """The answer if the input is false (`if_false`) and if it is true (`if_true`)."""
    turns_at: float | None
    """The input's probability at which the answer is ½; None if there is none in [0, 1]."""


def drivers(tree: Tree) -> list[Driver]:
    """Return the inputs of the root, strongest pull first."""
    bars = {bar.id: bar for bar in tornado(tree)}
    answer, inputs = tree.nodes[tree.root].p or 0.0, list[Driver]()
    circuit, values = circuit_and_values(tree)

    def answer_at(name: str, p: float) -> float:
        return with_input(circuit, values, name, p)[circuit.claims[tree.root]]

    for sensitivity in sensitivities(tree):
        bar = bars.get(sensitivity.id)
        if sensitivity.id in circuit.curved:
            pull = answer - answer_at(sensitivity.id, 0.5)
            even = _crossing(partial(answer_at, sensitivity.id))
        else:
            pull = sensitivity.slope * (sensitivity.p - 0.5)
            even = sensitivity.p + (0.5 - answer) / sensitivity.slope
        inputs.append(
            Driver(
                id=sensitivity.id,
                claim=sensitivity.claim,
                p=sensitivity.p,
                slope=sensitivity.slope,
                share=sensitivity.share,
                pull=pull,
                if_false=bar.at_low if bar else answer,
                if_true=bar.at_high if bar else answer,
                turns_at=even if even is not None and 0 <= even <= 1 else None,
            )
        )
    return sorted(inputs, key=lambda driver: (-abs(driver.pull), -driver.share, driver.id))


def _crossing(answer: Callable[[float], float]) -> float | None:
    """Return where a continuous function of [0, 1] passes ½; None if both ends are on the same side of it."""
    low, high = 0.0, 1.0
    rising = answer(high) > answer(low)
    if (answer(low) - 0.5) * (answer(high) - 0.5) > 0:
        return None
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if (answer(middle) >= 0.5) == rising else (middle, high)
    return (low + high) / 2


def _require_inputs(circuit: Circuit, names: Iterable[str]) -> None:
    for name in names:
        if name not in circuit.input_places:
            raise InputError(f"{name} is not an input of the tree", hint="a leaf, a pinned or judged claim, or P1:PA")


MOST_PATHS = 10_000
"""Maximum number of paths, because shared claims multiply them."""


@frozen
class BetaPath:
    """A path from the root to a claim with its own probability (a beta path of Analytica)."""

    claims: tuple[str, ...]
    """Ids from the root to the leaf."""
    slopes: tuple[float, ...]
    """Slope of each claim with respect to the next: a linear link's weight, or the current slope of another link."""
    linear: bool
    """Whether all links are weighted sums, so that the slopes do not depend on the values."""

    @property
    def product(self) -> float:
        """Slope of the root with respect to the leaf along this path; a leaf's slope is the sum over its paths."""
        return prod(self.slopes)


def beta_paths(tree: Tree) -> list[BetaPath]:
    """Return all paths from the root to claims with their own probability, strongest first.

    A claim that is expanded by a claim further up, because something below it is shared, has no slope of its own. Paths
    through it are left out; only the slopes from `sensitivities` are valid there.
    """
    circuit, values = circuit_and_values(tree)
    steps: dict[str, Mapping[str, float]] = {}

    def down(claim: str) -> Mapping[str, float]:
        if claim not in steps:
            form = tree.nodes[claim].linear_form
            children = [child for child in tree.nodes[claim].children if child in circuit.pinnable]
            if form is not None:
                steps[claim] = {child: form.weights[child] for child in children}
            else:
                slope = slopes(circuit.ops, values, circuit.claims[claim])
                steps[claim] = {child: slope[circuit.claims[child]] for child in children}
        return steps[claim]

    paths: list[BetaPath] = []
    stack: list[tuple[tuple[str, ...], tuple[float, ...], bool]] = [((tree.root,), (), True)]
    while stack and len(paths) < MOST_PATHS:
        claims, slope, linear = stack.pop()
        node = tree.nodes[claims[-1]]
        if has_own_value(node):
            paths.append(BetaPath(claims=claims, slopes=slope, linear=linear))
            continue
        all_linear = linear and node.linear_form is not None
        stack.extend(((*claims, child), (*slope, step), all_linear) for child, step in down(claims[-1]).items())
    return sorted(paths, key=lambda path: (-abs(path.product), path.claims))


@frozen
class TreeSpread:
    """How uncertain the root's probability is, given how uncertain its inputs are."""

    p: float
    sd: float
    """Standard deviation √(Σ (∂P/∂c)²·σ²) for independent errors; exact for linear trees."""
    contributions: Mapping[str, float]
    """Variance (∂P/∂c)²·σ² contributed by each input."""


def tree_spread(tree: Tree, sd: Mapping[str, float]) -> TreeSpread:
    """Compute how uncertain the root is if the inputs in `sd` have these standard deviations."""
    circuit, values = circuit_and_values(tree)
    _require_inputs(circuit, sd)
    place = circuit.claims[tree.root]
    slope = slopes(circuit.ops, values, place)
    parts = {name: (slope[circuit.input_places[name]] * s) ** 2 for name, s in sd.items()}
    return TreeSpread(p=values[place], sd=sum(parts.values()) ** 0.5, contributions=parts)
