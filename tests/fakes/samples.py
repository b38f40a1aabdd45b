"""Sample markets and questions, and the response bodies in which platforms send them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any


@dataclass(frozen=True, kw_only=True)
class SampleManifoldAnswer:
    """One answer of a multiple choice."""

    id: str
    text: str
    p: float
    resolution: str | None = None
    resolved_ms: int | None = None


@dataclass(frozen=True, kw_only=True)
class SampleManifoldMarket:
    """A market; times in thousandths of a second."""

    id: str
    question: str
    p: float | None = None
    answers: tuple[SampleManifoldAnswer, ...] = ()
    sums_to_one: bool = True
    kind: str = "BINARY"
    volume: float = 100.0
    created_ms: int = 1_767_225_600_000
    closes_ms: int | None = 1_798_761_600_000
    resolution: str | None = None
    resolved_ms: int | None = None
    resolved_p: float | None = None
    shares: Mapping[str, float] | None = None
    topics: tuple[str, ...] = ()
    token: str = "MANA"


def manifold_market_body(contract: SampleManifoldMarket) -> dict[str, Any]:
    """Return a complete market as sent."""
    optional = {
        "probability": contract.p,
        "closeTime": contract.closes_ms,
        "resolution": contract.resolution,
        "resolutionTime": contract.resolved_ms,
        "resolutionProbability": contract.resolved_p,
        "resolutions": contract.shares,
    }
    body: dict[str, Any] = {
        "id": contract.id,
        "creatorId": "u1",
        "creatorUsername": "someone",
        "creatorName": "Someone",
        "createdTime": contract.created_ms,
        "question": contract.question,
        "slug": f"slug-{contract.id.lower()}",
        "url": f"https://manifold.markets/someone/slug-{contract.id.lower()}",
        "outcomeType": contract.kind,
        "mechanism": "cpmm-1" if contract.kind == "BINARY" else "cpmm-multi-1",
        "totalLiquidity": 1000,
        "volume": contract.volume,
        "volume24Hours": contract.volume / 10,
        "isResolved": contract.resolution is not None,
        "uniqueBettorCount": 12,
        "token": contract.token,
        "description": {"type": "doc", "content": []},
        "textDescription": "Resolves yes if it happens.",
        "groupSlugs": list(contract.topics),
        **{name: value for name, value in optional.items() if value is not None},
    }
    if contract.kind == "MULTIPLE_CHOICE":
        body |= {
            "answers": [_answer(contract.id, n, answer) for n, answer in enumerate(contract.answers)],
            "shouldAnswersSumToOne": contract.sums_to_one,
            "addAnswersMode": "DISABLED",
        }
    return body


def _answer(contract: str, n: int, answer: SampleManifoldAnswer) -> dict[str, Any]:
    optional = {"resolution": answer.resolution, "resolutionTime": answer.resolved_ms}
    return {
        "id": answer.id,
        "index": n,
        "contractId": contract,
        "userId": "u1",
        "text": answer.text,
        "createdTime": 1_767_225_600_000,
        "isOther": False,
        "pool": {"YES": 100, "NO": 100},
        "probability": answer.p,
        "volume": 10,
        **{name: value for name, value in optional.items() if value is not None},
    }


@dataclass(frozen=True, kw_only=True)
class SampleMetaculusQuestion:
    """A question inside a post; times written out."""

    id: int
    title: str
    kind: str = "binary"
    label: str = ""
    status: str = "open"
    centers: tuple[float | None, ...] | None = None
    options: tuple[str, ...] | None = None
    ever: tuple[str, ...] | None = None
    opens: str = "2026-01-01T00:00:00Z"
    closes: str = "2027-01-01T00:00:00Z"
    resolves: str = "2027-02-01T00:00:00Z"
    revealed: str | None = None
    resolution: str | None = None
    resolved: str | None = None
    scale: "SampleMetaculusScale | None" = None
    values: tuple[float, ...] | None = None
    """The community's cumulative probabilities, of a number or a date."""
    method: str = "recency_weighted"
    """How the community prediction is computed; only this one is sent."""
    history: "tuple[SampleCommunityPrediction, ...]" = ()
    visible: bool = True
    """Whether the account may see the community prediction."""


