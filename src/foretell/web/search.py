"""Results of the search box other than runs: questions, own questions, trees and arenas that contain the words."""

from collections.abc import Sequence
from typing import Any

from foretell.arena.listing import arena_rows
from foretell.operations.requests.trees import TreeListRequest
from foretell.operations.tree_list import list_trees
from foretell.web.run_rows import run_row_view
from foretell.web.state import WebState

MOST, LOOKED_AT = 20, 500
"""Maximum number of results of each kind, and of questions searched for them."""


def matches(here: WebState, words: str) -> dict[str, Sequence[Any]]:
    """Return questions by text, trees by name and claim, and arenas by name; nothing without words."""
    low = " ".join(words.split()).casefold()
    if not low:
        return {"questions": [], "standing": [], "trees": [], "arenas": []}
    trees = list_trees(TreeListRequest(), here.settings).to_dict()["trees"]
    return {
        "questions": _questions(here, low),
        "standing": _standing(here, low),
        "trees": [tree for tree in trees if low in f"{tree['name']} {tree.get('claim', '')}".casefold()][:MOST],
        "arenas": [row for row in arena_rows(here.store.database) if low in row.name.casefold()][:MOST],
    }


def _standing(here: WebState, low: str) -> list[dict[str, Any]]:
    questions = here.standing.questions()
    found = [each for each in reversed(questions) if low in f"{each.id} {each.question.text}".casefold()]
    return [{"id": each.id, "text": each.question.text, "state": each.state} for each in found[:MOST]]


def _questions(here: WebState, low: str) -> list[dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for run, question in here.store.matching_questions(low, LOOKED_AT):
        if low in question.text.casefold():
            row = {"run": run, "id": question.id, "due": question.due.isoformat()}
            rows.setdefault(question.text, {**row, "text": question.text})
    found = list(rows.values())[:MOST]
    called = {row["run"]: run_row_view(here.store, here.run(row["run"])).called for row in found}
    return [{**row, "called": called[row["run"]]} for row in found]
