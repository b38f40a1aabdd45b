"""A search box that finds questions, runs, trees and arenas by their words."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from foretell.operations.requests.runs import RunsRequest
from foretell.questions.codec import from_json
from foretell.questions.question import Question
from foretell.web.pages.arena import arena_rows
from foretell.web.pages.trees import read_trees
from foretell.web.rendering import json_and_page
from foretell.web.state import CurrentState, WebState

router = APIRouter()
MOST, LOOKED_AT = 20, 500
"""Maximum number of results of each kind, and of questions searched for them."""
_QUESTIONS_SQL = """
select question.run, run.name, body from question join run on run.id = question.run
where lower(body) like ? escape '\\' order by question.run desc, due desc limit ?"""


@json_and_page(router, "/api/find", "/find", "find.html", tags=["home"])
def find(
    here: CurrentState, words: Annotated[str, Query(max_length=200, description="Words that are looked for.")] = ""
) -> dict[str, Any]:
    """Find runs by name, tag and model, questions by text, trees by name and claim, and arenas by name."""
    sought = " ".join(words.split())
    if not sought:
        return {"words": "", "runs": [], "questions": [], "trees": [], "arenas": []}
    low = sought.casefold()
    trees = [tree for tree in read_trees(here)["trees"] if low in f"{tree['name']} {tree.get('claim', '')}".casefold()]
    return {
        "words": sought,
        "runs": here.run_list(RunsRequest(find=f"archived:any {sought}"), limit=MOST).runs,
        "questions": _questions(here, low),
        "trees": trees[:MOST],
        "arenas": [row for row in arena_rows(here.store) if low in str(row["name"]).casefold()][:MOST],
    }


def _questions(here: WebState, low: str) -> list[dict[str, Any]]:
    pattern = low.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    found: dict[str, dict[str, Any]] = {}
    for run, name, body in here.store.database.read(_QUESTIONS_SQL, (f"%{pattern}%", LOOKED_AT)):
        question = from_json(body, Question)
        if low in question.text.casefold():
            row = {"run": run, "called": name or f"run {run[:8]}", "id": question.id, "due": question.due.isoformat()}
            found.setdefault(question.text, {**row, "text": question.text})
    return list(found.values())[:MOST]