@dataclass(frozen=True, kw_only=True)
class SampleCommunityPrediction:
    """A community prediction from a Unix second on."""

    since: float
    centers: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class SampleMetaculusScale:
    """The range of a question about a number; dates in Unix seconds."""

    low: float
    high: float
    zero: float | None = None
    open_lower: bool = False
    open_upper: bool = False
    cells: int | None = None
    """None leaves the count out, as in old questions, which have 200."""
    unit: str = ""

    def fields(self, kind: str) -> dict[str, Any]:
        """As sent."""
        ends = {
            "open_lower_bound": self.open_lower,
            "open_upper_bound": self.open_upper,
            "inbound_outcome_count": self.cells,
        }
        half = (self.high - self.low) / (self.cells or 200) / 2 if kind == "discrete" else 0
        scaling = {
            "range_min": self.low,
            "range_max": self.high,
            "nominal_min": self.low + half,
            "nominal_max": self.high - half,
            "zero_point": self.zero,
            **ends,
        }
        return {"scaling": scaling, "unit": self.unit, **ends}


def metaculus_question_body(question: SampleMetaculusQuestion) -> dict[str, Any]:
    """A question as sent."""
    history = [
        {"start_time": aggregate.since, "end_time": None, "centers": list(aggregate.centers), "forecaster_count": 40}
        for aggregate in question.history
    ]
    values = question.centers or question.values
    latest = {
        "start_time": 1.0,
        "end_time": None,
        "forecaster_count": 40,
        "centers": None if question.centers is None else list(question.centers),
        "forecast_values": None if question.values is None else list(question.values),
    }
    aggregation = {"history": history, "latest": latest if values else None, "score_data": {}, "movement": None}
    nothing = dict.fromkeys(("range_min", "range_max", "nominal_min", "nominal_max", "zero_point"))
    unbounded = dict.fromkeys(("open_lower_bound", "open_upper_bound", "inbound_outcome_count"))
    scale = {"scaling": nothing | unbounded, "unit": "", **unbounded}
    return {
        "id": question.id,
        "group_variable": "",
        "title": question.title,
        "label": question.label,
        "type": question.kind,
        "status": question.status,
        "description": "What is known so far.",
        "resolution_criteria": "Resolves as reported.",
        "fine_print": "",
        "options": None if question.options is None else list(question.options),
        "all_options_ever": None if question.ever is None else list(question.ever),
        "open_time": question.opens,
        "cp_reveal_time": question.revealed,
        "scheduled_close_time": question.closes,
        "scheduled_resolve_time": question.resolves,
        # The site fills in the scheduled time while a question is open.
        "actual_close_time": question.closes,
        "actual_resolve_time": question.resolved,
        "resolution": question.resolution,
        "default_aggregation_method": question.method,
        "aggregations": {question.method: aggregation} if question.visible else None,
        "my_forecasts": {"history": [], "latest": None, "score_data": {}},
        "question_weight": 1.0,
        **(scale if question.scale is None else question.scale.fields(question.kind)),
    }


