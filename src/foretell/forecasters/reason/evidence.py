"""Evidence that is kept per question, and the blind estimate that rests on it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from foretell.data.untrusted import listed_for_prompt
from foretell.forecasters.agent.belief import QUESTION, Belief, BeliefEvidence
from foretell.frozen import frozen
from foretell.questions.forecast import Numeric
from foretell.tools.leakage_filter import SourceStore

CHARACTERS_PER_TOKEN = 4
"""Usual length of a token, to limit the list of evidence."""
Direction = Literal["for", "against"]
OWN_FIELDS = ("id", "source_id")
"""Fields of an item that belong to its trial."""


@frozen
class EvidenceItem:
    """A fact with the source that shows it."""

    id: str
    """Number within the question, such as E3."""
    fact: str
    source_id: str = ""
    source: str = ""
    """Title and address of the source."""
    date: str = ""
    """Day on which the source was published."""
    bears_on: str = ""
    """What it is evidence about, if it is not the whole question."""
    direction: Direction = "for"

    def encoded(self) -> dict[str, str]:
        """Return the item as other trials read it: without its number and its source's id, which mean nothing there."""
        return {name: value for name, value in vars(self).items() if name not in OWN_FIELDS}

    @classmethod
    def decoded(cls, stored: Mapping[str, str]) -> "EvidenceItem":
        """Read an item that another trial left, still without a number.

        >>> item = EvidenceItem(id="E1", fact="It rained.", source_id="page_1", direction="against")
        >>> EvidenceItem.decoded(item.encoded())
        EvidenceItem(id='', fact='It rained.', source_id='', source='', date='', bears_on='', direction='against')
        """
        direction: Direction = "against" if stored.get("direction") == "against" else "for"
        texts = {name: str(stored.get(name, "")) for name in ("fact", "source", "date", "bears_on")}
        return cls(id="", **texts, direction=direction)

    def __str__(self) -> str:
        dated = f", {self.date}" if self.date else ""
        origin = f" ({self.source}{dated})" if self.source else ""
        return f"{self.id} {self.direction}: {self.fact}{origin}"


@frozen
class BlindEstimate:
    """A direct estimate of the question, made before any child exists."""

    p: Mapping[str, float]
    """Probability by target."""
    distribution: Numeric | None = None
    reason: str = ""


def evidence_of(belief: Belief, sources: SourceStore) -> tuple[EvidenceItem, ...]:
    """Return the evidence of a belief, numbered from E1."""
    sides: tuple[tuple[Direction, Sequence[BeliefEvidence]], ...] = (
        ("for", belief.evidence_for),
        ("against", belief.evidence_against),
    )
    items: list[EvidenceItem] = []
    for direction, side in sides:
        for evidence in side:
            fact, id = evidence.claim, evidence.source_id
            origin = sources[id] if id and id != QUESTION and id in sources else None
            title = "the question" if id == QUESTION else ""
            if origin is not None:
                title = listed_for_prompt(f"{origin.title} {origin.url}".strip())
            day = origin.published.date().isoformat() if origin is not None and origin.published else ""
            items.append(EvidenceItem(id="", fact=fact, source_id=id, source=title, date=day, direction=direction))
    return tuple(replace(item, id=f"E{number}") for number, item in enumerate(items, start=1))


def evidence_of_all(own: Sequence[EvidenceItem], others: Iterable[Mapping[str, str]]) -> tuple[EvidenceItem, ...]:
    """Return the evidence of a trial, then what only the others found, numbered on.

    >>> own = [EvidenceItem(id="E1", fact="It rained.")]
    >>> [str(item) for item in evidence_of_all(own, [{"fact": "It rained."}, {"fact": "It snowed."}])]
    ['E1 for: It rained.', 'E2 for: It snowed.']
    """
    items = {item.fact: item for item in own}
    for item in map(EvidenceItem.decoded, others):
        items.setdefault(item.fact, item)
    return tuple(replace(item, id=item.id or f"E{number}") for number, item in enumerate(items.values(), start=1))


def evidence_list(items: Iterable[EvidenceItem], tokens: int) -> str:
    """Return the evidence as a numbered list of at most this many tokens.

    >>> evidence_list([EvidenceItem(id="E1", fact="It rained.", direction="for")], 100)
    '- E1 for: It rained.'
    """
    lines: list[str] = []
    left = tokens * CHARACTERS_PER_TOKEN
    for item in items:
        line = f"- {item}"
        left -= len(line) + 1
        if left < 0:
            break
        lines.append(line)
    return "\n".join(lines)


def cited_items(ids: Collection[str], items: Iterable[EvidenceItem]) -> tuple[str, ...]:
    """Return the items with these ids as lines for a list of sources."""
    return tuple(str(item) for item in items if item.id in ids)
