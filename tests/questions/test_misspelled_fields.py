"""An unknown field is named, with a similar known one."""

import re
from typing import Any

import pytest

from foretell.questions.codec import checked_fields
from foretell.questions.errors import InputError
from foretell.runs.spec import RunSpec


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"questions": {"file": "mine.jsonl"}}, r"field questions.file: is not a known field \(known: .*dataset"),
        ({"questions": {"datset": "demo"}}, r"field questions.datset: is not a known field \(did you mean dataset\?\)"),
        ({"questions": {"dataset": "demo"}, "budget": {"rum": 1}}, r"field budget.rum: .*did you mean run\?"),
        ({"questions": {"dataset": "demo"}, "forcaster": "auto"}, r"field forcaster: .*did you mean forecaster\?"),
        ({"forecaster": "auto"}, "field questions: is missing"),
    ],
)
def test_the_misspelled_field_is_named(fields: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        checked_fields(fields, RunSpec)


def test_only_fields_that_a_user_may_write_are_listed():
    for fields, internal in (
        ({"questions": {"dataset": "demo"}, "zzz": 1}, "efforts|marked"),
        ({"questions": {"zzz": 1}}, "excluded"),
    ):
        with pytest.raises(InputError, match="known: ") as error:
            checked_fields(fields, RunSpec)
        assert not re.search(internal, str(error.value))