def metaculus_post_body(
    id: int,
    title: str,
    *questions_asked: SampleMetaculusQuestion,
    category: str = "Politics",
    people: int = 40,
    tournament: str = "",
) -> dict[str, Any]:
    """A post as sent: with one question, or a group of several.

    A post that names no tournament by its slug is in all of them.
    """
    project: dict[str, Any] = {"id": 32627, "type": "tournament", "name": tournament or "Cup"}
    project |= {"slug": tournament} if tournament else {}
    body: dict[str, Any] = {
        "id": id,
        "title": title,
        "status": questions_asked[0].status if questions_asked else "open",
        "nr_forecasters": people,
        "resolved": bool(questions_asked) and questions_asked[0].resolution is not None,
        "actual_close_time": None,
        "projects": {
            "category": [
                {
                    "id": 3689,
                    "name": category,
                    "slug": category.lower(),
                    "description": category,
                    "type": "category",
                }
            ],
            "tournament": [project],
            "default_project": {"slug": None, **project, "default_permission": "forecaster"},
        },
    }
    if not questions_asked:
        return body | {"question": None}
    if len(questions_asked) == 1 and not questions_asked[0].label:
        return body | {"question": metaculus_question_body(questions_asked[0]) | {"post_id": id}}
    questions = [metaculus_question_body(question) | {"post_id": id} for question in questions_asked]
    group = {"id": id, "questions": questions, "resolution_criteria": "Each as reported."}
    return body | {"group_of_questions": {**group, "description": "", "fine_print": "", "group_variable": ""}}


def metaculus_conditional_body(
    id: int, condition: str, child: str, if_yes: SampleMetaculusQuestion, if_no: SampleMetaculusQuestion
) -> dict[str, Any]:
    """A post as sent that asks about the child twice: once for each outcome of the condition."""
    made_of = (
        metaculus_question_body(SampleMetaculusQuestion(id=if_yes.id + n, title=title)) | {"post_id": id + n}
        for n, title in ((1000, condition), (2000, child))
    )
    pair = dict(zip(("condition", "condition_child"), made_of, strict=True))
    pair |= {"question_yes": metaculus_question_body(if_yes), "question_no": metaculus_question_body(if_no)}
    for name in ("question_yes", "question_no"):
        # Their rules are in the child.
        pair[name] |= {"description": "", "resolution_criteria": "", "post_id": id}
    body = metaculus_post_body(id, f"{condition} → {child}") | {
        "status": if_yes.status,
        "conditional": {"id": id, **pair},
    }
    del body["question"]
    return body


@dataclass(frozen=True, kw_only=True)
class SamplePolymarketMarket:
    """A market with two outcomes; prices are those of the first."""

    condition: str
    question: str
    label: str = ""
    outcomes: tuple[str, ...] = ("Yes", "No")
    bid: float | None = None
    ask: float | None = None
    last: float | None = None
    prices: tuple[str, str] | None = ("0.5", "0.5")
    volume: float = 0.0
    closed: bool = False
    active: bool = True
    accepting: bool = True
    stage: str | None = None
    """The state of its resolution."""
    closed_at: str | None = None
    ends: str | None = "2027-01-01T00:00:00Z"
    tokens: tuple[str, ...] | None = None
    """Ids of the outcomes; None derives them from the condition."""
    book: bool = True
    """False for a market from before the order book."""
    kind: str = ""
    """`scalar` for an old market whose payout depended on a number."""
    archived: bool = False
    other: bool = False
    """Whether it represents all names that have no market yet."""
    rules: str = "This market resolves to yes if it happens."


@dataclass(frozen=True, kw_only=True)
class SamplePolymarketEvent:
    """An event with its markets."""

    id: str
    title: str
    markets: tuple[SamplePolymarketMarket, ...]
    negative_risk: bool | None = False
    augmented: bool = False
    series: str | None = None
    tags: tuple[str, ...] = ()
    figures: Mapping[str, float] | None = None
    """Such as volume, volume24hr, liquidity and openInterest."""


def polymarket_tokens(condition: str) -> tuple[str, str]:
    """The ids of both outcomes of a market: long whole numbers, as the order book has them."""
    first, second = (int.from_bytes(sha256(f"{condition}{side}".encode()).digest()) for side in (1, 2))
    return str(first), str(second)


