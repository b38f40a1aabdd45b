"""Excerpts of found texts: whole sentences around the passage that matched a search."""

from foretell.patterns import pattern

SENTENCE_END = pattern(r"[.!?…。][\"'”’)\]]*(?=\s|$)|\n{2,}")
"""Where a sentence or a paragraph ends."""
GAP = pattern(r"\s*(?:…|\.{3})\s*")
"""Where an engine left words out of its own excerpt."""
BEFORE = 0.25
"""Share of an excerpt that comes from before the matching passage."""
FAR = 600
"""Characters: an excerpt does not begin this long before the passage only to begin with a sentence."""
SHORTEST_PASSAGE = 12
"""Shorter pieces of an engine's excerpt are not looked up in the text."""


def excerpt(text: str, passage: str, length: int) -> str:
    """Return about `length` characters of a text around a passage, from the start to the end of sentences.

    A text that is short enough is returned whole. If the text does not contain the passage, as when only the passage is
    known, the passage itself is returned, up to the end of a sentence.

    >>> excerpt("Rain fell. The bank cut its rate. Shares rose.", "cut its", 25)
    'The bank cut its rate.'
    """
    text = text.strip()
    at = _position(text, passage)
    if at is None and passage:
        return cut_at_sentence(passage.strip(), length)
    if len(text) <= length:
        return text
    at = at or 0
    start = _sentence_start(text, max(0, at - int(BEFORE * length)), at)
    return cut_at_sentence(text[start:].lstrip(), length)


def cut_at_sentence(text: str, length: int) -> str:
    """Return the sentences of a text that fit into a length; if the first one does not, it is cut at a word.

    >>> cut_at_sentence("The bank cut its rate. Shares rose by a lot.", 30)
    'The bank cut its rate.'
    """
    if len(text) <= length:
        return text
    ends = [match.end() for match in SENTENCE_END.finditer(text, 0, length + 1) if match.end() <= length]
    # A cut near the start would lose most of the excerpt, as in a table without sentences.
    if ends and ends[-1] >= length // 3:
        return text[: ends[-1]].rstrip()
    head = text[: length - 1]
    return (head.rpartition(" ")[0] or head).rstrip(" ,;:") + "…"


def _position(text: str, passage: str) -> int | None:
    """Return where the passage, or the longest piece of it, stands in the text; None if it does not."""
    pieces = sorted(GAP.split(passage.strip()), key=len, reverse=True)
    for piece in pieces:
        if len(piece) >= SHORTEST_PASSAGE or piece == passage.strip():
            at = text.find(piece)
            if at >= 0 and piece:
                return at
    return None


def _sentence_start(text: str, earliest: int, at: int) -> int:
    """Return the start of the first sentence that begins between `earliest` and the passage.

    If none does, it is the start of the passage's own sentence, unless that is far off; then it is a word.
    """
    starts = [0, *(match.end() for match in SENTENCE_END.finditer(text, 0, at))]
    near = [start for start in starts if start >= earliest] or [start for start in starts[-1:] if start > at - FAR]
    return near[0] if near else earliest + (text[earliest:at].find(" ") + 1)
