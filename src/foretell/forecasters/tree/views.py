"""A tree without a model: one claim, and under it what price, base rate, outside view and series say of it.

Its leaves are not parts of the claim but opinions on it, and a weighted sum of opinions is a linear opinion pool (Stone
1961). As a tree it can be stored, shown and explored with what-if like any other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from foretell.forecasters.agent.settings import Clamp
from foretell.forecasters.base_rates.baselines import BaseRateForecaster, CrowdForecaster
from foretell.forecasters.base_rates.outside_view import OutsideView
from foretell.forecasters.base_rates.rates import Rates
from foretell.forecasters.forecaster import CannotForecast, Context, Forecaster
from foretell.forecasters.series.forecasters import Auto
from foretell.forecasters.tree.arithmetic.evaluation import evaluated
from foretell.forecasters.tree.forecaster import (
    claim_of_target,
    forecast_from_targets,
    targets_to_analyze,
    tree_summaries,
)
from foretell.forecasters.tree.grow.analyze import ROOT, child_id
from foretell.forecasters.tree.links import LinearLink
from foretell.forecasters.tree.proposition import Grounding, Proposition, Tree
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question, Target

WORDS = {
    "price": "as the market prices it",
    "rate": "as often as questions of its kind came true",
    "outside": "as its wording and horizon suggest",
    "series": "as the series behind it suggests",
}


@dataclass(frozen=True, kw_only=True)
class ViewsForecaster:
    """A linear tree over views. A view without anything to say is left out, and the others share its weight."""

    rates: Rates | None = None
    """Other base rates than those counted from the past."""
    price: float = 1.0
    """Weight of the crowd's price; 0 leaves it out. The same for the other three."""
    rate: float = 1.0
    outside: float = 1.0
    series: float = 1.0
    shortcut: bool = True
    """Of two options of which exactly one comes true the first gets a tree, and the other what is left."""
    clamp: Clamp = field(default_factory=Clamp)
    name: str = "tree-views"
    _views: Mapping[str, Forecaster] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        weights = [self.price, self.rate, self.outside, self.series]
        if min(weights) < 0 or not sum(weights):
            raise ValueError(f"weights {weights} are no weights: none may be negative, and one must be more than 0")
        object.__setattr__(self, "_views", self._forecasters())

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """The roots of one tree for each target that is analysed."""
        forecasts = await self._forecasts(question, context)
        targets = targets_to_analyze(question, shortcut=self.shortcut)
        trees = {target.id: self.tree(question, target, forecasts, context) for target in targets}
        numbers = {target: tree.nodes[ROOT].p or 0.0 for target, tree in trees.items()}
        return forecast_from_targets(question, context, self.name, numbers, tree_summaries(trees), self.clamp)

    def tree(self, question: Question, target: Target, forecasts: Mapping[str, Forecast], context: Context) -> Tree:
        """The tree of one target."""
        claim = claim_of_target(question, target)
        total = sum(getattr(self, view) for view in forecasts)
        ids = {view: child_id(ROOT, place) for place, view in enumerate(forecasts, start=1)}
        nodes = {
            ids[view]: Proposition(
                id=ids[view],
                claim=f"{claim} ({WORDS[view]})",
                p=forecast.p[target.id],
                grounding=Grounding(grounder=view, report=forecast.rationale),
            )
            for view, forecast in forecasts.items()
        }
        link = LinearLink(weights={ids[view]: getattr(self, view) / total for view in forecasts})
        top = Proposition(id=ROOT, claim=claim, children=tuple(nodes), causality="Opinions, weighed.", link=link)
        return evaluated(Tree(root=ROOT, nodes={ROOT: top, **nodes}, as_of=context.as_of))

    async def _forecasts(self, question: Question, context: Context) -> dict[str, Forecast]:
        found: dict[str, Forecast] = {}
        problems: list[str] = []
        for view, forecaster in self._views.items():
            try:
                found[view] = await forecaster.forecast(question, context)
            except CannotForecast as reason:
                problems.append(f"{view}: {reason}")
        if not found:
            raise CannotForecast("; ".join(problems) or "no view can be had")
        return found

    def _forecasters(self) -> dict[str, Forecaster]:
        """Those with a weight, made once: the outside view is fitted anew for each date, and keeps what it fitted."""
        made: dict[str, Forecaster] = {
            "price": CrowdForecaster(),
            "rate": BaseRateForecaster(rates=self.rates),
            "outside": OutsideView(),
            "series": Auto(),
        }
        return {view: made[view] for view in WORDS if getattr(self, view)}
