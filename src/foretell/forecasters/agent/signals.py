"""What is known before any research: the market's price and the base rate, both as of the cutoff."""

from foretell.forecasters.agent.context import AgentContext
from foretell.questions.clock import AsOf
from foretell.questions.question import Question


def crowd_of(question: Question, as_of: AsOf) -> tuple[dict[str, float] | None, str]:
    """Prices by target and the day of the oldest; a snapshot taken after the cutoff is not the crowd of that day."""
    known = {t.id: t.snapshot for t in question.targets if t.snapshot is not None and as_of.admits(t.snapshot.at)}
    prices = {id: shot.price for id, shot in known.items() if shot.price is not None}
    if not prices:
        return None, ""
    return prices, min(known[id].at for id in prices).date().isoformat()


def prior_of(question: Question, context: AgentContext) -> dict[str, float] | None:
    """Base rates by target, for questions about data sets; markets have their price."""
    if context.rates is None or question.kind != "dataset":
        return None
    rates = {t.id: context.rates.rate(question, t, context.as_of) for t in question.targets}
    known = {id: rate for id, rate in rates.items() if rate is not None}
    return known or None
