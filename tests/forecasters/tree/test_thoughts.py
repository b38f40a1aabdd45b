"""Chain, tree, graph and forest of thoughts: requests, conclusions and failures."""

import asyncio
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forecasters.tree.scripted_tree import FixedGrounder, TreeSetup, cannot_ground, playing, question

from foretell.forecasters.combine.aggregate import logit_mean
from foretell.forecasters.combine.clamp import Clamp
from foretell.forecasters.forecaster import CannotForecast, Context, attempt
from foretell.forecasters.tree.grounders.search import SearchGrounder
from foretell.forecasters.tree.grow.ground import CannotGround, GroundingResult, Leaf
from foretell.forecasters.tree.proposition import Grounding
from foretell.forecasters.tree.settings import THOUGHT_KINDS, ThoughtKind, ThoughtSettings
from foretell.forecasters.tree.thoughts import ThoughtsForecaster
from foretell.models.canonical import request_key
from foretell.models.model import BudgetExceeded, ModelError, Reply, Request
from foretell.models.providers.scripted import ScriptedModel
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Target
from foretell.questions.trace import Failed, ForecastMade, ModelCalled, NodeGrounded, ToolUsed, TraceEvent

TOWNS = ("Aberdeen", "Bergen", "Cuxhaven", "Dunkirk", "Esbjerg", "Fife", "Gdynia", "Hamburg", "Ipswich", "Jakobstad")
Override = Callable[[Request], Any]


@dataclass
class Mind:
    """Plays analyzer and grounder: proposals are new, later ones are rated higher, conclusions are 0.8."""

    override: Override = lambda request: None
    proposed: int = 0
    requests: list[str] = field(default_factory=list)

    def __call__(self, request: Request) -> Any:
        override = self.override(request)
        if override is not None:
            return override
        fields = (request.schema or {}).get("properties", {})
        words = "\n".join(message.text for message in request.messages)
        if "thoughts" in fields:
            self.requests.append("propose")
            return json.dumps({"thoughts": [self._thought(request) for _ in range(_count(words))], "enough": False})
        if "lines" in fields:
            self.requests.append("rate")
            ids = re.findall(r"^# Line (\S+)$", words, re.MULTILINE)
            return json.dumps({"lines": [{"id": id, "reason": "r", "value": _value(id)} for id in ids]})
        if set(fields) == {"claim", "why"}:
            self.requests.append("merge")
            return json.dumps(self._thought(request))
        if set(fields) == {"report", "key_factor", "p"}:
            self.requests.append("conclude")
            return json.dumps({"report": "Weighed.", "key_factor": "The weather.", "p": 0.8})
        return None

    def _thought(self, request: Request) -> dict[str, str]:
        self.proposed += 1
        # Equal requests get equal claims, in whatever order they arrive.
        town = TOWNS[int(request_key(request), 16) % len(TOWNS)]
        number = 10**8 * self.proposed + int(request_key(request)[:6], 16)
        return {"claim": f"Ferry number {number} of {town} sails on 1 May 2026.", "why": "It matters."}


def _fields(request: Request) -> set[str]:
    return set((request.schema or {}).get("properties", {}))


def _count(words: str) -> int:
    match = re.search(r"Name (\w+) (?:different )?step", words)
    return 1 if match is None or match[1] == "one" else int(match[1])


def _value(id: str) -> float:
    return sum(int(part) / 10**n for n, part in enumerate(id.removeprefix("T").split("."))) / 100


@dataclass
class RecordingGrounder:
    """A grounder that records its leaves."""

    p: float = 0.3
    fail: Callable[[Leaf], bool] = lambda leaf: False
    leaves: list[Leaf] = field(default_factory=list)
    name: str = "notes"

    async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
        self.leaves.append(leaf)
        await asyncio.sleep(0)
        if self.fail(leaf):
            raise CannotGround("no luck")
        return GroundingResult(p=self.p, grounding=Grounding(grounder=self.name, report="Seen.", key_factor="Tides."))


def run(
    kind: ThoughtKind, mind: Mind | None = None, notes: RecordingGrounder | None = None, **fields: Any
) -> tuple[Any, Mind, TreeSetup]:
    mind, setup = mind or Mind(), TreeSetup(**fields.pop("setup", {}))
    setup.model = ScriptedModel(mind)
    thought_settings = ThoughtSettings(kind=kind, retries=0, **fields)
    forecaster = ThoughtsForecaster(grounder=notes or RecordingGrounder(), settings=thought_settings)
    return asyncio.run(attempt(forecaster, setup.question, setup.context)), mind, setup


