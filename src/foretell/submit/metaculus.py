"""Metaculus: read open questions, and submit forecasts and comments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from http import HTTPStatus
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.markets.market import MarketRef, market_ref, split_part
from foretell.data.markets.metaculus import CONTINUOUS, HOST, OF_POST, MetaculusClient, numeric_range, questions_of
from foretell.data.payload import Payload
from foretell.questions.forecast import Categorical, Forecast, Numeric
from foretell.questions.question import DEFAULT_CELLS, NumericRange, Question
from foretell.submit.submission import (
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

# What Metaculus asks right now, with everything a forecast must fit: type, options, range, and what stands already.


OPEN_STATUS = "open"


@dataclass(frozen=True, kw_only=True)
class CurrentForecast:
    """This account's current forecast of a question."""

    values: tuple[float | None, ...]
    """The probabilities of no and yes, one probability per option, or the cumulative probabilities."""
    since: datetime | None = None
    """When it was made."""
    until: datetime | None = None
    """When it was or will be withdrawn; None if never."""


@dataclass(frozen=True, kw_only=True)
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
        since=None if begins is None else begins.moment(),
        until=None if ends is None else ends.moment(),
    )


# Metaculus' counter: forecasts go in as one list, comments one by one, and both can be read back.

FORECAST = "/questions/forecast/"
COMMENT = "/comments/create/"
NEWEST = 50
"""How many of an account's newest comments on a post are read back."""


@dataclass(frozen=True, kw_only=True)
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
        # Private comments are listed only when asked for.
        query |= {"is_private": "true"} if private else {}
        rows = (await self._client.read("/comments/", query)).need("results").items()
        return {row.need("id").name(): row.words("text") for row in rows}


# A numeric forecast as Metaculus takes it: cumulative probabilities at the edges of equal cells, under strict rules.
# With N cells there are N + 1 numbers; every step is at least 0.01/N and at most 40/N (for N = 200: 0.00005 and 0.2); a
# closed end holds nothing beyond it, an open end at least 0.001.


Floats = npt.NDArray[np.float64]
DIGITS = 10
OUTSIDE = 0.001
"""Minimum probability beyond an open end."""
SLACK = 1e-9
"""Margin kept from the limits, so that rounding violates none of them."""
NOWHERE = 1e-9
"""Mass below which a tail counts as empty, as does the part of a distribution within a closed range."""


def least_step(outcomes: int) -> float:
    """Return the minimum probability of a cell."""
    return round(0.01 / outcomes, 9)


def greatest_step(outcomes: int) -> float:
    """Return the maximum probability of a cell."""
    return min(1.0, 0.2 * DEFAULT_CELLS / outcomes)


def continuous_cdf(distribution: Numeric, scale: NumericRange) -> list[float]:
    """Return the CDF on a question's scale, adjusted to the platform's rules, with the median in the same cell.

    Tails beyond the outermost stated points continue to fall exponentially, at the rate of the last step, and end at a
    closed bound. Mass stated beyond a closed bound is impossible, so the distribution is conditioned on the rest. A
    cell above its maximum passes the excess to its neighbours, first away from the median; a cell below its minimum is
    filled up at the expense of the others on its side. So half of the mass stays on either side of the median, except
    within three cells of a closed end.

    >>> d = Numeric.from_quantiles({0.05: 20.0, 0.5: 40.0, 0.95: 70.0})
    >>> cdf = continuous_cdf(d, NumericRange(minimum=0, maximum=100, open_upper=True))
    >>> len(cdf), cdf[0], round(cdf[80], 6), round(cdf[-1], 4)
    (201, 0.0, 0.5, 0.995)
    """
    cells = _cells(distribution, scale)
    ends = np.array([scale.open_lower, scale.open_upper], dtype=float)
    most = greatest_step(scale.outcomes)
    low = _around(ends * (OUTSIDE + SLACK), np.full(scale.outcomes, least_step(scale.outcomes) + SLACK))
    high = _around(ends, np.full(scale.outcomes, most if most >= 1 else most - SLACK))
    half, share = _median(cells)
    left, right = cells[: half + 1].copy(), cells[half:].copy()
    left[-1], right[0] = cells[half] * share, cells[half] * (1 - share)
    lows, highs = _parts(low, half, share), _parts(high, half, share)
    sides = _capped(left[::-1], highs[0][::-1], right, highs[1])
    filled = _filled(sides[0], lows[0][::-1])[::-1], _filled(sides[1], lows[1])
    return _cumulated(np.concatenate([filled[0][:-1], [filled[0][-1] + filled[1][0]], filled[1][1:]]), scale)


