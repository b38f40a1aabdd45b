"""Forecasts handed in to Metaculus: one list of forecasts, then a comment on each post that is to have one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from http import HTTPStatus
from typing import Any, Literal

from foretell.data.http import SourceError
from foretell.data.markets.metaculus import CONTINUOUS
from foretell.data.markets.prices import MarketRef, market_ref, split_part
from foretell.questions.forecast import Categorical, Forecast, Numeric
from foretell.questions.numeric_range import NumericRange
from foretell.questions.question import Question
from foretell.submit.metaculus_cdf import cdf_problems, continuous_cdf, share_outside
from foretell.submit.metaculus_client import (
    COMMENT,
    FORECAST,
    MetaculusAccount,
    MetaculusWriter,
    OpenMetaculusQuestion,
)
from foretell.submit.sending import send_one
from foretell.submit.submission import (
    SUM_TOLERANCE,
    OutgoingRequest,
    ProbabilityLimits,
    SendResult,
    SubmissionItem,
    SubmissionPlan,
    age_notes,
    backtest_problems,
    fit_to_limits,
    newest_forecasts,
    split_id,
    unanswered_items,
)

# From a forecast to what Metaculus takes for a question of each type.

ACCEPTED_LIMITS = ProbabilityLimits(low=0.001, high=0.999)
NOTABLE_SHARE = 0.05
"""Of a distribution beyond a closed end: worth a word."""
MAX_OUTSIDE_SHARE = 0.5
"""Beyond a closed end: the forecaster meant something else, perhaps another unit."""


@dataclass(kw_only=True)
class ForecastBody:
    """A body under construction, with what was noticed on the way."""

    clip: bool
    """Whether what clipping mends is a note instead of a problem."""
    body: dict[str, Any] = field(default_factory=dict[str, Any])
    problems: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    def complain(self, problem: str) -> None:
        """Something that clipping mends."""
        if problem:
            (self.notes if self.clip else self.problems).append(problem)

    def add_binary(self, p: Mapping[str, float]) -> None:
        """A yes-or-no question."""
        if len(p) != 1 and "yes" not in p:
            self.problems.append(f"a yes-or-no question needs one probability, not {len(p)}")
            return
        yes = p["yes"] if "yes" in p else next(iter(p.values()))
        self.complain(ACCEPTED_LIMITS.complaint(yes))
        self.body["probability_yes"] = ACCEPTED_LIMITS.clipped(yes)

    def add_choice(self, p: Mapping[str, float], options: Sequence[str]) -> None:
        """A choice of options."""
        self.problems += [f"{option!r} is not an option" for option in p if option not in options]
        self.problems += [f"the option {option!r} has no probability" for option in options if option not in p]
        if self.problems:
            return
        total = sum(p.values())
        if abs(total - 1) > SUM_TOLERANCE:
            self.complain(f"the options sum to {total:.6g}, clipped they would be scaled to 1")
        for option in options:
            self.complain(ACCEPTED_LIMITS.complaint(p[option], option))
        self.body["probability_yes_per_category"] = fit_to_limits({o: p[o] for o in options}, ACCEPTED_LIMITS)

    def add_continuous(self, distribution: Categorical | Numeric | None, scale: NumericRange | None) -> None:
        """A question about a number."""
        if not isinstance(distribution, Numeric) or scale is None:
            self.problems.append("a question about a number needs a distribution, not a probability")
            return
        lost = share_outside(distribution, scale)
        outside = f"{lost:.0%} of the distribution lies outside the closed range {scale.minimum:g} to {scale.maximum:g}"
        if lost > MAX_OUTSIDE_SHARE:
            self.problems.append(f"{outside}: another unit?")
            return
        if lost > NOTABLE_SHARE:
            self.notes.append(f"{outside} and was dropped")
        self.body["continuous_cdf"] = continuous_cdf(distribution, scale)
        self.problems += cdf_problems(self.body["continuous_cdf"], scale)


def forecast_body(
    asked: OpenMetaculusQuestion, forecast: Forecast, p: Mapping[str, float], *, clip: bool
) -> ForecastBody:
    """The forecast of one question; `p` are the probabilities that belong to it."""
    made = ForecastBody(clip=clip, body={"question": asked.id})
    if asked.kind == "binary":
        made.add_binary(p)
    elif asked.kind == "multiple_choice":
        made.add_choice(p, asked.options)
    elif asked.kind in CONTINUOUS:
        made.add_continuous(forecast.distribution, asked.scale)
    else:
        made.problems.append(f"a question of type {asked.kind} cannot be forecast here")
    if made.problems:
        made.body = {}
    return made


# Is this the forecast that counts on Metaculus already?

TOLERANCE = 1e-9


def is_current_forecast(asked: OpenMetaculusQuestion, body: Mapping[str, Any], now: datetime) -> bool:
    """Whether the account's standing forecast of a question says what the body says."""
    standing = asked.standing
    if body.get("question") != asked.id or standing is None or (standing.until is not None and standing.until <= now):
        return False
    shown = standing.values
    if "probability_yes" in body:
        # Shown as no and yes, or as yes alone.
        meant, shown = [body["probability_yes"]], shown[-1:]
    elif "continuous_cdf" in body:
        meant = list(body["continuous_cdf"])
    else:
        order = asked.options if len(shown) == len(asked.options) else asked.counted
        meant = [body.get("probability_yes_per_category", {}).get(option) for option in order]
    return len(meant) == len(shown) and all(
        a is b if a is None or b is None else abs(a - b) <= TOLERANCE for a, b in zip(meant, shown, strict=True)
    )