@pytest.mark.parametrize(
    ("kind", "grounded", "requested"),
    [
        ("chain", 3, {"propose": 3, "conclude": 1}),
        ("tree", 15, {"propose": 5, "rate": 3, "conclude": 1}),
        ("graph", 5, {"propose": 1, "rate": 2, "merge": 2, "conclude": 1}),
        ("forest", 45, {"propose": 15, "rate": 9, "conclude": 3}),
    ],
)
def test_each_kind_grounds_the_expected_number_of_thoughts(kind: ThoughtKind, grounded: int, requested: dict[str, int]):
    notes = RecordingGrounder()
    answer, mind, setup = run(kind, notes=notes)
    assert isinstance(answer, Forecast)
    assert answer.p == {"yes": pytest.approx(0.8)}
    assert answer.forecaster == f"{kind} of thoughts notes"
    assert len(notes.leaves) == grounded == ThoughtSettings(kind=kind).max_thoughts
    assert {what: mind.requests.count(what) for what in mind.requests} == requested
    assert len(setup.of(NodeGrounded)) == grounded
    assert answer.usage.calls == len(mind.requests) == len(setup.of(ModelCalled))
    assert len({leaf.slot for leaf in notes.leaves}) == grounded


def test_only_the_roles_analyzer_and_grounder_are_used():
    _, _, setup = run("graph")
    assert {event.role for event in setup.of(ModelCalled)} == {"analyzer", "grounder"}


def test_a_chain_continues_from_earlier_results():
    _, _, setup = run("chain")
    second = setup.requests[1].messages[-1].text
    assert "The line of thought so far" in second
    assert "Probability: 0.300." in second
    assert "Tides." in second
    assert "port authority" in second, "the prompt contains the criteria"
    assert "Today is 2025-10-26" in setup.requests[1].messages[0].text


def test_a_tree_concludes_from_the_best_rated_line():
    answer, _, setup = run("tree", width=2, keep=1, depth=2)
    last = setup.requests[-1].messages[-1].text
    assert re.findall(r"^## (T\S+)", last, re.MULTILINE) == ["T1.1.1.2", "T1.2.1.2"]
    assert "T1.2.1.2 30.0 %" in answer.rationale
    assert "T1.1.1.1" not in answer.rationale


def test_a_graph_merges_the_best_thoughts_and_concludes_from_all():
    notes = RecordingGrounder()
    answer, _, setup = run("graph", notes=notes, width=3, keep=2, depth=2)
    joining = next(request for request in setup.requests if _fields(request) == {"claim", "why"})
    assert re.findall(r"^## (T\S+)", joining.messages[-1].text, re.MULTILINE) == ["T1.1.1.3", "T1.1.1.2"]
    assert len(notes.leaves[-1].surroundings.path) == 3, "the merged thought has its sources as surroundings"
    assert answer.rationale.count("- T") == 4


def test_the_trees_of_a_forest_have_different_standpoints_and_are_averaged():
    probabilities = iter([0.9, 0.5, 0.6])

    def differ(request: Request) -> Any:
        if set((request.schema or {}).get("properties", {})) == {"report", "key_factor", "p"}:
            return json.dumps({"report": "r", "key_factor": "k", "p": next(probabilities)})
        return None

    answer, _, setup = run("forest", Mind(override=differ), depth=1)
    assert answer.p["yes"] == pytest.approx(float(logit_mean([0.9, 0.5, 0.6])))
    starts = {request.messages[0].text for request in setup.requests if "thoughts" in _fields(request)}
    assert len(starts) == 3


