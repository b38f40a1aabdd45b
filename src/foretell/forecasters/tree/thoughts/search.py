"""Four ways to think about a claim: along one line, in a tree, in a graph, in several trees.

Chain (Wei et al. 2022): one thought after the other. Tree (Yao et al. 2023): several next thoughts for each line, lines
rated, the best ones followed up, the best of all concluded from. Graph (Besta et al. 2024): the best thoughts are
joined into a new one, and again. Forest (Bi et al. 2025): several trees from different standpoints, their answers
averaged. All of them have every thought looked into by the same grounder that a proposition tree has for its leaves.
"""

from collections.abc import Sequence

from foretell.forecasters.combine.aggregate import logit_mean
from foretell.forecasters.tree.thoughts.line import Conclusion, Line, Thought
from foretell.forecasters.tree.thoughts.minutes import Place
from foretell.forecasters.tree.thoughts.settings import ThoughtSettings
from foretell.forecasters.tree.thoughts.side_by_side import side_by_side
from foretell.forecasters.tree.thoughts.thinker import Thinker
from foretell.llm.model import ModelError

STANDPOINTS = (
    "",
    "Begin with precedents: how often things of this kind happened, and how alike the present case is.",
    "Begin with what would have to happen for the claim to come true, and who would have to do it.",
    "Begin with what could prevent it: obstacles, delays, opponents, rules.",
    "Begin with the numbers: levels, trends and spreads of the quantities the claim hangs on.",
    "Begin with what those who are closest to the matter expect, and why they might be wrong.",
)
"""Where the trees of a forest set out from; the first is free."""


class NothingFound(Exception):
    """No thought could be looked into; the text says why."""


async def think(thinker: Thinker, settings: ThoughtSettings) -> tuple[float, list[Conclusion]]:
    """The probability of the claim, and what it was concluded from; `NothingFound` or a `ModelError` without any."""
    match settings.kind:
        case "chain":
            found = [await chain(thinker, settings)]
        case "tree":
            found = [await tree(thinker, settings)]
        case "graph":
            found = [await graph(thinker, settings)]
        case "forest":
            found = await forest(thinker, settings)
    return float(logit_mean([one.p for one in found])), found


async def chain(thinker: Thinker, settings: ThoughtSettings) -> Conclusion:
    """One thought after the other, until there is enough."""
    line = Line()
    for level in range(1, settings.depth + 1):
        new = await _next(thinker, line, 1, (1, level, 1))
        if not new:
            break
        line = line.then(*new)
    return await _conclude(thinker, line, (1, settings.depth + 1, 1))


async def tree(thinker: Thinker, settings: ThoughtSettings, number: int = 1, standpoint: str = "") -> Conclusion:
    """Breadth first, the best lines kept at every level. A line that says enough stays in the race as it is."""
    lines = [Line()]
    for level in range(1, settings.depth + 1):
        steps = [
            _next(thinker, line, settings.width, (number, level, branch), standpoint)
            for branch, line in enumerate(lines, start=1)
        ]
        grown = await side_by_side(steps)
        if not any(grown):
            break
        longer = [[line.then(one) for one in new] or [line] for line, new in zip(lines, grown, strict=True)]
        found = [line for some in longer for line in some if line.thoughts]
        lines = await _best(thinker, found, settings.keep if level < settings.depth else 1, (number, level, 1))
    return await _conclude(thinker, lines[0], (number, settings.depth + 1, 1))


async def graph(thinker: Thinker, settings: ThoughtSettings) -> Conclusion:
    """Thoughts side by side; the best are joined into a new one, which is looked into and takes part from then on."""
    pool = await _next(thinker, Line(), settings.width, (1, 1, 1))
    for level in range(2, settings.depth + 1):
        known = [one for one in pool if one.p is not None]
        if len(known) < 2:
            break
        best = await _best(thinker, [Line(thoughts=(one,)) for one in known], settings.keep, (1, level, 1))
        parts = [line.thoughts[0] for line in best]
        try:
            joined = await thinker.merge(parts, (1, level, 1))
        except ModelError:
            break
        pool += await thinker.look_into([joined], Line(thoughts=tuple(parts)), (1, level, 1))
    return await _conclude(thinker, Line(thoughts=tuple(pool)), (1, settings.depth + 1, 1))


async def forest(thinker: Thinker, settings: ThoughtSettings) -> list[Conclusion]:
    """Trees side by side, each from its standpoint; one that comes to nothing is left out."""
    views = [STANDPOINTS[number % len(STANDPOINTS)] for number in range(settings.trees)]

    async def one(number: int, view: str) -> Conclusion | str:
        try:
            return await tree(thinker, settings, number, view)
        except (ModelError, NothingFound) as error:
            return str(error)

    ended = await side_by_side(one(number, view) for number, view in enumerate(views, start=1))
    found = [end for end in ended if isinstance(end, Conclusion)]
    if not found:
        raise NothingFound("; ".join(dict.fromkeys(map(str, ended))))
    return found


async def _next(thinker: Thinker, line: Line, count: int, place: Place, standpoint: str = "") -> list[Thought]:
    """The next thoughts of a line, looked into; none where the line says enough or the model fails."""
    try:
        new = await thinker.propose(line, count, place, standpoint)
    except ModelError:
        return []
    return await thinker.look_into(new, line, place)


async def _best(thinker: Thinker, lines: Sequence[Line], keep: int, place: Place) -> list[Line]:
    """The lines that are worth most, best first; in the order given where nobody rates them."""
    told = [line for line in lines if line.grounded] or list(lines)
    if len(told) == 1:
        return told
    try:
        worth = await thinker.rate(told, place)
    except ModelError:
        return told[:keep]
    return sorted(told, key=lambda line: -worth[line.id])[:keep]


async def _conclude(thinker: Thinker, line: Line, place: Place) -> Conclusion:
    if not line.grounded:
        errors = dict.fromkeys(thought.error for thought in line.thoughts if thought.error)
        raise NothingFound("; ".join(errors) or "no thought was proposed")
    return await thinker.conclude(line, place)
