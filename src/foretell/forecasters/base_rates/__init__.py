"""Forecasts from what happened to similar questions: base rates and the outside view."""

from foretell.interface import offer

HOMES = {
    "foretell.forecasters.base_rates.baselines": (
        "BaseRateForecaster ConstantForecaster CrowdElseBaseRate CrowdForecaster MarketForecaster"
    ),
    "foretell.forecasters.base_rates.outside_fit": "fit_outside",
    "foretell.forecasters.base_rates.outside_view": "OutsideView ReferenceClass",
    "foretell.forecasters.base_rates.past": "NEVER Past PastAnswer PastQuestions PastTarget",
    "foretell.forecasters.base_rates.rates": "BaseRates FixedRates PAPER_RATES PastOutcomes Rates effective_weights",
    "foretell.forecasters.base_rates.same_question": "compare sense",
}
"""Maps each module to the names that other packages use from it."""

__getattr__, __dir__ = offer(__name__, HOMES)
