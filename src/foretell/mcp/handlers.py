"""`ask` and `grow_tree_tool`: answers with their reasons."""

import asyncio
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from foretell.forecasters.tree.problems import InvalidTree
from foretell.mcp.arguments import (
    AskArguments,
    ListRunsArguments,
    ScoreArguments,
    ShowRunArguments,
    TreeArguments,
    WhatIfArguments,
)
from foretell.mcp.permissions import ALLOW_SPENDING, ServerPermissions
from foretell.operations.ask import (
    ResearchOptions,
    TypedQuestion,
    outside_view,
    prepare_question,
    question_now,
    reference_class,
    run_research,
)
from foretell.questions.errors import InputError
from foretell.questions.forecast import Failure, Forecast
from foretell.questions.question import Question
from foretell.runs.combine import combining_by_name
from foretell.runs.store import RunStore

if TYPE_CHECKING:
    from foretell.forecasters.tree.edits import Edit, Scenario
    from foretell.forecasters.tree.proposition import Tree
    from foretell.forecasters.tree.tree_file import TreeFile
    from foretell.forecasters.tree.what_if import WhatIfResult
    from foretell.runs.store import RunRow


SIMILAR_SHOWN = 8
"""Past questions that are shown."""
OUTSIDE_NOTE = "This is the outside view: nothing was researched. "
BUDGET_TOO_SMALL = "the money that is left does not pay for a single call"


async def ask(desk: ServerPermissions, wish: AskArguments) -> dict[str, Any]:
    """A probability: researched where that may be paid for, else the outside view."""
    asked = TypedQuestion(
        text=wish.question,
        by=wish.by,
        as_of=wish.as_of,
        options=tuple(wish.options),
        criteria=wish.criteria,
        price=wish.price,
    )
    if wish.research == "always" or wish.model is not None or (wish.research == "auto" and desk.may_spend):
        return await _ask_model(desk, wish, asked)
    return await asyncio.to_thread(_ask_outside_view, desk, asked)


async def _ask_model(desk: ServerPermissions, wish: AskArguments, asked: TypedQuestion) -> dict[str, Any]:
    research = ResearchOptions(
        model=desk.model(wish.model), search=desk.search, trials=wish.trials, budget=wish.budget, combine="default"
    )
    prepared = prepare_question(asked, research)
    forecast = await run_research(prepared, desk.settings, combining_by_name(research.combine))
    if not forecast.usage.calls:
        raise InputError(BUDGET_TOO_SMALL, hint="raise --allow-spending, or the budget of the question")
    return {
        **forecast_to_dict(forecast, prepared.questions[0]),
        "how": f"researched by {research.model}",
        "run": prepared.spec.id,
        "cost": {"dollars": round(forecast.usage.dollars, 6), "calls": forecast.usage.calls},
        "server_spending": desk.spending(),
        "warnings": list(prepared.warnings),
    }


def _ask_outside_view(desk: ServerPermissions, asked: TypedQuestion) -> dict[str, Any]:
    question = question_now(asked)
    forecast = outside_view(asked, desk.settings)
    found = reference_class(question, question.as_of_in("backtest" if asked.as_of else "live"), desk.settings)
    members = found.members[:SIMILAR_SHOWN] if found else ()
    return {
        **forecast_to_dict(forecast, question),
        "how": OUTSIDE_NOTE + ("" if desk.may_spend else f"To research: {ALLOW_SPENDING}."),
        "similar_past_questions": [
            {"question": one.text.splitlines()[0][:300], "outcome": int(one.outcome), "known_on": str(one.known_on)}
            for one in members
        ],
        "cost": {"dollars": 0.0, "calls": 0},
    }


def forecast_to_dict(forecast: Forecast, question: Question) -> dict[str, Any]:
    """Numbers and reasons of a forecast."""
    labels = {target.id: target.label or target.id for target in question.targets}
    return {
        "question": question.text,
        "probabilities": {labels.get(target, target): round(p, 4) for target, p in forecast.p.items()},
        "as_of": str(forecast.as_of),
        "forecaster": forecast.forecaster,
        "reasons": forecast.rationale,
    }


