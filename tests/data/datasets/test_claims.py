import json

import pytest

from foretell.data.datasets.analytica import read_claims
from foretell.questions.as_of import instant
from foretell.questions.errors import InputError

CLAIM = {
    "id": "c1",
    "claim": "The film superconducts at 80 K.",
    "label": True,
    "published": "2024-06-02",
    "category": "superconductors",
    "split": "test",
}


def lines(*claims: dict) -> str:
    return "\n".join(json.dumps(claim) for claim in claims)


def test_a_claim_is_asked_as_of_the_day_before_its_publication(write) -> None:
    claims = read_claims(write("c.jsonl", lines(CLAIM)))
    (question,) = claims.questions
    assert question.due == instant("2024-06-01")
    assert not question.as_of.admits(instant("2024-06-02")), "the paper itself would give the answer away"
    assert question.as_of.admits(instant("2024-06-01T23:00:00Z"))
    assert (question.category, question.targets[0].id) == ("superconductors", "true")
    assert list(claims.outcomes().values()) == [1]


def test_only_the_requested_split_is_returned(write) -> None:
    path = write("c.jsonl", lines(CLAIM, CLAIM | {"id": "c2", "split": "validation", "label": "false"}))
    assert [q.id for q in read_claims(path, "test").questions] == ["c1"]
    validation = read_claims(path, "validation")
    assert list(validation.outcomes().values()) == [0]
    assert validation.notes == ("1 claims of the test split left out",)
    assert len(read_claims(path).questions) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": None}, "column label: is missing"),
        ({"label": "perhaps"}, "column label: 'perhaps' is neither true nor false"),
        ({"published": None}, "column published: is missing"),
        ({"published": "June"}, "column published: 'June' is not an ISO date"),
        ({"split": "train"}, "column split: 'train' is not a split (known: validation, test)"),
        ({"claim": " "}, "column claim: is missing"),
        ({"id": "c1"}, "claim c1 occurs twice"),
        ({"lable": True}, "column lable: is not a known field (did you mean label?)"),
    ],
)
def test_a_malformed_claim_raises_with_row_and_column(write, changes: dict, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_claims(write("c.jsonl", lines(CLAIM, CLAIM | {"id": "c2"} | changes)))
    assert "row 2" in str(caught.value)
    assert message in str(caught.value)
