"""Metaculus's resolutions: yes or no, an option, a number or a date, or neither (ambiguous or annulled).

An account sees only some resolutions of closed questions; withheld ones are distinguished from open questions.
"""

from collections.abc import Sequence
from datetime import datetime
from http import HTTPStatus
from math import inf
from typing import Literal, get_args

from foretell.data.http import NotFound, SourceError
from foretell.data.markets.listing import UnsupportedEvent
from foretell.data.markets.market import MarketRef
from foretell.data.markets.metaculus import CHOICE, CONTINUOUS, MetaculusClient, questions_of, status_of
from foretell.data.payload import Payload
from foretell.data.settlements.settlement import MarketSettlements, SettledMarket, SettledOutcome, SettlementTarget
from foretell.frozen import frozen
from foretell.questions.question import Question, Target

NoResult = Literal["ambiguous", "annulled"]
Beyond = Literal["above_upper_bound", "below_lower_bound"]


@frozen
class MetaculusResolution:
    """The resolution of a question."""

    kind: Literal["yes", "no", "option", "number", "date", NoResult, Beyond]
    option: str = ""
    number: float | None = None
    """The number, or a date in Unix seconds; infinite if only the side on which it left the range is stated."""
    at: datetime | None = None
    """When it was resolved."""


def resolution_of(question: Payload) -> MetaculusResolution | None:
    """Return the resolution of a question; None if it has none yet. Raises if it is hidden from this account."""
    if status_of(question) != "resolved":
        return None
    at, field, kind = question.optional_time("actual_resolve_time"), question.get("resolution"), question.need("type")
    if field is None or not field.text():
        raise UnsupportedEvent("its resolution is not shown to this account")
    word = field.text().casefold()
    if word in get_args(NoResult):
        return MetaculusResolution(kind="ambiguous" if word == "ambiguous" else "annulled", at=at)
    if kind.text() == CHOICE:
        return MetaculusResolution(kind="option", option=field.text(), at=at)
    if kind.text() in CONTINUOUS:
        return _number(field, at, dates=kind.text() == "date")
    if kind.text() != "binary":
        raise UnsupportedEvent(f"a question of type {kind.text()} is not supported")
    if word not in ("yes", "no"):
        field.wrong("yes, no, ambiguous or annulled")
    return MetaculusResolution(kind="yes" if word == "yes" else "no", at=at)


def _number(field: Payload, at: datetime | None, *, dates: bool) -> MetaculusResolution:
    if field.text().casefold() == "above_upper_bound":
        return MetaculusResolution(kind="above_upper_bound", number=inf, at=at)
    if field.text().casefold() == "below_lower_bound":
        return MetaculusResolution(kind="below_lower_bound", number=-inf, at=at)
    if dates:
        return MetaculusResolution(kind="date", number=field.time().timestamp(), at=at)
    return MetaculusResolution(kind="number", number=field.number(), at=at)


class MetaculusSettlements(MarketSettlements[MetaculusClient]):
    """Resolutions by post, fifty at a time; a post missing from the list is requested separately."""

    platform = "metaculus"
    batch = 50

    async def markets(self, ids: Sequence[str]) -> dict[str, SettledMarket | str]:
        """Return posts from the list, and those missing there one by one."""
        answer = await self._client.read("/posts/", [*(("ids", id) for id in ids), ("limit", str(self.batch))])
        listed = {row.need("id").name(): row for row in answer.need("results").items()}
        posts: dict[str, SettledMarket | str] = {}
        for id in ids:
            try:
                row = listed.get(id) or await self._client.whole_post(id)
            except NotFound:
                continue
            except SourceError as error:
                if error.status != HTTPStatus.FORBIDDEN:
                    raise
                posts[id] = "this account may not read the post"
            else:
                posts[id] = SettledMarket(row=row, provenance=f"https://www.metaculus.com/questions/{id}/")
        return posts

    def ref(self, question: Question, target: Target) -> MarketRef | None:
        """Return the post, with the question in it if that is named. A threshold is not a part of a post."""
        if question.range is None or not question.id.startswith(f"{self.platform}/"):
            return super().ref(question, target)
        return MarketRef(platform=self.platform, id=question.id.removeprefix(f"{self.platform}/"))

    def outcome(self, row: Payload, target: SettlementTarget) -> SettledOutcome | None:
        """Return the outcome of a question: for an option whether it was chosen, for a threshold whether it was met."""
        question = _question(row, target)
        resolution = resolution_of(question)
        if resolution is None:
            return None
        if resolution.kind in get_args(NoResult):
            return SettledOutcome(outcome=None, at=resolution.at)
        if resolution.number is not None:
            return SettledOutcome(outcome=_passed(target.target.id, resolution.number), at=resolution.at)
        if resolution.kind == "option":
            known = (*question.texts("all_options_ever"), *question.texts("options"))
            if target.part not in known:
                raise UnsupportedEvent(f"the question has no option {target.part!r}")
            if resolution.option not in known:
                question.need("resolution").wrong("one of the options")
            return SettledOutcome(outcome=int(resolution.option == target.part), at=resolution.at)
        return SettledOutcome(outcome=int(resolution.kind == "yes"), at=resolution.at)


def _passed(threshold: str, number: float) -> int:
    """Whether a number satisfies a threshold such as `>3.5` or `<=100`."""
    side, value = threshold[:1], threshold[1:].removeprefix("=").strip()
    try:
        edge = float(value)
    except ValueError:
        edge = None
    if edge is None or side not in ("<", ">"):
        raise UnsupportedEvent(f"a number does not decide {threshold!r}")
    if threshold[1:2] == "=" and number == edge:
        return 1
    return int(number > edge if side == ">" else number < edge)


def _question(row: Payload, target: SettlementTarget) -> Payload:
    """Return the question that is meant: the only one, or one of several by its number."""
    if (single := row.get("question")) is not None:
        return single
    wanted = next((question for question in questions_of(row) if question.need("id").name() == target.part), None)
    if wanted is None:
        raise UnsupportedEvent(f"the post has no question {target.part or 'of its own'}")
    return wanted
