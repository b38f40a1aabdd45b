"""The outside view as a forecaster: a probability for any question, from past questions alone."""

from foretell.forecasters.base_rates.outside_estimate import ReferenceClass, cutoff_of, hindsight, outside_estimate
from foretell.forecasters.base_rates.outside_fit import fit_outside
from foretell.forecasters.base_rates.outside_model import OutsideModel, shipped_model
from foretell.forecasters.base_rates.past import Past
from foretell.forecasters.forecaster import CannotForecast, Context, forecast_of
from foretell.frozen import frozen
from foretell.questions.as_of import AsOf
from foretell.questions.forecast import Forecast
from foretell.questions.question import Question


@frozen
class OutsideView:
    """Estimates how often questions with this wording and horizon came true.

    Live, the model shipped with the package is used, and past questions add a reference class. In a backtest the model
    is fitted for each cutoff, on what was known before it. Without past questions, it cannot forecast questions asked
    before the package's own model was fitted.
    """

    model: OutsideModel | None = None
    """A model to use instead of the package's own."""
    name: str = "outside-view"

    async def forecast(self, question: Question, context: Context) -> Forecast:
        """Return a probability for every target; for targets that exclude each other their sum is valid."""
        return self.estimate(question, context)

    def estimate(self, question: Question, context: Context) -> Forecast:
        """Like `forecast`, for callers outside an event loop."""
        cutoff = cutoff_of(question, context.as_of)
        past = context.past.whole
        model = self._model(question, cutoff, past)
        similar = ReferenceClass.of(question, past.table, cutoff) if past else None
        p, rationale = outside_estimate(question, model, similar)
        return forecast_of(p, question, context, self.name, rationale)

    def _model(self, question: Question, cutoff: AsOf, past: Past) -> OutsideModel:
        day = cutoff.at.date()
        if past and cutoff.mode == "backtest":
            return past.cached(("outside view", day), lambda: fit_outside(past.table, cutoff))
        model = self.model or shipped_model()
        if problem := hindsight(question, model, cutoff):
            raise CannotForecast(problem)
        return model