PLATFORM = "metaculus"
BATCH = 50
Comment = Literal["private", "public"]
MetaculusPosts = Mapping[str, tuple[OpenMetaculusQuestion, ...] | str]
"""By post: its questions, or why they could not be read."""


@dataclass(frozen=True, kw_only=True)
class MetaculusOptions:
    """How it is to be handed in."""

    comment: Comment | None = None
    """Whether the reasons go along, and who may read them."""
    clip: bool = False
    """Move probabilities that are not taken to the nearest that are."""
    named: Mapping[str, str] = field(default_factory=dict[str, str])
    """Post by question id, for questions that do not say themselves which post they answer."""


def post_of(forecast: Forecast, question: Question | None, options: MetaculusOptions) -> tuple[str, str | None] | None:
    """The post that a forecast answers, and its part; None where it answers none."""
    if forecast.question_id in options.named:
        return split_part(MarketRef(platform=PLATFORM, id=options.named[forecast.question_id]))
    platform, own = split_id(forecast.question_id)
    if platform == PLATFORM and own.partition("#")[0].isdigit():
        return split_part(MarketRef(platform=PLATFORM, id=own))
    ref = None if question is None else market_ref(question, question.targets[0])
    if ref is None or ref.platform != PLATFORM:
        return None
    post, part = split_part(ref)
    # An option or a question of the post may stand for the first target; only a question is a part.
    return post, part if question is not None and len(question.targets) == 1 and (part or "").isdigit() else None


async def read_posts(
    writer: MetaculusWriter, forecasts: Sequence[Forecast], questions: Sequence[Question], options: MetaculusOptions
) -> tuple[MetaculusAccount, MetaculusPosts]:
    """Whose token it is, and what the posts ask now. Reads, and writes nothing."""
    by_id = {question.id: question for question in questions}
    places = [post_of(forecast, by_id.get(forecast.question_id), options) for forecast in newest_forecasts(forecasts)]
    account, seen = await writer.account(), dict[str, tuple[OpenMetaculusQuestion, ...] | str]()
    for post in dict.fromkeys(place[0] for place in places if place is not None):
        try:
            seen[post] = await writer.asked(post) or "it holds no question that can be forecast"
        except SourceError as error:
            if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
                raise
            seen[post] = f"Metaculus shows this account no post {post} (status {error.status})"
    return account, seen


