"""What studies of trees look at: real tables, real trees, or a made-up world where nothing is given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from foretell.arena.studies.tree.play import Scene
from foretell.arena.study import Material
from foretell.forecasters.tree.files.tree_file import read_tree
from foretell.forecasters.tree.proposition import Tree
from foretell.questions.problems import InputError

ROLES = ("analyzer", "grounder", "synthesizer")


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one forecast of a method takes."""

    dollars: float
    seconds: float = float("nan")


@dataclass(frozen=True, kw_only=True)
class TreeMaterial(Material):
    """Tables as for any study, and what else is known of those who made them."""

    trees: Mapping[str, Sequence[Tree]] = field(default_factory=dict[str, Sequence[Tree]])
    """Finished trees, by the run or the rule they come from."""
    costs: Mapping[str, Cost] = field(default_factory=dict[str, Cost])
    """By forecaster."""
    cast: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """By forecaster, which model had which role (analyzer, grounder, synthesizer)."""
    scene: Scene = field(default_factory=Scene)
    """The made-up world where no table is given; its seed is that of the resampling."""


def made_up(material: Material) -> Scene | None:
    """The world to play where nothing is given; None where there are tables."""
    if material.tables:
        return None
    if isinstance(material, TreeMaterial) and material.trees:
        raise InputError("there are trees, but no outcomes", hint="this study needs --run or --forecasts")
    scene = material.scene if isinstance(material, TreeMaterial) else Scene()
    return replace(scene, seed=material.resampling.seed)


def only_made_up(material: Material, name: str, *, trees: bool = False) -> Scene:
    """The world of a study that makes no sense on tables; some can look at trees instead."""
    scene = None if isinstance(material, TreeMaterial) and material.trees else made_up(material)
    if scene is None:
        hint = "it plays in a made-up world of its own" + (", or looks at trees given by --trees" if trees else "")
        raise InputError(f"the study {name} cannot look at these", hint=hint)
    return scene


def read_trees(folder: Path) -> list[Tree]:
    """Every tree file in a folder, in the order of their names."""
    files = sorted(folder.glob("*.json"))
    if not files:
        raise InputError("there is no tree file", path=folder, hint="foretell run keeps them in trees/RUN of its home")
    return [read_tree(file) for file in files]
