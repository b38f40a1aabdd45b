import pytest
from tests.tools.doubles import question

from foretell.questions.question import Target
from foretell.tools.submit import read_submission, submit_spec
from foretell.tools.tool import ToolFailed

DATES = question(targets=(Target(id="2025-11-02", label="up by then"), Target(id="2025-12-26")))
TEAMS = question(targets=(Target(id="Real Madrid (men)"), Target(id="Olympique Lyon – féminin")))


def test_one_probability_for_each_target() -> None:
    p = submit_spec(DATES).parameters["properties"]["p"]
    assert p["required"] == ["2025-11-02", "2025-12-26"]
    assert p["properties"]["2025-11-02"]["description"] == "up by then"
    assert read_submission(DATES, {"p": {"2025-11-02": 0.4, "2025-12-26": "0.5"}}) == {
        "2025-11-02": 0.4,
        "2025-12-26": 0.5,
    }


def test_ids_that_providers_would_refuse_get_plain_names() -> None:
    p = submit_spec(TEAMS).parameters["properties"]["p"]
    assert list(p["properties"]) == ["target_1", "target_2"]
    assert p["properties"]["target_1"]["description"] == "Real Madrid (men)"
    found = read_submission(TEAMS, {"p": {"target_1": 0, "target_2": 1}})
    assert found == {"Real Madrid (men)": 0.0, "Olympique Lyon – féminin": 1.0}


def test_a_bare_number_is_enough_for_one_target() -> None:
    assert read_submission(question(), {"p": 0.3}) == {"yes": 0.3}


@pytest.mark.parametrize(
    "p", [None, 1.2, -0.1, "likely", True, [], {}, {"yes": None}, {"yes": float("nan")}, {"no": 0.2}]
)
def test_what_is_missing_or_wrong_is_told_and_never_guessed(p: object) -> None:
    with pytest.raises(ToolFailed):
        read_submission(question(), {"p": p})
