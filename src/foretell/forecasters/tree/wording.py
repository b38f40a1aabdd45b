"""The wording of claims: whether they are self-contained, and which of them repeat or overlap each other."""

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import combinations
from typing import Literal, NamedTuple

from foretell.patterns import pattern

SHORTEST, LONGEST = 12, 500
_ID = pattern(r"\bP\d+(?:\.\d+)+\b|\bP[0-9]\b")
_DANGLING = pattern(
    r"^(?:it|this|that|these|those|they|he|she|its|their|his|her|such|so|the (?:former|latter|above|same))\b"
    r"|\bthe (?:above|aforementioned|said|parent|root|main|original|previous|other|sibling) "
    r"(?:claim|proposition|statement|event|metric|condition|outcome)\b"
    r"|\b(?:this|that|the same) (?:metric|event|company|country|claim|outcome|deadline|date|period|threshold|target)\b"
    r"|\bas (?:stated|described|mentioned|defined) (?:above|earlier|before)\b",
    re.IGNORECASE,
)
_RELATIVE = pattern(
    r"\b(?:today|tomorrow|yesterday|tonight|nowadays|by then|until then|by the deadline|before the deadline)\b"
    r"|\b(?:this|next|last|coming|previous|current|past) (?:day|week|weekend|month|quarter|season|year|decade|"
    r"spring|summer|autumn|fall|winter|january|february|march|april|may|june|july|august|september|october|"
    r"november|december|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b"
    r"|\b(?:in|within|over|for) the (?:next|coming|last|past|previous) (?:[\w-]+ ){0,2}"
    r"(?:hours|days|weeks|months|quarters|years|decades)\b"
    r"|\bbefore (?:it|this question|the question) (?:resolves|closes|ends)\b",
    re.IGNORECASE,
)
_QUESTION_MARK = pattern(r"\?\s*$")


def claim_faults(claim: str) -> list[str]:
    """Return the reasons why a claim is not self-contained; empty if it is.

    >>> claim_faults("The Bank of England cuts its policy rate below 3.5 % by 31 December 2026.")
    []
    >>> claim_faults("It rises next year.")
    ['it says "It", which means nothing without the other claims', 'it says "next year": write the date or period out']
    >>> claim_faults("Will the bill pass?")
    ['it is a question: write it as a statement']
    """
    text = " ".join(claim.split())
    faults: list[str] = []
    if len(text) < SHORTEST:
        faults.append("it is too short to be understood by itself")
    if len(text) > LONGEST:
        faults.append(f"it is longer than {LONGEST} characters: one plain statement is wanted")
    if _QUESTION_MARK.search(text):
        faults.append("it is a question: write it as a statement")
    if (id := _ID.search(text)) is not None:
        faults.append(f'it refers to another claim by its id ("{id[0]}")')
    if (word := _DANGLING.search(text)) is not None:
        faults.append(f'it says "{word[0]}", which means nothing without the other claims')
    if (when := _RELATIVE.search(text)) is not None:
        faults.append(f'it says "{when[0]}": write the date or period out')
    return faults


def tidy(claim: str) -> str:
    """Normalise whitespace, so that the claim is on one line."""
    return " ".join(claim.split())


# Compare claims by their words.

Similarity = Literal["same", "opposite", "alike", "apart"]