async def grow_tree_tool(desk: ServerPermissions, wish: TreeArguments) -> dict[str, Any]:
    """A tree of claims behind a claim, with its numbers, its file and its cost."""
    from foretell.forecasters.tree.arithmetic.sensitivity import sensitivities
    from foretell.forecasters.tree.tree_file import tree_to_dict
    from foretell.operations.tree import TreeRequest, grow_tree

    made = TreeRequest(
        asked=TypedQuestion(text=wish.claim, by=wish.by, as_of=wish.as_of, criteria=wish.criteria),
        models={"agent": desk.model(wish.model)},
        options={"rule": wish.rule, "grounder": wish.grounder, "leaves": wish.leaves, "rounds": wish.rounds},
        search=desk.search,
        budget=wish.budget,
    )
    harvest = await grow_tree(made, desk.settings)
    if not harvest.answer.usage.calls:
        raise InputError(BUDGET_TOO_SMALL, hint="raise --allow-spending, or the budget of the tree")
    root = harvest.tree.nodes[harvest.tree.root]
    return {
        "claim": root.claim,
        "p": root.p,
        "run": harvest.run,
        "file": str(harvest.path),
        "hangs_on": [
            {"id": one.id, "claim": one.claim, "p": round(one.p, 4), "slope": round(one.slope, 4)}
            for one in sensitivities(harvest.tree)[:10]
        ],
        "cost": {"dollars": round(harvest.answer.usage.dollars, 6), "calls": harvest.answer.usage.calls},
        "server_spending": desk.spending(),
        "warnings": list(harvest.warnings),
        "tree": tree_to_dict(harvest.tree),
    }


# `list_runs` and `show_run`: what was asked before, and how the answers came about.


async def list_runs(desk: ServerPermissions, wish: ListRunsArguments) -> dict[str, Any]:
    """The newest first."""

    def read() -> dict[str, Any]:
        with closing(RunStore(desk.settings.store)) as store:
            found = store.runs()
        return {"runs": [_run_to_dict(row) for row in found[: wish.limit]], "in_all": len(found)}

    return await asyncio.to_thread(read)


async def show_run(desk: ServerPermissions, wish: ShowRunArguments) -> dict[str, Any]:
    """Its answers, or one question with every step."""
    return await asyncio.to_thread(_run_details, desk, wish)


def _run_to_dict(row: "RunRow") -> dict[str, Any]:
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


def _run_details(desk: ServerPermissions, wish: ShowRunArguments) -> dict[str, Any]:
    from foretell.runs.store import find_run

    with closing(RunStore(desk.settings.store)) as store:
        id = find_run(store, wish.run)
        row = store.run(id)
        assert row is not None
        texts = {question.id: question.text for question in store.questions(id)}
        answers = [answer for answer in store.answers(id) if wish.question in (None, answer.question_id)]
        if wish.question is not None and not answers:
            raise InputError(f"run {id} has no answer to {wish.question!r}", hint="show_run lists its questions")
        told = [_answer_to_dict(answer, texts, whole=wish.question is not None) for answer in answers[: wish.limit]]
        steps = _steps(store, id, wish) if wish.question is not None else {}
    return {"run": _run_to_dict(row), "answers": told, "in_all": len(answers), **steps}


def _answer_to_dict(answer: Forecast | Failure, texts: dict[str, str], *, whole: bool) -> dict[str, Any]:
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


def _steps(store: RunStore, run: str, wish: ShowRunArguments) -> dict[str, Any]:
    from foretell.report.trace import describe_event

    steps: dict[int, list[str]] = {}
    for _, key, event in store.events(run, wish.question):
        steps.setdefault(key.trial, []).append(describe_event(event).strip())
    return {"steps": {f"trial {trial}": lines[: wish.limit] for trial, lines in sorted(steps.items())}}


# `score`: forecasts against outcomes.


async def score(desk: ServerPermissions, wish: ScoreArguments) -> dict[str, Any]:
    """The board, best first, with intervals and the difference to the reference."""
    return await asyncio.to_thread(_score_tables, desk, wish)


def _score_tables(desk: ServerPermissions, wish: ScoreArguments) -> dict[str, Any]:
    from foretell.metrics.bootstrap import Resampling
    from foretell.scoring.join import ReadOptions, read_table
    from foretell.scoring.score import ScoringOptions, score_table

    scoring = ScoringOptions(
        by=tuple(wish.by),
        metric=wish.metric,
        reference=wish.reference,
        missing=wish.missing,
        resampling=Resampling(draws=wish.draws),
    )
    forecasts = _rows_or_file(desk, wish.forecasts, wish.forecasts_file, "forecasts")
    outcomes = _rows_or_file(desk, wish.outcomes, wish.outcomes_file, "outcomes")
    board = score_table(read_table(forecasts, outcomes, ReadOptions(trials=wish.trials)), scoring).to_dict()
    return {
        **board,
        "scores": board["scores"][: wish.top],
        "differences": board["differences"][: wish.top],
        "rows": len(board["scores"]),
    }


def _rows_or_file(desk: ServerPermissions, rows: list[dict[str, Any]], file: str | None, name: str) -> Any:
    if bool(rows) == (file is not None):
        raise InputError(f"give either rows of {name} or {name}_file", column=name)
    return rows if file is None else desk.files.find(file)


