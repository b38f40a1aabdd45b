"""How far are weights, logic, stated cases and direct estimates from the truth, in worlds of five structures?

A world is a claim whose children are leaves or claims, of the structures all, any, at least, split and weigh (half of
the last with a veto: one child without which the others hardly count). Leaves have true chances; with shared causes
they depend on one common cause. The truth of the claim follows exactly. A simulated model knows all of it with errors
in log-odds: of the leaves, of the cases, and of a direct estimate of the claim. It may misdescribe a claim, stating
its cases as if each child added its share, or share one error over all that it estimates.

The study prints the mean distance from the truth by structure and method, and how it depends on the numbers of the
method: the weight of the tree beside the direct estimate, the gap above which the two are reconciled, and how well a
kind must fit its cases. Each number is chosen on one half of the worlds and tried on the other half.

    python benchmarks/cases_study.py [--worlds 4000] [--seed 0]
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import exp, log, prod
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from foretell.forecasters.tree.case_links import CasesLink, cases_link, situation_weights
from foretell.forecasters.tree.cases import HELPS, StatedCases, misfits, situation_table, situations

Floats = np.ndarray[Any, np.dtype[np.float64]]
Rng = np.random.Generator

STRUCTURES = ("all", "any", "at_least", "split", "weigh")
METHODS = ("weights", "logic", "cases", "direct", "both")
LEAF_ERROR, CASE_ERROR, DIRECT_ERROR = 0.4, 0.4, 0.8
UNRESEARCHED_ERROR, GIVEN_ERROR = 1.2, 0.3
"""Standard deviations, in log-odds, of what the model states about a leaf, a case, the claim itself, a leaf that was
not researched, and a child given others."""
MISDESCRIBED = 0.3
"""Share of claims whose cases are stated as if each child added its share."""
CORRECTED = 0.6
"""Chance that a model which is told what its cases say, or which reconciles, states what it knows."""
RESTATED = 0.5
"""Chance that it estimates the claim again when it reconciles."""
SHARED_CAUSE, SHARED_ERROR = 0.35, 0.5
"""Correlation of the leaves by a common cause, and share of an error's variance that all estimates have in common."""
INNER = 0.3
"""Chance that a child of the root is a claim with leaves of its own."""
TREE_WEIGHT, GAP, FIT = 0.25, 0.7, 0.15
"""The numbers of the method."""
WEIGHTS = (0.0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 1.0)
GAPS = (0.3, 0.5, 0.7, 1.0, 1.5, 100.0)
FITS = (0.05, 0.1, 0.15, 0.25, 0.4, 1.0)
POINTS, _RAW = np.polynomial.hermite_e.hermegauss(15)
SHARES = _RAW / _RAW.sum()


def logit(p: float) -> float:
    p = min(max(p, 0.001), 0.999)
    return log(p / (1 - p))


def sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x))


# Worlds.


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A leaf with its chance, or a claim with its true chance in every situation of its children."""

    p: float = 0.0
    structure: str = ""
    children: "tuple[Claim, ...]" = ()
    table: tuple[float, ...] = ()
    k: int = 1
    then: tuple[float, ...] = ()
    """Chance in every scenario, and at the end in none of them, if the structure is split."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the children."""
        return tuple(f"P{place}" for place in range(len(self.children)))

    def chances(self, cause: float) -> Floats:
        """True chance at each value of the common cause."""
        if not self.children:
            return np.asarray(ndtr((ndtri(self.p) + cause**0.5 * POINTS) / (1 - cause) ** 0.5))
        below = [child.chances(cause) for child in self.children]
        if self.structure == "split":
            shares = [float(chance @ SHARES) for chance in below]
            return np.full(len(POINTS), sum(np.array([*shares, 1 - sum(shares)]) * self.then))
        total = np.zeros(len(POINTS))
        for row, p in zip(situations(self.names), self.table, strict=True):
            total += p * prod(
                (chance if name in row else 1 - chance for name, chance in zip(self.names, below, strict=True)),
                start=np.ones(len(POINTS)),
            )
        return total

    def truth(self, cause: float) -> float:
        """True chance, on average over the common cause."""
        return float(self.chances(cause) @ SHARES)


def leaf(rng: Rng) -> Claim:
    return Claim(p=float(rng.beta(1.2, 1.2)) * 0.96 + 0.02)


