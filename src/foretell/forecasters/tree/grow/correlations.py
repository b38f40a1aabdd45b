"""Ask a model which children of a claim are correlated with each other."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.grow.prompting import (
    NUMBER,
    TEXT,
    StructuredRequest,
    TreeQuestion,
    fill_prompts,
    sections,
)
from foretell.forecasters.tree.wording import TOGETHER
from foretell.models.structured_output import closed_object


class JudgedPairs(NamedTuple):
    """Pairs of claims that a model judges to be correlated."""

    together: Mapping[str, float]
    """Correlation of each pair, with keys such as "P1 P2"."""
    notes: list[str]
    """Notes on strongly correlated pairs."""


async def correlated_claims(
    about: TreeQuestion, context: Context, parent: str, claims: Mapping[str, str]
) -> JudgedPairs:
    """Ask a model for the correlations among the children of one parent."""
    pair_schema = closed_object(
        {"a": TEXT, "b": TEXT, "correlation": {**NUMBER, "minimum": -1, "maximum": 1}, "reason": TEXT}
    )
    place = {id: n for n, id in enumerate(claims)}

    def read(answer: Mapping[str, Any]) -> JudgedPairs:
        notes: dict[tuple[str, ...], str] = {}
        together: dict[tuple[str, ...], float] = {}
        for pair in answer["pairs"]:
            # Pairs that name other ids, or one claim twice, are ignored.
            ids = tuple(sorted({str(pair["a"]), str(pair["b"])} & place.keys(), key=place.__getitem__))
            if len(ids) == 2:
                together[ids] = float(pair["correlation"])
            if len(ids) == 2 and abs(pair["correlation"]) >= TOGETHER:
                reason = " ".join(str(pair["reason"]).split())[:200]
                moved = f"{ids[0]} and {ids[1]} are judged to move together (correlation {pair['correlation']:+.1f})"
                notes[ids] = f"{moved}: {reason}" if reason else moved
        order = sorted(together, key=lambda ids: [place[id] for id in ids])
        pairs = {" ".join(ids): together[ids] for ids in order if together[ids]}
        return JudgedPairs(pairs, [notes[ids] for ids in order if ids in notes])

    request = StructuredRequest(
        role="judge",
        slot=f"{about.slot}/{parent}/correlation",
        system=fill_prompts("correlate"),
        user=sections(("Claims", "\n".join(f"{id}: {claim}" for id, claim in claims.items()))),
        schema=closed_object({"pairs": {"type": "array", "items": pair_schema}}),
    )
    return await request.ask(context, read)