# `what_if`: other numbers at some claims of a tree, and what follows.

MAX_CLAIMS = 20_000
SPREAD_DRAWS = 10_000
MAX_NUMBERS = 10_000_000
"""Claims times draws that are held at once."""
MAX_TREE_PROBLEMS = 10
"""Problems of a tree that are told at once."""
MAX_CHANGES = 60
"""Claims that are shown for one scenario, those that moved furthest first."""


async def what_if(desk: ServerPermissions, wish: WhatIfArguments) -> dict[str, Any]:
    """Old and new probabilities; no model is asked."""
    try:
        return await asyncio.to_thread(_run_what_if, desk, wish)
    except InvalidTree as error:
        # An assistant repairs several things at once more easily than one after the other.
        raise InputError("; ".join(str(one) for one in error.problems[:MAX_TREE_PROBLEMS])) from None


def _run_what_if(desk: ServerPermissions, wish: WhatIfArguments) -> dict[str, Any]:
    from foretell.forecasters.tree.arithmetic.sensitivity import sensitivities
    from foretell.forecasters.tree.what_if import compare_scenarios

    found = _read_tree(desk, wish)
    outcomes = compare_scenarios(found.tree, _scenarios(found, wish))
    tree = outcomes[0].tree if len(outcomes) == 1 else found.tree
    root = found.tree.nodes[found.tree.root]
    hanging = [{"id": s.id, "claim": s.claim, "p": s.p, "slope": s.slope} for s in sensitivities(tree)[:20]]
    return {
        "root": root.id,
        "claim": root.claim,
        "p": root.p,
        "scenarios": [_outcome_to_dict(outcome) for outcome in outcomes],
        "hangs_on": hanging,
        **_tornado_and_spread(tree, wish),
    }


def _read_tree(desk: ServerPermissions, wish: WhatIfArguments) -> "TreeFile":
    from dataclasses import replace

    from foretell.forecasters.tree.arithmetic.evaluation import evaluate
    from foretell.forecasters.tree.tree_file import read_tree_file, tree_from_dict

    if (wish.tree is None) == (wish.file is None):
        raise InputError("give either the tree or the file that holds it")
    if wish.file is not None:
        return read_tree_file(desk.files.find(wish.file))
    file = tree_from_dict(wish.tree)
    if len(file.tree.nodes) > MAX_CLAIMS:
        raise InputError(f"the tree has {len(file.tree.nodes):,} claims; at most {MAX_CLAIMS:,} can be sent")
    return replace(file, tree=evaluate(file.tree).tree)


def _scenarios(found: "TreeFile", wish: WhatIfArguments) -> "list[Scenario]":
    from foretell.forecasters.tree.edits import Scenario, SetP, Unpin

    for name in wish.scenarios:
        if name not in found.scenarios:
            known = ", ".join(found.scenarios) or "there are none"
            raise InputError(f"no scenario {name!r} is saved", column="scenarios", hint=f"saved: {known}")
    edits: list[Edit] = [SetP(id=id, p=p) for id, p in wish.set.items()]
    edits += [Unpin(id=id) for id in wish.unpin]
    own = [Scenario(name="as set", edits=tuple(edits))] if edits else []
    return [found.scenarios[name] for name in wish.scenarios] + own


def _outcome_to_dict(outcome: "WhatIfResult") -> dict[str, Any]:
    moved = sorted(outcome.changes, key=lambda change: -abs(change.moved))
    return {
        "name": outcome.name,
        "p": outcome.p,
        "changes": [
            {"id": one.id, "claim": one.claim, "before": one.before, "after": one.after} for one in moved[:MAX_CHANGES]
        ],
        "changed": len(outcome.changes),
        "judged_before_the_change": list(outcome.stale),
        "held_at_the_end_of_the_range": list(outcome.held),
    }


def _tornado_and_spread(tree: "Tree", wish: WhatIfArguments) -> dict[str, Any]:
    """The tornado and the spread, where they were asked for."""
    import numpy as np

    from foretell.forecasters.tree.arithmetic.sensitivity import tornado, tree_spread

    extras: dict[str, Any] = {}
    if wish.tornado:
        bars: Sequence[Any] = tornado(tree, sd=wish.sd or None)
        extras["tornado"] = [asdict(bar) for bar in bars[:MAX_CHANGES]]
    if wish.sd:
        draws = max(200, min(SPREAD_DRAWS, MAX_NUMBERS // len(tree.nodes)))
        extras["spread"] = asdict(tree_spread(tree, wish.sd, draws=draws, rng=np.random.default_rng(0)))
    return extras
