"""What a tree is about, as every model that works on it is told."""

from dataclasses import dataclass

from foretell.questions.clock import AsOf
from foretell.questions.question import Question

LONGEST_CRITERIA = 3_000
LONGEST_BACKGROUND = 4_000
DEEPEST_SHOWN = 8
"""Claims of a path that are shown; of a longer one the root and the nearest."""
MOST_SHOWN = 20
"""Siblings that are shown."""


@dataclass(frozen=True, kw_only=True)
class Matter:
    """The question behind a tree, seen as of a cutoff."""

    question: Question
    as_of: AsOf
    target: str = ""
    """The id of the target that the root claim is about."""

    @property
    def today(self) -> str:
        """The day of the cutoff."""
        return self.as_of.at.date().isoformat()

    def sections(self) -> tuple[tuple[str, str], ...]:
        """What decides the question, each text cut where it runs on."""
        question = self.question
        return (
            ("What is asked", question.text),
            ("Resolution criteria", question.criteria[:LONGEST_CRITERIA]),
            ("Background", question.background[:LONGEST_BACKGROUND]),
        )


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a claim stands in the tree: the claims above it and beside it, and never the rest of the tree.

    What a model reads about the surroundings is bounded, however large the tree grows.
    """

    path: tuple[str, ...] = ()
    """Claims from the root to the parent."""
    siblings: tuple[str, ...] = ()

    def above(self) -> tuple[str, str]:
        """The claims above, as told to a model."""
        shown = self.path
        if len(shown) > DEEPEST_SHOWN:
            shown = (shown[0], "…", *shown[-DEEPEST_SHOWN + 2 :])
        return "Claims above, from the whole to the part", "\n".join(f"- {claim}" for claim in shown)

    def beside(self) -> tuple[str, str]:
        """The claims beside it, as told to a model."""
        shown = "\n".join(f"- {claim}" for claim in self.siblings[:MOST_SHOWN])
        return "Claims beside it, examined by others", shown

    def below(self, claim: str, siblings: tuple[str, ...]) -> "Place":
        """The place of a child."""
        return Place(path=(*self.path, claim), siblings=siblings)
