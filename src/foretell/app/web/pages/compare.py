"""Comparing two runs, or two entries of an arena."""

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response

from foretell.app.web.rendering import page
from foretell.app.web.serving import Here, Serving
from foretell.app.web.views.arena import has_arena
from foretell.app.web.views.compare import Choices, compare_entries, compare_runs, entry_choices, run_choices
from foretell.arena.comparison import ADVICE
from foretell.arena.report.study_page import study_parts
from foretell.arena.study import Study
from foretell.questions.problems import InputError

router = APIRouter(tags=["compare"])
Word = Annotated[str, Query(max_length=300)]


@router.get("/api/compare/choices")
def read_choices(here: Here, arena: Word = "") -> Choices:
    """Who can be compared: runs, or with `arena` its entries."""
    return _choices(here, arena)


@router.get("/api/compare")
def read_comparison(here: Here, first: Word, second: Word, arena: Word = "") -> dict[str, Any]:
    """Who is better and by how much more than noise, group by group, and where the two part."""
    return _study(here, first, second, arena).to_dict()


@router.get("/compare", include_in_schema=False)
def show_comparison(request: Request, here: Here, first: Word = "", second: Word = "", arena: Word = "") -> Response:
    """The page: a form, and below it the comparison."""
    choices = _choices(here, arena)
    study, reason = None, ""
    if first and second:
        try:
            study = _study(here, first, second, arena)
        except InputError as error:
            reason = str(error)
    parts = study_parts(study, ADVICE) if study else []
    return page(request, "compare.html", study, reason=reason, parts=parts, choices=choices, first=first, second=second)


def _choices(here: Serving, arena: str) -> Choices:
    if arena and not has_arena(here.store, arena):
        raise HTTPException(404, f"there is no arena {arena[:80]!r}")
    return entry_choices(here.boards, arena) if arena else run_choices(here.store)


def _study(here: Serving, first: str, second: str, arena: str) -> Study:
    if first == second:
        raise InputError("one and the same cannot be compared", column="second", hint="name two different ones")
    known = {choice.id for choice in _choices(here, arena).choices}
    for name in (first, second):
        if name not in known:
            raise HTTPException(404, f"there is nobody called {name[:80]!r} here")
    if arena:
        return compare_entries(here.boards, arena, first, second, {})
    return compare_runs(here.settings, first, second)