def test_a_sufficient_line_is_not_extended():
    def enough(request: Request) -> Any:
        words = request.messages[-1].text
        return json.dumps({"thoughts": [], "enough": True}) if "## T1.1.1.1" in words and _asks(request) else None

    def _asks(request: Request) -> bool:
        return "thoughts" in (request.schema or {}).get("properties", {})

    answer, mind, _ = run("chain", Mind(override=enough))
    assert isinstance(answer, Forecast)
    assert mind.requests == ["propose", "conclude"]


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ("It sails next year.", "means nothing without"),
        ("Will the bridge open?", "it is a question"),
        ('The answer to the question "Will the harbour bridge open?" is yes.', "says already"),
    ],
)
def test_invalid_thoughts_are_requested_again_with_the_reason(claim: str, reason: str):
    replies = [json.dumps({"thoughts": [{"claim": claim}], "enough": False})]
    answer, _, setup = run("chain", Mind(override=lambda request: replies.pop() if replies else None), depth=1)
    assert isinstance(answer, Forecast)
    assert reason in setup.requests[1].messages[-1].text


def test_usable_thoughts_are_kept_if_others_are_unusable():
    both = [{"claim": "It sails next year."}, {"claim": "The Bergen ferry sails on 1 May 2026."}]
    replies = [json.dumps({"thoughts": both, "enough": False})]
    notes = RecordingGrounder()
    run("tree", Mind(override=lambda request: replies.pop() if replies else None), notes, depth=1, width=2)
    assert [leaf.claim for leaf in notes.leaves] == ["The Bergen ferry sails on 1 May 2026."]


def test_a_rating_must_name_every_line():
    replies = [json.dumps({"lines": [{"id": "T9", "reason": "", "value": 1}]})]

    def once(request: Request) -> Any:
        return replies.pop() if replies and "lines" in (request.schema or {}).get("properties", {}) else None

    answer, _, setup = run("tree", Mind(override=once), depth=1)
    assert isinstance(answer, Forecast)
    assert any("lines without a value: T1.1.1.1" in request.messages[-1].text for request in setup.requests)


@pytest.mark.parametrize("kind", THOUGHT_KINDS)
def test_a_failed_thought_does_not_fail_the_forecast(kind: ThoughtKind):
    notes = RecordingGrounder(fail=lambda leaf: leaf.id.endswith(".1.1.1") and kind != "chain")
    answer, _, setup = run(kind, notes=notes)
    assert isinstance(answer, Forecast)
    errors = [event.error for event in setup.of(NodeGrounded) if event.p is None]
    assert all(error == "no luck" for error in errors)


@pytest.mark.parametrize("kind", THOUGHT_KINDS)
def test_no_grounded_thought_is_a_failure(kind: ThoughtKind):
    answer, mind, setup = run(kind, notes=RecordingGrounder(fail=lambda leaf: True))
    assert isinstance(answer, Failure)
    assert "no luck" in answer.error
    assert "conclude" not in mind.requests
    assert [event.error for event in setup.of(Failed)] == [answer.error]


@pytest.mark.parametrize("kind", THOUGHT_KINDS)
@pytest.mark.parametrize("error", [ModelError("down"), BudgetExceeded("no money")])
def test_a_model_that_fails_from_the_start_is_a_failure(kind: ThoughtKind, error: ModelError):
    answer, _, _ = run(kind, Mind(override=lambda request: error))
    assert isinstance(answer, Failure)


def test_a_later_model_error_ends_the_line():
    calls = iter(range(100))
    mind = Mind(override=lambda request: ModelError("down") if next(calls) in (1, 2, 3) else None)
    answer, mind, _ = run("chain", mind)
    assert isinstance(answer, Failure), "the conclusion failed too"
    calls = iter(range(100))
    mind = Mind(override=lambda request: ModelError("down") if next(calls) == 1 else None)
    answer, mind, _ = run("chain", mind)
    assert isinstance(answer, Forecast)
    assert mind.requests == ["propose", "conclude"]


def test_input_errors_are_raised():
    class NoSandbox(RecordingGrounder):
        async def ground(self, leaf: Leaf, context: Context) -> GroundingResult:
            raise InputError("no sandbox")

    with pytest.raises(InputError, match="no sandbox"):
        run("forest", notes=NoSandbox())


def test_only_one_of_two_exclusive_options_is_analysed():
    two = question(targets=(Target(id="a", label="Ada"), Target(id="b", label="Ben")), exclusivity="exactly one")
    answer, mind, _ = run("chain", setup={"question": two})
    assert answer.p == {"a": pytest.approx(0.8), "b": pytest.approx(0.2)}
    assert mind.requests.count("conclude") == 1
    answer, mind, _ = run("chain", setup={"question": two}, shortcut=False)
    assert answer.p == {"a": pytest.approx(0.5), "b": pytest.approx(0.5)}
    assert mind.requests.count("conclude") == 2
    three = replace(two, targets=(*two.targets, Target(id="c")))
    answer, mind, _ = run("chain", setup={"question": three})
    assert sum(answer.p.values()) == pytest.approx(1)
    assert answer.distribution is not None
    assert mind.requests.count("conclude") == 3


