"""Decide whether a question is taken apart, and say why not."""

from collections.abc import Iterator
from datetime import timedelta

from foretell.forecasters.forecaster import Context
from foretell.forecasters.reason.scout import ScoutReport
from foretell.forecasters.reason.settings import SHARES, ReasonSettings
from foretell.forecasters.tree.grow.ground import USUAL_LEAF, USUAL_TOKENS
from foretell.frozen import frozen
from foretell.number_text import brief_percent
from foretell.questions.question import Question

FEWEST_PARTS = 2
"""Number of parts that must be easier to look up than the whole."""


def grows_the_tree(context: Context) -> bool:
    """Return whether it is this trial that takes the question apart: the last one, from the evidence of all."""
    return context.trial >= context.trials - 1


@frozen
class Condition:
    """One of the conditions under which a question is taken apart, all of which have to hold."""

    holds: bool
    text: str
    """How it is with this question, as a reason for or against taking it apart."""


def conditions(
    report: ScoutReport, question: Question, context: Context, settings: ReasonSettings, dollars: float | None
) -> list[Condition]:
    """Return the conditions that do not depend on the direct estimate."""
    if report.by_series:
        return [Condition(holds=False, text=BY_SERIES)]
    if settings.take_apart == "never":
        return [Condition(holds=False, text=BY_SETTINGS)]
    if not grows_the_tree(context):
        return [Condition(holds=False, text="the tree is grown in the last trial, from the evidence of all")]
    if settings.take_apart == "always":
        return [Condition(holds=True, text=BY_SETTINGS)]
    return list(_conditions(report, question, context, settings, dollars))


BY_SERIES, BY_SETTINGS = "a series decides it", "the settings say so"


def _conditions(
    report: ScoutReport, question: Question, context: Context, settings: ReasonSettings, dollars: float | None
) -> Iterator[Condition]:
    single = {"single": "one thing decides it", "number": "it is about a number that no scenario decides"}
    several = "it is about a number that depends on scenarios" if report.numeric else "several things decide it"
    yield Condition(holds=report.structure not in single, text=single.get(report.structure, several))
    if report.structure not in single:
        enough = report.parts >= FEWEST_PARTS
        parts = f"{report.parts} parts are" if enough else "fewer than two parts are"
        yield Condition(holds=enough, text=f"{parts} easier to look up than the whole")
    fresh = _fresh_price(question, context, settings.fresh_days)
    yield Condition(holds=not fresh, text=f"there is {'a' if fresh else 'no'} fresh market price")
    series = question.series is not None
    yield Condition(holds=not series, text=BY_SERIES if series else "no series decides it")
    if dollars is not None:
        needed = least_cost(context)
        enough = (1 - SHARES["scout"]) * dollars >= needed
        text = "the budget suffices" if enough else f"the budget does not suffice: a tree takes about ${needed:.2f}"
        yield Condition(holds=enough, text=text)


def uncertainty(report: ScoutReport, settings: ReasonSettings) -> list[Condition]:
    """Return the condition that the direct estimate of all trials known by now is uncertain, if that matters."""
    # Thresholds far away from a number are certain, whatever is not known about it.
    if settings.take_apart != "auto" or report.numeric:
        return []
    certain = all(not settings.sure <= value <= 1 - settings.sure for value in report.of_all.p.values())
    low, high = brief_percent(settings.sure), brief_percent(1 - settings.sure)
    text = f"is within {low} of certain" if certain else f"is between {low} and {high}"
    return [Condition(holds=not certain, text=f"the direct estimate {text}")]


def _fresh_price(question: Question, context: Context, days: float) -> bool:
    """Whether every target has a price that is fresh enough at the cutoff."""
    oldest = context.as_of.at - timedelta(days=days)
    snapshots = [target.snapshot for target in question.targets]
    return all(
        snapshot is not None
        and snapshot.price is not None
        and snapshot.volume != 0
        and context.as_of.admits(snapshot.at)
        and snapshot.at >= oldest
        for snapshot in snapshots
    )


def least_cost(context: Context) -> float:
    """Approximate dollars of the smallest useful tree: a plan, two leaves and their cases; 0 if no price is known."""
    price = context.models.price("grounder")
    if price is None:
        return 0.0
    plain = USUAL_TOKENS["plain"][1]
    return 2 * price.dollars(plain) + 2 * price.dollars(USUAL_LEAF)
