"""Open Metaculus questions about a number, asked so that a forecaster states a whole distribution."""

from collections.abc import Sequence

from foretell.questions.clock import AsOf
from foretell.questions.question import Question, Target
from foretell.sources.listing import live
from foretell.sources.markets.fields import words
from foretell.sources.markets.metaculus import MetaculusClient
from foretell.sources.payload import Payload
from foretell.sources.posting.metaculus_asked import Asked, asked_in
from foretell.sources.posting.scale import Scale

KINDS = ("numeric", "discrete")
PAGE = 100
SHARES = (0.25, 0.5, 0.75)
"""Where in the range the thresholds stand that the question has as targets."""


async def open_numbers(
    client: MetaculusClient, as_of: AsOf, *, tournaments: Sequence[str] = (), limit: int = 100
) -> list[Question]:
    """The newest open ones. Dates are left out: nobody states them in seconds."""
    live(as_of)
    found: list[Question] = []
    more, passed = True, 0
    while more and len(found) < limit:
        query = [("statuses", "open"), ("limit", str(PAGE)), ("offset", str(passed)), ("order_by", "-published_at")]
        query += [("forecast_type", kind) for kind in KINDS]
        query += [("include_descriptions", "true"), *(("tournaments", name) for name in tournaments)]
        answer = await client.read("/posts/", query)
        for row in answer.need("results").items():
            found += _questions(row, as_of)
        more, passed = answer.present("next") is not None, passed + PAGE
    return found[:limit]


def _questions(row: Payload, as_of: AsOf) -> list[Question]:
    asked = [one for one in asked_in(row) if one.kind in KINDS and not one.closed(as_of.at)]
    rules = row.get("question") or row.get("group_of_questions")
    return [
        _question(row, rules, one, one.scale, as_of) for one in asked if rules is not None and one.scale is not None
    ]


def _question(row: Payload, rules: Payload, asked: Asked, scale: Scale, as_of: AsOf) -> Question:
    title = words(row, "title")
    part = f"#{asked.id}" if asked.grouped else ""
    unit = words(rules, "unit")
    edges = scale.edges()
    levels = dict.fromkeys(f">{edges[round(share * scale.outcomes)]:.10g}" for share in SHARES)
    return Question(
        id=f"metaculus/{asked.post}{part}",
        source="metaculus",
        text=f"{title} ({asked.title})" if asked.grouped and asked.title else title,
        due=as_of.at,
        targets=tuple(Target(id=level, label=f"{level} {unit}".strip()) for level in levels),
        subtype="numeric",
        criteria="\n\n".join(filter(None, [words(rules, "resolution_criteria"), words(rules, "fine_print")])),
        background="\n\n".join(filter(None, [words(rules, "description"), _range(scale, unit)])),
        opens_at=asked.opens_at,
        closes_at=asked.closes_at,
        url=f"https://www.metaculus.com/questions/{asked.post}/",
    )


def _range(scale: Scale, unit: str) -> str:
    """The range in words.

    >>> _range(Scale(minimum=0, maximum=90, open_upper=True), "seats")
    'The range asked about is 0 to 90 seats; it may end up above, but not below.'
    """
    ends = {
        (True, True): "it may end up above or below",
        (True, False): "it may end up below, but not above",
        (False, True): "it may end up above, but not below",
        (False, False): "it cannot end up outside",
    }
    told = f"The range asked about is {scale.minimum:.10g} to {scale.maximum:.10g} {unit}".rstrip()
    return f"{told}; {ends[scale.open_lower, scale.open_upper]}."
