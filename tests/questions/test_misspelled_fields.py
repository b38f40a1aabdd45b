"""A field that nobody knows is named, with the one that was probably meant."""

from typing import Any

import pytest

from foretell.questions.codec import checked_fields
from foretell.questions.errors import InputError
from foretell.runs.spec import RunSpec


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ({"questions": {"file": "mine.jsonl"}}, r"field questions.file: is not a known field \(known: .*dataset"),
        ({"questions": {"datset": "demo"}}, r"field questions.datset: is not a known field \(did you mean dataset\?\)"),
        ({"questions": {"dataset": "demo"}, "budget": {"rum": 1}}, r"field budget.rum: .*did you mean run\?"),
        ({"questions": {"dataset": "demo"}, "forcaster": "auto"}, r"field forcaster: .*did you mean forecaster\?"),
        ({"forecaster": "auto"}, "field questions: is missing"),
    ],
)
def test_the_misspelled_field_is_named(written: dict[str, Any], told: str):
    with pytest.raises(InputError, match=told):
        checked_fields(written, RunSpec)
