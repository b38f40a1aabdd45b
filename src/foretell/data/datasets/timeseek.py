"""TimeSeek: yes/no markets asked at several checkpoints of their life (Mostafa et al. 2026, arXiv 2604.04220).

No layout of its files is published. A table is read by the usual names of its columns, one row for each market and
checkpoint, so that any table of resolved yes/no questions with a day of asking can be read in this way.
"""

import re
from collections.abc import Mapping

from foretell.data.datasets.dataset import DatasetRequest, FileFormat
from foretell.data.datasets.published import PublishedSetBuilder, moment, need_moment, read_published
from foretell.data.datasets.question_files import YES, default_id
from foretell.data.datasets.question_set import QuestionSet
from foretell.data.datasets.rows import Row, columns_of, table_rows
from foretell.data.usual_names import QUESTION_NAMES, columns_named
from foretell.questions.errors import InputError, InputProblem
from foretell.questions.question import Question, Snapshot, Target

SOURCE = "timeseek"
NEEDED = ("text", "due", "outcome")
PERCENT = 100


def read_timeseek(request: DatasetRequest) -> QuestionSet:
    """Read a table of yes/no questions whose columns have usual names. The price must be that of the checkpoint."""
    path = request.path
    columns = _columns(request)
    unit = _unit_of_prices(request, columns.get("price"))
    return read_published(path, lambda row, set_builder: _add(row, columns, unit, set_builder))


def _unit_of_prices(request: DatasetRequest, column: str | None) -> float:
    """Return what the prices are divided by: a column is in percent or cents if a price is well above 1."""
    texts = (row.text(column) for row in table_rows(request.path)) if column else ()
    return PERCENT if any(re.fullmatch(r"\d+(\.\d+)?", text) and float(text) >= 2 for text in texts) else 1


def _columns(request: DatasetRequest) -> dict[str, str]:
    """Role → column; a role that is needed and missing, or that several columns could play, raises."""
    present, problems, roles = sorted(columns_of(request.path)), list[InputProblem](), dict[str, str]()
    for role, groups in QUESTION_NAMES.items():
        found = [column for column in columns_named(present, groups) if column not in roles.values()]
        if len(found) > 1:
            both = " and ".join(map(repr, found))
            problems.append(InputProblem(problem=f"{both} could both be the {role}", hint="keep one of them"))
        elif found:
            roles[role] = found[0]
        elif role in NEEDED:
            known = ", ".join(groups[0].split()[:6])
            hint = f"usual names are {known}; columns are {', '.join(present)}"
            problems.append(InputProblem(problem="is missing", column=role, hint=hint))
    if problems:
        raise InputError.of(problems, path=request.path)
    return roles


def _add(row: Row, columns: Mapping[str, str], unit: float, set_builder: PublishedSetBuilder) -> None:
    def text(role: str) -> str:
        return row.text(columns[role]) if role in columns else ""

    asked, due = row.need_text(columns["text"]), need_moment(row, columns["due"])
    came_true = row.flag(columns["outcome"])
    resolved = moment(row, columns["resolved_on"]) if "resolved_on" in columns else None
    if resolved is not None and resolved < due:
        raise row.problem(columns["due"], f"{due.date()} is after the question resolved, {resolved.date()}")
    price = row.real(columns["price"]) if "price" in columns else None
    id = text("id") or default_id(asked)
    question = row.reading(
        columns.get("price"),
        lambda: Question(
            id=f"{SOURCE}/{id}",
            source=SOURCE,
            text=asked,
            due=due,
            targets=(Target(id=YES, snapshot=None if price is None else Snapshot(at=due, last_price=price / unit)),),
            category=text("category"),
            criteria=text("criteria"),
            background=text("background"),
            cluster=f"{SOURCE}/{text('cluster') or id}",
        ),
    )
    set_builder.add(row, question, {YES: None if came_true is None else int(came_true)}, resolved)


timeseek = FileFormat(read=read_timeseek)
"""The data set `timeseek:FILE`."""
