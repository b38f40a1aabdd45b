"""How Metaculus questions came out."""

from typing import Any

import pytest

from fakes.faults import FieldDrift, MarketFaults, busy, failing
from fakes.markets import FakeMetaculus
from foretell.data.http import SourceError
from foretell.data.markets.metaculus import MetaculusClient
from foretell.data.settlements.metaculus import MetaculusSettlements
from foretell.practice.markets.metaculus import MetaculusCatalogue, SampleMetaculusQuestion, metaculus_post_body
from foretell.questions.as_of import instant

TOKEN = "canary-token-79"
OVER: dict[str, Any] = {"status": "resolved", "resolved": "2026-12-11T00:00:00Z"}


def make(http: Any, url: str, tell: Any) -> MetaculusSettlements:
    client = MetaculusClient(http=http, token=TOKEN, host=f"{url}/api", per_second=1e4, retry_seconds=0.0)
    return MetaculusSettlements(client, tell=tell)


def server(*posts: Any, trouble: MarketFaults | None = None, **options: Any) -> Any:
    return FakeMetaculus({}, token=TOKEN, **options).having(MetaculusCatalogue(posts), trouble).server()


def binary(id: int, resolution: str | None, **fields: Any) -> dict[str, Any]:
    return metaculus_post_body(
        id, "?", SampleMetaculusQuestion(id=id * 10, title="?", resolution=resolution, **{**OVER, **fields})
    )


@pytest.mark.parametrize("takes_ids", [True, False])
def test_yes_or_no_and_neither(settled: Any, asked: Any, takes_ids: bool) -> None:
    posts = [
        binary(1, "yes"),
        binary(2, "no"),
        binary(3, "ambiguous"),
        binary(4, "annulled"),
        binary(5, None, status="closed"),
        binary(6, None, status="open"),
        binary(7, None),
        binary(8, "42", kind="numeric"),
        binary(9, "perhaps"),
    ]
    questions = [asked(f"metaculus/{n}") for n in [*range(1, 10), 77]]
    settled(server(*posts, takes_ids=takes_ids), make, questions)
    assert {one.question_id: (one.outcome, one.payoff) for one in settled.found} == {
        "metaculus/1": (1, None),
        "metaculus/2": (0, None),
        "metaculus/3": (None, None),
        "metaculus/4": (None, None),
    }
    assert {one.resolved_at for one in settled.found} == {instant("2026-12-11")}
    assert settled.reasons == {
        "7": "its resolution is not shown to this account",
        "8": "a question of type numeric has no yes-or-no targets",
        "9": "metaculus market 9: field results[8].question.resolution is not yes, no, ambiguous or annulled",
        "77": "the platform knows no such market",
    }
    # One list, and the post it does not know by itself.
    assert [request.path for request in settled.server.requests] == ["/api/posts/", "/api/posts/77/"]
    assert settled.server.requests[0].target.count("ids=") == 10


def test_choices_and_groups(settled: Any, asked: Any) -> None:
    chosen = SampleMetaculusQuestion(
        id=5,
        title="?",
        kind="multiple_choice",
        options=("Ann", "Bob"),
        ever=("Ann", "Cat", "Bob"),
        resolution="Bob",
        **OVER,
    )
    found = settled(
        server(metaculus_post_body(1, "?", chosen)), make, [asked("metaculus/1", "Ann", "Bob", "Cat", "Zoe")]
    )
    assert {label: one.outcome for label, one in found.items()} == {"Ann": 0, "Bob": 1, "Cat": 0}
    assert settled.reasons == {"1#Zoe": "the question has no option 'Zoe'"}
    group = metaculus_post_body(
        2,
        "?",
        SampleMetaculusQuestion(id=21, title="?", label="a", resolution="yes", **OVER),
        SampleMetaculusQuestion(id=22, title="?", label="b"),
    )
    found = settled(server(group), make, [asked("metaculus/2", "21", "22", "99")])
    assert {label: one.outcome for label, one in found.items()} == {"21": 1}
    assert settled.reasons == {"2#99": "the post holds no question 99"}
    assert settled(server(group), make, [asked("metaculus/2")]) == {}
    assert settled.reasons == {"2": "the post holds no question of its own"}


def test_refusals_drift_and_outages(settled: Any, asked: Any) -> None:
    questions = [asked("metaculus/1"), asked("metaculus/2")]
    found = settled(server(binary(1, "yes"), forbidden=frozenset({"2"})), make, questions)
    assert found["yes"].provenance == "https://www.metaculus.com/questions/1/"
    assert settled.reasons == {"2": "this account may not read the post"}
    trouble = MarketFaults(drifts=(FieldDrift(path="results.0.question.status", change="rename"),))
    assert settled(server(binary(1, "yes"), trouble=trouble), make, questions[:1]) == {}
    assert "question.status is missing" in settled.reasons["1"]
    with pytest.raises(SourceError, match="results is missing"):
        settled(server(trouble=MarketFaults(drifts=(FieldDrift(path="results"),))), make, questions)
    assert settled(server(binary(1, "no")), make, questions[:1], faults=[busy(), failing(403)])["yes"].outcome == 0
    with pytest.raises(SourceError, match="401"):
        settled(FakeMetaculus({}, token="other").server(), make, questions)
