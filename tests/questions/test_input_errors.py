"""`InputError` is a `ValueError`, and still arrives with its field and hint where other `ValueError`s are reworded."""

import ast
import inspect
from dataclasses import fields
from datetime import UTC, date, datetime
from typing import Any, ClassVar

import pytest

from foretell.data.markets.listing import error_context
from foretell.questions.as_of import AsOf
from foretell.questions.errors import DiskFull, InputError
from foretell.questions.question import LastValue, Question, Snapshot, Target
from foretell.questions.resolution import Resolution
from foretell.request import OperationRequest, setting


class Drawing(OperationRequest):
    """A request whose fields depend on each other."""

    ONLY_WITH: ClassVar = {"search": "limit"}
    search: str = setting("", "Search engine.")
    limit: int = setting(5, "Maximum number of results.")


def test_an_input_error_is_a_value_error() -> None:
    with pytest.raises(ValueError, match=r"^field limit: is not a number"):
        raise InputError("is not a number", column="limit")


def test_an_input_error_of_a_validator_keeps_its_field_and_hint() -> None:
    with pytest.raises(InputError) as caught:
        Drawing.read({"limit": 3})
    assert (caught.value.column, caught.value.hint) == ("--limit", "add that, or leave this out")


def test_a_full_disk_is_not_taken_for_an_unreadable_entry() -> None:
    with pytest.raises(DiskFull), error_context("market A"):
        raise DiskFull("the disk is full")


@pytest.mark.parametrize("when", ["2026-01-10", date(2026, 1, 10), datetime(2026, 1, 10, tzinfo=UTC)])
def test_times_can_be_given_as_text_date_or_time(when: Any) -> None:
    question = Question(id="q", source="own", text="Will it rain?", due=when, closes_at=when)
    assert question.due == question.closes_at == datetime(2026, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize("kind", [AsOf, LastValue, Question, Resolution, Snapshot, Target])
def test_the_parameters_that_type_checkers_see_are_the_fields(kind: type[Any]) -> None:
    defined = ast.parse(inspect.getsource(kind)).body[0]
    written = next(node for node in ast.walk(defined) if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    assert [parameter.arg for parameter in written.args.kwonlyargs] == [field.name for field in fields(kind)]