def share_outside(distribution: Numeric, scale: NumericRange) -> float:
    """Return the share of the distribution beyond closed ends; a tail that starts inside is assumed to end there.

    >>> share_outside(Numeric(x=(-10, 30), cdf=(0, 1)), NumericRange(minimum=0, maximum=100))
    0.25
    """
    x = distribution.x
    below = 0.0 if scale.open_lower or x[0] > scale.minimum else distribution.below(scale.minimum)
    above = 0.0 if scale.open_upper or x[-1] < scale.maximum else distribution.above(scale.maximum)
    return below + above


def cdf_problems(cdf: Sequence[float], scale: NumericRange) -> tuple[str, ...]:
    """Return the rules that a list of cumulative probabilities violates, as messages."""
    if len(cdf) != scale.outcomes + 1:
        return (f"{len(cdf)} cumulative probabilities instead of {scale.outcomes + 1}",)
    steps = np.round(np.diff(np.round(cdf, DIGITS)), DIGITS)
    least, most = least_step(scale.outcomes), greatest_step(scale.outcomes)
    found = [
        (float(steps.min()) < least, f"a step of {steps.min():g} is less than {least:g}"),
        (float(steps.max()) > most, f"a step of {steps.max():g} is more than {most:g}"),
        (scale.open_lower and cdf[0] < OUTSIDE, f"{cdf[0]:g} below an open range is less than {OUTSIDE}"),
        (not scale.open_lower and cdf[0] != 0, f"{cdf[0]:g} below a closed range is not 0"),
        (scale.open_upper and cdf[-1] > 1 - OUTSIDE, f"{1 - cdf[-1]:g} above an open range is less than {OUTSIDE}"),
        (not scale.open_upper and cdf[-1] != 1, f"{1 - cdf[-1]:g} above a closed range is not 0"),
    ]
    return tuple(told for wrong, told in found if wrong)


def _cells(distribution: Numeric, scale: NumericRange) -> Floats:
    """Return the probability below the range, in each cell, and above the range; it is zero beyond closed ends."""
    reached = _below(distribution, scale, np.array(scale.edges()))
    low = 0.0 if scale.open_lower else float(reached[0])
    high = 1.0 if scale.open_upper else float(reached[-1])
    if high - low < NOWHERE:
        reached, low, high = np.where(np.arange(len(reached)) > 0, 1.0, 0.0), 0.0, 1.0
        if distribution.quantile(0.5) > scale.minimum:
            reached = np.where(np.arange(len(reached)) == len(reached) - 1, 1.0, 0.0)
    reached = np.clip((reached - low) / (high - low), 0.0, 1.0)
    return np.diff(np.concatenate([[0.0], reached, [1.0]]))


def _below(distribution: Numeric, scale: NumericRange, values: Floats) -> Floats:
    """Return P(X ≤ value) for each value, with tails beyond the outermost stated points."""
    x, cdf = np.array(distribution.x), np.array(distribution.cdf)
    found = np.interp(values, x, cdf)
    width = x[-1] - x[0]
    room = np.inf if scale.open_lower or scale.minimum >= x[0] else x[0] - scale.minimum
    lower = _tail(np.maximum(x[0] - values, 0), cdf[0], _rate(cdf[0], cdf[1] - cdf[0], x[1] - x[0], width), room)
    room = np.inf if scale.open_upper or scale.maximum <= x[-1] else scale.maximum - x[-1]
    rate = _rate(1 - cdf[-1], cdf[-1] - cdf[-2], x[-1] - x[-2], width)
    upper = _tail(np.maximum(values - x[-1], 0), 1 - cdf[-1], rate, room)
    return np.where(values < x[0], lower, np.where(values > x[-1], 1 - upper, found))


def _rate(mass: float, step: float, length: float, width: float) -> float:
    """Return the decay rate of a tail: that of the last step before it, but at least one over the whole width."""
    return max(float(np.log1p(step / mass)) / length, 1 / width) if mass > NOWHERE else 0.0


def _tail(distance: Floats, mass: float, rate: float, room: float) -> Floats:
    """Return the mass of a tail beyond a distance from its start; a tail with finite room ends there."""
    if mass <= NOWHERE:
        return np.zeros_like(distance)
    if not np.isfinite(room):
        return mass * np.exp(-rate * distance)
    if rate * room < 1e-9:
        return mass * np.clip(1 - distance / room, 0.0, 1.0)
    left = np.maximum(room - distance, 0.0)
    return mass * np.exp(-rate * distance) * np.expm1(-rate * left) / np.expm1(-rate * room)


def _around(ends: Floats, inside: Floats) -> Floats:
    return np.concatenate([ends[:1], inside, ends[1:]])


def _median(cells: Floats) -> tuple[int, float]:
    """Return the cell that contains the median, and the share of that cell below the median."""
    reached = np.cumsum(cells)
    half = int(np.searchsorted(reached, 0.5))
    before = float(reached[half - 1]) if half else 0.0
    return half, min(max((0.5 - before) / float(cells[half]), 0.0), 1.0)


