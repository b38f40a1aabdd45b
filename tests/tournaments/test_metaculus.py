"""Forecasts for Metaculus: planned, refused and sent, over sockets."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foretell.data.http import SourceError
from foretell.questions.as_of import AsOf
from foretell.questions.forecast import Numeric
from foretell.questions.question import Question, Target
from foretell.tournaments.submission import SubmissionPlan

NUMERIC = Numeric.from_quantiles({0.1: 20.0, 0.5: 40.0, 0.9: 70.0})
NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


def planned(
    metaculus: Any, forecasts: list[Any], questions: tuple[Question, ...] = (), **changed: Any
) -> SubmissionPlan:
    async def plan(submitter: Any) -> SubmissionPlan:
        first, second = (submitter.plan(forecasts, questions) for _ in range(2))
        assert first == second
        return first

    return metaculus.with_submitter(forecasts, plan, **changed)


def contents(submission: SubmissionPlan) -> list[dict[str, Any]]:
    assert submission.refused == ()
    return [dict(item.content) for item in submission.items]


def problem(submission: SubmissionPlan) -> str:
    (item,) = submission.items
    assert submission.ready == ()
    return "; ".join(item.problems)


def test_each_type_of_question_has_its_own_body(metaculus: Any, make_forecast: Any):
    dates = Numeric(x=(1.80e9, 1.85e9), cdf=(0.1, 0.9))
    plan = planned(
        metaculus,
        [
            make_forecast("metaculus/101", 0.63),
            make_forecast("metaculus/102", {"Ann": 0.7, "Bob": 0.3}),
            make_forecast("metaculus/103", {}, distribution=NUMERIC),
            make_forecast("metaculus/104", {"50": 0.2, "51": 0.4}),
            make_forecast("metaculus/107", {}, distribution=dates),
            make_forecast("metaculus/108", {}, distribution=Numeric(x=(0, 9), cdf=(0.05, 0.95))),
        ],
    )
    first, second, third, fourth, fifth, seventh, eighth = contents(plan)
    assert first == {"question": 1, "probability_yes": 0.63}
    assert second == {"question": 2, "probability_yes_per_category": {"Ann": 0.7, "Bob": 0.3}}
    assert third["question"] == 3
    assert len(third["continuous_cdf"]) == 201
    assert third["continuous_cdf"][80] == pytest.approx(0.5)
    assert (fourth, fifth) == ({"question": 50, "probability_yes": 0.2}, {"question": 51, "probability_yes": 0.4})
    assert (len(seventh["continuous_cdf"]), len(eighth["continuous_cdf"])) == (201, 12)
    assert [item.question for item in plan.items[3:5]] == ["metaculus/104#50", "metaculus/104#51"]
    assert (plan.platform, plan.account) == ("metaculus", "practice-bot")
    assert metaculus.posted == []


def test_part_of_a_group_is_found_by_its_number(metaculus: Any, make_forecast: Any):
    assert contents(planned(metaculus, [make_forecast("metaculus/104#52", 0.9)])) == [
        {"question": 52, "probability_yes": 0.9}
    ]


def test_post_can_be_given_for_a_question(metaculus: Any, make_forecast: Any):
    plan = planned(metaculus, [make_forecast("asked/abc")], named={"asked/abc": "101"})
    assert contents(plan) == [{"question": 1, "probability_yes": 0.63}]


def test_post_is_found_by_the_address_of_a_question(metaculus: Any, make_forecast: Any):
    from foretell.tournaments.metaculus import MetaculusOptions, post_of

    own = Question(
        id="own",
        source="own",
        text="?",
        due=NOW,
        targets=(Target(id="yes"),),
        url="https://www.metaculus.com/questions/101/x/",
    )
    part = Question(
        id="own",
        source="own",
        text="?",
        due=NOW,
        targets=(Target(id="yes"),),
        url="https://www.metaculus.com/questions/104/?sub-question=51",
    )
    assert post_of(make_forecast("own"), own, MetaculusOptions()) == ("101", None)
    assert post_of(make_forecast("own"), part, MetaculusOptions()) == ("104", "51")
    assert post_of(make_forecast("own"), None, MetaculusOptions()) is None
    assert post_of(make_forecast("metaculus:101"), None, MetaculusOptions()) == ("101", None)


@pytest.mark.parametrize(
    ("question", "forecast", "message"),
    [
        ("metaculus/105", {}, "accepts no forecasts: its status is closed"),
        ("metaculus/106", {}, "accepts no forecasts: it is not open yet"),
        ("metaculus/101", {"p": 0.0}, "0 is outside 0.001 to 0.999, clipped it would be 0.001"),
        ("metaculus/101", {"p": {"a": 0.5, "b": 0.5}}, "needs one probability, not 2"),
        (
            "metaculus/102",
            {"p": {"Ann": 0.7, "Cat": 0.3}},
            "'Cat' is not an option; the option 'Bob' has",
        ),
        ("metaculus/102", {"p": {"Ann": 0.7, "Bob": 0.7}}, "the options sum to 1.4"),
        ("metaculus/102", {"p": {"Ann": 1.0, "Bob": 0.0}}, "Bob: 0 is outside"),
        ("metaculus/103", {"p": 0.5}, "needs a distribution"),
        ("metaculus/108", {"distribution": Numeric(x=(50, 60), cdf=(0, 1))}, "100 % of the distribution lies outside"),
        ("metaculus/104", {"p": {"yes": 0.5}}, "has 3 questions (50, 51, 52), and 'yes' is not one of them"),
        ("metaculus/104#9", {}, "the post has no question 9"),
        ("metaculus/404", {}, "no post 404 (status 404)"),
        ("metaculus/999", {}, "no post 999 (status 403)"),
        ("kalshi/KXFED", {}, "it is not a question of Metaculus"),
        ("metaculus/101", {"as_of": AsOf.day("2026-10-01")}, "in a backtest, not live"),
    ],
)
def test_refused_forecasts_have_their_reason(
    metaculus: Any, make_forecast: Any, question: str, forecast: dict[str, Any], message: str
):
    assert message in problem(planned(metaculus, [make_forecast(question, **forecast)]))


def test_question_without_a_forecast_is_named(metaculus: Any, make_forecast: Any):
    question = Question(id="metaculus/102", source="metaculus", text="Who?", due=NOW, targets=(Target(id="Ann"),))
    plan = planned(metaculus, [make_forecast("metaculus/101")], (question,))
    assert [(item.question, item.problems) for item in plan.refused] == [("metaculus/102", ("it has no forecast",))]


def test_clipping_is_noted(metaculus: Any, make_forecast: Any):
    forecasts = [make_forecast("metaculus/101", 1.0), make_forecast("metaculus/102", {"Ann": 1.0, "Bob": 0.0})]
    plan = planned(metaculus, forecasts, clip=True)
    first, second = contents(plan)
    assert first["probability_yes"] == 0.999
    assert second["probability_yes_per_category"] == {"Ann": 0.999, "Bob": 0.001}
    assert plan.items[0].notes == ("1 is outside 0.001 to 0.999, clipped it would be 0.999",)


def test_notes_on_age_and_range(metaculus: Any, make_forecast: Any):
    old = AsOf(at=NOW - timedelta(days=12), mode="live")
    wide = Numeric(x=(-10, 90), cdf=(0, 1))
    plan = planned(
        metaculus, [make_forecast("metaculus/101", as_of=old), make_forecast("metaculus/103", {}, distribution=wide)]
    )
    assert plan.items[0].notes == ("it was made 12 days ago",)
    assert plan.items[1].notes == ("10 % of the distribution lies outside the closed range 0 to 100 and was dropped",)


def test_only_the_newest_forecast_of_a_question_is_sent(metaculus: Any, make_forecast: Any):
    earlier = make_forecast("metaculus/101", 0.1, as_of=AsOf(at=NOW - timedelta(hours=1), mode="live"))
    assert [
        c["probability_yes"] for c in contents(planned(metaculus, [make_forecast("metaculus/101", 0.2), earlier]))
    ] == [0.2]


@pytest.mark.parametrize("who", ["private", "public"])
def test_comments_are_planned_for_each_post(metaculus: Any, make_forecast: Any, who: str):
    plan = planned(
        metaculus, [make_forecast("metaculus/101"), make_forecast("metaculus/104", {"50": 0.5, "51": 0.5})], comment=who
    )
    alone, group = (item.content for item in plan.items if item.part == "comment")
    assert alone == {"on_post": 101, "text": "Because.", "is_private": who == "private", "included_forecast": True}
    assert (group["on_post"], group["included_forecast"]) == (104, False)


def test_a_comment_needs_reasons_and_a_forecast(metaculus: Any, make_forecast: Any):
    plan = planned(
        metaculus, [make_forecast("metaculus/101", rationale=" "), make_forecast("metaculus/105")], comment="private"
    )
    assert [item.problems for item in plan.items if item.part == "comment"] == [
        ("the forecast gives no reasons",),
        ("its forecast is not sent",),
    ]
    assert [item.question for item in plan.ready] == ["metaculus/101"]


def test_planned_requests_equal_sent_requests(metaculus: Any, make_forecast: Any):
    forecasts = [make_forecast("metaculus/101"), make_forecast("metaculus/102", {"Ann": 0.7, "Bob": 0.3})]

    async def use(submitter: Any) -> Any:
        items = submitter.plan(forecasts, ()).ready
        shown = submitter.requests(items)
        outcomes = await submitter.send([item for item in items if item.part == "forecast"])
        outcomes += await submitter.send([item for item in items if item.part == "comment"])
        return shown, outcomes, await submitter.stands(items)

    shown, outcomes, is_there = metaculus.with_submitter(forecasts, use, comment="private")
    assert [outcome.fate for outcome in outcomes] == ["sent"] * 4
    assert is_there == [True] * 4
    base = metaculus.server.url
    assert [(request.address.removeprefix(base), request.body) for request in shown] == metaculus.posted
    assert [path for path, _ in metaculus.posted] == [
        "/api/questions/forecast/",
        "/api/comments/create/",
        "/api/comments/create/",
    ]
    assert {request.headers["authorization"] for request in metaculus.server.requests} == {"Token canary-token-0815"}


def test_current_forecasts_are_recognised(metaculus: Any, make_forecast: Any):
    numeric = make_forecast("metaculus/103", {}, distribution=NUMERIC)
    forecasts = [make_forecast("metaculus/101"), make_forecast("metaculus/102", {"Ann": 0.7, "Bob": 0.3}), numeric]

    async def send(submitter: Any) -> Any:
        items = submitter.plan(forecasts, ()).ready
        assert [item.standing for item in items] == [False] * 3
        return await submitter.send(items)

    metaculus.with_submitter(forecasts, send)
    again = planned(metaculus, [*forecasts[1:], make_forecast("metaculus/101", 0.64)])
    assert {item.question: item.standing for item in again.items} == {
        "metaculus/101": False,
        "metaculus/102": True,
        "metaculus/103": True,
    }


def test_refused_forecast_does_not_block_the_others(metaculus: Any, make_forecast: Any):
    forecasts = [make_forecast("metaculus/101"), make_forecast("metaculus/102", {"Ann": 0.7, "Bob": 0.3})]

    async def use(submitter: Any) -> Any:
        items = submitter.plan(forecasts, ()).ready
        # Closed between looking and sending.
        metaculus.fake.catalogue.posts[1]["question"]["scheduled_close_time"] = "2026-10-31T00:00:00Z"
        return await submitter.send(items)

    outcomes = metaculus.with_submitter(forecasts, use)
    assert [outcome.fate for outcome in outcomes] == ["sent", "refused"]
    assert "already closed" in outcomes[1].reason
    assert [forecast["question"] for forecast in metaculus.inbox.forecasts] == [1]
    assert len(metaculus.posted) == 3


def test_wrong_token_is_reported_and_not_shown(metaculus: Any):
    with pytest.raises(SourceError) as caught:
        metaculus.with_writer(lambda writer: writer.account(), token="canary-wrong-1")
    assert caught.value.status == 401
    assert "canary-wrong-1" not in f"{caught.value}{caught.value!r}"
