"""Thoughts and lines of them, as values."""

from dataclasses import dataclass

LONGEST_REPORTS = 24_000
"""Characters of all reports of a line together, shared out equally."""


@dataclass(frozen=True, kw_only=True)
class Thought:
    """A statement that bears on the claim, and what came of looking into it."""

    id: str
    claim: str
    why: str = ""
    p: float | None = None
    """None where nothing could be found out."""
    report: str = ""
    key_factor: str = ""
    sources: tuple[str, ...] = ()
    error: str = ""

    def told(self, room: int) -> str:
        """As a model reads it."""
        known = f"Probability: {self.p:.3f}." if self.p is not None else f"It could not be examined ({self.error})."
        factor = f"What decided it: {self.key_factor}" if self.key_factor else ""
        asked = f"Why it was asked: {self.why}" if self.why else ""
        return "\n\n".join(filter(None, [self.claim, asked, known, factor, self.report[:room]]))


@dataclass(frozen=True, kw_only=True)
class Line:
    """Thoughts that follow one another."""

    thoughts: tuple[Thought, ...] = ()

    @property
    def id(self) -> str:
        """That of its last thought; empty before the first."""
        return self.thoughts[-1].id if self.thoughts else ""

    @property
    def claims(self) -> tuple[str, ...]:
        """What was looked into."""
        return tuple(thought.claim for thought in self.thoughts)

    @property
    def grounded(self) -> bool:
        """Whether anything was found out."""
        return any(thought.p is not None for thought in self.thoughts)

    def then(self, *thoughts: Thought) -> "Line":
        """The line, longer by these."""
        return Line(thoughts=(*self.thoughts, *thoughts))

    def told(self) -> str:
        """As a model reads it."""
        room = LONGEST_REPORTS // max(1, len(self.thoughts))
        return "\n\n".join(f"## {thought.id}\n\n{thought.told(room)}" for thought in self.thoughts)


@dataclass(frozen=True, kw_only=True)
class Conclusion:
    """What a line of thought comes down to."""

    p: float
    report: str
    key_factor: str
    line: Line
