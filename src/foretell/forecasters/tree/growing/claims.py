"""Whether a claim can be examined by somebody who sees nothing but the claim."""

import re

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


def faults_of(claim: str) -> list[str]:
    """Why a claim does not stand by itself, in words for whoever wrote it; empty where it does.

    >>> faults_of("The Bank of England cuts its policy rate below 3.5 % by 31 December 2026.")
    []
    >>> faults_of("It rises next year.")
    ['it says "It", which means nothing without the other claims', 'it says "next year": write the date or period out']
    >>> faults_of("Will the bill pass?")
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
    """A claim as it is kept: one line."""
    return " ".join(claim.split())
