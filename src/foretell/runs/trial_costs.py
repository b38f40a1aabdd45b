"""What trials cost and how long they take, measured on similar runs or roughly guessed."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np

from foretell.frozen import frozen
from foretell.models.prices import PriceList
from foretell.models.token_price import FREE_OF_CHARGE, read_price
from foretell.questions.forecast import Cost, Forecast
from foretell.runs.runner import PreparedRun, asks_models
from foretell.runs.spec import RunSpec
from foretell.runs.store import RunStore

READ, WRITTEN, CALL_SECONDS = 5_000, 800, 15.0
"""Tokens and seconds of a typical call, if nothing similar was measured."""


MEASURED_ANSWERS = 200
"""How many answers of a run are used to measure its time and the spread of its cost."""


ENOUGH_ANSWERS, DRAWS = 20, 2000
"""Minimum number of answers to estimate the spread of the cost, and number of samples drawn from them."""


@frozen
class TrialCost:
    """The cost and duration of one trial of a question, and where they come from."""

    dollars: float | None
    """None if no price is known."""
    seconds: float
    basis: str
    """measured, rough, unknown, free model or no model."""
    calls: float = 0.0
    """Model calls."""
    trials: int = 0
    """Number of trials that were measured."""
    answers: tuple[float, ...] = ()
    """What some of its answers cost, in dollars."""

    def nine_in_ten(self, trials: int) -> float | None:
        """Return the 90th percentile of the cost of some trials in dollars; None if there are too few answers.

        It is estimated by drawing trials from the answers so far.
        """
        if len(self.answers) < ENOUGH_ANSWERS:
            return None
        drawn = np.random.default_rng(0).choice(self.answers, (DRAWS, trials)).sum(axis=1)
        return float(np.quantile(drawn, 0.9))


TrialCosts = Mapping[tuple[str, ...], TrialCost]
"""Similarity key → cost of a trial."""


def measured_costs(store: RunStore) -> TrialCosts:
    """Return measured cost and duration of trials in stored runs."""
    sums: dict[tuple[str, ...], tuple[float, int, list[Cost]]] = {}
    for row in store.runs():
        if row.done and row.spec.get("models"):
            dollars, trials, timed = sums.get(similarity(row.spec), (0.0, 0, []))
            if len(timed) < MEASURED_ANSWERS:
                some = islice(store.answers(row.id), MEASURED_ANSWERS)
                timed += [answer.usage for answer in some if isinstance(answer, Forecast)]
            sums[similarity(row.spec)] = (dollars + store.cost(row.id).worth, trials + row.done + row.failed, timed)
    return {
        like: TrialCost(
            dollars=dollars / trials,
            seconds=sum(usage.seconds for usage in timed) / max(len(timed), 1),
            basis="measured",
            calls=sum(usage.calls for usage in timed) / max(len(timed), 1),
            trials=trials,
            answers=tuple(usage.worth for usage in timed),
        )
        for like, (dollars, trials, timed) in sums.items()
    }


def trial_cost(spec: RunSpec, measured: TrialCosts, targets: float = 1.0) -> TrialCost:
    """Return the cost of a trial by what trials have cost here; `targets` is the mean number of outcomes asked."""
    if not asks_models(spec):
        return TrialCost(dollars=0.0, seconds=0.0, basis="no model")
    if known := measured.get(similarity(spec)):
        return known
    model = spec.models.get("agent", "")
    calls = _calls(spec) * (targets if spec.forecaster in ("tree", "thoughts") else 1.0)
    seconds = CALL_SECONDS * calls
    price = PriceList({name: read_price(text) for name, text in spec.prices.items()}).of(model)
    if price is None:
        return TrialCost(dollars=None, seconds=seconds, basis="unknown", calls=calls)
    if price == FREE_OF_CHARGE:
        return TrialCost(dollars=0.0, seconds=seconds, basis="free model", calls=calls)
    dollars = calls * (READ * price.input + WRITTEN * price.output) / 1e6
    return TrialCost(dollars=dollars, seconds=seconds, basis="rough", calls=calls)


def similarity(spec: RunSpec | Mapping[str, Any]) -> tuple[str, ...]:
    """Return what determines the price of a trial: forecaster, models, options and search."""
    body: Mapping[str, Any] = vars(spec) if isinstance(spec, RunSpec) else spec
    options, models = (sorted(dict(body.get(name) or {}).items()) for name in ("options", "models"))
    return (str(body.get("forecaster", "agent")), str(models), str(options), str(list(body.get("search") or ())))


def _calls(spec: RunSpec) -> float:
    """Return the approximate number of model calls of a trial."""
    options = spec.options
    if spec.forecaster == "agent":
        return 1.0 if options.get("variant") == "zero-shot" else 0.7 * float(options.get("steps", 10))
    if spec.forecaster == "reason":
        replies = float(options.get("scout_replies", 5))
        # About half of the questions are taken apart, which takes a dozen calls more.
        return replies + {"never": 0.0, "always": 12.0}.get(str(options.get("take_apart", "auto")), 6.0)
    if spec.forecaster == "tree":
        return 2.0 + 1.7 * float(options.get("leaves", 10)) ** float(options.get("rounds", 1))
    return 12.0 if spec.forecaster == "thoughts" else 1.0


def prepared_trial_cost(prepared: PreparedRun, measured: TrialCosts) -> TrialCost:
    """Return what one trial of a run costs and how long it takes."""
    targets = [1 if len(question.targets) < 3 else len(question.targets) for question in prepared.questions]
    return trial_cost(prepared.spec, measured, sum(targets) / len(targets) if targets else 1.0)
