"""How far thoughts go."""

from dataclasses import dataclass, field
from typing import Literal, get_args

from foretell.forecasters.agent.submit import Clamp
from foretell.forecasters.tree.growing.ground import GroundSettings
from foretell.questions.problems import InputError

Kind = Literal["chain", "tree", "graph", "forest"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, kw_only=True)
class ThoughtSettings:
    """One of the four, and its size."""

    kind: Kind = "chain"
    depth: int = 3
    """Thoughts that follow one another."""
    width: int = 3
    """Thoughts that are tried at every step; a chain has one."""
    keep: int = 2
    """Lines that are followed up; in a graph, thoughts that are joined into one."""
    trees: int = 3
    """Of a forest."""
    attempts: int = 3
    """How often an answer that cannot be used is asked for."""
    ground: GroundSettings = field(default_factory=GroundSettings)
    dollars: float | None = None
    """What one question may cost."""
    clamp: Clamp = field(default_factory=Clamp)
    shortcut: bool = True
    """Of two exclusive options only the first is thought about; the other has what is left."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"there is no {self.kind!r} of thoughts", hint=f"kinds are {', '.join(KINDS)}")
        for name in ("depth", "width", "keep", "trees", "attempts"):
            if getattr(self, name) < 1:
                raise InputError(f"thoughts need a {name} of at least 1")

    @property
    def name(self) -> str:
        """As it stands in tables."""
        return f"{self.kind} of thoughts"

    @property
    def most(self) -> int:
        """Thoughts that are looked into at most.

        >>> [ThoughtSettings(kind=kind).most for kind in KINDS]
        [3, 15, 5, 45]
        """
        tree = self.width + (self.depth - 1) * self.keep * self.width
        return {"chain": self.depth, "tree": tree, "graph": self.width + self.depth - 1, "forest": self.trees * tree}[
            self.kind
        ]
