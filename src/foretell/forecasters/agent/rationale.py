"""A belief as text for people: the answer, the case for and against with its sources, and what stayed open."""

from collections.abc import Mapping, Sequence

from foretell.forecasters.agent.belief import QUESTION, Evidence
from foretell.forecasters.agent.ending import Ending
from foretell.tools.shelf import Shelf

FORECAST = "Forecast: "
"""How the line with the numbers begins: whoever must not see them leaves it out."""


def rationale(ending: Ending, p: Mapping[str, float], shelf: Shelf) -> str:
    """The reasons behind a forecast, with one line per cited source at the end."""
    belief = ending.belief
    numbers = ", ".join(f"{target} {value:.3f}" for target, value in p.items())
    how = f"{ending.stop.value}; {ending.detail}" if ending.detail else ending.stop.value
    parts = [
        f"{FORECAST}{numbers} ({how}).",
        ending.reason or belief.reason,
        _listed("For", belief.evidence_for),
        _listed("Against", belief.evidence_against),
        "\n".join(["Open:", *(f"- {question}" for question in belief.open_questions)]) if belief.open_questions else "",
        _sources((*belief.evidence_for, *belief.evidence_against), shelf),
    ]
    return "\n\n".join(part for part in parts if part)


def without_numbers(text: str) -> str:
    """A rationale without the line that states the forecast.

    >>> without_numbers("Forecast: yes 0.300 (submitted)."), without_numbers("Polls moved.")
    ('', 'Polls moved.')
    """
    return "\n".join(line for line in text.splitlines() if not line.startswith(FORECAST)).strip()


def _listed(heading: str, evidence: Sequence[Evidence]) -> str:
    if not evidence:
        return ""
    return "\n".join([f"{heading}:", *(f"- {item.claim} [{item.source_id or 'no source'}]" for item in evidence)])


def _sources(evidence: Sequence[Evidence], shelf: Shelf) -> str:
    cited = dict.fromkeys(item.source_id for item in evidence if item.source_id and item.source_id != QUESTION)
    lines = [_source(shelf, source) for source in cited if source in shelf]
    return "\n".join(["Sources:", *lines]) if lines else ""


def _source(shelf: Shelf, source_id: str) -> str:
    found = shelf[source_id]
    when = found.published.date().isoformat() if found.published else "undated"
    return f"[{source_id}] {found.title} ({when}) {found.url}".rstrip()