ALIKE = 0.75
"""Minimum similarity at which two claims are reported as overlapping."""
FEWEST_SHARED = 3
"""Minimum number of content words of a claim that can overlap another; fewer words are shared by chance."""
CONTAINED = "overlap: one contains the other"
TOGETHER = 0.6
"""Minimum absolute correlation at which two claims are reported as dependent."""
_WORD = pattern(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)?", re.UNICODE)
_NOT = frozenset({"not", "no", "never", "fails", "fail", "failed", "without", "neither", "cannot"})
_STOP_WORDS = frozenset(
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
    return [_stem(word) for word in words if word not in _STOP_WORDS]


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
    rotated: tuple[str, ...]
    """The same words in order, rotated to the alphabetically smallest rotation, so that moving a phrase to the front
    changes nothing."""
    denied: bool


@lru_cache(maxsize=20_000)
def _form(claim: str) -> _Form:
    """Normalise a claim. Cached, because a claim is compared with all its ancestors and siblings."""
    words = stems(claim)
    content = tuple(word for word in words if word not in _NOT)
    rotated = min((content[n:] + content[:n] for n in range(len(content))), default=())
    return _Form(frozenset(content), rotated, len(content) < len(words))


def _similarity(a: frozenset[str], b: frozenset[str]) -> float:
    """Return the Jaccard similarity: shared words divided by all words (Jaccard 1901)."""
    return len(a & b) / len(a | b) if a | b else 1.0


def claim_similarity(a: str, b: str) -> Similarity:
    """Compare two claims by their words; word order matters, as in who beats whom.

    >>> claim_similarity("Inflation exceeds 3 % in May 2026.", "In May 2026 inflation exceeds 3 %")
    'same'
    >>> claim_similarity("Inflation exceeds 3 % in May 2026.", "Inflation does not exceed 3 % in May 2026.")
    'opposite'
    >>> claim_similarity("Ajax beats Feyenoord on 3 May 2026.", "Feyenoord beats Ajax on 3 May 2026.")
    'alike'
    >>> claim_similarity("Inflation exceeds 3 % in May 2026.", "Rents rise by 4 % in May 2026.")
    'apart'
    """
    first, second = _form(a), _form(b)
    if first.rotated == second.rotated:
        return "same" if first.denied == second.denied else "opposite"
    return "alike" if _similarity(first.words, second.words) >= ALIKE else "apart"


def is_contained(part: str, whole: str) -> bool:
    """Whether every word of one claim is in another, longer one, which then says the same and more.

    >>> is_contained("The council votes in May 2026.", "The council votes for the bridge in May 2026.")
    True
    >>> is_contained("The council votes in May 2026.", "The council votes in June 2026.")
    False
    """
    first, second = _form(part), _form(whole)
    return first.denied == second.denied and first.words < second.words


def claim_overlap(a: str, b: str) -> str:
    """Return how two claims overlap by their words, as the end of a sentence about both; empty if they do not.

    >>> claim_overlap("Inflation exceeds 3 % in May 2026.", "Inflation does not exceed 3 % in May 2026.")
    'say the opposite'
    >>> claim_overlap("The council votes in May 2026.", "The council votes for the bridge in May 2026.")
    'overlap: one contains the other'
    >>> claim_overlap("Inflation exceeds 3 % in May 2026.", "Rents rise by 4 % in May 2026.")
    ''
    """
    similarity, shorter = claim_similarity(a, b), min(len(_form(claim).words) for claim in (a, b))
    if similarity in ("same", "opposite") and shorter:
        return f"say the {similarity}"
    if shorter < FEWEST_SHARED:
        return ""
    if is_contained(a, b) or is_contained(b, a):
        return CONTAINED
    return "overlap: they are worded alike" if similarity == "alike" else ""


def similar_claims(claims: Mapping[str, str]) -> list[str]:
    """Return a note on each pair of claims with similar wording."""
    words = {id: _form(claim).words for id, claim in claims.items()}
    compared = ((a, b, _similarity(words[a], words[b])) for a, b in combinations(words, 2))
    return [
        f"{a} and {b} are worded alike (similarity {similarity:.2f}): they may say the same thing"
        for a, b, similarity in compared
        if similarity >= ALIKE
    ]


def repeated_claims(claims: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return groups of claims that say the same, without comparing every pair.

    >>> repeated_claims({"P1": "It rains in Oslo.", "P2": "Snow falls.", "P3.1": "In Oslo it rains"})
    [('P1', 'P3.1')]
    """
    groups: dict[tuple[object, bool], list[str]] = {}
    for id, claim in claims.items():
        form = _form(claim)
        groups.setdefault((form.rotated, form.denied), []).append(id)
    return [tuple(ids) for ids in groups.values() if len(ids) > 1]
