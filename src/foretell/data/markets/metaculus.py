"""Metaculus community predictions. Every request needs a token, and many questions need one with more access.

A post's number is in its address; the questions inside have their own numbers. The data may not be passed on, and may
be used with models only as far as the site's terms and your access tier allow.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from urllib.parse import quote

from foretell.data.http import AsyncHttpClient, NotFound, SourceError
from foretell.data.markets.listing import (
    CataloguePage,
    ListedEvent,
    ListingFilter,
    ListingReport,
    MarketEvents,
    MarketState,
    MarketStatus,
    UnsupportedEvent,
    event_state,
    recurrence_template,
)
from foretell.data.markets.market import (
    PART,
    Market,
    MarketRef,
    PricePoint,
    PricesUnavailable,
    daily_history,
    split_part,
    window_start,
)
from foretell.data.payload import MalformedPayload, Payload
from foretell.data.service import JsonService, Params, ServiceConfig
from foretell.frozen import frozen
from foretell.patterns import pattern
from foretell.questions.as_of import AsOf
from foretell.questions.question import DEFAULT_CELLS, NumericRange, Question, Snapshot, Target, read_exclusivity

HOST = "https://www.metaculus.com/api"
NO_TOKEN = "metaculus requires a token, and none was given"
REFUSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
ROUNDING = 1e-6
METHODS = ("recency_weighted", "unweighted")
"""Methods by which forecasts are aggregated into a community prediction."""
PAIR = {"question_yes": "yes", "question_no": "no"}
"""The questions of a conditional pair, and how the condition resolves in each."""


@frozen
class CommunityPrediction:
    """The community prediction from a point in time on: one probability per option, or a single one for yes."""

    since: datetime
    centers: tuple[float | None, ...]
    """Probability per option; None for an option that did not exist yet or no longer exists."""


@frozen
class CommunityHistory:
    """A question of a post with the history of its community prediction."""

    id: str
    kind: str
    options: tuple[str, ...]
    all_options: tuple[str, ...]
    """All options, including those that were removed."""
    revealed_at: datetime | None
    """Until then the community prediction was hidden from everyone."""
    history: tuple[CommunityPrediction, ...]


class MetaculusClient(JsonService):
    """Client for reading from Metaculus."""

    def __init__(
        self,
        *,
        http: AsyncHttpClient,
        token: str,
        host: str = HOST,
        retry_seconds: float = 4.0,
    ) -> None:
        config = ServiceConfig(http=http, key=token, address=host)
        super().__init__(config, HOST, headers={"Authorization": f"Token {token}"})
        self._has_token = bool(token)
        self._retry_seconds = retry_seconds

    async def whole_post(self, post: str) -> Payload:
        """Return a post with its community predictions, as sent."""
        return await self.read(f"/posts/{quote(post, safe='')}/")

    async def read(self, path: str, params: Params = ()) -> Payload:
        """Send a GET request to a path. A status 403 is retried once: the gateway occasionally rejects valid tokens."""
        if not self._has_token:
            raise SourceError(NO_TOKEN, url=f"{self.host}{path}")
        try:
            return await super().read(path, params)
        except SourceError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
        await asyncio.sleep(self._retry_seconds)
        return await super().read(path, params)


class MetaculusPrices:
    """Community predictions by post id; `<post>#<question id>` within a group, `<post>#<option>` of a choice."""

    platform = "metaculus"

    def __init__(self, client: MetaculusClient) -> None:
        self._client = client

    async def prices(self, ref: MarketRef, as_of: AsOf, days: int = 60) -> list[PricePoint]:
        """Return the last community prediction of each day, as the public could see it at the cutoff."""
        window_start(as_of, days)
        post, part = split_part(ref)
        question, option = _chosen(ref, await self._questions(post), part)
        if not question.history:
            raise PricesUnavailable(f"metaculus does not show this account the community prediction of post {post}")
        if question.revealed_at is not None and not as_of.admits(question.revealed_at):
            raise PricesUnavailable(f"the community prediction of metaculus post {post} was still hidden at {as_of}")
        values = [
            (prediction.since, _yes_probability(ref, question, prediction, option)) for prediction in question.history
        ]
        return daily_history(ref, [PricePoint(at=at, p=p) for at, p in values if p is not None], as_of, days)

    async def _questions(self, post: str) -> list[CommunityHistory]:
        try:
            return [_history(question) for question in questions_of(await self._client.whole_post(post))]
        except NotFound:
            problem = f"metaculus has no post {post}; the number in a question's address is the post's"
        except SourceError as error:
            if error.status not in REFUSED and error.problem != NO_TOKEN:
                raise
            tier = f"metaculus refuses this account post {post} (status {error.status}): wrong token or access tier"
            problem = tier if error.status else NO_TOKEN
        raise PricesUnavailable(problem)


def questions_of(post: Payload) -> list[Payload]:
    """Return the questions of a post: one, those of its group, or the two of a conditional pair."""
    single, group, pair = (post.get(name) for name in ("question", "group_of_questions", "conditional"))
    if single is not None:
        return [single]
    if pair is not None:
        return [pair.need(name) for name in PAIR]
    return [] if group is None else group.need("questions").items()


def community_prediction(question: Payload) -> Payload | None:
    """Return the latest state and the history of a question's community prediction, by the method that it names.

    Questions only include the method by which they are shown, and old ones name none. Returns None if this account sees
    no prediction.
    """
    aggregations = question.get("aggregations")
    named = question.words("default_aggregation_method")
    methods = (
        [] if aggregations is None else [aggregations.get(name) for name in dict.fromkeys((named, *METHODS)) if name]
    )
    full = (method for method in methods if method is not None and (method.get("latest") or method.rows("history")))
    return next(full, None)


def _chosen(ref: MarketRef, questions: list[CommunityHistory], part: str | None) -> tuple[CommunityHistory, str | None]:
    """Return the question that is meant, and the option if it is a choice."""
    by_id = {question.id: question for question in questions}
    if part in by_id:
        return by_id[part], None
    if len(questions) == 1:
        return questions[0], part
    raise PricesUnavailable(
        f"metaculus {ref.id} names none of the post's questions: {', '.join(by_id) or 'it has none'}"
    )


def _yes_probability(
    ref: MarketRef, question: CommunityHistory, prediction: CommunityPrediction, option: str | None
) -> float | None:
    if question.kind == "binary" and option is None:
        # Old responses contain no and yes, new ones only yes.
        return prediction.centers[-1]
    if question.kind == CHOICE and option is not None:
        for labels in (question.all_options, question.options):
            if len(labels) == len(prediction.centers) and option in labels:
                return prediction.centers[labels.index(option)]
    raise PricesUnavailable(f"metaculus {ref.id} is not a yes-or-no question, nor an option of a choice")


def _history(question: Payload) -> CommunityHistory:
    """Return a question with all its community predictions; none if this account cannot see them."""
    prediction = community_prediction(question)
    return CommunityHistory(
        id=question.need("id").name(),
        kind=question.need("type").text(),
        options=question.texts("options"),
        all_options=question.texts("all_options_ever"),
        revealed_at=question.optional_time("cp_reveal_time"),
        history=tuple(
            CommunityPrediction(since=row.need("start_time").unix_time(), centers=tuple(map(_center, centers.items())))
            for row in ([] if prediction is None else prediction.rows("history"))
            if (centers := row.present("centers")) is not None and centers.items()
        ),
    )


def _center(item: Payload) -> float | None:
    """Parse a probability; sums of many may lie slightly outside 0 to 1 because of rounding."""
    if item.value is None or not -ROUNDING <= item.number() <= 1 + ROUNDING:
        return None if item.value is None else item.probability()
    return min(max(item.number(), 0.0), 1.0)


# Metaculus posts as events: a question with one yes, a choice of options, a group of yes-or-no questions, a number or a
# date. Where the questions of a post cannot be targets of one question, each is an event: those of a group about
# numbers or dates, and both of a conditional pair. Notebooks are skipped, with the reason.

PAGE = 100
CHOICE = "multiple_choice"
CONTINUOUS = ("numeric", "discrete", "date")
SUBTYPES = {"numeric": "numeric", "discrete": "numeric", "date": "date"}
THRESHOLD_SHARES = (0.25, 0.5, 0.75)
"""Positions in its range of the thresholds that serve as targets of a question about a number or a date."""
OF_POST = "of_post"
"""A field that the site does not send: marks one question of several, presented as if it were the only one."""
SHOWN_IN_LISTS = 3
"""For larger groups, the list includes the community prediction of only the first few questions."""
FILTERS: Mapping[MarketStatus, str] = {
    "unopened": "upcoming",
    "open": "open",
    "closed": "closed",
    "resolved": "resolved",
}
STATUS: Mapping[str, MarketStatus] = {
    "upcoming": "unopened",
    "approved": "unopened",
    "draft": "unopened",
    "pending": "unopened",
    "open": "open",
    "closed": "closed",
    "pending_resolution": "closed",
    "resolved": "resolved",
    "rejected": "closed",
    "deleted": "closed",
}


class MetaculusEvents(MarketEvents):
    """Posts by post id, newest first. Targets: `yes`, the labels of a choice, a group's question ids; thresholds.

    A question that is an event apart from the others of its post has the id `<post>#<question id>`.
    """

    platform = "metaculus"
    noun = "post"

    def __init__(
        self,
        client: MetaculusClient,
        *,
        tournaments: tuple[str, ...] = (),
        kinds: tuple[str, ...] = (),
        unanswered_by: str = "",
    ) -> None:
        """List all posts, or only those of tournaments (slug or number) or of kinds (the site's `forecast_type`).

        With `unanswered_by`, only posts on which this account, by its number, has not forecast. It must be your own.
        """
        self._client = client
        self._query = [("tournaments", name) for name in tournaments]
        self._query += [("forecast_type", kind) for kind in kinds]
        self._query += [("not_forecaster_id", unanswered_by)] if unanswered_by else []

    async def fetch(self, id: str) -> Payload:
        """Return one post, or one question of it."""
        post, _, part = id.partition(PART)
        row = await self._client.whole_post(post)
        if not part:
            return row
        matching = [post for post in split_post(row) if [q.need("id").name() for q in questions_of(post)[:1]] == [part]]
        return matching[0] if matching and matching[0].has(OF_POST) else row

    async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
        """Return one page of posts, each split into as many entries as it has events."""
        passed = int(cursor or "0")
        query = [
            ("statuses", FILTERS[wanted.status]),
            ("limit", str(PAGE)),
            ("offset", str(passed)),
            ("order_by", "-published_at"),
            ("with_cp", "true"),
            ("include_descriptions", "true"),
            *self._query,
        ]
        if wanted.closes_after is not None:
            # A question resolves only after it closes.
            query.append(("scheduled_resolve_time__gte", wanted.closes_after.isoformat()))
        answer = await self._client.read("/posts/", query)
        more = answer.present("next") is not None
        rows = [part for row in answer.need("results").items() for part in _split_if_possible(row)]
        return CataloguePage(rows=rows, following=str(passed + PAGE) if more else None)

    async def read_listed(self, row: Payload, wanted: ListingFilter, report: ListingReport) -> ListedEvent | None:
        """Parse a post, fetching it separately if the list leaves something out."""
        if row.get("question") is None and len(questions_of(row)) > SHOWN_IN_LISTS:
            row = await self.fetch(row.need("id").name())
        return await self.read(row, wanted.as_of, report)

    async def read(self, row: Payload, as_of: AsOf, report: ListingReport) -> ListedEvent:
        """Parse a whole post, or one question of it."""
        if len(split_post(row)) > 1:
            numbers = ", ".join(question.need("id").name() for question in questions_of(row))
            raise UnsupportedEvent(f"it has several questions; name one of them, as POST{PART}QUESTION: {numbers}")
        single, questions = row.get("question"), questions_of(row)
        parts = _parts(row, questions, as_of)
        kind = "" if single is None else single.need("type").text()
        event = event_state(parts, exclusivity=read_exclusivity(kind == CHOICE))
        rules = row.need("group_of_questions") if single is None else single
        title, post = row.need("title").text().strip(), row.need("id").name()
        category, tags = _filed(row)
        opens = [at for market in event.markets if (at := market.row.optional_time("open_time"))]
        closes = [at for market in event.markets if (at := market.row.present("scheduled_close_time"))]
        scale = numeric_range(questions[0]) if kind in CONTINUOUS else None
        part = questions[0].need("id").name() if row.has(OF_POST) else ""
        return ListedEvent(
            question=Question(
                id=f"metaculus/{post}{PART}{part}" if part else f"metaculus/{post}",
                source=self.platform,
                text=title,
                due=as_of.at,
                targets=tuple(market.target for market in event.markets),
                subtype=SUBTYPES.get(kind, ""),
                category=category,
                criteria=_paragraphs(rules.stated_text("resolution_criteria").strip(), rules.words("fine_print")),
                background=_paragraphs(rules.words("description"), "" if scale is None else str(scale)),
                exclusivity=event.exclusivity,
                opens_at=min(opens, default=None),
                closes_at=max((at.time() for at in closes), default=None),
                url=f"https://www.metaculus.com/questions/{post}/" + (f"?sub-question={part}" if part else ""),
                range=scale,
            ),
            status=event.status,
            recurrence=recurrence_template(title),
            traders=row.count("nr_forecasters"),
            tags=tags,
            finished=event.finished,
        )


class MetaculusNamed(MetaculusEvents):
    """Posts of a tournament, by slug or number; if no tournament has the number, all questions of the post that has it.

    `<post>#<question id>` is one question of a post.
    """

    def __init__(self, client: MetaculusClient, name: str) -> None:
        super().__init__(client, tournaments=(name,))
        self._name = name

    async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
        """Return one page of the tournament, or the post."""
        post, _, part = self._name.partition(PART)
        if not post.isdigit():
            return await super().page(wanted, cursor)
        try:
            page = CataloguePage(rows=[]) if part else await super().page(wanted, cursor)
        except SourceError as error:
            # The site's response for an unknown tournament.
            if error.status != HTTPStatus.BAD_REQUEST:
                raise
            page = CataloguePage(rows=[])
        if page.rows or cursor:
            return page
        row = await self.fetch(self._name)
        return CataloguePage(rows=_split_if_possible(row))


def _paragraphs(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))


def split_post(post: Payload) -> list[Payload]:
    """Split a post into its events: the post itself, or each of its questions as if it were the only one."""
    group, pair = post.get("group_of_questions"), post.get("conditional")
    if post.get("question") is not None:
        return [post]
    if pair is not None:
        return [
            _alone(post, question, *_conditional_texts(pair, question, PAIR[name])) for name, question in _pair(pair)
        ]
    questions = [] if group is None else group.need("questions").items()
    if group is None or all(question.need("type").text() == "binary" for question in questions):
        return [post]
    return [_alone(post, question, _title(post, question), {}, group) for question in questions]


def _split_if_possible(row: Payload) -> list[Payload]:
    """Split a post into its events; one that cannot be split is returned whole, to be reported as unreadable."""
    try:
        return split_post(row)
    except MalformedPayload:
        return [row]


def _alone(post: Payload, question: Payload, title: str, texts: Mapping[str, str], shared: Payload) -> Payload:
    """Return a post with one question: the texts given, else those of the question, else those shared by several."""
    names = ("description", "resolution_criteria", "fine_print")
    question_texts = {name: texts.get(name) or question.words(name) or shared.words(name) for name in names}
    body = {**post.value, "title": title, "question": {**question.value, **question_texts}, OF_POST: True}
    return Payload(url=post.url, path=post.path, value=body | {"group_of_questions": None, "conditional": None})


def _title(post: Payload, question: Payload) -> str:
    """Return the title of a question of a group, which may be complete or only what distinguishes it."""
    whole, own = post.need("title").text().strip(), question.words("title")
    return own if whole in own else f"{whole} ({_label(question)})"


def _pair(pair: Payload) -> list[tuple[str, Payload]]:
    return [(name, pair.need(name)) for name in PAIR]


def _conditional_texts(pair: Payload, question: Payload, outcome: str) -> tuple[str, Mapping[str, str], Payload]:
    """Return title and texts of a conditional question: the site keeps criteria with the two questions in it."""
    condition, child = pair.need("condition"), pair.need("condition_child")
    premise = f"“{condition.need('title').text().strip()}” resolves {outcome}"
    rules = f"This counts only if {premise}; otherwise the question is annulled."
    condition_rules = _paragraphs(condition.words("resolution_criteria"), condition.words("fine_print"))
    criteria = child.words("resolution_criteria") or question.words("resolution_criteria")
    return (
        f"If {premise}: {child.need('title').text().strip()}",
        {
            "resolution_criteria": _paragraphs(
                criteria, rules, f"The condition: {condition_rules}" if condition_rules else ""
            )
        },
        child,
    )


def numeric_range(question: Payload) -> NumericRange:
    """Return the range of a question about a number or a date."""
    scaling, kind = question.need("scaling"), question.need("type").text()
    places = (question, scaling)
    count = next((value for place in places if (value := place.get("inbound_outcome_count"))), None)
    zero = scaling.get("zero_point")
    low, high = (scaling.need(name).number() for name in ("range_min", "range_max"))
    try:
        return NumericRange(
            minimum=low,
            maximum=high,
            zero_point=None if zero is None else zero.number(),
            open_lower=any(place.is_set("open_lower_bound") for place in places),
            open_upper=any(place.is_set("open_upper_bound") for place in places),
            outcomes=DEFAULT_CELLS if count is None else int(count.number()),
            unit=question.words("unit"),
            dates=kind == "date",
            whole=kind == "discrete",
        )
    except ValueError:
        pass
    scaling.wrong("a range")


def _parts(row: Payload, questions: list[Payload], as_of: AsOf) -> list[MarketState]:
    """Return the targets of a post."""
    if row.get("question") is not None:
        kind = questions[0].need("type").text()
        if kind in CONTINUOUS:
            return _thresholds(questions[0], as_of)
        return (
            _options(questions[0], as_of)
            if kind == CHOICE
            else [_yes_target(questions[0], as_of, id="yes", label="Yes")]
        )
    if questions:
        return [
            _yes_target(question, as_of, id=question.need("id").name(), label=_label(question))
            for question in questions
        ]
    if row.get("notebook") is not None:
        raise UnsupportedEvent("a notebook has no question")
    row.need("question")
    raise UnsupportedEvent("it has no question")


def _thresholds(question: Payload, as_of: AsOf) -> list[MarketState]:
    """Return targets asking whether the number or date exceeds certain values, with the community's probability."""
    scale = numeric_range(question)
    edges, cdf = scale.edges(), _current_prediction(question, as_of, "forecast_values")
    ends, status = question.optional_time("scheduled_resolve_time"), status_of(question)
    market_states: dict[str, MarketState] = {}
    for index in (round(share * scale.outcomes) for share in THRESHOLD_SHARES):
        id, below = f">{edges[index]:.10g}", cdf[index] if len(cdf) == len(edges) else None
        target = Target(
            id=id,
            label=f"after {scale.write(edges[index])}" if scale.dates else f"{id} {scale.unit}".strip(),
            resolves_at=ends,
            snapshot=None if below is None else Snapshot(at=as_of.at, last_price=round(1 - below, 10)),
        )
        market_states[id] = MarketState(row=question, target=target, status=status)
    return list(market_states.values())


def _yes_target(question: Payload, as_of: AsOf, *, id: str, label: str) -> MarketState:
    kind = question.need("type").text()
    if kind != "binary":
        raise UnsupportedEvent(f"a question of type {kind} is not supported")
    prediction = _current_prediction(question, as_of)
    target = Target(
        id=id,
        label=label,
        resolves_at=question.optional_time("scheduled_resolve_time"),
        # Old responses contain no and yes, new ones only yes.
        snapshot=Snapshot(at=as_of.at, last_price=prediction[-1]) if prediction else None,
    )
    return MarketState(
        row=question, target=target, status=status_of(question), lost=question.words("resolution") == "no"
    )


def _options(question: Payload, as_of: AsOf) -> list[MarketState]:
    """Return the options that can still be chosen; a community prediction also covers removed ones."""
    question.need("options")
    labels = question.texts("options")
    prediction = _current_prediction(question, as_of)
    counted = next((n for n in (question.texts("all_options_ever"), labels) if len(n) == len(prediction)), ())
    by_label = dict(zip(counted, prediction, strict=False))
    ends, status = question.optional_time("scheduled_resolve_time"), status_of(question)
    return [
        MarketState(
            row=question,
            target=Target(
                id=label,
                label=label,
                resolves_at=ends,
                snapshot=Snapshot(at=as_of.at, last_price=p) if (p := by_label.get(label)) is not None else None,
            ),
            status=status,
        )
        for label in labels
    ]


def _current_prediction(question: Payload, as_of: AsOf, values: str = "centers") -> list[float | None]:
    """Return the current community prediction; empty while it is hidden from everyone or from this account."""
    revealed, prediction = question.optional_time("cp_reveal_time"), community_prediction(question)
    latest = None if prediction is None else prediction.get("latest", values)
    if latest is None or (revealed is not None and not as_of.admits(revealed)):
        return []
    return [_center(item) for item in latest.items()]


def status_of(question: Payload) -> MarketStatus:
    """Return the status of a question."""
    status = question.need("status")
    return STATUS.get(status.text()) or status.wrong("a known status")


def _label(question: Payload) -> str:
    return question.words("label") or question.need("title").text().strip()


def _filed(row: Payload) -> tuple[str, tuple[str, ...]]:
    """Return the first category, and the names of all categories and tournaments."""
    projects = row.get("projects")
    if projects is None:
        return "", ()
    kinds = ("category", "tournament", "question_series", "tag")
    names = [[project.words("name") for project in projects.rows(kind)] for kind in kinds]
    return "".join(names[0][:1]), tuple(dict.fromkeys(name for group in names for name in group if name))


def _post_in_address(steps: Sequence[str], query: Mapping[str, list[str]]) -> str | None:
    """Parse `/questions/<post id>/…`, with `?sub-question=<question id>` for one of a group."""
    if len(steps) < 2 or steps[0] not in ("questions", "c") or not steps[1].isdigit():
        return None
    sub = query.get("sub-question", [""])[0]
    return f"{steps[1]}{PART}{sub}" if sub.isdigit() else steps[1]


MARKET = Market(
    hosts=("metaculus.com",),
    client=lambda config: MetaculusClient(
        http=config.http,
        token=config.key,
        host=config.address or HOST,
        # A custom server needs no rate limit.
        **({"retry_seconds": 0.1} if config.address else {}),
    ),
    events=MetaculusEvents,
    part=MetaculusNamed,
    prices=MetaculusPrices,
    settlements="foretell.data.settlements.metaculus:MetaculusSettlements",
    key_variables=("METACULUS_TOKEN",),
    own_id=pattern(r"[0-9]+(#[0-9]+)?"),
    id_in_address=_post_in_address,
    facts="Metaculus source and its OpenAPI 2.0.0, 20 August 2026; recorded posts of November 2024 to mid 2025",
)