def polymarket_event_body(group: SamplePolymarketEvent) -> dict[str, Any]:
    """An event as sent."""
    body: dict[str, Any] = {
        "id": group.id,
        "slug": f"event-{group.id}",
        "title": group.title,
        "description": "",
        "startDate": "2026-01-01T00:00:00Z",
        "endDate": "2027-01-01T00:00:00Z",
        "active": True,
        "closed": all(market.closed for market in group.markets),
        "archived": False,
        "tags": [{"id": str(n), "label": tag, "slug": tag.lower()} for n, tag in enumerate(group.tags)],
        "negRiskAugmented": group.augmented,
        "markets": [polymarket_market_body(market, group.negative_risk) for market in group.markets],
        **(group.figures or {}),
    }
    body |= {"negRisk": group.negative_risk} if group.negative_risk is not None else {}
    return body | ({"seriesSlug": group.series, "series": [{"slug": group.series}]} if group.series else {})


def polymarket_market_body(market: SamplePolymarketMarket, negative_risk: bool | None = None) -> dict[str, Any]:
    """A market as sent, with lists as JSON inside texts."""
    body: dict[str, Any] = {
        "id": market.condition[-4:],
        "conditionId": market.condition,
        "slug": f"market-{market.condition[-6:]}",
        "question": market.question,
        "groupItemTitle": market.label,
        "description": market.rules,
        "outcomes": json.dumps(list(market.outcomes)),
        "clobTokenIds": json.dumps(market.tokens or polymarket_tokens(market.condition)),
        "startDate": "2026-01-01T00:00:00Z",
        "active": market.active,
        "closed": market.closed,
        "archived": market.archived,
        "acceptingOrders": market.accepting,
        "negRiskOther": market.other,
        "volume": str(market.volume),
        "volumeNum": market.volume,
        "outcomePrices": None if market.prices is None else json.dumps(list(market.prices)),
        "bestBid": market.bid,
        "bestAsk": market.ask,
        "lastTradePrice": market.last,
    }
    optional = {
        "endDate": market.ends,
        "umaResolutionStatus": market.stage,
        "closedTime": market.closed_at,
        "enableOrderBook": market.book or None,
        "marketType": market.kind or None,
    }
    body |= {name: value for name, value in optional.items() if value is not None}
    return body | ({"negRisk": negative_risk} if negative_risk is not None else {})


def prophet_arena_body(slug: str, title: str, outcomes: Mapping[str, str | None], **more: Any) -> dict[str, Any]:
    """Return an event as sent; `outcomes` maps names to outcomes, None while open."""
    body: dict[str, Any] = {
        "slug": slug,
        "title": title,
        "category": "Politics",
        "criteria": "As reported.",
        "mutually_exclusive": True,
        "close_at": "2027-01-01T00:00:00Z",
        "state": "open",
        "outcomes": [{"name": name, "resolution": result or "pending"} for name, result in outcomes.items()],
        "crowd": {},
        "resolved_at": None,
    }
    return body | more


def weekly_release_body(
    week: str, closes_at: str, *events: Mapping[str, Any], status: str = "published"
) -> dict[str, Any]:
    """A release of the weekly track as sent; events as made by `weekly_event_body`."""
    return {
        "week": week,
        "opens_at": f"{week}T04:00:00Z",
        "closes_at": closes_at,
        "results_at": closes_at,
        "status": status,
        "event_count": len(events),
        "events": [dict(event) for event in events],
        "participation": {},
        "standings": [],
        "standings_partial": False,
    }


def weekly_event_body(slug: str, ticker: str, title: str, rules: Mapping[str, str], **more: Any) -> dict[str, Any]:
    """Return a question of a release as sent; `rules` maps the names of outcomes to their rules."""
    body: dict[str, Any] = {
        "event": slug,
        "ticker": ticker,
        "title": title,
        "category": "Economics",
        "source": "kalshi",
        "close_at": "2027-01-01T00:00:00Z",
        "window": 1,
        "outcomes": [{"name": name, "criteria": rule, "resolution": "pending"} for name, rule in rules.items()],
    }
    return body | more