def draw_claim(rng: Rng, structure: str, size: int, inner: float = 0.0) -> Claim:
    """Draw a claim and what is below it."""
    children = tuple(
        draw_claim(rng, str(rng.choice(STRUCTURES)), int(rng.integers(2, 4))) if rng.random() < inner else leaf(rng)
        for _ in range(size)
    )
    if structure == "split":
        shares = rng.dirichlet(np.ones(size + 1))
        scenarios = tuple(Claim(p=float(share)) for share in shares[:size])
        return Claim(structure=structure, children=scenarios, then=tuple(rng.beta(0.7, 0.7, size + 1).tolist()))
    k = int(rng.integers(2, size)) if size > 2 else 1
    claim = Claim(structure=structure, children=children, k=k)
    none, top = float(rng.beta(1, 15)), float(rng.beta(15, 1))
    if structure == "weigh":
        pulls = rng.uniform(0.3, 1.0, size)
        pulls *= (logit(top) - logit(none)) / pulls.sum()
        veto = int(rng.integers(size)) if rng.random() < 0.5 else None

        def chance(row: frozenset[str]) -> float:
            p = sigmoid(logit(none) + sum(pull for name, pull in zip(claim.names, pulls, strict=True) if name in row))
            return p if veto is None or claim.names[veto] in row else min(p, none + 0.02)

    else:
        enough = {"all": size, "any": 1, "at_least": k}[structure]
        leak = {name: float(rng.beta(1, 12)) for name in claim.names}

        def chance(row: frozenset[str]) -> float:
            missing = [leak[name] for name in claim.names if name not in row]
            return top * prod(1 - p for p in missing) if len(row) >= enough else none + (top - none) * 0.05 * len(row)

    return replace(claim, table=tuple(chance(row) for row in situations(claim.names)))


# What the model states.


@dataclass(frozen=True, kw_only=True)
class Condition:
    """What makes the model's task difficult."""

    misdescribed: float = 0.0
    send_back: bool = True
    cause: float = 0.0
    shared_error: float = 0.0
    leaf_error: float = LEAF_ERROR


@dataclass
class Model:
    """States leaves, cases and claims with errors."""

    rng: Rng
    condition: Condition
    fit: float = FIT
    calls: int = 0
    common: float = field(init=False)

    def __post_init__(self) -> None:
        self.common = float(self.rng.normal())

    def stated(self, p: float, error: float, *, shared: bool = False) -> float:
        """State a chance with an error in log-odds, of which a part is common to all that is shared."""
        part = self.condition.shared_error if shared else 0.0
        noise = part**0.5 * self.common + (1 - part) ** 0.5 * float(self.rng.normal())
        return sigmoid(logit(p) + error * noise)

    def cases(self, claim: Claim, *, honest: bool) -> StatedCases:
        """State the cases of a claim; if not honest, as if each child added its share."""
        n, rows = len(claim.children), dict(zip(situations(claim.names), claim.table, strict=True))
        none, top = rows[frozenset()], rows[frozenset(claim.names)]
        whole = frozenset(claim.names)
        ends = sorted(self.stated(p, CASE_ERROR) for p in (none, top))

        def between(row: frozenset[str]) -> float:
            true = rows[row] if honest else none + (top - none) * len(row) / n
            return min(max(self.stated(true, CASE_ERROR), ends[0]), ends[1])

        return StatedCases(
            kind=claim.structure,
            direction=dict.fromkeys(claim.names, HELPS),
            none=ends[0],
            all=ends[1],
            only={name: between(frozenset({name})) for name in claim.names},
            but={name: between(whole - {name}) for name in claim.names} if n > 2 else {},
            k=claim.k,
        )

    def given(self, claim: Claim) -> dict[str, float]:
        """State the chance of each child given the earlier ones."""
        prefix, given = SHARES.copy(), dict[str, float]()
        for name, child in zip(claim.names, claim.children, strict=True):
            chance = child.chances(self.condition.cause)
            total = float(prefix.sum())
            given[name] = self.stated(float(prefix @ chance) / total, GIVEN_ERROR) if total > 1e-9 else child.p
            prefix = prefix * (1 - chance if claim.structure == "any" else chance)
        return given

    def checked(self, claim: Claim, *, corrected: bool) -> StatedCases:
        """State the cases of a claim, and state them again if their kind does not fit, at most twice."""
        wrong = claim.structure != "split" and self.rng.random() < self.condition.misdescribed and not corrected
        cases = self.cases(claim, honest=not wrong)
        for _ in range(2 if self.condition.send_back else 0):
            if max(misfits(cases).values(), default=0.0) <= self.fit:
                return cases
            self.calls += 1
            wrong = wrong and self.rng.random() >= CORRECTED
            cases = self.cases(claim, honest=not wrong)
        misfit = self.condition.send_back and max(misfits(cases).values(), default=0.0) > self.fit
        return replace(cases, kind="weigh") if misfit else cases

    def estimates(self, claim: Claim, *, corrected: bool = False) -> dict[str, float]:
        """Estimate a claim from its children by every method that combines them."""
        if not claim.children:
            return dict.fromkeys(METHODS[:3], self.stated(claim.p, self.condition.leaf_error, shared=True))
        below = [self.estimates(child, corrected=corrected) for child in claim.children]
        p = {method: [estimate[method] for estimate in below] for method in METHODS[:3]}
        if claim.structure == "split":
            then = [self.stated(chance, CASE_ERROR) for chance in claim.then]
            sums = {method: by_scenarios(p[method], then) for method in ("weights", "cases")}
            return {**sums, "logic": by_scenarios(p["logic"], [float(chance > 0.5) for chance in then])}
        cases = self.checked(claim, corrected=corrected)
        chain = claim.structure in ("all", "any") and cases.kind == claim.structure and self.condition.cause > 0
        own = dict(zip(claim.names, p["cases"], strict=True))
        link = cases_link(replace(cases, given=self.given(claim)) if chain else cases, own)
        return {
            "weights": by_weights(cases, p["weights"]),
            "logic": by_logic(claim, p["logic"]),
            "cases": by_cases(link, own),
        }


