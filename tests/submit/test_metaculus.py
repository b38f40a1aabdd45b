"""Forecasts for Metaculus: planned, refused and sent, over sockets."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foretell.data import SourceError
from foretell.questions import AsOf, Numeric, Question, Target
from foretell.submit import SubmissionPlan

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


def test_every_type_in_its_own_shape(metaculus: Any, said: Any):
    moments = Numeric(x=(1.80e9, 1.85e9), cdf=(0.1, 0.9))
    found = planned(
        metaculus,
        [
            said("metaculus/101", 0.63),
            said("metaculus/102", {"Ann": 0.7, "Bob": 0.3}),
            said("metaculus/103", {}, distribution=NUMERIC),
            said("metaculus/104", {"50": 0.2, "51": 0.4}),
            said("metaculus/107", {}, distribution=moments),
            said("metaculus/108", {}, distribution=Numeric(x=(0, 9), cdf=(0.05, 0.95))),
        ],
    )
    one, two, three, four, five, seven, eight = contents(found)
    assert one == {"question": 1, "probability_yes": 0.63}
    assert two == {"question": 2, "probability_yes_per_category": {"Ann": 0.7, "Bob": 0.3}}
    assert three["question"] == 3
    assert len(three["continuous_cdf"]) == 201
    assert three["continuous_cdf"][80] == pytest.approx(0.5)
    assert (four, five) == ({"question": 50, "probability_yes": 0.2}, {"question": 51, "probability_yes": 0.4})
    assert (len(seven["continuous_cdf"]), len(eight["continuous_cdf"])) == (201, 12)
    assert [item.question for item in found.items[3:5]] == ["metaculus/104#50", "metaculus/104#51"]
    assert (found.platform, found.account) == ("metaculus", "practice-bot")
    assert metaculus.posted == []


def test_one_part_of_a_group_by_its_number(metaculus: Any, said: Any):
    assert contents(planned(metaculus, [said("metaculus/104#52", 0.9)])) == [{"question": 52, "probability_yes": 0.9}]


def test_a_question_that_does_not_name_its_post_is_named(metaculus: Any, said: Any):
    found = planned(metaculus, [said("asked/abc")], named={"asked/abc": "101"})
    assert contents(found) == [{"question": 1, "probability_yes": 0.63}]


def test_a_question_known_by_its_address(metaculus: Any, said: Any):
    from foretell.submit import MetaculusOptions, post_of

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
    assert post_of(said("own"), own, MetaculusOptions()) == ("101", None)
    assert post_of(said("own"), part, MetaculusOptions()) == ("104", "51")
    assert post_of(said("own"), None, MetaculusOptions()) is None
    assert post_of(said("metaculus:101"), None, MetaculusOptions()) == ("101", None)


@pytest.mark.parametrize(
    ("question", "forecast", "told"),
    [
        ("metaculus/105", {}, "takes no forecasts: its status is closed"),
        ("metaculus/106", {}, "takes no forecasts: it is not open yet"),
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
        ("metaculus/108", {"distribution": Numeric(x=(50, 60), cdf=(0, 1))}, "100% of the distribution lies outside"),
        ("metaculus/104", {"p": {"yes": 0.5}}, "holds 3 questions (50, 51, 52), and 'yes' is none of them"),
        ("metaculus/104#9", {}, "the post has no question 9"),
        ("metaculus/404", {}, "no post 404 (status 404)"),
        ("metaculus/999", {}, "no post 999 (status 403)"),
        ("kalshi/KXFED", {}, "it is not a question of Metaculus"),
        ("metaculus/101", {"as_of": AsOf.day("2026-10-01")}, "in a backtest, not live"),
    ],
)
def test_what_is_refused_and_why(metaculus: Any, said: Any, question: str, forecast: dict[str, Any], told: str):
    assert told in problem(planned(metaculus, [said(question, **forecast)]))


def test_a_question_without_a_forecast_is_named(metaculus: Any, said: Any):
    asked = Question(id="metaculus/102", source="metaculus", text="Who?", due=NOW, targets=(Target(id="Ann"),))
    found = planned(metaculus, [said("metaculus/101")], (asked,))
    assert [(item.question, item.problems) for item in found.refused] == [("metaculus/102", ("it has no forecast",))]


def test_clipping_on_demand_is_told(metaculus: Any, said: Any):
    forecasts = [said("metaculus/101", 1.0), said("metaculus/102", {"Ann": 1.0, "Bob": 0.0})]
    found = planned(metaculus, forecasts, clip=True)
    one, two = contents(found)
    assert one["probability_yes"] == 0.999
    assert two["probability_yes_per_category"] == {"Ann": 0.999, "Bob": 0.001}
    assert found.items[0].notes == ("1 is outside 0.001 to 0.999, clipped it would be 0.999",)


def test_words_about_age_and_range(metaculus: Any, said: Any):
    old = AsOf(at=NOW - timedelta(days=12), mode="live")
    wide = Numeric(x=(-10, 90), cdf=(0, 1))
    found = planned(metaculus, [said("metaculus/101", as_of=old), said("metaculus/103", {}, distribution=wide)])
    assert found.items[0].notes == ("it was made 12 days ago",)
    assert found.items[1].notes == ("10% of the distribution lies outside the closed range 0 to 100 and was dropped",)


def test_only_the_newest_forecast_of_a_question(metaculus: Any, said: Any):
    earlier = said("metaculus/101", 0.1, as_of=AsOf(at=NOW - timedelta(hours=1), mode="live"))
    assert [c["probability_yes"] for c in contents(planned(metaculus, [said("metaculus/101", 0.2), earlier]))] == [0.2]


@pytest.mark.parametrize("who", ["private", "public"])
def test_comments(metaculus: Any, said: Any, who: str):
    found = planned(metaculus, [said("metaculus/101"), said("metaculus/104", {"50": 0.5, "51": 0.5})], comment=who)
    alone, group = (item.content for item in found.items if item.part == "comment")
    assert alone == {"on_post": 101, "text": "Because.", "is_private": who == "private", "included_forecast": True}
    assert (group["on_post"], group["included_forecast"]) == (104, False)


def test_a_comment_needs_reasons_and_a_forecast(metaculus: Any, said: Any):
    found = planned(metaculus, [said("metaculus/101", rationale=" "), said("metaculus/105")], comment="private")
    assert [item.problems for item in found.items if item.part == "comment"] == [
        ("the forecast gives no reasons",),
        ("its forecast is not sent",),
    ]
    assert [item.question for item in found.ready] == ["metaculus/101"]


def test_the_requests_are_those_that_are_sent(metaculus: Any, said: Any):
    forecasts = [said("metaculus/101"), said("metaculus/102", {"Ann": 0.7, "Bob": 0.3})]

    async def use(submitter: Any) -> Any:
        items = submitter.plan(forecasts, ()).ready
        shown = submitter.requests(items)
        outcomes = await submitter.send([item for item in items if item.part == "forecast"])
        outcomes += await submitter.send([item for item in items if item.part == "comment"])
        return shown, outcomes, await submitter.stands(items)

    shown, outcomes, stands = metaculus.with_submitter(forecasts, use, comment="private")
    assert [outcome.fate for outcome in outcomes] == ["sent"] * 4
    assert stands == [True] * 4
    base = metaculus.server.url
    assert [(request.address.removeprefix(base), request.body) for request in shown] == metaculus.posted
    assert [path for path, _ in metaculus.posted] == [
        "/api/questions/forecast/",
        "/api/comments/create/",
        "/api/comments/create/",
    ]
    assert {request.headers["authorization"] for request in metaculus.server.requests} == {"Token canary-token-0815"}


def test_what_stands_already_is_known(metaculus: Any, said: Any):
    numeric = said("metaculus/103", {}, distribution=NUMERIC)
    forecasts = [said("metaculus/101"), said("metaculus/102", {"Ann": 0.7, "Bob": 0.3}), numeric]

    async def send(submitter: Any) -> Any:
        items = submitter.plan(forecasts, ()).ready
        assert [item.standing for item in items] == [False] * 3
        return await submitter.send(items)

    metaculus.with_submitter(forecasts, send)
    again = planned(metaculus, [*forecasts[1:], said("metaculus/101", 0.64)])
    assert {item.question: item.standing for item in again.items} == {
        "metaculus/101": False,
        "metaculus/102": True,
        "metaculus/103": True,
    }


def test_one_bad_forecast_in_a_list_does_not_hold_up_the_others(metaculus: Any, said: Any):
    forecasts = [said("metaculus/101"), said("metaculus/102", {"Ann": 0.7, "Bob": 0.3})]

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


def test_a_wrong_token_is_told_and_not_shown(metaculus: Any):
    with pytest.raises(SourceError) as caught:
        metaculus.with_writer(lambda writer: writer.account(), token="canary-wrong-1")
    assert caught.value.status == 401
    assert "canary-wrong-1" not in f"{caught.value}{caught.value!r}"