class Shuffled:
    """A model that answers after random delays."""

    def __init__(self, seed: int) -> None:
        self.inner = ScriptedModel(_by_request)
        self._rng = random.Random(seed)

    async def complete(self, request: Request) -> Reply:
        for _ in range(self._rng.randrange(30)):
            await asyncio.sleep(0)
        return await self.inner.complete(request)


def _by_request(request: Request) -> Any:
    """Answer depending only on the request."""
    mind = Mind()
    return mind(request)


@pytest.mark.parametrize("kind", THOUGHT_KINDS)
def test_timing_changes_neither_requests_nor_events_nor_the_answer(kind: ThoughtKind):
    def once(seed: int) -> tuple[Forecast, list[TraceEvent], set[str]]:
        model = Shuffled(seed)
        setup = TreeSetup(model=model)
        forecaster = ThoughtsForecaster(grounder=RecordingGrounder(), settings=ThoughtSettings(kind=kind))
        answer = asyncio.run(attempt(forecaster, setup.question, setup.context))
        assert isinstance(answer, Forecast)
        keys = {request_key(request) for request in model.inner.requests}
        return replace(answer, usage=replace(answer.usage, seconds=0.0)), setup.events, keys

    assert once(1) == once(2)


def test_thoughts_with_the_search_grounder_see_no_leaks():
    mind = Mind()
    setup = TreeSetup(model=playing(lambda request: None if request.tools else mind(request)))
    answer = asyncio.run(attempt(ThoughtsForecaster(grounder=SearchGrounder()), setup.question, setup.context))
    assert isinstance(answer, Forecast)
    assert setup.of(ToolUsed)
    assert "https://news.example/2025-10-01" in answer.rationale
    seen = "\n".join(message.text for request in setup.requests for message in request.messages)
    assert "2025-11-05" not in seen
    assert "LEAK ME" not in seen


def test_thoughts_without_a_model_or_conclusion_cannot_forecast():
    setup = TreeSetup()
    with pytest.raises(CannotForecast, match="asks a model"):
        asyncio.run(ThoughtsForecaster().forecast(setup.question, Context(as_of=setup.question.as_of)))
    setup.model = ScriptedModel(lambda request: ModelError("down"))
    grounder = FixedGrounder(p=cannot_ground("no number"))
    with pytest.raises(CannotForecast, match="no conclusion about"):
        asyncio.run(ThoughtsForecaster(grounder=grounder).forecast(setup.question, setup.context))


@pytest.mark.parametrize("wrong", [{"kind": "wood"}, {"depth": 0}, {"width": 0}, {"keep": 0}, {"trees": 0}])
def test_invalid_settings_are_rejected(wrong: dict[str, Any]):
    with pytest.raises(InputError):
        ThoughtSettings(**wrong)


@settings(max_examples=25)
@given(
    kind=st.sampled_from(THOUGHT_KINDS),
    depth=st.integers(1, 3),
    width=st.integers(1, 3),
    keep=st.integers(1, 3),
    broken=st.sets(st.integers(0, 20)),
)
def test_any_failures_end_in_one_forecast_or_one_failure(
    kind: ThoughtKind, depth: int, width: int, keep: int, broken: set[int]
):
    count = iter(range(10_000))
    notes = RecordingGrounder(fail=lambda leaf: next(count) in broken)
    answer, _, setup = run(kind, notes=notes, depth=depth, width=width, keep=keep, clamp=Clamp(low=0, high=1))
    assert len(notes.leaves) <= ThoughtSettings(kind=kind, depth=depth, width=width, keep=keep).max_thoughts
    if isinstance(answer, Forecast):
        assert answer.p["yes"] == pytest.approx(0.8)
        assert len(setup.of(ForecastMade)) == 1
    else:
        assert all(event.p is None for event in setup.of(NodeGrounded)) or kind in ("tree", "forest", "graph")
        assert len(setup.of(Failed)) == 1
