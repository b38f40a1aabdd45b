"""Metaculus: read open questions, and submit forecasts and comments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from http import HTTPStatus
from typing import Any, Literal

from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.markets.market import MarketRef, market_ref, split_part
from foretell.data.markets.metaculus import CONTINUOUS, HOST, OF_POST, MetaculusClient, numeric_range, questions_of
from foretell.data.payload import Payload
from foretell.frozen import frozen
from foretell.number_text import percent
from foretell.questions.forecast import Categorical, Forecast, Numeric
from foretell.questions.question import NumericRange, Question
from foretell.scoring.metaculus_cdf import cdf_problems, continuous_cdf, share_outside
from foretell.tournaments.submission import (
    SUM_TOLERANCE,
    ItemResult,
    OutgoingRequest,
    PlatformWriter,
    ProbabilityLimits,
    SubmissionItem,
    SubmissionPlan,
    age_notes,
    backtest_problems,
    fit_to_limits,
    newest_forecasts,
    read_each,
    send_one,
    split_id,
    unanswered_items,
    unreadable_item,
)

# The current questions of Metaculus, with their type, options and range, and the account's current forecasts.


OPEN_STATUS = "open"


@frozen
class CurrentForecast:
    """This account's current forecast of a question."""

    values: tuple[float | None, ...]
    """The probabilities of no and yes, one probability per option, or the cumulative probabilities."""
    since: datetime | None = None
    """When it was made."""
    until: datetime | None = None
    """When it was or will be withdrawn; None if never."""


@frozen
class OpenMetaculusQuestion:
    """One question of a post. Forecasts refer to the question's id, comments to the post's."""

    id: int
    post: int
    title: str
    kind: str
    status: str
    opens_at: datetime | None
    closes_at: datetime | None
    options: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    """Options in the order of a current forecast, including removed ones."""
    scale: NumericRange | None = None
    standing: CurrentForecast | None = None
    grouped: bool = False
    """Whether its post contains several questions."""

    @property
    def name(self) -> str:
        """Its id in foretell."""
        return f"metaculus/{self.post}" + (f"#{self.id}" if self.grouped else "")

    def closed(self, now: datetime) -> str:
        """Return why the question accepts no forecast at that time; empty if it does."""
        if self.opens_at is None or self.opens_at > now:
            return "it is not open yet"
        if self.status != OPEN_STATUS:
            return f"its status is {self.status}"
        return "it is closed" if self.closes_at is not None and self.closes_at <= now else ""


def questions_in_post(post: Payload) -> tuple[OpenMetaculusQuestion, ...]:
    """Return the questions of a post: one, those of a group, or none if it cannot be forecast."""
    number, grouped = int(post.need("id").number()), post.get("question") is None or post.has(OF_POST)
    return tuple(_open_question(row, number, grouped=grouped) for row in questions_of(post))


def _open_question(row: Payload, post: int, *, grouped: bool) -> OpenMetaculusQuestion:
    kind, options = row.need("type").text(), row.texts("options")
    closes = (row.optional_time(name) for name in ("scheduled_close_time", "actual_close_time"))
    return OpenMetaculusQuestion(
        id=int(row.need("id").number()),
        post=post,
        title=row.words("title"),
        kind=kind,
        status=row.need("status").text(),
        opens_at=row.optional_time("open_time"),
        closes_at=min((at for at in closes if at is not None), default=None),
        options=options,
        counted=row.texts("all_options_ever") or options,
        scale=numeric_range(row) if kind in CONTINUOUS else None,
        standing=_current_forecast(row),
        grouped=grouped,
    )


def _current_forecast(row: Payload) -> CurrentForecast | None:
    latest = row.get("my_forecasts", "latest")
    values = None if latest is None else latest.get("forecast_values")
    if latest is None or values is None:
        return None
    begins, ends = latest.get("start_time"), latest.get("end_time")
    return CurrentForecast(
        values=tuple(None if item.value is None else item.probability() for item in values.items()),
        since=None if begins is None else begins.unix_time(),
        until=None if ends is None else ends.unix_time(),
    )


# Forecasts are sent as one list, comments one by one, and both can be read back.

FORECAST = "/questions/forecast/"
COMMENT = "/comments/create/"
NEWEST = 50
"""How many of an account's newest comments on a post are read back."""


@frozen
class MetaculusAccount:
    """The account that the token belongs to."""

    id: str
    name: str


