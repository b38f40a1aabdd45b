"""`ask` and `grow_tree`: answers with their reasons."""

import asyncio
from typing import Any

from foretell.app.answers import Research, asked_now, prepared_for, researched, without_model
from foretell.app.asking import Asked
from foretell.app.combining import combining_of
from foretell.app.mcp.desk import ALLOW_SPENDING, Desk
from foretell.app.mcp.wishes import AskWish, TreeWish
from foretell.app.outside import reference_class
from foretell.questions.forecast import Forecast
from foretell.questions.problems import InputError
from foretell.questions.question import Question

ALIKE = 8
"""Past questions that are shown."""
OUTSIDE = "This is the outside view: nothing was researched. "
BROKE = "the money that is left does not pay for a single call"


async def ask(desk: Desk, wish: AskWish) -> dict[str, Any]:
    """A probability: researched where that may be paid for, else the outside view."""
    asked = Asked(
        text=wish.question,
        by=wish.by,
        as_of=wish.as_of,
        options=tuple(wish.options),
        criteria=wish.criteria,
        price=wish.price,
    )
    if wish.research == "always" or wish.model is not None or (wish.research == "auto" and desk.may_spend):
        return await _researched(desk, wish, asked)
    return await asyncio.to_thread(_outside, desk, asked)


async def _researched(desk: Desk, wish: AskWish, asked: Asked) -> dict[str, Any]:
    research = Research(
        model=desk.model(wish.model), search=desk.search, trials=wish.trials, budget=wish.budget, combine="default"
    )
    prepared = prepared_for(asked, research)
    forecast = await researched(prepared, desk.settings, combining_of(research.combine))
    if not forecast.usage.calls:
        raise InputError(BROKE, hint="raise --allow-spending, or the budget of the question")
    return {
        **told(forecast, prepared.questions[0]),
        "how": f"researched by {research.model}",
        "run": prepared.spec.id,
        "cost": {"dollars": round(forecast.usage.dollars, 6), "calls": forecast.usage.calls},
        "server_spending": desk.spending(),
        "warnings": list(prepared.warnings),
    }


def _outside(desk: Desk, asked: Asked) -> dict[str, Any]:
    question = asked_now(asked)
    forecast = without_model(asked, desk.settings)
    found = reference_class(question, question.as_of_in("backtest" if asked.as_of else "live"), desk.settings)
    members = found.members[:ALIKE] if found else ()
    return {
        **told(forecast, question),
        "how": OUTSIDE + ("" if desk.may_spend else f"To research: {ALLOW_SPENDING}."),
        "similar_past_questions": [
            {"question": one.text.splitlines()[0][:300], "outcome": int(one.outcome), "known_on": str(one.known_on)}
            for one in members
        ],
        "cost": {"dollars": 0.0, "calls": 0},
    }


def told(forecast: Forecast, question: Question) -> dict[str, Any]:
    """Numbers and reasons of a forecast."""
    labels = {target.id: target.label or target.id for target in question.targets}
    return {
        "question": question.text,
        "probabilities": {labels.get(target, target): round(p, 4) for target, p in forecast.p.items()},
        "as_of": str(forecast.as_of),
        "forecaster": forecast.forecaster,
        "reasons": forecast.rationale,
    }


async def grow_tree(desk: Desk, wish: TreeWish) -> dict[str, Any]:
    """A tree of claims behind a claim, with its numbers, its file and its cost."""
    from foretell.app.growing import Wish, grow_claim
    from foretell.forecasters.tree.files.tree_file import tree_to_dict
    from foretell.forecasters.tree.influence.sensitivity import sensitivities

    made = Wish(
        asked=Asked(text=wish.claim, by=wish.by, as_of=wish.as_of, criteria=wish.criteria),
        models={"agent": desk.model(wish.model)},
        options={"rule": wish.rule, "grounder": wish.grounder, "leaves": wish.leaves, "rounds": wish.rounds},
        search=desk.search,
        budget=wish.budget,
    )
    harvest = await grow_claim(made, desk.settings)
    if not harvest.answer.usage.calls:
        raise InputError(BROKE, hint="raise --allow-spending, or the budget of the tree")
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
