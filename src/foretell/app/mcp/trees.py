"""`what_if`: other numbers at some claims of a tree, and what follows."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from foretell.app.mcp.desk import Desk
from foretell.app.mcp.wishes import WhatIfWish
from foretell.forecasters.tree.problems import InvalidTree
from foretell.questions.problems import InputError

if TYPE_CHECKING:
    from foretell.forecasters.tree.files.tree_file import TreeFile
    from foretell.forecasters.tree.proposition import Tree
    from foretell.forecasters.tree.whatif.edits import Edit, Scenario
    from foretell.forecasters.tree.whatif.whatif import Outcome

MOST_CLAIMS = 20_000
DRAWS = 10_000
MOST_NUMBERS = 10_000_000
"""Claims times draws that are held at once."""
PROBLEMS = 10
"""Problems of a tree that are told at once."""
SHOWN = 60
"""Claims that are shown for one scenario, those that moved furthest first."""


async def what_if(desk: Desk, wish: WhatIfWish) -> dict[str, Any]:
    """Old and new probabilities; no model is asked."""
    try:
        return await asyncio.to_thread(_played, desk, wish)
    except InvalidTree as error:
        # An assistant repairs several things at once more easily than one after the other.
        raise InputError("; ".join(str(one) for one in error.problems[:PROBLEMS])) from None


def _played(desk: Desk, wish: WhatIfWish) -> dict[str, Any]:
    from foretell.forecasters.tree.influence.sensitivity import sensitivities
    from foretell.forecasters.tree.whatif.whatif import compare

    found = _read(desk, wish)
    outcomes = compare(found.tree, _scenarios(found, wish))
    tree = outcomes[0].tree if len(outcomes) == 1 else found.tree
    root = found.tree.nodes[found.tree.root]
    hanging = [{"id": s.id, "claim": s.claim, "p": s.p, "slope": s.slope} for s in sensitivities(tree)[:20]]
    return {
        "root": root.id,
        "claim": root.claim,
        "p": root.p,
        "scenarios": [_told(outcome) for outcome in outcomes],
        "hangs_on": hanging,
        **_extras(tree, wish),
    }


def _read(desk: Desk, wish: WhatIfWish) -> "TreeFile":
    from dataclasses import replace

    from foretell.forecasters.tree.arithmetic.evaluate import evaluate
    from foretell.forecasters.tree.files.tree_file import read_tree_file, tree_from_dict

    if (wish.tree is None) == (wish.file is None):
        raise InputError("give either the tree or the file that holds it")
    if wish.file is not None:
        return read_tree_file(desk.files.find(wish.file))
    file = tree_from_dict(wish.tree)
    if len(file.tree.nodes) > MOST_CLAIMS:
        raise InputError(f"the tree has {len(file.tree.nodes):,} claims; at most {MOST_CLAIMS:,} can be sent")
    return replace(file, tree=evaluate(file.tree).tree)


def _scenarios(found: "TreeFile", wish: WhatIfWish) -> "list[Scenario]":
    from foretell.forecasters.tree.whatif.edits import Scenario, SetP, Unpin

    for name in wish.scenarios:
        if name not in found.scenarios:
            known = ", ".join(found.scenarios) or "there are none"
            raise InputError(f"no scenario {name!r} is saved", column="scenarios", hint=f"saved: {known}")
    edits: list[Edit] = [SetP(id=id, p=p) for id, p in wish.set.items()]
    edits += [Unpin(id=id) for id in wish.unpin]
    own = [Scenario(name="as set", edits=tuple(edits))] if edits else []
    return [found.scenarios[name] for name in wish.scenarios] + own


def _told(outcome: "Outcome") -> dict[str, Any]:
    moved = sorted(outcome.changes, key=lambda change: -abs(change.moved))
    return {
        "name": outcome.name,
        "p": outcome.p,
        "changes": [
            {"id": one.id, "claim": one.claim, "before": one.before, "after": one.after} for one in moved[:SHOWN]
        ],
        "changed": len(outcome.changes),
        "judged_before_the_change": list(outcome.stale),
        "held_at_the_end_of_the_range": list(outcome.held),
    }


def _extras(tree: "Tree", wish: WhatIfWish) -> dict[str, Any]:
    """The tornado and the spread, where they were asked for."""
    import numpy as np

    from foretell.forecasters.tree.influence.sensitivity import tornado
    from foretell.forecasters.tree.influence.spread import spread

    extras: dict[str, Any] = {}
    if wish.tornado:
        bars: Sequence[Any] = tornado(tree, sd=wish.sd or None)
        extras["tornado"] = [asdict(bar) for bar in bars[:SHOWN]]
    if wish.sd:
        draws = max(200, min(DRAWS, MOST_NUMBERS // len(tree.nodes)))
        extras["spread"] = asdict(spread(tree, wish.sd, draws=draws, rng=np.random.default_rng(0)))
    return extras