class MetaculusWriter(PlatformWriter):
    """Reads questions through the read-only client, and sends forecasts and comments."""

    def __init__(
        self,
        *,
        client: MetaculusClient,
        http: AsyncHttpClient,
        token: str,
        host: str = HOST,
        wait_seconds: float = 4.0,
    ) -> None:
        super().__init__(http=http, host=host, scheme="Token", key=token, wait_seconds=wait_seconds)
        self._client = client

    async def account(self) -> MetaculusAccount:
        """Return the account that the token belongs to."""
        me = await self._client.read("/users/me/")
        return MetaculusAccount(id=me.need("id").name(), name=me.words("username") or me.need("id").name())

    async def asked(self, post: str) -> tuple[OpenMetaculusQuestion, ...]:
        """Return the questions of a post, with this account's current forecasts."""
        return questions_in_post(await self._client.whole_post(post))

    async def forecast(self, forecasts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Send forecasts, all or none.

        Raises `SubmissionRefused`, or `SubmissionUnconfirmed` if it is unknown whether they were accepted.
        """
        await self._poster.post(self.address(FORECAST), list(forecasts))
        return {}

    async def comment(self, comment: Mapping[str, Any]) -> dict[str, Any]:
        """Post a comment; return its id."""
        number = await self._poster.post_for_reply(
            self.address(COMMENT), dict(comment), lambda reply: reply.need("id").name()
        )
        return {"comment": number}

    async def comments(self, post: int, author: str, *, private: bool) -> dict[str, str]:
        """Return the newest comments of an account on a post: id → text."""
        query = {"post": str(post), "author": author, "limit": str(NEWEST), "sort": "-created_at"}
        # Private comments are listed only on request.
        query |= {"is_private": "true"} if private else {}
        rows = (await self._client.read("/comments/", query)).need("results").items()
        return {row.need("id").name(): row.words("text") for row in rows}


# The body of a forecast by type of question.

ACCEPTED_LIMITS = ProbabilityLimits(low=0.001, high=0.999)
NOTABLE_SHARE = 0.05
"""Share of a distribution beyond a closed end above which a note is added."""
MAX_OUTSIDE_SHARE = 0.5
"""Share beyond a closed end above which a forecast is rejected, because the forecaster probably used another unit."""


@dataclass(kw_only=True)
class ForecastBody:
    """Builds the body of a forecast and collects problems and notes."""

    clip: bool
    """Whether problems that clipping fixes become notes instead."""
    body: dict[str, Any] = field(default_factory=dict[str, Any])
    problems: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    def complain(self, problem: str) -> None:
        """Record a problem that clipping fixes; it becomes a note if `clip` is set."""
        if problem:
            (self.notes if self.clip else self.problems).append(problem)

    def add_binary(self, p: Mapping[str, float]) -> None:
        """Add the probability of a yes-or-no question."""
        if len(p) != 1 and "yes" not in p:
            self.problems.append(f"a yes-or-no question needs one probability, not {len(p)}")
            return
        yes = p["yes"] if "yes" in p else next(iter(p.values()))
        self.complain(ACCEPTED_LIMITS.complaint(yes))
        self.body["probability_yes"] = ACCEPTED_LIMITS.clipped(yes)

    def add_choice(self, p: Mapping[str, float], options: Sequence[str]) -> None:
        """Add the probabilities of a multiple-choice question."""
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
        """Add the distribution of a numeric question."""
        if not isinstance(distribution, Numeric) or scale is None:
            self.problems.append("a question about a number needs a distribution, not a probability")
            return
        lost = share_outside(distribution, scale)
        closed = f"the closed range {scale.minimum:g} to {scale.maximum:g}"
        outside = f"{percent(lost)} of the distribution lies outside {closed}"
        if lost > MAX_OUTSIDE_SHARE:
            self.problems.append(f"{outside}: another unit?")
            return
        if lost > NOTABLE_SHARE:
            self.notes.append(f"{outside} and was dropped")
        self.body["continuous_cdf"] = continuous_cdf(distribution, scale)
        self.problems += cdf_problems(self.body["continuous_cdf"], scale)


def forecast_body(
    open_question: OpenMetaculusQuestion, forecast: Forecast, p: Mapping[str, float], *, clip: bool
) -> ForecastBody:
    """Build the forecast of one question; `p` has its probabilities."""
    body = ForecastBody(clip=clip, body={"question": open_question.id})
    if open_question.kind == "binary":
        body.add_binary(p)
    elif open_question.kind == "multiple_choice":
        body.add_choice(p, open_question.options)
    elif open_question.kind in CONTINUOUS:
        body.add_continuous(forecast.distribution, open_question.scale)
    else:
        body.problems.append(f"a question of type {open_question.kind} cannot be forecast here")
    if body.problems:
        body.body = {}
    return body


# Comparing with the account's current forecast.

TOLERANCE = 1e-9


def is_current_forecast(open_question: OpenMetaculusQuestion, body: Mapping[str, Any], now: datetime) -> bool:
    """Return whether the account's current forecast equals the body."""
    current = open_question.standing
    if (
        body.get("question") != open_question.id
        or current is None
        or (current.until is not None and current.until <= now)
    ):
        return False
    shown = current.values
    if "probability_yes" in body:
        # Shown as no and yes, or as yes alone.
        wanted, shown = [body["probability_yes"]], shown[-1:]
    elif "continuous_cdf" in body:
        wanted = list(body["continuous_cdf"])
    else:
        order = open_question.options if len(shown) == len(open_question.options) else open_question.counted
        wanted = [body.get("probability_yes_per_category", {}).get(option) for option in order]
    return len(wanted) == len(shown) and all(
        a is b if a is None or b is None else abs(a - b) <= TOLERANCE for a, b in zip(wanted, shown, strict=True)
    )


PLATFORM = "metaculus"
BATCH = 50
Comment = Literal["private", "public"]
MetaculusPosts = Mapping[str, tuple[OpenMetaculusQuestion, ...] | str | SourceError]
"""Post → its questions, or why there are none, or the error from reading them."""


@frozen
class MetaculusOptions:
    """Options for submitting to Metaculus."""

    comment: Comment | None = None
    """Who can read the comment with the rationale; None sends no comment."""
    clip: bool = False
    """Whether to clip probabilities that are not accepted to the nearest accepted value."""
    named: Mapping[str, str] = field(default_factory=dict[str, str])
    """Question id → post, for questions that do not name their post."""


def post_of(forecast: Forecast, question: Question | None, options: MetaculusOptions) -> tuple[str, str | None] | None:
    """Return the post that a forecast answers and the part within it; None if there is no post."""
    if forecast.question_id in options.named:
        return split_part(MarketRef(platform=PLATFORM, id=options.named[forecast.question_id]))
    platform, own = split_id(forecast.question_id)
    if platform == PLATFORM and own.partition("#")[0].isdigit():
        return split_part(MarketRef(platform=PLATFORM, id=own))
    ref = None if question is None else market_ref(question, question.targets[0])
    if ref is None or ref.platform != PLATFORM:
        return None
    post, part = split_part(ref)
    # The part may be an option or a question of the post, but only a question counts.
    return post, part if question is not None and len(question.targets) == 1 and (part or "").isdigit() else None


async def read_posts(
    writer: MetaculusWriter, forecasts: Sequence[Forecast], questions: Sequence[Question], options: MetaculusOptions
) -> tuple[MetaculusAccount, MetaculusPosts]:
    """Read the account and the current questions of the posts; writes nothing."""
    by_id = {question.id: question for question in questions}
    places = [post_of(forecast, by_id.get(forecast.question_id), options) for forecast in newest_forecasts(forecasts)]

    async def read(post: str) -> tuple[OpenMetaculusQuestion, ...] | str:
        try:
            return await writer.asked(post) or "it has no question that can be forecast"
        except SourceError as error:
            if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
                raise
            return f"Metaculus shows this account no post {post} (status {error.status})"

    account = await writer.account()
    return account, await read_each([place[0] for place in places if place is not None], read)


@frozen
class MetaculusSubmitter:
    """Plans submissions from the posts that were read, and sends them."""

    writer: MetaculusWriter
    account: MetaculusAccount
    seen: MetaculusPosts
    now: datetime
    options: MetaculusOptions = field(default_factory=MetaculusOptions)
    platform: str = PLATFORM

    def plan(self, forecasts: Sequence[Forecast], questions: Sequence[Question]) -> SubmissionPlan:
        """Plan a forecast for every question, and a comment on every post if comments are enabled."""
        by_id = {question.id: question for question in questions}
        items: list[SubmissionItem] = []
        for forecast in newest_forecasts(forecasts):
            items += self._items(forecast, by_id.get(forecast.question_id))
        items += unanswered_items(forecasts, questions)
        return SubmissionPlan(platform=PLATFORM, account=self.account.name, items=tuple(items))

    def requests(self, items: Sequence[SubmissionItem]) -> list[OutgoingRequest]:
        """Return the requests: forecasts in batches, comments one per request."""
        forecasts = [dict(item.content) for item in items if item.part == "forecast"]
        address = self.writer.address(FORECAST)
        sent = [OutgoingRequest(method="POST", address=address, body=batch) for batch in _batches(forecasts)]
        address = self.writer.address(COMMENT)
        comments = [dict(item.content) for item in items if item.part == "comment"]
        return sent + [OutgoingRequest(method="POST", address=address, body=comment) for comment in comments]

    async def stands(self, items: Sequence[SubmissionItem]) -> list[bool]:
        """Return whether each item is already there, according to the current forecasts and the newest comments."""
        posts = {name: split_id(name)[1].partition("#")[0] for name in (item.question for item in items)}
        by_post = {
            post: await self.writer.asked(post)
            for post in dict.fromkeys(posts[item.question] for item in items if item.part == "forecast")
        }
        return [
            await self._commented(item.content)
            if item.part == "comment"
            else any(
                is_current_forecast(question, item.content, self.now) for question in by_post[posts[item.question]]
            )
            for item in items
        ]

    async def send(self, items: Sequence[SubmissionItem]) -> list[ItemResult]:
        """Send forecasts in batches. A refused batch is sent again one by one, because none of it was accepted."""
        if items and items[0].part == "comment":
            return [await send_one(item, self.writer.comment(item.content)) for item in items]
        results: list[ItemResult] = []
        for batch in _batches(items):
            sent = await self._forecast(batch)
            if len(batch) > 1 and sent[0].fate == "refused":
                sent = [outcome for item in batch for outcome in await self._forecast([item])]
            results += sent
        return results

    def _items(self, forecast: Forecast, question: Question | None) -> list[SubmissionItem]:
        place = post_of(forecast, question, self.options)
        title = "" if question is None else question.text
        if place is None:
            return [unreadable_item(forecast.question_id, title, "it is not a question of Metaculus")]
        post, part = place
        name, seen = f"{PLATFORM}/{post}", self.seen[post]
        chosen = _chosen(seen, part, forecast) if isinstance(seen, tuple) else seen
        if not isinstance(chosen, list):
            return [unreadable_item(name, title, chosen)]
        items = [self._forecast_item(open_question, p, forecast) for open_question, p in chosen]
        # A comment is about the question of a group if the forecast answers only one, otherwise about the post.
        commented = name if part is None else chosen[0][0].name
        return items + self._comment_items(items, chosen[0][0], forecast, commented)

    def _forecast_item(
        self, open_question: OpenMetaculusQuestion, p: Mapping[str, float], forecast: Forecast
    ) -> SubmissionItem:
        body = forecast_body(open_question, forecast, p, clip=self.options.clip)
        closed = open_question.closed(self.now)
        closed_problems = [f"the question accepts no forecasts: {closed}"] if closed else []
        return SubmissionItem(
            question=open_question.name,
            part="forecast",
            content=body.body,
            title=open_question.title,
            problems=(*backtest_problems(forecast), *closed_problems, *body.problems),
            notes=(*body.notes, *age_notes(forecast, self.now)),
            standing=bool(body.body) and is_current_forecast(open_question, body.body, self.now),
        )

    def _comment_items(
        self, forecasts: Sequence[SubmissionItem], open_question: OpenMetaculusQuestion, forecast: Forecast, name: str
    ) -> list[SubmissionItem]:
        if self.options.comment is None:
            return []
        text = forecast.rationale.strip()
        problems = [] if text else ["the forecast gives no reasons"]
        sent = [item.question for item in forecasts if not item.problems]
        problems += [] if sent else ["its forecast is not sent"]
        body = {
            "on_post": open_question.post,
            "text": text,
            "is_private": self.options.comment == "private",
            # A group has no single forecast to show beside the comment.
            "included_forecast": not open_question.grouped,
        }
        return [
            SubmissionItem(
                question=name,
                part="comment",
                content=body,
                title=open_question.title,
                problems=tuple(problems),
                follows=tuple(sent),
            )
        ]

    async def _forecast(self, items: Sequence[SubmissionItem]) -> list[ItemResult]:
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
    """Return the questions of the post that a forecast answers, with their probabilities, or why there are none."""
    by_id = {str(open_question.id): open_question for open_question in seen}
    if part is not None:
        return [(by_id[part], forecast.p)] if part in by_id else f"the post has no question {part}"
    if len(seen) == 1 and not (seen[0].grouped and str(seen[0].id) in forecast.p):
        return [(seen[0], forecast.p)]
    strays = [target for target in forecast.p if target not in by_id]
    if strays or not forecast.p:
        named = f"{strays[0]!r} is not one of them" if strays else "the forecast names none of them"
        return f"the post has {len(seen)} questions ({', '.join(by_id)}), and {named}"
    return [(by_id[target], {target: p}) for target, p in forecast.p.items()]