def _parts(limits: Floats, half: int, share: float) -> tuple[Floats, Floats]:
    left, right = limits[: half + 1].copy(), limits[half:].copy()
    left[-1], right[0] = limits[half] * share, limits[half] * (1 - share)
    return left, right


def _capped(left: Floats, left_most: Floats, right: Floats, right_most: Floats) -> tuple[Floats, Floats]:
    """Cap the cells of both sides, from the median outwards; excess mass of one side goes to the other."""
    left, spilt = _outwards(left, left_most, 0.0)
    right, back = _outwards(right, right_most, spilt)
    if back > 0:
        left, _ = _outwards(left, left_most, back)
    return left, right


def _outwards(cells: Floats, most: Floats, carried: float) -> tuple[Floats, float]:
    """Move excess mass outwards from cell to cell; at a closed end it moves back.

    Returns the cells and the mass that they have no room for.
    """
    kept = np.empty_like(cells)
    for i, (cell, limit) in enumerate(zip(cells, most, strict=True)):
        kept[i] = min(cell + carried, limit)
        carried = cell + carried - kept[i]
    for i in reversed(range(len(kept))):
        more = min(carried, most[i] - kept[i])
        kept[i] += more
        carried -= more
    return kept, float(carried)


def _filled(cells: Floats, least: Floats) -> Floats:
    """Raise every cell to its minimum, keeping the total: the other cells are scaled down by one factor."""
    total = cells.sum()
    short = cells <= least
    while True:
        free = total - least[short].sum()
        rest = cells[~short].sum()
        factor = free / rest if rest > 0 else 0.0
        below = ~short & (cells * factor < least)
        if not below.any():
            return np.where(short, least, cells * factor)
        short |= below


def _cumulated(cells: Floats, scale: NumericRange) -> list[float]:
    reached = np.round(np.cumsum(cells)[:-1], DIGITS)
    if not scale.open_lower:
        reached[0] = 0.0
    if not scale.open_upper:
        reached[-1] = 1.0
    return [float(value) for value in reached]


# From a forecast to what Metaculus takes for a question of each type.


ACCEPTED_LIMITS = ProbabilityLimits(low=0.001, high=0.999)
NOTABLE_SHARE = 0.05
"""Share of a distribution beyond a closed end above which a note is added."""
MAX_OUTSIDE_SHARE = 0.5
"""Share beyond a closed end above which a forecast is refused, because the forecaster probably used another unit."""


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
    """Build the forecast of one question; `p` holds the probabilities that belong to it."""
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
    """Whether the account's current forecast equals the body."""
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
MetaculusPosts = Mapping[str, tuple[OpenMetaculusQuestion, ...] | str | SourceError]
"""Post → its questions, or why there are none, or the error from reading them."""


@dataclass(frozen=True, kw_only=True)
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
    # An option or a question of the post may stand for the first target; only a question is a part.
    return post, part if question is not None and len(question.targets) == 1 and (part or "").isdigit() else None


async def read_posts(
    writer: MetaculusWriter, forecasts: Sequence[Forecast], questions: Sequence[Question], options: MetaculusOptions
) -> tuple[MetaculusAccount, MetaculusPosts]:
    """Read the account and the current questions of the posts; writes nothing."""
    by_id = {question.id: question for question in questions}
    places = [post_of(forecast, by_id.get(forecast.question_id), options) for forecast in newest_forecasts(forecasts)]

    async def read(post: str) -> tuple[OpenMetaculusQuestion, ...] | str:
        try:
            return await writer.asked(post) or "it holds no question that can be forecast"
        except SourceError as error:
            if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
                raise
            return f"Metaculus shows this account no post {post} (status {error.status})"

    account = await writer.account()
    return account, await read_each([place[0] for place in places if place is not None], read)


@dataclass(frozen=True, kw_only=True)
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
        """Whether each item is already there, according to the current forecasts and the newest comments."""
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

    async def send(self, items: Sequence[SubmissionItem]) -> list[ItemResult]:
        """Send forecasts in batches; a refused batch is sent again one by one, because none of it was accepted."""
        if items and items[0].part == "comment":
            return [await send_one(item, self.writer.comment(item.content)) for item in items]
        found: list[ItemResult] = []
        for batch in _batches(items):
            sent = await self._forecast(batch)
            if len(batch) > 1 and sent[0].fate == "refused":
                sent = [outcome for item in batch for outcome in await self._forecast([item])]
            found += sent
        return found

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
        sent = [item.question for item in forecasts if not item.problems]
        problems += [] if sent else ["its forecast is not sent"]
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
