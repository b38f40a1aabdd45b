"""What is known about a question without research: how often such questions come true, and where things stand."""

from collections.abc import Iterator

from foretell.data.untrusted import listed_for_prompt
from foretell.forecasters.base_rates.outside_estimate import ReferenceClass
from foretell.forecasters.base_rates.outside_view import OutsideView
from foretell.forecasters.base_rates.past import question_text
from foretell.forecasters.base_rates.wording import read
from foretell.forecasters.forecaster import CannotForecast, Context
from foretell.forecasters.series.typed_question import share_interval
from foretell.forecasters.tree.grow.prompting import sections
from foretell.frozen import frozen
from foretell.number_text import brief_percent
from foretell.questions.question import Question
from foretell.questions.thresholds import thresholds_of
from foretell.tools.series_stats import past_changes

WORDING_WORTH = 4.0
"""How many past questions the wording of a question is worth, if no similar ones are known."""
MOST_SIMILAR = 5
MOST_LISTED = 6
"""With more options than this, only the smallest and the largest share are shown."""
LONGEST_TEXT = 160


@frozen
class OutsideEstimate:
    """How often questions like this came true."""

    p: float
    low: float
    high: float
    """80 % interval."""
    cases: float
    """How many past questions it is worth."""
    similar: tuple[str, ...] = ()
    """The most similar past questions with their outcomes."""

    @property
    def share(self) -> str:
        """The share that came true, with its interval, in words."""
        return f"{brief_percent(self.p)} (80 % interval {brief_percent(self.low)} to {brief_percent(self.high)})"

    @property
    def lines(self) -> list[str]:
        """The most similar past questions, as lines of a list."""
        return [f"- {text}" for text in self.similar]

    def __str__(self) -> str:
        head = f"About {self.share} of questions like this came true, worth about {self.cases:.0f} past cases."
        return "\n".join([head, *self.lines])


def outside_estimates(question: Question, context: Context) -> dict[str, OutsideEstimate]:
    """Return the outside view of each target; empty if nothing was known at the cutoff.

    Thresholds of a number have none unless its series is known: their wording does not say how far apart they are.
    """
    if question.series is None and question.kind != "dataset" and thresholds_of(question) is not None:
        return {}
    try:
        forecast = OutsideView().estimate(question, context)
    except CannotForecast:
        return {}
    past = context.past.whole
    members = ReferenceClass.of(question, past.table, context.as_of).members if past else ()
    known = context.past.cases(question, context.as_of) if question.kind == "dataset" else 0
    cases = float(known or len(members) or WORDING_WORTH)
    similar = tuple(
        f"{'yes' if member.outcome else 'no'}, {member.known_on}: {_in_a_line(member.text)}"
        for member in members[:MOST_SIMILAR]
    )
    estimates: dict[str, OutsideEstimate] = {}
    for target, p in forecast.p.items():
        low, _, high = share_interval(cases * p, cases)
        estimates[target] = OutsideEstimate(p=p, low=min(low, p), high=max(high, p), cases=cases, similar=similar)
    return estimates


def _in_a_line(text: str) -> str:
    """Return the text of a past question, which others wrote, for a list in a prompt."""
    return listed_for_prompt(" ".join(text.split())[:LONGEST_TEXT])


def outside_text(question: Question, context: Context) -> str:
    """Return the outside view as prompt text; empty if nothing was known at the cutoff."""
    estimates = outside_estimates(question, context)
    if len(estimates) < 2:
        return "\n".join(map(str, estimates.values()))
    first = next(iter(estimates.values()))
    heading = f"How often questions like this came true (worth about {first.cases:.0f} past cases):"
    lines = [f"- {target}: {estimate.share}" for target, estimate in estimates.items()]
    if len(estimates) > MOST_LISTED:
        low, high = (pick(estimates.values(), key=lambda estimate: estimate.p) for pick in (min, max))
        lines = [f"- from {low.share} to {high.share}, by option"]
    similar = ["The most similar ones:", *first.lines] if first.similar else []
    return "\n".join([heading, *lines, *similar])


async def known_before_research(question: Question, context: Context) -> str:
    """Return what the scout's first prompt adds: the outside view, and where things stand."""
    stands = [f"- {line}" for line in (*_by_wording(question, context), *await _status(question, context))]
    return sections(("Outside view", outside_text(question, context)), ("Where things stand", "\n".join(stands)))


def _by_wording(question: Question, context: Context) -> Iterator[str]:
    """Yield what a question's wording says about its deadline and about the status quo.

    The deadline is left out if a date is given otherwise, and the status quo if a series shows it.
    """
    if question.series is not None or thresholds_of(question) is not None or question.exclusivity != "independent":
        return
    wording = read(question_text(question, question.targets[0]), question.due.date())
    dated = any(t.resolves_at for t in question.targets) or (question.closes_at and context.as_of.mode == "live")
    if not dated and wording.deadline is not None:
        days = (wording.deadline - context.as_of.at.date()).days
        if days > 0:
            yield f"Its wording sets a deadline: {wording.deadline.isoformat()}, in {days} day{'s' * (days > 1)}."
    if "negated" in wording.turns:
        yield "Status quo: its wording asks whether things stay as they are. If nothing changes, the answer is YES."
    elif wording.course == "by":
        yield "Status quo: its wording asks whether something happens in time. If nothing does, the answer is NO."


async def _status(question: Question, context: Context) -> list[str]:
    """Return sentences on the series that decides the question; empty if none does."""
    if (ref := question.series) is None:
        return []
    try:
        series = await context.series_of(question)
    except CannotForecast:
        return []
    ends = [target.resolves_at or question.closes_at for target in question.targets]
    span = max(((end.date() - context.as_of.at.date()).days for end in ends if end is not None), default=0)
    last = float(series.values[-1])
    lines = [f"Last value of the series: {last:g}, of {series.days[-1]}."]
    against = ref.threshold if ref.threshold is not None else series.at(question.due.date())
    if against is not None:
        true = last > against if ref.comparison == "above" else last < against
        lines.append(f"Status quo: if it stays there, the answer is {'YES' if true else 'NO'}.")
    if (moved := past_changes(series, span)) is not None:
        lines.append(str(moved))
        if against is not None and against != last:
            lines.append(moved.passing(against - last))
    return lines
