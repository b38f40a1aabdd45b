"""Check that claims are self-contained, and find claims that repeat or correlate with each other."""

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import combinations
from typing import Any, Literal, NamedTuple

from foretell.forecasters.forecaster import Context
from foretell.forecasters.tree.grow.prompting import (
    NUMBER,
    TEXT,
    StructuredRequest,
    TreeQuestion,
    fill_prompts,
    sections,
)
from foretell.models.structured_output import closed_object

SHORTEST, LONGEST = 12, 500
_ID = re.compile(r"\bP\d+(?:\.\d+)+\b|\bP[0-9]\b")
_DANGLING = re.compile(
    r"^(?:it|this|that|these|those|they|he|she|its|their|his|her|such|so|the (?:former|latter|above|same))\b"
    r"|\bthe (?:above|aforementioned|said|parent|root|main|original|previous|other|sibling) "
    r"(?:claim|proposition|statement|event|metric|condition|outcome)\b"
    r"|\b(?:this|that|the same) (?:metric|event|company|country|claim|outcome|deadline|date|period|threshold|target)\b"
    r"|\bas (?:stated|described|mentioned|defined) (?:above|earlier|before)\b",
    re.IGNORECASE,
)
_RELATIVE = re.compile(
    r"\b(?:today|tomorrow|yesterday|tonight|nowadays|by then|until then|by the deadline|before the deadline)\b"
    r"|\b(?:this|next|last|coming|previous|current|past) (?:day|week|weekend|month|quarter|season|year|decade|"
    r"spring|summer|autumn|fall|winter|january|february|march|april|may|june|july|august|september|october|"
    r"november|december|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b"
    r"|\b(?:in|within|over|for) the (?:next|coming|last|past|previous) (?:[\w-]+ ){0,2}"
    r"(?:hours|days|weeks|months|quarters|years|decades)\b"
    r"|\bbefore (?:it|this question|the question) (?:resolves|closes|ends)\b",
    re.IGNORECASE,
)
_NEVER_ALONE = re.compile(r"\?\s*$")


def claim_faults(claim: str) -> list[str]:
    """Reasons why a claim is not self-contained; empty if it is.

    >>> claim_faults("The Bank of England cuts its policy rate below 3.5 % by 31 December 2026.")
    []
    >>> claim_faults("It rises next year.")
    ['it says "It", which means nothing without the other claims', 'it says "next year": write the date or period out']
    >>> claim_faults("Will the bill pass?")
    ['it is a question: write it as a statement']
    """
    text = " ".join(claim.split())
    found: list[str] = []
    if len(text) < SHORTEST:
        found.append("it is too short to be understood by itself")
    if len(text) > LONGEST:
        found.append(f"it is longer than {LONGEST} characters: one plain statement is wanted")
    if _NEVER_ALONE.search(text):
        found.append("it is a question: write it as a statement")
    if (id := _ID.search(text)) is not None:
        found.append(f'it refers to another claim by its id ("{id[0]}")')
    if (word := _DANGLING.search(text)) is not None:
        found.append(f'it says "{word[0]}", which means nothing without the other claims')
    if (when := _RELATIVE.search(text)) is not None:
        found.append(f'it says "{when[0]}": write the date or period out')
    return found


def tidy(claim: str) -> str:
    """Normalise whitespace, so that the claim is on one line."""
    return " ".join(claim.split())


# Whether two claims say the same, in part or in whole: by their words, and by what a model thinks of them.

Likeness = Literal["same", "opposite", "alike", "apart"]

ALIKE = 0.75
"""Minimum similarity at which two claims are reported as overlapping."""
TOGETHER = 0.6
"""Minimum absolute correlation at which two claims are reported as dependent."""
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)?", re.UNICODE)
_NOT = frozenset({"not", "no", "never", "fails", "fail", "failed", "without", "neither", "cannot"})
_LITTLE = frozenset(
    _WORD.findall(
        "a an the of in on at by to for from with and or is are was were be been being will would has have had do does "
        "did its it as that this than into over their"
    )
)


def stems(claim: str) -> list[str]:
    """Return the content words of a claim, roughly stemmed, in order.

    >>> stems("The banks will cut their rates by 31 March 2026.")
    ['bank', 'cut', 'rat', '31', 'march', '2026']
    """
    words = (word.casefold() for word in _WORD.findall(claim))
    return [_stem(word) for word in words if word not in _LITTLE]


def _stem(word: str) -> str:
    for endings in (("s",), ("ing", "ed")):
        ending = next((end for end in endings if word.endswith(end) and len(word) - len(end) >= 3), "")
        if ending and not word.endswith("ss"):
            word = word[: -len(ending)]
    return word.rstrip("e") if len(word) > 3 else word