@dataclass(frozen=True, kw_only=True)
class MetaculusSubmitter:
    """Plans by what was seen; sends through the writer."""

    writer: MetaculusWriter
    account: MetaculusAccount
    seen: MetaculusPosts
    now: datetime
    options: MetaculusOptions = field(default_factory=MetaculusOptions)
    platform: str = PLATFORM

    def plan(self, forecasts: Sequence[Forecast], questions: Sequence[Question]) -> SubmissionPlan:
        """A forecast for every question, and a comment on every post where reasons are to go along."""
        by_id = {question.id: question for question in questions}
        items: list[SubmissionItem] = []
        for forecast in newest_forecasts(forecasts):
            items += self._items(forecast, by_id.get(forecast.question_id))
        items += unanswered_items(forecasts, questions)
        return SubmissionPlan(platform=PLATFORM, account=self.account.name, items=tuple(items))

    def requests(self, items: Sequence[SubmissionItem]) -> list[OutgoingRequest]:
        """One list of forecasts in a request, one comment in each."""
        forecasts = [dict(item.content) for item in items if item.part == "forecast"]
        address = self.writer.address(FORECAST)
        sent = [OutgoingRequest(method="POST", address=address, body=batch) for batch in _batches(forecasts)]
        address = self.writer.address(COMMENT)
        comments = [dict(item.content) for item in items if item.part == "comment"]
        return sent + [OutgoingRequest(method="POST", address=address, body=comment) for comment in comments]

    async def stands(self, items: Sequence[SubmissionItem]) -> list[bool]:
        """Read back: the forecast that counts, the newest comments."""
        posts = {name: split_id(name)[1].partition("#")[0] for name in (item.question for item in items)}
        asked = {
            post: await self.writer.asked(post)
            for post in dict.fromkeys(posts[item.question] for item in items if item.part == "forecast")
        }
        return [
            await self._commented(item.content)
            if item.part == "comment"
            else any(is_current_forecast(one, item.content, self.now) for one in asked[posts[item.question]])
            for item in items
        ]

    async def send(self, items: Sequence[SubmissionItem]) -> list[SendResult]:
        """Forecasts in lists; a list that is refused is sent again one by one, as nothing of it was taken."""
        if items and items[0].part == "comment":
            return [await send_one(item, self.writer.comment(item.content)) for item in items]
        found: list[SendResult] = []
        for batch in _batches(items):
            sent = await self._forecast(batch)
            if len(batch) > 1 and sent[0].state == "refused":
                sent = [outcome for item in batch for outcome in await self._forecast([item])]
            found += sent
        return found

    def _items(self, forecast: Forecast, question: Question | None) -> list[SubmissionItem]:
        place = post_of(forecast, question, self.options)
        title = "" if question is None else question.text
        if place is None:
            problem = "it is no question of Metaculus"
            name = forecast.question_id
            return [SubmissionItem(question=name, part="forecast", content={}, title=title, problems=(problem,))]
        post, part = place
        name, seen = f"{PLATFORM}/{post}", self.seen[post]
        chosen = _chosen(seen, part, forecast) if not isinstance(seen, str) else seen
        if isinstance(chosen, str):
            return [SubmissionItem(question=name, part="forecast", content={}, title=title, problems=(chosen,))]
        items = [self._forecast_item(asked, p, forecast) for asked, p in chosen]
        # The comment on one question of a group is that question's; one on many is the post's.
        commented = name if part is None else chosen[0][0].name
        return items + self._comment_items(items, chosen[0][0], forecast, commented)

    def _forecast_item(
        self, asked: OpenMetaculusQuestion, p: Mapping[str, float], forecast: Forecast
    ) -> SubmissionItem:
        made = forecast_body(asked, forecast, p, clip=self.options.clip)
        closed = asked.closed(self.now)
        shut = [f"the question takes no forecasts: {closed}"] if closed else []
        return SubmissionItem(
            question=asked.name,
            part="forecast",
            content=made.body,
            title=asked.title,
            problems=(*backtest_problems(forecast), *shut, *made.problems),
            notes=(*made.notes, *age_notes(forecast, self.now)),
            standing=bool(made.body) and is_current_forecast(asked, made.body, self.now),
        )

    def _comment_items(
        self, forecasts: Sequence[SubmissionItem], asked: OpenMetaculusQuestion, forecast: Forecast, name: str
    ) -> list[SubmissionItem]:
        if self.options.comment is None:
            return []
        text = forecast.rationale.strip()
        problems = [] if text else ["the forecast gives no reasons"]
        problems += ["its forecast is not sent"] if any(item.problems for item in forecasts) else []
        body = {
            "on_post": asked.post,
            "text": text,
            "is_private": self.options.comment == "private",
            # A group has no one forecast that could be shown beside the comment.
            "included_forecast": not asked.grouped,
        }
        return [
            SubmissionItem(
                question=name,
                part="comment",
                content=body,
                title=asked.title,
                problems=tuple(problems),
                follows=tuple(item.question for item in forecasts),
            )
        ]

    async def _forecast(self, items: Sequence[SubmissionItem]) -> list[SendResult]:
        sent = await send_one(items[0], self.writer.forecast([item.content for item in items]))
        return [replace(sent, item=item) for item in items]

    async def _commented(self, body: Mapping[str, Any]) -> bool:
        shown = await self.writer.comments(body["on_post"], self.account.id, private=body["is_private"])
        return body["text"].strip() in (text.strip() for text in shown.values())


def _batches(entries: Sequence[Any]) -> list[list[Any]]:
    return [list(entries[start : start + BATCH]) for start in range(0, len(entries), BATCH)]


def _chosen(
    seen: tuple[OpenMetaculusQuestion, ...], part: str | None, forecast: Forecast
) -> list[tuple[OpenMetaculusQuestion, Mapping[str, float]]] | str:
    """The questions of the post that a forecast answers, each with its probabilities; or why there are none."""
    by_id = {str(asked.id): asked for asked in seen}
    if part is not None:
        return [(by_id[part], forecast.p)] if part in by_id else f"the post has no question {part}"
    if len(seen) == 1 and not (seen[0].grouped and str(seen[0].id) in forecast.p):
        return [(seen[0], forecast.p)]
    strays = [target for target in forecast.p if target not in by_id]
    if strays or not forecast.p:
        named = f"{strays[0]!r} is none of them" if strays else "the forecast names none of them"
        return f"the post holds {len(seen)} questions ({', '.join(by_id)}), and {named}"
    return [(by_id[target], {target: p}) for target, p in forecast.p.items()]