def by_scenarios(p: Sequence[float], then: Sequence[float]) -> float:
    total = max(sum(p), 1.0)
    shares = [share / total for share in p]
    return sum(share * chance for share, chance in zip([*shares, 1 - sum(shares)], then, strict=True))


def by_weights(cases: StatedCases, p: Sequence[float]) -> float:
    """Add up effects: what a child changes alone and what it changes last, on average, scaled to at most 1."""
    table, whole = dict(zip(situations(cases.children), situation_table(cases), strict=True)), frozenset(cases.children)
    none, top = table[frozenset()], table[whole]
    weights = [(table[frozenset({c})] - none + top - table[whole - {c}]) / 2 for c in cases.children]
    shrink = min(1.0, (1 - none) / sum(weights)) if sum(weights) > 0 else 1.0
    return none + sum(shrink * weight * chance for weight, chance in zip(weights, p, strict=True))


def by_logic(claim: Claim, p: Sequence[float]) -> float:
    """Count how many children are needed, and nothing else."""
    enough = {"all": len(p), "any": 1, "at_least": claim.k, "weigh": len(p) // 2 + 1}[claim.structure]
    counts = np.array([1.0])
    for chance in p:
        counts = np.convolve(counts, [1 - chance, chance])
    return float(counts[enough:].sum())


def by_cases(link: CasesLink, p: Mapping[str, float]) -> float:
    return sum(weight * chance for weight, chance in zip(situation_weights(link, p), link.chances, strict=True))


@dataclass(frozen=True, kw_only=True)
class Answers:
    """One world: the truth, the answers, and what reconciling would make of the tree and of the direct estimate."""

    structure: str
    truth: float
    p: Mapping[str, float]
    reconciled: tuple[float, float]
    """Tree and direct estimate after reconciling."""
    calls: int


def answers(seed: int, place: int, condition: Condition, fit: float) -> Answers:
    """Draw a world, the same for all conditions, and what the model makes of it."""
    world, rng = np.random.default_rng([seed, place]), np.random.default_rng([seed, place, 1])
    structure = STRUCTURES[place % len(STRUCTURES)]
    claim = draw_claim(world, structure, int(world.integers(2, 7)), INNER)
    truth = claim.truth(condition.cause)
    model = Model(rng=rng, condition=condition, fit=fit)
    p = model.estimates(claim)
    calls = model.calls
    p["direct"] = model.stated(truth, DIRECT_ERROR, shared=True)
    again = model.estimates(claim, corrected=True)["cases"] if rng.random() < CORRECTED else p["cases"]
    second = model.stated(truth, DIRECT_ERROR, shared=True)
    direct = sigmoid((logit(p["direct"]) + logit(second)) / 2) if rng.random() < RESTATED else p["direct"]
    return Answers(structure=structure, truth=truth, p=p, reconciled=(again, direct), calls=calls)


def joined(answer: Answers, weight: float, gap: float) -> float:
    """Combine tree and direct estimate as the method does."""
    tree, direct = answer.p["cases"], answer.p["direct"]
    if abs(logit(tree) - logit(direct)) > gap:
        tree, direct = answer.reconciled
    return sigmoid(weight * logit(tree) + (1 - weight) * logit(direct))


def mean_error(some: Sequence[Answers], value: Callable[[Answers], float]) -> float:
    """Mean distance from the truth, in points."""
    return 100 * float(np.mean([abs(value(answer) - answer.truth) for answer in some]))


# Printing.

CONDITIONS: Mapping[str, Condition] = {
    "as described": Condition(),
    "30 % misdescribed, not sent back": Condition(misdescribed=MISDESCRIBED, send_back=False),
    "30 % misdescribed": Condition(misdescribed=MISDESCRIBED),
    "30 % misdescribed, shared causes and errors": Condition(
        misdescribed=MISDESCRIBED, cause=SHARED_CAUSE, shared_error=SHARED_ERROR
    ),
    "the same, leaves not researched": Condition(
        misdescribed=MISDESCRIBED, cause=SHARED_CAUSE, shared_error=SHARED_ERROR, leaf_error=UNRESEARCHED_ERROR
    ),
}


def by_structure(some: Sequence[Answers]) -> Iterator[str]:
    yield f"| structure | {' | '.join(METHODS)} |"
    yield "|---" * (len(METHODS) + 1) + "|"
    for structure in (*STRUCTURES, "all structures"):
        chosen = [answer for answer in some if structure in (answer.structure, "all structures")]
        cells = [mean_error(chosen, lambda answer, method=method: answer.p[method]) for method in METHODS[:4]]
        cells.append(mean_error(chosen, lambda answer: joined(answer, TREE_WEIGHT, GAP)))
        yield f"| {structure.replace('_', ' ')} | {' | '.join(f'{cell:.1f}' for cell in cells)} |"


def varied(
    name: str, usual: float, errors: Mapping[float, tuple[float, float]], note: Mapping[float, str]
) -> Iterator[str]:
    """Show the errors on both halves; the number that is best on the first half is judged by the second."""
    best = min(errors, key=lambda number: errors[number][0])
    yield f"| {name} | first half | second half | |"
    yield "|---|---|---|---|"
    for number, (first, second) in errors.items():
        shown = "never" if number >= 100 else f"{number:g}"
        marks = [mark for mark, so in (("default", number == usual), ("chosen", number == best)) if so]
        yield f"| {shown} | {first:.2f} | {second:.2f} | {', '.join([*marks, note.get(number, '')]).strip(', ')} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    @cache
    def drawn(name: str, fit: float = FIT) -> list[Answers]:
        return [answers(options.seed, place, CONDITIONS[name], fit) for place in range(options.worlds)]

    def halves(some: Sequence[Answers], value: Callable[[Answers], float]) -> tuple[float, float]:
        half = len(some) // 2
        return mean_error(some[:half], value), mean_error(some[half:], value)

    for name in CONDITIONS:
        print(f"\n## {name}\n", *by_structure(drawn(name)), sep="\n")
    for name in list(CONDITIONS)[2:]:
        some = drawn(name)
        print(f"\n## Numbers: {name}\n")
        weights = {w: halves(some, lambda answer, w=w: joined(answer, w, GAP)) for w in WEIGHTS}
        print(*varied("weight of the tree", TREE_WEIGHT, weights, {}), "", sep="\n")
        gaps = {gap: halves(some, lambda answer, gap=gap: joined(answer, TREE_WEIGHT, gap)) for gap in GAPS}
        asked = {
            gap: float(np.mean([abs(logit(a.p["cases"]) - logit(a.p["direct"])) > gap for a in some])) for gap in GAPS
        }
        print(
            *varied("reconciled above", GAP, gaps, {g: f"{share:.0%} asked" for g, share in asked.items()}),
            "",
            sep="\n",
        )
        fits = {fit: halves(drawn(name, fit), lambda answer: answer.p["cases"]) for fit in FITS}
        sent = {fit: f"{np.mean([answer.calls for answer in drawn(name, fit)]):.2f} sent back" for fit in FITS}
        print(*varied("cases alone, kind fits within", FIT, fits, sent), "", sep="\n")


if __name__ == "__main__":
    main()