class _Form(NamedTuple):
    """Normalised words of a claim, for comparison."""

    words: frozenset[str]
    """The words without negations."""
    turned: tuple[str, ...]
    """The same words in order, rotated to the alphabetically smallest rotation, so that moving a phrase to the front
    changes nothing."""
    denied: bool


@lru_cache(maxsize=20_000)
def _form(claim: str) -> _Form:
    """Normalise a claim. Cached, because a claim is compared with all its ancestors and siblings."""
    words = stems(claim)
    meant = tuple(word for word in words if word not in _NOT)
    turned = min((meant[n:] + meant[:n] for n in range(len(meant))), default=())
    return _Form(frozenset(meant), turned, len(meant) < len(words))


def _similarity(a: frozenset[str], b: frozenset[str]) -> float:
    """Jaccard similarity: shared words divided by all words (Jaccard 1901)."""
    return len(a & b) / len(a | b) if a | b else 1.0


def claim_likeness(a: str, b: str) -> Likeness:
    """Compare two claims by their words; word order matters, as in who beats whom.

    >>> claim_likeness("Inflation exceeds 3 % in May 2026.", "In May 2026 inflation exceeds 3 %")
    'same'
    >>> claim_likeness("Inflation exceeds 3 % in May 2026.", "Inflation does not exceed 3 % in May 2026.")
    'opposite'
    >>> claim_likeness("Ajax beats Feyenoord on 3 May 2026.", "Feyenoord beats Ajax on 3 May 2026.")
    'alike'
    >>> claim_likeness("Inflation exceeds 3 % in May 2026.", "Rents rise by 4 % in May 2026.")
    'apart'
    """
    first, second = _form(a), _form(b)
    if first.turned == second.turned:
        return "same" if first.denied == second.denied else "opposite"
    return "alike" if _similarity(first.words, second.words) >= ALIKE else "apart"


def similar_claims(claims: Mapping[str, str]) -> list[str]:
    """Return a note on each pair of claims with similar wording."""
    words = {id: _form(claim).words for id, claim in claims.items()}
    found = ((a, b, _similarity(words[a], words[b])) for a, b in combinations(words, 2))
    return [
        f"{a} and {b} are worded alike (similarity {like:.2f}): they may say the same thing"
        for a, b, like in found
        if like >= ALIKE
    ]


def repeated_claims(claims: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return groups of claims that say the same, without comparing every pair.

    >>> repeated_claims({"P1": "It rains in Oslo.", "P2": "Snow falls.", "P3.1": "In Oslo it rains"})
    [('P1', 'P3.1')]
    """
    groups: dict[tuple[object, bool], list[str]] = {}
    for id, claim in claims.items():
        form = _form(claim)
        groups.setdefault((form.turned, form.denied), []).append(id)
    return [tuple(ids) for ids in groups.values() if len(ids) > 1]


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
    pair = closed_object({"a": TEXT, "b": TEXT, "correlation": {**NUMBER, "minimum": -1, "maximum": 1}, "reason": TEXT})
    place = {id: n for n, id in enumerate(claims)}

    def read(answer: Mapping[str, Any]) -> JudgedPairs:
        notes: dict[tuple[str, ...], str] = {}
        together: dict[tuple[str, ...], float] = {}
        for one in answer["pairs"]:
            # Those that name other ids, or one claim twice, say nothing.
            ids = tuple(sorted({str(one["a"]), str(one["b"])} & place.keys(), key=place.__getitem__))
            if len(ids) == 2:
                together[ids] = float(one["correlation"])
            if len(ids) == 2 and abs(one["correlation"]) >= TOGETHER:
                reason = " ".join(str(one["reason"]).split())[:200]
                moved = f"{ids[0]} and {ids[1]} are judged to move together (correlation {one['correlation']:+.1f})"
                notes[ids] = f"{moved}: {reason}" if reason else moved
        order = sorted(together, key=lambda ids: [place[id] for id in ids])
        pairs = {" ".join(ids): together[ids] for ids in order if together[ids]}
        return JudgedPairs(pairs, [notes[ids] for ids in order if ids in notes])

    request = StructuredRequest(
        role="judge",
        slot=f"{about.slot}/{parent}/correlation",
        system=fill_prompts("correlate"),
        user=sections(("Claims", "\n".join(f"{id}: {claim}" for id, claim in claims.items()))),
        schema=closed_object({"pairs": {"type": "array", "items": pair}}),
    )
    return await request.ask(context, read)
