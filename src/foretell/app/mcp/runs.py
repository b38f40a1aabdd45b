"""`list_runs` and `show_run`: what was asked before, and how the answers came about."""

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING, Any

from foretell.app.mcp.desk import Desk
from foretell.app.mcp.wishes import ListRunsWish, ShowRunWish
from foretell.arena.store import Store
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.problems import InputError

if TYPE_CHECKING:
    from foretell.arena.store import RunRow


async def list_runs(desk: Desk, wish: ListRunsWish) -> dict[str, Any]:
    """The newest first."""

    def read() -> dict[str, Any]:
        with closing(Store(desk.settings.store)) as store:
            found = store.runs()
        return {"runs": [_row(row) for row in found[: wish.limit]], "in_all": len(found)}

    return await asyncio.to_thread(read)


async def show_run(desk: Desk, wish: ShowRunWish) -> dict[str, Any]:
    """Its answers, or one question with every step."""
    return await asyncio.to_thread(_shown, desk, wish)


def _row(row: "RunRow") -> dict[str, Any]:
    return {
        "run": row.id,
        "created": row.created,
        "questions": row.spec["questions"]["dataset"],
        "forecaster": row.spec["forecaster"],
        "model": row.spec["models"].get("agent", ""),
        "mode": row.spec["mode"],
        "trials": row.spec["trials"],
        "forecasts": row.done,
        "failed": row.failed,
    }


def _shown(desk: Desk, wish: ShowRunWish) -> dict[str, Any]:
    from foretell.app.commands.show import find_run

    with closing(Store(desk.settings.store)) as store:
        id = find_run(store, wish.run)
        row = store.run(id)
        assert row is not None
        texts = {question.id: question.text for question in store.questions(id)}
        answers = [answer for answer in store.answers(id) if wish.question in (None, answer.question_id)]
        if wish.question is not None and not answers:
            raise InputError(f"run {id} has no answer to {wish.question!r}", hint="show_run lists its questions")
        told = [_answer(answer, texts, whole=wish.question is not None) for answer in answers[: wish.limit]]
        steps = _steps(store, id, wish) if wish.question is not None else {}
    return {"run": _row(row), "answers": told, "in_all": len(answers), **steps}


def _answer(answer: Forecast | Failure, texts: dict[str, str], *, whole: bool) -> dict[str, Any]:
    told: dict[str, Any] = {
        "question_id": answer.question_id,
        "question": texts.get(answer.question_id, ""),
        "as_of": str(answer.as_of),
        "trial": answer.trial,
    }
    if isinstance(answer, Failure):
        return told | {"failed": answer.error}
    told |= {"probabilities": dict(answer.p), "dollars": round(answer.usage.dollars, 6)}
    return told | ({"reasons": answer.rationale} if whole else {})


def _steps(store: Store, run: str, wish: ShowRunWish) -> dict[str, Any]:
    from foretell.app.commands.show import told

    steps: dict[int, list[str]] = {}
    for _, key, event in store.events(run, wish.question):
        steps.setdefault(key.trial, []).append(told(event).strip())
    return {"steps": {f"trial {trial}": lines[: wish.limit] for trial, lines in sorted(steps.items())}}
