"""Plans for the work of models on a tree: which steps it takes, and about what they cost."""

from collections.abc import Iterable
from typing import Any

from foretell.forecasters.tree.grow.ground import USUAL_TOKENS
from foretell.forecasters.tree.grow.synthesize import ModelFreeRule, rule_named
from foretell.forecasters.tree.proposition import Tree, parents_of
from foretell.frozen import frozen
from foretell.models.model import TokenCount
from foretell.number_text import dollars, plural
from foretell.questions.codec import plain_data
from foretell.runs.runtime import prices_of
from foretell.runs.spec import RunSpec
from foretell.runs.tree_runtime import ReasonOptions, TreeOptions

JUDGE_TOKENS = TokenCount(input=5_000, output=1_500)
"""Usual tokens for judging a rule."""
ANALYZE_TOKENS = TokenCount(input=4_000, output=1_500)
"""Usual tokens of one reply when a claim is broken down."""
CALLS_OF_ANALYSIS, RULES_OF_ANALYSIS = 2, 2
"""Usual number of replies when a claim is broken down, and of the claims with children that result."""


@frozen
class PlannedStep:
    """One step of a plan."""

    claim: str
    do: str
    """What is done: research, break down, judge or compute."""
    calls: int
    """Approximate number of model calls; 0 for arithmetic."""
    dollars: float | None
    """Approximate cost; None if the price is not known."""


@frozen
class TreePlan:
    """The steps that work on a tree would take. Nothing is requested, paid or written."""

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
        """Return the steps, and the calls and dollars of all together."""
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
        follow = f"; {plural(computed, 'claim')} recomputed without a call" if computed else ""
        return "\n".join([*lines, f"{plural(self.calls, 'call')}, {total}{follow}"])


@frozen
class Planner:
    """Estimates calls and cost by the prices of a run's models."""

    spec: RunSpec | None
    """The run; None if no model is named, so that no price is known."""

    def step(self, claim: str, do: str, calls: int, each: TokenCount, role: str, times: float = 1.0) -> PlannedStep:
        """Return a step with a number of calls, which uses `times` the tokens of `each`."""
        price = None
        if self.spec is not None:
            price = prices_of(self.spec).of(self.spec.models.get(role, self.spec.models["agent"]))
        return PlannedStep(
            claim=claim, do=do, calls=calls, dollars=None if price is None else times * price.dollars(each)
        )

    def research(self, claim: str, grounder: str, times: int) -> PlannedStep:
        """Return the step that estimates leaves, `times` times in total."""
        calls, tokens = USUAL_TOKENS.get(grounder, USUAL_TOKENS["search"])
        return self.step(claim, f"research by {grounder}", calls * times, tokens, "grounder", times)

    def judge(self, claim: str, rule: str, times: int = 1) -> PlannedStep:
        """Return the step that combines the children of `times` claims by a rule."""
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

    def reasoning(self, id: str, options: ReasonOptions) -> TreePlan:
        """Return the steps of the forecaster `reason`: half of the leaves are taken to be answered by the scout."""
        below = "P*" if id == "P0" else f"{id}.*"
        open_leaves = options.children // 2
        calls, tokens = USUAL_TOKENS["agent"]
        replies = options.scout_replies
        return TreePlan(
            steps=(
                self.step(id, "scout", replies, tokens, "agent", replies / calls),
                self.step(id, "plan", 1, ANALYZE_TOKENS, "analyzer"),
                self.step(below, "judge from the evidence", 1, JUDGE_TOKENS, "grounder"),
                self.research(below, options.grounder, open_leaves * options.trials),
                self.step(id, "state cases", 1, JUDGE_TOKENS, "synthesizer"),
                self.step(id, "reconcile", 1, JUDGE_TOKENS, "synthesizer"),
            )
        )


def claims_above(tree: Tree, start: Iterable[str]) -> list[str]:
    """Return all claims above the given ones."""
    parents, above, open_claims = parents_of(tree.nodes), dict[str, None](), list(start)
    while open_claims:
        for parent in parents[open_claims.pop()]:
            if parent not in above:
                above[parent] = None
                open_claims.append(parent)
    return list(above)


def computed_steps(tree: Tree, changed: Iterable[str]) -> list[PlannedStep]:
    """Return the steps that recompute, by arithmetic, the claims above changed ones."""
    changed = list(changed)
    above = [id for id in claims_above(tree, changed) if id not in changed]
    return [PlannedStep(claim=id, do="compute", calls=0, dollars=0.0) for id in above]
