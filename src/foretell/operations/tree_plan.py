"""Plans for the work of models on a tree: which steps it takes, and about what they cost."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from foretell.forecasters.tree.grow.ground import USUAL_TOKENS
from foretell.forecasters.tree.grow.synthesize import ModelFreeRule, rule_named
from foretell.forecasters.tree.proposition import Tree, parents_of
from foretell.models.model import TokenCount
from foretell.questions.codec import plain_data
from foretell.report.numbers import dollars, plural
from foretell.runs.runtime import prices_of
from foretell.runs.spec import RunSpec
from foretell.runs.tree_runtime import TreeOptions

JUDGE_TOKENS = TokenCount(input=5_000, output=1_500)
"""Usual tokens for judging a rule."""
ANALYZE_TOKENS = TokenCount(input=4_000, output=1_500)
"""Usual tokens of one reply when a claim is broken down."""
CALLS_OF_ANALYSIS, RULES_OF_ANALYSIS = 2, 2
"""Usual number of replies when a claim is broken down, and of claims with children that come of it."""


@dataclass(frozen=True, kw_only=True)
class PlannedStep:
    """One step of a plan."""

    claim: str
    do: str
    """What is done: research, break down, judge or compute."""
    calls: int
    """Approximate number of model calls; 0 for arithmetic."""
    dollars: float | None
    """Approximate cost; None if the price is not known."""


@dataclass(frozen=True, kw_only=True)
class TreePlan:
    """The steps that work on a tree would take. Nothing is asked, paid or written."""

    steps: tuple[PlannedStep, ...]

    @property
    def calls(self) -> int:
        """Approximate number of model calls."""
        return sum(step.calls for step in self.steps)

    @property
    def dollars(self) -> float | None:
        """Approximate cost; None if a price is not known."""
        costs = [step.dollars for step in self.steps if step.calls]
        return None if None in costs else sum(cost or 0.0 for cost in costs)

    def to_dict(self) -> dict[str, Any]:
        """The steps, and the calls and dollars of all together."""
        return {"plan": plain_data(self.steps), "calls": self.calls, "dollars": self.dollars}

    def __str__(self) -> str:
        lines = [
            f"{step.claim}: {step.do}, about {plural(step.calls, 'call')}"
            + ("" if step.dollars is None else f", about {dollars(step.dollars)}")
            for step in self.steps
            if step.calls
        ]
        total = "price not known" if self.dollars is None else f"about {dollars(self.dollars)}"
        computed = sum(not step.calls for step in self.steps)
        return "\n".join([*lines, f"{plural(self.calls, 'call')}, {total}; {plural(computed, 'claim')} by arithmetic"])


@dataclass(frozen=True, kw_only=True)
class Planner:
    """Estimates calls and cost by the prices of a run's models."""

    spec: RunSpec | None
    """The run; None if no model is named, so that no price is known."""

    def step(self, claim: str, do: str, calls: int, each: TokenCount, role: str, times: float = 1.0) -> PlannedStep:
        """Return a step of so many calls, whose tokens are those of `each`, `times` over."""
        price = None
        if self.spec is not None:
            price = prices_of(self.spec).of(self.spec.models.get(role, self.spec.models["agent"]))
        return PlannedStep(
            claim=claim, do=do, calls=calls, dollars=None if price is None else times * price.dollars(each)
        )

    def research(self, claim: str, grounder: str, times: int) -> PlannedStep:
        """Return the step that estimates leaves, so many times in all."""
        calls, tokens = USUAL_TOKENS.get(grounder, USUAL_TOKENS["search"])
        return self.step(claim, f"research by {grounder}", calls * times, tokens, "grounder", times)

    def judge(self, claim: str, rule: str, times: int = 1) -> PlannedStep:
        """Return the step that combines the children of so many claims by a rule."""
        if isinstance(rule_named(rule), ModelFreeRule):
            return PlannedStep(claim=claim, do=f"combine by {rule}", calls=0, dollars=0.0)
        return self.step(claim, f"judge the rule {rule}", times, JUDGE_TOKENS, "synthesizer", times)

    def growth(self, id: str, options: TreeOptions) -> TreePlan:
        """Return the steps that break down a claim, research the leaves and combine them."""
        most = options.nodes if options.max_leaves is None else min(options.nodes, options.max_leaves)
        leaves = min(options.leaves**options.rounds, most)
        analyses = min(sum(options.leaves**turn for turn in range(options.rounds)), leaves)
        calls = CALLS_OF_ANALYSIS * analyses
        below = "P*" if id == "P0" else f"{id}.*"
        return TreePlan(
            steps=(
                self.step(id, "break down", calls, ANALYZE_TOKENS, "analyzer", calls),
                self.research(below, options.grounder, leaves * options.trials),
                self.judge(id, options.rule, RULES_OF_ANALYSIS * analyses),
            )
        )


def claims_above(tree: Tree, start: Iterable[str]) -> list[str]:
    """Return all claims above the given ones."""
    parents, above, stack = parents_of(tree.nodes), dict[str, None](), list(start)
    while stack:
        for parent in parents[stack.pop()]:
            if parent not in above:
                above[parent] = None
                stack.append(parent)
    return list(above)


def computed_steps(tree: Tree, changed: Iterable[str]) -> list[PlannedStep]:
    """Return the steps that recompute, by arithmetic, the claims above changed ones."""
    changed = list(changed)
    above = [id for id in claims_above(tree, changed) if id not in changed]
    return [PlannedStep(claim=id, do="compute", calls=0, dollars=0.0) for id in above]
