"""Metaculus community predictions. Every call needs a token, and many questions need a better one than yours.

A post's number stands in its address; the questions inside have numbers of their own. Their data may not be passed on,
and may be used with models only as far as the site's terms and your access tier allow.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from urllib.parse import quote, urlencode

from foretell.data.http import AsyncHttpClient, SourceError
from foretell.data.markets.catalogue import (
    METACULUS_POST,
    METACULUS_QUESTION,
    CataloguePage,
    UnsupportedEvent,
    amount,
    error_context,
    iso,
    list_events,
    moment,
    text,
    words,
)
from foretell.data.markets.listing import (
    EventListing,
    ListedEvent,
    ListingFilter,
    ListingReport,
    MarketState,
    MarketStatus,
    event_state,
    recurrence_template,
    require_live,
)
from foretell.data.markets.market import Market
from foretell.data.markets.prices import (
    PART,
    MarketRef,
    PricePoint,
    PricesUnavailable,
    daily_history,
    split_part,
    window_start,
)
from foretell.data.payload import Payload, fetch_payload
from foretell.data.service import ServiceConfig
from foretell.questions.as_of import AsOf
from foretell.questions.question import Question, Snapshot, Target

HOST = "https://www.metaculus.com/api"
NO_TOKEN = "metaculus answers nobody without a token, and none was given"
REFUSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


@dataclass(frozen=True, kw_only=True)
class CommunityPrediction:
    """What the community said from a moment on: one probability per option, a single one for yes."""

    since: datetime
    centers: tuple[float | None, ...]
    """None for an option that was not there yet, or no more."""


@dataclass(frozen=True, kw_only=True)
class CommunityHistory:
    """A question of a post with the history of its community prediction."""

    id: str
    kind: str
    options: tuple[str, ...]
    all_options: tuple[str, ...]
    """Also those that were taken away."""
    revealed_at: datetime | None
    """Until then the community prediction was hidden from everybody."""
    history: tuple[CommunityPrediction, ...]


class MetaculusClient:
    """The reading end, typed. The token is never shown."""

    def __init__(
        self,
        *,
        http: AsyncHttpClient,
        token: str,
        host: str = HOST,
        per_second: float = 0.3,
        retry_seconds: float = 4.0,
    ) -> None:
        self._http = http
        self._token = token
        self._host = host
        self._retry_seconds = retry_seconds
        http.keep_secret(token)
        http.pace(host, per_second=per_second)

    def __repr__(self) -> str:
        return f"MetaculusClient(host={self._host!r}, token={'given' if self._token else 'missing'})"

    async def questions(self, post: str) -> list[CommunityHistory]:
        """The questions of a post: one, or those of its group."""
        if not self._token:
            raise PricesUnavailable(NO_TOKEN)
        answer = await self.post(post)
        single, group = answer.get("question"), answer.get("group_of_questions")
        if single is not None:
            return [_forecasted(single)]
        return [_forecasted(item) for item in group.need("questions").items()] if group is not None else []

    async def post(self, post: str) -> Payload:
        """A whole post with its community predictions, as sent."""
        return await self.read(f"/posts/{quote(post, safe='')}/", [("with_cp", "true")])

    async def read(self, path: str, params: Iterable[tuple[str, str]] = ()) -> Payload:
        """What stands at a path, as sent; names may be repeated.

        A refusal is tried once more: the site's outer layer refuses good tokens now and then.
        """
        query = urlencode(list(params))
        url = f"{self._host}{path}" + (f"?{query}" if query else "")
        if not self._token:
            raise SourceError(NO_TOKEN, url=url)
        headers = {"Authorization": f"Token {self._token}"}
        try:
            return await fetch_payload(self._http, url, headers=headers)
        except SourceError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
        await asyncio.sleep(self._retry_seconds)
        return await fetch_payload(self._http, url, headers=headers)


class MetaculusPrices:
    """Community predictions by post id; `<post>#<question id>` within a group, `<post>#<option>` of a choice."""

    platform = "metaculus"

    def __init__(self, client: MetaculusClient) -> None:
        self._client = client

    async def prices(self, ref: MarketRef, as_of: AsOf, days: int = 60) -> list[PricePoint]:
        """The last community prediction of each day, as the public could see it at the cutoff."""
        window_start(as_of, days)
        post, part = split_part(ref)
        question, option = _chosen(ref, await self._questions(post), part)
        if not question.history:
            raise PricesUnavailable(f"metaculus does not show this account the community prediction of post {post}")
        if question.revealed_at is not None and not as_of.admits(question.revealed_at):
            raise PricesUnavailable(f"the community prediction of metaculus post {post} was still hidden at {as_of}")
        said = [(crowd.since, _yes_probability(ref, question, crowd, option)) for crowd in question.history]
        return daily_history(ref, [PricePoint(at=at, p=p) for at, p in said if p is not None], as_of, days)

    async def _questions(self, post: str) -> list[CommunityHistory]:
        try:
            return await self._client.questions(post)
        except SourceError as error:
            if error.status in REFUSED:
                raise PricesUnavailable(
                    f"metaculus refuses this account post {post} (status {error.status}): wrong token or access tier"
                ) from None
            if error.status == HTTPStatus.NOT_FOUND:
                raise PricesUnavailable(
                    f"metaculus has no post {post}; the number in a question's address is the post's"
                ) from None
            raise


def _chosen(ref: MarketRef, questions: list[CommunityHistory], part: str | None) -> tuple[CommunityHistory, str | None]:
    """The question meant, and the option where it is a choice."""
    by_id = {question.id: question for question in questions}
    if part in by_id:
        return by_id[part], None
    if len(questions) == 1:
        return questions[0], part
    raise PricesUnavailable(
        f"metaculus {ref.id} names none of the post's questions: {', '.join(by_id) or 'it has none'}"
    )


def _yes_probability(
    ref: MarketRef, question: CommunityHistory, crowd: CommunityPrediction, option: str | None
) -> float | None:
    if question.kind == "binary" and option is None:
        # Old answers give no and yes, new ones only yes.
        return crowd.centers[-1]
    if question.kind == "multiple_choice" and option is not None:
        for labels in (question.all_options, question.options):
            if len(labels) == len(crowd.centers) and option in labels:
                return crowd.centers[labels.index(option)]
    raise PricesUnavailable(f"metaculus {ref.id} is no yes-or-no question, nor an option of a choice")


def _forecasted(question: Payload) -> CommunityHistory:
    revealed = question.get("cp_reveal_time")
    return CommunityHistory(
        id=question.need("id").name(),
        kind=question.need("type").text(),
        options=_labels(question, "options"),
        all_options=_labels(question, "all_options_ever"),
        revealed_at=iso(revealed) if revealed is not None else None,
        history=_history(question),
    )


def _labels(question: Payload, field: str) -> tuple[str, ...]:
    found = question.get(field)
    return tuple(item.text() for item in found.items()) if found is not None else ()


def _history(question: Payload) -> tuple[CommunityPrediction, ...]:
    """The whole history; empty where this account is not shown it."""
    aggregations = question.get("aggregations")
    weighted = aggregations.get("recency_weighted") if aggregations is not None else None
    history = weighted.get("history") if weighted is not None else None
    rows = history.items() if history is not None else []
    return tuple(crowd for row in rows if (crowd := _community_prediction(row)) is not None)


def _community_prediction(row: Payload) -> CommunityPrediction | None:
    """One entry; None where it holds no prediction."""
    centers = row.present("centers")
    if centers is None or not centers.items():
        return None
    return CommunityPrediction(
        since=row.need("start_time").moment(), centers=tuple(_center(item) for item in centers.items())
    )


def _center(item: Payload) -> float | None:
    return None if item.value is None else item.probability()


# Metaculus posts as events: a question with one yes, a choice of options, or a group of yes-or-no questions.
#
# Numeric, discrete and date questions, conditional pairs and notebooks are recognised and skipped, with the reason.

PAGE = 100
SHOWN_IN_LISTS = 3
"""Of larger groups the list shows the community prediction of the first few questions only."""
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


class MetaculusEvents:
    """Posts by post id. Targets: `yes`; the labels of a choice; the question ids of a group."""

    platform = "metaculus"
    key = "id"

    def __init__(self, client: MetaculusClient, *, tournaments: tuple[str, ...] = ()) -> None:
        """`tournaments` limits the list to these, by slug or number."""
        self._client = client
        self._tournaments = tournaments

    def events(self, wanted: ListingFilter) -> EventListing:
        """Posts, the newest first."""
        return list_events(self, wanted)

    async def event(self, id: str, as_of: AsOf) -> ListedEvent:
        """One post."""
        require_live(as_of)
        with error_context(f"metaculus post {id}"):
            row = await self._client.post(id)
            try:
                return _event(row, as_of, ListingReport())
            except UnsupportedEvent as error:
                raise SourceError(f"metaculus post {id} cannot be asked: {error}", url=row.url) from None

    async def page(self, wanted: ListingFilter, cursor: str) -> CataloguePage:
        """One page of posts."""
        passed = int(cursor or "0")
        query = [
            ("statuses", FILTERS[wanted.status]),
            ("limit", str(PAGE)),
            ("offset", str(passed)),
            ("order_by", "-published_at"),
            ("with_cp", "true"),
            ("include_descriptions", "true"),
            *(("tournaments", name) for name in self._tournaments),
        ]
        if wanted.closes_after is not None:
            # Nothing is resolved before it closes.
            query.append(("scheduled_resolve_time__gte", wanted.closes_after.isoformat()))
        answer = await self._client.read("/posts/", query)
        more = answer.present("next") is not None
        return CataloguePage(rows=answer.need("results").items(), following=str(passed + PAGE) if more else None)

    async def parsed(self, row: Payload, wanted: ListingFilter, ledger: ListingReport) -> ListedEvent:
        """A post, read by itself where the list keeps something back."""
        if len(_group(row)) > SHOWN_IN_LISTS:
            row = await self._client.post(row.need("id").name())
        return _event(row, wanted.as_of, ledger)


def _event(row: Payload, as_of: AsOf, ledger: ListingReport) -> ListedEvent:
    ledger.know(row.value, METACULUS_POST, "post")
    single, group = row.get("question"), _group(row)
    for question in [single, *group] if single is not None else group:
        ledger.know(question.value, METACULUS_QUESTION, "question")
    parts = _parts(row, single, group, as_of)
    event = event_state(parts, exclusive=single is not None and single.need("type").text() == "multiple_choice")
    rules = row.need("group_of_questions") if single is None else single
    title = row.need("title").text().strip()
    category, tags = _filed(row)
    people = amount(row, "nr_forecasters")
    post = row.need("id").name()
    return ListedEvent(
        question=Question(
            id=f"metaculus/{post}",
            source=MetaculusEvents.platform,
            text=title,
            due=as_of.at,
            targets=tuple(one.target for one in event.asked),
            category=category,
            criteria="\n\n".join(filter(None, [text(rules, "resolution_criteria"), words(rules, "fine_print")])),
            background=words(rules, "description"),
            exclusive=event.exclusive,
            opens_at=min((at for one in event.asked if (at := moment(one.row, "open_time"))), default=None),
            closes_at=max((iso(one.row.need("scheduled_close_time")) for one in event.asked), default=None),
            url=f"https://www.metaculus.com/questions/{post}/",
        ),
        status=event.status,
        recurrence=recurrence_template(title),
        traders=None if people is None else int(people),
        tags=tags,
        finished=event.finished,
    )


def _group(row: Payload) -> list[Payload]:
    group = row.get("group_of_questions")
    return [] if group is None else group.need("questions").items()


def _parts(row: Payload, single: Payload | None, group: list[Payload], as_of: AsOf) -> list[MarketState]:
    """The targets of a post."""
    if single is not None:
        kind = single.need("type").text()
        if kind == "multiple_choice":
            return _options(single, as_of)
        return [_yes_target(single, as_of, id="yes", label="Yes")]
    if group:
        return [_yes_target(one, as_of, id=one.need("id").name(), label=_label(one)) for one in group]
    for other in ("conditional", "notebook"):
        if row.get(other) is not None:
            raise UnsupportedEvent(f"a {other} has no yes-or-no targets of its own")
    row.need("question")
    raise UnsupportedEvent("it holds no question")


def _yes_target(question: Payload, as_of: AsOf, *, id: str, label: str) -> MarketState:
    kind = question.need("type").text()
    if kind != "binary":
        raise UnsupportedEvent(f"a question of type {kind} has no yes-or-no targets")
    crowd = _current_prediction(question, as_of)
    target = Target(
        id=id,
        label=label,
        resolves_at=moment(question, "scheduled_resolve_time"),
        # Old answers give no and yes, new ones only yes.
        snapshot=Snapshot(at=as_of.at, last_price=crowd[-1]) if crowd else None,
    )
    return MarketState(
        row=question, target=target, status=_status(question), lost=words(question, "resolution") == "no"
    )


def _options(question: Payload, as_of: AsOf) -> list[MarketState]:
    """The options that can still be chosen; a community prediction also counts those taken away."""
    labels = [item.text() for item in question.need("options").items()]
    ever = question.get("all_options_ever")
    counted = [item.text() for item in ever.items()] if ever is not None else labels
    crowd = _current_prediction(question, as_of)
    told = next((dict(zip(names, crowd, strict=True)) for names in (counted, labels) if len(names) == len(crowd)), {})
    ends, status = moment(question, "scheduled_resolve_time"), _status(question)
    return [
        MarketState(
            row=question,
            target=Target(
                id=label,
                label=label,
                resolves_at=ends,
                snapshot=Snapshot(at=as_of.at, last_price=p) if (p := told.get(label)) is not None else None,
            ),
            status=status,
        )
        for label in labels
    ]


def _current_prediction(question: Payload, as_of: AsOf) -> list[float | None]:
    """The community prediction of now; empty while it is hidden, or from this account."""
    revealed = moment(question, "cp_reveal_time")
    weighted = question.get("aggregations")
    for step in ("recency_weighted", "latest", "centers"):
        weighted = weighted.get(step) if weighted is not None else None
    if weighted is None or (revealed is not None and not as_of.admits(revealed)):
        return []
    return [None if item.value is None else item.probability() for item in weighted.items()]


def _status(question: Payload) -> MarketStatus:
    told = question.need("status")
    return STATUS.get(told.text()) or told.wrong("a status we know")


def _label(question: Payload) -> str:
    return words(question, "label") or question.need("title").text().strip()


def _filed(row: Payload) -> tuple[str, tuple[str, ...]]:
    """The first category, and all categories and tournaments by name."""
    projects = row.get("projects")
    if projects is None:
        return "", ()
    names: list[str] = []
    for sort in ("category", "tournament", "question_series", "tag"):
        found = projects.get(sort)
        names += [words(one, "name") for one in found.items()] if found is not None else []
    first = projects.get("category")
    category = words(first.items()[0], "name") if first is not None and first.items() else ""
    return category, tuple(dict.fromkeys(filter(None, names)))


def _post_in_address(steps: Sequence[str], query: Mapping[str, list[str]]) -> str | None:
    """`/questions/<post id>/…`, with `?sub-question=<question id>` for one of a group."""
    if len(steps) < 2 or steps[0] not in ("questions", "c") or not steps[1].isdigit():
        return None
    sub = query.get("sub-question", [""])[0]
    return f"{steps[1]}{PART}{sub}" if sub.isdigit() else steps[1]


def _open_client(config: ServiceConfig) -> MetaculusClient:
    return MetaculusClient(http=config.http, token=config.key, host=config.address or HOST)


MARKET = Market(
    hosts=("metaculus.com",),
    client=_open_client,
    events=MetaculusEvents,
    prices=MetaculusPrices,
    settlements="foretell.data.settlements.metaculus:MetaculusSettlements",
    key_variables=("METACULUS_TOKEN",),
    own_id=re.compile(r"[0-9]+"),
    id_in_address=_post_in_address,
)
