"""Backtest a forecaster of your own against two built-in ones: a class with a name and one method."""

from foretell import Forecast, backtest, compare, score


class Momentum:
    """How often the series rose over as many days as the question looks ahead."""

    name = "momentum"

    def __init__(self, window: int = 250) -> None:
        self.window = window

    async def forecast(self, question, context) -> Forecast:
        """Return a probability for each target, from the series as it was known on the date of the question."""
        values = (await context.series_of(question)).values[-self.window :]
        p = {}
        for target in question.targets:
            days = max(1, (target.resolves_at - question.due).days)
            rises = values[days:] > values[:-days]
            p[target.id] = (rises.sum() + 1) / (rises.size + 2)
        return Forecast(question_id=question.id, forecaster=self.name, as_of=context.as_of, p=p)


result = backtest([Momentum(), "knn", "prior"], "demo")
print(score(result))
print(compare(result, None, "momentum", "knn").sentence)
