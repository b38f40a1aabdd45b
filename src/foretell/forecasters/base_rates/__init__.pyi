"""Made by tools/write_stub.py: do not edit."""
# ruff: noqa

from foretell.forecasters.base_rates.baselines import BaseRateForecaster as BaseRateForecaster
from foretell.forecasters.base_rates.baselines import ConstantForecaster as ConstantForecaster
from foretell.forecasters.base_rates.baselines import CrowdElseBaseRate as CrowdElseBaseRate
from foretell.forecasters.base_rates.baselines import CrowdForecaster as CrowdForecaster
from foretell.forecasters.base_rates.baselines import MarketForecaster as MarketForecaster
from foretell.forecasters.base_rates.outside_fit import fit_outside as fit_outside
from foretell.forecasters.base_rates.outside_view import OutsideView as OutsideView
from foretell.forecasters.base_rates.outside_view import ReferenceClass as ReferenceClass
from foretell.forecasters.base_rates.past import NEVER as NEVER
from foretell.forecasters.base_rates.past import Past as Past
from foretell.forecasters.base_rates.past import PastAnswer as PastAnswer
from foretell.forecasters.base_rates.past import PastQuestions as PastQuestions
from foretell.forecasters.base_rates.past import PastTarget as PastTarget
from foretell.forecasters.base_rates.rates import BaseRates as BaseRates
from foretell.forecasters.base_rates.rates import FixedRates as FixedRates
from foretell.forecasters.base_rates.rates import PAPER_RATES as PAPER_RATES
from foretell.forecasters.base_rates.rates import PastOutcomes as PastOutcomes
from foretell.forecasters.base_rates.rates import Rates as Rates
from foretell.forecasters.base_rates.rates import effective_weights as effective_weights
from foretell.forecasters.base_rates.same_question import compare as compare
from foretell.forecasters.base_rates.same_question import sense as sense
