"""What-if on a tree of 1,000 claims: an edit compared with a target of 5 ms and with recomputing the whole tree."""

import random
import statistics
import time
from collections.abc import Callable

from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.edits import Edit, SetLink, SetP
from foretell.forecasters.tree.links import AverageLink, FormulaLink, LinearLink, Link, NoisyOrLink
from foretell.forecasters.tree.proposition import Proposition, Tree, leaves
from foretell.forecasters.tree.what_if import resynthesize

SIZE, EDITS, BUDGET = 1_000, 300, 0.005


def some_link(rng: random.Random, children: list[str]) -> Link:
    match rng.randrange(4):
        case 0:
            return LinearLink(weights={child: 0.9 / len(children) for child in children}, intercept=0.05)
        case 1:
            return FormulaLink(expression=rng.choice([" AND ", " OR "]).join(children))
        case 2:
            return NoisyOrLink(strengths={child: rng.random() for child in children}, leak=0.05)
        case _:
            return AverageLink()


def make(rng: random.Random, shared: int) -> Tree:
    """Return a tree with two to four children each; `shared` leaves also have a second parent."""
    below: dict[str, list[str]] = {}
    waiting, names = ["P0"], ["P0"]
    while len(names) < SIZE:
        parent = waiting.pop(0)
        stem = "P" if parent == "P0" else f"{parent}."
        below[parent] = [f"{stem}{i + 1}" for i in range(rng.randint(2, 4))]
        waiting += below[parent]
        names += below[parent]
    ends = [name for name in names if name not in below]
    for leaf in rng.sample(ends, shared):
        parent = rng.choice([name for name in below if leaf not in below[name]])
        below[parent].append(leaf)
    nodes = {name: Proposition(id=name, claim=name, p=rng.random()) for name in ends}
    for name, children in below.items():
        link = some_link(rng, children)
        nodes[name] = Proposition(id=name, claim=name, children=tuple(children), link=link)
    return Tree(root="P0", nodes=nodes)


def timed(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def measure(tree: Tree, edits: list[Edit]) -> list[float]:
    return sorted(timed(lambda edit=edit: resynthesize(tree, [edit])) for edit in edits)


def report(what: str, times: list[float], full: float) -> None:
    median, most = statistics.median(times), times[int(0.95 * len(times))]
    print(
        f"  {what:34s} median {median * 1e3:6.2f} ms = {median / BUDGET:5.2f} of the budget, 95 % within "
        f"{most * 1e3:6.2f} ms, {full / median:6.0f} × as fast as all anew"
    )


def main() -> None:
    for shared in (0, 10):
        rng = random.Random(1)
        raw = make(rng, shared)
        full = min(timed(lambda raw=raw: evaluated(raw)) for _ in range(3))
        tree = evaluated(raw)
        ends = leaves(tree)
        parents = [name for name, node in tree.nodes.items() if node.children]
        print(f"{len(tree.nodes):,} claims, {shared} leaves in two branches; all anew {full * 1e3:.0f} ms")
        report(
            "a leaf's probability",
            measure(tree, [SetP(id=rng.choice(ends), p=rng.random()) for _ in range(EDITS)]),
            full,
        )
        pins: list[Edit] = [SetP(id=rng.choice(parents), p=rng.random()) for _ in range(EDITS)]
        report("a parent pinned", measure(tree, pins), full)
        links: list[Edit] = [SetLink(id=rng.choice(parents), link=AverageLink()) for _ in range(EDITS)]
        report("a parent's link", measure(tree, links), full)
        new = resynthesize(tree, [SetP(id=ends[0], p=0.25), SetP(id=parents[-1], p=0.75)])
        same = evaluated(Tree(root=new.root, nodes=new.nodes)).nodes == new.nodes
        print(f"  equal to working it all out anew, to the last bit: {'yes' if same else 'NO'}")


if __name__ == "__main__":
    main()
