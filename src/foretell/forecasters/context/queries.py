"""What to search for: proposed by a model, or made from the question's own words."""

from collections.abc import Mapping
from typing import Any, cast

from foretell.forecasters.context.asking import closed
from foretell.forecasters.context.context import one_line
from foretell.forecasters.context.rendering import outcomes
from foretell.llm.answer import BadAnswer
from foretell.llm.message import Message, System, User
from foretell.questions.clock import AsOf
from foretell.questions.question import Question

LONGEST_QUERY = 200
LABELS = 4
"""Outcomes named in a search."""
INSTRUCTION = """\
You plan the search behind a forecast. Propose $count web searches that together find what bears most on the question \
below, as of the moment it states: the latest reports on the matter, the state of the people, teams, prices or \
institutions involved, schedules and announcements up to the deadline, expert opinions, and how often such things \
happened before.

- Each search is a handful of concrete words, as typed into a search box: names, places, quantities, dates.
- The searches differ from each other in what they look for, not in their wording alone.
- Leave out general explanations, and leave out prediction markets and their prices.

Answer with one JSON object and nothing else: {"queries": ["<words>", …]}"""


def template_queries(question: Question, count: int) -> tuple[str, ...]:
    """Searches in the question's own words, the plain ones first.

    >>> from foretell.questions import Target
    >>> q = Question(id="q", source="own", text="Will it snow in Oslo?", due="2026-01-10", targets=(Target(id="yes"),))
    >>> template_queries(q, 3)
    ('it snow in Oslo', 'it snow in Oslo latest news', 'it snow in Oslo forecast')
    """
    core = one_line(question.text, LONGEST_QUERY - 20).removeprefix("Will ").rstrip(" ?.…")
    several = len(question.targets) > 1
    names = " ".join((target.label or target.id) for target in question.targets[:LABELS]) if several else ""
    made = (core, f"{core} {names}", f"{core} latest news", f"{core} forecast", f"{core} history statistics")
    return _sound(made, count)


def query_messages(question: Question, as_of: AsOf, count: int) -> tuple[Message, ...]:
    """What a model is asked."""
    parts = [
        f"# Question\n\n{question.text}",
        f"# How it is decided\n\n{question.criteria[:4000]}" if question.criteria else "",
        f"# Outcomes\n\n{outcomes(question)[:4000]}",
        f"# Moment\n\n{as_of.at:%Y-%m-%d %H:%M} UTC",
    ]
    told = INSTRUCTION.replace("$count", str(count))
    return System(text=told), User(text="\n\n".join(filter(None, parts)))


QUERY_SCHEMA = closed({"queries": {"type": "array", "items": {"type": "string"}, "minItems": 1}})


def read_queries(said: Mapping[str, Any], count: int) -> tuple[str, ...]:
    """The searches of an answer, or `BadAnswer`."""
    given = said.get("queries")
    if not isinstance(given, list):
        raise BadAnswer("`queries` must be a list of texts")
    found = _sound([one for one in cast("list[Any]", given)[:50] if isinstance(one, str)], count)
    if not found:
        raise BadAnswer("`queries` holds no search")
    return found


def _sound(queries: list[str] | tuple[str, ...], count: int) -> tuple[str, ...]:
    lines = [one_line(query, LONGEST_QUERY) for query in queries]
    once = {line.casefold(): line for line in reversed(lines) if line}
    return tuple(reversed(once.values()))[:count]
