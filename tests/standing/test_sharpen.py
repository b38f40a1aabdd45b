import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from foretell.models.model import Reply, Request
from foretell.models.structured_output import NoUsableAnswer
from foretell.questions.as_of import end_of_day, instant
from foretell.questions.question import Question
from foretell.standing.question_checks import problems_of
from foretell.standing.record import Sharpening
from foretell.standing.sharpen import propose_wording, sharpened

GOOD: dict[str, Any] = {
    "text": "Will Norway be a member of the European Union on or before 31 December 2030?",
    "deadline": "2030-12-31",
    "decides": "The list of member states that the European Union publishes",
    "no_means": "Norway is not on that list at the end of 31 December 2030.",
    "edge_cases": ["A signed treaty of accession that is not in force does not count."],
    "base_rate_class": "Applications for membership since 1993",
}
TYPED = Question(
    id="q", source="asked", text="Will Norway join the European Union soon?", due="2026-11-19", criteria="Peacefully."
)


@dataclass
class Proposing:
    """Proposes one wording after the other."""

    proposals: list[Mapping[str, Any]]
    seen: list[Request] = field(default_factory=list[Request])

    async def complete(self, request: Request) -> Reply:
        self.seen.append(request)
        return Reply(text=json.dumps(self.proposals[min(len(self.seen), len(self.proposals)) - 1]))


def proposed(*proposals: Mapping[str, Any], question: Question = TYPED) -> tuple[Sharpening, Proposing]:
    model = Proposing([*proposals])
    return asyncio.run(propose_wording(question, model, "fake:model")), model


def test_a_proposal_says_what_the_question_lacks():
    sharpening, model = proposed(GOOD)
    assert (sharpening.original, sharpening.text) == (TYPED.text, GOOD["text"])
    assert sharpening.closes == end_of_day(instant("2030-12-31").date())
    assert (sharpening.decides, sharpening.no_means) == (GOOD["decides"], GOOD["no_means"])
    task = json.loads(model.seen[0].messages[-1].text)  # pyright: ignore[reportAttributeAccessIssue]
    assert task["missing"] == list(problems_of(TYPED))


def test_an_accepted_wording_can_be_resolved_and_keeps_what_was_typed():
    sharpening, _ = proposed(GOOD)
    question = sharpened(TYPED, sharpening)
    assert problems_of(question) == ()
    assert question.closes_at == question.targets[0].resolves_at == sharpening.closes
    assert question.criteria.startswith("Peacefully.")
    for part in (GOOD["decides"], GOOD["no_means"], GOOD["edge_cases"][0]):
        assert part in question.criteria
    assert TYPED.text in question.background


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"text": "Will Sweden be a member of the European Union by 31 December 2030?"}, "no longer says Norway"),
        ({"text": "Will Norway be a major member of the European Union by 31 December 2030?"}, "major"),
        ({"deadline": "2026-11-19"}, "not after the day of asking"),
        ({"deadline": "at the end of 2030"}, "must be a day"),
        ({"decides": ""}, "decides is too short"),
    ],
)
def test_an_unusable_proposal_is_sent_back_with_the_reason(change: dict[str, Any], reason: str):
    sharpening, model = proposed({**GOOD, **change}, GOOD)
    assert sharpening.text == GOOD["text"]
    assert reason in model.seen[1].messages[-1].text  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(NoUsableAnswer, match=reason):
        proposed({**GOOD, **change})


def test_a_stated_deadline_and_number_are_kept():
    question = Question(
        id="q", source="asked", text="Will 40 ships soon call at Halvik?", due="2026-11-19", closes_at="2027-05-01"
    )
    ships = {**GOOD, "text": "Will 40 ships call at Halvik by 1 May 2027?", "deadline": "2027-05-01"}
    later = {**ships, "text": "Will 40 ships call at Halvik by 1 June 2027?", "deadline": "2027-06-01"}
    fewer = {**ships, "text": "Will 30 ships call at Halvik by 1 May 2027?"}
    sharpening, model = proposed(later, fewer, ships, question=question)
    assert sharpening.text == ships["text"]
    sent_back = [request.messages[-1].text for request in model.seen[1:]]  # pyright: ignore[reportAttributeAccessIssue]
    assert "the deadline is stated: 2027-05-01" in sent_back[0]
    assert "no longer says 40" in sent_back[1]
