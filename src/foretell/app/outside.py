"""What can be said of a question without any model: the crowd's price, or how often such questions came true."""

from foretell.app.asking import Asked
from foretell.app.settings import Settings
from foretell.questions.problems import InputError


def outside_view(asked: Asked, settings: Settings) -> str:
    """One sentence with a number and where it comes from; empty where nothing is known."""
    if asked.price is not None:
        return f"the market says {asked.price:.0%}; few forecasters beat a liquid price."
    if asked.options:
        return ""
    counted = _pulled_markets(settings)
    if counted is None:
        return "no past questions are here to count; foretell data pull forecastbench --latest brings some."
    yes, n = counted
    rate = (yes + 1) / (n + 2)
    return f"of {n} resolved market questions in the pulled rounds {rate:.0%} came true (a base rate, not a judgement)."


def _pulled_markets(settings: Settings) -> tuple[int, int] | None:
    from foretell.sources.datasets.cache import Cache
    from foretell.sources.datasets.pull import pulled_rounds, read_pulled

    cache = Cache(settings.home / "forecastbench")
    outcomes: list[int] = []
    for day in pulled_rounds(cache):
        try:
            found = read_pulled(cache, day)
        except InputError:
            continue
        markets = {(q.id, q.due) for q in found.questions if q.kind == "market"}
        outcomes += [value for (question, due, _), value in found.outcomes().items() if (question, due) in markets]
    return (sum(outcomes), len(outcomes)) if outcomes else None
