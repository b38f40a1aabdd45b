"""The option --columns, which names the columns of a table."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

from pydantic import BeforeValidator

from foretell.questions.errors import InputError
from foretell.request import setting

ColumnNames = Mapping[str, str | Sequence[str]]
"""Role → the column that plays it, as in {"p": "prob"}; several columns for p, if each is a forecaster."""


def read_role_columns(value: Any) -> Any:
    """Columns by role, from a dictionary or from text such as forecaster=model,p=prob.

    >>> read_role_columns("forecaster=model,p=prob"), read_role_columns({"p": ["gpt", "claude"]})
    ({'forecaster': ('model',), 'p': ('prob',)}, {'p': ('gpt', 'claude')})
    >>> read_role_columns({"question": "id,p=gpt,claude"})  # as the command line splits it
    {'question': ('id',), 'p': ('gpt', 'claude')}
    """
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        lists = {role: tuple(map(str, columns)) for role, columns in pairs if isinstance(columns, list | tuple)}
        texts = [f"{role}={column}" for role, column in pairs if role not in lists]
    else:
        lists, texts = {}, [value] if isinstance(value, str) else list(value)
    for text in texts:
        for part in re.split(r",(?=\s*\w+\s*=)", text):
            role, equals, columns = part.partition("=")
            if not equals or not columns.strip():
                raise InputError(f"{part!r} is not of the form ROLE=COLUMN", column="--columns")
            lists[role.strip()] = tuple(name.strip() for name in columns.split(",") if name.strip())
    return lists


RoleColumns = Annotated[Mapping[str, tuple[str, ...]], BeforeValidator(read_role_columns)]
"""Role → its columns, such as {"p": "prob"}; on the command line p=prob,question=id."""
ROLE_COLUMNS: Any = setting(
    {}, "Columns by role, if their names are not recognised: forecaster=model,p=prob.", metavar="ROLE=COLUMN,..."
)
